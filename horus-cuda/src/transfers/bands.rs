//! Copies in bands: rows of a block that are transferred while kernels use others.
//!
//! An upload in bands is a [`Flight`]: the stream of uploads writes to a block that was allocated
//! in its own order, and the device's stream waits for it when the upload arrives, or the block is
//! released.

use std::ops::Range;
use std::sync::Arc;

use horus_core::device::check::part;
use horus_core::device::{DeviceMemory as _, Download, Landing, Lane, Memory, Sending, Ticket};
use horus_core::error::DeviceError;
use horus_core::host::Piece as HostPiece;
use horus_core::host::buffer::{HostBuffer, Pool};

use super::later::{self, Piece, Room};
use super::{BESIDE, Flying, Transfers, pinned, stream};
use crate::driver::{Event, grouped};
use crate::memory::{Block, CudaMemory, Flight};

impl Transfers {
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
        let there = Event::new(false)?;
        there.record(&self.core.stream)?;
        up.after(&there)?;
        Ok(memory)
    }

    /// Begins to copy pieces of a buffer to a block of [`Transfers::allocate`].
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
        self.let_go()?;
        target.touch();
        let up = stream(&self.up)?;
        let flight = Flight {
            ticket,
            blocks: vec![target.block()],
            writes: vec![target.address()],
            tables: Vec::new(),
            done: Event::new(false)?,
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
        let begun = self.core.clock.note(Lane::Upload, up, copies);
        let held = pinned.map(|_| source.clone());
        // Work begun before a failure also reads and writes.
        if let Err(e) = flight.done.record(up).and_then(|()| held.map_or(Ok(()), |share| self.share(share))) {
            // It is unknown when they are free, so they are leaked.
            std::mem::forget((flight, source.clone()));
            return Err(e);
        }
        self.core.flights().push(flight);
        begun?;
        Ok(Ticket(ticket))
    }

    /// Holds a buffer until the copies so far have read it.
    fn share(&self, share: HostBuffer) -> Result<(), DeviceError> {
        let done = Event::new(false)?;
        done.record(stream(&self.up)?)?;
        self.given.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((done, share));
        Ok(())
    }

    /// See [`horus_core::device::Staging::begin_download`].
    pub(crate) fn begin_download(
        self: &Arc<Transfers>,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: Sending,
    ) -> Result<Box<dyn Download>, DeviceError> {
        self.core.context.bind()?;
        let bytes = range.len();
        let loan = if bytes > 0 && when == Sending::AtOnce { self.source.take(bytes) } else { None };
        let way = match loan {
            Some(loan) => {
                let to = loan.address() as u64;
                let host = Some(pool.try_adopt(Box::new(loan), bytes)?);
                let done = Arc::new(Event::to_sleep_for()?);
                done.record(stream(&self.down)?)?;
                Way::Pinned { to, flying: Flying { host, done, transfers: Arc::clone(self) } }
            }
            None => Way::Later { source: None, pieces: Vec::new(), pool: Arc::clone(pool) },
        };
        Ok(Box::new(Bands { range, way, transfers: Arc::clone(self) }))
    }
}

/// A copy to the host that is begun piece by piece.
struct Bands {
    /// The copied range of the block.
    range: Range<usize>,
    way: Way,
    transfers: Arc<Transfers>,
}

enum Way {
    /// Into pinned memory at this address.
    Pinned { to: u64, flying: Flying },
    /// On demand: there is no pinned memory for it, or it has another target.
    Later { source: Option<Arc<Block>>, pieces: Vec<Piece>, pool: Arc<Pool> },
}

impl Download for Bands {
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
            Way::Later { source: block, pieces, .. } => {
                *block = Some(source.block());
                let first = Piece::now(&self.transfers, 0..0)?.behind(pieces.len());
                pieces.extend(bytes.iter().map(|b| first.with(b.start - base..b.end - base)));
                return Ok(());
            }
            Way::Pinned { to, flying } => (*to, flying),
        };
        let down = stream(&self.transfers.down)?;
        let (ready, done) = (Event::new(false)?, Event::to_sleep_for()?);
        ready.record(&core.stream)?;
        down.after(&ready)?;
        let runs = grouped(bytes.iter().map(|b| (b.start - base, b.start, b.len())));
        let to = to as *mut std::ffi::c_void;
        // SAFETY: the bytes are inside both, as checked; both are held until `done` has passed.
        let copies = || runs.iter().try_for_each(|r| unsafe { r.download(source.address(), to, down.0) });
        let copied = core.clock.note(Lane::Download, down, copies);
        // Also behind a copy that the driver refused.
        if let Err(e) = done.record(down) {
            // It is unknown when they are free, so they are leaked.
            std::mem::forget((flying.host.take(), source.block()));
            return Err(e);
        }
        flying.done = Arc::new(done);
        core.reading(source.block(), Some(bytes.to_vec()), Arc::clone(&flying.done));
        copied
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Landing>, DeviceError> {
        match self.way {
            Way::Pinned { flying, .. } => Ok(Box::new(flying)),
            Way::Later { source: None, pool, .. } => Ok(Box::new(pool.try_allocate(self.range.len())?)),
            Way::Later { source: Some(block), mut pieces, pool } => {
                // Bands of every plane and of every strip come one after the other.
                pieces.sort_by_key(Piece::start);
                let from = block.address() + self.range.start as u64;
                later::landing(&self.transfers, block, from, self.range.len(), Room::Of(pool), pieces)
            }
        }
    }
}
