//! TIFF files for their decoder: from any directory, as if it were the first.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use tiff::decoder::{Decoder, Limits};
use tiff::tags::{IfdPointer, PhotometricInterpretation, Tag};

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
        Header { source: source.clone(), at: 0, header }
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

/// Reads an unchanged file: from its first directory.
pub(super) fn reader<'a>(source: &Source<'a>) -> Reader<'a> {
    BufReader::new(Header::naming(source, None))
}

/// A decoder of the tags of this directory.
pub(super) fn decoder_at<'a>(source: &Source<'a>, directory: IfdPointer) -> Result<Decoder<Reader<'a>>, String> {
    let reader = BufReader::new(Header::naming(source, Some(directory)));
    Ok(Decoder::new(reader).map_err(text)?.with_limits(limits()))
}

/// True if the samples of a page are indices of a colour table, one for each pixel.
pub(super) fn are_indices(page: &mut Decoder<Reader<'_>>) -> bool {
    let mut tag = |tag| page.find_tag_unsigned::<u16>(tag).ok().flatten();
    let table = PhotometricInterpretation::RGBPalette.to_u16();
    tag(Tag::PhotometricInterpretation) == Some(table) && tag(Tag::SamplesPerPixel).is_none_or(|samples| samples == 1)
}

/// Limits for tables of many tiles.
pub(super) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.ifd_value_size = 1 << 28;
    limits
}
