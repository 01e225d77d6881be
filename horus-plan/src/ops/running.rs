//! Running sums.

use super::describe::{Accepts, OperationGroup, Pattern, describe, description, required};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images, stays,
};
use horus_base::dtype::DType;
use horus_base::position_map::PositionMap;
use horus_base::shape::{Shape, Window};

describe! {
    CUMSUM = description("cumsum", OperationGroup::Statistics, Pattern::Reduction, "The running sums along an axis")
        .takes(&[required("axis", Accepts::Choice(|| vec!["rows", "columns", "channels"]), "")])
        .elsewhere(&["np.cumsum", "cv.integral", "imageproc::integral_image::integral_image"])
        .differs("`a.over(Axis::Rows).cumsum()`, in `f64`; over rows and columns the integral image, without a row and a column of zeros")
        .example("luminance cumsum rows cumsum columns");
}

/// Running sums along each row, each including its own pixel, in `f64`: see [`running`](super::reduce::running).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Running;

/// Running sums along the depth, per channel, each including its own level, in `f64`: the first level unchanged, then
/// sequentially.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunningDepth;

fn sums(inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
    let [(shape, dtype)] = images(inputs)?;
    ensure((shape, DType::F64) == output, || format!("sums along {shape} {dtype} in {} {}", output.0, output.1))
}

/// The required columns and all columns before them.
fn up_to(need: Rect) -> Rect {
    Rect { columns: Window::new(0, need.columns.end), ..need }
}

impl ImageOperation for Running {
    fn kind(&self) -> &'static str {
        "running_sum"
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        sums(inputs, output)
    }

    fn reads(&self, _: usize, need: Rect, _: Shape) -> InputRead {
        InputRead::inside(up_to(need))
    }

    fn access(&self, _: usize) -> Access {
        Access::IN_PLACE
    }

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to)
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }

    fn computed(&self, need: Rect, _: Shape) -> Rect {
        up_to(need)
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        LaunchEffort::of_rows(Family::Reduction, output.0, rows, 1.0)
    }
}

impl SampleOperations for Running {
    fn samples(of: SampleImages) -> Vec<Instance> {
        vec![Instance::of(Running, &[of.image], (of.image.0, DType::F64))]
    }
}

impl ImageOperation for RunningDepth {
    fn kind(&self) -> &'static str {
        "running_sum of levels"
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        sums(inputs, output)
    }

    fn reads(&self, _: usize, need: Rect, _: Shape) -> InputRead {
        InputRead::inside(need)
    }

    fn access(&self, _: usize) -> Access {
        Access::IN_PLACE
    }

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to)
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        LaunchEffort::of_rows(Family::Reduction, output.0, rows, 1.0)
    }
}

impl SampleOperations for RunningDepth {
    fn samples(of: SampleImages) -> Vec<Instance> {
        vec![Instance::of(RunningDepth, &[of.image], (of.image.0, DType::F64))]
    }
}
