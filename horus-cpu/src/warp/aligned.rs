//! Linear samples of maps that keep rows and columns separate, such as a change of scale: all pixels of an output row
//! are between the same two rows, and all rows between the same columns.
//!
//! Columns are looked up once per tile. A row of the input is interpolated along its columns once for all output rows
//! that read it. Columns are elements: the samples of a pixel share its position.

use std::ops::Range;

use super::line::{LinearCoordinate, WarpLine};
use super::pairs::{self, PairColumns, WIDTH, window_pixel};
use super::sample::Bilinear;
use super::{edge, interleaved, outside, sampled_part, widened};
use crate::plane::{OutputTile, Plane};
use crate::simd::Isa;
use crate::versions::for_least_isa;
use horus_base::dtype::{Arithmetic, Float, Pixel};
use horus_plan::ops::edge::WarpEdge;
use horus_plan::ops::geometric::Affine;

pub(super) fn sampled<P: Pixel, T: Pixel>(
    isa: Isa,
    plane: &Plane<'_, P>,
    map: &Affine,
    rule: &WarpEdge,
    tile: &mut OutputTile<'_, T>,
) {
    let all = tile.cols.clone();
    // Whole pixels.
    let most = WIDTH - if plane.samples < WIDTH { WIDTH % plane.samples } else { 0 };
    for from in all.clone().step_by(most) {
        part(isa, plane, map, rule, tile, from..all.end.min(from + most));
    }
}

/// Columns `cols` of a tile, at most [`WIDTH`].
fn part<P: Pixel, T: Pixel>(
    isa: Isa,
    plane: &Plane<'_, P>,
    map: &Affine,
    rule: &WarpEdge,
    tile: &mut OutputTile<'_, T>,
    cols: Range<usize>,
) {
    let border = rule.border();
    let constant = border.constant().map(T::from_f64);
    let samples = plane.samples;
    let width = (plane.width / samples) as i64;
    let (pixels, skipped) = (cols.start / samples..cols.end.div_ceil(samples), cols.start % samples);
    let axis = WarpLine::of(map, tile.rows.start, pixels.start).x;
    // Elements of a run of pixels.
    let elements = |run: Range<usize>| {
        let cut = |pixel: usize| (pixel * samples).saturating_sub(skipped).min(cols.len());
        cut(run.start)..cut(run.end)
    };
    // Columns between two columns of the image, and columns that read any.
    let inner = elements(axis.run(pixels.len(), &(0..width - 1)));
    let touching = if constant.is_some() { elements(axis.run(pixels.len(), &(-1..width))) } else { 0..cols.len() };
    let first = skipped + inner.start;
    let axis = LinearCoordinate { start: axis.at(first / samples), ..axis };
    let columns =
        pair_columns::<T::Interp>(&axis, [first % samples, samples], inner.len(), plane.width, window_pixel::<P>());
    let mut lines = [[T::Interp::ZERO; WIDTH]; 2];
    let mut known: [Option<i64>; 2] = [None; 2];
    for y in tile.rows.start..tile.rows.end {
        let left = cols.start - tile.cols.start;
        let out = &mut tile.row_mut(y)[left..left + cols.len()];
        let (start, out) = sampled_part(rule, y, &cols, samples, out);
        let line = WarpLine::of(map, y, (cols.start + start) / samples);
        let within = |run: &Range<usize>| {
            let cut = |i: usize| i.clamp(start, start + out.len()) - start;
            cut(run.start)..cut(run.end)
        };
        let (middle, seen) = (within(&inner), within(&touching));
        if let Some(c) = constant {
            for run in [0..seen.start, seen.end..out.len()] {
                outside::<T, Bilinear, 2>(c, &line, run, out);
            }
        }
        let middle = if middle.is_empty() { seen.start..seen.start } else { middle };
        for run in [seen.start..middle.start, middle.end..seen.end] {
            if samples == 1 {
                edge::<P, T, Bilinear, 2>(plane, border, &line, run, out);
            } else {
                let first = (cols.start + start) % samples;
                interleaved::edge::<P, T, Bilinear, 2>(plane, border, &line, first, run, out);
            }
        }
        if middle.is_empty() {
            continue;
        }
        let row = line.y.start >> 32;
        for r in [row, row + 1] {
            let to = (r & 1) as usize;
            if known[to] == Some(r) {
                continue;
            }
            known[to] = Some(r);
            let to = &mut lines[to][..inner.len()];
            match plane.resolve(r as isize, border) {
                Some(r) => across::<P, T>(isa, &columns, plane.row(r), samples, to),
                None => {
                    between_constants(constant.unwrap_or(T::ZERO).to_interp(), columns.fractions(), to);
                }
            }
        }
        let [top, bottom] = [row, row + 1].map(|r| {
            let from = start + middle.start - inner.start;
            &lines[(r & 1) as usize][from..from + middle.len()]
        });
        down::<T>(top, bottom, T::Interp::from_fraction(line.y.start as u32), &mut out[middle]);
    }
}

for_least_isa! {
    fn pair_columns[F: Float][F](
        axis: &LinearCoordinate, samples: [usize; 2], n: usize, width: usize, window_pixel: Option<usize>
    ) -> PairColumns<F> as pair_columns_body
}

#[inline(always)]
fn pair_columns_body<F: Float>(
    axis: &LinearCoordinate,
    samples: [usize; 2],
    n: usize,
    width: usize,
    window_pixel: Option<usize>,
) -> PairColumns<F> {
    PairColumns::new(axis, samples, n, width, window_pixel)
}

for_least_isa! {
    /// Interpolates along a row of constants: a constant that is infinite becomes NaN.
    fn between_constants[F: Float][F](constant: F, fractions: &[F], out: &mut [F]) as between_constants_body
}

#[inline(always)]
fn between_constants_body<F: Float>(constant: F, fractions: &[F], out: &mut [F]) {
    for (to, t) in out.iter_mut().zip(fractions) {
        *to = t.fma(constant.sub(constant), constant);
    }
}

for_least_isa! {
    /// Interpolates between two rows.
    fn down[T: Pixel][T](top: &[T::Interp], bottom: &[T::Interp], t: T::Interp, out: &mut [T]) as down_body
}

#[inline(always)]
fn down_body<T: Pixel>(top: &[T::Interp], bottom: &[T::Interp], t: T::Interp, out: &mut [T]) {
    for ((out, a), b) in out.iter_mut().zip(top).zip(bottom) {
        *out = T::from_interp(t.fma(b.sub(*a), *a));
    }
}

for_least_isa! {
    /// Interpolates a row of the input between its columns.
    fn across[P: Pixel, T: Pixel][P, T](
        isa: Isa, columns: &PairColumns<T::Interp>, row: &[P], samples: usize, out: &mut [T::Interp]
    ) as across_body
}

#[inline(always)]
fn across_body<P: Pixel, T: Pixel>(
    isa: Isa,
    columns: &PairColumns<T::Interp>,
    row: &[P],
    samples: usize,
    out: &mut [T::Interp],
) {
    if pairs::between(isa, columns, row, out) {
        return;
    }
    for ((out, at), t) in out.iter_mut().zip(columns.firsts()).zip(columns.fractions()) {
        let pixel = |at: usize| widened::<P, T>(row[at]).to_interp();
        let (a, b) = (pixel(*at as usize), pixel(*at as usize + samples));
        *out = t.fma(b.sub(a), a);
    }
}
