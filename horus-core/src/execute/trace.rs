//! Times of the steps of each plan, on the host and on the device, and their predictions: in total, and step by step in
//! the format of Chrome's trace viewer and Perfetto (`rows`).
//!
//! Timed calls have a label on their thread (`horus-host/src/device/recording.rs`). A device records the span of their
//! work and returns it in the host's time; a GPU uses events in its streams (`horus-cuda/src/clock.rs`). [`Times`]
//! partitions the host's time. [`BusyTimes`] has the busy time of each part of the machine, and parts overlap.

mod rows;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use self::rows::{MemorySample, TraceEvent};
use crate::device::{Device, DeviceQueue, DeviceSpan, WorkLabel};
use crate::error::DeviceError;
use crate::machine::Load;
use crate::plan::predict::predict;
use crate::plan::{Action, Activity, BusyTimes, NamedStep, Plan, Queue};

pub use self::rows::json;

/// Time of the host in evaluations, by activity. Each moment counts once, so the sum is the duration of evaluations.
///
/// A device works asynchronously. For copies that are concurrent with kernels, `upload` and `download` contain the time
/// to start them, and the time in which the host waited for nothing else. The rest is hidden in `kernels`: the time
/// until kernels were built and launched and the device had finished all work before the results.
/// [`Session::measured`](crate::session::Session::measured) returns the busy time of each part of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Choosing and opening a device that was deferred until the first evaluation.
    pub start: Duration,
    /// Optimising and planning.
    pub planning: Duration,
    /// Copies from host to device: starting them, or all of their time if the host makes them.
    pub upload: Duration,
    /// Building, launching and awaiting kernels, and copies concurrent with them.
    pub kernels: Duration,
    /// Copies from device to host, as far as the host waited for them.
    pub download: Duration,
    /// Transfers between ranks: all time of transfers through the host, the start of transfers between devices.
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

    /// Sum of all activities.
    pub fn total(&self) -> Duration {
        self.start + self.planning + self.upload + self.kernels + self.download + self.communication + self.rest
    }
}

/// Maximum number of recorded steps; the older half is dropped first.
const MOST_EVENTS: usize = 1 << 18;

/// Maximum number of plans that a page shows, the first.
const MOST_PLANS: usize = 64;

/// A plan as a page shows it.
#[derive(Clone, Debug)]
pub struct ShownPlan {
    /// The steps, named by the calls of the program.
    pub steps: Vec<NamedStep>,
    /// The program and the plan, as SVG.
    pub drawing: String,
}

/// A recording of steps. The host's times are always added up. The device's times, and single steps, are recorded on
/// request.
#[derive(Debug)]
pub struct Trace {
    times: Times,
    epoch: Instant,
    rank: usize,
    /// The name of this rank, or of this device of several in a process.
    name: String,
    events: Option<Vec<TraceEvent>>,
    /// Memory in use after steps, where it changed.
    memory: Vec<MemorySample>,
    plans: Vec<ShownPlan>,
    /// Labelled calls of the device, if their times are requested.
    calls: Option<HashMap<WorkLabel, LabelledCall>>,
    measured: BusyTimes,
}

/// A labelled call of a device.
#[derive(Clone, Debug)]
struct LabelledCall {
    name: String,
    activity: Activity,
    sent: Option<Load>,
}

impl Trace {
    /// A trace for rank `rank` that records single steps if `on`.
    pub fn new(rank: usize, on: bool) -> Trace {
        let (events, calls) = (on.then(Vec::new), on.then(HashMap::new));
        let (times, measured) = Default::default();
        let (memory, plans, name) = (Vec::new(), Vec::new(), format!("rank {rank}"));
        Trace { times, epoch: Instant::now(), rank, name, events, memory, plans, calls, measured }
    }

    /// Names the trace after a device of several in this process.
    #[must_use]
    pub fn of_device(self, device: usize) -> Trace {
        Trace { name: format!("device {device}"), ..self }
    }

    /// Also records the device's busy times, if `on` or if single steps are recorded.
    #[must_use]
    pub fn measuring(mut self, on: bool) -> Trace {
        self.calls = self.calls.or(on.then(HashMap::new));
        self
    }

    /// Adds the predictions for a plan that begins at `start`. They are made for rank 0.
    pub fn predicted(&mut self, start: Instant, plan: &Plan) {
        if self.rank > 0 || self.events.is_none() {
            return;
        }
        for (step, timing) in plan.steps.iter().zip(&predict(plan).steps) {
            let at = |seconds: f64| start + Duration::try_from_secs_f64(seconds).unwrap_or_default();
            if timing.end > timing.start {
                let event =
                    self.event(at(timing.start), at(timing.end), timing.bounded.name(), plan.name_step(&step.action));
                self.push(TraceEvent { tid: step.action.queue() as usize, predicted: true, ..event });
            }
        }
    }

    /// Returns `true` if a page shows the next plan.
    pub fn shows_plans(&self) -> bool {
        self.is_on() && self.rank == 0 && self.plans.len() < MOST_PLANS
    }

    /// Adds a plan, with its drawing, to those that a page shows.
    pub fn show_plan(&mut self, plan: &Plan, drawing: String) {
        self.plans.push(ShownPlan { steps: plan.named_steps(), drawing });
    }

    /// The plans that a page shows.
    pub fn shown_plans(&self) -> &[ShownPlan] {
        &self.plans
    }

    /// Adds the bytes in use now, of the host if this trace counts them, and of a device with its own memory.
    pub fn uses(&mut self, host: Option<usize>, device: Option<usize>) {
        let ts = self.event(self.epoch, Instant::now(), "memory", String::new()).dur;
        let is_same = self.memory.last().is_some_and(|last| (last.host, last.device) == (host, device));
        if self.is_on() && !is_same {
            if self.memory.len() >= MOST_EVENTS {
                self.memory.drain(..MOST_EVENTS / 2);
            }
            self.memory.push(MemorySample { ts, host, device });
        }
    }

    /// Returns a label for a step's device calls, if their times are requested.
    pub fn label(&mut self, action: &Action, plan: &Plan) -> Option<WorkLabel> {
        let name = if self.is_on() { plan.name_step(action) } else { String::new() };
        let call = LabelledCall { name, activity: action.activity(), sent: None };
        let label = WorkLabel::new();
        self.calls.as_mut()?.insert(label, call);
        Some(label)
    }

    /// Adds a step that began at `start` and ends now, under its label, with its messages to other ranks.
    pub fn add(&mut self, start: Instant, action: &Action, plan: &Plan, label: Option<WorkLabel>, sent: Load) {
        let (end, activity) = (Instant::now(), action.activity());
        let took = end - start;
        *match activity {
            Activity::Kernels => &mut self.times.kernels,
            Activity::Upload => &mut self.times.upload,
            Activity::Download => &mut self.times.download,
            Activity::Rest => &mut self.times.rest,
            Activity::Communication => &mut self.times.communication,
        } += took;
        let sent = (activity == Activity::Communication).then_some(sent);
        if let Some(call) = label.and_then(|label| self.calls.as_mut()?.get_mut(&label)) {
            call.sent = sent;
        }
        // Devices report their own messages.
        let by_host = activity == Activity::Communication && !action.is_direct();
        if by_host {
            self.measured.communication += took;
        }
        if self.is_on() {
            let category = match activity {
                Activity::Kernels => "kernel",
                Activity::Upload | Activity::Download => "copy",
                Activity::Rest => "memory",
                Activity::Communication => "communication",
            };
            let event = TraceEvent { args: sent, ..self.event(start, end, category, plan.name_step(action)) };
            if by_host {
                self.push(TraceEvent { tid: Queue::Network as usize, ..event.clone() });
            }
            self.push(event);
        }
    }

    /// Collects the device's spans of the calls recorded here, and waits for them.
    ///
    /// # Errors
    /// Errors of the device in earlier calls.
    pub fn collect(&mut self, device: &dyn Device) -> Result<(), DeviceError> {
        let Some(calls) = &self.calls else { return Ok(()) };
        let mut spans = device.recorded(&|label| calls.contains_key(&label))?;
        spans.sort_by_key(|span| span.start);
        for DeviceSpan { label, queue: lane, start, end } in spans {
            let Some(call) = self.calls.as_ref().and_then(|calls| calls.get(&label)).cloned() else { continue };
            let (queue, category, activity) = match lane {
                DeviceQueue::Upload => (Queue::Upload, "copy", Activity::Upload),
                DeviceQueue::Compute => (Queue::Compute, "kernel", Activity::Kernels),
                DeviceQueue::Download => (Queue::Download, "copy", Activity::Download),
                DeviceQueue::Network => (Queue::Network, "communication", Activity::Communication),
            };
            // Copies are a part of messages through the host, for which the host's time counts.
            if call.activity != Activity::Rest
                && (call.activity != Activity::Communication || lane == DeviceQueue::Network)
            {
                self.measured.spend(activity, end - start);
            }
            if self.is_on() {
                let args = call.sent.filter(|_| lane == DeviceQueue::Network);
                let event = self.event(start, end, category, call.name);
                self.push(TraceEvent { tid: queue as usize, args, ..event });
            }
        }
        Ok(())
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

    /// Adds the building of a plan's kernels, which began at `start` and ends now.
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

    /// Adds a copy of the program's pixels to the device, which began at `start` and lasted `took`, under its label.
    /// The copy belongs to no plan.
    pub fn taken(&mut self, start: Instant, took: Duration, label: WorkLabel) {
        self.times.upload += took;
        if let Some(calls) = &mut self.calls {
            calls.insert(label, LabelledCall { name: "take pixels".into(), activity: Activity::Rest, sent: None });
        }
        self.until(start, start + took, "copy", "take pixels");
    }

    /// Times so far.
    pub fn times(&self) -> Times {
        self.times
    }

    /// Busy time of each part of the machine, as far as it has been collected ([`Trace::collect`]).
    pub fn measured(&self) -> BusyTimes {
        self.measured
    }

    /// Adds a span that began at `start` and ends now.
    fn span(&mut self, start: Instant, category: &'static str, name: impl Into<String>) {
        self.until(start, Instant::now(), category, name);
    }

    fn until(&mut self, start: Instant, end: Instant, category: &'static str, name: impl Into<String>) {
        if self.is_on() {
            let event = self.event(start, end, category, name.into());
            self.push(event);
        }
    }

    /// Event of the host's thread.
    fn event(&self, start: Instant, end: Instant, cat: &'static str, name: String) -> TraceEvent {
        // Times before the start of the trace are negative.
        let micros = |t: Instant| match t.checked_duration_since(self.epoch) {
            Some(after) => after.as_secs_f64() * 1e6,
            None => self.epoch.duration_since(t).as_secs_f64() * -1e6,
        };
        let (ts, tid) = (micros(start), Queue::Host as usize);
        TraceEvent { name, cat, ts, dur: micros(end) - ts, tid, predicted: false, args: None }
    }

    fn push(&mut self, event: TraceEvent) {
        if let Some(events) = &mut self.events {
            // A session may live as long as a service.
            if events.len() >= MOST_EVENTS {
                events.drain(..MOST_EVENTS / 2);
            }
            events.push(event);
        }
    }

    /// Returns `true` if single steps are recorded.
    pub(crate) fn is_on(&self) -> bool {
        self.events.is_some()
    }

    /// Returns `true` if steps are distinguished: recorded, or measured on the device.
    pub(super) fn tells_steps(&self) -> bool {
        self.is_on() || self.is_measuring()
    }

    /// Returns `true` if the device's times are requested.
    pub(crate) fn is_measuring(&self) -> bool {
        self.calls.is_some()
    }

    /// Takes over the recording of another trace, as this rank's.
    pub fn absorb(&mut self, other: &mut Trace) {
        self.times.add(&std::mem::take(&mut other.times));
        self.measured.add(&std::mem::take(&mut other.measured));
        if let (Some(calls), Some(others)) = (&mut self.calls, &mut other.calls) {
            calls.extend(others.drain());
        }
        // Each trace has its own origin.
        let earlier = self.epoch.saturating_duration_since(other.epoch).as_secs_f64();
        let later = (other.epoch.saturating_duration_since(self.epoch).as_secs_f64() - earlier) * 1e6;
        if let (Some(events), Some(others)) = (&mut self.events, &mut other.events) {
            events.extend(others.drain(..).map(|e| TraceEvent { ts: e.ts + later, ..e }));
            self.memory.extend(other.memory.drain(..).map(|sample| MemorySample { ts: sample.ts + later, ..sample }));
            self.plans.append(&mut other.plans);
        }
    }

    /// Events of this rank as JSON, separated by commas.
    pub fn json_events(&self) -> String {
        let json = |events: &Vec<TraceEvent>| rows::json_events((self.rank, &self.name), events, &self.memory);
        self.events.as_ref().map(json).unwrap_or_default()
    }
}
