//! The two orders of pixels of several channels in graphs: as they are stored, and in planes.

use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::{Deinterleave, Interleave, Whole};

impl Graph<Op> {
    /// The pixels of a node as they are [stored](horus_base::shape::Shape::stored).
    pub fn stored(&mut self, id: NodeId) -> NodeId {
        let Node { op, inputs, shape, dtype, site } = self.node(id);
        match op {
            _ if shape.stored() == *shape => id,
            Op::Whole(Whole::Deinterleave(_)) => inputs[0],
            _ => {
                let (op, shape, dtype, site) = (Op::from(Interleave), shape.stored(), *dtype, *site);
                self.push(Node { op, inputs: vec![id], shape, dtype, site })
            }
        }
    }

    /// The pixels of a node, which is stored, in planes.
    pub fn planar(&mut self, id: NodeId) -> NodeId {
        let Node { op, inputs, shape, dtype, site } = self.node(id);
        match op {
            _ if shape.samples == 1 => id,
            Op::Whole(Whole::Interleave(_)) => inputs[0],
            _ => {
                let (op, shape, dtype, site) = (Op::from(Deinterleave), shape.deinterleaved(), *dtype, *site);
                self.push(Node { op, inputs: vec![id], shape, dtype, site })
            }
        }
    }
}
