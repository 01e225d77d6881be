//! Interfaces of a machine: memory ([`buffer`], [`external`]) and threads ([`workers`]) of the host,
//! a [`device`] that computes, and ranks that communicate ([`comm`]).
//!
//! Internal: other crates of Horus use this one, and its interface is not covered by semantic versioning. Programs
//! depend on `horus-image`.

#[allow(unsafe_code, reason = "memory that threads fill together, or that others keep")]
pub mod buffer;
pub mod comm;
pub mod device;
#[allow(unsafe_code, reason = "memory as elements of another type")]
pub mod elements;
#[allow(unsafe_code, reason = "memory that others own")]
pub mod external;
#[allow(unsafe_code, reason = "calls of the C library")]
pub mod fork;
#[allow(unsafe_code, reason = "calls of the C library")]
pub(crate) mod pages;
#[allow(unsafe_code, reason = "memory that threads fill together")]
pub mod sequential_output;
#[allow(unsafe_code, reason = "memory that threads fill together")]
pub mod stores;
#[allow(unsafe_code, reason = "calls of the C library")]
pub mod streams;
#[allow(unsafe_code, reason = "tasks that borrow from the thread that waits for them")]
pub mod workers;

/// Bytes to copy: `rows` runs of `bytes` each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StridedCopy {
    /// Start of the first run in the source.
    pub from: usize,
    /// Start of the first run in the target.
    pub to: usize,
    /// Length of a run.
    pub bytes: usize,
    /// Number of runs.
    pub rows: usize,
    /// Distance between the starts of runs in the source.
    pub from_stride: usize,
    /// Distance between the starts of runs in the target.
    pub to_stride: usize,
}

impl StridedCopy {
    /// One run.
    pub const fn run(from: usize, to: usize, bytes: usize) -> StridedCopy {
        StridedCopy { from, to, bytes, rows: 1, from_stride: bytes, to_stride: bytes }
    }

    /// The reverse copy.
    #[must_use]
    pub const fn back(self) -> StridedCopy {
        let StridedCopy { from, to, bytes, rows, from_stride, to_stride } = self;
        StridedCopy { from: to, to: from, bytes, rows, from_stride: to_stride, to_stride: from_stride }
    }

    /// The runs: start in the source, start in the target, length.
    pub fn runs(self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..if self.bytes == 0 { 0 } else { self.rows })
            .map(move |r| (self.from + r * self.from_stride, self.to + r * self.to_stride, self.bytes))
    }

    /// Returns `true` if the copy stays inside a source and a target of these lengths and writes no byte twice.
    pub fn fits(self, source: usize, target: usize) -> bool {
        let end = |at: usize, stride: usize| {
            stride.checked_mul(self.rows.saturating_sub(1))?.checked_add(at)?.checked_add(self.bytes)
        };
        let inside = |at, stride, length| end(at, stride).is_some_and(|e| e <= length);
        let once = self.rows == 1 || self.to_stride >= self.bytes;
        self.bytes == 0
            || self.rows == 0
            || (once && inside(self.from, self.from_stride, source) && inside(self.to, self.to_stride, target))
    }
}
