//! A simulated device with its own memory, computing on host memory, to test residency without a GPU.
//!
//! It counts calls. Its memory is really separate, and fresh memory is poisoned, so that a missing upload or a stale
//! copy shows as wrong pixels.

mod batch;
mod exchange;
mod log;
mod memory;
mod staging;

use horus_plan::ops::Whole;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use horus_base::error::{DeviceError, MemoryBound};
use horus_base::shape::Window;
use horus_host::StridedCopy;
use horus_host::device::check::part;
use horus_host::device::recording::HostSpans;
use horus_host::device::{
    Batching, Device, DeviceNames, DeviceQueue, DeviceSpan, DeviceUsage, Fabric, Foreign, Geometry, Launch,
    LaunchInput, Memory, MemoryKind, PreparedLaunch, Staging, WorkLabel,
};
use horus_host::workers::Workers;
use horus_plan::ir::kernel::Kernel;

use self::exchange::PendingArrivals;
use self::log::CallCounters;
use self::memory::{SeparateMemory, bytes, fit, foreign, separate, separate_mut};

pub use log::{CallCounts, CallCountsHandle};

/// Fill byte of fresh memory: NaN in floats, the largest value in unsigned integers.
const POISON: u8 = 0xff;

/// A device with separate memory of a given size, computing on `inner`.
#[derive(Debug)]
pub struct SimulatedDevice<D> {
    inner: D,
    capacity: AtomicUsize,
    address: u64,
    /// Predicted seconds and bytes that a connection takes.
    connection: (f64, usize),
    /// Exchanges in progress, by ticket.
    pending_exchanges: Mutex<HashMap<u64, PendingArrivals>>,
    /// Prepared launches, if no others are allowed.
    prepared: Option<Mutex<Vec<LaunchSignature>>>,
    /// Set if launches can use the host's memory.
    mapping: bool,
    counters: Arc<CallCounters>,
    /// Copies and exchanges; `inner` records launches.
    spans: HostSpans,
}

/// A launch without its memory: kernel, inputs, output, rows.
type LaunchSignature = (Kernel, Vec<Geometry>, Geometry, Window);

impl<D: Device> SimulatedDevice<D> {
    /// A device of `capacity` bytes.
    pub fn new(inner: D, capacity: usize) -> SimulatedDevice<D> {
        let (arriving, counters) = (Mutex::default(), Arc::default());
        let spans = HostSpans::default();
        SimulatedDevice {
            inner,
            capacity: AtomicUsize::new(capacity),
            address: 0,
            connection: (0.0, 0),
            pending_exchanges: arriving,
            prepared: None,
            mapping: false,
            counters,
            spans,
        }
    }

    /// Makes unprepared launches fail, from the first [`Device::prepare`] on.
    #[must_use]
    pub fn requiring_preparation(mut self) -> SimulatedDevice<D> {
        self.prepared = Some(Mutex::default());
        self
    }

    /// Enables page-locked host memory, which launches can use in place of device memory.
    #[must_use]
    pub fn with_mapping(mut self) -> SimulatedDevice<D> {
        self.mapping = true;
        self
    }

    /// Enables peer-to-peer exchange with the simulated devices of other ranks that have it enabled.
    #[must_use]
    pub fn with_fabric(mut self) -> SimulatedDevice<D> {
        // The count is unique among the ranks of one process, the process id among processes.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.address = (u64::from(std::process::id()) << 32) | NEXT.fetch_add(1, Ordering::Relaxed);
        self
    }

    /// Sets the predicted seconds and the bytes of this device that a connection takes.
    #[must_use]
    pub fn connecting_in(mut self, seconds: f64, bytes: usize) -> SimulatedDevice<D> {
        self.connection = (seconds, bytes);
        self
    }

    /// The device's counts, readable while a session owns the device.
    pub fn call_counts(&self) -> CallCountsHandle {
        CallCountsHandle(Arc::clone(&self.counters))
    }
}

impl<D: Device> Device for SimulatedDevice<D> {
    fn names(&self) -> DeviceNames {
        DeviceNames::named(format!("simulated device on {}", self.inner.names().name))
    }

    fn memory(&self) -> MemoryKind<'_> {
        MemoryKind::Separate(Some(self.capacity.load(Ordering::Relaxed)))
    }

    fn workers(&self) -> &Workers {
        self.inner.workers()
    }

    fn staging(&self) -> &dyn Staging {
        self
    }

    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }

    fn fabric(&self) -> Option<&dyn Fabric> {
        if self.address == 0 { None } else { Some(self) }
    }

    fn foreign(&self) -> Option<&dyn Foreign> {
        Some(self)
    }

    fn usage(&self) -> DeviceUsage {
        let [held, peak] = [&self.counters.bytes, &self.counters.peak].map(|count| count.load(Ordering::Relaxed));
        DeviceUsage { memory: Some((held, peak)), ..DeviceUsage::default() }
    }

    fn allocate(&self, size: usize) -> Result<Memory, DeviceError> {
        let used = self.counters.bytes.load(Ordering::Relaxed);
        let capacity = self.capacity.load(Ordering::Relaxed);
        if used.checked_add(size).is_none_or(|after| after > capacity) {
            let bound = MemoryBound::Device { bytes: capacity };
            return Err(DeviceError::OutOfMemory { bytes: size, used, bound });
        }
        let mut memory = self.inner.allocate(size)?;
        memory.host_mut().ok_or_else(foreign)?.bytes_mut().fill(POISON);
        self.counters.bytes.fetch_add(size, Ordering::Relaxed);
        self.counters.peak.fetch_max(used + size, Ordering::Relaxed);
        let counters = Arc::clone(&self.counters);
        Ok(Memory::Device(Box::new(SeparateMemory { memory, identity: Arc::default(), mapped: false, counters })))
    }

    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        let host = separate_mut(target)?.host_mut().ok_or_else(foreign)?;
        let range = part(at, source.len(), host.len())?;
        self.spans.note(DeviceQueue::Upload, || host.bytes_mut()[range].copy_from_slice(source));
        Ok(())
    }

    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        let source = bytes(separate(source)?)?;
        let source = &source[part(at, target.len(), source.len())?];
        self.spans.note(DeviceQueue::Download, || target.copy_from_slice(source));
        Ok(())
    }

    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        let from = bytes(separate(source)?)?;
        let to = separate_mut(target)?.host_mut().ok_or_else(foreign)?.bytes_mut();
        fit(pieces, from.len(), to.len())?;
        for (a, b, len) in pieces.iter().flat_map(|p| p.runs()) {
            to[b..b + len].copy_from_slice(&from[a..a + len]);
        }
        Ok(())
    }

    fn prepare(&self, launches: &[PreparedLaunch<'_>]) -> Result<(), DeviceError> {
        if let Some(announced) = &self.prepared {
            let each = launches.iter().map(|l| (l.kernel.clone(), l.inputs.clone(), l.output, l.rows));
            announced.lock().unwrap_or_else(PoisonError::into_inner).extend(each);
        }
        Ok(())
    }

    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        if let Some(announced) = &self.prepared
            && !matches!(launch.kernel, Kernel::Whole(Whole::Merge(_)))
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
        let inputs: Vec<LaunchInput<'_>> = launch
            .inputs
            .iter()
            .map(|i| Ok(LaunchInput { memory: separate(i.memory)?, geometry: i.geometry }))
            .collect::<Result<_, DeviceError>>()?;
        let Launch { kernel, geometry, rows, .. } = launch;
        let mut more: Vec<&mut Memory> =
            launch.additional_outputs.iter_mut().map(|m| separate_mut(m)).collect::<Result<_, _>>()?;
        let output = separate_mut(launch.output)?;
        self.inner.launch(Launch { kernel, inputs: &inputs, output, additional_outputs: &mut more, geometry, rows })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }

    fn recorded(&self, own: &dyn Fn(WorkLabel) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        let mut spans = self.inner.recorded(own)?;
        spans.extend(self.spans.take(own));
        Ok(spans)
    }
}
