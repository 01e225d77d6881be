//! From pixels to a file's bytes.

use std::borrow::Cow;
use std::io::{Seek, Write};
use std::path::Path;

use image::codecs::bmp::BmpEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use ndarray::{ArrayView2, ArrayView3};
use ndarray_npy::{WritableElement, WriteNpyExt};
use tiff::encoder::{TiffEncoder, TiffValue, colortype};

use super::save::Depth;
use crate::buffer::HostBuffer;
use crate::dispatch;
use crate::dtype::{DType, Pixel};
use crate::shape::Shape;

/// JPEG is lossy anyway; this much loss cannot be seen.
const JPEG_QUALITY: u8 = 95;

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Png,
    Jpeg,
    Tiff,
    Pgm,
    Ppm,
    Bmp,
    Npy,
}

impl Format {
    /// The format that a path's extension asks for; `pnm` follows the number of channels.
    pub(super) fn of(path: &Path, channels: usize) -> Result<Format, String> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        Ok(match extension.as_str() {
            "png" => Format::Png,
            "jpg" | "jpeg" => Format::Jpeg,
            "tif" | "tiff" => Format::Tiff,
            "pnm" if channels == 1 => Format::Pgm,
            "pnm" => Format::Ppm,
            "pgm" => Format::Pgm,
            "ppm" => Format::Ppm,
            "bmp" => Format::Bmp,
            "npy" => Format::Npy,
            "" => return Err("the name has no extension to choose a format by".into()),
            other => {
                return Err(format!("unknown extension .{other}; use png, jpg, tif, pgm, ppm, pnm, bmp or npy"));
            }
        })
    }

    /// Checks that the format can hold such an image.
    pub(super) fn check(self, channels: usize, depth: Depth) -> Result<(), String> {
        let holds: &[usize] = match self {
            Format::Npy => return Ok(()),
            Format::Png => &[1, 2, 3, 4],
            Format::Jpeg => &[1, 3],
            Format::Tiff | Format::Bmp => &[1, 3, 4],
            Format::Pgm => &[1],
            Format::Ppm => &[3],
        };
        if !holds.contains(&channels) {
            return Err(format!("{self:?} files cannot hold {channels} channels"));
        }
        let depths: &[Depth] = match self {
            Format::Tiff => &[Depth::Eight, Depth::Sixteen, Depth::Float],
            Format::Png | Format::Pgm | Format::Ppm => &[Depth::Eight, Depth::Sixteen],
            _ => &[Depth::Eight],
        };
        if !depths.contains(&depth) {
            return Err(format!("{self:?} files cannot hold {depth}"));
        }
        Ok(())
    }
}

/// Interleaved samples of a checked depth.
pub(super) enum Samples {
    U8(Vec<u8>),
    U16(Vec<u16>),
    F32(Vec<f32>),
}

/// Channels one after the other, interleaved; each value put through `map`.
pub(super) fn interleaved<T: Pixel, S>(pixels: &[T], shape: Shape, map: impl Fn(T) -> S) -> Vec<S> {
    let area = shape.area();
    let map = &map;
    (0..area).flat_map(|i| (0..shape.channels).map(move |c| map(pixels[c * area + i]))).collect()
}

/// Writes samples in any format but `Npy`.
pub(super) fn write<W: Write + Seek>(to: W, format: Format, samples: &Samples, shape: Shape) -> Result<(), String> {
    let extent = |n: usize| u32::try_from(n).map_err(|_| format!("{n} pixels are too many for the format"));
    let (w, h) = (extent(shape.width)?, extent(shape.height)?);
    match format {
        Format::Tiff => return write_tiff(to, samples, w, h, shape.channels),
        Format::Pgm | Format::Ppm => return write_pnm(to, samples, shape),
        _ => {}
    }
    let (bytes, wide): (&[u8], bool) = match samples {
        Samples::U8(v) => (v, false),
        Samples::U16(v) => (bytemuck::cast_slice(v), true),
        Samples::F32(_) => return Err(format!("{format:?} files cannot hold {}", Depth::Float)),
    };
    let color = match (shape.channels, wide) {
        (1, false) => ExtendedColorType::L8,
        (2, false) => ExtendedColorType::La8,
        (3, false) => ExtendedColorType::Rgb8,
        (_, false) => ExtendedColorType::Rgba8,
        (1, true) => ExtendedColorType::L16,
        (2, true) => ExtendedColorType::La16,
        (3, true) => ExtendedColorType::Rgb16,
        (_, true) => ExtendedColorType::Rgba16,
    };
    let mut to = to;
    match format {
        Format::Png => PngEncoder::new(to).write_image(bytes, w, h, color),
        Format::Jpeg => JpegEncoder::new_with_quality(to, JPEG_QUALITY).write_image(bytes, w, h, color),
        _ => BmpEncoder::new(&mut to).write_image(bytes, w, h, color),
    }
    .map_err(|e| e.to_string())
}

fn write_tiff<W: Write + Seek>(to: W, samples: &Samples, w: u32, h: u32, channels: usize) -> Result<(), String> {
    fn image<C: colortype::ColorType>(to: impl Write + Seek, w: u32, h: u32, data: &[C::Inner]) -> Result<(), String>
    where
        [C::Inner]: TiffValue,
    {
        let write = || TiffEncoder::new(to)?.write_image::<C>(w, h, data);
        write().map_err(|e| e.to_string())
    }
    match (samples, channels) {
        (Samples::U8(v), 1) => image::<colortype::Gray8>(to, w, h, v),
        (Samples::U8(v), 3) => image::<colortype::RGB8>(to, w, h, v),
        (Samples::U8(v), _) => image::<colortype::RGBA8>(to, w, h, v),
        (Samples::U16(v), 1) => image::<colortype::Gray16>(to, w, h, v),
        (Samples::U16(v), 3) => image::<colortype::RGB16>(to, w, h, v),
        (Samples::U16(v), _) => image::<colortype::RGBA16>(to, w, h, v),
        (Samples::F32(v), 1) => image::<colortype::Gray32Float>(to, w, h, v),
        (Samples::F32(v), 3) => image::<colortype::RGB32Float>(to, w, h, v),
        (Samples::F32(v), _) => image::<colortype::RGBA32Float>(to, w, h, v),
    }
}

/// Binary PGM or PPM. Written here because the `image` crate cannot write 16 bits.
fn write_pnm<W: Write>(mut to: W, samples: &Samples, shape: Shape) -> Result<(), String> {
    let magic = if shape.channels == 1 { "P5" } else { "P6" };
    let (full, bytes) = match samples {
        Samples::U8(v) => (u16::from(u8::MAX), Cow::Borrowed(v.as_slice())),
        Samples::U16(v) => (u16::MAX, v.iter().flat_map(|v| v.to_be_bytes()).collect()),
        Samples::F32(_) => return Err(format!("PNM files cannot hold {}", Depth::Float)),
    };
    let mut write = || {
        writeln!(to, "{magic}\n{} {}\n{full}", shape.width, shape.height)?;
        to.write_all(&bytes)
    };
    write().map_err(|e: std::io::Error| e.to_string())
}

/// Writes the exact values as a NumPy array of shape `(height, width)`, or `(height, width, channels)` if there are
/// several.
pub(super) fn write_npy(to: impl Write, pixels: &HostBuffer, dtype: DType, shape: Shape) -> Result<(), String> {
    fn typed<T: Pixel + WritableElement>(to: impl Write, pixels: &[T], shape: Shape) -> Result<(), String> {
        let Shape { height, width, channels } = shape;
        let invalid = |e: ndarray::ShapeError| e.to_string();
        if channels == 1 {
            ArrayView2::from_shape((height, width), pixels).map_err(invalid)?.write_npy(to)
        } else {
            let planes = ArrayView3::from_shape((channels, height, width), pixels).map_err(invalid)?;
            planes.permuted_axes([1, 2, 0]).as_standard_layout().write_npy(to)
        }
        .map_err(|e| e.to_string())
    }
    dispatch!(dtype, T => typed::<T>(to, pixels.as_slice(), shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_choose_the_format() {
        let of = |name: &str| Format::of(Path::new(name), 3);
        assert_eq!(of("a.b.PNG"), Ok(Format::Png));
        assert_eq!(of("a.jpeg"), Ok(Format::Jpeg));
        assert_eq!(of("a.pnm"), Ok(Format::Ppm));
        assert!(of("a.gif").unwrap_err().contains("unknown extension .gif"));
        assert!(of("png").is_err() && of(".png").is_err());
    }

    #[test]
    fn formats_refuse_what_they_cannot_hold() {
        assert!(Format::Jpeg.check(4, Depth::Eight).is_err());
        assert!(Format::Jpeg.check(3, Depth::Sixteen).unwrap_err().contains("16 bits"));
        assert!(Format::Png.check(1, Depth::Float).is_err());
        assert!(Format::Tiff.check(1, Depth::Float).is_ok());
        assert!(Format::Npy.check(9, Depth::Eight).is_ok());
    }
}
