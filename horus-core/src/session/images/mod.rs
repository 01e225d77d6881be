//! Images of a session: in memory, on demand, or lost.

pub(crate) mod image;
pub(crate) mod on_demand;
pub(crate) mod swept;

use std::collections::{HashMap, HashSet};

use crate::device::{Geometry, Memory};
use crate::digest::Digest;
use crate::dtype::DType;
use crate::execute::RankImage;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Graph, Node, Op, ValueId};
use crate::plan::state::{Halo, ImageState, Placement, Residency};
use crate::session::images::image::StoredImage;
use crate::session::images::on_demand::OnDemandImage;
use crate::shape::{Shape, Window};

/// Images that are dropped without the lock.
pub(crate) type DroppedImages = (Vec<StoredImage>, Vec<OnDemandImage>);

/// The images of a session.
#[derive(Default)]
pub(crate) struct SessionImages {
    /// Images in memory.
    pub(crate) in_memory: HashMap<ValueId, StoredImage>,
    /// Images that can be read again, in memory or not.
    pub(crate) on_demand: HashMap<ValueId, OnDemandImage>,
    /// Initial placement of given images.
    pub(crate) given: HashMap<ValueId, Placement>,
    /// Images that operations still read and that a failed evaluation lost, with its error.
    pub(crate) gone: HashMap<ValueId, String>,
    /// Images that launches used in the host's memory.
    pub(crate) mapped: HashSet<ValueId>,
    /// `true` if one of them was read again, which a copy on the device would have made faster.
    pub(crate) read_again: bool,
    /// Images in memory that the present evaluation reads region by region, like files.
    pub(crate) replaced: Vec<(ValueId, StoredImage)>,
    /// Images that are no longer needed; their memory is freed without the lock.
    pub(crate) freed: Vec<StoredImage>,
    /// Sources that are no longer read. They are dropped without the lock, because they may run code of the program.
    pub(crate) closed: Vec<OnDemandImage>,
    /// Number of ranks.
    pub(crate) ranks: usize,
    /// `true` if the device is known and computes on the host's memory.
    pub(crate) unified: bool,
    /// Digests of the pixels that the program gave on every rank, if ranks compare them.
    pub(crate) digests: Option<HashMap<ValueId, u64>>,
}

impl SessionImages {
    /// Records the digest of an image that the program gives on every rank, so that ranks can compare it.
    pub(crate) fn note_given(&mut self, value: ValueId, pixels: &HostBuffer) {
        if let Some(digests) = &mut self.digests {
            digests.insert(value, Digest::of(pixels.bytes()));
        }
    }

    /// Adds an image with these pixels on the host; other ranks may have them.
    pub(crate) fn give(
        &mut self,
        value: ValueId,
        shape: Shape,
        dtype: DType,
        pixels: Option<HostBuffer>,
        placement: Placement,
    ) {
        let window = if pixels.is_some() { Window::whole(shape.height) } else { Window::new(0, 0) };
        self.give_rows(value, Geometry { shape, dtype: dtype.stored(), window }, pixels, placement);
    }

    /// Adds an image of which this rank has the rows of a window.
    pub(crate) fn give_rows(
        &mut self,
        value: ValueId,
        geometry: Geometry,
        pixels: Option<HostBuffer>,
        placement: Placement,
    ) {
        let pixels = pixels.unwrap_or_else(|| HostBuffer::zeroed(0));
        let state = self.state_of(placement);
        let (host, device) = if self.unified { (None, Some(Memory::Host(pixels))) } else { (Some(pixels), None) };
        self.in_memory.insert(value, StoredImage::of_ranks(RankImage { geometry, state, host, device }, self.ranks));
    }

    /// Adds an image whose pixels are on the single rank's device, or in strips on several devices, each with its rows.
    pub(crate) fn give_device(&mut self, value: ValueId, shape: Shape, dtype: DType, pixels: Vec<(Memory, Window)>) {
        let placement = if pixels.len() > 1 { Placement::Strips(Halo::NONE) } else { Placement::Replicated };
        let state = ImageState { residency: Residency::Device, placement };
        let stored = |(pixels, window)| {
            let geometry = Geometry { shape, dtype: dtype.stored(), window };
            RankImage { geometry, state, host: None, device: Some(pixels) }
        };
        let kept = StoredImage::of(pixels.into_iter().map(stored).collect());
        self.in_memory.extend(kept.map(|kept| (value, kept)));
    }

    /// State of a newly given image.
    pub(crate) fn state_of(&self, placement: Placement) -> ImageState {
        ImageState { residency: if self.unified { Residency::Both } else { Residency::Host }, placement }
    }

    /// Takes everything that is to be dropped without the lock.
    pub(crate) fn dropped(&mut self) -> DroppedImages {
        (std::mem::take(&mut self.freed), std::mem::take(&mut self.closed))
    }

    /// Drops values that are no longer referenced.
    pub(crate) fn forget(&mut self, values: Vec<ValueId>) {
        for v in values {
            self.freed.extend(self.in_memory.remove(&v));
            self.closed.extend(self.on_demand.remove(&v));
            self.digests.as_mut().map(|digests| digests.remove(&v));
        }
    }

    /// Forgets the placements of images that no longer exist.
    pub(crate) fn tidy(&mut self) {
        let SessionImages { in_memory: here, on_demand: later, given, digests, .. } = self;
        given.retain(|v, _| here.contains_key(v) || later.contains_key(v));
        digests.iter_mut().for_each(|digests| digests.retain(|v, _| here.contains_key(v)));
    }

    /// Returns `true` if the image is in memory or can be read again.
    pub(crate) fn has(&self, value: &ValueId) -> bool {
        self.in_memory.contains_key(value) || self.on_demand.contains_key(value)
    }

    /// Makes a source of regions of an image in memory, until [`SessionImages::restore_sources`] puts `image` back.
    pub(crate) fn replace_source(&mut self, value: ValueId, image: StoredImage, later: OnDemandImage) {
        self.in_memory.remove(&value);
        self.on_demand.insert(value, later);
        self.replaced.push((value, image));
    }

    /// Images in memory, of at least `least` bytes, that a program reads.
    pub(crate) fn replaceable_sources<'a>(
        &'a self,
        graph: &'a Graph<Op>,
        least: usize,
    ) -> impl Iterator<Item = ValueId> + 'a {
        let given = |v: &ValueId| self.in_memory.contains_key(v) && !self.on_demand.contains_key(v);
        // An image in host memory that all levels of a result read would be copied for each level.
        let levels =
            graph.roots.iter().map(|root| graph.node(*root).shape.depth).max().filter(|_| self.unified).unwrap_or(1);
        let large =
            move |n: &&Node<Op>| n.shape.depth >= levels && n.shape.len().saturating_mul(n.dtype.size()) >= least;
        let of = |op: &Op| if let Op::Source(v) = op { Some(*v) } else { None };
        graph.nodes.iter().filter(large).filter_map(move |n| of(&n.op)).filter(given)
    }

    /// Puts replaced images back in memory, except for those dropped since.
    pub(crate) fn restore_sources(&mut self) {
        for (value, image) in std::mem::take(&mut self.replaced) {
            match self.on_demand.remove(&value) {
                Some(_) => drop(self.in_memory.insert(value, image)),
                None => self.freed.push(image),
            }
        }
    }

    /// Releases images that can be read again, except for those to `keep`.
    pub(crate) fn release(&mut self, keep: impl Fn(&ValueId) -> bool) {
        let SessionImages { in_memory: here, on_demand: later, .. } = self;
        here.retain(|v, _| !later.contains_key(v) || keep(v));
    }
}
