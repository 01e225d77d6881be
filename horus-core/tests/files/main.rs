//! Files in and out: properties that formats keep and refuse, special files, and malicious files.

mod alpha;
mod attributes;
mod exr;
mod formats;
mod fuzz;
mod georeference;
mod hostile;
mod jpeg;
mod jpeg2000;
mod noted;
mod on_demand;
mod pnm;
mod ranks;
mod raw;
mod regions;
mod slides;
#[cfg(unix)]
mod special;
mod stores;
#[cfg(unix)]
mod swept;
mod tiffs;
mod webp;
mod writer;

use std::path::PathBuf;
use std::sync::Mutex;

use horus_core::cpu::device::CpuDevice;
use horus_core::error::{Error, Result};
use horus_core::io::AnyImage;
use horus_core::session::Session;
use tempfile::TempDir;

fn session() -> Session {
    let device = CpuDevice::new(Some(1)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

/// A folder for one test.
struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> TestFolder {
        TestFolder(tempfile::tempdir().expect("a folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.at(name), bytes).expect("a writable folder");
        self.at(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// The error of a file that could not be read.
fn refused(opened: Result<AnyImage>) -> String {
    match opened {
        Err(Error::File { action: "read", cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

/// Collects the warnings of all tests of this program.
struct Warnings(Mutex<Vec<String>>);

static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// The warnings about a file that `work` logs.
fn warnings(path: &std::path::Path, work: impl FnOnce()) -> Vec<String> {
    let _ = log::set_logger(&WARNINGS);
    log::set_max_level(log::LevelFilter::Warn);
    work();
    let about = path.to_str().expect("a plain name");
    WARNINGS.0.lock().unwrap().iter().filter(|w| w.contains(about)).cloned().collect()
}
