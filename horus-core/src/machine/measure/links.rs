//! Measures messages between ranks: from device to device, within a host, between hosts.

use std::time::Instant;

use super::fit::median;
use crate::comm::{CommError, Communicator, share};
use crate::device::{Device, Exchange, Fabric, Memory, Message};
use crate::error::DeviceError;
use crate::machine::{Link, Links, MachineProfile, here};

/// Measures messages between rank 0 and one other rank per kind of link, while the others wait. All
/// ranks get the same numbers. Links without a pair of ranks keep their values.
pub(super) fn measure(
    device: &dyn Device,
    comm: &dyn Communicator,
    quick: bool,
    links: &mut Links,
) -> Result<(), CommError> {
    if comm.size() == 1 {
        return Ok(());
    }
    let sizes = if quick { [64, 1 << 20] } else { [64, 32 << 20] };
    measure_hosts(comm, &sizes, RUNS, links)?;
    let fabric = device.fabric();
    let addresses = comm.gather(fabric.map_or(0, |fabric| fabric.address()))?;
    let connected = |fabric: &&dyn Fabric| fabric.connect(comm, &addresses).unwrap_or(false);
    let Some(fabric) = fabric.filter(connected) else { return Ok(()) };
    let found = between_devices(device, fabric, comm, sizes);
    let sound = comm.gather(u64::from(found.is_ok()))?.iter().all(|ok| *ok == 1);
    match found {
        Ok(times) if sound => links.peers = share(comm, 0, || line(sizes, times).unwrap_or(links.peers))?,
        Ok(_) => {}
        Err(why) => crate::warn!("messages between devices could not be measured and are assumed: {why}"),
    }
    Ok(())
}

/// Measures messages between hosts, and within one: of the first size, and of others until one takes long enough.
fn measure_hosts(comm: &dyn Communicator, sizes: &[usize], runs: usize, links: &mut Links) -> Result<(), CommError> {
    /// Seconds of messages that are not bounded by caches: a guess.
    const LONG: f64 = 0.5e-3;
    let nodes = comm.gather(comm.node() as u64)?;
    let other = |same: bool| (1..nodes.len()).find(|rank| (nodes[*rank] == nodes[0]) == same);
    for (pair, link) in [(other(true), &mut links.host), (other(false), &mut links.network)] {
        let (Some(rank), Some((short, others))) = (pair, sizes.split_first()) else { continue };
        let first = through_hosts(comm, rank, *short, runs)?;
        for long in others {
            let time = through_hosts(comm, rank, *long, runs)?;
            let (found, is_long) = share(comm, 0, || (line([*short, *long], [first, time]), time > LONG))?;
            *link = found.unwrap_or(*link);
            if is_long {
                break;
            }
        }
    }
    Ok(())
}

/// Measures the links between hosts, and within one, if some rank only assumes them and none is told a profile. A network
/// that is slower than assumed would be used too often. Collective.
pub(crate) fn measure_assumed(comm: &dyn Communicator, mine: &mut MachineProfile) -> Result<(), CommError> {
    if comm.size() == 1 {
        return Ok(());
    }
    let Links { host, network, .. } = mine.links;
    let is_assumed = [host, network].contains(&Link::default());
    let wishes = comm.gather(if here::is_told() { 2 } else { u64::from(is_assumed) })?;
    if wishes.contains(&2) || !wishes.contains(&1) {
        return Ok(());
    }
    let mut found = mine.links;
    measure_hosts(comm, &[64, 256 << 10, 4 << 20], 3, &mut found)?;
    let known = |was: Link, is: Link| if was == Link::default() { is } else { was };
    (mine.links.host, mine.links.network) = (known(host, found.host), known(network, found.network));
    Ok(())
}

/// The line through two sizes of messages; `None` if the longer message did not take longer.
fn line(sizes: [usize; 2], [short, long]: [f64; 2]) -> Option<Link> {
    let (bytes, seconds) = ((sizes[1] - sizes[0]) as f64, long - short);
    (seconds > 0.0).then(|| Link { latency: short, bandwidth: bytes / seconds })
}

/// Number of runs; the median counts.
const RUNS: usize = 9;

/// Seconds for ranks 0 and `other` to send each other `bytes` concurrently.
fn through_hosts(comm: &dyn Communicator, other: usize, bytes: usize, runs: usize) -> Result<f64, CommError> {
    let (sent, mut received) = (vec![1u8; bytes], vec![0u8; bytes]);
    let mut times = Vec::new();
    for _ in 0..runs {
        comm.gather(0)?;
        let start = Instant::now();
        let partner = match comm.rank() {
            0 => Some(other),
            rank if rank == other => Some(0),
            _ => None,
        };
        if let Some(partner) = partner {
            comm.exchange(&[(partner, &sent)], &mut [(partner, &mut received)])?;
        }
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(median(times).unwrap_or_default())
}

/// Seconds for the devices of ranks 0 and 1 to send each other these bytes concurrently.
fn between_devices(
    device: &dyn Device,
    fabric: &dyn Fabric,
    comm: &dyn Communicator,
    sizes: [usize; 2],
) -> Result<[f64; 2], DeviceError> {
    let (from, mut to): (Memory, Memory) = (device.allocate(sizes[1])?, device.allocate(sizes[1])?);
    let mut seconds = |bytes: usize| -> Result<f64, DeviceError> {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            device.synchronize()?;
            comm.gather(0)?;
            let start = Instant::now();
            if let rank @ (0 | 1) = comm.rank() {
                let message = |block: usize| Message { rank: 1 - rank, block, at: 0, bytes };
                let work = Exchange { sends: vec![message(0)], receives: vec![message(1)], ..Exchange::default() };
                let ticket = fabric.exchange(comm, &[&from], &mut [&mut to], &work)?;
                fabric.wait_for_exchange(ticket, &mut [&mut to])?;
                device.synchronize()?;
            }
            times.push(start.elapsed().as_secs_f64());
        }
        Ok(median(times).unwrap_or_default())
    };
    Ok([seconds(sizes[0])?, seconds(sizes[1])?])
}
