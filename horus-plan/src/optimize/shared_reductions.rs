//! Reductions of one image computed together: minimum and maximum, or sum and variance.
//!
//! They become columns of one reduction that [includes](RowReduce::includes) them, which one fold completes.

use std::collections::HashMap;

use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::Whole;
use crate::ops::reduce::RowReduce;
use horus_base::shape::Shape;

/// Replaces two reductions of one image to one value each by columns of one reduction that equal these values
/// by bits. The replaced nodes stay in the graph, dead.
pub fn reduce(graph: Graph<Op>) -> Graph<Op> {
    let shared = shared(&graph);
    if shared.is_empty() {
        return graph;
    }
    let mut folded: HashMap<(NodeId, RowReduce), NodeId> = HashMap::new();
    graph.rebuilt(|out, became, mut node| {
        if let Some(&SharedFold { image, how, column }) = shared.get(&NodeId(became.len())) {
            let image = became[image.0];
            let all = *folded.entry((image, how)).or_insert_with(|| {
                let (dtype, site) = (node.dtype, node.site);
                let shape = Shape { width: how.columns(), ..out.node(image).shape };
                let rows = out.push(Node { op: Op::from(how), inputs: vec![image], shape, dtype, site });
                let shape = Shape::new(1, how.columns(), 1);
                out.push(Node { op: Op::from(how.fold()), inputs: vec![rows], shape, dtype, site })
            });
            if node.op == Op::from(how.fold()) {
                return all;
            }
            (node.op, node.inputs) = (Op::column(column), vec![all]);
        }
        out.push(node)
    })
}

/// A fold that can be shared: its image, its reduction and its column.
#[derive(Clone, Copy)]
struct SharedFold {
    image: NodeId,
    how: RowReduce,
    column: usize,
}

/// The folds that can be shared.
fn shared(graph: &Graph<Op>) -> HashMap<NodeId, SharedFold> {
    let readers = graph.consumers();
    // By image and reduction: the folds, if the row results have no other readers.
    let mut totals: HashMap<(NodeId, RowReduce), Vec<NodeId>> = HashMap::new();
    for (id, node) in graph.iter() {
        let Op::Whole(Whole::RowReduce(how)) = node.op else { continue };
        let of_all = |reader: &NodeId| graph.node(*reader).op == Op::from(how.fold());
        if !how.has_operand() && !graph.roots.contains(&id) && readers[id.0].iter().all(of_all) {
            totals.entry((node.inputs[0], how)).or_default().extend(&readers[id.0]);
        }
    }
    let mut shared = HashMap::new();
    for image in (0..graph.nodes.len()).map(NodeId) {
        for how in RowReduce::ALL {
            let there = how.includes().iter().filter_map(|(m, column)| Some((totals.get(&(image, *m))?, *column)));
            let there: Vec<(&Vec<NodeId>, usize)> = there.collect();
            if there.len() > 1 {
                let folds = there.into_iter().flat_map(|(folds, column)| folds.iter().map(move |fold| (*fold, column)));
                shared.extend(folds.map(|(fold, column)| (fold, SharedFold { image, how, column })));
            }
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::ValueId;
    use horus_base::dtype::DType;
    use std::panic::Location;

    fn program(of: &[RowReduce]) -> Graph<Op> {
        let mut g = Graph::default();
        let mut push = |op, inputs: Vec<NodeId>, shape, dtype| {
            g.push(Node { op, inputs, shape, dtype, site: Location::caller().into() })
        };
        let image = push(Op::Source(ValueId(0)), vec![], Shape::new(9, 7, 2), DType::F64);
        let roots = of.iter().map(|how| {
            let rows = push(Op::from(*how), vec![image], Shape::new(9, how.columns(), 2), DType::F64);
            push(Op::from(how.fold()), vec![rows], Shape::new(1, how.columns(), 1), DType::F64)
        });
        g.roots = roots.collect();
        g
    }

    /// The remaining reductions along rows.
    fn left(of: &[RowReduce]) -> Vec<RowReduce> {
        let graph = reduce(program(of)).without_dead();
        graph
            .nodes
            .iter()
            .filter_map(|n| if let Op::Whole(Whole::RowReduce(how)) = n.op { Some(how) } else { None })
            .collect()
    }

    #[test]
    fn what_is_found_in_one_pass_is_reduced_in_one() {
        use RowReduce::{Extremes, Max, Min, Moments, Sum};
        assert_eq!(left(&[Min, Max]), [Extremes]);
        assert_eq!(left(&[Max, Min, Sum]), [Extremes, Sum]);
        assert_eq!(left(&[Sum, Moments]), [Moments]);
        assert_eq!(left(&[Extremes, Min, Sum, Max, Moments]), [Extremes, Moments]);
        for alone in [&[Min][..], &[Sum, Max], &[Extremes], &[Moments, Min]] {
            assert_eq!(left(alone), alone, "nothing to share");
        }
    }

    #[test]
    fn rows_that_somebody_reads_stay() {
        let mut graph = program(&[RowReduce::Min, RowReduce::Max]);
        graph.roots.push(NodeId(1));
        let before = graph.to_string();
        assert_eq!(reduce(graph).to_string(), before);
    }
}
