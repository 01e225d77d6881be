//! The two orders of samples of several channels: in planes, one channel after the other, and interleaved, pixel after
//! pixel, as arrays and files have them.

use super::Whole;
use super::footprint::{Access, Reading, Rect};
use super::operation::{Effort, Extent, Family, ImageOperation, images, makes, stays};
use crate::ir::graph::{Graph, Node, NodeId, Op};
use horus_base::placed::Placed;
use horus_base::shape::Shape;

/// A plane for each sample of interleaved pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deinterleave;

/// Pixels that have the samples of all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interleave;

macro_rules! order {
    ($operation:ident, $kind:literal, $made:ident, $from:ident) => {
        impl ImageOperation for $operation {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn check(&self, inputs: &[Extent], output: Extent) -> Result<(), String> {
                let [(shape, dtype)] = images(inputs)?;
                if shape.$made().$from() != shape {
                    return Err(format!("{shape} has both orders of samples"));
                }
                makes((shape.$made(), dtype), output)
            }

            fn reads(&self, _: usize, need: Rect, _: Shape) -> Reading {
                Reading::inside(need)
            }

            fn access(&self, _: usize) -> Access {
                Access::IN_PLACE
            }

            fn placed(&self, _: usize, from: Shape, to: Shape) -> Option<Placed> {
                stays(from, to)
            }

            fn in_place(&self, _: usize) -> bool {
                true
            }

            fn by_levels(&self, _: usize) -> bool {
                true
            }

            fn knows_samples(&self) -> bool {
                true
            }

            fn effort(&self, _: &[Extent], output: Extent, rows: usize) -> Effort {
                Effort::of_rows(Family::Pixel, output.0, rows, 0.0)
            }
        }
    };
}
order!(Deinterleave, "deinterleave", deinterleaved, interleaved);
order!(Interleave, "interleave", interleaved, deinterleaved);

impl Graph<Op> {
    /// The pixels of a node as they are [stored](Shape::stored).
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
