//! Linear filters of small integers, in integers.
//!
//! An expression may convert integers to floats, filter them by integer taps, divide, and convert the result to
//! integers. While its numbers are small, it rounds only in the last conversion. 16-bit or 32-bit integers then give
//! the same bits, and many more of them fit a vector. [`IntegerFilterChain`] recognises such kernels. (In this file, a
//! pass is one filter of the chain.)

use super::bytes::{self, Dot};
use super::plane::Plane;
use super::simd::Isa;
use super::tile_code::KernelVariant;
use super::versions::{for_each_isa, for_least_isa};
use super::whole::{out, view};
use super::windowed::WindowedOutput;
use horus_base::dispatch;
use horus_base::dtype::{Conversion, DType, Pixel, Scalar};
use horus_base::error::DeviceError;
use horus_base::shape::{Border, Window};
use horus_host::device::{Geometry, LaunchInput, Memory};
use horus_plan::ir::kernel::{FilterSource, Instr, InstrOp, Leaf, LeafOp, MapKernel, Val};
use horus_plan::ops::neighbourhood::{Filter, FilterLayout, Reach};
use horus_plan::ops::pixel::PixelOp;

/// Magnitude up to which `f32` represents every integer.
const EXACT: i64 = 1 << 24;
/// Limit of sums whose quotients, computed as `f32` products of a sum plus a half, convert to the right integer: such a
/// product is half a quotient step away from integers, twice the error of the roundings.
const DIVIDED: i64 = 1 << 22;
/// Most taps along an axis, or elements that they read.
const MOST: usize = 64;
/// Most nonzero taps for which 16-bit sums are faster than products of bytes (`docs/performance/cpu.md`).
const FEW: usize = 25;
/// Rows computed at a time, unless the filters reach further.
const ROWS: usize = 32;

/// A filter of integer taps, row by row, and what follows: a division, a conversion.
#[derive(Debug)]
struct IntegerFilter {
    taps: Vec<i32>,
    height: usize,
    width: usize,
    /// Reach in elements.
    reach: Reach,
    /// Elements of a pixel.
    samples: usize,
    border: Border,
    /// The divisor of the sums, or 1.
    divisor: i32,
    /// The type modulo whose range results are taken.
    wrapped: Option<DType>,
}

impl IntegerFilter {
    /// The rows of an image of some height from which rows of the result are computed, as one range.
    fn reads(&self, rows: Window, height: usize) -> Window {
        let there = rows.grown(self.reach.up, self.reach.down);
        let mapped = (there.start..there.end).filter_map(|y| self.border.map(y, height));
        let (first, end) = mapped.fold((usize::MAX, 0), |(first, end), y| (first.min(y), end.max(y + 1)));
        if first < end { Window::new(first.cast_signed(), end.cast_signed()) } else { Window::new(0, 0) }
    }
}

/// A chain of filters of an input that equals a kernel.
#[derive(Debug, Default)]
pub(super) struct IntegerFilterChain {
    input: usize,
    filters: Vec<IntegerFilter>,
    samples: usize,
    /// The largest magnitude of a sum.
    most: i64,
}

/// The range of an integer type of at most 16 bits.
fn range(dtype: DType) -> Option<(i64, i64)> {
    if dtype.is_float() || dtype == DType::Bool || dtype.size() > 2 {
        return None;
    }
    dispatch!(dtype, T => Some((T::LOWEST.to_f64() as i64, T::HIGHEST.to_f64() as i64)))
}

impl IntegerFilterChain {
    /// The chain that equals a kernel over inputs of these types and samples; `None` if there is none, or if products
    /// of bytes are faster.
    pub(super) fn of(
        kernel: &MapKernel,
        dtypes: &[DType],
        (isa, samples): KernelVariant,
    ) -> Option<IntegerFilterChain> {
        let result = kernel.result.filter(|_| kernel.additional_results.is_empty())?;
        range(kernel.type_of(result))?;
        let mut plan = IntegerFilterChain { samples, ..IntegerFilterChain::default() };
        plan.value(kernel, result, dtypes)?;
        let by_bytes = |leaf: &Leaf| match &leaf.op {
            LeafOp::Correlate(_, filter, _) => {
                kernel.bytes(leaf).is_some() && samples <= bytes::SAMPLES && Dot::of(filter, isa).is_some()
            }
            _ => false,
        };
        let taps: usize = plan.filters.iter().map(|p| p.taps.iter().filter(|tap| **tap != 0).count()).sum();
        let fast = plan.is_small() && taps <= FEW;
        (!plan.filters.is_empty() && (fast || !kernel.leaves.iter().any(by_bytes))).then_some(plan)
    }

    /// Adds the filters of a value. Returns the smallest and the largest number that it may be.
    fn value(&mut self, map: &MapKernel, value: Val, dtypes: &[DType]) -> Option<(i64, i64)> {
        match value {
            Val::Leaf(l) => match &map.leaves[l].op {
                LeafOp::Load(i) => {
                    self.input = *i;
                    range(dtypes[*i])
                }
                LeafOp::Correlate(source, filter, border) => self.filtered(map, *source, (filter, *border), dtypes),
                _ => None,
            },
            Val::Instr(i) => {
                let Instr { op: InstrOp::Convert(rule), operand, result, args } = &map.code[i] else { return None };
                if result.is_float() {
                    range(*operand)?;
                    return self.value(map, args[0], dtypes);
                }
                let (least, largest) = range(*result)?;
                if *rule != Conversion::Cast || !operand.is_float() {
                    return None;
                }
                let (low, high) = match quotient(map, args[0]) {
                    Some((total, divisor)) => {
                        let (low, high) = self.value(map, total, dtypes)?;
                        let last = self.filters.last_mut()?;
                        if low < 0 || high >= DIVIDED || last.divisor != 1 || last.wrapped.is_some() {
                            return None;
                        }
                        last.divisor = divisor;
                        (low / i64::from(divisor), high / i64::from(divisor))
                    }
                    None => self.value(map, args[0], dtypes)?,
                };
                if least <= low && high <= largest {
                    return Some((low, high));
                }
                let last = self.filters.last_mut()?;
                if last.wrapped.is_some() {
                    return None;
                }
                last.wrapped = Some(*result);
                self.most = self.most.max(largest);
                Some((least, largest))
            }
            Val::Const(_) | Val::Index(..) => None,
        }
    }

    fn filtered(
        &mut self,
        map: &MapKernel,
        source: FilterSource,
        (filter, border): (&Filter, Border),
        dtypes: &[DType],
    ) -> Option<(i64, i64)> {
        let (image, stage) = match source {
            FilterSource::Stage(s) => (map.stages[s].source, Some(&map.stages[s])),
            image => (image, None),
        };
        let FilterSource::Chain(c) = image else { return None };
        let chain = &map.chains[c];
        let mut range = self.value(chain, chain.result.filter(|_| chain.additional_results.is_empty())?, dtypes)?;
        if let Some(stage) = stage {
            // A constant beyond the edges of one pass, or of both, gives other results.
            if border.constant().or(stage.border.constant()).is_some() {
                return None;
            }
            range = self.add_filter(&stage.filter, stage.border, range)?;
        }
        self.add_filter(filter, border, range)
    }

    fn add_filter(&mut self, filter: &Filter, border: Border, (mut low, mut high): (i64, i64)) -> Option<(i64, i64)> {
        let reach = filter.reach();
        let (height, width) = (reach.up + 1 + reach.down, reach.left + 1 + reach.right);
        let whole = |v: f64| (v.fract() == 0.0 && v.abs() < EXACT as f64).then_some(v as i64);
        if border == Border::Wrap || height.max(width * self.samples) > MOST {
            return None;
        }
        let mut taps = filter.taps().iter().map(|t| whole(*t)).collect::<Option<Vec<i64>>>()?;
        if let FilterLayout::Sparse(offsets) = filter.layout() {
            let mut all = vec![0; height * width];
            for ((y, x), tap) in offsets.iter().zip(taps) {
                let (y, x) = (*y as isize + reach.up.cast_signed(), *x as isize + reach.left.cast_signed());
                *all.get_mut(y.cast_unsigned() * width + x.cast_unsigned())? += tap;
            }
            taps = all;
        }
        if let Some(v) = border.constant() {
            let v = whole(v)?;
            (low, high) = (low.min(v), high.max(v));
        }
        let most = low.abs().max(high.abs()).checked_mul(taps.iter().map(|t| t.abs()).sum())?;
        if most >= EXACT {
            return None;
        }
        self.most = self.most.max(most).max(low.abs()).max(high.abs());
        let sum = |positive: i64, negative: i64| -> i64 {
            taps.iter().map(|t| t * if *t < 0 { negative } else { positive }).sum()
        };
        let range = (sum(low, high), sum(high, low));
        let taps = taps.iter().map(|t| *t as i32).collect();
        let (samples, reach) = (self.samples, reach.in_samples(self.samples));
        self.filters.push(IntegerFilter { taps, height, width, reach, samples, border, divisor: 1, wrapped: None });
        Some(range)
    }

    /// Returns `true` if sums fit 16 bits.
    fn is_small(&self) -> bool {
        self.most <= i16::MAX.into()
    }

    /// Runs the chain: inside the thread pool (`threads` of it), or on the calling thread alone if `threads` is 1.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] for memory that is not the host's.
    pub(super) fn launch(
        &self,
        inputs: &[LaunchInput<'_>],
        output: &mut Memory,
        (geometry, rows): (Geometry, Window),
        isa: Isa,
        threads: usize,
    ) -> Result<(), DeviceError> {
        let to = WindowedOutput { geometry: geometry.flat(), rows, threads, reach: self.reach() };
        let small = self.is_small();
        // Signed and unsigned types share the low bits.
        macro_rules! each {
            ($pixel:ident, $sum:ident) => {{
                let input = view::<$pixel>(inputs, self.input)?;
                match geometry.dtype.size() {
                    1 => to.each::<u8>(out(output)?, &|c, rows, out| {
                        apply_filters::<$pixel, $sum>(
                            isa,
                            &input.plane(c),
                            &self.filters,
                            rows,
                            &mut IntegerOutput::Bytes(out),
                        );
                    }),
                    _ => to.each::<u16>(out(output)?, &|c, rows, out| {
                        apply_filters::<$pixel, $sum>(
                            isa,
                            &input.plane(c),
                            &self.filters,
                            rows,
                            &mut IntegerOutput::Words(out),
                        );
                    }),
                }
            }};
        }
        match inputs[self.input].geometry.dtype {
            DType::U8 if small => each!(u8, i16),
            DType::U8 => each!(u8, i32),
            DType::I8 if small => each!(i8, i16),
            DType::I8 => each!(i8, i32),
            DType::U16 => each!(u16, i32),
            _ => each!(i16, i32),
        }
        Ok(())
    }

    /// Returns `true` if an input has the rows that these rows of the result read.
    pub(super) fn reads(&self, inputs: &[LaunchInput<'_>], rows: Window) -> bool {
        let Geometry { shape, window, .. } = inputs[self.input].geometry;
        let read = self.filters.iter().rev().fold(rows, |rows, pass| pass.reads(rows, shape.height));
        window.covers(read)
    }

    /// Rows that all filters of the chain reach together.
    fn reach(&self) -> usize {
        self.filters.iter().map(|p| p.height - 1).sum()
    }
}

/// The sum and the divisor, if an `f32` value is a quotient computed as `(sum + 1/2) * (1 / divisor)`.
fn quotient(map: &MapKernel, value: Val) -> Option<(Val, i32)> {
    let with = |value: Val, wanted: PixelOp| -> Option<(Val, f32)> {
        let Val::Instr(i) = value else { return None };
        match &map.code[i] {
            Instr { op: InstrOp::Pixel(op), operand: DType::F32, args, .. } if *op == wanted => match args[..] {
                [a, Val::Const(Scalar::F32(c))] | [Val::Const(Scalar::F32(c)), a] => Some((a, c)),
                _ => None,
            },
            _ => None,
        }
    };
    let (sum, factor) = with(value, PixelOp::Mul)?;
    let (total, half) = with(sum, PixelOp::Add)?;
    let divisor = (1.0 / f64::from(factor)).round();
    let is_reciprocal = (2.0..=4096.0).contains(&divisor) && (1.0 / divisor) as f32 == factor;
    (half == 0.5 && is_reciprocal).then_some((total, divisor as i32))
}

/// The integers of sums.
trait Sum: Copy + Default {
    fn of(pixel: impl Into<i32>) -> Self;
    fn number(v: i32) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn byte(self) -> u8;
    fn word(self) -> u16;
    /// The number modulo the range of a type.
    fn wrapped<P: Pixel>(self) -> Self;
    /// A divisor of nonnegative numbers.
    type Divisor: Copy;
    fn divisor(by: i32) -> Self::Divisor;
    /// The integer part of a quotient.
    fn over(self, divisor: Self::Divisor) -> Self;
}

macro_rules! sum {
    ($t:ident, $divisor:ty, |$by:ident| $new:expr, |$v:ident, $d:ident| $over:expr) => {
        impl Sum for $t {
            type Divisor = $divisor;
            #[inline(always)]
            fn of(pixel: impl Into<i32>) -> $t {
                pixel.into() as $t
            }
            #[inline(always)]
            fn number(v: i32) -> $t {
                v as $t
            }
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn byte(self) -> u8 {
                self as u8
            }
            #[inline(always)]
            fn word(self) -> u16 {
                self as u16
            }
            #[inline(always)]
            fn wrapped<P: Pixel>(self) -> $t {
                match P::DTYPE {
                    DType::U8 => (self as u8).into(),
                    DType::I8 => (self as i8).into(),
                    DType::U16 => self as u16 as $t,
                    _ => (self as i16).into(),
                }
            }
            #[inline(always)]
            fn divisor($by: i32) -> $divisor {
                $new
            }
            #[inline(always)]
            fn over(self, $d: $divisor) -> $t {
                let $v = self;
                $over
            }
        }
    };
}
sum!(
    i16,
    (u16, u32),
    |by| {
        // With 2^s < by <= 2^(s + 1) and m the smallest integer not below 2^(16 + s) / by, m * by is less than 2^(s +
        // 1) above 2^(16 + s): no difference for numbers below 2^15.
        let by = by.cast_unsigned();
        let s = (by - 1).ilog2();
        ((1u32 << (16 + s)).div_ceil(by) as u16, s)
    },
    |v, d| (((u32::from(v.cast_unsigned()) * u32::from(d.0)) >> 16) as u16 >> d.1) as i16
);
sum!(
    i32,
    f32,
    |by| 1.0 / by as f32,
    // SAFETY: sums are from 0 to `DIVIDED`. Stale numbers beyond a line have 32 bits, and a factor of at most a half
    // brings them into range.
    |v, d| unsafe { ((v as f32 + 0.5) * d).to_int_unchecked() }
);

/// Storage of the results: all rows of a block.
enum IntegerOutput<'a> {
    Bytes(&'a mut [u8]),
    Words(&'a mut [u16]),
}

/// Pixels computed together. Rows are stored in multiples of it, so that none are left over.
const LANES: usize = 64;
/// Elements stored beyond a row: [`MOST`] taps and as many sums of neighbours read them.
const BEYOND: usize = MOST.next_multiple_of(LANES) + LANES;
/// Powers of two below [`MOST`]: the most binary digits of a width.
const DIGITS: usize = MOST.ilog2() as usize;

/// Rows that a pass reads, with its reach in columns on each side.
struct PaddedRows<A> {
    rows: Window,
    stride: usize,
    data: Vec<A>,
    /// Index of the first row's beginning. Vectors of all rows start at cache lines from there: vectors across two
    /// lines take longer.
    start: usize,
    /// A row of the border's constant.
    constant: Vec<A>,
}

impl<A: Sum> PaddedRows<A> {
    #[inline(always)]
    fn row(&self, y: isize) -> &[A] {
        &self.data[self.start + (y - self.rows.start).cast_unsigned() * self.stride..][..self.stride]
    }

    #[inline(always)]
    fn row_mut(&mut self, y: isize) -> &mut [A] {
        &mut self.data[self.start + (y - self.rows.start).cast_unsigned() * self.stride..][..self.stride]
    }

    /// Continues row `y` of `width` elements by the border of the pass.
    #[inline(always)]
    fn extend(&mut self, pass: &IntegerFilter, y: isize, width: usize) {
        let Reach { left, right, .. } = pass.reach;
        for x in (0..left).chain(left + width..left + width + right) {
            let from = pass.border.map_sample(x.cast_signed() - left.cast_signed(), width, pass.samples);
            let value = from.map_or(self.constant[x], |from| self.row(y)[left + from]);
            self.row_mut(y)[x] = value;
        }
    }
}

/// Applies all filters of the chain to the given rows.
fn apply_filters<S: Pixel + Into<i32>, A: Sum>(
    isa: Isa,
    plane: &Plane<'_, S>,
    passes: &[IntegerFilter],
    rows: Window,
    out: &mut IntegerOutput<'_>,
) {
    let (width, height) = (plane.width, plane.height);
    let wide = width.next_multiple_of(LANES);
    let around: usize = passes.iter().map(|p| p.height - 1).sum();
    let step = ROWS.max(2 * around);
    let read = |pass: &IntegerFilter| {
        let stride = wide + BEYOND;
        let value = pass.border.constant().map_or(0, |v| v as i32);
        PaddedRows {
            rows: Window::new(0, 0),
            stride,
            data: Vec::new(),
            start: 0,
            constant: vec![A::number(value); stride],
        }
    };
    let mut reads: Vec<PaddedRows<A>> = passes.iter().map(read).collect();
    let zeros = |n: usize| vec![A::default(); n + LANES];
    let (mut line, mut total, mut doubled) = (zeros(wide), zeros(wide), zeros((wide + BEYOND) * DIGITS));
    let part = |of: &[A]| aligned(of)..aligned(of) + wide;
    let (of_line, of_total, of_doubled) = (part(&line), part(&total), aligned(&doubled));
    let line = &mut line[of_line];
    let mut kept = ReusedSums { total: &mut total[of_total], doubled: &mut doubled[of_doubled..] };
    for start in (rows.start..rows.end).step_by(step) {
        let block = Window::new(start, rows.end.min(start + step.cast_signed()));
        // The rows that each pass reads for the rows of the next one.
        let mut need = block;
        for (pass, read) in passes.iter().zip(&mut reads).rev() {
            need = pass.reads(need, height);
            read.rows = need;
            read.data.resize(need.len() * read.stride + LANES, A::default());
            read.start = aligned(&read.data[pass.reach.left..]);
        }
        for y in need.start..need.end {
            let left = passes[0].reach.left;
            widen(plane.row(y), &mut reads[0].row_mut(y)[left..left + width]);
            reads[0].extend(&passes[0], y, width);
        }
        for (i, pass) in passes.iter().enumerate() {
            let (before, after) = reads.split_at_mut(i + 1);
            let read = &before[i];
            let Some(next) = after.first_mut() else {
                for y in block.start..block.end {
                    filter(isa, pass, read, (y, height), y == block.start, &mut kept, line);
                    let at = (y - rows.start).cast_unsigned() * width;
                    match out {
                        IntegerOutput::Bytes(out) => narrow_to_bytes(line, &mut out[at..at + width]),
                        IntegerOutput::Words(out) => narrow_to_words(line, &mut out[at..at + width]),
                    }
                }
                continue;
            };
            let left = passes[i + 1].reach.left;
            let wanted = next.rows;
            for y in wanted.start..wanted.end {
                let to = &mut next.row_mut(y)[left..left + wide];
                filter(isa, pass, read, (y, height), y == wanted.start, &mut kept, to);
                if let Some(dtype) = pass.wrapped {
                    wrap(dtype, to);
                }
                next.extend(&passes[i + 1], y, width);
            }
        }
    }
}

for_least_isa! {
    /// Takes results modulo the range of a type.
    fn wrap[A: Sum][A](dtype: DType, results: &mut [A]) as wrap_body
}

#[inline(always)]
fn wrap_body<A: Sum>(dtype: DType, results: &mut [A]) {
    match dtype {
        DType::U8 => results.iter_mut().for_each(|v| *v = v.wrapped::<u8>()),
        DType::I8 => results.iter_mut().for_each(|v| *v = v.wrapped::<i8>()),
        DType::U16 => results.iter_mut().for_each(|v| *v = v.wrapped::<u16>()),
        _ => results.iter_mut().for_each(|v| *v = v.wrapped::<i16>()),
    }
}

for_least_isa! {
    /// Converts pixels to sums.
    fn widen[S: Pixel + Into<i32>, A: Sum][S, A](pixels: &[S], to: &mut [A]) as widen_body
}

#[inline(always)]
fn widen_body<S: Pixel + Into<i32>, A: Sum>(pixels: &[S], to: &mut [A]) {
    #[inline(always)]
    fn part<S: Pixel + Into<i32>, A: Sum>(pixels: &[S; LANES], to: &mut [A; LANES]) {
        for x in 0..LANES {
            to[x] = A::of(pixels[x]);
        }
    }
    let ((pixels, last), (to, rest)) = (pixels.as_chunks(), to.as_chunks_mut());
    pixels.iter().zip(to).for_each(|(pixels, to)| part(pixels, to));
    last.iter().zip(rest).for_each(|(pixel, to)| *to = A::of(*pixel));
}

for_least_isa! { fn narrow_to_bytes[A: Sum][A](line: &[A], out: &mut [u8]) as narrow_to_bytes_body }
for_least_isa! { fn narrow_to_words[A: Sum][A](line: &[A], out: &mut [u16]) as narrow_to_words_body }

#[inline(always)]
fn narrow_to_bytes_body<A: Sum>(line: &[A], out: &mut [u8]) {
    narrow(line, out, |v| v.byte());
}

#[inline(always)]
fn narrow_to_words_body<A: Sum>(line: &[A], out: &mut [u16]) {
    narrow(line, out, |v| v.word());
}

/// Stores the low bits of results.
#[inline(always)]
fn narrow<A: Sum, D: Copy>(line: &[A], out: &mut [D], low: impl Fn(A) -> D + Copy) {
    #[inline(always)]
    fn part<A: Sum, D>(line: &[A; LANES], out: &mut [D; LANES], low: impl Fn(A) -> D) {
        for x in 0..LANES {
            out[x] = low(line[x]);
        }
    }
    let (line, (out, rest)) = (line.as_chunks().0, out.as_chunks_mut());
    let last = line[out.len()..].first();
    line.iter().zip(out).for_each(|(line, out)| part(line, out, low));
    last.into_iter().flatten().zip(rest).for_each(|(v, out)| *out = low(*v));
}

/// Numbers before the first cache line, at most [`LANES`].
#[inline(always)]
fn aligned<A>(data: &[A]) -> usize {
    data.as_ptr().align_offset(64).min(LANES)
}

/// Sums for reuse.
struct ReusedSums<'a, A> {
    /// Sums of columns in the row before.
    total: &'a mut [A],
    /// Sums of two, four and so on neighbours in a row.
    doubled: &'a mut [A],
}

for_each_isa! {
    /// Filters row `y` of an image of some height into `to`, and divides. Column sums follow from the row before by
    /// adding and subtracting one pixel each, row sums from sums of halves.
    fn filter[A: Sum][A](
        pass: &IntegerFilter,
        read: &PaddedRows<A>,
        place: (isize, usize),
        first: bool,
        kept: &mut ReusedSums<'_, A>,
        to: &mut [A],
    ) as filter_body
}

#[inline(always)]
fn filter_body<A: Sum>(
    _: Isa,
    pass: &IntegerFilter,
    read: &PaddedRows<A>,
    (y, height): (isize, usize),
    first: bool,
    kept: &mut ReusedSums<'_, A>,
    to: &mut [A],
) {
    let row = |y: isize| match pass.border.map(y, height) {
        Some(y) => read.row(y.cast_signed()),
        None => &read.constant[..],
    };
    let divisor = (pass.divisor > 1).then(|| A::divisor(pass.divisor));
    let (top, ones) = (y - pass.reach.up.cast_signed(), pass.taps.iter().all(|t| *t == 1));
    let column = ones && pass.width == 1;
    if column && !first {
        let (new, old) = (row(top + pass.height.cast_signed() - 1).as_chunks().0, row(top - 1).as_chunks().0);
        let sums = kept.total.as_chunks_mut().0.iter_mut().zip(to.as_chunks_mut().0);
        for ((new, old), (total, to)) in new.iter().zip(old).zip(sums) {
            match divisor {
                Some(by) => slide(new, old, total, to, |v| v.over(by)),
                None => slide(new, old, total, to, |v| v),
            }
        }
        return;
    }
    let wide = to.len();
    if ones && pass.height == 1 && pass.width > 3 {
        let mut terms: [(A, &[A]); DIGITS + 1] = [(A::default(), &[]); DIGITS + 1];
        let (mut n, mut at, mut line, mut rest) = (0, 0, row(y), &mut *kept.doubled);
        for digit in 0..=pass.width.ilog2() {
            if pass.width >> digit & 1 != 0 {
                terms[n] = (A::default(), &line[at..at + wide]);
                (n, at) = (n + 1, at + (pass.samples << digit));
            }
            if digit < pass.width.ilog2() {
                let (next, others) = rest.split_at_mut(wide + BEYOND);
                double(line, pass.samples << digit, &mut next[..wide + LANES]);
                (line, rest) = (&*next, others);
            }
        }
        return add_some(&terms[..n], true, false, divisor, to);
    }
    // Each tap with the pixels under it, four at a time.
    let mut terms: [(A, &[A]); 4] = [(A::default(), &[]); 4];
    let (mut n, mut started) = (0, false);
    let mut left = pass.taps.iter().filter(|tap| **tap != 0).count();
    let within = divisor.filter(|_| !column);
    for (k, taps) in pass.taps.chunks_exact(pass.width).enumerate() {
        let from = row(top + k.cast_signed());
        for (j, tap) in taps.iter().enumerate().filter(|(_, tap)| **tap != 0) {
            terms[n] = (A::number(*tap), &from[j * pass.samples..][..wide]);
            (n, left) = (n + 1, left - 1);
            if n == terms.len() || left == 0 {
                add_some(&terms[..n], ones, started, within.filter(|_| left == 0), to);
                (n, started) = (0, true);
            }
        }
    }
    if !started {
        to.fill(A::default());
    }
    if column {
        kept.total.copy_from_slice(to);
        if let Some(by) = divisor {
            to.iter_mut().for_each(|v| *v = v.over(by));
        }
    }
}

/// Moves column sums one row down.
#[inline(always)]
fn slide<A: Sum>(
    new: &[A; LANES],
    old: &[A; LANES],
    total: &mut [A; LANES],
    to: &mut [A; LANES],
    end: impl Fn(A) -> A,
) {
    for x in 0..LANES {
        let sum = total[x].plus(new[x]).minus(old[x]);
        (total[x], to[x]) = (sum, end(sum));
    }
}

/// Sums of the elements of a line and the elements `by` further.
#[inline(always)]
fn double<A: Sum>(line: &[A], by: usize, to: &mut [A]) {
    #[inline(always)]
    fn part<A: Sum>(a: &[A; LANES], b: &[A; LANES], to: &mut [A; LANES]) {
        for x in 0..LANES {
            to[x] = a[x].plus(b[x]);
        }
    }
    let (a, b) = (line.as_chunks().0, line[by..].as_chunks().0);
    to.as_chunks_mut().0.iter_mut().zip(a.iter().zip(b)).for_each(|(to, (a, b))| part(a, b, to));
}

/// Adds some terms (up to four unless all taps are 1) to the sums, or stores them as the first; then divides.
#[inline(always)]
fn add_some<A: Sum>(terms: &[(A, &[A])], ones: bool, started: bool, divisor: Option<A::Divisor>, to: &mut [A]) {
    match divisor {
        Some(by) => add_up(terms, ones, started, to, |v| v.over(by)),
        None => add_up(terms, ones, started, to, |v| v),
    }
}

#[inline(always)]
fn add_up<A: Sum>(terms: &[(A, &[A])], ones: bool, started: bool, to: &mut [A], end: impl Fn(A) -> A + Copy) {
    match (terms, ones) {
        (&[a, b, c, d, e, f], _) => add::<A, 6, true>([a, b, c, d, e, f], started, to, end),
        (&[a, b, c, d, e], _) => add::<A, 5, true>([a, b, c, d, e], started, to, end),
        (&[a, b, c, d], true) => add::<A, 4, true>([a, b, c, d], started, to, end),
        (&[a, b, c], true) => add::<A, 3, true>([a, b, c], started, to, end),
        (&[a, b], true) => add::<A, 2, true>([a, b], started, to, end),
        (&[a], true) => add::<A, 1, true>([a], started, to, end),
        (&[a, b, c, d], false) => add::<A, 4, false>([a, b, c, d], started, to, end),
        (&[a, b, c], false) => add::<A, 3, false>([a, b, c], started, to, end),
        (&[a, b], false) => add::<A, 2, false>([a, b], started, to, end),
        (&[a], false) => add::<A, 1, false>([a], started, to, end),
        _ => debug_assert!(false, "no kernel for {} terms", terms.len()),
    }
}

#[inline(always)]
fn add<A: Sum, const N: usize, const ONES: bool>(
    terms: [(A, &[A]); N],
    started: bool,
    to: &mut [A],
    end: impl Fn(A) -> A + Copy,
) {
    #[inline(always)]
    fn part<A: Sum, const N: usize, const ONES: bool>(
        taps: &[A; N],
        pixels: &[&[A; LANES]; N],
        started: bool,
        to: &mut [A; LANES],
        end: impl Fn(A) -> A,
    ) {
        for x in 0..LANES {
            let mut sum = if started { to[x] } else { A::default() };
            for k in 0..N {
                sum = sum.plus(if ONES { pixels[k][x] } else { pixels[k][x].times(taps[k]) });
            }
            to[x] = end(sum);
        }
    }
    let taps = terms.map(|(tap, _)| tap);
    let pixels = terms.map(|(_, pixels)| pixels.as_chunks::<LANES>().0);
    for (i, to) in to.as_chunks_mut().0.iter_mut().enumerate() {
        part::<A, N, ONES>(&taps, &pixels.map(|pixels| &pixels[i]), started, to, end);
    }
}
