//! Rectangles of images in device memory, and their redistribution among ranks.

use crate::comm::{CommError, Parcel, PendingExchange};
use crate::device::{Device, Geometry, Memory};
use crate::dtype::DType;
use crate::error::{DeviceError, Error, Result};
use crate::execute::RankImage;
use crate::host::StridedCopy;
use crate::host::buffer::HostBuffer;
use crate::plan::movement::Load;
use crate::plan::state::{ImageState, Placement, Residency};
use crate::region::Rect;
use crate::session::Session;
use crate::session::blocks::{BlockRoutes, BufferExtent, BufferRect};
use crate::session::engine::failure::EvaluationError;
use crate::shape::Shape;

/// Pixels in device memory.
pub(crate) struct DeviceRectangle {
    pub(crate) extent: BufferExtent,
    pub(crate) memory: Memory,
}

impl DeviceRectangle {
    pub(crate) fn new(
        device: &dyn Device,
        rect: Rect,
        (shape, dtype): (Shape, DType),
    ) -> Result<DeviceRectangle, DeviceError> {
        let extent = BufferExtent { rect, planes: shape.planes(), element: shape.pixel_bytes(dtype) };
        Ok(DeviceRectangle { memory: device.allocate(extent.bytes_of(rect))?, extent })
    }

    /// Pixels of this rank's image. Pixels on the host only are uploaded.
    pub(crate) fn of(device: &dyn Device, image: RankImage) -> Result<DeviceRectangle, DeviceError> {
        let extent = DeviceRectangle::extent(&image);
        let memory = match (image.device, image.host) {
            (Some(memory), _) if image.state.residency.device() => memory,
            (_, Some(host)) => uploaded(device, &host)?,
            _ => return Err(lost("the pixels of a block")),
        };
        Ok(DeviceRectangle { extent, memory })
    }

    /// [`DeviceRectangle::of`] an image that stays. Memory is shared if it is the host's, otherwise copied.
    pub(crate) fn share_or_copy(device: &dyn Device, image: &RankImage) -> Result<DeviceRectangle, DeviceError> {
        let extent = DeviceRectangle::extent(image);
        match (&image.device, image.host()) {
            (Some(memory), host) if image.state.residency.device() => match host.filter(|_| memory.host().is_some()) {
                Some(host) => Ok(DeviceRectangle { extent, memory: Memory::Host(host.clone()) }),
                None => {
                    let mut part = DeviceRectangle { extent, memory: device.allocate(memory.len())? };
                    device.copy(memory, &mut part.memory, &[StridedCopy::run(0, 0, memory.len())])?;
                    Ok(part)
                }
            },
            (_, Some(host)) => Ok(DeviceRectangle { extent, memory: uploaded(device, host)? }),
            _ => Err(lost("an image that a loop reads")),
        }
    }

    fn extent(image: &RankImage) -> BufferExtent {
        let Geometry { shape, dtype, window } = image.geometry;
        BufferExtent {
            rect: Rect { rows: window, ..Rect::whole(shape) },
            planes: shape.planes(),
            element: shape.pixel_bytes(dtype),
        }
    }

    /// Image with these pixels.
    pub(crate) fn stored(self, shape: Shape, dtype: DType, placement: Placement) -> RankImage {
        let residency = if self.memory.host().is_some() { Residency::Both } else { Residency::Device };
        let geometry = Geometry { shape, dtype: dtype.stored(), window: self.extent.rect.rows };
        RankImage { geometry, state: ImageState { residency, placement }, host: None, device: Some(self.memory) }
    }
}

pub(crate) fn lost(what: &str) -> DeviceError {
    DeviceError::Internal(format!("{what} is not in memory"))
}

/// Downloads device memory.
pub(crate) fn downloaded(device: &dyn Device, memory: &Memory) -> Result<HostBuffer, DeviceError> {
    if let Some(host) = memory.host() {
        return Ok(host.clone());
    }
    let mut host = HostBuffer::try_zeroed(memory.len())?;
    device.read(memory, 0, host.bytes_mut())?;
    Ok(host)
}

fn uploaded(device: &dyn Device, host: &HostBuffer) -> Result<Memory, DeviceError> {
    if device.memory().is_unified() {
        return Ok(Memory::Host(host.clone()));
    }
    let mut memory = device.allocate(host.len())?;
    device.write(host.bytes(), &mut memory, 0)?;
    Ok(memory)
}

impl Session {
    /// Brings each rank the pixels it needs: by copies on this rank, and one message to each other rank.
    pub(crate) fn redistribute<'p>(
        &self,
        device: &dyn Device,
        routes: &BlockRoutes,
        from: &dyn Fn(usize) -> Option<&'p DeviceRectangle>,
        to: &mut [Option<DeviceRectangle>],
    ) -> Result<Load, EvaluationError> {
        self.copy_here(device, &routes.local, from, to)?;
        let bytes = |n: usize, rect| to[n].as_ref().map(|to: &DeviceRectangle| to.extent.bytes_of(rect));
        let (messages, load) = self.send(device, routes, from, &bytes)?;
        self.receive(device, routes, messages, to)?;
        Ok(load)
    }

    /// Copies the pixels that this rank both has and needs.
    pub(crate) fn copy_here<'r, 'p>(
        &self,
        device: &dyn Device,
        routes: impl IntoIterator<Item = &'r (BufferRect, BufferRect)>,
        from: &dyn Fn(usize) -> Option<&'p DeviceRectangle>,
        to: &mut [Option<DeviceRectangle>],
    ) -> Result<(), EvaluationError> {
        for ((h, here), (n, there)) in routes {
            let (Some(from), Some(to)) = (from(*h), &mut to[*n]) else { return Err(self.missing()) };
            let pieces: Vec<StridedCopy> = from.extent.pieces(*here, (to.extent, *there)).collect();
            device.copy(&from.memory, &mut to.memory, &pieces).map_err(|source| self.in_blocks_failed(source))?;
        }
        Ok(())
    }

    /// Begins to exchange the messages; `bytes` are those of a rectangle of a needed buffer.
    pub(crate) fn send<'p>(
        &self,
        device: &dyn Device,
        routes: &BlockRoutes,
        from: &dyn Fn(usize) -> Option<&'p DeviceRectangle>,
        bytes: &dyn Fn(usize, Rect) -> Option<usize>,
    ) -> Result<(Option<Box<dyn PendingExchange + '_>>, Load), EvaluationError> {
        let failed = |source| self.in_blocks_failed(source);
        let mut sends: Vec<Parcel> = Vec::new();
        for (rank, parts) in &routes.sent {
            let all: Option<Vec<(&DeviceRectangle, Rect)>> =
                parts.iter().map(|(h, rect)| Some((from(*h)?, *rect))).collect();
            let all = all.ok_or_else(|| self.missing())?;
            let mut message =
                device.allocate(all.iter().map(|(part, rect)| part.extent.bytes_of(*rect)).sum()).map_err(failed)?;
            let mut at = 0;
            for (part, rect) in all {
                let pieces: Vec<StridedCopy> = part.extent.packed(rect, at).collect();
                device.copy(&part.memory, &mut message, &pieces).map_err(failed)?;
                at += part.extent.bytes_of(rect);
            }
            sends.push((*rank, downloaded(device, &message).map_err(failed)?));
        }
        let mut receives: Vec<Parcel> = Vec::new();
        for (rank, parts) in &routes.received {
            let bytes = parts.iter().map(|(n, rect)| bytes(*n, *rect)).sum::<Option<usize>>();
            let bytes = bytes.ok_or_else(|| self.missing())?;
            receives.push((*rank, self.0.pool.try_allocate(bytes).map_err(failed)?));
        }
        let load = Load { messages: sends.len(), bytes: sends.iter().map(|(_, message)| message.len()).sum() };
        let begin = || self.0.comm.begin(sends, receives).map_err(|e| self.exchange_failed(e));
        Ok(((self.ranks() > 1).then(begin).transpose()?, load))
    }

    /// Waits for messages, and copies them to where they are needed.
    pub(crate) fn receive(
        &self,
        device: &dyn Device,
        routes: &BlockRoutes,
        messages: Option<Box<dyn PendingExchange + '_>>,
        to: &mut [Option<DeviceRectangle>],
    ) -> Result<(), EvaluationError> {
        let failed = |source| self.in_blocks_failed(source);
        let Some(messages) = messages else { return Ok(()) };
        let received = messages.finish().map_err(|e| self.exchange_failed(e))?;
        for ((_, parts), (_, message)) in routes.received.iter().zip(received) {
            let message = uploaded(device, &message).map_err(failed)?;
            let mut at = 0;
            for (n, rect) in parts {
                let Some(to) = &mut to[*n] else { return Err(self.missing()) };
                let pieces: Vec<StridedCopy> = to.extent.packed(*rect, at).map(StridedCopy::back).collect();
                device.copy(&message, &mut to.memory, &pieces).map_err(failed)?;
                at += to.extent.bytes_of(*rect);
            }
        }
        Ok(())
    }

    fn missing(&self) -> EvaluationError {
        self.in_blocks_failed(lost("a part of a block"))
    }

    fn exchange_failed(&self, e: CommError) -> EvaluationError {
        EvaluationError::DuringExecution(e.during(self.rank(), "exchanging blocks"))
    }

    pub(crate) fn in_blocks_failed(&self, source: DeviceError) -> EvaluationError {
        EvaluationError::DuringExecution(Error::Device {
            op: "a loop in blocks".into(),
            device: self.device_name(),
            source,
        })
    }
}
