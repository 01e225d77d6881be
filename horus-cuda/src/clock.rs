//! Times of copies and kernels by the GPU's clock, from events around them in their streams.
//!
//! An event whose host time is known converts them to the host's clock. Only calls that have a label are timed
//! ([`horus_core::device::recording`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use horus_core::device::{DeviceQueue, DeviceSpan, WorkLabel};
use horus_core::error::DeviceError;

use crate::driver::{CudaEvent, CudaStream};

/// Lifetime of an origin. The driver reports times as floats, which lose resolution over longer spans.
const FRESH: Duration = Duration::from_secs(5);
/// Comparisons of the two clocks for one origin; the shortest one is used.
const LOOKS: usize = 5;
/// Number of running spans from which finished ones are read, so that their events are reused.
const MANY: usize = 512;

/// The clock of one GPU. Work that cannot be timed, because the driver returns no event, is done without a span.
#[derive(Debug, Default)]
pub(crate) struct GpuClock(Mutex<ClockState>);

#[derive(Debug, Default)]
struct ClockState {
    origin: Option<Arc<ClockOrigin>>,
    running: Vec<RunningSpan>,
    over: Vec<DeviceSpan>,
    spare: Vec<CudaEvent>,
}

/// An event and its time.
#[derive(Debug)]
struct ClockOrigin {
    event: CudaEvent,
    at: Instant,
}

/// A span that may still be running.
#[derive(Debug)]
struct RunningSpan {
    label: WorkLabel,
    lane: DeviceQueue,
    origin: Arc<ClockOrigin>,
    start: CudaEvent,
    end: CudaEvent,
}

impl ClockOrigin {
    /// The current time, measured in an otherwise empty stream. The context must be current.
    fn new() -> Result<ClockOrigin, DeviceError> {
        let stream = CudaStream::new()?;
        let mut best: Option<(Duration, ClockOrigin)> = None;
        for _ in 0..LOOKS {
            let (event, before) = (CudaEvent::new(true)?, Instant::now());
            event.record(&stream)?;
            event.wait()?;
            let took = before.elapsed();
            if best.as_ref().is_none_or(|(shortest, _)| took < *shortest) {
                best = Some((took, ClockOrigin { event, at: before + took / 2 }));
            }
        }
        best.map(|(_, origin)| origin).ok_or_else(|| DeviceError::Internal("nobody looked at the clock".into()))
    }
}

impl RunningSpan {
    /// The measured span; the work must be done.
    fn span(&self) -> Result<DeviceSpan, DeviceError> {
        let seconds = |ms: f32| f64::from(ms) / 1e3;
        let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        // Work that began before the origin counts from the origin.
        let start = self.origin.at + duration(seconds(self.start.since(&self.origin.event)?));
        let end = start + duration(seconds(self.end.since(&self.start)?));
        Ok(DeviceSpan { label: self.label, queue: self.lane, start, end })
    }
}

impl ClockState {
    fn event(&mut self) -> Result<CudaEvent, DeviceError> {
        self.spare.pop().map_or_else(|| CudaEvent::new(true), Ok)
    }

    /// Records the start of work in a stream; returns its event and the origin of its time.
    fn begin(&mut self, stream: &CudaStream) -> Result<(CudaEvent, Arc<ClockOrigin>), DeviceError> {
        if self.running.len() >= MANY {
            self.read(|running| running.end.passed())?;
        }
        let origin = match &self.origin {
            Some(origin) if origin.at.elapsed() < FRESH => Arc::clone(origin),
            _ => Arc::clone(self.origin.insert(Arc::new(ClockOrigin::new()?))),
        };
        let start = self.event()?;
        start.record(stream)?;
        Ok((start, origin))
    }

    /// Reads the spans for which `is_over` returns `true`.
    fn read(&mut self, is_over: impl Fn(&RunningSpan) -> Result<bool, DeviceError>) -> Result<(), DeviceError> {
        for running in std::mem::take(&mut self.running) {
            if is_over(&running)? {
                self.over.push(running.span()?);
                self.spare.extend([running.start, running.end]);
            } else {
                self.running.push(running);
            }
        }
        Ok(())
    }
}

impl GpuClock {
    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues work in a stream and times it if this thread's calls have a label. The context must
    /// be current.
    pub(crate) fn note<R>(&self, lane: DeviceQueue, stream: &CudaStream, work: impl FnOnce() -> R) -> R {
        self.note_for(WorkLabel::current(), lane, stream, work)
    }

    /// [`GpuClock::note`] for a call that was made under this label, if any.
    pub(crate) fn note_for<R>(
        &self,
        label: Option<WorkLabel>,
        lane: DeviceQueue,
        stream: &CudaStream,
        work: impl FnOnce() -> R,
    ) -> R {
        let Some(label) = label else { return work() };
        let begun = self.state().begin(stream);
        let result = work();
        let noted = begun.and_then(|(start, origin)| {
            let mut state = self.state();
            let end = state.event()?;
            end.record(stream)?;
            state.running.push(RunningSpan { label, lane, origin, start, end });
            Ok(())
        });
        if let Err(e) = noted {
            horus_core::warn!("cannot measure the times of a GPU: {e}");
        }
        result
    }

    /// Waits for the work whose labels are `own` and returns its times. The context must be current.
    pub(crate) fn take(&self, own: &dyn Fn(WorkLabel) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        let mut state = self.state();
        state.read(|running| if own(running.label) { running.end.wait().map(|()| true) } else { Ok(false) })?;
        Ok(state.over.extract_if(.., |span| own(span.label)).collect())
    }
}
