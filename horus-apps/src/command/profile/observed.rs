//! A device that records its launches, with their times and the events that the processor counted meanwhile.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use horus_core::device::{
    Device, DeviceNames, DeviceSpan, DeviceUsage, Geometry, Launch, Memory, MemoryKind, PreparedLaunch, Staging,
    WorkLabel,
};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::workers::Workers;
use horus_core::ir::kernel::Kernel;
use horus_core::shape::Window;

use super::counters::{ThreadCounters, ThreadEvents};

/// A launch without its memory.
#[derive(Clone, Debug)]
pub(super) struct ObservedLaunch {
    pub(super) kernel: Kernel,
    pub(super) inputs: Vec<Geometry>,
    pub(super) output: Geometry,
    pub(super) rows: Window,
    /// Time of the launch; `None` for copies, and until the GPU's times are read.
    pub(super) seconds: Option<f64>,
    pub(super) counts: Option<ThreadEvents>,
}

/// A device and its launches, one by one.
pub(super) struct ObservedDevice {
    device: Arc<dyn Device>,
    /// Number of launches so far, for a GPU, whose clock times them.
    launched: Option<Box<dyn Fn() -> usize + Send + Sync>>,
    counters: Option<Mutex<ThreadCounters>>,
    seen: Mutex<Vec<ObservedLaunch>>,
}

impl ObservedDevice {
    /// Records the launches of a processor.
    pub(super) fn host(device: Arc<dyn Device>, counters: Option<ThreadCounters>) -> ObservedDevice {
        ObservedDevice { device, launched: None, counters: counters.map(Mutex::new), seen: Mutex::default() }
    }

    /// Records the launches of a GPU; `launched` returns their number.
    #[cfg(feature = "cuda")]
    pub(super) fn gpu(device: Arc<dyn Device>, launched: impl Fn() -> usize + Send + Sync + 'static) -> ObservedDevice {
        ObservedDevice { device, launched: Some(Box::new(launched)), counters: None, seen: Mutex::default() }
    }

    /// The launches since the last call. `times` has the times of a GPU's launches that are not copies.
    pub(super) fn take_launches(&self, times: &[f32]) -> Vec<ObservedLaunch> {
        let mut seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let timed = seen.iter_mut().filter(|s| self.launched.is_some() && s.seconds.is_some());
        timed.zip(times).for_each(|(seen, ms)| seen.seconds = Some(f64::from(*ms) / 1e3));
        seen
    }

    fn counts(&self) -> Option<ThreadEvents> {
        self.counters.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).read()
    }
}

impl Device for ObservedDevice {
    fn names(&self) -> DeviceNames {
        self.device.names()
    }

    fn memory(&self) -> MemoryKind<'_> {
        self.device.memory()
    }

    fn workers(&self) -> &Workers {
        self.device.workers()
    }

    fn staging(&self) -> &dyn Staging {
        self.device.staging()
    }

    fn usage(&self) -> DeviceUsage {
        self.device.usage()
    }

    fn trim(&self) -> Result<(), DeviceError> {
        self.device.trim()
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.device.allocate(bytes)
    }

    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        self.device.write(source, target, at)
    }

    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(source, at, target)
    }

    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        self.device.copy(source, target, pieces)
    }

    fn prepare(&self, launches: &[PreparedLaunch<'_>]) -> Result<(), DeviceError> {
        self.device.prepare(launches)
    }

    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        let inputs = launch.inputs.iter().map(|input| input.geometry).collect();
        let (kernel, output, rows) = (launch.kernel.clone(), launch.geometry, launch.rows);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, launched) = (self.counts(), self.launched.as_ref().map(|n| n()));
        let start = Instant::now();
        self.device.launch(launch)?;
        let took = start.elapsed().as_secs_f64();
        let is_timed = self.launched.as_ref().map(|n| n()) != launched || launched.is_none();
        let counts = before.zip(self.counts()).map(|(before, after)| after.since(before));
        seen.push(ObservedLaunch { kernel, inputs, output, rows, seconds: is_timed.then_some(took), counts });
        Ok(())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.device.synchronize()
    }

    fn recorded(&self, own: &dyn Fn(WorkLabel) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        self.device.recorded(own)
    }
}
