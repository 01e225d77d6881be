//! Results in flight to whoever requested them.

use super::{Run, Stored, missing};
use crate::device::Landing;
use crate::error::{Error, Result};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;

/// A result for the host.
pub enum Delivered {
    /// It is there.
    Here(HostBuffer),
    /// It is in flight from the device.
    Coming(Box<dyn Landing>),
}

impl Run<'_> {
    pub(super) fn download(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("download", n);
        let Some(memory) = &self.image(n)?.device else { return Ok(()) };
        let host = self.with_memory(|| self.cx.pool.try_allocate(memory.len()));
        let failed = |source| Error::Device { op: label(), device: "the host".into(), source };
        let mut host = host.map_err(failed)?;
        self.cx.device.read(memory, 0, host.bytes_mut()).map_err(self.failed(label))?;
        if let Some(image) = &mut self.images[n.0] {
            image.host = Some(host);
        }
        Ok(())
    }

    /// Sends a result to whoever waits for it.
    pub(super) fn send(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("download", n);
        let Some(memory) = &self.image(n)?.device else { return Err(missing(n)) };
        let ordered = self.with_memory(|| self.cx.device.order_read(memory, 0, memory.len(), self.cx.pool));
        self.delivered.insert(n, Delivered::Coming(ordered.map_err(self.failed(label))?));
        Ok(())
    }

    /// Hands a result over.
    pub(super) fn deliver(&mut self, n: NodeId) {
        if let Some(host) = self.images[n.0].as_ref().and_then(Stored::host) {
            self.delivered.insert(n, Delivered::Here(host.clone()));
        }
    }
}
