//! Exchanges of the simulated device.

use horus_cpu::device::CpuDevice;
use horus_host::StridedCopy;
use horus_host::comm::Communicator;
use horus_host::comm::threads::ThreadComm;
use horus_host::device::{BlockCopy, Device, Exchange, Fabric, Memory, Message, Ticket};
use horus_testing::simulated::SimulatedDevice;

const N: usize = 64;

/// Two ranks swap blocks: each sends its number from a block of its own, also copies that
/// block, and continues with `then` while the exchange is in progress. Checks the target
/// returned by `then`.
fn swapped(then: impl Fn(&SimulatedDevice<CpuDevice>, Memory, Memory, Ticket) -> Option<Memory> + Sync) {
    ThreadComm::run(2, |comm| {
        let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20).with_fabric();
        let (mine, other) = (comm.rank(), 1 - comm.rank());
        let (mut source, mut target) = (device.allocate(N).unwrap(), device.allocate(2 * N).unwrap());
        device.write(&[mine as u8; N], &mut source, 0).unwrap();
        let work = Exchange {
            before: Vec::new(),
            sends: vec![Message { rank: other, block: 0, at: 0, bytes: N }],
            receives: vec![Message { rank: other, block: 1, at: 0, bytes: N }],
            after: vec![BlockCopy { from: 0, to: 1, pieces: vec![StridedCopy::run(0, N, N)] }],
        };
        let ticket = device.exchange(&comm, &[&source], &mut [&mut target], &work).unwrap();
        if let Some(target) = then(&device, source, target, ticket) {
            let mut got = [9; 2 * N];
            device.read(&target, 0, &mut got).unwrap();
            assert_eq!((&got[..N], &got[N..]), (&[other as u8; N][..], &[mine as u8; N][..]));
        }
        assert_eq!(device.call_counts().get().bytes, 0, "nothing stays allocated");
    });
}

#[test]
fn what_an_exchange_reads_may_go_away_and_its_memory_be_used_again() {
    swapped(|device, source, mut target, ticket| {
        drop(source);
        let mut next = device.allocate(N).unwrap();
        device.write(&[77; N], &mut next, 0).unwrap();
        device.wait_for_exchange(ticket, &mut [&mut target]).unwrap();
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
        // Probably at the address of the target.
        let mut next = device.allocate(2 * N).unwrap();
        device.write(&[77; 2 * N], &mut next, 0).unwrap();
        let refused = device.wait_for_exchange(ticket, &mut [&mut next]).unwrap_err().to_string();
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
    let comm = horus_host::comm::SingleRankComm;
    let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20).with_fabric();
    let (source, mut target) = (device.allocate(N).unwrap(), device.allocate(N).unwrap());
    let message = |block, at, bytes| vec![Message { rank: 1, block, at, bytes }];
    let copy = |from, to, piece| vec![BlockCopy { from, to, pieces: vec![piece] }];
    let nothing = Exchange::default;
    let long = StridedCopy { rows: usize::MAX, ..StridedCopy::run(0, 0, 8) };
    for work in [
        Exchange { sends: message(0, 1, N), ..nothing() },
        Exchange { sends: message(0, usize::MAX, 2), ..nothing() },
        Exchange { sends: message(2, 0, 1), ..nothing() },
        Exchange { receives: message(0, 0, 1), ..nothing() },
        Exchange { receives: message(1, 1, usize::MAX), ..nothing() },
        Exchange { before: copy(0, 1, StridedCopy::run(0, 1, N)), ..nothing() },
        Exchange { after: copy(0, 0, StridedCopy::run(0, 0, 1)), ..nothing() },
        Exchange { after: copy(1, 1, long), ..nothing() },
    ] {
        assert!(device.exchange(&comm, &[&source], &mut [&mut target], &work).is_err(), "{work:?}");
    }
}
