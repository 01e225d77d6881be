//! Kernels whose every leaf is the pixel itself: planes are read as lines of vectors, whatever the rows are.

use std::fmt::Write as _;

use horus_core::device::Geometry;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{LeafOp, MapKernel, Source};

use super::expr::Code;
use super::params::Params;
use super::{Pointer, Program, Shapes, assemble, blocks};
use crate::tuning::Tuning;

pub(super) fn generate(kernel: &MapKernel, shapes: &Shapes<'_>, tuning: &Tuning) -> Result<Program, DeviceError> {
    let out = shapes.output;
    let width = out.shape.width;
    let largest = shapes.inputs.iter().map(|g| g.dtype.size()).fold(out.dtype.size(), usize::max);
    // Vectors of at least 4 keep narrow types busy beside wide ones.
    let (threads, cols) = (tuning.bx * tuning.by, (16 / largest).max(4));
    // All reads are in registers at once.
    let rows = tuning.rows.min(8 / kernel.leaves.len().max(1)).max(1);
    let count = shapes.rows.len() * width;

    let mut params = Params::default();
    let offset = |g: &Geometry| g.row(0, shapes.rows.start) * g.dtype.size();
    let begins_aligned = |g: &Geometry| {
        let plane = if out.shape.channels == 1 { 0 } else { g.plane() * g.dtype.size() };
        offset(g).is_multiple_of(16) && plane.is_multiple_of(16)
    };
    let mut aligned = begins_aligned(&out) && shapes.inputs.iter().all(begins_aligned);
    params.pointer(out.dtype.name(), "out", Pointer::Output { offset: offset(&out) });
    params.long("out_plane", out.plane() as i64);
    params.long("count", count as i64);
    for (i, g) in shapes.inputs.iter().enumerate() {
        params.pointer(
            &format!("const {}", g.dtype.name()),
            &format!("in{i}"),
            Pointer::Input { index: i, offset: offset(g) },
        );
        params.long(&format!("plane{i}"), g.plane() as i64);
        // A fixed plane of an input may begin anywhere.
        let fixed = kernel.leaves.iter().any(|l| matches!(l.op, LeafOp::LoadChannel(j, _) if j == i));
        aligned &= !fixed || (g.plane() * g.dtype.size()).is_multiple_of(16);
    }
    params.int("aligned", aligned as isize);

    let mut s = String::new();
    let _ = writeln!(
        s,
        "extern \"C\" __global__ void __launch_bounds__({threads}) hs_kernel(const __grid_constant__ hs_params p) {{\n    \
         const int plane = blockIdx.y;\n    \
         const i64 block = (i64)blockIdx.x * {};\n    \
         const i64 left = p.count - block;\n    \
         const bool vectors = p.aligned && left >= {0};",
        threads * rows * cols,
    );
    // Element `c` of vector `r` of the thread: neighbours in a vector, or one per thread where vectors are not possible.
    let at = format!(
        "const int e = vectors ? (r * {threads} + (int)threadIdx.x) * {cols} + c : (r * {cols} + c) * {threads} + (int)threadIdx.x;"
    );
    let mut code = Code::new(kernel);
    let order = code.order();
    let lazy = vec![true; kernel.leaves.len()];
    let read = |l: usize, s: &mut String, params: &mut Params| {
        let leaf = &kernel.leaves[l];
        let name = leaf.dtype.name();
        let plane = match leaf.op {
            LeafOp::LoadChannel(_, c) => {
                params.int(&format!("channel{l}"), c.cast_signed());
                format!("p.channel{l}")
            }
            _ => "plane".into(),
        };
        let Source::Input(i) = leaf.source() else {
            return Err(DeviceError::Internal("a pixel operation reads pixels".into()));
        };
        let _ = writeln!(
            s,
            "    {name} l{l}[{rows}][{cols}];\n    {{\n        const {name}* q = p.in{i} + {plane} * p.plane{i} + block;\n        \
             if (vectors) {{\n#pragma unroll\n            for (int r = 0; r < {rows}; ++r) {{\n                \
             hs_span<{name}, hs_lanes<{name}>({cols}), {cols}> t;\n                \
             t.load(q + (r * {threads} + (int)threadIdx.x) * {cols});\n#pragma unroll\n                \
             for (int c = 0; c < {cols}; ++c) l{l}[r][c] = t.v[c];\n            }}\n        }} else {{\n#pragma unroll\n            \
             for (int r = 0; r < {rows}; ++r)\n#pragma unroll\n                \
             for (int c = 0; c < {cols}; ++c) {{\n                    {at}\n                    \
             l{l}[r][c] = e < left ? q[e] : ({name})0;\n                }}\n        }}\n    }}"
        );
        Ok::<_, DeviceError>(format!("l{l}"))
    };
    // All reads first: they are in flight together.
    for &l in &order {
        let array = read(l, &mut s, &mut params)?;
        code.define(l, &array);
    }
    code.advance(&mut s, &mut params, rows, cols, &lazy, read)?;
    let result = code.result(&mut s, &mut params, out.dtype, rows, cols);
    let name = out.dtype.name();
    let _ = writeln!(
        s,
        "    {name}* o = p.out + plane * p.out_plane + block;\n#pragma unroll\n    for (int r = 0; r < {rows}; ++r) {{\n        \
         if (vectors) {{\n            {name}* q = o + (r * {threads} + (int)threadIdx.x) * {cols};\n            \
         hs_store_block<{name}, 1, {cols}>(q, 0, {cols}, 0, 0, 1, true, *reinterpret_cast<const {name}(*)[1][{cols}]>(&{result}[r]));\n        \
         }} else {{\n#pragma unroll\n            for (int c = 0; c < {cols}; ++c) {{\n                {at}\n                \
         if (e < left) o[e] = {result}[r][c];\n            }}\n        }}\n    }}\n}}"
    );
    let (declaration, bytes, pointers) = params.finish();
    Ok(Program {
        source: assemble(&[super::PRELUDE], &declaration, &s),
        params: bytes,
        pointers,
        table: Vec::new(),
        grid: [blocks(count.div_ceil(threads * rows * cols), "a pixel kernel")?, blocks(out.shape.channels, "planes")?],
        block: threads as u32,
        shared: 0,
        clear: false,
        early: false,
        cost: 0,
    })
}
