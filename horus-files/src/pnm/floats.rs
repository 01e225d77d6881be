//! PFM: grey or colour as 32-bit floats, the last row first.

use super::checked;
use crate::{
    Encoder, FormatProperties, OpenOptions, PictureFormat, PictureSource, Raster, SampleConversion, Sink, cause,
    truncated,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// PFM files.
pub(crate) struct Pfm;

impl PictureFormat for Pfm {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "pfm",
            title: "PFM",
            magic: &[b"PF", b"Pf"],
            types: &[DType::F32],
            channels: &[1, 3],
            ..FormatProperties::PLAIN
        }
    }

    fn raster(&self, source: &PictureSource<'_>, options: &OpenOptions) -> Result<Option<Raster>, String> {
        checked(header(source.head())?, source, options).map(Some)
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, _: &Workers) -> Result<(), String> {
        let Shape { height, width, channels, .. } = file.draft.shape;
        let kind = if channels == 1 { "Pf" } else { "PF" };
        // A negative scale says that the low byte is the first.
        let scale = if cfg!(target_endian = "little") { "-1" } else { "1" };
        let (header, pixels) = (format!("{kind}\n{width} {height}\n{scale}\n"), file.pixels[0].bytes());
        to.expect((header.len() + pixels.len()) as u64);
        to.write_all(header.as_bytes()).map_err(cause)?;
        let mut rows = pixels.chunks_exact(width * channels * size_of::<f32>()).rev();
        rows.try_for_each(|row| to.write_all(row)).map_err(cause)
    }
}

/// Reads the header: the kind, columns, rows, and the scale, each followed by one space or more, the scale by one.
///
/// Values are not multiplied by the scale, as in other programs: stereo files keep disparities, whatever it is.
fn header(head: &[u8]) -> Result<Raster, String> {
    let channels = if head.starts_with(b"PF") { 3 } else { 1 };
    let mut rest = head.get(2..).unwrap_or_default();
    let mut word = || {
        let text = rest.trim_ascii_start();
        let length = text.iter().position(u8::is_ascii_whitespace).ok_or_else(truncated)?;
        rest = &text[length + 1..];
        str::from_utf8(&text[..length]).map_err(|_| "its header is broken".to_owned())
    };
    let mut side = || {
        let text = word()?;
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| digits).ok_or_else(|| format!("{text:?} is no number of rows or columns"))
    };
    let (width, height) = (side()?, side()?);
    let text = word()?;
    let scale = text.parse::<f32>().ok().filter(|scale| scale.is_finite() && *scale != 0.0);
    let is_little = scale.ok_or_else(|| format!("its scale {text:?} is no number other than 0"))? < 0.0;
    let kept = is_little == cfg!(target_endian = "little");
    let order = if kept { SampleConversion::Unchanged } else { SampleConversion::Swapped };
    let shape = Shape::new(height as usize, width as usize, channels);
    if shape.is_empty() {
        return Err("the picture has no pixels".into());
    }
    let at = (head.len() - rest.len()) as u64;
    Ok(Raster { at, shape, dtype: DType::F32, order, bottom_up: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_words_and_one_space_before_the_pixels() {
        let parsed = |text: &[u8]| header(text).map(|found| (found.shape, found.at, found.order));
        let little =
            if cfg!(target_endian = "little") { SampleConversion::Unchanged } else { SampleConversion::Swapped };
        assert_eq!(parsed(b"Pf\n3 2\n-1.0\n\n"), Ok((Shape::new(2, 3, 1), 12, little)));
        assert_eq!(parsed(b"PF 3\t2\r\n-0.0039\n___"), Ok((Shape::new(2, 3, 3), 16, little)));
        assert_ne!(parsed(b"PF\n3 2\n1e-3\n").unwrap().2, little);
        for (text, cause) in [
            ("Pf\n3 2\n-1.0", "the data is truncated"),
            ("Pf\n3 2\n0\n", "its scale \"0\" is no number other than 0"),
            ("Pf\n3 2\nnan\n", "its scale \"nan\" is no number other than 0"),
            ("Pf\n+3 2\n1\n", "\"+3\" is no number of rows or columns"),
            ("Pf\n3 4294967296\n1\n", "\"4294967296\" is no number of rows or columns"),
            ("Pf\n3 0\n1\n", "the picture has no pixels"),
        ] {
            assert_eq!(parsed(text.as_bytes()), Err(cause.to_owned()));
        }
    }
}
