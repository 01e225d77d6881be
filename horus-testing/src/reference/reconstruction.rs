//! Reconstruction by iteration until nothing changes.

use super::kernel::HostImage;
use super::{OperationDefinition, ReferenceImage};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::reconstruction::Reconstruction;

impl OperationDefinition for Reconstruction {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        reconstruct(inputs[0], inputs[1], *how)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, _rows: Window) {
        let how = self;
        dispatch!(out.dtype, T => {
            let Shape { depth, height, width, .. } = out.shape;
            let pixel = |i: usize| (i / width / height, (i / width % height).cast_signed(), i % width);
            let all = |image: &HostImage| (0..out.shape.len()).map(pixel).map(|(z, y, x)| image.get::<T>(z, y, x)).collect();
            let [marker, mask]: [Vec<T>; 2] = [&inputs[0], &inputs[1]].map(all);
            for (i, v) in reconstruction(&marker, &mask, [depth, height, width], *how).into_iter().enumerate() {
                let (z, y, x) = pixel(i);
                output.put(z, y, x, v);
            }
        });
    }
}

/// Reconstruction of a mask from a marker, of one channel.
pub fn reconstruct(marker: &ReferenceImage, mask: &ReferenceImage, how: Reconstruction) -> ReferenceImage {
    let Shape { depth, height, width, .. } = mask.shape;
    horus_base::dispatch!(mask.dtype(), T => {
        let found = reconstruction::<T>(marker.as_slice(), mask.as_slice(), [depth, height, width], how);
        ReferenceImage::new(mask.shape, found)
    })
}

/// Reconstruction of a mask from a marker, of `[depth, height, width]` pixels, by definition.
pub fn reconstruction<T: Pixel>(marker: &[T], mask: &[T], extent: [usize; 3], how: Reconstruction) -> Vec<T> {
    let [_, height, width] = extent;
    let mask: Vec<T> = mask.iter().map(|v| how.ordered(*v)).collect();
    let mut found: Vec<T> = marker.iter().zip(&mask).map(|(a, b)| how.within(how.ordered(*a), *b)).collect();
    loop {
        let before = found.clone();
        for (i, v) in found.iter_mut().enumerate() {
            let at = [i / width / height, i / width % height, i % width];
            for by in how.neighbours.neighbours() {
                let place = [0, 1, 2].map(|axis| at[axis].checked_add_signed(by[axis]).filter(|k| *k < extent[axis]));
                if let [Some(z), Some(y), Some(x)] = place {
                    *v = how.grown(*v, before[(z * height + y) * width + x]);
                }
            }
            *v = how.within(*v, mask[i]);
        }
        if found == before {
            return found;
        }
    }
}
