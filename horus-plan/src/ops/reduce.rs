//! Reductions in one fixed order, independent of strips, ranks and threads.
//!
//! An image is reduced first along each row ([`RowReduce`], by the owner of the row), then over the columns of row
//! results, plane by plane ([`fold_planes`]). The order is anchored in the image: rows, and row results of a plane, are
//! cut into *segments* of 1024 ([`SEGMENT`]) that begin at 0, 1024, 2048 and so on. Element `i` of a segment goes to
//! lane `i mod 64`. Lanes accumulate in order from the identity and are combined in halves (0 with 32, 1 with 33, ...,
//! then 0 with 16, ...). Segments are combined first to last from the identity, then planes likewise. The owner of a
//! segment (a tile, a block of rows) can therefore reduce it alone.

use super::describe::{Accepts, OperationGroup, Pattern, describe, description, optional, required};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Distribution, Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure,
    images,
};
use super::pixel::PixelOp;
use horus_base::dtype::{DType, Pixel};
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

describe! {
    MIN_VALUE = description("min", OperationGroup::Numbers, Pattern::Reduction, "The smallest pixel")
        .called("min_value")
        .elsewhere(&["np.nanmin", "cv.minMaxLoc", "imageproc::stats::min_max"])
        .differs("NaN is ignored, of nothing else it is infinity; several in one pass by `session.get_all((a.min_value(), a.max_value()))`")
        .example("min");
    MAX_VALUE = description("max", OperationGroup::Numbers, Pattern::Reduction, "The largest pixel")
        .called("max_value")
        .elsewhere(&["np.nanmax", "cv.minMaxLoc"])
        .differs("NaN is ignored, of nothing else it is minus infinity")
        .example("max");
    SUM = description("sum", OperationGroup::Numbers, Pattern::Reduction, "The sum of all pixels")
        .elsewhere(&["np.sum", "cv.sumElems", "imageproc::stats::sum_image_pixels"])
        .differs("over all channels together; OpenCV: each")
        .example("sum");
    MEAN = description("mean", OperationGroup::Numbers, Pattern::Reduction, "The mean of all pixels; of a mask, the fraction that is true")
        .elsewhere(&["np.mean", "cv.mean"])
        .differs("over all channels together")
        .example("luminance mean");
    VARIANCE = description("variance", OperationGroup::Numbers, Pattern::Reduction, "The population variance: the mean of the squared deviation from the mean")
        .elsewhere(&["np.var", "cv.meanStdDev"])
        .differs("over all channels together")
        .example("variance");
    ARGMIN = description("argmin", OperationGroup::Numbers, Pattern::Reduction, "Row, column and channel of the smallest pixel, the first of several; its level first in a volume")
        .elsewhere(&["np.nanargmin", "cv.minMaxLoc"])
        .differs("level, row, column, channel of the first; level by level, channel by channel")
        .example("argmin");
    ARGMAX = description("argmax", OperationGroup::Numbers, Pattern::Reduction, "Row, column and channel of the largest pixel, the first of several; its level first in a volume")
        .elsewhere(&["np.nanargmax", "cv.minMaxLoc"])
        .differs("as `argmin`")
        .example("argmax");
    COUNT = description("count", OperationGroup::Numbers, Pattern::Reduction, "The number of true pixels of a mask")
        .elsewhere(&["np.count_nonzero", "cv.countNonZero"])
        .differs("of masks")
        .example("otsu count");
    OVER = description("over", OperationGroup::Statistics, Pattern::Reduction, "The sum, mean, smallest or largest pixel over an axis, whose extent becomes 1")
        .takes(&[required("axis", Accepts::Choice(|| vec!["rows", "columns", "channels"]), ""), optional("how", Accepts::Choice(|| vec!["sum", "mean", "min", "max"]), "mean", "what is computed along it")])
        .elsewhere(&["np.sum", "np.mean", "np.nanmin", "np.nanmax", "cv.reduce"])
        .differs("`a.over(Axis::Rows).sum()`, of several axes `a.over([Axis::Rows, Axis::Columns])`, of the pixels of a mask `a.over(&mask).mean()`; sums in `f64`, means in `f32` (of `f64` images `f64`); `Axis::Rows` is NumPy's axis 0, with `keepdims`")
        .example("over channels mean");
    OF_ALL = description("of_all", OperationGroup::Statistics, Pattern::Reduction, "Sum, mean, median, smallest or largest of several images, pixel by pixel")
        .elsewhere(&["np.median", "cv.accumulate"])
        .differs("of a stack, `axis=0`: `Image::of_all(&session, &frames).median()`; sums in `f64`, means in `f32`");
}

/// Number of lanes of the fixed order.
pub const LANES: usize = 64;

/// Elements per segment of the fixed order.
pub const SEGMENT: usize = 1024;

/// Reductions along each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowReduce {
    /// The sum in `f64`; yields `f64`.
    Sum,
    /// The sum of `(pixel - mean)^2` in `f64`; the mean is a second, 1x1 `f64` operand. Yields `f64`.
    SquaredDeviation,
    /// The smallest pixel, ignoring NaN; keeps the type.
    Min,
    /// The largest pixel, ignoring NaN; keeps the type.
    Max,
    /// The smallest and the largest pixel, in two columns; keeps the type.
    Extremes,
    /// [`Moments`] in `f64`, in three columns: sum, squared deviation from the mean, number of pixels.
    Moments,
    /// The first column whose pixel equals a second operand, a 1x1 `f64` image; yields `f64`, infinity if there is
    /// none.
    First,
}

impl RowReduce {
    /// All row reductions.
    pub const ALL: [RowReduce; 7] = [
        RowReduce::Sum,
        RowReduce::SquaredDeviation,
        RowReduce::Min,
        RowReduce::Max,
        RowReduce::Extremes,
        RowReduce::Moments,
        RowReduce::First,
    ];

    /// The type of the result for an image of type `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        match self {
            RowReduce::Sum | RowReduce::SquaredDeviation | RowReduce::Moments | RowReduce::First => DType::F64,
            RowReduce::Min | RowReduce::Max | RowReduce::Extremes => dtype,
        }
    }

    /// Results per row: columns of the image of row results.
    pub const fn columns(self) -> usize {
        self.fold().columns()
    }

    /// Returns `true` if there is a second operand, of one `f64` pixel.
    pub const fn has_operand(self) -> bool {
        matches!(self, RowReduce::SquaredDeviation | RowReduce::First)
    }

    /// The fold that combines the row results.
    pub const fn fold(self) -> Fold {
        match self {
            RowReduce::Sum | RowReduce::SquaredDeviation => Fold::Sum,
            RowReduce::Min | RowReduce::First => Fold::Min,
            RowReduce::Max => Fold::Max,
            RowReduce::Extremes => Fold::Extremes,
            RowReduce::Moments => Fold::Moments,
        }
    }

    /// The reductions whose results equal columns of this one's by bits, each with the first such column.
    pub const fn includes(self) -> &'static [(RowReduce, usize)] {
        match self {
            RowReduce::Extremes => &[(RowReduce::Min, 0), (RowReduce::Max, 1), (RowReduce::Extremes, 0)],
            RowReduce::Moments => &[(RowReduce::Sum, 0), (RowReduce::Moments, 0)],
            RowReduce::Sum | RowReduce::SquaredDeviation | RowReduce::Min | RowReduce::Max | RowReduce::First => &[],
        }
    }

    /// The columns at which rows can be divided so that row results can be [joined](RowReduce::join).
    pub const fn divisible(self) -> Divisible {
        match self {
            RowReduce::Min | RowReduce::Max | RowReduce::Extremes => Divisible::Anywhere,
            RowReduce::Sum | RowReduce::SquaredDeviation | RowReduce::Moments => Divisible::AtSegments,
            RowReduce::First => Divisible::Nowhere,
        }
    }

    /// Extends row results by `next`, the results of the columns that follow. The results of a row are adjacent.
    pub fn join<T: Pixel>(self, so_far: &mut [T], next: &[T]) {
        let rows = so_far.chunks_mut(self.columns()).zip(next.chunks(self.columns()));
        for (row, next) in rows {
            match (self, row, next) {
                (RowReduce::Moments, [sum, squares, count], [next_sum, next_squares, next_count]) => {
                    let moments = |sum: T, squares: T, count: T| Moments {
                        count: count.to_f64(),
                        sum: sum.to_f64(),
                        squares: squares.to_f64(),
                    };
                    let joined =
                        moments(*sum, *squares, *count).followed_by(moments(*next_sum, *next_squares, *next_count));
                    let [a, b, c] = [joined.sum, joined.squares, joined.count].map(T::from_f64);
                    (*sum, *squares, *count) = (a, b, c);
                }
                (RowReduce::Extremes, [low, high], [next_low, next_high]) => {
                    *low = Fold::Min.combine(*low, *next_low);
                    *high = Fold::Max.combine(*high, *next_high);
                }
                (_, row, next) => {
                    row.iter_mut().zip(next).for_each(|(a, b)| *a = self.fold().combine(*a, *b));
                }
            }
        }
    }

    /// The name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            RowReduce::Sum => "row_sum",
            RowReduce::SquaredDeviation => "row_squared_deviation",
            RowReduce::Min => "row_min",
            RowReduce::Max => "row_max",
            RowReduce::Extremes => "row_extremes",
            RowReduce::Moments => "row_moments",
            RowReduce::First => "row_first",
        }
    }
}

/// Where a reduction allows rows to be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Divisible {
    /// Anywhere: the order of pixels does not matter.
    Anywhere,
    /// At [segments](SEGMENT), first to last.
    AtSegments,
    /// Nowhere: a row is reduced as a whole.
    Nowhere,
}

/// Folds of a sequence into one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The sum (of `f64`).
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Two columns: the smallest of the first, the largest of the second.
    Extremes,
    /// The three columns of [`RowReduce::Moments`]: see [`fold_moments`].
    Moments,
}

impl Fold {
    /// Columns read, each folded into one value.
    pub const fn columns(self) -> usize {
        match self {
            Fold::Sum | Fold::Min | Fold::Max => 1,
            Fold::Extremes => 2,
            Fold::Moments => 3,
        }
    }

    /// The identity element; with several columns, the identity of the first.
    pub fn identity<T: Pixel>(self) -> T {
        match self {
            Fold::Sum | Fold::Moments => T::ZERO,
            Fold::Min | Fold::Extremes => T::HIGHEST,
            Fold::Max => T::LOWEST,
        }
    }

    /// Combines two values; with several columns, values of the first.
    #[inline(always)]
    pub fn combine<T: Pixel>(self, a: T, b: T) -> T {
        match self {
            Fold::Sum | Fold::Moments => a.add(b),
            Fold::Min | Fold::Extremes => a.min(b),
            Fold::Max => a.max(b),
        }
    }

    /// The same, as a pixel operation.
    pub const fn pairwise(self) -> PixelOp {
        match self {
            Fold::Sum | Fold::Moments => PixelOp::Add,
            Fold::Min | Fold::Extremes => PixelOp::Min,
            Fold::Max => PixelOp::Max,
        }
    }

    /// The name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Fold::Sum => "fold_sum",
            Fold::Min => "fold_min",
            Fold::Max => "fold_max",
            Fold::Extremes => "fold_extremes",
            Fold::Moments => "fold_moments",
        }
    }
}

/// Count, sum and squared deviation from the mean. A row is read once: per segment the sum by [`fold`], then by
/// [`fold`] the squared deviations from the segment's mean. Segments are joined first to last (Chan, Golub and
/// LeVeque). Sums equal those of [`RowReduce::Sum`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: f64,
    /// Their sum.
    pub sum: f64,
    /// Sum of squared deviations from the mean.
    pub squares: f64,
}

impl Moments {
    /// The moments of a segment with known sum and squared deviation.
    pub fn of_segment(count: usize, sum: f64, squares: f64) -> Moments {
        Moments { count: count as f64, sum, squares }
    }

    /// The moments of these values followed by `next`.
    #[must_use]
    pub fn followed_by(self, next: Moments) -> Moments {
        if self.count == 0.0 {
            return next;
        }
        let count = self.count + next.count;
        let apart = next.sum / next.count - self.sum / self.count;
        let squares = self.squares + next.squares + apart * apart * (self.count * next.count / count);
        Moments { count, sum: self.sum + next.sum, squares }
    }
}

/// The [`Moments`] of a row.
pub fn moments(values: impl IntoIterator<Item = f64>) -> Moments {
    let values: Vec<f64> = values.into_iter().collect();
    values.chunks(SEGMENT).fold(Moments::default(), |all, segment| {
        let sum = fold(Fold::Sum, segment.iter().copied());
        let mean = sum / segment.len() as f64;
        let squares = fold(Fold::Sum, segment.iter().map(|v| (v - mean) * (v - mean)));
        all.followed_by(Moments::of_segment(segment.len(), sum, squares))
    })
}

/// The moments of all rows. [`fold_planes`] adds counts, sums and squares; for squares each row adds its own and, per
/// pixel, the squared distance of its mean from the overall mean.
pub fn fold_moments<P: IntoIterator<Item = Moments>>(planes: impl Clone + IntoIterator<Item = P>) -> Moments {
    let total = |of: fn(Moments) -> f64| {
        fold_planes(Fold::Sum, planes.clone().into_iter().map(|plane| plane.into_iter().map(of)))
    };
    let (count, sum) = (total(|row| row.count), total(|row| row.sum));
    let mean = sum / count;
    let spread = |row: Moments| row.spread(mean);
    let squares = planes.clone().into_iter().map(|plane| plane.into_iter().map(spread));
    Moments { count, sum, squares: fold_planes(Fold::Sum, squares) }
}

impl Moments {
    /// The squared deviation of these values from `mean`.
    #[inline(always)]
    pub fn spread(self, mean: f64) -> f64 {
        let apart = self.sum / self.count - mean;
        self.squares + self.count * (apart * apart)
    }
}

/// Folds `values`, a row or column from its beginning, in the fixed order: the definition of every reduction. An empty
/// sequence yields the identity.
pub fn fold<T: Pixel>(how: Fold, values: impl IntoIterator<Item = T>) -> T {
    let mut values = values.into_iter().peekable();
    let mut total = how.identity::<T>();
    while values.peek().is_some() {
        let mut lanes = [how.identity::<T>(); LANES];
        for (i, v) in values.by_ref().take(SEGMENT).enumerate() {
            let lane = &mut lanes[i % LANES];
            *lane = how.combine(*lane, v);
        }
        total = how.combine(total, combine_lanes(how, lanes));
    }
    total
}

/// Elements per chunk of a running sum.
pub const CHUNK: usize = 32;

/// Running sums of a row, in an order of their own: sequentially within chunks of 32 elements ([`CHUNK`]) of a segment,
/// plus the sum of the previous chunks of the segment (accumulated from the first), plus the sum of the previous
/// segments. The last entry is the sum of the row, up to rounding.
pub fn running(values: &[f64]) -> Vec<f64> {
    let mut out = Vec::with_capacity(values.len());
    let mut before = 0.0;
    for segment in values.chunks(SEGMENT) {
        let mut offset = 0.0;
        for chunk in segment.chunks(CHUNK) {
            let mut sum = 0.0;
            for v in chunk {
                sum += v;
                out.push(before + (offset + sum));
            }
            offset += sum;
        }
        before += offset;
    }
    out
}

/// Folds planes, each by [`fold`], into one value.
pub fn fold_planes<T: Pixel, P: IntoIterator<Item = T>>(how: Fold, planes: impl IntoIterator<Item = P>) -> T {
    planes.into_iter().fold(how.identity(), |total, plane| how.combine(total, fold(how, plane)))
}

/// Combines the lanes of a segment in halves.
pub fn combine_lanes<T: Pixel>(how: Fold, mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = how.combine(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The bin of `v` in a histogram of `bins` equal bins over `lo..=hi`; `None` outside and for NaN. The last bin is
/// closed. Computed in `f64` as `floor((v - lo) / (hi - lo) * bins)`. `numpy.histogram` corrects against its rounded
/// edges and can differ for a value on a bin edge that binary cannot represent.
#[inline(always)]
pub fn bin_of(v: f64, lo: f64, hi: f64, bins: usize) -> Option<usize> {
    if !(v >= lo && v <= hi) {
        return None;
    }
    let i = ((v - lo) / (hi - lo) * bins as f64) as usize;
    Some(i.min(bins - 1))
}

/// Input index of the second operand of a row reduction.
const OPERAND: usize = 1;

impl RowReduce {
    /// Fails unless `output` has the shape of the row results, and a required operand is present.
    ///
    /// # Errors
    /// Describes the mismatch.
    pub fn fits(self, image: ImageExtent, operand: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let count = usize::from(self.has_operand());
        ensure(operand.len() == count, || format!("it reads {count} operands, got {}", operand.len()))?;
        for (shape, dtype) in operand {
            let one = (*shape, *dtype) == (Shape::new(1, 1, 1), DType::F64);
            ensure(one, || format!("an operand of {shape} {dtype}"))?;
        }
        // Each sample of interleaved pixels is reduced by itself.
        ensure(image.0.samples == 1 || image.0.channels == 1, || format!("{} has both orders of samples", image.0))?;
        let (shape, dtype) = (Shape { width: self.columns(), ..image.0.planar() }, self.result(image.1));
        ensure((shape, dtype) == output, || {
            format!("{} {} has row results of {shape} {dtype}, not {} {}", image.0, image.1, output.0, output.1)
        })
    }
}

impl ImageOperation for RowReduce {
    fn kind(&self) -> &'static str {
        RowReduce::name(*self)
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let (image, operand) = inputs.split_first().ok_or("it reads no image")?;
        self.fits(*image, operand, output)
    }

    fn reads(&self, input: usize, need: Rect, of: Shape) -> InputRead {
        let whole = Rect::whole(of);
        InputRead::inside(if input == OPERAND { whole } else { Rect { rows: need.rows, ..whole } })
    }

    fn access(&self, input: usize) -> Access {
        if input == OPERAND { Access::Whole } else { Access::IN_PLACE }
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        None
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn by_levels(&self, input: usize) -> bool {
        input != OPERAND
    }

    fn computed(&self, need: Rect, of: Shape) -> Rect {
        Rect { rows: need.rows, ..Rect::whole(of) }
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let steps = if *self == RowReduce::Moments { 3.0 } else { 1.0 };
        LaunchEffort::of_rows(Family::Reduction, inputs.first().unwrap_or(&output).0, rows, steps)
    }
}

impl SampleOperations for RowReduce {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let (shape, dtype) = of.image;
        let all = [
            RowReduce::Sum,
            RowReduce::SquaredDeviation,
            RowReduce::Max,
            RowReduce::Extremes,
            RowReduce::Moments,
            RowReduce::First,
        ];
        let sample = |how: RowReduce| {
            let operand = (Shape::new(1, 1, 1), DType::F64);
            let inputs = if how.has_operand() { vec![of.image, operand] } else { vec![of.image] };
            Instance::of(how, &inputs, (Shape { width: how.columns(), ..shape }, how.result(dtype)))
        };
        all.map(sample).into()
    }
}

impl ImageOperation for Fold {
    fn kind(&self) -> &'static str {
        Fold::name(*self)
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        let columns = self.columns();
        ensure((Shape::new(1, columns, 1), dtype) == output, || {
            format!("{shape} {dtype} is folded to {columns} pixels, not to {} {}", output.0, output.1)
        })?;
        let wide = columns == 1 || shape.width == columns;
        ensure(wide && (*self != Fold::Moments || dtype == DType::F64), || {
            format!("{} of {shape} {dtype}", self.kind())
        })
    }

    fn reads(&self, _: usize, _: Rect, of: Shape) -> InputRead {
        InputRead::whole(of)
    }

    fn access(&self, _: usize) -> Access {
        Access::Whole
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        None
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn distribution(&self) -> Distribution {
        Distribution::Whole
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, _: usize) -> LaunchEffort {
        LaunchEffort {
            family: Family::Reduction,
            pixels: inputs.first().unwrap_or(&output).0.len(),
            cost: 1.0,
            reach: 0,
        }
    }
}

impl SampleOperations for Fold {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let sample = |how: Fold, (shape, dtype): ImageExtent| {
            Instance::of(
                how,
                &[(Shape { width: how.columns(), ..shape }, dtype)],
                (Shape::new(1, how.columns(), 1), dtype),
            )
        };
        let wide = (of.image.0, DType::F64);
        vec![sample(Fold::Max, of.image), sample(Fold::Extremes, of.image), sample(Fold::Moments, wide)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_order_sums_exactly_what_is_exact() {
        let v: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(fold(Fold::Sum, v.iter().copied()), 499_500.0);
        assert_eq!(fold(Fold::Min, v.iter().copied()), 0.0);
        assert_eq!(fold(Fold::Max, v.iter().copied()), 999.0);
        assert_eq!(fold(Fold::Sum, std::iter::empty::<f64>()), 0.0);
    }

    #[test]
    fn the_order_is_anchored_at_segments_and_planes() {
        // 1e17 + 1 is 1e17. In one segment lanes 0 and 64 cancel before lane 1 is added; across segments it is too
        // late.
        let sum = |len: usize, at: &[(usize, f64)]| {
            let mut v = vec![0.0; len];
            at.iter().for_each(|(i, x)| v[*i] = *x);
            fold(Fold::Sum, v)
        };
        assert_eq!(sum(1024, &[(0, 1e17), (960, -1e17), (1023, 1.0)]), 1.0);
        assert_eq!(sum(1026, &[(0, 1e17), (1024, -1e17), (1025, 1.0)]), 0.0);
        assert_eq!(sum(3000, &[(0, 1e17), (1024, -1e17), (2048, 1.0)]), 1.0);
        assert_eq!(fold_planes(Fold::Sum, [vec![1e17], vec![-1e17], vec![1.0]]), 1.0);
        assert_eq!(fold_planes(Fold::Sum, [vec![1e17], vec![-1e17, 1.0]]), 0.0);
        assert_eq!(fold_planes(Fold::Max, std::iter::empty::<Vec<u8>>()), 0);
    }

    #[test]
    fn extremes_ignore_nan() {
        assert_eq!(fold(Fold::Max, [f32::NAN, 2.0, f32::NAN]), 2.0);
    }

    #[test]
    fn the_last_bin_is_closed() {
        assert_eq!(bin_of(1.0, 0.0, 1.0, 4), Some(3));
        assert_eq!(bin_of(0.25, 0.0, 1.0, 4), Some(1));
        assert_eq!(bin_of(-0.1, 0.0, 1.0, 4), None);
        assert_eq!(bin_of(f64::NAN, 0.0, 1.0, 4), None);
    }
}
