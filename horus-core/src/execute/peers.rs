//! Transfers between the devices of ranks, peer to peer: [`redistribute`](crate::execute::transfer::redistribute) for
//! device memory.
//!
//! There is one message per pair of ranks. Contiguous pixels are sent from the image or received in it. Other messages
//! are packed in a block by one copy of many pieces (`kernels/pieces.cuh`), and unpacked by another. `Fabric::exchange`
//! starts these copies and `Fabric::wait_for_exchange` completes them, so launches run concurrently. The design is in
//! `docs/design/devices.md`.

use crate::comm::{CommError, Communicator};
use crate::device::{BlockCopy, Device, Exchange, Fabric, Geometry, Memory, Message, Ticket};
use crate::error::DeviceError;
use crate::execute::routes::{Route, between, packed, routes, together, total, unpacked};
use crate::host::StridedCopy;
use crate::plan::movement::{Load, Movement};

/// Messages begin at multiples of this many bytes in the block in which they are packed.
const ALIGNMENT: usize = 256;

/// A block in which messages are packed.
#[derive(Default)]
struct MessageStaging {
    bytes: usize,
    pack: Vec<StridedCopy>,
    unpack: Vec<StridedCopy>,
}

impl MessageStaging {
    fn reserve(&mut self, bytes: usize) -> usize {
        let at = self.bytes.next_multiple_of(ALIGNMENT);
        self.bytes = at + bytes;
        at
    }
}

/// Pixels in transfer; nothing may read their target before [`PeerTransfer::finish`].
#[derive(Debug)]
pub struct PeerTransfer {
    ticket: Ticket,
    block: Memory,
    /// Messages sent by this rank.
    pub sent: Load,
}

impl PeerTransfer {
    /// Lets the device wait for the pixels in `target`, the memory for which they were ordered; the host continues.
    ///
    /// # Errors
    /// If the device or another rank fails.
    pub fn finish(mut self, device: &dyn Device, target: &mut Memory) -> Result<Load, DeviceError> {
        fabric(device)?.wait_for_exchange(self.ticket, &mut [&mut *target, &mut self.block])?;
        Ok(self.sent)
    }
}

/// Fabric of a connected device.
fn fabric(device: &dyn Device) -> Result<&dyn Fabric, DeviceError> {
    let missing = || CommError(format!("{} is not connected to other devices", device.names().name));
    device.fabric().ok_or_else(|| missing().into())
}

/// [`order`] that also waits for the pixels.
///
/// # Errors
/// If the device or another rank fails.
pub fn redistribute(
    device: &dyn Device,
    comm: &dyn Communicator,
    movement: &Movement,
    source: Option<(&Memory, Geometry)>,
    target: (&mut Memory, Geometry),
) -> Result<Load, DeviceError> {
    let (memory, geometry) = target;
    order(device, comm, movement, source, (memory, geometry))?.finish(device, memory)
}

/// Starts to bring every rank the pixels it needs from the devices of the ranks that have them. This rank's pixels are
/// in `source`, and the pixels that it needs go to `target`. Without a source both are in the target, and do not
/// overlap.
///
/// # Errors
/// If the device or another rank fails.
pub fn order(
    device: &dyn Device,
    comm: &dyn Communicator,
    movement: &Movement,
    source: Option<(&Memory, Geometry)>,
    target: (&mut Memory, Geometry),
) -> Result<PeerTransfer, DeviceError> {
    let me = comm.rank();
    let (target, geometry) = target;
    let given = source.map_or(geometry, |(_, g)| g);
    // Blocks: the source if it is separate, the target, the packed messages.
    let (target_block, staging_block) = if source.is_some() { (1, 2) } else { (0, 1) };
    let mut staging = MessageStaging::default();
    let mut local = Vec::new();
    let mut sent = Load::default();
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for Route { rank, out, into } in routes(movement, me, given, geometry) {
        if rank == me {
            match source {
                Some(_) => local = between(&out, &into),
                None if !out.is_empty() => {
                    let at = staging.reserve(total(&out));
                    staging.pack.extend(packed(&out, at));
                    staging.unpack.extend(unpacked(&into, at));
                }
                None => {}
            }
            continue;
        }
        if !out.is_empty() {
            let bytes = total(&out);
            sent.messages += 1;
            sent.bytes += bytes;
            sends.push(match together(&out) {
                Some(at) => Message { rank, block: 0, at, bytes },
                None => {
                    let at = staging.reserve(bytes);
                    staging.pack.extend(packed(&out, at));
                    Message { rank, block: staging_block, at, bytes }
                }
            });
        }
        if !into.is_empty() {
            let bytes = total(&into);
            receives.push(match together(&into) {
                Some(at) => Message { rank, block: target_block, at, bytes },
                None => {
                    let at = staging.reserve(bytes);
                    staging.unpack.extend(unpacked(&into, at));
                    Message { rank, block: staging_block, at, bytes }
                }
            });
        }
    }
    let mut block = device.allocate(staging.bytes)?;
    // Pixels of this rank are always in the first block.
    let copy = |from, to, pieces: Vec<StridedCopy>| (!pieces.is_empty()).then_some(BlockCopy { from, to, pieces });
    let work = Exchange {
        before: copy(0, staging_block, staging.pack).into_iter().collect(),
        sends,
        receives,
        after: copy(0, target_block, local)
            .into_iter()
            .chain(copy(staging_block, target_block, staging.unpack))
            .collect(),
    };
    let reads: Vec<&Memory> = source.iter().map(|(m, _)| *m).collect();
    let ticket = fabric(device)?.exchange(comm, &reads, &mut [&mut *target, &mut block], &work)?;
    Ok(PeerTransfer { ticket, block, sent })
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

    fn connected(comm: &ThreadComm) -> (SimulatedDevice<CpuDevice>, horus_testing::simulated::CallCountsHandle) {
        let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20).with_fabric();
        assert!(device.connect(comm, &comm.gather(device.address()).unwrap()).unwrap());
        let log = device.call_counts();
        (device, log)
    }

    #[test]
    fn borders_arrive_in_place() {
        for (ranks, channels, depth) in [(2, 1, 2), (3, 3, 1), (5, 2, 7), (4, 1, 14)] {
            ThreadComm::run(ranks, |comm| {
                let (device, log) = connected(&comm);
                let strips = strips(ranks);
                let around = |r: usize| needs_around(strips[r], strips[r].grown(depth, depth), HEIGHT, WIDTH);
                let m = movement(&strips, channels, around);
                let strip = m.have[comm.rank()];
                let geometry = geometry(channels, strip.grown(depth, depth));
                let mut memory = device.allocate(geometry.bytes()).unwrap();
                device.write(&pixels(geometry, |y, _| strip.contains(y)), &mut memory, 0).unwrap();
                let before = log.get();
                redistribute(&device, &comm, &m, None, (&mut memory, geometry)).unwrap();
                assert_eq!((log.get().reads, log.get().writes), (before.reads, before.writes), "nothing by the host");
                let mut got = vec![0; geometry.bytes()];
                device.read(&memory, 0, &mut got).unwrap();
                assert_eq!(got, pixels(geometry, |_, _| true), "rank {} of {ranks}", comm.rank());
            });
        }
    }

    #[test]
    fn rectangles_arrive_where_they_are_needed_and_nothing_else_is_touched() {
        for (ranks, channels) in [(1, 2), (2, 1), (4, 3)] {
            ThreadComm::run(ranks, |comm| {
                let (device, _) = connected(&comm);
                // Each rank needs columns 1..4 of the whole image, cyclically shifted by its rank.
                let m = movement(&strips(ranks), channels, |r| {
                    let whole = required_pixels(Window::new(r.cast_signed(), r.cast_signed() + 12), HEIGHT, WIDTH);
                    whole.into_iter().map(|n| RequiredPixels { left: 1, right: 4, ..n }).collect()
                });
                let strip = m.have[comm.rank()];
                let (given, wanted) = (geometry(channels, strip), comm.rank().cast_signed());
                let into = geometry(channels, Window::new(wanted, wanted + 12));
                let mut source = device.allocate(given.bytes()).unwrap();
                device.write(&pixels(given, |y, _| strip.contains(y)), &mut source, 0).unwrap();
                let mut target = device.allocate(into.bytes()).unwrap();
                let load = redistribute(&device, &comm, &m, Some((&source, given)), (&mut target, into)).unwrap();
                assert_eq!(load.messages, ranks - 1, "one per pair of ranks");
                let mut got = vec![0; into.bytes()];
                device.read(&target, 0, &mut got).unwrap();
                let whole = pixels(into, |_, _| true);
                for (i, (g, w)) in got.iter().zip(&whole).enumerate() {
                    let read = (1..4).contains(&(i % WIDTH));
                    assert_eq!(*g, if read { *w } else { 0xff }, "byte {i} on rank {} of {ranks}", comm.rank());
                }
            });
        }
    }
}
