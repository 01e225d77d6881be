//! Affine maps: each output pixel is a sample of the input at a fixed-point position.
//!
//! A row of the output is three kinds of runs, told apart by integer arithmetic on the positions (`line`): pixels
//! whose whole neighbourhood lies inside the image, pixels that see nothing but a constant border, and the edges
//! between. Only edges ask the border about every pixel they read.

mod bilinear;
mod line;
mod sample;
#[cfg(test)]
mod tests;

use std::array::from_fn;
use std::ops::Range;

use self::line::Line;
use self::sample::{Bicubic, Bilinear, Nearest, Sampler};
use super::plane::{Plane, Tile};
use super::simd::Isa;
use super::versions::for_each_isa;
use crate::dtype::Pixel;
use crate::ops::geometric::{Affine, Interpolation};
use crate::shape::{Border, Window};

/// Samples `plane` at the input position of every pixel of `tile`.
///
/// The plane holds every row that is read (see [`Affine::footprint`]). A constant border takes part in the
/// interpolation. Tiles of some 64 columns keep the input lines of neighbouring output rows in the first-level cache.
pub fn warp<T: Pixel>(
    plane: &Plane<'_, T>,
    map: &Affine,
    how: Interpolation,
    border: Border,
    tile: &mut Tile<'_, T>,
    isa: Isa,
) {
    match how {
        Interpolation::Nearest => {
            // Rounding to the nearest, halves up, is the floor of positions half a pixel further.
            let map = Affine { x0: map.x0 + (1 << 31), y0: map.y0 + (1 << 31), ..*map };
            sampled::<T, Nearest, 1>(isa, plane, &map, border, tile);
        }
        Interpolation::Bilinear => sampled::<T, Bilinear, 2>(isa, plane, map, border, tile),
        Interpolation::Bicubic => sampled::<T, Bicubic, 4>(isa, plane, map, border, tile),
    }
}

for_each_isa! {
    fn sampled[T: Pixel, S: Sampler<N>, const N: usize][T, S, N](
        plane: &Plane<'_, T>, map: &Affine, border: Border, tile: &mut Tile<'_, T>
    ) as rows
}

#[inline(always)]
fn rows<T: Pixel, S: Sampler<N>, const N: usize>(
    isa: Isa,
    plane: &Plane<'_, T>,
    map: &Affine,
    border: Border,
    tile: &mut Tile<'_, T>,
) {
    let held = plane.window.clipped(plane.height);
    let n = N as i64;
    let constant = border.constant().map(T::from_scalar);
    for y in tile.rows.start..tile.rows.end {
        let line = Line::of(map, y, tile.cols.start);
        let out = tile.row_mut(y);
        // First pixels of neighbourhoods that lie inside, and of those that touch the image at all.
        let inside = line.run(
            out.len(),
            held.start as i64 - S::FIRST..held.end as i64 - S::FIRST - n + 1,
            -S::FIRST..plane.width as i64 - S::FIRST - n + 1,
        );
        let touching = match constant {
            Some(_) => line.run(
                out.len(),
                1 - n - S::FIRST..plane.height as i64 - S::FIRST,
                1 - n - S::FIRST..plane.width as i64 - S::FIRST,
            ),
            None => 0..out.len(),
        };
        let inside = if inside.is_empty() { touching.start..touching.start } else { inside };
        if let Some(c) = constant {
            outside::<T, S, N>(c, &line, 0..touching.start, out);
            outside::<T, S, N>(c, &line, touching.end..out.len(), out);
        }
        edge::<T, S, N>(plane, border, &line, touching.start..inside.start, out);
        edge::<T, S, N>(plane, border, &line, inside.end..touching.end, out);
        if !inside.is_empty() {
            let line = line.from(inside.start);
            let out = &mut out[inside];
            let held = Held { data: plane.data(), width: plane.width, window: plane.window };
            if !S::accelerated(isa, &held, &line, out) {
                interior::<T, S, N>(&held, &line, out);
            }
        }
    }
}

/// The rows of a plane, as what positions are turned into indices of.
struct Held<'a, T> {
    data: &'a [T],
    width: usize,
    window: Window,
}

/// Samples whose neighbourhoods lie inside the image.
#[inline(always)]
fn interior<T: Pixel, S: Sampler<N>, const N: usize>(held: &Held<'_, T>, line: &Line, out: &mut [T]) {
    let first = (held.window.start as i64, 0);
    for (i, out) in out.iter_mut().enumerate() {
        let (y, x) = line.at(i);
        let at = ((y >> 32) + S::FIRST - first.0) as usize * held.width + ((x >> 32) + S::FIRST - first.1) as usize;
        *out = S::sample(y as u32, x as u32, |k| {
            let row = &held.data[at + k * held.width..][..N];
            from_fn(|j| row[j])
        });
    }
}

/// Samples whose neighbourhoods cross the edge of the image, or lie beyond it.
#[inline(always)]
fn edge<T: Pixel, S: Sampler<N>, const N: usize>(
    plane: &Plane<'_, T>,
    border: Border,
    line: &Line,
    run: Range<usize>,
    out: &mut [T],
) {
    let constant = border.constant().map_or(T::ZERO, T::from_scalar);
    for i in run {
        let (y, x) = line.at(i);
        let (top, left) = (((y >> 32) + S::FIRST) as isize, ((x >> 32) + S::FIRST) as isize);
        let cols: [Option<usize>; N] = from_fn(|j| border.map(left + j.cast_signed(), plane.width));
        out[i] = S::sample(y as u32, x as u32, |k| match plane.resolve(top + k.cast_signed(), border) {
            Some(y) => {
                let row = plane.row(y);
                cols.map(|x| x.map_or(constant, |x| row[x]))
            }
            None => [constant; N],
        });
    }
}

/// Samples that see nothing but the constant.
#[inline(always)]
fn outside<T: Pixel, S: Sampler<N>, const N: usize>(constant: T, line: &Line, run: Range<usize>, out: &mut [T]) {
    // Between equal pixels, `lerp` gives the same whatever the fraction, and weighted zeros sum to +0 whatever the
    // weights. Other constants come out of cubic weights with a rounding that depends on the fraction.
    if N <= 2 || constant == T::ZERO {
        out[run].fill(S::sample(0, 0, |_| [constant; N]));
        return;
    }
    for i in run {
        let (y, x) = line.at(i);
        out[i] = S::sample(y as u32, x as u32, |_| [constant; N]);
    }
}
