//! Tests under `mpirun` with 1 to 5 ranks: the test starts itself again as the ranks of each job.
//!
//! `MPIRUN` names another launcher (with options) than `mpirun`. Open MPI is told to allow more
//! ranks than cores.

#[path = "../../horus-core/tests/conformance/harness.rs"]
#[allow(dead_code, reason = "shared with the conformance tests, which use all of it")]
mod harness;
mod jobs;
#[path = "../../horus-core/tests/conformance/random.rs"]
mod random;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use harness::RunConfiguration;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_testing::simulated::SimulatedDevice;

/// Calls `f` with the device of a place.
pub(crate) fn with_device<R>(place: RunConfiguration, f: impl FnOnce(&dyn Device) -> R) -> R {
    let cpu = CpuDevice::new(Some(1)).expect("a CPU");
    match (place.separate, place.direct) {
        (false, _) => f(&cpu),
        (true, false) => f(&SimulatedDevice::new(cpu, usize::MAX / 2)),
        (true, true) => f(&SimulatedDevice::new(cpu, usize::MAX / 2).with_fabric()),
    }
}

/// Time within which the ranks of a failing job must end.
const SOON: Duration = Duration::from_secs(10);
/// Upper limit on the time of a job.
const LIMIT: Duration = Duration::from_secs(120);

/// A job: its name, numbers of ranks, and expected end.
struct MpiJob {
    name: &'static str,
    run: fn(horus_mpi::MpiComm) -> Result<(), String>,
    ranks: &'static [usize],
    /// Words of the single error that is printed; `None` if the job must succeed.
    fails: Option<&'static [&'static str]>,
}

const fn good(
    name: &'static str,
    run: fn(horus_mpi::MpiComm) -> Result<(), String>,
    ranks: &'static [usize],
) -> MpiJob {
    MpiJob { name, run, ranks, fails: None }
}

const fn bad(
    name: &'static str,
    run: fn(horus_mpi::MpiComm) -> Result<(), String>,
    words: &'static [&'static str],
) -> MpiJob {
    MpiJob { name, run, ranks: &[3], fails: Some(words) }
}

const JOBS: &[MpiJob] = &[
    good("messages", jobs::messages, &[1, 2, 3, 5]),
    good("random_programs", jobs::random_programs, &[1, 2, 3, 4, 5]),
    good("traffic_of_known_programs", jobs::traffic, &[1, 2, 4, 5]),
    good("weights", jobs::weights, &[3]),
    good("loop_in_blocks", jobs::loop_in_blocks, &[2, 3, 5]),
    good("parts_while_borders_travel", jobs::parts, &[2, 3, 5]),
    good("two_sessions_and_a_late_drop", jobs::two_sessions, &[2]),
    good("started_beside_the_program", jobs::started::beside, &[1, 2, 3, 4, 5]),
    good("started_in_several_sessions", jobs::started::sessions, &[2, 3, 5]),
    good("started_and_never_looked_at", jobs::started::forgotten, &[1, 2, 3, 5]),
    bad("one_starts_something_else", jobs::started::otherwise, &["different programs", "rank 1 reached"]),
    bad("wrong_length", jobs::wrong_length, &["rank 1", "MPI_Testsome", "expected from rank 0"]),
    bad(
        "branching",
        jobs::branching,
        &["different programs", "rank 0 reached `%1 = transpose", "rank 2 reached `%1 = flip"],
    ),
    bad("other_taps", jobs::other_taps, &["correlate 1x3", "differ in their parameters"]),
    bad(
        "one_ends_early",
        jobs::ends_early,
        &["rank 0 reached `the end of the program`, rank 1 reached `an evaluation`"],
    ),
    bad("one_fails_early", jobs::fails_early, &["an evaluation", "the end of the program"]),
    bad("one_opens_a_file", jobs::opens_a_file, &["an evaluation", "opening a picture"]),
    bad("one_panics", jobs::panics, &["rank 1: a panic"]),
    bad("one_panics_in_a_step", jobs::panics_in_a_step, &["rank 2: panic in an evaluation"]),
    bad("one_device_fails", jobs::device_fails, &["rank 1: upload", "out of memory"]),
    bad("one_gives_up_beside_a_message", jobs::gives_up_beside_a_message, &["rank 1: enough"]),
    bad("one_gives_up_beside_a_collective_call", jobs::gives_up_beside_a_collective_call, &["rank 1: enough"]),
    bad("one_is_killed", jobs::killed, &[]),
    bad("one_is_stopped", jobs::stopped, &["another rank of this node, was stopped"]),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = &args[..]
        && flag == "--rank-of"
    {
        return rank(name);
    }
    // Arguments of `cargo test`: names choose jobs; options are for another harness.
    let chosen = |job: &&MpiJob| args.iter().all(|a| a.starts_with('-') || job.name.contains(a.as_str()));
    let mut failures = 0;
    for job in JOBS.iter().filter(chosen) {
        for &ranks in job.ranks {
            let start = Instant::now();
            let verdict = launch(job, ranks);
            let seconds = start.elapsed().as_secs_f64();
            match verdict {
                Ok(()) => println!("ok      {} on {ranks} ranks ({seconds:.1} s)", job.name),
                Err(why) => {
                    println!("FAILED  {} on {ranks} ranks ({seconds:.1} s): {why}", job.name);
                    failures += 1;
                }
            }
        }
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rank(name: &str) -> ExitCode {
    let job = JOBS.iter().find(|j| j.name == name).expect("a known job");
    let comm = horus_mpi::join().expect("MPI works");
    match (job.run)(comm) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // In one write, as the other ranks do: `eprintln` writes piece by piece, and another rank's line may come between.
            horus_core::warning::print(format_args!("returned: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn launch(job: &MpiJob, ranks: usize) -> Result<(), String> {
    let launcher = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let mut words = launcher.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("mpirun"));
    command.args(words).args(["-n", &ranks.to_string()]);
    command.arg(std::env::current_exe().map_err(|e| e.to_string())?).args(["--rank-of", job.name]);
    // Containers run as root, which Open MPI requires to be confirmed twice.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // Allow more ranks than cores, for Open MPI 4 and 5.
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
    let limit = if job.fails.is_some() { SOON } else { LIMIT };
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        if start.elapsed() > limit {
            child.kill().map_err(|e| e.to_string())?;
            child.wait().map_err(|e| e.to_string())?;
            return Err(format!("still running after {limit:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let errors: Vec<&str> = said.lines().filter(|l| l.starts_with("error: ")).collect();
    match job.fails {
        None if status.success() => Ok(()),
        None => Err(format!("{status}:\n{said}")),
        Some(_) if status.success() => Err("no rank failed".into()),
        Some([]) => Ok(()),
        Some(words) => match errors[..] {
            [only] if words.iter().all(|w| only.contains(w)) => Ok(()),
            _ => Err(format!("not the one error that says {words:?}:\n{said}")),
        },
    }
}
