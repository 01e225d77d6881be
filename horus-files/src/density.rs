//! Resolutions: the size of pixels in a print or a scan.

use super::DirectoryFields;
use super::exif::find;
use super::tiff::directory::DirectoryEntry;
use horus_base::lengths::PixelSize;

/// Micrometres of an inch and of a centimetre.
pub(super) const INCH: f64 = 25_400.0;
pub(super) const CENTIMETRE: f64 = 10_000.0;

/// Maximum resolution of a print in dots per inch; higher ones are sizes of pixels.
pub(super) const MOST_IN_PRINT: f64 = 1200.0;

/// The size of pixels in a print or a scan, from the numbers of columns and rows in some number of units: inches or
/// centimetres, numbered as in TIFF files.
pub(super) fn in_print([columns, rows]: [[f64; 2]; 2], unit: u16) -> Option<PixelSize> {
    let unit = match unit {
        2 => INCH,
        3 => CENTIMETRE,
        _ => return None,
    };
    let side = |[pixels, units]: [f64; 2]| Some(units * unit / pixels);
    PixelSize::of([None, side(rows), side(columns)])
}

/// The size of pixels in a print or a scan from the resolution in EXIF data.
pub(super) fn of_exif(fields: Option<DirectoryFields<'_>>) -> Option<PixelSize> {
    /// The resolution that EXIF data have by default.
    const UNKNOWN: ([f64; 2], u64) = ([72.0, 72.0], 2);
    const COLUMNS: u16 = 282;
    const ROWS: u16 = 283;
    const UNIT: u16 = 296;
    let fields = fields?.all(&[COLUMNS, ROWS, UNIT]);
    let [columns, rows] = [COLUMNS, ROWS].map(|tag| find(&fields, tag).and_then(DirectoryEntry::quotient));
    let unit = find(&fields, UNIT).and_then(DirectoryEntry::integer).unwrap_or(2);
    let told = ([columns?, rows?], unit);
    if told == UNKNOWN { None } else { in_print(told.0.map(|n| [n, 1.0]), unit.try_into().ok()?) }
}

/// Whole dots per inch of a print, columns and rows; `None` if a file with this resolution would be read as sizes of
/// pixels.
pub(crate) fn dots(printed: PixelSize) -> Option<[u16; 2]> {
    let dots = [printed.columns, printed.rows].map(|side| (INCH / side).round());
    dots.iter().all(|n| (1.0..=MOST_IN_PRINT).contains(n)).then(|| dots.map(|n| n as u16))
}
