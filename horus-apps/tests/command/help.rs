//! Errors and help.

use std::fs;
use std::path::PathBuf;

use super::files::text;
use super::{fails, pictures, run};

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let dir = pictures();
    let dir = dir.path();
    let ok = ["grey.png", "o.png"];
    let chain = |words: &[&'static str]| [&ok[..], words].concat();
    fails(dir, &chain(&["guass", "2"]), 2, &["`guass` is neither a file nor an operation; did you mean `gauss`?"]);
    fails(
        dir,
        &chain(&["sobel", "gauss"]),
        2,
        &["operation 2, `gauss`: SIGMA is missing (a number)", "gauss SIGMA [border=reflect101]"],
    );
    fails(dir, &chain(&["median", "0"]), 2, &["operation 1, `median 0`: SIZE: `0` is not one of 3, 5"]);
    fails(dir, &chain(&["gauss", "2", "wrap", "much"]), 2, &["too many arguments: unexpected `much`"]);
    fails(
        dir,
        &chain(&["luminance", "gauss", "-1"]),
        1,
        &["operation 2, `gauss -1`: sigma is -1; it must be positive"],
    );
    fails(
        dir,
        &chain(&["mul", "0.5"]),
        1,
        &["operation 1, `mul 0.5`: pixels are u8, which cannot hold 0.5; put `to_unit`"],
    );
    fails(dir, &chain(&["add", "-300"]), 1, &["cannot hold -300"]);
    fails(dir, &chain(&["otsu", "gauss", "2"]), 1, &["operation 2, `gauss 2`: it takes numbers, not a mask"]);
    fails(dir, &chain(&["not"]), 1, &["operation 1, `not`: it takes a mask, not numbers"]);
    fails(dir, &chain(&["channel", "1"]), 1, &["operation 1, `channel 1`: channel 1 requested, but there are only 1"]);
    fails(dir, &chain(&["crop", "0", "0", "99", "1"]), 1, &["operation 1, `crop 0 0 99 1`: 99x1 pixels from row 0"]);
    fails(dir, &chain(&["transpose", "sub", "@dark.png"]), 1, &["`sub @dark.png`: pictures differ in size"]);
    fails(dir, &chain(&["sub", "@none.png"]), 1, &["operation 1, `sub @none.png`: cannot read none.png"]);
    fails(dir, &["grey.png", "colour.png", "--out-dir", "d", "sub", "@none.png"], 1, &["cannot read none.png"]);
    fails(dir, &["none.png", "o.png", "sobel"], 1, &["none.png"]);
    fails(dir, &["grey.png", "no/o.png", "sobel"], 1, &["no/o.png"]);
    fails(dir, &["grey.png", "o.xyz", "sobel"], 1, &["xyz"]);
    fails(dir, &["help", "guass"], 2, &["there is no operation `guass`; did you mean `gauss`?"]);
    assert!(!dir.join("o.png").exists());
}

#[test]
fn help_lists_every_operation_and_tells_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (all, short) = (text(&run(dir, &["help"]).stdout), text(&run(dir, &["--help"]).stdout));
    assert_eq!(all, text(&run(dir, &["operations"]).stdout));
    assert!(
        short.contains("--out-dir") && short.contains("--threads") && short.contains("horus in/*.tif --out-dir out")
    );
    for (name, example) in horus_apps::command::examples() {
        assert!(all.lines().any(|l| l.trim_start().split(' ').next() == Some(name)), "{name}");
        assert!(short.split_whitespace().any(|word| word == name), "{name}");
        let one = run(dir, &["help", name]);
        assert!(one.status.success() && text(&one.stdout).contains(&example), "{name}");
    }
    assert!(text(&run(dir, &["help", "gauss"]).stdout).contains("border=reflect101"));
}

#[test]
fn the_page_of_the_documentation_is_that_of_the_table() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/command.md");
    let page = horus_apps::command::page();
    let there_is = fs::read_to_string(&path).unwrap_or_default();
    assert!(there_is == page, "docs/command.md should be:\n{page}");
}
