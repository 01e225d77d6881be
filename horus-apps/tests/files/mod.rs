//! Files and texts of a run of a program.
#![allow(dead_code, reason = "every test program uses its own part")]

use std::fs;
use std::path::Path;

/// A picture of the repository.
pub(crate) const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png");

/// What a program said.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The names in a folder, sorted.
pub(crate) fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Writes a grey picture, none like another of another `seed`.
pub(crate) fn picture(path: &Path, (h, w): (usize, usize), seed: usize) {
    let mut file = format!("P5\n{w} {h}\n255\n").into_bytes();
    file.extend((0..h * w).map(|p| ((p / w * 31 + p % w * 17 + seed * 71) * (p % w + 3 * (p / w) + 1) % 251) as u8));
    fs::write(path, file).unwrap();
}
