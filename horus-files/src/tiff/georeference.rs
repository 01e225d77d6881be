//! The position of a picture on the earth: the tags of GeoTIFF (OGC 19-008r4). Also the meaning of its values: GDAL's
//! value for missing pixels, and a colour table.

use tiff::decoder::Decoder;
use tiff::decoder::ifd::Value;
use tiff::tags::{PhotometricInterpretation, Tag};

use super::directory::{DirectoryEntry, NODATA};
use super::metadata;
use super::read;
use super::source::{TiffReader, are_indices, decoder_at};
use crate::{OpenOptions, PictureSource, decode};
use horus_base::position_map::PositionMap;

/// The key that says whether coordinates are those of a pixel's corner or of its centre, and the value for the centre.
const RASTER_TYPE: u16 = 1025;
const IS_POINT: u16 = 2;

/// The georeference of a TIFF page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Georeference {
    /// Size of a pixel.
    scale: Vec<f64>,
    /// Tie points: raster positions and their positions on the earth, six numbers each.
    ties: Vec<f64>,
    /// Map from raster positions to positions on the earth: four rows of four, or empty.
    matrix: Vec<f64>,
    keys: Vec<u16>,
    doubles: Vec<f64>,
    text: String,
    nodata: String,
    /// Red, green and blue of all 8-bit or 16-bit values, if values are indices.
    colours: Vec<u16>,
}

impl Georeference {
    /// The georeference of the page of an open TIFF file that the options select; `None` if it has none. Unreadable
    /// tags count as absent.
    pub(super) fn of(source: &PictureSource<'_>, options: &OpenOptions) -> Option<Georeference> {
        let read = || -> Result<Option<Georeference>, String> {
            let page = read::directory_page(source, options);
            let at = |level| decoder_at(source, read::directory_of_page(source, page, level)?);
            let mut decoder = at(options.level)?;
            let mut found = Georeference::of_page(&mut decoder);
            let nodata = std::mem::take(&mut found.nodata);
            if options.level > 0 {
                // A smaller copy covers the same area with other pixels.
                found = Georeference { nodata: String::new(), ..Georeference::of_page(&mut at(0)?) };
            }
            let placed = metadata::placed_in_page(source, page, options)?;
            let found = found.transformed(&placed).unwrap_or_default();
            let indices = are_indices(&mut decoder) || is_coloured(&mut decoder);
            let colours = if indices { colours(&mut decoder) } else { Vec::new() };
            Ok(Some(found.with_values(nodata, colours)))
        };
        let mut found = decode::guarded(read).ok().flatten().filter(|found| *found != Georeference::default())?;
        if let Some(region) = options.region {
            found = found.transformed(&PositionMap::shifted(region.top as f64, region.left as f64))?;
        }
        Some(found)
    }

    fn of_page(decoder: &mut Decoder<TiffReader<'_>>) -> Georeference {
        let mut doubles = |tag| decoder.find_tag(tag).ok().flatten().and_then(numbers).unwrap_or_default();
        let (scale, ties) = (doubles(Tag::ModelPixelScaleTag), doubles(Tag::ModelTiepointTag));
        let (matrix, params) = (doubles(Tag::ModelTransformationTag), doubles(Tag::GeoDoubleParamsTag));
        let mut text = |tag| match decoder.find_tag(tag) {
            Ok(Some(Value::Ascii(text))) => text.trim_end_matches('\0').to_owned(),
            _ => String::new(),
        };
        let (ascii, nodata) = (text(Tag::GeoAsciiParamsTag), text(Tag::Unknown(NODATA)));
        let keys = decoder.find_tag_unsigned_vec::<u16>(Tag::GeoKeyDirectoryTag).ok().flatten().unwrap_or_default();
        let sized = |values: Vec<f64>, n: usize| if values.len() == n { values } else { Vec::new() };
        let whole = ties.len() / 6 * 6;
        Georeference {
            scale: sized(scale, 3),
            ties: ties[..whole].to_vec(),
            matrix: sized(matrix, 16),
            keys,
            doubles: params,
            text: ascii,
            nodata,
            colours: Vec::new(),
        }
    }

    /// Returns `true` if the position on the earth is known.
    pub fn is_placed(&self) -> bool {
        ![&self.scale, &self.ties, &self.matrix].into_iter().all(Vec::is_empty) || !self.keys.is_empty()
    }

    /// The value of missing pixels as the file writes it; otherwise empty.
    pub fn nodata(&self) -> &str {
        &self.nodata
    }

    /// Red, green and blue of all 8-bit or 16-bit values, one after the other, if values are indices; otherwise empty.
    pub fn colours(&self) -> &[u16] {
        &self.colours
    }

    /// The position without the meaning of values; `None` if there is none.
    pub fn place(&self) -> Option<Georeference> {
        let place = Georeference { nodata: String::new(), colours: Vec::new(), ..self.clone() };
        (place != Georeference::default()).then_some(place)
    }

    /// The georeference with this value of missing pixels and these colours.
    #[must_use]
    pub fn with_values(self, nodata: String, colours: Vec<u16>) -> Georeference {
        Georeference { nodata, colours, ..self }
    }

    /// Returns `true` if pixels have the same positions in the same coordinate system, up to a thousandth of a pixel,
    /// in whatever way the tags express it.
    pub fn agrees(&self, other: &Georeference) -> bool {
        let system = |of: &Georeference| (of.keys_but_raster_type(), of.doubles.clone(), of.text.clone());
        let points = |of: &Georeference| (of.ties.clone(), of.scale.clone());
        system(self) == system(other)
            && match (self.map(), other.map()) {
                (Some(a), Some(b)) => {
                    let side = |row: [f64; 3]| row[0].abs().max(row[1].abs());
                    a.iter().zip(&b).all(|(a, b)| {
                        let pixel = side(*a);
                        let off = |k: usize| (a[k] - b[k]).abs();
                        // Differences at positions 100,000 pixels away.
                        off(2) <= 1e-3 * pixel && off(0).max(off(1)) <= 1e-8 * pixel
                    })
                }
                (None, None) => points(self) == points(other) && self.is_point() == other.is_point(),
                _ => false,
            }
    }

    /// The rows of the map from the centres of pixels, counted from the first, to positions; `None` if there is none.
    fn map(&self) -> Option<[[f64; 3]; 2]> {
        let rows = match (&self.matrix[..], &self.scale[..], &self.ties[..]) {
            ([a, b, _, c, d, e, _, f, ..], ..) => [[*a, *b, *c], [*d, *e, *f]],
            ([], [sx, sy, _], [i, j, _, x, y, _]) => [[*sx, 0.0, x - i * sx], [0.0, -sy, y + j * sy]],
            _ => return None,
        };
        let half = if self.is_point() { 0.0 } else { 0.5 };
        Some(rows.map(|[x, y, first]| [x, y, first + half * (x + y)]))
    }

    /// The keys, except their number and [`RASTER_TYPE`].
    fn keys_but_raster_type(&self) -> Vec<[u16; 4]> {
        self.keys.as_chunks::<4>().0.iter().skip(1).filter(|[key, ..]| *key != RASTER_TYPE).copied().collect()
    }

    /// Returns `true` if coordinates are those of pixels' centres.
    fn is_point(&self) -> bool {
        self.keys.as_chunks::<4>().0.iter().skip(1).any(|[key, _, _, value]| (*key, *value) == (RASTER_TYPE, IS_POINT))
    }

    /// The georeference of a picture whose pixels have positions `placed` in this one; `None` if it cannot be expressed
    /// because the map has no inverse.
    #[must_use]
    pub fn transformed(&self, placed: &PositionMap) -> Option<Georeference> {
        if placed.is_identity() {
            return Some(self.clone());
        }
        // Raster positions count from a pixel's corner or its centre.
        let half = if self.is_point() { 0.0 } else { 0.5 };
        let [[xx, xy, x0], [yx, yy, y0]] = placed.rows();
        let x0 = x0 + half - half * (xx + xy);
        let y0 = y0 + half - half * (yx + yy);
        let determinant = xx * yy - xy * yx;
        if determinant == 0.0 || !determinant.is_finite() {
            return None;
        }
        let mut seen = self.clone();
        let upright = xy == 0.0 && yx == 0.0 && xx > 0.0 && yy > 0.0;
        match (&self.matrix[..], &self.scale[..], &self.ties[..]) {
            ([_, ..], ..) => return Some(seen.moved_matrix([[xx, xy, x0], [yx, yy, y0]])),
            ([], [sx, sy, _], [i, j, _, x, y, _]) if upright => {
                (seen.scale[0], seen.scale[1]) = (sx * xx, sy * yy);
                (seen.ties[0], seen.ties[1]) = (0.0, 0.0);
                (seen.ties[3], seen.ties[4]) = (x + (x0 - i) * sx, y - (y0 - j) * sy);
            }
            ([], [sx, sy, sz], [i, j, k, x, y, z]) => {
                #[rustfmt::skip]
                let matrix = [
                    *sx, 0.0, 0.0, x - i * sx,
                    0.0, -sy, 0.0, y + j * sy,
                    0.0, 0.0, *sz, z - k * sz,
                    0.0, 0.0, 0.0, 1.0,
                ];
                (seen.scale, seen.ties) = (Vec::new(), Vec::new());
                seen.matrix = matrix.to_vec();
                return Some(seen.moved_matrix([[xx, xy, x0], [yx, yy, y0]]));
            }
            ([], [], ties) => {
                // Control points.
                for (to, from) in seen.ties.as_chunks_mut::<6>().0.iter_mut().zip(ties.as_chunks::<6>().0) {
                    let (x, y) = (from[0] - x0, from[1] - y0);
                    to[0] = (x * yy - y * xy) / determinant;
                    to[1] = (y * xx - x * yx) / determinant;
                }
            }
            // A scale with several points, which the standard does not define.
            _ => return None,
        }
        Some(seen)
    }

    fn moved_matrix(mut self, [[xx, xy, x0], [yx, yy, y0]]: [[f64; 3]; 2]) -> Georeference {
        for row in self.matrix.as_chunks_mut::<4>().0.iter_mut().take(3) {
            let [a, b, c, d] = *row;
            *row = [a * xx + b * yx, a * xy + b * yy, c, d + a * x0 + b * y0];
        }
        self
    }

    /// The tags.
    pub(crate) fn entries(&self) -> Vec<DirectoryEntry> {
        let doubles =
            |tag: Tag, values: &[f64]| (!values.is_empty()).then(|| DirectoryEntry::double(tag.to_u16(), values));
        let text = |tag: u16, text: &str| (!text.is_empty()).then(|| DirectoryEntry::ascii(tag, text));
        let keys = (!self.keys.is_empty())
            .then(|| DirectoryEntry::short(Tag::GeoKeyDirectoryTag.to_u16(), self.keys.iter().copied()));
        [
            doubles(Tag::ModelPixelScaleTag, &self.scale),
            doubles(Tag::ModelTiepointTag, &self.ties),
            doubles(Tag::ModelTransformationTag, &self.matrix),
            keys,
            doubles(Tag::GeoDoubleParamsTag, &self.doubles),
            text(Tag::GeoAsciiParamsTag.to_u16(), &self.text),
            text(NODATA, &self.nodata),
            (!self.colours.is_empty())
                .then(|| DirectoryEntry::short(Tag::ColorMap.to_u16(), self.colours.iter().copied())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Returns `true` if whole bytes that a page declares as grey may have a colour table: GDAL writes such files if the
/// table was set later.
fn is_coloured(decoder: &mut Decoder<TiffReader<'_>>) -> bool {
    let mut first = |tag| decoder.find_tag_unsigned_vec::<u16>(tag).ok().flatten().and_then(|all| all.first().copied());
    let samples = first(Tag::SamplesPerPixel).unwrap_or(1);
    let grey = first(Tag::PhotometricInterpretation) == Some(PhotometricInterpretation::BlackIsZero.to_u16());
    grey && samples == 1 && matches!(first(Tag::BitsPerSample), Some(8 | 16))
}

/// The colour table of a page that has a colour for each value of its samples, extended to all values of the samples'
/// bytes.
fn colours(decoder: &mut Decoder<TiffReader<'_>>) -> Vec<u16> {
    let mut numbers = |tag| decoder.find_tag_unsigned_vec::<u16>(tag).ok().flatten().unwrap_or_default();
    let (found, bits) = (numbers(Tag::ColorMap), numbers(Tag::BitsPerSample));
    let count = 1 << bits.first().map_or(0, |bits| (*bits).min(16));
    if found.len() != 3 * count {
        return Vec::new();
    }
    let all = if count <= 1 << 8 { 1 << 8 } else { 1 << 16 };
    found
        .chunks_exact(count)
        .flat_map(|plane| plane.iter().copied().chain(std::iter::repeat_n(0, all - count)))
        .collect()
}

fn numbers(value: Value) -> Option<Vec<f64>> {
    let one = |value: &Value| match value {
        Value::Double(n) => Some(*n),
        Value::Float(n) => Some(f64::from(*n)),
        _ => None,
    };
    match &value {
        Value::List(all) => all.iter().map(one).collect(),
        value => one(value).map(|n| vec![n]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pixels of 10 by 20 whose first corner is at (500, 4000).
    fn upright() -> Georeference {
        Georeference {
            scale: vec![10.0, 20.0, 0.0],
            ties: vec![0.0, 0.0, 0.0, 500.0, 4000.0, 0.0],
            keys: vec![1, 1, 0, 1, RASTER_TYPE, 0, 1, 1],
            nodata: "255".into(),
            ..Georeference::default()
        }
    }

    /// The position on the earth of a raster position.
    fn place(of: &Georeference, x: f64, y: f64) -> [f64; 2] {
        match (&of.scale[..], &of.ties[..], &of.matrix[..]) {
            ([sx, sy, _], [i, j, _, px, py, _], []) => [px + (x - i) * sx, py - (y - j) * sy],
            ([], [], m) => [m[0] * x + m[1] * y + m[3], m[4] * x + m[5] * y + m[7]],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn places_stay_where_they_are() {
        let crop = PositionMap::shifted(3.0, 2.0);
        // Every pixel is the mean of four.
        let halved = PositionMap::resized((64, 64), (32, 32));
        let turned = PositionMap::of([[0.0, 1.0, 0.0], [-1.0, 0.0, 63.0]]);
        for point in [false, true] {
            let mut whole = upright();
            whole.keys[7] = if point { IS_POINT } else { 1 };
            let half = if point { 0.0 } else { 0.5 };
            for placed in [crop, halved, turned] {
                let seen = whole.transformed(&placed).expect("it has an inverse");
                for (x, y) in [(0.0, 0.0), (7.0, 5.0)] {
                    let (y0, x0) = placed.at(y, x);
                    let (a, b) = (place(&seen, x + half, y + half), place(&whole, x0 + half, y0 + half));
                    assert!((a[0] - b[0]).abs() + (a[1] - b[1]).abs() < 1e-9, "{placed:?}: {a:?} {b:?}");
                }
                assert_eq!(
                    seen.transformed(&PositionMap::default()).as_ref(),
                    Some(&seen),
                    "and nothing is rounded twice"
                );
            }
        }
        assert_eq!(upright().transformed(&crop).expect("a crop").ties[3..5], [520.0, 3940.0]);
        assert_eq!(upright().transformed(&halved).expect("halves").scale[..2], [20.0, 40.0]);
    }

    #[test]
    fn points_of_control_move_in_the_raster() {
        let ties = vec![4.0, 6.0, 0.0, 1.0, 2.0, 3.0, 8.0, 9.0, 0.0, 4.0, 5.0, 6.0];
        let all = Georeference { ties, ..Georeference::default() };
        let seen = all.transformed(&PositionMap::shifted(5.0, 1.0)).expect("a crop");
        assert_eq!(seen.ties, [3.0, 1.0, 0.0, 1.0, 2.0, 3.0, 7.0, 4.0, 0.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn what_has_no_inverse_or_no_meaning_is_not_told() {
        assert_eq!(upright().transformed(&PositionMap::of([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])), None);
        let odd = Georeference { ties: vec![0.0; 12], ..upright() };
        assert_eq!(odd.transformed(&PositionMap::shifted(1.0, 1.0)), None);
    }

    #[test]
    fn grids_agree_where_their_pixels_lie_however_tags_say_it() {
        let matrix = vec![10.0, 0.0, 0.0, 500.0, 0.0, -20.0, 0.0, 4000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let other_words = Georeference { scale: vec![], ties: vec![], matrix, nodata: "0".into(), ..upright() };
        // A tie point at another pixel, and coordinates of centres.
        let tied = Georeference { ties: vec![3.0, 2.0, 0.0, 530.0, 3960.0, 0.0], ..upright() };
        let mut centres = Georeference { ties: vec![0.0, 0.0, 0.0, 505.0, 3990.0, 0.0], ..upright() };
        centres.keys[7] = IS_POINT;
        for same in [&other_words, &tied, &centres] {
            assert!(upright().agrees(same) && same.agrees(&upright()), "{same:?}");
        }
        let mut point = upright();
        point.keys[7] = IS_POINT;
        let moved = upright().transformed(&PositionMap::shifted(0.0, 0.01)).expect("a crop");
        let finer = upright().transformed(&PositionMap::resized((8, 8), (16, 16))).expect("an inverse");
        let system = Georeference { text: "elsewhere".into(), ..upright() };
        for other in [point, moved, finer, system, Georeference::default()] {
            assert!(!upright().agrees(&other) && !other.agrees(&upright()), "{other:?}");
        }
        assert_eq!(upright().place().map(|place| place.nodata), Some(String::new()));
        assert_eq!(Georeference { nodata: "255".into(), ..Georeference::default() }.place(), None);
    }
}
