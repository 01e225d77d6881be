//! A certificate that a loop converges although blocks of its state go on with old pixels of others
//! (chaotic relaxation; Chazan and Miranker, 1969, Linear Algebra Appl. 2, 199-222).
//!
//! Of each node of a step, `factor` times the largest change of a pixel of the state bounds its
//! change: the step contracts if that of each result is less than 1. A factor of 1 is enough where
//! pixels beyond an edge are constant and each pixel depends on one nearer to it, as in the mean of
//! four neighbours: there the row sums of a product of many steps are less than 1.

use crate::dtype::DType;
use crate::ir::graph::{Graph, Node, NodeId, Op, Operand, ValueId};
use crate::ops::edge::Edge;
use crate::ops::geometric::Interpolation;
use crate::ops::neighbourhood::Filter;
use crate::ops::pixel::PixelOp;
use crate::shape::Border;

/// A bound on the change of an image.
#[derive(Clone, Copy)]
struct Bound {
    factor: f64,
    /// Each pixel depends on one of the state beyond or nearer to a constant border.
    drains: bool,
}

impl Bound {
    const NONE: Bound = Bound { factor: 0.0, drains: false };

    fn times(self, factor: f64) -> Bound {
        Bound { factor: self.factor * factor.abs(), ..self }
    }

    fn plus(self, other: Bound) -> Bound {
        Bound { factor: self.factor + other.factor, drains: self.drains || other.drains }
    }

    /// That of an image each of whose pixels is one of these two, or between them.
    fn or(self, other: Bound) -> Bound {
        let [less, more] = if self.factor < other.factor { [self, other] } else { [other, self] };
        Bound { factor: more.factor, drains: more.drains && less.factor < more.factor }
    }
}

/// Fails with a reason unless a step shows that it contracts the state, images `state` of its program.
pub(super) fn contracts(step: &Graph<Op>, state: &[ValueId]) -> Result<(), String> {
    let mut bounds: Vec<Bound> = Vec::with_capacity(step.nodes.len());
    for node in &step.nodes {
        let mut of = match &node.op {
            Op::Source(value) if state.contains(value) => Bound { factor: 1.0, drains: false },
            _ if node.inputs.iter().all(|input| bounds[input.0].factor == 0.0) => Bound::NONE,
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
        let Bound { factor, drains } = bounds[root.0];
        if !(factor < 1.0 || factor == 1.0 && drains && step.roots.len() == 1) {
            return Err(format!("if pixels of the state change by 1, those of a step may change by {factor}"));
        }
    }
    Ok(())
}

/// The bound of a node that depends on the state, if it is known.
fn bound(step: &Graph<Op>, node: &Node<Op>, bounds: &[Bound], state: &[ValueId]) -> Option<Bound> {
    let of = |input: NodeId| bounds[input.0];
    let first = of(node.inputs[0]);
    let is_state = matches!(&step.node(node.inputs[0]).op, Op::Source(value) if state.contains(value));
    let outside = |border: Border| matches!(border, Border::Constant(_)) && is_state;
    let sum = |filter: &Filter| filter.taps().iter().map(|tap| tap.abs()).sum::<f64>();
    let moves =
        |filter: &Filter| filter.taps().iter().zip(filter.offsets()).any(|(tap, at)| *tap != 0.0 && at != (0, 0));
    let drains = |drains: bool, bound: Bound| Bound { drains, ..bound };
    match &node.op {
        // Rounded to integers, small changes do not get smaller.
        _ if !matches!(node.dtype, DType::F32 | DType::F64) => None,
        Op::Pixel(op, operands) => pixel(*op, operands, |n| of(node.inputs[n])),
        Op::Convert(_) => Some(first),
        Op::Planes(_) | Op::Flip(_) => Some(drains(false, first)),
        Op::Correlate(filter, border) => Some(drains(outside(*border) && moves(filter), first.times(sum(filter)))),
        Op::Separable { row, column, border } => {
            let moved = outside(*border) && (moves(row) || moves(column));
            Some(drains(moved, first.times(sum(row) * sum(column))))
        }
        Op::Warp(map, Interpolation::Nearest | Interpolation::Bilinear, edge) => {
            let moved = map.shift().is_some_and(|by| by != [0, 0]);
            Some(drains(moved && matches!(edge, Edge::Border(border) if outside(*border)), first))
        }
        _ => None,
    }
}

/// The bound of a pixel operation.
fn pixel(op: PixelOp, operands: &[Operand], input: impl Fn(usize) -> Bound) -> Option<Bound> {
    let of = |n: usize| if let Operand::Input(input_of) = operands[n] { input(input_of) } else { Bound::NONE };
    let number = |n: usize| if let Operand::Const(number) = operands[n] { Some(number.to_f64()) } else { None };
    let product = |a: usize, b: usize| {
        number(a).map(|number| of(b).times(number)).or_else(|| number(b).map(|number| of(a).times(number)))
    };
    match op {
        PixelOp::Neg | PixelOp::Abs => Some(of(0)),
        PixelOp::Add | PixelOp::Sub | PixelOp::AbsDiff => Some(of(0).plus(of(1))),
        PixelOp::Mul => product(0, 1),
        PixelOp::Div => number(1).map(|by| of(0).times(1.0 / by)),
        PixelOp::Min | PixelOp::Max => Some(of(0).or(of(1))),
        PixelOp::MulAdd => product(0, 1).map(|product| product.plus(of(2))),
        PixelOp::Clamp => Some(of(0).or(of(1)).or(of(2))),
        PixelOp::Select if of(0).factor == 0.0 => Some(of(1).or(of(2))),
        _ => None,
    }
}
