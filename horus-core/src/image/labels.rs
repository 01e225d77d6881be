//! Statistics of the pixels of each label.

use std::cmp::Ordering;
use std::convert::Infallible;

use super::order::is_percent;
use super::{Image, Value, record};
use crate::dtype::{DType, Element, Float, Pixel};
use crate::error::{Call, Error, Result, Site};
use crate::host::buffer::HostBuffer;
use crate::host::workers::Workers;
use crate::ir::graph::Op;
use crate::ops::Histogram;
use crate::ops::labels::{DIGIT_BITS, Digits, LabelReduce, MOST_PIXELS, PLACE, PRODUCT, block};
use crate::shape::{Axis, Shape};

/// Maximum number of bins of a histogram of labels.
const MOST: usize = 1 << 24;

/// The pixels of each label of an image. See [`Image::by_label`].
#[derive(Clone, Debug)]
pub struct ByLabel<T: Element, L: Element> {
    image: Image<T>,
    labels: Image<L>,
    count: usize,
}

/// The position and spread of a label's pixels. See [`ByLabel::shapes`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelShape {
    /// Number of pixels.
    pub pixels: u64,
    /// The mean row and the mean column; NaN without pixels.
    pub centre: (f64, f64),
    /// The population covariances: rows with rows, rows with columns, columns with columns. The
    /// axes of an ellipse with the same moments are four times the square roots of the eigenvalues
    /// long.
    pub covariance: (f64, f64, f64),
}

impl<T: Pixel> Image<T> {
    /// Groups the pixels of this image or volume of one channel by their labels, `0..count`.
    /// `labels` has the same size and any integer type. Pixels with other labels do not count.
    /// There are at most 2^28 labels (2^24 for [counts](ByLabel::counts) and
    /// [histograms](ByLabel::histogram)). [`ByLabel`] documents the memory per label.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 3), &[1.0f32, 2.0, 10.0, 3.0, 20.0, 30.0]);
    /// let labels = Image::from_slice(&session, (2, 3), &[0u8, 0, 1, 0, 1, 7]);
    /// let parts = image.by_label(&labels, 3);
    /// assert_eq!(parts.sum().get()?, [6.0, 30.0, 0.0]);
    /// assert_eq!(parts.mean().get()?[..2], [2.0, 15.0]);
    /// assert_eq!(parts.max().get()?[..2], [3.0, 20.0]);
    /// assert_eq!(labels.by_label(&labels, 3).counts().get()?, [3, 2, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("labeled_comprehension", "sum_labels"))]
    #[track_caller]
    pub fn by_label<L: Pixel>(&self, labels: &Image<L>, count: usize) -> ByLabel<T, L> {
        let call = Call::of("by_label");
        let image = self.attempt(self.shape(), || fits(call, self, labels, count).map(|()| self.clone()));
        ByLabel { image, labels: labels.clone(), count }
    }
}

/// Statistics of each label. Sums are exact and rounded once, so they do not depend on order,
/// devices or ranks. Each statistic reads the image once; statistics that are read together
/// ([`Session::get_all`](crate::session::Session::get_all)) share this read.
///
/// Memory of sums per label: 24 to 32 bytes for integers, 136 for `f32`, 736 for `f64`; of the
/// variance: 40 to 64, 352 and 1464. Minimum and maximum take 8 bytes per label for every 32 rows,
/// or for more rows if there are more labels than pixels in 32 rows. Their table never has more
/// numbers than the image has pixels, except for the last rows.
impl<T: Pixel, L: Pixel> ByLabel<T, L> {
    /// The sum of the pixels of each label, correctly rounded.
    #[track_caller]
    pub fn sum(&self) -> Value<Vec<f64>> {
        self.of_sums(false, |row| Digits::of(T::TAG).rounded(&row[1..]).0, Call::of("sum").site)
    }

    /// The mean of the pixels of each label; NaN without pixels.
    #[track_caller]
    pub fn mean(&self) -> Value<Vec<f64>> {
        self.of_sums(false, |row| Digits::of(T::TAG).rounded(&row[1..]).0 / row[0], Call::of("mean").site)
    }

    /// The population variance of the pixels of each label; NaN without pixels. Sums of pixels and
    /// squares are exact, so a large mean does not reduce the precision.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 5), &[1e8f64 + 1.0, 1e8 + 3.0, 5.0, 5.0, 5.0]);
    /// let labels = Image::from_slice(&session, (1, 5), &[0i32, 0, 1, 1, -1]);
    /// assert_eq!(image.by_label(&labels, 2).variance().get()?, [1.0, 0.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn variance(&self) -> Value<Vec<f64>> {
        let variance = |row: &[f64]| {
            let (plain, squared) = row[1..].split_at(Digits::of(T::TAG).columns());
            let sum = Digits::of(T::TAG).rounded(plain);
            central(row[0], Digits::of_squares(T::TAG).rounded(squared), sum, sum)
        };
        self.of_sums(true, variance, Call::of("variance").site)
    }

    /// The smallest pixel of each label, ignoring NaN; without pixels the largest number of the
    /// type (infinity for floats).
    #[track_caller]
    pub fn min(&self) -> Value<Vec<T>> {
        let blocks = self.reduced(LabelReduce::Min { count: self.count, block: self.block() }, Call::of("min").site);
        let found = blocks.over(Axis::Rows).min();
        Value::of(&found, |b| b.as_slice::<f64>().iter().map(|v| T::from_f64(*v)).collect())
    }

    /// The largest pixel of each label, ignoring NaN; without pixels the smallest number of the
    /// type (minus infinity for floats).
    #[track_caller]
    pub fn max(&self) -> Value<Vec<T>> {
        let blocks = self.reduced(LabelReduce::Max { count: self.count, block: self.block() }, Call::of("max").site);
        let found = blocks.over(Axis::Rows).max();
        Value::of(&found, |b| b.as_slice::<f64>().iter().map(|v| T::from_f64(*v)).collect())
    }

    /// The median of the pixels of each label, ignoring NaN; NaN without pixels. For an even number
    /// it is half the sum of the two middle pixels, as in SciPy: in `f32` for `f32` pixels, else in
    /// `f64`.
    ///
    /// Pixels and labels are copied to the host of every rank, which sorts the pixels of each
    /// label.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 3), &[1.0f32, 2.0, 10.0, 7.0, 20.0, 30.0]);
    /// let labels = Image::from_slice(&session, (2, 3), &[0u8, 0, 1, 0, 1, 7]);
    /// assert_eq!(image.by_label(&labels, 2).median().get()?, [2.0, 15.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn median(&self) -> Value<Vec<f64>> {
        let half = |value: f64, next: f64, part: f64| match T::TAG {
            _ if part == 0.0 => value,
            DType::F32 => f64::from((value as f32 + next as f32) / 2.0),
            _ => (value + next) / 2.0,
        };
        self.of_ordered(Call::of("median"), 50.0, half)
    }

    /// The `percent`-th percentile of the pixels of each label, defined as in
    /// [`Image::percentile`]; NaN without pixels. It is computed like the [median](Self::median).
    /// It is an error if `percent` is not in 0 to 100.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 5), &[1u8, 9, 2, 3, 50]);
    /// let labels = Image::from_slice(&session, (1, 5), &[1u8, 1, 1, 0, 1]);
    /// assert_eq!(image.by_label(&labels, 2).percentile(25.0).get()?, [3.0, 1.75]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn percentile(&self, percent: f64) -> Value<Vec<f64>> {
        self.of_ordered(Call::of("percentile"), percent, |value, next, part| {
            let apart = next - value;
            match part {
                0.0 => value,
                part if part < 0.5 => value + apart * part,
                part => next - apart * (1.0 - part),
            }
        })
    }

    /// A histogram of the pixels of each label: the counts of [`Image::histogram`], label by label.
    /// It is an error if the histograms have more than 2^24 bins in all.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 5), &[0u8, 10, 20, 30, 200]);
    /// let labels = Image::from_slice(&session, (1, 5), &[0u8, 1, 1, 1, 1]);
    /// assert_eq!(image.by_label(&labels, 2).histogram(2, 0.0, 30.0).get()?, [[1, 0], [1, 2]]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn histogram(&self, bins: usize, lo: f64, hi: f64) -> Value<Vec<Vec<u64>>> {
        let call = Call::of("histogram");
        let all = self.count.saturating_mul(bins);
        let counts = self.image.attempt::<f64>(Shape::new(1, all.max(1), 1), || {
            if all == 0 || all > MOST || !(lo < hi && (hi - lo).is_finite()) {
                let message = format!(
                    "{} labels, {bins} bins, range {lo} to {hi}; labels times bins must be 1 to 2^24, the range of finite width",
                    self.count
                );
                return Err(Error::parameter(call, message));
            }
            let (image, labels) = (self.image.convert::<f64>(), self.labels.convert::<f64>());
            let bin = ((&image - lo) / (hi - lo) * bins as f64).floor().min((bins - 1) as f64);
            let counts = image.ge(lo) & image.le(hi) & labels.ge(0.0) & labels.lt(self.count as f64);
            let joint = counts.select(labels * bins as f64 + bin, -1.0);
            Ok(joint.histogram(all, -0.5, all as f64 - 0.5).counts())
        });
        Value::of(&counts, move |b| {
            let label = |row: &[f64]| row.iter().map(|v| *v as u64).collect();
            b.as_slice::<f64>().chunks(bins.max(1)).map(label).collect()
        })
    }

    /// The number of pixels of each label, of at most 2^24.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let labels = Image::from_slice(&session, (1, 5), &[0u8, 1, 1, 1, 4]);
    /// assert_eq!(labels.by_label(&labels, 3).counts().get()?, [1, 3, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "bincount")]
    #[track_caller]
    pub fn counts(&self) -> Value<Vec<u64>> {
        let (site, shape) = (Call::of("counts").site, Shape::new(1, self.count, 1));
        let counts = self.image.attempt::<f64>(shape, || {
            if self.count > MOST {
                return Err(Error::parameter(
                    Call { op: "counts", site },
                    format!("{} labels; the range is 1 to 2^24", self.count),
                ));
            }
            let bins = Histogram::new(self.count, -0.5, self.count as f64 - 0.5);
            Ok(self.labels.node_of_shape(Op::from(bins), shape, site))
        });
        Value::of(&counts, |b| b.as_slice::<f64>().iter().map(|v| *v as u64).collect())
    }

    /// Number, centre and second moments of the pixels of each label (as scikit-image's
    /// `regionprops`), whatever their values. Sums are exact; they read the labels once and take
    /// 112 bytes per label. A volume is an error: use its [slices](Image::slice).
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let labels = Image::from_slice(&session, (2, 4), &[1u8, 1, 0, 0, 1, 1, 0, 0]);
    /// let square = labels.by_label(&labels, 2).shapes().get()?[1];
    /// assert_eq!((square.pixels, square.centre, square.covariance), (4, (0.5, 0.5), (0.25, 0.0, 0.25)));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("connectedComponentsWithStats", "regionprops"))]
    #[track_caller]
    pub fn shapes(&self) -> Value<Vec<LabelShape>> {
        let call @ Call { site, .. } = Call::of("shapes");
        let how = LabelReduce::Shape { count: self.count, origin: [0, 0] };
        let (rows, columns) = how.extent(0);
        let shape = Shape::new(rows.max(1), columns, 1);
        let sums = self.image.attempt::<f64>(shape, || {
            if self.labels.depth() != 1 {
                let message = format!("the label image has {} levels; take one (`slice`)", self.labels.depth());
                return Err(Error::parameter(call, message));
            }
            Ok(record(self.labels.session(), Op::from(how), &[self.labels.handle()], shape, site))
        });
        Value::of(&sums, move |b| {
            let of = |row: &[f64]| {
                // Integers: digits from the units on.
                let (n, mut at) = (row[0], 1);
                let [y, x, yy, yx, xx] = [PLACE, PLACE, PRODUCT, PRODUCT, PRODUCT].map(|digits| {
                    at += digits;
                    whole(&row[at - digits..at])
                });
                let [yy, yx, xx] = [(yy, y, y), (yx, y, x), (xx, x, x)].map(|(ab, a, b)| central(n, ab, a, b));
                LabelShape { pixels: n as u64, centre: (y.0 / n, x.0 / n), covariance: (yy, yx, xx) }
            };
            b.as_slice::<f64>().chunks(columns).map(of).collect()
        })
    }

    /// Computes a percentile for each label: `between` gets the two sorted pixels around it and the
    /// fraction of the way from one to the other. NaN without pixels.
    fn of_ordered(
        &self,
        call: Call,
        percent: f64,
        between: impl Fn(f64, f64, f64) -> f64 + Send + Sync + 'static,
    ) -> Value<Vec<f64>> {
        // The largest number up to which `f32` represents every label.
        const EXACT: usize = 1 << 24;
        match self.count <= EXACT {
            true => self.of_pairs::<T::Interp>(call, percent, between),
            false => self.of_pairs::<f64>(call, percent, between),
        }
    }

    /// [`ByLabel::of_ordered`] with labels and pixels in `F`, which represents both exactly.
    fn of_pairs<F: Float>(
        &self,
        call: Call,
        percent: f64,
        between: impl Fn(f64, f64, f64) -> f64 + Send + Sync + 'static,
    ) -> Value<Vec<f64>> {
        let shape = self.image.shape();
        let pairs = self.image.attempt(Shape { channels: 2, ..shape }, || {
            is_percent(call, percent)?;
            let (labels, pixels) = (self.labels.converted::<F>(call.site), self.image.converted::<F>(call.site));
            Ok(Image::stack(self.image.session(), [&labels, &pixels], Axis::Channels))
        });
        let (session, count) = (self.image.session().clone(), self.count);
        Value::of(&pairs, move |b| {
            let parts = LabelledPixels::all(session.workers(), b.as_slice::<F>().as_chunks().0, count);
            each_group(session.workers(), &parts, count, |pixels| {
                let at = (pixels.len() - 1) as f64 * (percent / 100.0);
                let (value, next) = in_order(pixels, at as usize);
                between(value, next, at.fract())
            })
        })
    }

    fn block(&self) -> usize {
        block(self.count, self.image.width())
    }

    fn reduced(&self, how: LabelReduce, site: Site) -> Image<f64> {
        let (rows, columns) = how.extent(self.image.height());
        let shape = Shape::new(rows.max(1), columns.max(1), 1);
        self.image.attempt(shape, || Ok(table(&self.image, &self.labels, how, site)))
    }

    /// Applies `value` to the row of each label.
    fn of_sums(
        &self,
        squares: bool,
        value: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
        site: Site,
    ) -> Value<Vec<f64>> {
        let how = LabelReduce::Sum { count: self.count, squares, of: T::TAG };
        let columns = how.extent(0).1;
        let read = move |b: &HostBuffer| b.as_slice::<f64>().chunks(columns).map(&value).collect();
        Value::of(&self.reduced(how, site), read)
    }
}

/// Some of the pixels, without NaN, label by label, and the end of each label's pixels.
#[derive(Default)]
struct LabelledPixels<F> {
    ends: Vec<u32>,
    pixels: Vec<F>,
}

impl<F: Float> LabelledPixels<F> {
    /// One part per thread, or fewer, so that the parts have no more labels than pixels. `pairs`
    /// are a label and a pixel.
    fn all(workers: &Workers, pairs: &[[F; 2]], count: usize) -> Vec<LabelledPixels<F>> {
        let share = pairs.len().div_ceil(workers.threads()).max(count);
        let mut parts: Vec<LabelledPixels<F>> =
            (0..pairs.len().div_ceil(share)).map(|_| LabelledPixels::default()).collect();
        let items = parts.iter_mut().zip(pairs.chunks(share)).collect();
        let Ok(()) = workers.each(items, |(): &mut (), (part, pairs): (&mut LabelledPixels<F>, &[[F; 2]])| {
            *part = LabelledPixels::of(pairs, count);
            Ok::<(), Infallible>(())
        });
        parts
    }

    fn of(pairs: &[[F; 2]], count: usize) -> LabelledPixels<F> {
        let limit = F::from_f64(count as f64);
        let labelled = || {
            let counts = |&&[label, pixel]: &&[F; 2]| label >= F::ZERO && label < limit && !pixel.is_nan();
            pairs.iter().filter(counts).map(|[label, pixel]| (label.to_f64() as usize, *pixel))
        };
        let mut ends = vec![0u32; count];
        labelled().for_each(|(label, _)| ends[label] += 1);
        let mut total = 0;
        ends.iter_mut().for_each(|end| total += std::mem::replace(end, total));
        let mut pixels = vec![F::ZERO; total as usize];
        labelled().for_each(|(label, pixel)| {
            pixels[ends[label] as usize] = pixel;
            ends[label] += 1;
        });
        LabelledPixels { ends, pixels }
    }

    fn group(&self, label: usize) -> &[F] {
        let begin = label.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.pixels[begin as usize..self.ends[label] as usize]
    }
}

/// Applies `value` to the pixels of each label, on all threads; NaN for labels without pixels.
fn each_group<F: Float>(
    workers: &Workers,
    parts: &[LabelledPixels<F>],
    count: usize,
    value: impl Fn(&mut [F]) -> f64 + Sync,
) -> Vec<f64> {
    /// Pixels that a thread processes at a time.
    const SHARE: usize = 1 << 16;
    let mut found = vec![f64::NAN; count];
    let (mut shares, mut left, mut first, mut pixels) = (Vec::new(), &mut found[..], 0, 0);
    for label in 0..count {
        pixels += parts.iter().map(|part| part.group(label).len()).sum::<usize>();
        if pixels >= SHARE || label + 1 == count {
            let (these, others) = left.split_at_mut(label + 1 - first);
            shares.push((first, these));
            (left, first, pixels) = (others, label + 1, 0);
        }
    }
    let Ok(()) = workers.each(shares, |group: &mut Vec<F>, (first, results)| {
        for (label, result) in (first..).zip(results) {
            group.clear();
            parts.iter().for_each(|part| group.extend_from_slice(part.group(label)));
            if !group.is_empty() {
                *result = value(group);
            }
        }
        Ok::<(), Infallible>(())
    });
    found
}

/// The pixel at a position in ascending order, and the next one, or itself if it is the last.
fn in_order<F: Float>(pixels: &mut [F], position: usize) -> (f64, f64) {
    let order = |a: &F, b: &F| a.partial_cmp(b).unwrap_or(Ordering::Equal);
    let (_, value, above) = pixels.select_nth_unstable_by(position, order);
    let next = above.iter().copied().reduce(F::min).unwrap_or(*value);
    (value.to_f64(), next.to_f64())
}

/// Reduces an image by labels of the same size.
fn table<T: Pixel, L: Pixel>(image: &Image<T>, labels: &Image<L>, how: LabelReduce, site: Site) -> Image<f64> {
    let (rows, columns) = how.extent(image.height());
    let shape = Shape::new(rows, columns, 1);
    record(image.session(), Op::from(how), &[labels.handle(), image.handle()], shape, site)
}

/// Checks labels, and that they have the size of the image.
fn fits<T: Pixel, L: Pixel>(call: Call, image: &Image<T>, labels: &Image<L>, count: usize) -> Result<()> {
    labels.check()?;
    let wrong = |message: String| Err(Error::parameter(call, message));
    if !image.session().same(labels.session()) {
        return Err(Error::ForeignImage { op: call.op, site: call.site });
    }
    if !LabelReduce::labels(L::TAG) {
        return wrong(format!("labels must be integers, not {}", L::TAG));
    }
    if image.shape() != labels.shape() || image.channels() != 1 {
        let (image, labels) = (image.shape(), labels.shape());
        return wrong(format!(
            "labels of {labels} for an image of {image}; both must have one shape and one channel (`channel`)"
        ));
    }
    if image.shape().len() > MOST_PIXELS {
        return wrong(format!("an image of {} has {} pixels; the limit is 2^28", image.shape(), image.shape().len()));
    }
    if count == 0 || count > MOST_PIXELS {
        return wrong(format!("{count} labels; the range is 1 to 2^28"));
    }
    Ok(())
}

/// The integer given by digits.
fn whole(digits: &[f64]) -> (f64, f64) {
    let of = digits.iter().rev().fold(0i128, |v, digit| (v << DIGIT_BITS) + i128::from(*digit as i64));
    let high = of as f64;
    (high, (of - high as i128) as f64)
}

/// `(n ab - a b) / n^2`: a covariance of `n` pixels from sums, each of two numbers, computed with twice the digits of `f64`.
fn central(n: f64, ab: (f64, f64), a: (f64, f64), b: (f64, f64)) -> f64 {
    let product = |x: f64, y: f64| {
        let high = x * y;
        (high, x.mul_add(y, -high))
    };
    let (scaled, scaled_low) = product(n, ab.0);
    let (squared, squared_low) = product(a.0, b.0);
    let low = (n.mul_add(ab.1, scaled_low)) - (a.0.mul_add(b.1, a.1 * b.0) + squared_low);
    ((scaled - squared) + low) / (n * n)
}
