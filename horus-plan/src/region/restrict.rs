//! Restriction of a program to given regions.

use std::collections::HashMap;

use super::computed::{in_place, regions};
use super::{Rect, reads, required_regions};
use crate::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use crate::ops::edge::WarpEdge;
use crate::ops::geometric::{Affine, Interpolation};
use crate::ops::pixel::PixelOp;
use horus_base::dtype::{Conversion, DType, Scalar};
use horus_base::shape::{Axis, Border, Shape};

/// Supplies source regions and numbers that vary between regions. Values that are not supplied become part of
/// the program; supplied values do not, so that regions of one shape have the same program.
pub trait RegionSupply {
    /// The value with region `region` of `value`.
    fn source(&mut self, value: ValueId, region: Rect) -> Option<ValueId>;

    /// The value of an image of one `i32` pixel, `n`.
    fn number(&mut self, n: i32) -> Option<ValueId>;
}

/// A supplier without values: sources stay whole, and the program crops them.
#[derive(Clone, Copy, Debug)]
pub struct InPlace;

impl RegionSupply for InPlace {
    fn source(&mut self, _: ValueId, _: Rect) -> Option<ValueId> {
        None
    }

    fn number(&mut self, _: i32) -> Option<ValueId> {
        None
    }
}

/// Whether to crop a root that is computed in a larger region than requested, such as the pixels that a
/// filter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CropRule {
    /// The program crops it to the requested region.
    Always,
    /// The program crops it if it is more than a quarter larger; otherwise the recipient does.
    Much,
    /// The recipient crops it.
    Never,
}

/// A program for regions.
#[derive(Clone, Debug)]
pub struct RestrictedGraph {
    /// The program.
    pub graph: Graph<Op>,
    /// The region of each root.
    pub roots: Vec<Rect>,
}

/// Restricts the program to regions `roots` of the roots of `graph`, in their order.
pub fn restrict(graph: &Graph<Op>, roots: &[Rect], cut: CropRule, supply: &mut dyn RegionSupply) -> RestrictedGraph {
    let needed = required_regions(graph, roots);
    let regions = regions(graph, &needed);
    let mut made =
        RestrictedBuilder { from: graph, regions, nodes: HashMap::new(), cuts: HashMap::new(), to: Graph::default() };
    for (id, node) in graph.iter() {
        if let Some(region) = made.regions[id.0] {
            let new = made.node(node, region, supply);
            made.nodes.insert(id, new);
        }
    }
    let mut left = Vec::new();
    for (root, asked) in graph.roots.iter().zip(roots) {
        let region = made.region(*root);
        let little = region.area() <= asked.area().saturating_add(asked.area() / 4);
        let region = if cut == CropRule::Never || (cut == CropRule::Much && little) { region } else { *asked };
        let node = made.cut(*root, region);
        made.to.roots.push(node);
        left.push(region);
    }
    RestrictedGraph { graph: made.to.without_dead(), roots: left }
}

struct RestrictedBuilder<'a> {
    from: &'a Graph<Op>,
    /// The region of each node in the new program.
    regions: Vec<Option<Rect>>,
    /// New ids of nodes.
    nodes: HashMap<NodeId, NodeId>,
    /// Crops of nodes to other regions.
    cuts: HashMap<(NodeId, Rect), NodeId>,
    to: Graph<Op>,
}

impl RestrictedBuilder<'_> {
    fn region(&self, node: NodeId) -> Rect {
        self.regions[node.0].expect("inputs of what is needed are needed")
    }

    /// Region `region` of a node in the new program, cropped if the node has another region there. Pixels
    /// outside the node's region are never required.
    fn cut(&mut self, node: NodeId, region: Rect) -> NodeId {
        let (has, new) = (self.region(node), self.nodes[&node]);
        if has == region {
            return new;
        }
        if let Some(cut) = self.cuts.get(&(node, region)) {
            return *cut;
        }
        let by = |to: isize, from: isize| ((to - from) as i64) << 32;
        let ([y, x], [top, left]) = (region.corner(), has.corner());
        let map = Affine { x0: by(x, left), y0: by(y, top), ..Affine::IDENTITY };
        let old = self.from.node(node);
        let cut = self.to.push(Node {
            op: Op::Warp(map, Interpolation::Nearest, Border::Replicate.into()),
            inputs: vec![new],
            shape: region.shape(old.shape),
            ..old.clone()
        });
        self.cuts.insert((node, region), cut);
        cut
    }

    /// Adds a node restricted to region `region`.
    fn node(&mut self, node: &Node<Op>, region: Rect, supply: &mut dyn RegionSupply) -> NodeId {
        let shape = region.shape(node.shape);
        let with = |m: &mut Self, op: Op, inputs: Vec<NodeId>| m.to.push(Node { op, inputs, shape, ..node.clone() });
        match &node.op {
            Op::Source(v) => self.source(node, *v, region, supply),
            Op::Index(axis) => self.index(node, *axis, region, supply),
            Op::Warp(map, how, edge) => self.warp(node, map, *how, *edge, region),
            op => {
                let inputs = node.inputs.iter().enumerate().map(|(k, input)| {
                    let of = self.from.node(*input).shape;
                    let region = if in_place(op, k) { region } else { reads::read(node, k, region, of) };
                    self.cut(*input, region)
                });
                let inputs = inputs.collect();
                let moved = if let Op::Whole(operation) = op { operation.for_region(region) } else { None };
                with(self, moved.map_or_else(|| op.clone(), Op::Whole), inputs)
            }
        }
    }

    fn source(&mut self, node: &Node<Op>, value: ValueId, region: Rect, supply: &mut dyn RegionSupply) -> NodeId {
        if let Some(value) = supply.source(value, region) {
            return self.to.push(Node { op: Op::Source(value), shape: region.shape(node.shape), ..node.clone() });
        }
        let source = self.to.push(node.clone());
        if region == Rect::whole(node.shape) {
            return source;
        }
        let [y, x] = region.corner();
        let map = Affine { x0: (x as i64) << 32, y0: (y as i64) << 32, ..Affine::IDENTITY };
        let op = Op::Warp(map, Interpolation::Nearest, Border::Replicate.into());
        self.to.push(Node { op, inputs: vec![source], shape: region.shape(node.shape), ..node.clone() })
    }

    /// Coordinates with an offset: integers, converted once, as for the whole image.
    fn index(&mut self, node: &Node<Op>, axis: Axis, region: Rect, supply: &mut dyn RegionSupply) -> NodeId {
        let shape = region.shape(node.shape);
        let first = match axis {
            Axis::Rows => region.rows.start,
            Axis::Columns => region.columns.start,
            Axis::Channels | Axis::Depth => 0,
        };
        if first == 0 {
            return self.to.push(Node { shape, ..node.clone() });
        }
        // An image has at most 2^30 rows and columns.
        let first = first as i32;
        let number =
            |op: Op, inputs: Vec<NodeId>, shape: Shape| Node { op, inputs, shape, dtype: DType::I32, site: node.site };
        let index = self.to.push(number(Op::Index(axis), Vec::new(), shape));
        let (operand, inputs) = match supply.number(first) {
            None => (PixelOpOperand::Const(Scalar::I32(first)), vec![index]),
            Some(value) => {
                let one = self.to.push(number(Op::Source(value), Vec::new(), Shape::new(1, 1, 1)));
                let planes = Op::Planes(crate::ops::planes::PlaneMap::one(0));
                let one = match shape.planes() {
                    1 => one,
                    _ => self.to.push(number(planes, vec![one], Shape { height: 1, width: 1, ..shape })),
                };
                let still = Affine { xx: 0, xy: 0, x0: 0, yx: 0, yy: 0, y0: 0 };
                let repeat = Op::Warp(still, Interpolation::Nearest, Border::Replicate.into());
                let everywhere = self.to.push(number(repeat, vec![one], shape));
                (PixelOpOperand::Input(1), vec![index, everywhere])
            }
        };
        let sum = Op::Pixel(PixelOp::Add, vec![PixelOpOperand::Input(0), operand]);
        let sum = self.to.push(number(sum, inputs, shape));
        if node.dtype == DType::I32 {
            return sum;
        }
        self.to.push(Node { op: Op::Convert(Conversion::Nearest), inputs: vec![sum], shape, ..node.clone() })
    }

    /// An affine map between regions, shifted by whole pixels so that fractions are unchanged.
    fn warp(&mut self, node: &Node<Op>, map: &Affine, how: Interpolation, edge: WarpEdge, region: Rect) -> NodeId {
        let input = node.inputs[0];
        // A map that repeats a row or a column unchanged stays as it is.
        let has = match map.repeated() {
            Some(Axis::Rows) => Rect { columns: region.columns, ..self.region(input) },
            Some(_) => Rect { rows: region.rows, ..self.region(input) },
            None => self.region(input),
        };
        let from = self.cut(input, has);
        let ([y, x], [top, left]) = (region.corner(), has.corner());
        let (y, x) = map.at(y as i64, x as i64);
        let map = Affine { x0: x - ((left as i64) << 32), y0: y - ((top as i64) << 32), ..*map };
        let shape = region.shape(node.shape);
        let edge = edge.cut(region.corner());
        // Other interpolations also read neighbours with weight 0, where infinity becomes NaN.
        let sampled = matches!(edge, WarpEdge::Border(_)) && how == Interpolation::Nearest;
        if map == Affine::IDENTITY && shape == self.to.node(from).shape && sampled {
            return from;
        }
        self.to.push(Node { op: Op::Warp(map, how, edge), inputs: vec![from], shape, ..node.clone() })
    }
}
