//! Generalized convolutions: any combination of pixel and weight under any reduction.

use super::extremes::Extremes;
use crate::cpu::patch::{BLOCK_COLS, Patch, for_each_block};
use crate::cpu::plane::{Plane, Tile};
use crate::cpu::simd::Isa;
use crate::cpu::versions::for_each_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::neighbourhood::{Combine, Generalized, Reduce};

/// Computes a generalized convolution: per pixel, the values of the window combined with the
/// weights and reduced in the order of the offsets, in the arithmetic of `T`.
pub(crate) fn generalized<T: Pixel>(
    plane: &Plane<'_, T>,
    g: &Generalized,
    border: Border,
    tile: &mut Tile<'_, T>,
    isa: Isa,
) {
    if let Some(extremes) = Extremes::of(g, T::DTYPE) {
        return extremes.compute(isa, plane, border, tile);
    }
    let taps: Vec<Tap<T>> = (g.window.offsets().into_iter().zip(g.window.taps()))
        .map(|((dy, dx), &weight)| Tap { dy, dx, weight: T::from_f64(weight) })
        .collect();
    for_each_block(plane, g.window.reach(), border, tile, |patch, block| direct(isa, patch, &taps, g, block));
}

struct Tap<T> {
    dy: isize,
    dx: isize,
    weight: T,
}

for_each_isa! {
    fn direct[T: Pixel][T](patch: &Patch<'_, T>, taps: &[Tap<T>], g: &Generalized, tile: &mut Tile<'_, T>)
    as direct_block
}

#[inline(always)]
fn direct_block<T: Pixel>(_: Isa, patch: &Patch<'_, T>, taps: &[Tap<T>], g: &Generalized, tile: &mut Tile<'_, T>) {
    let (x, n) = (tile.cols.start.cast_signed(), tile.cols.len());
    let mut values = [T::ZERO; BLOCK_COLS];
    for y in tile.rows.start..tile.rows.end {
        let out = tile.row_mut(y);
        out.fill(identity(g.reduce));
        for tap in taps {
            let pixels = patch.line(y + tap.dy, x + tap.dx, n);
            if g.combine == Combine::Pixel {
                accumulate(g.reduce, out, pixels);
            } else {
                combine(g.combine, &mut values[..n], pixels, tap.weight);
                accumulate(g.reduce, out, &values[..n]);
            }
        }
    }
}

#[inline(always)]
fn identity<T: Pixel>(reduce: Reduce) -> T {
    match reduce {
        Reduce::Sum => T::ZERO,
        Reduce::Product => T::ONE,
        Reduce::Min => T::HIGHEST,
        Reduce::Max => T::LOWEST,
    }
}

/// `values[i] = pixels[i] (combined with) weight`.
#[inline(always)]
fn combine<T: Pixel>(how: Combine, values: &mut [T], pixels: &[T], weight: T) {
    #[inline(always)]
    fn each<T: Pixel>(values: &mut [T], pixels: &[T], f: impl Fn(T) -> T) {
        values.iter_mut().zip(pixels).for_each(|(v, &p)| *v = f(p));
    }
    match how {
        Combine::Pixel => each(values, pixels, |p| p),
        Combine::Add => each(values, pixels, |p| p.add(weight)),
        Combine::Sub => each(values, pixels, |p| p.sub(weight)),
        Combine::Mul => each(values, pixels, |p| p.mul(weight)),
        Combine::Min => each(values, pixels, |p| p.min(weight)),
        Combine::Max => each(values, pixels, |p| p.max(weight)),
    }
}

/// `acc[i] = acc[i] (reduced with) values[i]`.
#[inline(always)]
fn accumulate<T: Pixel>(how: Reduce, acc: &mut [T], values: &[T]) {
    #[inline(always)]
    fn each<T: Pixel>(acc: &mut [T], values: &[T], f: impl Fn(T, T) -> T) {
        acc.iter_mut().zip(values).for_each(|(a, &v)| *a = f(*a, v));
    }
    match how {
        Reduce::Sum => each(acc, values, |a, v| a.add(v)),
        Reduce::Product => each(acc, values, |a, v| a.mul(v)),
        // `Arithmetic::min` without the NaN test of `a`: an accumulator that starts at a number
        // never is a NaN. One vector instruction remains.
        Reduce::Min => each(acc, values, |a, v| if v < a { v } else { a }),
        Reduce::Max => each(acc, values, |a, v| if v > a { v } else { a }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::plane::whole;
    use horus_base::shape::Window;
    use horus_plan::ops::neighbourhood::Filter;
    use horus_testing::for_each_type;
    use horus_testing::pixels::{SIZES, assert_same, borders, noise, rows_of};

    /// One pixel, from the definition.
    fn oracle<T: Pixel>(plane: &Plane<'_, T>, g: &Generalized, border: Border, y: usize, x: usize) -> T {
        let mut acc: T = identity(g.reduce);
        for ((dy, dx), &weight) in g.window.offsets().into_iter().zip(g.window.taps()) {
            let (p, w) = (plane.pixel(y as isize + dy, x as isize + dx, border), T::from_f64(weight));
            let v = match g.combine {
                Combine::Pixel => p,
                Combine::Add => p.add(w),
                Combine::Sub => p.sub(w),
                Combine::Mul => p.mul(w),
                Combine::Min => p.min(w),
                Combine::Max => p.max(w),
            };
            acc = match g.reduce {
                Reduce::Sum => acc.add(v),
                Reduce::Product => acc.mul(v),
                Reduce::Min => acc.min(v),
                Reduce::Max => acc.max(v),
            };
        }
        acc
    }

    fn windows() -> Vec<Filter> {
        let weights = |n: usize| (0..n).map(|i| [0.0, 1.0, -0.0, 2.5, f64::NAN, -1.0, 0.25][i % 7]).collect::<Vec<_>>();
        vec![
            Filter::dense(3, 3, weights(9)),
            Filter::dense(2, 5, weights(10)).flipped(),
            Filter::row(weights(4)),
            Filter::column(weights(7)),
            Filter::sparse([(0, 0), (-9, 4), (2, -11), (2, -11)], weights(4)),
        ]
    }

    fn every_combination_follows_the_definition<T: Pixel>() {
        for (n, &(h, w)) in SIZES.iter().enumerate() {
            let image = noise::<T>(h * w, n as u64, n % 2 == 1);
            let plane = whole(&image, h, w);
            let all = Combine::ALL.into_iter().flat_map(|c| Reduce::ALL.map(|r| (c, r)));
            let all =
                all.flat_map(|(combine, reduce)| windows().into_iter().map(move |window| (window, combine, reduce)));
            let long = [Filter::row(vec![0.0; 33]), Filter::dense(21, 6, vec![0.0; 126])];
            let long = long.into_iter().zip([Reduce::Max, Reduce::Min]).map(|(f, reduce)| (f, Combine::Pixel, reduce));
            for (window, combine, reduce) in all.chain(long) {
                let g = Generalized { window, combine, reduce };
                for border in borders() {
                    let cell = |i: usize| oracle(&plane, &g, border, i / w, i % w);
                    let want: Vec<T> = (0..h * w).map(cell).collect();
                    for isa in Isa::available() {
                        let mut out = vec![T::ONE; h * w];
                        let mut tile = Tile { out: &mut out, stride: w, rows: Window::whole(h), cols: 0..w };
                        generalized(&plane, &g, border, &mut tile, isa);
                        assert_same(&out, &want, &format!("{} {h}x{w} {g:?} {border} {isa:?}", T::DTYPE));
                    }
                }
            }
        }
    }

    #[test]
    fn every_combination_follows_the_definition_for_every_type() {
        for_each_type!(every_combination_follows_the_definition);
    }

    #[test]
    fn extremes_of_zeros_and_nan_are_the_first_in_row_major_order() {
        let (h, w) = (40, 70);
        let values = [0.0f32, -0.0, f32::NAN, 0.0, -0.0, -0.0, f32::NAN, f32::NAN];
        let image: Vec<f32> = noise::<u8>(h * w, 9, false).into_iter().map(|r| values[r as usize % 8]).collect();
        let plane = whole(&image, h, w);
        for (kh, kw, reduce) in [(3, 3, Reduce::Min), (2, 4, Reduce::Max), (5, 3, Reduce::Max), (9, 14, Reduce::Min)] {
            let g = Generalized { window: Filter::dense(kh, kw, vec![0.0; kh * kw]), combine: Combine::Pixel, reduce };
            for border in borders() {
                let want: Vec<f32> = (0..h * w).map(|i| oracle(&plane, &g, border, i / w, i % w)).collect();
                for isa in Isa::available() {
                    let mut out = vec![1.0; h * w];
                    let mut tile = Tile { out: &mut out, stride: w, rows: Window::whole(h), cols: 0..w };
                    generalized(&plane, &g, border, &mut tile, isa);
                    assert!(out.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()), "{g:?} {border} {isa:?}");
                }
            }
        }
    }

    #[test]
    fn a_tile_over_the_rows_it_needs_equals_the_whole() {
        let (h, w) = (150, 700);
        let image = noise::<f32>(h * w, 2, true);
        for window in windows() {
            for (reduce, border) in [(Reduce::Sum, Border::Reflect101), (Reduce::Max, Border::Wrap)] {
                let g = Generalized { window: window.clone(), combine: Combine::Pixel, reduce };
                let mut all = vec![1.0; h * w];
                let mut tile = Tile { out: &mut all, stride: w, rows: Window::whole(h), cols: 0..w };
                generalized(&whole(&image, h, w), &g, border, &mut tile, Isa::detect().unwrap());
                for (rows, cols) in [(Window::new(60, 140), 0..700), (Window::new(0, 3), 690..700)] {
                    let reach = g.window.reach();
                    // Wrapped rows are held as such; mirrored ones lie on the other side of the
                    // tile.
                    let both = reach.up + reach.down;
                    let mirrored = rows.grown(both, both).clipped(h);
                    let window = if border == Border::Wrap { rows.grown(reach.up, reach.down) } else { mirrored };
                    let held = rows_of(&image, h, w, window);
                    let plane = Plane::new(&held, h, w, window);
                    let stride = cols.len() + 5;
                    let mut part = vec![1.0; rows.len() * stride];
                    generalized(
                        &plane,
                        &g,
                        border,
                        &mut Tile { out: &mut part, stride, rows, cols: cols.clone() },
                        Isa::detect().unwrap(),
                    );
                    for (y, part) in (rows.start as usize..).zip(part.chunks(stride)).take(rows.len()) {
                        assert_same(&part[..cols.len()], &all[y * w..][cols.clone()], &format!("{g:?} row {y}"));
                    }
                }
            }
        }
    }
}
