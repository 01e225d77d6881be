//! Reductions along rows, and over columns of row results, in the fixed order of [`horus_plan::ops::reduce`].

use crate::parallel;

use super::{CpuOperation, OperationOutput, TypedInput, each_chunk, grain, interleave, out, type_of, view};
use crate::simd::Isa;
use crate::versions::{for_each_isa, moved};
use horus_base::dispatch;
use horus_base::dtype::{Arithmetic, Pixel};
use horus_base::error::DeviceError;
use horus_base::shape::Shape;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Running;
use horus_plan::ops::reduce::{CHUNK, Fold, LANES, Moments, RowReduce, SEGMENT};

impl CpuOperation for RowReduce {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        let operand = || Ok(view::<f64>(inputs, 1)?.first().unwrap_or(0.0));
        dispatch!(type_of(inputs), T => reduce(*self, view::<T>(inputs, 0)?, operand, output, to))
    }
}

impl CpuOperation for Running {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => running(view::<T>(inputs, 0)?, out(output)?, to));
        Ok(())
    }
}

impl CpuOperation for Fold {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => fold(to.isa, *self, view::<T>(inputs, 0)?, out(output)?));
        Ok(())
    }
}

/// Reduces rows `rows` of every plane of `input` to one element each, or to one for each column. `operand` is called
/// only by reductions that [have one](RowReduce::has_operand).
pub(super) fn reduce<T: Pixel>(
    reduce: RowReduce,
    input: TypedInput<'_, T>,
    operand: impl Fn() -> Result<f64, DeviceError>,
    output: &mut Memory,
    to: &OperationOutput,
) -> Result<(), DeviceError> {
    let isa = to.isa;
    let fold = reduce.fold();
    match reduce {
        RowReduce::Sum => {
            each_row(input, out(output)?, to, &|row| [pixels(fold, row, |part| sum(isa, part))]);
        }
        RowReduce::SquaredDeviation => {
            let mean = operand()?;
            each_row(input, out(output)?, to, &|row| {
                [segments(fold, row, |segment| squared_deviation(isa, segment, mean))]
            });
        }
        RowReduce::Min => {
            each_row(input, out(output)?, to, &|row| [pixels(fold, row, |part| smallest(isa, part))]);
        }
        RowReduce::Max => {
            each_row(input, out(output)?, to, &|row| [pixels(fold, row, |part| largest(isa, part))]);
        }
        RowReduce::Extremes => {
            each_row(input, out(output)?, to, &|row| extremes(isa, row));
        }
        RowReduce::Moments => {
            each_row(input, out(output)?, to, &|row| {
                let of = row.chunks(SEGMENT).fold(Moments::default(), |all, segment| {
                    // The segment is in the cache when it is read again.
                    let sum = sum(isa, segment);
                    let squares = squared_deviation(isa, segment, sum / segment.len() as f64);
                    all.followed_by(Moments::of_segment(segment.len(), sum, squares))
                });
                [of.sum, of.squares, of.count]
            });
        }
        RowReduce::First => {
            let wanted = operand()?;
            each_row(input, out(output)?, to, &|row| [first(isa, row, wanted)]);
        }
    }
    Ok(())
}

fn each_row<T: Pixel, R: Pixel, const N: usize>(
    input: TypedInput<'_, T>,
    out: &mut [R],
    to: &OperationOutput,
    reduce: &(dyn Fn(&[T]) -> [R; N] + Sync),
) {
    let &OperationOutput { geometry, rows, threads, .. } = to;
    if rows.is_empty() || geometry.shape.is_empty() {
        return;
    }
    if input.geometry.shape.samples > 1 {
        return each_row_of_samples(input, out, to, reduce);
    }
    for c in 0..input.geometry.shape.planes() {
        let plane = input.plane(c);
        let at = geometry.row(c, rows.start);
        let n = grain(plane.width);
        each_chunk(threads, &mut out[at..at + N * rows.len()], N * n, |k, out| {
            let first = rows.start + (k * n).cast_signed();
            let results = out.as_chunks_mut::<N>().0;
            (first..).zip(results).for_each(|(y, out)| *out = reduce(plane.row(y)));
        });
    }
}

/// [`each_row`] for interleaved pixels: a row is deinterleaved, and each of its samples is reduced.
fn each_row_of_samples<T: Pixel, R: Pixel, const N: usize>(
    input: TypedInput<'_, T>,
    out: &mut [R],
    to: &OperationOutput,
    reduce: &(dyn Fn(&[T]) -> [R; N] + Sync),
) {
    let &OperationOutput { geometry, rows, threads, .. } = to;
    let Shape { samples, width, .. } = input.geometry.shape;
    let (first, n) = (geometry.row(0, rows.start), grain(width * samples));
    let mut planes =
        out.chunks_mut(geometry.plane()).map(|plane| plane[first..first + N * rows.len()].chunks_mut(N * n));
    let mut tasks = Vec::new();
    for level in 0..input.geometry.shape.depth {
        let mut planes: Vec<_> = planes.by_ref().take(samples).collect();
        for y in (rows.start..rows.end).step_by(n) {
            let out: Vec<&mut [R]> = planes.iter_mut().filter_map(Iterator::next).collect();
            tasks.push((level, y, out));
        }
    }
    let run = |(level, y, mut out): (usize, isize, Vec<&mut [R]>)| {
        let plane = input.plane(level);
        let mut apart = vec![T::ZERO; width * samples];
        for k in 0..out[0].len() / N {
            // A row without pixels is reduced, too.
            if width == 0 {
                out.iter_mut().for_each(|out| out[N * k..][..N].copy_from_slice(&reduce(&[])));
                continue;
            }
            let mut parts: Vec<&mut [T]> = apart.chunks_mut(width).collect();
            let row = plane.row(y + k.cast_signed());
            moved!(T::DTYPE, M => {
                let mut parts: Vec<&mut [M]> = parts.iter_mut().map(|part| bytemuck::cast_slice_mut(part)).collect();
                interleave::split(bytemuck::cast_slice::<T, M>(row), &mut parts);
            });
            for (out, part) in out.iter_mut().zip(&parts) {
                out[N * k..][..N].copy_from_slice(&reduce(part));
            }
        }
    };
    parallel::for_each(threads, tasks, run);
}

/// [`horus_plan::ops::reduce::fold_planes`] of a whole image, into one pixel for each column, if there are several.
fn fold<T: Pixel>(isa: Isa, how: Fold, input: TypedInput<'_, T>, out: &mut [T]) {
    let plane = input.geometry.plane();
    let planes = input.data[..plane * input.geometry.shape.planes()].chunks(plane.max(1));
    match how {
        Fold::Sum | Fold::Min | Fold::Max => {
            out[0] = planes.fold(how.identity(), |all, plane| how.combine(all, column(isa, how, plane)));
        }
        Fold::Extremes => {
            for (x, how) in [Fold::Min, Fold::Max].into_iter().enumerate() {
                out[x] = planes.clone().fold(how.identity(), |all, plane| {
                    let values: Vec<T> = plane.iter().copied().skip(x).step_by(2).collect();
                    how.combine(all, column(isa, how, &values))
                });
            }
        }
        Fold::Moments => {
            let row = |[sum, squares, count]: &[T; 3]| {
                let [sum, squares, count] = [sum, squares, count].map(|v| v.to_f64());
                Moments { count, sum, squares }
            };
            let rows: Vec<Vec<Moments>> = planes.map(|p| p.as_chunks().0.iter().map(row).collect()).collect();
            let total = |of: &dyn Fn(&Moments) -> f64| {
                rows.iter().fold(0.0, |all, plane| {
                    let values: Vec<f64> = plane.iter().map(of).collect();
                    all + column(isa, Fold::Sum, &values)
                })
            };
            let (count, sum) = (total(&|row| row.count), total(&|row| row.sum));
            let squares = total(&|row| row.spread(sum / count));
            out.iter_mut().zip([sum, squares, count]).for_each(|(out, v)| *out = T::from_f64(v));
        }
    }
}

/// [`horus_plan::ops::reduce::running`] of rows `rows` of every plane.
fn running<T: Pixel>(input: TypedInput<'_, T>, out: &mut [f64], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, threads, isa } = to;
    let width = geometry.shape.width;
    if rows.is_empty() || width == 0 {
        return;
    }
    for c in 0..geometry.shape.planes() {
        let plane = input.plane(c);
        let at = geometry.row(c, rows.start);
        let n = grain(width);
        each_chunk(threads, &mut out[at..at + rows.len() * width], n * width, |k, out| {
            let first = rows.start + (k * n).cast_signed();
            for (y, out) in (first..).zip(out.chunks_mut(width)) {
                running_sums(isa, plane.row(y), out);
            }
        });
    }
}

for_each_isa! { fn running_sums[T: Pixel][T](row: &[T], out: &mut [f64]) as running_sums_body }

#[inline(always)]
fn running_sums_body<T: Pixel>(_: Isa, row: &[T], out: &mut [f64]) {
    let mut before = 0.0;
    for (row, out) in row.chunks(SEGMENT).zip(out.chunks_mut(SEGMENT)) {
        let mut offset = 0.0;
        for (row, out) in row.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            // Sums within a chunk depend on each other, but not on those of the previous chunk.
            let mut sum = 0.0;
            for (v, out) in row.iter().zip(&mut *out) {
                sum += v.to_f64();
                *out = sum;
            }
            out.iter_mut().for_each(|out| *out = before + (offset + *out));
            offset += sum;
        }
        before += offset;
    }
}

/// Reduces a column of row results by its [`segments`].
fn column<T: Pixel>(isa: Isa, how: Fold, values: &[T]) -> T {
    segments(how, values, |segment| match how {
        Fold::Sum | Fold::Moments => total(isa, segment),
        Fold::Min | Fold::Extremes => smallest(isa, segment),
        Fold::Max => largest(isa, segment),
    })
}

/// The smallest and the largest pixel of a row: by segments, or at once where every order has the same bits.
fn extremes<T: Pixel>(isa: Isa, row: &[T]) -> [T; 2] {
    let part = if T::DTYPE.is_float() { SEGMENT } else { row.len().max(1) };
    row.chunks(part).fold([T::HIGHEST, T::LOWEST], |[low, high], part| {
        let [smallest, largest] = smallest_and_largest(isa, part);
        [Fold::Min.combine(low, smallest), Fold::Max.combine(high, largest)]
    })
}

/// Reduces a row of pixels by its [`segments`], or at once where every order has the same bits: extremes of integers,
/// and sums of 16-bit integers, whose partial sums are all exact in `f64` (a row has less than 2^37 pixels).
#[inline(always)]
fn pixels<T: Pixel, A: Pixel>(how: Fold, row: &[T], reduce: impl Fn(&[T]) -> A) -> A {
    let exact = !T::DTYPE.is_float() && (how != Fold::Sum || T::DTYPE.size() <= 2);
    if exact { reduce(row) } else { segments(how, row, reduce) }
}

/// Reduces the segments of a row or column from its beginning by `reduce`, and combines them in order.
#[inline(always)]
fn segments<T, A: Pixel>(how: Fold, values: &[T], reduce: impl Fn(&[T]) -> A) -> A {
    if values.len() <= SEGMENT {
        // The lanes started with the identity: combining once more changes no bit.
        return reduce(values);
    }
    values.chunks(SEGMENT).fold(how.identity(), |all, segment| how.combine(all, reduce(segment)))
}

// Each function reduces one segment. (A loop over segments inside would spill the lanes and double the time.)
for_each_isa! { fn sum[T: Pixel][T](row: &[T]) -> f64 as sum_body }
for_each_isa! { fn squared_deviation[T: Pixel][T](row: &[T], mean: f64) -> f64 as squared_deviation_body }
for_each_isa! { fn total[T: Pixel][T](values: &[T]) -> T as total_body }
for_each_isa! { fn smallest[T: Pixel][T](values: &[T]) -> T as smallest_body }
for_each_isa! { fn largest[T: Pixel][T](values: &[T]) -> T as largest_body }
for_each_isa! { fn smallest_and_largest[T: Pixel][T](values: &[T]) -> [T; 2] as smallest_and_largest_body }
for_each_isa! { fn first[T: Pixel][T](row: &[T], wanted: f64) -> f64 as first_body }

#[inline(always)]
fn sum_body<T: Pixel>(_: Isa, row: &[T]) -> f64 {
    lanes(Fold::Sum, row, |acc: f64, v| acc + v.to_f64(), Arithmetic::add)
}

#[inline(always)]
fn squared_deviation_body<T: Pixel>(_: Isa, row: &[T], mean: f64) -> f64 {
    let step = |acc: f64, v: T| {
        let d = v.to_f64() - mean;
        acc + d * d
    };
    lanes(Fold::Sum, row, step, Arithmetic::add)
}

#[inline(always)]
fn total_body<T: Pixel>(_: Isa, values: &[T]) -> T {
    lanes(Fold::Sum, values, T::add, T::add)
}

// Extremes start from a number, so the accumulator is never a NaN, for which `Arithmetic::min` tests.
#[inline(always)]
fn smallest_body<T: Pixel>(_: Isa, values: &[T]) -> T {
    let min = |acc: T, v: T| if v < acc { v } else { acc };
    lanes(Fold::Min, values, min, min)
}

#[inline(always)]
fn largest_body<T: Pixel>(_: Isa, values: &[T]) -> T {
    let max = |acc: T, v: T| if v > acc { v } else { acc };
    lanes(Fold::Max, values, max, max)
}

/// Both extremes at once: reading memory, or the cache, takes longer than two comparisons.
#[inline(always)]
fn smallest_and_largest_body<T: Pixel>(_: Isa, values: &[T]) -> [T; 2] {
    let min = |acc: T, v: T| if v < acc { v } else { acc };
    let max = |acc: T, v: T| if v > acc { v } else { acc };
    let (mut low, mut high) = ([T::HIGHEST; LANES], [T::LOWEST; LANES]);
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        for (i, &v) in group.iter().enumerate() {
            (low[i], high[i]) = (min(low[i], v), max(high[i], v));
        }
    }
    for (i, &v) in rest.iter().enumerate() {
        (low[i], high[i]) = (min(low[i], v), max(high[i], v));
    }
    [halves(low, min), halves(high, max)]
}

/// The first column of a pixel, or infinity.
#[inline(always)]
fn first_body<T: Pixel>(_: Isa, row: &[T], wanted: f64) -> f64 {
    for (k, part) in row.chunks(LANES).enumerate() {
        // Tests many pixels at a time before searching for the position.
        if part.iter().fold(false, |any, v| any | (v.to_f64() == wanted))
            && let Some(at) = part.iter().position(|v| v.to_f64() == wanted)
        {
            return (k * LANES + at) as f64;
        }
    }
    f64::INFINITY
}

/// Reduces a segment: element `i` goes into lane `i mod 64` by `step`, then lanes are combined in halves by `join`.
/// Equals [`combine_lanes`](horus_plan::ops::reduce::combine_lanes), but is compiled for the instruction set: rows may
/// be short.
#[inline(always)]
fn lanes<T: Pixel, A: Pixel>(how: Fold, values: &[T], step: impl Fn(A, T) -> A, join: impl Fn(A, A) -> A) -> A {
    let mut lanes = [how.identity::<A>(); LANES];
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        for (lane, &v) in lanes.iter_mut().zip(group) {
            *lane = step(*lane, v);
        }
    }
    for (lane, &v) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, v);
    }
    halves(lanes, join)
}

/// Combines lanes in halves.
#[inline(always)]
fn halves<A: Copy>(mut lanes: [A; LANES], join: impl Fn(A, A) -> A) -> A {
    let mut half = LANES / 2;
    while half > 0 {
        let (lower, upper) = lanes.split_at_mut(half);
        lower.iter_mut().zip(upper).for_each(|(a, b)| *a = join(*a, *b));
        half /= 2;
    }
    lanes[0]
}
