//! Positions of extremes, order statistics, thresholds.

use crate::ops::Histogram;
use crate::ops::pixel::PixelOp;

use super::{Image, Value, record};
use crate::dtype::Pixel;
use crate::error::{Call, Error, Result, Site};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::Op;
use crate::ops::reduce::RowReduce;
use crate::shape::{Axis, Shape};

/// Number of 16-bit values.
const DIGITS: usize = 1 << 16;
/// Bins for a threshold if values are not counted separately.
const LEVELS: usize = 256;

/// Positions of extremes, order statistics and thresholds, over all channels together.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (2, 3), &[7u8, 1, 9, 2, 1, 200]);
/// assert_eq!(image.argmin().get()?, Some([0, 0, 1, 0])); // level, row, column, channel
/// assert_eq!(image.argmax().get()?, Some([0, 1, 2, 0]));
/// assert_eq!(image.percentile(50.0).get()?, 4.5);
/// assert_eq!(image.percentile(20.0).get()?, 1.0);
/// assert_eq!(image.gt(image.otsu()).count().get()?, 1);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Pixel> Image<T> {
    /// Level, row, column and channel of the smallest pixel. On a tie it is the first, level by
    /// level, in a level channel by channel, in a channel row by row. NaN are ignored; `None` if
    /// there is nothing else. The image is read twice.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let volume = Image::from_slice(&session, (3, 1, 2), &[7u8, 2, 1, 9, 9, 1]);
    /// assert_eq!(volume.argmin().get()?, Some([1, 0, 0, 0]));
    /// assert_eq!(volume.argmax().get()?, Some([1, 0, 1, 0]));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "minMaxLoc")]
    #[track_caller]
    pub fn argmin(&self) -> Value<Option<[usize; 4]>> {
        self.place_of(RowReduce::Min, Call::of("argmin").site)
    }

    /// Level, row, column and channel of the largest pixel, the first on a tie; see
    /// [`Image::argmin`].
    #[track_caller]
    pub fn argmax(&self) -> Value<Option<[usize; 4]>> {
        self.place_of(RowReduce::Max, Call::of("argmax").site)
    }

    fn place_of(&self, how: RowReduce, site: Site) -> Value<Option<[usize; 4]>> {
        let shape = self.shape();
        let columns = self.attempt(Shape { width: 1, ..shape }, || Ok(self.columns_of(how, site)));
        Value::of(&columns, move |b: &HostBuffer| first(b, shape))
    }

    /// For each row, the first column that equals the reduction of all pixels; infinity if there is
    /// none.
    fn columns_of(&self, how: RowReduce, site: Site) -> Image<f64> {
        let wanted = self.reduced::<T>(how, site).converted::<f64>(site);
        let inputs = [self.handle(), wanted.handle()];
        let shape = Shape { width: 1, ..self.shape() };
        record(self.session(), Op::from(RowReduce::First), &inputs, shape, site)
    }

    /// The exact `percent`-th percentile of all pixels, 0 to 100 (50 is the median): the linear
    /// interpolation between the two sorted pixels around it (`numpy.nanpercentile`). NaN are
    /// ignored; if there is nothing else, the result is NaN. It is an error if `percent` is not in
    /// 0 to 100.
    ///
    /// The pixel is found by counting, 16 bits at a time. The image is read once for 8- and 16-bit
    /// integers. For `u32`, `i32` and `f32` it is read twice, for `f64` four times, and twice more
    /// for the next pixel.
    #[doc(alias("nanmedian", "nanpercentile"))]
    #[track_caller]
    pub fn percentile(&self, percent: f64) -> Value<f64> {
        let call @ Call { site, .. } = Call::of("percentile");
        let found = self.attempt(Shape::new(1, 1, 1), || {
            is_percent(call, percent)?;
            let share = percent / 100.0;
            Ok(if has_levels::<T>() {
                self.percentile_of_levels(share, site)
            } else {
                self.percentile_of_digits(share, site)
            })
        });
        Value::single(&found)
    }

    /// The number of pixels in each of `bins` between two bounds, as a row.
    pub(super) fn counts(&self, bins: usize, (lo, hi): (f64, f64), site: Site) -> Image<f64> {
        let op = Op::from(Histogram::new(bins, lo, hi));
        self.node_of_shape(op, Shape::new(1, bins, 1), site)
    }

    /// The number of pixels of each value of a narrow type, from the lowest on, as a row.
    pub(super) fn counts_of_levels(&self, site: Site) -> Image<f64> {
        let (levels, lowest) = (1 << (8 * T::DTYPE.size()), T::LOWEST.to_f64());
        self.counts(levels, (lowest, lowest + levels as f64), site)
    }

    fn percentile_of_levels(&self, share: f64, site: Site) -> Image<f64> {
        let up_to = self.counts_of_levels(site).running(site);
        let last = (self.shape().len() - 1) as f64;
        let at = last * share;
        // The number of values whose pixels all precede this position.
        let level = |place: f64| value_of::<T>(up_to.le(place.min(last)).convert::<u8>().total(site));
        let (value, part) = (level(at.floor()), at.fract());
        if part == 0.0 {
            return value;
        }
        let next = level(at.floor() + 1.0);
        // As in `between`.
        let apart = &next - &value;
        if part < 0.5 { value + apart * part } else { next - apart * (1.0 - part) }
    }

    fn percentile_of_digits(&self, share: f64, site: Site) -> Image<f64> {
        let mut inside = None;
        // Position among the remaining pixels, fraction of the way to the next, and a flag for
        // equal values.
        let (mut place, mut part, mut same, mut some) = (None, None, None, None);
        for level in 0..T::DTYPE.size() / 2 {
            let digit = self.binary(PixelOp::OrderDigit, T::from_f64(level as f64));
            let shown = match &inside {
                None => digit.clone(),
                // Not a digit, so in no bin.
                Some(mask) => Image::select(mask, &digit, T::from_f64(2.0 * DIGITS as f64)),
            };
            let up_to = shown.counts(DIGITS, (0.0, DIGITS as f64), site).running(site);
            let from = place.take().unwrap_or_else(|| {
                let count: Image<f64> = up_to.reduced(RowReduce::Max, site);
                some = Some(count.gt(0.0));
                let at = ((count - 1.0) * share).max(0.0);
                part = Some(&at - at.floor());
                at.floor()
            });
            let lower = up_to.le(&from);
            let found: Image<f64> = lower.convert::<u8>().total(site);
            let below: Image<f64> = lower.select(&up_to, 0.0).reduced(RowReduce::Max, site);
            let with: Image<f64> = lower.select(f64::INFINITY, &up_to).reduced(RowReduce::Min, site);
            same = Some(with.gt(&from + 1.0));
            place = Some(from - below);
            let here = digit.eq(found.converted::<T>(site));
            inside = Some(match inside {
                None => here,
                Some(mask) => mask & here,
            });
        }
        let (Some(inside), Some(part), Some(same), Some(some)) = (inside, part, same, some) else {
            return self.total(site); // no type is without digits
        };
        let value: Image<T> = inside.select(self, T::LOWEST).reduced(RowReduce::Max, site);
        let larger: Image<T> = self.gt(&value).select(self, T::HIGHEST).reduced(RowReduce::Min, site);
        let next = same.select(&value, &larger);
        let found = between(&value.converted(site), &next.converted(site), &part);
        if T::DTYPE.is_float() { some.select(found, f64::NAN) } else { found }
    }

    /// Otsu's threshold (1979): it divides the pixels into two classes, above it and not above it,
    /// with the largest variance between them (`skimage.filters.threshold_otsu`). For 8- and 16-bit
    /// integers each value is counted. For other types 256 bins from the smallest to the largest
    /// pixel are counted, and the threshold is the centre of a bin. If all pixels are equal, it is
    /// the smallest pixel. NaN and infinities do not count (scikit-image rejects them); if there is
    /// nothing else, it is NaN.
    #[doc(alias("THRESH_OTSU", "threshold_otsu"))]
    #[track_caller]
    pub fn otsu(&self) -> Value<T> {
        let site = Call::of("otsu").site;
        let threshold = self.attempt(Shape::new(1, 1, 1), || {
            Ok(match has_levels::<T>() {
                true => {
                    let low = self.reduced::<T>(RowReduce::Min, site);
                    let level = best_level(&self.counts_of_levels(site), site);
                    let value = value_of::<T>(level.clone());
                    level.lt(f64::INFINITY).select(value.converted::<T>(site), low)
                }
                false => {
                    let pixels = match T::DTYPE.is_float() {
                        true => self.abs().lt(T::from_f64(f64::INFINITY)).select(self, T::from_f64(f64::NAN)),
                        false => self.clone(),
                    };
                    let low = pixels.reduced::<T>(RowReduce::Min, site);
                    let from = low.converted::<f64>(site);
                    let range = pixels.reduced::<T>(RowReduce::Max, site).converted::<f64>(site) - &from;
                    let parts = (pixels.converted::<f64>(site) - &from) / &range;
                    let level = best_level(&parts.counts(LEVELS, (0.0, 1.0), site), site);
                    let centre = from + range * ((&level + 0.5) / LEVELS as f64);
                    let threshold = level.lt(f64::INFINITY).select(centre.converted::<T>(site), &low);
                    match T::DTYPE.is_float() {
                        // Infinity is the smallest of an empty set.
                        true => low.lt(T::from_f64(f64::INFINITY)).select(threshold, T::from_f64(f64::NAN)),
                        false => threshold,
                    }
                }
            })
        });
        Value::single(&threshold)
    }
}

/// Checks that a percentage is in 0 to 100.
pub(super) fn is_percent(call: Call, percent: f64) -> Result<()> {
    if (0.0..=100.0).contains(&percent) {
        return Ok(());
    }
    Err(Error::parameter(call, format!("requested the percentile {percent}; the range is 0 to 100")))
}

/// Returns `true` if a type has so few values that each can be counted.
fn has_levels<T: Pixel>() -> bool {
    !T::DTYPE.is_float() && T::DTYPE.size() <= 2
}

/// The value at an index counted from the lowest.
fn value_of<T: Pixel>(level: Image<f64>) -> Image<f64> {
    if T::LOWEST == T::ZERO { level } else { level + T::LOWEST.to_f64() }
}

/// Level, row, column and channel of the first valid column, for an image of this shape.
fn first(columns: &HostBuffer, shape: Shape) -> Option<[usize; 4]> {
    let columns: &[f64] = columns.as_slice();
    let Shape { height, channels, .. } = shape;
    (0..shape.planes() * height).find_map(|at| {
        let (level, channel, row) = (at / height / channels, at / height % channels, at % height);
        let column = columns[(level * height + row) * channels + channel];
        column.is_finite().then_some([level, row, column as usize, channel])
    })
}

/// The index after which a row of counts divides into two classes with the largest variance between
/// them; infinite if it does not divide.
fn best_level(counts: &Image<f64>, site: Site) -> Image<f64> {
    let level = Image::from_fn(counts.session(), 1, counts.width(), |_, x| x as f64);
    let moments = counts * level;
    let (weight, moment) = (counts.over(Axis::Columns).cumsum(), moments.over(Axis::Columns).cumsum());
    let (above, rest) = (-(&weight - counts.total(site)), -(&moment - moments.total(site)));
    // NaN for an empty class, which the maximum ignores.
    let apart = &moment / &weight - rest / &above;
    let variance = weight * above * apart.square();
    let best = variance.reduced::<f64>(RowReduce::Max, site);
    let inputs = [variance.handle(), best.handle()];
    record(counts.session(), Op::from(RowReduce::First), &inputs, Shape::new(1, 1, 1), site)
}

/// Interpolates between two values as NumPy does.
fn between(value: &Image<f64>, next: &Image<f64>, part: &Image<f64>) -> Image<f64> {
    let apart = next - value;
    let (up, down) = (value + &apart * part, next - apart * (1.0 - part));
    let there = part.ge(0.5).select(down, up);
    part.gt(0.0).select(there, value)
}
