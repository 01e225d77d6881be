//! EXIF data (CIPA DC-008) of JPEG, PNG and TIFF files: what a camera or a scanner recorded.
//!
//! Fields that are wrong for other pixels are dropped: thumbnails, sides, orientation (unless rows and columns are
//! those of the file), and maker notes, whose offsets refer to the file. Resolutions (`density.rs`) and texts
//! (`texts.rs`) are separate attributes.

use super::tiff::directory::{Directory, DirectoryEntry, directories, header};
use super::tiff::source::{MAGIC, is_large, is_little, number};
use super::{Orientation, PictureSource, zeros};
use horus_base::shape::Shape;

/// Tags of the directories of exposure and of GPS position.
const EXPOSURE: u16 = 0x8769;
const PLACE: u16 = 0x8825;
/// Prefix of EXIF data in a JPEG file.
pub(super) const IN_JPEG: &[u8] = b"Exif\0\0";
const WIDTH: u16 = 0xa002;
const HEIGHT: u16 = 0xa003;
const ORIENTATION: u16 = 0x112;
/// Tags of the camera, its program, the time; ratings, and texts of Windows.
const OF_PICTURE: [u16; 11] = [0x10f, 0x110, 0x131, 0x132, 0x13c, 0x4746, 0x4749, 0x9c9b, 0x9c9c, 0x9c9d, 0x9c9e];
/// Tags about the file: coding of pixels, sides, other files and directories, identity, maker notes, padding.
const OF_FILE: [u16; 17] = [
    0x111, 0x117, 0x14a, 0x201, 0x202, EXPOSURE, PLACE, 0x9101, 0x9102, 0x927c, WIDTH, HEIGHT, 0xa004, 0xa005, 0xa420,
    0xea1c, 0xea1d,
];
/// Tags of positions of pixels, and of distances of pixels on the sensor.
const OF_PIXELS: [u16; 5] = [0x9214, 0xa20e, 0xa20f, 0xa210, 0xa214];
/// Tags that programs write for every picture: program, time, computer; versions, colours.
const OF_PROGRAMS: [u16; 6] = [0x131, 0x132, 0x13c, 0x9000, 0xa000, 0xa001];

/// The EXIF data of a picture that are valid for its pixels in any file.
#[derive(Clone, Debug, PartialEq)]
pub struct Exif {
    /// Fields of the picture.
    picture: Vec<DirectoryEntry>,
    exposure: Vec<DirectoryEntry>,
    place: Vec<DirectoryEntry>,
}

impl Exif {
    /// The EXIF data of pixels computed from these: `moved` pixels, or pixels whose rows and columns are no longer
    /// `upright`.
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

/// Encodes these entries as EXIF data of a JPEG or PNG file.
pub(super) fn bytes_of(entries: Vec<DirectoryEntry>) -> Vec<u8> {
    let at = header(false, 0).len() as u64;
    let (bytes, first) = directories(vec![Directory { entries, own: 0 }], false, at);
    [header(false, first), bytes].concat()
}

/// The first text of a tag in a directory of a TIFF file, up to its first zero. (Some programs write several.)
pub(super) fn text_of(source: &PictureSource<'_>, directory: u64, tag: u16) -> Option<Vec<u8>> {
    /// Maximum bytes: texts of pages may be long.
    const LONGEST: u64 = 256 << 20;
    let mut fields = DirectoryFields { left: LONGEST.min(source.size()), ..DirectoryFields::at(source, directory)? };
    let mut found = None;
    fields.each(directory, |of| of == tag, |_, _, text| _ = found.get_or_insert(text));
    let mut text = found?;
    text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
    Some(text)
}

/// The orientation stored in EXIF data.
pub(super) fn orientation(blob: &[u8]) -> Option<u16> {
    const SHORT: u16 = 3;
    let found = DirectoryFields::of(blob)?.all(&[ORIENTATION]);
    find(&found, ORIENTATION).filter(|entry| entry.is_of(SHORT))?.integer()?.try_into().ok()
}

/// The entry of a tag.
pub(super) fn find(entries: &[DirectoryEntry], tag: u16) -> Option<&DirectoryEntry> {
    entries.iter().find(|entry| entry.tag() == tag)
}

/// The fields of a directory and of the directories in it, up to a limit of their bytes.
pub(super) struct DirectoryFields<'a> {
    source: PictureSource<'a>,
    at: u64,
    little: bool,
    large: bool,
    left: u64,
}

impl<'a> DirectoryFields<'a> {
    /// The limit: with their directories, the fields fit a segment of a JPEG file.
    const MOST: u64 = 48 << 10;
    const MOST_ENTRIES: u64 = 400;

    /// The fields of a directory of a TIFF file.
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

    /// The fields of the first directory of EXIF data.
    pub(super) fn of(blob: &'a [u8]) -> Option<DirectoryFields<'a>> {
        let fields = DirectoryFields::at(&PictureSource::of(blob).ok()?, 0)?;
        let at = number(blob.get(if fields.large { 8..16 } else { 4..8 })?, fields.little);
        Some(DirectoryFields { at, ..fields })
    }

    /// The EXIF data of a picture in an orientation; `None` if they have no valid fields.
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

    /// The fields with these tags.
    pub(super) fn all(&mut self, tags: &[u16]) -> Vec<DirectoryEntry> {
        self.directory(self.at, |tag| tags.contains(&tag))
    }

    /// The wanted fields of a directory, the first of each tag, without fields of unknown types or beyond the end.
    fn directory(&mut self, at: u64, wanted: impl Fn(u16) -> bool) -> Vec<DirectoryEntry> {
        let (little, mut all) = (self.little, Vec::<DirectoryEntry>::new());
        self.each(at, wanted, |tag, kind, value| {
            let new = all.iter().all(|other| other.tag() != tag);
            all.extend(DirectoryEntry::read(tag, kind, &value, little).filter(|_| new));
        });
        all
    }

    /// Calls `take` with the tag, the type and the bytes of the wanted fields of a directory.
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
            // Offsets of directories may have their own type, of 32 or 64 bits.
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
