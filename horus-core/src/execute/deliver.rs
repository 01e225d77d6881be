//! Results on the way to their requesters.

use super::portions::{Portion, PortionOrigin};
use super::{PlanExecution, RankImage};
use crate::device::PendingDownload;
use crate::error::{Error, Result};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;

/// A result for the host.
pub enum Delivered {
    /// On the host.
    OnHost(HostBuffer),
    /// In transfer from the device.
    InFlight(Box<dyn PendingDownload>),
}

impl PlanExecution<'_> {
    pub(super) fn download(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("download", n);
        let Some(memory) = &self.images.get(n)?.device else { return Ok(()) };
        let host = self.images.with_memory(|| self.cx.pool.try_allocate(memory.len()));
        let failed = |source| Error::Device { op: label(), device: "the host".into(), source };
        let mut host = host.map_err(failed)?;
        self.cx.device.read(memory, 0, host.bytes_mut()).map_err(self.failed(label))?;
        if let Some(image) = self.images.find_mut(n) {
            image.host = Some(host);
        }
        Ok(())
    }

    /// Delivers a result.
    pub(super) fn deliver(&mut self, n: NodeId) {
        if self.plan.setting.has_shared_host() {
            let Some((image, host)) = self.images.find(n).and_then(|i| Some((i, i.host()?))) else { return };
            let portion = |(from, at): (std::ops::Range<usize>, usize)| Portion {
                at,
                bytes: from.len(),
                from: PortionOrigin::OnHost(host.clone(), from.start),
            };
            let portions = self.handed_over(n, image.geometry).into_iter().map(portion).collect();
            self.portions.insert(n, portions);
            return;
        }
        if let Some(host) = self.images.find(n).and_then(RankImage::host) {
            self.delivered.insert(n, Delivered::OnHost(host.clone()));
        }
    }
}
