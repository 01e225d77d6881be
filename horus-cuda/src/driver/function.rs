//! Loaded kernels and their launches.

use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::{result, sys};
use horus_core::error::DeviceError;

use super::{CudaStream, check, during};

/// A loaded kernel.
#[derive(Debug)]
pub(crate) struct KernelFunction {
    module: sys::CUmodule,
    pub(super) handle: sys::CUfunction,
    /// Bytes of dynamic shared memory that it may use.
    reserved: Mutex<u32>,
}

// SAFETY: module and function handles may be used from any thread; the driver locks.
unsafe impl Send for KernelFunction {}
// SAFETY: as above.
unsafe impl Sync for KernelFunction {}

/// Configuration of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchConfig {
    /// Blocks in x and y.
    pub(crate) grid: [u32; 2],
    /// Threads per block.
    pub(crate) block: u32,
    /// Bytes of dynamic shared memory per block.
    pub(crate) shared: u32,
    /// See [`KernelFunction::launch`].
    pub(crate) early: bool,
}

impl KernelFunction {
    /// Loads `cubin` and finds its kernel, which may use up to `shared` bytes of dynamic shared
    /// memory.
    pub(crate) fn load(cubin: &[u8], entry: &str, shared: u32) -> Result<KernelFunction, DeviceError> {
        // SAFETY: the image is a whole cubin (its checksum or its compiler vouch for it); a context
        // is current.
        let module = during(unsafe { result::module::load_data(cubin.as_ptr().cast()) }, || "loading a kernel".into())?;
        let mut function = KernelFunction { module, handle: std::ptr::null_mut(), reserved: Mutex::new(0) };
        let name = CString::new(entry).unwrap_or_default();
        // SAFETY: the module lives.
        let handle = unsafe { result::module::get_function(module, name) };
        function.handle = during(handle, || format!("finding {entry} in a kernel"))?;
        function.reserve(shared)?;
        Ok(function)
    }

    /// Allows the kernel at least `shared` bytes of dynamic shared memory.
    pub(crate) fn reserve(&self, shared: u32) -> Result<(), DeviceError> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        if shared > *reserved {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function lives.
            check(unsafe { sys::cuFuncSetAttribute(self.handle, attribute, shared.cast_signed()) }, || {
                format!("reserving {shared} bytes of shared memory")
            })?;
            *reserved = shared;
        }
        Ok(())
    }

    /// Registers per thread and bytes of local memory (spills).
    pub(crate) fn resources(&self) -> (i32, i32) {
        // SAFETY: the function lives. The 0 of a failure is only shown.
        let get = |a| unsafe { result::function::get_function_attribute(self.handle, a) }.unwrap_or(0);
        (
            get(sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NUM_REGS),
            get(sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        )
    }

    /// Blocks of such launches that a multiprocessor runs at once.
    pub(crate) fn resident(&self, work: LaunchConfig) -> Result<u32, DeviceError> {
        let (threads, shared) = (work.block.cast_signed(), work.shared as usize);
        // SAFETY: the function lives.
        let blocks = unsafe { result::occupancy::max_active_block_per_multiprocessor(self.handle, threads, shared) };
        during(blocks, || "counting the blocks of a kernel on a multiprocessor".into()).map(i32::cast_unsigned)
    }

    /// Launches the kernel with one parameter, given in bytes. An `early` kernel may begin while the previous one in
    /// the stream ends, and waits for it on its own.
    ///
    /// # Safety
    /// `params` must have the layout of the kernel's parameter, and every address in it must stay
    /// valid for the kernel's accesses until the stream has passed the launch.
    pub(crate) unsafe fn launch(
        &self,
        work: LaunchConfig,
        stream: &CudaStream,
        params: &[u8],
        what: impl FnOnce() -> String,
    ) -> Result<(), DeviceError> {
        let LaunchConfig { grid, block, shared, early } = work;
        let mut arguments = [params.as_ptr().cast_mut().cast::<c_void>()];
        let described = || format!("launching {} ({grid:?} blocks of {block}, {shared} bytes shared)", what());
        if !early {
            let (grid, block) = ((grid[0], grid[1], 1), (block, 1, 1));
            // SAFETY: handles live; the driver copies the parameter during the call; the rest is
            // the caller's promise.
            let launched = unsafe { result::launch_kernel(self.handle, grid, block, shared, stream.0, &mut arguments) };
            return during(launched, described);
        }
        // Older drivers lack this call; every driver of a GPU that supports early launches has it.
        // SAFETY: plain integers and unions of integers, for which zeros are valid.
        let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
        attribute.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
        let config = sys::CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: 1,
            blockDimX: block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            hStream: stream.0,
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        // SAFETY: as above.
        check(
            unsafe { sys::cuLaunchKernelEx(&config, self.handle, arguments.as_mut_ptr(), std::ptr::null_mut()) },
            described,
        )
    }
}

impl Drop for KernelFunction {
    fn drop(&mut self) {
        // SAFETY: loaded in `load` and not used after.
        unsafe { sys::cuModuleUnload(self.module) };
    }
}
