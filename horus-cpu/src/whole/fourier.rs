//! Linear filters by Fourier transforms of pairs of tiles.
//!
//! Lines are transformed eight at a time, one in each SIMD lane. Columns are transformed and stored transposed, so that
//! rows are then adjacent as the columns were. Rows are transformed, multiplied by the spectrum of the filter and
//! transformed back while they are in the cache. Across levels, the transforms of several levels are held point by point, so
//! that the sums for a level replace the transforms of the first level that they read.

use std::ops::Range;

use super::{CpuOperation, OperationOutput, TypedInput, out, type_of, view};
use crate::parallel;
use crate::plane::Plane;
use crate::simd::{Isa, Vector};
use crate::versions::{by_vectors, for_each_isa};
use horus_base::dispatch_float;
use horus_base::dtype::{DType, Float};
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::footprint::Rect;
use horus_plan::ops::fourier::{Complex, Fourier, Roots, conjugate, held};
use horus_plan::ops::neighbourhood::{Filter, Reach};

impl CpuOperation for Fourier {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch_float!(type_of(inputs), T => filter(view::<T>(inputs, 0)?, self, out(output)?, to));
        Ok(())
    }
}

/// Lines transformed together.
const LANES: usize = 8;
/// Pixels of a row that are converted together: a cache line of `f32`, two times eight columns.
const GROUP: usize = 2 * LANES;

/// Padding after each row of a tile in memory: rows a power of two apart would share few cache sets.
const APART: usize = GROUP;

/// A number for each of eight lines.
type LineValues = [f64; LANES];
/// A point of eight lines: real parts, then imaginary ones.
type Point = [LineValues; 2];
/// A point without a value yet.
const NOTHING: Point = [[0.0; LANES]; 2];

/// The roots of a transform.
struct TransformRoots {
    /// For pairs of points half a line apart, if any: the roots of points `1..n / 2`.
    pairs: Option<Vec<Complex>>,
    /// For butterflies of `4q` points, the largest first: `q` and the roots of points `1..q`.
    butterflies: Vec<(usize, Vec<[Complex; 3]>)>,
}

impl TransformRoots {
    fn of(n: usize) -> TransformRoots {
        let roots = Roots::of(n);
        let odd = n.ilog2() % 2 == 1;
        let pairs = odd.then(|| (1..n / 2).map(|j| roots.at(j)).collect());
        let first = if odd { n / 2 } else { n };
        let quarters = std::iter::successors(Some(first), |m| Some(m / 4)).take_while(|m| *m >= 4);
        let butterflies = quarters.map(|m| (m / 4, (1..m / 4).map(|j| roots.of_butterfly(m, j)).collect()));
        TransformRoots { pairs, butterflies: butterflies.collect() }
    }
}

/// Parts common to all tiles of a launch.
struct FourierContext<'a, T> {
    how: &'a Fourier,
    input: TypedInput<'a, T>,
    /// Levels and channels of the input.
    depth: usize,
    channels: usize,
    isa: Isa,
    /// Roots for columns and for rows.
    roots: [TransformRoots; 2],
    /// Spectra of the filters, one after the other; of filters that are added, point by point.
    spectra: Vec<Vec<Point>>,
}

/// Levels whose sums are computed together, so that spectra are loaded once for them.
const SUMS: usize = 4;
/// Jobs for each thread, so that all end at nearly the same time.
const JOBS: usize = 4;

/// Memory for a pair of tiles.
struct TilePairMemory<T> {
    /// Pixels of both tiles, row-major.
    pixels: [Vec<T>; 2],
    /// The tiles that take part in transforms.
    in_use: [bool; 2],
    /// Eight columns.
    columns: Vec<Point>,
    /// Transformed columns, transposed: for each eight rows, a point for each column.
    turned: Vec<Point>,
    /// For each point of a transform, those of all levels that are held.
    levels: Vec<Point>,
    /// The tiles of these levels that take part in transforms.
    levels_in_use: Vec<[bool; 2]>,
    /// Product with the spectrum of a filter, transformed back along rows.
    product: Vec<Point>,
    /// The responses of both tiles to a filter, row-major.
    responses: [Vec<T>; 2],
}

impl<T: Float> TilePairMemory<T> {
    fn of(how: &Fourier) -> TilePairMemory<T> {
        let ([height, width], [down, across]) = (how.tile, how.step());
        let plane = |n: usize| [vec![T::ZERO; n], vec![T::ZERO; n]];
        let points = || vec![NOTHING; height * width / LANES];
        TilePairMemory {
            pixels: plane(height * (width + APART)),
            in_use: [false; 2],
            columns: vec![NOTHING; height],
            turned: points(),
            levels: Vec::new(),
            levels_in_use: Vec::new(),
            product: points(),
            responses: plane(down * across.next_multiple_of(GROUP)),
        }
    }
}

/// Pairs of tiles to compute: the first pixel of their result, the first level, and for each level and filter the rows
/// of its response.
struct TilePair<'a, T> {
    channel: usize,
    level: usize,
    corner: [isize; 2],
    /// The first row that is computed.
    first: isize,
    rows: Vec<Vec<&'a mut [T]>>,
}

/// Computes the requested rows.
fn filter<T: Float>(input: TypedInput<'_, T>, how: &Fourier, out: &mut [T], to: &OperationOutput) {
    let OperationOutput { geometry, rows, threads, isa } = *to;
    if rows.is_empty() || geometry.shape.is_empty() {
        return;
    }
    let roots = how.tile.map(TransformRoots::of);
    let spectra = parallel::map(threads, how.filters.len(), |f| spectrum(isa, how, &roots, &how.filters[f]));
    let (depth, channels) = (geometry.shape.depth, geometry.shape.channels / how.responses());
    let pairs = how.pairs_of(Rect { rows, columns: Window::whole(geometry.shape.width) }) * channels;
    let most = depth.div_ceil((JOBS * threads).div_ceil(pairs)).max(how.added());
    let together = how.together(depth, held(how.tile), false).min(most);
    let jobs = jobs(how, together, out, to);
    let mut context = FourierContext { how, input, depth, channels, isa, roots, spectra };
    // Memory of a pair is reused for the next.
    let memory = || TilePairMemory::of(how);
    if how.across.is_none() {
        parallel::fold(threads, jobs, memory, |pair, job| context.filter(pair, job));
    } else {
        let by_points = |i: usize| context.spectra.iter().map(move |spectrum| spectrum[i]);
        context.spectra = vec![(0..context.spectra[0].len()).flat_map(by_points).collect()];
        parallel::fold(threads, jobs, memory, |pair, job| context.filter_across(pair, job));
    }
}

impl<T: Float> FourierContext<'_, T> {
    /// The responses to each filter.
    fn filter(&self, pair: &mut TilePairMemory<T>, mut job: TilePair<'_, T>) {
        let how = self.how;
        self.read(Some(job.level), &job, pair);
        let some = pair.in_use != [false; 2];
        if some {
            forth(self.isa, how, &self.roots, pair);
        }
        for (f, rows) in job.rows.iter_mut().enumerate() {
            if some {
                respond(self.isa, how, &self.roots, &Products::With(&self.spectra[f]), pair);
            }
            for k in 0..2 {
                if !pair.in_use[k] {
                    direct(self.isa, how, &how.filters[f], &pair.pixels[k], &mut pair.responses[k]);
                }
            }
            write(how, job.corner, job.first, pair, rows);
        }
    }

    /// The sums of responses, for several levels.
    fn filter_across(&self, pair: &mut TilePairMemory<T>, mut job: TilePair<'_, T>) {
        let (how, added, count) = (self.how, self.how.added(), job.rows.len());
        let read = count + added - 1;
        // Sums for levels past the last are computed but not used; an odd distance, so that points share few cache sets.
        let stride = (count.next_multiple_of(SUMS) + added - 1) | 1;
        pair.levels_in_use.clear();
        pair.levels.resize(pair.turned.len() * stride, NOTHING);
        for l in 0..read {
            self.read(how.level(job.level + l, 0, self.depth), &job, pair);
            pair.levels_in_use.push(pair.in_use);
            forth(self.isa, how, &self.roots, pair);
            for (levels, point) in pair.levels.chunks_exact_mut(stride).zip(&pair.turned) {
                levels[l] = *point;
            }
        }
        add_levels(self.isa, &mut pair.levels, stride, &self.spectra[0], count);
        let levels = std::mem::take(&mut pair.levels);
        for z in 0..count {
            respond(self.isa, how, &self.roots, &Products::Level { levels: &levels, stride, z }, pair);
            for k in 0..2 {
                if !pair.levels_in_use[z..z + added].iter().all(|in_use| in_use[k]) {
                    self.direct_across(&job, z, k, pair);
                }
            }
            write(how, job.corner, job.first, pair, &mut job.rows[z]);
        }
        pair.levels = levels;
    }

    /// The sum of the responses of a tile of the `z`-th level, tap by tap.
    fn direct_across(&self, job: &TilePair<'_, T>, z: usize, k: usize, pair: &mut TilePairMemory<T>) {
        let mut sum: Vec<T> = Vec::new();
        for (f, filter) in self.how.filters.iter().enumerate() {
            self.read(self.how.level(job.level + z, f, self.depth), job, pair);
            direct(self.isa, self.how, filter, &pair.pixels[k], &mut pair.responses[k]);
            match sum.is_empty() {
                true => sum.clone_from(&pair.responses[k]),
                false => sum.iter_mut().zip(&pair.responses[k]).for_each(|(sum, v)| *sum = sum.add(*v)),
            }
        }
        pair.responses[k] = sum;
    }

    /// Reads a pair of tiles of a level, or of the constant beyond the border.
    fn read(&self, level: Option<usize>, job: &TilePair<'_, T>, pair: &mut TilePairMemory<T>) {
        match level {
            Some(level) => {
                read(&self.input.plane(level * self.channels + job.channel), self.how, job.corner, pair);
            }
            None => {
                let outside = self.how.border.constant().map_or(T::ZERO, T::from_f64);
                let largest = T::from_f64(Fourier::largest(T::DTYPE, self.how.stored()));
                pair.in_use = [outside.abs() <= largest; 2];
                pair.pixels.iter_mut().for_each(|pixels| pixels.fill(outside));
            }
        }
    }
}

/// The pairs of tiles of a launch, each for so many levels.
fn jobs<'a, T: Float>(how: &Fourier, together: usize, out: &'a mut [T], to: &OperationOutput) -> Vec<TilePair<'a, T>> {
    let (geometry, rows) = (to.geometry, to.rows);
    let (shape, responses) = (geometry.shape, how.responses());
    let [down, across] = how.step().map(usize::cast_signed);
    let Rect { rows: down_all, columns: across_all } = how.pairs(Rect { rows, columns: Window::whole(shape.width) });
    let [tops, lefts] = [(down_all, down), (across_all, 2 * across)]
        .map(|(all, step)| (all.start..all.end).step_by(step.cast_unsigned()).collect::<Vec<_>>());
    let channels = shape.channels / responses;
    let mut jobs = Vec::new();
    for level in (0..shape.depth).step_by(together) {
        for channel in 0..channels {
            for top in &tops {
                for left in &lefts {
                    let rows = (0..together.min(shape.depth - level) * responses).map(|_| Vec::new()).collect();
                    let (corner, first) = ([*top, *left], (*top).max(to.rows.start));
                    jobs.push(TilePair { channel, level, corner, first, rows });
                }
            }
        }
    }
    let before = (rows.start - geometry.window.start).cast_unsigned() * shape.width;
    for (p, plane) in out.chunks_mut(geometry.plane()).take(shape.planes()).enumerate() {
        let (level, channel) = (p / shape.channels, p % shape.channels);
        let group = level / together * channels + channel % channels;
        let place = level % together * responses + channel / channels;
        for (y, row) in (rows.start..).zip(plane[before..][..rows.len() * shape.width].chunks_mut(shape.width)) {
            let at = (group * tops.len() + ((y - down_all.start) / down).cast_unsigned()) * lefts.len();
            let mut rest = row;
            for (job, left) in jobs[at..].iter_mut().zip(&lefts) {
                let end = (left + 2 * across).min(shape.width.cast_signed());
                let (part, after) = rest.split_at_mut((end - (*left).max(0)).cast_unsigned());
                job.rows[place].push(part);
                rest = after;
            }
        }
    }
    jobs
}

/// Reads a pair of tiles.
fn read<T: Float>(plane: &Plane<'_, T>, how: &Fourier, [top, left]: [isize; 2], pair: &mut TilePairMemory<T>) {
    let Reach { up, left: before, .. } = how.reach();
    let (width, across) = (how.tile[1], how.step()[1].cast_signed());
    let largest = T::from_f64(Fourier::largest(T::DTYPE, how.stored()));
    let outside = how.border.constant().map_or(T::ZERO, T::from_f64);
    for (k, pixels) in pair.pixels.iter_mut().enumerate() {
        let left = left + k.cast_signed() * across - before.cast_signed();
        let whole = left >= 0 && left.saturating_add_unsigned(width) <= plane.width.cast_signed();
        let columns: Vec<Option<usize>> =
            if whole { Vec::new() } else { (left..).take(width).map(|x| how.border.map(x, plane.width)).collect() };
        let mut taken = true;
        for (y, line) in (top - up.cast_signed()..).zip(pixels.chunks_exact_mut(width + APART)) {
            let line = &mut line[..width];
            match plane.resolve(y, how.border).map(|y| plane.row(y)) {
                Some(row) if whole => line.copy_from_slice(&row[left.cast_unsigned()..][..width]),
                Some(row) => {
                    line.iter_mut().zip(&columns).for_each(|(v, x)| *v = x.map_or(outside, |x| row[x]));
                }
                None => line.fill(outside),
            }
            // False for NaN.
            taken &= line.iter().fold(true, |all, v| all & (v.abs() <= largest));
        }
        pair.in_use[k] = taken;
    }
}

/// Copies responses to their rows.
fn write<T: Float>(
    how: &Fourier,
    [top, left]: [isize; 2],
    first: isize,
    pair: &TilePairMemory<T>,
    rows: &mut [&mut [T]],
) {
    let across = how.step()[1];
    let stride = across.next_multiple_of(GROUP);
    // The image begins inside the pair.
    let skipped = (-left).max(0).cast_unsigned();
    for (y, row) in ((first - top).cast_unsigned()..).zip(rows) {
        for (k, responses) in pair.responses.iter().enumerate() {
            let from = skipped.max(k * across);
            let to = (skipped + row.len()).min((k + 1) * across);
            if from < to {
                row[from - skipped..to - skipped]
                    .copy_from_slice(&responses[y * stride..][from - k * across..to - k * across]);
            }
        }
    }
}

for_each_isa! {
    /// The spectrum of a filter, in the layout of [`TilePairMemory::turned`].
    fn spectrum[][](how: &Fourier, roots: &[TransformRoots; 2], filter: &Filter) -> Vec<Point> as spectrum_body
}

#[inline(always)]
fn spectrum_body(isa: Isa, how: &Fourier, roots: &[TransformRoots; 2], filter: &Filter) -> Vec<Point> {
    let [height, width] = how.tile;
    let tile = how.reflected(filter);
    let mut columns = vec![NOTHING; height];
    let mut turned = vec![NOTHING; height * width / LANES];
    for x in (0..width).step_by(LANES) {
        for (y, point) in columns.iter_mut().enumerate() {
            for (v, tap) in point[0].iter_mut().zip(&tile[y * width + x..]) {
                *v = tap[0];
            }
            point[1] = NOTHING[1];
        }
        lines_forth(isa, &mut columns, &roots[0]);
        turn(isa, &columns, &mut turned, width, x);
    }
    for rows in turned.chunks_exact_mut(width) {
        lines_forth(isa, rows, &roots[1]);
    }
    turned
}

for_each_isa! {
    /// Transforms a pair.
    fn forth[T: Float][T](how: &Fourier, roots: &[TransformRoots; 2], pair: &mut TilePairMemory<T>) as forth_body
}

#[inline(always)]
fn forth_body<T: Float>(isa: Isa, how: &Fourier, roots: &[TransformRoots; 2], pair: &mut TilePairMemory<T>) {
    let width = how.tile[1];
    let TilePairMemory { pixels, in_use: taken, columns, turned, .. } = pair;
    for x in (0..width).step_by(LANES) {
        for k in 0..2 {
            for (point, row) in columns.iter_mut().zip(pixels[k].chunks_exact(width + APART)) {
                let eight: &[T; LANES] = row[x..].first_chunk().expect("a tile has whole vectors");
                for (v, pixel) in point[k].iter_mut().zip(eight) {
                    *v = if taken[k] { pixel.to_f64() } else { 0.0 };
                }
            }
        }
        lines_forth(isa, columns, &roots[0]);
        round(how, columns);
        turn(isa, columns, turned, width, x);
    }
    for rows in turned.chunks_exact_mut(width) {
        lines_forth(isa, rows, &roots[1]);
        round(how, rows);
    }
}

/// Rounds numbers as they are stored.
#[inline(always)]
fn round(how: &Fourier, points: &mut [Point]) {
    if how.stored() == DType::F32 {
        points.as_flattened_mut().as_flattened_mut().iter_mut().for_each(|v| *v = f64::from(*v as f32));
    }
}

/// Products of transforms with spectra.
enum Products<'a> {
    /// Of the transformed pair with this spectrum.
    With(&'a [Point]),
    /// The sums for the `z`-th of the levels that are held, `stride` for each point.
    Level { levels: &'a [Point], stride: usize, z: usize },
}

for_each_isa! {
    /// The responses of a transformed pair.
    fn respond[T: Float][T](
        how: &Fourier,
        roots: &[TransformRoots; 2],
        products: &Products<'_>,
        pair: &mut TilePairMemory<T>,
    ) as respond_body
}

#[inline(always)]
fn respond_body<T: Float>(
    isa: Isa,
    how: &Fourier,
    roots: &[TransformRoots; 2],
    products: &Products<'_>,
    pair: &mut TilePairMemory<T>,
) {
    let width = how.tile[1];
    let [down, across] = how.step();
    let stride = across.next_multiple_of(GROUP);
    let TilePairMemory { columns, turned, product, responses, .. } = pair;
    for (at, (to, from)) in product.chunks_exact_mut(width).zip(turned.chunks_exact(width)).enumerate() {
        match *products {
            Products::With(spectrum) => lines_multiplied(isa, from, &spectrum[at * width..][..width], to),
            Products::Level { levels, stride, z } => {
                let levels = levels[at * width * stride..].chunks_exact(stride);
                to.iter_mut().zip(levels).for_each(|(to, levels)| *to = levels[z]);
                round(how, to);
            }
        }
        lines_back(isa, to, &roots[1]);
        round(how, to);
    }
    for x in (0..across).step_by(LANES) {
        turn_back(isa, product, columns, width, x);
        lines_back(isa, columns, &roots[0]);
        for (k, responses) in responses.iter_mut().enumerate() {
            for (row, point) in responses.chunks_exact_mut(stride).zip(&columns[..down]) {
                for (v, r) in row[x..x + LANES].iter_mut().zip(point[k]) {
                    *v = T::from_f64(r);
                }
            }
        }
    }
}

for_each_isa! {
    /// Stores eight lines as points `x..x + 8` of a tile of `width` columns, transposed.
    fn turn[][](columns: &[Point], turned: &mut [Point], width: usize, x: usize) as turn_body
}

#[inline(always)]
fn turn_body(_: Isa, columns: &[Point], turned: &mut [Point], width: usize, x: usize) {
    for (b, eight) in columns.as_chunks::<LANES>().0.iter().enumerate() {
        let to: &mut [Point; LANES] = turned[b * width + x..].first_chunk_mut().expect("a tile has whole vectors");
        transposed(eight, to);
    }
}

for_each_isa! {
    /// The inverse of [`turn`].
    fn turn_back[][](turned: &[Point], columns: &mut [Point], width: usize, x: usize) as turn_back_body
}

#[inline(always)]
fn turn_back_body(_: Isa, turned: &[Point], columns: &mut [Point], width: usize, x: usize) {
    for (b, eight) in columns.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let from: &[Point; LANES] = turned[b * width + x..].first_chunk().expect("a tile has whole vectors");
        transposed(from, eight);
    }
}

// Unrolled: loops over squares would gather their numbers one by one.
#[inline(always)]
fn transposed(from: &[Point; LANES], to: &mut [Point; LANES]) {
    for part in 0..2 {
        let [a, b, c, d, e, f, g, h] = from;
        let mut rows = [a[part], b[part], c[part], d[part], e[part], f[part], g[part], h[part]];
        exchange::<4>(&mut rows);
        exchange::<2>(&mut rows);
        exchange::<1>(&mut rows);
        for i in 0..LANES {
            to[i][part] = rows[i];
        }
    }
}

/// Exchanges the squares of `S` numbers off the diagonal, in all squares of `2 S`.
#[inline(always)]
fn exchange<const S: usize>(rows: &mut [LineValues; LANES]) {
    for i in 0..LANES {
        if i & S == 0 {
            let (a, b) = (rows[i], rows[i + S]);
            rows[i] = std::array::from_fn(|j| if j & S == 0 { a[j] } else { b[j - S] });
            rows[i + S] = std::array::from_fn(|j| if j & S == 0 { a[j + S] } else { b[j] });
        }
    }
}

/// [`Roots::forth`] of eight lines.
#[inline(always)]
fn lines_forth(isa: Isa, lines: &mut [Point], steps: &TransformRoots) {
    by_vectors!(isa, f64, forth_by(lines, steps))
}

/// [`Roots::back`] of eight lines.
#[inline(always)]
fn lines_back(isa: Isa, lines: &mut [Point], steps: &TransformRoots) {
    by_vectors!(isa, f64, back_by(lines, steps))
}

/// Products of points.
#[inline(always)]
fn lines_multiplied(isa: Isa, a: &[Point], b: &[Point], to: &mut [Point]) {
    by_vectors!(isa, f64, multiply_by(a, b, to))
}

for_each_isa! {
    /// Replaces the first `count` of the `stride` levels of each point by sums of products: level `z` by that of the
    /// levels from it on with the spectra.
    fn add_levels[][](levels: &mut [Point], stride: usize, spectra: &[Point], count: usize) as add_levels_body
}

#[inline(always)]
fn add_levels_body(isa: Isa, levels: &mut [Point], stride: usize, spectra: &[Point], count: usize) {
    let added = spectra.len() / (levels.len() / stride);
    for (levels, spectra) in levels.chunks_exact_mut(stride).zip(spectra.chunks_exact(added)) {
        for z in (0..count).step_by(SUMS) {
            by_vectors!(isa, f64, add_by(&mut levels[z..][..SUMS + added - 1], spectra));
        }
    }
}

/// A complex number in each lane of a vector.
#[derive(Clone, Copy)]
struct Complexes<V> {
    re: V,
    im: V,
}

impl<V: Vector<Elem = f64>> Complexes<V> {
    /// Lanes `at..` of a point.
    ///
    /// # Safety
    /// For this and all other methods: the machine has the instruction set, and there are as many lanes.
    #[inline(always)]
    unsafe fn load(point: &Point, at: usize) -> Self {
        debug_assert!(at + V::LANES <= LANES);
        // SAFETY: promised by the caller.
        unsafe { Complexes { re: V::load(point[0].as_ptr().add(at)), im: V::load(point[1].as_ptr().add(at)) } }
    }

    #[inline(always)]
    unsafe fn store(self, point: &mut Point, at: usize) {
        debug_assert!(at + V::LANES <= LANES);
        // SAFETY: promised by the caller.
        unsafe {
            self.re.store(point[0].as_mut_ptr().add(at));
            self.im.store(point[1].as_mut_ptr().add(at));
        }
    }

    #[inline(always)]
    unsafe fn splat([re, im]: Complex) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Complexes { re: V::splat(re), im: V::splat(im) } }
    }

    #[inline(always)]
    unsafe fn add(self, a: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Complexes { re: self.re.add(a.re), im: self.im.add(a.im) } }
    }

    #[inline(always)]
    unsafe fn sub(self, a: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Complexes { re: self.re.sub(a.re), im: self.im.sub(a.im) } }
    }

    /// `self + i a`.
    #[inline(always)]
    unsafe fn add_turned(self, a: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Complexes { re: self.re.sub(a.im), im: self.im.add(a.re) } }
    }

    /// `self - i a`.
    #[inline(always)]
    unsafe fn sub_turned(self, a: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Complexes { re: self.re.add(a.im), im: self.im.sub(a.re) } }
    }

    /// `sum + self * a`.
    #[inline(always)]
    unsafe fn mul_add(self, a: Self, sum: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe {
            let (re, im) = (self.im.fms(a.im, sum.re), self.im.fma(a.re, sum.im));
            Complexes { re: self.re.fms(a.re, re), im: self.re.fma(a.im, im) }
        }
    }

    #[inline(always)]
    unsafe fn mul(self, a: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Complexes { re: self.re.fms(a.re, self.im.mul(a.im)), im: self.re.fma(a.im, self.im.mul(a.re)) } }
    }
}

/// The quarters of a block.
#[inline(always)]
fn quarters(block: &mut [Point], q: usize) -> [&mut [Point]; 4] {
    let (left, right) = block.split_at_mut(2 * q);
    let ((a, b), (c, d)) = (left.split_at_mut(q), right.split_at_mut(q));
    [a, b, c, d]
}

#[inline(always)]
unsafe fn forth_by<V: Vector<Elem = f64>>(lines: &mut [Point], steps: &TransformRoots) {
    // SAFETY: promised by the caller; vectors divide eight lanes.
    unsafe {
        if let Some(roots) = &steps.pairs {
            let (a, b) = lines.split_at_mut(lines.len() / 2);
            for (j, (a, b)) in a.iter_mut().zip(b).enumerate() {
                for at in (0..LANES).step_by(V::LANES) {
                    let (x, y) = (Complexes::<V>::load(a, at), Complexes::load(b, at));
                    let rest = x.sub(y);
                    x.add(y).store(a, at);
                    if j > 0 { rest.mul(Complexes::splat(roots[j - 1])) } else { rest }.store(b, at);
                }
            }
        }
        for (q, roots) in &steps.butterflies {
            for block in lines.chunks_exact_mut(4 * q) {
                let [a, b, c, d] = quarters(block, *q);
                for (j, (((a, b), c), d)) in a.iter_mut().zip(b).zip(c).zip(d).enumerate() {
                    for at in (0..LANES).step_by(V::LANES) {
                        let (w, x) = (Complexes::<V>::load(a, at), Complexes::load(b, at));
                        let (y, z) = (Complexes::load(c, at), Complexes::load(d, at));
                        let (even, odd, left, right) = (w.add(y), x.add(z), w.sub(y), x.sub(z));
                        let (x, y, z) = (left.sub_turned(right), even.sub(odd), left.add_turned(right));
                        even.add(odd).store(a, at);
                        if j == 0 {
                            x.store(b, at);
                            y.store(c, at);
                            z.store(d, at);
                        } else {
                            let [r1, r2, r3] = roots[j - 1];
                            x.mul(Complexes::splat(r1)).store(b, at);
                            y.mul(Complexes::splat(r2)).store(c, at);
                            z.mul(Complexes::splat(r3)).store(d, at);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn back_by<V: Vector<Elem = f64>>(lines: &mut [Point], steps: &TransformRoots) {
    // SAFETY: promised by the caller; vectors divide eight lanes.
    unsafe {
        for (q, roots) in steps.butterflies.iter().rev() {
            for block in lines.chunks_exact_mut(4 * q) {
                let [a, b, c, d] = quarters(block, *q);
                for (j, (((a, b), c), d)) in a.iter_mut().zip(b).zip(c).zip(d).enumerate() {
                    for at in (0..LANES).step_by(V::LANES) {
                        let (w, mut x) = (Complexes::<V>::load(a, at), Complexes::load(b, at));
                        let (mut y, mut z) = (Complexes::load(c, at), Complexes::load(d, at));
                        if j > 0 {
                            let [r1, r2, r3] = roots[j - 1];
                            x = x.mul(Complexes::splat(conjugate(r1)));
                            y = y.mul(Complexes::splat(conjugate(r2)));
                            z = z.mul(Complexes::splat(conjugate(r3)));
                        }
                        let (even, odd, left, right) = (w.add(y), x.add(z), w.sub(y), x.sub(z));
                        even.add(odd).store(a, at);
                        left.add_turned(right).store(b, at);
                        even.sub(odd).store(c, at);
                        left.sub_turned(right).store(d, at);
                    }
                }
            }
        }
        if let Some(roots) = &steps.pairs {
            let (a, b) = lines.split_at_mut(lines.len() / 2);
            for (j, (a, b)) in a.iter_mut().zip(b).enumerate() {
                for at in (0..LANES).step_by(V::LANES) {
                    let (x, mut y) = (Complexes::<V>::load(a, at), Complexes::load(b, at));
                    if j > 0 {
                        y = y.mul(Complexes::splat(conjugate(roots[j - 1])));
                    }
                    x.add(y).store(a, at);
                    x.sub(y).store(b, at);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn multiply_by<V: Vector<Elem = f64>>(a: &[Point], b: &[Point], to: &mut [Point]) {
    for ((a, b), to) in a.iter().zip(b).zip(to) {
        for at in (0..LANES).step_by(V::LANES) {
            // SAFETY: promised by the caller; vectors divide eight lanes.
            unsafe { Complexes::<V>::load(a, at).mul(Complexes::load(b, at)).store(to, at) };
        }
    }
}

#[inline(always)]
unsafe fn add_by<V: Vector<Elem = f64>>(levels: &mut [Point], spectra: &[Point]) {
    for at in (0..LANES).step_by(V::LANES) {
        // SAFETY: promised by the caller; vectors divide eight lanes.
        unsafe {
            let by = Complexes::<V>::load(&spectra[0], at);
            let mut sums = [by; SUMS];
            for (sum, level) in sums.iter_mut().zip(levels.iter()) {
                *sum = Complexes::load(level, at).mul(by);
            }
            for (by, levels) in spectra[1..].iter().zip(levels[1..].windows(SUMS)) {
                let by = Complexes::load(by, at);
                for (sum, level) in sums.iter_mut().zip(levels) {
                    *sum = Complexes::load(level, at).mul_add(by, *sum);
                }
            }
            for (sum, level) in sums.into_iter().zip(levels.iter_mut()) {
                sum.store(level, at);
            }
        }
    }
}

for_each_isa! {
    /// The responses of a tile to a filter, tap by tap in the canonical order.
    fn direct[T: Float][T](how: &Fourier, filter: &Filter, pixels: &[T], responses: &mut [T]) as direct_body
}

#[inline(always)]
fn direct_body<T: Float>(_: Isa, how: &Fourier, filter: &Filter, pixels: &[T], responses: &mut [T]) {
    let ([down, across], pitch, reach) = (how.step(), how.tile[1] + APART, how.reach());
    let stride = across.next_multiple_of(GROUP);
    let taps: Vec<(T, Range<usize>)> = filter
        .taps()
        .iter()
        .zip(filter.offsets())
        .map(|(tap, (dy, dx))| {
            let at = reach.up.saturating_add_signed(dy) * pitch + reach.left.saturating_add_signed(dx);
            (T::from_f64(*tap), at..at + across)
        })
        .collect();
    for (y, row) in responses.chunks_exact_mut(stride).take(down).enumerate() {
        let row = &mut row[..across];
        row.fill(T::ZERO);
        for (tap, at) in &taps {
            for (sum, v) in row.iter_mut().zip(&pixels[y * pitch..][at.clone()]) {
                *sum = tap.fma(*v, *sum);
            }
        }
    }
}
