//! Sources of the bytes of a picture file.

use std::borrow::Cow;
use std::fmt::Debug;
use std::fs::{self, File, Metadata};
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::format::{FORMATS, alternatives};
use super::target::special;
use super::{Allocate, MEMORY_LIMIT, OpenOptions, PictureFormat, PictureHeader, cause, guarded};
use horus_base::digest::Digest;
use horus_base::error::DeviceError;
use horus_host::buffer::{HostBuffer, Reserved};
use horus_host::workers::Workers;

/// The format of a file, recognised by its first bytes.
pub(super) fn format_of(head: &[u8]) -> Result<&'static dyn PictureFormat, String> {
    if head.is_empty() {
        return Err("the file is empty".into());
    }
    if let Some(format) = FORMATS.iter().find(|format| format.facts().magic.iter().any(|magic| head.starts_with(magic)))
    {
        return Ok(*format);
    }
    let titles = |arrays: bool| {
        let some = FORMATS.iter().map(|format| format.facts()).filter(|facts| facts.types.is_empty() == arrays);
        let mut titles: Vec<&str> = some.map(|facts| facts.title).collect();
        titles.dedup();
        titles
    };
    let other = match head {
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "Gif",
        [b'D', b'D', b'S', b' ', ..] => "Dds",
        [0, 0, 1, 0, ..] => "Ico",
        [0, 0, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f', ..] => "Avif",
        _ if head.starts_with(b"#?RADIANCE") => "Hdr",
        _ if head.starts_with(b"farbfeld") => "Farbfeld",
        _ => return Err(format!("not a {} file, nor a NumPy array", alternatives(titles(false)))),
    };
    let all = alternatives([titles(false), titles(true)].concat());
    Err(format!("{other} files are not supported; use {all}"))
}

/// Resources for decoders.
#[derive(Clone, Copy)]
pub struct DecodeResources<'a> {
    /// Threads.
    pub workers: &'a Workers,
    /// Memory for pixels.
    pub allocate: Allocate<'a>,
    /// Counts other memory, if it is bounded.
    pub reserve: Option<Reserve<'a>>,
}

/// Counts bytes that others allocate, for the lifetime of the result; an error if they exceed the bound.
pub type Reserve<'a> = &'a dyn Fn(usize) -> Result<Reserved, DeviceError>;

impl DecodeResources<'_> {
    /// Rejects a picture that does not fit in memory together with its file, before the file is read, if its header
    /// says so.
    pub(super) fn expect(&self, source: &PictureSource<'_>) -> Result<(), String> {
        const SMALL: u64 = 1 << 20;
        if self.reserve.is_none() || source.format().facts().uses_hidden_memory || source.size() < SMALL {
            return Ok(());
        }
        // A byte of the header may encode any number of pixels.
        let header = guarded(|| source.format().header(source, &OpenOptions::default()));
        let Ok(PictureHeader { shape, dtype, .. }) = header else { return Ok(()) };
        let pixels = (shape.len() as u64).saturating_mul(dtype.size() as u64);
        let bytes = usize::try_from(source.size().saturating_add(pixels)).unwrap_or(usize::MAX);
        self.reserved(bytes).map(drop)
    }

    /// Counts bytes that a decoder allocates, for the lifetime of the result.
    pub(super) fn reserved(&self, bytes: usize) -> Result<Option<Reserved>, String> {
        self.reserve.map(|reserve| reserve(bytes)).transpose().map_err(|e| e.to_string())
    }
}

/// The bytes of a picture file, in memory or in a file. Clones share the file.
#[derive(Clone, Debug)]
pub(super) struct PictureSource<'a> {
    format: &'static dyn PictureFormat,
    /// The first bytes; the whole of a short file.
    head: Cow<'a, [u8]>,
    size: u64,
    rest: SourceContent<'a>,
}

#[derive(Clone, Debug)]
enum SourceContent<'a> {
    Memory(&'a [u8]),
    File(Arc<File>),
    Ranges(Arc<dyn ByteRanges>),
}

/// The bytes of a picture file that is not a file of this system, such as one on a server. They are read by ranges, on
/// any thread, several at a time, for `AnyImage::open_ranges`.
pub trait ByteRanges: Debug + Send + Sync {
    /// Number of bytes.
    fn size(&self) -> u64;

    /// Fills `to` with the bytes from `at` on, which are inside the file.
    ///
    /// # Errors
    /// The cause, without the name of the file.
    fn read_at(&self, at: u64, to: &mut [u8]) -> Result<(), String>;
}

/// Fills `to` with the bytes of a file from `at` on.
pub(super) fn read_exact_at(file: &File, at: u64, to: &mut [u8]) -> Result<(), String> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, to, at).map_err(cause);
    #[cfg(not(unix))]
    {
        // A file has one position, which threads share.
        static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut file = file;
        file.seek(SeekFrom::Start(at)).map_err(cause)?;
        file.read_exact(to).map_err(cause)
    }
}

impl PictureSource<'_> {
    /// Number of bytes that identify every format and contain the headers of simple ones.
    pub(super) const HEAD: usize = 4096;

    /// Opens a regular file that begins like a picture. Any other file may be endless or block, and is not read.
    pub(super) fn open(path: &Path) -> Result<PictureSource<'static>, String> {
        // Checked first, because opening a device can have side effects.
        regular(&fs::metadata(path).map_err(cause)?)?;
        let mut options = File::options();
        options.read(true);
        // If a pipe has replaced the file, opening does not wait for a writer.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        let file = options.open(path).map_err(cause)?;
        regular(&file.metadata().map_err(cause)?)?;
        PictureSource::of_file(file)
    }

    /// An open regular file.
    pub(super) fn of_file(file: File) -> Result<PictureSource<'static>, String> {
        // Bounds reading of a file that grows.
        let size = file.metadata().map_err(cause)?.len();
        let mut head = Vec::new();
        (&file).seek(SeekFrom::Start(0)).map_err(cause)?;
        (&file).take(size.min(Self::HEAD as u64)).read_to_end(&mut head).map_err(cause)?;
        let format = format_of(&head)?;
        Ok(PictureSource { format, head: head.into(), size, rest: SourceContent::File(Arc::new(file)) })
    }

    /// A source over the bytes of a file.
    pub(super) fn of(bytes: &[u8]) -> Result<PictureSource<'_>, String> {
        let head = &bytes[..bytes.len().min(Self::HEAD)];
        Ok(PictureSource {
            format: format_of(head)?,
            head: head.into(),
            size: bytes.len() as u64,
            rest: SourceContent::Memory(bytes),
        })
    }

    /// A source over bytes that are read by ranges.
    pub(super) fn of_ranges(ranges: Arc<dyn ByteRanges>) -> Result<PictureSource<'static>, String> {
        let size = ranges.size();
        let mut head = vec![0; size.min(Self::HEAD as u64) as usize];
        ranges.read_at(0, &mut head)?;
        Ok(PictureSource { format: format_of(&head)?, head: head.into(), size, rest: SourceContent::Ranges(ranges) })
    }

    pub(super) fn format(&self) -> &'static dyn PictureFormat {
        self.format
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// A number that tells a file from others at its path: of its first bytes, length and time of change. `None` for
    /// bytes in memory.
    pub(super) fn identity(&self) -> Option<u64> {
        let SourceContent::File(file) = &self.rest else { return None };
        let changed = file.metadata().ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let mut digest = Digest::default();
        (&*self.head, self.size, changed).hash(&mut digest);
        Some(digest.finish())
    }

    /// Fills `to` with the bytes from `at` on.
    ///
    /// # Errors
    /// A message, if there are fewer bytes.
    pub(super) fn read_at(&self, at: u64, to: &mut [u8]) -> Result<(), String> {
        match &self.rest {
            SourceContent::Memory(bytes) => {
                let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..)?.get(..to.len()));
                to.copy_from_slice(from.ok_or("the data is truncated")?);
                Ok(())
            }
            SourceContent::File(file) => read_exact_at(file, at, to),
            SourceContent::Ranges(ranges) => {
                let is_inside = at.checked_add(to.len() as u64).is_some_and(|end| end <= self.size);
                if is_inside { ranges.read_at(at, to) } else { Err("the data is truncated".into()) }
            }
        }
    }

    /// Reads all bytes, in memory from `room`.
    ///
    /// # Errors
    /// A message, if the bytes cannot be read or there is not enough memory.
    pub(super) fn all(&self, room: Allocate<'_>) -> Result<SourceBytes<'_>, String> {
        if let SourceContent::Memory(bytes) = &self.rest {
            return Ok(SourceBytes::Borrowed(bytes));
        }
        if self.size > MEMORY_LIMIT {
            let size = self.size;
            return Err(format!("the file has {size} bytes; the limit of its format is {MEMORY_LIMIT}"));
        }
        let size = usize::try_from(self.size).map_err(|e| e.to_string())?;
        let mut all = room(size).map_err(|e| e.to_string())?;
        let mut file = match &self.rest {
            SourceContent::File(file) => &**file,
            _ => {
                self.read_at(0, all.bytes_mut())?;
                return Ok(SourceBytes::Read(all, size));
            }
        };
        let mut free = all.bytes_mut();
        file.seek(SeekFrom::Start(0)).map_err(cause)?;
        // The file may have shrunk.
        while !free.is_empty() {
            match file.read(free) {
                Ok(0) => break,
                Ok(n) => free = &mut free[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(cause(e)),
            }
        }
        let read = size - free.len();
        Ok(SourceBytes::Read(all, read))
    }
}

/// A source that is read from a position on.
#[derive(Debug)]
pub(super) struct PositionedSource<'a> {
    source: PictureSource<'a>,
    pub(super) at: u64,
}

impl<'a> PictureSource<'a> {
    /// Reads the source from its beginning.
    pub(super) fn positioned(&self) -> PositionedSource<'a> {
        PositionedSource { source: self.clone(), at: 0 }
    }

    /// Reads the source from its beginning, some kilobytes at a time.
    pub(super) fn reader(&self) -> BufReader<PositionedSource<'a>> {
        BufReader::new(self.positioned())
    }
}

impl Read for PositionedSource<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.source.size().saturating_sub(self.at);
        let n = to.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.source.read_at(self.at, &mut to[..n]).map_err(io::Error::other)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for PositionedSource<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.source.size().checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

/// All bytes of a file.
pub(super) enum SourceBytes<'a> {
    Borrowed(&'a [u8]),
    /// The first bytes of a buffer.
    Read(HostBuffer, usize),
}

impl Deref for SourceBytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            SourceBytes::Borrowed(bytes) => bytes,
            SourceBytes::Read(buffer, bytes) => &buffer.bytes()[..*bytes],
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
        let title = |head: &[u8]| format_of(head).map(|format| format.facts().title);
        assert_eq!(title(b"MM\0*________"), Ok("TIFF"));
        assert_eq!(title(b"II+\0________"), Ok("TIFF"));
        assert_eq!(title(b"\x93NUMPY\x01\0"), Ok("npy"));
        assert_eq!(title(b"P5 2 2 255 _"), Ok("PNM"));
        assert!(
            title(b"GIF89a____________")
                .unwrap_err()
                .ends_with("; use PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 or npy")
        );
        let unknown = title(b"something else").unwrap_err();
        assert_eq!(
            unknown,
            "not a PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP or JPEG 2000 file, nor a NumPy array"
        );
        assert_eq!(title(b"").unwrap_err(), "the file is empty");
    }

    #[test]
    fn a_file_of_holes_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MEMORY_LIMIT + 1).unwrap();
        let refused = |path: &Path| {
            PictureSource::open(path)
                .and_then(|source| source.all(&HostBuffer::try_zeroed).map(drop))
                .expect_err("not read")
        };
        assert!(refused(file.path()).contains("not a PNG"));
        std::io::Write::write_all(&mut file.as_file(), b"\x89PNG\r\n\x1a\n").unwrap();
        assert!(refused(file.path()).contains("8589934593 bytes; the limit of its format is"));
    }
}
