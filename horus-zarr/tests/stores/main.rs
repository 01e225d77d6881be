//! Stores as files: round trips, stores written by Python's zarr, broken ones.

mod broken;
mod checkpoints;
mod goldens;
mod memory;
mod regions;
#[cfg(feature = "remote")]
mod remote;
mod round_trips;

use std::path::{Path, PathBuf};

use horus_core::cpu::device::CpuDevice;
use horus_core::session::{Session, SessionBuilder};

/// A session of `threads` threads of the CPU.
fn builder(threads: usize) -> SessionBuilder {
    Session::on(Box::new(CpuDevice::new(Some(threads)).expect("a CPU")))
}

fn session() -> Session {
    builder(2).build().expect("a session")
}

/// A temporary folder.
struct StoreFolder(tempfile::TempDir);

impl StoreFolder {
    fn new() -> StoreFolder {
        StoreFolder(tempfile::tempdir().expect("a folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names of its entries.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// All files at and below a folder, sorted, with their content.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    fn below(folder: &Path, to: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.unwrap().path();
            if path.is_dir() { below(&path, to) } else { to.push(path) }
        }
    }
    let mut all = Vec::new();
    below(folder, &mut all);
    all.sort();
    let read = |path: PathBuf| (path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
    all.into_iter().map(read).collect()
}
