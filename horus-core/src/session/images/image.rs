//! Stored images: the part of one device, or of each device of this process, and their conversion between numbers of
//! devices through the shared host.

use std::ops::{Deref, DerefMut};

use crate::device::{Device, Geometry, Memory};
use crate::dtype::DType;
use crate::error::{DeviceError, Error, Result};
use crate::execute::{FailedExecution, RankImage};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::Plan;
use crate::plan::state::{Halo, ImageState, Placement, Residency};
use crate::session::Session;
use crate::session::devices::Engine;
use crate::session::images::on_demand::OnDemandImage;
use crate::shape::{Shape, Window};

/// An image in memory: this rank's part, or the part of each device of this process.
#[derive(Debug)]
pub(crate) struct StoredImage {
    first: RankImage,
    others: Vec<RankImage>,
    /// Number of ranks, the first ones, that have a part or a copy of the image.
    ranks: usize,
}

impl Deref for StoredImage {
    type Target = RankImage;
    fn deref(&self) -> &RankImage {
        &self.first
    }
}

impl DerefMut for StoredImage {
    fn deref_mut(&mut self) -> &mut RankImage {
        &mut self.first
    }
}

impl StoredImage {
    /// Image with these parts of the devices; `None` without parts.
    pub(crate) fn of(mut lanes: Vec<RankImage>) -> Option<StoredImage> {
        (!lanes.is_empty()).then(|| StoredImage { first: lanes.remove(0), others: lanes, ranks: 1 })
    }

    /// Image of the first `ranks` ranks, with this rank's part.
    pub(crate) fn of_ranks(first: RankImage, ranks: usize) -> StoredImage {
        StoredImage { first, others: Vec::new(), ranks }
    }

    /// Image that only other ranks have, in this state.
    pub(crate) fn elsewhere(
        (shape, dtype): (Shape, DType),
        state: ImageState,
        unified: bool,
        ranks: usize,
    ) -> StoredImage {
        let geometry = Geometry { shape, dtype: dtype.stored(), window: Window::new(0, 0) };
        let nothing = HostBuffer::zeroed(0);
        let (host, device) = if unified { (None, Some(Memory::Host(nothing))) } else { (Some(nothing), None) };
        StoredImage::of_ranks(RankImage { geometry, state, host, device }, ranks)
    }

    /// Part of the first or only device.
    pub(crate) fn into_first(self) -> RankImage {
        self.first
    }

    /// Number of ranks or devices that have a part or a copy of the image.
    pub(crate) fn among(&self) -> usize {
        self.ranks + self.others.len()
    }

    /// Part of each device.
    fn each(&self) -> impl Iterator<Item = &RankImage> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub(crate) fn into_each(self) -> Vec<RankImage> {
        std::iter::once(self.first).chain(self.others).collect()
    }
}

/// State of an image that is whole on the shared host.
pub(crate) const fn on_host(unified: bool) -> ImageState {
    let residency = if unified { Residency::Both } else { Residency::Host };
    ImageState { residency, placement: Placement::Replicated }
}

/// Image that every device has on the shared host.
fn shared(geometry: Geometry, host: &HostBuffer, lanes: usize, unified: bool) -> Option<StoredImage> {
    let share = |_| {
        let buffer = host.clone();
        let (host, device) = if unified { (None, Some(Memory::Host(buffer))) } else { (Some(buffer), None) };
        RankImage { geometry, state: on_host(unified), host, device }
    };
    StoredImage::of((0..lanes).map(share).collect())
}

/// Returns `true` if the buffers contain the whole image.
fn is_whole(image: &RankImage) -> bool {
    image.geometry.window.covers(Window::whole(image.geometry.shape.height))
        && !matches!(image.state.placement, Placement::Strips(_))
}

/// The whole image on the host, if a device has it there; `None` if only strips are on the host, or the image is on
/// devices.
fn whole_on_host(lanes: &[Option<RankImage>]) -> Option<(Geometry, HostBuffer)> {
    let found = lanes.iter().flatten().find(|image| {
        image.geometry.window == Window::whole(image.geometry.shape.height) && is_whole(image) && image.host().is_some()
    })?;
    Some((found.geometry, found.host()?.clone()))
}

/// Reads bytes of one device's part, on its host or on the device.
fn read(image: &RankImage, device: &dyn Device, from: usize, target: &mut [u8]) -> Result<(), DeviceError> {
    match (image.host(), &image.device) {
        (Some(host), _) => {
            device.workers().copy(&host.bytes()[from..from + target.len()], target);
            Ok(())
        }
        (None, Some(memory)) => device.read(memory, from, target),
        (None, None) => Err(DeviceError::Internal("pixels that are read are not in memory".into())),
    }
}

impl Session {
    /// Image in the layout of a plan for `lanes` devices. An image in another number of parts goes through the host.
    fn laid(
        &self,
        engine: &Engine,
        image: StoredImage,
        lanes: usize,
    ) -> Result<StoredImage, Box<(Error, StoredImage)>> {
        if image.among() == lanes {
            return Ok(image);
        }
        let unified = engine.unified();
        match self.on_host(engine, &image) {
            Ok((geometry, host)) => Ok(shared(geometry, &host, lanes, unified).unwrap_or(image)),
            Err(source) => Err(Box::new((self.not_on_host(source), image))),
        }
    }

    /// Image with its pixels on the host only, and the same image as a source of regions.
    pub(crate) fn whole_at_host(&self, engine: &Engine, image: &StoredImage) -> Result<(StoredImage, OnDemandImage)> {
        let (geometry, host) = self.on_host(engine, image).map_err(|source| self.not_on_host(source))?;
        let later = OnDemandImage::from_memory(geometry, host.clone());
        let laid = shared(geometry, &host, engine.device_count(), engine.unified());
        let nowhere = || self.not_on_host(DeviceError::Internal("an engine without a lane".into()));
        Ok((laid.ok_or_else(nowhere)?, later))
    }

    pub(crate) fn not_on_host(&self, source: DeviceError) -> Error {
        Error::Device { op: "bringing an image to the host".into(), device: self.device_name(), source }
    }

    /// Copies the whole image to the host.
    fn on_host(&self, engine: &Engine, image: &StoredImage) -> Result<(Geometry, HostBuffer), DeviceError> {
        let height = image.geometry.shape.height;
        let whole = Geometry { window: Window::whole(height), ..image.geometry };
        if let Some(host) = image.each().find(|i| is_whole(i) && i.geometry == whole).and_then(RankImage::host) {
            return Ok((whole, host.clone()));
        }
        let mut host = self.0.pool.try_allocate(whole.bytes())?;
        let target = host.bytes_mut();
        for (lane, (stored, device)) in image.each().zip(engine.devices()).enumerate() {
            let rows = match stored.state.placement {
                Placement::Strips(_) => engine.partition(image.among()).strip(lane, height),
                _ if lane == 0 => whole.window,
                _ => Window::new(0, 0),
            };
            for c in 0..whole.shape.planes() {
                let (from, to) = (stored.geometry.row_bytes(c, rows), whole.row_bytes(c, rows));
                if !from.is_empty() {
                    read(stored, &**device, from.start, &mut target[to])?;
                }
            }
        }
        Ok((whole, host))
    }

    /// All images in the layout of a plan for `lanes` devices.
    pub(crate) fn laid_out(
        &self,
        engine: &Engine,
        images: Vec<Option<StoredImage>>,
        lanes: usize,
    ) -> Result<Vec<Option<StoredImage>>, FailedExecution<StoredImage>> {
        let (mut laid, mut failed) = (Vec::with_capacity(images.len()), None);
        for image in images {
            laid.push(match image {
                Some(image) if failed.is_none() => match self.laid(engine, image, lanes) {
                    Ok(image) => Some(image),
                    Err(refused) => {
                        let (error, image) = *refused;
                        failed = Some(error);
                        Some(image)
                    }
                },
                image => image,
            });
        }
        match failed {
            None => Ok(laid),
            Some(error) => Err(FailedExecution { error, images: laid }),
        }
    }

    /// Complete images among the parts that devices have after a failure. Devices may have reached different steps. An
    /// image that is whole on some host becomes whole for all devices, otherwise it is in strips.
    pub(crate) fn reconciled(
        &self,
        engine: &Engine,
        plan: &Plan,
        lanes: Vec<Vec<Option<RankImage>>>,
    ) -> Vec<Option<StoredImage>> {
        let count = lanes.len();
        let mut lanes: Vec<_> = lanes.into_iter().map(Vec::into_iter).collect();
        let mut all = Vec::with_capacity(plan.graph.nodes.len());
        for (i, node) in plan.graph.nodes.iter().enumerate() {
            let parts: Vec<Option<RankImage>> = lanes.iter_mut().map(|lane| lane.next().flatten()).collect();
            let wanted = node.op.source_value().is_some() || plan.graph.roots.contains(&NodeId(i));
            all.push(if wanted { self.one_of(engine, parts, count) } else { None });
        }
        all
    }

    /// Combines the parts of devices into one image with one state.
    fn one_of(&self, engine: &Engine, parts: Vec<Option<RankImage>>, lanes: usize) -> Option<StoredImage> {
        let unified = engine.unified();
        if let Some((geometry, host)) = whole_on_host(&parts) {
            return shared(geometry, &host, lanes, unified);
        }
        let mut parts = parts.into_iter().collect::<Option<Vec<RankImage>>>()?;
        let height = parts.first()?.geometry.shape.height;
        let whole = parts.iter().all(is_whole);
        let strip = |lane| if whole { Window::whole(height) } else { engine.partition(lanes).strip(lane, height) };
        if parts.iter().enumerate().any(|(lane, part)| !part.geometry.window.covers(strip(lane))) {
            return None;
        }
        let on_device = parts.iter().all(|part| part.device.is_some());
        for (part, device) in parts.iter_mut().zip(engine.devices()) {
            if on_device {
                part.host = None;
            } else if part.host.is_none() {
                let mut host = self.0.pool.try_allocate(part.geometry.bytes()).ok()?;
                device.read(part.device.as_ref()?, 0, host.bytes_mut()).ok()?;
                part.host = Some(host);
            }
            let residency = match (unified, on_device) {
                (true, _) => Residency::Both,
                (false, true) => Residency::Device,
                (false, false) => {
                    part.device = None;
                    Residency::Host
                }
            };
            let placement = if whole { Placement::Replicated } else { Placement::Strips(Halo::NONE) };
            part.state = ImageState { residency, placement };
        }
        StoredImage::of(parts)
    }
}
