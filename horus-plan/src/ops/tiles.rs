//! Reductions of rectangles: adjacent tiles or overlapping windows.
//!
//! Each rectangle is reduced alone, in an order anchored at its corner: the pixel in its column `i` goes to lane `i mod
//! 64`, lanes accumulate down the rows and are combined in halves like the lanes of a segment ([`combine_lanes`]). The
//! result is therefore independent of ranks, devices and threads.

use super::describe::{Accepts, OperationGroup, Parameter, Pattern, describe, description, optional, required};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images,
};
use super::reduce::{Fold, LANES, combine_lanes};
use horus_base::dtype::{DType, Pixel};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Shape, Window};

const HEIGHT: Parameter = required("height", Accepts::Count, "");
const WIDTH: Parameter = required("width", Accepts::Count, "");
const HOW: Parameter = optional("how", Accepts::Choice(statistics), "mean", "what is computed of each");

fn statistics() -> Vec<&'static str> {
    vec!["sum", "mean", "variance", "min", "max"]
}

describe! {
    TILES = description("tiles", OperationGroup::Statistics, Pattern::Reduction, "A pixel for each tile: its sum, mean, variance, smallest or largest pixel")
        .takes(&[HEIGHT, WIDTH, HOW])
        .elsewhere(&["ski.measure.block_reduce", "cv.resize(INTER_AREA)"])
        .differs("the last tiles may be smaller")
        .example("tiles 8 8 max");
    WINDOWS = description("windows", OperationGroup::Statistics, Pattern::Reduction, "A pixel for each window inside the picture, every so many rows and columns")
        .takes(&[HEIGHT, WIDTH, required("down", Accepts::Count, "rows"), required("across", Accepts::Count, "columns"), HOW])
        .elsewhere(&["np.lib.stride_tricks.sliding_window_view"])
        .differs("windows inside the image")
        .example("windows 7 7 4 4 variance");
}

/// Rectangles at regular distances from the corner of an image, clipped at its bottom and right edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Rows per rectangle.
    pub height: usize,
    /// Columns per rectangle.
    pub width: usize,
    /// Row distance between rectangles.
    pub down: usize,
    /// Column distance between rectangles.
    pub across: usize,
}

impl Grid {
    /// The rows and columns, clipped to the image, of the rectangle in row `y` and column `x` of the grid.
    pub fn rectangle(&self, image: Shape, y: usize, x: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let cut = |at: usize, step: usize, extent: usize, end: usize| {
            let first = at.saturating_mul(step).min(end);
            first..first.saturating_add(extent).min(end)
        };
        (cut(y, self.down, self.height, image.height), cut(x, self.across, self.width, image.width))
    }

    /// Returns `true` if every rectangle of a grid of shape `grid` has pixels of `image`.
    pub fn covers(&self, image: Shape, grid: Shape) -> bool {
        let inside = |n: usize, step: usize, extent: usize, end: usize| {
            n > 0 && extent > 0 && step > 0 && (n - 1).checked_mul(step).is_some_and(|first| first < end)
        };
        (grid.channels, grid.depth) == (image.channels, image.depth)
            && inside(grid.height, self.down, self.height, image.height)
            && inside(grid.width, self.across, self.width, image.width)
    }
}

/// The reduction of the pixels of a rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileReduce {
    /// Their sum in `f64`; yields `f64`.
    Sum,
    /// The sum of `(pixel - mean)^2` in `f64`, with the mean of the rectangle; yields `f64`.
    SquaredDeviation,
    /// The smallest, ignoring NaN; keeps the type.
    Min,
    /// The largest, ignoring NaN; keeps the type.
    Max,
}

impl TileReduce {
    /// All tile reductions.
    pub const ALL: [TileReduce; 4] = [TileReduce::Sum, TileReduce::SquaredDeviation, TileReduce::Min, TileReduce::Max];

    /// The type of the result for an image of type `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        match self {
            TileReduce::Sum | TileReduce::SquaredDeviation => DType::F64,
            TileReduce::Min | TileReduce::Max => dtype,
        }
    }

    /// The fold by which lanes accumulate.
    pub const fn fold(self) -> Fold {
        match self {
            TileReduce::Sum | TileReduce::SquaredDeviation => Fold::Sum,
            TileReduce::Min => Fold::Min,
            TileReduce::Max => Fold::Max,
        }
    }

    /// The name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            TileReduce::Sum => "tile_sum",
            TileReduce::SquaredDeviation => "tile_squared_deviation",
            TileReduce::Min => "tile_min",
            TileReduce::Max => "tile_max",
        }
    }
}

/// Reduces a rectangle, given by its rows: the definition.
pub fn rectangle<T: Pixel, R: IntoIterator<Item = T>>(how: Fold, rows: impl IntoIterator<Item = R>) -> T {
    let mut lanes = [how.identity::<T>(); LANES];
    for row in rows {
        for (i, v) in row.into_iter().enumerate() {
            let lane = &mut lanes[i % LANES];
            *lane = how.combine(*lane, v);
        }
    }
    combine_lanes(how, lanes)
}

/// The squared deviation of the `count` pixels of a rectangle from their mean: first the sum, then the squares, both in
/// the order of [`rectangle`].
pub fn squared_deviation<R: IntoIterator<Item = f64>>(count: usize, rows: impl Clone + IntoIterator<Item = R>) -> f64 {
    let mean = rectangle(Fold::Sum, rows.clone()) / count as f64;
    rectangle(Fold::Sum, rows.into_iter().map(|row| row.into_iter().map(move |v| (v - mean) * (v - mean))))
}

/// Each rectangle of a grid, per plane, reduced to one value: the result has the shape of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tiled {
    /// The rectangles.
    pub grid: Grid,
    /// The reduction of their pixels.
    pub reduce: TileReduce,
}

impl ImageOperation for Tiled {
    fn kind(&self) -> &'static str {
        self.reduce.name()
    }

    fn name(&self) -> String {
        format!("{} {}x{}", self.reduce.name(), self.grid.height, self.grid.width)
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        let fits = self.grid.covers(shape, output.0) && output.1 == self.reduce.result(dtype);
        ensure(fits, || format!("{:?} of {shape} {dtype} is not {} {}", self.grid, output.0, output.1))
    }

    fn reads(&self, _: usize, need: Rect, of: Shape) -> InputRead {
        let Grid { height, width, down, across } = self.grid;
        let line = |w: Window, step: usize, extent: usize, n: usize| {
            let at = |i: isize| i.saturating_mul(step.cast_signed());
            Window::new(at(w.start), at(w.end - 1).saturating_add_unsigned(extent)).clipped(n)
        };
        InputRead::inside(Rect {
            rows: line(need.rows, down, height, of.height),
            columns: line(need.columns, across, width, of.width),
        })
    }

    fn access(&self, _: usize) -> Access {
        Access::Footprint
    }

    /// The middles of the rectangles.
    fn position_map(&self, _: usize, from: Shape, _: Shape) -> Option<PositionMap> {
        let middle = |extent: usize, all: usize| (extent.min(all) as f64 - 1.0) / 2.0;
        let (y, x) = (middle(self.grid.height, from.height), middle(self.grid.width, from.width));
        Some(PositionMap::of([[self.grid.across as f64, 0.0, x], [0.0, self.grid.down as f64, y]]))
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let image = inputs.first().unwrap_or(&output).0;
        let each = (self.grid.height * self.grid.width).min(image.area());
        let pixels = rows * output.0.width * output.0.planes() * each;
        LaunchEffort { family: Family::Reduction, pixels, cost: 1.0, reach: 0 }
    }
}

impl SampleOperations for Tiled {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let (shape, dtype) = of.image;
        let grid = Grid { height: 3, width: 2, down: 2, across: 3 };
        let to = Shape { height: shape.height.div_ceil(grid.down), width: shape.width.div_ceil(grid.across), ..shape };
        let sample = |reduce: TileReduce| Instance::of(Tiled { grid, reduce }, &[of.image], (to, reduce.result(dtype)));
        vec![sample(TileReduce::Sum), sample(TileReduce::Max)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_at_the_far_edges_are_cut() {
        let grid = Grid { height: 3, width: 4, down: 3, across: 4 };
        let image = Shape::new(7, 10, 1);
        assert_eq!(grid.rectangle(image, 0, 0), (0..3, 0..4));
        assert_eq!(grid.rectangle(image, 2, 2), (6..7, 8..10));
        let need = Rect { rows: Window::new(1, 3), columns: Window::new(0, 3) };
        let read = Tiled { grid, reduce: TileReduce::Sum }.reads(0, need, image).rows(image.height);
        assert_eq!(read, Window::new(3, 7));
        assert!(grid.covers(image, Shape::new(3, 3, 1)));
        assert!(!grid.covers(image, Shape::new(4, 3, 1)), "a row of the grid without pixels");
    }

    #[test]
    fn lanes_go_down_before_they_are_combined() {
        // 1e17 + 1 is 1e17: the lanes of columns 0 and 1 each cancel before they are combined.
        let rows = [[1e17, 1.0], [-1e17, 1.0]];
        assert_eq!(rectangle(Fold::Sum, rows), 2.0);
        let wide = |at: usize, v: f64| (0..65).map(move |x| if x == at { v } else { 1.0 });
        // The lane of columns 0 and 64 lost what preceded -1e17; the other lanes lost nothing.
        assert_eq!(rectangle(Fold::Sum, [wide(64, 1e17), wide(0, -1e17)]), 127.0, "columns 0 and 64 share a lane");
        assert_eq!(squared_deviation(4, [[1.0, 1.0], [5.0, 5.0]]), 16.0);
        assert_eq!(rectangle(Fold::Min, [[f32::NAN, 2.0], [3.0, f32::NAN]]), 2.0);
    }
}
