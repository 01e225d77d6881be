//! Kernels: the lowered operations that devices execute.
//!
//! Almost every kernel is a [`MapKernel`]: an expression evaluated at every pixel of the output. Its *leaves*
//! read the inputs (the pixel, a filter response, a sample of an affine map); its *code* combines them with
//! pixel operations. The input of a filter may be computed by a row filter (a *stage*), by other operations (a
//! *chain*), or both. A recorded operation lowers to a kernel with one leaf or one instruction; fusion
//! substitutes kernels into each other. Operations that no expression covers are kernels of their own
//! (`Kernel::Whole`).
//!
//! Design: `docs/design/fusion.md`.

mod bytes;
mod chain;
mod distribution;
mod join;
mod map;
mod reads;
mod repeat;
mod work;

use std::fmt;

pub use self::join::JoinPart;
pub use self::map::{FilterKind, FilterSource, Instr, InstrOp, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
pub use self::repeat::Repeat;
pub(crate) use self::work::CACHED;
pub use self::work::KernelWork;
use crate::ir::graph::{Graph, NodeId, ValueId};
use crate::ops::Whole;
pub use crate::ops::footprint::Access;
pub use crate::ops::operation::{AllReduce, Distribution, Family, ImageExtent};
use crate::ops::reduce::RowReduce;
use horus_base::shape::Shape;

/// A lowered operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// An existing value; nothing is launched.
    Source(ValueId),
    /// An expression per pixel, applied to each plane.
    Map(MapKernel),
    /// Several iterations of a loop: an expression per pixel, applied to its own result.
    Repeat(Repeat),
    /// A row reduction of an expression that is never stored. Every leaf of the expression reads only the
    /// pixel itself. The mean for a squared deviation is the input after those of the expression.
    MapReduce(MapKernel, RowReduce),
    /// A whole-image operation.
    Whole(Whole),
}

impl<T: Into<Whole>> From<T> for Kernel {
    fn from(operation: T) -> Kernel {
        Kernel::Whole(operation.into())
    }
}

impl Kernel {
    /// The value of a source.
    pub const fn source_value(&self) -> Option<ValueId> {
        match self {
            Kernel::Source(value) => Some(*value),
            _ => None,
        }
    }

    /// Bytes of temporary memory in addition to inputs and results of this shape, as far as they grow with
    /// the image.
    pub fn scratch(&self, shape: Shape) -> usize {
        match self {
            Kernel::Whole(operation) => operation.scratch(shape),
            Kernel::Source(_) | Kernel::Map(_) | Kernel::Repeat(_) | Kernel::MapReduce(..) => 0,
        }
    }

    /// Returns `true` if the kernel can be computed on pixels of several samples.
    pub fn knows_samples(&self) -> bool {
        match self {
            Kernel::Source(_) => true,
            Kernel::Map(map) => map.knows_samples(),
            Kernel::Repeat(repeat) => repeat.body.knows_samples(),
            Kernel::MapReduce(..) => false,
            Kernel::Whole(operation) => operation.supports_samples(),
        }
    }

    /// The kernel that folds the row results of this one.
    pub fn fold_of_rows(&self) -> Option<Kernel> {
        match self {
            Kernel::MapReduce(_, how) | Kernel::Whole(Whole::RowReduce(how)) => Some(how.fold().into()),
            _ => None,
        }
    }

    /// Short name for plans, traces and messages.
    pub fn name(&self) -> String {
        match self {
            Kernel::Source(v) => format!("image#{}", v.0),
            Kernel::Map(m) if m.woven => format!("interleaved: {m}"),
            Kernel::Map(m) if m.additional_results.is_empty() => m.to_string(),
            Kernel::Map(m) => format!("{} results: {m}", 1 + m.additional_results.len()),
            Kernel::Repeat(r) => format!("{} steps of {}", r.iterations, r.body),
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
