//! Checked calls of the driver, and handles that are freed on drop.

mod current;
mod function;
mod graph;
mod runs;

use std::ffi::{CStr, CString};

use cudarc::driver::result::stream::StreamKind;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUresult, CUstream};
use horus_core::error::DeviceError;

pub use current::CallersContext;
pub(crate) use function::{KernelFunction, LaunchConfig};
pub(crate) use graph::{CudaGraph, GraphTask};
pub(crate) use runs::{ContiguousHostCopy, StridedHostCopy, grouped};

/// Converts a driver code into an error that names the attempted operation.
pub(crate) fn check(code: CUresult, what: impl FnOnce() -> String) -> Result<(), DeviceError> {
    during(code.result(), what)
}

/// The result of a call, or an error that names the attempted operation.
pub(crate) fn during<T>(result: Result<T, DriverError>, what: impl FnOnce() -> String) -> Result<T, DeviceError> {
    result.map_err(|error| {
        // The driver has no name or text for a code that it does not know.
        let text = |text: Result<&CStr, _>| text.map(CStr::to_string_lossy).unwrap_or_default().into_owned();
        let (told, name) = (text(error.error_string()), text(error.error_name()));
        DeviceError::Driver(format!("{}: {told} ({name}, code {})", what(), error.0 as u32))
    })
}

/// Begins or ends the part of a program that `ncu --profile-from-start off` measures.
pub(crate) fn profiler(begin: bool) -> Result<(), DeviceError> {
    // SAFETY: the driver is initialised; without a profiler, nothing happens.
    let code = unsafe { if begin { sys::cuProfilerStart() } else { sys::cuProfilerStop() } };
    check(code, || "telling the profiler what to look at".into())
}

/// Returns `true` if the driver's library is present. Every other call of this module needs it.
pub(crate) fn present() -> bool {
    // SAFETY: tries to load the driver's library and unloads it.
    unsafe { sys::is_culib_present() }
}

/// The CUDA version that the driver supports: major and minor.
pub(crate) fn version() -> Result<(i32, i32), DeviceError> {
    let mut v = 0;
    // SAFETY: the library is present, as callers checked; a pointer to a live integer.
    check(unsafe { sys::cuDriverGetVersion(&mut v) }, || "querying the driver's version".into())?;
    Ok((v / 1000, v % 1000 / 10))
}

/// The driver's own version if the system reports it, else the CUDA version that it supports.
pub(crate) fn installed((major, minor): (i32, i32)) -> String {
    let told = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let number = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let told = told.lines().next().and_then(|line| line.split_whitespace().find(number));
    told.map_or_else(|| format!("a driver of CUDA {major}.{minor}"), |version| format!("driver {version}"))
}

/// Initialises the driver and returns the number of devices.
pub(crate) fn initialise() -> Result<usize, DeviceError> {
    match result::init() {
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => return Ok(0),
        started => during(started, || "starting the CUDA driver".into())?,
    }
    let count = during(result::device::get_count(), || "counting GPUs".into())?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The device of this number.
pub(crate) fn device(ordinal: usize) -> Result<sys::CUdevice, DeviceError> {
    let number = i32::try_from(ordinal).unwrap_or(i32::MAX);
    during(result::device::get(number), || format!("opening GPU {ordinal}"))
}

/// The name of a device.
pub(crate) fn name(device: sys::CUdevice) -> String {
    result::device::get_name(device).unwrap_or_else(|_| "GPU".into())
}

/// Bytes of a device's memory.
pub(crate) fn total(device: sys::CUdevice) -> Result<usize, DeviceError> {
    // SAFETY: a device that the driver named.
    during(unsafe { result::device::total_mem(device) }, || "querying a GPU's memory".into())
}

/// A device's PCI bus address, such as `0000:1a:00.0`, which other libraries use too.
pub(crate) fn bus(device: sys::CUdevice) -> Result<CString, DeviceError> {
    let mut text = [0; 32];
    // SAFETY: the buffer has the length said; the driver ends the string in it.
    let code = unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as i32, device) };
    check(code, || "querying a GPU's bus address".into())?;
    // SAFETY: a string ended by the driver inside `text`.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_owned())
}

/// The primary context of a device, current on any thread that calls [`CudaContext::bind`].
#[derive(Debug)]
pub(crate) struct CudaContext {
    pub(crate) device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: a context handle may be used from any thread; the driver locks.
unsafe impl Send for CudaContext {}
// SAFETY: as above.
unsafe impl Sync for CudaContext {}

impl CudaContext {
    pub(crate) fn new(ordinal: usize) -> Result<CudaContext, DeviceError> {
        let device = device(ordinal)?;
        // SAFETY: a device that the driver named; the context is released on drop.
        let handle = during(unsafe { result::primary_ctx::retain(device) }, || format!("opening GPU {ordinal}"))?;
        let context = CudaContext { device, handle };
        context.bind()?;
        Ok(context)
    }

    /// Makes the context current on this thread.
    pub(crate) fn bind(&self) -> Result<(), DeviceError> {
        current::make_current(self.handle)
    }

    pub(crate) fn attribute(&self, which: sys::CUdevice_attribute) -> Result<i32, DeviceError> {
        // SAFETY: a device that the driver named.
        during(unsafe { result::device::get_attribute(self.device, which) }, || "querying GPU properties".into())
    }

    pub(crate) fn name(&self) -> String {
        name(self.device)
    }

    /// A non-zero number derived from the UUID, which identifies the device on any computer.
    pub(crate) fn address(&self) -> Result<u64, DeviceError> {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: a pointer to live memory.
        check(unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, self.device) }, || "querying the GPU's UUID".into())?;
        let fnv = |h: u64, b: &std::ffi::c_char| (h ^ u64::from(*b as u8)).wrapping_mul(0x0000_0100_0000_01b3);
        Ok(uuid.bytes.iter().fold(0xcbf2_9ce4_8422_2325, fnv).max(1))
    }

    /// Free and total bytes of the device.
    pub(crate) fn memory(&self) -> Result<(usize, usize), DeviceError> {
        self.bind()?;
        during(result::mem_get_info(), || "querying free memory".into())
    }
}

impl Drop for CudaContext {
    fn drop(&mut self) {
        // SAFETY: retained once in `new`. A failure here cannot be reported.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// A queue of work.
#[derive(Debug)]
pub(crate) struct CudaStream(pub(crate) CUstream);

// SAFETY: a stream handle may be used from any thread; the driver locks.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    pub(crate) fn new() -> Result<CudaStream, DeviceError> {
        during(result::stream::create(StreamKind::NonBlocking), || "creating a stream".into()).map(CudaStream)
    }

    /// A stream whose kernels have priority over the kernels of other streams.
    pub(crate) fn urgent() -> Result<CudaStream, DeviceError> {
        let (_, greatest) = during(result::stream::get_priority_range(), || "querying priorities".into())?;
        let stream = result::stream::create_with_priority(StreamKind::NonBlocking, greatest);
        during(stream, || "creating a stream".into()).map(CudaStream)
    }

    /// Makes later work of this stream wait for `event`.
    pub(crate) fn after(&self, event: &CudaEvent) -> Result<(), DeviceError> {
        // SAFETY: both live.
        check(unsafe { sys::cuStreamWaitEvent(self.0, event.0, 0) }, || "ordering streams".into())
    }

    /// Returns `true` if everything in the stream is done.
    pub(crate) fn idle(&self) -> Result<bool, DeviceError> {
        // SAFETY: the stream lives.
        let code = unsafe { sys::cuStreamQuery(self.0) };
        if code == CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        check(code, || "waiting for the GPU".into()).map(|()| true)
    }

    pub(crate) fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream lives.
        check(unsafe { sys::cuStreamSynchronize(self.0) }, || "waiting for the GPU".into())
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        // SAFETY: created in `new` and not used after.
        unsafe { sys::cuStreamDestroy_v2(self.0) };
    }
}

/// A point in a stream.
#[derive(Debug)]
pub(crate) struct CudaEvent(sys::CUevent);

// SAFETY: an event handle may be used from any thread; the driver locks.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// A `timed` event can measure times; an untimed one is cheaper.
    pub(crate) fn new(timed: bool) -> Result<CudaEvent, DeviceError> {
        CudaEvent::with(if timed { 0 } else { sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32 })
    }

    /// An event whose waiting threads sleep, which leaves their processors to other work.
    pub(crate) fn to_sleep_for() -> Result<CudaEvent, DeviceError> {
        use sys::CUevent_flags_enum as F;
        CudaEvent::with(F::CU_EVENT_DISABLE_TIMING as u32 | F::CU_EVENT_BLOCKING_SYNC as u32)
    }

    fn with(flags: u32) -> Result<CudaEvent, DeviceError> {
        let mut e = std::ptr::null_mut();
        // SAFETY: a pointer to a live handle; a context is current.
        check(unsafe { sys::cuEventCreate(&mut e, flags) }, || "creating an event".into())?;
        Ok(CudaEvent(e))
    }

    pub(crate) fn record(&self, stream: &CudaStream) -> Result<(), DeviceError> {
        // SAFETY: both live.
        check(unsafe { sys::cuEventRecord(self.0, stream.0) }, || "recording an event".into())
    }

    /// [`CudaEvent::record`] in another library's stream, whose owner keeps it alive during the call; 1 and 2 are
    /// default streams.
    pub(crate) fn record_in(&self, stream: CUstream) -> Result<(), DeviceError> {
        // SAFETY: both live: the owner of the stream guarantees it.
        check(unsafe { sys::cuEventRecord(self.0, stream) }, || "recording an event in another library's stream".into())
    }

    /// Makes later work of another library's stream wait for the event; see [`CudaEvent::record_in`].
    pub(crate) fn precedes(&self, stream: CUstream) -> Result<(), DeviceError> {
        // SAFETY: both live: the owner of the stream guarantees it.
        check(unsafe { sys::cuStreamWaitEvent(stream, self.0, 0) }, || "ordering another library's stream".into())
    }

    pub(crate) fn wait(&self) -> Result<(), DeviceError> {
        self.wait_for(|| "waiting for the GPU".into())
    }

    /// Waits for the event; `what` describes the awaited work for the error.
    pub(crate) fn wait_for(&self, what: impl FnOnce() -> String) -> Result<(), DeviceError> {
        // SAFETY: the event lives.
        check(unsafe { sys::cuEventSynchronize(self.0) }, what)
    }

    /// Returns `true` if the GPU has passed the event.
    pub(crate) fn passed(&self) -> Result<bool, DeviceError> {
        // SAFETY: the event lives.
        let code = unsafe { sys::cuEventQuery(self.0) };
        if code == CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        check(code, || "waiting for the GPU".into()).map(|()| true)
    }

    /// Milliseconds since `start`; both must have passed.
    pub(crate) fn since(&self, start: &CudaEvent) -> Result<f32, DeviceError> {
        // SAFETY: both events live.
        during(unsafe { result::event::elapsed(start.0, self.0) }, || "reading a time".into())
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: created in `new` and not used after.
        unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}
