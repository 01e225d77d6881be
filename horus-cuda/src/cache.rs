//! Compiled kernels on disk, so that the second run of a program compiles nothing.
//!
//! An entry is one file, named by a hash of everything that the machine code depends on. It is written under another
//! name and moved into place, so that processes may share the directory; it ends with a checksum, and an entry that does
//! not match its checksum is built anew. `HORUS_CACHE` names the directory, or is `off`; else it is `horus/cubin` in
//! `XDG_CACHE_HOME` or `~/.cache`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Changes when the form of an entry does.
const FORMAT: u64 = 2;
const TRAILER: usize = 16;

/// A directory of compiled kernels, or none.
#[derive(Clone, Debug)]
pub struct DiskCache {
    directory: Option<PathBuf>,
}

impl DiskCache {
    /// The cache that the environment asks for.
    pub fn from_environment() -> DiskCache {
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let directory = match variable("HORUS_CACHE") {
            Some(v) if v.as_os_str() == "off" => None,
            Some(v) => Some(v),
            None => variable("XDG_CACHE_HOME")
                .or_else(|| variable("HOME").map(|h| h.join(".cache")))
                .map(|d| d.join("horus").join("cubin")),
        };
        DiskCache { directory }
    }

    /// A cache in `directory`.
    pub fn at(directory: impl Into<PathBuf>) -> DiskCache {
        DiskCache { directory: Some(directory.into()) }
    }

    /// The entry for `source` compiled with `options` for sm_`arch` by a compiler of `version`; from disk if it is
    /// there and whole, else from `build`, whose result is kept. The second value says whether it was built.
    ///
    /// # Errors
    /// Only what `build` reports: a cache that cannot be written is a slow one, not a failure.
    pub fn get<E>(
        &self,
        source: &str,
        options: &[&str],
        arch: u32,
        version: (i32, i32),
        build: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<(Vec<u8>, bool), E> {
        let Some(directory) = &self.directory else { return build().map(|b| (b, true)) };
        let describe = format!("{FORMAT} sm_{arch} {}.{} {}\n", version.0, version.1, options.join(" "));
        let path = directory.join(format!("{:032x}.cubin", hash(&[describe.as_bytes(), source.as_bytes()])));
        if let Some(entry) = read(&path) {
            return Ok((entry, false));
        }
        let built = build()?;
        if let Err(e) = write(directory, &path, &built) {
            log::debug!("cannot keep a compiled kernel in {}: {e}", path.display());
        }
        Ok((built, true))
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = std::fs::read(path).ok()?;
    let body = bytes.len().checked_sub(TRAILER)?;
    let sum = u128::from_le_bytes(bytes[body..].try_into().ok()?);
    if hash(&[&bytes[..body]]) != sum {
        log::warn!("{} is damaged and is built anew", path.display());
        return None;
    }
    bytes.truncate(body);
    Some(bytes)
}

fn write(directory: &Path, path: &Path, cubin: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(directory)?;
    let own = format!("{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let temporary = directory.join(own);
    let mut bytes = cubin.to_vec();
    bytes.extend(hash(&[cubin]).to_le_bytes());
    let done = std::fs::write(&temporary, &bytes).and_then(|()| std::fs::rename(&temporary, path));
    if done.is_err() {
        // The failure is reported; what is left of the attempt is only litter.
        let _ = std::fs::remove_file(&temporary);
    }
    done
}

/// A 128-bit hash of the parts, each followed by its length, so that no two lists of parts read the same: FNV's
/// multiplication over words of 8 bytes, with the high half folded back after each. Every launch hashes its source.
pub(crate) fn hash(parts: &[&[u8]]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut h: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut take = |word: u64| {
        h = (h ^ u128::from(word)).wrapping_mul(PRIME);
        h ^= h >> 67;
    };
    for part in parts {
        let (words, rest) = part.as_chunks::<8>();
        words.iter().for_each(|w| take(u64::from_le_bytes(*w)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        take(u64::from_le_bytes(last));
        take(part.len() as u64);
    }
    h
}

#[cfg(test)]
mod tests {
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
}
