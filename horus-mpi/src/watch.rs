//! Detects ranks of this node that were stopped (`SIGSTOP`).
//!
//! MPI and its launcher notice a process that ends, but not one that is stopped: other ranks would
//! wait for it forever, from `MPI_Init` on. Each rank therefore checks the next rank of its node, a
//! process of the same program and parent. A job that is suspended as a whole, by `SIGTSTP` to
//! `mpirun` or by a scheduler, is not affected, because no rank checks meanwhile.

use std::fs;
use std::io;
use std::time::Duration;

/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(300);
/// Number of consecutive checks that find the same stop. The ranks of a suspended job do not all
/// continue at once.
const LOOKS: usize = 4;

/// Starts a thread that checks. `joined` returns `true` once all ranks have joined; `end` ends all
/// ranks with a reason.
///
/// # Errors
/// If the thread cannot start.
pub fn begin(joined: fn() -> bool, end: fn(&str)) -> io::Result<()> {
    std::thread::Builder::new().name("horus-watch".into()).spawn(move || watch(joined, end)).map(drop)
}

fn watch(joined: fn() -> bool, end: fn(&str)) {
    let me = std::process::id();
    let (mut all, mut next) = (false, None);
    let (mut last, mut same) = (None, 0);
    loop {
        std::thread::sleep(PAUSE);
        // All ranks have joined once MPI is initialised.
        if !all {
            all = joined();
            next = neighbour(me);
        }
        let stop = next.and_then(stopped);
        same = if stop.is_some() && stop == last { same + 1 } else { usize::from(stop.is_some()) };
        last = stop;
        if let Some(process) = next.filter(|_| same >= LOOKS) {
            return end(&format!("process {process}, another rank of this node, was stopped (SIGSTOP)"));
        }
    }
}

/// The process after `me`, cyclically, among its parent's processes of the same program. Each
/// process is checked by exactly one, so one message reports a stop.
fn neighbour(me: u32) -> Option<u32> {
    let program = fs::read_link("/proc/self/exe").ok()?;
    let parent = parent_of(me)?;
    let processes = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let others = processes.filter(|process| {
        *process != me
            && parent_of(*process) == Some(parent)
            && fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|of| of == program)
    });
    others.min_by_key(|process| process.wrapping_sub(me))
}

/// A line of a process's status, without its name.
fn status(process: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

fn parent_of(process: u32) -> Option<u32> {
    status(process, "PPid:")?.parse().ok()
}

/// A number that identifies the current stop of a process; `None` if the process is not stopped, or
/// is stopped by a debugger.
fn stopped(process: u32) -> Option<u64> {
    // A process that continues and stops again has had another context switch.
    status(process, "State:")?.starts_with('T').then(|| status(process, "voluntary_ctxt_switches:"))??.parse().ok()
}
