//! Transposition.

use super::describe::{OperationGroup, Pattern, describe, description};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images,
};
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

describe! {
    TRANSPOSE = description("transpose", OperationGroup::Geometry, Pattern::Geometric, "Transposition: rows and columns are swapped")
        .elsewhere(&["np: `a.T`", "cv.transpose"])
        .example("transpose");
}

/// Rows and columns exchanged, per plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transpose;

impl ImageOperation for Transpose {
    fn kind(&self) -> &'static str {
        "transpose"
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        let turned = Shape { height: shape.width, width: shape.height, ..shape };
        ensure((turned, dtype) == output, || format!("{shape} {dtype} transposed is not {} {}", output.0, output.1))
    }

    fn reads(&self, _: usize, need: Rect, _: Shape) -> InputRead {
        InputRead::inside(Rect { rows: need.columns, columns: need.rows })
    }

    fn access(&self, _: usize) -> Access {
        Access::Whole
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        Some(PositionMap::of([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn by_levels(&self, _: usize) -> bool {
        true
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        LaunchEffort::of_rows(Family::Transpose, output.0, rows, 0.0)
    }
}

impl SampleOperations for Transpose {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let (shape, dtype) = of.image;
        vec![Instance::of(Transpose, &[of.image], (Shape { height: shape.width, width: shape.height, ..shape }, dtype))]
    }
}
