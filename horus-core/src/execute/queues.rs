//! Copies between host and device, in bands, concurrent with launches. They are started here, and steps wait for them.

use std::collections::VecDeque;

use super::deliver::Delivered;
use super::portions::{Portion, PortionOrigin};
use super::routes::{between, some_rows};
use super::{PlanExecution, RankImage, missing};
use crate::device::{Download, Geometry, Ticket};
use crate::error::{Error, Result};
use crate::host::StridedCopy;
use crate::ir::graph::NodeId;
use crate::plan::Band;
use crate::plan::movement::with_room;
use crate::plan::state::{Halo, ImageState, Placement, Residency};
use crate::shape::Window;

/// Uploads in progress with their steps, in the order of their starts.
#[derive(Default)]
pub(super) struct StartedUploads(VecDeque<(usize, NodeId, Ticket)>);

/// Bytes of a band of a buffer: one range if possible, otherwise one for each plane.
fn bytes(geometry: Geometry, band: Band) -> Vec<std::ops::Range<usize>> {
    let rows = band.of(geometry.window);
    if band.is_whole() {
        return std::iter::once(0..geometry.bytes()).collect();
    }
    (0..geometry.shape.planes()).map(|c| geometry.row_bytes(c, rows)).collect()
}

impl<'a> PlanExecution<'a> {
    /// Starts to copy a band of the host's buffer to the device.
    pub(super) fn upload(&mut self, step: usize, n: NodeId, band: Band) -> Result<()> {
        let label = self.label("upload", n);
        let image = self.images.get_mut(n)?;
        let (geometry, before) = (image.geometry, image.device.take());
        let Some(host) = image.host.clone() else {
            image.device = before;
            return Ok(());
        };
        let mut memory = match before {
            Some(m) if !band.begins() => m,
            _ => {
                drop(before);
                let allocated = self.images.with_memory(|| self.cx.device.staging().allocate_for_upload(host.len()));
                allocated.map_err(self.failed(label))?
            }
        };
        let pieces: Vec<StridedCopy> =
            bytes(geometry, band).into_iter().map(|b| StridedCopy::run(b.start, b.start, b.len())).collect();
        let ticket = self.cx.device.staging().begin_upload(&host, &mut memory, &pieces);
        drop(host);
        if let Some(image) = self.images.find_mut(n) {
            image.device = Some(memory);
        }
        self.uploads.0.push_back((step, n, ticket.map_err(self.failed(label))?));
        Ok(())
    }

    /// Starts to copy a band of this rank's strip, and surrounding rows, to the device.
    pub(super) fn upload_strip(&mut self, step: usize, n: NodeId, halo: Halo, band: Band) -> Result<()> {
        let label = self.label("upload", n);
        if band.begins() {
            let image = self.images.get(n)?;
            let (Some(pixels), given) = (image.host().cloned(), image.geometry) else { return Err(missing(n)) };
            let height = given.shape.height;
            let geometry = Geometry { window: with_room(self.strip(self.rank(), height), halo, height), ..given };
            let allocated = self.images.with_memory(|| self.cx.device.staging().allocate_for_upload(geometry.bytes()));
            let memory = allocated.map_err(self.failed(label))?;
            let state = ImageState { residency: Residency::Device, placement: Placement::Strips(halo) };
            self.images.put(n, RankImage { geometry, state, host: None, device: Some(memory) });
            self.giving.insert(n, (pixels, given));
        }
        let (pixels, given) = self.giving.remove(&n).ok_or_else(|| missing(n))?;
        let image = self.images.get_mut(n)?;
        let geometry = image.geometry;
        let (from, to) = some_rows(given, geometry, band.of(geometry.window));
        let memory = image.device.as_mut().ok_or_else(|| missing(n))?;
        let ticket = self.cx.device.staging().begin_upload(&pixels, memory, &between(&from, &to));
        self.uploads.0.push_back((step, n, ticket.map_err(self.failed(label))?));
        if !band.ends() {
            self.giving.insert(n, (pixels, given));
        }
        Ok(())
    }

    /// Waits for steps of other queues, so that later calls see their effects. Only uploads need this, because copies
    /// to the host are ordered after all launches before them.
    pub(super) fn wait_for(&mut self, steps: &[usize]) -> Result<()> {
        let Some(last) = steps.iter().max() else { return Ok(()) };
        while self.uploads.0.front().is_some_and(|(step, ..)| step <= last) {
            self.arrive()?;
        }
        Ok(())
    }

    /// Waits for all uploads.
    pub(super) fn finish_uploads(&mut self) -> Result<()> {
        while !self.uploads.0.is_empty() {
            self.arrive()?;
        }
        Ok(())
    }

    /// Waits for uploads in progress after a failure of a device, and drops incomplete uploads. Images whose strips
    /// were to be uploaded are restored on the host.
    pub(super) fn settle_uploads(&mut self) {
        let under_way: Vec<NodeId> = self.uploads.0.iter().map(|(_, n, _)| *n).collect();
        let arrived = self.finish_uploads().is_ok();
        for n in under_way.into_iter().filter(|_| !arrived) {
            if let Some(image) = self.images.find_mut(n) {
                image.device = None;
            }
        }
        for (n, (pixels, geometry)) in std::mem::take(&mut self.giving) {
            let state = ImageState { residency: Residency::Host, placement: Placement::Replicated };
            self.images.put(n, RankImage { geometry, state, host: Some(pixels), device: None });
        }
    }

    fn arrive(&mut self) -> Result<()> {
        let Some((_, n, ticket)) = self.uploads.0.pop_front() else { return Ok(()) };
        let Some(memory) = self.images.find_mut(n).and_then(|image| image.device.as_mut()) else {
            return Err(missing(n));
        };
        let arrived = self.cx.device.staging().wait_for_upload(ticket, memory);
        arrived.map_err(self.failed(self.label("upload", n)))
    }

    /// Bytes of a result that this device delivers: ranges in memory of geometry `held`, and offsets in the whole
    /// result.
    pub(super) fn handed_over(&self, n: NodeId, held: Geometry) -> Vec<(std::ops::Range<usize>, usize)> {
        let rows = self.plan.hands_over(n, self.rank());
        let whole = Geometry { window: Window::whole(held.shape.height), ..held };
        if rows == held.window && rows == whole.window && held.bytes() > 0 {
            return vec![(0..held.bytes(), 0)];
        }
        let planes = 0..held.shape.planes();
        let bytes = planes.map(|c| (held.row_bytes(c, rows), whole.row_bytes(c, rows).start));
        bytes.filter(|(bytes, _)| !bytes.is_empty()).collect()
    }

    /// Sends a band of this device's portion.
    fn send_portions(&mut self, n: NodeId, band: Band) -> Result<()> {
        let label = self.label("download", n);
        let (device, pool, sending) = (self.cx.device, self.cx.pool, self.cx.sending);
        let staging = device.staging();
        let Some(RankImage { geometry, device: Some(memory), .. }) = self.images.find(n) else {
            return Err(missing(n));
        };
        let failed = |source| Error::Device { op: label(), device: device.names().name, source };
        let rows = self.plan.hands_over(n, self.rank());
        let mut portions = Vec::new();
        for (number, (bytes, at)) in self.handed_over(n, *geometry).into_iter().enumerate() {
            let len = bytes.len();
            let landing = if band.is_whole() {
                let ordered = self.images.with_memory(|| staging.start_download(memory, bytes.clone(), pool, sending));
                ordered.map_err(failed)?
            } else {
                let mut download = match self.leaving.remove(&(n, number)) {
                    Some(begun) => begun,
                    None => {
                        let begun = self.images.with_memory(|| staging.begin_download(bytes.clone(), pool, sending));
                        begun.map_err(failed)?
                    }
                };
                // All planes of an image that is whole on one device are one portion.
                let planes = if len == geometry.bytes() { 0..geometry.shape.planes() } else { number..number + 1 };
                let pieces = planes.map(|c| geometry.row_bytes(c, band.of(rows))).filter(|bytes| !bytes.is_empty());
                download.add(memory, &pieces.collect::<Vec<_>>()).map_err(failed)?;
                if !band.ends() {
                    self.leaving.insert((n, number), download);
                    continue;
                }
                download.finish().map_err(failed)?
            };
            portions.push(Portion { at, bytes: len, from: PortionOrigin::InFlight(landing) });
        }
        if band.ends() {
            self.portions.insert(n, portions);
        }
        Ok(())
    }

    /// Sends a band of a result to its requester.
    pub(super) fn send(&mut self, n: NodeId, band: Band) -> Result<()> {
        let label = self.label("download", n);
        let (device, staging, pool) = (self.cx.device, self.cx.device.staging(), self.cx.pool);
        if self.plan.setting.has_shared_host() {
            return self.send_portions(n, band);
        }
        if self.cx.comm.size() > 1 {
            if self.rank() > 0 {
                return Ok(());
            }
            let arrived = self.gathered.get_mut(&n).map_or(Ok(()), |gathered| gathered.arrive(device));
            arrived.map_err(self.failed(label))?;
        }
        let (memory, bytes) = match (self.gathered.get(&n), self.images.find(n)) {
            (Some(gathered), _) => (&gathered.memory, self.bytes_of_strips(gathered.geometry, band)),
            (None, Some(RankImage { geometry, device: Some(memory), .. })) => (memory, bytes(*geometry, band)),
            (None, _) => return Err(missing(n)),
        };
        let failed = |source| Error::Device { op: label(), device: device.names().name, source };
        let total = memory.len();
        if band.is_whole() {
            let ordered = self.images.with_memory(|| staging.start_download(memory, 0..total, pool, self.cx.sending));
            self.delivered.insert(n, Delivered::InFlight(ordered.map_err(failed)?));
            self.gathered.remove(&n);
            return Ok(());
        }
        let mut download = match self.leaving.remove(&(n, 0)) {
            Some(begun) => begun,
            None => {
                let begun = self.images.with_memory(|| staging.begin_download(0..total, pool, self.cx.sending));
                begun.map_err(failed)?
            }
        };
        let bytes: Vec<_> = bytes.into_iter().filter(|bytes| !bytes.is_empty()).collect();
        download.add(memory, &bytes).map_err(failed)?;
        if band.ends() {
            self.gathered.remove(&n);
            self.delivered.insert(n, Delivered::InFlight(download.finish().map_err(failed)?));
        } else {
            self.leaving.insert((n, 0), download);
        }
        Ok(())
    }
}

/// Results whose first bands were sent, by image and index of the portion.
pub(super) type PartialDownloads<'a> = std::collections::HashMap<(NodeId, usize), Box<dyn Download + 'a>>;
