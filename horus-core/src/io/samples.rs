//! From pixels to the samples of a file, as recorded operations: they fuse with their neighbours, run on the device, and
//! what comes back to the host is as small as the file.

use super::save::{Scale, Scaling};
use crate::dtype::{DType, Pixel};
use crate::host::buffer::HostBuffer;
use crate::image::Image;
use crate::session::Handle;

/// The samples of a file as recorded values.
pub(super) struct Recorded {
    pub(super) pixels: Handle,
    pub(super) scale: Scaled,
    /// How many values lie outside the range that is stored, where that is worth a warning.
    pub(super) outside: Option<Handle>,
}

/// How values were scaled.
pub(super) enum Scaled {
    Not,
    By(Scale),
    /// By a range that the evaluation finds, both of the image's type: smallest and largest, `full`.
    Range(Handle, Handle, u16),
}

impl Scaled {
    /// The smallest and the largest value of an image, of which there may be none that is finite.
    pub(super) fn range<T: Pixel>(low: &HostBuffer, high: &HostBuffer, full: u16) -> Scale {
        let (low, high) = (low.as_slice::<T>()[0].to_f64(), high.as_slice::<T>()[0].to_f64());
        if low <= high { Scale { low, high, full } } else { Scale { low: 0.0, high: 0.0, full } }
    }
}

impl Recorded {
    /// Records the samples of type `stored` of an image; `mask` says that it is a mask.
    #[track_caller]
    pub(super) fn of<T: Pixel>(image: &Image<T>, mask: bool, stored: DType, scaling: Scaling) -> Recorded {
        match stored {
            DType::U8 | DType::Bool => scaled::<T, u8>(image, mask, scaling),
            DType::U16 => scaled::<T, u16>(image, mask, scaling),
            DType::U32 => unscaled(&image.convert::<u32>()),
            DType::I8 => unscaled(&image.convert::<i8>()),
            DType::I16 => unscaled(&image.convert::<i16>()),
            DType::I32 => unscaled(&image.convert::<i32>()),
            DType::F32 => unscaled(&image.convert::<f32>()),
            DType::F64 => unscaled(&image.convert::<f64>()),
        }
    }
}

fn unscaled<T: Pixel>(image: &Image<T>) -> Recorded {
    Recorded { pixels: image.handle().clone(), scale: Scaled::Not, outside: None }
}

/// Samples of integers of type `S`, rounded and saturated by the conversion.
#[track_caller]
fn scaled<T: Pixel, S: Pixel>(image: &Image<T>, mask: bool, scaling: Scaling) -> Recorded {
    let full = S::HIGHEST.to_f64();
    let samples = |image: Image<S>, scale| Recorded { pixels: image.handle().clone(), scale, outside: None };
    let by = |high: f64| Scaled::By(Scale { low: 0.0, high, full: full as u16 });
    match scaling {
        // True is white.
        Scaling::Auto | Scaling::Unit if mask => samples(image.convert::<S>() * S::HIGHEST, by(1.0)),
        Scaling::Auto | Scaling::Unit if T::DTYPE.is_float() => {
            let pixels = (image.convert::<f64>() * full).convert::<S>();
            let mut samples = samples(pixels, by(1.0));
            if scaling == Scaling::Auto {
                samples.outside = Some((image.lt(T::ZERO) | image.gt(T::ONE)).count().handle().clone());
            }
            samples
        }
        Scaling::Auto | Scaling::None => samples(image.convert(), Scaled::Not),
        // The rounding errors of both steps are far below a half.
        Scaling::Unit if T::DTYPE == S::DTYPE => samples(image.convert(), by(full)),
        Scaling::Unit => {
            let high = T::HIGHEST.to_f64();
            samples((image.convert::<f64>() / high * full).convert(), by(high))
        }
        Scaling::Range => {
            let (low, high) = range(image);
            let scale = Scaled::Range(low.handle().clone(), high.handle().clone(), full as u16);
            samples((stretched(image, &low, &high) * full).convert(), scale)
        }
    }
}

/// The smallest and the largest finite value. If there is none, the smallest is not below the largest.
#[track_caller]
fn range<T: Pixel>(image: &Image<T>) -> (Image<T>, Image<T>) {
    if !T::DTYPE.is_float() {
        return (image.min_value().to_image(), image.max_value().to_image());
    }
    // A comparison for each: what is infinite at the other end is no smallest, or largest, unless it is all there is.
    let low = image.gt(T::LOWEST).select(image, T::HIGHEST).min_value();
    let high = image.lt(T::HIGHEST).select(image, T::LOWEST).max_value();
    (low.to_image(), high.to_image())
}

/// `low..=high` stretched to `0..=1`; 0 or NaN, which both become 0, where they are one value or no range.
#[track_caller]
fn stretched<T: Pixel>(image: &Image<T>, low: &Image<T>, high: &Image<T>) -> Image<f64> {
    let ordered = low.lt(high);
    let (mut values, mut low, mut high) = (image.convert::<f64>(), low.convert::<f64>(), high.convert::<f64>());
    if T::DTYPE == DType::F64 {
        // Halves of the largest numbers have a difference.
        let unit = (&high - &low).lt(f64::INFINITY).select(1.0, 0.5);
        (values, low, high) = (values * &unit, low * &unit, high * &unit);
    }
    // Nothing divided by infinity is above 0.
    let span = ordered.select(high - &low, f64::INFINITY);
    (values - low) / span
}
