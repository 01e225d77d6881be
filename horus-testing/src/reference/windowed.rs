//! Means and variances over rectangles and ranks under footprints.

use std::cmp::Ordering;

use super::kernel::{HostImage, places};
use super::{OperationDefinition, ReferenceImage};
use horus_base::dispatch;
use horus_base::dtype::{DType, Float, Pixel};
use horus_base::shape::{Border, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::neighbourhood::Reach;
use horus_plan::ops::windowed::{BoxMean, Ranked, Sliding, WindowMoments, Windowed, joined, line_sum, summed};

impl OperationDefinition for Sliding {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        windowed(inputs[0], how, dtype)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let how = self;
        let dtype = inputs[0].geometry.dtype;
        for (c, y, x) in places(out, rows) {
            let read = |dz: isize, dy: isize, dx: isize| {
                let (y, x) = (y + dy, x.cast_signed() + dx);
                match plane_at(out.shape, c, dz, how.border) {
                    Some(c) => dispatch!(dtype, S => inputs[0].sample::<S>(c, y, x, how.border).to_f64()),
                    None => constant(dtype, how.border),
                }
            };
            output.put_number(c, y, x, windowed_at(how, dtype, &read));
        }
    }
}

/// A windowed operation, as an image of type `dtype`.
pub fn windowed(image: &ReferenceImage, how: &Sliding, dtype: DType) -> ReferenceImage {
    horus_base::dispatch!(dtype, T => ReferenceImage::from_fn(image.shape, |c, y, x| {
        let read = |dz, dy, dx| match plane_at(image.shape, c, dz, how.border) {
            Some(c) => image.read_number(c, y.cast_signed() + dy, x.cast_signed() + dx, how.border),
            None => constant(image.dtype(), how.border),
        };
        T::from_f64(windowed_at(how, image.dtype(), &read))
    }))
}

/// The plane so many levels from a plane of a volume; `None` where the constant is read.
pub(super) fn plane_at(shape: Shape, plane: usize, dz: isize, border: Border) -> Option<usize> {
    let level = border.map((plane / shape.channels).cast_signed() + dz, shape.depth)?;
    Some(level * shape.channels + plane % shape.channels)
}

/// The constant of a border, in the type of the pixels.
pub(super) fn constant(dtype: DType, border: Border) -> f64 {
    let value = border.constant().unwrap_or(0.0);
    horus_base::dispatch!(dtype, T => T::from_f64(value).to_f64())
}

/// The result, not yet rounded to the result type, of a window; `read` returns its pixels, of type `dtype`, by level,
/// row and column.
pub(super) fn windowed_at(how: &Sliding, dtype: DType, read: &dyn Fn(isize, isize, isize) -> f64) -> f64 {
    let in_plane = |y, x| read(0, y, x);
    match &how.how {
        Windowed::Mean(mean) => match summed(dtype) {
            DType::F32 => mean_of::<f32>(mean, &in_plane).into(),
            _ => mean_of::<f64>(mean, &in_plane),
        },
        Windowed::Variance(mean) => variance_of(mean, &in_plane),
        Windowed::Rank(rank) => ranked(rank, read),
    }
}

fn mean_of<A: Float>(mean: &BoxMean, read: &dyn Fn(isize, isize) -> f64) -> A {
    let Reach { up, left, .. } = mean.reach;
    let at = |i: usize, before: usize| i.cast_signed() - before.cast_signed();
    let row = |y: usize| line_sum(mean.width(), &|x| A::from_f64(read(at(y, up), at(x, left))));
    let sum = line_sum(mean.height(), &row);
    if mean.count == 0 { sum } else { sum.div(A::from_f64(mean.count as f64)) }
}

fn variance_of(mean: &BoxMean, read: &dyn Fn(isize, isize) -> f64) -> f64 {
    let Reach { up, left, .. } = mean.reach;
    let at = |i: usize, before: usize| i.cast_signed() - before.cast_signed();
    let join = |pixels: usize, of: &dyn Fn(usize) -> WindowMoments| {
        joined(pixels, &of, &WindowMoments::and).expect("some pixels")
    };
    let row = |y: usize| join(mean.width(), &|x| WindowMoments::of(read(at(y, up), at(x, left))));
    let apart = join(mean.height(), &row).squared_deviations;
    if mean.count == 0 { apart } else { apart / mean.count as f64 }
}

/// The pixel of the given rank among the values of `read` under the footprint.
fn ranked(rank: &Ranked, read: &dyn Fn(isize, isize, isize) -> f64) -> f64 {
    let pixels = rank.spans.iter().flat_map(|s| (s.from..s.to).map(|x| read(s.z as isize, s.y as isize, x as isize)));
    let mut pixels: Vec<f64> = pixels.collect();
    pixels.sort_by(|a, b| match (a.is_nan(), b.is_nan()) {
        (true, other) => {
            if other {
                Ordering::Equal
            } else {
                Ordering::Greater
            }
        }
        (false, true) => Ordering::Less,
        _ => a.total_cmp(b),
    });
    pixels[rank.place]
}
