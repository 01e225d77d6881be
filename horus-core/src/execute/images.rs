//! The images of this rank while a plan runs.

use std::cell::RefCell;

use super::missing;
use crate::device::{Geometry, Memory};
use crate::error::{DeviceError, Result};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::Plan;
use crate::plan::state::{ImageState, Placement, Residency};

/// A part of an image in this rank's memory.
#[derive(Debug)]
pub struct RankImage {
    /// Geometry of the buffers.
    pub geometry: Geometry,
    /// State of the image.
    pub state: ImageState,
    /// Host copy. A device that computes on host memory has none: its memory is the host's.
    pub host: Option<HostBuffer>,
    /// Device copy.
    pub device: Option<Memory>,
}

impl RankImage {
    /// Pixels on the host.
    pub fn host(&self) -> Option<&HostBuffer> {
        self.host.as_ref().or_else(|| self.device.as_ref().and_then(Memory::host))
    }
}

/// Images of this rank, by node, and released source images. These are retained while their memory is not needed, up to
/// `keep` bytes.
pub(super) struct PlanImages {
    held: Vec<Option<RankImage>>,
    aside: RefCell<ReleasedSources>,
    keep: usize,
}

/// Source images that the plan released but that still exist.
#[derive(Default)]
struct ReleasedSources {
    images: Vec<(NodeId, RankImage)>,
    bytes: usize,
}

impl PlanImages {
    /// Images by node; up to `keep` bytes of released source images are retained.
    pub(super) fn new(held: Vec<Option<RankImage>>, keep: usize) -> PlanImages {
        PlanImages { held, aside: RefCell::default(), keep }
    }

    /// Image that a step needs.
    pub(super) fn get(&self, n: NodeId) -> Result<&RankImage> {
        self.find(n).ok_or_else(|| missing(n))
    }

    /// Image that a step changes.
    pub(super) fn get_mut(&mut self, n: NodeId) -> Result<&mut RankImage> {
        self.find_mut(n).ok_or_else(|| missing(n))
    }

    /// Image, if this rank has it.
    pub(super) fn find(&self, n: NodeId) -> Option<&RankImage> {
        self.held[n.0].as_ref()
    }

    /// Image, if this rank has it.
    pub(super) fn find_mut(&mut self, n: NodeId) -> Option<&mut RankImage> {
        self.held[n.0].as_mut()
    }

    /// Stores an image and replaces its previous version.
    pub(super) fn put(&mut self, n: NodeId, image: RankImage) {
        self.held[n.0] = Some(image);
    }

    /// Removes and returns an image.
    pub(super) fn take(&mut self, n: NodeId) -> Option<RankImage> {
        self.held[n.0].take()
    }

    /// Releases an image, or retains it if it was `given`.
    pub(super) fn free(&mut self, n: NodeId, given: bool) {
        let Some(mut image) = self.take(n) else { return };
        let aside = self.aside.get_mut();
        let bytes = aside.bytes + image.geometry.bytes();
        if given && bytes <= self.keep {
            if image.host.is_some() {
                image.device = None; // device memory is scarcer
            }
            aside.images.push((n, image));
            aside.bytes = bytes;
        }
    }

    /// Runs an allocation. If memory is short, drops the retained images and runs it again.
    pub(super) fn with_memory<T>(&self, mut work: impl FnMut() -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        match work() {
            Err(DeviceError::OutOfMemory { .. }) if !self.aside.borrow().images.is_empty() => {
                self.aside.take();
                work()
            }
            result => result,
        }
    }

    /// Images after a completed plan, in their final states.
    pub(super) fn left(mut self, plan: &Plan) -> Vec<Option<RankImage>> {
        for (image, state) in self.held.iter_mut().zip(&plan.states) {
            if let (Some(image), Some(state)) = (image, state) {
                image.state = *state;
            }
        }
        self.held
    }

    /// Images of one device after a plan failed on it or on another device: sources, including released ones, and
    /// computed roots. Their states are those of this device only. Rows of its strip are unchanged, because no step
    /// modifies them.
    pub(super) fn remains(mut self, plan: &Plan) -> Vec<Option<RankImage>> {
        for (n, image) in self.aside.take().images {
            self.put(n, image);
        }
        for (i, image) in self.held.iter_mut().enumerate() {
            let (before, node) = (plan.initial[i], &plan.graph.nodes[i]);
            let Some(stored) = image else { continue };
            if stored.host.is_some() && before.is_some_and(|b| !b.residency.device()) {
                stored.device = None; // an upload may fail after it has begun
            }
            // A sum over ranks may be incomplete.
            let computed = plan.graph.roots.contains(&NodeId(i)) && node.op.all_reduce().is_none();
            if (before.is_none() && !computed) || (stored.host.is_none() && stored.device.is_none()) {
                *image = None;
            }
        }
        self.held
    }

    /// Images that survive a failure of a plan on one rank. There no step changes the pixels of an image, and
    /// incomplete copies have been dropped, so every buffer is valid. If the driver reports a failed launch late,
    /// readers of its result get the error, too.
    pub(super) fn intact(mut self, plan: &Plan, unified: bool) -> Vec<Option<RankImage>> {
        for (n, image) in self.aside.take().images {
            self.put(n, image);
        }
        for (i, image) in self.held.iter_mut().enumerate() {
            let before = plan.initial[i];
            let Some(stored) = image else { continue };
            if stored.host.is_some() && before.is_some_and(|b| !b.residency.device()) {
                stored.device = None; // an upload may fail after it has begun
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
                    stored.state = ImageState { residency, placement: Placement::Replicated };
                }
                _ => *image = None,
            }
        }
        self.held
    }
}
