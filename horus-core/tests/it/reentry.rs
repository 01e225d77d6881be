//! Observers and explain sinks may use the session that calls them.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::{Error, Result};
use horus_core::image::{Image, Value};
use horus_core::plan::movement::Link;
use horus_core::session::{Session, Stats};
use horus_testing::simulated::{CallCountsHandle, SimulatedDevice};

const LINK: Link = Link { latency: 1e-6, bandwidth: 1e9 };

/// Runs `work` on its own thread, for at most a minute.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    finished.recv_timeout(Duration::from_secs(60)).expect("the session does not wait for itself")
}

fn small(s: &Session, seed: usize) -> Image<f32> {
    Image::from_fn(s, 8, 8, |y, x| (y * 8 + x + seed) as f32)
}

/// The images and observations of a caller during an evaluation.
#[derive(Default)]
struct ReentrantCaller {
    held: Vec<Image<f32>>,
    dropped: Vec<Image<f32>>,
    kept: Vec<Image<f32>>,
    seen: Vec<Stats>,
    errors: Vec<Error>,
}

impl ReentrantCaller {
    /// Everything that can be done with a session.
    fn busy(&mut self) -> Result<()> {
        let Some(image) = self.held.first().cloned() else { return Ok(()) };
        let s = image.session().clone();
        self.dropped.clear();
        self.kept.push((&image * 2.0).square());
        self.kept.push(small(&s, 100));
        self.seen.push(s.stats());
        assert!(s.times().total() < Duration::from_secs(3600));
        self.errors.extend([
            s.evaluate().unwrap_err(),
            image.to_vec().unwrap_err(),
            Value::get(&image.sum()).unwrap_err(),
            image.session().forecast(&image, (2, LINK)).unwrap_err(),
            s.trace_json().unwrap_err(),
        ]);
        Ok(())
    }
}

/// A session that calls `busy` before each step, or for each plan.
fn session(comm: Option<ThreadComm>, steps: bool) -> (Session, Arc<Mutex<ReentrantCaller>>, CallCountsHandle) {
    let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20);
    let (log, inside) = (device.call_counts(), Arc::new(Mutex::new(ReentrantCaller::default())));
    let mut builder = Session::on(Box::new(device));
    if let Some(comm) = comm {
        builder = builder.communicator(Arc::new(comm));
    }
    let busy = Arc::clone(&inside);
    let call = move || busy.lock().unwrap().busy().unwrap();
    let builder = if steps { builder.observer(move |_| call()) } else { builder.explain(move |_| call()) };
    (builder.build().unwrap(), inside, log)
}

fn check(comm: Option<ThreadComm>, steps: bool) {
    let (s, inside, log) = session(comm, steps);
    let (image, dropped) = (small(&s, 1), small(&s, 2));
    image.sum().get().unwrap();
    dropped.sum().get().unwrap();
    let held = log.get().bytes;
    let before = s.stats();
    {
        let mut inside = inside.lock().unwrap();
        inside.held.push(image.clone());
        inside.dropped.push(dropped);
    }
    let result = image.median(3);
    assert_eq!(result.to_vec().unwrap().len(), 64);
    let after = s.stats();
    assert_eq!(after.evaluations, before.evaluations + 1);
    let inside = std::mem::take(&mut *inside.lock().unwrap());
    assert!(!inside.kept.is_empty() && inside.seen.iter().all(|seen| *seen == before), "as of the last evaluation");
    for e in &inside.errors {
        assert!(matches!(e, Error::Reentry { .. }), "{e}");
        assert!(e.to_string().contains("observer"), "{e}");
    }
    // Records made meanwhile exist, and dropped ones do not.
    for pair in inside.kept.chunks(2) {
        let doubled: Vec<f32> = (0..64).map(|i| 4.0 * ((i + 1) * (i + 1)) as f32).collect();
        assert_eq!(pair[0].to_vec().unwrap(), doubled);
        assert_eq!(pair[1].to_vec().unwrap()[63], 163.0);
    }
    drop(inside);
    drop(result);
    assert!(log.get().bytes < held, "{} of {held} bytes are left", log.get().bytes);
}

#[test]
fn observers_may_drop_record_and_ask_but_not_look() {
    in_time(|| check(None, true));
    in_time(|| ThreadComm::run(3, |comm| check(Some(comm), true)));
}

#[test]
fn explain_sinks_may_drop_record_and_ask_but_not_look() {
    in_time(|| check(None, false));
    in_time(|| ThreadComm::run(2, |comm| check(Some(comm), false)));
}

#[test]
fn an_image_may_end_its_session_in_an_observer() {
    in_time(|| {
        let last: Arc<Mutex<Option<Image<f32>>>> = Arc::default();
        let mine = Arc::clone(&last);
        let device = Box::new(CpuDevice::new(Some(1)).unwrap());
        let s = Session::on(device).observer(move |_| drop(mine.lock().unwrap().take())).build().unwrap();
        let image = small(&s, 0);
        let sum = image.sum();
        *last.lock().unwrap() = Some(image);
        drop(s);
        assert_eq!(sum.get().unwrap(), 2016.0);
    });
}
