//! Distances to the background, the pixels that are 0: first along columns, then along rows.
//!
//! A pixel's nearest background pixel is, for some column, that column's nearest to the pixel's row
//! (Meijster, Roerdink and Hesselink 2000). The first pass finds these, as offsets, and the second
//! selects the column. Offsets do not depend on the place of a strip or a region.

use super::footprint::{Access, Reading, Rect};
use super::operation::{Effort, Extent, Family, ImageOperation, hold, images, makes, stays};
use horus_base::dtype::{DType, Scalar};
use horus_base::placed::Placed;
use horus_base::shape::{Shape, Window};

/// Offset of pixels whose column, or plane, has no background.
pub const NONE: i32 = i32::MIN;

/// The offset, in rows, of the nearest background pixel of each pixel's column: of two the one
/// above. [`NONE`] in a column without any. Yields `i32`, per plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NearestRow;

/// The distance that is minimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The length of a straight line.
    Euclidean(Spacing),
    /// Steps to pixels that share an edge.
    Taxicab,
    /// Steps to pixels that touch.
    Chessboard,
}

/// Distances between rows, and between columns, compared bitwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spacing([Scalar; 2]);

impl Spacing {
    /// Square pixels of size 1.
    pub const UNIT: Spacing = Spacing::new(1.0, 1.0);

    /// Distances between rows and between columns.
    pub const fn new(rows: f64, columns: f64) -> Spacing {
        Spacing([Scalar::F64(rows), Scalar::F64(columns)])
    }

    /// Distances between rows and between columns.
    pub fn get(self) -> [f64; 2] {
        self.0.map(Scalar::to_f64)
    }
}

impl Metric {
    /// What is compared: the squared distance, or the number of steps. It never falls as `across`
    /// grows, not even by rounding, so that a search outwards may end.
    #[inline(always)]
    pub fn measure(self, down: f64, across: f64) -> f64 {
        match self {
            Metric::Euclidean(spacing) => {
                let [rows, columns] = spacing.get();
                let (down, across) = (down * rows, across * columns);
                down * down + across * across
            }
            Metric::Taxicab => down.abs() + across.abs(),
            Metric::Chessboard => down.abs().max(across.abs()),
        }
    }
}

/// What is found of the nearest background pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sought {
    /// The distance: for [`Metric::Euclidean`] the root of the measure, in `f32` or `f64`, infinite
    /// without background; otherwise the measure in `i32`, -1 without background.
    Distance,
    /// The offset of its row, or [`NONE`].
    Row,
    /// The offset of its column, or [`NONE`].
    Column,
}

/// The nearest background pixel of each pixel, from the offsets of [`NearestRow`]: the first column
/// with the smallest measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NearestPixel {
    /// The distance that is minimal.
    pub metric: Metric,
    /// The result.
    pub found: Sought,
}

impl NearestPixel {
    /// True if the result is a distance in floats.
    pub const fn is_float(self) -> bool {
        matches!(self, NearestPixel { metric: Metric::Euclidean(_), found: Sought::Distance })
    }
}

impl ImageOperation for NearestRow {
    fn kind(&self) -> &'static str {
        "nearest_row"
    }

    fn check(&self, inputs: &[Extent], output: Extent) -> Result<(), String> {
        let [(shape, _)] = images(inputs)?;
        makes((shape, DType::I32), output)
    }

    fn reads(&self, _: usize, need: Rect, of: Shape) -> Reading {
        Reading::inside(Rect { rows: Window::whole(of.height), ..need })
    }

    fn access(&self, _: usize) -> Access {
        Access::Whole
    }

    fn placed(&self, _: usize, _: Shape, _: Shape) -> Option<Placed> {
        Some(Placed::default())
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn computed(&self, need: Rect, of: Shape) -> Rect {
        Rect { rows: Window::whole(of.height), ..need }
    }

    fn effort(&self, _: &[Extent], output: Extent, rows: usize) -> Effort {
        Effort::of_rows(Family::Pixel, output.0, rows, 4.0)
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
            Sought::Distance => format!("{metric} distance"),
            Sought::Row => format!("row of the nearest by {metric} distance"),
            Sought::Column => format!("column of the nearest by {metric} distance"),
        }
    }

    fn check(&self, inputs: &[Extent], output: Extent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        hold(dtype == DType::I32, || format!("{dtype} are no offsets of rows"))?;
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
        hold(known, || format!("{:?} is no spacing of pixels", self.metric))
    }

    fn reads(&self, _: usize, need: Rect, of: Shape) -> Reading {
        Reading::inside(Rect { columns: Window::whole(of.width), ..need })
    }

    fn access(&self, _: usize) -> Access {
        Access::IN_PLACE
    }

    fn placed(&self, _: usize, from: Shape, to: Shape) -> Option<Placed> {
        stays(from, to)
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }

    fn computed(&self, need: Rect, of: Shape) -> Rect {
        Rect { columns: Window::whole(of.width), ..need }
    }

    fn effort(&self, _: &[Extent], output: Extent, rows: usize) -> Effort {
        Effort::of_rows(Family::Pixel, output.0, rows, 900.0)
    }
}
