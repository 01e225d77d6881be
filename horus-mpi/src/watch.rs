//! Notices ranks of this node that were stopped (`SIGSTOP`).
//!
//! MPI and its launcher notice a process that ends, not one that is stopped: the others would wait
//! for it forever, from `MPI_Init` on. So each rank looks at the next one of its node, which is a
//! process of the same program and the same parent. A job that is suspended as a whole, by
//! `SIGTSTP` to `mpirun` or by a scheduler, is not affected: nobody looks meanwhile.

use std::fs;
use std::io;
use std::time::Duration;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(300);
/// Looks in a row that find the same stop: the ranks of a suspended job do not continue at once.
const LOOKS: usize = 4;

/// Begins to watch, in a thread of its own. `joined` returns `true` once all ranks are there, and
/// `end` ends them all with this reason.
///
/// # Errors
/// If there can be no thread.
pub fn begin(joined: fn() -> bool, end: fn(&str)) -> io::Result<()> {
    std::thread::Builder::new().name("horus-watch".into()).spawn(move || watch(joined, end)).map(drop)
}

fn watch(joined: fn() -> bool, end: fn(&str)) {
    let me = std::process::id();
    let (mut all, mut next) = (false, None);
    let (mut last, mut same) = (None, 0);
    loop {
        std::thread::sleep(PAUSE);
        // All ranks are there once MPI is initialised.
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

/// The process after `me` among those of its parent that run its program, in a circle: each has one
/// that looks at it, so that one message tells of it.
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

/// A number of the present stop of a process; `None` if it is not stopped, or by a debugger.
fn stopped(process: u32) -> Option<u64> {
    // A process that is continued and stopped again has given up the processor once more.
    status(process, "State:")?.starts_with('T').then(|| status(process, "voluntary_ctxt_switches:"))??.parse().ok()
}
