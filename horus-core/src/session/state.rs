//! What a session has behind its lock: the program, the images, and what came of evaluations.

use std::collections::{HashMap, HashSet};

use super::kept::Kept;
use super::later::Later;
use super::plans::Plans;
use super::progress::Stats;
use crate::device::{Geometry, Memory};
use crate::dtype::DType;
use crate::error::Error;
use crate::execute::Stored;
use crate::execute::trace::Trace;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::ValueId;
use crate::plan::state::{Halo, Placement, Residency, State};
use crate::record::{Numbering, Recording};
use crate::shape::{Shape, Window};

/// What a session has, behind its lock.
pub(super) struct Mutable {
    /// Whether the device is known and computes on the host's memory.
    pub(super) unified: bool,
    pub(super) program: Recording,
    /// Counts values: behind the lock, so that all ranks name them alike.
    pub(super) names: Numbering,
    pub(super) images: HashMap<ValueId, Kept>,
    /// Images that can be read again: they may be in memory or not.
    pub(super) later: HashMap<ValueId, Later>,
    /// Where the result goes that is read now, if that is memory which the device may write to.
    pub(super) room: Option<HostBuffer>,
    /// Images that launches used in the host's memory.
    pub(super) mapped: HashSet<ValueId>,
    /// Whether one of them was read again, which a copy on the device would have made faster.
    pub(super) read_again: bool,
    /// Images that are no longer needed: their memory is freed without the lock.
    pub(super) freed: Vec<Kept>,
    /// Where images that were given to the session were then.
    pub(super) given: HashMap<ValueId, Placement>,
    pub(super) stats: Stats,
    /// Plans of programs that may run again.
    pub(super) plans: Plans,
    pub(super) trace: Trace,
    /// Those of lanes behind the first.
    pub(super) lane_traces: Vec<Trace>,
    /// Images that operations still read and that went with an evaluation that failed, and what that met.
    pub(super) gone: HashMap<ValueId, String>,
    /// An error that has not been reported yet.
    pub(super) error: Option<Error>,
    /// Operations and pinned bytes below which the program is not evaluated automatically, after that failed.
    pub(super) patience: (usize, usize),
    /// Why the session is unusable.
    pub(super) lost: Option<String>,
}

impl Mutable {
    /// Takes the pixels of an image, which other ranks may have, where the device finds them.
    pub(super) fn give(
        &mut self,
        value: ValueId,
        shape: Shape,
        dtype: DType,
        pixels: Option<HostBuffer>,
        placement: Placement,
    ) {
        let window = if pixels.is_some() { Window::whole(shape.height) } else { Window::new(0, 0) };
        let pixels = pixels.unwrap_or_else(|| HostBuffer::zeroed(0));
        let geometry = Geometry { shape, dtype: dtype.stored(), window };
        let state = self.given(placement);
        let (host, device) = if self.unified { (None, Some(Memory::Host(pixels))) } else { (Some(pixels), None) };
        self.images.insert(value, Stored { geometry, state, host, device }.into());
    }

    /// Takes the pixels of an image that are on the device of the only rank, or the strips of lanes, with the rows that each has.
    pub(super) fn give_device(&mut self, value: ValueId, shape: Shape, dtype: DType, pixels: Vec<(Memory, Window)>) {
        let placement = if pixels.len() > 1 { Placement::Strips(Halo::NONE) } else { Placement::Replicated };
        let state = State { residency: Residency::Device, placement };
        let stored = |(pixels, window)| {
            let geometry = Geometry { shape, dtype: dtype.stored(), window };
            Stored { geometry, state, host: None, device: Some(pixels) }
        };
        let kept = Kept::of(pixels.into_iter().map(stored).collect());
        self.images.extend(kept.map(|kept| (value, kept)));
    }

    /// Where an image is that was just given.
    pub(super) fn given(&self, placement: Placement) -> State {
        State { residency: if self.unified { Residency::Both } else { Residency::Host }, placement }
    }

    /// Lets go of values that nothing refers to any more.
    pub(super) fn forget(&mut self, values: Vec<ValueId>) {
        for v in values {
            self.freed.extend(self.images.remove(&v));
            self.later.remove(&v);
        }
    }
}
