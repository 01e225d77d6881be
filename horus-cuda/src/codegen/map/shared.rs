//! Layout and contents of a block's shared memory while its kernel runs, as the generator tracks them.
//!
//! ```text
//! 0                 kept                              kept + slots                      end
//! | taps of columns | the tile of an input, or                                          |
//! |                 | stages in their slots           | two chunks of a filter's input  |
//! ```
//!
//! A tile and the stages share the same bytes: one overwrites the other, after all threads of the block have read it.
//! Invariants: `docs/design/kernel.md`, section 4.

use horus_core::ir::kernel::FilterSource;
use horus_core::shape::Border;

use super::super::cpp::Stmt;
use super::super::schedule::{InputTile, REGION, StageSlot};

/// The contents of shared memory at this point of the body.
#[derive(Debug)]
pub(super) struct SharedMemory {
    /// Bytes reserved at the beginning for taps of column filters.
    kept: usize,
    /// Bytes that the block needs.
    bytes: usize,
    /// The loaded tile.
    tile: Option<(FilterSource, Border, InputTile)>,
    /// For each slot, `true` if it has its stage.
    valid: Vec<bool>,
    /// `true` if threads may still be reading.
    busy: bool,
}

impl SharedMemory {
    /// Empty shared memory with so many slots.
    pub(super) fn new(slots: usize) -> SharedMemory {
        SharedMemory { kept: 0, bytes: 0, tile: None, valid: vec![false; slots], busy: false }
    }

    /// Bytes that the block needs.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Offset of tiles and stages.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Reserves so many bytes at the beginning.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.kept = bytes.next_multiple_of(REGION);
        self.reserve(self.kept);
    }

    /// Ensures at least so many bytes in all.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.bytes = self.bytes.max(bytes);
    }

    /// Emits a wait for readers, if there may be any.
    pub(super) fn wait_for_readers(&mut self, out: &mut Vec<Stmt>) {
        if self.busy {
            out.push(Stmt::Synchronize);
        }
        self.busy = true;
    }

    /// Notes that a read follows after its own wait.
    pub(super) fn is_read(&mut self) {
        self.busy = true;
    }

    /// Returns `true` if this tile must be loaded; from then on the memory has the tile only.
    pub(super) fn takes_tile(
        &mut self,
        source: FilterSource,
        border: Border,
        tile: InputTile,
        out: &mut Vec<Stmt>,
    ) -> bool {
        if self.tile == Some((source, border, tile)) {
            return false;
        }
        self.wait_for_readers(out);
        self.valid.fill(false);
        self.tile = Some((source, border, tile));
        self.reserve(self.kept + tile.bytes());
        true
    }

    /// Discards tile and stages.
    pub(super) fn forget(&mut self, out: &mut Vec<Stmt>) {
        self.tile = None;
        self.valid.fill(false);
        self.wait_for_readers(out);
    }

    /// Returns `true` if a slot has its stage.
    pub(super) fn holds(&self, slot: usize) -> bool {
        self.valid[slot]
    }

    /// Notes that a slot will be filled: overlapping slots lose their stages. The caller waits for
    /// readers.
    pub(super) fn fills(&mut self, slot: usize, slots: &[StageSlot]) {
        self.busy = true;
        self.tile = None;
        for (valid, other) in self.valid.iter_mut().zip(slots) {
            *valid &= other.at != slots[slot].at;
        }
        self.valid[slot] = true;
    }
}
