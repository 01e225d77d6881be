//! Accuracy of the README and the book's page of settings.

use std::path::{Path, PathBuf};

use horus::prelude::*;
use horus::settings::{VARIABLES, table};

const README: &str = include_str!("../README.md");
const SETTINGS: &str = include_str!("../docs/book/src/settings.md");
const PROGRAM: &str = include_str!("../examples/lines.rs");

#[test]
fn it_is_short() {
    assert!(README.len() <= 8 << 10, "README.md has {} bytes", README.len());
}

#[test]
fn its_program_is_the_example() {
    let program = PROGRAM.split_once("\n\n").unwrap().1;
    assert!(README.contains(program), "README.md and examples/lines.rs differ");
}

#[test]
fn a_turn_of_its_loop_is_two_kernels() {
    let session = Session::builder().device("cpu").build().unwrap();
    let image = samples::worms(&session, 40, 50);
    let mut lines = Image::<f32>::zeros(&session, image.shape());
    for theta in [0.0, 45.0, 90.0, 135.0] {
        let turned = image.with_border(Border::Reflect101).rotate(theta, Interpolation::Bilinear);
        let across = turned.gauss_xy(5.0, 2.0, 0, 2);
        let smooth = turned.gauss_xy(5.0, 2.0, 0, 0);
        let contrast = across.absdiv(&smooth, 1e-3) * 10.0;
        lines = lines.max(contrast.rotate(-theta, Interpolation::Bilinear));
    }
    drop(image);
    lines.to_vec().unwrap();
    // Maxima with their rotations are computed two responses at a time. The rotation by 0 degrees
    // is omitted.
    assert_eq!(session.stats().made.launches, 4 * 2 + 2 - 1);
}

/// Adds the Rust files under a folder, with their text.
fn read(path: &Path, to: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, to);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            to.push((path, text));
        }
    }
}

/// All Rust files of the workspace's libraries and programs, with their text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    let core =
        ["horus-base/src", "horus-plan/src", "horus-host/src", "horus-cpu/src", "horus-files/src", "horus-core/src"];
    for part in
        core.into_iter().chain(["src", "horus-cuda/src", "horus-mpi/src", "horus-apps/src", "models/src", "tools/src"])
    {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(part), &mut all);
    }
    all
}

/// The part of a file before the unit tests, without comments.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn variables_are_declared_in_the_table_and_read_by_their_declaration_alone() {
    let mut sources = sources();
    sources.retain(|(path, _)| !path.iter().any(|part| part == "tests.rs" || part == "tests"));
    let (declarations, others): (Vec<_>, Vec<_>) =
        sources.iter().partition(|(path, _)| path.ends_with("declarations.rs"));
    assert_eq!(declarations.len(), 1);
    for (path, text) in &others {
        assert!(!code(text).contains("\"HORUS_"), "{} names a variable by its text", path.display());
    }
    for v in VARIABLES {
        let name = v.name().trim_start_matches("HORUS_");
        let asked = |text: &String| [".get()", ".path()"].iter().any(|call| text.contains(&format!("{name}{call}")));
        assert!(others.iter().any(|(_, text)| asked(text)), "nobody asks for {}", v.name());
    }
}

#[test]
fn the_table_of_settings_is_that_of_the_declarations() {
    let rows: Vec<&str> = SETTINGS.lines().filter(|l| l.starts_with("| `HORUS_")).collect();
    let table = table();
    assert_eq!(rows, table.lines().collect::<Vec<_>>(), "settings.md should have\n{table}");
}

/// The tests that a page names, as `file.rs::function`.
fn shown_by(page: &str) -> Vec<(&str, &str)> {
    let code = page.split('`').skip(1).step_by(2);
    code.filter_map(|c| c.split_once(".rs::")).collect()
}

/// Each promise names a test, which is there.
#[test]
fn promises_are_shown_by_tests() {
    for page in ["SECURITY.md", "docs/book/src/promises.md"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(root.join(page)).expect("a page");
        let rows = text.lines().filter(|l| l.starts_with("| ") && l.contains(".rs::")).count();
        assert!(rows > 5, "{page} names {rows} tests");
        for (file, name) in shown_by(&text) {
            let code = std::fs::read_to_string(root.join(format!("{file}.rs"))).unwrap_or_default();
            let test = format!("fn {name}(");
            let place = code.find(&test).unwrap_or_else(|| panic!("{page}: {file}.rs has no test {name}"));
            let line = code[..place].rfind('\n').map_or(0, |end| end);
            let above =
                code[..line].lines().rev().map(str::trim).take_while(|l| l.starts_with("#[") || l.starts_with("//"));
            assert!(above.into_iter().any(|l| l == "#[test]"), "{page}: {name} of {file}.rs is no test");
        }
    }
}
