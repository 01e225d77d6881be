//! Programs under a limit of memory.
#![allow(dead_code, reason = "every test program uses its own part")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::files::text;

/// A program, its limit, its words, the file on its stdin, and its expected end.
pub(crate) type Row<'a> = (&'a str, &'a str, &'a [&'a str], Option<&'a str>, ExpectedEnd);

/// Promised and measured memory with a small picture.
pub(crate) struct MemoryPromise {
    pub(crate) folder: tempfile::TempDir,
    /// Memory of a program that waits for its input.
    empty: usize,
}

/// Expected end of a program with such a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedEnd {
    Done,
    /// Before anything is read or computed: memory stays far below the picture's size.
    Refused,
}

pub(crate) const MIB: usize = 1 << 20;

/// The largest resident bytes of a process so far; none after its end.
fn largest_resident(process: &Child) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let kib = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?;
    Some(kib.trim().parse::<usize>().ok()? << 10)
}

impl MemoryPromise {
    /// A folder, and the memory of a program that waits for a picture on its stdin.
    pub(crate) fn new(program: &str, words: &[&str]) -> MemoryPromise {
        MemoryPromise { folder: tempfile::tempdir().unwrap(), empty: MemoryPromise::waiting(program, words) }
    }

    /// The memory of a program that has read its arguments and waits for a picture on its stdin.
    fn waiting(program: &str, words: &[&str]) -> usize {
        let mut command = Command::new(program);
        command
            .args(["-", "-", "--format", "pgm"])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let resident = largest_resident(&child).expect("it waits");
        drop(child.stdin.take());
        child.wait().unwrap();
        resident
    }

    /// Runs a program with `input` on its stdin; returns its largest resident bytes.
    pub(crate) fn run(
        &self,
        program: &str,
        limit: Option<&str>,
        words: &[&str],
        input: Option<&str>,
    ) -> (usize, Output) {
        let mut command = Command::new(program);
        command.args(words).current_dir(self.folder.path()).env_remove("HORUS_MODE").env("HORUS_DEVICE", "cpu");
        // Each thread has its own scratch memory.
        command.env("HORUS_THREADS", "2").env_remove("HORUS_HOST_MEMORY");
        if let Some(limit) = limit {
            command.env("HORUS_HOST_MEMORY", limit);
        }
        let mut feeding = input.map(|file| {
            let mut cat =
                Command::new("cat").arg(self.folder.path().join(file)).stdout(Stdio::piped()).spawn().unwrap();
            command.stdin(cat.stdout.take().unwrap());
            cat
        });
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut largest = 0;
        while child.try_wait().unwrap().is_none() {
            // It only grows, but for an instant after the start it is the memory of this process, not
            // yet replaced by the program: the latest is the largest.
            largest = largest_resident(&child).unwrap_or(largest);
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(cat) = &mut feeding {
            let _ = cat.kill();
            cat.wait().unwrap();
        }
        (largest, child.wait_with_output().unwrap())
    }

    /// Runs a program with a limit of memory, and checks its end and its largest memory.
    pub(crate) fn check(&self, (program, limit, words, input, ends): Row<'_>) {
        let (largest, run) = self.run(program, Some(limit), words, input);
        let case = format!("{program} {words:?} at {limit}: {} MiB\n{}", largest / MIB, text(&run.stderr));
        assert_eq!(run.status.success(), ends == ExpectedEnd::Done, "{case}");
        let allowed: usize = limit.strip_suffix('M').unwrap().parse().unwrap();
        let most = self.empty + if ends == ExpectedEnd::Done { (allowed + 64) * MIB } else { 16 * MIB };
        // The table of benches/memory.sh.
        let (name, end) = (
            Path::new(program).file_name().unwrap().display(),
            if ends == ExpectedEnd::Done { "done" } else { "an error" },
        );
        println!("| {name} {} | {allowed} MiB | {} MiB | {end} |", words.join(" "), largest / MIB);
        assert!(largest <= most, "{case}\n{} MiB are allowed", most / MIB);
        if ends == ExpectedEnd::Done {
            return;
        }
        // One error names a limit that suffices for all.
        let said = text(&run.stderr);
        assert!(said.contains("out of memory") && said.contains("HORUS_HOST_MEMORY allows"), "{case}");
        let enough = said.split("in use; at least ").nth(1).and_then(|rest| rest.split("M are needed").next());
        let enough: usize = enough.and_then(|m| m.parse().ok()).unwrap_or_else(|| panic!("{case}"));
        assert!(enough > allowed, "{case}");
        let (largest, run) = self.run(program, Some(&format!("{enough}M")), words, input);
        let case =
            format!("{words:?} at {enough} MiB, which an error named: {} MiB\n{}", largest / MIB, text(&run.stderr));
        assert!(run.status.success() && largest <= self.empty + (enough + 64) * MIB, "{case}");
    }
}
