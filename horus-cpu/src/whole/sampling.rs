//! Samples at positions given by the pixels of other images.
//!
//! Blocks of positions are split into pixels and weights. Samples whose pixels are all in the image are computed
//! several at a time, without borders; others one by one (`at_edge`). Rows of positions that keep levels, rows and
//! columns separate, for example for a change of scale, are interpolated along one axis after the other (`separable`).

mod separable;

use self::separable::SeparableSampler;
use super::{CpuOperation, GRAIN, OperationOutput, TypedInput, out, type_of, view};
use crate::parallel;
use crate::simd::{CACHED, Isa, prefetch};
use crate::versions::{for_each_isa, for_least_isa};
use horus_base::dispatch;
use horus_base::dtype::{DType, Float, Pixel, Scalar};
use horus_base::error::DeviceError;
use horus_base::shape::{Border, Shape};
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Remap;
use horus_plan::ops::sampling::{MOST_TAPS, Sampling};

impl CpuOperation for Remap {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        let positions = SampleCoordinates::of(inputs)?;
        let how = (self.sampling, self.border, self.outside);
        dispatch!(type_of(inputs), T => remap(view::<T>(inputs, 0)?, &positions, how, out(output)?, to));
        Ok(())
    }
}

/// Positions of either type, read row by row, so that kernels are not compiled for each pair of types.
struct SampleCoordinates<'a> {
    axes: Vec<AxisCoordinates<'a>>,
}

/// Positions along an axis.
enum AxisCoordinates<'a> {
    Single(TypedInput<'a, f32>),
    Double(TypedInput<'a, f64>),
}

impl<'a> SampleCoordinates<'a> {
    /// The positions in the inputs after the first.
    pub(super) fn of(inputs: &[LaunchInput<'a>]) -> Result<SampleCoordinates<'a>, DeviceError> {
        let axis = |i: usize| -> Result<AxisCoordinates<'a>, DeviceError> {
            Ok(match inputs[i].geometry.dtype {
                DType::F32 => AxisCoordinates::Single(view(inputs, i)?),
                _ => AxisCoordinates::Double(view(inputs, i)?),
            })
        };
        Ok(SampleCoordinates { axes: (1..inputs.len()).map(axis).collect::<Result<_, _>>()? })
    }
}

impl AxisCoordinates<'_> {
    /// A row of a plane, converted in `buffer` if necessary.
    fn row<'b>(&'b self, plane: usize, y: isize, buffer: &'b mut Vec<f64>) -> &'b [f64] {
        match self {
            AxisCoordinates::Single(view) => {
                buffer.clear();
                buffer.extend(view.plane(plane).row(y).iter().map(|v| f64::from(*v)));
                buffer
            }
            AxisCoordinates::Double(view) => view.plane(plane).row(y),
        }
    }
}

/// Positions processed together.
const BLOCK: usize = 64;
/// First pixel of a sample at a NaN position: further away than any other.
const NOWHERE: i32 = i32::MIN;

/// The interpolation, with coefficients of type `F`.
#[derive(Clone, Copy)]
struct Weighing<F, const N: usize> {
    how: Sampling,
    /// For a B-spline: the polynomial of each pixel, highest power first.
    pieces: Option<[[F; N]; N]>,
}

impl<F: Float, const N: usize> Weighing<F, N> {
    fn new(how: Sampling) -> Weighing<F, N> {
        let pieces = how.pieces().map(|(pieces, divisor)| {
            let mut all = [[F::ZERO; N]; N];
            for (all, piece) in all.iter_mut().zip(pieces) {
                all.iter_mut().zip(*piece).for_each(|(c, of)| *c = F::from_f64(of / divisor));
            }
            all
        });
        Weighing { how, pieces }
    }
}

/// First pixels, fractions and weights of samples along an axis.
#[derive(Clone)]
struct SampleTaps<F, const N: usize> {
    first: [i32; BLOCK],
    t: [F; BLOCK],
    weights: [[F; BLOCK]; N],
}

impl<F: Float, const N: usize> SampleTaps<F, N> {
    const NONE: SampleTaps<F, N> =
        SampleTaps { first: [NOWHERE; BLOCK], t: [F::ZERO; BLOCK], weights: [[F::ZERO; BLOCK]; N] };

    /// Returns `true` if all pixels of sample `i` are in an image of `n` pixels.
    #[inline(always)]
    fn inside(&self, i: usize, n: usize) -> bool {
        // Fewer than 2^31 pixels along an axis.
        n >= N && self.first[i].cast_unsigned() <= (n - N) as u32
    }

    /// Marks the samples of which some pixels are outside an image of `n` pixels.
    #[inline(always)]
    fn mark(&self, n: usize, beyond: &mut [u8; BLOCK]) {
        let last = if n >= N { (n - N) as u32 } else { return beyond.fill(1) };
        for i in 0..BLOCK {
            beyond[i] |= u8::from(self.first[i].cast_unsigned() > last);
        }
    }

    /// The first pixel of sample `i`, which is in the image.
    #[inline(always)]
    fn start(&self, i: usize) -> usize {
        self.first[i].cast_unsigned() as usize
    }

    /// The pixels of sample `i`, `None` where the constant is read.
    #[inline(always)]
    fn at(&self, i: usize, border: Border, n: usize) -> [Option<usize>; N] {
        let mut at = [None; N];
        for (k, at) in at.iter_mut().enumerate() {
            *at = place(self.first[i] as isize + k.cast_signed(), border, n);
        }
        at
    }

    /// Fraction and weights of sample `i`.
    #[inline(always)]
    fn of(&self, i: usize) -> SampleWeights<F, N> {
        let mut weights = [F::ZERO; N];
        for k in 0..N {
            weights[k] = self.weights[k][i];
        }
        SampleWeights { t: self.t[i], weights }
    }
}

/// The pixel read at position `at` of `n` pixels; `None` for the constant of the border.
#[inline(always)]
fn place(at: isize, border: Border, n: usize) -> Option<usize> {
    if at >= 0 && at < n.cast_signed() { Some(at.cast_unsigned()) } else { border.map(at, n) }
}

/// Fraction and weights of a sample along an axis.
#[derive(Clone, Copy)]
struct SampleWeights<F, const N: usize> {
    t: F,
    weights: [F; N],
}

impl<F: Float, const N: usize> SampleWeights<F, N> {
    /// Interpolates between the pixels.
    #[inline(always)]
    fn between(&self, values: &[F; N]) -> F {
        if N == 1 {
            return values[0];
        }
        if N == 2 {
            return self.t.fma(values[1].sub(values[0]), values[0]);
        }
        let mut sum = F::ZERO;
        for k in 0..N {
            sum = self.weights[k].fma(values[k], sum);
        }
        sum
    }
}

for_each_isa! {
    /// The pixels of samples at a block of positions.
    fn split[F: Float, const N: usize][F, N](
        how: &Weighing<F, N>, positions: &[f64; BLOCK], to: &mut SampleTaps<F, N>
    ) as split_of
}

#[inline(always)]
fn split_of<F: Float, const N: usize>(
    _: Isa,
    how: &Weighing<F, N>,
    positions: &[f64; BLOCK],
    to: &mut SampleTaps<F, N>,
) {
    // A loop for each interpolation, in which it is a constant.
    match how.how {
        Sampling::Nearest => split_by(Sampling::Nearest, positions, to),
        Sampling::Linear => split_by(Sampling::Linear, positions, to),
        Sampling::Cubic => split_by(Sampling::Cubic, positions, to),
        Sampling::Spline2 => split_by(Sampling::Spline2, positions, to),
        Sampling::Spline3 => split_by(Sampling::Spline3, positions, to),
        Sampling::Spline4 => split_by(Sampling::Spline4, positions, to),
        Sampling::Spline5 => split_by(Sampling::Spline5, positions, to),
    }
    if let Some(pieces) = &how.pieces {
        // As in `Sampling::weights`, one pixel after the other.
        for (piece, weights) in pieces.iter().zip(&mut to.weights) {
            for i in 0..BLOCK {
                let mut sum = piece[0];
                for k in 1..N {
                    sum = sum.fma(to.t[i], piece[k]);
                }
                weights[i] = sum;
            }
        }
    } else if N == 4 {
        for i in 0..BLOCK {
            let all = how.how.weights(to.t[i]);
            for k in 0..N {
                to.weights[k][i] = all[k];
            }
        }
    }
}

#[inline(always)]
fn split_by<F: Float, const N: usize>(how: Sampling, positions: &[f64; BLOCK], to: &mut SampleTaps<F, N>) {
    if how.taps() != N {
        return;
    }
    for i in 0..BLOCK {
        (to.first[i], to.t[i]) = how.split_finite(positions[i]);
    }
    for i in 0..BLOCK {
        let finite = positions[i].is_finite();
        to.first[i] = if finite { to.first[i] } else { NOWHERE };
        to.t[i] = if finite { to.t[i] } else { F::ZERO };
    }
}

/// Samples of `image` at positions.
fn remap<T: Pixel>(
    image: TypedInput<'_, T>,
    positions: &SampleCoordinates<'_>,
    how: (Sampling, Border, Option<Scalar>),
    out: &mut [T],
    to: &OperationOutput,
) {
    match how.0.taps() {
        1 => remap_by::<T, 1>(image, positions, how, out, to),
        2 => remap_by::<T, 2>(image, positions, how, out, to),
        3 => remap_by::<T, 3>(image, positions, how, out, to),
        4 => remap_by::<T, 4>(image, positions, how, out, to),
        5 => remap_by::<T, 5>(image, positions, how, out, to),
        _ => remap_by::<T, MOST_TAPS>(image, positions, how, out, to),
    }
}

fn remap_by<T: Pixel, const N: usize>(
    image: TypedInput<'_, T>,
    positions: &SampleCoordinates<'_>,
    (how, border, outside): (Sampling, Border, Option<Scalar>),
    out: &mut [T],
    to: &OperationOutput,
) {
    let OperationOutput { geometry, rows, threads, .. } = *to;
    let shape = geometry.shape;
    if rows.is_empty() || shape.width == 0 {
        return;
    }
    let of = image.geometry.shape;
    assert!(of.is_empty() || geometry_end(&image) <= image.data.len(), "the image is held as a whole");
    let how = Weighing::new(how);
    let job = SamplingJob::<T, N> { image, border, outside: outside.map(T::from_scalar), how, positions, to };
    // Rows of a plane for each task.
    let lines = GRAIN.div_ceil(shape.width);
    let held = geometry.plane();
    let from = geometry.row(0, rows.start);
    let mut parts = Vec::new();
    for (plane, out) in out.chunks_mut(held).take(shape.planes()).enumerate() {
        let out = &mut out[from..from + rows.len() * shape.width];
        for (k, out) in out.chunks_mut(lines * shape.width).enumerate() {
            parts.push((plane, rows.start + (k * lines).cast_signed(), out));
        }
    }
    parallel::for_each(threads, parts, |(plane, row, out)| job.rows(plane, row, out));
}

/// The end of the image's last plane in memory.
fn geometry_end<T>(image: &TypedInput<'_, T>) -> usize {
    let shape = image.geometry.shape;
    image.geometry.row(shape.planes() - 1, 0) + shape.height * shape.width
}

/// The sampled image, and the positions.
struct SamplingJob<'a, T: Pixel, const N: usize> {
    image: TypedInput<'a, T>,
    border: Border,
    /// The value at positions beyond the pixels, if the image is not sampled there.
    outside: Option<T>,
    how: Weighing<T::Interp, N>,
    positions: &'a SampleCoordinates<'a>,
    to: &'a OperationOutput,
}

impl<T: Pixel, const N: usize> SamplingJob<'_, T, N> {
    /// Computes the rows of a plane from `row` on.
    fn rows(&self, plane: usize, row: isize, out: &mut [T]) {
        let OperationOutput { geometry, isa, .. } = *self.to;
        let shape = geometry.shape;
        let axes = &self.positions.axes;
        let volume = axes.len() == 3;
        let of = self.image.geometry.shape;
        let extents = [of.width, of.height, of.depth];
        let level = if volume { plane / shape.channels } else { 0 };
        let from = SampledPlane::new(&self.image, self.border, plane, plane % shape.channels, volume);
        let mut buffers = [const { Vec::new() }; 3];
        let mut taps = [const { SampleTaps::<T::Interp, N>::NONE }; 3];
        let mut apart = SeparableSampler::new(self.outside);
        for (out, row) in out.chunks_mut(shape.width).zip(row..) {
            let mut places: [&[f64]; 3] = [&[]; 3];
            for ((axis, buffer), place) in axes.iter().rev().zip(&mut buffers).zip(&mut places) {
                *place = axis.row(level, row, buffer);
            }
            let used = &places[..axes.len()];
            if apart.row(isa, &from, &self.how, used, out) {
                continue;
            }
            for (b, out) in out.chunks_mut(BLOCK).enumerate() {
                let mut skipped = [false; BLOCK];
                for ((place, taps), extent) in used.iter().zip(&mut taps).zip(extents) {
                    let mut rest = [0.0; BLOCK];
                    let place = block(place, b, &mut rest);
                    split(isa, &self.how, place, taps);
                    if self.outside.is_some() {
                        beyond(place, extent, &mut skipped);
                    }
                }
                let [x, y, z] = &taps;
                samples(&from, (y, x, volume.then_some(z)), &skipped, out);
                if let Some(value) = self.outside {
                    fill(value, &skipped, out);
                }
            }
        }
    }
}

/// A whole block of positions, with zeros after the last.
#[inline(always)]
fn block<'a>(positions: &'a [f64], b: usize, rest: &'a mut [f64; BLOCK]) -> &'a [f64; BLOCK] {
    let positions = &positions[b * BLOCK..];
    match positions.first_chunk() {
        Some(block) => block,
        None => {
            rest[..positions.len()].copy_from_slice(positions);
            rest
        }
    }
}

for_least_isa! {
    /// Overwrites the marked samples.
    fn fill[T: Pixel][T](value: T, marks: &[bool; BLOCK], out: &mut [T]) as fill_of
}

#[inline(always)]
fn fill_of<T: Pixel>(value: T, marks: &[bool; BLOCK], out: &mut [T]) {
    if marks.iter().fold(true, |none, marked| none & !marked) {
        return;
    }
    for (out, marked) in out.iter_mut().zip(marks) {
        *out = if *marked { value } else { *out };
    }
}

for_least_isa! {
    /// Marks the positions that are not between the first and the last of `n` pixels.
    fn beyond[][](positions: &[f64; BLOCK], n: usize, marks: &mut [bool; BLOCK]) as beyond_of
}

#[inline(always)]
fn beyond_of(positions: &[f64; BLOCK], n: usize, marks: &mut [bool; BLOCK]) {
    let last = n as f64 - 1.0;
    for i in 0..BLOCK {
        marks[i] |= !(positions[i] >= 0.0 && positions[i] <= last);
    }
}

/// The sampled pixels: a plane, or a channel of all levels.
#[derive(Clone, Copy)]
struct SampledPlane<'a, T> {
    data: &'a [T],
    border: Border,
    shape: Shape,
    /// The first pixel (in a volume, of level 0), and the distance between levels.
    first: usize,
    level: usize,
    /// Levels are sampled, too.
    volume: bool,
}

impl<'a, T: Pixel> SampledPlane<'a, T> {
    fn new(
        image: &TypedInput<'a, T>,
        border: Border,
        plane: usize,
        channel: usize,
        volume: bool,
    ) -> SampledPlane<'a, T> {
        let geometry = &image.geometry;
        let first = if geometry.shape.is_empty() { 0 } else { geometry.row(if volume { channel } else { plane }, 0) };
        let level = geometry.shape.channels * geometry.plane();
        SampledPlane { data: image.data, border, shape: geometry.shape, first, level, volume }
    }

    /// The value read beyond the edges with a constant border.
    fn constant(&self) -> T {
        self.border.constant().map_or(T::ZERO, T::from_f64)
    }
}

/// The pixels of samples along rows, columns and, in a volume, levels.
type TapsByAxis<'a, F, const N: usize> = (&'a SampleTaps<F, N>, &'a SampleTaps<F, N>, Option<&'a SampleTaps<F, N>>);

/// Samples computed together.
const TOGETHER: usize = 8;

for_least_isa! {
    /// Computes the samples of up to a block of positions, except the `skipped` ones.
    fn samples[T: Pixel, const N: usize][T, N](
        from: &SampledPlane<'_, T>,
        axes: TapsByAxis<'_, T::Interp, N>,
        skipped: &[bool; BLOCK],
        out: &mut [T],
    ) as samples_of
}

#[inline(always)]
fn samples_of<T: Pixel, const N: usize>(
    from: &SampledPlane<'_, T>,
    axes: TapsByAxis<'_, T::Interp, N>,
    skipped: &[bool; BLOCK],
    out: &mut [T],
) {
    let (y, x, z) = axes;
    let Shape { depth, height, width, .. } = from.shape;
    if size_of_val(from.data) > CACHED {
        // Prefetches all at once: one after the other, they would be waited for. In a volume, whose samples have more
        // pixels, only every fourth: the others are often in the same cache lines.
        let step = if z.is_some() { 4 } else { 1 };
        for i in (0..out.len().min(BLOCK)).step_by(step) {
            if !(y.inside(i, height) && x.inside(i, width) && z.is_none_or(|z| z.inside(i, depth))) {
                continue;
            }
            let corner = from.first + y.start(i) * width + x.start(i) + z.map_or(0, |z| z.start(i) * from.level);
            for level in 0..if z.is_some() { N } else { 1 } {
                for row in 0..N {
                    prefetch(from.data.as_ptr().wrapping_add(corner + level * from.level + row * width));
                }
            }
        }
    }
    let mut marks = [0; BLOCK];
    y.mark(height, &mut marks);
    x.mark(width, &mut marks);
    if let Some(z) = z {
        z.mark(depth, &mut marks);
    }
    let (marks, _) = marks.as_chunks::<TOGETHER>();
    for ((g, out), marks) in out.chunks_mut(TOGETHER).enumerate().zip(marks) {
        let at = g * TOGETHER;
        let whole = out.len() == TOGETHER;
        if let Some(out) = out.first_chunk_mut::<TOGETHER>().filter(|_| whole && *marks == [0; TOGETHER]) {
            // SAFETY: all pixels of the samples are in the image, which is in memory as a whole.
            unsafe { sample_group(from, axes, at, out) }
            continue;
        }
        for (i, out) in (at..).zip(out) {
            if !skipped[i] {
                *out = at_edge(from, axes, i);
            }
        }
    }
}

/// Computes the samples from `at` on.
///
/// # Safety
/// Their pixels are in the image.
#[inline(always)]
unsafe fn sample_group<T: Pixel, const N: usize>(
    from: &SampledPlane<'_, T>,
    axes: TapsByAxis<'_, T::Interp, N>,
    at: usize,
    out: &mut [T; TOGETHER],
) {
    let (y, x, z) = axes;
    let width = from.shape.width;
    let mut corners = [from.data.as_ptr(); TOGETHER];
    for (l, corner) in corners.iter_mut().enumerate() {
        let first = from.first + y.start(at + l) * width + x.start(at + l);
        *corner = corner.wrapping_add(first + z.map_or(0, |z| z.start(at + l) * from.level));
    }
    #[cfg(target_arch = "x86_64")]
    if N.is_multiple_of(2) {
        // SAFETY: kernels run with AVX2 and FMA; types are as stated, and the pixels are in the image.
        unsafe {
            match (T::DTYPE, T::Interp::DTYPE) {
                (DType::F64, DType::F64) => {
                    let [a, b, c, d, e, f, g, h] = corners.map_pointers();
                    let out = out.as_mut_ptr().cast::<f64>();
                    x86::doubles(&[a, b, c, d], (from.level, width), axes, at, out);
                    x86::doubles(&[e, f, g, h], (from.level, width), axes, at + 4, out.wrapping_add(4));
                    return;
                }
                (DType::F32, DType::F32) => {
                    x86::singles(&corners.map_pointers(), (from.level, width), axes, at, out.as_mut_ptr().cast());
                    return;
                }
                _ => {}
            }
        }
    }
    if N == 1 {
        for (out, corner) in out.iter_mut().zip(corners) {
            // SAFETY: promised by the caller.
            *out = unsafe { *corner };
        }
        return;
    }
    let mut total = [T::Interp::ZERO; TOGETHER];
    for k in 0..if z.is_some() { N } else { 1 } {
        let mut sum = [T::Interp::ZERO; TOGETHER];
        for r in 0..N {
            let mut across = [T::Interp::ZERO; TOGETHER];
            for j in 0..N {
                let mut pixels = [T::Interp::ZERO; TOGETHER];
                for l in 0..TOGETHER {
                    // SAFETY: promised by the caller.
                    pixels[l] = unsafe { *corners[l].wrapping_add(k * from.level + r * width + j) }.to_interp();
                }
                add(&mut across, x, j, at, &pixels);
            }
            add(&mut sum, y, r, at, &across);
        }
        match z {
            Some(z) => add(&mut total, z, k, at, &sum),
            None => total = sum,
        }
    }
    for l in 0..TOGETHER {
        out[l] = T::from_interp(total[l]);
    }
}

/// Adds value `k` of the samples from `at` on to sums, like [`SampleWeights::between`].
#[inline(always)]
fn add<F: Float, const N: usize>(
    sums: &mut [F; TOGETHER],
    taps: &SampleTaps<F, N>,
    k: usize,
    at: usize,
    values: &[F; TOGETHER],
) {
    for l in 0..TOGETHER {
        sums[l] = match (N, k) {
            (2, 0) => values[l],
            (2, _) => taps.t[at + l].fma(values[l].sub(sums[l]), sums[l]),
            _ => taps.weights[k][at + l].fma(values[l], sums[l]),
        };
    }
}

for_least_isa! {
    /// Computes a sample some of whose pixels may be outside the image.
    fn at_edge[T: Pixel, const N: usize][T, N](
        from: &SampledPlane<'_, T>, axes: TapsByAxis<'_, T::Interp, N>, i: usize
    ) -> T as at_edge_body
}

#[inline(always)]
fn at_edge_body<T: Pixel, const N: usize>(
    from: &SampledPlane<'_, T>,
    (y, x, z): TapsByAxis<'_, T::Interp, N>,
    i: usize,
) -> T {
    if y.first[i] == NOWHERE || x.first[i] == NOWHERE || z.is_some_and(|z| z.first[i] == NOWHERE) {
        return T::from_f64(f64::NAN);
    }
    let (border, Shape { depth, height, width, .. }) = (from.border, from.shape);
    let constant = from.constant();
    let (rows, columns) = (y.at(i, border, height), x.at(i, border, width));
    let mut levels = [Some(0); N];
    if let Some(z) = z {
        levels = z.at(i, border, depth);
    }
    if N == 1 {
        let (Some(z), Some(y), Some(x)) = (levels[0], rows[0], columns[0]) else { return constant };
        return from.data[from.first + z * from.level + y * width + x];
    }
    let (down, across) = (y.of(i), x.of(i));
    let mut of_levels = [T::Interp::ZERO; N];
    for (value, level) in of_levels.iter_mut().zip(levels).take(if z.is_some() { N } else { 1 }) {
        let mut of_rows = [T::Interp::ZERO; N];
        for (value, row) in of_rows.iter_mut().zip(rows) {
            let mut pixels = [constant.to_interp(); N];
            if let (Some(level), Some(row)) = (level, row) {
                let line = &from.data[from.first + level * from.level + row * width..][..width];
                for (pixel, column) in pixels.iter_mut().zip(columns) {
                    if let Some(x) = column {
                        *pixel = line[x].to_interp();
                    }
                }
            }
            *value = across.between(&pixels);
        }
        *value = down.between(&of_rows);
    }
    T::from_interp(match z {
        Some(z) => z.of(i).between(&of_levels),
        None => of_levels[0],
    })
}

/// Pointers to pixels, of a type that the user of the pointers knows.
#[cfg(target_arch = "x86_64")]
trait MapPointers<const L: usize> {
    fn map_pointers<T>(&self) -> [*const T; L];
}

#[cfg(target_arch = "x86_64")]
impl<S, const L: usize> MapPointers<L> for [*const S; L] {
    #[inline(always)]
    fn map_pointers<T>(&self) -> [*const T; L] {
        let mut all = [std::ptr::null(); L];
        for (to, from) in all.iter_mut().zip(self) {
            *to = from.cast();
        }
        all
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{BLOCK, DType, Float, MapPointers as _, SampleTaps, TOGETHER, TapsByAxis};

    /// The address of weight `k` of the samples from `at` on, or of their fractions.
    macro_rules! weights {
        ($taps:expr, $k:expr, $at:expr) => {
            if N == 2 { &raw const $taps.t } else { &raw const $taps.weights[$k] }.cast::<F>().wrapping_add($at).cast()
        };
    }

    /// Adds value `k` to sums, like `SampleWeights::between`.
    macro_rules! add {
        ($load:ident, $fma:ident, $sub:ident, $sum:ident, $taps:expr, $k:expr, $at:expr, $value:expr) => {
            $sum = match (N, $k) {
                (2, 0) => $value,
                (2, _) => $fma($load(weights!($taps, $k, $at)), $sub($value, $sum), $sum),
                _ => $fma($load(weights!($taps, $k, $at)), $value, $sum),
            }
        };
    }

    /// Samples along a line. `$pairs` are two pixels of each: a vector of the first, and one of the second.
    macro_rules! line {
        ($zero:ident, $load:ident, $fma:ident, $sub:ident, $taps:expr, $at:expr, $from:expr, |$place:ident| $pairs:expr) => {{
            let mut across = $zero();
            for j in (0..N).step_by(2) {
                let $place = $from + j;
                let (first, second) = $pairs;
                add!($load, $fma, $sub, across, $taps, j, $at, first);
                add!($load, $fma, $sub, across, $taps, j + 1, $at, second);
            }
            across
        }};
    }

    /// Samples of all levels and rows.
    macro_rules! sampled {
        ($zero:ident, $load:ident, $store:ident, $fma:ident, $sub:ident,
         ($level:expr, $width:expr), $axes:expr, $at:expr, $out:expr, |$place:ident| $pairs:expr) => {{
            let (y, x, z) = $axes;
            let mut total = $zero();
            let levels = if z.is_some() { N } else { 1 };
            for k in 0..levels {
                let mut sum = $zero();
                for r in 0..N {
                    let from = k * $level + r * $width;
                    let across = line!($zero, $load, $fma, $sub, x, $at, from, |$place| $pairs);
                    add!($load, $fma, $sub, sum, y, r, $at, across);
                }
                match z {
                    Some(z) => add!($load, $fma, $sub, total, z, k, $at, sum),
                    None => total = sum,
                }
            }
            $store($out, total);
        }};
    }

    /// A pair of `f64` pixels at `$place`, and another pair.
    macro_rules! two_doubles {
        ($a:expr, $b:expr, $place:expr) => {
            _mm256_insertf128_pd::<1>(
                _mm256_castpd128_pd256(_mm_loadu_pd($a.wrapping_add($place))),
                _mm_loadu_pd($b.wrapping_add($place)),
            )
        };
    }

    /// The first and the second pixels of four pairs.
    macro_rules! doubles {
        ([$a:expr, $b:expr, $c:expr, $d:expr], $place:expr) => {{
            let (even, odd) = (two_doubles!($a, $c, $place), two_doubles!($b, $d, $place));
            (_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd))
        }};
    }

    /// Pairs of `f32` pixels, each as long as an `f64` pixel.
    macro_rules! four_singles {
        ($a:expr, $b:expr, $c:expr, $d:expr, $place:expr) => {{
            let low = _mm_loadh_pd(_mm_load_sd($a.wrapping_add($place).cast()), $b.wrapping_add($place).cast());
            let high = _mm_loadh_pd(_mm_load_sd($c.wrapping_add($place).cast()), $d.wrapping_add($place).cast());
            _mm256_castpd_ps(_mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(low), high))
        }};
    }

    /// The first and the second pixels of eight pairs.
    macro_rules! singles {
        ([$a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr, $g:expr, $h:expr], $place:expr) => {{
            let (low, high) = (four_singles!($a, $b, $e, $f, $place), four_singles!($c, $d, $g, $h, $place));
            (_mm256_shuffle_ps::<0b10_00_10_00>(low, high), _mm256_shuffle_ps::<0b11_01_11_01>(low, high))
        }};
    }

    /// A block of samples along a row, whose pixels begin at the columns `at`.
    ///
    /// # Safety
    /// `F` is the type of the pixels, `f32` or `f64`; the row contains the pixels.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn across<F: Float, const N: usize>(
        row: *const F,
        at: &[u32; BLOCK],
        taps: &SampleTaps<F, N>,
        to: &mut [F; BLOCK],
    ) {
        let to = &raw mut *to;
        macro_rules! from {
            ($i:expr) => {
                row.wrapping_add(at[$i] as usize)
            };
        }
        // SAFETY: promised by the caller.
        unsafe {
            if F::DTYPE == DType::F64 {
                for i in (0..BLOCK - 3).step_by(4) {
                    let [a, b, c, d] = [from!(i), from!(i + 1), from!(i + 2), from!(i + 3)].map_pointers::<f64>();
                    let sums = line!(
                        _mm256_setzero_pd,
                        _mm256_loadu_pd,
                        _mm256_fmadd_pd,
                        _mm256_sub_pd,
                        taps,
                        i,
                        0,
                        |place| { doubles!([a, b, c, d], place) }
                    );
                    _mm256_storeu_pd(to.cast::<f64>().wrapping_add(i), sums);
                }
                return;
            }
            for i in (0..BLOCK - 7).step_by(8) {
                let [a, b, c, d] = [from!(i), from!(i + 1), from!(i + 2), from!(i + 3)].map_pointers::<f32>();
                let [e, f, g, h] = [from!(i + 4), from!(i + 5), from!(i + 6), from!(i + 7)].map_pointers::<f32>();
                let sums =
                    line!(_mm256_setzero_ps, _mm256_loadu_ps, _mm256_fmadd_ps, _mm256_sub_ps, taps, i, 0, |place| {
                        singles!([a, b, c, d, e, f, g, h], place)
                    });
                _mm256_storeu_ps(to.cast::<f32>().wrapping_add(i), sums);
            }
        }
    }

    /// Four samples of `f64`. Each row of a sample is loaded in pairs of pixels, together with a pair of the sample
    /// after the next; two shuffles interleave the pairs of four samples. (Gathers are slower than single samples.)
    ///
    /// # Safety
    /// `F` is `f64`; the pixels of the samples are in the image, `level` and `width` pixels apart, and four results can
    /// be written.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn doubles<F: Float, const N: usize>(
        corners: &[*const f64; 4],
        (level, width): (usize, usize),
        axes: TapsByAxis<'_, F, N>,
        at: usize,
        out: *mut f64,
    ) {
        let [a, b, c, d] = *corners;
        // SAFETY: promised by the caller.
        unsafe {
            sampled!(
                _mm256_setzero_pd,
                _mm256_loadu_pd,
                _mm256_storeu_pd,
                _mm256_fmadd_pd,
                _mm256_sub_pd,
                (level, width),
                axes,
                at,
                out,
                |place| doubles!([a, b, c, d], place)
            );
        }
    }

    /// Eight samples of `f32`, like [`doubles`].
    ///
    /// # Safety
    /// As for [`doubles`], with `f32` and eight results.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn singles<F: Float, const N: usize>(
        corners: &[*const f32; TOGETHER],
        (level, width): (usize, usize),
        axes: TapsByAxis<'_, F, N>,
        at: usize,
        out: *mut f32,
    ) {
        let [a, b, c, d, e, f, g, h] = *corners;
        // SAFETY: promised by the caller.
        unsafe {
            sampled!(
                _mm256_setzero_ps,
                _mm256_loadu_ps,
                _mm256_storeu_ps,
                _mm256_fmadd_ps,
                _mm256_sub_ps,
                (level, width),
                axes,
                at,
                out,
                |place| singles!([a, b, c, d, e, f, g, h], place)
            );
        }
    }
}
