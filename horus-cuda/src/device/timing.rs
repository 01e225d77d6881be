//! Counts of kernels, times of launches by the GPU's clock, and their resources.

use cudarc::driver::sys;
use horus_core::device::Device as _;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::Kernel;

use super::CudaDevice;
use crate::codegen::Shapes;
use crate::driver::CudaEvent;

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
    /// Kernels that these launches started: some consist of several.
    pub kernels: usize,
}

impl CudaDevice {
    /// Starts timing launches with CUDA events.
    pub fn start_timing(&self) {
        self.lock().timings = Some(Vec::new());
    }

    /// Waits for the GPU. Returns the milliseconds of each launch since [`CudaDevice::start_timing`], and from the
    /// beginning of the first to the end of the last.
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
        let (start, end) = (CudaEvent::new(true)?, CudaEvent::new(true)?);
        start.record(&self.core.stream)?;
        work()?;
        end.record(&self.core.stream)?;
        self.synchronize()?;
        end.since(&start)
    }

    /// The resources of the kernel that a launch would run.
    ///
    /// # Errors
    /// If the kernel cannot be generated or compiled, and errors of the driver.
    pub fn resources(&self, kernel: &Kernel, shapes: &Shapes<'_>) -> Result<Resources, DeviceError> {
        let program = self.program(kernel, shapes)?;
        let function = self.function(&program, &kernel.name())?;
        let (registers, spills) = function.resources();
        let (work, resident) = (self.work(&program), function.resident(self.work(&program))?);
        let limiter = self.multiprocessor()?.limiter(registers, work.block, work.shared);
        Ok(Resources { registers, spills, shared: work.shared, threads: work.block, resident, limiter })
    }

    /// The resources of a multiprocessor.
    pub(crate) fn multiprocessor(&self) -> Result<Multiprocessor, DeviceError> {
        use sys::CUdevice_attribute_enum as A;
        let of = |which| self.core.context.attribute(which).map(i32::cast_unsigned);
        Ok(Multiprocessor {
            threads: of(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            registers: of(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            shared: of(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            reserved: of(A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
            blocks: of(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        })
    }
}

/// Resources of a multiprocessor that a kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Registers per thread.
    pub registers: i32,
    /// Bytes of spills per thread.
    pub spills: i32,
    /// Bytes of shared memory per block.
    pub shared: u32,
    /// Threads per block.
    pub threads: u32,
    /// Blocks that a multiprocessor runs at once.
    pub resident: u32,
    /// The reason why it runs no more.
    pub limiter: Limiter,
}

/// The resource of a multiprocessor that has too little left for another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Threads: it runs as many as it can.
    Threads,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Blocks.
    Blocks,
}

/// Resources of a multiprocessor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiprocessor {
    pub(crate) threads: u32,
    registers: u32,
    /// Bytes of shared memory, and the bytes that each block takes in addition to its own.
    shared: u32,
    reserved: u32,
    blocks: u32,
}

impl Multiprocessor {
    /// The resource that admits the fewest blocks, by the rules of CUDA's occupancy calculator: a warp takes registers
    /// in units of 256, a block shared memory in units of 128 bytes.
    fn limiter(&self, registers: i32, threads: u32, shared: u32) -> Limiter {
        let warps = threads.div_ceil(32).max(1);
        let of_warp = (registers.cast_unsigned() * 32).next_multiple_of(256).max(256);
        let of_block = (shared + self.reserved).next_multiple_of(128).max(1);
        let blocks = [
            (self.threads / (warps * 32), Limiter::Threads),
            // A quarter of a multiprocessor has a quarter of its registers.
            (self.registers / 4 / of_warp * 4 / warps, Limiter::Registers),
            (self.shared / of_block, Limiter::SharedMemory),
            (self.blocks, Limiter::Blocks),
        ];
        blocks.into_iter().min_by_key(|(n, _)| *n).map_or(Limiter::Threads, |(_, limiter)| limiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_that_admits_the_fewest_blocks_limits_them() {
        // An H200, and figures of NVIDIA's occupancy calculator.
        let of = Multiprocessor { threads: 2048, registers: 65_536, shared: 233_472, reserved: 1024, blocks: 32 };
        let cases = [
            ((32, 256, 0), Limiter::Threads),             // 8 blocks
            ((124, 256, 0), Limiter::Registers),          // 2
            ((64, 256, 60 << 10), Limiter::SharedMemory), // 3, where registers admit 4
            ((16, 32, 0), Limiter::Blocks),               // 32 of 64
        ];
        for ((registers, threads, shared), limiter) in cases {
            assert_eq!(of.limiter(registers, threads, shared), limiter, "{registers} {threads} {shared}");
        }
    }
}
