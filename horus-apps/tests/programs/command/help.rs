//! Errors and help.

use std::fs;
use std::path::PathBuf;

use horus::prelude::*;

use super::{fails, pictures, run, session};
use crate::files::text;

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
        &["operation 2, `gauss`: SIGMA is missing (a number, or a length (2.5um))", "gauss SIGMA [border=reflect101]"],
    );
    fails(dir, &chain(&["median", "0"]), 1, &["operation 1, `median 0`: "]);
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
    let canny = "`edge` is neither a file nor an operation; close: `sobel`, `canny`; `prewitt`, `scharr` are in Python";
    fails(dir, &chain(&["edge", "3"]), 2, &[canny]);
    fails(dir, &["grey.png", "edge", "mean"], 2, &[canny]);
    fails(dir, &["grey.png", "edge"], 2, &[canny]);
    fails(dir, &["grey.png", "none", "--out-dir", "d", "sobel"], 2, &["`none` is neither a file nor an operation"]);
    fails(dir, &["grey.png", "new.png", "mean"], 2, &["new.png does not exist; the chain ends in numbers"]);
    fails(dir, &chain(&["resize", "auto"]), 1, &["HEIGHT and WIDTH are both auto"]);
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
fn help_tells_of_topics_and_info_of_files() {
    let dir = pictures();
    let dir = dir.path();
    for (topic, told) in [
        ("border", "reflect101 (dcb|abcd|cba)"),
        ("footprint", "disc 2 (radius)"),
        ("types", "u8, u16, u32"),
        ("alpha", "--alpha channel"),
        ("depth", "--clipping error"),
        ("scale", "scale FACTOR"),
    ] {
        let out = run(dir, &["help", topic]);
        assert!(out.status.success() && text(&out.stdout).contains(told), "{topic}: {}", text(&out.stdout));
    }
    let out = text(&run(dir, &["info", "colour.png", "wide.tif"]).stdout);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "colour.png: 41 x 33 pixels, 3 channels, u8, 0.0 MB decoded");
    assert!(lines[1].starts_with("wide.tif: 41 x 33 pixels, 1 channel, u16"), "{out}");
    fails(dir, &["info", "none.png"], 1, &["cannot read none.png"]);
    // A volume, with levels as pages.
    let volume = Image::from_volume_fn(&session(), 4, 33, 41, |z, y, x| (z * 50 + y + x) as u8);
    volume.save(dir.join("volume.tif")).unwrap();
    let told = |words: &[&str]| text(&run(dir, &[&["info", "volume.tif"], words].concat()).stdout);
    assert!(told(&[]).contains("41 x 33 pixels, 1 channel, u8") && told(&[]).contains("4 pages"), "{}", told(&[]));
    assert!(told(&["--volume"]).contains("41 x 33 x 4 pixels"), "{}", told(&["--volume"]));
    let mean = volume.mean().get().unwrap();
    assert_eq!(super::succeeds(dir, &["volume.tif", "mean", "--volume"]), format!("volume.tif\t{mean}\n"));
    let said = text(&run(dir, &["volume.tif", "mean"]).stderr);
    assert!(said.contains("--page N reads the others, --volume all as levels") && !said.contains("AnyImage"), "{said}");
}

#[test]
fn runs_say_what_was_asked_for() {
    let dir = pictures();
    let dir = dir.path();
    let told = |words: &[&str]| {
        let out = run(dir, words);
        assert!(out.status.success(), "{words:?}: {}", text(&out.stderr));
        text(&out.stdout)
    };
    // Numbers of copies are printed on request only.
    let brief = told(&["grey.png", "o.png", "gauss", "1"]);
    assert!(brief.contains("wrote o.png") && !brief.contains("naive"), "{brief}");
    assert!(told(&["grey.png", "o.png", "gauss", "1", "-v"]).contains("a naive run makes"));
    let plan = told(&["grey.png", "o.png", "gauss", "1", "--explain"]);
    assert!(plan.contains("launch") && !plan.contains(".rs:"), "{plan}");
    let dry = told(&["colour.png", "new.png", "luminance", "gauss", "1", "--dry-run"]);
    for part in [
        "colour.png: 41 x 33 pixels, 3 channels, u8\n",
        "new.png: 41 x 33 pixels, 1 channel, f32\n",
        "images may take",
        "predicted ",
        " ms in ",
    ] {
        assert!(dry.contains(part), "{dry} lacks {part}");
    }
    assert!(!dry.contains("between hosts") && !dir.join("new.png").exists(), "{dry}");
    // The quality of JPEG files.
    told(&["colour.png", "fine.jpg"]);
    told(&["colour.png", "coarse.jpg", "--quality", "20"]);
    let size = |name: &str| fs::metadata(dir.join(name)).unwrap().len();
    assert!(size("coarse.jpg") < size("fine.jpg"));
    fails(dir, &["colour.png", "o.png", "--quality", "20"], 1, &["a png file has no quality; save as jpg"]);
    // Sizes.
    for (chain, size) in [
        ("resize 50%", "21 x 17"),
        ("resize 66", "82 x 66"),
        ("resize auto 82 nearest", "82 x 66"),
        ("resize 10 50% area", "21 x 10"),
        ("rotate 90 grow", "33 x 41"),
        ("rotate 90", "33 x 41"),
        ("rotate 90 keep", "41 x 33"),
        ("rotate -180", "41 x 33"),
        ("rotate 30", "41 x 33"),
        ("rotate 45 grow", "53 x 53"),
    ] {
        let words: Vec<&str> = ["grey.png", "s.png"].into_iter().chain(chain.split(' ')).collect();
        told(&words);
        let info = text(&run(dir, &["info", "s.png"]).stdout);
        assert!(info.contains(size), "{chain}: {info}");
    }
}

/// `HORUS_WRITE=1` writes them instead.
#[test]
fn the_pages_of_the_documentation_are_those_of_the_table() {
    for (path, page) in horus_apps::command::pages() {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
        if std::env::var_os("HORUS_WRITE").is_some() {
            fs::write(&file, &page).unwrap();
        }
        let there_is = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            there_is == page,
            "{path} is not what the operations' descriptions make: run this test with HORUS_WRITE=1"
        );
    }
}

#[test]
fn help_of_a_program_is_about_that_program() {
    let dir = tempfile::tempdir().unwrap();
    let about = |program: &str| {
        let out = std::process::Command::new(program).arg("--help").current_dir(&dir).output().unwrap();
        assert!(out.status.success(), "{program}");
        text(&out.stdout).lines().next().unwrap().to_owned()
    };
    for (program, begins) in [
        (env!("CARGO_BIN_EXE_horus"), "Applies image operations to pictures"),
        (env!("CARGO_BIN_EXE_convrot"), "Finds lines in a picture"),
    ] {
        assert!(about(program).starts_with(begins), "{program}: {}", about(program));
    }
}
