//! Footprints: copies of the rows of an image that one launch reads, made before the launch and dropped after it.

use super::routes::rows;
use super::{PlanExecution, peers};
use crate::device::{Geometry, Memory};
use crate::error::Result;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::state::Placement;
use crate::plan::{Action, ComputedRows, Temp};

/// A copy of some rows of an image, for one launch.
pub(super) struct FootprintCopy {
    pub(super) geometry: Geometry,
    pub(super) memory: Memory,
    /// Pixels in transfer.
    arriving: Option<peers::PeerTransfer>,
}

impl PlanExecution<'_> {
    /// Copies the pixels that a launch reads of an image, from the ranks that have them.
    pub(super) fn fetch(
        &mut self,
        action: Action,
        n: NodeId,
        temp: Temp,
        rows: ComputedRows,
        direct: bool,
    ) -> Result<()> {
        let graph = &self.plan.graph;
        let (consumer, shape) = (graph.node(temp.consumer), graph.node(n).shape);
        let rows = self.rows_of(temp.consumer, rows);
        let window = consumer.op.footprint(temp.input, rows, consumer.shape, shape);
        if direct {
            let (geometry, memory, arriving) = self.order(action, n, "footprint", window)?;
            self.temps.insert(temp, FootprintCopy { geometry, memory, arriving: Some(arriving) });
            return Ok(());
        }
        let geometry = Geometry { shape, dtype: graph.node(n).dtype, window };
        let host = if self.images.get(n)?.state.placement == Placement::Replicated {
            self.local_rows(n, geometry)?
        } else {
            self.bring(action, n, "footprint", window)?
        };
        let memory = if self.unified {
            Memory::Host(host)
        } else {
            let label = self.label("footprint", n);
            let mut memory = self.allocate(label, host.len())?;
            self.cx.device.write(host.bytes(), &mut memory, 0).map_err(self.failed(label))?;
            memory
        };
        self.temps.insert(temp, FootprintCopy { geometry, memory, arriving: None });
        Ok(())
    }

    /// Copies some rows of an image that this rank has whole.
    fn local_rows(&self, n: NodeId, geometry: Geometry) -> Result<HostBuffer> {
        let label = self.label("copying rows", n);
        let mut host = self.host_memory(label, geometry.bytes())?;
        let (source, given) = self.source(n)?;
        let (from, to) = rows(given, geometry);
        source.copy(self.cx.device.workers(), &from, &to, host.bytes_mut()).map_err(self.failed(label))?;
        Ok(host)
    }

    /// Waits for the footprints of launch `n`.
    pub(super) fn await_footprints(&mut self, n: NodeId) -> Result<()> {
        let (node, device) = (self.plan.graph.node(n), self.cx.device);
        for input in 0..node.inputs.len() {
            if let Some(fetched) = self.temps.get_mut(&Temp { consumer: n, input })
                && let Some(arriving) = fetched.arriving.take()
            {
                let arrived = arriving.finish(device, &mut fetched.memory);
                arrived.map_err(self.failed(self.label("footprint", node.inputs[input])))?;
            }
        }
        Ok(())
    }
}
