//! What devices execute: lowered operations.
//!
//! Almost everything is a [`MapKernel`]: an expression evaluated at every pixel of the output, whose *leaves* read the
//! inputs (the pixel itself, a filter response, a sample of an affine map) and whose *code* combines them with pixel
//! operations. What filters read may itself be computed: by a row pass (a *stage*), by pixel operations (a *chain*), by
//! both. One recorded operation lowers to a kernel with one leaf or one instruction; fusion substitutes kernels into each
//! other. A device needs to know nothing else of the program.
//!
//! Kernels of their own are those that no expression per pixel can be: reductions and histograms, transposition,
//! the planes of one image from several (`Kernel::Merge`), tables (`Kernel::Lookup`: rows of the first input are
//! indices, and of the second, the table, every rank needs all), and samples at positions that are images
//! (`Kernel::Remap`: every rank needs all of the first input; coefficients of its splines are correlations of
//! finite length, which are filters like others). Connected components (`Kernel::Components`) follow from all
//! pixels: every rank finds all of them. The root of a component is its first pixel, whatever joined its pixels in
//! whatever order; a GPU takes several launches of one kernel for it (`Passes`). So does reconstruction
//! (`Kernel::Reconstruct`), as what a marker grows to is one image whatever the order of steps: a GPU sweeps along
//! all axes in rounds, and after each the host looks whether it changed anything. A reduction along rows takes in
//! the expression that it alone reduces (`Kernel::MapReduce`): `(a * b).sum()` reads two images and stores none.
//!
//! Rectangles of an image (`Kernel::Tiles`) are reduced in an order anchored at their corner, so that ranks only
//! need their footprint. Where the pixels of a label lie follows from data, so no order suits all: sums of labels
//! (`Kernel::Labels`) are exact, in digits of 24 bits that are added up as whole numbers in any order and rounded
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

pub use self::distribution::{AllReduce, Distribution};
pub use self::join::JoinPart;
pub use self::map::{Instr, InstrOp, Leaf, LeafOp, MapKernel, Source, Stage, Val};
pub use self::reads::Access;
pub use self::repeat::Repeat;
pub use self::work::{Extent, Family, KernelWork};
use crate::ir::graph::{Graph, NodeId, ValueId};
use crate::ops::components::Connectivity;
use crate::ops::labels::LabelReduce;
use crate::ops::reconstruction::Reconstruction;
use crate::ops::reduce::{Fold, RowReduce};
use crate::ops::sampling::Sampling;
use crate::ops::tiles::{Grid, TileReduce};
use crate::ops::windowed::Windowed;
use horus_base::shape::{Border, Shape};

/// A lowered operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// A value that exists; nothing is launched.
    Source(ValueId),
    /// An expression per pixel, applied to each plane.
    Map(MapKernel),
    /// Several steps of a loop: an expression per pixel, applied to its own result.
    Repeat(Repeat),
    /// See [`crate::ir::graph::Op::Merge`].
    Merge,
    /// Rows and columns exchanged, per plane.
    Transpose,
    /// See [`crate::ir::graph::Op::Lookup`].
    Lookup,
    /// See [`crate::ir::graph::Op::Remap`].
    Remap(Sampling, Border),
    /// See [`crate::ir::graph::Op::Windowed`].
    Windowed(Windowed, Border),
    /// See [`crate::ir::graph::Op::RowReduce`].
    RowReduce(RowReduce),
    /// A row reduction of an expression that is never stored. Every leaf of the expression reads the pixel itself; the
    /// mean of a squared deviation is the input after the expression's.
    MapReduce(MapKernel, RowReduce),
    /// See [`crate::ir::graph::Op::Running`].
    Running,
    /// See [`crate::ir::graph::Op::RunningDepth`].
    RunningDepth,
    /// See [`crate::ir::graph::Op::Fold`].
    Fold(Fold),
    /// See [`crate::ir::graph::Op::Tiles`].
    Tiles(Grid, TileReduce),
    /// See [`crate::ir::graph::Op::Labels`]. Sums are of the rows that it is launched on.
    Labels(LabelReduce),
    /// See [`crate::ir::graph::Op::Components`].
    Components(Connectivity),
    /// See [`crate::ir::graph::Op::Reconstruct`].
    Reconstruct(Reconstruction),
    /// See [`crate::ir::graph::Op::Histogram`]. Counts only the rows it is launched on.
    Histogram {
        /// Number of bins.
        bins: usize,
        /// Lower end of the first bin.
        lo: f64,
        /// Upper end of the last bin.
        hi: f64,
    },
}

impl Kernel {
    /// Bytes that a processor takes beside inputs and results of this shape, where that grows with the image.
    pub fn scratch(&self, shape: Shape) -> usize {
        let of_each = match self {
            Kernel::Components(..) => size_of::<i32>(),
            Kernel::Reconstruct(..) => size_of::<bool>(),
            _ => 0,
        };
        shape.len().saturating_mul(of_each)
    }

    /// Short name for plans, traces and messages.
    pub fn name(&self) -> String {
        match self {
            Kernel::Source(v) => format!("image#{}", v.0),
            Kernel::Map(m) if m.more.is_empty() => m.to_string(),
            Kernel::Map(m) => format!("{} results: {m}", 1 + m.more.len()),
            Kernel::Repeat(r) => format!("{} steps of {}", r.steps, r.body),
            Kernel::Merge => "stack".into(),
            Kernel::Transpose => "transpose".into(),
            Kernel::Lookup => "lookup".into(),
            Kernel::Remap(how, _) => format!("remap {}", how.name()),
            Kernel::Windowed(how, _) => how.name(),
            Kernel::RowReduce(r) => r.name().into(),
            Kernel::Running => "running_sum".into(),
            Kernel::RunningDepth => "running_sum of levels".into(),
            Kernel::MapReduce(m, r) => format!("{m} + {}", r.name()),
            Kernel::Fold(f) => f.name().into(),
            Kernel::Labels(how) => format!("{} {}", how.name(), how.count()),
            Kernel::Tiles(grid, how) => format!("{} {}x{}", how.name(), grid.height, grid.width),
            Kernel::Components(_) => "label".into(),
            Kernel::Reconstruct(how) => how.name().into(),
            Kernel::Histogram { bins, .. } => format!("histogram {bins}"),
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
