//! Memory shared with other libraries.

use super::{Device, Memory};
use crate::external::DeviceArray;
use horus_base::error::DeviceError;

/// A device whose memory other libraries of this process can access.
pub trait Foreign: Device {
    /// CUDA's index of the GPU among those visible to this process, with which other libraries identify it.
    fn ordinal(&self) -> usize;

    /// Imports memory of this device that another library owns, ordered after its stream. A copy is made if `copied`,
    /// or if the memory begins where launches cannot read it, before any later work of its stream. Otherwise launches
    /// read the memory in place, and it must not be written until memory is exported next. Its owner stays alive for
    /// pending launches, even if the memory is dropped.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if it is not this device's; driver errors.
    fn adopt(&self, array: &DeviceArray, copied: bool) -> Result<Memory, DeviceError>;

    /// Exports a share of the memory to another library. Later work of its `stream`, and of the default stream, comes
    /// after all launches so far; without a stream, these launches have completed. The owner of the result keeps the
    /// memory alive. The memory must not be written.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if it is not this device's; driver errors.
    fn export(&self, memory: &Memory, stream: Option<u64>) -> Result<DeviceArray, DeviceError>;
}
