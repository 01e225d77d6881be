//! Distances to the background.

use horus_core::dtype::DType;
use horus_core::ir::kernel::Kernel;
use horus_core::ops::ImageOperation as _;
use horus_core::ops::distance::{Metric, NearestPixel, NearestRow, Sought, Spacing};
use horus_core::shape::{Shape, Window};

use super::{Case, case, whole};

pub(super) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    // Several parts of a column, blocks of a row, and planes.
    let shapes = [Shape::new(150, 37, 2), Shape::new(7, 300, 2), Shape::new(1, 1, 1)];
    for dtype in DType::ALL {
        for shape in shapes {
            let (from, to) = (whole(shape, dtype), whole(shape, DType::I32));
            all.push(case(format!("nearest rows of {dtype} {shape}"), Kernel::from(NearestRow), vec![from], to));
        }
    }
    let mut strip = all[0].clone();
    strip.name = "nearest rows of a strip".into();
    strip.output.window = Window::new(60, 140);
    strip.rows = Window::new(63, 135);
    all.push(strip);
    let euclidean = [Spacing::UNIT, Spacing::new(0.3, 1.7)].map(Metric::Euclidean);
    for metric in euclidean.into_iter().chain([Metric::Taxicab, Metric::Chessboard]) {
        for found in [Sought::Distance, Sought::Row, Sought::Column] {
            let how = NearestPixel { metric, found };
            let types: &[DType] = if how.is_float() { &[DType::F32, DType::F64] } else { &[DType::I32] };
            for dtype in types {
                for shape in &shapes[1..] {
                    let name = format!("{} {metric:?} {dtype} {shape}", how.name());
                    let (from, to) = (whole(*shape, DType::I32), whole(*shape, *dtype));
                    let mut one = case(name, Kernel::from(how), vec![from], to);
                    if shape.height > 2 {
                        one.output.window = Window::new(1, 6);
                        one.rows = Window::new(2, 6);
                    }
                    all.push(one);
                }
            }
        }
    }
    all
}
