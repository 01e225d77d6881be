//! When copies and kernels ran, by the GPU's clock: events around them in their streams, told in the host's time by an event
//! of which the host knows when it was. Only for calls that have a label ([`horus_core::device::recording`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use horus_core::device::{DeviceSpan, Label, Lane};
use horus_core::error::DeviceError;

use crate::driver::{Event, Stream};

/// For so long times are told from one origin: the driver tells them as floats, which would become coarse.
const FRESH: Duration = Duration::from_secs(5);
/// How often the two clocks are compared for an origin: the shortest look counts.
const LOOKS: usize = 5;
/// Spans under way from which on those that are over are read, so that their events are used again.
const MANY: usize = 512;

/// The clock of one GPU. Whatever is noted, the work itself is done: a driver that refuses an event costs a span.
#[derive(Debug, Default)]
pub(crate) struct Clock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    origin: Option<Arc<Origin>>,
    running: Vec<Running>,
    over: Vec<DeviceSpan>,
    spare: Vec<Event>,
}

/// An event, and when it was.
#[derive(Debug)]
struct Origin {
    event: Event,
    at: Instant,
}

/// A span that may not be over.
#[derive(Debug)]
struct Running {
    label: Label,
    lane: Lane,
    origin: Arc<Origin>,
    start: Event,
    end: Event,
}

impl Origin {
    /// Now. In a stream of its own, which nothing holds up; the context is current.
    fn new() -> Result<Origin, DeviceError> {
        let stream = Stream::new()?;
        let mut best: Option<(Duration, Origin)> = None;
        for _ in 0..LOOKS {
            let (event, before) = (Event::new(true)?, Instant::now());
            event.record(&stream)?;
            event.wait()?;
            let took = before.elapsed();
            if best.as_ref().is_none_or(|(shortest, _)| took < *shortest) {
                best = Some((took, Origin { event, at: before + took / 2 }));
            }
        }
        best.map(|(_, origin)| origin).ok_or_else(|| DeviceError::Internal("nobody looked at the clock".into()))
    }
}

impl Running {
    /// When it was, if it is over.
    fn span(&self) -> Result<DeviceSpan, DeviceError> {
        let seconds = |ms: f32| f64::from(ms) / 1e3;
        let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        // Work that began before the origin was looked at counts from there.
        let start = self.origin.at + duration(seconds(self.start.since(&self.origin.event)?));
        let end = start + duration(seconds(self.end.since(&self.start)?));
        Ok(DeviceSpan { label: self.label, lane: self.lane, start, end })
    }
}

impl State {
    fn event(&mut self) -> Result<Event, DeviceError> {
        self.spare.pop().map_or_else(|| Event::new(true), Ok)
    }

    /// An event in a stream where work begins, and the origin of its time.
    fn begin(&mut self, stream: &Stream) -> Result<(Event, Arc<Origin>), DeviceError> {
        if self.running.len() >= MANY {
            self.read(|running| running.end.passed())?;
        }
        let origin = match &self.origin {
            Some(origin) if origin.at.elapsed() < FRESH => Arc::clone(origin),
            _ => Arc::clone(self.origin.insert(Arc::new(Origin::new()?))),
        };
        let start = self.event()?;
        start.record(stream)?;
        Ok((start, origin))
    }

    /// Reads the spans that `is_over` says are.
    fn read(&mut self, is_over: impl Fn(&Running) -> Result<bool, DeviceError>) -> Result<(), DeviceError> {
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

impl Clock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts work into a stream, and notes when it runs if this thread's calls have a label. The context is current.
    pub(crate) fn note<R>(&self, lane: Lane, stream: &Stream, work: impl FnOnce() -> R) -> R {
        self.note_for(Label::current(), lane, stream, work)
    }

    /// [`Clock::note`] for a call that had this label, if any.
    pub(crate) fn note_for<R>(&self, label: Option<Label>, lane: Lane, stream: &Stream, work: impl FnOnce() -> R) -> R {
        let Some(label) = label else { return work() };
        let begun = self.state().begin(stream);
        let result = work();
        let noted = begun.and_then(|(start, origin)| {
            let mut state = self.state();
            let end = state.event()?;
            end.record(stream)?;
            state.running.push(Running { label, lane, origin, start, end });
            Ok(())
        });
        if let Err(e) = noted {
            horus_core::warn!("it is not known when a GPU worked: {e}");
        }
        result
    }

    /// Waits for what has a label that is `own`, and takes when it was. The context is current.
    pub(crate) fn take(&self, own: &dyn Fn(Label) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        let mut state = self.state();
        state.read(|running| if own(running.label) { running.end.wait().map(|()| true) } else { Ok(false) })?;
        Ok(state.over.extract_if(.., |span| own(span.label)).collect())
    }
}
