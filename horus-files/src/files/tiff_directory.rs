//! Directories of TIFF files, in the machine's byte order.

use tiff::tags::Tag;

/// The tag of the value that stands for missing pixels (GDAL's).
pub(super) const NODATA: u16 = 42113;

/// A type of values, with its number and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Short,
    Long,
    /// In large files only.
    Long8,
    Ascii,
    /// Bytes without a meaning of their own.
    Undefined,
    /// Numerator and denominator, in the lower and the upper half of a value.
    Rational,
    Double,
}

impl Kind {
    /// Its number in files.
    fn number(self) -> u64 {
        match self {
            Kind::Ascii => 2,
            Kind::Short => 3,
            Kind::Long => 4,
            Kind::Rational => 5,
            Kind::Undefined => 7,
            Kind::Double => 12,
            Kind::Long8 => 16,
        }
    }
}

/// Values of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    tag: u16,
    kind: Kind,
    values: Vec<u64>,
}

impl Entry {
    pub(super) fn short(tag: u16, values: impl IntoIterator<Item = u16>) -> Entry {
        Entry { tag, kind: Kind::Short, values: values.into_iter().map(u64::from).collect() }
    }

    pub(super) fn long(tag: u16, value: u32) -> Entry {
        Entry { tag, kind: Kind::Long, values: vec![u64::from(value)] }
    }

    /// Offsets in the file, or byte counts.
    pub(super) fn places(tag: u16, values: Vec<u64>, big: bool) -> Entry {
        Entry { tag, kind: if big { Kind::Long8 } else { Kind::Long }, values }
    }

    /// A text, which ends with a zero.
    pub(super) fn ascii(tag: u16, text: &str) -> Entry {
        Entry { tag, kind: Kind::Ascii, values: text.bytes().chain([0]).map(u64::from).collect() }
    }

    /// Bytes that are those of another format.
    pub(super) fn bytes_of(tag: u16, bytes: &[u8]) -> Entry {
        Entry { tag, kind: Kind::Undefined, values: bytes.iter().copied().map(u64::from).collect() }
    }

    pub(super) fn double(tag: u16, values: &[f64]) -> Entry {
        Entry { tag, kind: Kind::Double, values: values.iter().map(|value| value.to_bits()).collect() }
    }

    /// A positive number as a quotient of integers, as exactly as they can hold it up to 2^31.
    pub(super) fn rational(tag: u16, value: f64) -> Entry {
        const MOST: f64 = (1u64 << 31) as f64;
        let denominator = (0..10).map(|n| 10f64.powi(n)).take_while(|d| *d <= MOST && value * d <= MOST).last();
        let denominator = denominator.unwrap_or(1.0);
        let (above, below) = ((value * denominator).round().clamp(1.0, MOST) as u64, denominator as u64);
        Entry { tag, kind: Kind::Rational, values: vec![above | below << 32] }
    }

    /// True if only the first page has it: the description of the whole file.
    pub(super) fn is_of_file(&self) -> bool {
        self.tag == Tag::ImageDescription.to_u16()
    }

    /// True if it tells how pixels of any size are understood, so that smaller copies of a page have it too.
    pub(super) fn is_of_samples(&self) -> bool {
        self.is_colours() || self.is_alpha() || [NODATA, Tag::IccProfile.to_u16()].contains(&self.tag)
    }

    /// True if it tells what the last sample is.
    pub(super) fn is_alpha(&self) -> bool {
        self.tag == Tag::ExtraSamples.to_u16()
    }

    /// The values of an entry of short numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u16> {
        self.values.iter().map(|value| *value as u16)
    }

    /// True if it is a colour table, so that samples are its indices.
    pub(super) fn is_colours(&self) -> bool {
        self.tag == Tag::ColorMap.to_u16()
    }

    fn bytes(&self) -> Vec<u8> {
        let value = |v: &u64| match self.kind {
            Kind::Ascii | Kind::Undefined => vec![*v as u8],
            Kind::Short => (*v as u16).to_ne_bytes().to_vec(),
            Kind::Long => (*v as u32).to_ne_bytes().to_vec(),
            Kind::Rational => [(*v as u32).to_ne_bytes(), ((*v >> 32) as u32).to_ne_bytes()].concat(),
            Kind::Long8 | Kind::Double => v.to_ne_bytes().to_vec(),
        };
        self.values.iter().flat_map(value).collect()
    }
}

/// The first bytes of a file whose first directory is at `directory`.
pub(super) fn header(big: bool, directory: u64) -> Vec<u8> {
    let order = if cfg!(target_endian = "little") { b"II" } else { b"MM" };
    let short = |v: u16| v.to_ne_bytes();
    if big {
        [&order[..], &short(43), &short(8), &short(0), &directory.to_ne_bytes()].concat()
    } else {
        [&order[..], &short(42), &(directory as u32).to_ne_bytes()].concat()
    }
}

/// A directory that is to be written.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) entries: Vec<Entry>,
    /// The number of directories behind it that it refers to as its own (`SubIFDs`): they are no pages.
    pub(super) own: usize,
}

/// The bytes of directories from `at` on, each before the values that do not fit into it; and the offset of
/// the first. Their length does not depend on the values.
pub(super) fn directories(mut all: Vec<Directory>, big: bool, at: u64) -> (Vec<u8>, u64) {
    // Sizes of the number of entries, of an entry, and of its value or offset.
    let (counted, entry, inside) = if big { (8, 20, 8) } else { (2, 12, 4) };
    let first = at.next_multiple_of(8);
    for directory in all.iter_mut() {
        if directory.own > 0 {
            directory.entries.push(Entry::places(Tag::SubIfd.to_u16(), vec![0; directory.own], big));
        }
        directory.entries.sort_by_key(|e| e.tag);
    }
    let fixed = |directory: &Directory| counted + entry * directory.entries.len() + inside;
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
        let own = places[k + 1..][..directory.own].to_vec();
        for e in directory.entries.iter_mut().filter(|e| e.tag == Tag::SubIfd.to_u16()) {
            e.values.clone_from(&own);
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
        let next = k + 1 + directory.own;
        let is_owned = owned > 0;
        owned = if is_owned { owned - 1 } else { directory.own };
        out.extend(number(if is_owned || next + 1 >= places.len() { 0 } else { places[next] }, inside));
        out.extend(long);
        out.resize((places[k + 1] - at) as usize, 0);
    }
    (out, first)
}
