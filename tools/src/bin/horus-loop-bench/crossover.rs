//! The number of iterations after which a GPU overtakes the CPU, including its start and all copies.

use std::process::{Command, Stdio};
use std::time::Instant;

use horus::prelude::*;
use horus_core::machine::here;
use horus_core::plan::work::ProgramWork;
use horus_core::session::DeviceForecast;
use horus_models::poisson::{Poisson, Rhs};
use serde_json::{Value, json};

/// More iterations than any program has; predictions end here.
const MOST: usize = 1 << 40;

/// Runs a program of so many iterations, from the start of its session until its result is in an array.
///
/// # Errors
/// Errors of the session and the loop.
pub(super) fn once(session: Session, size: usize, steps: usize) -> Result<()> {
    let problem = Poisson::<f32>::new(&session, size, Rhs::Broadcast)?;
    let done = session.iterate(problem.begin(), steps, |u| problem.step(u))?;
    std::hint::black_box(done.state.to_vec()?);
    drop((problem, done));
    session.leave(0)
}

/// Its work, as counted by sessions that choose a device: a filter of four taps, a product and a sum in each iteration,
/// and a result.
fn work(size: usize, steps: usize) -> ProgramWork {
    let all = (size * size) as f64;
    let made = all * steps as f64;
    ProgramWork {
        operations: 3 * steps,
        filtering: 4.0 * made,
        pointwise: 2.0 * made,
        bytes: all * size_of::<f32>() as f64,
    }
}

/// Measures and predicts for images of each size, prints a line and returns the numbers.
///
/// # Errors
/// If a device cannot be used.
pub(super) fn print(sizes: &[usize], few: usize, many: usize, runs: usize, gpu: &str) -> Result<Vec<Value>> {
    // As many threads as programs have.
    let threads = Session::builder().device("cpu").build()?.device().map_or(1, |device| device.workers().threads());
    println!("jacobi f32, {threads} threads, whole programs of {few} and of {many} steps");
    let mut results = Vec::new();
    for &size in sizes {
        let line = |device: &str| -> Result<IterationTimes> {
            let few_seconds = seconds(size, few, device, runs)?;
            Ok(IterationTimes::through((few, few_seconds), (many, seconds(size, many, device, runs)?)))
        };
        let (cpu, gpu) = (line("cpu")?, line(gpu)?);
        let predicted = first(|steps| {
            let forecast = DeviceForecast::of(&work(size, steps), &here::candidates(threads), 1, false);
            forecast.gpu < forecast.cpu
        });
        let measured = cpu.meets(gpu);
        let told = |steps: Option<f64>| steps.map_or("never".into(), |n| format!("after {n:.0} steps"));
        let ratio = measured.zip(predicted).map(|(measured, predicted)| predicted / measured);
        println!(
            "{size:>6}: the GPU overtakes {}, predicted {}, ratio {}; CPU {:.3} s + {:.4} ms a step, GPU {:.3} s + {:.4} ms",
            told(measured),
            told(predicted),
            ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")),
            cpu.start,
            cpu.step * 1e3,
            gpu.start,
            gpu.step * 1e3
        );
        results.push(json!({
            "op": "crossover", "size": size, "measured": measured, "predicted": predicted, "ratio": ratio,
            "cpu_s": cpu.start, "cpu_ms_per_step": cpu.step * 1e3, "gpu_s": gpu.start, "gpu_ms_per_step": gpu.step * 1e3,
        }));
    }
    Ok(results)
}

/// Median seconds of a program of this size in a separate process, after a run that may compile.
fn seconds(size: usize, steps: usize, device: &str, runs: usize) -> Result<f64> {
    let failed = |what: String| Error::Config(format!("a program on {device} cannot be timed: {what}"));
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let words =
        ["--once".into(), steps.to_string(), "--size".into(), size.to_string(), "--device".into(), device.into()];
    let run = || {
        let start = Instant::now();
        let out =
            Command::new(&program).args(&words).stdin(Stdio::null()).output().map_err(|e| failed(e.to_string()))?;
        let taken = start.elapsed().as_secs_f64();
        if out.status.success() {
            Ok(taken)
        } else {
            Err(failed(String::from_utf8_lossy(&out.stderr).trim().to_owned()))
        }
    };
    run()?;
    let mut times = (0..runs.max(1)).map(|_| run()).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Seconds of a program: before its first iteration, and per iteration.
#[derive(Clone, Copy, Debug)]
struct IterationTimes {
    start: f64,
    step: f64,
}

impl IterationTimes {
    fn through((few, a): (usize, f64), (many, b): (usize, f64)) -> IterationTimes {
        let step = (b - a) / (many - few) as f64;
        IterationTimes { start: a - step * few as f64, step }
    }

    /// The number of iterations from which `faster` takes less time; `None` if its iterations take longer.
    fn meets(self, faster: IterationTimes) -> Option<f64> {
        (self.step > faster.step).then(|| ((faster.start - self.start) / (self.step - faster.step)).max(0.0))
    }
}

/// The smallest number of iterations from which `overtaken` is always true.
fn first(overtaken: impl Fn(usize) -> bool) -> Option<f64> {
    let mut high = 1;
    while !overtaken(high) {
        high *= 2;
        if high > MOST {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if overtaken(middle) { high = middle } else { low = middle }
    }
    Some(high as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_meet_where_they_should() {
        // 10 ms, and 2 ms per iteration; 310 ms, and 0.1 ms per iteration.
        let cpu = IterationTimes::through((10, 0.03), (110, 0.23));
        let gpu = IterationTimes::through((10, 0.311), (110, 0.321));
        let meets = cpu.meets(gpu).unwrap();
        assert!((meets - 0.3 / 1.9e-3).abs() < 1e-9, "{meets}");
        assert!(gpu.meets(cpu).is_none());
        assert_eq!(IterationTimes { start: 1.0, step: 2.0 }.meets(IterationTimes { start: 0.5, step: 1.0 }), Some(0.0));
    }

    #[test]
    fn the_first_number_of_steps_is_found() {
        for n in [1, 2, 3, 100, 127, 128, 129, 1_000_003] {
            assert_eq!(first(|steps| steps >= n), Some(n as f64));
        }
        assert_eq!(first(|_| false), None);
    }
}
