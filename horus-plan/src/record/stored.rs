//! The two orders of pixels of several channels in graphs: as stored, and in planes.

use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::{Deinterleave, Interleave, Whole};
use horus_base::shape::Shape;

/// A node with another order of pixels: an existing node, or the operation and the shape that compute it.
pub(super) type ReorderedNode = Result<NodeId, Box<(Op, Shape)>>;

impl Graph<Op> {
    /// The pixels of a node, as [stored](Shape::stored).
    pub fn stored(&mut self, id: NodeId) -> NodeId {
        self.ordered(id, self.as_stored(id))
    }

    /// The pixels of a stored node, in planes.
    pub fn planar(&mut self, id: NodeId) -> NodeId {
        self.ordered(id, self.as_planar(id))
    }

    pub(super) fn as_stored(&self, id: NodeId) -> ReorderedNode {
        let Node { op, inputs, shape, .. } = self.node(id);
        match op {
            _ if shape.stored() == *shape => Ok(id),
            Op::Whole(Whole::Deinterleave(_)) => Ok(inputs[0]),
            _ => Err(Box::new((Op::from(Interleave), shape.stored()))),
        }
    }

    pub(super) fn as_planar(&self, id: NodeId) -> ReorderedNode {
        let Node { op, inputs, shape, .. } = self.node(id);
        match op {
            _ if shape.samples == 1 => Ok(id),
            Op::Whole(Whole::Interleave(_)) => Ok(inputs[0]),
            _ => Err(Box::new((Op::from(Deinterleave), shape.deinterleaved()))),
        }
    }

    fn ordered(&mut self, id: NodeId, to: ReorderedNode) -> NodeId {
        let Node { dtype, site, .. } = *self.node(id);
        to.unwrap_or_else(|made| {
            let (op, shape) = *made;
            self.push(Node { op, inputs: vec![id], shape, dtype, site })
        })
    }
}
