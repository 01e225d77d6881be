//! Conversion of pixels to the samples of a file, as recorded operations. They fuse with other
//! operations, run on the device, and only the samples of the file are copied to the host.

use super::{Scale, Scaling, StoredRange, StoredScale};
use crate::dtype::{DType, Pixel};
use crate::image::Image;
use crate::session::{Handle, SizeReduction};

/// The samples of a file as recorded values.
pub(super) struct RecordedSamples {
    pub(super) pixels: Handle,
    pub(super) scale: StoredScale,
    /// The smallest and the largest value, in the image's type, if they define the scale.
    pub(super) range: Option<[Handle; 2]>,
    /// The count of values outside the stored range, if there can be any.
    pub(super) outside: Option<OutOfRangeValues>,
}

/// Values that a file cannot represent.
pub(super) struct OutOfRangeValues {
    /// Their number.
    pub(super) count: Handle,
    /// The range of the file.
    pub(super) held: StoredRange,
}

impl RecordedSamples {
    /// Records the samples of an image in type `stored`. `mask`: the image is a mask. `counted`:
    /// clipped values are counted.
    #[track_caller]
    pub(super) fn of<T: Pixel>(
        image: &Image<T>,
        mask: bool,
        stored: DType,
        scaling: Scaling,
        counted: bool,
    ) -> RecordedSamples {
        let count = |recorded: RecordedSamples, full: f64| RecordedSamples {
            outside: if counted && !mask { outside(image, scaling, full) } else { None },
            ..recorded
        };
        match stored {
            DType::U8 | DType::Bool => count(scaled::<T, u8>(image, mask, scaling), u8::HIGHEST.to_f64()),
            DType::U16 => count(scaled::<T, u16>(image, mask, scaling), u16::HIGHEST.to_f64()),
            _ => crate::dispatch!(stored, S => unscaled(image.convert::<S>().handle().clone())),
        }
    }
}

/// Samples that are the unchanged values.
pub(super) fn unscaled(pixels: Handle) -> RecordedSamples {
    RecordedSamples { pixels, scale: StoredScale::Not, range: None, outside: None }
}

/// A value close to `value`, but different.
fn beside<T: Pixel>(value: T) -> T {
    let v = value.to_f64();
    match T::DTYPE {
        float if float.is_float() => T::from_f64(f64::from((v as f32).next_up())),
        _ if T::from_f64(v + 1.0) != value => T::from_f64(v + 1.0),
        _ => T::from_f64(v - 1.0),
    }
}

/// The samples of the image reduced to half its height and width, rounded up.
#[track_caller]
pub(super) fn smaller(samples: &Handle, how: SizeReduction) -> Handle {
    #[track_caller]
    fn of<T: Pixel>(image: &Image<T>, how: SizeReduction) -> Image<T> {
        match how {
            SizeReduction::Nearest => image.every_other([0; 2]),
            SizeReduction::Mode => image.block_modes(),
            SizeReduction::Means => image.block_means(),
            SizeReduction::MeansBut(missing) => {
                let value = T::from_f64(missing);
                let (known, value) = match missing {
                    nan if nan.is_nan() => (image.eq(image), value),
                    // No pixel has a value that its type cannot represent.
                    other if T::DTYPE.is_float() || value.to_f64() == other => (image.ne(value), value),
                    _ => return image.block_means(),
                };
                let weights = known.convert::<f64>().block_means();
                let sums = known.select(image.convert::<f64>(), 0.0).block_means();
                let means = (sums / &weights).convert::<T>();
                // A mean of valid pixels must not equal the value for missing ones.
                weights.ge(0.5).select(means.eq(value).select(beside(value), means), value)
            }
        }
    }
    if samples.dtype == DType::Bool {
        let mask = Image::<bool>::from_handle(samples.clone());
        return of(&mask.convert::<f32>(), how).ge(0.5).handle().clone();
    }
    crate::dispatch!(samples.dtype, T => of(&Image::<T>::from_handle(samples.clone()), how).handle().clone())
}

/// Samples of integers of type `S`, rounded and saturated by the conversion.
#[track_caller]
fn scaled<T: Pixel, S: Pixel>(image: &Image<T>, mask: bool, scaling: Scaling) -> RecordedSamples {
    let full = S::HIGHEST.to_f64();
    let samples = |image: Image<S>, scale| RecordedSamples { scale, ..unscaled(image.handle().clone()) };
    let by = |high: f64| StoredScale::By(Scale { low: 0.0, high, full: full as u16 });
    match scaling {
        // True is white.
        Scaling::Auto | Scaling::Unit if mask => samples(image.convert::<S>() * S::HIGHEST, by(1.0)),
        Scaling::Auto | Scaling::Unit if T::DTYPE.is_float() => {
            samples((image.convert::<f64>() * full).convert::<S>(), by(1.0))
        }
        Scaling::Auto | Scaling::None => samples(image.convert(), StoredScale::Not),
        // The rounding errors of both steps are far below a half.
        Scaling::Unit if T::DTYPE == S::DTYPE => samples(image.convert(), by(full)),
        Scaling::Unit => {
            let high = T::HIGHEST.to_f64();
            samples((image.convert::<f64>() / high * full).convert(), by(high))
        }
        Scaling::Range => {
            let (low, high) = range(image);
            let range = Some([&low, &high].map(|value| value.handle().clone()));
            let scale = StoredScale::Range(full as u16);
            RecordedSamples { range, ..samples((stretched(image, &low, &high) * full).convert(), scale) }
        }
    }
}

/// The count of values that are clipped in integers up to `full`, if there can be any. A value that
/// rounds into the range is not counted: filters yield white slightly above 1.
#[track_caller]
fn outside<T: Pixel>(image: &Image<T>, scaling: Scaling, full: f64) -> Option<OutOfRangeValues> {
    let unscaled = matches!(scaling, Scaling::None) || (scaling == Scaling::Auto && !T::DTYPE.is_float());
    let high = match scaling {
        // All finite values are inside.
        Scaling::Range => return None,
        _ if unscaled => full,
        _ if T::DTYPE.is_float() => 1.0,
        _ => T::HIGHEST.to_f64(),
    };
    let half = high / full / 2.0;
    // For integers, above 255.5 means above 255.
    let bound = |value: f64| T::from_f64(if T::DTYPE.is_float() { value } else { value.trunc() });
    let above = (T::HIGHEST.to_f64() >= high + half).then(|| image.gt(bound(high + half)));
    let below = (T::LOWEST.to_f64() <= -half).then(|| image.lt(bound(-half)));
    let beyond = match (below, above) {
        (Some(below), Some(above)) => below | above,
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return None,
    };
    Some(OutOfRangeValues { count: beyond.count().handle().clone(), held: StoredRange { low: 0.0, high } })
}

/// The smallest and the largest finite value. If there is none, the smallest is not below the
/// largest.
#[track_caller]
fn range<T: Pixel>(image: &Image<T>) -> (Image<T>, Image<T>) {
    if !T::DTYPE.is_float() {
        return (image.min_value().to_image(), image.max_value().to_image());
    }
    // One comparison each suffices: an infinity at the other end is neither smallest nor largest,
    // unless there is nothing else.
    let low = image.gt(T::LOWEST).select(image, T::HIGHEST).min_value();
    let high = image.lt(T::HIGHEST).select(image, T::LOWEST).max_value();
    (low.to_image(), high.to_image())
}

/// Scales `low..=high` to `0..=1`. A single value, or no range, yields 0 or NaN, both of which are
/// stored as 0.
#[track_caller]
fn stretched<T: Pixel>(image: &Image<T>, low: &Image<T>, high: &Image<T>) -> Image<f64> {
    let ordered = low.lt(high);
    let (mut values, mut low, mut high) = (image.convert::<f64>(), low.convert::<f64>(), high.convert::<f64>());
    if T::DTYPE == DType::F64 {
        // Halves of the largest numbers have a finite difference.
        let unit = (&high - &low).lt(f64::INFINITY).select(1.0, 0.5);
        (values, low, high) = (values * &unit, low * &unit, high * &unit);
    }
    // Division by infinity yields nothing above 0.
    let span = ordered.select(high - &low, f64::INFINITY);
    (values - low) / span
}
