//! When each step of each plan ran, in the format of Chrome's trace viewer and Perfetto.

use std::time::Instant;

use serde::Serialize;

use crate::plan::{Action, Plan};

/// A recording of steps. Off unless asked for.
#[derive(Debug)]
pub struct Trace {
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
        Trace { epoch: Instant::now(), rank, events: on.then(Vec::new) }
    }

    /// Adds a step that began at `start` and ends now.
    pub fn add(&mut self, start: Instant, action: &Action, plan: &Plan) {
        if self.events.is_some() {
            let category = match action {
                Action::Launch { .. } => "kernel",
                Action::Upload(_) | Action::Download(_) => "copy",
                Action::Deliver(_) | Action::Free(_) => "memory",
                _ => "communication",
            };
            let text = plan.describe(action);
            self.span(start, category, text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }

    /// Adds a span that began at `start` and ends now.
    pub fn span(&mut self, start: Instant, category: &'static str, name: impl Into<String>) {
        let micros = |t: Instant| t.duration_since(self.epoch).as_secs_f64() * 1e6;
        let (ts, end) = (micros(start), micros(Instant::now()));
        if let Some(events) = &mut self.events {
            let event = Event { name: name.into(), cat: category, ph: "X", ts, dur: end - ts, pid: self.rank, tid: 0 };
            events.push(event);
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
