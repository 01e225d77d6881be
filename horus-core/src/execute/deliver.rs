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

/// When the copy of a result begins that is sent to somebody who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Behind the launches before it, into memory of the session's pool.
    AtOnce,
    /// When somebody says where it goes.
    WhenLanded,
}

impl Run<'_> {
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

    /// Sends a result to whoever waits for it.
    pub(super) fn send(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("download", n);
        let Some(memory) = &self.images.get(n)?.device else { return Err(missing(n)) };
        let (device, pool, bytes) = (self.cx.device, self.cx.pool, memory.len());
        let ordered = self.images.with_memory(|| match self.cx.sending {
            Sending::AtOnce => device.order_read(memory, 0, bytes, pool),
            Sending::WhenLanded => device.hold(memory, 0, bytes, pool),
        });
        self.delivered.insert(n, Delivered::Coming(ordered.map_err(self.failed(label))?));
        Ok(())
    }

    /// Hands a result over.
    pub(super) fn deliver(&mut self, n: NodeId) {
        if let Some(host) = self.images.find(n).and_then(Stored::host) {
            self.delivered.insert(n, Delivered::Here(host.clone()));
        }
    }
}
