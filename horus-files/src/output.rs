//! Random-access output to a file, from any thread.

use std::fs::File;
use std::io::SeekFrom;
use std::sync::{Mutex, PoisonError};

use super::cause;
use super::target::Sink;

/// Maximum number of threads that write to one file. File systems let one thread write while another prepares its
/// bytes; more threads spin in the kernel (`docs/performance/series.md`).
pub(super) const WRITERS: usize = 2;

/// A file written in parts.
pub(super) trait PositionedOutput: Sync {
    /// Writes bytes from offset `at` on.
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), String>;
}

impl PositionedOutput for File {
    #[cfg(unix)]
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, at).map_err(cause)
    }

    #[cfg(not(unix))]
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        use std::io::{Seek, Write};
        // A file has one position, which threads share.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = self;
        file.seek(SeekFrom::Start(at)).map_err(cause)?;
        file.write_all(bytes).map_err(cause)
    }
}

/// A sink shared by threads.
pub(super) struct SharedSink<'a>(Mutex<&'a mut dyn Sink>);

impl<'a> SharedSink<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink) -> SharedSink<'a> {
        SharedSink(Mutex::new(sink))
    }
}

impl PositionedOutput for SharedSink<'_> {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink.seek(SeekFrom::Start(at)).map_err(cause)?;
        sink.write_all(bytes).map_err(cause)
    }
}
