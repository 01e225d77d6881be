//! Filters of one image by Fourier transforms of the same tiles: the image is transformed once for all of
//! them.

use std::collections::HashMap;

use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::neighbourhood::Filter;
use crate::ops::planes::PlaneMap;
use crate::ops::{Fourier, Whole};
use horus_base::shape::{Border, Shape};

/// Maximum number of filters that share a transform: their responses are in memory at once, and each further
/// filter saves less.
const MOST: usize = 8;

/// The image, the border mode, the tiles and their place: what filters that share transforms have in common.
type TransformKey = (NodeId, Border, [usize; 2], [usize; 2], [usize; 2]);

/// Replaces filters that can share transforms of an image of one channel by one operation of several
/// channels, each read by the readers of one filter. Results of the program stay separate.
pub fn share(graph: Graph<Op>) -> Graph<Op> {
    let mut groups: HashMap<TransformKey, Vec<Vec<NodeId>>> = HashMap::new();
    for (id, node) in graph.iter() {
        let Op::Whole(Whole::Fourier(how)) = &node.op else { continue };
        if how.across.is_some() || how.filters.len() > 1 || node.shape.channels > 1 || graph.roots.contains(&id) {
            continue;
        }
        let reach = how.reach();
        let common = (node.inputs[0], how.border, how.tile, how.origin, [reach.up, reach.left]);
        let of = groups.entry(common).or_default();
        match of.last_mut().filter(|last| last.len() < MOST && same_reach(&graph, last[0], how)) {
            Some(last) => last.push(id),
            None => of.push(vec![id]),
        }
    }
    let shared: Vec<Vec<NodeId>> = groups.into_values().flatten().filter(|group| group.len() > 1).collect();
    let mut place: HashMap<NodeId, (usize, usize)> = HashMap::new();
    for (g, group) in shared.iter().enumerate() {
        place.extend(group.iter().enumerate().map(|(f, id)| (*id, (g, f))));
    }
    let filters: Vec<Vec<_>> =
        shared.iter().map(|group| group.iter().filter_map(|id| filter(&graph, *id)).collect()).collect();
    let mut made: HashMap<usize, NodeId> = HashMap::new();
    graph.rebuilt(|out, became, node| {
        let Some(&(g, f)) = place.get(&NodeId(became.len())) else { return out.push(node) };
        let Op::Whole(Whole::Fourier(how)) = &node.op else { return out.push(node) };
        let shape = Shape { channels: filters[g].len(), ..node.shape };
        let all = *made.entry(g).or_insert_with(|| {
            let op = Op::from(Fourier { filters: filters[g].clone().into(), ..how.clone() });
            out.push(Node { op, shape, ..node.clone() })
        });
        out.push(Node { op: Op::Planes(PlaneMap::channel(shape, f)), inputs: vec![all], ..node })
    })
}

fn same_reach(graph: &Graph<Op>, other: NodeId, how: &Fourier) -> bool {
    matches!(&graph.node(other).op, Op::Whole(Whole::Fourier(other)) if other.reach() == how.reach())
}

/// The only filter of a node.
fn filter(graph: &Graph<Op>, id: NodeId) -> Option<Filter> {
    match &graph.node(id).op {
        Op::Whole(Whole::Fourier(how)) => how.filters.first().cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::ValueId;
    use horus_base::dtype::DType;
    use std::panic::Location;

    #[test]
    fn filters_of_one_image_and_reach_share_transforms_but_kept_results_do_not() {
        let mut graph = Graph::default();
        let shape = Shape::volume(2, 40, 50, 1);
        let node = |op, inputs| Node { op, inputs, shape, dtype: DType::F32, site: Location::caller().into() };
        let image = graph.push(node(Op::Source(ValueId(0)), vec![]));
        let near = |filter: Filter| Op::from(Fourier::of([filter], Border::Wrap, [32, 32]));
        let of = |v: f64| near(Filter::dense(3, 3, vec![v; 9]));
        let mut ids: Vec<NodeId> = (0..10).map(|k| graph.push(node(of(f64::from(k)), vec![image]))).collect();
        ids.push(graph.push(node(near(Filter::dense(4, 3, vec![1.0; 12])), vec![image])));
        // A filter of another image.
        ids.push(graph.push(node(of(1.0), vec![ids[0]])));
        let sums: Vec<NodeId> =
            ids.iter().map(|id| graph.push(node(Op::Flip(crate::ops::geometric::Flip::Both), vec![*id]))).collect();
        graph.roots = [vec![ids[4]], sums].concat();
        let graph = share(graph);
        let text = graph.to_string();
        assert_eq!(text.matches("correlate 8 filters of 3x3 ").count(), 1, "{text}");
        assert_eq!(text.matches("correlate 3x3 ").count(), 3, "a root, the ninth, and of another image: {text}");
        assert_eq!(text.matches("correlate 4x3 ").count(), 1, "{text}");
        assert_eq!(text.matches(": 2x40x50x8 f32").count(), 1, "{text}");
    }
}
