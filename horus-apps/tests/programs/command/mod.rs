//! The command `horus`, compared with the same operations recorded here.

mod alpha;
mod attributes;
mod chains;
mod compare;
mod examples;
mod help;
mod outputs;
mod parts;
mod profile;
mod report;
mod serve;
mod stores;

use std::path::Path;
use std::process::{Command, Output};

use horus::prelude::*;

use crate::files::text;

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horus"));
    command.args(words);
    for name in ["HORUS_MODE", "HORUS_WEIGHTS", "HORUS_DEVICE", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}

/// Runs the command in the folder.
fn run(dir: &Path, words: &[&str]) -> Output {
    command(words).current_dir(dir).output().unwrap()
}

/// Runs the command without a summary.
fn quiet(dir: &Path, words: &[&str]) -> Output {
    run(dir, &[words, &["--quiet"]].concat())
}

#[track_caller]
fn succeeds(dir: &Path, words: &[&str]) -> String {
    let out = quiet(dir, words);
    assert!(out.status.success(), "{words:?}: {}", text(&out.stderr));
    assert!(out.stderr.is_empty(), "{words:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Asserts that the command fails with this status and one error line that contains all causes.
#[track_caller]
fn fails(dir: &Path, words: &[&str], status: i32, causes: &[&str]) {
    let out = run(dir, words);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{words:?}: {message}");
    let errors: Vec<&str> = message.lines().filter(|l| l.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{words:?}: {message}");
    assert!(!message.contains(".rs:"), "{words:?} names a line of ours: {message}");
    for cause in causes {
        assert!(errors[0].contains(cause), "{words:?}: {message} does not say {cause}");
    }
}

fn session() -> Session {
    Session::builder().device("cpu").threads(1).build().unwrap()
}

/// A folder with a picture in colour, one in grey, and other operands.
fn pictures() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let session = session();
    let at = |name: &str| dir.path().join(name);
    let plane = |a: usize| Image::from_fn(&session, 33, 41, move |y, x| ((y * y + a * x + x * y / 3) % 251) as u8);
    Image::stack(&session, [plane(3), plane(7), plane(11)], Axis::Channels).save(at("colour.png")).unwrap();
    plane(5).save(at("grey.png")).unwrap();
    Image::from_fn(&session, 33, 41, |y, x| ((y + 2 * x) % 20) as u8).save(at("dark.png")).unwrap();
    Image::from_fn(&session, 33, 41, |y, x| (y * 41 + x) as u16 * 40).save(at("wide.tif")).unwrap();
    Image::from_fn(&session, 33, 41, |y, x| (y as f32 - x as f32) / 20.0).save(at("float.npy")).unwrap();
    dir
}

fn bits<T: Pixel>(image: &Image<T>) -> Vec<u64> {
    image.to_vec().unwrap().into_iter().map(|v| v.to_f64().to_bits()).collect()
}

fn bytes(any: AnyImage) -> Image<u8> {
    match any {
        AnyImage::U8(image) => image,
        other => panic!("{other:?}"),
    }
}
