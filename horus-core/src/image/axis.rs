//! Reductions along axes, and reductions of several images pixel by pixel.

use crate::ops::{Running, RunningDepth, Transpose};
use std::borrow::Borrow;
use std::panic::Location;

use super::argument::{ArgumentTerm, pixel};
use super::{Image, image_or_failure};
use crate::dtype::{Conversion, Element, Pixel, Scalar};
use crate::error::{Call, Error, Site};
use crate::ir::graph::{Op, PixelOpOperand};
use crate::ops::pixel::PixelOp;
use crate::ops::planes::PlaneMap;
use crate::ops::reduce::{Fold, RowReduce};
use crate::session::Session;
use crate::shape::{Axis, Shape};

/// The axes of an operation: one, or several in any order (an array or collected).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axes {
    columns: bool,
    rows: bool,
    channels: bool,
    depth: bool,
}

impl Axes {
    /// The axes, in the order of reduction.
    fn in_order(self) -> impl Iterator<Item = Axis> {
        let all = [Axis::Columns, Axis::Rows, Axis::Channels, Axis::Depth];
        all.into_iter().filter(move |axis| self.has(*axis))
    }

    pub(super) const fn has(self, axis: Axis) -> bool {
        match axis {
            Axis::Columns => self.columns,
            Axis::Rows => self.rows,
            Axis::Channels => self.channels,
            Axis::Depth => self.depth,
        }
    }
}

impl From<Axis> for Axes {
    fn from(axis: Axis) -> Axes {
        Axes::from([axis])
    }
}

impl<const N: usize> From<[Axis; N]> for Axes {
    fn from(axes: [Axis; N]) -> Axes {
        axes.into_iter().collect()
    }
}

impl FromIterator<Axis> for Axes {
    fn from_iter<I: IntoIterator<Item = Axis>>(axes: I) -> Axes {
        let mut all = Axes { columns: false, rows: false, channels: false, depth: false };
        for axis in axes {
            match axis {
                Axis::Columns => all.columns = true,
                Axis::Rows => all.rows = true,
                Axis::Channels => all.channels = true,
                Axis::Depth => all.depth = true,
            }
        }
        all
    }
}

/// Selects the pixels of a statistic: axes ([`Axis`], or an array of several) or a mask
/// (`Image<bool>`). See [`Image::over`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` selects no pixels",
    label = "neither axes nor a mask",
    note = "`over` takes an axis (`Axis::Rows`), an array of axes (`[Axis::Rows, Axis::Columns]`) or a mask (`image.gt(5)`)"
)]
pub trait Grouping<T: Pixel> {
    /// The groups, whose methods are the statistics.
    type Groups;

    #[doc(hidden)]
    fn groups(self, image: &Image<T>) -> Self::Groups;
}

#[diagnostic::do_not_recommend]
impl<T: Pixel, A: Into<Axes>> Grouping<T> for A {
    type Groups = Over<T>;

    fn groups(self, image: &Image<T>) -> Over<T> {
        Over { image: image.clone(), axes: self.into() }
    }
}

impl<T: Pixel> Image<T> {
    /// Selects the pixels of a statistic: the pixels [along axes](Over), which yields an image, or
    /// [under a mask](super::Inside), which yields a number. For regions of an image see
    /// [`Image::tiles`], [`Image::windows`] and [`Image::by_label`]; for several images
    /// [`Image::of_all`]; for all pixels [`Image::sum`], [`Image::mean`] and others.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 3), &[1u8, 2, 3, 10, 20, 30]);
    /// assert_eq!(image.over(Axis::Rows).sum().to_vec()?, [11.0, 22.0, 33.0]); // over the rows: one row is left
    /// assert_eq!(image.over(Axis::Columns).mean().to_vec()?, [2.0, 20.0]);
    /// assert_eq!(image.over([Axis::Rows, Axis::Columns]).max().to_vec()?, [30]); // of each channel
    /// assert_eq!(image.over(image.gt(5)).mean().get()?, 20.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("reduce", "sumElems"))]
    pub fn over<G: Grouping<T>>(&self, pixels: G) -> G::Groups {
        pixels.groups(self)
    }

    fn running_along(&self, axis: Axis, site: Site) -> Image<f64> {
        match axis {
            Axis::Columns => self.running(site),
            Axis::Rows => self.turned(site).running(site).turned(site),
            Axis::Depth => self.running_depth(site),
            Axis::Channels => self.attempt(self.shape(), || {
                let mut planes = self.planes::<f64>(site);
                for c in 1..planes.len() {
                    let terms = [ArgumentTerm::image(&planes[c - 1]), ArgumentTerm::image(&planes[c])];
                    planes[c] = pixel(PixelOp::Add, terms, site);
                }
                Ok(Image::stack(self.session(), planes, Axis::Channels))
            }),
        }
    }

    fn running_depth(&self, site: Site) -> Image<f64> {
        self.node(Op::from(RunningDepth), site)
    }

    pub(super) fn running(&self, site: Site) -> Image<f64> {
        self.node(Op::from(Running), site)
    }

    pub(super) fn turned(&self, site: Site) -> Image<T> {
        let Shape { height, width, .. } = self.shape();
        self.node_of_shape(Op::from(Transpose), Shape { height: width, width: height, ..self.shape() }, site)
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

    /// Reduces along axes, one after the other. Axes of length 1 stay unchanged.
    fn along_all<R: Pixel>(&self, axes: Axes, how: RowReduce, site: Site) -> Image<R> {
        let mut rest = axes.in_order().peekable();
        let Some(first) = rest.next() else { return self.converted(site) };
        let mut reduced: Image<R> = if first == Axis::Columns && rest.next_if_eq(&Axis::Rows).is_some() {
            // Each row of each plane is reduced, then the column of results.
            self.reduce_rows::<R>(how, site).turned(site).reduce_rows(how, site)
        } else {
            self.along(first, how, site)
        };
        for axis in rest {
            if reduced.shape().extent(axis) > 1 {
                reduced = reduced.along(axis, how, site);
            }
        }
        reduced
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

    /// Converts to another type, unless the image has that type.
    pub(super) fn converted<R: Pixel>(&self, site: Site) -> Image<R> {
        match R::DTYPE == T::DTYPE {
            true => Image::from_handle(self.handle().clone()),
            false => self.node(Op::Convert(Conversion::Nearest), site),
        }
    }
}

/// Pixels along axes: see [`Image::over`]. Each statistic except [`Over::cumsum`] is an image of
/// length 1 along the axes, which broadcasts against the image:
/// `&image - image.over(Axis::Rows).mean()` subtracts the mean of each column. [`Axis::Rows`] and
/// [`Axis::Columns`] together reduce each plane; with [`Axis::Depth`] too, all pixels of each
/// channel.
///
/// Sums are computed in `f64`, in the [fixed order](Image::sum) of all reductions: along columns,
/// then rows, in segments of 1024, then over channels and levels from the first to the last.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, Shape::new(1, 2, 2), &[1.0f64, 10.0, 2.0, 30.0]);
/// let planes = image.over([Axis::Rows, Axis::Columns]);
/// assert_eq!(planes.sum().to_vec()?, [3.0, 40.0]);
/// assert_eq!((planes.min().to_vec()?, planes.max().to_vec()?), (vec![1.0, 10.0], vec![2.0, 30.0]));
/// let balanced = &image / planes.mean();
/// assert_eq!(balanced.over([Axis::Rows, Axis::Columns]).mean().to_vec()?, [1.0, 1.0]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Over<T: Element> {
    image: Image<T>,
    axes: Axes,
}

impl<T: Pixel> Over<T> {
    /// The sum, in `f64` (`numpy.sum(axis=..., keepdims=True)`).
    #[doc(alias("reduce", "sumElems"))]
    #[track_caller]
    pub fn sum(&self) -> Image<f64> {
        self.image.along_all(self.axes, RowReduce::Sum, Call::of("sum").site)
    }

    /// The mean: the sum divided by the number of pixels, rounded once to the type that linear
    /// filters yield (`f64` for images of `f64`, else `f32`).
    #[track_caller]
    pub fn mean(&self) -> Image<T::Linear> {
        let site = Call::of("mean").site;
        let count = self.axes.in_order().map(|axis| self.image.shape().extent(axis)).product();
        divided(&self.image.along_all(self.axes, RowReduce::Sum, site), count, site).converted(site)
    }

    /// The smallest pixel, ignoring NaN (infinity where there is nothing else).
    #[doc(alias("nanmin", "reduce"))]
    #[track_caller]
    pub fn min(&self) -> Image<T> {
        self.image.along_all(self.axes, RowReduce::Min, Call::of("min").site)
    }

    /// The largest pixel, ignoring NaN (minus infinity where there is nothing else).
    #[track_caller]
    pub fn max(&self) -> Image<T> {
        self.image.along_all(self.axes, RowReduce::Max, Call::of("max").site)
    }

    /// The cumulative sums: the sum of each pixel and all before it, in `f64` for every pixel type
    /// (`numpy.cumsum`). With several axes, along one after the other. The shape stays the same.
    /// Sums of integers are exact below 2^53. The order is fixed, so ranks and threads do not
    /// change a bit: along rows and columns in blocks of 32 pixels, then of 1024
    /// ([`ops::reduce::running`](crate::ops::reduce::running)); along channels and levels from the
    /// first to the last. The last value equals the [sum](Over::sum) up to rounding.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 3), &[1u8, 2, 3, 200, 200, 200]);
    /// assert_eq!(image.over(Axis::Columns).cumsum().to_vec()?, [1.0, 3.0, 6.0, 200.0, 400.0, 600.0]);
    /// let integral = image.over([Axis::Rows, Axis::Columns]).cumsum(); // the sum of any rectangle by four pixels
    /// assert_eq!(integral.pixel((1, 2))?, 606.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "integral")]
    #[track_caller]
    pub fn cumsum(&self) -> Image<f64> {
        let site = Call::of("cumsum").site;
        let mut axes = self.axes.in_order();
        let Some(first) = axes.next() else { return self.image.converted(site) };
        axes.fold(self.image.running_along(first, site), |sums, axis| sums.running_along(axis, site))
    }
}

/// Several images that are reduced pixel by pixel, from the first to the last. See
/// [`Image::of_all`].
#[derive(Clone, Debug)]
pub struct Several<T: Element> {
    session: Session,
    images: Vec<Image<T>>,
}

impl<T: Pixel> Image<T> {
    /// Combines several images for a statistic [pixel by pixel](Several): frames of a film,
    /// exposures. Axes of length 1 broadcast. It is an error if there is no image, or if shapes or
    /// sessions differ.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let frame = |pixels: [u8; 3]| Image::from_slice(&session, (1, 3), &pixels);
    /// let film = Image::of_all(&session, [frame([1, 200, 3]), frame([2, 2, 250]), frame([3, 2, 4])]);
    /// assert_eq!(film.median().to_vec()?, [2, 2, 4]); // what passes by is gone
    /// assert_eq!(film.max().to_vec()?, [3, 200, 250]);
    /// assert_eq!(film.mean().to_vec()?, [2.0, 68.0, 257.0 / 3.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn of_all<I>(session: &Session, images: I) -> Several<T>
    where
        I: IntoIterator,
        I::Item: Borrow<Image<T>>,
    {
        let images = images.into_iter().map(|image| image.borrow().clone()).collect();
        Several { session: session.clone(), images }
    }
}

impl<T: Pixel> Several<T> {
    /// The sum, in `f64`.
    #[doc(alias = "accumulate")]
    #[track_caller]
    pub fn sum(&self) -> Image<f64> {
        let site = Call::of("sum").site;
        self.reduced(site, |images| joined(Fold::Sum, &each(images, site), site))
    }

    /// The mean, of the type that linear filters yield (see [`Over::mean`]).
    #[track_caller]
    pub fn mean(&self) -> Image<T::Linear> {
        let site = Call::of("mean").site;
        self.reduced(site, |images| {
            divided(&joined(Fold::Sum, &each(images, site), site), images.len(), site).converted(site)
        })
    }

    /// The smallest pixel, ignoring NaN (infinity where there is nothing else).
    #[doc(alias = "nanmin")]
    #[track_caller]
    pub fn min(&self) -> Image<T> {
        let site = Call::of("min").site;
        self.reduced(site, |images| joined(Fold::Min, images, site))
    }

    /// The largest pixel, ignoring NaN (minus infinity where there is nothing else).
    #[track_caller]
    pub fn max(&self) -> Image<T> {
        let site = Call::of("max").site;
        self.reduced(site, |images| joined(Fold::Max, images, site))
    }

    /// The median (`numpy.median(axis=0)` of a stack). For an even number of images it is the mean
    /// of the two middle pixels, rounded to the images' type (ties to even). NaN sorts last, so the
    /// median is NaN only if NaN is in the middle; in NumPy, one NaN makes it NaN.
    ///
    /// Batcher's sorting network compares the images pairwise in one launch: about
    /// `n log2(n)^2 / 4` comparisons for `n` images.
    #[track_caller]
    pub fn median(&self) -> Image<T> {
        let site = Call::of("median").site;
        self.reduced(site, |images| {
            let mut sorted = sorted(images, site);
            let middle = images.len() / 2;
            if images.len() % 2 == 1 {
                return sorted.swap_remove(middle);
            }
            let [a, b] = [middle - 1, middle].map(|i| sorted[i].converted::<f64>(site));
            let sum = pixel::<f64, _>(PixelOp::Add, [ArgumentTerm::image(&a), ArgumentTerm::image(&b)], site);
            divided(&sum, 2, site).converted(site)
        })
    }

    /// The pixel at position `place` of the sorted images, 0 being the smallest. For the Python
    /// package.
    #[doc(hidden)]
    #[track_caller]
    pub fn in_place(&self, place: usize) -> Image<T> {
        let site = Location::caller();
        self.reduced(site, |images| sorted(images, site).swap_remove(place.min(images.len() - 1)))
    }

    /// Applies `make` to the images; an error if there are none.
    fn reduced<R: Pixel>(&self, site: Site, make: impl FnOnce(&[Image<T>]) -> Image<R>) -> Image<R> {
        let op = "of_all";
        let shape = self.images.first().map_or(Shape::new(0, 0, 0), Image::shape);
        let made = match self.images.iter().any(|image| !self.session.same(image.session())) {
            true => Err(Error::ForeignImage { op, site }),
            false if self.images.is_empty() => Err(Error::Empty { op, shape, site }),
            false => Ok(make(&self.images)),
        };
        image_or_failure(&self.session, shape, made)
    }
}

/// Sorts the images pixel by pixel, the smallest first: -0 before +0, and NaN last.
pub(super) fn sorted<T: Element>(images: &[Image<T>], site: Site) -> Vec<Image<T>> {
    compared(images, network(1, images.len()), site)
}

/// Sorts images whose first half and second half are sorted. Their number is a power of two.
pub(super) fn merged<T: Element>(images: &[Image<T>], site: Site) -> Vec<Image<T>> {
    compared(images, network(images.len() / 2, images.len()), site)
}

fn compared<T: Element>(images: &[Image<T>], pairs: Vec<(usize, usize)>, site: Site) -> Vec<Image<T>> {
    let mut sorted = images.to_vec();
    let op = |op, a: &Image<T>, b: &Image<T>| pixel::<T, _>(op, [ArgumentTerm::image(a), ArgumentTerm::image(b)], site);
    for (i, j) in pairs {
        let (low, high) = (op(PixelOp::Lower, &sorted[i], &sorted[j]), op(PixelOp::Upper, &sorted[i], &sorted[j]));
        (sorted[i], sorted[j]) = (low, high);
    }
    sorted
}

/// The comparisons of Batcher's odd-even merge sort of `n` values, in order, if runs of `p` values
/// are sorted already. The smaller value comes first.
fn network(mut p: usize, n: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
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

fn each<T: Pixel, R: Pixel>(images: &[Image<T>], site: Site) -> Vec<Image<R>> {
    images.iter().map(|image| image.converted(site)).collect()
}

/// Combines the images from the first to the last, starting with the identity.
fn joined<T: Pixel>(how: Fold, images: &[Image<T>], site: Site) -> Image<T> {
    let op = how.pairwise();
    let (first, others) = images.split_first().expect("at least one image");
    let nothing = ArgumentTerm::scalar(how.identity::<T>().scalar());
    let first = pixel(op, [nothing, ArgumentTerm::image(first)], site);
    others.iter().fold(first, |all, image| pixel(op, [ArgumentTerm::image(&all), ArgumentTerm::image(image)], site))
}

fn divided(sum: &Image<f64>, count: usize, site: Site) -> Image<f64> {
    let count = PixelOpOperand::Const(Scalar::F64(count as f64));
    sum.node(Op::Pixel(PixelOp::Div, vec![PixelOpOperand::Input(0), count]), site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_sorts_whatever_order_there_is() {
        // A network that sorts all sequences of 0 and 1 sorts all (Knuth, 5.3.4, theorem Z).
        for n in 0..14 {
            let pairs = network(1, n);
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
