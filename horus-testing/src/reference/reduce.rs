//! Reductions, in the fixed order of [`ops::reduce`](horus_plan::ops::reduce).

use super::{Image, Pixel, Scalar, Shape};
use horus_plan::ops::labels::{self, LabelReduce};
use horus_plan::ops::reduce::{self, Fold, Moments, RowReduce, bin_of};
use horus_plan::ops::tiles::{self, Grid, TileReduce};

/// The results of a row: one, or one per column. `operand` is that of reductions that [have
/// one](RowReduce::has_operand): the mean, or the value to find.
///
/// # Panics
/// If a required operand is missing.
pub(super) fn row<T: Pixel>(
    how: RowReduce,
    mut row: impl Iterator<Item = T> + Clone,
    operand: Option<f64>,
) -> Vec<Scalar> {
    match how {
        RowReduce::Sum => vec![reduce::fold(how.fold(), row.map(T::to_f64)).scalar()],
        RowReduce::SquaredDeviation => {
            let mean = operand.expect("the squared deviation has the mean as second input");
            let squares = row.map(|p| {
                let d = p.to_f64() - mean;
                d * d
            });
            vec![reduce::fold(how.fold(), squares).scalar()]
        }
        RowReduce::Min | RowReduce::Max => vec![reduce::fold(how.fold(), row).scalar()],
        RowReduce::Extremes => [Fold::Min, Fold::Max].map(|how| reduce::fold(how, row.clone()).scalar()).to_vec(),
        RowReduce::Moments => {
            let of = reduce::moments(row.map(T::to_f64));
            [of.sum, of.squares, of.count].map(f64::scalar).to_vec()
        }
        RowReduce::First => {
            let wanted = operand.expect("what is looked for is the second input");
            let at = row.position(|p| p.to_f64() == wanted);
            vec![at.map_or(f64::INFINITY, |at| at as f64).scalar()]
        }
    }
}

/// Each row of each plane reduced: `h x w x c` to `h x 1 x c`, or to one column per result. Only
/// reductions that [have an operand](RowReduce::has_operand) read `operand`, a 1x1 `f64` image.
///
/// # Panics
/// If a required operand is missing.
pub fn rows(image: &Image, how: RowReduce, operand: Option<&Image>) -> Image {
    let shape = Shape { width: how.columns(), ..image.shape };
    let columns = 0..image.shape.width;
    let operand = operand.map(|o| o.at(0, 0, 0));
    horus_base::dispatch!(image.dtype(), T => horus_base::dispatch!(how.result(image.dtype()), R => {
        Image::from_fn(shape, |c, y, k| {
            let of = columns.clone().map(|x| image.at::<T>(c, y, x));
            R::from_scalar(row(how, of, operand)[k])
        })
    }))
}

/// The running sums of each row of each plane.
pub fn running(image: &Image) -> Image {
    let pixels: Vec<f64> = horus_base::dispatch!(image.dtype(), T => {
        image.as_slice::<T>().iter().map(|p| p.to_f64()).collect()
    });
    let rows = pixels.chunks(image.shape.width.max(1));
    Image::new(image.shape, rows.flat_map(reduce::running).collect::<Vec<f64>>())
}

/// Running sums over the levels, in `f64`.
pub fn running_depth(image: &Image) -> Image {
    let level = image.shape.area() * image.shape.channels;
    let mut sums: Vec<f64> = horus_base::dispatch!(image.dtype(), T => {
        image.as_slice::<T>().iter().map(|p| p.to_f64()).collect()
    });
    for i in level..sums.len() {
        sums[i] += sums[i - level];
    }
    Image::new(image.shape, sums)
}

/// [`fold`] of an image of extent `of`, whose pixels are `at` plane, row and column.
pub(super) fn folded<T: Pixel>(how: Fold, of: Shape, at: &impl Fn(usize, usize, usize) -> T) -> Vec<T> {
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

/// All elements reduced to one value: those of each plane, row by row as one sequence, then planes.
/// Columns are reduced separately.
pub fn fold(image: &Image, how: Fold) -> Image {
    horus_base::dispatch!(image.dtype(), T => {
        let found = folded(how, image.shape, &|c, y, x| image.at::<T>(c, y, x));
        Image::new(Shape::new(1, how.columns(), 1), found)
    })
}

/// Reductions of the pixels of each label; `image` is `None` if they are not read.
pub fn labels(labels: &Image, image: Option<&Image>, how: LabelReduce) -> Image {
    let Shape { height, width, .. } = labels.shape;
    let (rows, columns) = how.extent(height);
    let mut out = vec![labels::identity(how); rows * columns];
    for p in 0..labels.shape.planes() {
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            let label = horus_base::dispatch!(labels.dtype(), L => labels.at::<L>(p, y, x).to_f64());
            if label >= 0.0 && label < how.count() as f64 {
                let value = |image: &Image| horus_base::dispatch!(image.dtype(), T => image.at::<T>(p, y, x).to_f64());
                labels::enter(how, &mut out, 0, label as usize, (y, x), image.map_or(0.0, value));
            }
        }
    }
    Image::new(Shape::new(rows, columns, 1), out)
}

/// Each rectangle of a grid reduced; `out` is the extent of the grid.
pub fn tiles(image: &Image, grid: Grid, how: TileReduce, out: Shape) -> Image {
    horus_base::dispatch!(image.dtype(), T => {
        let rectangle = |c, y, x| {
            let (rows, columns) = grid.rectangle(image.shape, y, x);
            rows.map(move |y| columns.clone().map(move |x| image.at::<T>(c, y, x)))
        };
        match how {
            TileReduce::Min | TileReduce::Max => {
                Image::from_fn(out, |c, y, x| tiles::rectangle::<T, _>(how.fold(), rectangle(c, y, x)))
            }
            TileReduce::Sum => Image::from_fn(out, |c, y, x| {
                tiles::rectangle(Fold::Sum, rectangle(c, y, x).map(|row| row.map(Pixel::to_f64)))
            }),
            TileReduce::SquaredDeviation => Image::from_fn(out, |c, y, x| {
                let (rows, columns) = grid.rectangle(image.shape, y, x);
                let values = rectangle(c, y, x).map(|row| row.map(Pixel::to_f64));
                tiles::squared_deviation(rows.len() * columns.len(), values)
            }),
        }
    })
}

/// Counts in `bins` equal bins over `lo..=hi` of the pixels of all planes; see [`bin_of`].
pub fn histogram(image: &Image, bins: usize, lo: f64, hi: f64) -> Image {
    let mut counts = vec![0.0f64; bins];
    horus_base::dispatch!(image.dtype(), T => for p in image.as_slice::<T>() {
        if let Some(bin) = bin_of(p.to_f64(), lo, hi, bins) {
            counts[bin] += 1.0;
        }
    });
    Image::new(Shape::new(1, bins, 1), counts)
}
