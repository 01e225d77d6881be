//! Affine maps over host planes.

use super::plane::{Plane, Tile};
use super::simd::Isa;
use crate::dtype::Pixel;
use crate::ops::geometric::{Affine, Interpolation};
use crate::shape::Border;

/// Samples `plane` at the positions that `map` gives for the pixels of `tile`.
pub fn warp<T: Pixel>(
    plane: &Plane<'_, T>,
    map: &Affine,
    _how: Interpolation,
    border: Border,
    tile: &mut Tile<'_, T>,
    _isa: Isa,
) {
    for y in tile.rows.start..tile.rows.end {
        for x in tile.cols.clone() {
            let (sy, sx) = map.at(y as i64, x as i64);
            let half = 1 << 31;
            let value = plane.pixel(((sy + half) >> 32) as isize, ((sx + half) >> 32) as isize, border);
            let at = x - tile.cols.start;
            tile.row_mut(y)[at] = value;
        }
    }
}
