//! Traces: times of the device, in a row for every queue, beside the predicted ones; and the times
//! of each part.

use std::collections::HashMap;
use std::num::NonZeroU8;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::image::samples;
use horus_core::plan::{BusyTimes, Transfer};
use horus_core::session::{Session, SessionBuilder};
use horus_testing::simulated::SimulatedDevice;
use serde_json::Value;

const ROWS: [&str; 5] = ["host", "upload", "compute", "download", "network"];

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(2)).unwrap()
}

fn simulated() -> Box<dyn Device> {
    Box::new(SimulatedDevice::new(cpu(), 1 << 26))
}

/// A span in the viewers' format.
#[derive(Clone, Debug)]
struct TracedSpan {
    name: String,
    start: f64,
    end: f64,
    bytes: Option<u64>,
}

/// Spans by the names of their process and row.
type SpansByRow = HashMap<(String, String), Vec<TracedSpan>>;

/// Spans by the names of their process and row, each row by time.
fn rows(trace: &str) -> SpansByRow {
    let trace: Value = serde_json::from_str(trace).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let named = |what: &str| -> HashMap<(u64, u64), String> {
        let meta = events.iter().filter(|e| e["ph"] == "M" && e["name"] == what);
        meta.map(|e| ((id(e, "pid"), id(e, "tid")), e["args"]["name"].as_str().unwrap().to_owned())).collect()
    };
    let (processes, threads) = (named("process_name"), named("thread_name"));
    let mut rows: SpansByRow = HashMap::new();
    for ((pid, tid), thread) in &threads {
        assert_eq!(thread, ROWS[usize::try_from(*tid).unwrap()]);
        rows.insert((processes[&(*pid, 0)].clone(), thread.clone()), Vec::new());
    }
    let has_memory = |e: &&Value| e["ph"] == "C" && e["args"]["bytes"].is_u64() && e["ts"].is_f64();
    assert!(events.iter().any(|e| has_memory(&e)));
    for e in events.iter().filter(|e| e["ph"] != "M" && !has_memory(e)) {
        assert_eq!(e["ph"], "X", "{e}");
        let (start, took) = (e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap());
        assert!(took >= 0.0, "{e}");
        let row = (processes[&(id(e, "pid"), 0)].clone(), threads[&(id(e, "pid"), id(e, "tid"))].clone());
        let name = e["name"].as_str().unwrap().to_owned();
        let span = TracedSpan { name, start, end: start + took, bytes: e["args"]["bytes"].as_u64() };
        rows.get_mut(&row).unwrap().push(span);
    }
    rows.values_mut().for_each(|row| row.sort_by(|a, b| a.start.total_cmp(&b.start)));
    rows
}

fn id(event: &Value, what: &str) -> u64 {
    event[what].as_u64().unwrap()
}

fn row<'a>(rows: &'a SpansByRow, process: &str, queue: &str) -> &'a [TracedSpan] {
    &rows[&(process.to_owned(), queue.to_owned())]
}

fn blurred(session: &Session) -> Vec<f32> {
    samples::worms(session, 128, 96).gauss(2.0).to_vec().unwrap()
}

/// Runs a traced program; returns the rows of the trace, the texts of the steps, and the elapsed
/// time.
fn traced(builder: SessionBuilder) -> (Session, SpansByRow, Vec<String>, f64) {
    let steps: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&steps);
    let note = move |p: horus_core::session::Progress<'_>| {
        told.lock().unwrap().push((p.text)().split_whitespace().collect::<Vec<_>>().join(" "));
    };
    let start = Instant::now();
    let session = builder.trace(true).observer(note).build().unwrap();
    blurred(&session);
    let wall = start.elapsed().as_secs_f64() * 1e6;
    let rows = rows(&session.trace_json().unwrap().unwrap());
    let steps = steps.lock().unwrap().clone();
    (session, rows, steps, wall)
}

#[test]
fn every_copy_and_launch_is_in_the_row_of_its_queue_under_the_text_of_its_step() {
    let streams = Transfer::Streams(NonZeroU8::new(4));
    let (session, rows, steps, wall) = traced(Session::on(simulated()).transfer(streams));
    assert_eq!(rows.len(), 10, "measured and predicted");
    for (queue, word) in [("upload", "upload"), ("compute", "launch"), ("download", "send")] {
        let spans = row(&rows, "rank 0", queue);
        let of_queue: Vec<&String> = steps.iter().filter(|s| s.starts_with(word)).collect();
        assert!(of_queue.len() >= 2, "in bands: {steps:?}");
        for step in &of_queue {
            assert!(spans.iter().any(|s| s.name == **step), "{step} is not in {queue}: {spans:?}");
        }
        assert!(spans.iter().all(|s| of_queue.contains(&&s.name)), "{queue}: {spans:?}");
        // A simulated device runs one operation at a time.
        assert!(spans.windows(2).all(|s| s[0].end <= s[1].start), "{queue}: {spans:?}");
        assert!(spans.iter().all(|s| s.start >= 0.0 && s.end <= wall), "{queue} within {wall}: {spans:?}");
    }
    let host = row(&rows, "rank 0", "host");
    for step in &steps {
        assert!(host.iter().any(|s| s.name == *step), "{step}");
    }
    assert!(row(&rows, "rank 0", "network").is_empty());
    assert!(session.times().total().as_secs_f64() * 1e6 <= wall);
}

#[test]
fn what_is_predicted_stands_beside_it() {
    let (session, rows, steps, _) = traced(Session::on(simulated()));
    let process = "rank 0, predicted";
    let busy = |queue: &str| row(&rows, process, queue).iter().map(|s| s.end - s.start).sum::<f64>() / 1e6;
    let BusyTimes { upload, kernels, download, communication } = session.stats().parts;
    // Durations are whole nanoseconds.
    for (queue, want) in [("upload", upload), ("compute", kernels), ("network", communication)] {
        assert!((busy(queue) - want.as_secs_f64()).abs() < 1e-7, "{queue}: {} and {want:?}", busy(queue));
    }
    let down = busy("download") + busy("host");
    assert!((down - download.as_secs_f64()).abs() < 1e-7, "{down} and {download:?}");
    assert!(upload > Duration::ZERO && kernels > Duration::ZERO && download > Duration::ZERO);
    let all = rows.iter().filter(|((p, _), _)| p == process).flat_map(|(_, row)| row);
    let (begin, end) = all.clone().fold((f64::MAX, f64::MIN), |(begin, end), s| (begin.min(s.start), end.max(s.end)));
    let predicted = session.stats().predicted.as_secs_f64() * 1e6;
    // The rest is the host's time to start them.
    assert!(end - begin > 0.0 && end - begin < predicted + 1.0, "{begin} to {end}: {predicted} us");
    assert!(all.clone().count() > 2 && all.map(|s| &s.name).all(|name| steps.contains(name)));
}

#[test]
fn on_the_cpu_launches_are_in_the_row_of_computing() {
    let (_, rows, steps, wall) = traced(Session::on(Box::new(cpu())));
    let launches: Vec<&String> = steps.iter().filter(|s| s.starts_with("launch")).collect();
    let computed = row(&rows, "rank 0", "compute");
    assert_eq!(computed.iter().map(|s| &s.name).collect::<Vec<_>>(), launches, "in order");
    assert!(!launches.is_empty() && computed.iter().all(|s| s.start >= 0.0 && s.end <= wall));
    assert!(["upload", "download", "network"].iter().all(|queue| row(&rows, "rank 0", queue).is_empty()));
}

#[test]
fn messages_have_their_bytes_and_ranks_their_rows() {
    for direct in [false, true] {
        let told = ThreadComm::run(2, |comm| {
            let device = SimulatedDevice::new(cpu(), 1 << 26);
            let device = if direct { device.with_fabric() } else { device };
            let session = Session::on(Box::new(device)).communicator(Arc::new(comm)).trace(true).build().unwrap();
            blurred(&session);
            (session.stats().sent.bytes as u64, session.trace_json().unwrap())
        });
        let rows = rows(told[0].1.as_ref().unwrap());
        assert!(told[1].1.is_none(), "rank 0 has it");
        for (rank, (sent, _)) in told.iter().enumerate() {
            let messages = row(&rows, &format!("rank {rank}"), "network");
            let told: u64 = messages.iter().map(|s| s.bytes.expect("bytes")).sum();
            assert!(!messages.is_empty() && told == *sent, "rank {rank}: {told} of {sent} bytes in {messages:?}");
        }
        assert!(told.iter().map(|t| t.0).sum::<u64>() > 0);
        let processes: std::collections::BTreeSet<&str> = rows.keys().map(|(p, _)| p.as_str()).collect();
        assert_eq!(processes.into_iter().collect::<Vec<_>>(), ["rank 0", "rank 0, predicted", "rank 1"]);
    }
}

#[test]
fn parts_are_measured_if_somebody_asks() {
    let run = |measure: bool| {
        let session = Session::on(simulated()).measure(measure).build().unwrap();
        let start = Instant::now();
        blurred(&session);
        (session.measured().unwrap(), start.elapsed(), session)
    };
    let (none, _, _) = run(false);
    assert_eq!(none, BusyTimes::default());
    let (parts, wall, session) = run(true);
    let BusyTimes { upload, kernels, download, communication } = parts;
    assert!([upload, kernels, download].iter().all(|part| *part > Duration::ZERO), "{parts:?}");
    assert!(communication == Duration::ZERO && upload + kernels + download <= wall, "{parts:?} in {wall:?}");
    assert_eq!(session.measured().unwrap(), parts, "each time counts once");
    assert_eq!(session.trace_json().unwrap().unwrap(), "{\"traceEvents\":[],\"displayTimeUnit\":\"ms\"}");
    blurred(&session);
    let more = session.measured().unwrap();
    assert!(more.upload > upload && more.kernels > kernels && more.download > download);
}

/// Two sessions on one device: each sees only its own work.
#[test]
fn sessions_that_share_a_device_are_told_of_their_own_work() {
    let device: Arc<dyn Device> = Arc::new(cpu());
    let open = || Session::sharing(Arc::clone(&device)).measure(true).build().unwrap();
    let (first, second) = (open(), open());
    blurred(&first);
    assert_eq!(second.measured().unwrap(), BusyTimes::default());
    assert!(first.measured().unwrap().kernels > Duration::ZERO);
}
