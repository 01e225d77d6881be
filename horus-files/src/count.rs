//! Amounts read from or written to files.

use std::iter::Sum;
use std::sync::atomic::{AtomicU64, Ordering};

/// Amount read from or written to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTraffic {
    /// Strips or tiles decoded or encoded; rows in files without strips and tiles.
    pub chunks: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl Sum for FileTraffic {
    fn sum<I: Iterator<Item = FileTraffic>>(all: I) -> FileTraffic {
        all.fold(FileTraffic::default(), |a, b| FileTraffic { chunks: a.chunks + b.chunks, bytes: a.bytes + b.bytes })
    }
}

/// A counter shared by threads.
#[derive(Debug, Default)]
pub(super) struct Count {
    chunks: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    pub(super) fn chunk(&self) {
        self.chunks(1);
    }

    pub(super) fn chunks(&self, chunks: usize) {
        self.chunks.fetch_add(chunks as u64, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn traffic(&self) -> FileTraffic {
        FileTraffic { chunks: self.chunks.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}
