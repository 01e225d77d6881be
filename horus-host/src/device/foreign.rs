//! Memory shared with other libraries.

use super::{Device, Memory};
use crate::host::external::DeviceArray;
use horus_base::error::DeviceError;

/// A device whose memory other libraries of this process can access.
pub trait Foreign: Device {
    /// CUDA's index of the GPU among those visible to this process, by which other libraries know
    /// it.
    fn ordinal(&self) -> usize;

    /// Imports memory of this device owned by another library, ordered after its stream: launches
    /// read it in place, or a copy if it begins where they cannot read it. The device holds its owner for pending launches, even if the memory is
    /// dropped. It must not be written.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if it is not this device's; driver errors.
    fn adopt(&self, array: &DeviceArray) -> Result<Memory, DeviceError>;

    /// Exports a share of the memory to another library, once all launches so far have completed.
    /// Its owner keeps it alive; it must not be written.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if it is not this device's; driver errors.
    fn lend(&self, memory: &Memory) -> Result<DeviceArray, DeviceError>;
}
