//! Queues: the resources that steps occupy. They determine which steps run concurrently.

use std::fmt;

use super::step::Action;
use crate::ir::graph::NodeId;

/// The resource of a step. Steps of one queue run in the order of the plan. [`Queue::Upload`] and
/// [`Queue::Download`] run concurrently with all others, ordered only by [waits](super::PlanStep::waits). The
/// other queues run in plan order because the host issues their work in this order.
/// work in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Queue {
    /// The host's thread.
    Host,
    /// Copies to the device.
    Upload,
    /// The device's kernels, and changes of its memory.
    Compute,
    /// Copies to the host in the background.
    Download,
    /// Messages between ranks.
    Network,
}

impl Queue {
    /// All queues.
    pub const ALL: [Queue; 5] = [Queue::Host, Queue::Upload, Queue::Compute, Queue::Download, Queue::Network];

    /// Returns `true` if the order of the plan orders steps of this queue and of `other`.
    pub fn in_order_with(self, other: Queue) -> bool {
        let beside = |queue| matches!(queue, Queue::Upload | Queue::Download);
        self == other || !(beside(self) || beside(other))
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Queue::Host => "host",
            Queue::Upload => "upload",
            Queue::Compute => "compute",
            Queue::Download => "download",
            Queue::Network => "network",
        })
    }
}

impl Action {
    /// The launch for which rows are fetched.
    pub const fn fetches_for(&self) -> Option<NodeId> {
        match self {
            Action::Fetch { temp, .. } => Some(temp.consumer),
            _ => None,
        }
    }

    /// The image of the step.
    pub const fn node(&self) -> NodeId {
        match *self {
            Action::Upload { node, .. }
            | Action::UploadStrip { node, .. }
            | Action::Scatter { node, .. }
            | Action::Replicate { node, .. }
            | Action::Exchange { node, .. }
            | Action::Begin { node, .. }
            | Action::Fetch { node, .. }
            | Action::Launch { node, .. }
            | Action::Gather { node, .. }
            | Action::Send { node, .. } => node,
            Action::Download(node)
            | Action::Map(node)
            | Action::Unmap(node)
            | Action::Finish(node)
            | Action::Evict(node)
            | Action::Sum(node)
            | Action::Collect(node)
            | Action::Deliver(node)
            | Action::Free(node) => node,
        }
    }

    /// The queue of this step.
    pub const fn queue(&self) -> Queue {
        match self {
            Action::Upload { .. } | Action::UploadStrip { .. } => Queue::Upload,
            Action::Send { .. } => Queue::Download,
            Action::Map(_) | Action::Launch { .. } | Action::Evict(_) | Action::Free(_) => Queue::Compute,
            Action::Unmap(_) | Action::Download(_) | Action::Deliver(_) => Queue::Host,
            Action::Scatter { .. }
            | Action::Replicate { .. }
            | Action::Exchange { .. }
            | Action::Begin { .. }
            | Action::Finish(_)
            | Action::Fetch { .. }
            | Action::Sum(_)
            | Action::Gather { .. }
            | Action::Collect(_) => Queue::Network,
        }
    }
}
