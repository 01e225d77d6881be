//! A device on host memory that counts as separate memory, for use together with devices that have their own.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use super::check::part;
use super::{
    Device, DeviceMemory, DeviceNames, DeviceSpan, DeviceUsage, DownloadStart, Launch, LaunchInput, Memory, MemoryKind,
    PendingDownload, PreparedLaunch, Staging, Ticket, WorkLabel,
};
use crate::StridedCopy;
use crate::buffer::{HostBuffer, Pool};
use crate::workers::Workers;
use horus_base::error::DeviceError;

/// A device on host memory that counts as separate memory. Copies of whole buffers between the two share the buffer.
pub struct SeparateMemoryDevice(Arc<dyn Device>);

/// A block of the host's memory.
#[derive(Debug)]
struct SeparateMemoryBlock(Memory);

impl DeviceMemory for SeparateMemoryBlock {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

fn foreign() -> DeviceError {
    DeviceError::Argument("memory of another device".into())
}

fn block(memory: &Memory) -> Result<&Memory, DeviceError> {
    match memory {
        Memory::Device(m) => m.as_any().downcast_ref::<SeparateMemoryBlock>().map(|b| &b.0).ok_or_else(foreign),
        Memory::Host(_) => Err(foreign()),
    }
}

fn block_mut(memory: &mut Memory) -> Result<&mut Memory, DeviceError> {
    match memory {
        Memory::Device(m) => m.as_any_mut().downcast_mut::<SeparateMemoryBlock>().map(|b| &mut b.0).ok_or_else(foreign),
        Memory::Host(_) => Err(foreign()),
    }
}

fn host(memory: &Memory) -> Result<&HostBuffer, DeviceError> {
    block(memory)?.host().ok_or_else(foreign)
}

fn host_mut(memory: &mut Memory) -> Result<&mut HostBuffer, DeviceError> {
    block_mut(memory)?.host_mut().ok_or_else(foreign)
}

impl SeparateMemoryDevice {
    /// Wraps a device so that its memory counts as separate from the host's.
    pub fn from_unified(device: Arc<dyn Device>) -> Arc<dyn Device> {
        if device.memory().is_unified() { Arc::new(SeparateMemoryDevice(device)) } else { device }
    }
}

impl Device for SeparateMemoryDevice {
    fn names(&self) -> DeviceNames {
        self.0.names()
    }

    fn memory(&self) -> MemoryKind<'_> {
        MemoryKind::Separate(None)
    }

    fn workers(&self) -> &Workers {
        self.0.workers()
    }

    fn staging(&self) -> &dyn Staging {
        self
    }

    fn usage(&self) -> DeviceUsage {
        self.0.usage()
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        Ok(Memory::Device(Box::new(SeparateMemoryBlock(self.0.allocate(bytes)?))))
    }

    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        let target = host_mut(target)?;
        let range = part(at, source.len(), target.len())?;
        self.workers().copy(source, &mut target.bytes_mut()[range]);
        Ok(())
    }

    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        let source = host(source)?;
        self.workers().copy(&source.bytes()[part(at, target.len(), source.len())?], target);
        Ok(())
    }

    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        let (source, target) = (host(source)?, host_mut(target)?);
        if let Some(p) = pieces.iter().find(|p| !p.fits(source.len(), target.len())) {
            return Err(DeviceError::Argument(format!("a copy reaches beyond its buffers: {p:?}")));
        }
        self.workers().copy_pieces(source.bytes(), target.bytes_mut(), pieces);
        Ok(())
    }

    fn prepare(&self, launches: &[PreparedLaunch<'_>]) -> Result<(), DeviceError> {
        self.0.prepare(launches)
    }

    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        let Launch { kernel, inputs, output, additional_outputs: more, geometry, rows } = launch;
        let inputs = inputs.iter().map(|i| Ok(LaunchInput { memory: block(i.memory)?, geometry: i.geometry }));
        let inputs = inputs.collect::<Result<Vec<_>, DeviceError>>()?;
        let mut more = more.iter_mut().map(|m| block_mut(m)).collect::<Result<Vec<_>, _>>()?;
        let output = block_mut(output)?;
        self.0.launch(Launch { kernel, inputs: &inputs, output, additional_outputs: &mut more, geometry, rows })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.0.synchronize()
    }

    fn recorded(&self, own: &dyn Fn(WorkLabel) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        self.0.recorded(own)
    }
}

impl Staging for SeparateMemoryDevice {
    fn begin_upload(
        &self,
        source: &HostBuffer,
        target: &mut Memory,
        pieces: &[StridedCopy],
    ) -> Result<Ticket, DeviceError> {
        let target = host_mut(target)?;
        if let Some(p) = pieces.iter().find(|p| !p.fits(source.len(), target.len())) {
            return Err(DeviceError::Argument(format!("a copy reaches beyond its buffers: {p:?}")));
        }
        let whole = |p: &StridedCopy| {
            let together = p.rows == 1 || (p.from_stride == p.bytes && p.to_stride == p.bytes);
            (p.from, p.to, p.rows * p.bytes) == (0, 0, source.len()) && together
        };
        match pieces {
            [piece] if whole(piece) && source.len() == target.len() => *target = source.clone(),
            pieces => self.workers().copy_pieces(source.bytes(), target.bytes_mut(), pieces),
        }
        Ok(Ticket::OVER)
    }

    fn start_download(
        &self,
        source: &Memory,
        range: Range<usize>,
        pool: &Arc<Pool>,
        _when: DownloadStart,
    ) -> Result<Box<dyn PendingDownload>, DeviceError> {
        let shared = host(source)?;
        if range == (0..shared.len()) {
            return Ok(Box::new(shared.clone()));
        }
        let mut copied = pool.try_allocate(range.len())?;
        self.read(source, range.start, copied.bytes_mut())?;
        Ok(Box::new(copied))
    }
}
