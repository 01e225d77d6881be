//! Programs of many pictures of one size, computed as the levels of one volume: the inverse of [`slab`](super::slab).

use super::slab::of_levels;
use crate::ir::graph::{Graph, Need, Node, NodeId, Op, PixelOpOperand, ValueId};
use crate::ops::planes::PlaneMap;
use crate::ops::reduce::{Fold, RowReduce};
use crate::ops::{Transpose, Whole};
use horus_base::shape::{Axis, Border, Shape};

/// Rewrites the program that `graph` computes from its node `picture` to a program of `count` pictures, which are the
/// levels of a volume: level `z` of each root has the pixels of the root for picture `z`.
///
/// Sources of the result are named by nodes of `graph`: the volume by `picture`, images that all pictures share by their
/// own nodes.
///
/// # Errors
/// The first node that cannot be computed level by level.
pub fn stack(graph: &Graph<Op>, picture: NodeId, count: usize) -> Result<Graph<Op>, NodeId> {
    let needs = graph.needs(|_, _, need| need);
    let mut to: Graph<Op> = Graph::default();
    // The new node of each node that depends on the picture.
    let mut stacked: Vec<Option<NodeId>> = vec![None; graph.nodes.len()];
    for (id, node) in graph.iter() {
        let depends = id == picture || node.inputs.iter().any(|n| stacked[n.0].is_some());
        if !depends || needs[id.0] == Need::Nothing {
            continue;
        }
        if node.shape.depth != 1 {
            return Err(id);
        }
        if let (Op::Whole(Whole::Fold(how)), Some(rows)) = (&node.op, node.inputs.first().and_then(|n| stacked[n.0])) {
            stacked[id.0] = Some(folded(*how, rows, &mut to).ok_or(id)?);
            continue;
        }
        let (mut inputs, mut is_cut) = (Vec::new(), Vec::new());
        for (k, input) in node.inputs.iter().enumerate().filter(|_| id != picture) {
            let by_levels = if let Op::Whole(operation) = &node.op { operation.by_levels(k) } else { true };
            inputs.push(stacked[input.0].unwrap_or_else(|| shared(graph, *input, by_levels.then_some(count), &mut to)));
            is_cut.push(by_levels || stacked[input.0].is_some());
        }
        let op = match &node.op {
            _ if id == picture => source_of(id),
            Op::Planes(map) => {
                let from = graph.node(node.inputs[0]).shape;
                Op::Planes(map.of_each_level(from, node.shape.channels, count).ok_or(id)?)
            }
            op => op.clone(),
        };
        of_levels(&op, (count, 1), false, &is_cut).ok_or(id)?;
        let node = Node { op, inputs, shape: levels(node.shape, count), ..node.clone() };
        if let Op::Whole(operation) = &node.op {
            let inputs: Vec<_> = node.inputs.iter().map(|n| (to.node(*n).shape, to.node(*n).dtype)).collect();
            operation.check(&inputs, (node.shape, node.dtype)).map_err(|_| id)?;
        }
        stacked[id.0] = Some(to.push(node));
    }
    to.roots = graph.roots.iter().map(|root| stacked[root.0].ok_or(*root)).collect::<Result<_, _>>()?;
    Ok(to)
}

fn levels(of: Shape, count: usize) -> Shape {
    Shape { depth: count, ..of }
}

/// A source named by a node.
fn source_of(node: NodeId) -> Op {
    Op::Source(ValueId(node.0 as u64))
}

/// An image that does not depend on the picture: whole, or repeated for each of these levels.
fn shared(graph: &Graph<Op>, id: NodeId, repeated: Option<usize>, to: &mut Graph<Op>) -> NodeId {
    let node = graph.node(id);
    match (&node.op, repeated) {
        (Op::Fill(_) | Op::Index(Axis::Rows | Axis::Columns | Axis::Channels), Some(count)) => {
            to.push(Node { shape: levels(node.shape, count), ..node.clone() })
        }
        (_, count) => {
            let whole = to.push(Node { op: source_of(id), inputs: Vec::new(), ..node.clone() });
            let Some(count) = count else { return whole };
            let map = PlaneMap::levels(node.shape, node.shape.channels, 0, 0, Border::Replicate);
            to.push(Node { op: Op::Planes(map), inputs: vec![whole], shape: levels(node.shape, count), ..node.clone() })
        }
    }
}

/// The fold of the row results of each level, in the order of [`fold_planes`](crate::ops::reduce::fold_planes): the row
/// results of a channel are reduced as one row. `None` for a fold of several columns.
fn folded(how: Fold, rows: NodeId, to: &mut Graph<Op>) -> Option<NodeId> {
    let of = to.node(rows).clone();
    let row_reduce = [RowReduce::Sum, RowReduce::Min, RowReduce::Max].into_iter().find(|row| row.fold() == how)?;
    if of.shape.width != 1 {
        return None;
    }
    let mut push = |op: Op, inputs: Vec<NodeId>, shape: Shape| to.push(Node { op, inputs, shape, ..of.clone() });
    let line = Shape { height: 1, width: of.shape.height, ..of.shape };
    let (each, one) = (Shape { width: 1, ..line }, Shape { width: 1, channels: 1, ..line });
    let line = push(Op::from(Transpose), vec![rows], line);
    let totals = push(Op::from(row_reduce), vec![line], each);
    if each.channels == 1 {
        return Some(totals);
    }
    let channels: Vec<NodeId> =
        (0..each.channels).map(|c| push(Op::Planes(PlaneMap::channel(each, c)), vec![totals], one)).collect();
    let both = vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)];
    channels.into_iter().reduce(|total, next| push(Op::Pixel(how.pairwise(), both.clone()), vec![total, next], one))
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::ops::geometric::Flip;
    use crate::ops::pixel::PixelOp;
    use crate::region::slab;
    use horus_base::dtype::{Conversion, DType};

    fn node(op: Op, inputs: &[NodeId], shape: Shape) -> Node<Op> {
        Node { op, inputs: inputs.to_vec(), shape, dtype: DType::F64, site: Location::caller().into() }
    }

    fn pixel(op: PixelOp, inputs: &[NodeId], shape: Shape) -> Node<Op> {
        let operands = (0..inputs.len()).map(PixelOpOperand::Input).collect();
        node(Op::Pixel(op, operands), inputs, shape)
    }

    #[test]
    fn a_level_of_a_stack_is_the_program_of_a_picture() {
        let (colour, grey) = (Shape::new(4, 6, 3), Shape::new(4, 6, 1));
        let mut one = Graph::default();
        let picture = one.push(node(Op::Convert(Conversion::Nearest), &[], colour));
        let flat = one.push(node(Op::Source(ValueId(7)), &[], grey));
        let green = one.push(node(Op::Planes(PlaneMap::channel(colour, 1)), &[picture], grey));
        let flipped = one.push(node(Op::Flip(Flip::Horizontal), &[green], grey));
        let root = one.push(pixel(PixelOp::Sub, &[flipped, flat], grey));
        one.roots = vec![root];
        let stacked = stack(&one, picture, 5).unwrap();
        assert_eq!(stacked.node(stacked.roots[0]).shape, Shape::volume(5, 4, 6, 1));
        let level = slab(&stacked, 2..3, &mut Some).unwrap();
        let ops = |graph: &Graph<Op>| graph.nodes.iter().map(|n| n.op.name()).collect::<Vec<_>>();
        assert_eq!(ops(&level), ["image#0", "levels, channel 1", "flip horizontal", "image#1", "plane 0", "sub"]);
        assert!(level.nodes.iter().all(|node| node.shape.depth == 1));
    }

    #[test]
    fn the_operation_that_mixes_pictures_is_named() {
        let shape = Shape::new(4, 6, 1);
        let mut one = Graph::default();
        let picture = one.push(node(Op::Convert(Conversion::Nearest), &[], shape));
        let sum = one.push(node(Op::from(RowReduce::Moments), &[picture], Shape::new(4, 3, 1)));
        let unread = one.push(node(Op::from(RowReduce::Moments.fold()), &[sum], Shape::new(1, 3, 1)));
        one.roots = vec![picture];
        assert!(stack(&one, picture, 2).is_ok(), "what no root needs does not matter");
        one.roots.push(unread);
        assert_eq!(stack(&one, picture, 2).err(), Some(unread));
        let volume = one.push(node(Op::Convert(Conversion::Nearest), &[], Shape::volume(2, 4, 6, 1)));
        one.roots = vec![volume];
        assert_eq!(stack(&one, volume, 2).err(), Some(volume));
    }
}
