//! Benchmark results, and the time that a clock adds to them.

use clap::ValueEnum;
use horus::prelude::*;
use serde_json::json;

use crate::everyday::noise;

/// Seconds of the smallest launch among many, where only its own time is measured, by `horus-machine` on an H200.
const EMPTY: f64 = 2.1e-6;

/// Seconds that a GPU's clock adds to a launch: the time of the smallest launch alone minus its time among many.
/// Measured by the session.
///
/// # Errors
/// Errors of evaluations.
pub fn clock(session: &Session) -> Result<f64> {
    /// Launches, of which the shortest is used.
    const RUNS: usize = 50;
    let pixel = noise(session, 1, 0);
    session.evaluate()?;
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let before = session.measured()?.kernels;
        let _kept = &pixel + 1.0;
        session.evaluate()?;
        least = least.min((session.measured()?.kernels - before).as_secs_f64() - EMPTY);
    }
    Ok(least.max(0.0))
}

/// Host memory kinds.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Arrays {
    /// From a slice to a new vector.
    Fresh,
    /// From a slice to a reused vector.
    Kept,
    /// From page-locked pixels to page-locked pixels, both reused.
    Pixels,
}

impl Arrays {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Arrays::Fresh => "fresh",
            Arrays::Kept => "kept",
            Arrays::Pixels => "pixels",
        }
    }
}

/// One line of the results.
pub struct BenchLine {
    /// The operation.
    pub op: &'static str,
    /// Rows and columns.
    pub size: usize,
    /// Optimisation mode.
    pub mode: Mode,
    /// Seconds, sorted.
    pub times: Vec<f64>,
    /// Seconds of the uncounted run.
    pub first: f64,
    /// Host memory of source and target.
    pub arrays: Option<Arrays>,
    /// Copies of one run.
    pub copies: usize,
    /// Kernels of one run.
    pub launches: usize,
    /// Transfers of all kinds between ranks.
    pub exchanges: usize,
    /// Messages that this rank sent in one run.
    pub messages: usize,
    /// Bytes that this rank sent in one run.
    pub bytes: usize,
    /// Seconds of one run spent on transfers between ranks, including waits.
    pub communication: f64,
    /// Number of ranks.
    pub ranks: usize,
    /// Threads per rank.
    pub threads: usize,
}

impl BenchLine {
    /// The operation, and its host memory kind.
    pub fn name(&self) -> String {
        match self.arrays() {
            Some(arrays) if arrays != "fresh" => format!("{} {arrays}", self.op),
            _ => self.op.to_owned(),
        }
    }

    fn arrays(&self) -> Option<&'static str> {
        self.arrays.map(Arrays::name)
    }

    fn median(&self) -> f64 {
        self.times[self.times.len() / 2] * 1e3
    }

    /// JSON in the format of the script of the peer libraries.
    pub fn json(&self) -> serde_json::Value {
        let (min, max) = (self.times[0] * 1e3, self.times[self.times.len() - 1] * 1e3);
        json!({
            "op": self.op, "peer": "horus", "size": self.size, "threads": self.threads, "runs": self.times.len(),
            "mode": format!("{:?}", self.mode).to_lowercase(), "copies": self.copies, "launches": self.launches,
            "from_host": self.arrays.is_some(), "arrays": self.arrays(), "ranks": self.ranks, "exchanges": self.exchanges, "messages": self.messages, "bytes": self.bytes,
            "communication_ms": self.communication * 1e3,
            "median_ms": self.median(), "min_ms": min, "max_ms": max, "first_ms": self.first * 1e3,
        })
    }
}

impl std::fmt::Display for BenchLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (min, max) = (self.times[0] * 1e3, self.times[self.times.len() - 1] * 1e3);
        let (median, first) = (self.median(), self.first * 1e3);
        write!(f, "{:14} median {median:9.3} ms  min {min:9.3}  max {max:9.3}  first {first:9.3}", self.name())?;
        write!(f, "  {} copies, {} kernels", self.copies, self.launches)?;
        if self.ranks > 1 {
            let (mib, ms) = (self.bytes as f64 / f64::from(1 << 20), self.communication * 1e3);
            write!(f, ", {} exchanges, {} messages, {mib:.2} MiB sent", self.exchanges, self.messages)?;
            write!(f, ", {ms:.3} ms between ranks")?;
        }
        Ok(())
    }
}

/// Operations and sizes as rows, modes as columns.
pub fn markdown(device: &str, modes: &[Mode], lines: &[BenchLine]) -> String {
    use std::fmt::Write as _;
    let mut s =
        format!("Medians on {device}, and copies between host and device and kernels of one run.\n\n| | size |");
    modes.iter().for_each(|m| s.push_str(&format!(" {m:?} ms | copies | kernels |").to_lowercase()));
    s.push_str(&format!("\n| --- | --- |{}\n", " --- | --- | --- |".repeat(modes.len())));
    let mut rows: Vec<(String, usize)> = Vec::new();
    for l in lines {
        if !rows.contains(&(l.name(), l.size)) {
            rows.push((l.name(), l.size));
        }
    }
    for (op, size) in rows {
        let _ = write!(s, "| {op} | {size} |");
        for mode in modes {
            match lines.iter().find(|l| (l.name(), l.size, l.mode) == (op.clone(), size, *mode)) {
                Some(l) => {
                    let _ = write!(s, " {:.3} | {} | {} |", l.median(), l.copies, l.launches);
                }
                None => s.push_str(" | | |"),
            }
        }
        s.push('\n');
    }
    s
}
