//! Trace files, in the format of Chrome's trace viewer and Perfetto. There is a process for each rank and for its
//! predictions, with a row for every queue. The host's row has all events of its thread; the others have the busy times
//! of the device, or of messages.

use serde::Serialize;
use serde_json::{Value, json as value};

use crate::machine::Load;
use crate::plan::Queue;

/// Process number of rank 0's predictions; predictions of other ranks follow.
const PREDICTED: usize = 1_000_000;

/// A span of time in a trace.
#[derive(Clone, Debug)]
pub(super) struct TraceEvent {
    pub(super) name: String,
    pub(super) cat: &'static str,
    /// Microseconds from the beginning of the trace.
    pub(super) ts: f64,
    /// Microseconds.
    pub(super) dur: f64,
    /// The row: a [`Queue`].
    pub(super) tid: usize,
    /// `true` if the event is only predicted.
    pub(super) predicted: bool,
    /// Messages to other ranks.
    pub(super) args: Option<Load>,
}

/// Memory in use at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemorySample {
    /// Microseconds from the beginning of the trace.
    pub(super) ts: f64,
    /// Bytes of the host.
    pub(super) host: Option<usize>,
    /// Bytes of a device with its own memory.
    pub(super) device: Option<usize>,
}

/// An event in the viewers' format.
#[derive(Serialize)]
struct ViewerEvent<'a> {
    name: &'a str,
    cat: &'static str,
    ph: &'static str,
    ts: f64,
    dur: f64,
    pid: usize,
    tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

/// Events and memory of a rank, which has this name, as JSON, separated by commas.
pub(super) fn json_events((rank, name): (usize, &str), events: &[TraceEvent], memory: &[MemorySample]) -> String {
    let pid = |predicted: bool| if predicted { PREDICTED + rank } else { rank };
    let mut all = names(pid(false), 2 * rank, name);
    if events.iter().any(|e| e.predicted) {
        all.extend(names(pid(true), 2 * rank + 1, &format!("{name}, predicted")));
    }
    all.extend(events.iter().map(|event| {
        let &TraceEvent { ref name, cat, ts, dur, tid, predicted, args } = event;
        let args = args.map(|sent| value!({ "bytes": sent.bytes, "messages": sent.messages }));
        value!(ViewerEvent { name, cat, ph: "X", ts, dur, pid: pid(predicted), tid, args })
    }));
    for (name, bytes) in [("host memory", (|s| s.host) as fn(&MemorySample) -> _), ("device memory", |s| s.device)] {
        let samples = memory.iter().filter_map(|sample| Some((sample.ts, bytes(sample)?)));
        all.extend(samples.map(|(ts, bytes)| {
            value!({ "name": name, "ph": "C", "ts": ts, "pid": rank, "tid": 0, "args": { "bytes": bytes } })
        }));
    }
    all.iter().map(Value::to_string).collect::<Vec<_>>().join(",")
}

/// Names and order of a process and its rows.
fn names(pid: usize, place: usize, name: &str) -> Vec<Value> {
    let meta =
        |what: &str, tid: usize, args: Value| value!({ "name": what, "ph": "M", "pid": pid, "tid": tid, "args": args });
    let mut all = vec![
        meta("process_name", 0, value!({ "name": name })),
        meta("process_sort_index", 0, value!({ "sort_index": place })),
    ];
    for queue in Queue::ALL {
        let row = queue as usize;
        all.push(meta("thread_name", row, value!({ "name": queue.to_string() })));
        all.push(meta("thread_sort_index", row, value!({ "sort_index": row })));
    }
    all
}

/// Trace from the events of all ranks ([`Trace::json_events`](super::Trace::json_events)): `{"traceEvents": [...]}`.
pub fn json(ranks: &[Vec<u8>]) -> String {
    let parts: Vec<_> = ranks.iter().filter(|p| !p.is_empty()).map(|p| String::from_utf8_lossy(p)).collect();
    format!("{{\"traceEvents\":[{}],\"displayTimeUnit\":\"ms\"}}", parts.join(","))
}
