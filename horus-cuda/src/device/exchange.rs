//! Copies of pieces, and exchanges with other ranks' GPUs in a separate stream while kernels run.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use cudarc::driver::sys;
use horus_core::comm::Communicator;
use horus_core::device::check::part as inside;
use horus_core::device::{
    BlockCopy, DeviceMemory as _, DeviceQueue, Exchange, Fabric, Geometry, LaunchInput, Memory, Message, Ticket,
};
use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::settings::{FABRIC, FabricChoice};
use horus_core::shape::{Shape, Window};

use super::{CudaDevice, TableKey};
use crate::codegen::Generated;
use crate::driver::{CudaEvent, CudaStream, KernelFunction, check};
use crate::fabric::{self, Clique};
use crate::memory::{CudaMemory, GpuExchange};
use crate::nccl::RankMessage;
use crate::pieces;

/// Up to this many contiguous copies are made one by one: the driver's copies are the fastest.
const FEW: usize = 4;

/// The GPUs of other ranks, and the stream of exchanges with them, which overlap kernels.
#[derive(Debug)]
pub(super) struct PeerGpus {
    pub(super) group: Arc<Clique>,
    pub(super) stream: CudaStream,
}

/// A copy that is ready to be enqueued.
enum PreparedCopy {
    /// Source, target and bytes of each run.
    Runs(Vec<(u64, u64, usize)>),
    /// A kernel with its parameters and the table that it reads.
    Kernel { program: Generated, function: Arc<KernelFunction>, params: Vec<u8>, table: Option<Arc<CudaMemory>> },
}

impl CudaDevice {
    pub(super) fn peers(&self) -> Option<Arc<PeerGpus>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks a copy and uploads its kernel's table, in the order of the device's stream.
    fn prepare(&self, source: &Memory, target: &Memory, pieces: &[StridedCopy]) -> Result<PreparedCopy, DeviceError> {
        let (from, to) = (self.own(source)?, self.own(target)?);
        let pieces: Vec<StridedCopy> = pieces.iter().copied().filter(|p| p.bytes > 0 && p.rows > 0).collect();
        if let Some(p) = pieces.iter().find(|p| !p.fits(from.len(), to.len())) {
            return Err(DeviceError::Argument(format!("a copy reaches beyond its buffers: {p:?}")));
        }
        let whole = |p: &StridedCopy| p.rows == 1 || (p.bytes == p.from_stride && p.bytes == p.to_stride);
        if pieces.len() <= FEW && pieces.iter().all(whole) {
            let run = |p: &StridedCopy| (from.address() + p.from as u64, to.address() + p.to as u64, p.bytes * p.rows);
            return Ok(PreparedCopy::Runs(pieces.iter().map(run).collect()));
        }
        let mut program = pieces::program(&pieces);
        let function = self.function(&program, "copies")?;
        program.source = String::new();
        let table =
            self.lock().tables.get((TableKey::of(&program.table), &program.table), &self.core, &self.transfers)?;
        let geometry = Geometry { shape: Shape::new(0, 0, 0), dtype: DType::U8, window: Window::new(0, 0) };
        let params =
            self.arguments(&program, &[LaunchInput { memory: source, geometry }], to, &[], table.as_deref(), None)?;
        Ok(PreparedCopy::Kernel { program, function, params, table })
    }

    /// Enqueues a copy in a stream.
    ///
    /// # Safety
    /// The blocks of the copy must live until the stream has passed it, and nothing else may touch
    /// its target meanwhile.
    unsafe fn put(&self, copy: &PreparedCopy, stream: &CudaStream) -> Result<(), DeviceError> {
        match copy {
            PreparedCopy::Runs(runs) => runs.iter().try_for_each(|&(from, to, n)| {
                // SAFETY: inside their blocks, as `prepare` checked; the rest is the caller's
                // promise.
                let code = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, n, stream.0) };
                check(code, || format!("copying {n} bytes on the GPU"))
            }),
            PreparedCopy::Kernel { program, function, params, .. } => {
                // SAFETY: the parameters are those of this kernel; the pieces lie inside both
                // blocks, as checked.
                unsafe { function.launch(self.work(program), stream, params, || "copies".into()) }
            }
        }
    }

    /// See [`horus_core::device::Device::copy`].
    pub(super) fn copy_pieces(
        &self,
        source: &Memory,
        target: &Memory,
        pieces: &[StridedCopy],
    ) -> Result<(), DeviceError> {
        self.core.context.bind()?;
        let copy = self.prepare(source, target, pieces)?;
        self.core.order_write(self.own(target)?)?;
        // SAFETY: blocks and tables are freed in the order of this stream, and the target is
        // borrowed exclusively.
        let put = || unsafe { self.put(&copy, &self.core.stream) };
        self.core.clock.note(DeviceQueue::Compute, &self.core.stream, put)
    }
}

impl Fabric for CudaDevice {
    fn address(&self) -> u64 {
        self.address
    }

    fn seconds_to_connect(&self) -> f64 {
        /// To load NCCL, join two GPUs of a host and try an exchange: two H200, 2026-11-30.
        const SECONDS: f64 = 0.65;
        SECONDS
    }

    fn connect(&self, comm: &dyn Communicator, addresses: &[u64]) -> Result<bool, DeviceError> {
        let free = self.free_memory()?.0;
        let joined = fabric::connect(&self.core, comm, self.address, addresses)?;
        if self.core.limit().is_none() {
            let taken = free.saturating_sub(self.free_memory()?.0);
            self.capacity.store(self.capacity.load(Ordering::Relaxed).saturating_sub(taken), Ordering::Relaxed);
        }
        let others = match &joined {
            Ok(group) => Some(Arc::new(PeerGpus { group: Arc::clone(group), stream: CudaStream::urgent()? })),
            Err(_) => None,
        };
        *self.peers.lock().unwrap_or_else(PoisonError::into_inner) = others;
        match joined {
            Ok(_) => log::info!("rank {}: GPUs exchange memory with NCCL", comm.rank()),
            Err(why) if self.choice == FabricChoice::Nccl => {
                return Err(DeviceError::Driver(format!("{} requests NCCL, which is not usable: {why}", FABRIC.name)));
            }
            Err(why) => log::info!("rank {}: GPUs exchange memory through the host: {why}", comm.rank()),
        }
        Ok(self.peers().is_some())
    }

    fn disconnect(&self) {
        let others = self.peers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(others) = others {
            others.group.abandon();
        }
    }

    fn exchange(
        &self,
        _comm: &dyn Communicator,
        reads: &[&Memory],
        writes: &mut [&mut Memory],
        work: &Exchange,
    ) -> Result<Ticket, DeviceError> {
        let Some(others) = self.peers() else {
            return Err(DeviceError::Argument(format!("{} is not connected to other GPUs", self.about.name)));
        };
        let Exchange { before, sends, receives, after } = work;
        let ticket = self.exchanges.fetch_add(1, Ordering::Relaxed);
        if before.is_empty() && sends.is_empty() && receives.is_empty() && after.is_empty() {
            return Ok(Ticket(ticket));
        }
        self.core.context.bind()?;
        let blocks: Vec<&Memory> = reads.iter().copied().chain(writes.iter().map(|w| &**w)).collect();
        let block = |number: usize, is_written: bool| {
            let found = blocks.get(number).copied().filter(|_| !is_written || number >= reads.len());
            found.ok_or_else(|| DeviceError::Argument(format!("an exchange has no such block: {number}")))
        };
        let part = |m: &Message, is_received: bool| {
            let block = block(m.block, is_received)?;
            inside(m.at, m.bytes, block.len())?;
            Ok(RankMessage { rank: m.rank, address: self.own(block)?.address() + m.at as u64, bytes: m.bytes })
        };
        let sends = sends.iter().map(|m| part(m, false)).collect::<Result<Vec<RankMessage>, DeviceError>>()?;
        let receives = receives.iter().map(|m| part(m, true)).collect::<Result<Vec<RankMessage>, DeviceError>>()?;
        // Tables are uploaded in the order of the device's stream, before the point that the
        // exchange waits for.
        let prepare = |c: &BlockCopy| self.prepare(block(c.from, false)?, block(c.to, true)?, &c.pieces);
        let before = before.iter().map(prepare).collect::<Result<Vec<PreparedCopy>, DeviceError>>()?;
        let after = after.iter().map(prepare).collect::<Result<Vec<PreparedCopy>, DeviceError>>()?;
        let held = blocks.iter().map(|m| Ok(self.own(m)?.block())).collect::<Result<Vec<_>, DeviceError>>()?;
        let tables = before.iter().chain(&after).filter_map(|copy| match copy {
            PreparedCopy::Kernel { table, .. } => table.clone(),
            PreparedCopy::Runs(_) => None,
        });
        let tables: Vec<Arc<CudaMemory>> = tables.collect();
        // Copies to the host of bytes that the exchange writes come first, in the device's stream, for which the
        // exchange waits. Copies of other bytes continue.
        let written = |number: usize| -> Vec<std::ops::Range<usize>> {
            let received = work.receives.iter().filter(|m| m.block == number).map(|m| m.at..m.at + m.bytes);
            let copies = work.before.iter().chain(&work.after).filter(|c| c.to == number).flat_map(|c| &c.pieces);
            let some = copies.filter(|p| p.bytes > 0 && p.rows > 0);
            received.chain(some.map(|p| p.to..p.to + (p.rows - 1) * p.to_stride + p.bytes)).collect()
        };
        let settle =
            |(i, w): (usize, &&mut Memory)| self.core.order_write_of(self.own(w)?, Some(&written(reads.len() + i)));
        writes.iter().enumerate().try_for_each(settle)?;
        let (ready, done) = (CudaEvent::new(false)?, CudaEvent::new(false)?);
        ready.record(&self.core.stream)?;
        others.stream.after(&ready)?;
        let writes = writes.iter().map(|w| Ok(self.own(w)?.address())).collect::<Result<Vec<u64>, DeviceError>>()?;
        let flight = GpuExchange { ticket, blocks: held, writes, tables, done };
        // SAFETY: the flight owns blocks and tables until the device's stream waits for `done`;
        // until then the caller touches neither sources nor targets.
        let begin = || unsafe {
            before
                .iter()
                .try_for_each(|c| self.put(c, &others.stream))
                .and_then(|()| match sends.is_empty() && receives.is_empty() {
                    true => Ok(()),
                    false => others.group.exchange(&self.core, &others.stream, &sends, &receives),
                })
                .and_then(|()| after.iter().try_for_each(|c| self.put(c, &others.stream)))
        };
        let begun = self.core.clock.note(DeviceQueue::Network, &others.stream, begin);
        // Work begun before a failure also reads and writes the blocks.
        if let Err(e) = flight.done.record(&others.stream) {
            // It is unknown when they are free, so they are leaked.
            std::mem::forget(flight);
            return Err(e);
        }
        self.core.lock_exchanges().push(flight);
        begun?;
        Ok(Ticket(ticket))
    }

    fn wait_for_exchange(&self, ticket: Ticket, writes: &mut [&mut Memory]) -> Result<(), DeviceError> {
        let mut flights = self.core.lock_exchanges();
        let Some(i) = flights.iter().position(|f| f.ticket == ticket.0) else { return Ok(()) };
        let given = writes.iter().map(|w| Ok(self.own(w)?.address())).collect::<Result<Vec<u64>, DeviceError>>()?;
        if given != flights[i].writes {
            return Err(DeviceError::Argument(
                "an exchange was finished with other blocks than it was started with".into(),
            ));
        }
        self.core.context.bind()?;
        self.core.stream.after(&flights[i].done)?;
        let GpuExchange { tables, .. } = flights.swap_remove(i);
        // Dropping the last owner of a table locks the flights, so they are unlocked first.
        drop(flights);
        drop(tables);
        Ok(())
    }
}
