//! Reductions along rows of an expression that is never stored: each thread evaluates it for the pixels of its two lanes.

use std::fmt::Write as _;

use horus_core::error::DeviceError;
use horus_core::ir::kernel::{LeafOp, MapKernel, Source};
use horus_core::ops::reduce::{RowReduce, SEGMENT};

use super::cpp::{Expr, Stmt, name, text};
use super::fixed::{LINES, WARP, head, program, row_code};
use super::instructions::Instructions;
use super::params::KernelParams as Params;
use super::{Generated as Program, PRELUDE, Pointer, REDUCE, Shapes, blocks};

/// Reads of all leaves together that a thread has in flight.
const IN_FLIGHT: usize = 16;

pub(super) fn generate(kernel: &MapKernel, how: RowReduce, shapes: &Shapes<'_>) -> Result<Program, DeviceError> {
    let out = shapes.output;
    let (a, code_name) = (out.dtype.name(), row_code(how));
    // Pixels that a thread evaluates at once: as many of its one lane as of the other, and a segment in whole steps.
    let ahead = 1 << (IN_FLIGHT / kernel.leaves.len().max(1)).clamp(2, IN_FLIGHT).ilog2();
    let mut p = Params::default();
    p.pointer(a, "out", Pointer::Output { offset: 0 });
    for (i, g) in shapes.inputs.iter().enumerate().take(kernel.inputs) {
        p.pointer(&format!("const {}", g.dtype.name()), &format!("in{i}"), Pointer::Input { index: i, offset: 0 });
        p.long(&format!("plane{i}"), g.plane() as i64);
        p.int(&format!("start{i}"), g.window.start);
    }
    let mean = how == RowReduce::SquaredDeviation;
    if mean {
        let index = kernel.inputs;
        let g = shapes.inputs[index];
        p.pointer("const f64", "mean", Pointer::Input { index, offset: g.row(0, 0) * g.dtype.size() });
    }
    p.long("out_plane", out.plane() as i64);
    p.int("width", shapes.inputs[0].shape.width.cast_signed());
    p.int("out_start", out.window.start);
    p.int("row0", shapes.rows.start);
    p.int("row1", shapes.rows.end);
    let threads = WARP * LINES;
    let mut s = head(threads);
    let _ = writeln!(
        s,
        "    const int lane = threadIdx.x % {WARP}, line = threadIdx.x / {WARP}, plane = blockIdx.y;\n    \
         const int y = p.row0 + (int)blockIdx.x * {LINES} + line, count = y < p.row1 ? p.width : 0;\n    \
         hs_let_next_begin();\n    \
         const {a} mean = {mean};\n    {a} total = hs_identity<{code_name}, {a}>();",
        mean = if mean { "*p.mean" } else { "0" },
    );
    let mut code = Instructions::new(kernel, 1, ahead);
    let order = code.order();
    let mut body = Vec::new();
    for &l in &order {
        let leaf = &kernel.leaves[l];
        let Source::Input(i) = leaf.source() else { continue };
        let t = leaf.dtype.name();
        let channel = match leaf.op {
            LeafOp::LoadChannel(_, c) => {
                p.int(&format!("channel{l}"), c.cast_signed());
                format!("p.channel{l}")
            }
            _ => "plane".into(),
        };
        let _ =
            writeln!(s, "    const {t}* q{l} = p.in{i} + {channel} * p.plane{i} + (i64)(y - p.start{i}) * p.width;");
        let array = format!("l{l}");
        body.push(Stmt::Array { dtype: leaf.dtype, name: array.clone(), extents: vec![1, ahead] });
        let value = name(format_args!("i + {WARP} * c < end ? q{l}[i + {WARP} * c] : ({t})0"));
        body.push(Stmt::fill((1, ahead), &array, value));
        code.define(l, &array);
    }
    code.advance(&mut body, &mut p, &vec![false; kernel.leaves.len()])?;
    let result = Expr::Pixel(code.result(&mut body, &mut p, kernel.result_type())?);
    // Beyond the segment nothing is accumulated; within it, in order.
    let next = format!("hs_combine<{code_name}, {a}>(acc, hs_value<{code_name}, {a}>({result}, mean))");
    let accumulate = Stmt::If {
        condition: name(format_args!("i + {WARP} * c < end")),
        then: vec![
            Stmt::Let { ctype: format!("{a}&"), name: "acc".into(), value: name("c % 2 ? high : low") },
            Stmt::Assign { to: name("acc"), value: name(next) },
        ],
        otherwise: Vec::new(),
    };
    body.push(Stmt::each_pixel((1, ahead), accumulate));
    let _ = write!(
        s,
        "#pragma unroll 1\n    for (int at = 0; at < count; at += {SEGMENT}) {{\n    const int end = min(at + {SEGMENT}, count);\n    \
         {a} low = hs_identity<{code_name}, {a}>(), high = low;\n\
         #pragma unroll 1\n    for (int i = at + lane; i < end; i += {}) {{\n{}",
        WARP * ahead,
        text(&body)
    );
    let _ = writeln!(
        s,
        "    }}\n    total = hs_combine<{code_name}, {a}>(total, hs_halves<{code_name}, {a}>(low, high));\n    }}\n    \
         if (lane == 0 && y < p.row1) p.out[plane * p.out_plane + y - p.out_start] = total;\n}}"
    );
    let grid = [blocks(shapes.rows.len().div_ceil(LINES), "a reduction")?, blocks(out.shape.channels, "planes")?];
    Ok(program(&[PRELUDE, REDUCE], &s, p, grid, threads, 0))
}
