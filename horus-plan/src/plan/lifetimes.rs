//! How long each image is needed: who reads it, and whether it outlives the plan.

use super::draft::Draft;
use crate::ir::graph::NodeId;
use crate::ir::kernel::Kernel;

/// For each node, who needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lifetimes {
    /// The nodes that read it, once per read, in order.
    pub(super) readers: Vec<Vec<NodeId>>,
    /// Whether it outlives the plan: a result, or a source that somebody still refers to.
    pub(super) kept: Vec<bool>,
}

impl Lifetimes {
    /// Whether some node after `last` reads an image, or it is kept.
    pub(super) fn needed_after(&self, id: NodeId, last: NodeId) -> bool {
        self.kept[id.0] || self.readers[id.0].last().is_some_and(|reader| *reader > last)
    }
}

/// The pass.
pub(super) fn find(draft: &mut Draft<'_>) {
    let held = |(id, kernel): (NodeId, &Kernel)| matches!(kernel, Kernel::Source(_)) && !(draft.disposable)(id);
    let mut kept: Vec<bool> = draft.graph.iter().map(|(id, node)| held((id, &node.op))).collect();
    draft.graph.roots.iter().for_each(|root| kept[root.0] = true);
    draft.lifetimes = Lifetimes { readers: draft.graph.consumers(), kept };
}
