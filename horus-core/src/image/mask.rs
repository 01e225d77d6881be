//! Masks: images of truth values.
//!
//! Masks are `Image<bool>`, recorded as `DType::Bool`. `lower` turns this type into
//! `DType::stored`, `u8` 0 and 1: kernels, planner and devices handle numbers only. Conjunction,
//! disjunction and exclusive or are therefore `Min`, `Max` and `AbsDiff`, and `convert` to `u8` is
//! a load.

use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Not};
use std::panic::Location;

use super::argument::{ArgumentTerm, pixel};
use super::{Argument, Grouping, Image, Value};
use crate::dtype::{Element, Pixel, Scalar};
use crate::error::{Call, Site};
use crate::ops::pixel::PixelOp;
use crate::ops::reduce::RowReduce;

/// Masks: the results of comparisons. They combine by `& | ^ !`, select between images, and
/// restrict statistics. A mask is saved as 0 and 255.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_fn(&session, 2, 3, |y, x| (3 * y + x) as f32);
/// let middle = image.gt(1.0) & image.lt(4.0);
/// assert_eq!(middle.to_vec()?, [false, false, true, true, false, false]);
/// assert_eq!((middle.count().get()?, image.over(&middle).sum().get()?), (2, 5.0));
/// assert_eq!(image.over(&middle).mean().get()?, 2.5);
/// assert_eq!((!middle).select(&image, 9.0).to_vec()?, [0.0, 1.0, 9.0, 9.0, 4.0, 5.0]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl Image<bool> {
    /// `a` where this mask is true, else `b` (`np.where`). Each is an [`Argument`]; both have the
    /// same type.
    #[doc(alias("copyTo", "where"))]
    #[track_caller]
    pub fn select<T: Pixel>(&self, a: impl Argument<T>, b: impl Argument<T>) -> Image<T> {
        pixel(PixelOp::Select, [ArgumentTerm::image(self), a.term(), b.term()], Call::of("select").site)
    }

    /// The number of true pixels in all channels.
    #[doc(alias("countNonZero", "count_nonzero"))]
    #[track_caller]
    pub fn count(&self) -> Value<u64> {
        let site = Call::of("count").site;
        let total = self.convert::<u8>().total(site);
        // Counts below 2^53 are exact in f64.
        Value::of(&total, |b| b.as_slice::<f64>()[0] as u64)
    }

    fn combine_masks(&self, op: PixelOp, other: &Image<bool>, site: crate::error::Site) -> Image<bool> {
        pixel(op, [ArgumentTerm::image(self), ArgumentTerm::image(other)], site)
    }
}

impl<T: Pixel> Grouping<T> for Image<bool> {
    type Groups = Inside<T>;

    fn groups(self, image: &Image<T>) -> Inside<T> {
        Inside { image: image.clone(), mask: self }
    }
}

impl<T: Pixel> Grouping<T> for &Image<bool> {
    type Groups = Inside<T>;

    fn groups(self, image: &Image<T>) -> Inside<T> {
        Grouping::groups(self.clone(), image)
    }
}

/// The pixels where a mask is true. See [`Image::over`]. A mask of one channel applies to all
/// channels.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (1, 5), &[1.0f32, 1.0, 5.0, 5.0, 100.0]);
/// let most = image.over(image.lt(50.0));
/// assert_eq!((most.mean().get()?, most.variance().get()?), (3.0, 4.0));
/// assert_eq!((most.min().get()?, most.max().get()?), (1.0, 5.0));
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inside<T: Element> {
    image: Image<T>,
    mask: Image<bool>,
}

impl<T: Pixel> Inside<T> {
    /// The sum.
    #[track_caller]
    pub fn sum(&self) -> Value<f64> {
        let site = Call::of("sum").site;
        Value::single(&self.mask.select(&self.image, T::ZERO).total(site))
    }

    /// The mean; NaN if the mask is true nowhere.
    #[track_caller]
    pub fn mean(&self) -> Value<f64> {
        let site = Call::of("mean").site;
        Value::single(&(self.mask.select(&self.image, T::ZERO).total(site) / self.count(site)))
    }

    /// The population variance, from two reads of the image; NaN if the mask is true nowhere.
    #[track_caller]
    pub fn variance(&self) -> Value<f64> {
        let site = Call::of("variance").site;
        let count = self.count(site);
        let mean = self.mask.select(&self.image, T::ZERO).total(site) / &count;
        let apart = self.image.converted::<f64>(site) - mean;
        let squares = self.mask.select(&apart * &apart, 0.0);
        Value::single(&(squares.total(site) / count))
    }

    /// The smallest pixel, ignoring NaN; the largest number of the type if the mask is true nowhere
    /// (infinity for floats).
    #[doc(alias("minMaxLoc", "minimum"))]
    #[track_caller]
    pub fn min(&self) -> Value<T> {
        let site = Call::of("min").site;
        Value::single(&self.mask.select(&self.image, T::HIGHEST).reduced(RowReduce::Min, site))
    }

    /// The largest pixel, ignoring NaN; the smallest number of the type if the mask is true nowhere
    /// (minus infinity for floats).
    #[track_caller]
    pub fn max(&self) -> Value<T> {
        let site = Call::of("max").site;
        Value::single(&self.mask.select(&self.image, T::LOWEST).reduced(RowReduce::Max, site))
    }

    /// The number of pixels where the mask is true; a broadcast mask counts once per repetition.
    fn count(&self, site: Site) -> Image<f64> {
        // A broadcast mask counts once per repetition.
        let (image, mask) = (self.image.shape(), self.mask.shape());
        let together = image.broadcast(mask).unwrap_or(mask).len();
        let repeated = together as f64 / mask.len().max(1) as f64;
        self.mask.convert::<u8>().total(site) * repeated
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $assign:ident, $assign_method:ident, $op:ident, $doc:literal) => {
        operator!(@images $trait, $method, $op, $doc, &Image<bool>, &Image<bool>);
        operator!(@images $trait, $method, $op, $doc, &Image<bool>, Image<bool>);
        operator!(@images $trait, $method, $op, $doc, Image<bool>, &Image<bool>);
        operator!(@images $trait, $method, $op, $doc, Image<bool>, Image<bool>);
        operator!(@assign $assign, $assign_method, $op, $doc, &Image<bool>);
        operator!(@assign $assign, $assign_method, $op, $doc, Image<bool>);
    };
    (@images $trait:ident, $method:ident, $op:ident, $doc:literal, $left:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = Image<bool>;
            #[doc = $doc]
            #[track_caller]
            fn $method(self, right: $right) -> Image<bool> {
                self.combine_masks(PixelOp::$op, &right, Location::caller())
            }
        }
    };
    (@assign $trait:ident, $method:ident, $op:ident, $doc:literal, $right:ty) => {
        impl $trait<$right> for Image<bool> {
            #[doc = $doc]
            #[track_caller]
            fn $method(&mut self, right: $right) {
                *self = self.combine_masks(PixelOp::$op, &right, Location::caller());
            }
        }
    };
}

// For 0 and 1, the minimum is the conjunction, the maximum the disjunction, and the difference the
// exclusive or.
operator!(BitAnd, bitand, BitAndAssign, bitand_assign, Min, "Where both hold.");
operator!(BitOr, bitor, BitOrAssign, bitor_assign, Max, "Where one holds, or both do.");
operator!(BitXor, bitxor, BitXorAssign, bitxor_assign, AbsDiff, "Where one holds and the other does not.");

macro_rules! not {
    ($($mask:ty),*) => {$(
        impl Not for $mask {
            type Output = Image<bool>;
            /// The complement of the mask.
            #[track_caller]
            fn not(self) -> Image<bool> {
                let terms = [ArgumentTerm::scalar(Scalar::U8(1)), ArgumentTerm::image(&self)];
                pixel(PixelOp::Sub, terms, Location::caller())
            }
        }
    )*};
}
not!(Image<bool>, &Image<bool>);
