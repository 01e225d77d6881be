//! Reductions along one axis, and of several images pixel by pixel.

use std::borrow::Borrow;
use std::panic::Location;

use super::argument::{Term, pixel};
use super::{Image, carry};
use crate::dtype::{Pixel, Scalar};
use crate::error::{Error, Site};
use crate::ir::graph::{Op, Operand};
use crate::ops::pixel::PixelOp;
use crate::ops::planes::PlaneMap;
use crate::ops::reduce::{Fold, RowReduce};
use crate::session::Session;
use crate::shape::{Axis, Shape};

/// Reductions along one axis. What is left broadcasts against the image: `image - image.mean_axis(Axis::Rows)` takes the mean of
/// each column away. Sums run in `f64`, in the [fixed order](Image::sum) of all reductions: along rows and columns in
/// segments of 1024, over channels and levels from the first to the last.
///
/// Sums and running sums are images of `f64`. Means are of the type that linear filters yield, into which the `f64` is rounded once:
/// `f32`, of images of `f64` that.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, 2, 3, &[1u8, 2, 3, 10, 20, 30]);
/// assert_eq!(image.sum_axis(Axis::Rows).to_vec()?, [11.0, 22.0, 33.0]); // over the rows: one row is left
/// assert_eq!(image.mean_axis(Axis::Columns).to_vec()?, [2.0, 20.0]);
/// assert_eq!(image.max_axis(Axis::Rows).to_vec()?, [10, 20, 30]);
/// let floats = image.to_unit();
/// let centred: Image<f32> = &floats - floats.mean_axis(Axis::Rows);
/// assert!(centred.mean_axis(Axis::Rows).abs().max_value().get()? < 1e-6);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Pixel> Image<T> {
    /// The sum over an axis, whose extent becomes 1 (`numpy.sum(axis=..., keepdims=True)` in `f64`).
    #[doc(alias = "reduce")]
    #[track_caller]
    pub fn sum_axis(&self, axis: Axis) -> Image<f64> {
        self.along(axis, RowReduce::Sum, Location::caller())
    }

    /// The mean over an axis, whose extent becomes 1: the [sum](Image::sum_axis), divided by their number.
    #[track_caller]
    pub fn mean_axis(&self, axis: Axis) -> Image<T::Linear> {
        let site = Location::caller();
        let count = self.shape().extent(axis);
        divided(&self.along(axis, RowReduce::Sum, site), count, site).converted(site)
    }

    /// The smallest pixel along an axis, whose extent becomes 1; ignores NaN (infinity where there is nothing else).
    #[doc(alias("nanmin", "reduce"))]
    #[track_caller]
    pub fn min_axis(&self, axis: Axis) -> Image<T> {
        self.along(axis, RowReduce::Min, Location::caller())
    }

    /// The largest pixel along an axis, whose extent becomes 1; ignores NaN (minus infinity where there is nothing else).
    #[track_caller]
    pub fn max_axis(&self, axis: Axis) -> Image<T> {
        self.along(axis, RowReduce::Max, Location::caller())
    }

    /// The running sums along an axis: of each pixel and all before it, in `f64` (`numpy.cumsum`), whatever the type of the
    /// pixels. Sums of integers are exact below 2^53. Along rows and columns they run in chunks of 32 pixels, then of 1024
    /// ([`ops::reduce::running`](crate::ops::reduce::running)), along channels and levels from the first to the last; no number of ranks
    /// or threads changes a bit. The last one is the [sum](Image::sum_axis) of all up to how it is rounded.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, 2, 3, &[1u8, 2, 3, 200, 200, 200]);
    /// assert_eq!(image.cumsum(Axis::Columns).to_vec()?, [1.0, 3.0, 6.0, 200.0, 400.0, 600.0]);
    /// let integral = image.cumsum(Axis::Rows).cumsum(Axis::Columns); // the sum of any rectangle by four pixels
    /// assert_eq!(integral.pixel(1, 2)?, 606.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "integral")]
    #[track_caller]
    pub fn cumsum(&self, axis: Axis) -> Image<f64> {
        let site = Location::caller();
        match axis {
            Axis::Columns => self.running(site),
            Axis::Rows => self.turned(site).running(site).turned(site),
            Axis::Depth => self.running_depth(site),
            Axis::Channels => self.attempt(self.shape(), || {
                let mut planes = self.planes::<f64>(site);
                for c in 1..planes.len() {
                    let terms = vec![Term::image(&planes[c - 1]), Term::image(&planes[c])];
                    planes[c] = pixel(PixelOp::Add, terms, site);
                }
                Ok(Image::stack(self.session(), planes))
            }),
        }
    }

    fn running_depth(&self, site: Site) -> Image<f64> {
        self.node(Op::RunningDepth, site)
    }

    pub(super) fn running(&self, site: Site) -> Image<f64> {
        self.node(Op::Running, site)
    }

    /// The sum of each channel, over all levels: one pixel, which broadcasts. Bits are those of [`Image::sum`] of the channel alone.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_planes(&session, 1, 2, &[&[1.0f64, 2.0], &[10.0, 30.0]]);
    /// assert_eq!(image.channel_sums().to_vec()?, [3.0, 40.0]);
    /// let balanced = &image / image.channel_means();
    /// assert_eq!(balanced.channel_means().to_vec()?, [1.0, 1.0]);
    /// assert_eq!((image.channel_min().to_vec()?, image.channel_max().to_vec()?), (vec![1.0, 10.0], vec![2.0, 30.0]));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "sumElems")]
    #[track_caller]
    pub fn channel_sums(&self) -> Image<f64> {
        self.per_channel(RowReduce::Sum, Location::caller())
    }

    /// The mean of each channel: one pixel, which broadcasts. See [`Image::channel_sums`] for an example.
    #[track_caller]
    pub fn channel_means(&self) -> Image<T::Linear> {
        let site = Location::caller();
        divided(&self.per_channel(RowReduce::Sum, site), self.shape().area() * self.depth(), site).converted(site)
    }

    /// The smallest pixel of each channel, ignoring NaN: one pixel, which broadcasts. See [`Image::channel_sums`] for an
    /// example.
    #[doc(alias = "nanmin")]
    #[track_caller]
    pub fn channel_min(&self) -> Image<T> {
        self.per_channel(RowReduce::Min, Location::caller())
    }

    /// The largest pixel of each channel, ignoring NaN: one pixel, which broadcasts. See [`Image::channel_sums`] for an
    /// example.
    #[track_caller]
    pub fn channel_max(&self) -> Image<T> {
        self.per_channel(RowReduce::Max, Location::caller())
    }

    pub(super) fn turned(&self, site: Site) -> Image<T> {
        let Shape { height, width, .. } = self.shape();
        self.node_of_shape(Op::Transpose, Shape { height: width, width: height, ..self.shape() }, site)
    }

    fn along<R: Pixel>(&self, axis: Axis, how: RowReduce, site: Site) -> Image<R> {
        match axis {
            Axis::Columns => self.reduce_rows(how, site),
            Axis::Rows => self.turned(site).reduce_rows::<R>(how, site).turned(site),
            Axis::Channels => {
                let shape = Shape { channels: 1, ..self.shape() };
                self.attempt(shape, || Ok(joined(how.fold(), &self.planes::<R>(site), site)))
            }
            Axis::Depth => {
                let shape = Shape { depth: 1, ..self.shape() };
                let levels = || (0..self.depth()).map(|z| self.level(z, site).converted(site)).collect::<Vec<_>>();
                self.attempt(shape, || Ok(joined(how.fold(), &levels(), site)))
            }
        }
    }

    fn per_channel<R: Pixel>(&self, how: RowReduce, site: Site) -> Image<R> {
        // A plane is the fold of the sums of its rows: what a row of them all is reduced to.
        let rows = self.reduce_rows::<R>(how, site).turned(site);
        let planes = rows.reduce_rows::<R>(how, site);
        if planes.depth() == 1 { planes } else { planes.along(Axis::Depth, how, site) }
    }

    /// The channels, converted.
    pub(super) fn planes<R: Pixel>(&self, site: Site) -> Vec<Image<R>> {
        let shape = Shape { channels: 1, ..self.shape() };
        let plane = |c| match self.channels() {
            1 => self.clone(),
            _ => self.node_of_shape(Op::Planes(PlaneMap::channel(self.shape(), c)), shape, site),
        };
        (0..self.channels()).map(|c| plane(c).converted(site)).collect()
    }

    /// As another type; itself if it is of that type.
    pub(super) fn converted<R: Pixel>(&self, site: Site) -> Image<R> {
        match R::DTYPE == T::DTYPE {
            true => Image::from_handle(self.handle().clone()),
            false => self.node(Op::Convert, site),
        }
    }
}

/// Reductions of several images pixel by pixel, from the first to the last: of frames of a film, of exposures. Extents of 1
/// broadcast. It is an error if there is no image, or extents or sessions differ.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let frame = |pixels: [u8; 3]| Image::from_slice(&session, 1, 3, &pixels);
/// let film = [frame([1, 200, 3]), frame([2, 2, 250]), frame([3, 2, 4])];
/// assert_eq!(Image::median_of(&session, &film).to_vec()?, [2, 2, 4]); // what passes by is gone
/// assert_eq!(Image::max_of(&session, &film).to_vec()?, [3, 200, 250]);
/// assert_eq!(Image::mean_of(&session, &film).to_vec()?, [2.0, 68.0, 257.0 / 3.0]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Pixel> Image<T> {
    /// The sum of several images, in `f64`.
    #[doc(alias = "accumulate")]
    #[track_caller]
    pub fn sum_of<I>(session: &Session, images: I) -> Image<f64>
    where
        I: IntoIterator,
        I::Item: Borrow<Image<T>>,
    {
        let site = Location::caller();
        let sum = |images: &[Image<T>]| joined(Fold::Sum, &each(images, site), site);
        of_all(session, "sum_of", images, site, sum)
    }

    /// The mean of several images, of the type that linear filters yield (see [`Image::mean_axis`]).
    #[track_caller]
    pub fn mean_of<I>(session: &Session, images: I) -> Image<T::Linear>
    where
        I: IntoIterator,
        I::Item: Borrow<Image<T>>,
    {
        let site = Location::caller();
        let mean = |images: &[Image<T>]| {
            divided(&joined(Fold::Sum, &each(images, site), site), images.len(), site).converted(site)
        };
        of_all(session, "mean_of", images, site, mean)
    }

    /// The smallest of several images, ignoring NaN (infinity where there is nothing else).
    #[doc(alias = "nanmin")]
    #[track_caller]
    pub fn min_of<I>(session: &Session, images: I) -> Image<T>
    where
        I: IntoIterator,
        I::Item: Borrow<Image<T>>,
    {
        let site = Location::caller();
        of_all(session, "min_of", images, site, |images| joined(Fold::Min, images, site))
    }

    /// The largest of several images, ignoring NaN (minus infinity where there is nothing else).
    #[track_caller]
    pub fn max_of<I>(session: &Session, images: I) -> Image<T>
    where
        I: IntoIterator,
        I::Item: Borrow<Image<T>>,
    {
        let site = Location::caller();
        of_all(session, "max_of", images, site, |images| joined(Fold::Max, images, site))
    }

    /// The median of several images (`numpy.median(axis=0)` of a stack). Of an even number, the mean of the two in the middle,
    /// rounded to the type of the images (to even). Where an image has a NaN, other pixels take its place, some of them twice.
    ///
    /// Images are compared pairwise, as Batcher's sorting network does, in one launch: about `n log2(n)^2 / 4` comparisons for
    /// `n` images.
    #[track_caller]
    pub fn median_of<I>(session: &Session, images: I) -> Image<T>
    where
        I: IntoIterator,
        I::Item: Borrow<Image<T>>,
    {
        let site = Location::caller();
        of_all(session, "median_of", images, site, |images| {
            let mut sorted = images.to_vec();
            let op = |op, a: &Image<T>, b: &Image<T>| pixel::<T>(op, vec![Term::image(a), Term::image(b)], site);
            for (i, j) in network(images.len()) {
                let (low, high) = (op(PixelOp::Min, &sorted[i], &sorted[j]), op(PixelOp::Max, &sorted[i], &sorted[j]));
                (sorted[i], sorted[j]) = (low, high);
            }
            let middle = images.len() / 2;
            if images.len() % 2 == 1 {
                return sorted.swap_remove(middle);
            }
            let [a, b] = [middle - 1, middle].map(|i| sorted[i].converted::<f64>(site));
            let sum = pixel::<f64>(PixelOp::Add, vec![Term::image(&a), Term::image(&b)], site);
            divided(&sum, 2, site).converted(site)
        })
    }
}

/// The comparisons of Batcher's odd-even merge sort of `n` values, in order: the smaller comes first.
fn network(n: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut p = 1;
    while p < n {
        let mut k = p;
        while k > 0 {
            for j in (k % p..n.saturating_sub(k)).step_by(2 * k) {
                let together = |i: &usize| (i + j) / (2 * p) == (i + j + k) / (2 * p);
                pairs.extend((0..k.min(n - j - k)).filter(together).map(|i| (i + j, i + j + k)));
            }
            k /= 2;
        }
        p *= 2;
    }
    pairs
}

/// What `make` makes of some images; an error without any.
fn of_all<T: Pixel, R: Pixel, I>(
    session: &Session,
    op: &'static str,
    images: I,
    site: Site,
    make: impl FnOnce(&[Image<T>]) -> Image<R>,
) -> Image<R>
where
    I: IntoIterator,
    I::Item: Borrow<Image<T>>,
{
    let images: Vec<Image<T>> = images.into_iter().map(|image| image.borrow().clone()).collect();
    let shape = images.first().map_or(Shape::new(0, 0, 0), Image::shape);
    let made = match images.iter().any(|image| !session.same(image.session())) {
        true => Err(Error::ForeignImage { op, site }),
        false if images.is_empty() => Err(Error::Empty { op, shape, site }),
        false => Ok(make(&images)),
    };
    carry(session, shape, made)
}

fn each<T: Pixel, R: Pixel>(images: &[Image<T>], site: Site) -> Vec<Image<R>> {
    images.iter().map(|image| image.converted(site)).collect()
}

/// Images combined from the first to the last, beginning with the value that changes nothing.
fn joined<T: Pixel>(how: Fold, images: &[Image<T>], site: Site) -> Image<T> {
    let op = match how {
        Fold::Sum | Fold::Moments => PixelOp::Add,
        Fold::Min | Fold::Extremes => PixelOp::Min,
        Fold::Max => PixelOp::Max,
    };
    let (first, others) = images.split_first().expect("at least one image");
    let nothing = Term::scalar(how.identity::<T>().scalar());
    let first = pixel(op, vec![nothing, Term::image(first)], site);
    others.iter().fold(first, |all, image| pixel(op, vec![Term::image(&all), Term::image(image)], site))
}

fn divided(sum: &Image<f64>, count: usize, site: Site) -> Image<f64> {
    let count = Operand::Const(Scalar::F64(count as f64));
    sum.node(Op::Pixel(PixelOp::Div, vec![Operand::Input(0), count]), site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_sorts_whatever_order_there_is() {
        // A network that sorts all sequences of 0 and 1 sorts all (Knuth, 5.3.4, theorem Z).
        for n in 0..14 {
            let pairs = network(n);
            assert!(pairs.iter().all(|(i, j)| i < j && *j < n));
            for bits in 0..1u32 << n {
                let mut values: Vec<u32> = (0..n).map(|i| bits >> i & 1).collect();
                for &(i, j) in &pairs {
                    (values[i], values[j]) = (values[i].min(values[j]), values[i].max(values[j]));
                }
                assert!(values.is_sorted(), "{n} values, {bits:b}");
            }
        }
    }
}
