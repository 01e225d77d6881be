//! Divides a reduction of independent images into parts, each for one rank.
//!
//! `max(max(max(a, b), c), d)` and `max(max(a, b), max(c, d))` have the same bits. So one rank can compute `a` and `b`,
//! another `c` and `d`, each from whole images and without messages in between, such as the orientations of a detector.
//! Whether this takes less time than strips of all images is for the planner to predict.

use crate::ir::graph::{Graph, Need, Node, NodeId, Op, PixelOpOperand};
use crate::machine::MachineProfile;
use crate::ops::pixel::PixelOp;
use crate::plan::work::ProgramWork;
use horus_base::dtype::DType;

/// Returns `true` if the first of three images can be combined with the result of the other two.
fn is_associative(op: PixelOp, dtype: DType) -> bool {
    match op {
        PixelOp::Min | PixelOp::Max | PixelOp::Minimum | PixelOp::Maximum | PixelOp::Lower | PixelOp::Upper => true,
        PixelOp::BitwiseAnd | PixelOp::BitwiseOr | PixelOp::BitwiseXor => !dtype.is_float(),
        // Sums saturate, which depends on their order if terms may be negative.
        PixelOp::Add => matches!(dtype, DType::U8 | DType::U16 | DType::U32),
        _ => false,
    }
}

/// Returns `true` if an operation is at most a pixel operation.
const fn is_light(op: &Op) -> bool {
    matches!(op, Op::Source(_) | Op::Fill(_) | Op::Index(_) | Op::Pixel(..) | Op::Convert(_))
}

/// A chain `op(op(op(first, second), third), ...)`. It combines one term more than it has nodes.
struct Chain {
    /// Its nodes, in order.
    nodes: Vec<NodeId>,
    /// By node of the graph: its index in the chain.
    index: Vec<Option<usize>>,
}

/// The work for one term of a chain: of the nodes that nothing else needs.
#[derive(Clone, Copy, Default)]
struct TermWork {
    /// Approximate seconds.
    seconds: f64,
    /// Set for more than pixel operations.
    filters: bool,
}

/// The operation of a node that combines two images of its own shape and type, if it is associative.
fn combines(graph: &Graph<Op>, node: &Node<Op>) -> Option<PixelOp> {
    let Op::Pixel(op, operands) = &node.op else { return None };
    let of_two = operands[..] == [PixelOpOperand::Input(0), PixelOpOperand::Input(1)];
    let same = |i: &NodeId| (graph.node(*i).shape, graph.node(*i).dtype) == (node.shape, node.dtype);
    (of_two && is_associative(*op, node.dtype) && node.inputs.iter().all(same)).then_some(*op)
}

impl Chain {
    /// The chain that ends with `last`.
    fn to(graph: &Graph<Op>, readers: &[Vec<NodeId>], last: NodeId) -> Option<Chain> {
        let op = combines(graph, graph.node(last))?;
        let mut nodes = vec![last];
        let mut first = graph.node(last).inputs[0];
        while readers[first.0].len() == 1
            && !graph.roots.contains(&first)
            && combines(graph, graph.node(first)) == Some(op)
        {
            nodes.push(first);
            first = graph.node(first).inputs[0];
        }
        nodes.reverse();
        let mut index = vec![None; graph.nodes.len()];
        nodes.iter().enumerate().for_each(|(i, node)| index[node.0] = Some(i));
        Some(Chain { nodes, index })
    }

    /// The work of each term.
    fn work(&self, graph: &Graph<Op>, machine: &MachineProfile) -> Vec<TermWork> {
        let needs = graph.needs(|id, input, need| match self.index[id.0] {
            Some(at) if input == 1 => Need::Part(at + 1),
            Some(0) => Need::Part(0),
            Some(_) => Need::Nothing, // a node of the chain
            None => need,
        });
        let mut work = vec![TermWork::default(); self.nodes.len() + 1];
        for (id, node) in graph.iter() {
            if let (Need::Part(term), None) = (needs[id.0], self.index[id.0]) {
                work[term].seconds += ProgramWork::of_node(graph, node).seconds(machine, 1);
                work[term].filters |= !is_light(&node.op);
            }
        }
        work
    }
}

/// The group of each term: at most `most` groups of consecutive terms of about equal work.
fn groups(work: &[TermWork], most: usize) -> Vec<usize> {
    let all: f64 = work.iter().map(|term| term.seconds).sum();
    let mut before = 0.0;
    let group = |term: &TermWork| {
        let middle = before + term.seconds / 2.0;
        before += term.seconds;
        ((middle / all * most as f64) as usize).min(most - 1)
    };
    work.iter().map(group).collect()
}

/// Number of terms that are more than pixel operations.
fn filters(work: &[TermWork]) -> usize {
    work.iter().filter(|term| term.filters).count()
}

/// The program with the chain of most work combined in at most `ranks` groups of consecutive terms, then the groups.
/// The groups' results become additional roots. `None` if fewer than two terms do more than pixel operations.
pub fn divide(graph: &Graph<Op>, machine: &MachineProfile, ranks: usize) -> Option<Graph<Op>> {
    let is_filter = |node: &&Node<Op>| !is_light(&node.op);
    if ranks == 1 || graph.nodes.iter().filter(is_filter).take(2).count() < 2 {
        return None;
    }
    let readers = graph.consumers();
    let mut found: Option<(f64, Chain, Vec<TermWork>)> = None;
    let mut inside = vec![false; graph.nodes.len()];
    for id in (0..graph.nodes.len()).rev().map(NodeId) {
        let Some(chain) = Chain::to(graph, &readers, id).filter(|_| !inside[id.0]) else { continue };
        chain.nodes.iter().for_each(|node| inside[node.0] = true);
        let work = chain.work(graph, machine);
        let seconds = work.iter().map(|term| term.seconds).sum();
        if filters(&work) > 1 && found.as_ref().is_none_or(|(most, ..)| seconds > *most) {
            found = Some((seconds, chain, work));
        }
    }
    let (_, chain, work) = found?;
    let groups = groups(&work, ranks.min(filters(&work)));
    let mut parts: Vec<NodeId> = Vec::new();
    // The terms of the current group combined so far, and the group.
    let mut current: Option<(NodeId, usize)> = None;
    let mut divided = graph.clone().rebuilt(|out, became, node| {
        let Some(at) = chain.index[became.len()] else { return out.push(node) };
        let combined = |out: &mut Graph<Op>, a, b| out.push(Node { inputs: vec![a, b], ..node.clone() });
        let (first, term) = (node.inputs[0], node.inputs[1]);
        let (so_far, group) = current.unwrap_or((first, groups[0]));
        let next = if groups[at + 1] == group {
            combined(out, so_far, term)
        } else {
            parts.push(so_far);
            term
        };
        current = Some((next, groups[at + 1]));
        if at + 1 < chain.nodes.len() {
            return next;
        }
        parts.push(next);
        parts[1..].iter().fold(parts[0], |all, part| combined(out, all, *part))
    });
    divided.roots.extend(&parts);
    Some(divided)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::geometric::Flip;
    use horus_base::dtype::{Arithmetic, Scalar};
    use horus_base::shape::Shape;

    type Operations<T, const N: usize> = [(PixelOp, fn(T, T) -> T); N];

    /// Fails if a bracket changes the bits of a combination of any three values.
    fn any_brackets<T: Arithmetic + Copy>(
        op: PixelOp,
        dtype: DType,
        combine: fn(T, T) -> T,
        values: &[T],
        bits: fn(T) -> u64,
    ) {
        assert!(is_associative(op, dtype));
        for &a in values {
            for &b in values {
                for &c in values {
                    let (left, right) = (combine(combine(a, b), c), combine(a, combine(b, c)));
                    assert_eq!(bits(left), bits(right), "{op} of {dtype}");
                }
            }
        }
    }

    #[test]
    fn brackets_change_no_bit() {
        let nan = f32::from_bits(f32::NAN.to_bits() | 7);
        let floats = [f32::NAN, nan, -0.0, 0.0, 1.5, -2.0, f32::INFINITY, f32::NEG_INFINITY];
        let operations: Operations<f32, 6> = [
            (PixelOp::Min, Arithmetic::min),
            (PixelOp::Max, Arithmetic::max),
            (PixelOp::Minimum, Arithmetic::minimum),
            (PixelOp::Maximum, Arithmetic::maximum),
            (PixelOp::Lower, Arithmetic::lower),
            (PixelOp::Upper, Arithmetic::upper),
        ];
        for (op, combine) in operations {
            any_brackets(op, DType::F32, combine, &floats, |v| v.to_bits().into());
        }
        let integers = [0u8, 1, 7, 128, 200, 255];
        let operations: Operations<u8, 4> = [
            (PixelOp::Add, Arithmetic::add),
            (PixelOp::BitwiseAnd, Arithmetic::bitwise_and),
            (PixelOp::BitwiseOr, Arithmetic::bitwise_or),
            (PixelOp::BitwiseXor, Arithmetic::bitwise_xor),
        ];
        for (op, combine) in operations {
            any_brackets(op, DType::U8, combine, &integers, u64::from);
        }
        assert!(!is_associative(PixelOp::Add, DType::F32) && !is_associative(PixelOp::Add, DType::I16));
    }

    fn push(graph: &mut Graph<Op>, op: Op, inputs: &[NodeId]) -> NodeId {
        let (shape, dtype) = (Shape::new(9, 8, 1), DType::F32);
        graph.push(Node { op, inputs: inputs.to_vec(), shape, dtype, site: std::panic::Location::caller().into() })
    }

    /// The largest of an image and of so many mirror images of different images.
    fn largest(terms: usize) -> Graph<Op> {
        let mut graph = Graph::default();
        let source = push(&mut graph, Op::Source(crate::ir::graph::ValueId(1)), &[]);
        let mut all = push(&mut graph, Op::Fill(Scalar::from_f64(DType::F32, 0.0)), &[]);
        for term in 0..terms {
            let operands =
                vec![PixelOpOperand::Input(0), PixelOpOperand::Const(Scalar::from_f64(DType::F32, term as f64))];
            let own = push(&mut graph, Op::Pixel(PixelOp::Add, operands), &[source]);
            let flip = push(&mut graph, Op::Flip(Flip::Horizontal), &[own]);
            let op = Op::Pixel(PixelOp::Max, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]);
            all = push(&mut graph, op, &[all, flip]);
        }
        graph.roots = vec![all];
        graph
    }

    #[test]
    fn terms_of_equal_work_are_divided_evenly() {
        let machine = MachineProfile::of_default(true);
        for (terms, ranks, parts) in [(12, 4, 4), (12, 5, 5), (3, 8, 3), (2, 2, 2)] {
            let graph = largest(terms);
            let divided = divide(&graph, &machine, ranks).unwrap();
            assert_eq!(divided.roots.len(), 1 + parts, "{terms} terms on {ranks} ranks");
            let flips = |root: &NodeId| {
                let mut needed = vec![false; divided.nodes.len()];
                needed[root.0] = true;
                for (id, node) in divided.iter().rev().filter(|(id, _)| id.0 <= root.0).collect::<Vec<_>>() {
                    if needed[id.0] {
                        node.inputs.iter().for_each(|i| needed[i.0] = true);
                    }
                }
                divided.iter().filter(|(id, n)| needed[id.0] && matches!(n.op, Op::Flip(_))).count()
            };
            let of_parts: Vec<usize> = divided.roots[1..].iter().map(flips).collect();
            assert_eq!(of_parts.iter().sum::<usize>(), terms);
            assert!(of_parts.iter().all(|n| *n <= terms.div_ceil(parts)), "{of_parts:?}");
            assert_eq!(flips(&divided.roots[0]), terms);
        }
    }

    #[test]
    fn what_is_no_reduction_of_filters_stays() {
        let machine = MachineProfile::of_default(true);
        assert!(divide(&largest(12), &machine, 1).is_none(), "one rank");
        assert!(divide(&largest(1), &machine, 4).is_none(), "one filter");
        // A sum of floats depends on its order.
        let mut sums = largest(4);
        for node in &mut sums.nodes {
            if let Op::Pixel(op @ PixelOp::Max, _) = &mut node.op {
                *op = PixelOp::Add;
            }
        }
        assert!(divide(&sums, &machine, 4).is_none());
        // What another reader needs stays a value of its own.
        let mut kept = largest(3);
        let first = kept.nodes.iter().position(|n| matches!(n.op, Op::Pixel(PixelOp::Max, _))).unwrap();
        kept.roots.push(NodeId(first));
        let divided = divide(&kept, &machine, 4).unwrap();
        assert_eq!(divided.roots.len(), 2 + 2, "two filters come after it");
    }
}
