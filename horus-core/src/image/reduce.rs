//! Reductions of whole images.

use crate::ops::Histogram;

use super::{Image, Value};
use crate::dtype::{Pixel, Scalar};
use crate::error::{Call, Error, Site};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Op, PixelOpOperand};
use crate::ops::pixel::PixelOp;
use crate::ops::reduce::RowReduce;
use crate::shape::Shape;

/// The largest number of bins of a histogram.
const MAX_BINS: usize = 1 << 24;

/// Reductions of all pixels, over all channels together. For some of the pixels see
/// [`Image::over`]. Sums are computed in `f64` and in one fixed order, so they do not depend on
/// devices, ranks or threads: each row in segments of 1024 columns, counted from column 0, then the
/// sums of rows in blocks of 1024 rows, then channels. Within a segment or block, 64 partial sums
/// are combined by a fixed tree ([`ops::reduce`](crate::ops::reduce) defines it); segments, blocks
/// and channels are added from the first to the last.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (2, 2), &[1u8, 2, 3, 254]);
/// assert_eq!((image.sum().get()?, image.mean().get()?), (260.0, 65.0));
/// assert_eq!(session.get_all((image.min_value(), image.max_value()))?, (1, 254)); // in one pass
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Pixel> Image<T> {
    /// The sum of all pixels, in `f64` and in the fixed order of all reductions (above).
    #[doc(alias = "sumElems")]
    #[track_caller]
    pub fn sum(&self) -> Value<f64> {
        Value::single(&self.total(Call::of("sum").site))
    }

    /// The mean of all pixels: their [`sum`](Image::sum), divided by their number.
    #[track_caller]
    pub fn mean(&self) -> Value<f64> {
        Value::single(&self.average(Call::of("mean").site))
    }

    /// The population variance of all pixels: the mean of the squared deviation from the mean. The
    /// image is read once, also when [`Session::get_all`](crate::session::Session::get_all) gets
    /// mean and variance together. Deviations are from the mean of each segment of 1024 pixels and
    /// then combined ([`ops::reduce::Moments`](crate::ops::reduce::Moments)), so a large mean does
    /// not reduce the precision.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 4), &[1.0f32, 1.0, 5.0, 5.0]);
    /// assert_eq!(image.variance().get()?, 4.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("meanStdDev", "var"))]
    #[track_caller]
    pub fn variance(&self) -> Value<f64> {
        let site = Call::of("variance").site;
        let squares = pick(&self.reduced::<f64>(RowReduce::Moments, site), 1, site);
        Value::single(&self.per_pixel(&squares, site))
    }

    /// The smallest pixel, ignoring NaN (infinity where there is nothing else).
    #[doc(alias("minMaxLoc", "nanmin"))]
    #[track_caller]
    pub fn min_value(&self) -> Value<T> {
        Value::single(&self.reduced(RowReduce::Min, Call::of("min_value").site))
    }

    /// The largest pixel, ignoring NaN (minus infinity where there is nothing else).
    #[track_caller]
    pub fn max_value(&self) -> Value<T> {
        Value::single(&self.reduced(RowReduce::Max, Call::of("max_value").site))
    }

    /// The number of pixels in each of `bins` equal bins over `lo..=hi`; the last bin includes
    /// `hi`. Pixels outside, and NaN, are not counted (as in `numpy.histogram`). It is an error if
    /// `bins` is zero or larger than 2^24, or `lo` and `hi` are not finite with `lo < hi`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 6), &[0.0f32, 0.1, 0.5, 0.6, 1.0, 7.0]);
    /// assert_eq!(image.histogram(2, 0.0, 1.0).get()?, [2, 3]); // 7 lies outside
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "calcHist")]
    #[track_caller]
    pub fn histogram(&self, bins: usize, lo: f64, hi: f64) -> Value<Vec<u64>> {
        let call @ Call { site, .. } = Call::of("histogram");
        let shape = Shape::new(1, bins, 1);
        let counts = self.attempt::<f64>(shape, || {
            if bins == 0 || bins > MAX_BINS {
                return Err(Error::parameter(call, format!("requested {bins} bins; the range is 1 to {MAX_BINS}")));
            }
            // The width must be finite: bins are found by dividing by it.
            if !(lo < hi && (hi - lo).is_finite()) {
                let message = format!("the range {lo} to {hi} is not an interval of finite width");
                return Err(Error::parameter(call, message));
            }
            let op = Op::from(Histogram::new(bins, lo, hi));
            Ok(self.node_of_shape(op, shape, site))
        });
        // Counts below 2^53 are exact in f64.
        let read = |b: &HostBuffer| b.as_slice::<f64>().iter().map(|v| *v as u64).collect();
        Value::of(&counts, read)
    }

    pub(super) fn reduce_rows<R: Pixel>(&self, how: RowReduce, site: Site) -> Image<R> {
        self.node_of_shape(Op::from(how), Shape { width: how.columns(), ..self.shape() }, site)
    }

    /// Reduces all pixels to one pixel, or to one per column of the reduction.
    pub(super) fn reduced<R: Pixel>(&self, how: RowReduce, site: Site) -> Image<R> {
        let rows = self.reduce_rows::<R>(how, site);
        rows.node_of_shape(Op::from(how.fold()), Shape::new(1, how.columns(), 1), site)
    }

    pub(super) fn total(&self, site: Site) -> Image<f64> {
        self.reduced(RowReduce::Sum, site)
    }

    fn average(&self, site: Site) -> Image<f64> {
        self.per_pixel(&self.total(site), site)
    }

    /// A total divided by the number of this image's pixels.
    fn per_pixel(&self, total: &Image<f64>, site: Site) -> Image<f64> {
        let count = PixelOpOperand::Const(Scalar::F64(self.shape().len() as f64));
        total.node(Op::Pixel(PixelOp::Div, vec![PixelOpOperand::Input(0), count]), site)
    }
}

/// Column `x` of a reduction.
fn pick<T: Pixel>(reduced: &Image<T>, x: usize, site: Site) -> Image<T> {
    reduced.node_of_shape(Op::column(x), Shape::new(1, 1, 1), site)
}
