//! Rectangles of images in memory of the device, and their redistribution among ranks.

use super::Session;
use super::blocks::{Extent, Routes};
use super::evaluate::Unevaluated;
use crate::comm::CommError;
use crate::device::{Device, Geometry, Memory};
use crate::dtype::DType;
use crate::error::{DeviceError, Error, Result};
use crate::execute::Stored;
use crate::host::Piece;
use crate::host::buffer::HostBuffer;
use crate::plan::movement::Load;
use crate::plan::state::{Placement, Residency, State};
use crate::region::Rect;
use crate::shape::Shape;

/// Pixels in memory of the device.
pub(super) struct Part {
    pub(super) extent: Extent,
    pub(super) memory: Memory,
}

impl Part {
    pub(super) fn new(device: &dyn Device, rect: Rect, (shape, dtype): (Shape, DType)) -> Result<Part, DeviceError> {
        let extent = Extent { rect, planes: shape.planes(), element: dtype.size() };
        Ok(Part { memory: device.allocate(extent.bytes_of(rect))?, extent })
    }

    /// The pixels of an image of this rank; those on the host only are uploaded.
    pub(super) fn of(device: &dyn Device, image: Stored) -> Result<Part, DeviceError> {
        let extent = Part::extent(&image);
        let memory = match (image.device, image.host) {
            (Some(memory), _) if image.state.residency.device() => memory,
            (_, Some(host)) => uploaded(device, &host)?,
            _ => return Err(lost("the pixels of a block")),
        };
        Ok(Part { extent, memory })
    }

    /// [`Part::of`] an image that stays; where memory is the host's, it is shared.
    pub(super) fn lent(device: &dyn Device, image: &Stored) -> Result<Part, DeviceError> {
        let extent = Part::extent(image);
        match (&image.device, image.host()) {
            (Some(memory), host) if image.state.residency.device() => match host.filter(|_| memory.host().is_some()) {
                Some(host) => Ok(Part { extent, memory: Memory::Host(host.clone()) }),
                None => {
                    let mut part = Part { extent, memory: device.allocate(memory.len())? };
                    device.copy(memory, &mut part.memory, &[Piece::run(0, 0, memory.len())])?;
                    Ok(part)
                }
            },
            (_, Some(host)) => Ok(Part { extent, memory: uploaded(device, host)? }),
            _ => Err(lost("an image that a loop reads")),
        }
    }

    fn extent(image: &Stored) -> Extent {
        let Geometry { shape, dtype, window } = image.geometry;
        Extent { rect: Rect { rows: window, ..Rect::whole(shape) }, planes: shape.planes(), element: dtype.size() }
    }

    /// An image of these pixels.
    pub(super) fn stored(self, shape: Shape, dtype: DType, placement: Placement) -> Stored {
        let residency = if self.memory.host().is_some() { Residency::Both } else { Residency::Device };
        let geometry = Geometry { shape, dtype: dtype.stored(), window: self.extent.rect.rows };
        Stored { geometry, state: State { residency, placement }, host: None, device: Some(self.memory) }
    }
}

pub(super) fn lost(what: &str) -> DeviceError {
    DeviceError::Internal(format!("{what} is not in memory"))
}

/// Memory of the device, on the host.
pub(super) fn downloaded(device: &dyn Device, memory: &Memory) -> Result<HostBuffer, DeviceError> {
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
    /// Copies what is held into what is needed, on this rank and in one message to each other.
    pub(super) fn redistribute<'p>(
        &self,
        device: &dyn Device,
        routes: &Routes,
        from: &dyn Fn(usize) -> Option<&'p Part>,
        to: &mut [Option<Part>],
    ) -> Result<Load, Unevaluated> {
        let failed = |source| self.in_blocks_failed(source);
        let comm = &*self.0.comm;
        let missing = || failed(lost("a part of a block"));
        for ((h, here), (n, there)) in &routes.local {
            let (Some(from), Some(to)) = (from(*h), &mut to[*n]) else { return Err(missing()) };
            let pieces: Vec<Piece> = from.extent.pieces(*here, (to.extent, *there)).collect();
            device.copy(&from.memory, &mut to.memory, &pieces).map_err(failed)?;
        }
        let mut sends: Vec<(usize, HostBuffer)> = Vec::new();
        for (rank, parts) in &routes.sent {
            let all: Option<Vec<(&Part, Rect)>> = parts.iter().map(|(h, rect)| Some((from(*h)?, *rect))).collect();
            let all = all.ok_or_else(missing)?;
            let bytes = all.iter().map(|(part, rect)| part.extent.bytes_of(*rect)).sum();
            let mut message = device.allocate(bytes).map_err(failed)?;
            let mut at = 0;
            for (part, rect) in all {
                let pieces: Vec<Piece> = part.extent.packed(rect, at).collect();
                device.copy(&part.memory, &mut message, &pieces).map_err(failed)?;
                at += part.extent.bytes_of(rect);
            }
            sends.push((*rank, downloaded(device, &message).map_err(failed)?));
        }
        let mut receives: Vec<(usize, HostBuffer)> = Vec::new();
        for (rank, parts) in &routes.received {
            let bytes = parts.iter().map(|(n, rect)| to[*n].as_ref().map(|to| to.extent.bytes_of(*rect)));
            let bytes = bytes.sum::<Option<usize>>().ok_or_else(missing)?;
            receives.push((*rank, self.0.pool.try_allocate(bytes).map_err(failed)?));
        }
        let out: Vec<(usize, &[u8])> = sends.iter().map(|(rank, message)| (*rank, message.bytes())).collect();
        let mut into: Vec<(usize, &mut [u8])> = receives.iter_mut().map(|(rank, m)| (*rank, m.bytes_mut())).collect();
        if self.ranks() > 1 {
            let ended = |e: CommError| Unevaluated::Met(e.during(comm.rank(), "exchanging blocks"));
            comm.exchange(&out, &mut into).map_err(ended)?;
        }
        for ((_, parts), (_, message)) in routes.received.iter().zip(receives) {
            let message = uploaded(device, &message).map_err(failed)?;
            let mut at = 0;
            for (n, rect) in parts {
                let Some(to) = &mut to[*n] else { return Err(missing()) };
                let pieces: Vec<Piece> = to.extent.packed(*rect, at).map(Piece::back).collect();
                device.copy(&message, &mut to.memory, &pieces).map_err(failed)?;
                at += to.extent.bytes_of(*rect);
            }
        }
        Ok(Load { messages: sends.len(), bytes: sends.iter().map(|(_, message)| message.len()).sum() })
    }

    pub(super) fn in_blocks_failed(&self, source: DeviceError) -> Unevaluated {
        Unevaluated::Met(Error::Device { op: "a loop in blocks".into(), device: self.device_name(), source })
    }
}
