//! Writing of JPEG files by all threads, in bands of rows that depend only on the picture.
//!
//! A band is a restart interval (ITU-T T.81, B.2.4.4): after its marker, differences between blocks restart, so that a
//! band can be encoded without the previous one. The file decodes to the same pixels as a file encoded as a whole.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use jpeg_encoder::{ColorType, Encoder, PixelDensity, PixelDensityUnit, SamplingFactor};

use super::segments::markers;
use crate::density::dots;
use crate::target::Sink;
use crate::{FileSpec, UnsupportedMetadata, cause, exif, texts};
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// Default quality: a loss this small is invisible.
const QUALITY: u8 = 95;

/// Minimum quality at which colours have all rows and columns.
const FINE: u8 = 90;

/// Approximate number of pixels of a band.
const BAND: usize = 1 << 17;

const SOF: u8 = 0xc0;
const SOS: u8 = 0xda;
const COM: [u8; 2] = [0xff, 0xfe];
const DRI: [u8; 2] = [0xff, 0xdd];
const EOI: [u8; 2] = [0xff, 0xd9];
const RST0: u8 = 0xd0;

/// Metadata of a file.
#[derive(Default)]
pub(super) struct JpegMetadata {
    profile: Option<Arc<[u8]>>,
    /// Dots per inch of a print, columns and rows.
    dots: Option<[u16; 2]>,
    /// EXIF data, including texts that have a tag.
    exif: Option<Vec<u8>>,
    comment: Option<String>,
    /// There are other texts.
    others: bool,
}

impl JpegMetadata {
    /// The metadata of a file to write.
    pub(super) fn of(file: &FileSpec) -> JpegMetadata {
        /// Maximum bytes of a profile: the capacity of segments, numbered by a byte.
        const LONGEST_PROFILE: usize = 254 * 65519;
        /// Bytes of a segment, without its length.
        const LONGEST: usize = 65533;
        let said = &file.metadata;
        let is_comment = |(keyword, _): &&(String, String)| keyword == texts::COMMENT;
        let texts = said.texts.as_deref().unwrap_or_default();
        let titled: Vec<_> = texts.iter().filter(|text| !is_comment(text)).cloned().collect();
        let (fields, unknown) = texts::entries(&titled);
        let has_fields = !fields.is_empty();
        let fields = [said.exif.as_ref().map(|exif| exif.entries(file.shape)).unwrap_or_default(), fields].concat();
        let exif = (!fields.is_empty()).then(|| exif::bytes_of(fields));
        let exif = exif.filter(|bytes| bytes.len() + exif::IN_JPEG.len() <= LONGEST);
        JpegMetadata {
            profile: said.profile.clone().filter(|profile| profile.len() <= LONGEST_PROFILE),
            dots: said.printed.and_then(dots),
            others: !unknown.is_empty() || (exif.is_none() && has_fields),
            exif,
            comment: texts.iter().find(is_comment).map(|(_, text)| text.clone()),
        }
    }

    /// Returns `true` if the file does not support this metadata, which the image has.
    pub(super) fn lacks(&self, what: UnsupportedMetadata) -> bool {
        match what {
            UnsupportedMetadata::Profile => self.profile.is_none(),
            UnsupportedMetadata::Printed => self.dots.is_none(),
            UnsupportedMetadata::Exif => self.exif.is_none(),
            UnsupportedMetadata::Texts => self.others,
            _ => true,
        }
    }
}

/// Writes interleaved samples of one or three channels, and metadata.
pub(super) fn write(
    to: &mut dyn Sink,
    samples: &[u8],
    shape: Shape,
    (quality, beside): (Option<u8>, &JpegMetadata),
    workers: &Workers,
) -> Result<(), String> {
    let picture = JpegPicture { samples, shape, quality: quality.unwrap_or(QUALITY), beside };
    to.write_all(&picture.encoded(BAND, workers)?).map_err(cause)
}

struct JpegPicture<'a> {
    samples: &'a [u8],
    shape: Shape,
    quality: u8,
    beside: &'a JpegMetadata,
}

impl JpegPicture<'_> {
    /// Encodes the file, in bands of about `band` pixels.
    fn encoded(&self, band: usize, workers: &Workers) -> Result<Vec<u8>, String> {
        let Shape { height, width, .. } = self.shape;
        let unit = self.unit();
        let rows = band.div_ceil(width * unit).max(1) * unit;
        let mut files = vec![Vec::new(); height.div_ceil(rows)];
        let bands = files.iter_mut().enumerate().collect();
        workers.each(bands, |_: &mut (), (i, file)| {
            let rows = i * rows..height.min((i + 1) * rows);
            self.band(rows, file).map_err(|e| e.to_string())
        })?;
        let [first, others @ ..] = &mut files[..] else { return Err("the picture has no pixels".into()) };
        if let Some(text) = &self.beside.comment
            && let Ok(length) = u16::try_from(text.len() + 2)
        {
            // Before the tables, after the segments of applications, of which the first is JFIF's.
            let table = markers(first).find(|(marker, _)| !(0xe0..=0xef).contains(marker));
            let at = table.map_or(2, |(_, body)| first.len() - body.len() - 4);
            first.splice(at..at, [&COM[..], &length.to_be_bytes(), text.as_bytes()].concat());
        }
        if others.is_empty() {
            return Ok(take(first));
        }
        let units = u16::try_from(width.div_ceil(unit) * (rows / unit)).map_err(|e| e.to_string())?;
        let height = u16::try_from(height).map_err(|e| e.to_string())?;
        let broken = || "the JPEG encoder wrote no scan".to_owned();
        let size = |file: &[u8]| parts(file).map(|(_, scan)| file[scan].len());
        let mut file = Vec::with_capacity(first.len() + others.iter().filter_map(|o| size(o)).sum::<usize>() + 1024);
        for (i, band) in files.iter().enumerate() {
            let (header, scan) = parts(band).ok_or_else(broken)?;
            if i == 0 {
                let (frame, rest) = band.split_at(header.frame);
                // Marker, length and depth come before the height.
                file.extend_from_slice(frame);
                file.extend_from_slice(&rest[..5]);
                file.extend_from_slice(&height.to_be_bytes());
                file.extend_from_slice(&band[header.frame + 7..header.scan]);
                file.extend_from_slice(&DRI);
                file.extend_from_slice(&4u16.to_be_bytes());
                file.extend_from_slice(&units.to_be_bytes());
                file.extend_from_slice(&band[header.scan..scan.start]);
            } else {
                file.extend_from_slice(&[0xff, RST0 + ((i - 1) % 8) as u8]);
            }
            file.extend_from_slice(&band[scan]);
        }
        file.extend_from_slice(&EOI);
        Ok(file)
    }

    /// Rows and columns of a unit of the scan.
    fn unit(&self) -> usize {
        if self.shape.channels == 1 || self.quality >= FINE { 8 } else { 16 }
    }

    /// Encodes some rows as a file.
    fn band(&self, rows: Range<usize>, to: &mut Vec<u8>) -> Result<(), jpeg_encoder::EncodingError> {
        let row = self.shape.width * self.shape.channels;
        let colour = if self.shape.channels == 1 { ColorType::Luma } else { ColorType::Rgb };
        let mut encoder = Encoder::new(&mut *to, self.quality);
        encoder.set_sampling_factor(if self.unit() == 8 { SamplingFactor::F_1_1 } else { SamplingFactor::F_2_2 });
        // Only the header of the first band is used.
        if rows.start == 0 {
            let JpegMetadata { profile, dots, exif, .. } = self.beside;
            if let Some([columns, rows]) = *dots {
                encoder.set_density(PixelDensity { density: (columns, rows), unit: PixelDensityUnit::Inches });
            }
            if let Some(exif) = exif {
                encoder.add_app_segment(1, [exif::IN_JPEG, exif].concat())?;
            }
            if let Some(profile) = profile {
                encoder.add_icc_profile(profile)?;
            }
        }
        // `Format::stored` has checked the format's limit.
        let (width, height) = (self.shape.width as u16, rows.len() as u16);
        encoder.encode(&self.samples[rows.start * row..rows.end * row], width, height, colour)
    }
}

/// Positions of the segments of a file.
struct SegmentPositions {
    frame: usize,
    scan: usize,
}

/// Parses the header of a file, and its only scan.
fn parts(file: &[u8]) -> Option<(SegmentPositions, Range<usize>)> {
    let at = |body: &[u8]| file.len().checked_sub(body.len() + 4);
    let mut frame = None;
    for (marker, body) in markers(file) {
        if marker == SOF {
            frame = at(body);
        }
        if marker == SOS {
            let header = at(body)?;
            let length = usize::from(u16::from_be_bytes(*file.get(header + 2..)?.first_chunk()?));
            let scan = header + 2 + length..file.len().checked_sub(EOI.len())?;
            return (scan.start <= scan.end).then_some((SegmentPositions { frame: frame?, scan: header }, scan));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files in bands decode to the same pixels as files in one piece, with an independent decoder.
    #[test]
    fn bands_are_decoded_as_one_picture() {
        for (height, width) in [(1, 1), (8, 8), (7, 130), (61, 83), (200, 33), (97, 16)] {
            for (channels, quality) in [(1, 95), (3, 95), (1, 60), (3, 60)] {
                let shape = Shape::new(height, width, channels);
                let wave = |i: usize| (128.0 + 100.0 * ((i * i % 9973) as f64 / 700.0).sin()) as u8;
                let samples: Vec<u8> = (0..shape.len()).map(wave).collect();
                let picture = JpegPicture { samples: &samples, shape, quality, beside: &JpegMetadata::default() };
                let decoded = |band: usize, threads: usize| {
                    let file = picture.encoded(band, &Workers::new(Some(threads)).unwrap()).unwrap();
                    let pixels = image::load_from_memory_with_format(&file, image::ImageFormat::Jpeg).unwrap();
                    assert_eq!((pixels.width() as usize, pixels.height() as usize), (width, height));
                    (pixels.into_bytes(), file)
                };
                let (whole, _) = decoded(usize::MAX >> 8, 1);
                for band in [1, 500, 3000] {
                    let (one, two) = (decoded(band, 1), decoded(band, 3));
                    assert!(one.0 == whole, "{shape} in bands of {band}, quality {quality}");
                    assert!(one.1 == two.1, "bytes depend on threads");
                }
            }
        }
    }
}
