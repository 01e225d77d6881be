//! TIFF files for their decoder: from any directory, as if it were the first.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use tiff::decoder::{Decoder, Limits};
use tiff::tags::{IfdPointer, PhotometricInterpretation, Tag};

use super::bounds::MEMORY_LIMIT;
use super::load::Source;
use super::read_tiff::text;

/// Length of the longest header of a TIFF file: that of a large one.
const HEADER: usize = 16;

/// A file with another first directory in its header: decoders start there. Otherwise they read all
/// preceding directories, and cannot reach the smaller copies that a page refers to.
#[derive(Debug)]
pub(super) struct Header<'a> {
    source: Source<'a>,
    at: u64,
    header: Vec<u8>,
    /// Offset of the interpretation of a page whose samples are indices of a colour table: decoders know
    /// grey only.
    indices: Option<u64>,
}

/// Headers and directories are read a few bytes at a time.
pub(super) type Reader<'a> = BufReader<Header<'a>>;

impl<'a> Header<'a> {
    fn naming(source: &Source<'a>, directory: Option<IfdPointer>) -> Header<'a> {
        let head = source.head();
        let mut header = head[..head.len().min(HEADER)].to_vec();
        let little = header.starts_with(b"II");
        let large = header.get(2..4).is_some_and(|version| version.contains(&43));
        if let Some(IfdPointer(at)) = directory {
            let bytes = if little { at.to_le_bytes() } else { at.to_be_bytes() };
            // A large file has 64 bits for it, any other 32.
            let (from, bytes) = match (large, little) {
                (true, _) => (8, &bytes[..]),
                (false, true) => (4, &bytes[..4]),
                (false, false) => (4, &bytes[4..]),
            };
            if let Some(place) = header.get_mut(from..from + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        let indices = directory.and_then(|directory| interpretation(source, directory));
        Header { source: source.clone(), at: 0, header, indices }
    }
}

impl Read for Header<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.source.size().saturating_sub(self.at);
        let n = to.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = match self.header.get(usize::try_from(self.at).unwrap_or(usize::MAX)..) {
            Some(header) if !header.is_empty() => {
                let n = n.min(header.len());
                to[..n].copy_from_slice(&header[..n]);
                n
            }
            _ => {
                self.source.read_at(self.at, &mut to[..n]).map_err(io::Error::other)?;
                let grey = PhotometricInterpretation::BlackIsZero.to_u16();
                let grey = if self.header.starts_with(b"II") { grey.to_le_bytes() } else { grey.to_be_bytes() };
                for (place, byte) in self.indices.into_iter().flat_map(|at| (at..).zip(grey)) {
                    let here = place.checked_sub(self.at).and_then(|here| usize::try_from(here).ok());
                    if let Some(to) = here.and_then(|here| to[..n].get_mut(here)) {
                        *to = byte;
                    }
                }
                n
            }
        };
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Header<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.source.size().checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

/// The offset of the interpretation of samples in a directory, if they are indices of a colour table, one for
/// each pixel.
pub(super) fn interpretation(source: &Source<'_>, IfdPointer(directory): IfdPointer) -> Option<u64> {
    /// More entries than any page has.
    const MOST: u64 = 4096;
    let little = source.head().starts_with(b"II");
    let large = source.head().get(2..4).is_some_and(|version| version.contains(&43));
    let number = |bytes: &[u8]| {
        let digits = bytes.iter().map(|byte| u64::from(*byte));
        let all = |all, digit| all << 8 | digit;
        if little { digits.rev().fold(0, all) } else { digits.fold(0, all) }
    };
    let (counted, entry, value) = if large { (8, 20, 12) } else { (2, 12, 8) };
    let mut count = vec![0; counted];
    source.read_at(directory, &mut count).ok()?;
    let count = number(&count);
    let mut entries = vec![0; (count <= MOST).then_some(count as usize)? * entry];
    let begin = directory.checked_add(counted as u64)?;
    source.read_at(begin, &mut entries).ok()?;
    let find = |tag: Tag| entries.chunks_exact(entry).position(|e| number(&e[..2]) == u64::from(tag.to_u16()));
    let short = |at: usize| number(&entries[at * entry + value..][..2]);
    if find(Tag::SamplesPerPixel).is_some_and(|at| short(at) != 1) {
        return None;
    }
    let at = find(Tag::PhotometricInterpretation)?;
    let is_indices = short(at) == u64::from(PhotometricInterpretation::RGBPalette.to_u16());
    is_indices.then_some(begin + (at * entry + value) as u64)
}

/// Reads an unchanged file: from its first directory.
pub(super) fn reader<'a>(source: &Source<'a>) -> Reader<'a> {
    BufReader::new(Header::naming(source, None))
}

/// A decoder of the picture of this directory. Indices of a colour table are grey to it.
pub(super) fn decoder_at<'a>(source: &Source<'a>, directory: IfdPointer) -> Result<Decoder<Reader<'a>>, String> {
    let reader = BufReader::new(Header::naming(source, Some(directory)));
    Ok(Decoder::new(reader).map_err(text)?.with_limits(limits()))
}

/// Limits for the strips of large scans, which may be whole pictures, and for tables of many tiles.
pub(super) fn limits() -> Limits {
    let limit = usize::try_from(MEMORY_LIMIT).unwrap_or(usize::MAX);
    let mut limits = Limits::default();
    (limits.decoding_buffer_size, limits.intermediate_buffer_size) = (limit, limit);
    limits.ifd_value_size = 1 << 28;
    limits
}
