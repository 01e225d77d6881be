//! `--roi`, `horus montage` and `horus manual`.

use std::fs;

use horus::prelude::*;

use super::{bits, bytes, command, fails, pictures, run, session, succeeds};
use crate::files::text;

#[test]
fn a_part_has_the_pixels_of_the_whole() {
    let dir = pictures();
    let dir = dir.path();
    for (input, chain) in [
        ("wide.tif", &["gauss", "3", "rotate", "20"][..]),
        ("colour.png", &["median", "5", "to_unit", "mul", "0.5"]),
        ("float.npy", &[]),
    ] {
        let words = |output, more: &[&'static str]| [&[input, output], more, chain].concat();
        let told = run(dir, &words("whole.npy", &[]));
        assert!(told.status.success(), "{}", text(&told.stderr));
        let told = run(dir, &words("part.npy", &["--roi", "7,5,20,11"]));
        assert!(told.status.success(), "{}", text(&told.stderr));
        succeeds(dir, &["whole.npy", "cut.npy", "crop", "5", "7", "11", "20"]);
        assert!(fs::read(dir.join("part.npy")).unwrap() == fs::read(dir.join("cut.npy")).unwrap(), "{input}");
    }
    succeeds(dir, &["grey.png", "cut.png", "crop", "5", "7", "11", "20"]);
    let mean = |words: &[&str]| succeeds(dir, words).split('\t').nth(1).map(str::to_owned);
    assert_eq!(mean(&["grey.png", "--roi", "7,5,20,11", "mean"]), mean(&["cut.png", "mean"]));
    fails(dir, &["grey.png", "o.png", "--roi", "30,0,20,5", "neg"], 1, &["crop 0 30 5 20", "lie outside"]);
}

#[test]
fn a_montage_has_each_picture_in_its_tile() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let session = session();
    Image::from_slice(&session, (2, 4), &[40u8; 8]).save(dir.join("wide.png")).unwrap();
    Image::from_slice(&session, Shape::new(4, 2, 3), &[250u8; 24]).save(dir.join("high.png")).unwrap();
    Image::from_slice(&session, (1, 1), &[1.0f32]).save(dir.join("dot.npy")).unwrap();
    let words = ["montage", "m.png", "wide.png", "high.png", "dot.npy", "--tile", "4", "--gap", "1", "--device", "cpu"];
    assert!(run(dir, &words).status.success());
    let made = bytes(AnyImage::open(&session, dir.join("m.png")).unwrap());
    assert_eq!(made.shape(), Shape::new(9, 9, 3));
    let rows: Vec<Vec<u64>> = bits(&made.channel(1)).chunks(9).map(<[u64]>::to_vec).collect();
    let line = |row: &[u64]| row.iter().map(|v| f64::from_bits(*v)).collect::<Vec<_>>();
    assert_eq!(line(&rows[0]), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 250.0, 250.0, 0.0]);
    assert_eq!(line(&rows[1]), [40.0, 40.0, 40.0, 40.0, 0.0, 0.0, 250.0, 250.0, 0.0]);
    assert_eq!(line(&rows[8]), [255.0, 255.0, 255.0, 255.0, 0.0, 0.0, 0.0, 0.0, 0.0], "a tile of one dot");
    fails(dir, &["montage", "m.png", "missing.png"], 1, &["missing.png"]);
    fails(dir, &["montage", "m.gif", "wide.png"], 1, &["m.gif"]);
}

#[test]
fn the_manual_is_one_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = text(&run(dir.path(), &["manual"]).stdout);
    assert!(page.starts_with(".TH HORUS 1 ") && page.contains("\n.SH ENVIRONMENT\n"), "{page}");
    for (name, usage) in
        [("manual", "usage: horus manual > horus.1"), ("completions", "usage: horus completions bash|zsh|fish")]
    {
        let help = run(dir.path(), &[name, "--help"]);
        assert!(help.status.success() && text(&help.stdout).starts_with(usage), "{help:?}");
    }
    fails(dir.path(), &["manual", "gauss"], 2, &["usage: horus manual > horus.1"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_comparison_that_cannot_be_printed_is_none() {
    let dir = pictures();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let ends = |words: &[&str]| command(words).current_dir(dir.path()).stdout(full()).output().unwrap().status.code();
    assert_eq!(ends(&["compare", "grey.png", "grey.png"]), Some(2));
    assert_eq!(ends(&["info", "grey.png"]), Some(1));
}
