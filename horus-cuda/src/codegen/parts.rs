//! Parts of a kernel, which a profile times separately to find the bottleneck (Brodtkorb et al., GPU programming
//! strategies, section 4.1 and Figure 7).

use horus_core::dtype::{Conversion, DType};
use horus_core::ir::kernel::{Instr, InstrOp, LeafOp, MapKernel, Val};
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, OrderFilter, Reduce};
use horus_core::ops::pixel::PixelOp;

use super::instructions::Instructions;
use super::schedule::{KernelSchedule, Method};

/// A part of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelPart {
    /// All arithmetic: one row of each input is read, from a cache, and nothing is stored (`kernels/math_only.cuh`).
    Math,
    /// All reads and stores: the sum of the reads is stored. A filter keeps one tap, an affine sample all its reads.
    Memory,
}

/// A kernel that stores the sum of its leaves, and whose chains are such sums.
pub(super) fn summed(kernel: &MapKernel) -> MapKernel {
    let sums = MapKernel { chains: kernel.chains.iter().map(summed).collect(), ..kernel.clone() };
    let order = Instructions::new(kernel, 1, 1).order();
    // Filters of bytes recognise a chain that converts them by its structure.
    if order.is_empty() || kernel.code.iter().all(|i| matches!(i.op, InstrOp::Convert(_))) {
        return sums;
    }
    let types: Vec<DType> = kernel.results().map(|v| kernel.type_of(v)).collect();
    let dtype = if types.contains(&DType::F64) { DType::F64 } else { DType::F32 };
    let mut code = Vec::new();
    let mut sum = None;
    for l in order {
        let leaf = converted(&mut code, Val::Leaf(l), kernel.leaves[l].dtype, dtype);
        sum = Some(match sum {
            Some(sum) => push(&mut code, InstrOp::Pixel(PixelOp::Add), dtype, dtype, vec![sum, leaf]),
            None => leaf,
        });
    }
    let mut stored = Vec::new();
    for to in types {
        stored.extend(sum.map(|sum| converted(&mut code, sum, dtype, to)));
    }
    let more = stored.split_off(1);
    MapKernel { code, result: stored.pop(), additional_results: more, ..sums }
}

fn push(code: &mut Vec<Instr>, op: InstrOp, operand: DType, result: DType, args: Vec<Val>) -> Val {
    code.push(Instr { op, operand, result, args });
    Val::Instr(code.len() - 1)
}

fn converted(code: &mut Vec<Instr>, v: Val, from: DType, to: DType) -> Val {
    if from == to { v } else { push(code, InstrOp::Convert(Conversion::Nearest), from, to, vec![v]) }
}

/// [`KernelPart::Memory`] of a kernel of this schedule. A filter computed from a tile or from registers keeps the tap
/// at its pixel. Other filters read the image once for each tap, and keep all taps.
pub(super) fn memory_only(kernel: &MapKernel, schedule: &mut KernelSchedule) -> MapKernel {
    let mut moved = summed(kernel);
    for slot in &schedule.slots {
        moved.stages[slot.key.stage].filter = Filter::row(vec![1.0]);
    }
    for group in &mut schedule.groups {
        let tap = match group.method {
            Method::Chunked(_) => continue,
            // Products have at least three columns.
            Method::Products(_) => Filter::row(vec![0.0, 1.0, 0.0]),
            _ => Filter::dense(1, 1, vec![1.0]),
        };
        if let Method::Selection(tile) = group.method {
            group.method = Method::Dense(tile);
        }
        for &l in &group.leaves {
            match &mut moved.leaves[l].op {
                LeafOp::Correlate(_, filter, _) => *filter = tap.clone(),
                LeafOp::OrderFilter(_, filter, _) => {
                    let (combine, reduce) = (Combine::Pixel, Reduce::Max);
                    *filter = OrderFilter::Fold(Generalized { window: tap.clone(), combine, reduce });
                }
                _ => {}
            }
        }
    }
    moved
}
