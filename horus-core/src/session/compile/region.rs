//! Programs of regions, and of reductions of regions.

use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::Whole;
use crate::region::{CropRule, Rect, restrict};
use crate::session::SessionState;
use crate::session::compile::memory::present;
use crate::session::images::on_demand::{RegionInput, RegionInputs};
use crate::shape::Shape;

/// Program of a region.
pub(crate) struct RestrictedProgram {
    pub(crate) graph: Graph<Op>,
    /// Inputs that are not in memory.
    pub(crate) parts: Vec<RegionInput>,
    /// Requested region and computed region of each root; empty if they are equal.
    pub(crate) cuts: Vec<(Rect, Rect)>,
}

impl RestrictedProgram {
    /// Program that computes these regions of the roots of `graph`.
    pub(crate) fn of(state: &SessionState, graph: &Graph<Op>, regions: &[Rect]) -> RestrictedProgram {
        let mut parts = RegionInputs::new(state, true);
        let part = restrict(graph, regions, CropRule::Much, &mut parts);
        let cuts = regions.iter().copied().zip(part.roots).collect();
        RestrictedProgram { graph: part.graph, parts: parts.parts, cuts }
    }

    /// Program that computes a region of the first root of `graph`, and the corresponding regions of the other roots
    /// that have pixels there.
    pub(crate) fn of_shares(state: &SessionState, graph: &Graph<Op>, region: Rect) -> RestrictedProgram {
        let (roots, regions): (Vec<usize>, Vec<Rect>) = present(graph, region).into_iter().unzip();
        let roots = roots.into_iter().map(|root| graph.roots[root]).collect();
        RestrictedProgram::of(state, &Graph { roots, ..graph.clone() }, &regions)
    }
}

/// Program that reduces a region of the roots of `graph` with these nodes.
pub(crate) fn reductions_of(
    state: &SessionState,
    graph: &Graph<Op>,
    nodes: &[NodeId],
    region: Rect,
) -> RestrictedProgram {
    // The second input of a reduction is read as a whole, unless it is divided, too.
    let other = |n: &NodeId| {
        let node = graph.node(*n);
        if matches!(node.op, Op::Whole(Whole::Labels(_))) { None } else { node.inputs.get(1).copied() }
    };
    let others: Vec<NodeId> = nodes.iter().filter_map(other).collect();
    let roots: Vec<NodeId> = graph.roots.iter().chain(&others).copied().collect();
    let whole = others.iter().map(|n| Rect::whole(graph.node(*n).shape));
    let regions: Vec<Rect> = graph.roots.iter().map(|_| region).chain(whole).collect();
    let program = Graph { roots: roots.clone(), nodes: graph.nodes.clone(), ..Graph::default() };
    let mut parts = RegionInputs::new(state, true);
    let mut part = restrict(&program, &regions, CropRule::Always, &mut parts).graph;
    let made = std::mem::take(&mut part.roots);
    let at = |n: &NodeId| made[roots.iter().position(|r| r == n).expect("inputs are computed")];
    for node in nodes.iter().map(|n| graph.node(*n)) {
        let inputs = node.inputs.iter().map(at).collect();
        let shape = rows_of(&node.op, node.shape, region).1;
        let op = match &node.op {
            // Coordinates count from the first pixel of the image.
            Op::Whole(Whole::Labels(how)) => {
                Op::from(how.moved(region.rows.start.unsigned_abs(), region.columns.start.unsigned_abs()))
            }
            op => op.clone(),
        };
        let root = part.push(Node { op, inputs, shape, ..node.clone() });
        part.roots.push(root);
    }
    RestrictedProgram { graph: part, parts: parts.parts, cuts: Vec::new() }
}

/// Position of a band's result in the whole result: its first row, if it has rows of its own, and its shape.
pub(crate) fn rows_of(op: &Op, whole: Shape, band: Rect) -> (Option<usize>, Shape) {
    let (start, n) = (band.rows.start.unsigned_abs(), band.rows.len());
    match op {
        Op::Whole(Whole::RowReduce(_)) => (Some(start), Shape { height: n, ..whole }),
        Op::Whole(Whole::Labels(how)) => match how.block() {
            Some(block) => (Some(start / block), Shape { height: n.div_ceil(block), ..whole }),
            None => (None, whole),
        },
        _ => (None, whole),
    }
}
