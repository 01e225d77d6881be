//! Evaluations concurrent with the program: calls that proceed meanwhile, and calls that wait.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use horus_core::comm::threads::ThreadComm;
use horus_core::comm::{CommError, Communicator};
use horus_core::cpu::device::CpuDevice;
use horus_core::error::{Error, Result};
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::session::{Session, SessionBuilder};
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::SimulatedDevice;

const LONG: Duration = Duration::from_secs(60);
/// Long enough for a thread that does not wait to pass.
const MOMENT: Duration = Duration::from_millis(100);

/// Runs `work` on its own thread, for at most a minute.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = channel();
    std::thread::spawn(move || done.send(work()));
    finished.recv_timeout(LONG).expect("nothing waits for ever")
}

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(1)).expect("a CPU")
}

fn builder() -> SessionBuilder {
    Session::on(Box::new(cpu()))
}

fn given(s: &Session, seed: usize) -> Image<f32> {
    Image::from_fn(s, 24, 20, |y, x| pixel(seed, y, x))
}

fn pixel(seed: usize, y: usize, x: usize) -> f32 {
    ((y * 31 + x * 17 + seed) % 101) as f32
}

/// The expected result, computed here.
fn want(seed: usize, f: impl Fn(f32) -> f32) -> Vec<f32> {
    (0..24 * 20).map(|i| f(pixel(seed, i / 20, i % 20))).collect()
}

/// Halts an evaluation before its first step.
struct Gate {
    inside: Receiver<()>,
    go: Sender<()>,
}

impl Gate {
    fn on(builder: SessionBuilder) -> (Session, Gate) {
        let (entered, inside) = channel();
        let (go, going) = channel::<()>();
        let once = Mutex::new(Some((entered, going)));
        let observer = move |_: horus_core::session::Progress<'_>| {
            let first = once.lock().unwrap().take();
            if let Some((entered, going)) = first {
                entered.send(()).unwrap();
                let _ = going.recv(); // a failing test drops it
            }
        };
        (builder.observer(observer).build().unwrap(), Gate { inside, go })
    }

    fn wait_until_inside(&self) {
        self.inside.recv_timeout(LONG).expect("an evaluation has begun");
    }

    fn open(&self) {
        self.go.send(()).unwrap();
    }
}

#[test]
fn recording_goes_on_while_it_runs_and_looking_waits() {
    in_time(|| {
        let (s, gate) = Gate::on(builder());
        let image = given(&s, 1);
        let doubled = &image * 2.0;
        let passing = doubled.square();
        s.start();
        gate.wait_until_inside();
        // During the evaluation: record, copy, drop, give pixels, query.
        let more = &doubled + given(&s, 2);
        let copy = doubled.clone();
        drop((doubled, passing));
        assert_eq!(s.stats().evaluations, 0);
        let (tell, told) = channel();
        let looking = std::thread::spawn(move || tell.send(copy.to_vec().unwrap()).unwrap());
        std::thread::sleep(MOMENT);
        assert_eq!(told.try_recv(), Err(TryRecvError::Empty), "who looks waits");
        gate.open();
        assert_eq!(told.recv().unwrap(), want(1, |v| v * 2.0));
        looking.join().unwrap();
        let second = want(2, |v| v);
        let sums: Vec<f32> = want(1, |v| v * 2.0).iter().zip(second).map(|(a, b)| a + b).collect();
        assert_eq!(more.to_vec().unwrap(), sums);
    });
}

/// A program with kernels of many kinds; `start` comes between its steps.
fn program(s: &Session, start: impl Fn(&Image<f32>)) -> Result<Vec<u32>> {
    let image = given(s, 3);
    let smooth = image.gauss(1.5);
    start(&smooth);
    let turned = smooth.rotate(30.0, Interpolation::Bilinear).median(3);
    let mean = turned.mean();
    let passing = (&turned - &image).abs();
    start(&passing);
    drop(passing);
    let state = (0..12).fold(turned, |state, i| {
        let next = (state * 0.75 + &smooth).median(3);
        start(&next);
        if i % 5 == 4 {
            next.max_value().start();
        }
        next
    });
    let sum = state.sum().get()? + mean.get()?;
    start(&state);
    let mut bits: Vec<u32> = state.transpose().to_vec()?.into_iter().map(f32::to_bits).collect();
    bits.extend([sum.to_bits() as u32, (sum.to_bits() >> 32) as u32]);
    Ok(bits)
}

#[test]
fn the_same_bits_on_any_number_of_ranks() {
    let s = builder().build().unwrap();
    let want = program(&s, |_| ()).unwrap();
    for ranks in 1..=5 {
        for separate in [false, true] {
            let want = want.clone();
            in_time(move || {
                ThreadComm::run(ranks, |comm| {
                    let builder = match separate {
                        false => builder(),
                        true => Session::on(Box::new(SimulatedDevice::new(cpu(), 1 << 20))),
                    };
                    // With flushes, during an evaluation and outside.
                    let s = builder.communicator(Arc::new(comm)).flush_limits(7, 1 << 20).build().unwrap();
                    assert!(program(&s, |image| image.session().start()).unwrap() == want, "{ranks} ranks");
                    assert!(program(&s, Image::start).unwrap() == want, "{ranks} ranks, single images");
                });
            });
        }
    }
}

#[test]
fn sessions_on_the_same_ranks_take_turns() {
    for ranks in 2..=4 {
        let all = in_time(move || {
            ThreadComm::run(ranks, |comm| {
                let open = || builder().communicator(Arc::new(comm.clone())).build().unwrap();
                let (a, b) = (open(), open());
                let mut states = [given(&a, 4), given(&b, 5)];
                for _ in 0..20 {
                    for state in &mut states {
                        *state = (&*state * 0.5).gauss(1.0);
                        state.session().start();
                    }
                }
                let late = open(); // during an evaluation
                let all = [&states[0], &states[1], &given(&late, 6).gauss(1.0)].map(|i| i.to_vec().unwrap());
                states[0].median(3).start(); // and closing one beside it
                drop((states, a));
                assert_eq!(given(&b, 7).mean().get().unwrap(), given(&late, 7).mean().get().unwrap());
                all
            })
        });
        assert!(all.iter().all(|of_rank| *of_rank == all[0]));
        let s = builder().build().unwrap();
        let alone = |seed| (0..20).fold(given(&s, seed), |state, _| (state * 0.5).gauss(1.0)).to_vec().unwrap();
        assert!(all[0][..2] == [alone(4), alone(5)], "{ranks} ranks");
    }
}

#[test]
fn nothing_is_computed_twice() {
    in_time(|| {
        let launches = |start: fn(&Session)| {
            let s = builder().build().unwrap();
            let smooth = given(&s, 8).gauss(2.0);
            start(&s);
            start(&s);
            smooth.start(); // evaluated by then
            assert_eq!(smooth.to_vec().unwrap().len(), 480);
            s.stats().made.launches
        };
        assert_eq!(launches(Session::start), launches(|_| ()));
    });
}

#[test]
fn starting_nothing_is_nothing() {
    in_time(|| {
        let s = builder().build().unwrap();
        s.start();
        let image = given(&s, 9);
        s.start();
        image.start();
        given(&s, 9).gauss(-1.0).start(); // it carries an error
        s.evaluate().unwrap();
        assert_eq!(s.stats().made.launches, 0);
        assert_eq!(image.to_vec().unwrap(), want(9, |v| v));
    });
}

#[test]
fn many_starts_are_done_in_order() {
    in_time(|| {
        let s = builder().build().unwrap();
        let mut state = given(&s, 10);
        let mut expected = want(10, |v| v);
        for _ in 0..300 {
            state = state * 0.5 + 3.0;
            s.start();
            expected.iter_mut().for_each(|v| *v = *v * 0.5 + 3.0);
        }
        assert_eq!(state.to_vec().unwrap(), expected);
        assert!(s.stats().evaluations <= 301);
    });
}

#[test]
fn an_error_is_told_by_the_next_look_with_its_line() {
    in_time(|| {
        let (device, fault) = FaultyDevice::new(cpu());
        let s = Session::on(Box::new(device)).build().unwrap();
        let (image, other) = (given(&s, 11), given(&s, 12) * 3.0);
        other.sum().get().unwrap();
        fault.fail_after(0);
        let median = image.median(3);
        let line = line!() - 1;
        s.start();
        s.settle();
        assert!(fault.disarm(), "it was met beside the program");
        s.start(); // not before the error is reported
        let after = &other + 1.0;
        let message = after.to_vec().unwrap_err().to_string();
        assert!(message.contains("on purpose") && message.contains(&format!("start.rs:{line}:")), "{message}");
        assert_eq!(after.to_vec().unwrap(), want(12, |v| v * 3.0 + 1.0));
        assert_eq!(median.to_vec().unwrap(), given(&builder().build().unwrap(), 11).median(3).to_vec().unwrap());
        s.evaluate().unwrap();
    });
}

#[test]
fn letting_go_of_the_session_waits_for_what_was_started() {
    in_time(|| {
        let (s, gate) = Gate::on(builder());
        let image = given(&s, 13).median(3);
        s.start();
        (image + 1.0).start();
        gate.wait_until_inside();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            drop(s);
            tell.send(()).unwrap();
        });
        assert_eq!(told.recv_timeout(MOMENT).map_err(|_| ()), Err(()), "it waits");
        gate.open();
        told.recv_timeout(LONG).unwrap();
    });
}

#[test]
fn it_can_be_cancelled() {
    in_time(|| {
        let (s, gate) = Gate::on(builder());
        let image = given(&s, 14) * 2.0;
        s.start();
        gate.wait_until_inside();
        s.canceller().cancel();
        gate.open();
        s.settle();
        s.canceller().clear();
        assert!(matches!(image.to_vec(), Err(Error::Cancelled(_))), "told although it may run again");
        assert_eq!(image.to_vec().unwrap(), want(14, |v| v * 2.0));
        s.canceller().cancel();
        image.gauss(1.0).start();
        drop((image, s));
    });
}

#[test]
fn a_panic_of_an_observer_is_told_as_an_error() {
    in_time(|| {
        let s = builder().observer(|_| panic!("enough of it")).build().unwrap();
        let image = given(&s, 15) * 2.0;
        s.start();
        let more = &image + 1.0;
        for _ in 0..2 {
            let e = more.to_vec().unwrap_err();
            assert!(matches!(&e, Error::Lost(why) if why.contains("enough of it")), "{e}");
        }
        s.start();
    });
}

#[test]
fn a_panic_on_one_rank_ends_the_others() {
    let all = in_time(|| {
        ThreadComm::run(3, |comm| {
            let mine = comm.rank() == 1;
            let s = builder().communicator(Arc::new(comm)).observer(move |_| assert!(!mine, "enough")).build().unwrap();
            let image = given(&s, 16).gauss(1.0);
            s.start();
            image.to_vec().map(drop).unwrap_err().to_string()
        })
    });
    assert!(all.iter().all(|e| e.contains("panic")), "{all:?}");
}

#[test]
fn observers_on_its_thread_may_record_and_start_but_not_look() {
    in_time(|| {
        /// The image, its derivatives, and the errors of reading it.
        type Inside = (Option<Image<f32>>, Vec<Image<f32>>, Vec<Error>);
        let inside: Arc<Mutex<Inside>> = Arc::default();
        let mine = Arc::clone(&inside);
        let observer = move |_: horus_core::session::Progress<'_>| {
            let mut inside = mine.lock().unwrap();
            let Some(image) = inside.0.take() else { return };
            inside.2.push(image.to_vec().unwrap_err());
            let more = &image + 5.0;
            more.start();
            image.session().start();
            inside.1.push(more);
        };
        let s = builder().observer(observer).build().unwrap();
        let image = given(&s, 17);
        inside.lock().unwrap().0 = Some(image.clone());
        (image * 2.0).start();
        s.settle();
        let (held, kept, errors) = std::mem::take(&mut *inside.lock().unwrap());
        assert!(held.is_none() && matches!(errors[..], [Error::Reentry { .. }]), "{errors:?}");
        assert_eq!(kept[0].to_vec().unwrap(), want(17, |v| v + 5.0));
    });
}

#[test]
fn the_last_image_may_go_in_an_observer_on_its_thread() {
    in_time(|| {
        let last: Arc<Mutex<Option<Image<f32>>>> = Arc::default();
        let (tell, told) = channel();
        let mine = Arc::clone(&last);
        let observer = move |_: horus_core::session::Progress<'_>| {
            let _ = told.recv(); // until all others are dropped
            drop(mine.lock().unwrap().take());
        };
        let s = builder().observer(observer_once(observer)).build().unwrap();
        *last.lock().unwrap() = Some(given(&s, 18));
        given(&s, 19).median(3).start();
        drop(s);
        tell.send(()).unwrap();
        while last.lock().unwrap().is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// An observer that is not `Sync`, called once.
fn observer_once(
    f: impl FnOnce(horus_core::session::Progress<'_>) + Send + 'static,
) -> impl Fn(horus_core::session::Progress<'_>) + Send + Sync {
    let once = Mutex::new(Some(f));
    move |progress| {
        let f = once.lock().unwrap().take();
        if let Some(f) = f {
            f(progress);
        }
    }
}

/// Ranks where only one thread may communicate.
struct OneThread(ThreadComm);

impl Communicator for OneThread {
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn size(&self) -> usize {
        self.0.size()
    }
    fn exchange(&self, out: &[(usize, &[u8])], into: &mut [(usize, &mut [u8])]) -> std::result::Result<(), CommError> {
        self.0.exchange(out, into)
    }
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> std::result::Result<(), CommError> {
        self.0.broadcast(root, bytes)
    }
    fn sum(&self, values: &mut [f64]) -> std::result::Result<(), CommError> {
        self.0.sum(values)
    }
    fn gather(&self, value: u64) -> std::result::Result<Vec<u64>, CommError> {
        self.0.gather(value)
    }
    fn abort(&self, message: &str) {
        self.0.abort(message);
    }
}

#[test]
fn where_one_thread_communicates_it_is_done_inside_the_call() {
    let threads = |comm: Arc<dyn Communicator>| {
        let seen: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
        let mine = Arc::clone(&seen);
        let observer =
            move |_: horus_core::session::Progress<'_>| mine.lock().unwrap().push(std::thread::current().id());
        let s = builder().communicator(comm).observer(observer).build().unwrap();
        let image = given(&s, 20) * 2.0;
        s.start();
        let at_once = s.stats().evaluations;
        s.settle();
        let here = seen.lock().unwrap().iter().all(|id| *id == std::thread::current().id());
        assert_eq!(image.to_vec().unwrap(), want(20, |v| v * 2.0));
        (at_once, here)
    };
    for ranks in [2, 3] {
        let all = in_time(move || ThreadComm::run(ranks, |comm| threads(Arc::new(OneThread(comm)))));
        assert!(all.iter().all(|seen| *seen == (1, true)), "{all:?}");
    }
}

#[test]
fn who_records_far_ahead_waits() {
    in_time(|| {
        let (s, gate) = Gate::on(builder().flush_limits(4096, 1000));
        let image = given(&s, 21) * 2.0;
        image.start();
        gate.wait_until_inside();
        let (tell, told) = channel();
        let ahead = std::thread::spawn(move || {
            let first = given(&s, 22); // more than pending operations may keep alive, but the first
            tell.send(()).unwrap();
            let second = given(&s, 23);
            tell.send(()).unwrap();
            (first - second).to_vec().unwrap()
        });
        told.recv_timeout(LONG).unwrap();
        assert_eq!(told.recv_timeout(MOMENT).map_err(|_| ()), Err(()), "it waits");
        gate.open();
        let differences: Vec<f32> = want(22, |v| v).iter().zip(want(23, |v| v)).map(|(a, b)| a - b).collect();
        assert_eq!(ahead.join().unwrap(), differences);
        assert_eq!(image.to_vec().unwrap(), want(21, |v| v * 2.0));
    });
}
