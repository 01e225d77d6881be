//! NVIDIA's management library, which comes with the driver: it reports the free memory of GPUs
//! without opening them.

use std::ffi::{CStr, c_int, c_void};

use libloading::Library;

type NvmlStatus = c_int;
type NvmlDevice = *mut c_void;

/// `nvmlMemory_t`: bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct NvmlMemory {
    total: u64,
    free: u64,
    used: u64,
}

/// The library, started.
pub(crate) struct Nvml {
    shutdown: unsafe extern "C" fn() -> NvmlStatus,
    by_bus: unsafe extern "C" fn(*const std::ffi::c_char, *mut NvmlDevice) -> NvmlStatus,
    memory: unsafe extern "C" fn(NvmlDevice, *mut NvmlMemory) -> NvmlStatus,
    // The functions above live as long as the library.
    _library: Library,
}

impl Nvml {
    pub(crate) fn load() -> Result<Nvml, String> {
        fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
            // SAFETY: every caller below names the type of the C function as nvml.h declares it.
            unsafe { library.get::<T>(name.as_bytes()) }.map(|s| *s).map_err(|e| e.to_string())
        }
        let names = if cfg!(windows) { ["nvml.dll"].as_slice() } else { &["libnvidia-ml.so.1", "libnvidia-ml.so"] };
        let mut reason = String::new();
        // SAFETY: loading runs the initialisers of a library of the driver.
        let load = |name: &&str| unsafe { Library::new(*name) }.map_err(|e| reason = e.to_string()).ok();
        let Some(library) = names.iter().find_map(load) else { return Err(reason) };
        let start: unsafe extern "C" fn() -> NvmlStatus = symbol(&library, "nvmlInit_v2")?;
        let nvml = Nvml {
            shutdown: symbol(&library, "nvmlShutdown")?,
            by_bus: symbol(&library, "nvmlDeviceGetHandleByPciBusId_v2")?,
            memory: symbol(&library, "nvmlDeviceGetMemoryInfo")?,
            _library: library,
        };
        // SAFETY: as nvml.h declares it.
        match unsafe { start() } {
            0 => Ok(nvml),
            code => {
                // A library that was not started must not be shut down.
                std::mem::forget(nvml);
                Err(format!("NVML does not start (code {code})"))
            }
        }
    }

    /// Free bytes on the GPU at this bus address.
    pub(crate) fn free(&self, bus: &CStr) -> Result<usize, String> {
        let (mut handle, mut memory) = (std::ptr::null_mut(), NvmlMemory::default());
        // SAFETY: a C string and a pointer to a live handle; the library is started.
        let code = unsafe { (self.by_bus)(bus.as_ptr(), &mut handle) };
        if code != 0 {
            return Err(format!("NVML knows no GPU at {} (code {code})", bus.to_string_lossy()));
        }
        // SAFETY: a handle of this library, and a pointer to a live structure of the layout that
        // the function fills.
        match unsafe { (self.memory)(handle, &mut memory) } {
            0 => Ok(usize::try_from(memory.free).unwrap_or(usize::MAX)),
            code => Err(format!("NVML cannot report this (code {code})")),
        }
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: started in `load`. A failure here cannot be reported.
        unsafe { (self.shutdown)() };
    }
}
