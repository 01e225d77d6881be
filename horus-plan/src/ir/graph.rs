//! Recorded programs: graphs of nodes, pure data.
//!
//! A [`Graph`] lists nodes in topological order. Its nodes have operations of type [`Op`] as recorded, or
//! [`Kernel`](crate::ir::kernel::Kernel) after lowering.

use std::fmt;

use crate::ops::Whole;
use crate::ops::edge::WarpEdge;
use crate::ops::geometric::{Affine, Flip, Interpolation};
use crate::ops::neighbourhood::{Filter, OrderFilter};
use crate::ops::pixel::PixelOp;
use crate::ops::planes::PlaneMap;
use horus_base::dtype::{Conversion, DType, Scalar};
use horus_base::error::RecordedCall;
use horus_base::position_map::{PositionMap, Relation};
use horus_base::shape::{Axis, Border, Shape};

/// An existing value: an image given by the user, or the result of an earlier evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u64);

/// Index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// An operand of a pixel operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PixelOpOperand {
    /// The node's input of this index.
    Input(usize),
    /// A constant of the operand's type.
    Const(Scalar),
}

/// A recorded operation: its parameters only. Inputs, shape and type are in the [`Node`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// An existing value.
    Source(ValueId),
    /// An image filled with a constant of the node's type.
    Fill(Scalar),
    /// An image whose pixels are their own row, column or channel.
    Index(Axis),
    /// A pixel operation on one to three operands.
    Pixel(PixelOp, Vec<PixelOpOperand>),
    /// Conversion of the input to the node's type.
    Convert(Conversion),
    /// Planes of the input, with each pixel at its own position: planes of another level or channel, or one
    /// plane for the whole result.
    Planes(PlaneMap),
    /// A linear filter, as correlation. Input and output have the same float type.
    Correlate(Filter, Border),
    /// Correlation with a row filter, then with a column filter.
    Separable {
        /// A filter of one row, applied first.
        row: Filter,
        /// A filter of one column.
        column: Filter,
        /// Border mode of both filters.
        border: Border,
    },
    /// Generalized convolution or median in the image's own type.
    OrderFilter(OrderFilter, Border),
    /// Affine map with interpolation; the node's shape is the output's.
    Warp(Affine, Interpolation, WarpEdge),
    /// Mirror image.
    Flip(Flip),
    /// An operation on whole images.
    Whole(Whole),
}

impl<T: Into<Whole>> From<T> for Op {
    fn from(operation: T) -> Op {
        Op::Whole(operation.into())
    }
}

impl Op {
    /// Column `x` of an image, as an image of one column.
    pub fn column(x: usize) -> Op {
        let map = Affine { x0: (x as i64) << 32, ..Affine::IDENTITY };
        Op::Warp(map, Interpolation::Nearest, Border::Replicate.into())
    }

    /// The relation of the pixels of the result, of shape `to`, to those of input `input`, of shape `from`.
    pub fn relation(&self, input: usize, from: Shape, to: Shape) -> Relation {
        let same = (from.height, from.width) == (to.height, to.width);
        let line = from.height == 1 || from.width == 1;
        let placed = match self {
            Op::Pixel(..) if line && !same => return Relation::Broadcast,
            Op::Warp(map, ..) if map.repeats() => return Relation::Broadcast,
            Op::Whole(operation) if operation.is_table(input) => return Relation::Broadcast,
            Op::Pixel(..)
            | Op::Convert(_)
            | Op::Planes(_)
            | Op::Correlate(..)
            | Op::Separable { .. }
            | Op::OrderFilter(..) => same.then(PositionMap::default),
            Op::Warp(map, ..) => Some(map.placed()),
            Op::Flip(flip) => Some(flip.placed(from)),
            Op::Whole(operation) => operation.position_map(input, from, to),
            Op::Source(_) | Op::Fill(_) | Op::Index(_) => None,
        };
        let levels = match self {
            Op::Planes(_) if to.depth > 1 && from.depth == 1 => Some(0.0),
            Op::Planes(map) if to.depth > 1 => Some(f64::from(map.step.abs())),
            Op::Planes(_) => Some(1.0),
            _ => (from.depth == to.depth).then_some(1.0),
        };
        placed.map_or(Relation::Elsewhere, |placed| Relation::Mapped(placed, levels))
    }

    /// Returns `true` if the operation can be computed on pixels of several samples: each sample depends on
    /// the samples at the same place in other pixels, so that neighbours in a row are only further apart.
    /// Other operations are computed on planes.
    pub fn knows_samples(&self) -> bool {
        match self {
            Op::Source(_) | Op::Fill(_) | Op::Pixel(..) | Op::Convert(_) => true,
            Op::Correlate(..) | Op::Separable { .. } | Op::Warp(..) | Op::Flip(_) => true,
            Op::OrderFilter(filter, _) => filter.knows_samples(),
            Op::Whole(operation) => operation.supports_samples(),
            Op::Index(_) | Op::Planes(_) => false,
        }
    }

    /// The name of the operation, without its parameters.
    pub fn kind(&self) -> &'static str {
        match self {
            Op::Source(_) => "image",
            Op::Fill(_) => "fill",
            Op::Index(_) => "index",
            Op::Pixel(op, _) => op.info().name,
            Op::Convert(Conversion::Nearest) => "convert",
            Op::Convert(Conversion::Cast) => "cast",
            Op::Planes(_) => "planes",
            Op::Correlate(..) => "correlate",
            Op::Separable { .. } => "separable",
            Op::OrderFilter(filter, _) => filter.kind(),
            Op::Warp(..) => "warp",
            Op::Flip(_) => "flip",
            Op::Whole(operation) => operation.kind(),
        }
    }

    /// Short name for plans and messages.
    pub fn name(&self) -> String {
        match self {
            Op::Source(v) => format!("image#{}", v.0),
            Op::Fill(v) => format!("fill {v}"),
            Op::Index(axis) => format!("index {axis}"),
            Op::Pixel(op, operands) => {
                let consts: Vec<String> = operands
                    .iter()
                    .filter_map(|o| match o {
                        PixelOpOperand::Const(c) => Some(c.to_string()),
                        PixelOpOperand::Input(_) => None,
                    })
                    .collect();
                if consts.is_empty() { op.to_string() } else { format!("{op}[{}]", consts.join(", ")) }
            }
            Op::Convert(_) => self.kind().into(),
            Op::Planes(map) => map.to_string(),
            Op::Correlate(f, _) => format!("correlate {f}"),
            Op::Separable { row, column, .. } => format!("separable {row} {column}"),
            Op::OrderFilter(filter, _) => filter.to_string(),
            Op::Warp(_, i, _) => format!("warp {i:?}").to_lowercase(),
            Op::Flip(x) => format!("flip {x:?}").to_lowercase(),
            Op::Whole(operation) => operation.name(),
        }
    }
}

/// One node of a graph.
#[derive(Clone, Debug)]
pub struct Node<O> {
    /// Operation.
    pub op: O,
    /// Inputs.
    pub inputs: Vec<NodeId>,
    /// Shape of the result.
    pub shape: Shape,
    /// Element type of the result.
    pub dtype: DType,
    /// The user's call that recorded it.
    pub site: RecordedCall,
}

/// What needs a node: nothing, one part of a program, or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing.
    Nothing,
    /// The part of this number.
    Part(usize),
    /// Several parts, or the whole program.
    More,
}

/// A program: nodes in topological order, and its roots.
#[derive(Clone, Debug)]
pub struct Graph<O> {
    /// The nodes.
    pub nodes: Vec<Node<O>>,
    /// The nodes whose values outlive the evaluation.
    pub roots: Vec<NodeId>,
    /// Groups of nodes that one launch computes together, if no step comes between them. A node is in at most
    /// one group.
    pub joined: Vec<Joined<O>>,
    /// By node of an optimised program: the recorded calls that its kernel computes, in the order of recording.
    /// Otherwise empty.
    pub calls: Vec<Vec<RecordedCall>>,
}

/// Independent nodes of one shape that can be computed together.
#[derive(Clone, Debug)]
pub struct Joined<O> {
    /// The nodes, consecutive in the graph.
    pub nodes: Vec<NodeId>,
    /// The operation that computes all of them: one result per node, in this order.
    pub op: O,
    /// Inputs.
    pub inputs: Vec<NodeId>,
}

impl<O> Default for Graph<O> {
    fn default() -> Self {
        Graph { nodes: Vec::new(), roots: Vec::new(), joined: Vec::new(), calls: Vec::new() }
    }
}

impl<O> Graph<O> {
    /// Appends a node.
    pub fn push(&mut self, node: Node<O>) -> NodeId {
        debug_assert!(node.inputs.iter().all(|i| i.0 < self.nodes.len()), "inputs come first");
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }

    /// Node `id`.
    pub fn node(&self, id: NodeId) -> &Node<O> {
        &self.nodes[id.0]
    }

    /// All nodes with their ids, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node<O>)> {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(i), n))
    }

    /// The readers of each node, once per read, in order.
    pub(crate) fn consumers(&self) -> Vec<Vec<NodeId>> {
        let mut out = vec![Vec::new(); self.nodes.len()];
        for (id, n) in self.iter() {
            for i in &n.inputs {
                out[i.0].push(id);
            }
        }
        out
    }

    /// What needs each node. Roots need more than one part; `passed` returns for what a node needs its input of this
    /// index, given what needs the node.
    pub(crate) fn needs(&self, passed: impl Fn(NodeId, usize, Need) -> Need) -> Vec<Need> {
        let mut needs = vec![Need::Nothing; self.nodes.len()];
        self.roots.iter().for_each(|root| needs[root.0] = Need::More);
        for (id, node) in self.iter().rev() {
            for (i, input) in node.inputs.iter().enumerate() {
                needs[input.0] = match (needs[input.0], passed(id, i, needs[id.0])) {
                    (Need::Nothing, other) | (other, Need::Nothing) => other,
                    (a, b) if a == b => a,
                    _ => Need::More,
                };
            }
        }
        needs
    }

    /// Rebuilds the graph node by node, in order. `put` receives each node with its inputs renumbered, and
    /// the values that it returned for all earlier nodes. It adds the node or a replacement, and returns the
    /// new id.
    pub fn rebuilt<P>(self, mut put: impl FnMut(&mut Graph<P>, &[NodeId], Node<O>) -> NodeId) -> Graph<P> {
        let mut out = Graph::default();
        let mut became: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        for mut node in self.nodes {
            node.inputs.iter_mut().for_each(|i| *i = became[i.0]);
            let id = put(&mut out, &became, node);
            became.push(id);
        }
        out.roots = self.roots.iter().map(|r| became[r.0]).collect();
        out
    }

    /// The graph without nodes that no root needs.
    pub fn without_dead(self) -> Graph<O> {
        let mut live = vec![false; self.nodes.len()];
        self.roots.iter().for_each(|r| live[r.0] = true);
        for (i, n) in self.nodes.iter().enumerate().rev() {
            if live[i] {
                n.inputs.iter().for_each(|x| live[x.0] = true);
            }
        }
        let mut map = vec![NodeId(usize::MAX); self.nodes.len()];
        let mut out = Graph::default();
        for (i, mut n) in self.nodes.into_iter().enumerate() {
            if live[i] {
                n.inputs.iter_mut().for_each(|x| *x = map[x.0]);
                map[i] = out.push(n);
            }
        }
        out.roots = self.roots.iter().map(|r| map[r.0]).collect();
        // A node joined with a dead node is computed alone.
        for mut joined in self.joined.into_iter().filter(|j| j.nodes.iter().all(|n| live[n.0])) {
            joined.nodes.iter_mut().chain(&mut joined.inputs).for_each(|n| *n = map[n.0]);
            out.joined.push(joined);
        }
        out
    }
}

impl fmt::Display for Graph<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, n) in self.iter() {
            let inputs: Vec<String> = n.inputs.iter().map(NodeId::to_string).collect();
            let root = if self.roots.contains(&id) { "  (wanted)" } else { "" };
            writeln!(f, "{id} = {}({}) : {} {}{root}", n.op.name(), inputs.join(", "), n.shape, n.dtype)?;
        }
        Ok(())
    }
}
