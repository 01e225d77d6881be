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
        let mut inputs = node.inputs.iter().map(|n| made[n.0].1);
        let whole = node.shape.depth != depth;
        let shape = Shape { depth: levels.len(), ..node.shape };
        let op = match &node.op {
            Op::Source(value) if !whole => {
                made.push((cut(node, *value, &levels, source, &mut to), true));
                continue;
            }
            Op::Index(Axis::Depth) if !whole => return None,
            Op::Source(_) | Op::Fill(_) | Op::Index(_) => node.op.clone(),
            Op::Planes(map) => match (whole, inputs.next()?) {
                (true, false) => node.op.clone(),
                (false, false) if map.step == 0 => node.op.clone(),
                (false, true) if map.step == 1 && map.offset == 0 && map.depth == depth => {
                    Op::Planes(PlaneMap { depth: levels.len(), ..*map })
                }
                _ => return None,
            },
            Op::OrderFilter(filter, _) if !whole && filter.crosses_levels() => return None,
            Op::Whole(operation) if !whole => {
                if !inputs.enumerate().all(|(k, cut)| cut == operation.by_levels(k)) {
                    return None;
                }
                node.op.clone()
            }
            _ if inputs.all(|cut| cut != whole) => node.op.clone(),
            _ => return None,
        };
        let inputs = node.inputs.iter().map(|n| made[n.0].0).collect();
        let shape = if whole { node.shape } else { shape };
        made.push((to.push(Node { op, inputs, shape, ..node.clone() }), !whole));
    }
    to.roots = graph.roots.iter().map(|root| made[root.0].1.then_some(made[root.0].0)).collect::<Option<_>>()?;
    Some(to.without_dead())
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
