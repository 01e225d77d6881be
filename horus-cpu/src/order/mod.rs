//! Generalized convolutions, truncated filters, medians and mirror images: operations that preserve the pixel type.

mod extremes;
mod generalized;
mod median;
mod padded_line;
mod truncated;
mod vector;

use self::generalized::generalized;
use self::median::median;
use self::truncated::truncated;
use super::plane::{OutputTile, Plane};
use super::simd::Isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::geometric::Flip;
use horus_plan::ops::neighbourhood::OrderFilter;

/// Writes the filtered pixels of `tile`, of plane `channel` of the `planes` of an image.
pub(crate) fn filter<'a, T: Pixel>(
    planes: impl Fn(usize) -> Plane<'a, T>,
    channel: usize,
    filter: &OrderFilter,
    border: Border,
    tile: &mut OutputTile<'_, T>,
    isa: Isa,
) {
    match filter {
        OrderFilter::Fold(g) => generalized(&planes(channel), g, border, tile, isa),
        OrderFilter::Truncated(t) => truncated(planes, channel, t, border, tile),
        OrderFilter::Median(size) => median(&planes(channel), *size, border, tile, isa),
    }
}

/// Writes the mirror image: output (`y`, `x`) is the input at (`h - 1 - y` if rows are reversed, `w - 1 - x` if columns
/// are). The plane has those rows in memory.
pub(crate) fn flip<T: Pixel>(plane: &Plane<'_, T>, flip: Flip, tile: &mut OutputTile<'_, T>) {
    let cols = tile.cols.clone();
    for y in tile.rows.start..tile.rows.end {
        let row = plane.row(if flip.rows() { plane.height.cast_signed() - 1 - y } else { y });
        let out = tile.row_mut(y);
        if flip.columns() {
            let last = plane.width - plane.samples;
            let element = |x: usize| row[last - x / plane.samples * plane.samples + x % plane.samples];
            match plane.samples {
                1 => out.iter_mut().zip(row[..plane.width - cols.start].iter().rev()).for_each(|(o, v)| *o = *v),
                _ => out.iter_mut().zip(cols.clone()).for_each(|(o, x)| *o = element(x)),
            }
        } else {
            out.copy_from_slice(&row[cols.clone()]);
        }
    }
}
