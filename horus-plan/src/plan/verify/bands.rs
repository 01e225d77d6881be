//! Bands: images uploaded, computed or sent in part, and the steps that wrote each row of a device copy.

use std::collections::HashMap;

use super::PlanCheck;
use crate::ir::graph::NodeId;
use crate::plan::state::Halo;
use crate::plan::step::{Action, Band, LaunchPart};
use horus_base::shape::Window;

impl PlanCheck<'_> {
    /// The image whose whole device copy a step reads, modifies or removes.
    pub(super) fn settles(action: Action) -> Option<NodeId> {
        match action {
            Action::Finish(n) | Action::Fetch { node: n, .. } => Some(n),
            Action::Upload { .. } | Action::UploadStrip { .. } | Action::Launch { .. } => None,
            _ => Self::disturbs(action),
        }
    }

    /// The operation on an image that was begun in bands but not completed, if any.
    pub(super) fn unfinished(&self, n: NodeId) -> Option<&'static str> {
        let uploaded = self.uploaded.contains_key(&n).then_some("the upload");
        let computed = || self.computed.contains_key(&n).then_some("the computation");
        uploaded.or_else(computed).or_else(|| self.sent.contains_key(&n).then_some("the copy to the host"))
    }

    /// Records the device writes of a step.
    pub(super) fn notes_writes(&mut self, action: Action) {
        match action {
            Action::Upload { node, band }
            | Action::UploadStrip { node, band, .. }
            | Action::Launch { node, part: LaunchPart::Band(band), .. } => {
                if band.begins() {
                    self.order.forget(node);
                }
                // Earlier bands wrote the earlier rows.
                let all = self.images[node.0].device.unwrap_or(Window::new(0, 0));
                let start = self.written_until(node, action, band.from);
                self.order.writes(node, Window::new(start.unwrap_or(all.start), all.end));
            }
            Action::Free(n) | Action::Evict(n) | Action::Unmap(n) => self.order.forget(n),
            Action::Download(_)
            | Action::Fetch { .. }
            | Action::Gather { .. }
            | Action::Deliver(_)
            | Action::Send { .. } => {}
            Action::Map(n) | Action::Finish(n) | Action::Sum(n) | Action::Collect(n) => self.rewritten(n),
            Action::Scatter { node, .. }
            | Action::Replicate { node, .. }
            | Action::Exchange { node, .. }
            | Action::Begin { node, .. }
            | Action::Launch { node, .. } => self.rewritten(node),
        }
    }

    pub(super) fn rewritten(&mut self, n: NodeId) {
        self.order.forget(n);
        if let Some(rows) = self.images[n.0].device {
            self.order.writes(n, rows);
        }
    }

    /// The first row that a band writes.
    pub(super) fn written_until(&self, n: NodeId, action: Action, cut: u8) -> Option<isize> {
        let all = match action {
            Action::Launch { rows, .. } => self.rows(n, rows),
            Action::UploadStrip { halo, .. } => self.grown(self.height(n), halo),
            _ => self.images[n.0].host?,
        };
        Some(Band::row(cut, all))
    }

    /// Advances an operation in bands on an image.
    pub(super) fn next_band<T: Copy + PartialEq>(
        under_way: &mut HashMap<NodeId, T>,
        n: NodeId,
        band: Band,
        before: T,
        after: T,
    ) -> Result<(), String> {
        let follows = match under_way.remove(&n) {
            None => band.begins(),
            Some(last) => !band.begins() && last == before,
        };
        if !follows || band.from > band.to || band.to > Band::PARTS {
            return Err(format!("rows {band} of {n} do not follow those before"));
        }
        if !band.ends() {
            under_way.insert(n, after);
        }
        Ok(())
    }

    pub(super) fn upload(&mut self, n: NodeId, band: Band) -> Result<(), String> {
        let rows = self.host(n)?;
        if band.begins() && self.images[n.0].device.is_some() {
            return Err(format!("{n} is on the device already"));
        }
        Self::next_band(&mut self.uploaded, n, band, band.from, band.to)?;
        self.set(n, Some(rows), Some(Window::new(rows.start, Band::row(band.to, rows))));
        Ok(())
    }

    /// Uploads a band of the strip and the rows around it, of an image that every host has. The last band
    /// invalidates the host copy.
    pub(super) fn upload_strip(&mut self, n: NodeId, halo: Halo, band: Band) -> Result<(), String> {
        let (rows, whole) = (self.host(n)?, Window::whole(self.height(n)));
        if self.owner[n.0].is_some() || !rows.covers(whole) {
            return Err(format!("{n} is not whole on every host"));
        }
        if band.begins() && self.images[n.0].device.is_some() {
            return Err(format!("{n} is on the device already"));
        }
        Self::next_band(&mut self.uploaded, n, band, band.from, band.to)?;
        let all = self.grown(self.height(n), halo);
        let host = (!band.ends()).then_some(rows);
        self.set(n, host, Some(Window::new(all.start, Band::row(band.to, all))));
        Ok(())
    }

    /// Gathers a band of every strip on rank 0's device.
    pub(super) fn gather_band(&mut self, n: NodeId, band: Band) -> Result<(), String> {
        self.added_up(n)?;
        if self.owner[n.0].is_some() {
            return Err(format!("{n} has no strips"));
        }
        let (held, rows) = (self.side(n, true)?, band.of(self.strip(self.height(n))));
        if !held.covers(rows) {
            return Err(format!("gathers rows {rows} of {n}, of which {held} are up to date"));
        }
        self.order.sees(n, Some(rows))?;
        let before = self.gathered_until.get(&n).copied().unwrap_or(0);
        if before != band.from || band.from > band.to || band.to > Band::PARTS {
            return Err(format!("rows {band} of {n} are gathered after {before} of {} parts", Band::PARTS));
        }
        self.gathered_until.insert(n, band.to);
        self.order.gathers(n, band);
        Ok(())
    }

    /// Sends a band of every strip from rank 0; other ranks do nothing.
    fn send_gathered(&mut self, n: NodeId, band: Band) -> Result<(), String> {
        if self.gathered_until.get(&n).is_none_or(|met| *met < band.to) {
            return Err(format!("sends rows {band} of {n}, which were not gathered"));
        }
        self.order.sees_gathered(n, band)?;
        Self::next_band(&mut self.sent, n, band, band.from, band.to)?;
        if self.rank == 0 && band.ends() {
            self.delivered[n.0] = Some(Window::whole(self.height(n)));
        }
        Ok(())
    }

    /// The part of rows `held` that this rank delivers.
    pub(super) fn delivers(&self, n: NodeId, held: Window) -> Window {
        if self.plan.setting.has_shared_host() { held.intersect(self.plan.hands_over(n, self.rank)) } else { held }
    }

    /// Sends a band of the rows that this rank delivers: all rows on a single rank, its strip on one of
    /// several devices of a process. If all devices have the image, the first sends it.
    pub(super) fn send(&mut self, n: NodeId, band: Band) -> Result<(), String> {
        let lanes = self.plan.setting.has_shared_host();
        if self.plan.setting.partition.ranks() > 1 && !lanes {
            return self.send_gathered(n, band);
        }
        self.added_up(n)?;
        let held = self.device(n)?;
        let all = if lanes { self.plan.hands_over(n, self.rank) } else { Window::whole(self.height(n)) };
        let rows = band.of(all);
        if !held.covers(rows) {
            return Err(format!("sends rows {rows} of {n}, of which {held} are up to date"));
        }
        self.order.sees(n, Some(rows))?;
        Self::next_band(&mut self.sent, n, band, band.from, band.to)?;
        let before = self.delivered[n.0].filter(|_| !band.begins());
        self.delivered[n.0] = Some(before.map_or(rows, |before| before.union(rows)));
        Ok(())
    }
}
