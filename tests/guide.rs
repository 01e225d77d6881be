//! The gallery of examples, the table of names and the book are complete and true.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use horus::core::ops::pixel::TABLE;
use horus::prelude::*;

#[path = "../docs/book/code.rs"]
mod book;

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

/// The names in the first column of the tables of Rust, but the first.
fn named() -> BTreeSet<String> {
    let (_, tables) = NAMES.split_once("## In and out").expect("the tables");
    // The names of Python are tested there, in test_book.py.
    let (tables, _) = tables.split_once("## From CuPy").expect("the names in Python");
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

/// Markdown files: those of the book, and those that lead to it or that it includes.
fn pages() -> Vec<(PathBuf, String)> {
    let chapters = fs::read_dir(root().join("docs/book/src")).expect("the book").map(|f| f.expect("a file").path());
    let mut pages: Vec<PathBuf> = chapters.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    assert!(pages.len() >= 14, "{pages:?}");
    let beside = fs::read_dir(root().join("docs")).expect("a folder").map(|f| f.expect("a file").path());
    pages.extend(beside.filter(|path| path.extension().is_some_and(|e| e == "md")));
    pages.extend(["README.md", "examples/README.md", "horus-python/README.md"].map(|name| root().join(name)));
    let text = |path: &PathBuf| fs::read_to_string(path).expect("a page");
    pages.iter().map(|path| (path.clone(), text(path))).collect()
}

/// The lines of fenced blocks of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let (mut found, mut open): (Vec<Vec<&str>>, bool) = (Vec::new(), false);
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(name) if !open && name == language => {
                found.push(Vec::new());
                open = true;
            }
            Some(_) => open = false,
            None if open => found.last_mut().expect("a block").push(line.trim()),
            None => {}
        }
    }
    found
}

#[test]
fn the_rust_code_of_the_book_is_code_that_runs() {
    let mut sources = vec![fs::read_to_string(root().join("docs/book/code.rs")).expect("the code of the book")];
    let example = |name: &String| fs::read_to_string(root().join(format!("examples/{name}.rs"))).expect("an example");
    sources.extend(examples().iter().map(example));
    let sources: Vec<Vec<&str>> = sources.iter().map(|s| s.lines().map(str::trim).collect()).collect();
    let mut count = 0;
    for (path, page) in pages().iter().filter(|(path, _)| path.starts_with(root().join("docs/book"))) {
        for block in blocks(page, "rust").iter().filter(|block| !block[0].starts_with("{{#include")) {
            let stands = sources.iter().any(|lines| lines.windows(block.len()).any(|part| part == &block[..]));
            assert!(stands, "{} has code that docs/book/code.rs has not:\n{}", path.display(), block.join("\n"));
            count += 1;
        }
    }
    assert!(count >= 25, "{count} blocks");

    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("assets")).expect("a folder");
    for name in ["vessels.png", "small.png"] {
        fs::copy(root().join("assets").join(name), folder.path().join("assets").join(name)).expect("a copy");
    }
    // No other test here looks for files from the working directory on.
    std::env::set_current_dir(folder.path()).expect("the folder");
    for (chapter, run) in book::CHAPTERS {
        run().unwrap_or_else(|e| panic!("{chapter}: {e}"));
    }
    assert!(folder.path().join("sharp.png").exists(), "the first program writes its picture");
}

#[test]
fn links_of_the_book_lead_somewhere() {
    let mut count = 0;
    for (path, page) in pages() {
        let folder = path.parent().expect("a folder");
        let includes = page.split("{{#include ").skip(1).filter_map(|rest| rest.split("}}").next());
        let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in includes.chain(links) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            // What is included stands elsewhere in the book; its links lead to chapters there, and to pages beside it here.
            let there = folder.join(target).exists();
            assert!(there, "{} leads to {link}, which there is not", path.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count} links");
    let summary = fs::read_to_string(root().join("docs/book/src/SUMMARY.md")).expect("the contents");
    for (path, _) in pages().iter().filter(|(path, _)| path.parent() == Some(&root().join("docs/book/src"))) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "SUMMARY.md does not list {name}");
    }
}
