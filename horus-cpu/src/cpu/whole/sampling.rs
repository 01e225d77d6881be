//! Samples at positions given by the pixels of other images.

use super::{View, each_chunk, grain, view};
use crate::cpu::simd::{CACHED, Isa, prefetch};
use crate::cpu::versions::for_each_isa;
use horus_base::dtype::{DType, Float, Pixel, Scalar};
use horus_base::error::DeviceError;
use horus_base::shape::{Border, Shape, Window};
use horus_host::device::{Geometry, LaunchInput};
use horus_plan::ops::sampling::Sampling;

/// Output geometry, instruction set and threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct To {
    pub(super) geometry: Geometry,
    pub(super) rows: Window,
    pub(super) threads: usize,
    pub(super) isa: Isa,
}

/// Positions of either type, read row by row, so that kernels are not compiled for each pair of
/// types.
pub(super) struct Positions<'a> {
    axes: Vec<Axis<'a>>,
}

/// Positions along an axis.
enum Axis<'a> {
    Single(View<'a, f32>),
    Double(View<'a, f64>),
}

impl<'a> Positions<'a> {
    /// The positions in the inputs after the first.
    pub(super) fn of(inputs: &[LaunchInput<'a>]) -> Result<Positions<'a>, DeviceError> {
        let axis = |i: usize| -> Result<Axis<'a>, DeviceError> {
            Ok(match inputs[i].geometry.dtype {
                DType::F32 => Axis::Single(view(inputs, i)?),
                _ => Axis::Double(view(inputs, i)?),
            })
        };
        Ok(Positions { axes: (1..inputs.len()).map(axis).collect::<Result<_, _>>()? })
    }
}

impl Axis<'_> {
    /// A row of a plane, converted in `buffer` if it has to be.
    fn row<'b>(&'b self, plane: usize, y: isize, buffer: &'b mut Vec<f64>) -> &'b [f64] {
        match self {
            Axis::Single(view) => {
                buffer.clear();
                buffer.extend(view.plane(plane).row(y).iter().map(|v| f64::from(*v)));
                buffer
            }
            Axis::Double(view) => view.plane(plane).row(y),
        }
    }
}

/// Positions processed together.
const BLOCK: usize = 64;
/// First pixel of a sample at a NaN position: further away than any other.
const NOWHERE: i32 = i32::MIN;

/// First pixels and fractions of samples along an axis.
struct Taps<F, const N: usize> {
    first: [i32; BLOCK],
    t: [F; BLOCK],
    weights: [[F; BLOCK]; N],
}

impl<F: Float, const N: usize> Taps<F, N> {
    const NONE: Taps<F, N> = Taps { first: [NOWHERE; BLOCK], t: [F::ZERO; BLOCK], weights: [[F::ZERO; BLOCK]; N] };

    /// Returns `true` if all pixels of sample `i` lie in an image of `n` pixels.
    #[inline(always)]
    fn inside(&self, i: usize, n: usize) -> bool {
        // Fewer than 2^31 pixels along an axis.
        n >= N && self.first[i].cast_unsigned() <= (n - N) as u32
    }

    /// The first pixel of sample `i`, which lies in the image.
    #[inline(always)]
    fn start(&self, i: usize) -> usize {
        self.first[i].cast_unsigned() as usize
    }

    /// The pixels of sample `i`, `None` where the constant is read.
    #[inline(always)]
    fn at(&self, i: usize, border: Border, n: usize) -> [Option<usize>; N] {
        std::array::from_fn(|k| border.map(self.first[i] as isize + k.cast_signed(), n))
    }

    /// Interpolates sample `i` from the values of its pixels.
    #[inline(always)]
    fn between(&self, i: usize, value: impl Fn(usize) -> F) -> F {
        if N == 1 {
            return value(0);
        }
        if N == 2 {
            let (a, b) = (value(0), value(1));
            return self.t[i].fma(b.sub(a), a);
        }
        let mut sum = F::ZERO;
        for k in 0..N {
            sum = self.weights[k][i].fma(value(k), sum);
        }
        sum
    }
}

for_each_isa! {
    /// The pixels of samples at up to a block of positions.
    fn split[F: Float, const N: usize][F, N](how: Sampling, positions: &[f64], to: &mut Taps<F, N>) as split_of
}

#[inline(always)]
fn split_of<F: Float, const N: usize>(_: Isa, how: Sampling, positions: &[f64], to: &mut Taps<F, N>) {
    // A loop for each interpolation, in which it is a constant.
    match how {
        Sampling::Nearest => split_by(Sampling::Nearest, positions, to),
        Sampling::Linear => split_by(Sampling::Linear, positions, to),
        Sampling::Cubic => split_by(Sampling::Cubic, positions, to),
        Sampling::Spline2 => split_by(Sampling::Spline2, positions, to),
        Sampling::Spline3 => split_by(Sampling::Spline3, positions, to),
        Sampling::Spline4 => split_by(Sampling::Spline4, positions, to),
        Sampling::Spline5 => split_by(Sampling::Spline5, positions, to),
    }
}

#[inline(always)]
fn split_by<F: Float, const N: usize>(how: Sampling, positions: &[f64], to: &mut Taps<F, N>) {
    if how.taps() != N {
        return;
    }
    let Taps { first, t, weights } = to;
    for ((position, first), t) in positions.iter().zip(first).zip(t.iter_mut()) {
        // Positions are clamped to within 2^30 pixels.
        (*first, *t) = how.split::<F>(*position).map_or((NOWHERE, F::ZERO), |(first, t)| (first as i32, t));
    }
    if N > 2 {
        for (i, t) in t.iter().enumerate().take(positions.len()) {
            weights.iter_mut().zip(how.weights(*t)).for_each(|(all, weight)| all[i] = weight);
        }
    }
}

/// Samples of `image` at positions.
pub(super) fn remap<T: Pixel>(
    image: View<'_, T>,
    positions: &Positions<'_>,
    how: (Sampling, Border, Option<Scalar>),
    out: &mut [T],
    to: &To,
) {
    match how.0.taps() {
        1 => remap_by::<T, 1>(image, positions, how, out, to),
        2 => remap_by::<T, 2>(image, positions, how, out, to),
        3 => remap_by::<T, 3>(image, positions, how, out, to),
        4 => remap_by::<T, 4>(image, positions, how, out, to),
        5 => remap_by::<T, 5>(image, positions, how, out, to),
        _ => remap_by::<T, 6>(image, positions, how, out, to),
    }
}

fn remap_by<T: Pixel, const N: usize>(
    image: View<'_, T>,
    positions: &Positions<'_>,
    (how, border, outside): (Sampling, Border, Option<Scalar>),
    out: &mut [T],
    to: &To,
) {
    let To { geometry, rows, threads, isa } = *to;
    let shape = geometry.shape;
    if rows.is_empty() || shape.width == 0 {
        return;
    }
    let axes = &positions.axes;
    for p in 0..shape.planes() {
        let level = if axes.len() == 3 { p / shape.channels } else { 0 };
        let from = Sampled { image, border, plane: p, channel: p % shape.channels };
        let at = geometry.row(p, rows.start);
        let lines = grain(shape.width);
        each_chunk(threads, &mut out[at..at + rows.len() * shape.width], lines * shape.width, |k, out| {
            let mut buffers = [const { Vec::new() }; 3];
            let mut taps = [const { Taps::<T::Interp, N>::NONE }; 3];
            for (j, out) in out.chunks_mut(shape.width).enumerate() {
                let row = rows.start + (k * lines + j).cast_signed();
                let mut places: [&[f64]; 3] = [&[]; 3];
                for ((axis, buffer), place) in axes.iter().rev().zip(&mut buffers).zip(&mut places) {
                    *place = axis.row(level, row, buffer);
                }
                for (b, out) in out.chunks_mut(BLOCK).enumerate() {
                    for (place, taps) in places.iter().zip(&mut taps).take(axes.len()) {
                        split(isa, how, &place[b * BLOCK..][..out.len()], taps);
                    }
                    let [x, y, z] = &taps;
                    samples(isa, &from, y, x, (axes.len() == 3).then_some(z), out);
                    if let Some(value) = outside.map(T::from_scalar) {
                        let of = image.geometry.shape;
                        let extents = [of.width, of.height, of.depth];
                        for (place, last) in places.iter().zip(extents.map(|n| n as f64 - 1.0)).take(axes.len()) {
                            let at = &place[b * BLOCK..][..out.len()];
                            let beyond = |at: f64| !(at >= 0.0 && at <= last);
                            out.iter_mut().zip(at).for_each(|(out, at)| *out = if beyond(*at) { value } else { *out });
                        }
                    }
                }
            }
        });
    }
}

/// The sampled pixels: a plane, or that channel of all levels.
#[derive(Clone, Copy)]
struct Sampled<'a, T> {
    image: View<'a, T>,
    border: Border,
    plane: usize,
    channel: usize,
}

for_each_isa! {
    /// The samples of up to a block of positions.
    fn samples[T: Pixel, const N: usize][T, N](
        from: &Sampled<'_, T>,
        y: &Taps<T::Interp, N>,
        x: &Taps<T::Interp, N>,
        z: Option<&Taps<T::Interp, N>>,
        out: &mut [T],
    ) as samples_of
}

#[inline(always)]
fn samples_of<T: Pixel, const N: usize>(
    _: Isa,
    from: &Sampled<'_, T>,
    y: &Taps<T::Interp, N>,
    x: &Taps<T::Interp, N>,
    z: Option<&Taps<T::Interp, N>>,
    out: &mut [T],
) {
    let (geometry, data) = (&from.image.geometry, from.image.data);
    let Shape { depth, height, width, channels, .. } = geometry.shape;
    let first = |plane: usize| geometry.row(plane, 0);
    if z.is_none() && size_of_val(data) > CACHED {
        // All at once: one after the other they would be waited for.
        for i in 0..out.len().min(BLOCK) {
            if y.inside(i, height) && x.inside(i, width) {
                let corner = first(from.plane) + y.start(i) * width + x.start(i);
                (0..N).for_each(|k| prefetch(data.as_ptr().wrapping_add(corner + k * width)));
            }
        }
    }
    let all_inside = |i: usize| y.inside(i, height) && x.inside(i, width) && z.is_none_or(|z| z.inside(i, depth));
    for (g, out) in out.chunks_mut(TOGETHER).enumerate() {
        let at = g * TOGETHER;
        if is_together::<T, N>() && out.len() == TOGETHER && (at..at + TOGETHER).all(all_inside) {
            // The first pixels of the samples in each of their levels.
            let mut levels = [[std::ptr::null(); TOGETHER]; N];
            let count = if z.is_some() { N } else { 1 };
            for (k, corners) in levels.iter_mut().enumerate().take(count) {
                for (i, corner) in (at..).zip(corners) {
                    let plane = z.map_or(from.plane, |z| (z.start(i) + k) * channels + from.channel);
                    let plane = &data[first(plane)..][..height * width];
                    *corner = plane.as_ptr().wrapping_add(y.start(i) * width + x.start(i));
                }
            }
            together(&levels[..count], width, (y, x, z), at, out);
            continue;
        }
        for (i, out) in (at..).zip(out) {
            if !all_inside(i) {
                *out = at_edge(from, y, x, z, i);
                continue;
            }
            let corner = y.start(i) * width + x.start(i);
            let in_plane = |plane: usize| {
                y.between(i, |k| {
                    let row = &data[plane + corner + k * width..][..N];
                    x.between(i, |j| row[j].to_interp())
                })
            };
            *out = match z {
                _ if N == 1 => data[first(z.map_or(from.plane, |z| z.start(i) * channels + from.channel)) + corner],
                None => T::from_interp(in_plane(first(from.plane))),
                Some(z) => {
                    T::from_interp(z.between(i, |k| in_plane(first((z.start(i) + k) * channels + from.channel))))
                }
            };
        }
    }
}

/// The pixels of samples along rows, columns and, of volumes, levels.
type Axes<'a, F, const N: usize> = (&'a Taps<F, N>, &'a Taps<F, N>, Option<&'a Taps<F, N>>);

/// Samples computed together.
const TOGETHER: usize = 4;

/// Returns `true` for splines of `f64` with an even number of pixels along an axis, whose samples are computed together.
#[inline(always)]
const fn is_together<T: Pixel, const N: usize>() -> bool {
    cfg!(target_arch = "x86_64")
        && matches!((T::DTYPE, T::Interp::DTYPE), (DType::F64, DType::F64))
        && N > 2
        && N.is_multiple_of(2)
}

/// The samples from `at` on, by the first pixels of each in each level; all their pixels lie in the image.
#[inline(always)]
fn together<T: Pixel, const N: usize>(
    levels: &[[*const T; TOGETHER]],
    width: usize,
    taps: Axes<'_, T::Interp, N>,
    at: usize,
    out: &mut [T],
) {
    #[cfg(target_arch = "x86_64")]
    if is_together::<T, N>() {
        // SAFETY: kernels run with AVX2 and FMA, all types are `f64`, the pixels lie in the image, and
        // there are as many positions and results.
        unsafe { x86::together(levels, width, taps, at, out.as_mut_ptr().cast()) }
    }
    let _ = (levels, width, taps, at, out);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Axes, Float, TOGETHER, Taps};

    /// Each row of a sample is loaded in pairs of pixels, beside those of the sample after the next: the
    /// pairs of four samples are interleaved by two shuffles. (Gathers are slower than single samples.)
    ///
    /// # Safety
    /// `T` and `F` are `f64`; the pixels of the samples lie in the image, whose rows have `width` pixels, and four
    /// results can be written.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn together<T, F: Float, const N: usize>(
        levels: &[[*const T; TOGETHER]],
        width: usize,
        (y, x, z): Axes<'_, F, N>,
        at: usize,
        out: *mut f64,
    ) {
        // SAFETY: vouched for by the caller.
        unsafe {
            let weights = |taps: &Taps<F, N>, k: usize| _mm256_loadu_pd(taps.weights[k][at..][..4].as_ptr().cast());
            let mut total = _mm256_setzero_pd();
            for (level, corners) in levels.iter().enumerate() {
                let mut sum = _mm256_setzero_pd();
                for k in 0..N {
                    let rows = corners.map(|corner| corner.cast::<f64>().add(k * width));
                    let mut across = _mm256_setzero_pd();
                    for j in (0..N).step_by(2) {
                        let pairs = |a: usize, b: usize| {
                            let low = _mm256_castpd128_pd256(_mm_loadu_pd(rows[a].add(j)));
                            _mm256_insertf128_pd::<1>(low, _mm_loadu_pd(rows[b].add(j)))
                        };
                        let (even, odd) = (pairs(0, 2), pairs(1, 3));
                        across = _mm256_fmadd_pd(weights(x, j), _mm256_unpacklo_pd(even, odd), across);
                        across = _mm256_fmadd_pd(weights(x, j + 1), _mm256_unpackhi_pd(even, odd), across);
                    }
                    sum = _mm256_fmadd_pd(weights(y, k), across, sum);
                }
                total = match z {
                    Some(z) => _mm256_fmadd_pd(weights(z, level), sum, total),
                    None => sum,
                };
            }
            _mm256_storeu_pd(out, total);
        }
    }
}

/// A sample whose pixels are not all in the image.
#[inline(always)]
fn at_edge<T: Pixel, const N: usize>(
    from: &Sampled<'_, T>,
    y: &Taps<T::Interp, N>,
    x: &Taps<T::Interp, N>,
    z: Option<&Taps<T::Interp, N>>,
    i: usize,
) -> T {
    if y.first[i] == NOWHERE || x.first[i] == NOWHERE || z.is_some_and(|z| z.first[i] == NOWHERE) {
        return T::from_f64(f64::NAN);
    }
    let (geometry, data, border) = (&from.image.geometry, from.image.data, from.border);
    let Shape { depth, height, width, channels, .. } = geometry.shape;
    let constant = border.constant().map_or(T::ZERO, T::from_f64);
    let (rows, columns) = (y.at(i, border, height), x.at(i, border, width));
    // Closures that compute are inlined only where they are called once, and elsewhere lack the features
    // of the instruction set: this one only loads.
    let pixels = |plane: Option<usize>| {
        let mut pixels = [[constant; N]; N];
        let Some(first) = plane.map(|plane| geometry.row(plane, 0)) else { return pixels };
        for (pixels, y) in pixels.iter_mut().zip(rows) {
            let Some(row) = y.map(|y| &data[first + y * width..][..width]) else { continue };
            for (pixel, x) in pixels.iter_mut().zip(columns) {
                *pixel = x.map_or(constant, |x| row[x]);
            }
        }
        pixels
    };
    let between = |pixels: &[[T; N]; N]| y.between(i, |k| x.between(i, |j| pixels[k][j].to_interp()));
    let levels = z.map(|z| z.at(i, border, depth));
    let plane = |k: usize| match levels {
        Some(levels) => levels[k].map(|z| z * channels + from.channel),
        None => Some(from.plane),
    };
    if N == 1 {
        return pixels(plane(0))[0][0];
    }
    let mut levels = [T::Interp::ZERO; N];
    for (k, level) in levels.iter_mut().enumerate().take(if z.is_some() { N } else { 1 }) {
        *level = between(&pixels(plane(k)));
    }
    T::from_interp(z.map_or(levels[0], |z| z.between(i, |k| levels[k])))
}
