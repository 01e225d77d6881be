//! Copies in bands: rows of a block are transferred while kernels use others.
//!
//! An upload in bands is a [`GpuExchange`]: the stream of uploads writes to a block that was allocated in its own
//! order. The device's stream waits for it when the upload arrives, or when the block is released.

use std::ops::Range;
use std::sync::Arc;

use horus_core::device::check::part;
use horus_core::device::{DeviceMemory as _, DeviceQueue, Download, DownloadStart, Memory, PendingDownload, Ticket};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy as HostPiece;
use horus_core::host::buffer::{HostBuffer, Pool};

use super::on_demand::{self, DownloadTarget, ReadyBytes};
use super::{BESIDE, GpuTransfers, PinnedDownload, pinned, stream};
use crate::driver::{CudaEvent, grouped};
use crate::memory::{CudaMemory, GpuBlock, GpuExchange};

impl GpuTransfers {
    /// Memory that the stream of uploads may fill without waiting for kernels, if there is any.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<CudaMemory, DeviceError> {
        if bytes < BESIDE {
            return self.core.allocate(bytes);
        }
        self.core.context.bind()?;
        let up = stream(&self.up)?;
        if let Some(memory) = self.core.allocate_in(bytes, up) {
            return Ok(memory);
        }
        let memory = self.core.allocate(bytes)?;
        let there = CudaEvent::new(false)?;
        there.record(&self.core.stream)?;
        up.after(&there)?;
        Ok(memory)
    }

    /// Begins to copy pieces of a buffer to a block of [`GpuTransfers::allocate`].
    pub(crate) fn begin(
        &self,
        ticket: u64,
        source: &HostBuffer,
        target: &mut CudaMemory,
        pieces: &[HostPiece],
    ) -> Result<Ticket, DeviceError> {
        if let Some(p) = pieces.iter().find(|p| !p.fits(source.len(), target.len())) {
            return Err(DeviceError::Argument(format!("a copy reaches beyond its buffers: {p:?}")));
        }
        let mut runs = pieces.iter().flat_map(|p| p.runs());
        if target.len() < BESIDE {
            runs.try_for_each(|(from, to, n)| self.write(&source.bytes()[from..from + n], target, to))?;
            return Ok(Ticket::OVER);
        }
        self.release_uploaded()?;
        target.touch();
        let up = stream(&self.up)?;
        let flight = GpuExchange {
            ticket,
            blocks: vec![target.block()],
            writes: vec![target.address()],
            tables: Vec::new(),
            done: CudaEvent::new(false)?,
        };
        let pinned = pinned(source);
        let copies = || match pinned {
            // SAFETY: the bytes are inside both, as checked. The buffer is pinned, and held until
            // the stream is past the copies; the block until the device's stream waits for the
            // flight.
            Some(from) => grouped(runs).iter().try_for_each(|r| unsafe { r.upload(from, target.address(), up.0) }),
            // SAFETY: as above; the bytes have been read when this returns.
            None => unsafe {
                self.uploads().upload(&self.workers, up, source.bytes(), target.address(), runs.collect())
            },
        };
        let begun = self.core.clock.note(DeviceQueue::Upload, up, copies);
        let held = pinned.map(|_| source.clone());
        // Work begun before a failure also reads and writes.
        if let Err(e) = flight.done.record(up).and_then(|()| held.map_or(Ok(()), |share| self.share(share))) {
            // It is unknown when they are free, so they are leaked.
            std::mem::forget((flight, source.clone()));
            return Err(e);
        }
        self.core.lock_exchanges().push(flight);
        begun?;
        Ok(Ticket(ticket))
    }

    /// Keeps a buffer alive until the copies so far have read it.
    fn share(&self, share: HostBuffer) -> Result<(), DeviceError> {
        let done = CudaEvent::new(false)?;
        done.record(stream(&self.up)?)?;
        self.given.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((done, share));
        Ok(())
    }

    /// See [`horus_core::device::Staging::begin_download`].
    pub(crate) fn begin_download(
        self: &Arc<GpuTransfers>,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: DownloadStart,
    ) -> Result<Box<dyn Download>, DeviceError> {
        self.core.context.bind()?;
        let bytes = range.len();
        let loan = if bytes > 0 && when == DownloadStart::AtOnce { self.source.take(bytes) } else { None };
        let way = match loan {
            Some(loan) => {
                let to = loan.address() as u64;
                let host = Some(pool.try_adopt(Box::new(loan), bytes)?);
                let done = Arc::new(CudaEvent::to_sleep_for()?);
                done.record(stream(&self.down)?)?;
                BandTarget::Pinned { to, flying: PinnedDownload { host, done, transfers: Arc::clone(self) } }
            }
            None => BandTarget::OnDemand { source: None, pieces: Vec::new(), pool: Arc::clone(pool) },
        };
        Ok(Box::new(BandDownload { range, way, transfers: Arc::clone(self) }))
    }
}

/// A copy to the host that is enqueued piece by piece.
struct BandDownload {
    /// The copied range of the block.
    range: Range<usize>,
    way: BandTarget,
    transfers: Arc<GpuTransfers>,
}

enum BandTarget {
    /// Into pinned memory at this address.
    Pinned { to: u64, flying: PinnedDownload },
    /// On demand: no pinned memory was available, or it has another target.
    OnDemand { source: Option<Arc<GpuBlock>>, pieces: Vec<ReadyBytes>, pool: Arc<Pool> },
}

impl Download for BandDownload {
    fn add(&mut self, source: &Memory, bytes: &[Range<usize>]) -> Result<(), DeviceError> {
        let core = &self.transfers.core;
        core.context.bind()?;
        let source = match source {
            Memory::Device(m) => m.as_any().downcast_ref::<CudaMemory>().filter(|m| m.belongs_to(core)),
            Memory::Host(_) => None,
        };
        let source = source.ok_or_else(|| DeviceError::Argument("memory of another device was given".into()))?;
        let Range { start: base, end } = self.range;
        for bytes in bytes {
            part(bytes.start, bytes.len(), end.min(source.len()))?;
            if bytes.start < base {
                return Err(DeviceError::Argument("bytes outside of what a download is of".into()));
            }
        }
        let (to, flying) = match &mut self.way {
            BandTarget::OnDemand { source: block, pieces, .. } => {
                *block = Some(source.block());
                let first = ReadyBytes::now(&self.transfers, 0..0)?.behind(pieces.len());
                pieces.extend(bytes.iter().map(|b| first.with(b.start - base..b.end - base)));
                return Ok(());
            }
            BandTarget::Pinned { to, flying } => (*to, flying),
        };
        let down = stream(&self.transfers.down)?;
        let (ready, done) = (CudaEvent::new(false)?, CudaEvent::to_sleep_for()?);
        ready.record(&core.stream)?;
        down.after(&ready)?;
        let runs = grouped(bytes.iter().map(|b| (b.start - base, b.start, b.len())));
        let to = to as *mut std::ffi::c_void;
        // SAFETY: the bytes are inside both, as checked; both are held until `done` has passed.
        let copies = || runs.iter().try_for_each(|r| unsafe { r.download(source.address(), to, down.0) });
        let copied = core.clock.note(DeviceQueue::Download, down, copies);
        // Also behind a copy that the driver rejected.
        if let Err(e) = done.record(down) {
            // It is unknown when they are free, so they are leaked.
            std::mem::forget((flying.host.take(), source.block()));
            return Err(e);
        }
        flying.done = Arc::new(done);
        core.register_download(source.block(), Some(bytes.to_vec()), Arc::clone(&flying.done));
        copied
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn PendingDownload>, DeviceError> {
        match self.way {
            BandTarget::Pinned { flying, .. } => Ok(Box::new(flying)),
            BandTarget::OnDemand { source: None, pool, .. } => Ok(Box::new(pool.try_allocate(self.range.len())?)),
            BandTarget::OnDemand { source: Some(block), mut pieces, pool } => {
                // Bands of every plane and of every strip follow each other.
                pieces.sort_by_key(ReadyBytes::start);
                let from = block.address() + self.range.start as u64;
                on_demand::download_on_demand(
                    &self.transfers,
                    block,
                    from,
                    self.range.len(),
                    DownloadTarget::Pool(pool),
                    pieces,
                )
            }
        }
    }
}
