//! NVIDIA's library for communication between GPUs, loaded when ranks first connect their devices.
//!
//! `HORUS_NCCL` names the library, or a directory that contains it; otherwise the system's loader finds it. The PyPI
//! packages `nvidia-nccl-cu12` and `nvidia-nccl-cu13` contain one.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use horus_core::error::DeviceError;
use horus_core::settings;
use libloading::Library;

use crate::driver::CudaStream;

type NcclStatus = c_int;
const SUCCESS: NcclStatus = 0;
const IN_PROGRESS: NcclStatus = 7;
/// `ncclUint8`.
const BYTE: c_int = 1;

/// `ncclComm_t`.
pub(crate) type NcclComm = *mut c_void;

/// `ncclUniqueId`: identifies a communicator.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct NcclId(pub(crate) [u8; 128]);

type NcclTransfer = unsafe extern "C" fn(*const c_void, usize, c_int, c_int, NcclComm, *mut c_void) -> NcclStatus;

/// The functions of the library that are used, as declared in `nccl.h`.
struct NcclFunctions {
    version: unsafe extern "C" fn(*mut c_int) -> NcclStatus,
    id: unsafe extern "C" fn(*mut NcclId) -> NcclStatus,
    init: unsafe extern "C" fn(*mut NcclComm, c_int, NcclId, c_int) -> NcclStatus,
    abort: unsafe extern "C" fn(NcclComm) -> NcclStatus,
    async_error: unsafe extern "C" fn(NcclComm, *mut NcclStatus) -> NcclStatus,
    error: unsafe extern "C" fn(NcclStatus) -> *const c_char,
    /// Since NCCL 2.13.
    last_error: Option<unsafe extern "C" fn(NcclComm) -> *const c_char>,
    group_start: unsafe extern "C" fn() -> NcclStatus,
    group_end: unsafe extern "C" fn() -> NcclStatus,
    send: NcclTransfer,
    receive: NcclTransfer,
}

/// The loaded library; never unloaded, because it has its own threads.
pub(crate) struct Nccl {
    functions: NcclFunctions,
    version: u64,
    path: PathBuf,
}

/// Bytes at a device address, sent to or received from a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankMessage {
    pub(crate) rank: usize,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

/// Candidates for the library: the place that the user `chose`, or the default.
pub(crate) fn places(chosen: Option<PathBuf>) -> Vec<PathBuf> {
    const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];
    match chosen {
        Some(p) if p.is_dir() => NAMES.iter().map(|n| p.join(n)).collect(),
        Some(p) => vec![p],
        None => {
            let installed = NAMES.iter().map(|n| Path::new("/usr/local/cuda/lib64").join(n));
            NAMES.iter().map(PathBuf::from).chain(installed).collect()
        }
    }
}

impl Nccl {
    /// The library, loaded once per process.
    pub(crate) fn get() -> Result<&'static Nccl, String> {
        static NCCL: OnceLock<Result<&'static Nccl, String>> = OnceLock::new();
        NCCL.get_or_init(Nccl::load).clone()
    }

    fn load() -> Result<&'static Nccl, String> {
        let mut reason = String::from("no library");
        for path in places(settings::NCCL.path()) {
            // SAFETY: loading runs the initialisers of a library that the user or the system names
            // as NCCL.
            match unsafe { Library::new(&path) } {
                Ok(library) => {
                    let library = Box::leak(Box::new(library));
                    let nccl = Nccl::bind(library, &path).map_err(|e| format!("{}: {e}", path.display()))?;
                    log::debug!("NCCL {} at {}", nccl.version, nccl.path.display());
                    return Ok(Box::leak(Box::new(nccl)));
                }
                Err(e) => reason = e.to_string(),
            }
        }
        Err(format!(
            "NCCL was not found ({reason}); it comes with many CUDA installations or with `pip install nvidia-nccl-cu13` (then \
             set HORUS_NCCL to the directory of its libnccl.so.2)"
        ))
    }

    fn bind(library: &'static Library, path: &Path) -> Result<Nccl, String> {
        fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
            // SAFETY: every caller below names the type of the C function as nccl.h declares it.
            unsafe { library.get::<T>(name.as_bytes()) }.map(|s| *s).map_err(|e| e.to_string())
        }
        let functions = NcclFunctions {
            version: symbol(library, "ncclGetVersion")?,
            id: symbol(library, "ncclGetUniqueId")?,
            init: symbol(library, "ncclCommInitRank")?,
            abort: symbol(library, "ncclCommAbort")?,
            async_error: symbol(library, "ncclCommGetAsyncError")?,
            error: symbol(library, "ncclGetErrorString")?,
            last_error: symbol(library, "ncclGetLastError").ok(),
            group_start: symbol(library, "ncclGroupStart")?,
            group_end: symbol(library, "ncclGroupEnd")?,
            send: symbol(library, "ncclSend")?,
            receive: symbol(library, "ncclRecv")?,
        };
        let mut version = 0;
        // SAFETY: a pointer to a live integer.
        let status = unsafe { (functions.version)(&mut version) };
        if status != SUCCESS || version <= 0 {
            return Err(format!("ncclGetVersion returned {status}"));
        }
        Ok(Nccl { functions, version: u64::from(version.unsigned_abs()), path: path.to_owned() })
    }

    /// The version: 22304 is 2.23.4.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    fn check(&self, status: NcclStatus, what: &str) -> Result<(), DeviceError> {
        if status == SUCCESS {
            return Ok(());
        }
        let f = &self.functions;
        // SAFETY: both functions return static strings, or null.
        let text = |s: *const c_char| match s.is_null() {
            true => String::new(),
            // SAFETY: a string of the library, which is not unloaded.
            false => unsafe { CStr::from_ptr(s) }.to_string_lossy().trim().to_owned(),
        };
        // SAFETY: defined for any code.
        let name = text(unsafe { (f.error)(status) });
        // SAFETY: a null communicator asks for the last error of this process.
        let detail = f.last_error.map(|last| text(unsafe { last(std::ptr::null_mut()) })).filter(|d| !d.is_empty());
        let detail = detail.map_or(String::new(), |d| format!(": {d}"));
        Err(DeviceError::Driver(format!("NCCL: {what}: {name} (code {status}){detail}")))
    }

    /// A new communicator's id, which rank 0 sends to the others.
    pub(crate) fn id(&self) -> Result<NcclId, DeviceError> {
        let mut id = NcclId([0; 128]);
        // SAFETY: a pointer to live memory of the size that the library fills.
        self.check(unsafe { (self.functions.id)(&mut id) }, "creating an NCCL id")?;
        Ok(id)
    }

    /// Joins the other ranks, on the device of the current context; returns when all have joined.
    pub(crate) fn join(&self, id: NcclId, rank: usize, size: usize) -> Result<NcclComm, DeviceError> {
        let int = |n: usize| c_int::try_from(n).map_err(|_| DeviceError::Limit("NCCL: too many ranks".into()));
        let (rank, size, mut handle) = (int(rank)?, int(size)?, std::ptr::null_mut());
        // SAFETY: a pointer to a live handle; a context is current.
        self.check(unsafe { (self.functions.init)(&mut handle, size, id, rank) }, "joining the other ranks")?;
        Ok(handle)
    }

    /// Aborts work under way and the communicator.
    ///
    /// # Safety
    /// The handle must be from [`Nccl::join`] and not be used again.
    pub(crate) unsafe fn abort(&self, handle: NcclComm) {
        // SAFETY: the caller's promise. A failure to abort cannot be reported.
        unsafe { (self.functions.abort)(handle) };
    }

    /// Any error since the last call, on this rank or another.
    ///
    /// # Safety
    /// The handle must be from [`Nccl::join`] and not aborted.
    pub(crate) unsafe fn failure(&self, handle: NcclComm) -> Result<(), DeviceError> {
        let mut status = SUCCESS;
        // SAFETY: by the caller's promise, and a pointer to a live integer.
        let asked = unsafe { (self.functions.async_error)(handle, &mut status) };
        self.check(asked, "querying errors")?;
        if status == IN_PROGRESS { Ok(()) } else { self.check(status, "an exchange") }
    }

    /// Enqueues one exchange.
    ///
    /// # Safety
    /// The handle must be from [`Nccl::join`] and not aborted. Only one thread may call at a time,
    /// and every part must be device memory of its length until the stream has passed the exchange.
    pub(crate) unsafe fn exchange(
        &self,
        handle: NcclComm,
        stream: &CudaStream,
        sends: &[RankMessage],
        receives: &[RankMessage],
    ) -> Result<(), DeviceError> {
        let f = &self.functions;
        let call = |transfer: NcclTransfer, p: &RankMessage, what: &str| {
            let rank = c_int::try_from(p.rank).unwrap_or(-1);
            // SAFETY: by the caller's promise.
            let status = unsafe { transfer(p.address as *const c_void, p.bytes, BYTE, rank, handle, stream.0.cast()) };
            self.check(status, &format!("{what} rank {}", p.rank))
        };
        // SAFETY: begins a group, which is ended below in any case.
        self.check(unsafe { (f.group_start)() }, "beginning an exchange")?;
        let sent = sends.iter().try_for_each(|p| call(f.send, p, "sending to"));
        let all = sent.and_then(|()| receives.iter().try_for_each(|p| call(f.receive, p, "receiving from")));
        // SAFETY: ends the group begun above.
        let ended = self.check(unsafe { (f.group_end)() }, "an exchange");
        all.and(ended)
    }
}
