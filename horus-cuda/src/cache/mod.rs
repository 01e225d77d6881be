//! Compiled kernels on disk, so that the second run of a program compiles nothing.
//!
//! An entry is one file, named by a hash of everything that the machine code depends on. Processes can share the
//! directory: a file is renamed when it is complete. A checksum detects accidents, not tampering; a damaged entry is
//! rebuilt. `HORUS_CACHE` names the directory or is `off`; the default is `horus/cubin` in `XDG_CACHE_HOME` or
//! `~/.cache`. The entries take at most [`MOST`] bytes.
//!
//! Entries are executed, so anyone who can write one can run code. On Unix, directory and entries must belong to this
//! user or to root, nobody else may write to them, and an entry must not be a link.

mod files;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use horus_core::settings::CACHE;

pub(crate) use files::hash;
use files::{read, ready, write};

/// Version of the entry format.
const FORMAT: u64 = 2;
/// Most bytes of entries, some 1,400 kernels. Above it, the least recently used are removed until a quarter is free.
pub const MOST: u64 = 256 << 20;
/// Age from which an unfinished file is removed.
const LITTER: Duration = Duration::from_secs(3600);

/// A directory of compiled kernels, or none.
#[derive(Clone, Debug)]
pub struct DiskCache {
    directory: Option<PathBuf>,
    most: u64,
    /// `true` if the directory is trusted; set at the first check.
    trusted: OnceLock<bool>,
    /// Bytes of entries known to this process; unset before its first entry.
    size: Arc<OnceLock<AtomicU64>>,
}

impl DiskCache {
    /// The cache named by the environment.
    pub fn from_environment() -> DiskCache {
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let directory = match CACHE.path() {
            Some(v) if v.as_os_str() == "off" => None,
            Some(v) => Some(v),
            None => variable("XDG_CACHE_HOME")
                .or_else(|| variable("HOME").map(|h| h.join(".cache")))
                .map(|d| d.join("horus").join("cubin")),
        };
        DiskCache::of(directory)
    }

    /// A cache in `directory`.
    pub fn at(directory: impl Into<PathBuf>) -> DiskCache {
        DiskCache::of(Some(directory.into()))
    }

    fn of(directory: Option<PathBuf>) -> DiskCache {
        DiskCache { directory, most: MOST, trusted: OnceLock::new(), size: Arc::default() }
    }

    /// Limits the entries to `bytes` bytes (default: [`MOST`]).
    #[must_use]
    pub fn within(mut self, bytes: u64) -> DiskCache {
        self.most = bytes;
        self
    }

    /// Returns the entry for `source` compiled with `options` for sm_`arch` by a compiler of `version`: from disk if it
    /// is intact, otherwise from `build`, whose result is stored. The second value is `true` if `build` was called.
    ///
    /// # Errors
    /// Only errors of `build`: an unusable cache slows a program down but does not fail it.
    pub fn get<E>(
        &self,
        source: &str,
        options: &[&str],
        arch: u32,
        version: (i32, i32),
        build: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<(Vec<u8>, bool), E> {
        let Some(directory) = self.directory.as_deref().filter(|d| self.trusts(d)) else {
            return build().map(|b| (b, true));
        };
        let describe = format!("{FORMAT} sm_{arch} {}.{} {}\n", version.0, version.1, options.join(" "));
        let path = directory.join(format!("{:032x}.cubin", hash(&[describe.as_bytes(), source.as_bytes()])));
        if let Some(entry) = read(&path) {
            return Ok((entry, false));
        }
        let built = build()?;
        match write(directory, &path, &built) {
            Ok(bytes) => self.keep_within(directory, bytes),
            Err(e) => log::debug!("cannot keep a compiled kernel in {}: {e}", path.display()),
        }
        Ok((built, true))
    }

    /// The text stored under this name, if it is present and intact.
    pub(crate) fn note(&self, name: &str) -> Option<String> {
        let directory = self.directory.as_deref().filter(|d| self.trusts(d))?;
        String::from_utf8(read(&directory.join(name).with_extension("note"))?).ok()
    }

    /// Stores a text under this name if the cache is usable.
    pub(crate) fn keep_note(&self, name: &str, text: &str) {
        let Some(directory) = self.directory.as_deref().filter(|d| self.trusts(d)) else { return };
        if let Err(e) = write(directory, &directory.join(name).with_extension("note"), text.as_bytes()) {
            log::debug!("cannot keep {name} in {}: {e}", directory.display());
        }
    }

    /// Returns `true` if entries of the directory may be run; otherwise warns once per process.
    fn trusts(&self, directory: &Path) -> bool {
        *self.trusted.get_or_init(|| match ready(directory) {
            Ok(()) => true,
            Err(e) => {
                static WARNED: AtomicBool = AtomicBool::new(false);
                if !WARNED.swap(true, Ordering::Relaxed) {
                    horus_core::warn!("compiled kernels are not kept in {}: {e}", directory.display());
                }
                false
            }
        })
    }

    /// Evicts entries if `added` more bytes exceed the limit.
    fn keep_within(&self, directory: &Path, added: u64) {
        let known = self.size.get();
        let size = match known {
            Some(size) => size.fetch_add(added, Ordering::Relaxed) + added,
            // The directory already holds the new entry.
            None => entries(directory).iter().map(|e| e.bytes).sum(),
        };
        let left = if size > self.most { evict(directory, self.most / 4 * 3) } else { size };
        match known {
            Some(size) if left < self.most => size.store(left, Ordering::Relaxed),
            Some(_) => {}
            None => drop(self.size.set(AtomicU64::new(left))),
        }
    }
}

/// A file of the cache.
struct CacheFile {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Lists the entries, ignores other files, and removes those that processes left unfinished.
fn entries(directory: &Path) -> Vec<CacheFile> {
    let Ok(files) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for file in files.flatten() {
        let (path, Ok(data)) = (file.path(), file.metadata()) else { continue };
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        match extension {
            "cubin" if data.is_file() => found.push(CacheFile { path, bytes: data.len(), used }),
            "tmp" if used.elapsed().is_ok_and(|age| age > LITTER) => {
                // Another process may be faster; a file that stays is removed the next time.
                let _ = std::fs::remove_file(&path);
            }
            _ => {}
        }
    }
    found
}

/// Removes the least recently used entries until at most `most` bytes are left, and returns the
/// bytes left.
fn evict(directory: &Path, most: u64) -> u64 {
    let mut found = entries(directory);
    found.sort_by_key(|e| e.used);
    let mut left: u64 = found.iter().map(|e| e.bytes).sum();
    for entry in found {
        if left <= most {
            break;
        }
        match std::fs::remove_file(&entry.path) {
            Err(e) if e.kind() != ErrorKind::NotFound => log::debug!("{} stays: {e}", entry.path.display()),
            _ => left -= entry.bytes,
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::files::TRAILER;
    use super::*;

    fn get(cache: &DiskCache, source: &str, built: &[u8]) -> (Vec<u8>, bool) {
        cache.get(source, &["-x"], 90, (13, 0), || Ok::<_, ()>(built.to_vec())).unwrap()
    }

    #[test]
    fn an_entry_is_built_once_and_again_when_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::at(dir.path().join("deep"));
        assert_eq!(get(&cache, "a", b"one"), (b"one".to_vec(), true));
        assert_eq!(get(&cache, "a", b"two"), (b"one".to_vec(), false));
        assert_eq!(get(&cache, "b", b"three"), (b"three".to_vec(), true));
        for entry in std::fs::read_dir(dir.path().join("deep")).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[0] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
        assert_eq!(get(&cache, "a", b"four"), (b"four".to_vec(), true));
        assert_eq!(get(&cache, "a", b"five"), (b"four".to_vec(), false));
    }

    #[test]
    fn notes_are_kept_and_damaged_ones_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::at(dir.path());
        assert_eq!(cache.note("one"), None);
        cache.keep_note("one", "first");
        cache.keep_note("one", "second");
        assert_eq!(DiskCache::at(dir.path()).note("one").as_deref(), Some("second"));
        std::fs::write(dir.path().join("one.note"), "something else that is longer").unwrap();
        assert_eq!(cache.note("one"), None);
        assert!(entries(dir.path()).is_empty(), "notes are no kernels");
        let nowhere = DiskCache::of(None);
        nowhere.keep_note("one", "first");
        assert_eq!(nowhere.note("one"), None);
    }

    #[test]
    fn hashes_tell_parts_bits_and_lengths_apart() {
        let mut seen = std::collections::HashSet::new();
        let text = [7u8; 40];
        for n in 0..text.len() {
            assert!(seen.insert(hash(&[&text[..n]])));
            assert!(seen.insert(hash(&[&text[..n], &text[n..]])));
            for bit in 0..8 {
                let mut changed = text;
                changed[n] ^= 1 << bit;
                assert!(seen.insert(hash(&[&changed])));
            }
        }
        assert_ne!(hash(&[&[0]]), hash(&[&[0, 0]]));
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(get(&DiskCache::at(file), "a", b"one"), (b"one".to_vec(), true));
    }

    #[cfg(unix)]
    mod unix {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

        use super::*;

        fn mode(path: &Path, mode: u32) {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }

        fn files(directory: &Path) -> Vec<PathBuf> {
            let mut all: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
            all.sort();
            all
        }

        #[test]
        fn what_is_made_is_this_users_alone() {
            let dir = tempfile::tempdir().unwrap();
            let inner = dir.path().join("a").join("b");
            assert!(get(&DiskCache::at(&inner), "a", b"one").1);
            let bits = |p: &Path| std::fs::metadata(p).unwrap().mode() & 0o777;
            assert_eq!((bits(&inner), bits(&dir.path().join("a"))), (0o700, 0o700));
            let entries = files(&inner);
            assert_eq!(entries.len(), 1, "nothing but the entry: {entries:?}");
            assert_eq!(bits(&entries[0]), 0o600);
        }

        #[test]
        fn a_directory_that_others_may_write_to_is_neither_read_nor_written() {
            for bits in [0o777, 0o1777, 0o770, 0o702] {
                let dir = tempfile::tempdir().unwrap();
                assert!(get(&DiskCache::at(dir.path()), "a", b"planted").1);
                mode(dir.path(), bits);
                let cache = DiskCache::at(dir.path());
                assert_eq!(get(&cache, "a", b"own"), (b"own".to_vec(), true), "{bits:o}");
                assert_eq!(get(&cache, "b", b"other"), (b"other".to_vec(), true));
                assert_eq!(files(dir.path()).len(), 1, "nothing was added");
                mode(dir.path(), 0o755);
                assert_eq!(get(&DiskCache::at(dir.path()), "a", b"own"), (b"planted".to_vec(), false));
            }
        }

        #[test]
        fn an_entry_that_others_may_write_to_or_that_is_a_link_is_built_anew() {
            let dir = tempfile::tempdir().unwrap();
            let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
            assert!(get(&DiskCache::at(&outside), "a", b"planted").1);
            let planted = files(&outside).remove(0);
            let place = inside.join(planted.file_name().unwrap());
            let cache = DiskCache::at(&inside);
            assert!(get(&cache, "b", b"makes the directory").1);
            symlink(&planted, &place).unwrap();
            assert_eq!(get(&cache, "a", b"own"), (b"own".to_vec(), true));
            assert!(std::fs::symlink_metadata(&place).unwrap().is_file(), "the link was replaced, not followed");
            assert_eq!(get(&DiskCache::at(&outside), "a", b"x"), (b"planted".to_vec(), false));
            mode(&place, 0o622);
            assert_eq!(get(&cache, "a", b"anew"), (b"anew".to_vec(), true));
            assert_eq!(get(&cache, "a", b"x"), (b"anew".to_vec(), false));
        }

        #[test]
        fn what_another_user_owns_is_not_trusted() {
            let dir = tempfile::tempdir().unwrap();
            assert!(get(&DiskCache::at(dir.path()), "a", b"one").1);
            let entry = files(dir.path()).remove(0);
            if chown(&entry, Some(12_345), None).is_err() {
                return; // only root can change a file's owner, so only root can test this
            }
            assert_eq!(get(&DiskCache::at(dir.path()), "a", b"two"), (b"two".to_vec(), true));
            chown(dir.path(), Some(12_345), None).unwrap();
            assert_eq!(get(&DiskCache::at(dir.path()), "a", b"three"), (b"three".to_vec(), true));
        }
    }

    #[test]
    fn what_was_used_least_recently_goes_when_there_is_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let entry = vec![7; 1000 - TRAILER];
        let put = |cache: &DiskCache, name: &str| get(cache, name, &entry).1;
        let cache = || DiskCache::at(dir.path()).within(10_000);
        let first = cache();
        for (age, name) in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].into_iter().enumerate() {
            let before = std::fs::read_dir(dir.path()).map_or(0, Iterator::count);
            assert!(put(&first, name));
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), before + 1);
            // Each entry was used a minute after the one before, long ago.
            let newest = entries(dir.path()).into_iter().max_by_key(|e| e.used).unwrap();
            let used = SystemTime::now() - Duration::from_secs(10_000 - 60 * age as u64);
            File::options().write(true).open(newest.path).unwrap().set_modified(used).unwrap();
        }
        let litter = dir.path().join("1-2-3.tmp");
        let old = SystemTime::now() - 2 * LITTER;
        File::create(&litter).unwrap().set_modified(old).unwrap();
        let mine = dir.path().join("notes.txt");
        File::create(&mine).unwrap().set_modified(old).unwrap();
        assert!(!put(&first, "a"), "used again");
        assert!(put(&first, "k"), "one too many");
        assert!(!litter.exists() && mine.exists());
        let left = entries(dir.path());
        assert_eq!(left.iter().map(|e| e.bytes).sum::<u64>(), 7000, "a quarter is free");
        for (name, gone) in
            [("a", false), ("k", false), ("j", false), ("g", false), ("f", false), ("e", true), ("b", true)]
        {
            assert_eq!(put(&cache().within(u64::MAX), name), gone, "{name}");
        }
        // Another process finds the existing entries.
        let other = cache().within(5000);
        assert!(put(&other, "z"));
        assert!(entries(dir.path()).iter().map(|e| e.bytes).sum::<u64>() <= 3750);
    }
}
