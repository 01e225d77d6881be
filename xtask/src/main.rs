//! The front door for developers: `cargo xtask COMMAND`. Each command runs one script or one call of
//! cargo, with the settings that tests need.

mod crates;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A command: its words, what it is for, and the program that it runs. Further words are passed on.
struct Task {
    words: &'static str,
    about: &'static str,
    program: &'static [&'static str],
}

const fn task(words: &'static str, about: &'static str, program: &'static [&'static str]) -> Task {
    Task { words, about, program }
}

/// All commands, in the order of the help and of the first table of CONTRIBUTING.md.
const TASKS: &[Task] = &[
    task("test", "all tests, as CI runs them; installs what is missing", &["scripts/test.sh"]),
    task(
        "test CRATE",
        "the tests of one crate (`cpu` is `horus-cpu`); further words go to `cargo test`",
        &["cargo", "test", "-p"],
    ),
    task("lint", "formatting, clippy and documentation, as CI checks them", &["scripts/test.sh", "lint"]),
    task(
        "python",
        "tests of the Python package, in its own environment (`--release`: the published wheel)",
        &["scripts/python_test.sh"],
    ),
    task("book", "builds the book and checks its links (`--check`: only that)", &["scripts/book.sh"]),
    task("wheel", "builds the Python package", &["scripts/wheel.sh"]),
    task("bench", "benchmarks (`PEERS=DIR`: other libraries, too)", &["benches/run.sh"]),
    task(
        "gpu",
        "the GPU suite: `gpu build BIN` anywhere, `gpu -b BIN -o OUT [STAGE...]` on a host with a GPU",
        &["scripts/gpu.sh"],
    ),
    task(
        "new-op",
        "writes what an operation needs: `new-op pixel NAME` or `new-op whole NAME`",
        &["scripts/new_op.py"],
    ),
    task("pages", "writes the generated pages and pictures of the documentation anew", &[]),
    task("release", "checks that a commit may be released", &["scripts/release.sh"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The commands, as a table in Markdown.
fn table() -> String {
    let rows = TASKS.iter().map(|t| format!("| `cargo xtask {}` | {} |\n", t.words, t.about));
    format!("| command | what it does |\n| --- | --- |\n{}", rows.collect::<String>())
}

/// The package that a user calls `name`, with or without `horus-`.
fn package(name: &str) -> String {
    match name {
        "horus" | "image" => "horus-image".into(),
        "kernels" => "horus-cuda-kernels".into(),
        "xtask" => name.into(),
        _ if name.starts_with("horus-") => name.into(),
        _ => format!("horus-{name}"),
    }
}

/// Runs a program in the root folder, with the settings that tests need.
fn run(words: &[String]) -> Result<(), String> {
    let [program, rest @ ..] = words else { return Ok(()) };
    let path = if program.contains('/') { root().join(program) } else { program.into() };
    // Tests inspect plans for the assumed machine, and compute on all ranks.
    let status = Command::new(&path)
        .args(rest)
        .current_dir(root())
        .env("HORUS_PROFILE", "default")
        .env("HORUS_RANKS", "all")
        .status()
        .map_err(|e| format!("{program}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed: {status}")) }
}

/// Writes every generated page.
fn pages() -> Result<(), String> {
    crates::write(&root())?;
    replace_table(&root(), true)?;
    let words = ["env", "HORUS_WRITE=1", "cargo", "test", "-p", "horus-apps", "pages"];
    run(&words.map(String::from))
}

/// Compares the first table of CONTRIBUTING.md with the help, or writes it.
fn replace_table(root: &Path, write: bool) -> Result<(), String> {
    let path = root.join("CONTRIBUTING.md");
    let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
    let begin = text.find("| command |").ok_or("CONTRIBUTING.md has no table of commands")?;
    let end = text[begin..].find("\n\n").map_or(text.len(), |n| begin + n + 1);
    if text[begin..end] == table() {
        return Ok(());
    }
    if !write {
        return Err(
            "the first table of CONTRIBUTING.md is not the help of `cargo xtask`: run `cargo xtask pages`".into()
        );
    }
    std::fs::write(path, [&text[..begin], &table(), &text[end..]].concat()).map_err(|e| e.to_string())
}

fn command(words: &[String]) -> Result<(), String> {
    let Some((name, rest)) = words.split_first() else {
        print!("{}", table());
        return Ok(());
    };
    match (name.as_str(), rest) {
        ("help" | "--help" | "-h", _) => {
            print!("{}", table());
            Ok(())
        }
        ("pages", _) => pages(),
        ("test", [of, more @ ..]) => run(&[&["cargo".into(), "test".into(), "-p".into(), package(of)], more].concat()),
        _ => {
            let task =
                TASKS.iter().find(|t| t.words == name).ok_or_else(|| format!("no command `{name}`\n{}", table()))?;
            run(&[&task.program.iter().map(ToString::to_string).collect::<Vec<_>>()[..], rest].concat())
        }
    }
}

fn main() -> ExitCode {
    match command(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contributing_begins_with_the_help() {
        replace_table(&root(), false).unwrap();
    }

    #[test]
    fn commands_run_programs_that_exist() {
        for program in TASKS.iter().filter_map(|t| t.program.first()).filter(|p| p.contains('/')) {
            assert!(root().join(program).is_file(), "{program}");
        }
    }

    #[test]
    fn short_names_are_packages() {
        for name in crates::members(&root()) {
            let short = name.strip_prefix("horus-").unwrap_or(&name);
            assert_eq!(package(short), name);
        }
    }
}
