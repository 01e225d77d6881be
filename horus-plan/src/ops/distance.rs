//! Distances to the background, the pixels that are 0: in images first along columns, then along rows; in volumes first
//! along levels, then along columns, then along rows.
//!
//! For some column, a pixel's nearest background pixel is the background pixel of that column nearest to the pixel's
//! row (Meijster, Roerdink and Hesselink 2000). The first sweep finds these as offsets, the second selects the column.
//! In a volume, the second sweep selects the row among the nearest pixels of each level, and the third selects the
//! column. Offsets do not depend on the position of a strip or a region.

use super::describe::{Accepts, OperationGroup, Pattern, describe, description, optional};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images, makes,
    stays,
};
use horus_base::dtype::{DType, Scalar};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Axis, Shape, Window};

describe! {
    DISTANCE = description("distance", OperationGroup::Morphology, Pattern::WholeImage, "The distance of each pixel to the nearest one that is 0")
        .also(&["distance_transform"])
        .called("distances")
        .takes(&[optional("metric", Accepts::Choice(|| vec!["euclidean", "taxicab", "chessboard"]), "euclidean", "")])
        .details("Meijster, Roerdink and Hesselink 2000.")
        .elsewhere(&["ndi.distance_transform_edt", "ndi.distance_transform_cdt", "cv.distanceTransform", "imageproc::distance_transform::euclidean_squared_distance_transform"])
        .differs("`a.distances()`: `euclidean`, `taxicab`, `chessboard`; `spaced` and `spaced_levels` are `sampling`, `nearest` and `nearest_level` the indices; exact, of volumes too; infinite, or -1, without background; per channel")
        .example("luminance otsu distance");
}

/// The offset of pixels whose column, or plane, has no background.
pub const NONE: i32 = i32::MIN;

/// The offset in pixels to the nearest background pixel on each pixel's line along an axis (rows or levels); of two
/// equally near, the first. [`NONE`] on a line without background. Yields `i32`, per channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NearestOnLine {
    /// [`Axis::Rows`] or [`Axis::Depth`].
    pub along: Axis,
}

/// The distance to minimize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The Euclidean distance.
    Euclidean(Spacing),
    /// The number of moves between pixels that share an edge.
    Taxicab,
    /// The number of moves between pixels that touch.
    Chessboard,
}

/// Distances between levels, between rows, and between columns, compared bitwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spacing([Scalar; 3]);

impl Spacing {
    /// Pixels of size 1.
    pub const UNIT: Spacing = Spacing::new([1.0; 3]);

    /// A spacing with these distances between levels, between rows and between columns.
    pub const fn new([levels, rows, columns]: [f64; 3]) -> Spacing {
        Spacing([Scalar::F64(levels), Scalar::F64(rows), Scalar::F64(columns)])
    }

    /// The distances between levels, between rows and between columns.
    pub fn get(self) -> [f64; 3] {
        self.0.map(Scalar::to_f64)
    }

    /// The square of the length of a distance in levels, rows and columns with this [spacing](Spacing::get).
    #[inline(always)]
    pub fn squared_length([levels, rows, columns]: [f64; 3], [z, y, x]: [f64; 3]) -> f64 {
        let (levels, rows, columns) = (levels * z, rows * y, columns * x);
        levels * levels + rows * rows + columns * columns
    }
}

impl Metric {
    /// The compared measure of a distance in levels, rows and columns: its square, or the number of moves. It never
    /// decreases as one of the numbers grows, not even by rounding, so that each sweep may select and an outward search
    /// ends.
    #[inline(always)]
    pub fn measure(self, away @ [levels, rows, columns]: [f64; 3]) -> f64 {
        match self {
            Metric::Euclidean(spacing) => Spacing::squared_length(away, spacing.get()),
            Metric::Taxicab => levels.abs() + rows.abs() + columns.abs(),
            Metric::Chessboard => levels.abs().max(rows.abs()).max(columns.abs()),
        }
    }
}

/// Offsets of level and row in one number: the last bits are the row's, with a sign, the others are the level's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JoinedOffsets {
    /// Bits of the row's offset: 0 for offsets of levels alone, 32 for offsets of rows alone.
    pub row_bits: u32,
}

impl JoinedOffsets {
    /// Offsets of rows alone.
    pub const ROWS: JoinedOffsets = JoinedOffsets { row_bits: 32 };

    /// Offsets of levels alone.
    pub const LEVELS: JoinedOffsets = JoinedOffsets { row_bits: 0 };

    /// The layout of offsets in images of a shape; `None` if they do not fit.
    pub const fn of(shape: Shape) -> Option<JoinedOffsets> {
        if shape.depth <= 1 {
            return Some(JoinedOffsets::ROWS);
        }
        let (levels, rows) = (shape.depth.ilog2() + 1, shape.height.saturating_sub(1).checked_ilog2());
        let row_bits = match rows {
            Some(bits) => bits + 2,
            None => 1,
        };
        // The lowest number is reserved for `NONE`.
        if levels + row_bits < 32 { Some(JoinedOffsets { row_bits }) } else { None }
    }

    /// Splits an offset into the level's and the row's.
    #[inline(always)]
    pub const fn split(self, offset: i32) -> [i32; 2] {
        match self.row_bits {
            0 => [offset, 0],
            bits @ 1..32 => {
                let row = offset << (32 - bits) >> (32 - bits);
                [offset.wrapping_sub(row) >> bits, row]
            }
            _ => [0, offset],
        }
    }

    /// Joins both offsets.
    #[inline(always)]
    pub const fn join(self, [level, row]: [i32; 2]) -> i32 {
        match self.row_bits {
            bits @ 0..32 => (level << bits).wrapping_add(row),
            _ => row,
        }
    }
}

/// The result for the nearest background pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NearestResult {
    /// The distance. For [`Metric::Euclidean`] the root of the measure, in `f32` or `f64`, and infinity without
    /// background; otherwise the measure in `i32`, and -1 without background.
    Distance,
    /// The offset of its level, or [`NONE`].
    Level,
    /// The offset of its row, or [`NONE`].
    Row,
    /// The offset of its column, or [`NONE`].
    Column,
    /// The offsets of its level and row, [joined](NearestPixel::offsets), or [`NONE`].
    Joined,
}

/// The nearest background pixel of each pixel, among the nearest pixels on lines that an earlier sweep found: the first
/// on the line along an axis with the smallest measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NearestPixel {
    /// The axis of lines: [`Axis::Rows`] of volumes after a sweep along levels, or [`Axis::Columns`].
    pub along: Axis,
    /// Layout of the offsets of levels and rows that a sweep along rows writes and a sweep along columns reads.
    pub offsets: JoinedOffsets,
    /// The distance to minimize.
    pub metric: Metric,
    /// The result; [`NearestResult::Joined`] for a sweep along rows.
    pub found: NearestResult,
}

impl NearestPixel {
    /// Returns `true` if the result is a distance in floats.
    pub const fn is_float(self) -> bool {
        matches!(self, NearestPixel { metric: Metric::Euclidean(_), found: NearestResult::Distance, .. })
    }

    /// The layout of the offsets that are read.
    pub const fn read(self) -> JoinedOffsets {
        match self.along {
            Axis::Rows => JoinedOffsets::LEVELS,
            _ => self.offsets,
        }
    }

    /// The distance in levels, rows and columns to a background pixel: `offset` is stored in the line `steps` further
    /// on.
    #[inline(always)]
    pub fn away(self, offset: i32, steps: f64) -> [f64; 3] {
        let [level, row] = self.read().split(offset).map(f64::from);
        match self.along {
            Axis::Rows => [level, steps, 0.0],
            _ => [level, row, steps],
        }
    }

    /// The result for a background pixel whose `offset` is stored `steps` pixels further along the line.
    #[inline(always)]
    pub const fn offset(self, offset: i32, steps: i32) -> i32 {
        let [level, row] = self.read().split(offset);
        let (row, column) = if matches!(self.along, Axis::Rows) { (steps, 0) } else { (row, steps) };
        match self.found {
            NearestResult::Level => level,
            NearestResult::Row => row,
            NearestResult::Column => column,
            NearestResult::Distance | NearestResult::Joined => self.offsets.join([level, row]),
        }
    }

    /// The lines that contain the pixels of a rectangle.
    const fn lines(self, need: Rect, of: Shape) -> Rect {
        match self.along {
            Axis::Rows => Rect { rows: Window::whole(of.height), ..need },
            _ => Rect { columns: Window::whole(of.width), ..need },
        }
    }
}

impl NearestOnLine {
    /// The lines that contain the pixels of a rectangle.
    const fn lines(self, need: Rect, of: Shape) -> Rect {
        match self.along {
            Axis::Rows => Rect { rows: Window::whole(of.height), ..need },
            _ => need,
        }
    }
}

impl ImageOperation for NearestOnLine {
    fn kind(&self) -> &'static str {
        match self.along {
            Axis::Depth => "nearest_level",
            _ => "nearest_row",
        }
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, _)] = images(inputs)?;
        ensure(matches!(self.along, Axis::Rows | Axis::Depth), || format!("no first pass is along {}", self.along))?;
        makes((shape, DType::I32), output)
    }

    fn reads(&self, _: usize, need: Rect, of: Shape) -> InputRead {
        InputRead::inside(self.lines(need, of))
    }

    fn access(&self, _: usize) -> Access {
        match self.along {
            Axis::Rows => Access::Whole,
            _ => Access::IN_PLACE,
        }
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        Some(PositionMap::default())
    }

    fn in_place(&self, _: usize) -> bool {
        self.along != Axis::Rows
    }

    fn by_levels(&self, _: usize) -> bool {
        self.along == Axis::Rows
    }

    fn computed(&self, need: Rect, of: Shape) -> Rect {
        self.lines(need, of)
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        LaunchEffort::of_rows(Family::Pixel, output.0, rows, 4.0)
    }
}

impl SampleOperations for NearestOnLine {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let sample = |along| Instance::of(NearestOnLine { along }, &[of.image], (of.image.0, DType::I32));
        vec![sample(Axis::Rows), sample(Axis::Depth)]
    }
}

impl ImageOperation for NearestPixel {
    fn kind(&self) -> &'static str {
        "nearest"
    }

    fn name(&self) -> String {
        let metric = match self.metric {
            Metric::Euclidean(_) => "euclidean",
            Metric::Taxicab => "taxicab",
            Metric::Chessboard => "chessboard",
        };
        match self.found {
            NearestResult::Distance => format!("{metric} distance"),
            NearestResult::Level => format!("level of the nearest by {metric} distance"),
            NearestResult::Row => format!("row of the nearest by {metric} distance"),
            NearestResult::Column => format!("column of the nearest by {metric} distance"),
            NearestResult::Joined => format!("level and row of the nearest by {metric} distance"),
        }
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        ensure(dtype == DType::I32, || format!("{dtype} are no offsets"))?;
        let joins = match self.along {
            Axis::Rows => self.found == NearestResult::Joined && self.offsets.row_bits < 32,
            Axis::Columns => self.found != NearestResult::Joined,
            Axis::Channels | Axis::Depth => false,
        };
        ensure(joins, || format!("no pass along {} finds {:?}", self.along, self.found))?;
        let wanted = if self.is_float() && output.1 == DType::F64 {
            DType::F64
        } else if self.is_float() {
            DType::F32
        } else {
            DType::I32
        };
        makes((shape, wanted), output)?;
        let known = match self.metric {
            Metric::Euclidean(spacing) => spacing.get().iter().all(|v| *v > 0.0 && v.is_finite()),
            Metric::Taxicab | Metric::Chessboard => true,
        };
        ensure(known, || format!("{:?} is no spacing of pixels", self.metric))
    }

    fn reads(&self, _: usize, need: Rect, of: Shape) -> InputRead {
        InputRead::inside(self.lines(need, of))
    }

    fn access(&self, _: usize) -> Access {
        match self.along {
            Axis::Rows => Access::Whole,
            _ => Access::IN_PLACE,
        }
    }

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to)
    }

    fn in_place(&self, _: usize) -> bool {
        self.along != Axis::Rows
    }

    fn by_levels(&self, _: usize) -> bool {
        true
    }

    fn computed(&self, need: Rect, of: Shape) -> Rect {
        self.lines(need, of)
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        LaunchEffort::of_rows(Family::Pixel, output.0, rows, 900.0)
    }
}

impl SampleOperations for NearestPixel {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let offsets = (of.image.0, DType::I32);
        let sample = |along, found| {
            let offsets_of = JoinedOffsets { row_bits: 5 };
            let how = NearestPixel { along, offsets: offsets_of, metric: Metric::Taxicab, found };
            Instance::of(how, &[offsets], offsets)
        };
        vec![
            sample(Axis::Columns, NearestResult::Column),
            sample(Axis::Columns, NearestResult::Distance),
            sample(Axis::Rows, NearestResult::Joined),
        ]
    }
}
