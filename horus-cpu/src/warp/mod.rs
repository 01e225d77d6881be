//! Affine maps: each output pixel is a sample of the input at a fixed-point position.
//!
//! Integer arithmetic on the positions (`line`) divides a row of the output into three kinds of runs: pixels whose
//! whole neighbourhood is inside the image, pixels that read only a constant border or the image mirrored once, and
//! pixels at edges. Only the last apply the border mode to every pixel that they read. Pixels beyond an edge that is
//! not interpolated ([`WarpEdge::Inside`]) are filled before.

mod aligned;
mod bilinear;
mod interleaved;
mod line;
mod mirror;
mod pairs;
mod repeated;
mod sample;

use std::array::from_fn;
use std::ops::Range;

use self::line::WarpLine;
use self::mirror::Mirrors;
use self::sample::{Bicubic, Bilinear, Nearest, Sampler};
use super::plane::{OutputTile, Plane};
use super::simd::{CACHED, Isa, prefetch};
use super::versions::for_least_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::{Border, Window};
use horus_plan::ops::edge::WarpEdge;
use horus_plan::ops::geometric::{Affine, Interpolation};

/// Samples `plane` at the input position of every pixel of `tile`.
///
/// The plane contains every row that is read (see [`Affine::footprint`]). A constant border takes part in the
/// interpolation.
pub(crate) fn warp<T: Pixel>(
    plane: &Plane<'_, T>,
    map: &Affine,
    how: Interpolation,
    edge: &WarpEdge,
    tile: &mut OutputTile<'_, T>,
    isa: Isa,
) {
    match how {
        Interpolation::Nearest => {
            // Rounding to the nearest, halves up, is the floor of positions half a pixel further.
            let map = Affine { x0: map.x0 + (1 << 31), y0: map.y0 + (1 << 31), ..*map };
            if (map.xy, map.yx) == (0, 0) {
                repeated::sampled(plane, &map, edge, tile);
            } else if plane.samples > 1 {
                interleaved::sampled::<T, T, Nearest, 1>(plane, &map, edge, tile);
            } else {
                sampled::<T, T, Nearest, 1>(isa, plane, &map, edge, tile);
            }
        }
        Interpolation::Bilinear => linear(plane, map, edge, tile, isa),
        Interpolation::Bicubic if plane.samples > 1 => {
            interleaved::sampled::<T, T, Bicubic, 4>(plane, map, edge, tile);
        }
        Interpolation::Bicubic => sampled::<T, T, Bicubic, 4>(isa, plane, map, edge, tile),
    }
}

/// [`warp`] between pixels of type `P`, converted to `T`.
pub(crate) fn linear<P: Pixel, T: Pixel>(
    plane: &Plane<'_, P>,
    map: &Affine,
    edge: &WarpEdge,
    tile: &mut OutputTile<'_, T>,
    isa: Isa,
) {
    if (map.xy, map.yx) == (0, 0) {
        aligned::sampled::<P, T>(isa, plane, map, edge, tile);
    } else if plane.samples > 1 {
        interleaved::sampled::<P, T, Bilinear, 2>(plane, map, edge, tile);
    } else {
        sampled::<P, T, Bilinear, 2>(isa, plane, map, edge, tile);
    }
}

fn sampled<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
    isa: Isa,
    plane: &Plane<'_, P>,
    map: &Affine,
    rule: &WarpEdge,
    tile: &mut OutputTile<'_, T>,
) {
    let border = rule.border();
    let held = plane.window.clipped(plane.height);
    let n = N as i64;
    let constant = border.constant().map(T::from_f64);
    for y in tile.rows.start..tile.rows.end {
        let columns = tile.cols.clone();
        let (start, out) = sampled_part(rule, y, &columns, 1, tile.row_mut(y));
        let line = WarpLine::of(map, y, columns.start + start);
        // First pixels of neighbourhoods inside the image, and of neighbourhoods that touch it.
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
            for run in [0..touching.start, touching.end..out.len()] {
                outside::<T, S, N>(c, &line, run, out);
            }
        }
        for run in [touching.start..inside.start, inside.end..touching.end] {
            edge::<P, T, S, N>(plane, border, &line, run, out);
        }
        if !inside.is_empty() {
            let (line, first) = (line.from(inside.start), inside.start);
            let out = &mut out[inside];
            let held = PlaneRows { data: plane.data(), width: plane.width, window: plane.window };
            if line.y.step != 0 && size_of_val(held.data) > CACHED {
                held.prefetch(&WarpLine::of(map, y + AHEAD, columns.start + start + first), out.len());
            }
            interior::<P, T, S, N>(isa, &held, &line, out);
        }
    }
}

/// The first sampled element of a row, and all sampled elements. Elements beyond an edge that is not interpolated get
/// its constant.
#[inline(always)]
fn sampled_part<'a, T: Pixel>(
    rule: &WarpEdge,
    y: isize,
    columns: &Range<usize>,
    samples: usize,
    out: &'a mut [T],
) -> (usize, &'a mut [T]) {
    let WarpEdge::Inside(inside) = rule else { return (0, out) };
    let run = inside.run(y, columns.start / samples..columns.end.div_ceil(samples));
    let cut = |pixel: usize| (pixel * samples).clamp(columns.start, columns.end) - columns.start;
    let (start, end) = (cut(run.start), cut(run.end));
    let value = T::from_f64(inside.value);
    out[..start].fill(value);
    out[end..].fill(value);
    (start, &mut out[start..end])
}

/// Converts a pixel to the type of the interpolation.
#[inline(always)]
fn widened<P: Pixel, T: Pixel>(pixel: P) -> T {
    if P::DTYPE == T::DTYPE { bytemuck::cast(pixel) } else { T::from_f64(pixel.to_f64()) }
}

/// The rows of a plane, indexed by positions.
struct PlaneRows<'a, T> {
    data: &'a [T],
    width: usize,
    window: Window,
}

/// Rows of the output between a prefetch and its use.
const AHEAD: isize = 2;

impl<T> PlaneRows<'_, T> {
    /// Prefetches the pixels at the first `n` positions of a line that crosses rows, which caches do not predict. The
    /// line may be anywhere.
    #[inline(always)]
    fn prefetch(&self, line: &WarpLine, n: usize) {
        // Once for each row that the line crosses, and for each cache line along it.
        let step = ((1 << 32) / line.y.step.unsigned_abs()).clamp(1, (64 / size_of::<T>()) as u64) as usize;
        for i in (0..n).step_by(step) {
            let (y, x) = line.at(i);
            let at = ((y >> 32) - self.window.start as i64) * self.width as i64 + (x >> 32);
            prefetch(self.data.as_ptr().wrapping_offset(at as isize));
        }
    }
}

/// Samples computed together where neighbourhoods are inside the image.
const LANES: usize = 16;

for_least_isa! {
    /// Computes samples whose neighbourhoods are inside the image.
    fn interior[P: Pixel, T: Pixel, S: Sampler<N>, const N: usize][P, T, S, N](
        isa: Isa, held: &PlaneRows<'_, P>, line: &WarpLine, out: &mut [T]
    ) as interior_body
}

#[inline(always)]
fn interior_body<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
    isa: Isa,
    held: &PlaneRows<'_, P>,
    line: &WarpLine,
    out: &mut [T],
) {
    if S::accelerated::<P, T>(isa, held, line, out) {
        return;
    }
    let (groups, tail) = out.as_chunks_mut::<LANES>();
    let done = groups.len() * LANES;
    for (g, group) in groups.iter_mut().enumerate() {
        *group = inside::<P, T, S, N, LANES>(held, line, g * LANES);
    }
    for (i, out) in tail.iter_mut().enumerate() {
        [*out] = inside::<P, T, S, N, 1>(held, line, done + i);
    }
}

/// Computes the `L` samples from `i` on.
#[inline(always)]
fn inside<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize, const L: usize>(
    held: &PlaneRows<'_, P>,
    line: &WarpLine,
    i: usize,
) -> [T; L] {
    let (mut fy, mut fx, mut at) = ([0; L], [0; L], [0; L]);
    let top = S::FIRST - held.window.start as i64;
    for l in 0..L {
        let (y, x) = line.at(i + l);
        (fy[l], fx[l]) = (y as u32, x as u32);
        at[l] = (((y >> 32) + top) * held.width as i64 + (x >> 32) + S::FIRST) as usize;
    }
    S::sample(&fy, &fx, |k, j| {
        let mut pixels = [T::ZERO; L];
        for l in 0..L {
            let at = at[l] + k * held.width + j;
            debug_assert!(at < held.data.len());
            // SAFETY: the caller's run consists of neighbourhoods inside the rows in memory.
            pixels[l] = widened(unsafe { *held.data.get_unchecked(at) });
        }
        pixels
    })
}

for_least_isa! {
    /// Computes samples whose neighbourhoods cross the edge of the image, or are beyond it.
    fn edge[P: Pixel, T: Pixel, S: Sampler<N>, const N: usize][P, T, S, N](
        plane: &Plane<'_, P>, border: Border, line: &WarpLine, run: Range<usize>, out: &mut [T]
    ) as edge_body
}

#[inline(always)]
fn edge_body<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
    plane: &Plane<'_, P>,
    border: Border,
    line: &WarpLine,
    run: Range<usize>,
    out: &mut [T],
) {
    let constant = border.constant().map_or(T::ZERO, T::from_f64);
    let mirrors = Mirrors::of(border, plane, N as i64);
    let mut next = run.start;
    while next < run.end {
        if let Some(mirrors) = &mirrors {
            let done = mirrors.sample::<P, T, S, N>(plane, &line.from(next), &mut out[next..run.end]);
            if done > 0 {
                next += done;
                continue;
            }
        }
        let i = next;
        next += 1;
        let (y, x) = line.at(i);
        let (top, left) = (((y >> 32) + S::FIRST) as isize, ((x >> 32) + S::FIRST) as isize);
        let cols: [Option<usize>; N] = from_fn(|j| border.map(left + j.cast_signed(), plane.width));
        let rows: [Option<&[P]>; N] = from_fn(|k| plane.resolve(top + k.cast_signed(), border).map(|y| plane.row(y)));
        [out[i]] = S::sample(&[y as u32], &[x as u32], |k, j| match (rows[k], cols[j]) {
            (Some(row), Some(x)) => [widened(row[x])],
            _ => [constant],
        });
    }
}

for_least_isa! {
    /// Computes samples that read only the constant.
    fn outside[T: Pixel, S: Sampler<N>, const N: usize][T, S, N](
        constant: T, line: &WarpLine, run: Range<usize>, out: &mut [T]
    ) as outside_body
}

#[inline(always)]
fn outside_body<T: Pixel, S: Sampler<N>, const N: usize>(
    constant: T,
    line: &WarpLine,
    run: Range<usize>,
    out: &mut [T],
) {
    // Between equal pixels, `lerp` returns the same for any fraction, and weighted zeros sum to +0 for any weights.
    // With other constants, cubic weights round depending on the fraction.
    if N <= 2 || constant == T::ZERO {
        let [value] = S::sample(&[0], &[0], |_, _| [constant]);
        out[run].fill(value);
        return;
    }
    for i in run {
        let (y, x) = line.at(i);
        [out[i]] = S::sample(&[y as u32], &[x as u32], |_, _| [constant]);
    }
}
