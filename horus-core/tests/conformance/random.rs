//! Programs made of random choices.

use horus_core::dtype::{Conversion, DType};
use horus_core::ir::graph::{NodeId, Op};
use horus_core::ops::Sliding;
use horus_core::ops::edge::{InsidePixels, WarpEdge};
use horus_core::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Pairing, Reach, Reduce, Truncated};
use horus_core::ops::pixel::{PixelKind, PixelOp, TABLE};
use horus_core::ops::windowed::{BoxMean, Ranked, Windowed};
use horus_core::shape::{Border, Shape};

use crate::harness::{ConformanceProgram, image};

/// One step of a random program: its operation, and the earlier values that it reads.
#[derive(Clone, Debug)]
pub(crate) struct RandomStep {
    pub(crate) kind: u8,
    pub(crate) param: u8,
    pub(crate) reads: [u8; 3],
}

fn border(param: u8) -> Border {
    match param % 5 {
        0 => Border::Reflect101,
        1 => Border::Reflect,
        2 => Border::Replicate,
        3 => Border::Wrap,
        _ => Border::Constant(1.5),
    }
}

fn taps(n: usize, seed: u8) -> Vec<f64> {
    (0..n).map(|i| (((i * 31 + usize::from(seed) * 7) % 23) as f64 - 9.0) / 32.0).collect()
}

fn step(p: &mut ConformanceProgram, values: &[NodeId], c: &RandomStep, shape: Shape) -> NodeId {
    let read = |i: usize| values[usize::from(c.reads[i]) % values.len()];
    let (a, param) = (read(0), c.param);
    let n = 1 + usize::from(param % 7);
    match c.kind % 18 {
        0..=5 => {
            let rows: Vec<_> = TABLE.iter().filter(|r| r.kind != PixelKind::Compare).collect();
            let row = rows[usize::from(param) % rows.len()];
            match row.kind {
                PixelKind::Unary => p.pixel(row.op, &[a]),
                PixelKind::Binary => p.pixel(row.op, &[a, read(1)]),
                PixelKind::Ternary => p.pixel(row.op, &[a, read(1), read(2)]),
                PixelKind::Select | PixelKind::Compare => {
                    let mask = p.pixel(PixelOp::Lt, &[read(1), read(2)]);
                    p.pixel(PixelOp::Select, &[mask, a, read(1)])
                }
            }
        }
        6 => p.pixel_const(PixelOp::Max, a, &[f64::from(param) / 8.0]),
        7 => {
            let rule = if param % 3 == 0 { Conversion::Cast } else { Conversion::Nearest };
            let narrow = p.convert_by(rule, a, DType::ALL[usize::from(param) % DType::ALL.len()]);
            p.convert(narrow, DType::F32)
        }
        8 | 9 => p.like(Op::Correlate(Filter::dense(n, 1 + n / 2, taps(n * (1 + n / 2), param)), border(param)), a),
        10 | 11 => {
            let (row, column) = (Filter::row(taps(n, param)), Filter::column(taps(n + 2, param)));
            p.like(Op::Separable { row, column, border: border(param) }, a)
        }
        12 => {
            let how = Interpolation::ALL[usize::from(param) % 3];
            let matrix = rotation(f64::from(param) * 3.0, shape);
            let edge = match param % 4 {
                0 => WarpEdge::Inside(InsidePixels::of(matrix, shape, f64::from(param))),
                _ => border(param / 3).into(),
            };
            p.like(Op::Warp(Affine::new(matrix, shape).unwrap(), how, edge), a)
        }
        13 if param % 5 == 0 => {
            let away = n as i32;
            let window = Filter::sparse([(0, 0), (-away, 1), (away, -1)], [0.6, 0.2, 0.2]);
            let pairing = Pairing::ALL[usize::from(param / 5) % 3];
            p.like(Op::OrderFilter(Truncated { window, pairing, levels: None }.into(), border(param)), a)
        }
        13 => {
            let window = Filter::dense(n, 3, vec![1.0; 3 * n]);
            let reduce = if param % 2 == 0 { Reduce::Min } else { Reduce::Max };
            p.like(Op::OrderFilter(Generalized { window, combine: Combine::Pixel, reduce }.into(), border(param)), a)
        }
        14 => p.like(
            Op::OrderFilter((if param % 2 == 0 { MedianSize::Three } else { MedianSize::Five }).into(), border(param)),
            a,
        ),
        15 => {
            let reach = Reach { up: n / 2, down: n, left: 2 * n, right: n / 3 };
            p.like(Op::from(Sliding { how: Windowed::Mean(BoxMean::over(reach)), border: border(param) }), a)
        }
        16 => {
            let half = n as i32 / 2;
            let all: Vec<_> = (-half..=half).flat_map(|y| (-1..=half).map(move |x| (y, x))).collect();
            let rank = Ranked::new(&all, usize::from(param) % all.len());
            p.like(Op::from(Sliding { how: Windowed::Rank(rank), border: border(param) }), a)
        }
        _ => p.like(Op::Flip([Flip::Horizontal, Flip::Vertical, Flip::Both][usize::from(param) % 3]), a),
    }
}

/// A program of one step per choice, over two images; its roots are the last value and one in the
/// middle.
pub(crate) fn program(shape: Shape, choices: &[RandomStep], seed: u64) -> ConformanceProgram {
    let mut p = ConformanceProgram { interleaved: seed % 2 == 1, ..ConformanceProgram::default() };
    let mut values = vec![p.source(image(shape, DType::F32, seed)), p.source(image(shape, DType::F32, seed ^ 1))];
    for c in choices {
        let v = step(&mut p, &values, c, shape);
        values.push(v);
    }
    let last = values[values.len() - 1];
    let middle = values[values.len() / 2];
    p.wanted(&[last, middle])
}
