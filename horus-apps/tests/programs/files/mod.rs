//! Files and texts of a run of a program.
#![allow(dead_code, reason = "every test program uses its own part")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A picture of the repository.
pub(crate) const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png");

/// Output of a program as text.
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

/// Writes a grey picture, different for each `seed`.
pub(crate) fn picture(path: &Path, (h, w): (usize, usize), seed: usize) {
    let mut file = format!("P5\n{w} {h}\n255\n").into_bytes();
    file.extend((0..h * w).map(|p| ((p / w * 31 + p % w * 17 + seed * 71) * (p % w + 3 * (p / w) + 1) % 251) as u8));
    fs::write(path, file).unwrap();
}

/// Waits until the process catches SIGINT.
pub(crate) fn listens(child: &Child) {
    const SIGINT: u64 = 1 << 1;
    let start = Instant::now();
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap().trim();
        if u64::from_str_radix(caught, 16).unwrap() & SIGINT != 0 {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "it listens");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}
