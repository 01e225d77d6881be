//! Linear filters of bytes with integer taps.

use super::{FilterSource, Instr, InstrOp, Leaf, LeafOp, MapKernel, Val};
use horus_base::dtype::DType;

impl MapKernel {
    /// The input that a leaf filters, and its type, if it filters bytes in `f32` and all its sums are
    /// [exact](crate::ops::neighbourhood::Filter::is_exact_for).
    pub fn bytes(&self, leaf: &Leaf) -> Option<(usize, DType)> {
        let LeafOp::Correlate(FilterSource::Chain(c), filter, border) = &leaf.op else { return None };
        let (input, dtype) = converted(&self.chains[*c])?;
        (leaf.dtype == DType::F32 && filter.is_exact_for(dtype, *border)).then_some((input, dtype))
    }
}

/// The input that an expression converts to `f32`, and its type.
fn converted(chain: &MapKernel) -> Option<(usize, DType)> {
    let (&[Leaf { op: LeafOp::Load(input), dtype }], [Instr { op: InstrOp::Convert(_), operand, result, args }]) =
        (&chain.leaves[..], &chain.code[..])
    else {
        return None;
    };
    let alone =
        chain.result == Some(Val::Instr(0)) && chain.additional_results.is_empty() && args[..] == [Val::Leaf(0)];
    ((*operand, *result) == (dtype, DType::F32) && alone).then_some((input, dtype))
}
