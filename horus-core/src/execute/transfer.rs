//! Transfers between ranks through the host: every scatter, gather, exchange and footprint is one redistribution.
//!
//! A [`Movement`] lists senders, receivers and pixels. There is one message per pair of ranks. [`redistribute`] sends
//! contiguous pixels from their place in host memory, and receives them there. Other messages are packed and unpacked,
//! and so are all messages of a non-blocking exchange ([`order`]).

use std::sync::Arc;

use crate::comm::{Communicator, Parcel, PendingExchange};
use crate::device::{Device, Geometry, Memory};
use crate::error::DeviceError;
use crate::execute::routes::{ByteRuns, Route, between, in_turn, routes, together, total, unpacked};
use crate::host::buffer::{HostBuffer, Pool};
use crate::host::workers::Workers;
use crate::plan::movement::{Load, Movement};

/// Host resources of a transfer.
#[derive(Clone, Copy)]
pub struct HostResources<'a> {
    /// Threads that copy.
    pub workers: &'a Workers,
    /// Pool for messages.
    pub pool: &'a Arc<Pool>,
}

/// Pixels of a rank.
#[derive(Clone, Copy)]
pub enum RankPixels<'a> {
    /// Host memory.
    Host(&'a [u8]),
    /// A device's own memory.
    Device(&'a dyn Device, &'a Memory),
    /// No pixels.
    Nowhere,
}

impl RankPixels<'_> {
    /// Copies runs to equal runs of `target`.
    pub(crate) fn copy(
        self,
        workers: &Workers,
        from: &[ByteRuns],
        to: &[ByteRuns],
        target: &mut [u8],
    ) -> Result<(), DeviceError> {
        match self {
            RankPixels::Host(bytes) => workers.copy_pieces(bytes, target, &between(from, to)),
            RankPixels::Device(device, memory) => {
                for (from, to) in from.iter().zip(to) {
                    if from.together() && to.together() {
                        device.read(memory, from.at, &mut target[to.at..to.at + to.total()])?;
                    } else {
                        let mut rows = vec![0; from.extent()];
                        device.read(memory, from.at, &mut rows)?;
                        workers.copy_pieces(&rows, target, &between(&[ByteRuns { at: 0, ..*from }], &[*to]));
                    }
                }
            }
            RankPixels::Nowhere if from.is_empty() => {}
            RankPixels::Nowhere => return Err(DeviceError::Internal("pixels that are read are not in memory".into())),
        }
        Ok(())
    }

    /// Packs runs to a contiguous message.
    fn packed(
        self,
        HostResources { workers, pool }: HostResources<'_>,
        runs: &[ByteRuns],
    ) -> Result<HostBuffer, DeviceError> {
        let mut message = pool.try_allocate_unbounded(total(runs))?;
        self.copy(workers, runs, &in_turn(runs, 0), message.bytes_mut())?;
        Ok(message)
    }
}

/// Target of pixels from other ranks.
pub enum Destination<'a> {
    /// Host memory.
    Host(&'a mut [u8]),
    /// A device's own memory.
    Device(&'a dyn Device, &'a mut Memory),
}

impl Destination<'_> {
    fn unpack(&mut self, workers: &Workers, message: &[u8], runs: &[ByteRuns]) -> Result<(), DeviceError> {
        let pieces = unpacked(runs, 0);
        match self {
            Destination::Host(bytes) => workers.copy_pieces(message, bytes, &pieces),
            Destination::Device(device, memory) => {
                for (piece, runs) in pieces.iter().zip(runs) {
                    if runs.together() {
                        device.write(&message[piece.from..piece.from + runs.total()], memory, runs.at)?;
                    } else {
                        piece
                            .runs()
                            .try_for_each(|(from, to, n)| device.write(&message[from..from + n], memory, to))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A movement of an image: this rank's pixels, and host memory for the pixels that it needs. They do not overlap.
pub struct Redistribution<'a> {
    /// What every rank has and needs.
    pub movement: Movement,
    /// This rank's pixels.
    pub source: (RankPixels<'a>, Geometry),
    /// Where the pixels that it needs go.
    pub target: (&'a mut [u8], Geometry),
}

/// Brings every rank the pixels of several images that it needs from the ranks that have them, at once. There is at most
/// one message from one rank to another. Returns the messages sent.
///
/// # Errors
/// If communication or the device fails.
pub fn redistribute(
    comm: &dyn Communicator,
    resources: HostResources<'_>,
    images: Vec<Redistribution<'_>>,
) -> Result<Load, DeviceError> {
    let HostResources { workers, pool } = resources;
    let (mut sends, mut incoming) = (Vec::new(), Vec::new());
    for Redistribution { movement, source: (source, given), target: (target, wanted) } in images {
        let (mut in_place, mut scattered) = (Vec::new(), Vec::new());
        for Route { rank, out, into } in routes(&movement, comm.rank(), given, wanted) {
            if rank == comm.rank() {
                source.copy(workers, &out, &into, target)?;
                continue;
            }
            if !out.is_empty() {
                sends.push((rank, OutgoingMessage::of(source, resources, &out)?));
            }
            match together(&into) {
                Some(at) => in_place.push((at, total(&into), rank)),
                None if into.is_empty() => {}
                None => scattered.push((rank, pool.try_allocate_unbounded(total(&into))?, into)),
            }
        }
        incoming.push((target, in_place, scattered));
    }
    let sends: Vec<(usize, &[u8])> = sends.iter().map(|(rank, m)| (*rank, m.bytes())).collect();
    let mut receives = Vec::new();
    for (target, in_place, scattered) in &mut incoming {
        receives.extend(parts(target, std::mem::take(in_place)));
        receives.extend(scattered.iter_mut().map(|(rank, message, _)| (*rank, message.bytes_mut())));
    }
    comm.exchange(&sends, &mut receives)?;
    for (target, _, scattered) in incoming {
        for (_, message, runs) in &scattered {
            workers.copy_pieces(message.bytes(), target, &unpacked(runs, 0));
        }
    }
    Ok(Load { messages: sends.len(), bytes: sends.iter().map(|(_, m)| m.len()).sum() })
}

/// A message to another rank.
enum OutgoingMessage<'a> {
    /// Sent in place.
    InPlace(&'a [u8]),
    /// Packed.
    Packed(HostBuffer),
}

impl<'a> OutgoingMessage<'a> {
    fn of(
        source: RankPixels<'a>,
        resources: HostResources<'_>,
        runs: &[ByteRuns],
    ) -> Result<OutgoingMessage<'a>, DeviceError> {
        match (source, together(runs)) {
            (RankPixels::Host(bytes), Some(at)) => Ok(OutgoingMessage::InPlace(&bytes[at..at + total(runs)])),
            _ => source.packed(resources, runs).map(OutgoingMessage::Packed),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            OutgoingMessage::InPlace(bytes) => bytes,
            OutgoingMessage::Packed(message) => message.bytes(),
        }
    }
}

/// Disjoint parts of `target`, given as start, length and source rank.
fn parts(mut target: &mut [u8], mut ranges: Vec<(usize, usize, usize)>) -> Vec<(usize, &mut [u8])> {
    ranges.sort_unstable();
    let mut begin = 0;
    let mut parts = Vec::with_capacity(ranges.len());
    for (at, bytes, rank) in ranges {
        let (part, rest) = target.split_at_mut(at - begin).1.split_at_mut(bytes);
        parts.push((rank, part));
        (target, begin) = (rest, at + bytes);
    }
    parts
}

/// Pixels in transfer from other ranks.
pub struct HostTransfer<'a> {
    begun: Box<dyn PendingExchange + 'a>,
    /// This rank's own pixels, if it needs them.
    own: Option<Parcel>,
    /// Targets of the pixels of each rank.
    into: Vec<Vec<ByteRuns>>,
    /// Messages sent by this rank.
    pub sent: Load,
}

/// Starts to bring every rank the pixels it needs from the ranks that have them, in one block. This rank's pixels are
/// in `source`, and the pixels that it needs are stored there on arrival. Pixels to be sent have been read when this
/// returns.
///
/// # Errors
/// If communication or the device fails.
pub fn order<'a>(
    comm: &'a dyn Communicator,
    resources: HostResources<'_>,
    movement: &Movement,
    source: RankPixels<'_>,
    geometry: Geometry,
) -> Result<HostTransfer<'a>, DeviceError> {
    let (mut outgoing, mut incoming): (Vec<Parcel>, Vec<Parcel>) = (Vec::new(), Vec::new());
    let (mut own, mut targets) = (None, Vec::with_capacity(comm.size()));
    for Route { rank, out, into } in routes(movement, comm.rank(), geometry, geometry) {
        if !out.is_empty() {
            let message = source.packed(resources, &out)?;
            if rank == comm.rank() { own = Some((rank, message)) } else { outgoing.push((rank, message)) }
        }
        if !into.is_empty() && rank != comm.rank() {
            incoming.push((rank, resources.pool.try_allocate_unbounded(total(&into))?));
        }
        targets.push(into);
    }
    let sent = Load { messages: outgoing.len(), bytes: outgoing.iter().map(|(_, m)| m.len()).sum() };
    Ok(HostTransfer { begun: comm.begin(outgoing, incoming)?, own, into: targets, sent })
}

impl HostTransfer<'_> {
    /// Waits for the pixels and stores them.
    ///
    /// # Errors
    /// If communication or the device fails.
    pub fn finish(self, workers: &Workers, mut target: Destination<'_>) -> Result<Load, DeviceError> {
        for (rank, message) in self.begun.finish()?.into_iter().chain(self.own) {
            target.unpack(workers, message.bytes(), &self.into[rank])?;
        }
        Ok(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::threads::ThreadComm;
    use crate::cpu::device::CpuDevice;
    use crate::execute::routes::testing::{HEIGHT, WIDTH, geometry, movement, pixels, strips};
    use crate::plan::movement::{RequiredPixels, needs_around, required_pixels};
    use crate::shape::Window;
    use horus_testing::simulated::SimulatedDevice;

    #[test]
    fn pixels_arrive_from_host_and_device_where_they_are_needed_and_nothing_else_is_touched() {
        for (ranks, channels, left, right) in [(1, 2, 1, 4), (2, 1, 0, WIDTH), (3, 1, 2, 3), (5, 3, 0, 4)] {
            ThreadComm::run(ranks, |comm| {
                let strips = strips(ranks);
                // Each rank needs columns of the whole image, which begins at the row of its rank.
                let m = movement(&strips, channels, |r| {
                    let whole = required_pixels(Window::new(r.cast_signed(), r.cast_signed() + 12), HEIGHT, WIDTH);
                    whole.into_iter().map(|n| RequiredPixels { left, right, ..n }).collect()
                });
                let first = comm.rank().cast_signed();
                let given = geometry(channels, strips[comm.rank()].grown(1, 2));
                let wanted = geometry(channels, Window::new(first, first + 12));
                let held = pixels(given, |y, _| strips[comm.rank()].contains(y));
                let device = SimulatedDevice::new(CpuDevice::new(Some(2)).unwrap(), 1 << 20);
                let mut memory = device.allocate(held.len()).unwrap();
                device.write(&held, &mut memory, 0).unwrap();
                for source in [RankPixels::Host(&held), RankPixels::Device(&device, &memory)] {
                    let mut got = vec![0xff; wanted.bytes()];
                    let (resources, movement) =
                        (HostResources { workers: device.workers(), pool: &Pool::new(0) }, m.clone());
                    let one = Redistribution { movement, source: (source, given), target: (&mut got, wanted) };
                    let load = redistribute(&comm, resources, vec![one]).unwrap();
                    assert_eq!(load.messages, ranks - 1, "one per pair of ranks");
                    let want = pixels(wanted, |_, x| (left..right).contains(&x));
                    assert_eq!(got, want, "rank {} of {ranks}", comm.rank());
                }
            });
        }
    }

    #[test]
    fn borders_arrive_around_the_strip() {
        for (ranks, channels, depth) in [(2, 1, 2), (3, 3, 1), (5, 2, 7), (4, 1, 14)] {
            ThreadComm::run(ranks, |comm| {
                let strips = strips(ranks);
                let around = |r: usize| needs_around(strips[r], strips[r].grown(depth, depth), HEIGHT, WIDTH);
                let m = movement(&strips, channels, around);
                let strip = strips[comm.rank()];
                let geometry = geometry(channels, strip.grown(depth, depth));
                let mut held = pixels(geometry, |y, _| strip.contains(y));
                let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20);
                let mut memory = device.allocate(held.len()).unwrap();
                device.write(&held, &mut memory, 0).unwrap();
                let (workers, pool) = (device.workers(), Pool::new(1000));
                let (first, second) = (RankPixels::Host(&held), RankPixels::Device(&device, &memory));
                let first = order(&comm, HostResources { workers, pool: &pool }, &m, first, geometry).unwrap();
                let second = order(&comm, HostResources { workers, pool: &pool }, &m, second, geometry).unwrap();
                first.finish(workers, Destination::Host(&mut held)).unwrap();
                second.finish(workers, Destination::Device(&device, &mut memory)).unwrap();
                let want = pixels(geometry, |_, _| true);
                assert!(held == want, "host, rank {} of {ranks}", comm.rank());
                device.read(&memory, 0, &mut held).unwrap();
                assert!(held == want, "device, rank {} of {ranks}", comm.rank());
            });
        }
    }

    #[test]
    fn pixels_that_are_nowhere_are_an_error() {
        let m = movement(&[Window::whole(12)], 1, |_| required_pixels(Window::whole(12), HEIGHT, WIDTH));
        let g = geometry(1, Window::whole(12));
        let comm = crate::comm::SingleRankComm;
        let mut target = vec![0; g.bytes()];
        let one = Redistribution { movement: m, source: (RankPixels::Nowhere, g), target: (&mut target, g) };
        let (workers, pool) = (Workers::default(), Pool::new(0));
        let e = redistribute(&comm, HostResources { workers: &workers, pool: &pool }, vec![one]);
        assert!(e.unwrap_err().to_string().contains("not in memory"));
    }
}
