//! Failures during region-by-region computation of a picture: they are reported, and existing files
//! stay.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::files::{entries, listens, signal, text};
use crate::promise::{ExpectedEnd, MemoryPromise};

/// Side of the picture, which is large enough to be read on demand.
const SIDE: usize = 8192;
/// Existing content of the output.
const OLD: &[u8] = b"the result of another day";

struct LargePicture {
    _folder: tempfile::TempDir,
    input: PathBuf,
    output: PathBuf,
}

/// A large picture in a folder, and an output file.
fn case(name: &str) -> LargePicture {
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
    LargePicture { _folder: folder, input, output }
}

/// `horus`, with memory for a part of the picture.
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
    let LargePicture { input, output, .. } = &case("out.tif");
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
    // Limits files to a third of the picture.
    let limited = |words: &[&str], input: &Path, output: &Path| {
        let mut command = bounded(Command::new("sh"));
        command.args(["-c", "ulimit -f 44000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_horus")]);
        command.args([input, output]).args(words).output().unwrap()
    };
    for (name, words) in [
        ("out.tif", &["gauss", "1"][..]),
        ("out.npy", &["gauss", "1"]),
        ("out.tif", &["gauss", "1", "--tile", "256", "--compression", "zstd"]),
    ] {
        let LargePicture { input, output, .. } = &case(name);
        let run = limited(words, input, output);
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains(&format!("cannot write {}", output.display())), "{words:?}: {said}");
        assert!(said.contains("File too large"), "{words:?}: {said}");
        nothing_changed(output);
    }
}

#[test]
fn a_full_disk_during_a_sweep_leaves_what_was_there() {
    let LargePicture { input, output, .. } = &case("out.tif");
    let mut command = bounded(Command::new("sh"));
    command.args(["-c", "ulimit -f 44000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_horus")]);
    let run = command.args([input, output]).args(["distance", "taxicab"]).output().unwrap();
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    let temporary = format!("cannot write {}", std::env::temp_dir().display());
    assert!(said.contains(&temporary) && said.contains("File too large"), "{said}");
    nothing_changed(output);
}

#[test]
fn numbers_of_a_large_picture_need_not_fit() {
    let LargePicture { input, .. } = &case("out.tif");
    let run = horus().arg(input).args(["threshold", "9", "label", "4", "max"]).output().unwrap();
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(text(&run.stdout).starts_with(&format!("{}\t", input.display())), "{}", text(&run.stdout));
}

#[test]
fn a_file_that_ends_in_the_middle_of_its_pixels_is_told() {
    let LargePicture { input, output, .. } = &case("out.tif");
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

/// A grey map as a TIFF file of one deflated strip, as other programs write.
fn in_one_strip(map: &Path, to: &Path, (height, width): (u32, u32)) {
    let map = fs::read(map).unwrap();
    let pixels = &map[map.len() - (height * width) as usize..];
    // Blocks that are stored as they are, between a header and a sum of the bytes.
    let (mut a, mut b) = (1, 0);
    for byte in pixels {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    let mut strip = vec![0x78, 1];
    let blocks = pixels.chunks(0xffff);
    let last = blocks.len() - 1;
    for (i, block) in blocks.enumerate() {
        let length = block.len() as u16;
        strip.extend([&[u8::from(i == last)][..], &length.to_le_bytes(), &(!length).to_le_bytes(), block].concat());
    }
    strip.extend((b << 16 | a).to_be_bytes());
    let tags = [(256, width), (257, height), (258, 8), (259, 8), (262, 1), (273, 126), (277, 1), (278, height)];
    let tags = tags.into_iter().chain([(279, strip.len() as u32)]);
    let tags = tags.flat_map(|(tag, n): (u32, u32)| [tag | 4 << 16, 1, n].map(u32::to_le_bytes).concat());
    let head = [&b"II*\0\x08\0\0\0\x09\0"[..], &tags.collect::<Vec<u8>>(), &[0; 4]].concat();
    fs::write(to, [&head[..], &[0; 4], &strip].concat()).unwrap();
}

#[test]
fn programs_take_no_more_memory_than_they_are_allowed() {
    const HORUS: &str = env!("CARGO_BIN_EXE_horus");
    const CONVROT: &str = env!("CARGO_BIN_EXE_convrot");
    let promise = MemoryPromise::new(HORUS, &["invert"]);
    let at = |name: &str| promise.folder.path().join(name);
    // 24 MB of bytes.
    crate::files::picture(&at("a.pgm"), (4000, 6000), 3);
    let (_, made) = promise.run(HORUS, None, &["a.pgm", "tiled.tif", "invert", "--tile", "256"], None);
    assert!(made.status.success(), "{}", text(&made.stderr));
    for name in ["a.png", "a.jpg"] {
        let (_, made) = promise.run(HORUS, None, &["a.pgm", name, "invert"], None);
        assert!(made.status.success(), "{}", text(&made.stderr));
    }
    in_one_strip(&at("a.pgm"), &at("strip.tif"), (4000, 6000));
    for row in [
        (HORUS, "24M", &["a.pgm", "o.tif", "gauss", "3"][..], None, ExpectedEnd::Done),
        (HORUS, "20M", &["a.pgm", "o.png", "gauss", "3"], None, ExpectedEnd::Refused),
        (HORUS, "48M", &["a.pgm", "o.png", "gauss", "3"], None, ExpectedEnd::Done),
        (HORUS, "24M", &["tiled.tif", "o.tif", "gauss", "3", "--compression", "zstd"], None, ExpectedEnd::Done),
        (HORUS, "24M", &["-", "o.tif", "gauss", "3"], Some("a.pgm"), ExpectedEnd::Done),
        (HORUS, "20M", &["-", "-", "--format", "pgm", "gauss", "3"], Some("tiled.tif"), ExpectedEnd::Refused),
        (HORUS, "24M", &["a.png", "o.tif", "gauss", "3"], None, ExpectedEnd::Refused),
        (HORUS, "24M", &["a.jpg", "o.tif", "rotate", "30"], None, ExpectedEnd::Refused),
        (HORUS, "24M", &["strip.tif", "o.png", "gauss", "3"], None, ExpectedEnd::Refused),
        (HORUS, "24M", &["strip.tif", "o.tif", "cumsum", "columns"], None, ExpectedEnd::Done),
        (HORUS, "24M", &["a.pgm", "o.tif", "label", "8"], None, ExpectedEnd::Done),
        (HORUS, "24M", &["a.pgm", "o.npy", "distance"], None, ExpectedEnd::Done),
        (HORUS, "24M", &["a.pgm", "stats"], None, ExpectedEnd::Done),
        (HORUS, "1M", &["a.pgm", "o.npy", "cumsum", "rows"], None, ExpectedEnd::Refused),
        (
            CONVROT,
            "24M",
            &["tiled.tif", "o.tif", "--theta-step", "90", "--sigma-u", "3", "--sigma-v", "1"],
            None,
            ExpectedEnd::Done,
        ),
        (HORUS, "24M", &["a.pgm", "o.npy", "median", "5"], None, ExpectedEnd::Done),
        (HORUS, "24M", &["a.pgm", "o.tif", "resize", "512", "512", "lanczos"], None, ExpectedEnd::Done),
        (HORUS, "48M", &["tiled.tif", "o.tif", "rotate", "30"], None, ExpectedEnd::Done),
        (HORUS, "207M", &["a.pgm", "o.tif", "label", "8"], None, ExpectedEnd::Done),
        (HORUS, "200M", &["a.png", "o.png", "gauss", "3"], None, ExpectedEnd::Done),
    ] {
        promise.check(row);
    }
}
