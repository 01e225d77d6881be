//! Functions and types with which leaves accumulate, each defined once, before the kernel.

use horus_core::ir::kernel::{Leaf, LeafOp};
use horus_core::ops::neighbourhood::{Combine, OrderFilter, Reduce};

/// The definitions that a kernel needs in addition to the headers, by name, in the order of first use.
#[derive(Debug, Default)]
pub(in crate::codegen) struct Helpers {
    needed: Vec<(String, String)>,
}

impl Helpers {
    /// Adds the text that defines `name`, unless it is defined.
    pub(super) fn define(&mut self, name: &str, text: impl FnOnce() -> String) {
        if self.needed.iter().all(|(known, _)| known != name) {
            self.needed.push((name.to_owned(), text()));
        }
    }

    /// The type whose `init` and `step` accumulate a leaf.
    pub(in crate::codegen) fn step(&mut self, leaf: &Leaf) -> String {
        let t = leaf.dtype.name();
        match &leaf.op {
            LeafOp::OrderFilter(_, OrderFilter::Fold(g), _) => {
                let name = format!("hs_{:?}_{:?}", g.combine, g.reduce).to_lowercase();
                self.define(&name, || generalized(&name, g.combine, g.reduce));
                format!("{name}<{t}>")
            }
            _ if leaf.dtype.is_float() => format!("hs_linear<{t}>"),
            // This leaf does not accumulate; its array is only declared.
            _ => {
                self.define("hs_zero", zero);
                format!("hs_zero<{t}>")
            }
        }
    }

    /// The definitions.
    pub(in crate::codegen) fn text(&self) -> String {
        self.needed.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// Declares arrays of integers that do not accumulate.
fn zero() -> String {
    "template <class T> struct hs_zero {\n    static __device__ __forceinline__ T init() { return (T)0; }\n};\n".into()
}

/// Combines pixel and weight, and reduces.
fn generalized(name: &str, combine: Combine, reduce: Reduce) -> String {
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
