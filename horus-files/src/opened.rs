//! Opened pictures: read now or, if large, on demand.

use std::env::temp_dir;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use tempfile::{SpooledData, spooled_tempfile};

use super::picture::IN_MEMORY;
use super::{
    ByteRanges, DecodeResources, MEMORY_LIMIT, Metadata, OpenOptions, Picture, PictureReader, PictureSource, cause,
    decode,
};

/// Minimum bytes of a picture that is read on demand by default.
const LARGE: usize = 64 << 20;
/// Smaller files count as small pictures, unless their compression is unusually high.
const FILE: u64 = 1 << 20;

/// A picture with its pixels, or one that is read on demand.
#[derive(Debug)]
pub enum OpenedPicture {
    /// Decoded.
    Decoded(Picture),
    /// Large, or requested as such: its regions are read on demand.
    OnDemand(Box<PictureReader>, Box<Metadata>),
    /// A picture that must be decoded as a whole, with the bytes for this, which exceed the memory. The error of a
    /// program that reads it names a limit for both.
    ExceedsMemory(Box<PictureReader>, Box<Metadata>, usize),
}

impl OpenedPicture {
    /// Opens the file at a path, where images may use `limit` bytes.
    ///
    /// # Errors
    /// A message, if the file cannot be read or decoded.
    pub fn at(
        path: &Path,
        options: &OpenOptions,
        limit: usize,
        means: DecodeResources<'_>,
    ) -> Result<OpenedPicture, String> {
        match reader(path, options, limit)
            .or_else(|| reader_beyond_memory(PictureSource::open(path).ok()?, path, options, means))
        {
            Some(later) => Ok(later),
            None => decode::read(path, options, means).map(OpenedPicture::Decoded),
        }
    }

    /// Decodes the bytes of a file.
    ///
    /// # Errors
    /// A message, if they cannot be decoded.
    pub fn of(bytes: &[u8], options: &OpenOptions, means: DecodeResources<'_>) -> Result<OpenedPicture, String> {
        decode::first(&PictureSource::of(bytes)?, &IN_MEMORY, options, means).map(OpenedPicture::Decoded)
    }

    /// Reads a stream to its end, where images may use `limit` bytes. A large one is written to an unnamed temporary
    /// file, and then read like any file.
    ///
    /// # Errors
    /// A message, if the stream cannot be read, stored or decoded.
    pub fn drain(
        from: impl Read,
        options: &OpenOptions,
        limit: usize,
        means: DecodeResources<'_>,
    ) -> Result<OpenedPicture, String> {
        let mut from = from.take(MEMORY_LIMIT + 1);
        // A stream that is not a picture is not stored.
        let mut head = Vec::new();
        from.by_ref().take(PictureSource::HEAD as u64).read_to_end(&mut head).map_err(cause)?;
        PictureSource::of(&head)?;
        let mut kept = spooled_tempfile(large(limit));
        let read = kept.write_all(&head).and_then(|()| std::io::copy(&mut from, &mut kept));
        let read = read.map_err(|e| format!("it cannot be kept in {}: {}", temp_dir().display(), cause(e)))?;
        if head.len() as u64 + read > MEMORY_LIMIT {
            return Err(format!("it exceeds the limit of {MEMORY_LIMIT} bytes"));
        }
        match kept.into_inner() {
            SpooledData::InMemory(bytes) => {
                let _counted = means.reserved(bytes.get_ref().capacity())?;
                OpenedPicture::of(bytes.get_ref(), options, means)
            }
            SpooledData::OnDisk(file) => {
                OpenedPicture::of_source(&PictureSource::of_file(file)?, Path::new(IN_MEMORY), options, limit, means)
            }
        }
    }

    /// Opens a picture whose bytes are read by ranges, where images may use `limit` bytes. If its parts can be decoded
    /// separately, it is read on demand, of any size. Messages name `path`.
    ///
    /// # Errors
    /// A message, if it cannot be read or decoded.
    pub fn of_ranges(
        ranges: Arc<dyn ByteRanges>,
        path: &Path,
        options: &OpenOptions,
        limit: usize,
        means: DecodeResources<'_>,
    ) -> Result<OpenedPicture, String> {
        let options = OpenOptions { on_demand: options.on_demand.or(Some(true)), ..*options };
        OpenedPicture::of_source(&PictureSource::of_ranges(ranges)?, path, &options, limit, means)
    }

    fn of_source(
        source: &PictureSource<'static>,
        path: &Path,
        options: &OpenOptions,
        limit: usize,
        means: DecodeResources<'_>,
    ) -> Result<OpenedPicture, String> {
        let later = reader_of(source.clone(), path, options, limit)
            .filter(|_| options.on_demand != Some(false))
            .or_else(|| reader_beyond_memory(source.clone(), path, options, means));
        match later {
            Some(later) => Ok(later),
            None => decode::first(source, &path.display(), options, means).map(OpenedPicture::Decoded),
        }
    }
}

/// Minimum bytes of a large picture, where images may use `limit` bytes.
fn large(limit: usize) -> usize {
    /// A picture that is read at once uses at most one part in this many of the memory.
    const PART: usize = 8;
    LARGE.min(limit / PART)
}

/// The reader of a picture's regions, if it is to be read on demand; images may use `limit` bytes.
fn reader(path: &Path, options: &OpenOptions, limit: usize) -> Option<OpenedPicture> {
    if options.on_demand == Some(false) {
        return None;
    }
    let least = FILE.min(large(limit) as u64);
    if options.on_demand.is_none() && std::fs::metadata(path).map_or(0, |found| found.len()) < least {
        return None;
    }
    // Reading the picture reports its errors.
    reader_of(PictureSource::open(path).ok()?, path, options, limit)
}

/// [`reader`] for an open file.
fn reader_of(
    source: PictureSource<'static>,
    path: &Path,
    options: &OpenOptions,
    limit: usize,
) -> Option<OpenedPicture> {
    let forced = options.on_demand == Some(true);
    let reader = PictureReader::of(source.clone(), path, options).ok().filter(PictureReader::by_regions)?;
    let shape = reader.shape();
    let large = shape.len().saturating_mul(reader.dtype().size()) >= large(limit);
    let allowed = (shape.depth as u64).saturating_mul(shape.area() as u64) <= options.max_pixels;
    let reader = ((large || forced) && allowed).then_some(reader)?;
    reader.warn_unread();
    let said = Metadata::of(&source, options, shape.channels, reader.tiles());
    Some(OpenedPicture::OnDemand(Box::new(reader), Box::new(said)))
}

/// The reader of a picture that is decoded as a whole, if memory is bounded and does not suffice.
fn reader_beyond_memory(
    source: PictureSource<'static>,
    path: &Path,
    options: &OpenOptions,
    means: DecodeResources<'_>,
) -> Option<OpenedPicture> {
    means.reserve?;
    let reader = PictureReader::of(source.clone(), path, options).ok().filter(|reader| !reader.by_regions())?;
    let bytes = decode::decoding_bytes(&source, options, means.workers).ok()?;
    if options.on_demand == Some(false) || means.reserved(bytes).is_ok() {
        return None;
    }
    let said = Metadata::of(&source, options, reader.shape().channels, None);
    Some(OpenedPicture::ExceedsMemory(Box::new(reader), Box::new(said), bytes))
}
