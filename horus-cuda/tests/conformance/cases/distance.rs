//! Distances to the background.

use horus_core::dtype::DType;
use horus_core::ir::kernel::Kernel;
use horus_core::ops::ImageOperation as _;
use horus_core::ops::distance::{JoinedOffsets, Metric, NearestOnLine, NearestPixel, NearestResult, Spacing};
use horus_core::shape::{Axis, Shape, Window};

use super::{ConformanceLaunch, case, whole};

pub(super) fn cases() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    // Several parts of a line, blocks of a row, and planes.
    let shapes = [Shape::new(150, 37, 2), Shape::new(7, 300, 2), Shape::new(1, 1, 1)];
    let volumes = [Shape::volume(130, 3, 37, 2), Shape::volume(3, 7, 150, 2)];
    let lines = shapes.map(|shape| (shape, Axis::Rows)).into_iter().chain(volumes.map(|shape| (shape, Axis::Depth)));
    for dtype in DType::ALL {
        for (shape, along) in lines.clone() {
            let (from, to) = (whole(shape, dtype), whole(shape, DType::I32));
            let name = format!("nearest {along} of {dtype} {shape}");
            all.push(case(name, Kernel::from(NearestOnLine { along }), vec![from], to));
        }
    }
    let mut strip = all[0].clone();
    strip.name = "nearest rows of a strip".into();
    strip.output.window = Window::new(60, 140);
    strip.rows = Window::new(63, 135);
    all.push(strip);
    let mut strip = all[lines.count() - 1].clone();
    strip.name = "nearest levels of a strip".into();
    strip.inputs[0].window = Window::new(1, 7);
    strip.output.window = Window::new(2, 6);
    strip.rows = Window::new(3, 6);
    all.push(strip);
    let euclidean = [Spacing::UNIT, Spacing::new([0.9, 0.3, 1.7])].map(Metric::Euclidean);
    // Random numbers are offsets of rows, or of levels and rows.
    let read = [
        (Axis::Columns, JoinedOffsets::ROWS),
        (Axis::Columns, JoinedOffsets { row_bits: 11 }),
        (Axis::Rows, JoinedOffsets { row_bits: 9 }),
    ];
    let metrics = || euclidean.into_iter().chain([Metric::Taxicab, Metric::Chessboard]);
    for (metric, (along, offsets)) in metrics().flat_map(|metric| read.map(|read| (metric, read))) {
        let sought: &[NearestResult] = match along {
            Axis::Rows => &[NearestResult::Joined],
            _ => &[NearestResult::Distance, NearestResult::Level, NearestResult::Row, NearestResult::Column],
        };
        for found in sought {
            let how = NearestPixel { along, offsets, metric, found: *found };
            let types: &[DType] = if how.is_float() { &[DType::F32, DType::F64] } else { &[DType::I32] };
            for dtype in types {
                for shape in &shapes[1..] {
                    let name =
                        format!("{} {metric:?} along {along} of {} bits {dtype} {shape}", how.name(), offsets.row_bits);
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
