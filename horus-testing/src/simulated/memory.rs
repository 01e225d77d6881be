//! Memory that only its simulated device can access.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::log::CallCounters;
use horus_base::error::DeviceError;
use horus_host::StridedCopy;
use horus_host::device::{DeviceMemory, Memory};

#[derive(Debug)]
pub(super) struct SeparateMemory {
    pub(super) memory: Memory,
    /// Unique identity of the block, as long as it is referenced.
    pub(super) identity: Arc<()>,
    /// Set for mapped host memory.
    pub(super) mapped: bool,
    pub(super) counters: Arc<CallCounters>,
}

impl DeviceMemory for SeparateMemory {
    fn len(&self) -> usize {
        self.memory.len()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for SeparateMemory {
    fn drop(&mut self) {
        if !self.mapped {
            self.counters.bytes.fetch_sub(self.memory.len(), Ordering::Relaxed);
        }
    }
}

pub(super) fn separate(memory: &Memory) -> Result<&Memory, DeviceError> {
    match memory {
        Memory::Device(m) => match m.as_any().downcast_ref::<SeparateMemory>() {
            Some(s) => Ok(&s.memory),
            None => Err(foreign()),
        },
        Memory::Host(_) => Err(foreign()),
    }
}

pub(super) fn separate_mut(memory: &mut Memory) -> Result<&mut Memory, DeviceError> {
    match memory {
        Memory::Device(m) => match m.as_any_mut().downcast_mut::<SeparateMemory>() {
            Some(s) => Ok(&mut s.memory),
            None => Err(foreign()),
        },
        Memory::Host(_) => Err(foreign()),
    }
}

pub(super) fn foreign() -> DeviceError {
    DeviceError::Argument("memory of another device".into())
}

pub(super) fn bytes(memory: &Memory) -> Result<&[u8], DeviceError> {
    memory.host().map(|h| h.bytes()).ok_or_else(foreign)
}

/// Returns `true` if copies stay inside a source and a target of these lengths.
pub(super) fn fit(pieces: &[StridedCopy], source: usize, target: usize) -> Result<(), DeviceError> {
    match pieces.iter().find(|p| !p.fits(source, target)) {
        None => Ok(()),
        Some(p) => Err(DeviceError::Argument(format!("a copy reaches beyond its buffers: {p:?}"))),
    }
}

/// The identity of a block.
pub(super) fn identity(memory: &Memory) -> Result<Arc<()>, DeviceError> {
    match memory {
        Memory::Device(m) => m.as_any().downcast_ref::<SeparateMemory>().map(|s| Arc::clone(&s.identity)),
        Memory::Host(_) => None,
    }
    .ok_or_else(foreign)
}
