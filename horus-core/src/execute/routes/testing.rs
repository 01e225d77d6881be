//! Small images whose pixels encode their origin, for tests of transfers.

use crate::device::Geometry;
use crate::dtype::DType;
use crate::plan::movement::{Movement, RequiredPixels, RowSize};
use crate::plan::partition::Partition;
use crate::shape::{Shape, Window};

pub(crate) const HEIGHT: usize = 12;
pub(crate) const WIDTH: usize = 5;

pub(crate) fn geometry(channels: usize, window: Window) -> Geometry {
    Geometry { shape: Shape::new(HEIGHT, WIDTH, channels), dtype: DType::U8, window }
}

/// A byte for each pixel that encodes its origin; 0xff if `known` returns `false`.
pub(crate) fn pixels(geometry: Geometry, known: impl Fn(isize, usize) -> bool) -> Vec<u8> {
    let mut bytes = vec![0xff; geometry.bytes()];
    for c in 0..geometry.shape.planes() {
        for y in geometry.window.start..geometry.window.end {
            let row = geometry.row(c, y);
            let value = |x| (70 * c + WIDTH * y.rem_euclid(12).cast_unsigned() + x) as u8;
            (0..WIDTH).filter(|x| known(y, *x)).for_each(|x| bytes[row + x] = value(x));
        }
    }
    bytes
}

pub(crate) fn movement(strips: &[Window], channels: usize, needs: impl Fn(usize) -> Vec<RequiredPixels>) -> Movement {
    let needs = (0..strips.len()).map(needs).collect();
    Movement { size: RowSize { width: WIDTH, pixel: 1, planes: channels }, have: strips.to_vec(), required: needs }
}

/// Rows of each of `ranks` ranks.
pub(crate) fn strips(ranks: usize) -> Vec<Window> {
    (0..ranks).map(|r| Partition::equal(ranks).strip(r, HEIGHT)).collect()
}
