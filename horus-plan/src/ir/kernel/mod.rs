//! What devices execute: lowered operations.
//!
//! Almost everything is a [`MapKernel`]: an expression evaluated at every pixel of the output, whose *leaves* read the
//! inputs (the pixel itself, a filter response, a sample of an affine map) and whose *code* combines them with pixel
//! operations. What filters read may itself be computed: by a row pass (a *stage*), by pixel operations (a *chain*), by
//! both. One recorded operation lowers to a kernel with one leaf or one instruction; fusion substitutes kernels into each
//! other. A device needs to know nothing else of the program.
//!
//! Kernels of their own (`Kernel::Whole`) are those that no expression per pixel can be: reductions and histograms, transposition,
//! the planes of one image from several (`Merge`), tables (`Lookup`: rows of the first input are
//! indices, and of the second, the table, every rank needs all), and samples at positions that are images
//! (`Remap`: every rank needs all of the first input; coefficients of its splines are correlations of
//! finite length, which are filters like others). Connected components (`Components`) follow from all
//! pixels: every rank finds all of them. The root of a component is its first pixel, whatever joined its pixels in
//! whatever order; a GPU takes several launches of one kernel for it (`Passes`). So does reconstruction
//! (`Reconstruction`), as what a marker grows to is one image whatever the order of steps: a GPU sweeps along
//! all axes in rounds, and after each the host looks whether it changed anything. A reduction along rows takes in
//! the expression that it alone reduces (`Kernel::MapReduce`): `(a * b).sum()` reads two images and stores none.
//!
//! Rectangles of an image (`Tiled`) are reduced in an order anchored at their corner, so that ranks only
//! need their footprint. Where the pixels of a label lie follows from data, so no order suits all: sums of labels
//! (`LabelReduce`) are exact, in digits of 24 bits that are added up as whole numbers in any order and rounded
//! once; a table has the digits that the type of the pixels can have. Labels of a volume are reduced over all its
//! levels in the same pass; extremes over all levels of each 32 rows, or more where there are many labels.

mod chain;
mod distribution;
mod join;
mod map;
mod reads;
mod repeat;
mod work;

use std::fmt;

pub use self::join::JoinPart;
pub use self::map::{Instr, InstrOp, Leaf, LeafOp, MapKernel, Source, Stage, Val};
pub use self::repeat::Repeat;
pub use self::work::KernelWork;
use crate::ir::graph::{Graph, NodeId, ValueId};
use crate::ops::Whole;
pub use crate::ops::footprint::Access;
pub use crate::ops::operation::{AllReduce, Distribution, Extent, Family};
use crate::ops::reduce::RowReduce;
use horus_base::shape::Shape;

/// A lowered operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// A value that exists; nothing is launched.
    Source(ValueId),
    /// An expression per pixel, applied to each plane.
    Map(MapKernel),
    /// Several steps of a loop: an expression per pixel, applied to its own result.
    Repeat(Repeat),
    /// A row reduction of an expression that is never stored. Every leaf of the expression reads the pixel itself; the
    /// mean of a squared deviation is the input after the expression's.
    MapReduce(MapKernel, RowReduce),
    /// An operation on whole images.
    Whole(Whole),
}

impl<T: Into<Whole>> From<T> for Kernel {
    fn from(operation: T) -> Kernel {
        Kernel::Whole(operation.into())
    }
}

impl Kernel {
    /// Bytes that a processor takes beside inputs and results of this shape, where that grows with the image.
    pub fn scratch(&self, shape: Shape) -> usize {
        match self {
            Kernel::Whole(operation) => operation.scratch(shape),
            Kernel::Source(_) | Kernel::Map(_) | Kernel::Repeat(_) | Kernel::MapReduce(..) => 0,
        }
    }

    /// Short name for plans, traces and messages.
    pub fn name(&self) -> String {
        match self {
            Kernel::Source(v) => format!("image#{}", v.0),
            Kernel::Map(m) if m.more.is_empty() => m.to_string(),
            Kernel::Map(m) => format!("{} results: {m}", 1 + m.more.len()),
            Kernel::Repeat(r) => format!("{} steps of {}", r.steps, r.body),
            Kernel::MapReduce(m, r) => format!("{m} + {}", r.name()),
            Kernel::Whole(operation) => operation.name(),
        }
    }
}

impl fmt::Display for Graph<Kernel> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, n) in self.iter() {
            let inputs: Vec<String> = n.inputs.iter().map(NodeId::to_string).collect();
            let root = if self.roots.contains(&id) { "  (wanted)" } else { "" };
            writeln!(f, "{id} = [{}]({}) : {} {}{root}", n.op.name(), inputs.join(", "), n.shape, n.dtype)?;
        }
        for joined in &self.joined {
            let [nodes, inputs] = [&joined.nodes, &joined.inputs]
                .map(|list| list.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", "));
            writeln!(f, "{nodes} together = [{}]({inputs})", joined.op.name())?;
        }
        Ok(())
    }
}
