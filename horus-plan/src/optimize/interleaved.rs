//! Keeps pixels interleaved through operations that work on each sample alone.

use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::Whole;

/// Computes operations between a [`Deinterleave`](Whole::Deinterleave) and an
/// [`Interleave`](Whole::Interleave) on interleaved pixels, if all their readers can. The graph has no dead
/// nodes before and after.
pub fn keep_interleaved(graph: Graph<Op>) -> Graph<Op> {
    if !graph.nodes.iter().any(|n| is(&n.op, interleaves)) {
        return graph;
    }
    let kept = interleaved_operations(&graph);
    let mut at = 0..;
    let kept = graph.rebuilt(|out, _, node| {
        let id = at.next().unwrap_or_default();
        // The interleaved pixels of an input.
        let samples = |out: &Graph<Op>, input: NodeId| {
            let from = out.node(input);
            is(&from.op, deinterleaves).then(|| from.inputs[0])
        };
        match &node.op {
            op if is(op, interleaves) => samples(out, node.inputs[0]).unwrap_or_else(|| out.push(node)),
            _ if kept[id] => {
                let inputs = node.inputs.iter().map(|input| samples(out, *input).unwrap_or(*input)).collect();
                let (shape, planes) = (node.shape.interleaved(), node.shape);
                let (dtype, site) = (node.dtype, node.site);
                let one = out.push(Node { inputs, shape, ..node });
                // Readers use the interleaved pixels before this node.
                let op = Op::from(crate::ops::Deinterleave);
                out.push(Node { op, inputs: vec![one], shape: planes, dtype, site })
            }
            _ => out.push(node),
        }
    });
    kept.without_dead()
}

/// The operations to compute on interleaved pixels: their inputs are interleaved or among these operations,
/// and all their readers accept interleaved pixels.
fn interleaved_operations(graph: &Graph<Op>) -> Vec<bool> {
    let mut kept: Vec<bool> = graph
        .nodes
        .iter()
        .map(|n| n.shape.channels > 1 && !matches!(n.op, Op::Source(_)) && n.op.knows_samples())
        .collect();
    graph.roots.iter().for_each(|root| kept[root.0] = false);
    let readers = graph.consumers();
    // Each round removes operations that no longer satisfy both conditions.
    loop {
        let mut changed = false;
        for (id, node) in graph.iter().filter(|(id, _)| kept[id.0]).map(|(id, n)| (id.0, n)).collect::<Vec<_>>() {
            let read = node.inputs.iter().all(|i| kept[i.0] || is(&graph.node(*i).op, deinterleaves));
            let wanted = readers[id].iter().all(|r| kept[r.0] || is(&graph.node(*r).op, interleaves));
            if !read || !wanted || readers[id].is_empty() {
                kept[id] = false;
                changed = true;
            }
        }
        if !changed {
            return kept;
        }
    }
}

fn is(op: &Op, which: fn(&Whole) -> bool) -> bool {
    matches!(op, Op::Whole(whole) if which(whole))
}

fn deinterleaves(operation: &Whole) -> bool {
    matches!(operation, Whole::Deinterleave(_))
}

fn interleaves(operation: &Whole) -> bool {
    matches!(operation, Whole::Interleave(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::{PixelOpOperand, ValueId};
    use crate::ops::pixel::PixelOp;
    use crate::ops::{Deinterleave, Interleave, Transpose};
    use horus_base::dtype::DType;
    use horus_base::shape::Shape;

    const PLANES: Shape = Shape::new(4, 5, 3);

    fn push(graph: &mut Graph<Op>, op: Op, inputs: &[NodeId], shape: Shape) -> NodeId {
        let site = std::panic::Location::caller().into();
        graph.push(Node { op, inputs: inputs.to_vec(), shape, dtype: DType::F32, site })
    }

    fn sum(graph: &mut Graph<Op>, a: NodeId, b: NodeId) -> NodeId {
        let sum = Op::Pixel(PixelOp::Add, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]);
        push(graph, sum, &[a, b], PLANES)
    }

    /// The kinds of operations after the pass, without sources.
    fn after(mut graph: Graph<Op>, root: NodeId) -> Vec<&'static str> {
        graph.roots = vec![root];
        let kept = keep_interleaved(graph.without_dead());
        kept.nodes.iter().map(|n| n.op.kind()).filter(|kind| *kind != "image").collect()
    }

    #[test]
    fn pixel_operations_keep_pixels_interleaved_where_nothing_else_reads_them() {
        let mut g = Graph::default();
        let source = push(&mut g, Op::Source(ValueId(0)), &[], PLANES.interleaved());
        let planes = push(&mut g, Op::from(Deinterleave), &[source], PLANES);
        let twice = sum(&mut g, planes, planes);
        let more = sum(&mut g, twice, planes);
        let turned = push(&mut g, Op::from(Transpose), &[more], PLANES);
        let mut wanted = |of| push(&mut g, Op::from(Interleave), &[of], PLANES.interleaved());
        let (more, turned, same) = (wanted(more), wanted(turned), wanted(planes));
        assert_eq!(after(g.clone(), more), ["add", "add"]);
        assert_eq!(after(g.clone(), same), [""; 0]);
        // Images that are read as planes are computed as planes.
        assert_eq!(after(g, turned), ["deinterleave", "add", "add", "transpose", "interleave"]);
    }
}
