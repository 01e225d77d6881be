//! Call counts of a simulated device.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts of calls of a [`SimulatedDevice`](super::SimulatedDevice).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Whole or partial copies from the host.
    pub writes: usize,
    /// Whole or partial copies to the host.
    pub reads: usize,
    /// Kernels.
    pub launches: usize,
    /// Batches of kernels.
    pub batches: usize,
    /// Host buffers used by launches in place of device memory.
    pub maps: usize,
    /// Connections with the devices of other ranks.
    pub connections: usize,
    /// Exchanges with the devices of other ranks.
    pub exchanges: usize,
    /// Bytes currently allocated.
    pub bytes: usize,
    /// Peak of allocated bytes.
    pub peak: usize,
}

#[derive(Debug, Default)]
pub(super) struct CallCounters {
    pub(super) writes: AtomicUsize,
    pub(super) reads: AtomicUsize,
    pub(super) launches: AtomicUsize,
    pub(super) batches: AtomicUsize,
    pub(super) maps: AtomicUsize,
    pub(super) connections: AtomicUsize,
    pub(super) exchanges: AtomicUsize,
    pub(super) bytes: AtomicUsize,
    pub(super) peak: AtomicUsize,
}

/// Access to the counts of a [`SimulatedDevice`](super::SimulatedDevice) that belongs to a session.
#[derive(Clone, Debug)]
pub struct CallCountsHandle(pub(super) Arc<CallCounters>);

impl CallCountsHandle {
    /// The counts so far.
    pub fn get(&self) -> CallCounts {
        let c = &self.0;
        let get = |a: &AtomicUsize| a.load(Ordering::Relaxed);
        CallCounts {
            writes: get(&c.writes),
            reads: get(&c.reads),
            launches: get(&c.launches),
            batches: get(&c.batches),
            maps: get(&c.maps),
            connections: get(&c.connections),
            exchanges: get(&c.exchanges),
            bytes: get(&c.bytes),
            peak: get(&c.peak),
        }
    }
}
