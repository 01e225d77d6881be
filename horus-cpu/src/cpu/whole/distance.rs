//! Nearest background pixels: sweeps down and up the columns, then the lower envelope of each row.

use super::{View, each_chunk, grain, out};
use crate::cpu::simd::Isa;
use crate::cpu::versions::for_each_isa;
use horus_base::dtype::{DType, Pixel};
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::device::{Geometry, Memory};
use horus_plan::ops::distance::{Metric, NONE, NearestPixel, Sought, Spacing};

/// Steps to a background pixel that is not there: more than an image has rows, and far from `i32`'s
/// end.
const FAR: i32 = 1 << 30;

/// [`horus_plan::ops::distance::NearestRow`] of rows `rows` of every plane.
pub(super) fn nearest_row<T: Pixel>(
    input: View<'_, T>,
    out: &mut [i32],
    geometry: &Geometry,
    rows: Window,
    (isa, threads): (Isa, usize),
) {
    let (width, height) = (geometry.shape.width, geometry.shape.height.cast_signed());
    if rows.is_empty() || width == 0 {
        return;
    }
    // A part looks for background beyond its rows, so that there are no more of them than threads.
    let n = rows.len().div_ceil(threads.max(1)).max(grain(width));
    for c in 0..geometry.shape.planes() {
        let plane = input.plane(c);
        let at = geometry.row(c, rows.start);
        each_chunk(threads, &mut out[at..at + rows.len() * width], n * width, |k, out| {
            let first = rows.start + (k * n).cast_signed();
            let end = first + (out.len() / width).cast_signed();
            let mut steps = vec![FAR; width];
            look(&mut steps, (0..first).rev().map(|y| plane.row(y)));
            for (y, out) in (first..end).zip(out.chunks_exact_mut(width)) {
                step_down(isa, plane.row(y), &mut steps, out);
            }
            steps.fill(FAR);
            look(&mut steps, (end..height).map(|y| plane.row(y)));
            for (y, out) in (first..end).zip(out.chunks_exact_mut(width)).rev() {
                step_up(isa, plane.row(y), &mut steps, out);
            }
        });
    }
}

/// Steps from a line of pixels to the first background pixel of each column, of rows beyond it.
fn look<'a, T: Pixel>(steps: &mut [i32], beyond: impl Iterator<Item = &'a [T]>) {
    let mut left = steps.len();
    for (k, row) in beyond.enumerate() {
        for (steps, v) in steps.iter_mut().zip(row) {
            if *steps == FAR && *v == T::ZERO {
                *steps = k as i32;
                left -= 1;
            }
        }
        if left == 0 {
            return;
        }
    }
}

for_each_isa! {
    fn step_down[T: Pixel][T](row: &[T], steps: &mut [i32], out: &mut [i32]) as step_down_body
}

#[inline(always)]
fn step_down_body<T: Pixel>(_: Isa, row: &[T], steps: &mut [i32], out: &mut [i32]) {
    for ((v, steps), out) in row.iter().zip(steps).zip(out) {
        *steps = if *v == T::ZERO { 0 } else { *steps + 1 };
        *out = *steps;
    }
}

for_each_isa! {
    fn step_up[T: Pixel][T](row: &[T], steps: &mut [i32], out: &mut [i32]) as step_up_body
}

#[inline(always)]
fn step_up_body<T: Pixel>(_: Isa, row: &[T], steps: &mut [i32], out: &mut [i32]) {
    for ((v, steps), out) in row.iter().zip(steps).zip(out) {
        *steps = if *v == T::ZERO { 0 } else { *steps + 1 };
        let nearest = if *out <= *steps { -*out } else { *steps };
        *out = if nearest.abs() >= FAR { NONE } else { nearest };
    }
}

/// A metric of whole numbers of rows and columns: each column is the nearest one of a range of
/// pixels, which ends where a later column is nearer from there on.
trait Envelope {
    /// What a column contributes.
    fn height(down: i64) -> i64;
    /// The measure from its height and distance.
    fn measure(height: i64, across: i64) -> i64;
    /// The same in floats, exact.
    fn far(height: f64, across: f64) -> f64;
    /// The last pixel to which column `i` of height `a` is as near as column `j > i` of height `b`,
    /// if there are pixels of both.
    fn last(i: i64, a: i64, j: i64, b: i64) -> i64;
}

/// Squared distances.
struct ByLength;
/// Steps along rows and columns.
struct ByRowsAndColumns;
/// Steps in any direction.
struct ByNeighbours;

impl Envelope for ByLength {
    #[inline(always)]
    fn height(down: i64) -> i64 {
        down * down
    }

    #[inline(always)]
    fn measure(height: i64, across: i64) -> i64 {
        across * across + height
    }

    #[inline(always)]
    fn far(height: f64, across: f64) -> f64 {
        height + across * across
    }

    #[inline(always)]
    fn last(i: i64, a: i64, j: i64, b: i64) -> i64 {
        let (of, by) = ((j - i) * (j + i) + b - a, 2 * (j - i));
        if by == 2 {
            return of >> 1;
        }
        // Exact: numbers below 2^53 are further from the next integer than their quotient rounds.
        (of as f64 / by as f64) as i64
    }
}

impl Envelope for ByRowsAndColumns {
    #[inline(always)]
    fn height(down: i64) -> i64 {
        down.abs()
    }

    #[inline(always)]
    fn measure(height: i64, across: i64) -> i64 {
        across.abs() + height
    }

    #[inline(always)]
    fn far(height: f64, across: f64) -> f64 {
        height + across.abs()
    }

    #[inline(always)]
    fn last(i: i64, a: i64, j: i64, b: i64) -> i64 {
        if b - a >= j - i { i64::MAX - 1 } else { (b - a + i + j) >> 1 }
    }
}

impl Envelope for ByNeighbours {
    #[inline(always)]
    fn height(down: i64) -> i64 {
        down.abs()
    }

    #[inline(always)]
    fn measure(height: i64, across: i64) -> i64 {
        across.abs().max(height)
    }

    #[inline(always)]
    fn far(height: f64, across: f64) -> f64 {
        height.max(across.abs())
    }

    #[inline(always)]
    fn last(i: i64, a: i64, j: i64, b: i64) -> i64 {
        let middle = (i + j) >> 1;
        if a <= b { middle.max(i + b) } else { middle.min(j - a) }
    }
}

/// A column that is the nearest one from pixel `from` on.
#[derive(Clone, Copy)]
struct Stretch {
    from: i64,
    column: i64,
    height: i64,
}

/// The columns that are nearest to some pixel of a row of offsets, in order; of equally near ones
/// the first.
#[inline(always)]
fn envelope<M: Envelope>(rows: &[i32], stretches: &mut Vec<Stretch>) {
    let width = rows.len() as i64;
    stretches.clear();
    for (column, down) in (0i64..).zip(rows) {
        if *down == NONE {
            continue;
        }
        let height = M::height(i64::from(*down));
        let further = |stretch: &Stretch| M::measure(stretch.height, stretch.from - stretch.column);
        while stretches.pop_if(|stretch| further(stretch) > M::measure(height, stretch.from - column)).is_some() {}
        let from = stretches.last().map_or(0, |stretch| M::last(stretch.column, stretch.height, column, height) + 1);
        if from < width {
            stretches.push(Stretch { from, column, height });
        }
    }
}

/// Each stretch and the pixels whose nearest column is its own.
fn ranges(stretches: &[Stretch], width: usize) -> impl Iterator<Item = (&Stretch, std::ops::Range<usize>)> {
    let ends = stretches.iter().skip(1).map(|stretch| stretch.from as usize).chain([width]);
    stretches.iter().zip(ends).map(|(stretch, end)| (stretch, stretch.from as usize..end))
}

/// Measures of a row; infinite without background.
#[inline(always)]
fn measured<M: Envelope>(rows: &[i32], stretches: &mut Vec<Stretch>, found: &mut [f64]) {
    envelope::<M>(rows, stretches);
    if stretches.is_empty() {
        found.fill(f64::INFINITY);
    }
    for (stretch, range) in ranges(stretches, rows.len()) {
        let (height, first) = (stretch.height as f64, range.start as i32 - stretch.column as i32);
        for (across, found) in (first..).zip(found.get_mut(range).unwrap_or_default()) {
            *found = M::far(height, f64::from(across));
        }
    }
}

/// Offsets of the nearest columns of a row.
#[inline(always)]
fn columns<M: Envelope>(rows: &[i32], stretches: &mut Vec<Stretch>, found: &mut [i32]) {
    envelope::<M>(rows, stretches);
    if stretches.is_empty() {
        found.fill(NONE);
    }
    for (stretch, range) in ranges(stretches, rows.len()) {
        let first = stretch.column as i32 - range.start as i32;
        for (k, found) in (0..).zip(found.get_mut(range).unwrap_or_default()) {
            *found = first - k;
        }
    }
}

/// The nearest column of a pixel and its measure where rounding decides, by a search outwards: no
/// column beyond a distance can be nearer than that distance.
fn searched(rows: &[i32], x: usize, metric: Metric) -> Option<(f64, usize)> {
    let mut best: Option<(f64, usize)> = None;
    for k in 0..=x.max(rows.len() - 1 - x) {
        let across = k as f64;
        if best.is_some_and(|(least, _)| metric.measure(0.0, across) > least) {
            break;
        }
        // Of equals the first: those before are nearer to the start than all seen.
        let before = x.checked_sub(k).map(|column| (column, true));
        let after = Some((x + k, false)).filter(|(column, _)| *column < rows.len());
        for (column, before) in before.into_iter().chain(after) {
            if rows[column] == NONE {
                continue;
            }
            let measure = metric.measure(f64::from(rows[column]), across);
            if best.is_none_or(|(least, _)| measure < least || before && measure == least) {
                best = Some((measure, column));
            }
        }
    }
    best
}

for_each_isa! {
    fn measures[][](rows: &[i32], metric: Metric, stretches: &mut Vec<Stretch>, found: &mut [f64]) as measures_body
}

#[inline(always)]
fn measures_body(_: Isa, rows: &[i32], metric: Metric, stretches: &mut Vec<Stretch>, found: &mut [f64]) {
    match metric {
        Metric::Euclidean(spacing) if spacing == Spacing::UNIT => measured::<ByLength>(rows, stretches, found),
        Metric::Euclidean(_) => {
            for (x, found) in found.iter_mut().enumerate() {
                *found = searched(rows, x, metric).map_or(f64::INFINITY, |(measure, _)| measure);
            }
        }
        Metric::Taxicab => measured::<ByRowsAndColumns>(rows, stretches, found),
        Metric::Chessboard => measured::<ByNeighbours>(rows, stretches, found),
    }
}

/// Offsets of the nearest columns of a row.
fn columns_of(rows: &[i32], metric: Metric, stretches: &mut Vec<Stretch>, found: &mut [i32]) {
    match metric {
        Metric::Euclidean(spacing) if spacing == Spacing::UNIT => columns::<ByLength>(rows, stretches, found),
        Metric::Euclidean(_) => {
            for (x, found) in found.iter_mut().enumerate() {
                *found = searched(rows, x, metric).map_or(NONE, |(_, column)| column as i32 - x as i32);
            }
        }
        Metric::Taxicab => columns::<ByRowsAndColumns>(rows, stretches, found),
        Metric::Chessboard => columns::<ByNeighbours>(rows, stretches, found),
    }
}

/// [`horus_plan::ops::distance::NearestPixel`] of rows `rows` of every plane.
///
/// # Errors
/// [`DeviceError::Argument`] for memory that is not the host's.
pub(super) fn nearest(
    how: NearestPixel,
    input: View<'_, i32>,
    output: &mut Memory,
    geometry: &Geometry,
    rows: Window,
    (isa, threads): (Isa, usize),
) -> Result<(), DeviceError> {
    let roots = |found: &[f64], out: &mut [f32]| out.iter_mut().zip(found).for_each(|(out, v)| *out = v.sqrt() as f32);
    let to = (geometry, rows, threads);
    let measure = |rows: &[i32], stretches: &mut Vec<Stretch>, found: &mut [f64]| {
        measures(isa, rows, how.metric, stretches, found);
    };
    match (how.found, geometry.dtype) {
        (Sought::Distance, DType::F64) => each_row(input, out::<f64>(output)?, to, |row, stretches, _, out| {
            measure(row, stretches, out);
            out.iter_mut().for_each(|v| *v = v.sqrt());
        }),
        (Sought::Distance, DType::F32) => each_row(input, out::<f32>(output)?, to, |row, stretches, found, out| {
            measure(row, stretches, found);
            roots(found, out);
        }),
        (Sought::Distance, _) => each_row(input, out::<i32>(output)?, to, |row, stretches, found, out| {
            measure(row, stretches, found);
            let steps = |v: f64| if v.is_finite() { v as i32 } else { -1 };
            out.iter_mut().zip(&*found).for_each(|(out, v)| *out = steps(*v));
        }),
        (Sought::Column, _) => each_row(input, out::<i32>(output)?, to, |row, stretches, _, out| {
            columns_of(row, how.metric, stretches, out);
        }),
        (Sought::Row, _) => each_row(input, out::<i32>(output)?, to, |row, stretches, _, out| {
            columns_of(row, how.metric, stretches, out);
            let at = |x: usize, across: i32| x.checked_add_signed(across as isize).and_then(|x| row.get(x));
            for (x, out) in out.iter_mut().enumerate().filter(|(_, out)| **out != NONE) {
                *out = at(x, *out).copied().unwrap_or(NONE);
            }
        }),
    }
    Ok(())
}

/// Calls `f` with each row of offsets, memory for stretches and measures, and the row of the
/// result.
fn each_row<T: Pixel>(
    input: View<'_, i32>,
    out: &mut [T],
    (geometry, rows, threads): (&Geometry, Window, usize),
    f: impl Fn(&[i32], &mut Vec<Stretch>, &mut [f64], &mut [T]) + Sync,
) {
    let width = geometry.shape.width;
    if rows.is_empty() || width == 0 {
        return;
    }
    let n = grain(width);
    for c in 0..geometry.shape.planes() {
        let plane = input.plane(c);
        let at = geometry.row(c, rows.start);
        each_chunk(threads, &mut out[at..at + rows.len() * width], n * width, |k, out| {
            let first = rows.start + (k * n).cast_signed();
            let (mut stretches, mut found) = (Vec::with_capacity(width), vec![0.0; width]);
            for (y, out) in (first..).zip(out.chunks_mut(width)) {
                f(plane.row(y), &mut stretches, &mut found, out);
            }
        });
    }
}
