//! Kernels that only move pixels: merging planes and transposition.

use rayon::prelude::*;

use super::{GRAIN, View, grain};
use crate::device::Geometry;
use crate::dtype::Pixel;
use crate::shape::Window;

/// Side of the squares in which a plane is transposed: as many rows of input and output as the first-level cache holds
/// lines of, whatever the stride between them.
const SQUARE: usize = 16;

/// Rows `rows` of input `k` to plane `k` of the output.
pub(super) fn merge<T: Pixel>(inputs: &[View<'_, T>], out: &mut [T], geometry: &Geometry, rows: Window) {
    let width = geometry.shape.width;
    if rows.is_empty() || width == 0 {
        return;
    }
    for (c, input) in inputs.iter().enumerate() {
        let (from, to) = (input.geometry.row(0, rows.start), geometry.row(c, rows.start));
        let n = rows.len() * width;
        let (from, to) = (&input.data[from..from + n], &mut out[to..to + n]);
        to.par_chunks_mut(GRAIN).zip(from.par_chunks(GRAIN)).for_each(|(to, from)| to.copy_from_slice(from));
    }
}

/// Output (`y`, `x`) is input (`x`, `y`), for output rows `rows` of every plane. The input holds all its rows.
pub(super) fn transpose<T: Pixel>(input: View<'_, T>, out: &mut [T], geometry: &Geometry, rows: Window) {
    let width = geometry.shape.width;
    if rows.is_empty() || width == 0 {
        return;
    }
    for c in 0..geometry.shape.channels {
        let plane = input.plane(c);
        let from = (-plane.window.start).cast_unsigned() * plane.width;
        let pixels = &plane.data()[from..];
        let at = geometry.row(c, rows.start);
        let n = grain(width).next_multiple_of(SQUARE);
        out[at..at + rows.len() * width].par_chunks_mut(n * width).enumerate().for_each(|(k, out)| {
            let first = rows.start.cast_unsigned() + k * n;
            for (y, band) in (first..).step_by(SQUARE).zip(out.chunks_mut(SQUARE * width)) {
                transpose_band(pixels, plane.width, y, band, width);
            }
        });
    }
}

/// Columns `y..` of `pixels` to the rows of `band`.
fn transpose_band<T: Pixel>(pixels: &[T], stride: usize, y: usize, band: &mut [T], width: usize) {
    let height = band.len() / width;
    for x in (0..width).step_by(SQUARE) {
        let n = SQUARE.min(width - x);
        if n == SQUARE && height == SQUARE {
            let mut square = [[T::ZERO; SQUARE]; SQUARE];
            for (i, row) in square.iter_mut().enumerate() {
                row.copy_from_slice(&pixels[(x + i) * stride + y..][..SQUARE]);
            }
            for (j, row) in band.chunks_exact_mut(width).enumerate() {
                row[x..x + SQUARE].iter_mut().zip(&square).for_each(|(o, from)| *o = from[j]);
            }
        } else {
            for (j, row) in band.chunks_exact_mut(width).enumerate() {
                (x..x + n).for_each(|x| row[x] = pixels[x * stride + y + j]);
            }
        }
    }
}
