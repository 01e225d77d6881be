//! Launches that use the host's memory instead of the device's. If the device refuses it, the image is copied.

use std::collections::{HashMap, HashSet};

use super::{PlanExecution, missing};
use crate::device::Memory;
use crate::error::{DeviceError, Result};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::Band;

/// Results that launches write to the host's memory.
#[derive(Default)]
pub(super) struct MappedResults {
    /// Memory of results whose launches have not begun.
    rooms: HashMap<NodeId, Memory>,
    /// Results whose launches have begun.
    begun: HashSet<NodeId>,
}

impl MappedResults {
    /// Takes the memory for the launch that begins to compute `n`; `None` for the device's memory.
    pub(super) fn room_of(&mut self, n: NodeId) -> Option<Memory> {
        let room = self.rooms.remove(&n)?;
        self.begun.insert(n);
        Some(room)
    }

    /// Returns memory of a result whose launch did not begin.
    pub(super) fn put_back(&mut self, n: NodeId, room: Memory) {
        if self.begun.remove(&n) {
            self.rooms.insert(n, room);
        }
    }
}

impl PlanExecution<'_> {
    /// Maps host memory for launches: of an existing image, or of a result that is not computed yet.
    pub(super) fn map(&mut self, step: usize, n: NodeId) -> Result<()> {
        let Some(image) = self.images.find_mut(n) else {
            let node = self.plan.graph.node(n);
            if let Some(room) = self.room(node.shape.len() * node.dtype.size()) {
                self.mapped.rooms.insert(n, room);
            }
            return Ok(());
        };
        let host = image.host.clone().ok_or_else(|| missing(n))?;
        match self.cx.device.staging().map(host) {
            Ok(memory) => image.device = Some(memory),
            Err(host) => {
                drop(host);
                log::debug!("{n} is not where the device can read it, and is copied");
                self.upload(step, n, Band::WHOLE)?;
                self.finish_uploads()?;
            }
        }
        Ok(())
    }

    /// Unshared host memory for a result that the device can write to, if there is any.
    fn room(&mut self, bytes: usize) -> Option<Memory> {
        let fits = |room: &HostBuffer| room.len() == bytes && !room.is_shared();
        let room = match self.cx.rooms.iter().position(fits) {
            Some(at) => self.cx.rooms.remove(at),
            None => {
                self.page_locked(bytes).inspect_err(|e| log::debug!("a result is copied to the host: {e}")).ok()??
            }
        };
        let refused = |room| self.cx.rooms.push(room);
        self.cx.device.staging().map(room).map_err(refused).ok()
    }

    /// Allocates page-locked memory, if the device provides it.
    fn page_locked(&self, bytes: usize) -> Result<Option<HostBuffer>, DeviceError> {
        let memory = self.cx.device.staging().page_locked(bytes)?;
        memory.map(|memory| self.cx.pool.try_adopt(memory, bytes)).transpose()
    }

    /// Ends the use of the host's memory: waits for the launches that write the result, which is then on the host.
    pub(super) fn unmap(&mut self, n: NodeId) -> Result<()> {
        let (label, begun) = (self.label("the wait for the result", n), self.mapped.begun.remove(&n));
        let image = self.images.get_mut(n)?;
        if image.host.is_none() {
            let memory = image.device.take().ok_or_else(|| missing(n))?;
            if begun {
                let host = self.cx.device.staging().unmap(memory);
                let host = host.map_err(self.failed(label))?;
                self.images.get_mut(n)?.host = Some(host);
                return Ok(());
            }
            image.device = Some(memory);
            self.download(n)?;
        }
        self.images.get_mut(n)?.device = None;
        Ok(())
    }
}
