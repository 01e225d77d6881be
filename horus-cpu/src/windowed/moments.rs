//! Variances over rectangles by doubling, in the order of sums: moments of two pixels, of four and so on, of which
//! those for the binary digits of the size are joined.
//!
//! See [`sums`](super::sums). Sums and squared deviations are separate lines.

use super::sums::{ExtendedRows, ROW_SUM_BYTES, ROWS, STRIP};
use crate::versions::for_least_isa;
use horus_base::shape::Window;
use horus_plan::ops::windowed::{BoxMean, WindowMoments};

/// Moments of equal numbers of pixels.
struct MomentLines {
    sums: Vec<f64>,
    squared_deviations: Vec<f64>,
}

impl MomentLines {
    fn zeros(n: usize) -> MomentLines {
        MomentLines { sums: vec![0.0; n], squared_deviations: vec![0.0; n] }
    }
}

for_least_isa! {
    /// Computes variances over a rectangle for all columns of `rows`; `out` is the memory of these rows.
    pub(super) fn variances[][](
        image: &ExtendedRows<'_, f64>, mean: &BoxMean, rows: Window, out: &mut [f64]
    ) as variances_of
}

#[inline(always)]
fn variances_of(image: &ExtendedRows<'_, f64>, mean: &BoxMean, rows: Window, out: &mut [f64]) {
    let (width, tall, wide, samples) = (image.width, mean.height(), mean.width(), image.samples);
    let reach = mean.reach.in_samples(samples);
    let (up, left, around) = (reach.up.cast_signed(), reach.left.cast_signed(), (wide - 1) * samples);
    let most = (2 * tall).max(ROWS).min(rows.len());
    let held = most + tall - 1;
    let bytes = 2 * held * size_of::<f64>();
    let chunk = (ROW_SUM_BYTES / bytes).max(2 * (around + samples)).max(4 * STRIP).min(width).next_multiple_of(STRIP);
    let [mut line, mut other] = [(); 2].map(|()| MomentLines::zeros(chunk + around + 1));
    let mut kept = MomentLines::zeros(held * chunk);
    let [mut strip, mut doubled] = [(); 2].map(|()| MomentLines::zeros(held * STRIP));
    let mut added = MomentLines::zeros(most * STRIP);
    let over = |apart: f64| if mean.count == 0 { apart } else { apart / mean.count as f64 };
    for x in (0..width).step_by(chunk) {
        let n = chunk.min(width - x);
        let mut have = 0;
        for (k, out) in out.chunks_mut(most * width).enumerate() {
            let height = out.len() / width;
            let first = rows.start - up + (k * most).cast_signed();
            for i in have..height + tall - 1 {
                let (y, of) = (first + i.cast_signed(), i * chunk..i * chunk + n);
                (image.read)((y, x.cast_signed() - left), &mut line.sums[..n + around]);
                line.squared_deviations.fill(0.0);
                let to = (&mut kept.sums[of.clone()], &mut kept.squared_deviations[of]);
                join(&mut line, &mut other, (samples, wide), 1, to);
            }
            for at in (0..n).step_by(STRIP) {
                // Moments beyond the chunk cover stale values: nothing reads them.
                for (to, from) in
                    [(&mut strip.sums, &kept.sums), (&mut strip.squared_deviations, &kept.squared_deviations)]
                {
                    let rows = to.chunks_exact_mut(STRIP).zip(from.chunks_exact(chunk)).take(height + tall - 1);
                    rows.for_each(|(to, from)| to.copy_from_slice(&from[at..at + STRIP]));
                }
                let to = (&mut added.sums[..height * STRIP], &mut added.squared_deviations[..height * STRIP]);
                join(&mut strip, &mut doubled, (STRIP, tall), wide, to);
                let cols = STRIP.min(n - at);
                for (out, apart) in out.chunks_exact_mut(width).zip(added.squared_deviations.chunks_exact(STRIP)) {
                    out[x + at..][..cols].iter_mut().zip(apart).for_each(|(o, v)| *o = over(*v));
                }
            }
            // Rows that the next results read, too.
            for kept in [&mut kept.sums, &mut kept.squared_deviations] {
                kept.copy_within(height * chunk..(height + tall - 1) * chunk, 0);
            }
            have = tall - 1;
        }
    }
}

/// `to[i]` becomes the moments of the `k` values `line[i + j * apart]`, each of `pixels` pixels. Overwrites the line
/// and the other one, which has the same length.
#[inline(always)]
fn join<'a>(
    mut line: &'a mut MomentLines,
    mut other: &'a mut MomentLines,
    (apart, k): (usize, usize),
    pixels: usize,
    to: (&mut [f64], &mut [f64]),
) {
    let n = to.0.len();
    let count = |times: usize| (pixels * times) as f64;
    let (mut power, mut done) = (1, 0);
    loop {
        if k & power != 0 {
            let from = done * apart..done * apart + n;
            let (sums, squares) = (&line.sums[from.clone()], &line.squared_deviations[from]);
            if done == 0 {
                to.0.copy_from_slice(sums);
                to.1.copy_from_slice(squares);
            } else {
                let (n, k) = (count(done), count(power));
                let share = WindowMoments::share(n, k);
                let pairs = to.0.iter_mut().zip(&mut *to.1).zip(sums.iter().zip(squares));
                for ((sum, square), (other, more)) in pairs {
                    let between = other * n - *sum * k;
                    *square = (*square + more) + between * between * share;
                    *sum += other;
                }
            }
            done += power;
        }
        if 2 * power > k {
            return;
        }
        let by = power * apart;
        let times = count(power);
        let share = WindowMoments::share(times, times);
        power *= 2;
        let end = n + (k - power) * apart;
        let (sums, squares) = (&line.sums, &line.squared_deviations);
        let pairs = sums[..end].iter().zip(&sums[by..by + end]).zip(squares[..end].iter().zip(&squares[by..by + end]));
        let doubled = other.sums[..end].iter_mut().zip(&mut other.squared_deviations[..end]);
        for ((to, square), ((a, b), (one, more))) in doubled.zip(pairs) {
            let between = b * times - a * times;
            *square = (one + more) + between * between * share;
            *to = a + b;
        }
        std::mem::swap(&mut line, &mut other);
    }
}
