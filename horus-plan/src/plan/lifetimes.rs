//! Lifetimes of images: their readers, and which images outlive the plan.

use super::draft::PlanDraft;
use crate::ir::graph::NodeId;
use crate::ir::kernel::Kernel;

/// Uses of each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lifetimes {
    /// The nodes that read it, once per read, in order.
    pub(super) readers: Vec<Vec<NodeId>>,
    /// Set if the node outlives the plan: a result, or a source that is still referenced.
    pub(super) outlives_plan: Vec<bool>,
}

impl Lifetimes {
    /// Returns `true` if a node after `last` reads the image, or the image outlives the plan.
    pub(super) fn needed_after(&self, id: NodeId, last: NodeId) -> bool {
        self.outlives_plan[id.0] || self.readers[id.0].last().is_some_and(|reader| *reader > last)
    }
}

/// The pass: finds the lifetimes of all images.
pub(super) fn find(draft: &mut PlanDraft<'_>) {
    let held = |(id, kernel): (NodeId, &Kernel)| matches!(kernel, Kernel::Source(_)) && !(draft.disposable)(id);
    let mut kept: Vec<bool> = draft.graph.iter().map(|(id, node)| held((id, &node.op))).collect();
    draft.graph.roots.iter().for_each(|root| kept[root.0] = true);
    draft.lifetimes = Lifetimes { readers: draft.graph.consumers(), outlives_plan: kept };
}
