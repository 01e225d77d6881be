//! Saving images.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use super::encode::{Format, Samples, interleaved, write, write_npy};
use super::on_root;
use crate::buffer::HostBuffer;
use crate::dispatch;
use crate::dtype::{DType, Pixel};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::plan::Want;
use crate::shape::Shape;

/// What a file stores for each sample. NumPy files keep the image's own type, whatever is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// 8-bit integers. The default.
    #[default]
    Eight,
    /// 16-bit integers (PNG, TIFF, PNM).
    Sixteen,
    /// 32-bit floats, never scaled (TIFF).
    Float,
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Depth::Eight => "8 bits per sample",
            Depth::Sixteen => "16 bits per sample",
            Depth::Float => "32-bit floats",
        })
    }
}

/// How values become the integers of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// [`Scaling::Range`] for floating-point images, [`Scaling::None`] for integers. The default.
    #[default]
    Auto,
    /// Values are rounded to nearest even and saturated.
    None,
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
impl<T: Pixel> Image<T> {
    /// Saves with the default [`SaveOptions`]; see [`Image::save_with`].
    ///
    /// # Errors
    /// As [`Image::save_with`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Option<Scale>> {
        self.save_with(path, &SaveOptions::default())
    }

    /// Evaluates the image and saves it in the format of the path's extension: png, jpg, tif, pgm, ppm, pnm, bmp, or npy
    /// for the exact values. Returns the scale, where values were scaled. In integer formats NaN becomes 0.
    ///
    /// Rank 0 writes a temporary file beside the target and renames it, so that a failure leaves nothing half-written;
    /// all ranks return the same.
    ///
    /// # Errors
    /// Before anything is computed, if the extension is unknown or the format cannot hold the channels or the depth;
    /// later, if the program fails or the file cannot be written.
    pub fn save_with(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<Option<Scale>> {
        let path = path.as_ref();
        let failed = |cause: String| Error::write(path, cause);
        let format = Format::of(path, self.channels()).map_err(failed)?;
        format.check(self.channels(), options.depth).map_err(failed)?;
        let pixels = self.session().fetch(self.handle(), Want::Root)?;
        let answer = on_root(self.session(), "saving a picture", || {
            let pixels = pixels.ok_or("rank 0 has no pixels")?;
            store(path, format, &pixels, T::DTYPE, self.shape(), options).map(pack)
        })?;
        answer.map(|bytes| unpack(&bytes)).map_err(failed)
    }
}

fn store(
    path: &Path,
    format: Format,
    pixels: &HostBuffer,
    dtype: DType,
    shape: Shape,
    options: &SaveOptions,
) -> Result<Option<Scale>, String> {
    if format == Format::Npy {
        replace(path, |to| write_npy(to, pixels, dtype, shape))?;
        return Ok(None);
    }
    let (samples, scale) = dispatch!(dtype, T => sample::<T>(pixels.as_slice(), shape, options));
    replace(path, |to| write(to, format, &samples, shape))?;
    Ok(scale)
}

/// Pixels as the interleaved samples that the options ask for.
fn sample<T: Pixel>(pixels: &[T], shape: Shape, options: &SaveOptions) -> (Samples, Option<Scale>) {
    let full = match options.depth {
        Depth::Float => return (Samples::F32(interleaved(pixels, shape, |v| v.to_f64() as f32)), None),
        Depth::Eight => u16::from(u8::MAX),
        Depth::Sixteen => u16::MAX,
    };
    let scaled = match options.scaling {
        Scaling::Auto => T::DTYPE.is_float(),
        Scaling::None => false,
        Scaling::Range => true,
    };
    let scale = scaled.then(|| {
        let finite = pixels.iter().map(|v| v.to_f64()).filter(|v| v.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        // Without a single finite value there is no range.
        if low <= high { Scale { low, high, full } } else { Scale { low: 0.0, high: 0.0, full } }
    });
    let value = |v: T| match scale {
        None => v.to_f64(),
        Some(Scale { low, high, .. }) if low == high => 0.0,
        Some(Scale { low, high, full }) => (v.to_f64() - low) / (high - low) * f64::from(full),
    };
    let samples = match options.depth {
        Depth::Eight => Samples::U8(interleaved(pixels, shape, |v| u8::from_f64(value(v)))),
        _ => Samples::U16(interleaved(pixels, shape, |v| u16::from_f64(value(v)))),
    };
    (samples, scale)
}

/// Writes a temporary file in the target's folder and renames it to the target, so that a failure leaves no half-written
/// file.
///
/// # Errors
/// The reason in words.
pub fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> Result<(), String>) -> Result<(), String> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let text = |e: std::io::Error| e.to_string();
    let mut builder = tempfile::Builder::new();
    builder.prefix(".horus-");
    // Temporary files are private by default; a picture has the mode any new file would have.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder).map_err(text)?;
    let mut to = BufWriter::new(file.as_file());
    write(&mut to)?;
    to.flush().map_err(text)?;
    drop(to);
    if let Ok(old) = fs::metadata(path) {
        if old.is_dir() {
            return Err("it is a folder".into());
        }
        file.as_file().set_permissions(old.permissions()).map_err(text)?;
    }
    file.persist(path).map(drop).map_err(|e| text(e.error))
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

    fn eight(pixels: &[f32], scaling: Scaling) -> (Vec<u8>, Option<Scale>) {
        let options = SaveOptions { depth: Depth::Eight, scaling };
        match sample(pixels, Shape::new(1, pixels.len(), 1), &options) {
            (Samples::U8(v), scale) => (v, scale),
            _ => panic!("8 bits were asked for"),
        }
    }

    #[test]
    fn the_range_is_spread_over_all_integers() {
        let (v, scale) = eight(&[-1.0, 0.0, 1.0, f32::NAN, f32::INFINITY], Scaling::Auto);
        assert_eq!(v, [0, 128, 255, 0, 255]);
        assert_eq!(scale, Some(Scale { low: -1.0, high: 1.0, full: 255 }));
        assert_eq!(scale.unwrap().to_string(), "-1..1 -> 0..255");
    }

    #[test]
    fn one_value_or_none_becomes_zero() {
        assert_eq!(eight(&[7.0, 7.0], Scaling::Range).0, [0, 0]);
        assert_eq!(eight(&[f32::NAN, f32::INFINITY], Scaling::Range).0, [0, 0]);
    }

    #[test]
    fn unscaled_values_are_rounded_and_saturated() {
        assert_eq!(eight(&[2.5, 3.5, -4.0, 300.0, f32::NAN], Scaling::None), (vec![2, 4, 0, 255, 0], None));
    }

    #[test]
    fn channels_are_interleaved() {
        let options = SaveOptions { depth: Depth::Sixteen, scaling: Scaling::Auto };
        let (Samples::U16(v), None) = sample(&[1u16, 2, 10, 20], Shape::new(1, 2, 2), &options) else {
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

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        fs::write(&path, "old").unwrap();
        let half = |to: &mut BufWriter<&File>| {
            to.write_all(b"half").unwrap();
            Err("no space".to_owned())
        };
        assert_eq!(replace(&path, half), Err("no space".into()));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn files_are_as_readable_as_any_other() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode();
        let (ours, other) = (folder.path().join("a"), folder.path().join("b"));
        replace(&ours, |_| Ok(())).unwrap();
        fs::write(&other, "").unwrap();
        assert_eq!(mode(&ours), mode(&other));
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&ours, |_| Ok(())).unwrap();
        assert_eq!(mode(&ours) & 0o777, 0o640);
    }
}
