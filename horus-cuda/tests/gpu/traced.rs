//! Times of GPU work by its own clock, in traces and measured parts.

use std::collections::HashMap;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Instant;

use horus_core::device::Device;
use horus_core::image::{Image, samples};
use horus_core::plan::{BusyTimes, Transfer};
use horus_core::session::{Session, SessionBuilder};
use horus_cuda::CudaDevice;
use serde_json::Value;

/// Height and width of a large image.
const SIDE: usize = 8192;

fn gpu() -> Arc<dyn Device> {
    Arc::new(CudaDevice::open(0, None).unwrap_or_else(|e| panic!("this test needs a GPU: {e}")))
}

/// An upload, kernels, and a download, with pixels that the GPU reads in place.
fn filtered(session: &Session) -> Vec<f32> {
    let mut pixels = session.pixels::<f32>(SIDE, SIDE, 1).unwrap();
    for (i, pixel) in pixels.iter_mut().enumerate() {
        *pixel = (i % 1013) as f32;
    }
    Image::from_pixels(session, pixels).gauss(6.0).to_vec().unwrap()
}

/// Sorted beginnings and ends of measured spans in microseconds, by queue.
fn queues(session: &Session) -> HashMap<String, Vec<(f64, f64)>> {
    let trace: Value = serde_json::from_str(&session.trace_json().unwrap().unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of_rank = |ph: &'static str| events.iter().filter(move |e| e["pid"] == 0 && e["ph"] == ph);
    let names = of_rank("M").filter(|e| e["name"] == "thread_name");
    let names: HashMap<u64, &str> =
        names.map(|e| (e["tid"].as_u64().unwrap(), e["args"]["name"].as_str().unwrap())).collect();
    let mut queues: HashMap<String, Vec<(f64, f64)>> = HashMap::new();
    for e in of_rank("X") {
        let (start, took) = (e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap());
        let queue = names[&e["tid"].as_u64().unwrap()].to_owned();
        queues.entry(queue).or_default().push((start, start + took));
    }
    queues.values_mut().for_each(|spans| spans.sort_by(|a, b| a.0.total_cmp(&b.0)));
    queues
}

fn bands(n: u8) -> SessionBuilder {
    Session::sharing(gpu()).transfer(Transfer::Streams(NonZeroU8::new(n)))
}

#[test]
fn queues_are_in_order_within_the_evaluation_and_uploads_run_beside_kernels() {
    let start = Instant::now();
    let session = bands(4).trace(true).build().unwrap();
    let result = filtered(&session);
    let wall = start.elapsed().as_secs_f64() * 1e6;
    let queues = queues(&session);
    for queue in ["upload", "compute", "download"] {
        let spans = queues.get(queue).unwrap_or_else(|| panic!("no {queue}"));
        // Bands that are ready together are downloaded together.
        assert!(spans.len() >= 2 || queue == "download", "in bands: {spans:?}");
        // The clocks agree to within some microseconds.
        assert!(spans.iter().all(|s| s.0 >= -50.0 && s.1 <= wall + 50.0), "{queue} within {wall}: {spans:?}");
        assert!(spans.windows(2).all(|s| s[0].1 <= s[1].0 + 10.0), "{queue}: {spans:?}");
    }
    let (uploads, kernels) = (&queues["upload"], &queues["compute"]);
    let beside = uploads.iter().any(|u| kernels.iter().any(|k| u.0 < k.1 && k.0 < u.1));
    assert!(beside, "uploads {uploads:?}, kernels {kernels:?}");
    let plain = Session::sharing(gpu()).transfer(Transfer::Explicit).build().unwrap();
    assert!(filtered(&plain) == result, "what is traced has the same bits");
}

#[test]
fn parts_are_as_long_as_the_bus_and_the_clock_allow() {
    let session = bands(4).measure(true).build().unwrap();
    filtered(&session); // one-time costs are over
    let before = session.measured().unwrap();
    let start = Instant::now();
    filtered(&session);
    let wall = start.elapsed();
    let BusyTimes { upload, kernels, download, communication } = session.measured().unwrap();
    let bytes = (SIDE * SIDE * size_of::<f32>()) as f64;
    for (what, part) in [("upload", upload - before.upload), ("download", download - before.download)] {
        let rate = bytes / part.as_secs_f64();
        assert!(part < wall && rate < 1e12, "{what}: {part:?} of {wall:?}, {rate:.3e} bytes a second");
    }
    let kernels = kernels - before.kernels;
    assert!(!kernels.is_zero() && kernels < wall && communication.is_zero(), "{kernels:?} of {wall:?}");
    let silent = Session::sharing(gpu()).build().unwrap();
    filtered(&silent);
    assert_eq!(silent.measured().unwrap(), BusyTimes::default(), "nobody asked");
}

/// More launches than spans are kept under way: finished ones are read meanwhile, and none is lost.
#[test]
fn every_launch_of_a_long_program_is_told() {
    let session = Session::sharing(gpu()).trace(true).build().unwrap();
    for i in 0..80 {
        let mut image = samples::worms(&session, 64, 64);
        for _ in 0..20 {
            image = image.gauss(1.0) + i as f32;
        }
        image.to_vec().unwrap();
    }
    let launches = session.stats().made.launches;
    assert!(launches > 600, "{launches}");
    assert!(queues(&session)["compute"].len() >= launches, "{launches} launches");
}
