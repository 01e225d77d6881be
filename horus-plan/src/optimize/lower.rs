//! Lowering: each recorded operation becomes a kernel of its own.

use crate::ir::graph::{Graph, Node, Op, PixelOpOperand};
use crate::ir::kernel::{FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use crate::ops::geometric::Interpolation;
use horus_base::dtype::DType;

/// Lowers every node; the structure of the graph is unchanged. Kernels compute with the types in memory:
/// masks are `u8`.
pub fn lower(graph: Graph<Op>) -> Graph<Kernel> {
    let kernels: Vec<Kernel> = graph.nodes.iter().map(|n| kernel(&graph, n)).collect();
    let nodes = graph.nodes.into_iter().zip(kernels).map(|(n, op)| Node {
        op,
        inputs: n.inputs,
        shape: n.shape,
        dtype: n.dtype.stored(),
        site: n.site,
    });
    Graph { nodes: nodes.collect(), roots: graph.roots, ..Graph::default() }
}

fn kernel(graph: &Graph<Op>, node: &Node<Op>) -> Kernel {
    let input = |i: usize| graph.node(node.inputs[i]).dtype.stored();
    let dtype = node.dtype.stored();
    let leaf = |op: LeafOp| {
        let map = MapKernel { inputs: 1, leaves: vec![Leaf { op, dtype }], ..MapKernel::default() };
        Kernel::Map(MapKernel { result: Some(Val::Leaf(0)), ..map })
    };
    match &node.op {
        Op::Source(v) => Kernel::Source(*v),
        Op::Fill(v) => Kernel::Map(MapKernel { result: Some(Val::Const(*v)), ..MapKernel::default() }),
        Op::Index(axis) => Kernel::Map(MapKernel { result: Some(Val::Index(*axis, dtype)), ..MapKernel::default() }),
        Op::Pixel(op, operands) => {
            let leaves = (0..node.inputs.len()).map(|i| Leaf { op: LeafOp::Load(i), dtype: input(i) }).collect();
            let args = operands.iter().map(|o| match o {
                PixelOpOperand::Input(i) => Val::Leaf(*i),
                PixelOpOperand::Const(c) => Val::Const(*c),
            });
            // The last operand has the operand type of the operation: only the first can be a mask.
            let operand = match operands.last() {
                Some(PixelOpOperand::Input(i)) => input(*i),
                Some(PixelOpOperand::Const(c)) => c.dtype(),
                None => dtype,
            };
            single(node.inputs.len(), leaves, InstrOp::Pixel(*op), operand, dtype, args.collect())
        }
        Op::Convert(rule) => {
            if input(0) == dtype {
                return leaf(LeafOp::Load(0)); // truth values of a mask, read as numbers
            }
            let leaves = vec![Leaf { op: LeafOp::Load(0), dtype: input(0) }];
            single(1, leaves, InstrOp::Convert(*rule), input(0), dtype, vec![Val::Leaf(0)])
        }
        Op::Planes(map) => leaf(LeafOp::LoadPlane(0, *map)),
        Op::Correlate(f, b) => leaf(LeafOp::Correlate(FilterSource::Input(0), f.clone(), *b)),
        Op::Separable { row, column, border } => Kernel::Map(MapKernel {
            inputs: 1,
            stages: vec![RowFilterStage { source: FilterSource::Input(0), filter: row.clone(), border: *border }],
            leaves: vec![Leaf { op: LeafOp::Correlate(FilterSource::Stage(0), column.clone(), *border), dtype }],
            result: Some(Val::Leaf(0)),
            ..MapKernel::default()
        }),
        Op::OrderFilter(filter, b) => leaf(LeafOp::OrderFilter(0, filter.clone(), *b)),
        Op::Warp(a, i, b) => {
            let mut map = *a;
            // A column of another height is no broadcast, although a map may look like one: rows beyond its end are
            // read by the border mode. The nearest pixels stay the same.
            let is_other = graph.node(node.inputs[0]).shape.height != node.shape.height;
            if is_other && *i == Interpolation::Nearest && a.repeated_column().is_some() {
                map.x0 += 1;
            }
            leaf(LeafOp::Warp(0, map, *i, *b))
        }
        Op::Flip(f) => leaf(LeafOp::Flip(0, *f)),
        Op::Whole(operation) => Kernel::Whole(operation.clone()),
    }
}

fn single(inputs: usize, leaves: Vec<Leaf>, op: InstrOp, operand: DType, result: DType, args: Vec<Val>) -> Kernel {
    let code = vec![Instr { op, operand, result, args }];
    Kernel::Map(MapKernel { inputs, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() })
}
