//! The images that this rank has while a plan runs.

use std::cell::RefCell;

use super::missing;
use crate::device::{Geometry, Memory};
use crate::error::{DeviceError, Result};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::Plan;
use crate::plan::state::{Placement, Residency, State};

/// An image in this rank's memory.
#[derive(Debug)]
pub struct Stored {
    /// What the buffers hold.
    pub geometry: Geometry,
    /// Where the image is.
    pub state: State,
    /// Host copy. A device with unified memory has none: its memory is the host's.
    pub host: Option<HostBuffer>,
    /// Device copy.
    pub device: Option<Memory>,
}

impl Stored {
    /// The pixels on the host.
    pub fn host(&self) -> Option<&HostBuffer> {
        self.host.as_ref().or_else(|| self.device.as_ref().and_then(Memory::host))
    }
}

/// The images of this rank, by node, and the given ones that the plan let go of and that are kept aside all the same: as long
/// as nothing else needs their memory, and never more than `keep` bytes of them.
pub(super) struct Images {
    held: Vec<Option<Stored>>,
    aside: RefCell<Aside>,
    keep: usize,
}

/// Given images that the plan let go of, and that are there still.
#[derive(Default)]
struct Aside {
    images: Vec<(NodeId, Stored)>,
    bytes: usize,
}

impl Images {
    /// Images by node, of which `keep` bytes may be kept aside.
    pub(super) fn new(held: Vec<Option<Stored>>, keep: usize) -> Images {
        Images { held, aside: RefCell::default(), keep }
    }

    /// An image that a step needs.
    pub(super) fn get(&self, n: NodeId) -> Result<&Stored> {
        self.find(n).ok_or_else(|| missing(n))
    }

    /// An image that a step changes.
    pub(super) fn get_mut(&mut self, n: NodeId) -> Result<&mut Stored> {
        self.find_mut(n).ok_or_else(|| missing(n))
    }

    /// An image, if this rank has it.
    pub(super) fn find(&self, n: NodeId) -> Option<&Stored> {
        self.held[n.0].as_ref()
    }

    /// An image, if this rank has it.
    pub(super) fn find_mut(&mut self, n: NodeId) -> Option<&mut Stored> {
        self.held[n.0].as_mut()
    }

    /// Keeps an image, in place of what there was of it.
    pub(super) fn put(&mut self, n: NodeId, image: Stored) {
        self.held[n.0] = Some(image);
    }

    /// Takes an image out.
    pub(super) fn take(&mut self, n: NodeId) -> Option<Stored> {
        self.held[n.0].take()
    }

    /// Lets go of an image, or keeps it aside if it was `given`.
    pub(super) fn free(&mut self, n: NodeId, given: bool) {
        let Some(mut image) = self.take(n) else { return };
        let aside = self.aside.get_mut();
        let bytes = aside.bytes + image.geometry.bytes();
        if given && bytes <= self.keep {
            if image.host.is_some() {
                image.device = None; // which is scarcer
            }
            aside.images.push((n, image));
            aside.bytes = bytes;
        }
    }

    /// Does what takes memory; once more without the images that are kept aside if there is not enough.
    pub(super) fn with_memory<T>(&self, mut work: impl FnMut() -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        match work() {
            Err(DeviceError::OutOfMemory { .. }) if !self.aside.borrow().images.is_empty() => {
                self.aside.take();
                work()
            }
            result => result,
        }
    }

    /// What a plan that is over leaves, in the states in which it leaves them.
    pub(super) fn left(mut self, plan: &Plan) -> Vec<Option<Stored>> {
        for (image, state) in self.held.iter_mut().zip(&plan.states) {
            if let (Some(image), Some(state)) = (image, state) {
                image.state = *state;
            }
        }
        self.held
    }

    /// What a lane has of each image after a plan failed on it or on another lane: given ones, those that were let go of
    /// included, and roots that were computed. Their states are those of this lane alone. Rows of its strip are what they were:
    /// no step changes them.
    pub(super) fn remains(mut self, plan: &Plan) -> Vec<Option<Stored>> {
        for (n, image) in self.aside.take().images {
            self.put(n, image);
        }
        for (i, image) in self.held.iter_mut().enumerate() {
            let (before, node) = (plan.initial[i], &plan.graph.nodes[i]);
            let Some(stored) = image else { continue };
            if stored.host.is_some() && before.is_some_and(|b| !b.residency.device()) {
                stored.device = None; // an upload may fail after it was begun
            }
            // What is added up over ranks may not have been.
            let computed = plan.graph.roots.contains(&NodeId(i)) && node.op.all_reduce().is_none();
            if (before.is_none() && !computed) || (stored.host.is_none() && stored.device.is_none()) {
                *image = None;
            }
        }
        self.held
    }

    /// What can be kept of a plan that failed on one rank. No step changes the pixels of an image there, and a copy that was
    /// not completed has been dropped: so an image is wherever a buffer is. What a driver reports late of launches before, it
    /// reports to whoever reads their results, too.
    pub(super) fn intact(mut self, plan: &Plan, unified: bool) -> Vec<Option<Stored>> {
        for (n, image) in self.aside.take().images {
            self.put(n, image);
        }
        for (i, image) in self.held.iter_mut().enumerate() {
            let before = plan.initial[i];
            let Some(stored) = image else { continue };
            if stored.host.is_some() && before.is_some_and(|b| !b.residency.device()) {
                stored.device = None; // an upload may fail after it was begun
            }
            let residency = match (&stored.host, &stored.device) {
                (Some(_), Some(_)) => Some(Residency::Both),
                (None, Some(_)) if unified => Some(Residency::Both),
                (Some(_), None) => Some(Residency::Host),
                (None, Some(_)) => Some(Residency::Device),
                (None, None) => None,
            };
            match residency {
                Some(residency) if before.is_some() || plan.graph.roots.contains(&NodeId(i)) => {
                    stored.state = State { residency, placement: Placement::Replicated };
                }
                _ => *image = None,
            }
        }
        self.held
    }
}
