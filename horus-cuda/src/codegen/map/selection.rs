//! Filters without taps, which select a pixel of their footprint.

use std::fmt::Write as _;

use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, LeafOp};
use horus_core::ops::neighbourhood::{MedianSize, OrderFilter};

use super::super::cpp::{CppCall, Stmt, args, template};
use super::super::defect;
use super::super::schedule::{InputTile, LeafGroup};
use super::MapGenerator;

impl MapGenerator<'_> {
    pub(super) fn selection(
        &mut self,
        group: &LeafGroup,
        tile: InputTile,
        array: &str,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let leaf = &self.kernel.leaves[group.leaves[0]];
        let LeafOp::OrderFilter(input, OrderFilter::Median(size), border) = leaf.op else {
            return Err(defect("a group of medians has none"));
        };
        self.load_tile(FilterSource::Input(input), border, tile, leaf.dtype, out)?;
        let radius = size.radius();
        let function = format!("hs_median{radius}");
        self.helpers.define(&function, || median(&function, size));
        let pixels = self.thread_tile(leaf.dtype, self.shared.kept(), tile.pitch, tile.up - radius);
        let template = template![leaf.dtype.name(), self.block.rows, self.block.cols, tile.pitch];
        let args = args![pixels + (tile.left - radius), format!("{array}[0]")];
        out.push(CppCall::new(function, template, args).into());
        Ok(())
    }
}

/// A median by a network of comparisons of keys, emitted as a list without a loop.
fn median(name: &str, size: MedianSize) -> String {
    let side = 2 * size.radius() + 1;
    let n = side * side;
    let mut s = format!(
        "template <class T, int R, int C, int PITCH> HS_FN void {name}(const T* tile, T (&out)[R][C]) {{\n\
         #pragma unroll\n    for (int r = 0; r < R; ++r)\n#pragma unroll\n        for (int c = 0; c < C; ++c) {{\n            \
         using K = decltype(hs_key(T()));\n            K v[{n}];\n#pragma unroll\n            \
         for (int i = 0; i < {n}; ++i) v[i] = hs_key(tile[(r + i / {side}) * PITCH + c + i % {side}]);\n"
    );
    for (i, j) in size.network() {
        let _ = writeln!(
            s,
            "            {{ const K a = v[{i}], b = v[{j}]; v[{i}] = a < b ? a : b; v[{j}] = a < b ? b : a; }}"
        );
    }
    let _ = writeln!(s, "            out[r][c] = hs_of_key<T>(v[{}]);\n        }}\n}}", n / 2);
    s
}
