//! Nearest background pixels: sweeps forth and back along lines, then searches outwards, where background is near, or
//! lower envelopes of lines.

use std::ops::Range;

use crate::parallel;

use super::{CpuOperation, GRAIN, OperationOutput, TypedInput, each_chunk, grain, out, type_of, view};
use crate::versions::for_least_isa;
use horus_base::dtype::{Float, Pixel};
use horus_base::error::DeviceError;
use horus_base::shape::Axis;
use horus_base::{dispatch, dispatch_float};
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::NearestOnLine;
use horus_plan::ops::distance::{Metric, NONE, NearestPixel, NearestResult, Spacing};

impl CpuOperation for NearestOnLine {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => nearest_on_line(self.along, view::<T>(inputs, 0)?, out(output)?, to));
        Ok(())
    }
}

impl CpuOperation for NearestPixel {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        nearest(*self, view(inputs, 0)?, output, to)
    }
}

/// The distance to a missing background pixel: more than an image has rows, and far from `i32`'s limit.
pub(crate) const FAR: i32 = 1 << 30;

/// The nearest background pixels on lines along an axis, in rows `rows` of every plane.
fn nearest_on_line<T: Pixel>(along: Axis, input: TypedInput<'_, T>, out: &mut [i32], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, .. } = to;
    if rows.is_empty() || geometry.shape.width == 0 {
        return;
    }
    match along {
        Axis::Depth => nearest_level(input, out, to),
        _ => nearest_row(input, out, to),
    }
}

fn nearest_row<T: Pixel>(input: TypedInput<'_, T>, out: &mut [i32], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, threads, .. } = to;
    let (width, height) = (geometry.shape.width, geometry.shape.height.cast_signed());
    // A part searches beyond its rows for background, so there are no more parts than threads.
    let n = rows.len().div_ceil(threads.max(1)).max(grain(width));
    for c in 0..geometry.shape.planes() {
        let plane = input.plane(c);
        let at = geometry.row(c, rows.start);
        each_chunk(threads, &mut out[at..at + rows.len() * width], n * width, |k, out| {
            let first = rows.start + (k * n).cast_signed();
            let end = first + (out.len() / width).cast_signed();
            let mut steps = vec![FAR; width];
            find_background(&mut steps, (0..first).rev().map(|y| plane.row(y)));
            for (y, out) in (first..end).zip(out.chunks_exact_mut(width)) {
                step_down(plane.row(y), &mut steps, out);
            }
            steps.fill(FAR);
            find_background(&mut steps, (end..height).map(|y| plane.row(y)));
            out.chunks_exact_mut(width).rev().for_each(|out| step_up(&mut steps, out));
        });
    }
}

/// Sweeps some pixels of all levels while they are in the cache.
fn nearest_level<T: Pixel>(input: TypedInput<'_, T>, out: &mut [i32], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, threads, .. } = to;
    let (planes, channels) = (geometry.shape.planes(), geometry.shape.channels);
    let n = rows.len() * geometry.shape.width;
    let each = (GRAIN / planes.max(1)).max(256);
    let mut parts: Vec<Vec<&mut [i32]>> = (0..n.div_ceil(each)).map(|_| Vec::with_capacity(planes)).collect();
    for plane in out.chunks_mut(geometry.plane()).take(planes) {
        let of_rows = &mut plane[geometry.row(0, rows.start)..][..n];
        parts.iter_mut().zip(of_rows.chunks_mut(each)).for_each(|(part, out)| part.push(out));
    }
    let sweep = |(k, mut part): (usize, Vec<&mut [i32]>)| {
        let count = part.first().map_or(0, |out| out.len());
        let from = |p: usize| &input.data[input.geometry.row(p, rows.start) + k * each..][..count];
        for c in 0..channels {
            let mut steps = vec![FAR; count];
            for (p, out) in part.iter_mut().enumerate().skip(c).step_by(channels) {
                step_down(from(p), &mut steps, out);
            }
            steps.fill(FAR);
            part[c..].iter_mut().step_by(channels).rev().for_each(|out| step_up(&mut steps, out));
        }
    };
    parallel::for_each(threads, parts.into_iter().enumerate().collect(), sweep);
}

/// Distances from a line of pixels to the first background pixel of each column, in rows beyond the line.
fn find_background<'a, T: Pixel>(steps: &mut [i32], beyond: impl Iterator<Item = &'a [T]>) {
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

for_least_isa! {
    pub(crate) fn step_down[T: Pixel][T](row: &[T], steps: &mut [i32], out: &mut [i32]) as step_down_body
}

#[inline(always)]
fn step_down_body<T: Pixel>(row: &[T], steps: &mut [i32], out: &mut [i32]) {
    for ((v, steps), out) in row.iter().zip(steps).zip(out) {
        *steps = if *v == T::ZERO { 0 } else { *steps + 1 };
        *out = *steps;
    }
}

for_least_isa! {
    pub(crate) fn step_up[][](steps: &mut [i32], out: &mut [i32]) as step_up_body
}

#[inline(always)]
fn step_up_body(steps: &mut [i32], out: &mut [i32]) {
    for (steps, out) in steps.iter_mut().zip(out) {
        *steps = if *out == 0 { 0 } else { *steps + 1 };
        let nearest = if *out <= *steps { -*out } else { *steps };
        *out = if nearest.abs() >= FAR { NONE } else { nearest };
    }
}

/// A metric along a line: from some position on, a later pixel of the line is nearer than an earlier one, and nowhere
/// else.
trait Envelope: Copy {
    /// The measure of a pixel of this height at this distance on the line.
    fn measure(self, height: f64, steps: f64) -> f64;
    /// The position from which pixel `j > i` of height `b` is nearer than pixel `i` of height `a`.
    fn from(self, i: f64, a: f64, j: f64, b: f64) -> f64;
    /// Returns `true` if that position is not after another.
    #[inline(always)]
    fn is_from(self, place: f64, (i, a): (f64, f64), (j, b): (f64, f64)) -> bool {
        self.from(i, a, j, b) <= place
    }
}

/// Squared distances of pixels of a size along the line.
#[derive(Clone, Copy)]
struct ByLength {
    size: f64,
    /// One over the square of the size.
    scale: f64,
}
/// Distance in steps along the axes.
#[derive(Clone, Copy)]
struct ByAxes;
/// Distance in steps in any direction.
#[derive(Clone, Copy)]
struct ByNeighbours;

impl Envelope for ByLength {
    #[inline(always)]
    fn measure(self, height: f64, steps: f64) -> f64 {
        let length = steps * self.size;
        height + length * length
    }

    #[inline(always)]
    fn from(self, i: f64, a: f64, j: f64, b: f64) -> f64 {
        (self.scale * (b - a) + (j - i) * (j + i)) / (2.0 * (j - i))
    }

    // Without a division.
    #[inline(always)]
    fn is_from(self, place: f64, (i, a): (f64, f64), (j, b): (f64, f64)) -> bool {
        self.scale * (b - a) <= (2.0 * place - (i + j)) * (j - i)
    }
}

impl Envelope for ByAxes {
    #[inline(always)]
    fn measure(self, height: f64, steps: f64) -> f64 {
        height + steps.abs()
    }

    #[inline(always)]
    fn from(self, i: f64, a: f64, j: f64, b: f64) -> f64 {
        let (higher, steps) = (b - a, j - i);
        if higher >= steps {
            f64::INFINITY
        } else if -higher > steps {
            f64::NEG_INFINITY
        } else {
            (0.5 * (higher + i + j)).floor()
        }
    }
}

impl Envelope for ByNeighbours {
    #[inline(always)]
    fn measure(self, height: f64, steps: f64) -> f64 {
        height.max(steps.abs())
    }

    #[inline(always)]
    fn from(self, i: f64, a: f64, j: f64, b: f64) -> f64 {
        let middle = (0.5 * (i + j)).floor();
        if a <= b { middle.max(i + b) } else { middle.min(j - a) }
    }
}

/// A pixel of a line that may be the nearest one after position `from`.
#[derive(Clone, Copy)]
struct EnvelopeSite {
    from: f64,
    at: f64,
    height: f64,
    /// The first pixel for which this site is compared with the site before.
    first: usize,
    /// One past the last pixel for which the site before is compared with this one.
    until: usize,
}

/// The results for the pixels of a line, and memory.
struct DistanceLine {
    heights: Vec<f64>,
    sites: Vec<EnvelopeSite>,
    /// Measures of the nearest pixels; infinite without background.
    measures: Vec<f64>,
    /// The nearest pixels; -1 without background.
    nearest: Vec<i32>,
    /// Heights in squared pixels, between [`OUTWARDS`] missing ones on either side.
    squares: Vec<i32>,
}

impl DistanceLine {
    fn of(n: usize) -> DistanceLine {
        let none = EnvelopeSite { from: 0.0, at: 0.0, height: 0.0, first: 0, until: 0 };
        let squares = vec![FAR; OUTWARDS + n + OUTWARDS];
        DistanceLine {
            heights: vec![0.0; n],
            sites: vec![none; n],
            measures: vec![0.0; n],
            nearest: vec![-1; n],
            squares,
        }
    }

    /// Finds the nearest pixel of a line with offsets, for each pixel in `range`; the first of equally near ones.
    /// Positions are exact to `slack`: pixels whose positions are closer are compared by their measures, with their own
    /// roundings.
    #[inline(always)]
    fn find(&mut self, offsets: &[i32], by: impl Envelope, slack: f64, range: Range<usize>) {
        let n = offsets.len();
        let DistanceLine { heights, sites, measures, nearest, .. } = self;
        let (measures, nearest) = (&mut measures[..n], &mut nearest[..n]);
        let sites = envelope(offsets, &heights[..n], by, slack, &mut sites[..n]);
        if sites.is_empty() {
            measures[range.clone()].fill(f64::INFINITY);
            nearest[range].fill(-1);
            return;
        }
        let mut done = range.start;
        for (k, EnvelopeSite { at, height, first, .. }) in sites.iter().enumerate() {
            let until = sites.get(k + 1).map_or(n, |next| next.until).min(range.end);
            let first = (*first).max(range.start);
            if first >= until {
                continue;
            }
            let place = *at as i32;
            let measure = |x: usize| by.measure(*height, f64::from(x as i32 - place));
            // Most sites have one pixel to compare, or none: a selection, because a branch would be unpredictable.
            let (one, other) = (measure(first), measures[first]);
            let nearer = first >= done || one < other;
            measures[first] = if nearer { one } else { other };
            nearest[first] = if nearer { place } else { nearest[first] };
            for x in first + 1..done.min(until) {
                let measure = measure(x);
                if measure < measures[x] {
                    (measures[x], nearest[x]) = (measure, place);
                }
            }
            let rest = done.max(first + 1)..until;
            if !rest.is_empty() {
                for (steps, found) in (rest.start as i32 - place..).zip(&mut measures[rest.clone()]) {
                    *found = by.measure(*height, f64::from(steps));
                }
                nearest[rest].iter_mut().for_each(|found| *found = place);
            }
            done = done.max(until);
        }
    }
}

/// The pixels of a line that are nearest to some pixel of it, in order.
#[inline(always)]
fn envelope<'a>(
    offsets: &[i32],
    heights: &[f64],
    by: impl Envelope,
    slack: f64,
    sites: &'a mut [EnvelopeSite],
) -> &'a [EnvelopeSite] {
    let n = offsets.len();
    // The last site is in a variable: a load after its store would wait.
    let (mut count, mut last) = (0, EnvelopeSite { from: 0.0, at: 0.0, height: 0.0, first: 0, until: 0 });
    for (k, (offset, height)) in (0i32..).zip(offsets.iter().zip(heights)) {
        if *offset == NONE {
            continue;
        }
        let (at, height) = (f64::from(k), *height);
        let mut from = -1.0;
        while count > 0 {
            if by.is_from(last.from - slack, (last.at, last.height), (at, height)) {
                count -= 1;
                last = if count > 0 { sites[count - 1] } else { last };
            } else {
                from = by.from(last.at, last.height, at, height);
                break;
            }
        }
        // Where positions are NaN, all pixels are compared.
        let (first, until) = (after(from - slack), after_at_most(from + slack, n));
        if first < n {
            last = EnvelopeSite { from, at, height, first, until };
            sites[count] = last;
            count += 1;
        }
    }
    &sites[..count]
}

/// The first pixel after a position on a line; the first of the line for NaN.
#[inline(always)]
fn after(place: f64) -> usize {
    (place + 1.0).max(0.0) as usize
}

/// The same for a line of `n` pixels; one past the last if there is none, or for NaN.
#[inline(always)]
fn after_at_most(place: f64, n: usize) -> usize {
    (place + 1.0).min(n as f64) as usize
}

for_least_isa! {
    fn search[][](offsets: &[i32], how: NearestPixel, range: Range<usize>, line: &mut DistanceLine) as search_body
}

/// Finds the measures and the positions of the nearest pixels of a part of a line of offsets.
#[inline(always)]
fn search_body(offsets: &[i32], how: NearestPixel, range: Range<usize>, line: &mut DistanceLine) {
    match how.metric {
        Metric::Euclidean(spacing) => {
            let [levels, rows, columns] = spacing.get();
            let (size, others) = if how.along == Axis::Rows { (rows, [levels; 2]) } else { (columns, [levels, rows]) };
            let by = ByLength { size, scale: 1.0 / (size * size) };
            // In squared pixels.
            let n = offsets.len() as f64;
            let largest = n * n + by.scale * heights(offsets, how, &mut line.heights);
            let slack = if size < 1e-100 {
                // Squares of tiny numbers lose their bits.
                f64::INFINITY
            } else if largest < 2.0f64.powi(50)
                && is_power_of_two(size)
                && others.iter().all(|v| (v / size).fract() == 0.0)
            {
                // Integers, and their quotients, whose distance exceeds their rounding.
                0.0
            } else {
                // Roundings of positions and of measures are less than 2^-49 of the largest ones.
                largest * 2.0f64.powi(-44)
            };
            line.find(offsets, by, slack, range);
        }
        Metric::Taxicab => {
            heights(offsets, how, &mut line.heights);
            line.find(offsets, ByAxes, 0.0, range);
        }
        Metric::Chessboard => {
            heights(offsets, how, &mut line.heights);
            line.find(offsets, ByNeighbours, 0.0, range);
        }
    }
}

/// Pixels of a line that search outwards together.
const LANES: usize = 16;
/// Maximum number of pixels by which a search goes outwards: an estimate of where an envelope takes less time.
const OUTWARDS: usize = 32;

for_least_isa! {
    /// Finds the measures of a line of offsets by searching outwards from each pixel. Returns `false` if background is
    /// too far away, pixels are not of size 1, or the line is shorter than [`LANES`].
    fn search_outwards[][](offsets: &[i32], how: NearestPixel, line: &mut DistanceLine) -> bool as search_outwards_body
}

#[inline(always)]
fn search_outwards_body(offsets: &[i32], how: NearestPixel, line: &mut DistanceLine) -> bool {
    /// Steps between comparisons of the distance of the search with what was found.
    const AT_ONCE: usize = 4;
    let n = offsets.len();
    if n < LANES || !matches!(how.metric, Metric::Euclidean(spacing) if spacing.get() == [1.0; 3]) {
        return false;
    }
    let DistanceLine { measures, squares, .. } = line;
    let layout = how.read();
    for (square, offset) in squares[OUTWARDS..].iter_mut().zip(offsets) {
        // The squares of clamped offsets fit `i32`, and are further than this search goes.
        let [level, row] = layout.split(*offset).map(|by| by.clamp(-1 << 14, 1 << 14));
        *square = if *offset == NONE { FAR } else { level * level + row * row };
    }
    for at in (0..n).step_by(LANES).map(|at| at.min(n - LANES)) {
        let (first, mut least) = (OUTWARDS + at, [0; LANES]);
        least.copy_from_slice(&squares[first..][..LANES]);
        let mut steps = 1;
        while least.iter().fold(false, |more, least| more | (*least > (steps * steps) as i32)) {
            if steps > OUTWARDS {
                return false;
            }
            for by in steps..steps + AT_ONCE {
                let (before, after) = (&squares[first - by..][..LANES], &squares[first + by..][..LANES]);
                for ((least, before), after) in least.iter_mut().zip(before).zip(after) {
                    *least = (*least).min((*before).min(*after) + (by * by) as i32);
                }
            }
            steps += AT_ONCE;
        }
        measures[at..].iter_mut().zip(&least).for_each(|(found, least)| *found = f64::from(*least));
    }
    true
}

/// Returns `true` if products by this number are exact.
#[inline(always)]
fn is_power_of_two(size: f64) -> bool {
    size.to_bits() << 12 == 0
}

/// The measures at the positions of the pixels of a line, and the largest one.
#[inline(always)]
fn heights(offsets: &[i32], how: NearestPixel, heights: &mut [f64]) -> f64 {
    match how.metric {
        Metric::Euclidean(spacing) => {
            let spacing = spacing.get();
            heights_by(offsets, how, heights, |away| Spacing::squared_length(away, spacing))
        }
        metric => heights_by(offsets, how, heights, |away| metric.measure(away)),
    }
}

#[inline(always)]
fn heights_by(offsets: &[i32], how: NearestPixel, heights: &mut [f64], measure: impl Fn([f64; 3]) -> f64) -> f64 {
    // Nonnegative floats are ordered like their bits.
    let mut highest = 0;
    for (offset, height) in offsets.iter().zip(heights) {
        let offset = if *offset == NONE { 0 } else { *offset };
        *height = measure(how.away(offset, 0.0));
        highest = height.to_bits().max(highest);
    }
    f64::from_bits(highest)
}

/// [`NearestPixel`] of rows `rows` of every plane.
///
/// # Errors
/// [`DeviceError::Argument`] for memory that is not the host's.
fn nearest(
    how: NearestPixel,
    input: TypedInput<'_, i32>,
    output: &mut Memory,
    to: &OperationOutput,
) -> Result<(), DeviceError> {
    let &OperationOutput { geometry, rows, .. } = to;
    if rows.is_empty() || geometry.shape.width == 0 {
        return Ok(());
    }
    let find = |row: &[i32], line: &mut DistanceLine| search(row, how, 0..row.len(), line);
    match how.found {
        _ if how.along == Axis::Rows => nearest_down(how, input, out::<i32>(output)?, to),
        NearestResult::Distance if geometry.dtype.is_float() => dispatch_float!(geometry.dtype, F => {
            each_row(input, out::<F>(output)?, to, |row, line, out| {
                if !search_outwards(row, how, line) {
                    find(row, line);
                }
                roots(&line.measures, out);
            });
        }),
        NearestResult::Distance => each_row(input, out::<i32>(output)?, to, |row, line, out| {
            find(row, line);
            let steps = |v: f64| if v.is_finite() { v as i32 } else { -1 };
            out.iter_mut().zip(&line.measures).for_each(|(out, v)| *out = steps(*v));
        }),
        _ => each_row(input, out::<i32>(output)?, to, |row, line, out| {
            find(row, line);
            for (x, (out, at)) in (0..).zip(out.iter_mut().zip(&line.nearest)) {
                *out = offset_to_nearest(how, row, *at, x);
            }
        }),
    }
    Ok(())
}

for_least_isa! {
    fn roots[F: Float][F](squares: &[f64], out: &mut [F]) as roots_body
}

#[inline(always)]
fn roots_body<F: Float>(squares: &[f64], out: &mut [F]) {
    for (out, square) in out.iter_mut().zip(squares) {
        *out = F::from_f64(square.sqrt());
    }
}

/// The result at position `x` of a line of offsets whose nearest pixel is `at`.
#[inline(always)]
fn offset_to_nearest(how: NearestPixel, offsets: &[i32], at: i32, x: i32) -> i32 {
    offsets.get(at as usize).map_or(NONE, |offset| how.offset(*offset, at - x))
}

/// Calls `f` with each row of offsets, memory for a line, and the row of the result.
fn each_row<T: Pixel>(
    input: TypedInput<'_, i32>,
    out: &mut [T],
    &OperationOutput { geometry, rows, threads, .. }: &OperationOutput,
    f: impl Fn(&[i32], &mut DistanceLine, &mut [T]) + Sync,
) {
    let width = geometry.shape.width;
    let n = grain(width);
    for c in 0..geometry.shape.planes() {
        let plane = input.plane(c);
        let at = geometry.row(c, rows.start);
        each_chunk(threads, &mut out[at..at + rows.len() * width], n * width, |k, out| {
            let first = rows.start + (k * n).cast_signed();
            let mut line = DistanceLine::of(width);
            for (y, out) in (first..).zip(out.chunks_mut(width)) {
                f(plane.row(y), &mut line, out);
            }
        });
    }
}

/// Columns copied to lines, and back, at once: a cache line.
const COLUMNS: usize = 16;

/// Finds the nearest pixels along columns.
fn nearest_down(
    how: NearestPixel,
    input: TypedInput<'_, i32>,
    out: &mut [i32],
    &OperationOutput { geometry, rows, threads, .. }: &OperationOutput,
) {
    let (width, height, planes) = (geometry.shape.width, geometry.shape.height, geometry.shape.planes());
    // Each part of a plane has whole columns: planes are divided only if there are fewer planes than threads.
    let n = rows.len().div_ceil(threads.max(1).div_ceil(planes.max(1)));
    let part = |p: usize, first: isize, out: &mut [i32]| {
        let plane = input.plane(p);
        let (mut line, mut found_all) = (DistanceLine::of(height), vec![0; out.len().min(n * width) / width * COLUMNS]);
        let mut columns = vec![0; height * COLUMNS];
        let (lines, range) = (out.len() / width, first.cast_unsigned()..first.cast_unsigned() + out.len() / width);
        for x in (0..width).step_by(COLUMNS) {
            let count = COLUMNS.min(width - x);
            for y in 0..height {
                for (k, offset) in plane.row(y.cast_signed())[x..x + count].iter().enumerate() {
                    columns[k * height + y] = *offset;
                }
            }
            for (column, to) in columns.chunks_exact(height).zip(found_all.chunks_exact_mut(lines)).take(count) {
                search(column, how, range.clone(), &mut line);
                for ((y, to), at) in (range.start as i32..).zip(to).zip(&line.nearest[range.clone()]) {
                    *to = offset_to_nearest(how, column, *at, y);
                }
            }
            for (y, out) in out.chunks_exact_mut(width).enumerate() {
                for (k, out) in out[x..x + count].iter_mut().enumerate() {
                    *out = found_all[k * lines + y];
                }
            }
        }
    };
    let mut parts = Vec::new();
    for (p, plane) in out.chunks_mut(geometry.plane()).take(planes).enumerate() {
        let of_rows = &mut plane[geometry.row(0, rows.start)..][..rows.len() * width];
        parts.extend(
            of_rows.chunks_mut(n * width).enumerate().map(|(k, out)| (p, rows.start + (k * n).cast_signed(), out)),
        );
    }
    parallel::for_each(threads, parts, |(p, first, out)| part(p, first, out));
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_plan::ops::distance::JoinedOffsets;

    /// Lines whose background is at most so far away, found by both searches.
    #[test]
    fn outwards_finds_what_the_envelope_does() {
        let metric = Metric::Euclidean(Spacing::UNIT);
        let how =
            NearestPixel { along: Axis::Columns, offsets: JoinedOffsets::ROWS, metric, found: NearestResult::Distance };
        for (width, offsets) in [15, 16, 17, 63, 100]
            .into_iter()
            .flat_map(|w| [(w, JoinedOffsets::ROWS), (w, JoinedOffsets { row_bits: 8 })])
        {
            let how = NearestPixel { offsets, ..how };
            let (mut outwards, mut envelope) = (DistanceLine::of(width), DistanceLine::of(width));
            for far in (0..40).chain([100]) {
                for at in 0..width {
                    // Little else is as near as the pixel at this position.
                    let other = |x: usize| match x % 7 {
                        3 => NONE,
                        5 => [1 << 14, -1 << 20, i32::MAX][at % 3],
                        _ => how.offsets.join([0, 33 + (x * 5 % 11) as i32]),
                    };
                    let offset = |x| if x == at { how.offsets.join([far / 2 % 5, -far]) } else { other(x) };
                    let offsets: Vec<i32> = (0..width).map(offset).collect();
                    search(&offsets, how, 0..width, &mut envelope);
                    let furthest = envelope.measures.iter().fold(0.0, |most: f64, v| most.max(*v));
                    if search_outwards(&offsets, how, &mut outwards) {
                        assert_eq!(outwards.measures, envelope.measures, "{offsets:?}");
                    } else {
                        assert!(width < LANES || furthest > (OUTWARDS * OUTWARDS) as f64, "{offsets:?}");
                    }
                }
            }
        }
    }
}
