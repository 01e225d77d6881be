//! Matrix products.

use super::describe::{OperationGroup, Pattern, describe, description};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images,
};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Shape, Window};

describe! {
    MATMUL = description("matmul", OperationGroup::Arithmetic, Pattern::WholeImage, "The matrix product")
        .elsewhere(&["np.matmul", "cv.gemm"])
        .differs("floats; the terms of a pixel are added in order");
}

/// The product of two images as matrices, per plane. Pixel (y, x) is the sum over k of pixel (y, k) of the first and
/// pixel (k, x) of the second, by `fma(first, second, sum)` from +0, in the order of k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixProduct;

/// Input index of the first factor; a row of the result reads one row of it.
const FIRST: usize = 0;

impl ImageOperation for MatrixProduct {
    fn kind(&self) -> &'static str {
        "matmul"
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(a, dtype), (b, other)] = images(inputs)?;
        ensure(dtype.is_float() && dtype == other, || format!("a product of {dtype} and {other}"))?;
        let planes = (a.depth, a.channels) == (b.depth, b.channels);
        ensure(planes && a.width == b.height && a.width > 0, || format!("{a} times {b}"))?;
        ensure((Shape { width: b.width, ..a }, dtype) == output, || format!("{a} times {b} is not {}", output.0))
    }

    fn reads(&self, input: usize, need: Rect, of: Shape) -> InputRead {
        InputRead::inside(match input {
            FIRST => Rect { columns: Window::whole(of.width), ..need },
            _ => Rect { rows: Window::whole(of.height), ..need },
        })
    }

    fn access(&self, input: usize) -> Access {
        if input == FIRST { Access::IN_PLACE } else { Access::Whole }
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        None
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn by_levels(&self, _: usize) -> bool {
        true
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let terms = inputs.get(FIRST).map_or(0, |(shape, _)| shape.width);
        LaunchEffort::of_rows(Family::CorrelateLarge, output.0, rows, terms as f64)
    }
}

impl SampleOperations for MatrixProduct {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let (shape, dtype) = of.image;
        let other = Shape { height: shape.width, width: 3, ..shape };
        vec![Instance::of(MatrixProduct, &[of.image, (other, dtype)], (Shape { width: 3, ..shape }, dtype))]
    }
}
