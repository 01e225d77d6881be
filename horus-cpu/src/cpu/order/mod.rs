//! Generalized convolutions, medians and mirror images: operations that keep the pixel type.

mod around;
mod extremes;
mod generalized;
mod median;
mod vector;

use self::generalized::generalized;
use self::median::median;
use super::plane::{Plane, Tile};
use super::simd::Isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::geometric::Flip;
use horus_plan::ops::neighbourhood::OrderFilter;

/// Writes the filtered pixels of `tile`.
pub(crate) fn filter<T: Pixel>(
    plane: &Plane<'_, T>,
    filter: &OrderFilter,
    border: Border,
    tile: &mut Tile<'_, T>,
    isa: Isa,
) {
    match filter {
        OrderFilter::Fold(g) => generalized(plane, g, border, tile, isa),
        OrderFilter::Median(size) => median(plane, *size, border, tile, isa),
    }
}

/// Writes the mirror image: output (`y`, `x`) is the input at (`h - 1 - y` if rows are reversed, `w
/// - 1 - x` if columns are). The plane holds those rows.
pub(crate) fn flip<T: Pixel>(plane: &Plane<'_, T>, flip: Flip, tile: &mut Tile<'_, T>) {
    let cols = tile.cols.clone();
    for y in tile.rows.start..tile.rows.end {
        let row = plane.row(if flip.rows() { plane.height.cast_signed() - 1 - y } else { y });
        let out = tile.row_mut(y);
        if flip.columns() {
            let from = &row[plane.width - cols.end..plane.width - cols.start];
            out.iter_mut().zip(from.iter().rev()).for_each(|(o, v)| *o = *v);
        } else {
            out.copy_from_slice(&row[cols.clone()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::plane::whole;
    use horus_base::shape::Window;
    use horus_testing::for_each_type;
    use horus_testing::pixels::{SIZES, assert_same, noise, rows_of};

    fn flips_reverse_rows_and_columns<T: Pixel>() {
        for (h, w) in SIZES {
            let image = noise::<T>(h * w, 3, true);
            for how in [Flip::Horizontal, Flip::Vertical, Flip::Both] {
                let (ry, rx) = (how.rows(), how.columns());
                let pick =
                    |y: usize, x: usize| image[if ry { h - 1 - y } else { y } * w + if rx { w - 1 - x } else { x }];
                let want: Vec<T> = (0..h * w).map(|i| pick(i / w, i % w)).collect();
                let mut out = vec![T::ONE; h * w];
                let all = Window::whole(h);
                flip(&whole(&image, h, w), how, &mut Tile { out: &mut out, stride: w, rows: all, cols: 0..w });
                assert_same(&out, &want, &format!("{how:?}"));

                // One row and its right half only, computed from the mirrored row.
                let y = h / 2;
                let need = if ry { h - 1 - y } else { y } as isize;
                let held = rows_of(&image, h, w, Window::new(need, need + 1));
                let plane = Plane::new(&held, h, w, Window::new(need, need + 1));
                let mut part = vec![T::ONE; w - w / 2];
                let rows = Window::new(y as isize, y as isize + 1);
                flip(&plane, how, &mut Tile { out: &mut part, stride: w, rows, cols: w / 2..w });
                assert_same(&part, &want[y * w + w / 2..(y + 1) * w], &format!("part, {how:?}"));
            }
        }
    }

    #[test]
    fn flips_reverse_rows_and_columns_of_every_type() {
        for_each_type!(flips_reverse_rows_and_columns);
    }
}
