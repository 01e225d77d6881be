//! When each step of each plan ran, in the format of Chrome's trace viewer and Perfetto.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::plan::{Action, Plan};

/// How long evaluations took, by activity. On a device that works asynchronously, `kernels` is the time until the host
/// had launched them and had waited for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Choosing and opening a device, where that was deferred until the first evaluation.
    pub start: Duration,
    /// Optimising and planning.
    pub planning: Duration,
    /// Copies from host to device.
    pub upload: Duration,
    /// Making, launching and awaiting kernels.
    pub kernels: Duration,
    /// Copies from device to host.
    pub download: Duration,
    /// Transfers between ranks.
    pub communication: Duration,
    /// Everything else: returning results, freeing memory.
    pub rest: Duration,
}

impl Times {
    fn add(&mut self, other: &Times) {
        let Times { start, planning, upload, kernels, download, communication, rest } = other;
        self.start += *start;
        self.planning += *planning;
        self.upload += *upload;
        self.kernels += *kernels;
        self.download += *download;
        self.communication += *communication;
        self.rest += *rest;
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        self.start + self.planning + self.upload + self.kernels + self.download + self.communication + self.rest
    }
}

/// A recording of steps. Times are always added up; single steps are kept if asked for.
#[derive(Debug)]
pub struct Trace {
    times: Times,
    epoch: Instant,
    rank: usize,
    events: Option<Vec<Event>>,
}

#[derive(Debug, Serialize)]
struct Event {
    name: String,
    cat: &'static str,
    ph: &'static str,
    ts: f64,
    dur: f64,
    pid: usize,
    tid: usize,
}

impl Trace {
    /// A trace for rank `rank` that records if `on`.
    pub fn new(rank: usize, on: bool) -> Trace {
        Trace { times: Times::default(), epoch: Instant::now(), rank, events: on.then(Vec::new) }
    }

    /// Adds a step that began at `start` and ends now.
    pub fn add(&mut self, start: Instant, action: &Action, plan: &Plan) {
        *match action {
            Action::Launch { .. } => &mut self.times.kernels,
            Action::Upload { .. } | Action::UploadStrip { .. } => &mut self.times.upload,
            Action::Download(_) | Action::Send { .. } => &mut self.times.download,
            Action::Deliver(_) | Action::Free(_) | Action::Evict(_) => &mut self.times.rest,
            _ => &mut self.times.communication,
        } += start.elapsed();
        if self.events.is_some() {
            let category = match action {
                Action::Launch { .. } => "kernel",
                Action::Upload { .. } | Action::UploadStrip { .. } | Action::Download(_) | Action::Send { .. } => {
                    "copy"
                }
                Action::Deliver(_) | Action::Free(_) | Action::Evict(_) => "memory",
                _ => "communication",
            };
            let text = plan.describe(action);
            self.span(start, category, text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }

    /// Adds the choice and opening of the device, which began at `start` and ends now.
    pub fn started(&mut self, start: Instant) {
        self.times.start += start.elapsed();
        self.span(start, "start", "open the device");
    }

    /// Adds the planning of an evaluation, which began at `start` and ends now.
    pub fn planned(&mut self, start: Instant) {
        self.times.planning += start.elapsed();
        self.span(start, "planning", "optimise and plan");
    }

    /// Adds the making of a plan's kernels, which began at `start` and ends now.
    pub fn prepared(&mut self, start: Instant) {
        self.times.kernels += start.elapsed();
        self.span(start, "kernel", "building kernels");
    }

    /// Adds the wait for a device's kernels, which began at `start` and ends now.
    pub fn waited(&mut self, start: Instant) {
        self.times.kernels += start.elapsed();
        self.span(start, "kernel", "waiting for the device");
    }

    /// Adds the copy of a result to the program's memory, which began at `start` and ends now.
    pub fn brought(&mut self, start: Instant) {
        self.times.download += start.elapsed();
        self.span(start, "copy", "bring a result");
    }

    /// Adds a copy of the program's pixels to the device, which began at `start` and took so long.
    pub fn taken(&mut self, start: Instant, took: Duration) {
        self.times.upload += took;
        self.until(start, start + took, "copy", "take pixels");
    }

    /// How long everything took so far.
    pub fn times(&self) -> Times {
        self.times
    }

    /// Adds a span that began at `start` and ends now.
    fn span(&mut self, start: Instant, category: &'static str, name: impl Into<String>) {
        self.until(start, Instant::now(), category, name);
    }

    fn until(&mut self, start: Instant, end: Instant, category: &'static str, name: impl Into<String>) {
        let micros = |t: Instant| t.duration_since(self.epoch).as_secs_f64() * 1e6;
        let (ts, end) = (micros(start), micros(end));
        if let Some(events) = &mut self.events {
            let event = Event { name: name.into(), cat: category, ph: "X", ts, dur: end - ts, pid: self.rank, tid: 0 };
            events.push(event);
        }
    }

    /// Whether single steps are kept.
    pub fn is_on(&self) -> bool {
        self.events.is_some()
    }

    /// Takes over what another trace has recorded, as what this rank did.
    pub fn absorb(&mut self, other: &mut Trace) {
        self.times.add(&std::mem::take(&mut other.times));
        // Both count from their own beginning.
        let earlier = self.epoch.saturating_duration_since(other.epoch).as_secs_f64();
        let later = (other.epoch.saturating_duration_since(self.epoch).as_secs_f64() - earlier) * 1e6;
        if let (Some(events), Some(others)) = (&mut self.events, &mut other.events) {
            let rank = self.rank;
            events.extend(others.drain(..).map(|e| Event { ts: e.ts + later, pid: rank, ..e }));
        }
    }

    /// This rank's events as JSON, separated by commas.
    pub fn json_events(&self) -> String {
        let events: Vec<String> = self.events.iter().flatten().map(|e| serde_json::json!(e).to_string()).collect();
        events.join(",")
    }
}

/// A trace from the events of all ranks ([`Trace::json_events`]): `{"traceEvents": [...]}`.
pub fn json(ranks: &[Vec<u8>]) -> String {
    let parts: Vec<_> = ranks.iter().filter(|p| !p.is_empty()).map(|p| String::from_utf8_lossy(p)).collect();
    format!("{{\"traceEvents\":[{}],\"displayTimeUnit\":\"ms\"}}", parts.join(","))
}
