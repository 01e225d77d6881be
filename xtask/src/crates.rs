//! The picture of the crates by role in ARCHITECTURE.md, made of the manifests.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Roles, from users down to the machine, and the crates that have them.
const ROLES: &[(&str, &[&str])] = &[
    ("users", &["horus-image", "horus-python", "horus-apps", "horus-zarr", "horus-partition"]),
    ("sessions", &["horus-core"]),
    ("compiler", &["horus-plan"]),
    ("machine", &["horus-cuda", "horus-cuda-kernels", "horus-cpu", "horus-mpi", "horus-files", "horus-host"]),
    ("values", &["horus-base"]),
    ("unpublished", &["horus-testing", "horus-models", "horus-tools", "xtask"]),
];

/// The text between quotes at the beginning of a value.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

/// A crate: its name, and the crates of the workspace that it needs.
struct Manifest {
    name: String,
    needs: BTreeSet<String>,
}

fn manifest(folder: &Path) -> Manifest {
    let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let (mut section, mut name, mut needs) = ("", String::new(), BTreeSet::new());
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[package]" && line.starts_with("name = ") {
            name = quoted(line).expect("a name").into();
        } else if section.ends_with("dependencies]") && !section.contains("dev-") && !section.starts_with("[workspace")
        {
            let needed = line.split(['.', ' ', '=']).next().unwrap_or_default();
            match needed {
                "horus" => drop(needs.insert("horus-image".into())),
                _ if needed.starts_with("horus-") => drop(needs.insert(needed.into())),
                _ => {}
            }
        }
    }
    needs.remove(&name);
    Manifest { name, needs }
}

fn manifests(root: &Path) -> Vec<Manifest> {
    let text = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
    let members = text.split("members = [").nth(1).and_then(|t| t.split(']').next()).expect("members");
    let folders = members.split('"').skip(1).step_by(2).map(|m| root.join(m));
    [root.to_path_buf()].into_iter().chain(folders).map(|f| manifest(&f)).collect()
}

/// The names of the packages.
#[cfg(test)]
pub(crate) fn members(root: &Path) -> Vec<String> {
    manifests(root).into_iter().map(|m| m.name).collect()
}

/// Crates that `name` needs only through others are left out.
fn direct<'a>(all: &'a [Manifest], of: &'a Manifest) -> impl Iterator<Item = &'a String> {
    let indirect = |name: &String| {
        of.needs.iter().filter(|n| *n != name).any(|n| {
            let mut open = vec![n];
            while let Some(at) = open.pop() {
                if let Some(m) = all.iter().find(|m| m.name == *at) {
                    if m.needs.contains(name) {
                        return true;
                    }
                    open.extend(&m.needs);
                }
            }
            false
        })
    };
    of.needs.iter().filter(move |name| !indirect(name))
}

/// The picture, as a Mermaid graph in Markdown.
fn picture(root: &Path) -> String {
    let all = manifests(root);
    let mut text = String::from("```mermaid\ngraph TD\n");
    for (role, names) in ROLES {
        writeln!(text, "  subgraph {role}").expect("a string");
        for name in *names {
            assert!(all.iter().any(|m| m.name == *name), "{name} is no crate");
            writeln!(text, "    {name}").expect("a string");
        }
        text.push_str("  end\n");
    }
    for m in &all {
        assert!(ROLES.iter().any(|(_, names)| names.contains(&m.name.as_str())), "{} has no role", m.name);
        for needed in direct(&all, m) {
            writeln!(text, "  {} --> {needed}", m.name).expect("a string");
        }
    }
    text + "```\n"
}

/// ARCHITECTURE.md with the current picture.
fn page(root: &Path) -> Result<(String, String), String> {
    let old = fs::read_to_string(root.join("ARCHITECTURE.md")).map_err(|e| e.to_string())?;
    let begin = old.find("```mermaid\n").ok_or("ARCHITECTURE.md has no picture of the crates")?;
    let end = old[begin + 3..].find("```\n").ok_or("the picture in ARCHITECTURE.md does not end")? + begin + 7;
    let new = [&old[..begin], &picture(root), &old[end..]].concat();
    Ok((old, new))
}

/// Writes the picture.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let (_, new) = page(root)?;
    fs::write(root.join("ARCHITECTURE.md"), new).map_err(|e| e.to_string())
}

#[test]
fn the_picture_of_the_crates_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (old, new) = page(&root).unwrap();
    assert!(old == new, "run `cargo xtask pages`");
}
