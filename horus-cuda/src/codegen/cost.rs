//! Compile time of a kernel, estimated by the instructions of its templates once inlined and unrolled.
//!
//! The compiler takes some 0.15 ms per instruction, and more if many values are alive. [`MOST`] keeps a kernel below a
//! second. A kernel tuned for speed alone, such as a bank of separable filters, each with its own row filter, may be
//! far above it.

use horus_core::ir::kernel::{InstrOp, Kernel, Leaf, LeafOp, MapKernel};
use horus_core::ops::pixel::PixelOp;

use super::schedule::ThreadBlock;
use crate::tuning::Tuning;

/// Approximate limit on a kernel's instructions.
pub const MOST: usize = 5500;

/// In kernels with more instructions than this, templates used more than once become functions,
/// which are compiled once.
pub(super) const REPEATED: usize = 3500;

/// Instructions of a function call, including saved registers.
pub(super) const CALL: usize = 40;

/// Instructions that load a tile: as vectors, pixel by pixel, and at borders.
pub(super) const TILE: usize = 250;
/// Instructions of a row filter, without its tile and its multiply-adds.
const STAGE: usize = 120;

/// A row filter of `width` taps, `span` pixels at a time, with its tile.
pub(super) fn stage(width: usize, span: usize) -> usize {
    stages(&[width], span)
}

/// Row filters of several widths that use one tile in turn.
pub(super) fn stages(widths: &[usize], span: usize) -> usize {
    TILE + STAGE + widths.iter().map(|width| (width.min(&64) + width % 64) * span).sum::<usize>()
}

/// Columns of `height` taps for `count` filters: unrolled, or a loop with a beginning, an end and these remainders.
pub(super) fn column(block: ThreadBlock, count: usize, height: usize, fixed: bool, rests: &[usize]) -> usize {
    let rows = block.rows;
    let steps = if fixed { height * rows } else { rows * (2 * rows + rests.iter().sum::<usize>()) };
    steps * block.cols * count
}

/// Dense filters: unrolled, or two loops over `piece` columns, one for whole rows, one for the first and the last.
pub(super) fn dense(
    block: ThreadBlock,
    count: usize,
    (height, width): (usize, usize),
    fixed: bool,
    piece: usize,
) -> usize {
    let pixels = block.rows * block.cols * count;
    let step = if piece > 0 && piece < width { piece } else { width.min(if width > 48 { 32 } else { 48 }) };
    if fixed { height * width * pixels } else { 2 * (step + width % step) * pixels }
}

/// Instructions over the pixels of a thread.
pub(super) fn code(kernel: &MapKernel, which: impl Iterator<Item = usize>, block: ThreadBlock) -> usize {
    let one = |i: usize| match kernel.code[i].op {
        InstrOp::Pixel(PixelOp::Div | PixelOp::AbsDiv) => 16,
        // The code distinguishes NaNs and equal numbers.
        InstrOp::Pixel(PixelOp::Min | PixelOp::Max | PixelOp::Minimum | PixelOp::Maximum) => 6,
        _ => 2,
    };
    which.map(one).sum::<usize>() * block.rows * block.cols
}

/// A tuning that compiles faster, if there is one: fewer pixels per thread, then fewer filters at once, then loops.
pub(super) fn cheaper(kernel: &Kernel, tuning: &Tuning) -> Option<Tuning> {
    // Column filters advance by as many taps as there are rows. If these are not whole vectors, NVRTC 13.0 still reads
    // vectors of taps, at misaligned addresses.
    let filters = |l: &Leaf| matches!(l.op, LeafOp::Correlate(..) | LeafOp::OrderFilter(..));
    let whole = if matches!(kernel, Kernel::Map(m) if !m.leaves.iter().any(filters)) { 1 } else { 4 };
    match *tuning {
        t if t.rows > whole => Some(Tuning { rows: (t.rows / 2).next_multiple_of(whole), ..t }),
        t if t.cols > 2 => Some(Tuning { cols: t.cols / 2, ..t }),
        t if t.group > 1 => Some(Tuning { group: 1, ..t }),
        t if t.unroll > 0 => Some(Tuning { unroll: 0, ..t }),
        _ => None,
    }
}
