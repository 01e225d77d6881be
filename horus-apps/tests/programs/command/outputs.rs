//! Printed output, output folders and pipes of the command.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use horus::prelude::*;

use super::{bytes, command, fails, pictures, quiet, run, session, succeeds};
use crate::files::text;

#[test]
fn numbers_are_printed_a_line_a_picture() {
    let dir = pictures();
    let dir = dir.path();
    let session = session();
    let grey = bytes(session.open(dir.join("grey.png")).unwrap());
    let colour = bytes(session.open(dir.join("colour.png")).unwrap());
    let mean = |image: &Image<u8>| image.mean().get().unwrap();
    let lines = succeeds(dir, &["grey.png", "colour.png", "mean"]);
    assert_eq!(lines, format!("grey.png\t{}\ncolour.png\t{}\n", mean(&grey), mean(&colour)));
    let above = grey.gt(100).count().get().unwrap();
    assert_eq!(succeeds(dir, &["grey.png", "threshold", "100", "count"]), format!("grey.png\t{above}\n"));
    assert_eq!(succeeds(dir, &["grey.png", "min", "50", "max"]), "grey.png\t50\n");
    let object = format!("{{\"file\":\"grey.png\",\"numbers\":{}}}\n", mean(&grey));
    assert_eq!(succeeds(dir, &["grey.png", "mean", "--json"]), object);
    fails(dir, &["grey.png", "out.png", "gauss", "1", "--json"], 2, &["--json prints numbers"]);
    let told = succeeds(dir, &["colour.png", "stats"]);
    assert_eq!(told.lines().count(), 3);
    for (i, line) in told.lines().enumerate() {
        let channel = colour.channel(i);
        let (low, high, sum) = session.get_all((channel.min_value(), channel.max_value(), channel.sum())).unwrap();
        let (mean, deviation) = (mean(&channel), channel.variance().get().unwrap().sqrt());
        assert_eq!(line, format!("colour.png\t{i}\t{low}\t{high}\t{mean}\t{deviation}\t{sum}"));
    }
    let counts = grey.histogram(4, 0.0, 256.0).get().unwrap().iter().map(u64::to_string).collect::<Vec<_>>().join("\t");
    assert_eq!(succeeds(dir, &["grey.png", "histogram", "4", "0", "256"]), format!("grey.png\t{counts}\n"));
    let place =
        colour.argmax().get().unwrap().unwrap()[1..].iter().map(usize::to_string).collect::<Vec<_>>().join("\t");
    assert_eq!(succeeds(dir, &["colour.png", "argmax"]), format!("colour.png\t{place}\n"));
    let mut levels = horus::ndarray::Array4::<u8>::zeros((2, 3, 4, 2));
    levels[[1, 2, 3, 1]] = 9;
    Image::from_volume_array(&session, levels.view()).save(dir.join("levels.npy")).unwrap();
    assert_eq!(succeeds(dir, &["levels.npy", "argmax"]), "levels.npy\t1\t2\t3\t1\n");
    fs::remove_file(dir.join("levels.npy")).unwrap();
    // A failing picture is named, and the others are printed.
    let out = quiet(dir, &["grey.png", "none.png", "colour.png", "count"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).ends_with("error: 3 of 3 pictures failed\n"), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("error: grey.png: operation 1, `count`: it takes a mask"));
    assert!(text(&out.stderr).contains("error: cannot read none.png: "));
    fs::write(dir.join("list"), "grey.png\ncolour.png\n").unwrap();
    assert_eq!(succeeds(dir, &["--files-from", "list", "max"]).lines().count(), 2);
}

#[test]
fn a_folder_of_results_is_written() {
    let dir = pictures();
    let dir = dir.path();
    let out = run(
        dir,
        &["grey.png", "colour.png", "--out-dir", "out", "luminance", "gauss", "1", "sub", "@dark.png", "otsu"],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    for name in ["grey.png", "colour.png"] {
        succeeds(dir, &[name, "one.png", "luminance", "gauss", "1", "sub", "@dark.png", "otsu"]);
        assert_eq!(fs::read(dir.join("one.png")).unwrap(), fs::read(dir.join("out").join(name)).unwrap());
    }
    succeeds(dir, &[".", "--out-dir", "npy", "--format", "npy", "luminance"]);
    assert!(dir.join("npy/wide.npy").is_file() && dir.join("npy/dark.npy").is_file());
    let out = run(dir, &["grey.png", "none.png", "colour.png", "--out-dir", "part", "sobel", "div", "8"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).starts_with("error: cannot read none.png: "), "{}", text(&out.stderr));
    assert!(dir.join("part/colour.png").is_file() && dir.join("part/grey.png").is_file());
}

#[test]
fn a_picture_goes_through_pipes() {
    let dir = pictures();
    let dir = dir.path();
    let piped = |words: &[&str]| {
        let mut child = command(words).stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(dir).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&fs::read(dir.join("grey.png")).unwrap()).unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{words:?}");
        out.stdout
    };
    succeeds(dir, &["grey.png", "o.png", "gauss", "2", "sobel"]);
    let got = piped(&["-", "-", "--format", "png", "gauss", "2", "sobel", "--quiet"]);
    assert!(got == fs::read(dir.join("o.png")).unwrap());
    assert_eq!(text(&piped(&["-", "max", "7", "min"])), "-\t7\n");
}

/// The standard library opens the null device in the place of a closed standard output.
#[test]
#[cfg(target_os = "linux")]
fn a_closed_standard_output_is_an_error() {
    let dir = pictures();
    let closed = |words: &[&str]| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "exec \"$@\" >&-", "sh", env!("CARGO_BIN_EXE_horus")]).args(words);
        let out = shell.env_remove("RUST_LOG").current_dir(dir.path()).output().unwrap();
        (out.status.code(), text(&out.stderr))
    };
    let (status, told) = closed(&["grey.png", "-", "gauss", "1", "--format", "png"]);
    assert!(status == Some(1) && told.contains("it is closed") && !told.contains("wrote"), "{status:?} {told}");
    for words in [&["grey.png", "mean"][..], &["info", "grey.png"], &["--version"]] {
        let (status, told) = closed(words);
        let cause = "cannot print to stdout: it is closed";
        assert!(status.is_some_and(|status| status > 0) && told.contains(cause), "{words:?}: {status:?} {told}");
    }
    // A file is written, and only the summary is lost.
    assert_eq!(closed(&["grey.png", "out.png", "gauss", "1"]), (Some(0), String::new()));
    assert!(dir.path().join("out.png").exists());
    // The null device is not closed.
    let null = command(&["grey.png", "mean"]).current_dir(dir.path()).stdout(Stdio::null()).status().unwrap();
    assert!(null.success());
}

#[test]
fn warnings_are_lines_for_users() {
    let dir = pictures();
    let session = session();
    let image = Image::from_fn(&session, 1, 8, |_, x| if x == 7 { 3000u16 } else { 0 });
    image.save(dir.path().join("wide.png")).unwrap();
    let out = run(dir.path(), &["wide.png", "out.jpg", "gauss", "0.5", "--depth", "8", "--scaling", "none"]);
    let told = text(&out.stderr);
    let clipped = told.lines().find(|line| line.contains("were clipped"));
    assert!(out.status.success() && clipped.is_some_and(|line| line.starts_with("warning: out.jpg: ")), "{told}");
    assert!(!told.contains("[WARN"), "{told}");
}
