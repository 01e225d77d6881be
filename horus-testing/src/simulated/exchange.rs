//! Exchanges between simulated devices.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::memory::{bytes, fit, foreign, identity, separate, separate_mut};
use super::{POISON, SimulatedDevice};
use horus_base::error::DeviceError;
use horus_host::StridedCopy;
use horus_host::comm::Communicator;
use horus_host::device::check::part;
use horus_host::device::{BlockCopy, Device, DeviceQueue, Exchange, Fabric, Memory, Ticket, distinct};

/// Bytes for a position in a written block.
type Arrival = (usize, usize, Vec<u8>);

/// The deliveries of an exchange in progress. It has copied the data that it reads and sends, so the blocks may be
/// dropped.
#[derive(Debug, Default)]
pub(super) struct PendingArrivals {
    /// The written blocks at its start.
    writes: Vec<Arc<()>>,
    arrivals: Vec<Arrival>,
    /// Copies between written blocks, by their index among these.
    copies: Vec<BlockCopy>,
}

impl PendingArrivals {
    /// Begins an upload of pieces of a buffer to a block; nothing reaches the block before the upload arrives.
    pub(super) fn upload(
        source: &[u8],
        target: &Memory,
        pieces: &[StridedCopy],
    ) -> Result<PendingArrivals, DeviceError> {
        fit(pieces, source.len(), bytes(separate(target)?)?.len())?;
        let runs = pieces.iter().flat_map(|p| p.runs());
        let arrivals = runs.map(|(from, to, n)| (0, to, source[from..from + n].to_vec())).collect();
        Ok(PendingArrivals { writes: vec![identity(target)?], arrivals, copies: Vec::new() })
    }

    /// Copies the data that the exchange reads, sends and receives.
    fn begin(
        comm: &dyn Communicator,
        reads: &[&Memory],
        writes: &mut [&mut Memory],
        work: &Exchange,
    ) -> Result<PendingArrivals, DeviceError> {
        let to = |number: usize| number.checked_sub(reads.len()).ok_or_else(foreign);
        for copy in &work.before {
            for (at, bytes) in runs(copy, block(reads, writes, copy.from)?) {
                written(writes, to(copy.to)?)?[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        let outgoing =
            work.sends.iter().map(|m| Ok((m.rank, block(reads, writes, m.block)?[m.at..m.at + m.bytes].to_vec())));
        let outgoing = outgoing.collect::<Result<Vec<(usize, Vec<u8>)>, DeviceError>>()?;
        // Received data is absent before `arrive`, and the old contents are lost.
        for m in &work.receives {
            written(writes, to(m.block)?)?[m.at..m.at + m.bytes].fill(POISON);
        }
        let mut incoming: Vec<(usize, Vec<u8>)> = work.receives.iter().map(|m| (m.rank, vec![0; m.bytes])).collect();
        let out: Vec<(usize, &[u8])> = outgoing.iter().map(|(r, b)| (*r, &b[..])).collect();
        let mut into: Vec<(usize, &mut [u8])> = incoming.iter_mut().map(|(r, b)| (*r, &mut b[..])).collect();
        comm.exchange(&out, &mut into)?;
        let begun_with = writes.iter().map(|w| identity(w)).collect::<Result<_, DeviceError>>()?;
        let mut under_way = PendingArrivals { writes: begun_with, ..PendingArrivals::default() };
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
        Ok(under_way)
    }

    /// Fails unless these are the written blocks at its start.
    pub(super) fn expects(&self, writes: &[&mut Memory]) -> Result<(), DeviceError> {
        let given = writes.iter().map(|w| identity(w)).collect::<Result<Vec<_>, DeviceError>>()?;
        if given.len() != self.writes.len() || given.iter().zip(&self.writes).any(|(a, b)| !Arc::ptr_eq(a, b)) {
            return Err(DeviceError::Argument(
                "an exchange was finished with other blocks than it was started with".into(),
            ));
        }
        Ok(())
    }

    /// Stores what has arrived.
    pub(super) fn finish(self, writes: &mut [&mut Memory]) -> Result<(), DeviceError> {
        for (number, at, bytes) in self.arrivals {
            written(writes, number)?[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        for copy in &self.copies {
            for (at, bytes) in runs(copy, block(&[], writes, copy.from)?) {
                written(writes, copy.to)?[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        Ok(())
    }
}

/// The block of this index: `reads` come first.
fn block<'a>(reads: &[&'a Memory], writes: &'a [&mut Memory], number: usize) -> Result<&'a [u8], DeviceError> {
    let block = match number.checked_sub(reads.len()) {
        None => reads.get(number).copied(),
        Some(w) => writes.get(w).map(|b| &**b),
    };
    bytes(separate(block.ok_or_else(foreign)?)?)
}

/// The written block of this index.
fn written<'a>(writes: &'a mut [&mut Memory], number: usize) -> Result<&'a mut [u8], DeviceError> {
    let block = writes.get_mut(number).ok_or_else(foreign)?;
    Ok(separate_mut(block)?.host_mut().ok_or_else(foreign)?.bytes_mut())
}

/// The bytes of each run of a copy, and their targets.
fn runs(copy: &BlockCopy, from: &[u8]) -> Vec<(usize, Vec<u8>)> {
    copy.pieces.iter().flat_map(|p| p.runs()).map(|(a, b, len)| (b, from[a..a + len].to_vec())).collect()
}

/// Checks an exchange before it starts.
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

impl<D: Device> Fabric for SimulatedDevice<D> {
    fn address(&self) -> u64 {
        self.address
    }

    fn seconds_to_connect(&self) -> f64 {
        self.connection.0
    }

    fn connect(&self, _comm: &dyn Communicator, addresses: &[u64]) -> Result<bool, DeviceError> {
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
        self.capacity.fetch_sub(self.connection.1, Ordering::Relaxed);
        Ok(distinct(addresses))
    }

    fn exchange(
        &self,
        comm: &dyn Communicator,
        reads: &[&Memory],
        writes: &mut [&mut Memory],
        work: &Exchange,
    ) -> Result<Ticket, DeviceError> {
        check(reads, writes, work)?;
        let ticket = Ticket(self.counters.exchanges.fetch_add(1, Ordering::Relaxed) as u64);
        let under_way = self.spans.note(DeviceQueue::Network, || PendingArrivals::begin(comm, reads, writes, work))?;
        self.pending_exchanges.lock().unwrap_or_else(PoisonError::into_inner).insert(ticket.0, under_way);
        Ok(ticket)
    }

    fn wait_for_exchange(&self, ticket: Ticket, writes: &mut [&mut Memory]) -> Result<(), DeviceError> {
        let mut arriving = self.pending_exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(under_way) = arriving.get(&ticket.0) else { return Ok(()) };
        under_way.expects(writes)?;
        let under_way = arriving.remove(&ticket.0).unwrap_or_default();
        drop(arriving);
        under_way.finish(writes)
    }
}
