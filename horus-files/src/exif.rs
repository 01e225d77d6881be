//! EXIF data (CIPA DC-008) of JPEG, PNG and TIFF files: what a camera or a scanner noted of a picture.
//!
//! Fields that are untrue of other pixels are not kept: thumbnails, sides, orientation (unless rows and columns are those of
//! the file), and notes of makers, whose offsets are those of the file. Resolutions (`density.rs`) and texts (`texts.rs`)
//! are attributes of their own.

use super::tiff::directory::{Directory, DirectoryEntry, directories, header};
use super::tiff::source::{MAGIC, is_large, is_little, number};
use super::{Orientation, PictureSource, zeros};
use horus_base::shape::Shape;

/// The tags of the directories of exposures and of places.
const EXPOSURE: u16 = 0x8769;
const PLACE: u16 = 0x8825;
/// EXIF data in a JPEG file begins with this.
pub(super) const IN_JPEG: &[u8] = b"Exif\0\0";
const WIDTH: u16 = 0xa002;
const HEIGHT: u16 = 0xa003;
const ORIENTATION: u16 = 0x112;
/// The camera, its program, the time; ratings, and texts of Windows.
const OF_PICTURE: [u16; 11] = [0x10f, 0x110, 0x131, 0x132, 0x13c, 0x4746, 0x4749, 0x9c9b, 0x9c9c, 0x9c9d, 0x9c9e];
/// How the file codes pixels, its sides, other files and directories, its identity, notes of makers, padding.
const OF_FILE: [u16; 17] = [
    0x111, 0x117, 0x14a, 0x201, 0x202, EXPOSURE, PLACE, 0x9101, 0x9102, 0x927c, WIDTH, HEIGHT, 0xa004, 0xa005, 0xa420,
    0xea1c, 0xea1d,
];
/// Positions of pixels, and distances of pixels on the sensor.
const OF_PIXELS: [u16; 5] = [0x9214, 0xa20e, 0xa20f, 0xa210, 0xa214];
/// What programs write of every picture: program, time, computer; versions, colours.
const OF_PROGRAMS: [u16; 6] = [0x131, 0x132, 0x13c, 0x9000, 0xa000, 0xa001];

/// The EXIF data of a picture, as far as they are true of its pixels in any file.
#[derive(Clone, Debug, PartialEq)]
pub struct Exif {
    /// Of the picture.
    picture: Vec<DirectoryEntry>,
    exposure: Vec<DirectoryEntry>,
    place: Vec<DirectoryEntry>,
}

impl Exif {
    /// Those of other pixels: `moved`, or rows and columns of which are no longer `upright` in the first ones.
    #[must_use]
    pub fn transformed(&self, moved: bool, upright: bool) -> Exif {
        let mut seen = self.clone();
        if moved {
            seen.exposure.retain(|entry| !OF_PIXELS.contains(&entry.tag()));
        }
        if !upright {
            seen.picture.retain(|entry| entry.tag() != ORIENTATION);
        }
        seen
    }

    /// The entries of the first directory of a file with pixels of a shape.
    pub(super) fn entries(&self, shape: Shape) -> Vec<DirectoryEntry> {
        let mut all = self.picture.clone();
        if !all.iter().any(|entry| entry.tag() == ORIENTATION) {
            all.push(DirectoryEntry::short(ORIENTATION, [1]));
        }
        let sides = [(WIDTH, shape.width), (HEIGHT, shape.height)];
        let sides =
            sides.into_iter().filter_map(|(tag, side)| Some(DirectoryEntry::long(tag, u32::try_from(side).ok()?)));
        all.push(DirectoryEntry::directory(EXPOSURE, self.exposure.iter().cloned().chain(sides).collect()));
        if !self.place.is_empty() {
            all.push(DirectoryEntry::directory(PLACE, self.place.clone()));
        }
        all
    }
}

/// The bytes of these entries as EXIF data of a JPEG or PNG file.
pub(super) fn bytes_of(entries: Vec<DirectoryEntry>) -> Vec<u8> {
    let at = header(false, 0).len() as u64;
    let (bytes, first) = directories(vec![Directory { entries, own: 0 }], false, at);
    [header(false, first), bytes].concat()
}

/// The first text of a tag in a directory of a TIFF file, up to its first zero: some programs write several.
pub(super) fn text_of(source: &PictureSource<'_>, directory: u64, tag: u16) -> Option<Vec<u8>> {
    /// Texts of pages may be long.
    const LONGEST: u64 = 256 << 20;
    let mut fields = DirectoryFields { left: LONGEST.min(source.size()), ..DirectoryFields::at(source, directory)? };
    let mut found = None;
    fields.each(directory, |of| of == tag, |_, _, text| _ = found.get_or_insert(text));
    let mut text = found?;
    text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
    Some(text)
}

/// The orientation that EXIF data say.
pub(super) fn orientation(blob: &[u8]) -> Option<u16> {
    const SHORT: u16 = 3;
    let found = DirectoryFields::of(blob)?.all(&[ORIENTATION]);
    find(&found, ORIENTATION).filter(|entry| entry.is_of(SHORT))?.integer()?.try_into().ok()
}

/// The entry of a tag.
pub(super) fn find(entries: &[DirectoryEntry], tag: u16) -> Option<&DirectoryEntry> {
    entries.iter().find(|entry| entry.tag() == tag)
}

/// The fields of a directory and of those that it refers to, up to a limit of all their bytes.
pub(super) struct DirectoryFields<'a> {
    source: PictureSource<'a>,
    at: u64,
    little: bool,
    large: bool,
    left: u64,
}

impl<'a> DirectoryFields<'a> {
    /// With their directories, they fit in a segment of a JPEG file.
    const MOST: u64 = 48 << 10;
    const MOST_ENTRIES: u64 = 400;

    /// Those of a directory of a TIFF file.
    pub(super) fn at(source: &PictureSource<'a>, at: u64) -> Option<DirectoryFields<'a>> {
        let head = source.head();
        let (little, large) = (is_little(head), is_large(head));
        MAGIC.iter().any(|magic| head.starts_with(magic)).then(|| DirectoryFields {
            source: source.clone(),
            at,
            little,
            large,
            left: DirectoryFields::MOST,
        })
    }

    /// Those of EXIF data, in the first directory.
    pub(super) fn of(blob: &'a [u8]) -> Option<DirectoryFields<'a>> {
        let fields = DirectoryFields::at(&PictureSource::of(blob).ok()?, 0)?;
        let at = number(blob.get(if fields.large { 8..16 } else { 4..8 })?, fields.little);
        Some(DirectoryFields { at, ..fields })
    }

    /// The EXIF data of a picture in an orientation; `None` if they say nothing of it.
    pub(super) fn exif(&mut self, orientation: Orientation) -> Option<Exif> {
        let kept = |tag| OF_PICTURE.contains(&tag) || [ORIENTATION, EXPOSURE, PLACE].contains(&tag);
        let mut picture = self.directory(self.at, kept);
        let [exposure, place] = [EXPOSURE, PLACE].map(|tag| find(&picture, tag).and_then(DirectoryEntry::integer));
        let exposure = exposure.map(|at| self.directory(at, |tag| !OF_FILE.contains(&tag))).unwrap_or_default();
        let place = place.map(|at| self.directory(at, |tag| !OF_FILE.contains(&tag))).unwrap_or_default();
        let turned = orientation == Orientation::Keep;
        picture.retain(|entry| match entry.tag() {
            ORIENTATION => turned && entry.integer().is_some_and(|number| (2..=8).contains(&number)),
            tag => OF_PICTURE.contains(&tag),
        });
        let tells = |entry: &DirectoryEntry| !OF_PROGRAMS.contains(&entry.tag());
        let any = !place.is_empty() || picture.iter().chain(&exposure).any(tells);
        any.then_some(Exif { picture, exposure, place })
    }

    /// Those with these tags.
    pub(super) fn all(&mut self, tags: &[u16]) -> Vec<DirectoryEntry> {
        self.directory(self.at, |tag| tags.contains(&tag))
    }

    /// The wanted fields of a directory; none of unknown kinds or beyond the end, and the first of each tag.
    fn directory(&mut self, at: u64, wanted: impl Fn(u16) -> bool) -> Vec<DirectoryEntry> {
        let (little, mut all) = (self.little, Vec::<DirectoryEntry>::new());
        self.each(at, wanted, |tag, kind, value| {
            let new = all.iter().all(|other| other.tag() != tag);
            all.extend(DirectoryEntry::read(tag, kind, &value, little).filter(|_| new));
        });
        all
    }

    /// Calls `take` with the tag, the kind and the bytes of the wanted fields of a directory.
    fn each(&mut self, at: u64, wanted: impl Fn(u16) -> bool, mut take: impl FnMut(u16, u16, Vec<u8>)) {
        let (counted, entry, inside) = if self.large { (8, 20, 8) } else { (2, 12, 4) };
        let mut bytes = [0; 20];
        let head = &mut bytes[..counted];
        if self.source.read_at(at, head).is_err() {
            return;
        }
        let count = number(head, self.little).min(DirectoryFields::MOST_ENTRIES);
        for k in 0..count {
            let here = at.saturating_add(counted as u64).saturating_add(k * entry);
            let told = &mut bytes[..entry as usize];
            if self.source.read_at(here, told).is_err() {
                return;
            }
            let short = |at: usize| number(&told[at..at + 2], self.little) as u16;
            let (tag, count) = (short(0), number(&told[4..4 + inside], self.little));
            // Places of directories may have a kind of their own, of 32 bits or 64.
            let kind = match short(2) {
                13 => 4,
                18 => 16,
                other => other,
            };
            let length = DirectoryEntry::length(kind, count).filter(|n| wanted(tag) && (1..=self.left).contains(n));
            let Some(mut value) = length.and_then(|n| zeros(usize::try_from(n).ok()?).ok()) else { continue };
            let place = &told[4 + inside..];
            match place.get(..value.len()) {
                Some(here) => value.copy_from_slice(here),
                None if self.source.read_at(number(place, self.little), &mut value).is_err() => continue,
                None => {}
            }
            self.left -= value.len() as u64;
            take(tag, kind, value);
        }
    }
}
