//! Order filters and mirror images over host planes.

use super::plane::{Plane, Tile};
use super::simd::Isa;
use crate::dtype::Pixel;
use crate::ops::geometric::Flip;
use crate::ops::neighbourhood::{Combine, Generalized, MedianSize, Reduce, median_network};
use crate::shape::Border;

fn each<T: Pixel>(tile: &mut Tile<'_, T>, f: impl Fn(isize, isize) -> T) {
    for y in tile.rows.start..tile.rows.end {
        for x in tile.cols.clone() {
            let at = x - tile.cols.start;
            tile.row_mut(y)[at] = f(y, x.cast_signed());
        }
    }
}

/// Generalized convolution of the pixels of `tile`.
pub fn generalized<T: Pixel>(plane: &Plane<'_, T>, g: &Generalized, border: Border, tile: &mut Tile<'_, T>, _isa: Isa) {
    let offsets = g.window.offsets();
    each(tile, |y, x| {
        let start = match g.reduce {
            Reduce::Sum => T::ZERO,
            Reduce::Product => T::ONE,
            Reduce::Min => T::HIGHEST,
            Reduce::Max => T::LOWEST,
        };
        offsets.iter().zip(g.window.taps()).fold(start, |acc, (&(dy, dx), &w)| {
            let (p, w) = (plane.pixel(y + dy, x + dx, border), T::from_f64(w));
            let v = match g.combine {
                Combine::Pixel => p,
                Combine::Add => p.add(w),
                Combine::Sub => p.sub(w),
                Combine::Mul => p.mul(w),
                Combine::Min => p.min(w),
                Combine::Max => p.max(w),
            };
            match g.reduce {
                Reduce::Sum => acc.add(v),
                Reduce::Product => acc.mul(v),
                Reduce::Min => acc.min(v),
                Reduce::Max => acc.max(v),
            }
        })
    });
}

/// Median of the pixels of `tile`.
pub fn median<T: Pixel>(plane: &Plane<'_, T>, size: MedianSize, border: Border, tile: &mut Tile<'_, T>, _isa: Isa) {
    let r = size.radius().cast_signed();
    let n = (2 * size.radius() + 1).pow(2);
    let network = median_network(n);
    each(tile, |y, x| {
        let mut v: Vec<T> =
            (-r..=r).flat_map(|dy| (-r..=r).map(move |dx| plane.pixel(y + dy, x + dx, border))).collect();
        for &(i, j) in &network {
            (v[i], v[j]) = (v[i].min(v[j]), v[j].max(v[i]));
        }
        v[n / 2]
    });
}

/// Pixels of the mirror image.
pub fn flip<T: Pixel>(plane: &Plane<'_, T>, flip: Flip, tile: &mut Tile<'_, T>) {
    each(tile, |y, x| {
        let y = if flip.rows() { plane.height.cast_signed() - 1 - y } else { y };
        let x = if flip.columns() { plane.width.cast_signed() - 1 - x } else { x };
        plane.row(y)[x.cast_unsigned()]
    });
}
