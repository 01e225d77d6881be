//! Restriction of a program to some levels of a volume.

use std::ops::Range;

use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ops::planes::PlaneMap;
use horus_base::shape::{Axis, Border, Shape};

/// Restricts the program to these levels of the roots of `graph`, which have one depth; `None` if a level of
/// a root depends on other levels.
///
/// `source` returns the value with these levels of an image if they can be read separately. The program crops
/// other images.
pub fn slab(
    graph: &Graph<Op>,
    levels: Range<usize>,
    source: &mut dyn FnMut(ValueId) -> Option<ValueId>,
) -> Option<Graph<Op>> {
    let depth = graph.node(*graph.roots.first()?).shape.depth;
    let mut to: Graph<Op> = Graph::default();
    // New ids of nodes, and whether they are restricted; other ids are those of the whole program.
    let mut made: Vec<(NodeId, bool)> = Vec::with_capacity(graph.nodes.len());
    for (_, node) in graph.iter() {
        let is_whole = node.shape.depth != depth;
        if let (Op::Source(value), false) = (&node.op, is_whole) {
            made.push((cut(node, *value, &levels, source, &mut to), true));
            continue;
        }
        let is_cut: Vec<bool> = node.inputs.iter().map(|n| made[n.0].1).collect();
        let op = of_levels(&node.op, (depth, levels.len()), is_whole, &is_cut)?;
        let inputs = node.inputs.iter().map(|n| made[n.0].0).collect();
        let shape = if is_whole { node.shape } else { Shape { depth: levels.len(), ..node.shape } };
        made.push((to.push(Node { op, inputs, shape, ..node.clone() }), !is_whole));
    }
    to.roots = graph.roots.iter().map(|root| made[root.0].1.then_some(made[root.0].0)).collect::<Option<_>>()?;
    Some(to.without_dead())
}

/// The operation of a node of `depth` levels, or of another number if `is_whole`, for `levels` of them, if these inputs
/// are restricted to the same levels; `None` if a level depends on other levels.
pub(super) fn of_levels(op: &Op, (depth, levels): (usize, usize), is_whole: bool, is_cut: &[bool]) -> Option<Op> {
    let fits = match op {
        Op::Index(Axis::Depth) if !is_whole => false,
        Op::Source(_) | Op::Fill(_) | Op::Index(_) => true,
        Op::Planes(map) => match (is_whole, is_cut.first()?) {
            (true, false) => true,
            (false, false) => map.step == 0,
            (false, true) if map.step == 1 && map.offset == 0 && map.depth == depth => {
                return Some(Op::Planes(PlaneMap { depth: levels, ..*map }));
            }
            _ => false,
        },
        Op::OrderFilter(filter, _) if !is_whole && filter.crosses_levels() => false,
        Op::Whole(operation) if !is_whole => is_cut.iter().enumerate().all(|(k, cut)| *cut == operation.by_levels(k)),
        _ => is_cut.iter().all(|cut| *cut != is_whole),
    };
    fits.then(|| op.clone())
}

/// The levels of a source.
fn cut(
    node: &Node<Op>,
    value: ValueId,
    levels: &Range<usize>,
    source: &mut dyn FnMut(ValueId) -> Option<ValueId>,
    to: &mut Graph<Op>,
) -> NodeId {
    let shape = Shape { depth: levels.len(), ..node.shape };
    if let Some(value) = source(value) {
        return to.push(Node { op: Op::Source(value), shape, ..node.clone() });
    }
    let whole = to.push(node.clone());
    let map = PlaneMap::levels(node.shape, shape.channels, 1, levels.start as i32, Border::Replicate);
    to.push(Node { op: Op::Planes(map), inputs: vec![whole], shape, ..node.clone() })
}
