//! Halo exchanges, started and completed, and the memory of halos.

use super::{PlanExecution, RankImage, missing};
use super::{peers, transfer};
use crate::device::{Geometry, Memory};
use crate::error::Result;
use crate::execute::transfer::{Destination, HostResources};
use crate::host::StridedCopy;
use crate::ir::graph::NodeId;
use crate::plan::Action;
use crate::plan::movement::{Movement, RequiredPixels, with_room};
use crate::plan::state::{Halo, Placement};
use crate::shape::Window;

/// A halo exchange in progress.
pub(super) enum HaloTransfer<'a> {
    /// Peer to peer.
    Peers(peers::PeerTransfer),
    /// Through the host.
    Host(transfer::HostTransfer<'a>),
}

impl PlanExecution<'_> {
    /// Starts a halo exchange: sends the rows that other ranks need. The rows that this rank needs are valid after
    /// [`PlanExecution::finish_exchange`].
    pub(super) fn begin_exchange(&mut self, action: Action, n: NodeId, halo: Halo, direct: bool) -> Result<()> {
        let height = self.plan.graph.node(n).shape.height;
        let strip = self.strip(self.rank(), height);
        if direct && let Some(image) = self.images.find_mut(n) {
            image.host = None; // its halo will be stale
        }
        self.make_room(n, strip, with_room(strip, halo, height))?;
        let movement = self.movement(action, n)?;
        if direct {
            self.send_directly(n, &movement)?
        } else {
            self.send_by_host(n, &movement)?
        }
        self.set_placement(n, Placement::Strips(halo));
        Ok(())
    }

    fn send_directly(&mut self, n: NodeId, movement: &Movement) -> Result<()> {
        let (device, comm) = (self.cx.device, self.cx.comm);
        let image = self.images.get_mut(n)?;
        let memory = image.device.as_mut().ok_or_else(|| missing(n))?;
        let arriving = peers::order(device, comm, movement, None, (memory, image.geometry));
        let arriving = arriving.map_err(self.failed(self.label("halo exchange", n)))?;
        self.count(arriving.sent);
        self.halos.insert(n, HaloTransfer::Peers(arriving));
        Ok(())
    }

    fn send_by_host(&mut self, n: NodeId, movement: &Movement) -> Result<()> {
        let resources = HostResources { workers: self.cx.device.workers(), pool: self.cx.pool };
        let (source, geometry) = self.source(n)?;
        let arriving = transfer::order(self.cx.comm, resources, movement, source, geometry);
        let arriving = arriving.map_err(self.failed(self.label("halo exchange", n)))?;
        if cfg!(debug_assertions) {
            self.poison(n, &movement.required[self.rank()]);
        }
        self.count(arriving.sent);
        self.halos.insert(n, HaloTransfer::Host(arriving));
        Ok(())
    }

    /// Poisons rows in host memory that are in transfer.
    fn poison(&mut self, n: NodeId, awaited: &[RequiredPixels]) {
        let Some(RankImage { geometry, device: Some(Memory::Host(host)), .. }) = self.images.find_mut(n) else {
            return;
        };
        for need in awaited {
            let rows = Window::new(need.at, need.at + need.rows.len().cast_signed());
            (0..geometry.shape.planes()).for_each(|c| host.bytes_mut()[geometry.row_bytes(c, rows)].fill(0xff));
        }
    }

    /// Completes a halo exchange: waits for the rows and stores them around the strip.
    pub(super) fn finish_exchange(&mut self, n: NodeId) -> Result<()> {
        let failed = self.failed(self.label("halo exchange", n));
        let (device, unified) = (self.cx.device, self.unified);
        let halo = self.halos.remove(&n).ok_or_else(|| missing(n))?;
        let image = self.images.get_mut(n)?;
        match halo {
            HaloTransfer::Peers(arriving) => {
                let memory = image.device.as_mut().ok_or_else(|| missing(n))?;
                arriving.finish(device, memory).map_err(failed)?;
            }
            HaloTransfer::Host(arriving) => {
                // Rows arrive on the side that computes next, if it was valid.
                let target = match (&mut image.device, &mut image.host) {
                    (Some(memory), host) if !unified => {
                        *host = None; // its halo is stale now
                        Destination::Device(device, memory)
                    }
                    (Some(Memory::Host(host)), _) | (_, Some(host)) => Destination::Host(host.bytes_mut()),
                    _ => return Err(missing(n)),
                };
                arriving.finish(device.workers(), target).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Enlarges the buffers of an image to the rows `window`.
    fn make_room(&mut self, n: NodeId, strip: Window, window: Window) -> Result<()> {
        let old = self.geometry(n)?;
        if old.window.covers(window) {
            return Ok(());
        }
        let new = Geometry { window: old.window.union(window), ..old };
        let rows = |c| {
            StridedCopy::run(
                old.row_bytes(c, strip).start,
                new.row_bytes(c, strip).start,
                old.row_bytes(c, strip).len(),
            )
        };
        let pieces: Vec<StridedCopy> = (0..old.shape.planes()).map(rows).collect();
        let label = self.label("enlarging the halo", n);
        let mut memory = None;
        if let Some(device) = &self.images.get(n)?.device {
            let mut larger = self.allocate(label, new.bytes())?;
            self.cx.device.copy(device, &mut larger, &pieces).map_err(self.failed(&label))?;
            memory = Some(larger);
        }
        let mut copied = None;
        if let Some(host) = &self.images.get(n)?.host {
            let mut larger = self.host_memory(label, new.bytes())?;
            self.cx.device.workers().copy_pieces(host.bytes(), larger.bytes_mut(), &pieces);
            copied = Some(larger);
        }
        if let Some(image) = self.images.find_mut(n) {
            (image.geometry, image.device, image.host) = (new, memory, copied);
        }
        Ok(())
    }
}
