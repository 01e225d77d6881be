//! The gallery of examples and the table of names are complete and true.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use horus::core::ops::pixel::TABLE;
use horus::prelude::*;

const GALLERY: &str = include_str!("../examples/README.md");
const NAMES: &str = include_str!("../docs/names.md");

/// The most lines of an example, and the most bytes of its picture.
const LINES: usize = 45;
const BYTES: u64 = 100 << 10;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> Vec<String> {
    let files = fs::read_dir(root().join("examples")).expect("the folder of examples");
    let names = files.map(|f| f.expect("a file").file_name().into_string().expect("a name in UTF-8"));
    let mut names: Vec<String> = names.filter_map(|n| n.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    names
}

#[test]
fn each_example_is_short_and_has_its_place_in_the_gallery() {
    let names = examples();
    assert!(names.len() >= 15, "{names:?}");
    for name in names {
        let text = fs::read_to_string(root().join(format!("examples/{name}.rs"))).expect("an example");
        assert!(text.lines().count() <= LINES, "{name} has {} lines", text.lines().count());
        assert!(text.contains("use horus::prelude::*;"), "{name} takes the prelude");
        let command = format!("cargo run --release --example {name}");
        assert!(text.contains(&format!("`{command}`")), "{name} says how to run it");
        let row = GALLERY.lines().find(|l| l.contains(&format!("`{command}`")));
        let row = row.unwrap_or_else(|| panic!("examples/README.md does not show {name}"));
        assert!(row.contains(&format!("({name}.rs)")) && row.contains(&format!("(../assets/gallery/{name}.png)")));
        let picture = fs::metadata(root().join(format!("assets/gallery/{name}.png")));
        let bytes = picture.unwrap_or_else(|e| panic!("the picture of {name}: {e}")).len();
        assert!(bytes <= BYTES, "the picture of {name} has {bytes} bytes");
    }
}

/// Runs each example as a user does, and looks at what it writes.
#[test]
fn the_gallery_shows_what_the_examples_write() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("assets")).expect("a folder");
    fs::copy(root().join("assets/vessels.png"), folder.path().join("assets/vessels.png")).expect("a copy");
    // `cargo test` has built them; `cargo test --test guide` has not.
    let mut build = Command::new(env!("CARGO"));
    // Of the whole workspace, as the test command does: packages alone have other features, and all would be compiled again.
    build.args(["build", "--quiet", "--workspace", "--examples"]).current_dir(root());
    if !cfg!(feature = "cuda") {
        build.arg("--no-default-features");
    }
    assert!(build.status().expect("cargo").success(), "examples build");
    let programs = std::env::current_exe().expect("a path").with_file_name("").join("../examples");

    let session = Session::builder().device("cpu").build().expect("a session on the CPU");
    for name in examples() {
        let run = Command::new(programs.join(&name)).current_dir(folder.path()).output();
        let run = run.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        let open =
            |path: PathBuf| AnyImage::open(&session, &path).unwrap_or_else(|e| panic!("{name}: {e}")).convert::<i32>();
        let written = open(folder.path().join(format!("{name}.png")));
        let shown = open(root().join(format!("assets/gallery/{name}.png")));
        let difference = written.absdiff(shown).max_value().get().unwrap_or_else(|e| panic!("{name}: {e}"));
        // A function of the platform's library may round a pixel the other way.
        assert!(difference <= 1, "{name} writes another picture than the gallery shows, by {difference} levels");
    }
}

/// The names in the first column of the tables but the first.
fn named() -> BTreeSet<String> {
    let (_, tables) = NAMES.split_once("## In and out").expect("the tables");
    let cells = tables.lines().filter_map(|l| l.strip_prefix('|')?.split('|').next());
    let code = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    code.collect()
}

/// The names of public functions in the files at or under `path`.
fn functions(path: PathBuf) -> BTreeSet<String> {
    if path.is_dir() {
        return fs::read_dir(path).expect("a folder").flat_map(|f| functions(f.expect("a file").path())).collect();
    }
    let text = fs::read_to_string(path).expect("a file");
    let after = text.lines().filter_map(|l| l.trim().strip_prefix("pub fn "));
    let names = after.map(|l| l.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default());
    names.filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

fn operations() -> BTreeSet<String> {
    let mut all = functions(root().join("horus-core/src/image"));
    all.extend(TABLE.iter().map(|row| row.name.to_owned()));
    all
}

#[test]
fn the_table_of_names_names_what_there_is() {
    let mut there_is = operations();
    for place in ["filters", "io", "ops/neighbourhood.rs"] {
        there_is.extend(functions(root().join("horus-core/src").join(place)));
    }
    let named = named();
    assert!(named.len() > 80, "{named:?}");
    for name in named {
        let method = name.rsplit("::").next().unwrap_or_default();
        assert!(there_is.contains(method), "docs/names.md names `{name}`, which there is not");
    }
}

#[test]
fn the_table_of_names_is_complete() {
    // What is no operation on pixels, or no other library has.
    let others = [
        "binary",
        "channels",
        "check",
        "compare",
        "depth",
        "dtype",
        "forecast",
        "forecast_memory",
        "forecast_on",
        "get",
        "get_all",
        "height",
        "session",
        "shape",
        "to_image",
        "unary",
        "width",
    ];
    let named = named();
    for name in operations() {
        let known = others.contains(&name.as_str()) || named.contains(&name);
        assert!(known, "docs/names.md does not name `{name}`");
    }
}
