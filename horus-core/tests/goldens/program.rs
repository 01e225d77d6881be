//! Programs built node by node, as the recorder would.

use std::panic::Location;

use horus_core::dtype::{DType, Scalar};
use horus_core::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::reduce::RowReduce;
use horus_core::shape::Shape;
use horus_testing::reference::{ReferenceImage, evaluate};

/// A program under construction, over one image.
pub(crate) struct GoldenProgram {
    graph: Graph<Op>,
    input: ReferenceImage,
}

impl GoldenProgram {
    /// The empty program over `input`, and the node of that.
    pub(crate) fn over(input: &ReferenceImage) -> (GoldenProgram, NodeId) {
        let mut p = GoldenProgram { graph: Graph::default(), input: input.clone() };
        let source = p.add(Op::Source(ValueId(0)), &[], input.shape, input.dtype());
        (p, source)
    }

    pub(crate) fn add(&mut self, op: Op, inputs: &[NodeId], shape: Shape, dtype: DType) -> NodeId {
        self.graph.push(Node { op, inputs: inputs.to_vec(), shape, dtype, site: Location::caller().into() })
    }

    /// An operation that keeps shape and type of its first input.
    pub(crate) fn like(&mut self, op: Op, inputs: &[NodeId]) -> NodeId {
        let first = self.graph.node(inputs[0]);
        let (shape, dtype) = (first.shape, first.dtype);
        self.add(op, inputs, shape, dtype)
    }

    /// A pixel operation on nodes, then constants.
    pub(crate) fn pixel(&mut self, op: PixelOp, inputs: &[NodeId], constants: &[Scalar]) -> NodeId {
        let nodes = (0..inputs.len()).map(PixelOpOperand::Input);
        let operands = nodes.chain(constants.iter().copied().map(PixelOpOperand::Const)).collect();
        self.like(Op::Pixel(op, operands), inputs)
    }

    /// The source reduced over everything: along rows, then over the column of results.
    pub(crate) fn reduce(&mut self, how: RowReduce, inputs: &[NodeId]) -> NodeId {
        let column = Shape { width: how.columns(), ..self.input.shape };
        let dtype = how.result(self.input.dtype());
        let rows = self.add(Op::from(how), inputs, column, dtype);
        self.add(Op::from(how.fold()), &[rows], Shape::new(1, how.columns(), 1), dtype)
    }

    /// The values of some nodes.
    pub(crate) fn values(mut self, roots: &[NodeId]) -> Vec<ReferenceImage> {
        self.graph.roots = roots.to_vec();
        evaluate(&self.graph, &|_| self.input.clone())
    }

    pub(crate) fn value(self, root: NodeId) -> ReferenceImage {
        self.values(&[root]).remove(0)
    }
}

/// The result of one operation that keeps shape and type.
pub(crate) fn apply(op: Op, input: &ReferenceImage) -> ReferenceImage {
    apply_to(op, input, input.dtype())
}

/// The result of one operation that keeps the shape.
pub(crate) fn apply_to(op: Op, input: &ReferenceImage, dtype: DType) -> ReferenceImage {
    let (mut p, source) = GoldenProgram::over(input);
    let node = p.add(op, &[source], input.shape, dtype);
    p.value(node)
}
