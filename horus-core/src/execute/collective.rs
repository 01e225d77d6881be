//! Collective transfers of images: scatter, replication, gather, sum.

use super::transfer::{HostResources, Redistribution, redistribute};
use super::{PlanExecution, RankImage, missing, peers};
use crate::device::{Geometry, Memory};
use crate::error::Result;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::movement::{BLOCK, Load, Movement, movement, with_room};
use crate::plan::state::{Halo, ImageState, Placement, Residency};
use crate::plan::{Action, Plan, PlanStep};
use crate::shape::Window;

impl PlanExecution<'_> {
    /// Movement of image `n` in a step.
    pub(super) fn movement(&self, action: Action, n: NodeId) -> Result<Movement> {
        let owner = self.images.get(n)?.state.placement.owner();
        movement(&self.plan.graph, &self.plan.setting.partition, action, owner, BLOCK).ok_or_else(|| missing(n))
    }

    /// Stores pixels on the host or the device, where the image is read next. On a device that computes on host memory
    /// this is the host's buffer.
    pub(super) fn place(&mut self, n: NodeId, window: Window, host: Option<HostBuffer>) -> Result<()> {
        let unified = self.unified;
        let node = self.plan.graph.node(n);
        let state = self.images.find(n).map(|s| s.state);
        let initial = ImageState { residency: Residency::Host, placement: Placement::Replicated };
        let geometry = Geometry { shape: node.shape, dtype: node.dtype, window };
        let (host, device) = if unified { (None, host.map(Memory::Host)) } else { (host, None) };
        self.images.put(n, RankImage { geometry, state: state.unwrap_or(initial), host, device });
        Ok(())
    }

    /// Brings every rank the pixels it needs, into new host memory for the rows `window`.
    pub(super) fn bring(
        &mut self,
        action: Action,
        n: NodeId,
        what: &'static str,
        window: Window,
    ) -> Result<HostBuffer> {
        let brought = self.bring_at_once(what, &[(action, n, window)])?;
        brought.into_iter().next().ok_or_else(|| missing(n))
    }

    /// [`PlanExecution::bring`] for several images of different ranks.
    fn bring_at_once(&mut self, what: &'static str, images: &[(Action, NodeId, Window)]) -> Result<Vec<HostBuffer>> {
        let geometry = |plan: &Plan, n: NodeId, window| {
            let node = plan.graph.node(n);
            Geometry { shape: node.shape, dtype: node.dtype, window }
        };
        let mut targets = Vec::with_capacity(images.len());
        for &(_, n, window) in images {
            let mut target = self.host_memory(self.label(what, n), geometry(self.plan, n, window).bytes())?;
            if cfg!(debug_assertions) {
                target.bytes_mut().fill(0xff); // NaN, which nothing may read
            }
            targets.push(target);
        }
        let each = images.iter().zip(&mut targets).map(|(&(action, n, window), target)| {
            Ok(Redistribution {
                movement: self.movement(action, n)?,
                source: self.source(n)?,
                target: (target.bytes_mut(), geometry(self.plan, n, window)),
            })
        });
        let resources = HostResources { workers: self.cx.device.workers(), pool: self.cx.pool };
        let sent = redistribute(self.cx.comm, resources, each.collect::<Result<_>>()?);
        let label = images.first().map(|(_, n, _)| self.label(what, *n));
        let sent = sent.map_err(self.failed(|| label.map_or_else(String::new, |label| label())))?;
        self.count(sent);
        Ok(targets)
    }

    /// Brings every rank its strips of several images of different ranks at once, through the hosts.
    pub(super) fn scatter_at_once(&mut self, steps: &[PlanStep]) -> Result<()> {
        let scatter = |step: &PlanStep| match step.action {
            Action::Scatter { node, halo, room, .. } => {
                let height = self.plan.graph.node(node).shape.height;
                let window = with_room(self.strip(self.rank(), height), room.max(halo), height);
                Some(((step.action, node, window), halo))
            }
            _ => None,
        };
        let (images, halos): (Vec<_>, Vec<_>) = steps.iter().filter_map(scatter).unzip();
        let brought = self.bring_at_once("scatter", &images)?;
        for ((&(_, n, window), halo), host) in images.iter().zip(halos).zip(brought) {
            self.set_placement(n, Placement::Strips(halo));
            self.place(n, window, Some(host))?;
        }
        Ok(())
    }

    /// Counts sent messages.
    pub(super) fn count(&mut self, moved: Load) {
        self.moved.messages += moved.messages;
        self.moved.bytes += moved.bytes;
    }

    /// Starts to bring every rank the pixels it needs from device to device, into new memory for the rows `window`.
    pub(super) fn order(
        &mut self,
        action: Action,
        n: NodeId,
        what: &'static str,
        window: Window,
    ) -> Result<(Geometry, Memory, peers::PeerTransfer)> {
        let label = self.label(what, n);
        let movement = self.movement(action, n)?;
        let image = self.images.get(n)?;
        let geometry = Geometry { window, ..image.geometry };
        let mut memory = self.allocate(label, geometry.bytes())?;
        let source = image.device.as_ref().ok_or_else(|| missing(n))?;
        let (device, comm) = (self.cx.device, self.cx.comm);
        let (from, to) = (Some((source, image.geometry)), (&mut memory, geometry));
        let arriving = peers::order(device, comm, &movement, from, to).map_err(self.failed(label))?;
        self.count(arriving.sent);
        Ok((geometry, memory, arriving))
    }

    /// Brings every rank its strip with its halo, in memory for a deeper halo.
    pub(super) fn scatter(
        &mut self,
        action: Action,
        n: NodeId,
        (halo, room): (Halo, Halo),
        direct: bool,
    ) -> Result<()> {
        let height = self.plan.graph.node(n).shape.height;
        let window = with_room(self.strip(self.rank(), height), room.max(halo), height);
        self.spread(action, n, "scatter", window, Placement::Strips(halo), direct)
    }

    /// Brings every rank the whole image.
    pub(super) fn replicate(&mut self, action: Action, n: NodeId, direct: bool) -> Result<()> {
        let whole = Window::whole(self.plan.graph.node(n).shape.height);
        self.spread(action, n, "replication", whole, Placement::Replicated, direct)
    }

    /// Brings every rank its part of an image, which replaces its previous part.
    fn spread(
        &mut self,
        action: Action,
        n: NodeId,
        what: &'static str,
        window: Window,
        placement: Placement,
        direct: bool,
    ) -> Result<()> {
        if direct {
            let (geometry, mut memory, arriving) = self.order(action, n, what, window)?;
            arriving.finish(self.cx.device, &mut memory).map_err(self.failed(self.label(what, n)))?;
            let state = ImageState { residency: Residency::Device, placement };
            self.images.put(n, RankImage { geometry, state, host: None, device: Some(memory) });
            return Ok(());
        }
        let host = self.bring(action, n, what, window)?;
        self.set_placement(n, placement);
        self.place(n, window, Some(host))
    }

    /// Gathers the whole image on rank 0.
    pub(super) fn collected(&mut self, action: Action, n: NodeId) -> Result<Option<HostBuffer>> {
        let root = self.rank() == 0;
        let window = if root { Window::whole(self.plan.graph.node(n).shape.height) } else { Window::new(0, 0) };
        let host = self.bring(action, n, "gather", window)?;
        Ok(root.then_some(host))
    }

    /// Adds up the images of all ranks, element by element.
    pub(super) fn sum(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("sum over ranks", n);
        let rank = self.rank();
        let comm = self.cx.comm;
        let image = self.images.get_mut(n)?;
        let host = match (&mut image.host, &mut image.device) {
            (Some(h), _) | (None, Some(Memory::Host(h))) => h,
            _ => return Err(missing(n)),
        };
        comm.sum(host.as_mut_slice::<f64>()).map_err(|e| e.during(rank, label()))?;
        if !self.unified {
            image.device = None;
        }
        Ok(())
    }
}
