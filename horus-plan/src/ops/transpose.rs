//! Transposition.

use super::describe::{Group, Pattern, describe, description};
use super::footprint::{Access, Reading, Rect};
use super::operation::{Effort, Extent, Family, ImageOperation, Instance, Sampled, Sizes, hold, images};
use horus_base::placed::Placed;
use horus_base::shape::Shape;

describe! {
    TRANSPOSE = description("transpose", Group::Geometry, Pattern::Geometric, "Transposition: rows and columns are swapped")
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

    fn check(&self, inputs: &[Extent], output: Extent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        let turned = Shape { height: shape.width, width: shape.height, ..shape };
        hold((turned, dtype) == output, || format!("{shape} {dtype} transposed is not {} {}", output.0, output.1))
    }

    fn reads(&self, _: usize, need: Rect, _: Shape) -> Reading {
        Reading::inside(Rect { rows: need.columns, columns: need.rows })
    }

    fn access(&self, _: usize) -> Access {
        Access::Whole
    }

    fn placed(&self, _: usize, _: Shape, _: Shape) -> Option<Placed> {
        Some(Placed::of([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn by_levels(&self, _: usize) -> bool {
        true
    }

    fn effort(&self, _: &[Extent], output: Extent, rows: usize) -> Effort {
        Effort::of_rows(Family::Transpose, output.0, rows, 0.0)
    }
}

impl Sampled for Transpose {
    fn samples(of: Sizes) -> Vec<Instance> {
        let (shape, dtype) = of.image;
        vec![Instance::of(Transpose, &[of.image], (Shape { height: shape.width, width: shape.height, ..shape }, dtype))]
    }
}
