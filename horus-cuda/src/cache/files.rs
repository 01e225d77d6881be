//! The files of the cache: their ownership, atomic writes and checksums.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::time::SystemTime;

/// Bytes of the checksum at the end of an entry.
pub(super) const TRAILER: usize = 16;

/// Creates the directory for this user alone and checks that it can be trusted.
pub(super) fn ready(directory: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    own(&std::fs::metadata(directory)?)
}

/// Fails if anyone but this user and root owns the file or may write to it.
#[cfg(unix)]
fn own(data: &std::fs::Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    // SAFETY: asks for a number, and always succeeds.
    let user = unsafe { libc::geteuid() };
    let refused = |why: String| Err(Error::new(ErrorKind::PermissionDenied, why));
    if ![0, user].contains(&data.uid()) {
        return refused(format!("it belongs to user {}, not to this one ({user}) or root", data.uid()));
    }
    if data.mode() & 0o022 != 0 {
        return refused(format!("others may write to it (mode {:o}; `chmod go-w` helps)", data.mode() & 0o7777));
    }
    Ok(())
}

#[cfg(not(unix))]
fn own(_: &std::fs::Metadata) -> std::io::Result<()> {
    Ok(())
}

/// Opens a regular file for reading; anything else of that name, a link too, is an error.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    let data = file.metadata()?;
    if !data.is_file() {
        return Err(Error::new(ErrorKind::InvalidData, "it is not a regular file"));
    }
    own(&data)?;
    Ok(file)
}

pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return None,
        Err(e) => {
            horus_core::warn!("{} is not used: {e}", path.display());
            return None;
        }
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let body = bytes.len().checked_sub(TRAILER)?;
    let sum = u128::from_le_bytes(bytes[body..].try_into().ok()?);
    if hash(&[&bytes[..body]]) != sum {
        horus_core::warn!("{} is damaged and will be rebuilt", path.display());
        return None;
    }
    bytes.truncate(body);
    // Last use is best effort: nobody can set the time in a directory that root owns.
    let _ = file.set_modified(SystemTime::now());
    Some(bytes)
}

/// Writes an entry and returns its size. The file is for this user alone and gets its name when it is complete.
pub(super) fn write(directory: &Path, path: &Path, cubin: &[u8]) -> std::io::Result<u64> {
    let mut file = tempfile::Builder::new().suffix(".tmp").tempfile_in(directory)?;
    file.write_all(cubin)?;
    file.write_all(&hash(&[cubin]).to_le_bytes())?;
    file.persist(path)?;
    Ok((cubin.len() + TRAILER) as u64)
}

/// A 128-bit hash of the parts: FNV's multiplication over words of 8 bytes, with the high half folded back after each
/// (every launch hashes its source). The length of each part follows it, so that different lists never hash the same
/// bytes.
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
