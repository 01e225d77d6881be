//! Operations over windows whose cost hardly depends on the window size: means and variances of rectangles, and ranks
//! under footprints.

use super::describe::{Accepts, BORDER, OperationGroup, Parameter, Pattern, describe, description, optional, required};
use std::sync::Arc;

use super::footprint::{Access, InputRead, Rect};
use super::neighbourhood::Reach;
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images,
    same_places, stays,
};
use horus_base::dtype::{DType, Float, Scalar};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Border, Shape};

const FOOTPRINT: Parameter = optional("footprint", Accepts::Footprint, "3", "");

describe! {
    BOX_MEAN = description("box_mean", OperationGroup::Filters, Pattern::Neighbourhood, "Mean over a rectangle of any size, which hardly costs more than a small one")
        .also(&["mean_filter"])
        .takes(&[required("height", Accepts::Count, "of the rectangle"), required("width", Accepts::Count, "of the rectangle"), BORDER])
        .elsewhere(&["ndi.uniform_filter", "cv.blur", "cv.boxFilter", "imageproc::filter::box_filter"])
        .differs("side, not radius, of all axes as ndi, or `(height, width)`; even sizes as ndi and OpenCV; `Window::at` names the anchor (ndi's `origin`); imageproc rounds each pass down")
        .example("box_mean 101 51");
    MEDIAN_UNDER = description("median_under", OperationGroup::Morphology, Pattern::Neighbourhood, "The median of the pixels under the footprint")
        .called("median")
        .takes(&[FOOTPRINT, BORDER])
        .elsewhere(&["ndi.median_filter"])
        .differs("for an even number of pixels the upper of the middle two; NaN is sorted last")
        .example("median_under disc 7");
    PERCENTILE_UNDER = description("percentile_under", OperationGroup::Morphology, Pattern::Neighbourhood, "A percentile of the pixels under the footprint")
        .called("rank")
        .takes(&[required("percent", Accepts::Number, "0 to 100"), FOOTPRINT, BORDER])
        .elsewhere(&["ndi.percentile_filter"])
        .example("percentile_under 90 15");
    RANK_UNDER = description("rank_under", OperationGroup::Morphology, Pattern::Neighbourhood, "The pixel in a place of the order of those under the footprint")
        .called("rank")
        .takes(&[required("place", Accepts::Count, "in the order of the pixels; the smallest is 0"), FOOTPRINT, BORDER])
        .elsewhere(&["ndi.rank_filter"])
        .differs("NaN is sorted last, and is the result where its place is wanted")
        .example("rank_under 3 cross 2");
}

/// An operation over a window around each pixel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Windowed {
    /// The mean over a rectangle, or partial sums of one.
    Mean(BoxMean),
    /// The mean of squared deviations from the mean, in `f64`: see [`WindowMoments`].
    Variance(BoxMean),
    /// The pixel of a given rank under a footprint.
    Rank(Ranked),
}

impl Windowed {
    /// The name, without parameters.
    pub const fn kind(&self) -> &'static str {
        match self {
            Windowed::Mean(BoxMean { count: 0, .. }) => "box_sum",
            Windowed::Mean(_) => "box_mean",
            Windowed::Variance(_) => "box_variance",
            Windowed::Rank(_) => "rank",
        }
    }

    /// The name, with the size of the window.
    pub fn name(&self) -> String {
        let Reach { up, down, left, right } = self.reach();
        let size = |before: usize, after: usize| before.saturating_add(after).saturating_add(1);
        let extent = format!("{} {}x{}", self.kind(), size(up, down), size(left, right));
        match self {
            Windowed::Mean(_) | Windowed::Variance(_) => extent,
            Windowed::Rank(r) => format!("{extent} {} of {}", r.place, r.count()),
        }
    }

    /// The reach of the window.
    pub fn reach(&self) -> Reach {
        match self {
            Windowed::Mean(mean) | Windowed::Variance(mean) => mean.reach,
            Windowed::Rank(rank) => rank.reach(),
        }
    }

    /// Returns `true` if pixels of type `input` can yield type `output`.
    pub fn yields(&self, input: DType, output: DType) -> bool {
        match self {
            Windowed::Mean(mean) if mean.count == 0 => output == summed(input),
            // Partial sums of integers are f64.
            Windowed::Mean(_) => output == input.linear() || (input, output) == (DType::F64, DType::F32),
            Windowed::Variance(_) => output == DType::F64,
            Windowed::Rank(_) => output == input,
        }
    }

    /// Approximate additions or comparisons per pixel. The costs of means are fitted to two cores
    /// (`docs/performance/model.md`).
    pub fn cost(&self) -> f64 {
        match self {
            Windowed::Mean(mean) => 9.0 * mean.ladder(),
            // Two numbers, and as many multiplications.
            Windowed::Variance(mean) => 40.0 * mean.ladder(),
            // Pixels that enter and leave the window, and the order of all pixels.
            Windowed::Rank(rank) if !rank.crosses_levels() => 40.0 + 4.0 * rank.spans.len() as f64,
            // All pixels are compared with each candidate.
            Windowed::Rank(rank) => 2.0 * rank.count() as f64,
        }
    }
}

/// The accumulator type: `f32` for `f32`; otherwise `f64`, in which integer sums below 2^53 are exact.
pub const fn summed(dtype: DType) -> DType {
    match dtype {
        DType::F32 => DType::F32,
        _ => DType::F64,
    }
}

/// The mean over a rectangle of pixels.
///
/// Sums have one order, in the type [`summed`]. The sum of 2n pixels of a line is the sum of the first n plus the sum
/// of the rest. Other counts are split into powers of two, smallest first, added left to right: five pixels are `a +
/// ((b + c) + (d + e))`. Each row of the window is summed in this order, then the row sums from top to bottom. The
/// result is the sum divided by the number of pixels: in `f32` for `f32`, otherwise in `f64` and rounded to the result
/// type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoxMean {
    /// The rectangle.
    pub reach: Reach,
    /// The divisor of the sum; 0 leaves the sum undivided, in the type [`summed`].
    pub count: usize,
}

impl BoxMean {
    /// The mean over a rectangle.
    pub const fn over(reach: Reach) -> BoxMean {
        BoxMean { reach, count: (reach.up + reach.down + 1) * (reach.left + reach.right + 1) }
    }

    /// Rows of the rectangle.
    pub const fn height(&self) -> usize {
        self.reach.up + self.reach.down + 1
    }

    /// Columns of the rectangle.
    pub const fn width(&self) -> usize {
        self.reach.left + self.reach.right + 1
    }

    /// Additions per pixel, along rows and columns.
    fn ladder(&self) -> f64 {
        let ladder = |n: usize| f64::from(n.ilog2() + n.count_ones());
        ladder(self.height()) + ladder(self.width())
    }
}

/// The sum of `n` values, at least one, in the order of [`BoxMean`].
pub fn line_sum<A: Float>(n: usize, value: &impl Fn(usize) -> A) -> A {
    joined(n, value, &A::add).unwrap_or(A::ZERO)
}

/// `n` values joined in the order of [`BoxMean`]; `None` for no values.
pub fn joined<A: Copy>(n: usize, value: &impl Fn(usize) -> A, join: &impl Fn(A, A) -> A) -> Option<A> {
    fn power<A: Copy>(n: usize, at: usize, value: &impl Fn(usize) -> A, join: &impl Fn(A, A) -> A) -> A {
        if n == 1 { value(at) } else { join(power(n / 2, at, value, join), power(n / 2, at + n / 2, value, join)) }
    }
    let mut total: Option<A> = None;
    let mut at = 0;
    for bit in (0..usize::BITS).filter(|bit| n >> bit & 1 == 1) {
        let next = power(1 << bit, at, value, join);
        total = Some(total.map_or(next, |all| join(all, next)));
        at += 1 << bit;
    }
    total
}

/// The moments of some pixels, joined in the order of [`BoxMean`] (T. F. Chan, G. H. Golub and R. J. LeVeque, *Updating
/// formulae and a pairwise algorithm for computing sample variances*, 1979). Nothing cancels, unlike in the mean of
/// squares minus the square of the mean, where a large mean causes cancellation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowMoments {
    /// The sum of the pixels.
    pub sum: f64,
    /// The sum of squared deviations from the mean.
    pub squared_deviations: f64,
    /// The number of pixels.
    pub count: f64,
}

impl WindowMoments {
    /// The moments of one pixel.
    pub const fn of(pixel: f64) -> WindowMoments {
        WindowMoments { sum: pixel, squared_deviations: 0.0, count: 1.0 }
    }

    /// The moments of both sets of pixels.
    #[must_use]
    pub fn and(self, other: WindowMoments) -> WindowMoments {
        let (n, k) = (self.count, other.count);
        let between = other.sum * n - self.sum * k;
        let apart =
            (self.squared_deviations + other.squared_deviations) + between * between * WindowMoments::share(n, k);
        WindowMoments { sum: self.sum + other.sum, squared_deviations: apart, count: n + k }
    }

    /// The factor of the squared difference of two sums, of `n` and of `k` pixels, each multiplied by the other's
    /// number of pixels.
    #[inline(always)]
    pub fn share(n: f64, k: f64) -> f64 {
        1.0 / (n * k * (n + k))
    }
}

/// Adjacent pixels of a footprint: columns `from..to` of row `y` of level `z`, relative to the centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FootprintSpan {
    /// Level.
    pub z: i32,
    /// Row.
    pub y: i32,
    /// The first column.
    pub from: i32,
    /// One past the last column.
    pub to: i32,
}

/// The pixel of a given rank under a footprint.
///
/// Pixels are ordered by value, -0 before +0, and NaN after all numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ranked {
    /// The footprint, level by level, row by row and from left to right, without overlaps.
    pub spans: Arc<[FootprintSpan]>,
    /// The rank: 0 is the smallest pixel.
    pub place: usize,
}

impl Ranked {
    /// The footprint of distinct `offsets` `(dy, dx)`, in row-major order.
    pub fn new(offsets: &[(i32, i32)], place: usize) -> Ranked {
        Ranked::across(offsets.iter().map(|&(y, x)| (0, y, x)), place)
    }

    /// The footprint of distinct `offsets` `(dz, dy, dx)`, level by level in row-major order.
    pub fn across(offsets: impl IntoIterator<Item = (i32, i32, i32)>, place: usize) -> Ranked {
        let mut spans: Vec<FootprintSpan> = Vec::new();
        for (z, y, x) in offsets {
            match spans.last_mut().filter(|s| (s.z, s.y, s.to) == (z, y, x)) {
                Some(span) => span.to = x.saturating_add(1),
                None => spans.push(FootprintSpan { z, y, from: x, to: x.saturating_add(1) }),
            }
        }
        Ranked { spans: spans.into(), place }
    }

    /// Returns `true` if it reads levels other than the pixel's.
    pub fn crosses_levels(&self) -> bool {
        self.spans.iter().any(|s| s.z != 0)
    }

    /// The number of pixels under the footprint.
    pub fn count(&self) -> usize {
        self.spans.iter().map(|s| s.to.abs_diff(s.from) as usize).sum()
    }

    /// The reach of the footprint in the plane.
    pub fn reach(&self) -> Reach {
        self.spans.iter().fold(Reach::NONE, |r, s| {
            let before = |v: i32| v.min(0).unsigned_abs() as usize;
            let after = |v: i32| v.max(0).unsigned_abs() as usize;
            r.max(Reach {
                up: before(s.y),
                down: after(s.y),
                left: before(s.from),
                right: after(s.to.saturating_sub(1)),
            })
        })
    }

    /// Returns `true` if the footprint is a full rectangle of the plane that contains the centre.
    pub fn is_rectangle(&self) -> bool {
        if self.crosses_levels() {
            return false;
        }
        let reach = self.reach();
        let width = reach.left + reach.right + 1;
        self.spans.len() == reach.up + reach.down + 1 && self.count() == self.spans.len() * width
    }

    /// The reason why the footprint cannot be applied, if any; devices rely on this check.
    pub fn fault(&self) -> Option<&'static str> {
        let ordered = self.spans.windows(2).all(|s| (s[0].z, s[0].y, s[0].to) <= (s[1].z, s[1].y, s[1].from));
        if self.spans.is_empty() || self.spans.iter().any(|s| s.from >= s.to) {
            return Some("a footprint without pixels");
        }
        if !ordered {
            return Some("a footprint whose rows overlap");
        }
        if [self.spans[0].z, self.spans[self.spans.len() - 1].z].iter().any(|z| z.unsigned_abs() as usize > FARTHEST) {
            return Some("a footprint that reaches more than 65536 levels");
        }
        let Reach { up, down, left, right } = self.reach();
        if [up, down, left, right].iter().any(|reach| *reach > FARTHEST) {
            return Some("a footprint that reaches more than 65536 pixels");
        }
        (self.place >= self.count()).then_some("a place beyond the pixels of the footprint")
    }
}

/// An integer that orders pixels of a type as [`Ranked`] does.
#[inline(always)]
pub fn ordered(pixel: Scalar) -> u64 {
    let (bits, dtype) = (pixel.bits(), pixel.dtype());
    let (sign, all) = (1 << (8 * dtype.size() - 1), u64::MAX >> (64 - 8 * dtype.size()));
    if !dtype.is_float() {
        if dtype.is_signed() { bits ^ sign } else { bits }
    } else if pixel.to_f64().is_nan() {
        all
    } else {
        bits ^ if bits & sign == 0 { sign } else { all }
    }
}

/// A windowed operation with its border mode: ranks in the image's own type, means in the type of linear filters,
/// variances in `f64`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sliding {
    /// The window operation.
    pub how: Windowed,
    /// Border mode.
    pub border: Border,
}

/// The largest reach: sums of pixels stay exact, and span tables small.
const FARTHEST: usize = 1 << 16;

impl ImageOperation for Sliding {
    fn kind(&self) -> &'static str {
        self.how.kind()
    }

    fn name(&self) -> String {
        self.how.name()
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        same_places(shape, output.0)?;
        let reach = self.how.reach();
        let near = [reach.up, reach.down, reach.left, reach.right].into_iter().all(|r| r <= FARTHEST);
        ensure(near, || format!("a window that reaches more than {FARTHEST} pixels"))?;
        if let Windowed::Rank(rank) = &self.how
            && let Some(fault) = rank.fault()
        {
            return Err(fault.into());
        }
        ensure(self.how.yields(dtype, output.1), || format!("{} of {dtype} is not {}", self.kind(), output.1))
    }

    fn reads(&self, _: usize, need: Rect, _: Shape) -> InputRead {
        InputRead::around(need, self.how.reach(), self.border)
    }

    fn access(&self, _: usize) -> Access {
        Access::around(self.how.reach(), self.border)
    }

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to)
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }

    fn computed(&self, need: Rect, of: Shape) -> Rect {
        self.reads(0, need, of).sufficient_part(of).hull(need)
    }

    fn shared_bytes(&self) -> usize {
        match &self.how {
            Windowed::Mean(_) | Windowed::Variance(_) => 0,
            Windowed::Rank(rank) => size_of_val(&rank.spans[..]),
        }
    }

    fn by_levels(&self, _: usize) -> bool {
        !matches!(&self.how, Windowed::Rank(rank) if rank.crosses_levels())
    }

    fn supports_samples(&self) -> bool {
        matches!(self.how, Windowed::Mean(_) | Windowed::Variance(_))
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let family = match self.how {
            Windowed::Mean(_) | Windowed::Variance(_) => Family::Separable,
            Windowed::Rank(_) => Family::Rank,
        };
        let Reach { up, down, .. } = self.how.reach();
        LaunchEffort { reach: up + down, ..LaunchEffort::of_rows(family, output.0, rows, self.how.cost()) }
    }
}

impl SampleOperations for Sliding {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let mean = BoxMean::over(Reach { up: 1, down: 3, left: 0, right: 2 });
        let plane = Ranked::new(&[(-4, 0), (0, -1), (0, 0), (0, 1), (2, 0)], 2);
        let across = Ranked::across([(-1, 0, -1), (0, -2, 0), (0, 0, 0), (1, 3, 2)], 2);
        let sliding = |how| Sliding { how, border: of.border };
        vec![
            Instance::of(sliding(Windowed::Mean(mean)), &[of.image], of.image),
            Instance::of(sliding(Windowed::Variance(mean)), &[of.image], (of.image.0, DType::F64)),
            // Rows between the rows of a footprint are not read.
            Instance::of(sliding(Windowed::Rank(plane)), &[of.image], of.image).loose(),
            Instance::of(sliding(Windowed::Rank(across)), &[of.image], of.image).loose(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_ordered_by_value_and_nan_comes_last() {
        let floats = [f64::NEG_INFINITY, -2.5, -f64::MIN_POSITIVE, -0.0, 0.0, 1e-300, 3.0, f64::INFINITY];
        let keys = floats.map(|v| ordered(Scalar::F64(v)));
        assert!(keys.is_sorted_by(|a, b| a < b));
        for nan in [f64::NAN, -f64::NAN] {
            assert_eq!(ordered(Scalar::F64(nan)), u64::MAX);
            assert_eq!(ordered(Scalar::F32(nan as f32)), u64::from(u32::MAX));
        }
        let single = [f32::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f32::INFINITY].map(|v| ordered(Scalar::F32(v)));
        assert!(single.is_sorted_by(|a, b| a < b));
        assert!(
            ordered(Scalar::I8(-128)) < ordered(Scalar::I8(-1)) && ordered(Scalar::I8(-1)) < ordered(Scalar::I8(0))
        );
        assert!(ordered(Scalar::I32(i32::MIN)) < ordered(Scalar::I32(-1)));
        assert!(ordered(Scalar::I16(-1)) < ordered(Scalar::I16(1)));
    }

    #[test]
    fn footprints_are_spans_of_rows() {
        let cross = Ranked::new(&[(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)], 2);
        assert_eq!((cross.spans.len(), cross.count(), cross.is_rectangle()), (3, 5, false));
        assert_eq!(cross.reach(), Reach { up: 1, down: 1, left: 1, right: 1 });
        let square: Vec<_> = (-1..=1).flat_map(|y| (-2..=2).map(move |x| (y, x))).collect();
        assert!(Ranked::new(&square, 0).is_rectangle());
        let apart = Ranked::new(&[(0, 2), (0, 4)], 1);
        assert_eq!((apart.spans.len(), apart.is_rectangle(), apart.fault()), (2, false, None));
        assert!(Ranked::new(&[], 0).fault().is_some() && Ranked::new(&[(0, 0)], 1).fault().is_some());
        assert!(Ranked::new(&[(0, 0), (0, 0)], 1).fault().is_some());
        let across = Ranked::across([(-1, 3, 0), (0, -2, 0), (0, -2, 1), (1, -5, -4)], 3);
        assert_eq!((across.spans.len(), across.count(), across.fault(), across.crosses_levels()), (3, 4, None, true));
        assert_eq!(across.reach(), Reach { up: 5, down: 3, left: 4, right: 1 });
        assert!(Ranked::across([(1, 0, 0), (0, 0, 0)], 0).fault().is_some());
        assert!(Ranked::across([(1 << 17, 0, 0)], 0).fault().is_some());
        assert!(!Ranked::across((-1..2).flat_map(|z| (-1..2).map(move |x| (z, 0, x))), 0).is_rectangle());
    }
}
