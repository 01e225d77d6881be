//! Images that launches use in the host's memory.

use super::{PlanCheck, ValidCopies};
use crate::ir::graph::NodeId;
use crate::ir::kernel::Kernel;
use crate::plan::step::Action;

impl PlanCheck<'_> {
    /// Maps an image: one on the host, or one about to be computed there.
    pub(super) fn map(&mut self, n: NodeId) -> Result<(), String> {
        if self.plan.setting.partition.ranks() > 1 || self.plan.setting.unified {
            return Err(format!("{n} is mapped where several ranks or the host itself compute"));
        }
        if self.images[n.0].device.is_some() {
            return Err(format!("{n} is on the device already"));
        }
        match self.images[n.0].host {
            Some(rows) => self.set(n, Some(rows), Some(rows)),
            None if matches!(self.plan.graph.node(n).op, Kernel::Source(_)) => {
                return Err(format!("the host copy of {n} is stale"));
            }
            None => {} // the memory exists and has no valid rows
        }
        if self.mapped.insert(n) { Ok(()) } else { Err(format!("{n} is mapped twice")) }
    }

    /// Unmaps an image. The pixels that launches wrote are now the host copy.
    pub(super) fn unmap(&mut self, n: NodeId) -> Result<(), String> {
        if !self.mapped.remove(&n) {
            return Err(format!("{n} is not mapped"));
        }
        let rows = self.device(n)?;
        self.set(n, Some(rows), None);
        Ok(())
    }

    /// Frees an image and its mapping.
    pub(super) fn free(&mut self, n: NodeId) {
        self.mapped.remove(&n);
        self.images[n.0] = ValidCopies::default();
    }

    /// Fails if a step treats mapped host memory as the device's own.
    pub(super) fn leaves_mapped(&self, action: Action) -> Result<(), String> {
        let n = action.node();
        let may = matches!(
            action,
            Action::Map(_) | Action::Unmap(_) | Action::Launch { .. } | Action::Deliver(_) | Action::Free(_)
        );
        if may || !self.mapped.contains(&n) { Ok(()) } else { Err(format!("{n} is in the host's memory")) }
    }
}
