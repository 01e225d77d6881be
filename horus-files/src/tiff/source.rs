//! TIFF files for their decoder, which reads from any directory as if it were the first.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use tiff::decoder::{Decoder, Limits};
use tiff::tags::{IfdPointer, PhotometricInterpretation, Tag};
use tiff::{Directory, TiffError};

use super::read::text;
use crate::PictureSource;
use crate::load::PositionedSource;

/// First bytes of plain and large files in either byte order.
pub(crate) const MAGIC: [&[u8]; 4] = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];

/// Length of the longest header of a TIFF file: a large file's.
const HEADER: usize = 16;

/// A file with another first directory in its header: decoders start there. Otherwise they would read all preceding
/// directories, and could not reach the smaller copies to which a page refers.
///
/// A text that is longer than the file, or than `LONGEST`, reads as empty: the crate `tiff` would allocate its length
/// and print a line.
#[derive(Debug)]
pub(super) struct RedirectedFile<'a> {
    source: PictureSource<'a>,
    file: PositionedSource<'a>,
    header: Vec<u8>,
    /// The positions of the lengths of such texts, in the order of the file: first and last byte.
    hidden: Vec<(u64, u64)>,
}

/// Headers and directories are read a few bytes at a time.
pub(super) type TiffReader<'a> = BufReader<RedirectedFile<'a>>;

impl<'a> RedirectedFile<'a> {
    fn naming(source: &PictureSource<'a>, directory: Option<IfdPointer>) -> RedirectedFile<'a> {
        let head = source.head();
        let mut header = head[..head.len().min(HEADER)].to_vec();
        let (little, large) = (is_little(&header), is_large(&header));
        if let Some(IfdPointer(at)) = directory {
            let bytes = if little { at.to_le_bytes() } else { at.to_be_bytes() };
            // A large file has 64 bits for the offset, any other 32.
            let (from, bytes) = match (large, little) {
                (true, _) => (8, &bytes[..]),
                (false, true) => (4, &bytes[..4]),
                (false, false) => (4, &bytes[4..]),
            };
            if let Some(place) = header.get_mut(from..from + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        let place = header.get(if large { 8..16 } else { 4..8 });
        let first = directory.or_else(|| Some(IfdPointer(number(place?, little))));
        let mut named =
            RedirectedFile { source: source.clone(), file: source.positioned(), header, hidden: Vec::new() };
        if let Some(first) = first {
            named.hide(first);
        }
        named
    }

    /// Hides texts of a directory that are too long. The decoder reports what cannot be read.
    fn hide(&mut self, directory: IfdPointer) {
        const TEXT: u64 = 2;
        /// The limit of the crate `tiff`.
        const LONGEST: u64 = 256 << 20;
        const AT_ONCE: u64 = 256;
        let (little, large) = (is_little(&self.header), is_large(&self.header));
        let (counted, entry) = if large { (8, 20) } else { (2, 12) };
        let longest = LONGEST.min(self.source.size());
        // Only the directory that was named last is read.
        self.hidden.clear();
        let mut bytes = [0; 8];
        let count = &mut bytes[..counted];
        if self.source.read_at(directory.0, count).is_err() {
            return;
        }
        let (count, first) = (number(count, little), directory.0 + counted as u64);
        let count = count.min(self.source.size().saturating_sub(first) / entry);
        let mut some = Vec::new();
        for begin in (0..count).step_by(AT_ONCE as usize) {
            let at = first + begin * entry;
            some.resize((AT_ONCE.min(count - begin) * entry) as usize, 0);
            if self.source.read_at(at, &mut some).is_err() {
                return;
            }
            for (at, of_tag) in (at..).step_by(entry as usize).zip(some.chunks_exact(entry as usize)) {
                let length = 4..if large { 12 } else { 8 };
                if number(&of_tag[2..4], little) == TEXT && number(&of_tag[length.clone()], little) > longest {
                    self.hidden.push((at + length.start as u64, at + length.end as u64 - 1));
                }
            }
        }
        self.hidden.sort_unstable();
        self.hidden.dedup();
    }
}

pub(crate) fn is_little(header: &[u8]) -> bool {
    header.starts_with(b"II")
}

pub(crate) fn is_large(header: &[u8]) -> bool {
    header.get(2..4).is_some_and(|version| version.contains(&43))
}

/// A number of up to eight bytes.
pub(crate) fn number(bytes: &[u8], little: bool) -> u64 {
    let more = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    if little { bytes.iter().rev().fold(0, more) } else { bytes.iter().fold(0, more) }
}

impl Read for RedirectedFile<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let at = self.file.at;
        let n = self.file.read(to)?;
        let header = self.header.iter().skip(usize::try_from(at).unwrap_or(usize::MAX));
        to[..n].iter_mut().zip(header).for_each(|(to, byte)| *to = *byte);
        let end = at + n as u64;
        let first = self.hidden.partition_point(|(_, last)| *last < at);
        for (from, last) in self.hidden[first..].iter().take_while(|(from, _)| *from < end) {
            let (from, until) = (from.saturating_sub(at), (last + 1).min(end) - at);
            to[from as usize..until as usize].fill(0);
        }
        Ok(n)
    }
}

impl Seek for RedirectedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Reads an unchanged file from its first directory.
pub(super) fn reader<'a>(source: &PictureSource<'a>) -> TiffReader<'a> {
    BufReader::new(RedirectedFile::naming(source, None))
}

/// A decoder of the tags of this directory.
pub(super) fn decoder_at<'a>(
    source: &PictureSource<'a>,
    directory: IfdPointer,
) -> Result<Decoder<TiffReader<'a>>, String> {
    let reader = BufReader::new(RedirectedFile::naming(source, Some(directory)));
    Ok(Decoder::new(reader).map_err(text)?.with_limits(limits()))
}

/// Reads a directory, whose tags can be read afterwards.
pub(super) fn directory_of(file: &mut Decoder<TiffReader<'_>>, at: IfdPointer) -> Result<Directory, TiffError> {
    file.inner().get_mut().hide(at);
    file.read_directory(at)
}

/// Returns `true` if the samples of a page are indices of a colour table, one for each pixel.
pub(super) fn are_indices(page: &mut Decoder<TiffReader<'_>>) -> bool {
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

#[cfg(test)]
mod tests {
    use crate::{FileInfo, OpenOptions, Picture};

    /// A page of one pixel and a text of this length, in a large file or not.
    fn page(length: u64, large: bool, tag: u16) -> Vec<u8> {
        let entries = [(256u16, 1u64), (257, 1), (258, 8), (259, 1), (262, 1), (273, 0), (278, 1), (279, 1)];
        let number = |v: u64| if large { v.to_le_bytes().to_vec() } else { (v as u32).to_le_bytes().to_vec() };
        let mut directory: Vec<(u16, u16, u64, u64)> = entries.into_iter().map(|(tag, v)| (tag, 4, 1, v)).collect();
        directory.retain(|entry| entry.0 != tag);
        directory.push((tag, 2, length, 0));
        directory.sort_unstable();
        let count = directory.len();
        let mut file = if large {
            [&b"II+\0\x08\0\0\0"[..], &number(16), &number(count as u64)].concat()
        } else {
            [&b"II*\0"[..], &number(8), &(count as u16).to_le_bytes()].concat()
        };
        for (tag, kind, count, value) in directory {
            file.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend([number(count), number(value)].concat());
        }
        file.extend(number(0));
        file
    }

    /// In its own process, whose standard error stream stays empty: the crate `tiff` has a `dbg!` for texts of more
    /// than 256 MiB.
    #[test]
    fn texts_that_are_too_long_are_passed_over_in_silence() {
        const CHILD: &str = "HORUS_TEST_OF_TEXTS";
        let name = "tiff::source::tests::texts_that_are_too_long_are_passed_over_in_silence";
        if std::env::var_os(CHILD).is_none() {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let out = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
            let told = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success() && told.is_empty(), "{told}");
            return;
        }
        for large in [false, true] {
            let lengths =
                if large { vec![1 << 20, 1 << 30, 1 << 40, u64::MAX] } else { vec![1 << 20, 1 << 30, u32::MAX.into()] };
            for length in lengths {
                // A description does not hide the pixel, and no necessary text prints a line.
                let file = page(length, large, 270);
                let read = Picture::read(&file, &OpenOptions::default()).unwrap();
                assert_eq!(read.into_pixels().bytes(), b"I", "{length}");
                let path = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(path.path(), &file).unwrap();
                assert!(FileInfo::tags(path.path(), &OpenOptions::default()).is_ok());
                for tag in [254, 256, 257, 258, 262, 273, 274, 277, 305, 330, 339, 34675] {
                    let _either = Picture::read(&page(length, large, tag), &OpenOptions::default());
                }
            }
        }
    }
}
