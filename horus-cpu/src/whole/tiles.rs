//! Reductions of rectangles, each in the order of [`horus_plan::ops::tiles`].

use std::ops::Range;

use super::{CpuOperation, OperationOutput, TypedInput, each_chunk, out, type_of, view};
use crate::plane::Plane;
use crate::versions::for_least_isa;
use horus_base::dispatch;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Tiled;
use horus_plan::ops::reduce::{Fold, LANES};
use horus_plan::ops::tiles::{Grid, TileReduce};

impl CpuOperation for Tiled {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => reduce(view::<T>(inputs, 0)?, self.grid, self.reduce, output, to))
    }
}

/// A rectangle of a plane.
struct Rectangle<'a, T> {
    plane: Plane<'a, T>,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<T: Pixel> Rectangle<'_, T> {
    fn rows(&self) -> impl Iterator<Item = &[T]> {
        self.rows.clone().map(|y| &self.plane.row(y.cast_signed())[self.columns.clone()])
    }

    fn count(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

/// Reduces each rectangle of the requested rows of the grid.
fn reduce<T: Pixel>(
    input: TypedInput<'_, T>,
    grid: Grid,
    how: TileReduce,
    output: &mut Memory,
    to: &OperationOutput,
) -> Result<(), DeviceError> {
    if to.rows.is_empty() {
        return Ok(());
    }
    let fold = how.fold();
    match how {
        TileReduce::Sum => each(input, grid, out::<f64>(output)?, to, |r| added(&r)),
        TileReduce::SquaredDeviation => each(input, grid, out::<f64>(output)?, to, |r| {
            // The second read hits the cache unless the rectangle is large.
            let mean = added(&r) / r.count() as f64;
            squared(&r, mean)
        }),
        TileReduce::Min | TileReduce::Max => each(input, grid, out::<T>(output)?, to, |r| extreme(&r, fold)),
    }
    Ok(())
}

/// Stores `value` of each rectangle.
fn each<T: Pixel, R: Pixel>(
    input: TypedInput<'_, T>,
    grid: Grid,
    results: &mut [R],
    to: &OperationOutput,
    value: impl Fn(Rectangle<'_, T>) -> R + Sync,
) {
    let (width, image) = (to.geometry.shape.width, input.geometry.shape);
    for c in 0..to.geometry.shape.planes() {
        let plane = input.plane(c);
        let at = to.geometry.row(c, to.rows.start);
        let line = &mut results[at..at + to.rows.len() * width];
        // Tasks are large rectangles, or grid rows of small ones.
        let n = super::GRAIN.div_ceil((grid.height * grid.width).max(1)).min(line.len()).max(1);
        each_chunk(to.threads, line, n, |k, part| {
            for (i, result) in part.iter_mut().enumerate() {
                let (y, x) = ((k * n + i) / width, (k * n + i) % width);
                let (rows, columns) = grid.rectangle(image, to.rows.start.cast_unsigned() + y, x);
                *result = value(Rectangle { plane, rows, columns });
            }
        });
    }
}

for_least_isa! { fn added[T: Pixel][T](r: &Rectangle<'_, T>) -> f64 as added_body }
for_least_isa! { fn squared[T: Pixel][T](r: &Rectangle<'_, T>, mean: f64) -> f64 as squared_body }
for_least_isa! { fn extreme[T: Pixel][T](r: &Rectangle<'_, T>, how: Fold) -> T as extreme_body }

#[inline(always)]
fn added_body<T: Pixel>(r: &Rectangle<'_, T>) -> f64 {
    lanes(r, Fold::Sum, |v| v.to_f64())
}

#[inline(always)]
fn squared_body<T: Pixel>(r: &Rectangle<'_, T>, mean: f64) -> f64 {
    lanes(r, Fold::Sum, |v| (v.to_f64() - mean) * (v.to_f64() - mean))
}

#[inline(always)]
fn extreme_body<T: Pixel>(r: &Rectangle<'_, T>, how: Fold) -> T {
    match how {
        Fold::Min => lanes(r, Fold::Min, |v| v),
        _ => lanes(r, Fold::Max, |v| v),
    }
}

#[inline(always)]
fn lanes<T: Pixel, R: Pixel>(r: &Rectangle<'_, T>, how: Fold, value: impl Fn(T) -> R) -> R {
    let mut lanes = [how.identity::<R>(); LANES];
    for row in r.rows() {
        let (whole, rest) = row.as_chunks::<LANES>();
        for part in whole {
            lanes.iter_mut().zip(part).for_each(|(lane, v)| *lane = how.combine(*lane, value(*v)));
        }
        lanes.iter_mut().zip(rest).for_each(|(lane, v)| *lane = how.combine(*lane, value(*v)));
    }
    // Lanes without a column contain the identity, which changes nothing.
    let mut half = r.columns.len().next_power_of_two().min(LANES) / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = how.combine(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}
