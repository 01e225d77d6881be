//! The run-time compiler, loaded on first use.
//!
//! `HORUS_NVRTC` names the library, or a directory that contains it; otherwise the system's loader finds it. The PyPI
//! package `nvidia-cuda-nvrtc` contains one.
//!
//! The bindings in the crate `cudarc` to NVRTC and NCCL search only where the system does, and panic if the library or
//! a function is missing. Here both are errors that say what to do.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use horus_core::settings;
use libloading::Library;

/// Options of every compilation. They make results equal to the CPU's: contraction only where the source says fma, IEEE
/// division and square root, denormals kept.
pub const OPTIONS: &[&str] = &["--std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"];

/// Options that affect compile time only: no warnings, and from the given version on no declarations that these kernels
/// do not use (textures, the device runtime).
const QUICK: &str = "-w";
const MINIMAL: ((i32, i32), &str) = ((13, 0), "--minimal");

type NvrtcStatus = c_int;
type NvrtcProgram = *mut c_void;

/// The reason why nothing was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError(pub String);

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for CompileError {}

/// The functions of the library that are used.
struct NvrtcFunctions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> NvrtcStatus,
    error: unsafe extern "C" fn(NvrtcStatus) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut NvrtcProgram,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> NvrtcStatus,
    destroy: unsafe extern "C" fn(*mut NvrtcProgram) -> NvrtcStatus,
    compile: unsafe extern "C" fn(NvrtcProgram, c_int, *const *const c_char) -> NvrtcStatus,
    log_size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> NvrtcStatus,
    log: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> NvrtcStatus,
    cubin_size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> NvrtcStatus,
    cubin: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> NvrtcStatus,
    arch_count: unsafe extern "C" fn(*mut c_int) -> NvrtcStatus,
    archs: unsafe extern "C" fn(*mut c_int) -> NvrtcStatus,
}

/// The loaded compiler.
pub struct Nvrtc {
    functions: NvrtcFunctions,
    version: (i32, i32),
    architectures: Vec<u32>,
    // The functions above live as long as the library, which uses the other one.
    _library: Library,
    _builtins: Option<Library>,
}

impl std::fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nvrtc").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Candidates for the library: files, and names that the system's loader resolves.
pub(crate) fn candidates() -> Vec<PathBuf> {
    places(settings::NVRTC.path())
}

/// Candidates: the place that the user `chose`, or the default.
fn places(chosen: Option<PathBuf>) -> Vec<PathBuf> {
    const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "nvrtc64_130_0.dll"];
    let names = NAMES.iter().map(PathBuf::from);
    match chosen {
        Some(p) if p.is_dir() => NAMES.iter().map(|n| p.join(n)).collect(),
        Some(p) => vec![p],
        None => names.chain(NAMES.iter().map(|n| Path::new("/usr/local/cuda/lib64").join(n))).collect(),
    }
}

impl Nvrtc {
    /// Loads the library.
    ///
    /// # Errors
    /// If it is not found, or is not NVRTC.
    pub fn load() -> Result<Nvrtc, CompileError> {
        Nvrtc::load_at_most(i32::MAX)
    }

    /// Loads the library of a major version up to `newest`: drivers do not run machine code of a newer one.
    ///
    /// # Errors
    /// If it is not found, is too new, or is not NVRTC.
    pub fn load_at_most(newest: i32) -> Result<Nvrtc, CompileError> {
        let mut reason = String::from("no library");
        for path in candidates() {
            match Nvrtc::open(&path, newest)? {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(why) => reason = why,
            }
        }
        Err(CompileError(format!(
            "the CUDA run-time compiler (NVRTC) was not found ({reason}); it comes with the CUDA toolkit or with \
             `pip install nvidia-cuda-nvrtc` (then set HORUS_NVRTC to the directory of its libnvrtc.so)"
        )))
    }

    /// Loads the library at `path`, if its major version is not above `newest`.
    ///
    /// # Errors
    /// If it cannot be loaded, is too new, or is not NVRTC.
    pub(crate) fn load_file(path: &Path, newest: i32) -> Result<Nvrtc, CompileError> {
        Nvrtc::open(path, newest)?.map_err(CompileError)
    }

    /// The library at `path`, or the reason for not using it; an error if it is not NVRTC.
    fn open(path: &Path, newest: i32) -> Result<Result<Nvrtc, String>, CompileError> {
        // SAFETY: loading runs the initialisers of a library that the user or the system names as
        // NVRTC.
        let library = match unsafe { Library::new(path) } {
            Ok(library) => library,
            Err(e) => return Ok(Err(e.to_string())),
        };
        let mut nvrtc = Nvrtc::bind(library).map_err(|e| CompileError(format!("{}: {e}", path.display())))?;
        let (major, minor) = nvrtc.version;
        if major > newest {
            let path = path.display();
            return Ok(Err(format!("{path} is of CUDA {major}, and the driver runs at most CUDA {newest}")));
        }
        // Some versions search for their builtins library by name only; loading the one in NVRTC's directory makes it
        // found.
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            let builtins = folder.join(format!("libnvrtc-builtins.so.{major}.{minor}"));
            // SAFETY: as above. If there is none, NVRTC searches for it and reports its absence.
            nvrtc._builtins = unsafe { Library::new(builtins) }.ok();
        }
        Ok(Ok(nvrtc))
    }

    fn bind(library: Library) -> Result<Nvrtc, CompileError> {
        fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, CompileError> {
            // SAFETY: every caller below names the type of the C function as nvrtc.h declares it.
            unsafe { library.get::<T>(name.as_bytes()) }.map(|s| *s).map_err(|e| CompileError(e.to_string()))
        }
        let functions = NvrtcFunctions {
            version: symbol(&library, "nvrtcVersion")?,
            error: symbol(&library, "nvrtcGetErrorString")?,
            create: symbol(&library, "nvrtcCreateProgram")?,
            destroy: symbol(&library, "nvrtcDestroyProgram")?,
            compile: symbol(&library, "nvrtcCompileProgram")?,
            log_size: symbol(&library, "nvrtcGetProgramLogSize")?,
            log: symbol(&library, "nvrtcGetProgramLog")?,
            cubin_size: symbol(&library, "nvrtcGetCUBINSize")?,
            cubin: symbol(&library, "nvrtcGetCUBIN")?,
            arch_count: symbol(&library, "nvrtcGetNumSupportedArchs")?,
            archs: symbol(&library, "nvrtcGetSupportedArchs")?,
        };
        let mut nvrtc =
            Nvrtc { functions, version: (0, 0), architectures: Vec::new(), _library: library, _builtins: None };
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the pointers are to live integers.
        nvrtc.check(unsafe { (nvrtc.functions.version)(&mut major, &mut minor) })?;
        // SAFETY: as above.
        nvrtc.check(unsafe { (nvrtc.functions.arch_count)(&mut count) })?;
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has room for as many as the library said there are.
        nvrtc.check(unsafe { (nvrtc.functions.archs)(archs.as_mut_ptr()) })?;
        nvrtc.version = (major, minor);
        nvrtc.architectures = archs.into_iter().filter_map(|a| u32::try_from(a).ok()).collect();
        nvrtc.architectures.sort_unstable();
        Ok(nvrtc)
    }

    /// Major and minor version.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Architectures it compiles for, ascending; 90 is sm_90.
    pub fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    fn check(&self, status: NvrtcStatus) -> Result<(), CompileError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a static string for any code.
        let text = unsafe { CStr::from_ptr((self.functions.error)(status)) };
        Err(CompileError(text.to_string_lossy().into_owned()))
    }

    /// Compiles `source` to machine code for sm_`arch`.
    ///
    /// # Errors
    /// With the compiler's messages.
    pub fn compile(&self, source: &str, arch: u32) -> Result<Vec<u8>, CompileError> {
        let text = CString::new(source).map_err(|e| CompileError(e.to_string()))?;
        let mut program: NvrtcProgram = std::ptr::null_mut();
        // SAFETY: `text` and the name are C strings, there are no headers.
        self.check(unsafe {
            (self.functions.create)(
                &mut program,
                text.as_ptr(),
                c"horus.cu".as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        })?;
        let result = self.compile_program(program, arch);
        // SAFETY: the program was created above and is not used after.
        unsafe { (self.functions.destroy)(&mut program) };
        result
    }

    fn compile_program(&self, program: NvrtcProgram, arch: u32) -> Result<Vec<u8>, CompileError> {
        let own = format!("-arch=sm_{arch}");
        let minimal = (self.version >= MINIMAL.0).then_some(MINIMAL.1);
        let options = OPTIONS.iter().copied().chain([&*own, QUICK]).chain(minimal);
        let options: Result<Vec<CString>, _> = options.map(CString::new).collect();
        let options = options.map_err(|e| CompileError(e.to_string()))?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let f = &self.functions;
        // SAFETY: the options are as many C strings as said, alive during the call.
        let status = unsafe { (f.compile)(program, pointers.len() as c_int, pointers.as_ptr()) };
        let mut size = 0;
        if let Err(e) = self.check(status) {
            // SAFETY: a pointer to a live integer.
            self.check(unsafe { (f.log_size)(program, &mut size) })?;
            let mut log = vec![0u8; size.max(1)];
            // SAFETY: the log has the size that the library says, with the 0 at its end.
            self.check(unsafe { (f.log)(program, log.as_mut_ptr().cast()) })?;
            let log = String::from_utf8_lossy(&log);
            return Err(CompileError(format!("{e}\n{}", log.trim_end_matches('\0'))));
        }
        // SAFETY: a pointer to a live integer.
        self.check(unsafe { (f.cubin_size)(program, &mut size) })?;
        let mut cubin = vec![0u8; size];
        // SAFETY: the buffer has the size that the library says.
        self.check(unsafe { (f.cubin)(program, cubin.as_mut_ptr().cast()) })?;
        Ok(cubin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_not_looked_for_in_the_working_folder() {
        for path in places(None).into_iter().chain(crate::nccl::places(None)) {
            // The system's loader searches for a bare name, which is not there.
            assert!(path.is_absolute() || path.components().count() == 1, "{}", path.display());
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(places(Some(folder.path().to_owned())).iter().all(|path| path.starts_with(folder.path())));
        let file = folder.path().join("libnvrtc.so");
        assert_eq!(places(Some(file.clone())), [file]);
    }
}
