//! Memory shared with other libraries.

use super::{Device, Memory};
use crate::external::DeviceArray;
use horus_base::error::DeviceError;

/// A device whose memory other libraries of this process can access.
pub trait Foreign: Device {
    /// CUDA's index of the GPU among those visible to this process, by which other libraries know
    /// it.
    fn ordinal(&self) -> usize;

    /// Imports memory of this device owned by another library, ordered after its stream. Unless it is
    /// copied, launches read it in place, or a copy if it begins where they cannot read it, and it
    /// must not be written until memory is lent next. Its owner is held for pending launches, even
    /// if the memory is dropped. A copy is made before any later work of its stream.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if it is not this device's; driver errors.
    fn adopt(&self, array: &DeviceArray, copied: bool) -> Result<Memory, DeviceError>;

    /// Exports a share of the memory to another library. Later work of its `stream`, and of the
    /// default stream, comes after all launches so far; without a stream these have completed. Its
    /// owner keeps it alive; it must not be written.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if it is not this device's; driver errors.
    fn export(&self, memory: &Memory, stream: Option<u64>) -> Result<DeviceArray, DeviceError>;
}
