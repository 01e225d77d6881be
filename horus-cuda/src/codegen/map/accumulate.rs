//! The functions and types with which leaves accumulate, each defined once, before the kernel.

use std::fmt::Write as _;

use horus_core::ir::kernel::{Leaf, LeafOp};
use horus_core::ops::neighbourhood::{Combine, MedianSize, OrderFilter, Reduce};

/// A definition that a kernel needs in addition to the headers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Helper {
    /// Accumulates from 0; also declares arrays that do not accumulate.
    Zero,
    /// Combines pixel and weight, and reduces.
    Generalized(Combine, Reduce),
    /// The median over a window of this size.
    Median(MedianSize),
}

/// The definitions that a kernel needs, in the order of first use.
#[derive(Debug, Default)]
pub(in crate::codegen) struct Helpers {
    needed: Vec<Helper>,
}

impl Helpers {
    fn need(&mut self, helper: Helper) {
        if !self.needed.contains(&helper) {
            self.needed.push(helper);
        }
    }

    /// The type whose `init` and `step` accumulate a leaf.
    pub(in crate::codegen) fn step(&mut self, leaf: &Leaf) -> String {
        let t = leaf.dtype.name();
        let helper = match &leaf.op {
            LeafOp::Order(_, OrderFilter::Fold(g), _) => Helper::Generalized(g.combine, g.reduce),
            _ if leaf.dtype.is_float() => return format!("hs_linear<{t}>"),
            // A median does not accumulate; its array is only declared.
            _ => Helper::Zero,
        };
        self.need(helper);
        format!("{}<{t}>", helper.name())
    }

    /// The function that computes a median.
    pub(super) fn median(&mut self, size: MedianSize) -> String {
        self.need(Helper::Median(size));
        Helper::Median(size).name()
    }

    /// The definitions.
    pub(in crate::codegen) fn text(&self) -> String {
        self.needed.iter().map(|helper| helper.text()).collect()
    }
}

impl Helper {
    fn name(self) -> String {
        match self {
            Helper::Zero => "hs_zero".into(),
            Helper::Generalized(combine, reduce) => format!("hs_{combine:?}_{reduce:?}").to_lowercase(),
            Helper::Median(size) => format!("hs_median{}", size.radius()),
        }
    }

    fn text(self) -> String {
        let name = self.name();
        match self {
            Helper::Zero => format!(
                "template <class T> struct {name} {{\n    static __device__ __forceinline__ T init() {{ return (T)0; }}\n}};\n"
            ),
            Helper::Generalized(combine, reduce) => {
                let combine = match combine {
                    Combine::Pixel => "v",
                    Combine::Add => "hs_add(v, w)",
                    Combine::Sub => "hs_sub(v, w)",
                    Combine::Mul => "hs_mul(v, w)",
                    Combine::Min => "hs_min(v, w)",
                    Combine::Max => "hs_max(v, w)",
                };
                let (init, reduce) = match reduce {
                    Reduce::Sum => ("(T)0", "hs_add"),
                    Reduce::Product => ("(T)1", "hs_mul"),
                    Reduce::Min => ("hs_highest<T>()", "hs_min"),
                    Reduce::Max => ("hs_lowest<T>()", "hs_max"),
                };
                format!(
                    "template <class T> struct {name} {{\n    static __device__ __forceinline__ T init() {{ return {init}; }}\n    \
                     static __device__ __forceinline__ T step(T acc, T v, T w) {{ return {reduce}(acc, {combine}); }}\n}};\n"
                )
            }
            Helper::Median(size) => median(&name, size),
        }
    }
}

/// A median by a network of comparisons, emitted as a list without a loop.
fn median(name: &str, size: MedianSize) -> String {
    let side = 2 * size.radius() + 1;
    let n = side * side;
    let mut s = format!(
        "template <class T, int R, int C, int PITCH> HS_FN void {name}(const T* tile, T (&out)[R][C]) {{\n\
         #pragma unroll\n    for (int r = 0; r < R; ++r)\n#pragma unroll\n        for (int c = 0; c < C; ++c) {{\n            \
         T v[{n}];\n#pragma unroll\n            for (int i = 0; i < {n}; ++i) v[i] = tile[(r + i / {side}) * PITCH + c + i % {side}];\n"
    );
    for (i, j) in size.network() {
        let _ = writeln!(
            s,
            "            {{ const T a = v[{i}], b = v[{j}]; v[{i}] = hs_min(a, b); v[{j}] = hs_max(b, a); }}"
        );
    }
    let _ = writeln!(s, "            out[r][c] = v[{}];\n        }}\n}}", n / 2);
    s
}
