//! What goes wrong on the way with a picture that is computed region by region: it is named, and what was there stays.
#![cfg(target_os = "linux")]

mod files;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use files::{entries, listens, signal, text};

/// A side of the picture, which takes as much as one that is read when it is needed.
const SIDE: usize = 8192;
/// What was there before.
const OLD: &[u8] = b"the result of another day";

struct Case {
    _folder: tempfile::TempDir,
    input: PathBuf,
    output: PathBuf,
}

/// A large picture in a folder, and a file where the result goes.
fn case(name: &str) -> Case {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.pgm"), folder.path().join(name));
    let mut file = std::io::BufWriter::new(fs::File::create(&input).unwrap());
    write!(file, "P5\n{SIDE} {SIDE}\n255\n").unwrap();
    for y in 0..SIDE {
        let row: Vec<u8> = (0..SIDE).map(|x| ((x * x + y * 7) >> 5) as u8).collect();
        file.write_all(&row).unwrap();
    }
    file.flush().unwrap();
    fs::write(&output, OLD).unwrap();
    Case { _folder: folder, input, output }
}

/// `horus`, with room for a part of the picture.
fn bounded(mut command: Command) -> Command {
    command.env_remove("HORUS_MODE").env("HORUS_DEVICE", "cpu").env("HORUS_HOST_MEMORY", "48M");
    command
}

fn horus() -> Command {
    bounded(Command::new(env!("CARGO_BIN_EXE_horus")))
}

fn nothing_changed(output: &Path) {
    let folder = output.parent().unwrap();
    assert_eq!(fs::read(output).unwrap(), OLD);
    assert_eq!(entries(folder).len(), 2, "{:?} are left", entries(folder));
}

#[test]
fn an_interrupted_run_leaves_what_was_there() {
    let Case { input, output, .. } = &case("out.tif");
    for name in ["INT", "KILL"] {
        let mut command = horus();
        command.args([input, output]).args(["gauss", "9", "gauss", "9", "--threads", "1"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        listens(&child);
        std::thread::sleep(Duration::from_millis(400));
        signal(&child, name);
        let run = child.wait_with_output().unwrap();
        if name == "INT" {
            assert_eq!((run.status.code(), text(&run.stderr)), (Some(130), "error: cancelled\n".into()));
        }
        assert!(!run.status.success());
        nothing_changed(output);
    }
}

#[test]
fn a_full_disk_is_told_and_leaves_what_was_there() {
    // Files of a third of the picture; who ignores the signal is told by an error, as of a disk that is full.
    let limited = |words: &[&str], input: &Path, output: &Path| {
        let mut command = bounded(Command::new("sh"));
        command.args(["-c", "trap '' XFSZ; ulimit -f 44000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_horus")]);
        command.args([input, output]).args(words).output().unwrap()
    };
    for (name, words) in [
        ("out.tif", &["gauss", "1"][..]),
        ("out.npy", &["gauss", "1"]),
        ("out.tif", &["gauss", "1", "--tile", "256", "--compression", "zstd"]),
    ] {
        let Case { input, output, .. } = &case(name);
        let run = limited(words, input, output);
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains(&format!("cannot write {}", output.display())), "{words:?}: {said}");
        assert!(said.contains("File too large"), "{words:?}: {said}");
        nothing_changed(output);
    }
}

#[test]
fn a_file_that_ends_in_the_middle_of_its_pixels_is_told() {
    let Case { input, output, .. } = &case("out.tif");
    let tiled = input.with_file_name("tiled.tif");
    let run = horus().args([input, &tiled]).args(["gauss", "1", "--tile", "512"]).output().unwrap();
    assert!(run.status.success(), "{}", text(&run.stderr));
    let bytes = fs::read(&tiled).unwrap();
    fs::remove_file(input).unwrap();
    fs::write(&tiled, &bytes[..bytes.len() / 2]).unwrap();
    let run = horus().args([&tiled, output]).args(["gauss", "1"]).output().unwrap();
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("cannot read {}", tiled.display())), "{said}");
    nothing_changed(output);
}
