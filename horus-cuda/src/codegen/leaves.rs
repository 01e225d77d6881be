//! Leaves that are read pixel by pixel from global memory, and the functions that leaves accumulate with.

use std::fmt::Write as _;

use horus_core::error::DeviceError;
use horus_core::ir::kernel::{LeafOp, MapKernel, Source};
use horus_core::ops::geometric::{Affine, Flip, Interpolation};
use horus_core::ops::neighbourhood::{Combine, Layout, Reduce, median_network};
use horus_core::shape::Border;

use super::border_name;
use super::chain::source_name;
use super::expr::each_pixel;
use super::map::Map;
use super::schedule::window;

/// The condition under which pixel `[r][c]` of the thread exists.
const EXISTS: &str = "if (y + r < p.row1 && x + c < p.width)";

/// Emits the values of a leaf as an array; returns its name.
pub(super) fn read(map: &mut Map<'_>, l: usize) -> Result<String, DeviceError> {
    let leaf = &map.kernel.leaves[l];
    let (rows, cols, t) = (map.block.rows, map.block.cols, leaf.dtype.name());
    let array = format!("l{l}");
    let _ = writeln!(map.body, "    {t} {array}[{rows}][{cols}];");
    match &leaf.op {
        LeafOp::Load(i) => {
            let _ = writeln!(map.body, "    hs_load_block(in{i}, y, x, p.row1, p.aligned{i}, {array});");
        }
        LeafOp::LoadChannel(i, c) => {
            map.params.int(&format!("channel{l}"), c.cast_signed());
            let _ = writeln!(
                map.body,
                "    hs_load_block(hs_plane<{t}>{{p.in{i} + p.channel{l} * p.plane{i}, p.height{i}, p.width{i}, p.start{i}, p.end{i}}}, y, x, p.row1, p.aligned{i}, {array});"
            );
        }
        &LeafOp::Warp(i, affine, how, border) => warp(map, l, i, affine, how, border),
        &LeafOp::Flip(i, flip) => {
            let y = if flip.rows() { format!("p.height{i} - 1 - y - r") } else { "y + r".into() };
            let x = if matches!(flip, Flip::Vertical) { "x + c".into() } else { format!("p.width{i} - 1 - x - c") };
            each_pixel(&mut map.body, rows, cols, &format!("{EXISTS} {array}[r][c] = in{i}.row({y})[{x}];"));
        }
        LeafOp::Correlate(Source::Stage(s), column, border) => {
            let stage = &map.kernel.stages[*s];
            let image = source_name(stage.source);
            let (h, w) = (column.taps().len(), stage.filter.taps().len());
            let (up, left) = (column.reach().up, stage.filter.reach().left);
            let row_at = map.table.rows(leaf.dtype, w, w, stage.filter.taps());
            let column_at = map.table.rows(leaf.dtype, h, h, column.taps());
            let (row_at, column_at) = (map.table_at(leaf.dtype, row_at), map.table_at(leaf.dtype, column_at));
            let value_y = map.border_value(*border, leaf.dtype);
            let value_x = map.border_value(stage.border, leaf.dtype);
            let call = format!(
                "{EXISTS} {array}[r][c] = hs_direct_stage<{}, {}>({image}, y + r - {up}, x + c - {left}, {row_at}, {w}, {column_at}, {h}, {value_y}, {value_x});",
                border_name(*border),
                border_name(stage.border)
            );
            each_pixel(&mut map.body, rows, cols, &call);
        }
        LeafOp::Correlate(..) | LeafOp::Generalized(..) => direct(map, l, &array),
        LeafOp::Median(..) => {
            return Err(DeviceError::Internal("a tile of a median does not fit into shared memory".into()));
        }
    }
    Ok(array)
}

fn warp(map: &mut Map<'_>, l: usize, input: usize, affine: Affine, how: Interpolation, border: Border) {
    let dtype = map.kernel.leaves[l].dtype;
    for (name, v) in [
        ("xx", affine.xx),
        ("xy", affine.xy),
        ("x0", affine.x0),
        ("yx", affine.yx),
        ("yy", affine.yy),
        ("y0", affine.y0),
    ] {
        map.params.long(&format!("w{l}_{name}"), v);
    }
    let value = map.border_value(border, dtype);
    let _ = writeln!(
        map.body,
        "    const i64 wy{l} = p.w{l}_yx * x + p.w{l}_yy * y + p.w{l}_y0, wx{l} = p.w{l}_xx * x + p.w{l}_xy * y + p.w{l}_x0;"
    );
    let (rows, cols, b) = (map.block.rows, map.block.cols, border_name(border));
    let at = |r: &str, c: &str| {
        format!("wy{l} + {r} * p.w{l}_yy + {c} * p.w{l}_yx, wx{l} + {r} * p.w{l}_xy + {c} * p.w{l}_xx")
    };
    let call = |name: &str| format!("l{l}[r][c] = hs_{name}(in{input}, {}, {value});", at("r", "c"));
    match how {
        Interpolation::Bilinear => {
            let (last_row, last_col) = ((rows - 1).to_string(), (cols - 1).to_string());
            let corners = [("0", "0"), ("0", &*last_col), (&*last_row, "0"), (&*last_row, &*last_col)]
                .map(|(r, c)| format!(" && hs_inside(in{input}, {})", at(r, c)));
            let _ = writeln!(map.body, "    if (y + {rows} <= p.row1 && x + {cols} <= p.width{}) {{", corners.concat());
            each_pixel(&mut map.body, rows, cols, &call(&format!("bilinear<{b}, true>")));
            map.body.push_str("    } else {\n");
            each_pixel(&mut map.body, rows, cols, &format!("{EXISTS} {}", call(&format!("bilinear<{b}, false>"))));
            map.body.push_str("    }\n");
        }
        // A function that the kernels lack fails to compile, with its name.
        other => {
            let name = other.name();
            each_pixel(&mut map.body, rows, cols, &format!("{EXISTS} {}", call(&format!("{name}<{b}>"))));
        }
    }
}

/// A filter that no tile has room for.
fn direct(map: &mut Map<'_>, l: usize, array: &str) {
    let leaf = &map.kernel.leaves[l];
    let Some((source, Some(filter), border)) = window(leaf) else { return };
    let image = source_name(source);
    let dtype = leaf.dtype;
    let step = map.step(l);
    let value = map.border_value(border, dtype);
    let b = border_name(border);
    let call = match *filter.layout() {
        Layout::Dense { height, width, anchor_y, anchor_x } => {
            let at = map.table.rows(dtype, width, width, filter.taps());
            let at = map.table_at(dtype, at);
            format!(
                "hs_direct_dense<{step}, {b}>({image}, y + r - {anchor_y}, x + c - {anchor_x}, {height}, {width}, {at}, {value})"
            )
        }
        Layout::Sparse(ref offsets) => {
            let at = map.table.offsets(dtype, filter.taps(), offsets.iter().map(|&(y, x)| [y, x]));
            map.params.int(&format!("taps{l}"), at.cast_signed());
            map.params.int(&format!("count{l}"), filter.taps().len().cast_signed());
            format!(
                "hs_direct_sparse<{step}, {b}>({image}, y + r, x + c, reinterpret_cast<const hs_far_tap<{}>*>(p.table + p.taps{l}), p.count{l}, {value})",
                dtype.name()
            )
        }
    };
    each_pixel(&mut map.body, map.block.rows, map.block.cols, &format!("{EXISTS} {array}[r][c] = {call};"));
}

/// The type whose `init` and `step` accumulate a leaf; defined in `helpers` on first use.
pub(super) fn step(kernel: &MapKernel, l: usize, helpers: &mut String) -> String {
    let leaf = &kernel.leaves[l];
    let t = leaf.dtype.name();
    let LeafOp::Generalized(_, g, _) = &leaf.op else {
        // A median does not accumulate; its array is only declared.
        return if leaf.dtype.is_float() {
            format!("hs_linear<{t}>")
        } else {
            define_zero(helpers) + &format!("<{t}>")
        };
    };
    let combine = match g.combine {
        Combine::Pixel => "v",
        Combine::Add => "hs_add(v, w)",
        Combine::Sub => "hs_sub(v, w)",
        Combine::Mul => "hs_mul(v, w)",
        Combine::Min => "hs_min(v, w)",
        Combine::Max => "hs_max(v, w)",
    };
    let (init, reduce) = match g.reduce {
        Reduce::Sum => ("(T)0", "hs_add"),
        Reduce::Product => ("(T)1", "hs_mul"),
        Reduce::Min => ("hs_highest<T>()", "hs_min"),
        Reduce::Max => ("hs_lowest<T>()", "hs_max"),
    };
    let name = format!("hs_{:?}_{:?}", g.combine, g.reduce).to_lowercase();
    define(
        helpers,
        &format!(
            "template <class T> struct {name} {{\n    static __device__ __forceinline__ T init() {{ return {init}; }}\n    \
             static __device__ __forceinline__ T step(T acc, T v, T w) {{ return {reduce}(acc, {combine}); }}\n}};\n"
        ),
    );
    format!("{name}<{t}>")
}

fn define_zero(helpers: &mut String) -> String {
    define(
        helpers,
        "template <class T> struct hs_zero {\n    static __device__ __forceinline__ T init() { return (T)0; }\n};\n",
    );
    "hs_zero".into()
}

fn define(helpers: &mut String, text: &str) {
    if !helpers.contains(text) {
        helpers.push_str(text);
    }
}

/// Defines the median over a window of `2 radius + 1` pixels in both directions.
pub(super) fn define_median(helpers: &mut String, radius: usize) {
    let side = 2 * radius + 1;
    let n = side * side;
    let mut s = format!(
        "template <class T, int R, int C, int PITCH> HS_FN void hs_median{radius}(const T* tile, T (&out)[R][C]) {{\n\
         #pragma unroll\n    for (int r = 0; r < R; ++r)\n#pragma unroll\n        for (int c = 0; c < C; ++c) {{\n            \
         T v[{n}];\n#pragma unroll\n            for (int i = 0; i < {n}; ++i) v[i] = tile[(r + i / {side}) * PITCH + c + i % {side}];\n"
    );
    for (i, j) in median_network(n) {
        let _ = writeln!(
            s,
            "            {{ const T a = v[{i}], b = v[{j}]; v[{i}] = hs_min(a, b); v[{j}] = hs_max(b, a); }}"
        );
    }
    let _ = writeln!(s, "            out[r][c] = v[{}];\n        }}\n}}", n / 2);
    define(helpers, &s);
}
