//! Printed reports: the plan, and the summary after the run.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use horus::prelude::*;
use horus_core::device::Compilation;
use horus_core::plan::BusyTimes;
use horus_core::plan::drawing::stack;

use crate::caller::Caller;
use crate::outbox::Stream;

/// Prints for a caller, and remembers failures to print.
pub struct Printer {
    caller: Arc<Caller>,
    failure: Mutex<Option<io::Error>>,
    /// The stream for messages: standard error if standard output is used for the picture.
    stream: Stream,
    /// `true` if nobody reads the output.
    is_unread: AtomicBool,
    /// Texts of plans, for a report.
    plan_texts: Mutex<Vec<String>>,
    /// Drawings of plans, which are printed at the end.
    drawings: Mutex<Vec<String>>,
}

impl Default for Printer {
    fn default() -> Printer {
        Printer::of(&Caller::process())
    }
}

impl Printer {
    /// Prints to standard output.
    pub(crate) fn of(caller: &Arc<Caller>) -> Printer {
        Printer::to(caller, Stream::Output)
    }

    /// Prints to stderr, because stdout carries a picture.
    pub(crate) fn on_stderr(caller: &Arc<Caller>) -> Printer {
        Printer::to(caller, Stream::Error)
    }

    fn to(caller: &Arc<Caller>, stream: Stream) -> Printer {
        let (failure, is_unread, plan_texts, drawings) = Default::default();
        Printer { caller: Arc::clone(caller), failure, stream, is_unread, plan_texts, drawings }
    }

    /// Stores the text of a plan, unless there are many: each picture of a series has one.
    pub(crate) fn store_plan(&self, text: &str) {
        const MOST: usize = 192;
        let mut kept = self.plan_texts.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST {
            kept.push(text.to_owned());
        }
    }

    /// The stored texts of plans.
    pub(crate) fn plan_texts(&self) -> Vec<String> {
        self.plan_texts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores a drawing of a plan, unless there are many.
    pub(crate) fn store_drawing(&self, drawing: &str) {
        const MOST: usize = 64;
        let mut kept = self.drawings.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST {
            kept.push(drawing.to_owned());
        }
    }

    /// Prints the stored drawings as one SVG file.
    pub(crate) fn print_drawings(&self) {
        let drawings = std::mem::take(&mut *self.drawings.lock().unwrap_or_else(PoisonError::into_inner));
        if !drawings.is_empty() {
            self.print(&stack(&drawings).trim_end());
        }
    }

    /// Prints a text.
    pub fn print(&self, text: &impl fmt::Display) {
        self.note(self.caller.write(self.stream, format!("{text}\n").as_bytes()));
    }

    fn note(&self, printed: io::Result<()>) {
        match printed {
            // A closed pipe on stdout is not a failure of the run: the reader has read enough.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => self.is_unread.store(true, Ordering::Relaxed),
            Err(e) => {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            }
            Ok(()) => {}
        }
    }

    /// Returns `true` if nobody reads the output.
    pub(crate) fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    /// Ends the process with this status if the system then frees everything at once. Returns if nobody reads the
    /// output, because flushing it would be another error, and for a client of a server.
    pub fn end_process(&self, session: Session, status: u8) {
        if self.caller.is_client() {
            return;
        }
        if !self.is_unread() {
            session.leave(status);
        }
        std::mem::forget(session);
    }

    /// Leaves the session of a process open: the system frees everything, and MPI is finalised when the process exits.
    pub(crate) fn leave_open(&self, session: &Session) {
        if !self.caller.is_client() {
            std::mem::forget(session.clone());
        }
    }

    /// Success, or a message if printing failed.
    pub(crate) fn result(&self) -> Result<(), String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map_or(Ok(()), |e| Err(format!("cannot print to stdout: {e}")))
    }
}

/// The summary of a run, in a few lines.
pub struct Summary<'a> {
    /// Name of the program.
    pub name: &'a str,
    /// Shape of the result.
    pub shape: Shape,
    /// A short description of the operation.
    pub about: &'a str,
    /// Name of the device.
    pub device: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Duration of the run.
    pub time: Duration,
    /// Counters of the session.
    pub stats: Stats,
    /// Name of the output.
    pub output: String,
    /// The range that an integer file represents.
    pub scale: Option<Scale>,
    /// Where the time went, if requested.
    pub breakdown: Option<&'a Breakdown>,
    /// Predicted times, if requested.
    pub forecasted: Option<ForecastComparison>,
}

/// Times of the parts of a run.
pub struct Breakdown {
    /// Opening the device.
    pub start: Duration,
    /// Reading and decoding the picture.
    pub read: Duration,
    /// Evaluating.
    pub times: Times,
    /// The part of `times` spent on building kernels.
    pub compilation: Compilation,
    /// Encoding and writing the result.
    pub write: Duration,
}

impl Breakdown {
    /// Each part, with its name.
    fn parts(&self) -> [(&'static str, Duration); 10] {
        let Times { start, planning, upload, kernels, download, communication, rest } = self.times;
        let made = self.compilation.time;
        [
            ("start", self.start + start),
            ("read", self.read),
            ("plan", planning),
            ("compile", made),
            ("upload", upload),
            ("kernels", kernels.saturating_sub(made)),
            ("download", download),
            ("exchange", communication),
            ("other", rest),
            ("write", self.write),
        ]
    }
}

/// Measured time of each part of an evaluation, and the prediction for rank 0.
pub struct ForecastComparison {
    /// Busy time of each part of the machine, by its own clock.
    pub measured: BusyTimes,
    /// Host times.
    pub times: Times,
    /// Time spent on building kernels.
    pub made: Duration,
    /// Predicted busy time of each part.
    pub predicted: BusyTimes,
    /// Predicted total time.
    pub in_all: Duration,
}

impl fmt::Display for ForecastComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ForecastComparison { measured: m, predicted: p, times: t, made, in_all } = self;
        let all = (t.upload + t.kernels + t.download + t.communication).saturating_sub(*made);
        let parts = [
            ("upload", m.upload, p.upload),
            ("kernels", m.kernels, p.kernels),
            ("download", m.download, p.download),
            ("between ranks", m.communication, p.communication),
            ("in all", all, *in_all),
        ];
        for (i, (name, measured, predicted)) in parts.into_iter().enumerate() {
            let before = if i == 0 { "measured / predicted ms: " } else { ", " };
            write!(f, "{before}{name} {:.2} / {:.2}", ms(measured), ms(predicted))?;
        }
        Ok(())
    }
}

/// A part in percent.
fn share(part: Duration, all: Duration) -> f64 {
    100.0 * part.as_secs_f64() / all.as_secs_f64().max(1e-9)
}

fn ms(t: Duration) -> f64 {
    t.as_secs_f64() * 1e3
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Compilation { compiled, from_disk, shipped, .. } = self.compilation;
        let parts = self.parts();
        let all = parts.iter().map(|(_, time)| *time).sum();
        for (i, (name, time)) in parts.into_iter().enumerate() {
            write!(f, "{}{name} {:.1} ({:.0} %", if i == 0 { "ms: " } else { ", " }, ms(time), share(time, all))?;
            if name == "compile" {
                write!(f, "; {compiled} compiled, {from_disk} from disk, {shipped} shipped")?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}

/// Two runs of one program, from file to file (thesis, section 2.5.3): the slower one first, as in Table 2.2.
pub(crate) struct RunComparison<'a> {
    /// Their devices.
    pub(crate) names: [String; 2],
    pub(crate) times: [Duration; 2],
    pub(crate) breakdowns: [&'a Breakdown; 2],
    /// `true` if the results have the same bits.
    pub(crate) same: bool,
}

impl fmt::Display for RunComparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.names;
        let width = a.len().max(b.len()).max(14);
        writeln!(f, "{:10}  {a:>width$}  {b:>width$}", "ms")?;
        let cell = |time, all| format!("{:.1} {:3.0} %", ms(time), share(time, all));
        for (x, y) in self.breakdowns[0].parts().into_iter().zip(self.breakdowns[1].parts()) {
            let (left, right) = (cell(x.1, self.times[0]), cell(y.1, self.times[1]));
            writeln!(f, "{:10}  {left:>width$}  {right:>width$}", x.0)?;
        }
        let (left, right) = (cell(self.times[0], self.times[0]), cell(self.times[1], self.times[1]));
        writeln!(f, "{:10}  {left:>width$}  {right:>width$}", "all")?;
        let speedup = self.times[0].as_secs_f64() / self.times[1].as_secs_f64().max(1e-9);
        let bits = if self.same { "the results have the same bits" } else { "the results differ" };
        write!(f, "user-perceived speedup {speedup:.2}, from file to file; {bits}")
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { depth, height, width, .. } = self.shape;
        let levels = if depth == 1 { String::new() } else { format!(" x {depth}") };
        let about = if self.about.is_empty() { String::new() } else { format!(", {}", self.about) };
        writeln!(f, "{}: {width} x {height}{levels} pixels{about}", self.name)?;
        writeln!(f, "ran on {}, {}, in {:.3} s", self.device, count(self.ranks, "rank"), self.time.as_secs_f64())?;
        if let Some(breakdown) = &self.breakdown {
            writeln!(f, "{breakdown}")?;
        }
        if let Some(forecasted) = &self.forecasted {
            writeln!(f, "{forecasted}")?;
        }
        if self.breakdown.is_some() {
            let Stats { made, naive, .. } = &self.stats;
            writeln!(
                f,
                "made {} copies and {} exchanges in {} kernels; a naive run makes {} and {} in {}",
                made.copies(),
                made.exchanges_between_ranks(),
                made.launches,
                naive.copies(),
                naive.exchanges_between_ranks(),
                naive.launches
            )?;
        }
        write!(f, "wrote {}", self.output)?;
        match self.scale {
            Some(scale) => write!(f, ", scaled {scale}"),
            None => write!(f, ", unscaled"),
        }
    }
}

/// The size and type of a picture, in words.
pub(crate) fn describe_picture(shape: Shape, dtype: DType) -> String {
    let Shape { depth, height, width, channels, .. } = shape;
    let levels = if depth == 1 { String::new() } else { format!(" x {depth}") };
    format!("{width} x {height}{levels} pixels, {}, {dtype}", count(channels, "channel"))
}

/// A number of things, in words.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printed_is_told_unless_nobody_reads() {
        let printer = Printer::default();
        printer.note(Err(ErrorKind::BrokenPipe.into()));
        assert_eq!(printer.result(), Ok(()));
        printer.note(Err(ErrorKind::StorageFull.into()));
        assert_eq!(printer.result(), Err("cannot print to stdout: no storage space".into()));
    }

    fn stats() -> Stats {
        let mut stats = Stats::default();
        (stats.made.uploads, stats.made.downloads, stats.made.launches) = (1, 1, 61);
        stats.naive.launches = 900;
        (stats.naive.uploads, stats.naive.downloads, stats.naive.gathers) = (1000, 500, 12);
        stats
    }

    #[test]
    fn a_summary_says_what_was_done_and_what_was_saved() {
        let summary = Summary {
            name: "convrot",
            shape: Shape::new(480, 640, 1),
            about: "12 orientations",
            device: "cpu".into(),
            ranks: 1,
            time: Duration::from_millis(1500),
            stats: stats(),
            output: "lines.png".into(),
            scale: Some(Scale { low: 0.0, high: 2.5, full: 255 }),
            breakdown: None,
            forecasted: None,
        };
        let lines: Vec<String> = summary.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "convrot: 640 x 480 pixels, 12 orientations");
        assert_eq!(lines[1], "ran on cpu, 1 rank, in 1.500 s");
        assert_eq!(lines[2], "wrote lines.png, scaled 0..2.5 -> 0..255");
        let parts = Breakdown {
            start: Duration::ZERO,
            read: Duration::ZERO,
            times: Times::default(),
            compilation: Compilation::default(),
            write: Duration::ZERO,
        };
        let told = Summary { breakdown: Some(&parts), ..summary }.to_string();
        let counts = "made 2 copies and 0 exchanges in 61 kernels; a naive run makes 1500 and 12 in 900";
        assert_eq!(told.lines().nth(3), Some(counts));
    }

    #[test]
    fn a_comparison_tells_the_share_of_each_part() {
        let ms = Duration::from_millis;
        let of = |kernels, write| Breakdown {
            start: ms(0),
            read: ms(10),
            times: Times { kernels: ms(kernels), ..Times::default() },
            compilation: Compilation::default(),
            write: ms(write),
        };
        let (slow, fast) = (of(900, 90), of(30, 60));
        let compared = RunComparison {
            names: ["CPU (1 thread)".into(), "GPU".into()],
            times: [ms(1000), ms(100)],
            breakdowns: [&slow, &fast],
            same: true,
        };
        let text = compared.to_string();
        let line =
            |name: &str| text.lines().find(|l| l.starts_with(name)).unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(line("kernels"), ["kernels", "900.0", "90", "%", "30.0", "30", "%"]);
        assert_eq!(line("all"), ["all", "1000.0", "100", "%", "100.0", "100", "%"]);
        assert!(text.ends_with("user-perceived speedup 10.00, from file to file; the results have the same bits"));
    }

    #[test]
    fn what_was_measured_is_told_beside_what_was_predicted() {
        let us = Duration::from_micros;
        let parts = |n| BusyTimes { upload: us(n), kernels: us(10 * n), download: us(2 * n), communication: us(0) };
        // Copies overlap with kernels, so the total is less than the sum of the parts.
        let times =
            Times { upload: us(100), kernels: us(10_400), download: us(500), planning: us(9000), ..Times::default() };
        let (measured, predicted) = (parts(1000), parts(990));
        let told = ForecastComparison { measured, times, made: us(300), predicted, in_all: us(10_650) };
        assert_eq!(
            told.to_string(),
            "measured / predicted ms: upload 1.00 / 0.99, kernels 10.00 / 9.90, download 2.00 / 1.98, \
             between ranks 0.00 / 0.00, in all 10.70 / 10.65"
        );
    }

    #[test]
    fn a_breakdown_tells_compilation_from_kernels() {
        let ms = Duration::from_millis;
        let times = Times { planning: ms(2), upload: ms(3), kernels: ms(100), download: ms(4), ..Times::default() };
        let compilation = Compilation { time: ms(60), compiled: 2, from_disk: 1, shipped: 3 };
        let b = Breakdown { start: ms(10), read: ms(5), times, compilation, write: ms(7) };
        assert_eq!(
            b.to_string(),
            "ms: start 10.0 (8 %), read 5.0 (4 %), plan 2.0 (2 %), compile 60.0 (46 %; 2 compiled, 1 from disk, 3 shipped), \
             upload 3.0 (2 %), kernels 40.0 (31 %), download 4.0 (3 %), exchange 0.0 (0 %), other 0.0 (0 %), write 7.0 (5 %)"
        );
    }
}
