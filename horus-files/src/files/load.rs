//! Sources of the bytes of a picture file.

use std::borrow::Cow;
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::bounds::MEMORY_LIMIT;
use super::codec::Header;
use super::decode::guarded;
use super::picture::Allocate;
use super::target::{cause, special};
use horus_base::error::DeviceError;
use horus_host::host::buffer::{HostBuffer, Reserved};
use horus_host::host::workers::Workers;

/// The kind of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tiff,
    Npy,
    Png,
    Jpeg,
    Pnm,
    Bmp,
    Exr,
}

impl Kind {
    pub(super) fn of(bytes: &[u8]) -> Result<Kind, String> {
        // Plain and large TIFF files of either byte order.
        const TIFF: [&[u8]; 4] = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];
        const NPY: &[u8] = b"\x93NUMPY";
        if bytes.is_empty() {
            return Err("the file is empty".into());
        }
        if TIFF.iter().any(|magic| bytes.starts_with(magic)) {
            return Ok(Kind::Tiff);
        }
        if bytes.starts_with(NPY) {
            return Ok(Kind::Npy);
        }
        let other = match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => return Ok(Kind::Png),
            [0xff, 0xd8, 0xff, ..] => return Ok(Kind::Jpeg),
            [b'P', b'1'..=b'7', ..] => return Ok(Kind::Pnm),
            [b'B', b'M', ..] => return Ok(Kind::Bmp),
            [0x76, 0x2f, 0x31, 0x01, ..] => return Ok(Kind::Exr),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "Gif",
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "WebP",
            [b'D', b'D', b'S', b' ', ..] => "Dds",
            [0, 0, 1, 0, ..] => "Ico",
            [0, 0, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f', ..] => "Avif",
            [b'q', b'o', b'i', b'f', ..] => "Qoi",
            _ if bytes.starts_with(b"#?RADIANCE") => "Hdr",
            _ if bytes.starts_with(b"farbfeld") => "Farbfeld",
            _ => return Err("not a PNG, JPEG, TIFF, PNM, BMP or OpenEXR file, nor a NumPy array".into()),
        };
        Err(format!("{other} files are not supported; use PNG, JPEG, TIFF, PNM, BMP, OpenEXR or npy"))
    }
}

/// Resources of decoders.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Threads.
    pub workers: &'a Workers,
    /// Memory for pixels.
    pub room: Allocate<'a>,
    /// Counts other memory, where it is bounded.
    pub reserve: Option<Reserve<'a>>,
}

/// Counts bytes allocated by others for the lifetime of the result; an error if there is no room for them.
pub type Reserve<'a> = &'a dyn Fn(usize) -> Result<Reserved, DeviceError>;

impl Means<'_> {
    /// Refuses a picture that does not fit in memory beside its file before the file is read. (The
    /// header of a JPEG file does not tell.)
    pub(super) fn expect(&self, source: &Source<'_>) -> Result<(), String> {
        const SMALL: u64 = 1 << 20;
        if self.reserve.is_none() || source.kind() == Kind::Jpeg || source.size() < SMALL {
            return Ok(());
        }
        // A byte of the header may encode any number of pixels.
        let Ok(Header { shape, dtype, .. }) = guarded(|| Header::of(source.kind(), source)) else { return Ok(()) };
        let pixels = (shape.len() as u64).saturating_mul(dtype.size() as u64);
        let bytes = usize::try_from(source.size().saturating_add(pixels)).unwrap_or(usize::MAX);
        self.reserved(bytes).map(drop)
    }

    /// Counts bytes that a decoder allocates itself, for the lifetime of the result.
    pub(super) fn reserved(&self, bytes: usize) -> Result<Option<Reserved>, String> {
        self.reserve.map(|reserve| reserve(bytes)).transpose().map_err(|e| e.to_string())
    }
}

/// The bytes of a picture file, in memory or in a file. Clones share the file.
#[derive(Clone, Debug)]
pub(super) struct Source<'a> {
    kind: Kind,
    /// The first bytes; all of a short file.
    head: Cow<'a, [u8]>,
    size: u64,
    rest: Rest<'a>,
}

#[derive(Clone, Debug)]
enum Rest<'a> {
    Memory(&'a [u8]),
    File(Arc<File>),
}

/// Fills `to` with the bytes of a file from `at` on.
pub(super) fn read_exact_at(file: &File, at: u64, to: &mut [u8]) -> Result<(), String> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, to, at).map_err(cause);
    #[cfg(not(unix))]
    {
        // Files have one position, which threads share.
        static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut file = file;
        file.seek(SeekFrom::Start(at)).map_err(cause)?;
        file.read_exact(to).map_err(cause)
    }
}

impl Source<'_> {
    /// Number of bytes that identify every format and contain the headers of simple ones.
    pub(super) const HEAD: usize = 4096;

    /// Opens a regular file that looks like a picture. Anything else may have no end or block, and
    /// is not read.
    pub(super) fn open(path: &Path) -> Result<Source<'static>, String> {
        // Checked first, since opening a device can have side effects.
        regular(&fs::metadata(path).map_err(cause)?)?;
        let mut options = File::options();
        options.read(true);
        // If a pipe has replaced it, opening does not wait for a writer.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        let file = options.open(path).map_err(cause)?;
        regular(&file.metadata().map_err(cause)?)?;
        Source::of_file(file)
    }

    /// An open regular file.
    pub(super) fn of_file(file: File) -> Result<Source<'static>, String> {
        // Bounds reading of a file that grows.
        let size = file.metadata().map_err(cause)?.len();
        let mut head = Vec::new();
        (&file).seek(SeekFrom::Start(0)).map_err(cause)?;
        (&file).take(size.min(Self::HEAD as u64)).read_to_end(&mut head).map_err(cause)?;
        let kind = Kind::of(&head)?;
        Ok(Source { kind, head: head.into(), size, rest: Rest::File(Arc::new(file)) })
    }

    /// The bytes of a file.
    pub(super) fn of(bytes: &[u8]) -> Result<Source<'_>, String> {
        let head = &bytes[..bytes.len().min(Self::HEAD)];
        Ok(Source { kind: Kind::of(head)?, head: head.into(), size: bytes.len() as u64, rest: Rest::Memory(bytes) })
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Fills `to` with the bytes from `at` on.
    ///
    /// # Errors
    /// A message, if there are fewer bytes.
    pub(super) fn read_at(&self, at: u64, to: &mut [u8]) -> Result<(), String> {
        match &self.rest {
            Rest::Memory(bytes) => {
                let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..)?.get(..to.len()));
                to.copy_from_slice(from.ok_or("the data is truncated")?);
                Ok(())
            }
            Rest::File(file) => read_exact_at(file, at, to),
        }
    }

    /// All bytes, in memory from `room`.
    ///
    /// # Errors
    /// A message, if they cannot be read or there is not enough memory.
    pub(super) fn all(&self, room: Allocate<'_>) -> Result<All<'_>, String> {
        let mut file = match &self.rest {
            Rest::Memory(bytes) => return Ok(All::Borrowed(bytes)),
            Rest::File(file) => &**file,
        };
        if self.size > MEMORY_LIMIT {
            let size = self.size;
            return Err(format!("the file has {size} bytes; the limit of its format is {MEMORY_LIMIT}"));
        }
        let size = usize::try_from(self.size).map_err(|e| e.to_string())?;
        let mut all = room(size).map_err(|e| e.to_string())?;
        let mut free = all.bytes_mut();
        file.seek(SeekFrom::Start(0)).map_err(cause)?;
        // A file that has shrunk is shorter now.
        while !free.is_empty() {
            match file.read(free) {
                Ok(0) => break,
                Ok(n) => free = &mut free[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(cause(e)),
            }
        }
        let read = size - free.len();
        Ok(All::Read(all, read))
    }
}

/// All bytes of a file.
pub(super) enum All<'a> {
    Borrowed(&'a [u8]),
    /// The first bytes of a buffer.
    Read(HostBuffer, usize),
}

impl Deref for All<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            All::Borrowed(bytes) => bytes,
            All::Read(buffer, bytes) => &buffer.bytes()[..*bytes],
        }
    }
}

fn regular(found: &Metadata) -> Result<(), String> {
    if found.is_file() { Ok(()) } else { Err(format!("it is {}, not a file", special(found))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_the_format() {
        assert_eq!(Kind::of(b"MM\0*________"), Ok(Kind::Tiff));
        assert_eq!(Kind::of(b"II+\0________"), Ok(Kind::Tiff));
        assert_eq!(Kind::of(b"\x93NUMPY\x01\0"), Ok(Kind::Npy));
        assert_eq!(Kind::of(b"P5 2 2 255 _"), Ok(Kind::Pnm));
        assert!(Kind::of(b"GIF89a____________").unwrap_err().contains("Gif files are not supported"));
        assert!(Kind::of(b"something else").unwrap_err().contains("not a PNG"));
        assert_eq!(Kind::of(b"").unwrap_err(), "the file is empty");
    }

    #[test]
    fn a_file_of_holes_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MEMORY_LIMIT + 1).unwrap();
        let refused = |path: &Path| {
            Source::open(path).and_then(|source| source.all(&HostBuffer::try_zeroed).map(drop)).expect_err("not read")
        };
        assert!(refused(file.path()).contains("not a PNG"));
        std::io::Write::write_all(&mut file.as_file(), b"\x89PNG\r\n\x1a\n").unwrap();
        assert!(refused(file.path()).contains("8589934593 bytes; the limit of its format is"));
    }
}
