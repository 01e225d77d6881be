//! The run-time compiler of a device, loaded only when something must be compiled.
//!
//! Loading NVRTC takes as long as making a context. A device locates the library and reads its properties from the
//! cache; see `docs/design/cuda.md`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use crate::cache::{DiskCache, hash};
use crate::nvrtc::{CompileError, Nvrtc, candidates};

/// Returns `true` if every NVRTC of this major version is known to compile for sm_`arch`.
fn surely_compiles(major: i32, arch: u32) -> bool {
    match major {
        12 => (75..=90).contains(&arch),
        13 => (75..=90).contains(&arch) || [100, 103, 110, 120, 121].contains(&arch),
        _ => false,
    }
}

/// Cached properties of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NvrtcProperties {
    version: (i32, i32),
    architectures: Vec<u32>,
}

impl NvrtcProperties {
    fn of(nvrtc: &Nvrtc) -> NvrtcProperties {
        NvrtcProperties { version: nvrtc.version(), architectures: nvrtc.architectures().to_vec() }
    }

    /// The text in the cache: `13.0 75 80 86`.
    fn text(&self) -> String {
        let architectures: String = self.architectures.iter().map(|a| format!(" {a}")).collect();
        format!("{}.{}{architectures}", self.version.0, self.version.1)
    }

    fn parse(text: &str) -> Option<NvrtcProperties> {
        let mut words = text.split(' ');
        let (major, minor) = words.next()?.split_once('.')?;
        let architectures = words.map(|w| w.parse().ok()).collect::<Option<Vec<u32>>>()?;
        Some(NvrtcProperties { version: (major.parse().ok()?, minor.parse().ok()?), architectures })
    }
}

/// A library that was located and not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NvrtcFile {
    path: PathBuf,
    /// Major version in the file's name.
    major: Option<i32>,
    /// Name of the note in the cache; it changes with the file.
    name: String,
}

impl NvrtcFile {
    fn at(path: &Path) -> Option<NvrtcFile> {
        let path = path.canonicalize().ok()?;
        let data = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let changed = data.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (size, changed) = (data.len().to_le_bytes(), changed.as_nanos().to_le_bytes());
        let name = format!("nvrtc-{:032x}", hash(&[path.as_os_str().as_encoded_bytes(), &size, &changed]));
        Some(NvrtcFile { major: major(path.file_name()?.to_str()?), name, path })
    }
}

/// The major version in the name of a library: 13 of `libnvrtc.so.13.0.88`.
fn major(name: &str) -> Option<i32> {
    let version = name.split_once(".so.")?.1;
    version.split('.').next()?.parse().ok()
}

/// The paths of libraries called `name` in the index of the system's loader.
fn indexed<'a>(index: &'a [u8], name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    // The header and tables of the index have no such strings; anything that resembles one is checked on disk.
    let strings = index.split(|b| *b == 0).filter(|s| s.first() == Some(&b'/'));
    strings.filter_map(|s| std::str::from_utf8(s).ok()).map(PathBuf::from).filter(move |p| p.ends_with(name))
}

/// The usual places of the system's loader for the library called `name`.
fn places<'a>(name: &'a Path, index: &'a [u8]) -> impl Iterator<Item = PathBuf> + 'a {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named: Vec<PathBuf> = std::env::split_paths(&named).filter(|d| d.is_absolute()).collect();
    let usual = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from);
    let in_index = name.to_str().into_iter().flat_map(move |n| indexed(index, n));
    let inside = move |d: PathBuf| d.join(name);
    named.into_iter().map(inside).chain(in_index).chain(usual.into_iter().map(inside))
}

/// The library that would be loaded, if it is easily located, of a major version up to `newest`.
fn locate(newest: i32) -> Option<NvrtcFile> {
    let index = std::fs::read("/etc/ld.so.cache").unwrap_or_default(); // absent on other systems
    let find = |candidate: PathBuf| match candidate.parent() {
        Some(p) if p.as_os_str().is_empty() => places(&candidate, &index).find_map(|p| NvrtcFile::at(&p)),
        _ => NvrtcFile::at(&candidate),
    };
    candidates().into_iter().filter_map(find).find(|f| f.major.is_none_or(|m| m <= newest))
}

/// The compiler of a device.
#[derive(Debug)]
pub(crate) struct KernelCompiler {
    /// Newest usable major version: the driver does not run code of a newer compiler.
    newest: i32,
    found: Option<NvrtcFile>,
    known: Option<NvrtcProperties>,
    cache: DiskCache,
    /// The thread that loads the library in advance.
    loading: Mutex<Option<JoinHandle<Result<Nvrtc, CompileError>>>>,
    loaded: OnceLock<Result<Nvrtc, CompileError>>,
}

impl KernelCompiler {
    /// Locates the library. Begins to load it if it is `likely` to be used and its properties are not cached.
    ///
    /// # Errors
    /// If there is no library.
    pub(crate) fn begin(newest: i32, cache: &DiskCache, likely: bool) -> Result<KernelCompiler, CompileError> {
        KernelCompiler::of(locate(newest), newest, cache, likely)
    }

    fn of(
        found: Option<NvrtcFile>,
        newest: i32,
        cache: &DiskCache,
        likely: bool,
    ) -> Result<KernelCompiler, CompileError> {
        let known = found.as_ref().and_then(|f| NvrtcProperties::parse(&cache.note(&f.name)?));
        let known = known.filter(|k| k.version.0 <= newest);
        let compiler = KernelCompiler {
            newest,
            found: found.clone(),
            known,
            cache: cache.clone(),
            loading: Mutex::default(),
            loaded: OnceLock::new(),
        };
        if found.is_none() {
            compiler.get()?;
        } else if likely && compiler.known.is_none() {
            let cache = cache.clone();
            let load = move || load(found.as_ref(), None, newest, &cache);
            // Without a thread the library is loaded on first use.
            *compiler.loading.lock().unwrap_or_else(PoisonError::into_inner) =
                std::thread::Builder::new().name("horus-nvrtc".into()).spawn(load).ok();
        }
        Ok(compiler)
    }

    /// The library, loaded now if necessary.
    pub(crate) fn get(&self) -> Result<&Nvrtc, CompileError> {
        let settle = || {
            let loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner).take();
            match loading {
                Some(thread) => thread.join().unwrap_or_else(|_| Err(CompileError("loading NVRTC failed".into()))),
                None => load(self.found.as_ref(), self.known.as_ref(), self.newest, &self.cache),
            }
        };
        self.loaded.get_or_init(settle).as_ref().map_err(Clone::clone)
    }

    /// The library, if it compiles for `gpu`, which is sm_`arch`.
    pub(crate) fn for_gpu(&self, gpu: &str, arch: u32) -> Result<&Nvrtc, CompileError> {
        let nvrtc = self.get()?;
        compiles(nvrtc.version(), nvrtc.architectures(), gpu, arch).map(|()| nvrtc)
    }

    /// Checks that the library compiles for `gpu`, which is sm_`arch`; loads it only if the answer is not known
    /// otherwise.
    pub(crate) fn check(&self, gpu: &str, arch: u32) -> Result<(), CompileError> {
        if let Some(known) = &self.known {
            return compiles(known.version, &known.architectures, gpu, arch);
        }
        match self.found.as_ref().and_then(|f| f.major) {
            Some(major) if surely_compiles(major, arch) => Ok(()),
            _ => self.for_gpu(gpu, arch).map(drop),
        }
    }

    /// The version, which is part of the names of cached kernels; loads the library if the version is not cached.
    pub(crate) fn version(&self) -> Result<(i32, i32), CompileError> {
        match &self.known {
            Some(known) => Ok(known.version),
            None => self.get().map(Nvrtc::version),
        }
    }

    /// The version, if it is known without waiting for the library.
    pub(crate) fn known_version(&self) -> Option<(i32, i32)> {
        let loaded = || self.loaded.get()?.as_ref().ok().map(Nvrtc::version);
        self.known.as_ref().map(|known| known.version).or_else(loaded)
    }
}

fn compiles(version: (i32, i32), architectures: &[u32], gpu: &str, arch: u32) -> Result<(), CompileError> {
    if architectures.contains(&arch) {
        return Ok(());
    }
    Err(CompileError(format!("{gpu} is sm_{arch}, which NVRTC {version:?} does not compile for")))
}

/// Loads the located library, or else the one that the system finds, and caches its properties.
fn load(
    found: Option<&NvrtcFile>,
    known: Option<&NvrtcProperties>,
    newest: i32,
    cache: &DiskCache,
) -> Result<Nvrtc, CompileError> {
    let start = Instant::now();
    let told = |nvrtc: &Nvrtc| {
        let ((major, minor), ms) = (nvrtc.version(), start.elapsed().as_secs_f64() * 1e3);
        log::debug!("NVRTC {major}.{minor} loaded in {ms:.0} ms");
    };
    if let Some(found) = found {
        match Nvrtc::load_file(&found.path, newest) {
            Ok(nvrtc) => {
                told(&nvrtc);
                let is = NvrtcProperties::of(&nvrtc);
                if known != Some(&is) {
                    cache.keep_note(&found.name, &is.text());
                }
                return Ok(nvrtc);
            }
            Err(e) => log::debug!("{e}"),
        }
    }
    Nvrtc::load_at_most(newest).inspect(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_name_of_the_file() {
        let names = [("libnvrtc.so.13", Some(13)), ("libnvrtc.so.12.9.86", Some(12)), ("libnvrtc.so", None)];
        for (name, expected) in names.into_iter().chain([("nvrtc64_130_0.dll", None), ("libnvrtc.so.x", None)]) {
            assert_eq!(major(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_remembered_reads_as_it_was_written() {
        let known = NvrtcProperties { version: (13, 0), architectures: vec![75, 80, 121] };
        assert_eq!(known.text(), "13.0 75 80 121");
        assert_eq!(NvrtcProperties::parse(&known.text()), Some(known));
        for text in ["", "13", "13.0 x", "a.b", "13.0 "] {
            assert_eq!(NvrtcProperties::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn libraries_are_found_in_the_loaders_index() {
        let index = b"glibc-ld.so.cache1.1\x01\0\0\xff/odd\0libnvrtc.so.13\0/opt/cuda/libnvrtc.so.13\0\
                      libnvrtc.so.12\0/usr/lib/libnvrtc.so.12\0/else/notlibnvrtc.so.13\0/x/libnvrtc.so.13\0";
        let found: Vec<PathBuf> = indexed(index, "libnvrtc.so.13").collect();
        assert_eq!(found, ["/opt/cuda/libnvrtc.so.13", "/x/libnvrtc.so.13"].map(PathBuf::from));
    }

    #[test]
    fn another_file_in_the_same_place_has_another_name() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("libnvrtc.so.13.0.88"), dir.path().join("libnvrtc.so.13"));
        assert_eq!(NvrtcFile::at(&file), None);
        std::fs::write(&file, "one").unwrap();
        let first = NvrtcFile::at(&file).unwrap();
        assert_eq!((first.major, &first), (Some(13), &NvrtcFile::at(&file).unwrap()));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&file, &link).unwrap();
            assert_eq!(NvrtcFile::at(&link).unwrap(), first, "a link leads there");
        }
        drop(link);
        std::fs::write(&file, "longer").unwrap();
        assert_ne!(NvrtcFile::at(&file).unwrap().name, first.name);
        assert_eq!(NvrtcFile::at(dir.path()), None, "a directory is no library");
    }

    /// A compiler whose located file is not a library.
    fn broken(dir: &Path, known: Option<NvrtcProperties>) -> KernelCompiler {
        let path = dir.join("libnvrtc.so.13");
        std::fs::write(&path, "no library").unwrap();
        let (loading, loaded) = (Mutex::default(), OnceLock::new());
        KernelCompiler { newest: 0, found: NvrtcFile::at(&path), known, cache: DiskCache::at(dir), loading, loaded }
    }

    #[test]
    fn nothing_is_loaded_while_the_answer_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let known = NvrtcProperties { version: (13, 0), architectures: vec![90, 100] };
        let compiler = broken(dir.path(), Some(known));
        assert_eq!(compiler.version().unwrap(), (13, 0));
        assert_eq!(compiler.known_version(), Some((13, 0)));
        compiler.check("GPU", 100).unwrap();
        let refused = compiler.check("GPU", 70).unwrap_err().to_string();
        assert_eq!(refused, "GPU is sm_70, which NVRTC (13, 0) does not compile for");
        assert!(compiler.loaded.get().is_none());
        assert!(compiler.get().is_err(), "and what must be loaded is not there");
    }

    #[test]
    fn usual_gpus_need_no_answer_and_others_load_the_library() {
        let dir = tempfile::tempdir().unwrap();
        let compiler = broken(dir.path(), None);
        for arch in [80, 90, 100, 120] {
            compiler.check("GPU", arch).unwrap();
        }
        assert_eq!(compiler.known_version(), None);
        assert!(compiler.loaded.get().is_none());
        assert!(compiler.check("GPU", 70).is_err());
        assert!(compiler.version().is_err());
        assert!(surely_compiles(12, 90) && !surely_compiles(12, 100) && !surely_compiles(14, 90));
    }

    #[test]
    fn the_library_is_loaded_ahead_only_where_it_is_likely_to_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("libnvrtc.so.13");
        std::fs::write(&path, "no library").unwrap();
        let begun = |likely| KernelCompiler::of(NvrtcFile::at(&path), 0, &DiskCache::at(dir.path()), likely).unwrap();
        assert!(begun(true).loading.lock().unwrap().is_some());
        let idle = begun(false);
        assert!(idle.loading.lock().unwrap().is_none() && idle.loaded.get().is_none());
        assert!(idle.get().is_err(), "it is loaded when it is needed");
    }
}
