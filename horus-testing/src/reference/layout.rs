//! Operations that move pixels or read tables, pixel by pixel.

use super::kernel::{HostImage, places};
use super::{OperationDefinition, ReferenceImage};
use horus_base::dtype::{DType, Float, Pixel};
use horus_base::shape::{Axis, Shape, Window};
use horus_base::{dispatch, dispatch_float};
use horus_host::device::Geometry;
use horus_plan::ops::planes::stacked;
use horus_plan::ops::{Deinterleave, Interleave, Lookup, MatrixProduct, Merge};

impl OperationDefinition for Merge {
    fn of_images(&self, inputs: &[&ReferenceImage], (shape, _dtype): (Shape, DType)) -> ReferenceImage {
        merge(inputs, shape)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        dispatch!(out.dtype, T => {
            let from = stacked(inputs.iter().map(|i| i.geometry.shape), out.shape).expect("a launch that fits");
            for (p, (i, plane)) in from.into_iter().enumerate() {
                for y in rows.start..rows.end {
                    (0..out.shape.width).for_each(|x| output.put::<T>(p, y, x, inputs[i].get(plane, y, x)));
                }
            }
        });
    }
}

impl OperationDefinition for Lookup {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        lookup(inputs[0], inputs[1])
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let lowest = dispatch!(inputs[0].geometry.dtype, S => S::LOWEST.to_f64());
        for (c, y, x) in places(out, rows) {
            let entry = (inputs[0].number(c, y, x) - lowest) as usize;
            output.put_number(c, y, x, inputs[1].number(0, 0, entry));
        }
    }
}

impl OperationDefinition for Deinterleave {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        deinterleaved(inputs[0])
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        dispatch!(out.dtype, T => {
            for (c, y, x) in places(out, rows) {
                output.put::<T>(c, y, x, inputs[0].get(c, y, x));
            }
        });
    }
}

impl OperationDefinition for Interleave {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        interleaved(inputs[0])
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        dispatch!(out.dtype, T => {
            for (c, y, x) in places(out, rows) {
                output.put::<T>(c, y, x, inputs[0].get(c, y, x));
            }
        });
    }
}

impl OperationDefinition for MatrixProduct {
    fn of_images(&self, inputs: &[&ReferenceImage], (shape, _dtype): (Shape, DType)) -> ReferenceImage {
        product(inputs[0], inputs[1], shape)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        dispatch_float!(out.dtype, T => {
            for (c, y, x) in places(out, rows) {
                let factors = (0..inputs[0].geometry.shape.width)
                    .map(|k| [inputs[0].get::<T>(c, y, k), inputs[1].get(c, k.cast_signed(), x)]);
                output.put(c, y, x, sum_of_products(factors));
            }
        });
    }
}

/// Sample `c` of each pixel as the pixel of channel `c`.
pub fn deinterleaved(image: &ReferenceImage) -> ReferenceImage {
    let channels = image.shape.samples;
    dispatch!(image.dtype(), T => ReferenceImage::from_fn(image.shape.deinterleaved(), |plane, y, x| {
        image.at::<T>(plane / channels, y, x * channels + plane % channels)
    }))
}

/// The pixel of channel `c` as sample `c` of each pixel.
pub fn interleaved(image: &ReferenceImage) -> ReferenceImage {
    let channels = image.shape.channels;
    dispatch!(image.dtype(), T => ReferenceImage::from_fn(image.shape.interleaved(), |level, y, x| {
        image.at::<T>(level * channels + x % channels, y, x / channels)
    }))
}

/// A matrix product.
fn product(a: &ReferenceImage, b: &ReferenceImage, shape: Shape) -> ReferenceImage {
    dispatch_float!(a.dtype(), T => ReferenceImage::from_fn(shape, |plane, y, x| {
        sum_of_products((0..a.shape.width).map(|k| [a.at::<T>(plane, y, k), b.at(plane, k, x)]))
    }))
}

/// A pixel of a matrix product, from the pairs of factors in order.
pub(crate) fn sum_of_products<T: Float>(factors: impl Iterator<Item = [T; 2]>) -> T {
    factors.fold(T::ZERO, |sum, [a, b]| a.fma(b, sum))
}

/// For each pixel, the entry of `table` at its index.
pub(super) fn lookup(image: &ReferenceImage, table: &ReferenceImage) -> ReferenceImage {
    let lowest = dispatch!(image.dtype(), S => S::LOWEST.to_f64());
    let entry = |c, y, x| (image.number(c, y, x) - lowest) as usize;
    dispatch!(table.dtype(), D => {
        ReferenceImage::from_fn(image.shape, |c, y, x| table.at::<D>(0, 0, entry(c, y, x)))
    })
}

/// Images of one type, concatenated into an image of shape `shape`: along the channels if they have its depth, else
/// along the depth.
pub fn merge(images: &[&ReferenceImage], shape: Shape) -> ReferenceImage {
    let first = images[0];
    assert!(images.iter().all(|i| i.dtype() == first.dtype()), "merged images differ in type");
    let along = if images.iter().all(|i| i.shape.depth == shape.depth) { Axis::Channels } else { Axis::Depth };
    let total: usize = images.iter().map(|i| i.shape.extent(along)).sum();
    assert_eq!(first.shape.with_extent(along, total), shape, "merged images make up the result");
    dispatch!(first.dtype(), T => ReferenceImage::from_fn(shape, |p, y, x| {
        let (mut z, mut c) = (p / shape.channels, p % shape.channels);
        let mut rest = images.iter();
        loop {
            let image = rest.next().expect("the extents add up");
            assert_eq!(image.shape.with_extent(along, total), shape, "merged images have one extent");
            let (at, n) = (if along == Axis::Depth { &mut z } else { &mut c }, image.shape.extent(along));
            if *at < n {
                return image.at::<T>(z * image.shape.channels + c, y, x);
            }
            *at -= n;
        }
    }))
}
