//! Saving images.

use std::fmt;
use std::path::Path;

use super::encode::{Format, Samples, interleaved, write, write_npy};
use super::on_root;
use super::target::Target;
use crate::buffer::HostBuffer;
use crate::dispatch;
use crate::dtype::{DType, Element, Pixel};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::plan::Want;
use crate::shape::Shape;

/// What a file stores for each sample. NumPy files keep the image's own type, whatever is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Depth {
    /// As the image's type: `u8` in 8 bits, `u16` in 16, `i32` in 32 (TIFF only). Floats are stored as they are in TIFF,
    /// in 8 bits elsewhere. Where [`Scaling::Unit`] or [`Scaling::Range`] is asked for, `i32` and floats take 8 bits in
    /// every format. The default.
    #[default]
    Auto,
    /// 8-bit integers.
    Eight,
    /// 16-bit integers (PNG, TIFF, PNM).
    Sixteen,
    /// 32-bit floats, never scaled (TIFF).
    Float,
}

/// How values become 8-bit or 16-bit integers. Whatever is scaled is then rounded to nearest even and saturated; NaN becomes 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// [`Scaling::Unit`] for floating-point images, [`Scaling::None`] for integers. The default.
    #[default]
    Auto,
    /// Values are not scaled.
    None,
    /// `0..=1` becomes the full range of the file, as [`Image::to_unit`] and [`AnyImage::open`](super::AnyImage::open)
    /// read it: 0.5 is mid-grey. Of integer images, `0..=MAX` becomes the full range.
    Unit,
    /// The smallest finite value becomes 0 and the largest the largest integer; an image of one value becomes 0.
    Range,
}

/// How to save an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveOptions {
    /// What the file stores.
    pub depth: Depth,
    /// How values become integers.
    pub scaling: Scaling,
}

/// The scale of a saved image: `low` was stored as 0 and `high` as `full`, linearly in between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The value stored as 0.
    pub low: f64,
    /// The value stored as `full`.
    pub high: f64,
    /// The largest integer of the file.
    pub full: u16,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The shortest digits that name the value: most images are f32.
        let exact = |v: f64| if f64::from(v as f32) == v { (v as f32).to_string() } else { v.to_string() };
        write!(f, "{}..{} -> 0..{}", exact(self.low), exact(self.high), self.full)
    }
}

/// Saving.
impl<T: Element> Image<T> {
    /// Saves with the default [`SaveOptions`]: integers as they are, floats from `0..=1` to the full range of the file, masks as 0 and its largest integer; see
    /// [`Image::save_with`].
    ///
    /// ```
    /// # use horus_core::{cpu::device::CpuDevice, image::Image, session::Session};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("steps.png");
    /// Image::from_slice(&session, 1, 3, &[0.0f32, 0.5, 1.0]).save(&file)?;
    /// assert_eq!(Image::<u8>::open(&session, &file)?.to_vec()?, [0, 128, 255]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Image::save_with`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Option<Scale>> {
        self.save_with(path, &SaveOptions::default())
    }

    /// Evaluates the image and saves it in the format of the path's extension: png, jpg, tif, pgm, ppm, pnm, bmp, or npy
    /// for the exact values. Returns the scale, where values were scaled. In integer formats NaN becomes 0; a warning is
    /// logged if floats were to lie in `0..=1` and many do not.
    ///
    /// Rank 0 writes a temporary file beside the target when all is computed and renames it, so that a failure leaves
    /// nothing half-written and the file that a picture was read from can be written; of a link, the target is the file
    /// it leads to. Devices and pipes are written into; see [`Target`]. All ranks return the same.
    ///
    /// ```
    /// # use horus_core::{cpu::device::CpuDevice, image::Image, io::{SaveOptions, Scaling}, session::Session};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("steps.png");
    /// let image = Image::from_slice(&session, 1, 3, &[-2.0f32, 0.0, 2.0]);
    /// let range = SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() };
    /// let scale = image.save_with(&file, &range)?.expect("floats are scaled");
    /// assert_eq!(scale.to_string(), "-2..2 -> 0..255");
    /// assert_eq!(Image::<u8>::open(&session, &file)?.to_vec()?, [0, 128, 255]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Before anything is computed, if the extension is unknown, the format cannot hold the channels, the size or the
    /// depth (the message says which formats can), or no file can be made in the folder; later, if the program fails or
    /// the file cannot be written.
    pub fn save_with(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<Option<Scale>> {
        let path = path.as_ref();
        let failed = |cause: String| Error::write(path, cause);
        let format = Format::of(path, self.channels()).map_err(failed)?;
        let stored = format.stored(T::TAG, self.shape(), options).map_err(failed)?;
        let mut target = None;
        let answer = on_root(self.session(), "making a file for a picture", || {
            target = Some(Target::new(path)?);
            Ok(Vec::new())
        })?;
        answer.map_err(failed)?;
        let pixels = self.session().fetch(self.handle(), Want::Root)?;
        let answer = on_root(self.session(), "saving a picture", || {
            let (target, pixels) = target.zip(pixels).ok_or("rank 0 has no pixels")?;
            let shape = self.shape();
            if format == Format::Npy {
                target.fill(|to| write_npy(to, &pixels, T::TAG, shape))?;
                return Ok(pack(None));
            }
            let (samples, scale) =
                dispatch!(T::TAG, P => sample::<P>(pixels.as_slice(), shape, T::TAG, stored, options.scaling));
            if let Some(warning) = scale
                .filter(|_| options.scaling == Scaling::Auto && T::TAG.is_float())
                .and_then(|_| outside(&pixels, T::TAG))
            {
                log::warn!("{}: {warning}", path.display());
            }
            target.fill(|to| write(to, format, &samples, shape))?;
            Ok(pack(scale))
        })?;
        answer.map(|bytes| unpack(&bytes)).map_err(failed)
    }
}

/// Pixels of an image of type `dtype` as interleaved samples of type `stored`.
fn sample<T: Pixel>(
    pixels: &[T],
    shape: Shape,
    dtype: DType,
    stored: DType,
    scaling: Scaling,
) -> (Samples, Option<Scale>) {
    let full = match stored {
        DType::F64 => return (Samples::F64(interleaved(pixels, shape, Pixel::to_f64)), None),
        DType::F32 => return (Samples::F32(interleaved(pixels, shape, |v| v.to_f64() as f32)), None),
        DType::I32 => return (Samples::I32(interleaved(pixels, shape, |v| i32::from_f64(v.to_f64()))), None),
        DType::U16 => u16::MAX,
        DType::U8 | DType::Bool => u16::from(u8::MAX),
    };
    let scale = match scaling {
        // What holds is white.
        Scaling::Auto | Scaling::Unit if dtype == DType::Bool => Some(Scale { low: 0.0, high: 1.0, full }),
        Scaling::Auto if T::DTYPE.is_float() => Some(Scale { low: 0.0, high: 1.0, full }),
        Scaling::Auto | Scaling::None => None,
        Scaling::Unit => {
            let high = if T::DTYPE.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
            Some(Scale { low: 0.0, high, full })
        }
        Scaling::Range => {
            let finite = pixels.iter().map(|v| v.to_f64()).filter(|v| v.is_finite());
            let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            // Without a single finite value there is no range.
            Some(if low <= high { Scale { low, high, full } } else { Scale { low: 0.0, high: 0.0, full } })
        }
    };
    let value = |v: T| match scale {
        None => v.to_f64(),
        Some(Scale { low, high, .. }) if low == high => 0.0,
        Some(Scale { low, high, full }) => {
            // Halves of the largest numbers have a difference.
            let unit = if (high - low).is_finite() { 1.0 } else { 0.5 };
            (v.to_f64() * unit - low * unit) / (high * unit - low * unit) * f64::from(full)
        }
    };
    let samples = if stored == DType::U8 {
        Samples::U8(interleaved(pixels, shape, |v| u8::from_f64(value(v))))
    } else {
        Samples::U16(interleaved(pixels, shape, |v| u16::from_f64(value(v))))
    };
    (samples, scale)
}

/// What to tell a user whose floats are not in `0..=1`, where nothing was said of their scale. The odd pixel, as filters
/// leave it at an edge, is nothing to tell.
fn outside(pixels: &HostBuffer, dtype: DType) -> Option<String> {
    const ODD: usize = 100;
    fn of<T: Pixel>(pixels: &[T]) -> Option<String> {
        let outside = pixels.iter().filter(|v| v.to_f64() < 0.0 || v.to_f64() > 1.0).count();
        (outside > pixels.len() / ODD).then(|| {
            let percent = 100.0 * outside as f64 / pixels.len() as f64;
            format!(
                "{percent:.0} % of the values are outside of 0..=1, the range that is stored, and were saturated; \
                 Scaling::Range stretches, Scaling::None keeps, tif and npy files hold every value"
            )
        })
    }
    dispatch!(dtype, T => of::<T>(pixels.as_slice()))
}

fn pack(scale: Option<Scale>) -> Vec<u8> {
    let bytes = |s: Scale| [s.low, s.high, f64::from(s.full)].iter().flat_map(|v| v.to_le_bytes()).collect();
    scale.map(bytes).unwrap_or_default()
}

fn unpack(bytes: &[u8]) -> Option<Scale> {
    let values: Vec<f64> = bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    match values[..] {
        [low, high, full] => Some(Scale { low, high, full: full as u16 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored<T: Pixel>(pixels: &[T], stored: DType, scaling: Scaling) -> (Samples, Option<Scale>) {
        sample(pixels, Shape::new(1, pixels.len(), 1), T::DTYPE, stored, scaling)
    }

    fn eight<T: Pixel>(pixels: &[T], scaling: Scaling) -> (Vec<u8>, Option<Scale>) {
        match stored(pixels, DType::U8, scaling) {
            (Samples::U8(v), scale) => (v, scale),
            _ => panic!("8 bits were asked for"),
        }
    }

    #[test]
    fn the_range_is_spread_over_all_integers() {
        let (v, scale) = eight(&[-1.0f32, 0.0, 1.0, f32::NAN, f32::INFINITY], Scaling::Range);
        assert_eq!(v, [0, 128, 255, 0, 255]);
        assert_eq!(scale, Some(Scale { low: -1.0, high: 1.0, full: 255 }));
        assert_eq!(scale.unwrap().to_string(), "-1..1 -> 0..255");
    }

    #[test]
    fn floats_are_taken_to_be_in_0_to_1() {
        let pixels = [0.5f32, 0.0, 1.0, -0.1, 1.1, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.1];
        // 127.5 and the product of f32's nearest to 0.1: ties to even, else to nearest.
        let (v, scale) = eight(&pixels, Scaling::Auto);
        assert_eq!(v, [128, 0, 255, 0, 255, 0, 255, 0, 26]);
        assert_eq!(scale, Some(Scale { low: 0.0, high: 1.0, full: 255 }));
        assert_eq!(eight(&pixels, Scaling::Unit), (v, scale));
        // A constant has no range, but it has a grey.
        assert_eq!(eight(&[0.5f64; 4], Scaling::Auto).0, [128; 4]);
        let (Samples::U16(v), _) = stored(&[0.5f32, 1.0], DType::U16, Scaling::Auto) else { panic!("16 bits") };
        assert_eq!(v, [32768, 65535]);
    }

    #[test]
    fn integers_are_scaled_only_if_asked() {
        assert_eq!(eight(&[0u16, 200, 300], Scaling::Auto), (vec![0, 200, 255], None));
        assert_eq!(eight(&[0u16, 257, 32896, 65535], Scaling::Unit).0, [0, 1, 128, 255]);
        assert_eq!(eight(&[-5i32, 1 << 30, i32::MAX], Scaling::Unit).0, [0, 128, 255]);
        let (Samples::U16(v), _) = stored(&[0u8, 1, 255], DType::U16, Scaling::Unit) else { panic!("16 bits") };
        assert_eq!(v, [0, 257, 65535]);
    }

    #[test]
    fn exact_samples_are_not_scaled() {
        let pixels = [i32::MIN, -1, i32::MAX];
        let (Samples::I32(v), None) = stored(&pixels, DType::I32, Scaling::Auto) else { panic!("32 bits") };
        assert_eq!(v, pixels);
        let pixels = [0.1f64, 1e300];
        let (Samples::F64(v), None) = stored(&pixels, DType::F64, Scaling::Range) else { panic!("64 bits") };
        assert_eq!(v, pixels);
    }

    #[test]
    fn a_scale_that_was_not_meant_is_told() {
        let told = |pixels: &[f32]| outside(&HostBuffer::from_slice(pixels), DType::F32);
        assert_eq!(told(&[0.0, 1.0, f32::NAN]), None);
        assert!(told(&[0.0, 200.0, 255.0, 1.0]).unwrap().starts_with("50 % of the values"));
        let mut odd = vec![0.5; 1000];
        odd[7] = 1.01;
        assert_eq!(told(&odd), None);
    }

    #[test]
    fn one_value_or_none_becomes_zero() {
        assert_eq!(eight(&[7.0f32, 7.0], Scaling::Range).0, [0, 0]);
        assert_eq!(eight(&[f32::NAN, f32::INFINITY], Scaling::Range).0, [0, 0]);
    }

    #[test]
    fn the_widest_range_is_scaled_without_overflow() {
        let pixels = [f64::MIN, f64::MIN / 2.0, 0.0, f64::MAX / 2.0, f64::MAX];
        assert_eq!(eight(&pixels, Scaling::Range).0, [0, 64, 128, 191, 255]);
    }

    #[test]
    fn unscaled_values_are_rounded_and_saturated() {
        assert_eq!(eight(&[2.5f32, 3.5, -4.0, 300.0, f32::NAN], Scaling::None), (vec![2, 4, 0, 255, 0], None));
    }

    #[test]
    fn channels_are_interleaved() {
        let (Samples::U16(v), None) =
            sample(&[1u16, 2, 10, 20], Shape::new(1, 2, 2), DType::U16, DType::U16, Scaling::Auto)
        else {
            panic!("integers are not scaled")
        };
        assert_eq!(v, [1, 10, 2, 20]);
    }

    #[test]
    fn scales_survive_the_journey() {
        let scale = Some(Scale { low: 0.1, high: 1e300, full: 65535 });
        assert_eq!(unpack(&pack(scale)), scale);
        assert_eq!(unpack(&pack(None)), None);
    }
}
