//! The state of a session behind its lock: the program, the images, and the outcomes of
//! evaluations.

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

/// The state of a session, behind its lock.
pub(super) struct Mutable {
    /// The device is known and computes on the host's memory.
    pub(super) unified: bool,
    pub(super) program: Recording,
    /// Numbers values: behind the lock, so that all ranks name them alike.
    pub(super) names: Numbering,
    pub(super) images: HashMap<ValueId, Kept>,
    /// Images that can be read again, in memory or not.
    pub(super) later: HashMap<ValueId, Later>,
    /// The target of the current read, if the device can write to that memory.
    pub(super) room: Option<HostBuffer>,
    /// Images that launches used in the host's memory.
    pub(super) mapped: HashSet<ValueId>,
    /// One of them was read again, which a copy on the device would have made faster.
    pub(super) read_again: bool,
    /// Images that are no longer needed: their memory is freed without the lock.
    pub(super) freed: Vec<Kept>,
    /// Initial placement of given images.
    pub(super) given: HashMap<ValueId, Placement>,
    pub(super) stats: Stats,
    /// Plans of programs that may run again.
    pub(super) plans: Plans,
    pub(super) trace: Trace,
    /// Traces of the lanes after the first.
    pub(super) lane_traces: Vec<Trace>,
    /// Images that operations still read and that were lost in a failed evaluation, with its error.
    pub(super) gone: HashMap<ValueId, String>,
    /// An error that has not been reported yet.
    pub(super) error: Option<Error>,
    /// Operations and pinned bytes below which the program is not evaluated automatically, after a
    /// failure.
    pub(super) patience: (usize, usize),
    /// The reason why the session is unusable.
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

    /// Takes the pixels of an image on the single rank's device, or the strips of lanes, with each
    /// one's rows.
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

    /// State of a newly given image.
    pub(super) fn given(&self, placement: Placement) -> State {
        State { residency: if self.unified { Residency::Both } else { Residency::Host }, placement }
    }

    /// Drops values that are no longer referenced.
    pub(super) fn forget(&mut self, values: Vec<ValueId>) {
        for v in values {
            self.freed.extend(self.images.remove(&v));
            self.later.remove(&v);
        }
    }
}
