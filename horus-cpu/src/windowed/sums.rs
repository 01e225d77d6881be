//! Sums over rectangles by doubling: sums of two pixels, of four and so on, of which those for the binary digits of the
//! size are added up.
//!
//! Each power of two goes over a line once, whatever its pixels: a row, or columns of row sums. Sixteen adjacent
//! columns form one line in which neighbours are sixteen apart.

use crate::plane::Plane;
use crate::versions::for_least_isa;
use horus_base::dtype::{Pixel, Scalar};
use horus_base::shape::{Border, Window};
use horus_plan::ops::windowed::BoxMean;

/// Columns added up side by side.
pub(super) const STRIP: usize = 16;
/// Bytes of row sums in memory for a block: they stay in a core's cache.
pub(super) const ROW_SUM_BYTES: usize = 1 << 20;
/// Minimum rows of a block; a column is added up over these results and the window.
pub(super) const ROWS: usize = 128;

/// Accumulator type of a sum.
pub(super) trait Total: Copy + Default {
    /// A pixel.
    fn of<T: Pixel>(pixel: T) -> Self;
    /// The sum of both.
    fn plus(self, other: Self) -> Self;
    /// Divided by `count`, or unchanged if that is 0.
    fn over<R: Pixel>(self, count: usize) -> R;
}

macro_rules! float {
    ($t:ident) => {
        impl Total for $t {
            #[inline(always)]
            fn of<T: Pixel>(pixel: T) -> $t {
                pixel.to_f64() as $t
            }
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn over<R: Pixel>(self, count: usize) -> R {
                let value = if count == 0 { self } else { self / count as $t };
                R::from_f64(f64::from(value))
            }
        }
    };
}
float!(f32);
float!(f64);

/// Integers, whose sums equal the sums in `f64`.
impl Total for i32 {
    #[inline(always)]
    fn of<T: Pixel>(pixel: T) -> i32 {
        match pixel.scalar() {
            Scalar::U8(v) => v.into(),
            Scalar::I8(v) => v.into(),
            Scalar::U16(v) => v.into(),
            Scalar::I16(v) => v.into(),
            _ => 0,
        }
    }
    #[inline(always)]
    fn plus(self, other: i32) -> i32 {
        // Sums that run beyond a line may wrap; nothing reads them.
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn over<R: Pixel>(self, count: usize) -> R {
        f64::from(self).over(count)
    }
}

/// Rows of an image, continued by its border. Pixels of all types are converted to few types of sums, for which the rest
/// is compiled.
pub(super) struct ExtendedRows<'a, A> {
    pub(super) width: usize,
    /// Elements of a pixel.
    pub(super) samples: usize,
    /// Fills a line with the elements of row `y` from element `x` on.
    pub(super) read: &'a ReadLine<'a, A>,
}

type ReadLine<'a, A> = dyn Fn((isize, isize), &mut [A]) + 'a;

for_least_isa! {
    /// Computes means over a rectangle for all columns of `rows`; `out` is the memory of these rows.
    pub(super) fn means[A: Total, R: Pixel][A, R](
        image: &ExtendedRows<'_, A>, mean: &BoxMean, rows: Window, out: &mut [R]
    ) as means_of
}

#[inline(always)]
fn means_of<A: Total, R: Pixel>(image: &ExtendedRows<'_, A>, mean: &BoxMean, rows: Window, out: &mut [R]) {
    let (width, tall, wide, samples) = (image.width, mean.height(), mean.width(), image.samples);
    let reach = mean.reach.in_samples(samples);
    let (up, left, around) = (reach.up.cast_signed(), reach.left.cast_signed(), (wide - 1) * samples);
    // At least twice as many rows at once as the window has, so that less than half is computed twice.
    let most = (2 * tall).max(ROWS).min(rows.len());
    let held = if tall == 1 { 1 } else { most + tall - 1 };
    let chunk = (ROW_SUM_BYTES / (held * size_of::<A>()))
        .max(2 * (around + samples))
        .max(4 * STRIP)
        .min(width)
        .next_multiple_of(STRIP);
    let zeros = |n: usize| vec![A::default(); n];
    let (mut line, mut other, mut row) = (zeros(chunk + around + 1), zeros(chunk + around + 1), zeros(chunk));
    // Buffers for sums of columns: row sums, sums of a strip (two), and their sums.
    let columns = if tall == 1 { 0 } else { 1 };
    let mut kept = zeros(columns * held * chunk);
    let (mut strip, mut doubled) = (zeros(columns * held * STRIP), zeros(columns * held * STRIP));
    let mut added = zeros(columns * most * STRIP);
    for x in (0..width).step_by(chunk) {
        let n = chunk.min(width - x);
        let mut sum_row = |y: isize, to: &mut [A]| {
            (image.read)((y, x.cast_signed() - left), &mut line[..n + around]);
            add_up(&mut line, &mut other, samples, wide, to);
        };
        if tall == 1 {
            for (y, out) in (rows.start..rows.end).zip(out.chunks_exact_mut(width)) {
                sum_row(y - up, &mut row[..n]);
                out[x..x + n].iter_mut().zip(&row).for_each(|(o, v)| *o = v.over(mean.count));
            }
            continue;
        }
        let mut have = 0;
        for (k, out) in out.chunks_mut(most * width).enumerate() {
            let height = out.len() / width;
            let first = rows.start - up + (k * most).cast_signed();
            for i in have..height + tall - 1 {
                sum_row(first + i.cast_signed(), &mut kept[i * chunk..][..n]);
            }
            for at in (0..n).step_by(STRIP) {
                // Sums beyond the chunk cover stale values: nothing reads them.
                for (to, from) in strip.chunks_exact_mut(STRIP).zip(kept.chunks_exact(chunk)).take(height + tall - 1) {
                    to.copy_from_slice(&from[at..at + STRIP]);
                }
                add_up(&mut strip, &mut doubled, STRIP, tall, &mut added[..height * STRIP]);
                let cols = STRIP.min(n - at);
                for (out, sums) in out.chunks_exact_mut(width).zip(added.chunks_exact(STRIP)) {
                    let out = &mut out[x + at..][..cols];
                    out.iter_mut().zip(sums).for_each(|(o, v)| *o = v.over(mean.count));
                }
            }
            // Row sums that the next rows read, too.
            kept.copy_within(height * chunk..(height + tall - 1) * chunk, 0);
            have = tall - 1;
        }
    }
}

for_least_isa! {
    /// Fills a line with the elements of row `y` from element `x` on, continued by the border.
    pub(super) fn extend[S: Pixel, A: Total][S, A](
        plane: &Plane<'_, S>, at: (isize, isize), border: Border, line: &mut [A]
    ) as extend_body
}

#[inline(always)]
fn extend_body<S: Pixel, A: Total>(plane: &Plane<'_, S>, (y, x): (isize, isize), border: Border, line: &mut [A]) {
    let constant = A::of(border.constant().map_or(S::ZERO, S::from_f64));
    let Some(row) = plane.resolve(y, border).map(|y| plane.row(y)) else {
        line.fill(constant);
        return;
    };
    let (width, end) = (plane.width.cast_signed(), x + line.len().cast_signed());
    let edge = |x: isize| plane.column(x, border).map_or(constant, |x| A::of(row[x]));
    // The part of the line that is in the image.
    let (from, to) = (x.clamp(0, width), end.clamp(0, width));
    let (from, to) = if from < to { (from, to) } else { (end, end) };
    let (before, rest) = line.split_at_mut((from - x).cast_unsigned());
    let (inside, after) = rest.split_at_mut((to - from).cast_unsigned());
    before.iter_mut().zip(x..).for_each(|(v, x)| *v = edge(x));
    after.iter_mut().zip(to..).for_each(|(v, x)| *v = edge(x));
    if !inside.is_empty() {
        let row = &row[from.cast_unsigned()..to.cast_unsigned()];
        inside.iter_mut().zip(row).for_each(|(v, pixel)| *v = A::of(*pixel));
    }
}

/// `to[i]` becomes the sum of the `k` values `line[i + j * apart]`, in the order of [`BoxMean`].
/// Overwrites the line and the other one, which has the same length.
#[inline(always)]
fn add_up<'a, A: Total>(mut line: &'a mut [A], mut other: &'a mut [A], apart: usize, k: usize, to: &mut [A]) {
    let n = to.len();
    let (mut power, mut done) = (1, 0);
    loop {
        if k & power != 0 {
            let from = &line[done * apart..][..n];
            if done == 0 {
                to.copy_from_slice(from);
            } else {
                to.iter_mut().zip(from).for_each(|(t, f)| *t = t.plus(*f));
            }
            done += power;
        }
        if 2 * power > k {
            return;
        }
        let by = power * apart;
        power *= 2;
        let end = n + (k - power) * apart;
        let pairs = line[..end].iter().zip(&line[by..by + end]);
        other[..end].iter_mut().zip(pairs).for_each(|(o, (a, b))| *o = a.plus(*b));
        std::mem::swap(&mut line, &mut other);
    }
}
