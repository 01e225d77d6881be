//! What a simulated device was asked for, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts of calls of a [`Simulated`](super::Simulated) device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Whole or partial copies from the host.
    pub writes: usize,
    /// Whole or partial copies to the host.
    pub reads: usize,
    /// Kernels.
    pub launches: usize,
    /// Buffers of the host that launches used in place of the device's memory.
    pub maps: usize,
    /// Exchanges with the devices of other ranks.
    pub exchanges: usize,
    /// Bytes allocated now.
    pub bytes: usize,
    /// Most bytes allocated at any time.
    pub peak: usize,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) writes: AtomicUsize,
    pub(super) reads: AtomicUsize,
    pub(super) launches: AtomicUsize,
    pub(super) maps: AtomicUsize,
    pub(super) exchanges: AtomicUsize,
    pub(super) bytes: AtomicUsize,
    pub(super) peak: AtomicUsize,
}

/// Reads the counts of a [`Simulated`](super::Simulated) device after it was given to a session.
#[derive(Clone, Debug)]
pub struct LogHandle(pub(super) Arc<Counters>);

impl LogHandle {
    /// The counts so far.
    pub fn get(&self) -> Log {
        let c = &self.0;
        let get = |a: &AtomicUsize| a.load(Ordering::Relaxed);
        Log {
            writes: get(&c.writes),
            reads: get(&c.reads),
            launches: get(&c.launches),
            maps: get(&c.maps),
            exchanges: get(&c.exchanges),
            bytes: get(&c.bytes),
            peak: get(&c.peak),
        }
    }
}
