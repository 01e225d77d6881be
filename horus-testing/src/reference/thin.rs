//! Thinning by Guo and Hall's conditions: each iteration reads all pixels of the mask as the previous one left it.

use super::kernel::HostImage;
use super::{OperationDefinition, ReferenceImage};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::Thin;

impl OperationDefinition for Thin {
    fn of_images(&self, inputs: &[&ReferenceImage], (shape, dtype): (Shape, DType)) -> ReferenceImage {
        let planes: Vec<_> = (0..shape.planes())
            .map(|c| thin(shape.height, shape.width, |y, x| inputs[0].number(c, y, x) != 0.0))
            .collect();
        dispatch!(dtype, T => ReferenceImage::from_fn(shape, |c, y, x| {
            if planes[c][y * shape.width + x] { inputs[0].at::<T>(c, y, x) } else { T::ZERO }
        }))
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let Shape { height, width, .. } = out.shape;
        for c in 0..out.shape.planes() {
            let left = thin(height, width, |y, x| inputs[0].number(c, y.cast_signed(), x) != 0.0);
            for y in rows.start..rows.end {
                for x in (0..width).filter(|x| left[y.cast_unsigned() * width + x]) {
                    dispatch!(out.dtype, T => output.put::<T>(c, y, x, inputs[0].get(c, y, x)));
                }
            }
        }
    }
}

/// The pixels that remain of a mask.
fn thin(height: usize, width: usize, there: impl Fn(usize, usize) -> bool) -> Vec<bool> {
    let mut mask: Vec<bool> = (0..height * width).map(|i| there(i / width, i % width)).collect();
    loop {
        let mut removed = false;
        for pass in 0..2 {
            let before = mask.clone();
            for i in (0..mask.len()).filter(|i| before[*i]) {
                // The neighbours x1 to x8 of the paper: the right neighbour, then anti-clockwise.
                let around = [(0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1)];
                let x = around.map(|(dy, dx)| {
                    let at = (i / width).checked_add_signed(dy).zip((i % width).checked_add_signed(dx));
                    at.is_some_and(|(y, x)| y < height && x < width && before[y * width + x])
                });
                let x = |k: usize| x[(k - 1) % 8];
                let crossings = (1..=4).filter(|k| !x(2 * k - 1) && (x(2 * k) || x(2 * k + 1))).count();
                let ones = (1..=4).filter(|k| x(2 * k - 1) || x(2 * k)).count();
                let twos = (1..=4).filter(|k| x(2 * k) || x(2 * k + 1)).count();
                let apart = match pass {
                    0 => (x(2) || x(3) || !x(8)) && x(1),
                    _ => (x(6) || x(7) || !x(4)) && x(5),
                };
                if crossings == 1 && (2..=3).contains(&ones.min(twos)) && !apart {
                    mask[i] = false;
                    removed = true;
                }
            }
        }
        if !removed {
            return mask;
        }
    }
}
