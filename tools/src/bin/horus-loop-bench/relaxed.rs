//! Ranks that wait for their neighbours compared with ranks that do not, over links of growing latency: the time until
//! both have the same error.
//!
//! Ranks are threads, each with its own clock for each latency. A clock advances by the CPU time of its thread, which
//! other work on the machine does not change. When a message arrives, the clock is set to the sender's time plus the
//! latency, if that is later. A call of all ranks takes the latency once for each doubling of their number. Bytes take
//! no time, and cores are not shared.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use horus::prelude::*;
use horus_core::comm::threads::ThreadComm;
use horus_core::comm::{CommError, Communicator, Parcel, PendingExchange};
use horus_core::host::buffer::HostBuffer;
use horus_core::machine::here;
use horus_core::machine::{Link, MachineProfile};
use horus_core::settings::PROFILE;
use horus_models::in_parts;
use horus_models::poisson::{Poisson, Rhs};
use serde_json::{Value, json};

/// A rank with clocks.
struct TimedRank {
    comm: ThreadComm,
    /// Latencies, in seconds.
    latencies: Vec<f64>,
    clocks: Mutex<Clocks>,
}

/// Seconds of a rank for each latency, and the CPU time of its thread when they were set.
struct Clocks {
    seconds: Vec<f64>,
    cpu: f64,
}

/// Seconds of CPU time of this thread.
fn cpu() -> Result<f64, CommError> {
    // Linux counts the time up to now when a thread yields.
    std::thread::yield_now();
    let read = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = read.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    nanoseconds.map(|n| n as f64 * 1e-9).ok_or_else(|| CommError("CPU times of threads need Linux's schedstat".into()))
}

impl TimedRank {
    fn run<R: Send>(ranks: usize, latencies: &[f64], program: impl Fn(Arc<TimedRank>) -> R + Sync) -> Vec<R> {
        ThreadComm::run(ranks, |comm| {
            let clocks = Mutex::new(Clocks { seconds: vec![0.0; latencies.len()], cpu: 0.0 });
            program(Arc::new(TimedRank { comm, latencies: latencies.to_vec(), clocks }))
        })
    }

    /// Communicates without taking time on the clocks; `work` may advance the clocks.
    fn outside<R>(&self, work: impl FnOnce(&mut Vec<f64>) -> Result<R, CommError>) -> Result<R, CommError> {
        let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = cpu()? - clocks.cpu;
        clocks.seconds.iter_mut().for_each(|clock| *clock += spent);
        let done = work(&mut clocks.seconds)?;
        clocks.cpu = cpu()?;
        Ok(done)
    }

    /// Sets all ranks' clocks to the latest clock plus `rounds` latencies.
    fn together(&self, clocks: &mut [f64], rounds: u32) -> Result<(), CommError> {
        for (clock, latency) in clocks.iter_mut().zip(&self.latencies) {
            let all = self.comm.gather(clock.to_bits())?;
            *clock = all.into_iter().map(f64::from_bits).fold(0.0, f64::max) + latency * f64::from(rounds);
        }
        Ok(())
    }

    fn doublings(&self) -> u32 {
        self.size().next_power_of_two().trailing_zeros()
    }

    /// Seconds of some work for each latency, until the last rank has done it.
    fn time<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<(Vec<f64>, R)> {
        let now = || {
            let now = self.outside(|clocks| self.together(clocks, 0).map(|()| clocks.clone()));
            now.map_err(|e| e.during(self.rank(), "measuring"))
        };
        let begin = now()?;
        let done = work()?;
        Ok((now()?.iter().zip(begin).map(|(end, begin)| end - begin).collect(), done))
    }
}

/// Messages preceded by the sender's clocks.
struct StampedMessages<'a> {
    begun: Box<dyn PendingExchange + 'a>,
    rank: &'a TimedRank,
}

impl PendingExchange for StampedMessages<'_> {
    fn finish(self: Box<Self>) -> Result<Vec<Parcel>, CommError> {
        let StampedMessages { begun, rank } = *self;
        rank.outside(|clocks| {
            let arrived = begun.finish()?;
            let bare = arrived.into_iter().map(|(from, message)| {
                let (stamps, bytes) = message.bytes().split_at(clocks.len() * size_of::<f64>());
                let stamps = stamps.chunks_exact(size_of::<f64>()).zip(&rank.latencies);
                for (clock, (sent, latency)) in clocks.iter_mut().zip(stamps) {
                    *clock = clock.max(f64::from_ne_bytes(sent.try_into().unwrap_or_default()) + latency);
                }
                (from, buffer(&[bytes]))
            });
            Ok(bare.collect())
        })
    }
}

fn buffer(parts: &[&[u8]]) -> HostBuffer {
    let bytes = parts.concat();
    let mut buffer = HostBuffer::zeroed(bytes.len());
    buffer.bytes_mut().copy_from_slice(&bytes);
    buffer
}

impl Communicator for TimedRank {
    fn rank(&self) -> usize {
        self.comm.rank()
    }
    fn size(&self) -> usize {
        self.comm.size()
    }
    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError> {
        let sends = sends.iter().map(|(to, bytes)| (*to, buffer(&[bytes]))).collect();
        let into = receives.iter().map(|(from, bytes)| (*from, HostBuffer::zeroed(bytes.len()))).collect();
        for ((_, into), (_, bytes)) in receives.iter_mut().zip(self.begin(sends, into)?.finish()?) {
            into.copy_from_slice(bytes.bytes());
        }
        Ok(())
    }
    fn begin(&self, sends: Vec<Parcel>, receives: Vec<Parcel>) -> Result<Box<dyn PendingExchange + '_>, CommError> {
        let begun = self.outside(|clocks| {
            let now: Vec<u8> = clocks.iter().flat_map(|clock| clock.to_ne_bytes()).collect();
            let sends = sends.into_iter().map(|(to, bytes)| (to, buffer(&[&now, bytes.bytes()]))).collect();
            let stamped = |bytes: usize| HostBuffer::zeroed(now.len() + bytes);
            let receives = receives.into_iter().map(|(from, bytes)| (from, stamped(bytes.len()))).collect();
            self.comm.begin(sends, receives)
        })?;
        Ok(Box::new(StampedMessages { begun, rank: self }))
    }
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        self.outside(|clocks| {
            self.comm.broadcast(root, bytes)?;
            self.together(clocks, self.doublings())
        })
    }
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        self.outside(|clocks| {
            self.comm.sum(values)?;
            self.together(clocks, self.doublings())
        })
    }
    fn gather(&self, value: u64) -> Result<Vec<u64>, CommError> {
        self.outside(|clocks| {
            self.together(clocks, self.doublings())?;
            self.comm.gather(value)
        })
    }
    fn abort(&self, message: &str) {
        self.comm.abort(message);
    }
}

/// A session on the calling thread.
fn session(comm: Arc<dyn Communicator>) -> Result<Session> {
    Session::builder().device("cpu").threads(1).communicator(comm).build()
}

/// The largest difference from the solution of the difference equations.
fn error(problem: &Poisson<f64>, u: &Image<f64>, size: usize) -> Result<f64> {
    // The right-hand side is an eigenvector of the step: u = cos(pi h) u + source.
    let eigenvalue = (std::f64::consts::PI / (size as f64 + 1.0)).cos();
    let solution = problem.step(&problem.begin()) / (1.0 - eigenvalue);
    u.absdiff(solution).max_value().get()
}

/// Seconds for each latency, and the error.
type RelaxedOutcome = (Vec<f64>, f64);

fn first(each: Vec<Result<RelaxedOutcome>>) -> Result<RelaxedOutcome> {
    each.into_iter().next().unwrap_or_else(|| Err(Error::Config("no ranks".into())))
}

/// A way to relax: the age of pixels, iterations between exchanges, and parts of a rank.
type Relaxation = (usize, usize, usize);

/// Iterates on ranks that exchange according to plans, or relaxed.
fn steps_of(
    size: usize,
    steps: usize,
    ranks: usize,
    latencies: &[f64],
    relaxed: Option<Relaxation>,
) -> Result<RelaxedOutcome> {
    first(TimedRank::run(ranks, latencies, |comm| {
        let session = session(comm.clone())?;
        let problem = Poisson::<f64>::new(&session, size, Rhs::Broadcast)?;
        if let Some((age, inner, parts)) = relaxed {
            session.place(in_parts(size, ranks, parts)?.exchanging_every(inner)?.relaxed(age))?;
        }
        // Makes plans, and touches pages of memory.
        session.iterate(problem.begin(), steps.min(64), |u| problem.step(u))?;
        let (seconds, done) = comm.time(|| session.iterate(problem.begin(), steps, |u| problem.step(u)))?;
        Ok((seconds, error(&problem, &done.state, size)?))
    }))
}

/// The smallest number of iterations, in hundredths of `steps`, after which relaxed ranks have no larger error.
fn needed(size: usize, steps: usize, ranks: usize, how: Relaxation, most: f64) -> Result<usize> {
    let errs =
        |percent: usize| Ok::<bool, Error>(steps_of(size, steps * percent / 100, ranks, &[0.0], Some(how))?.1 > most);
    let (mut low, mut high) = (99, 100);
    while errs(high)? {
        (low, high) = (high, high + (high - low) * 2);
    }
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if errs(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(steps * high / 100)
}

/// Prints one measurement in order, for the process that requested it; the latency is in microseconds.
///
/// # Errors
/// Errors of the loop.
pub(super) fn once(size: usize, steps: usize, ranks: usize, latency: f64) -> Result<()> {
    println!("{}", steps_of(size, steps, ranks, &[latency * 1e-6], None)?.0[0]);
    Ok(())
}

/// Seconds in order, of a separate process whose plans know the latency.
fn planned(size: usize, steps: usize, ranks: usize, latency: f64, folder: &Path) -> Result<f64> {
    let failed = |what: String| Error::Config(format!("steps in order cannot be timed: {what}"));
    let mut profile = MachineProfile::of_cores(1);
    let link = Link { latency: latency * 1e-6, ..profile.links.host };
    (profile.links.host, profile.links.peers, profile.links.network) = (link, link, link);
    let profile = here::keep(&profile, Some(&folder.join("profile.json")))?;
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let words = format!("--measure relaxed --once {steps} --size {size} --ranks {ranks} --latency {latency}");
    let out = Command::new(program).args(words.split(' ')).env(PROFILE.name, profile).stdin(Stdio::null()).output();
    let out = out.map_err(|e| failed(e.to_string()))?;
    let said = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    said.parse().map_err(|_| failed(format!("{said} {}", String::from_utf8_lossy(&out.stderr).trim())))
}

/// Measures, prints a line for each number of ranks and each latency in microseconds, and returns the numbers: medians
/// of `runs`.
///
/// # Errors
/// Errors of the loops, or if a process cannot be started.
pub(super) fn print(size: usize, steps: usize, ranks: &[usize], latencies: &[f64], runs: usize) -> Result<Vec<Value>> {
    let folder = std::env::temp_dir().join(format!("horus-relaxed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::Config(format!("{}: {e}", folder.display())))?;
    let seconds: Vec<f64> = latencies.iter().map(|us| us * 1e-6).collect();
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let repeated = 0..runs.max(1);
    let mut results = Vec::new();
    for &ranks in ranks {
        let (_, most) = steps_of(size, steps, ranks, &[0.0], None)?;
        let order = latencies.iter().map(|latency| {
            let each = repeated.clone().map(|_| planned(size, steps, ranks, *latency, &folder));
            each.collect::<Result<_>>().map(median)
        });
        let order = order.collect::<Result<Vec<f64>>>()?;
        println!(
            "jacobi f64, {size} x {size}, {ranks} ranks, error {most:.4e}; seconds at latencies of {latencies:?} us"
        );
        let told = |seconds: &[f64]| seconds.iter().map(|s| format!("{s:8.4}")).collect::<String>();
        println!("in order, {steps} steps:                        {}", told(&order));
        // In order, Async 0 to 3 with a factor of 8, and two more.
        let ways = [(0, 1, 1), (1, 1, 1), (8, 1, 1), (0, 8, 1), (8, 1, 2), (64, 1, 1), (8, 8, 1)];
        for how in ways {
            let (age, inner, parts) = how;
            let steps = needed(size, steps, ranks, how, most)?;
            let each = repeated.clone().map(|_| Ok(steps_of(size, steps, ranks, &seconds, Some(how))?.0));
            let each = each.collect::<Result<Vec<_>>>()?;
            let chaos: Vec<f64> = (0..seconds.len()).map(|i| median(each.iter().map(|run| run[i]).collect())).collect();
            println!("age {age:2}, {inner} a round, {parts} parts, {steps:5} steps: {}", told(&chaos));
            results.push(json!({
                "op": "relaxed", "size": size, "ranks": ranks, "age": age, "inner": inner, "parts": parts,
                "steps": steps, "latency_us": latencies, "order_s": order, "relaxed_s": chaos,
            }));
        }
    }
    std::fs::remove_dir_all(&folder).map_err(|e| Error::Config(format!("{}: {e}", folder.display())))?;
    Ok(results)
}
