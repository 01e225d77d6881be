//! Results on their way to whoever asked for them.

use super::{Run, Stored, missing};
use crate::buffer::HostBuffer;
use crate::device::Landing;
use crate::error::{Error, Result};
use crate::graph::NodeId;
use crate::plan::Action;

/// A result for the host.
pub enum Delivered {
    /// It is there.
    Here(HostBuffer),
    /// It is on its way from the device.
    Coming(Box<dyn Landing>),
}

impl Run<'_> {
    pub(super) fn download(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("download", n);
        let Some(memory) = &self.image(n)?.device else { return Ok(()) };
        let host = self.with_memory(|| self.cx.pool.try_allocate(memory.len()));
        let failed = |source| Error::Device { op: label.clone(), device: "the host".into(), source };
        let mut host = host.map_err(failed)?;
        self.cx.device.read(memory, 0, host.bytes_mut()).map_err(self.failed(&*label))?;
        if let Some(image) = &mut self.images[n.0] {
            image.host = Some(host);
        }
        Ok(())
    }

    /// Whether this step is a copy to the host whose only reader is the delivery of the result, later.
    pub(super) fn may_come_later(&self, step: usize) -> bool {
        let plan = self.plan;
        let Action::Download(n) = plan.steps[step].action else { return false };
        self.cx.later
            && !self.unified
            && self.cx.comm.size() == 1
            && plan.graph.roots.contains(&n)
            && plan.steps[step + 1..].iter().all(|s| match s.action {
                Action::Evict(m) | Action::Upload(m) | Action::UploadStrip { node: m, .. } => m != n,
                _ => true,
            })
    }

    pub(super) fn order_download(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("download", n);
        let Some(memory) = &self.image(n)?.device else { return Err(missing(n)) };
        let ordered = self.with_memory(|| self.cx.device.order_read(memory, 0, memory.len(), self.cx.pool));
        let landing = ordered.map_err(self.failed(label))?;
        self.coming.insert(n, landing);
        Ok(())
    }

    /// Hands a result over.
    pub(super) fn deliver(&mut self, n: NodeId) {
        if let Some(landing) = self.coming.remove(&n) {
            self.delivered.insert(n, Delivered::Coming(landing));
        } else if let Some(host) = self.images[n.0].as_ref().and_then(Stored::host) {
            self.delivered.insert(n, Delivered::Here(host.clone()));
        }
    }
}
