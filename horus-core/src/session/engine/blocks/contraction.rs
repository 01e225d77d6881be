//! Proof that a loop converges although blocks continue with old pixels of other blocks (chaotic relaxation; Chazan and
//! Miranker, 1969, Linear Algebra Appl. 2, 199-222).
//!
//! A node changes by at most `factor` times the largest change of a pixel of the state. The step contracts if the
//! factor of each result is less than 1. A factor of 1 suffices if pixels beyond an edge are constant and each pixel
//! depends on one nearer to it, as in the mean of four neighbours: there the row sums of a product of many steps are
//! less than 1.
//!
//! Sums are rounded, so a factor near 1 counts as 1, and a dependence counts from some weight on. These constants are
//! guesses. They prove nothing for lines of tens of thousands of pixels that depend on each other by the least weight.

use crate::dtype::DType;
use crate::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use crate::ops::Whole;
use crate::ops::edge::WarpEdge;
use crate::ops::geometric::Interpolation;
use crate::ops::neighbourhood::Filter;
use crate::ops::pixel::PixelOp;
use crate::shape::Border;

/// Bound of the change of an image.
#[derive(Clone, Copy)]
struct ChangeBound {
    factor: f64,
    /// Least weight with which each pixel depends on a pixel of the state that is nearer to a constant border, or
    /// beyond it.
    drains: f64,
}

/// Largest rounding error of a factor.
const ROUNDING: f64 = 1e-12;
/// Largest factor that is certainly less than 1.
const LESS: f64 = 1.0 - 1e-6;
/// Least weight of a dependence that counts.
const WEIGHT: f64 = 1e-3;

impl ChangeBound {
    const NONE: ChangeBound = ChangeBound { factor: 0.0, drains: 0.0 };

    fn times(self, factor: f64) -> ChangeBound {
        ChangeBound { factor: self.factor * factor.abs(), drains: self.drains * factor.abs() }
    }

    fn plus(self, other: ChangeBound) -> ChangeBound {
        ChangeBound { factor: self.factor + other.factor, drains: self.drains.max(other.drains) }
    }

    /// Bound of an image whose pixels are pixels of one of two images, or between them. With equal factors, neighbours
    /// may come from different images and depend on each other. A pixel of the image with the smaller factor changes
    /// less.
    fn or(self, other: ChangeBound) -> ChangeBound {
        let [less, more] = if self.factor < other.factor { [self, other] } else { [other, self] };
        ChangeBound { factor: more.factor, drains: more.drains.min(more.factor - less.factor) }
    }
}

/// Returns a reason unless the step provably contracts the state, the images `state` of its program.
pub(crate) fn contracts(step: &Graph<Op>, state: &[ValueId]) -> Result<(), String> {
    let mut bounds: Vec<ChangeBound> = Vec::with_capacity(step.nodes.len());
    for node in &step.nodes {
        let mut of = match &node.op {
            Op::Source(value) if state.contains(value) => ChangeBound { factor: 1.0, drains: 0.0 },
            _ if node.inputs.iter().all(|input| bounds[input.0].factor == 0.0) => ChangeBound::NONE,
            _ => bound(step, node, &bounds, state).ok_or_else(|| {
                let (name, site) = (node.op.name(), node.site);
                format!("it is not known how much {name} (recorded at {site}) changes if the state does")
            })?,
        };
        if of.factor.is_nan() {
            of.factor = f64::INFINITY;
        }
        bounds.push(of);
    }
    for root in &step.roots {
        let ChangeBound { factor, drains } = bounds[root.0];
        let drained = factor <= 1.0 + ROUNDING && drains >= WEIGHT && step.roots.len() == 1;
        if factor > LESS && !drained {
            return Err(format!(
                "if pixels of the state change by 1, those of a step may change by {factor} (less is needed, or one image and a \
                 constant border)"
            ));
        }
    }
    Ok(())
}

/// Bound of a node that depends on the state, if it is known.
fn bound(step: &Graph<Op>, node: &Node<Op>, bounds: &[ChangeBound], state: &[ValueId]) -> Option<ChangeBound> {
    let of = |input: NodeId| bounds[input.0];
    let first = of(node.inputs[0]);
    let read = step.node(node.inputs[0]);
    let stored = if let Op::Whole(Whole::Deinterleave(_)) = read.op { step.node(read.inputs[0]) } else { read };
    let is_state = matches!(&stored.op, Op::Source(value) if state.contains(value));
    let outside = |border: Border| if matches!(border, Border::Constant(_)) && is_state { 1.0 } else { 0.0 };
    // Taps are rounded to the pixel type of the image.
    let weight = |tap: f64| if node.dtype == DType::F32 { f64::from(tap as f32).abs() } else { tap.abs() };
    let sum = |filter: &Filter| filter.taps().iter().map(|tap| weight(*tap)).sum::<f64>();
    // The largest tap; `moved` is the largest tap away from the centre.
    let largest = |filter: &Filter| filter.taps().iter().map(|tap| weight(*tap)).fold(0.0, f64::max);
    let moved = |filter: &Filter| {
        let taps = filter.taps().iter().zip(filter.offsets()).filter(|(_, at)| *at != (0, 0));
        taps.map(|(tap, _)| weight(*tap)).fold(0.0, f64::max)
    };
    let drains = |drains: f64, bound: ChangeBound| ChangeBound { drains, ..bound };
    match &node.op {
        // Rounding to integers does not shrink small changes.
        _ if !matches!(node.dtype, DType::F32 | DType::F64) => None,
        Op::Pixel(op, operands) => pixel(*op, operands, |n| of(node.inputs[n])),
        Op::Convert(_) | Op::Whole(Whole::Deinterleave(_) | Whole::Interleave(_)) => Some(first),
        Op::Planes(_) | Op::Flip(_) => Some(drains(0.0, first)),
        Op::Correlate(filter, border) => Some(drains(outside(*border) * moved(filter), first.times(sum(filter)))),
        Op::Separable { row, column, border } => {
            let moved = (moved(row) * largest(column)).max(largest(row) * moved(column));
            Some(drains(outside(*border) * moved, first.times(sum(row) * sum(column))))
        }
        Op::Warp(map, Interpolation::Nearest | Interpolation::Bilinear, edge) => {
            let moved = map.shift().is_some_and(|by| by != [0, 0]);
            let outside = if let WarpEdge::Border(border) = edge { outside(*border) } else { 0.0 };
            Some(drains(if moved { outside } else { 0.0 }, first))
        }
        _ => None,
    }
}

/// Bound of a pixel operation.
fn pixel(op: PixelOp, operands: &[PixelOpOperand], input: impl Fn(usize) -> ChangeBound) -> Option<ChangeBound> {
    let of =
        |n: usize| if let PixelOpOperand::Input(input_of) = operands[n] { input(input_of) } else { ChangeBound::NONE };
    let number = |n: usize| if let PixelOpOperand::Const(number) = operands[n] { Some(number.to_f64()) } else { None };
    let product = |a: usize, b: usize| {
        number(a).map(|number| of(b).times(number)).or_else(|| number(b).map(|number| of(a).times(number)))
    };
    match op {
        PixelOp::Neg | PixelOp::Abs => Some(of(0)),
        PixelOp::Add | PixelOp::Sub | PixelOp::AbsDiff => Some(of(0).plus(of(1))),
        PixelOp::Mul => product(0, 1),
        PixelOp::Div => number(1).map(|by| of(0).times(1.0 / by)),
        PixelOp::Min | PixelOp::Max | PixelOp::Minimum | PixelOp::Maximum => Some(of(0).or(of(1))),
        PixelOp::MulAdd => product(0, 1).map(|product| product.plus(of(2))),
        PixelOp::Clamp => Some(of(0).or(of(1)).or(of(2))),
        PixelOp::Select if of(0).factor == 0.0 => Some(of(1).or(of(2))),
        _ => None,
    }
}
