//! Counts of kernels, times of launches by the GPU's clock, and their resources.

use horus_core::device::Device as _;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::Kernel;

use super::CudaDevice;
use crate::codegen::Shapes;
use crate::driver::Event;

/// Counts of kernels and launches so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Kernels compiled by NVRTC.
    pub compiled: usize,
    /// Kernels read from the disk cache.
    pub from_disk: usize,
    /// Kernels read from the package that ships with a release.
    pub shipped: usize,
    /// Launches.
    pub launches: usize,
}

impl CudaDevice {
    /// Starts timing launches with CUDA events.
    pub fn start_timing(&self) {
        self.lock().timings = Some(Vec::new());
    }

    /// Waits for the GPU. Returns the milliseconds of each launch since
    /// [`CudaDevice::start_timing`], and those from the beginning of the first to the end of the
    /// last.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn stop_timing(&self) -> Result<(Vec<f32>, f32), DeviceError> {
        self.synchronize()?;
        let events = self.lock().timings.take().unwrap_or_default();
        let each = events.iter().map(|(start, end)| end.since(start)).collect::<Result<_, _>>()?;
        let all = match (events.first(), events.last()) {
            (Some((start, _)), Some((_, end))) => end.since(start)?,
            _ => 0.0,
        };
        Ok((each, all))
    }

    /// Milliseconds, by the GPU's clock, of the launches that `work` makes.
    ///
    /// # Errors
    /// Errors of `work` and of the driver.
    pub fn timed(&self, work: impl FnOnce() -> Result<(), DeviceError>) -> Result<f32, DeviceError> {
        self.core.context.bind()?;
        let (start, end) = (Event::new(true)?, Event::new(true)?);
        start.record(&self.core.stream)?;
        work()?;
        end.record(&self.core.stream)?;
        self.synchronize()?;
        end.since(&start)
    }

    /// Registers and bytes of spills per thread, and bytes of shared memory, of the kernel that a
    /// launch would run.
    ///
    /// # Errors
    /// If the kernel cannot be generated or compiled.
    pub fn resources(&self, kernel: &Kernel, shapes: &Shapes<'_>) -> Result<(i32, i32, u32), DeviceError> {
        let program = self.program(kernel, shapes)?;
        let function = self.function(&program, &kernel.name())?;
        let (registers, spills) = function.resources();
        Ok((registers, spills, program.shared))
    }
}
