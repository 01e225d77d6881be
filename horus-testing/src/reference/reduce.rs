//! Reductions, in the fixed order of [`ops::reduce`](horus_plan::ops::reduce).

use std::ops::Range;

use super::kernel::{HostImage, places};
use super::{OperationDefinition, ReferenceImage};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::labels::{self, LabelReduce};
use horus_plan::ops::reduce::{self, Fold, Moments, RowReduce, bin_of};
use horus_plan::ops::tiles::{self, Grid, TileReduce};
use horus_plan::ops::{Histogram, Running, RunningDepth, Tiled};

impl OperationDefinition for RowReduce {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        rows(inputs[0], *how, inputs.get(1).copied())
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let how = self;
        let operand = inputs.get(1).map(|m| m.get(0, 0, 0));
        let width = inputs[0].geometry.shape.width;
        for c in 0..out.shape.planes() {
            for y in rows.start..rows.end {
                let pixels: Vec<f64> = (0..width).map(|x| inputs[0].number(c, y, x)).collect();
                let results = row(*how, &pixels, operand);
                results.into_iter().enumerate().for_each(|(x, v)| output.put_number(c, y, x, v));
            }
        }
    }
}

impl OperationDefinition for Running {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        running(inputs[0])
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        for c in 0..out.shape.planes() {
            for y in rows.start..rows.end {
                let line: Vec<f64> = (0..out.shape.width).map(|x| inputs[0].number(c, y, x)).collect();
                reduce::running(&line).into_iter().enumerate().for_each(|(x, v)| output.put::<f64>(c, y, x, v));
            }
        }
    }
}

impl OperationDefinition for RunningDepth {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        running_depth(inputs[0])
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        for c in 0..out.shape.channels {
            for y in rows.start..rows.end {
                for x in 0..out.shape.width {
                    let planes = (0..out.shape.depth).map(|z| z * out.shape.channels + c);
                    planes.fold(None, |sum: Option<f64>, plane| {
                        let v = inputs[0].number(plane, y, x);
                        let sum = sum.map_or(v, |sum| sum + v);
                        output.put::<f64>(plane, y, x, sum);
                        Some(sum)
                    });
                }
            }
        }
    }
}

impl OperationDefinition for Fold {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        fold(inputs[0], *how)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, _rows: Window) {
        let how = self;
        dispatch!(out.dtype, T => {
            let at = |c, y: usize, x| inputs[0].get::<T>(c, y.cast_signed(), x);
            let results = folded(*how, inputs[0].geometry.shape, &at);
            results.into_iter().enumerate().for_each(|(x, v)| output.put(0, 0, x, v));
        });
    }
}

impl OperationDefinition for LabelReduce {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        labels(inputs[0], inputs.get(1).copied(), *how)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let how = self;
        let over_input = if how.adds_up() { rows } else { how.rows(rows).clipped(inputs[0].geometry.shape.height) };
        let first = if how.adds_up() { 0 } else { out.window.start.cast_unsigned() };
        let mut table = vec![labels::identity(*how); out.window.len() * out.shape.width];
        let of = inputs[0].geometry.shape;
        for (p, y) in (0..of.planes()).flat_map(|p| (over_input.start..over_input.end).map(move |y| (p, y))) {
            for x in 0..of.width {
                let label = inputs[0].number(p, y, x);
                if label >= 0.0 && label < how.count() as f64 {
                    let v = inputs.get(1).map_or(0.0, |image| image.number(p, y, x));
                    labels::enter(*how, &mut table, first, label as usize, (y.cast_unsigned(), x), v);
                }
            }
        }
        let written = if how.adds_up() { out.window } else { rows };
        for y in written.start..written.end {
            for x in 0..out.shape.width {
                let at = (y - out.window.start).cast_unsigned() * out.shape.width + x;
                output.put(0, y, x, table[at]);
            }
        }
    }
}

impl OperationDefinition for Tiled {
    fn of_images(&self, inputs: &[&ReferenceImage], (shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let Tiled { grid, reduce: how } = self;
        tiles(inputs[0], *grid, *how, shape)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let Tiled { grid, reduce: how } = self;
        for (c, y, x) in places(out, rows) {
            let part = grid.rectangle(inputs[0].geometry.shape, y.cast_unsigned(), x);
            let at = |y: usize, x| inputs[0].number(c, y.cast_signed(), x);
            output.put_number(c, y, x, tile(*how, part, &at));
        }
    }
}

impl OperationDefinition for Histogram {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        histogram(inputs[0], how.bins, how.lo(), how.hi())
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, _out: Geometry, rows: Window) {
        let how = self;
        let mut counts = vec![0.0; how.bins];
        for c in 0..inputs[0].geometry.shape.planar().planes() {
            for y in rows.start..rows.end {
                for x in 0..inputs[0].geometry.shape.width {
                    if let Some(b) = bin_of(inputs[0].number(c, y, x), how.lo(), how.hi(), how.bins) {
                        counts[b] += 1.0;
                    }
                }
            }
        }
        counts.into_iter().enumerate().for_each(|(b, n)| output.put::<f64>(0, 0, b, n));
    }
}

/// The results of a row: one, or one per column. Reductions that [have one](RowReduce::has_operand) read `operand`: the
/// mean, or the value to find.
///
/// # Panics
/// If a required operand is missing.
pub(super) fn row(how: RowReduce, row: &[f64], operand: Option<f64>) -> Vec<f64> {
    match how {
        RowReduce::SquaredDeviation => {
            let mean = operand.expect("the squared deviation has the mean as second input");
            vec![reduce::fold(how.fold(), row.iter().map(|v| (v - mean) * (v - mean)))]
        }
        RowReduce::Sum | RowReduce::Min | RowReduce::Max => vec![reduce::fold(how.fold(), row.iter().copied())],
        RowReduce::Extremes => [Fold::Min, Fold::Max].map(|how| reduce::fold(how, row.iter().copied())).to_vec(),
        RowReduce::Moments => {
            let of = reduce::moments(row.iter().copied());
            vec![of.sum, of.squares, of.count]
        }
        RowReduce::First => {
            let wanted = operand.expect("what is looked for is the second input");
            let at = row.iter().position(|v| *v == wanted);
            vec![at.map_or(f64::INFINITY, |at| at as f64)]
        }
    }
}

/// Each row of each plane reduced: `h x w x c` to `h x 1 x c`, or to one column per result. Only
/// reductions that [have an operand](RowReduce::has_operand) read `operand`, a 1x1 `f64` image.
///
/// # Panics
/// If a required operand is missing.
pub fn rows(image: &ReferenceImage, how: RowReduce, operand: Option<&ReferenceImage>) -> ReferenceImage {
    let shape = Shape { width: how.columns(), ..image.shape };
    let operand = operand.map(|o| o.at(0, 0, 0));
    let result = |c, y, k| {
        let of: Vec<f64> = (0..image.shape.width).map(|x| image.number(c, y, x)).collect();
        row(how, &of, operand)[k]
    };
    horus_base::dispatch!(how.result(image.dtype()), R => ReferenceImage::from_fn(shape, |c, y, k| R::from_f64(result(c, y, k))))
}

/// The running sums of each row of each plane.
pub fn running(image: &ReferenceImage) -> ReferenceImage {
    let pixels = image.numbers();
    let rows = pixels.chunks(image.shape.width.max(1));
    ReferenceImage::new(image.shape, rows.flat_map(reduce::running).collect::<Vec<f64>>())
}

/// Running sums over the levels, in `f64`.
pub fn running_depth(image: &ReferenceImage) -> ReferenceImage {
    let level = image.shape.area() * image.shape.channels;
    let mut sums = image.numbers();
    for i in level..sums.len() {
        sums[i] += sums[i - level];
    }
    ReferenceImage::new(image.shape, sums)
}

/// [`fold`] of an image of shape `of`; `at` returns the pixel of a plane, row and column.
pub(super) fn folded<T: Pixel>(how: Fold, of: Shape, at: &dyn Fn(usize, usize, usize) -> T) -> Vec<T> {
    let planes = 0..of.planes();
    let column = |x| planes.clone().map(move |c| (0..of.height).map(move |y| at(c, y, x)));
    match how {
        Fold::Sum | Fold::Min | Fold::Max => {
            let plane = |c| (0..of.height).flat_map(move |y| (0..of.width).map(move |x| at(c, y, x)));
            vec![reduce::fold_planes(how, planes.map(plane))]
        }
        Fold::Extremes => vec![reduce::fold_planes(Fold::Min, column(0)), reduce::fold_planes(Fold::Max, column(1))],
        Fold::Moments => {
            let row = |c, y| {
                let [sum, squares, count] = [0, 1, 2].map(|x| at(c, y, x).to_f64());
                Moments { count, sum, squares }
            };
            let all = reduce::fold_moments(planes.map(|c| (0..of.height).map(move |y| row(c, y))));
            [all.sum, all.squares, all.count].map(T::from_f64).to_vec()
        }
    }
}

/// Reduces all elements to one value: each plane, row by row as one sequence, then planes. Columns are reduced
/// separately.
pub fn fold(image: &ReferenceImage, how: Fold) -> ReferenceImage {
    horus_base::dispatch!(image.dtype(), T => {
        let found = folded(how, image.shape, &|c, y, x| image.at::<T>(c, y, x));
        ReferenceImage::new(Shape::new(1, how.columns(), 1), found)
    })
}

/// Reductions of the pixels of each label; `image` is `None` if they are not read.
pub fn labels(labels: &ReferenceImage, image: Option<&ReferenceImage>, how: LabelReduce) -> ReferenceImage {
    let Shape { height, width, .. } = labels.shape;
    let (rows, columns) = how.extent(height);
    let mut out = vec![labels::identity(how); rows * columns];
    for p in 0..labels.shape.planes() {
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            let label = labels.number(p, y, x);
            if label >= 0.0 && label < how.count() as f64 {
                let value = image.map_or(0.0, |image| image.number(p, y, x));
                labels::enter(how, &mut out, 0, label as usize, (y, x), value);
            }
        }
    }
    ReferenceImage::new(Shape::new(rows, columns, 1), out)
}

/// Reduces each rectangle of a grid; `out` is the shape of the grid.
pub fn tiles(image: &ReferenceImage, grid: Grid, how: TileReduce, out: Shape) -> ReferenceImage {
    let result = |c, y, x| tile(how, grid.rectangle(image.shape, y, x), &|y, x| image.number(c, y, x));
    horus_base::dispatch!(how.result(image.dtype()), R => ReferenceImage::from_fn(out, |c, y, x| R::from_f64(result(c, y, x))))
}

/// Reduces the pixels, returned by `at`, of a rectangle of `rows` and `columns`.
pub(super) fn tile(
    how: TileReduce,
    (rows, columns): (Range<usize>, Range<usize>),
    at: &dyn Fn(usize, usize) -> f64,
) -> f64 {
    let count = rows.len() * columns.len();
    let values = rows.map(|y| columns.clone().map(move |x| at(y, x)));
    match how {
        TileReduce::SquaredDeviation => tiles::squared_deviation(count, values),
        TileReduce::Sum | TileReduce::Min | TileReduce::Max => tiles::rectangle(how.fold(), values),
    }
}

/// Counts the pixels of all planes in `bins` equal bins over `lo..=hi`; see [`bin_of`].
pub fn histogram(image: &ReferenceImage, bins: usize, lo: f64, hi: f64) -> ReferenceImage {
    let mut counts = vec![0.0f64; bins];
    for v in image.numbers() {
        if let Some(bin) = bin_of(v, lo, hi, bins) {
            counts[bin] += 1.0;
        }
    }
    ReferenceImage::new(Shape::new(1, bins, 1), counts)
}
