//! Kernels that are not maps.

use super::simd::Isa;
use crate::device::Launch;
use crate::error::DeviceError;

/// Runs a merge, a transposition, a reduction or a histogram.
///
/// # Errors
/// [`DeviceError::Unsupported`].
pub fn launch(launch: Launch<'_>, _isa: Isa) -> Result<(), DeviceError> {
    Err(DeviceError::Unsupported { kernel: launch.kernel.name(), dtype: launch.geometry.dtype })
}
