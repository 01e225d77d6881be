//! The threads that a session computes on, sharing by callers of any thread pool, and independence
//! of results from thread scheduling.

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::Result;
use horus_core::image::{Image, Until};
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::cases::{cases, part};
use horus_testing::reference;
use rayon::prelude::*;

fn session(threads: usize) -> Session {
    let device = CpuDevice::new(Some(threads)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

/// A program with kernels of every kind; a number that depends on all of them.
fn program(s: &Session, seed: usize) -> Result<f64> {
    let image = Image::from_fn(s, 300, 200, |y, x| ((y * 31 + x * 17 + seed) % 101) as f32);
    let smooth = image.gauss(1.5).transpose().flip(Axis::Rows);
    let turned = image.with_border(Border::Reflect).rotate(30.0, Interpolation::Bilinear).median(3);
    let merged = Image::stack(s, [&image, &turned], Axis::Channels);
    let range = merged.max_value().get()? - merged.min_value().get()?;
    let counts = merged.histogram(10, 0.0, 101.0).get()?;
    let large: Vec<f32> = (0..1 << 18).map(|i| ((i * 7 + seed) % 103) as f32).collect();
    let copied = Image::from_slice(s, (512, 512), &large).to_vec()?;
    assert!(copied == large, "pixels given and read back");
    let rows: f64 = merged.over(Axis::Columns).sum().to_array::<ndarray::Ix3>()?.iter().sum();
    let columns: f64 = merged.over(Axis::Rows).sum().to_array::<ndarray::Ix3>()?.iter().sum();
    Ok(smooth.sum().get()? + merged.variance().get()? + f64::from(range) + counts[3] as f64 + rows + columns)
}

/// Runs `work` on its own thread, for at most a minute.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    finished.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|e| panic!("{what}: {e}"))
}

#[test]
fn workers_of_another_pool_can_share_a_session() {
    for threads in [1, 2] {
        in_time(&format!("a session of {threads} threads"), move || {
            let s = session(threads);
            let want: Vec<f64> = (0..16).map(|i| program(&s, i).expect("a result")).collect();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
            for _ in part(vec![(); 10], |_| vec![(); 2]) {
                let got: Vec<f64> =
                    pool.install(|| (0..16).into_par_iter().map(|i| program(&s, i).expect("a result")).collect());
                assert_eq!(got, want);
            }
        });
    }
}

/// The global pool can be built only once: by its first user.
#[test]
fn the_global_pool_is_left_alone() {
    for threads in [1, 2] {
        program(&session(threads), 0).expect("a result");
    }
    assert!(rayon::ThreadPoolBuilder::new().num_threads(1).build_global().is_ok(), "the global pool was in use");
}

/// Floats of such different magnitudes that every order of summation gives another sum.
fn uneven(y: usize, x: usize) -> f32 {
    let h = (y * 4099 + x).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (h % 4096) as f32 / 3.0 * 2.0f32.powi((h >> 12) as i32 % 48 - 24) - 100.0
}

#[test]
fn sums_of_many_segments_are_the_same_on_any_number_of_threads() {
    const SHAPE: Shape = Shape::new(1030, 2050, 1);
    let picture = reference::ReferenceImage::from_fn(SHAPE, |_, y, x| uneven(y, x));
    let squares = reference::ReferenceImage::from_fn(SHAPE, |_, y, x| uneven(y, x) * uneven(y, x));
    let total = |image: &reference::ReferenceImage| {
        let rows = reference::reduce::rows(image, RowReduce::Sum, None);
        reference::reduce::fold(&rows, Fold::Sum).at::<f64>(0, 0, 0).to_bits()
    };
    let want = [total(&picture), total(&squares)];
    for threads in [1, 2, 3, 5, 16] {
        let s = session(threads);
        let image = Image::from_fn(&s, SHAPE.height, SHAPE.width, uneven);
        let got = [image.sum(), (&image * &image).sum()].map(|v| v.get().expect("a sum").to_bits());
        assert_eq!(got, want, "{threads} threads");
    }
}

thread_local! {
    /// This thread's number among those of a program.
    static ME: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Numbers derived from a seed.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % n as u64) as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ThreadState {
    /// Waiting for its turn.
    Waiting,
    /// Running.
    Working,
    /// In a call that may wait for evaluations, or past the program's end.
    Away,
}

/// A scheduler: the threads of a program, and evaluations at each of their steps, run one at a
/// time, in an order derived from a seed.
struct ThreadScheduler {
    table: Mutex<(SeededNumbers, Vec<ThreadState>)>,
    changed: Condvar,
    /// All run concurrently instead.
    free: bool,
}

impl ThreadScheduler {
    /// A scheduler for `threads` threads, followed by evaluations.
    fn new(seed: u64, threads: usize, free: bool) -> ThreadScheduler {
        // None runs before all threads have started.
        let mut at = vec![ThreadState::Working; threads];
        at.push(ThreadState::Away);
        ThreadScheduler { table: Mutex::new((SeededNumbers(seed), at)), changed: Condvar::new(), free }
    }

    fn set(&self, who: usize, to: ThreadState) -> MutexGuard<'_, (SeededNumbers, Vec<ThreadState>)> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let (random, at) = &mut *table;
        at[who] = to;
        let waiting: Vec<usize> = (0..at.len()).filter(|who| at[*who] == ThreadState::Waiting).collect();
        if !at.contains(&ThreadState::Working) && !waiting.is_empty() {
            at[waiting[random.below(waiting.len())]] = ThreadState::Working;
            self.changed.notify_all();
        }
        table
    }

    fn wait(&self, who: usize) {
        let table = self.set(who, ThreadState::Waiting);
        let turn = self.changed.wait_while(table, |(_, at)| !self.free && at[who] != ThreadState::Working);
        drop(turn.unwrap_or_else(PoisonError::into_inner));
    }

    fn leave(&self, who: usize) {
        drop(self.set(who, ThreadState::Away));
    }

    /// A step of an evaluation, on the session's thread or on one of the program.
    fn evaluating(&self, evaluations: usize) {
        if let Some(me) = ME.get() {
            self.leave(me);
        }
        self.wait(evaluations);
        self.leave(evaluations);
    }
}

/// Leaves for good, even in a panic.
struct ThreadLeaveGuard<'a>(&'a ThreadScheduler, usize);

impl Drop for ThreadLeaveGuard<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// An image and its pixels, as they are computed here.
type ExpectedImage = (Image<u8>, Vec<u8>);

const EXTENT: (usize, usize) = (5, 67);

fn known(s: &Session, random: &mut SeededNumbers) -> ExpectedImage {
    let pixels: Vec<u8> = (0..EXTENT.0 * EXTENT.1).map(|_| random.below(256) as u8).collect();
    (Image::from_slice(s, (EXTENT.0, EXTENT.1), &pixels), pixels)
}

fn paired((a, of_a): &ExpectedImage, (b, of_b): &ExpectedImage, how: usize) -> ExpectedImage {
    let each = |f: fn(u8, u8) -> u8| of_a.iter().zip(of_b).map(|(a, b)| f(*a, *b)).collect();
    match how {
        0 => (a + b, each(u8::saturating_add)),
        1 => (a - b, each(u8::saturating_sub)),
        2 => (a.max(b), each(Ord::max)),
        3 => (a.min(b), each(Ord::min)),
        _ => (a.flip([Axis::Rows, Axis::Columns]), of_a.iter().rev().copied().collect()),
    }
}

/// A loop of at most `most` steps, which ends when a step changes nothing.
fn looped(s: &Session, (a, of_a): &ExpectedImage, (b, of_b): &ExpectedImage, most: usize) -> ExpectedImage {
    let until = Until::below(0.5, most).every(1);
    let done = s.iterate(a.clone(), until, |u| (u - b).max(u.flip(Axis::Rows))).expect("a loop");
    let mut state = of_a.clone();
    for step in 1..=most {
        let turned = state.chunks(EXTENT.1).rev().flatten();
        let next: Vec<u8> =
            state.iter().zip(of_b).zip(turned).map(|((u, b), t)| u.saturating_sub(*b).max(*t)).collect();
        let still = next == state;
        state = next;
        if still || step == most {
            assert_eq!(done.steps, step);
            break;
        }
    }
    (done.state, state)
}

/// One thread: records, gives pixels, starts, copies, drops, loops, reads, and passes images to
/// others.
fn steps(
    s: &Session,
    (turns, me): (&ThreadScheduler, usize),
    mut held: Vec<ExpectedImage>,
    passed: &Mutex<Vec<ExpectedImage>>,
    seed: u64,
) {
    let random = &mut SeededNumbers(seed);
    let passed = || passed.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sums = Vec::new();
    for _ in 0..4 + random.below(8) {
        turns.wait(me);
        let (a, b) = (random.below(held.len()), random.below(held.len()));
        match random.below(22) {
            0..=6 => held.push(paired(&held[a], &held[b], random.below(5))),
            7 | 8 => s.start(),
            9 => held[a].0.start(),
            10 | 11 if held.len() > 1 => drop(held.swap_remove(a)),
            12 => held.push(held[a].clone()),
            13 => {
                let (image, pixels) = &held[a];
                let sum = image.sum();
                sum.start();
                sums.push((sum, pixels.iter().map(|v| f64::from(*v)).sum::<f64>()));
            }
            14 => {
                let other = passed().pop();
                held.extend(other);
            }
            15 => passed().push(held[a].clone()),
            // These may wait for an evaluation, which waits for its turn.
            16 => {
                turns.leave(me);
                held.push(known(s, random));
            }
            17 | 18 => {
                turns.leave(me);
                held.push(looped(s, &held[a], &held[b], 1 + random.below(4)));
            }
            19 => {
                turns.leave(me);
                s.evaluate().expect("an evaluation");
            }
            _ => {
                turns.leave(me);
                assert_eq!(held[a].0.to_vec().expect("a result"), held[a].1, "thread {me} of seed {seed}");
            }
        }
    }
    turns.leave(me);
    for (image, pixels) in &held {
        assert_eq!(&image.to_vec().expect("a result"), pixels, "thread {me} of seed {seed}");
    }
    for (sum, total) in sums {
        assert_eq!(sum.get().expect("a sum"), total, "thread {me} of seed {seed}");
    }
}

/// Recording, dropping, giving pixels, starting and reading from several threads, and the steps of
/// started evaluations, in any order.
#[test]
fn interleavings_give_the_same_bits() {
    in_time("interleavings", || {
        let device: Arc<dyn Device> = Arc::new(CpuDevice::new(Some(1)).expect("a CPU"));
        for seed in 0..3 * u64::from(cases(300)) {
            let random = &mut SeededNumbers(seed);
            let threads = 1 + random.below(3);
            // Some of them concurrently, as the system schedules them.
            let turns = Arc::new(ThreadScheduler::new(seed, threads, random.below(4) == 0));
            let mut builder = Session::sharing(Arc::clone(&device));
            if random.below(2) == 0 {
                builder = builder.flush_limits(3, 1 << 9);
            }
            let mine = Arc::clone(&turns);
            let s = builder.observer(move |_| mine.evaluating(threads)).build().expect("a session");
            let shared = [known(&s, random), known(&s, random)];
            let passed = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for me in 0..threads {
                    let (s, held, turns, passed) = (s.clone(), shared.to_vec(), &turns, &passed);
                    scope.spawn(move || {
                        ME.set(Some(me));
                        let _leaving = ThreadLeaveGuard(turns, me);
                        steps(&s, (turns, me), held, passed, seed * 8 + me as u64);
                    });
                }
            });
        }
    });
}
