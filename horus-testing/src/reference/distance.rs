//! Nearest background pixels, by trying all.

use super::kernel::{HostImage, places};
use super::{OperationDefinition, ReferenceImage};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel, Scalar};
use horus_base::shape::{Axis, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::NearestOnLine;
use horus_plan::ops::distance::{Metric, NONE, NearestPixel, NearestResult};

impl OperationDefinition for NearestOnLine {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        let image = inputs[0];
        ReferenceImage::from_fn(image.shape, |p, y, x| {
            let (line, at) = line(image.shape, how.along, (p, y, x), |p, y, x| image.number(p, y, x) != 0.0);
            nearest_on_line(&line, at)
        })
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let how = self;
        for (c, y, x) in places(out, rows) {
            let there = |c: usize, y: usize, x: usize| inputs[0].number(c, y.cast_signed(), x) != 0.0;
            let (line, at) = line(out.shape, how.along, (c, y.cast_unsigned(), x), there);
            output.put(c, y, x, nearest_on_line(&line, at));
        }
    }
}

impl OperationDefinition for NearestPixel {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        let offsets = inputs[0];
        dispatch!(dtype, T => ReferenceImage::from_fn(offsets.shape, |p, y, x| {
            let (line, at) = line(offsets.shape, how.along, (p, y, x), |p, y, x| offsets.at(p, y, x));
            T::from_scalar(nearest(&line, at, *how))
        }))
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let how = self;
        dispatch!(out.dtype, T => {
            for (c, y, x) in places(out, rows) {
                let offset = |c: usize, y: usize, x: usize| inputs[0].get(c, y.cast_signed(), x);
                let (line, at) = line(out.shape, how.along, (c, y.cast_unsigned(), x), offset);
                output.put(c, y, x, T::from_scalar(nearest(&line, at, *how)));
            }
        });
    }
}

/// The line along an axis through a pixel, given by its plane, row and column, and the pixel's place on it.
pub fn line<V>(
    shape: Shape,
    along: Axis,
    (p, y, x): (usize, usize, usize),
    pixel: impl Fn(usize, usize, usize) -> V,
) -> (Vec<V>, usize) {
    match along {
        Axis::Rows => ((0..shape.height).map(|y| pixel(p, y, x)).collect(), y),
        Axis::Columns => ((0..shape.width).map(|x| pixel(p, y, x)).collect(), x),
        Axis::Depth => {
            let channel = p % shape.channels;
            ((channel..shape.planes()).step_by(shape.channels).map(|p| pixel(p, y, x)).collect(), p / shape.channels)
        }
        Axis::Channels => panic!("no distance is along channels"),
    }
}

/// The offset from pixel `at` of a line to the nearest pixel with background; of two, the first.
pub fn nearest_on_line(line: &[bool], at: usize) -> i32 {
    let background = (0..line.len()).filter(|k| !line[*k]);
    background.min_by_key(|k| k.abs_diff(at)).map_or(NONE, |k| k as i32 - at as i32)
}

/// The result for pixel `at` of a line of offsets.
pub fn nearest(line: &[i32], at: usize, how: NearestPixel) -> Scalar {
    let mut best: Option<(f64, usize)> = None;
    for (k, offset) in line.iter().enumerate().filter(|(_, offset)| **offset != NONE) {
        let measure = how.metric.measure(how.away(*offset, k as f64 - at as f64));
        if best.is_none_or(|(least, _)| measure < least) {
            best = Some((measure, k));
        }
    }
    match (how.found, how.metric) {
        (NearestResult::Distance, Metric::Euclidean(_)) => Scalar::F64(best.map_or(f64::INFINITY, |(v, _)| v.sqrt())),
        (NearestResult::Distance, _) => Scalar::I32(best.map_or(-1, |(v, _)| v as i32)),
        _ => Scalar::I32(best.map_or(NONE, |(_, k)| how.offset(line[k], k as i32 - at as i32))),
    }
}
