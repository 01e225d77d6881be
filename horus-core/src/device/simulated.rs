//! A device with memory of its own, simulated on a device that computes on host memory.
//!
//! It counts calls, and its memory is really separate: fresh memory is poisoned, so that a missing upload or a stale
//! copy shows as wrong pixels. This is how the residency machine is tested without a GPU.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::comm::{CommError, Communicator};
use crate::device::check::part;
use crate::device::{
    BlockCopy, Device, DeviceMemory, Exchange, Geometry, Input, Launch, Memory, MemoryKind, Prepared, Ticket, distinct,
};
use crate::error::{DeviceError, MemoryBound};
use crate::host::Piece;
use crate::host::workers::Workers;
use crate::ir::kernel::Kernel;
use crate::shape::Window;

/// Every byte of fresh memory: NaN in floats, the largest value in unsigned integers.
const POISON: u8 = 0xff;

/// Counts of calls of a [`Simulated`] device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Whole or partial copies from the host.
    pub writes: usize,
    /// Whole or partial copies to the host.
    pub reads: usize,
    /// Kernels.
    pub launches: usize,
    /// Exchanges with the devices of other ranks.
    pub exchanges: usize,
    /// Bytes allocated now.
    pub bytes: usize,
    /// Most bytes allocated at any time.
    pub peak: usize,
}

#[derive(Debug, Default)]
struct Counters {
    writes: AtomicUsize,
    reads: AtomicUsize,
    launches: AtomicUsize,
    exchanges: AtomicUsize,
    bytes: AtomicUsize,
    peak: AtomicUsize,
}

/// Bytes for a place in a written block.
type Arrival = (usize, usize, Vec<u8>);

/// What an exchange in progress will deliver. It has copied what it reads and sends, so the blocks may be dropped.
#[derive(Debug, Default)]
struct UnderWay {
    /// The blocks it was started with.
    writes: Vec<Arc<()>>,
    arrivals: Vec<Arrival>,
    /// Copies between written blocks, by their numbers among those.
    copies: Vec<BlockCopy>,
}

/// A device with separate memory of a given size, computing on `inner`.
#[derive(Debug)]
pub struct Simulated<D> {
    inner: D,
    capacity: usize,
    address: u64,
    /// Exchanges in progress, by ticket.
    arriving: Mutex<HashMap<u64, UnderWay>>,
    /// Launches that were prepared, if no others are allowed.
    announced: Option<Mutex<Vec<Announced>>>,
    counters: Arc<Counters>,
}

/// A launch without its memory: kernel, inputs, output, rows.
type Announced = (Kernel, Vec<Geometry>, Geometry, Window);

#[derive(Debug)]
struct SeparateMemory {
    memory: Memory,
    /// This block and no other, for as long as somebody remembers it.
    identity: Arc<()>,
    counters: Arc<Counters>,
}

impl DeviceMemory for SeparateMemory {
    fn len(&self) -> usize {
        self.memory.len()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for SeparateMemory {
    fn drop(&mut self) {
        self.counters.bytes.fetch_sub(self.memory.len(), Ordering::Relaxed);
    }
}

/// Reads the counts of a [`Simulated`] device after it was given to a session.
#[derive(Clone, Debug)]
pub struct LogHandle(Arc<Counters>);

impl LogHandle {
    /// The counts so far.
    pub fn get(&self) -> Log {
        let c = &self.0;
        let get = |a: &AtomicUsize| a.load(Ordering::Relaxed);
        Log {
            writes: get(&c.writes),
            reads: get(&c.reads),
            launches: get(&c.launches),
            exchanges: get(&c.exchanges),
            bytes: get(&c.bytes),
            peak: get(&c.peak),
        }
    }
}

impl<D: Device> Simulated<D> {
    /// A device of `capacity` bytes.
    pub fn new(inner: D, capacity: usize) -> Simulated<D> {
        let (arriving, counters) = (Mutex::default(), Arc::default());
        Simulated { inner, capacity, address: 0, arriving, announced: None, counters }
    }

    /// Makes launches that were not prepared fail, from the first [`Device::prepare`] on.
    #[must_use]
    pub fn demanding(mut self) -> Simulated<D> {
        self.announced = Some(Mutex::default());
        self
    }

    /// Enables peer-to-peer exchange with the simulated devices of other ranks that have it enabled, too.
    #[must_use]
    pub fn with_fabric(mut self) -> Simulated<D> {
        // Apart for the ranks of one process by their number, and for others by the number of the process.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.address = (u64::from(std::process::id()) << 32) | NEXT.fetch_add(1, Ordering::Relaxed);
        self
    }

    /// The device's counts, readable while a session owns the device.
    pub fn log(&self) -> LogHandle {
        LogHandle(Arc::clone(&self.counters))
    }
}

fn separate(memory: &Memory) -> Result<&Memory, DeviceError> {
    match memory {
        Memory::Device(m) => match m.as_any().downcast_ref::<SeparateMemory>() {
            Some(s) => Ok(&s.memory),
            None => Err(foreign()),
        },
        Memory::Host(_) => Err(foreign()),
    }
}

fn separate_mut(memory: &mut Memory) -> Result<&mut Memory, DeviceError> {
    match memory {
        Memory::Device(m) => match m.as_any_mut().downcast_mut::<SeparateMemory>() {
            Some(s) => Ok(&mut s.memory),
            None => Err(foreign()),
        },
        Memory::Host(_) => Err(foreign()),
    }
}

fn foreign() -> DeviceError {
    DeviceError::Argument("memory of another device".into())
}

fn bytes(memory: &Memory) -> Result<&[u8], DeviceError> {
    memory.host().map(|h| h.bytes()).ok_or_else(foreign)
}

/// The block of this number: those that are read come first.
fn block<'a>(reads: &[&'a Memory], writes: &'a [&mut Memory], number: usize) -> Result<&'a [u8], DeviceError> {
    let block = match number.checked_sub(reads.len()) {
        None => reads.get(number).copied(),
        Some(w) => writes.get(w).map(|b| &**b),
    };
    bytes(separate(block.ok_or_else(foreign)?)?)
}

/// The written block of this number among those that are written.
fn written<'a>(writes: &'a mut [&mut Memory], number: usize) -> Result<&'a mut [u8], DeviceError> {
    let block = writes.get_mut(number).ok_or_else(foreign)?;
    Ok(separate_mut(block)?.host_mut().ok_or_else(foreign)?.bytes_mut())
}

/// The bytes of each run of a copy, and where they go.
fn runs(copy: &BlockCopy, from: &[u8]) -> Vec<(usize, Vec<u8>)> {
    copy.pieces.iter().flat_map(|p| p.runs()).map(|(a, b, len)| (b, from[a..a + len].to_vec())).collect()
}

/// Whether copies stay inside a source and a target of these lengths.
fn fit(pieces: &[Piece], source: usize, target: usize) -> Result<(), DeviceError> {
    match pieces.iter().find(|p| !p.fits(source, target)) {
        None => Ok(()),
        Some(p) => Err(DeviceError::Argument(format!("a copy reaches beyond its buffers: {p:?}"))),
    }
}

/// The identity of a block.
fn identity(memory: &Memory) -> Result<Arc<()>, DeviceError> {
    match memory {
        Memory::Device(m) => m.as_any().downcast_ref::<SeparateMemory>().map(|s| Arc::clone(&s.identity)),
        Memory::Host(_) => None,
    }
    .ok_or_else(foreign)
}

/// Checks an exchange before anything of it is done.
fn check(reads: &[&Memory], writes: &[&mut Memory], work: &Exchange) -> Result<(), DeviceError> {
    let size = |number| block(reads, writes, number).map(<[u8]>::len);
    let target = |number: usize| if number < reads.len() { Err(foreign()) } else { size(number) };
    for m in &work.sends {
        part(m.at, m.bytes, size(m.block)?)?;
    }
    for m in &work.receives {
        part(m.at, m.bytes, target(m.block)?)?;
    }
    work.before.iter().chain(&work.after).try_for_each(|c| fit(&c.pieces, size(c.from)?, target(c.to)?))
}

impl<D: Device> Device for Simulated<D> {
    fn name(&self) -> String {
        format!("simulated device on {}", self.inner.name())
    }

    fn memory(&self) -> MemoryKind {
        MemoryKind::Separate
    }

    fn workers(&self) -> &Workers {
        self.inner.workers()
    }

    fn capacity(&self) -> Option<usize> {
        Some(self.capacity)
    }

    fn allocate(&self, size: usize) -> Result<Memory, DeviceError> {
        let used = self.counters.bytes.load(Ordering::Relaxed);
        if used.checked_add(size).is_none_or(|after| after > self.capacity) {
            let bound = MemoryBound::Device { bytes: self.capacity };
            return Err(DeviceError::OutOfMemory { bytes: size, used, bound });
        }
        let mut memory = self.inner.allocate(size)?;
        memory.host_mut().ok_or_else(foreign)?.bytes_mut().fill(POISON);
        self.counters.bytes.fetch_add(size, Ordering::Relaxed);
        self.counters.peak.fetch_max(used + size, Ordering::Relaxed);
        let counters = Arc::clone(&self.counters);
        Ok(Memory::Device(Box::new(SeparateMemory { memory, identity: Arc::default(), counters })))
    }

    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        let host = separate_mut(target)?.host_mut().ok_or_else(foreign)?;
        let range = part(at, source.len(), host.len())?;
        host.bytes_mut()[range].copy_from_slice(source);
        Ok(())
    }

    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        let source = bytes(separate(source)?)?;
        target.copy_from_slice(&source[part(at, target.len(), source.len())?]);
        Ok(())
    }

    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[Piece]) -> Result<(), DeviceError> {
        let from = bytes(separate(source)?)?;
        let to = separate_mut(target)?.host_mut().ok_or_else(foreign)?.bytes_mut();
        fit(pieces, from.len(), to.len())?;
        for (a, b, len) in pieces.iter().flat_map(|p| p.runs()) {
            to[b..b + len].copy_from_slice(&from[a..a + len]);
        }
        Ok(())
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn connect(&self, _comm: &dyn Communicator, addresses: &[u64]) -> Result<bool, DeviceError> {
        Ok(distinct(addresses))
    }

    fn exchange(
        &self,
        comm: &dyn Communicator,
        reads: &[&Memory],
        writes: &mut [&mut Memory],
        work: &Exchange,
    ) -> Result<Ticket, DeviceError> {
        if self.address == 0 {
            return Err(CommError(format!("{} is not connected to other devices", self.name())).into());
        }
        check(reads, writes, work)?;
        let ticket = Ticket(self.counters.exchanges.fetch_add(1, Ordering::Relaxed) as u64);
        let to = |number: usize| number.checked_sub(reads.len()).ok_or_else(foreign);
        for copy in &work.before {
            for (at, bytes) in runs(copy, block(reads, writes, copy.from)?) {
                written(writes, to(copy.to)?)?[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        let outgoing =
            work.sends.iter().map(|m| Ok((m.rank, block(reads, writes, m.block)?[m.at..m.at + m.bytes].to_vec())));
        let outgoing = outgoing.collect::<Result<Vec<(usize, Vec<u8>)>, DeviceError>>()?;
        // What is received is not there before `arrive`, and the old contents are gone.
        for m in &work.receives {
            written(writes, to(m.block)?)?[m.at..m.at + m.bytes].fill(POISON);
        }
        let mut incoming: Vec<(usize, Vec<u8>)> = work.receives.iter().map(|m| (m.rank, vec![0; m.bytes])).collect();
        let out: Vec<(usize, &[u8])> = outgoing.iter().map(|(r, b)| (*r, &b[..])).collect();
        let mut into: Vec<(usize, &mut [u8])> = incoming.iter_mut().map(|(r, b)| (*r, &mut b[..])).collect();
        comm.exchange(&out, &mut into)?;
        let begun_with = writes.iter().map(|w| identity(w)).collect::<Result<_, DeviceError>>()?;
        let mut under_way = UnderWay { writes: begun_with, ..UnderWay::default() };
        for (m, (_, bytes)) in work.receives.iter().zip(incoming) {
            under_way.arrivals.push((to(m.block)?, m.at, bytes));
        }
        for copy in &work.after {
            match to(copy.from) {
                // The block may have been dropped by then.
                Err(_) => {
                    let target = to(copy.to)?;
                    let runs = runs(copy, block(reads, writes, copy.from)?);
                    under_way.arrivals.extend(runs.into_iter().map(|(at, bytes)| (target, at, bytes)));
                }
                Ok(from) => under_way.copies.push(BlockCopy { from, to: to(copy.to)?, pieces: copy.pieces.clone() }),
            }
        }
        self.arriving.lock().unwrap_or_else(PoisonError::into_inner).insert(ticket.0, under_way);
        Ok(ticket)
    }

    fn arrive(&self, ticket: Ticket, writes: &mut [&mut Memory]) -> Result<(), DeviceError> {
        let mut arriving = self.arriving.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(under_way) = arriving.get(&ticket.0) else { return Ok(()) };
        let given = writes.iter().map(|w| identity(w)).collect::<Result<Vec<_>, DeviceError>>()?;
        if given.len() != under_way.writes.len() || given.iter().zip(&under_way.writes).any(|(a, b)| !Arc::ptr_eq(a, b))
        {
            return Err(DeviceError::Argument(
                "an exchange was finished with other blocks than it was started with".into(),
            ));
        }
        let UnderWay { arrivals, copies, .. } = arriving.remove(&ticket.0).unwrap_or_default();
        drop(arriving);
        for (number, at, bytes) in arrivals {
            written(writes, number)?[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        for copy in &copies {
            for (at, bytes) in runs(copy, block(&[], writes, copy.from)?) {
                written(writes, copy.to)?[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    fn prepare(&self, launches: &[Prepared<'_>]) -> Result<(), DeviceError> {
        if let Some(announced) = &self.announced {
            let each = launches.iter().map(|l| (l.kernel.clone(), l.inputs.clone(), l.output, l.rows));
            announced.lock().unwrap_or_else(PoisonError::into_inner).extend(each);
        }
        Ok(())
    }

    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        if let Some(announced) = &self.announced
            && !matches!(launch.kernel, Kernel::Merge)
            && !launch.rows.is_empty()
        {
            let inputs: Vec<Geometry> = launch.inputs.iter().map(|i| i.geometry).collect();
            let this = (launch.kernel.clone(), inputs, launch.geometry, launch.rows);
            let announced = announced.lock().unwrap_or_else(PoisonError::into_inner);
            if !announced.is_empty() && !announced.contains(&this) {
                return Err(DeviceError::Argument(format!("a launch that was not prepared: {this:?}")));
            }
        }
        self.counters.launches.fetch_add(1, Ordering::Relaxed);
        let inputs: Vec<Input<'_>> = launch
            .inputs
            .iter()
            .map(|i| Ok(Input { memory: separate(i.memory)?, geometry: i.geometry }))
            .collect::<Result<_, DeviceError>>()?;
        self.inner.launch(Launch { inputs: &inputs, output: separate_mut(launch.output)?, ..launch })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::threads::ThreadComm;
    use crate::cpu::device::CpuDevice;
    use crate::device::Message;

    const N: usize = 64;

    /// Two ranks that swap blocks: each sends its number from a block of its own, has a copy of that block made too, and
    /// goes on with `then` while that is under way. What `then` keeps of the target is looked at.
    fn swapped(then: impl Fn(&Simulated<CpuDevice>, Memory, Memory, Ticket) -> Option<Memory> + Sync) {
        ThreadComm::run(2, |comm| {
            let device = Simulated::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20).with_fabric();
            let (mine, other) = (comm.rank(), 1 - comm.rank());
            let (mut source, mut target) = (device.allocate(N).unwrap(), device.allocate(2 * N).unwrap());
            device.write(&[mine as u8; N], &mut source, 0).unwrap();
            let work = Exchange {
                before: Vec::new(),
                sends: vec![Message { rank: other, block: 0, at: 0, bytes: N }],
                receives: vec![Message { rank: other, block: 1, at: 0, bytes: N }],
                after: vec![BlockCopy { from: 0, to: 1, pieces: vec![Piece::run(0, N, N)] }],
            };
            let ticket = device.exchange(&comm, &[&source], &mut [&mut target], &work).unwrap();
            if let Some(target) = then(&device, source, target, ticket) {
                let mut got = [9; 2 * N];
                device.read(&target, 0, &mut got).unwrap();
                assert_eq!((&got[..N], &got[N..]), (&[other as u8; N][..], &[mine as u8; N][..]));
            }
            assert_eq!(device.log().get().bytes, 0, "nothing stays allocated");
        });
    }

    #[test]
    fn what_an_exchange_reads_may_go_away_and_its_memory_be_used_again() {
        swapped(|device, source, mut target, ticket| {
            drop(source);
            let mut next = device.allocate(N).unwrap();
            device.write(&[77; N], &mut next, 0).unwrap();
            device.arrive(ticket, &mut [&mut target]).unwrap();
            let mut kept = [0; N];
            device.read(&next, 0, &mut kept).unwrap();
            assert_eq!(kept, [77; N]);
            drop(next);
            let mut moved = vec![0; 2 * N];
            device.read(&target, 0, &mut moved).unwrap();
            Some(target)
        });
    }

    #[test]
    fn what_an_exchange_writes_may_go_away_and_another_block_is_not_written() {
        swapped(|device, source, target, ticket| {
            drop((source, target));
            // Most likely where the target was.
            let mut next = device.allocate(2 * N).unwrap();
            device.write(&[77; 2 * N], &mut next, 0).unwrap();
            let refused = device.arrive(ticket, &mut [&mut next]).unwrap_err().to_string();
            assert!(refused.contains("other blocks"), "{refused}");
            let mut kept = [0; 2 * N];
            device.read(&next, 0, &mut kept).unwrap();
            assert_eq!(kept, [77; 2 * N]);
            None
        });
    }

    #[test]
    fn an_exchange_that_never_ends_is_no_harm() {
        swapped(|_, source, target, ticket| {
            drop((ticket, target, source));
            None
        });
    }

    #[test]
    fn exchanges_beyond_their_blocks_are_refused() {
        let comm = crate::comm::Alone;
        let device = Simulated::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20).with_fabric();
        let (source, mut target) = (device.allocate(N).unwrap(), device.allocate(N).unwrap());
        let message = |block, at, bytes| vec![Message { rank: 1, block, at, bytes }];
        let copy = |from, to, piece| vec![BlockCopy { from, to, pieces: vec![piece] }];
        let nothing = Exchange::default;
        let long = Piece { rows: usize::MAX, ..Piece::run(0, 0, 8) };
        for work in [
            Exchange { sends: message(0, 1, N), ..nothing() },
            Exchange { sends: message(0, usize::MAX, 2), ..nothing() },
            Exchange { sends: message(2, 0, 1), ..nothing() },
            Exchange { receives: message(0, 0, 1), ..nothing() },
            Exchange { receives: message(1, 1, usize::MAX), ..nothing() },
            Exchange { before: copy(0, 1, Piece::run(0, 1, N)), ..nothing() },
            Exchange { after: copy(0, 0, Piece::run(0, 0, 1)), ..nothing() },
            Exchange { after: copy(1, 1, long), ..nothing() },
        ] {
            assert!(device.exchange(&comm, &[&source], &mut [&mut target], &work).is_err(), "{work:?}");
        }
    }
}
