//! PNM: PGM and PPM files; masks as bitmaps (PBM), floats as PFM; PAM files are only read.

mod bitmap;
mod floats;
mod plain;

pub(super) use bitmap::Pbm;
pub(super) use floats::Pfm;
use plain::PnmSamples;

use crate::{
    Alpha, Decoder, Encoder, FileSpec, Format, FormatProperties, Metadata, OpenOptions, PictureFormat, PictureHeader,
    PictureSource, Raster, RegionFile, SampleConversion, Sink, check_size, raster, writer,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;

/// PGM and PPM files.
pub(super) struct Pnm(FormatProperties);

const FACTS: FormatProperties = FormatProperties {
    magic: &[b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"P7"],
    title: "PNM",
    types: &[DType::U8, DType::U16],
    by_regions: true,
    ..FormatProperties::PLAIN
};
pub(super) static PGM: Pnm = Pnm(FormatProperties { name: "pgm", channels: &[1], ..FACTS });
pub(super) static PPM: Pnm = Pnm(FormatProperties { name: "ppm", channels: &[3], ..FACTS });
pub(super) static PNM: Pnm = Pnm(FormatProperties { name: "pnm", channels: &[1, 3], read: &["pam"], ..FACTS });

impl PictureFormat for Pnm {
    fn facts(&self) -> &FormatProperties {
        &self.0
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        let plain = PnmSamples::of(bytes)?;
        let Shape { height, width, channels, .. } = plain.shape;
        Ok((PictureHeader::new(width as u32, height as u32, channels, plain.dtype())?, Box::new(plain)))
    }

    fn header(&self, source: &PictureSource<'_>, _: &OpenOptions) -> Result<PictureHeader, String> {
        let head = source.head();
        match self.decoder(head) {
            // Comments may be long.
            Err(_) if source.size() > head.len() as u64 => Ok(self.decoder(&source.all(&HostBuffer::try_zeroed)?)?.0),
            read => Ok(read?.0),
        }
    }

    /// For files whose samples require at most a byte swap.
    fn raster(&self, source: &PictureSource<'_>, options: &OpenOptions) -> Result<Option<Raster>, String> {
        let Ok(plain) = PnmSamples::of(source.head()) else { return Ok(None) };
        let Some(at) = plain.offset(source.head()) else { return Ok(None) };
        let order =
            if cfg!(target_endian = "little") { SampleConversion::Swapped } else { SampleConversion::Unchanged };
        let raster = Raster { at, shape: plain.shape, dtype: plain.dtype(), order, bottom_up: false };
        checked(raster, source, options).map(Some)
    }

    fn metadata(&self, source: &PictureSource<'_>, _: &OpenOptions, _: usize) -> Metadata {
        let alpha = plain::has_alpha(source.head()).then_some(Alpha::Unassociated);
        Metadata { alpha, ..Metadata::default() }
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        raster::write(to, &header(&file.draft), file.pixels[0].bytes(), file.draft.stored, workers)
    }

    fn in_regions(&self, file: &FileSpec) -> Result<Box<dyn RegionFile>, String> {
        Ok(writer::of_rows(header(file), file))
    }

    fn with_channels(&self, channels: usize) -> Option<Format> {
        let several = self.0.channels.len() > 1;
        several.then_some(if channels == 1 { Format::Pgm } else { Format::Ppm })
    }
}

/// Rejects pixels that are too many, or more than the file has.
fn checked(raster: Raster, source: &PictureSource<'_>, options: &OpenOptions) -> Result<Raster, String> {
    let Raster { at, shape: Shape { height, width, channels, .. }, dtype, .. } = raster;
    if options.region.is_none() {
        check_size(height as u64, width as u64, options)?;
    }
    let needed = [width, channels, dtype.size()].iter().try_fold(height as u64, |n, m| n.checked_mul(*m as u64));
    if needed.is_none_or(|needed| needed > source.size().saturating_sub(at)) {
        let size = source.size();
        return Err(format!("the file declares {width}x{height} pixels, more than its {size} bytes can hold"));
    }
    Ok(raster)
}

/// Reads the next number, and one space after it. A comment extends from its mark to the end of its line, inclusive,
/// and may stand anywhere, even inside a number, as in Netpbm.
pub(super) fn number(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let mut value: Option<u32> = None;
    let mut comment = false;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        match byte {
            b'\r' | b'\n' if comment => comment = false,
            _ if comment => {}
            b'#' => comment = true,
            b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r' | b' ' => {
                if value.is_some() {
                    return value;
                }
            }
            b'0'..=b'9' => value = Some(value.unwrap_or(0).checked_mul(10)?.checked_add(u32::from(byte - b'0'))?),
            _ => return None,
        }
    }
}

/// The header of a file to write, and the byte order of its pixels.
fn header(file: &FileSpec) -> (Vec<u8>, SampleConversion) {
    let Shape { height, width, channels, .. } = file.shape;
    let magic = if channels == 1 { "P5" } else { "P6" };
    let (full, order) = match file.stored {
        DType::U16 => (
            u16::MAX,
            if cfg!(target_endian = "little") { SampleConversion::Swapped } else { SampleConversion::Unchanged },
        ),
        _ => (u16::from(u8::MAX), SampleConversion::Unchanged),
    };
    (format!("{magic}\n{width} {height}\n{full}\n").into_bytes(), order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_spaces_and_comments_anywhere() {
        let parsed = |text: &[u8]| {
            let plain = PnmSamples::of(text).ok()?;
            Some((plain.shape, plain.dtype(), plain.offset(text)?))
        };
        let header =
            |height, width, channels, dtype, length| Some((Shape::new(height, width, channels), dtype, length));
        assert_eq!(parsed(b"P5 3 2 255 ______"), header(2, 3, 1, DType::U8, 11));
        assert_eq!(parsed(b"P6\n# by hand\n3\t2\r65535\n#_"), header(2, 3, 3, DType::U16, 23));
        assert_eq!(parsed(b"P5 1#0\n2 003 255\n\n"), header(3, 12, 1, DType::U8, 17));
        assert_eq!(parsed(b"P53 2 255 ______"), header(2, 3, 1, DType::U8, 10));
        for other in
            ["P5 3 2 254 ______", "P5 3 2 256 ____________", "P5 0 2 255 ", "P5 3 2 255", "P4 3 2 255 ", "P", ""]
        {
            assert_eq!(parsed(other.as_bytes()), None, "{other}");
        }
        assert_eq!(parsed(b"P5 4294967296 2 255 "), None);
        assert_eq!(parsed(b"P5 -3 2 255 "), None);
    }
}
