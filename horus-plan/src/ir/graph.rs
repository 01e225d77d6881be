//! Recorded programs: nodes and what they compute, pure data.
//!
//! A [`Graph`] is a list of nodes in an order in which every node follows its inputs. It is generic over what a node
//! computes: [`Op`] as recorded, [`Kernel`](crate::ir::kernel::Kernel) after lowering.

use std::fmt;

use crate::ops::Whole;
use crate::ops::geometric::{Affine, Flip, Interpolation};
use crate::ops::neighbourhood::{Filter, Generalized, MedianSize};
use crate::ops::pixel::PixelOp;
use crate::ops::planes::PlaneMap;
use horus_base::dtype::{Conversion, DType, Scalar};
use horus_base::error::Recorded;
use horus_base::shape::{Axis, Border, Shape};

/// A value that exists: an image given by the user, or the result of an earlier evaluation.
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
pub enum Operand {
    /// The node's input of this index.
    Input(usize),
    /// A constant of the operand's type.
    Const(Scalar),
}

/// A recorded operation. Parameters only; inputs, shape and type are in the [`Node`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A value that exists.
    Source(ValueId),
    /// An image filled with a constant of the node's type.
    Fill(Scalar),
    /// An image whose pixels are their own row, column or channel.
    Index(Axis),
    /// A pixel operation; operands of fewer than three are a prefix.
    Pixel(PixelOp, Vec<Operand>),
    /// Conversion of the input to the node's type.
    Convert(Conversion),
    /// Planes of the input, each pixel from its own place: of another level or channel, or one plane in all of the result.
    Planes(PlaneMap),
    /// Linear filter, as correlation. Input and output are of one float type.
    Correlate(Filter, Border),
    /// Correlation with a row filter, then with a column filter.
    Separable {
        /// A filter of one row, applied first.
        row: Filter,
        /// A filter of one column.
        column: Filter,
        /// For both passes.
        border: Border,
    },
    /// Generalized convolution in the image's own type.
    Generalized(Generalized, Border),
    /// Median in the image's own type.
    Median(MedianSize, Border),
    /// Affine map with interpolation; the node's shape is the output's.
    Warp(Affine, Interpolation, Border),
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
        Op::Warp(map, Interpolation::Nearest, Border::Replicate)
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
            Op::Generalized(..) => "generalized",
            Op::Median(..) => "median",
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
                        Operand::Const(c) => Some(c.to_string()),
                        Operand::Input(_) => None,
                    })
                    .collect();
                if consts.is_empty() { op.to_string() } else { format!("{op}[{}]", consts.join(", ")) }
            }
            Op::Convert(_) => self.kind().into(),
            Op::Planes(map) => map.to_string(),
            Op::Correlate(f, _) => format!("correlate {f}"),
            Op::Separable { row, column, .. } => format!("separable {row} {column}"),
            Op::Generalized(g, _) => format!("generalized {:?}/{:?} {}", g.combine, g.reduce, g.window),
            Op::Median(s, _) => format!("median {0}x{0}", 2 * s.radius() + 1),
            Op::Warp(_, i, _) => format!("warp {i:?}").to_lowercase(),
            Op::Flip(x) => format!("flip {x:?}").to_lowercase(),
            Op::Whole(operation) => operation.name(),
        }
    }
}

/// One node of a graph.
#[derive(Clone, Debug)]
pub struct Node<O> {
    /// What it computes.
    pub op: O,
    /// From what.
    pub inputs: Vec<NodeId>,
    /// Extent of the result.
    pub shape: Shape,
    /// Element type of the result.
    pub dtype: DType,
    /// Where the user recorded it.
    pub site: Recorded,
}

/// A program: nodes in an order in which inputs come first, and the nodes whose values are wanted.
#[derive(Clone, Debug)]
pub struct Graph<O> {
    /// The nodes.
    pub nodes: Vec<Node<O>>,
    /// The nodes whose values outlive the evaluation.
    pub roots: Vec<NodeId>,
    /// Nodes that one launch computes together, where nothing comes between them. A node is in one such list at most.
    pub joined: Vec<Joined<O>>,
}

/// Several nodes of one extent that can be computed together, none of which depends on another.
#[derive(Clone, Debug)]
pub struct Joined<O> {
    /// The nodes, in the order of the graph: there, they follow each other.
    pub nodes: Vec<NodeId>,
    /// What computes all of them: a result for each, in this order.
    pub op: O,
    /// From what.
    pub inputs: Vec<NodeId>,
}

impl<O> Default for Graph<O> {
    fn default() -> Self {
        Graph { nodes: Vec::new(), roots: Vec::new(), joined: Vec::new() }
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

    /// For each node, the nodes that read it (once per read, in order).
    pub fn consumers(&self) -> Vec<Vec<NodeId>> {
        let mut out = vec![Vec::new(); self.nodes.len()];
        for (id, n) in self.iter() {
            for i in &n.inputs {
                out[i.0].push(id);
            }
        }
        out
    }

    /// The graph that `put` builds of this one's nodes, in their order: it is given each, which reads what its inputs became, with what all
    /// before it became, adds it or whatever takes its place, and returns what it became.
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

    /// The graph without the nodes that no root needs, and where each kept node went.
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
        // What was to be computed with a dead node is computed by itself.
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
