//! How much of a file was read or written.

use std::sync::atomic::{AtomicU64, Ordering};

/// How much of a file was read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileTraffic {
    /// Strips or tiles decoded or encoded; in files without, rows.
    pub chunks: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Counts what several threads do.
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

    pub(super) fn so_far(&self) -> FileTraffic {
        FileTraffic { chunks: self.chunks.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}
