//! Samples of images whose pixels have several samples: these share a position and its weights, and are the lanes of
//! one vector.

use std::array::from_fn;
use std::ops::Range;

use super::line::WarpLine;
use super::sample::Sampler;
use super::widened;
use crate::plane::{OutputTile, Plane};
use crate::versions::for_least_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::edge::WarpEdge;
use horus_plan::ops::geometric::Affine;

/// Computes all samples of the pixels of a tile, whose columns are elements.
pub(super) fn sampled<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
    plane: &Plane<'_, P>,
    map: &Affine,
    rule: &WarpEdge,
    tile: &mut OutputTile<'_, T>,
) {
    for first in (0..plane.samples).step_by(GROUP) {
        group::<P, T, S, N>(plane, map, rule, first, tile);
    }
}

/// Samples of a pixel that are computed together.
const GROUP: usize = 4;

/// The pixels around positions, from one sample of each pixel on.
struct SampleNeighbourhood<'a, P> {
    plane: &'a Plane<'a, P>,
    /// Pixels of a row.
    wide: usize,
    first: usize,
    /// Samples of a pixel that are computed together.
    count: usize,
    border: Border,
}

/// Computes up to [`GROUP`] samples of each pixel, from this one on, in the lanes of a vector.
fn group<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
    plane: &Plane<'_, P>,
    map: &Affine,
    rule: &WarpEdge,
    first: usize,
    tile: &mut OutputTile<'_, T>,
) {
    let (n, border, samples) = (N as i64, rule.border(), plane.samples);
    let count = (samples - first).min(GROUP);
    let around = SampleNeighbourhood { plane, wide: plane.width / samples, first, count, border };
    let held = plane.window.clipped(plane.height);
    let constant = border.constant().map(T::from_f64);
    // As for planes: between equal pixels, the fraction matters only to cubic weights.
    let alike = constant.filter(|value| N <= 2 || *value == T::ZERO).map(between_equals::<T, S, N>);
    let cols = tile.cols.clone();
    let pixels = cols.start / samples..cols.end.div_ceil(samples);
    for y in tile.rows.start..tile.rows.end {
        let mut out = RowSegment { out: tile.row_mut(y), start: cols.start, samples, first, count };
        let all = match rule {
            WarpEdge::Inside(inside) => {
                let run = inside.run(y, pixels.clone());
                let value = [T::from_f64(inside.value); GROUP];
                (pixels.start..run.start).chain(run.end..pixels.end).for_each(|x| out.put(x, value));
                run
            }
            WarpEdge::Border(_) => pixels.clone(),
        };
        let line = WarpLine::of(map, y, all.start);
        let inside = line.run(
            all.len(),
            held.start as i64 - S::FIRST..held.end as i64 - S::FIRST - n + 1,
            -S::FIRST..around.wide as i64 - S::FIRST - n + 1,
        );
        let touching = match constant {
            Some(_) => line.run(
                all.len(),
                1 - n - S::FIRST..plane.height as i64 - S::FIRST,
                1 - n - S::FIRST..around.wide as i64 - S::FIRST,
            ),
            None => 0..all.len(),
        };
        let inside = if inside.is_empty() { touching.start..touching.start } else { inside };
        for run in [0..touching.start, touching.end..all.len()] {
            match alike {
                Some(value) => run.for_each(|i| out.put(all.start + i, [value; GROUP])),
                None => beyond::<P, T, S, N>(&around, &line, run, all.start, &mut out),
            }
        }
        for run in [touching.start..inside.start, inside.end..touching.end] {
            beyond::<P, T, S, N>(&around, &line, run, all.start, &mut out);
        }
        within::<P, T, S, N>(&around, &line, inside, all.start, &mut out);
    }
}

for_least_isa! {
    /// A sample between equal pixels.
    fn between_equals[T: Pixel, S: Sampler<N>, const N: usize][T, S, N](pixel: T) -> T as between_equals_body
}

#[inline(always)]
fn between_equals_body<T: Pixel, S: Sampler<N>, const N: usize>(pixel: T) -> T {
    let [value] = S::sample(&[0], &[0], |_, _| [pixel]);
    value
}

for_least_isa! {
    /// Computes the samples whose neighbourhoods cross the edge of the image, or are beyond it.
    fn beyond[P: Pixel, T: Pixel, S: Sampler<N>, const N: usize][P, T, S, N](
        around: &SampleNeighbourhood<'_, P>, line: &WarpLine, run: Range<usize>, start: usize, out: &mut RowSegment<'_, T>
    ) as beyond_body
}

#[inline(always)]
fn beyond_body<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
    around: &SampleNeighbourhood<'_, P>,
    line: &WarpLine,
    run: Range<usize>,
    start: usize,
    out: &mut RowSegment<'_, T>,
) {
    // No closure: it would not be inlined here, and have no fused multiply-add.
    for i in run {
        out.put(start + i, around.beyond::<T, S, N, GROUP>(line, i));
    }
}

for_least_isa! {
    /// Computes the samples whose neighbourhoods are in the image.
    fn within[P: Pixel, T: Pixel, S: Sampler<N>, const N: usize][P, T, S, N](
        around: &SampleNeighbourhood<'_, P>, line: &WarpLine, run: Range<usize>, start: usize, out: &mut RowSegment<'_, T>
    ) as within_body
}

#[inline(always)]
fn within_body<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
    around: &SampleNeighbourhood<'_, P>,
    line: &WarpLine,
    run: Range<usize>,
    start: usize,
    out: &mut RowSegment<'_, T>,
) {
    let SampleNeighbourhood { plane, first, count, .. } = *around;
    let (data, samples, top) = (plane.data(), plane.samples, S::FIRST - plane.window.start as i64);
    for i in run {
        let (y, x) = line.at(i);
        let row = ((y >> 32) + top) as usize * plane.width;
        let at = row + ((x >> 32) + S::FIRST) as usize * samples + first;
        let last = at + (N - 1) * (plane.width + samples);
        debug_assert!(last + count <= data.len());
        let place = |k: usize, j: usize| at + k * plane.width + j * samples;
        if last + GROUP > data.len() {
            beyond::<P, T, S, N>(around, line, i..i + 1, start, out);
            continue;
        }
        // Lanes beyond the samples of the pixel are arbitrary.
        let value = S::sample(&[y as u32; GROUP], &[x as u32; GROUP], |k, j| {
            // SAFETY: the last place read is inside, as just tested, and the first is in a run inside the rows in
            // memory.
            from_fn(|c| widened(unsafe { *data.get_unchecked(place(k, j) + c) }))
        });
        out.put(start + i, value);
    }
}

for_least_isa! {
    /// Computes the elements of a row whose neighbourhoods cross the edge of the image, or are beyond it. The first
    /// element of the row is sample `first` of the first pixel of `line`.
    pub(super) fn edge[P: Pixel, T: Pixel, S: Sampler<N>, const N: usize][P, T, S, N](
        plane: &Plane<'_, P>, border: Border, line: &WarpLine, first: usize, run: Range<usize>, out: &mut [T]
    ) as edge_body
}

#[inline(always)]
fn edge_body<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
    plane: &Plane<'_, P>,
    border: Border,
    line: &WarpLine,
    first: usize,
    run: Range<usize>,
    out: &mut [T],
) {
    let samples = plane.samples;
    for i in run {
        let at = first + i;
        let around = SampleNeighbourhood { plane, wide: plane.width / samples, first: at % samples, count: 1, border };
        [out[i]] = around.beyond::<T, S, N, 1>(line, at / samples);
    }
}

/// The elements of a row from `start` on.
struct RowSegment<'a, T> {
    out: &'a mut [T],
    start: usize,
    samples: usize,
    first: usize,
    count: usize,
}

impl<T: Pixel> RowSegment<'_, T> {
    /// Stores the samples of pixel `x` that are in this part.
    #[inline(always)]
    fn put(&mut self, x: usize, value: [T; GROUP]) {
        let at = (x * self.samples + self.first).wrapping_sub(self.start);
        if let Some(to) = self.out.get_mut(at..at.wrapping_add(self.count)) {
            // Copies of constant length.
            match (self.count, &value[..]) {
                (4, [a, b, c, d]) => to.copy_from_slice(&[*a, *b, *c, *d]),
                (3, [a, b, c, _]) => to.copy_from_slice(&[*a, *b, *c]),
                (2, [a, b, _, _]) => to.copy_from_slice(&[*a, *b]),
                _ => to[0] = value[0],
            }
            return;
        }
        for (i, v) in value.into_iter().enumerate().take(self.count) {
            if let Some(to) = self.out.get_mut(at.wrapping_add(i)) {
                *to = v;
            }
        }
    }
}

impl<P: Pixel> SampleNeighbourhood<'_, P> {
    /// Computes the samples at position `i` of a line whose neighbourhood crosses the edge of the image, or is beyond
    /// it.
    #[inline(always)]
    fn beyond<T: Pixel, S: Sampler<N>, const N: usize, const C: usize>(&self, line: &WarpLine, i: usize) -> [T; C] {
        let SampleNeighbourhood { plane, border, .. } = *self;
        let constant = border.constant().map_or(T::ZERO, T::from_f64);
        let (y, x) = line.at(i);
        let (top, left) = (((y >> 32) + S::FIRST) as isize, ((x >> 32) + S::FIRST) as isize);
        let cols: [Option<usize>; N] = from_fn(|j| border.map(left + j.cast_signed(), self.wide));
        let rows: [Option<&[P]>; N] = from_fn(|k| plane.resolve(top + k.cast_signed(), border).map(|y| plane.row(y)));
        S::sample(&[y as u32; C], &[x as u32; C], |k, j| match (rows[k], cols[j]) {
            (Some(row), Some(x)) => from_fn(|c| widened(row[x * plane.samples + self.first + c.min(self.count - 1)])),
            _ => [constant; C],
        })
    }
}
