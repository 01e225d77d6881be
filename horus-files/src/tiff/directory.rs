//! Directories of TIFF files, in the machine's byte order.

use tiff::tags::Tag;

use super::source::number;

/// The tag of the value for missing pixels (GDAL's).
pub(super) const NODATA: u16 = 42113;

/// A type of values, with its number and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagValueType {
    Byte,
    Ascii,
    Short,
    Long,
    /// Numerator and denominator, in the lower and the upper half of a value.
    Rational,
    SignedByte,
    /// Bytes without a defined meaning.
    Undefined,
    SignedShort,
    SignedLong,
    SignedRational,
    Float,
    Double,
    /// In large files only.
    Long8,
    /// A text of EXIF.
    Utf8,
}

impl TagValueType {
    /// Numbers of the types in files.
    const NUMBERS: [(u16, TagValueType); 14] = [
        (1, TagValueType::Byte),
        (2, TagValueType::Ascii),
        (3, TagValueType::Short),
        (4, TagValueType::Long),
        (5, TagValueType::Rational),
        (6, TagValueType::SignedByte),
        (7, TagValueType::Undefined),
        (8, TagValueType::SignedShort),
        (9, TagValueType::SignedLong),
        (10, TagValueType::SignedRational),
        (11, TagValueType::Float),
        (12, TagValueType::Double),
        (16, TagValueType::Long8),
        (129, TagValueType::Utf8),
    ];

    fn number(self) -> u64 {
        TagValueType::NUMBERS.into_iter().find(|(_, kind)| *kind == self).map_or(0, |(number, _)| number.into())
    }

    /// Bytes of a value.
    fn size(self) -> usize {
        match self {
            TagValueType::Byte
            | TagValueType::Ascii
            | TagValueType::SignedByte
            | TagValueType::Undefined
            | TagValueType::Utf8 => 1,
            TagValueType::Short | TagValueType::SignedShort => 2,
            TagValueType::Long | TagValueType::SignedLong | TagValueType::Float => 4,
            TagValueType::Rational | TagValueType::SignedRational | TagValueType::Double | TagValueType::Long8 => 8,
        }
    }
}

/// Values of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryEntry {
    tag: u16,
    kind: TagValueType,
    values: Vec<u64>,
    /// The directory to which its only value refers.
    inside: Vec<DirectoryEntry>,
}

impl DirectoryEntry {
    fn new(tag: u16, kind: TagValueType, values: Vec<u64>) -> DirectoryEntry {
        DirectoryEntry { tag, kind, values, inside: Vec::new() }
    }

    /// The bytes of this many values of a type; `None` if there is no such type.
    pub(crate) fn length(kind: u16, count: u64) -> Option<u64> {
        let (_, kind) = TagValueType::NUMBERS.into_iter().find(|(number, _)| *number == kind)?;
        count.checked_mul(kind.size() as u64)
    }

    /// Reads values of a known type, in the file's byte order.
    pub(crate) fn read(tag: u16, kind: u16, bytes: &[u8], little: bool) -> Option<DirectoryEntry> {
        let (_, kind) = TagValueType::NUMBERS.into_iter().find(|(number, _)| *number == kind)?;
        let number = |bytes: &[u8]| number(bytes, little);
        let value = |bytes: &[u8]| match kind {
            TagValueType::Rational | TagValueType::SignedRational => number(&bytes[..4]) | number(&bytes[4..]) << 32,
            _ => number(bytes),
        };
        Some(DirectoryEntry::new(tag, kind, bytes.chunks_exact(kind.size()).map(value).collect()))
    }

    /// An entry that refers to its own directory.
    pub(crate) fn directory(tag: u16, inside: Vec<DirectoryEntry>) -> DirectoryEntry {
        DirectoryEntry { inside, ..DirectoryEntry::new(tag, TagValueType::Long, Vec::new()) }
    }

    pub(crate) fn tag(&self) -> u16 {
        self.tag
    }

    /// Returns `true` if its values have the type with this number.
    pub(crate) fn is_of(&self, kind: u16) -> bool {
        TagValueType::NUMBERS.contains(&(kind, self.kind))
    }

    /// Its only value, if that is an unsigned integer.
    pub(crate) fn integer(&self) -> Option<u64> {
        let known =
            matches!(self.kind, TagValueType::Byte | TagValueType::Short | TagValueType::Long | TagValueType::Long8);
        if let ([value], true) = (&self.values[..], known) { Some(*value) } else { None }
    }

    /// Its only value, if that is a quotient of positive integers.
    pub(crate) fn quotient(&self) -> Option<f64> {
        let ([value], TagValueType::Rational) = (&self.values[..], self.kind) else { return None };
        let quotient = f64::from(*value as u32) / f64::from((*value >> 32) as u32);
        (quotient > 0.0 && quotient.is_finite()).then_some(quotient)
    }

    /// Its bytes up to the first zero, if it is a text.
    pub(crate) fn text(&self) -> Option<Vec<u8>> {
        let is_text = matches!(self.kind, TagValueType::Ascii | TagValueType::Utf8);
        is_text.then(|| self.values.iter().map(|byte| *byte as u8).take_while(|byte| *byte > 0).collect())
    }

    pub(crate) fn short(tag: u16, values: impl IntoIterator<Item = u16>) -> DirectoryEntry {
        DirectoryEntry::new(tag, TagValueType::Short, values.into_iter().map(u64::from).collect())
    }

    pub(crate) fn long(tag: u16, value: u32) -> DirectoryEntry {
        DirectoryEntry::new(tag, TagValueType::Long, vec![u64::from(value)])
    }

    /// Offsets in the file, or byte counts.
    pub(super) fn places(tag: u16, values: Vec<u64>, big: bool) -> DirectoryEntry {
        DirectoryEntry::new(tag, if big { TagValueType::Long8 } else { TagValueType::Long }, values)
    }

    /// A text, which ends with a zero.
    pub(crate) fn ascii(tag: u16, text: &str) -> DirectoryEntry {
        DirectoryEntry::new(
            tag,
            TagValueType::Ascii,
            text.bytes().filter(|byte| *byte > 0).chain([0]).map(u64::from).collect(),
        )
    }

    /// Bytes whose format is defined elsewhere.
    pub(super) fn bytes_of(tag: u16, bytes: &[u8]) -> DirectoryEntry {
        DirectoryEntry::new(tag, TagValueType::Undefined, bytes.iter().copied().map(u64::from).collect())
    }

    pub(super) fn double(tag: u16, values: &[f64]) -> DirectoryEntry {
        DirectoryEntry::new(tag, TagValueType::Double, values.iter().map(|value| value.to_bits()).collect())
    }

    /// A positive number as a quotient of integers, as exact as integers up to 2^31 permit.
    pub(super) fn rational(tag: u16, value: f64) -> DirectoryEntry {
        const MOST: f64 = (1u64 << 31) as f64;
        let denominator = (0..10).map(|n| 10f64.powi(n)).take_while(|d| *d <= MOST && value * d <= MOST).last();
        let denominator = denominator.unwrap_or(1.0);
        let (above, below) = ((value * denominator).round().clamp(1.0, MOST) as u64, denominator as u64);
        DirectoryEntry::new(tag, TagValueType::Rational, vec![above | below << 32])
    }

    /// Returns `true` if only the first page has this entry: descriptions of the whole file.
    pub(super) fn is_of_file(&self) -> bool {
        self.tag == Tag::ImageDescription.to_u16() || !self.inside.is_empty()
    }

    /// Returns `true` if this entry describes the pages of the file as OME-XML.
    pub(super) fn is_ome(&self) -> bool {
        const ROOT: &[u8] = b"<OME ";
        let text = || self.text().unwrap_or_default();
        self.tag == Tag::ImageDescription.to_u16() && text().windows(ROOT.len()).any(|part| part == ROOT)
    }

    /// Returns `true` if this entry concerns pixels of any size, so that smaller copies of a page have it, too.
    pub(super) fn is_of_samples(&self) -> bool {
        let others = [NODATA, Tag::IccProfile.to_u16(), Tag::Orientation.to_u16()];
        self.is_colours() || self.is_alpha() || others.contains(&self.tag)
    }

    /// Returns `true` if this entry declares the last sample.
    pub(super) fn is_alpha(&self) -> bool {
        self.tag == Tag::ExtraSamples.to_u16()
    }

    /// The values of an entry of short numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u16> {
        self.values.iter().map(|value| *value as u16)
    }

    /// Returns `true` for a colour table, which makes samples its indices.
    pub(super) fn is_colours(&self) -> bool {
        self.tag == Tag::ColorMap.to_u16()
    }

    fn bytes(&self) -> Vec<u8> {
        let value = |v: &u64| match (self.kind, self.kind.size()) {
            (TagValueType::Rational | TagValueType::SignedRational, _) => {
                [(*v as u32).to_ne_bytes(), ((*v >> 32) as u32).to_ne_bytes()].concat()
            }
            (_, 1) => vec![*v as u8],
            (_, 2) => (*v as u16).to_ne_bytes().to_vec(),
            (_, 4) => (*v as u32).to_ne_bytes().to_vec(),
            _ => v.to_ne_bytes().to_vec(),
        };
        self.values.iter().flat_map(value).collect()
    }
}

/// The first bytes of a file whose first directory is at `directory`.
pub(crate) fn header(big: bool, directory: u64) -> Vec<u8> {
    let order = if cfg!(target_endian = "little") { b"II" } else { b"MM" };
    let short = |v: u16| v.to_ne_bytes();
    if big {
        [&order[..], &short(43), &short(8), &short(0), &directory.to_ne_bytes()].concat()
    } else {
        [&order[..], &short(42), &(directory as u32).to_ne_bytes()].concat()
    }
}

/// A directory to write.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) entries: Vec<DirectoryEntry>,
    /// The number of following directories to which it refers as its own (`SubIFDs`): they are no pages.
    pub(crate) own: usize,
}

/// A directory, and the tags that refer to following directories, each with their number.
struct LinkedDirectory {
    entries: Vec<DirectoryEntry>,
    own: Vec<(u16, usize)>,
}

impl LinkedDirectory {
    /// A directory, followed by the directories inside its entries.
    fn all(Directory { entries, own }: Directory, big: bool) -> Vec<LinkedDirectory> {
        let (mut first, mut others, mut refers) = (Vec::new(), Vec::new(), Vec::new());
        for mut entry in entries {
            if !entry.inside.is_empty() {
                refers.push((entry.tag, 1));
                others.push(LinkedDirectory { entries: std::mem::take(&mut entry.inside), own: Vec::new() });
            } else {
                first.push(entry);
            }
        }
        if own > 0 {
            refers.push((Tag::SubIfd.to_u16(), own));
        }
        first.extend(refers.iter().map(|(tag, count)| DirectoryEntry::places(*tag, vec![0; *count], big)));
        others.insert(0, LinkedDirectory { entries: first, own: refers });
        others
    }

    /// The number of following directories that are its own.
    fn owned(&self) -> usize {
        self.own.iter().map(|(_, count)| count).sum()
    }
}

/// Encodes directories from `at` on, each before the values that do not fit into it. Also returns the offset of the
/// first. The length does not depend on the values.
pub(crate) fn directories(all: Vec<Directory>, big: bool, at: u64) -> (Vec<u8>, u64) {
    // Sizes of the number of entries, of an entry, and of its value or offset.
    let (counted, entry, inside) = if big { (8, 20, 8) } else { (2, 12, 4) };
    let first = at.next_multiple_of(8);
    let mut all: Vec<LinkedDirectory> =
        all.into_iter().flat_map(|directory| LinkedDirectory::all(directory, big)).collect();
    all.iter_mut().for_each(|directory| directory.entries.sort_by_key(|e| e.tag));
    let fixed = |directory: &LinkedDirectory| counted + entry * directory.entries.len() + inside;
    let mut places = vec![first];
    for directory in &all {
        let long = directory.entries.iter().map(|e| e.bytes().len()).filter(|bytes| *bytes > inside);
        let length = fixed(directory) + long.map(|bytes| bytes.next_multiple_of(8)).sum::<usize>();
        places.push((places[places.len() - 1] + length as u64).next_multiple_of(8));
    }
    let number = |v: u64, bytes: usize| match bytes {
        2 => (v as u16).to_ne_bytes().to_vec(),
        4 => (v as u32).to_ne_bytes().to_vec(),
        _ => v.to_ne_bytes().to_vec(),
    };
    let mut out = vec![0; (first - at) as usize];
    let mut owned = 0;
    for (k, directory) in all.iter_mut().enumerate() {
        let mut own = &places[k + 1..];
        for (tag, count) in &directory.own {
            let (these, others) = own.split_at(*count);
            directory.entries.iter_mut().filter(|e| e.tag == *tag).for_each(|e| these.clone_into(&mut e.values));
            own = others;
        }
        let values = places[k] + fixed(directory) as u64;
        let mut long = Vec::new();
        out.extend(number(directory.entries.len() as u64, counted));
        for e in &directory.entries {
            let bytes = e.bytes();
            out.extend(number(e.tag.into(), 2));
            out.extend(number(e.kind.number(), 2));
            out.extend(number(e.values.len() as u64, inside));
            if bytes.len() <= inside {
                out.extend(&bytes);
                out.resize(out.len() + inside - bytes.len(), 0);
            } else {
                out.extend(number(values + long.len() as u64, inside));
                long.extend(bytes);
                long.resize(long.len().next_multiple_of(8), 0);
            }
        }
        let next = k + 1 + directory.owned();
        let is_owned = owned > 0;
        owned = if is_owned { owned - 1 } else { directory.owned() };
        out.extend(number(if is_owned || next + 1 >= places.len() { 0 } else { places[next] }, inside));
        out.extend(long);
        out.resize((places[k + 1] - at) as usize, 0);
    }
    (out, first)
}
