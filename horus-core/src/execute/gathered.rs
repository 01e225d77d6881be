//! Strips that are gathered on rank 0's device, on the way to its host.

use std::ops::Range;

use super::{PlanExecution, missing, peers};
use crate::device::{Device, Geometry, Memory};
use crate::error::{DeviceError, Result};
use crate::ir::graph::NodeId;
use crate::plan::{Action, Band};
use crate::shape::Window;

/// Memory for all rows of an image on rank 0, empty on other ranks, and the pixels in transfer.
pub(super) struct GatheredStrips {
    pub(super) geometry: Geometry,
    pub(super) memory: Memory,
    arriving: Vec<peers::PeerTransfer>,
}

impl GatheredStrips {
    /// Lets the device wait for the pixels in transfer; the host continues.
    pub(super) fn arrive(&mut self, device: &dyn Device) -> Result<(), DeviceError> {
        let GatheredStrips { memory, arriving, .. } = self;
        arriving.drain(..).try_for_each(|arriving| arriving.finish(device, memory).map(drop))
    }
}

impl PlanExecution<'_> {
    /// Starts to send a band of every strip to rank 0's device.
    pub(super) fn begin_gather(&mut self, action: Action, n: NodeId, band: Band) -> Result<()> {
        let label = self.label("gather", n);
        let movement = self.movement(action, n)?;
        let begun = self.gathered.remove(&n).filter(|_| !band.begins());
        let image = self.images.get(n)?;
        let rows = if self.rank() == 0 { Window::whole(image.geometry.shape.height) } else { Window::new(0, 0) };
        let mut gathered = match begun {
            Some(gathered) => gathered,
            None => {
                let geometry = Geometry { window: rows, ..image.geometry };
                GatheredStrips { geometry, memory: self.allocate(label, geometry.bytes())?, arriving: Vec::new() }
            }
        };
        let strip = (image.device.as_ref().ok_or_else(|| missing(n))?, image.geometry);
        let whole = (&mut gathered.memory, gathered.geometry);
        let arriving = peers::order(self.cx.device, self.cx.comm, &movement, Some(strip), whole);
        let arriving = arriving.map_err(self.failed(label))?;
        self.count(arriving.sent);
        gathered.arriving.push(arriving);
        self.gathered.insert(n, gathered);
        Ok(())
    }

    /// Byte ranges of a band of every strip in a gathered image.
    pub(super) fn bytes_of_strips(&self, geometry: Geometry, band: Band) -> Vec<Range<usize>> {
        let ranks = 0..self.cx.comm.size();
        let strips = ranks.map(|rank| band.of(self.strip(rank, geometry.shape.height)));
        let planes = |rows| (0..geometry.shape.planes()).map(move |c| geometry.row_bytes(c, rows));
        strips.flat_map(planes).collect()
    }

    /// Waits, on ranks that sent their strips, until they have been sent. Earlier failures of a device surface here; on
    /// rank 0 they surface when the pixels reach its host.
    pub(super) fn finish_gathers(&mut self) -> Result<()> {
        let device = self.cx.device;
        let gathered: Vec<(NodeId, GatheredStrips)> = self.gathered.drain().collect();
        for (n, mut gathered) in gathered {
            gathered.arrive(device).map_err(self.failed(self.label("gather", n)))?;
            device.synchronize().map_err(self.failed(self.label("gather", n)))?;
        }
        Ok(())
    }
}
