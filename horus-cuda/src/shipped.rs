//! A file of compiled kernels that ships with a release, so that even a first run compiles nothing.
//!
//! `horus-kernels` writes the file. `HORUS_KERNELS` names it or is `off`; the default is [`NAME`] in the directory of
//! the executable, or in `../lib/horus` from there. A kernel is found by its source, the compiler's options and the
//! architecture. The user's cache comes first; a kernel that is not in the package is compiled. An unusable package is
//! reported once. Code is read and checked on demand. Format: `docs/design/cuda.md`.

mod installed;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::cache::hash;
use crate::codegen::KernelLimits;

/// The file's name in the directory of an executable.
pub const NAME: &str = "horus-kernels.bin";
/// The first bytes of the file.
pub const MAGIC: [u8; 8] = *b"HORUSKRN";
/// Version of the format.
const FORM: u32 = 1;
const HEAD: usize = 24;
const ENTRY: usize = 40;
const SUM: usize = 4;

/// Resource limits of a GPU of sm_`arch`, as its driver reports them; `None` for an unknown
/// architecture.
pub fn limits(arch: u32) -> Option<KernelLimits> {
    let kib = match arch {
        75 => 64,
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        90 | 100 | 103 | 110 => 227,
        _ => return None,
    };
    Some(KernelLimits { shared: kib << 10 })
}

/// The key of a kernel in a package.
fn key(source: &str, options: &[&str], arch: u32) -> u128 {
    hash(&[format!("sm_{arch} {}\n", options.join(" ")).as_bytes(), source.as_bytes()])
}

/// Machine code to be shipped.
///
/// ```
/// use horus_cuda::shipped::{Package, Packing};
///
/// let mut packing = Packing::new((13, 0));
/// packing.add("source", &["-fmad=false"], 90, vec![1, 2, 3]);
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("kernels.bin");
/// std::fs::write(&path, packing.bytes())?;
/// let package = Package::open(&path)?;
/// assert_eq!(package.find("source", &["-fmad=false"], 90), Some(vec![1, 2, 3]));
/// assert_eq!(package.find("source", &["-fmad=false"], 80), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Packing {
    compiler: (i32, i32),
    code: BTreeMap<u128, (u32, Vec<u8>)>,
}

impl Packing {
    /// An empty package for code of this compiler version.
    pub fn new(compiler: (i32, i32)) -> Packing {
        Packing { compiler, code: BTreeMap::new() }
    }

    /// Adds `code`, the result of compiling `source` with `options` for sm_`arch`.
    pub fn add(&mut self, source: &str, options: &[&str], arch: u32, code: Vec<u8>) {
        self.code.insert(key(source, options, arch), (arch, code));
    }

    /// The bytes of the package; the order of additions does not affect them.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let (major, minor) = self.compiler;
        let count = self.code.len() as u32;
        for word in [FORM, major.cast_unsigned(), minor.cast_unsigned(), count] {
            bytes.extend(word.to_le_bytes());
        }
        let mut offset = (HEAD + ENTRY * self.code.len() + SUM) as u64;
        for (key, (arch, code)) in &self.code {
            let length = code.len() as u64;
            bytes.extend(key.to_le_bytes());
            bytes.extend(arch.to_le_bytes());
            bytes.extend(crc32fast::hash(code).to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            bytes.extend(length.to_le_bytes());
            offset += length;
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        self.code.values().for_each(|(_, code)| bytes.extend(code));
        bytes
    }
}

/// A kernel of a package.
#[derive(Clone, Copy, Debug)]
struct PackagedKernel {
    key: u128,
    arch: u32,
    sum: u32,
    offset: u64,
    length: u64,
}

/// A file of compiled kernels.
#[derive(Debug)]
pub struct Package {
    path: PathBuf,
    file: Mutex<File>,
    compiler: (i32, i32),
    /// By key.
    entries: Vec<PackagedKernel>,
    has_warned: AtomicBool,
}

impl Package {
    /// Opens a package without reading its code.
    ///
    /// # Errors
    /// If it cannot be read, is not a package, has another format, or has a damaged table.
    pub fn open(path: &Path) -> std::io::Result<Package> {
        Package::of(path, File::open(path)?)
    }

    /// The package in an open file.
    fn of(path: &Path, mut file: File) -> std::io::Result<Package> {
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(wrong("it is not a regular file"));
        }
        let mut head = Vec::with_capacity(HEAD);
        (&mut file).take(HEAD as u64).read_to_end(&mut head)?;
        if !head.starts_with(&MAGIC) {
            return Err(wrong("it is no package of kernels"));
        }
        let mut words = head[MAGIC.len()..].chunks_exact(4).map(word);
        let mut next = || words.next().ok_or_else(|| wrong("it ends early"));
        let (form, major, minor, count) = (next()?, next()?, next()?, next()?);
        if form != FORM {
            return Err(wrong(format!("its form has the version {form}, and this program knows {FORM}")));
        }
        let rest = u64::from(count) * ENTRY as u64 + SUM as u64;
        if data.len() < HEAD as u64 + rest {
            return Err(wrong("it ends early"));
        }
        let mut table = head;
        (&mut file).take(rest).read_to_end(&mut table)?;
        let Some((table, sum)) = table.split_last_chunk::<SUM>() else { return Err(wrong("it ends early")) };
        if crc32fast::hash(table) != u32::from_le_bytes(*sum) {
            return Err(wrong("it is damaged"));
        }
        let entries: Vec<PackagedKernel> = table[HEAD..].chunks_exact(ENTRY).map(entry).collect();
        let ends = entries.iter().map(|e| e.offset.saturating_add(e.length));
        if ends.max().is_some_and(|end| end > data.len()) {
            return Err(wrong("it ends early"));
        }
        let compiler = (major.cast_signed(), minor.cast_signed());
        Ok(Package {
            path: path.to_owned(),
            file: Mutex::new(file),
            compiler,
            entries,
            has_warned: AtomicBool::new(false),
        })
    }

    /// Major and minor version of the compiler that made the code.
    pub fn compiler(&self) -> (i32, i32) {
        self.compiler
    }

    /// Number of kernels for each architecture.
    pub fn architectures(&self) -> BTreeMap<u32, usize> {
        let mut found = BTreeMap::new();
        self.entries.iter().for_each(|e| *found.entry(e.arch).or_default() += 1);
        found
    }

    /// The machine code of `source`, compiled with `options` for sm_`arch`; `None` if it is missing or damaged. The
    /// first damaged one is reported by a warning.
    pub fn find(&self, source: &str, options: &[&str], arch: u32) -> Option<Vec<u8>> {
        let key = key(source, options, arch);
        let entry = &self.entries[self.entries.binary_search_by_key(&key, |e| e.key).ok()?];
        let read = self.read(entry);
        if let Err(e) = &read
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            horus_core::warn!("a compiled kernel of {} is not used: {e}", self.path.display());
        }
        read.ok()
    }

    fn read(&self, entry: &PackagedKernel) -> std::io::Result<Vec<u8>> {
        let mut code = Vec::new();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(entry.offset))?;
        (&mut *file).take(entry.length).read_to_end(&mut code)?;
        drop(file);
        if code.len() as u64 != entry.length || crc32fast::hash(&code) != entry.sum {
            return Err(wrong("it is damaged"));
        }
        Ok(code)
    }
}

fn wrong(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, why.into())
}

/// The number in 4 bytes.
fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// The entry in [`ENTRY`] bytes.
fn entry(bytes: &[u8]) -> PackagedKernel {
    let number = |from: usize, len: usize| bytes[from..from + len].iter().rev().fold(0, |n, b| n << 8 | u128::from(*b));
    let (arch, sum) = (word(&bytes[16..20]), word(&bytes[20..24]));
    PackagedKernel { key: number(0, 16), arch, sum, offset: number(24, 8) as u64, length: number(32, 8) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[&str] = &["-a", "-b"];

    fn packing() -> Packing {
        let mut packing = Packing::new((13, 0));
        packing.add("one", OPTIONS, 80, b"one for 80".to_vec());
        packing.add("one", OPTIONS, 90, b"one for 90, longer".to_vec());
        packing.add("two", OPTIONS, 90, vec![7; 300]);
        packing
    }

    /// The package of these bytes, with the folder of its file.
    fn package(bytes: &[u8]) -> (tempfile::TempDir, std::io::Result<Package>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, bytes).unwrap();
        (folder, Package::open(&path))
    }

    /// The kernels of `packing` found in a package.
    fn found(package: &Package) -> [Option<Vec<u8>>; 3] {
        [("one", 80), ("one", 90), ("two", 90)].map(|(source, arch)| package.find(source, OPTIONS, arch))
    }

    #[test]
    fn what_goes_in_comes_out_and_nothing_else() {
        let (_folder, opened) = package(&packing().bytes());
        let package = opened.unwrap();
        let expected = [b"one for 80".to_vec(), b"one for 90, longer".to_vec(), vec![7; 300]];
        assert_eq!(found(&package), expected.clone().map(Some));
        assert_eq!(found(&package), expected.map(Some), "and again, in any order");
        assert_eq!(package.compiler(), (13, 0));
        assert_eq!(package.architectures(), BTreeMap::from([(80, 1), (90, 2)]));
        for (source, options, arch) in [
            ("two", OPTIONS, 80),
            ("one", OPTIONS, 100),
            ("one ", OPTIONS, 90),
            ("one", &["-a"], 90),
            ("one", &["-b", "-a"], 90),
        ] {
            assert_eq!(package.find(source, options, arch), None, "{source:?} {options:?} {arch}");
        }
        assert_ne!(key("one", OPTIONS, 90), key("one", OPTIONS, 80));
        assert_ne!(key("one", OPTIONS, 90), key("one", &["-a", "-c"], 90));
    }

    #[test]
    fn bytes_are_those_of_the_documented_form_in_any_order_of_adding() {
        let mut other = Packing::new((13, 0));
        other.add("two", OPTIONS, 90, vec![7; 300]);
        other.add("one", OPTIONS, 90, b"something else".to_vec());
        other.add("one", OPTIONS, 80, b"one for 80".to_vec());
        other.add("one", OPTIONS, 90, b"one for 90, longer".to_vec());
        let bytes = packing().bytes();
        assert_eq!(other.bytes(), bytes);
        assert_eq!(&bytes[..24], b"HORUSKRN\x01\0\0\0\x0d\0\0\0\0\0\0\0\x03\0\0\0");
        assert_eq!(bytes.len(), 24 + 3 * 40 + 4 + 10 + 18 + 300);
        let keys: Vec<&[u8]> = bytes[24..144].chunks(40).map(|e| &e[..16]).collect();
        assert!(keys.iter().any(|k| **k == key("one", OPTIONS, 80).to_le_bytes()));
        let empty = Packing::new((12, 9)).bytes();
        assert!(package(&empty).1.unwrap().architectures().is_empty());
    }

    #[test]
    fn a_file_that_ends_early_is_no_package() {
        let bytes = packing().bytes();
        for length in 0..bytes.len() {
            assert!(package(&bytes[..length]).1.is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn no_changed_bit_is_taken_for_code() {
        let bytes = packing().bytes();
        let (_folder, whole) = package(&bytes);
        let whole = found(&whole.unwrap());
        let table = 24 + 3 * 40 + 4;
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let (_folder, opened) = package(&changed);
            let Ok(package) = opened else { continue };
            assert!(bit / 8 >= table, "bit {bit} of the table changed unseen");
            let left = found(&package);
            assert_eq!(left.iter().filter(|f| f.is_none()).count(), 1, "bit {bit}: one kernel is damaged");
            assert!(left.iter().zip(&whole).all(|(now, was)| now.is_none() || now == was));
        }
    }

    #[test]
    fn why_a_file_is_no_package_is_said() {
        let said = |bytes: &[u8]| package(bytes).1.unwrap_err().to_string();
        let mut bytes = packing().bytes();
        assert_eq!(said(&bytes[..500 - 100]), "it ends early");
        bytes[30] ^= 1;
        assert_eq!(said(&bytes), "it is damaged");
        bytes[8] = 2;
        assert_eq!(said(&bytes), "its form has the version 2, and this program knows 1");
        assert_eq!(said(b"\x7fELF and more of another file"), "it is no package of kernels");
        assert_eq!(said(b""), "it is no package of kernels");
        // A count for which all memory is too little.
        let mut much = packing().bytes();
        much[20..24].fill(0xff);
        assert_eq!(said(&much), "it ends early");
        let folder = tempfile::tempdir().unwrap();
        assert!(Package::open(folder.path()).is_err(), "a folder");
        let missing = Package::open(&folder.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
