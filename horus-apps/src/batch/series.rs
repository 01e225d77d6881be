//! Many pictures, one output file each.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use horus::prelude::*;
use horus_core::comm::Communicator;
use horus_core::io::{on_first, same_file};
use horus_core::series::{Item, Saved};

use super::{BatchJob, BatchOptions, PicturePair, Records, RunEnd, one_line, outputs, pictures, printed, session};
use crate::caller::Caller;
use crate::progress::SeriesBar;
use crate::report::Printer;

/// The outcome of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SeriesTally {
    pub(super) written: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
    /// Bytes of the pictures read, after decoding.
    pub(super) bytes: u64,
    pub(super) time: Duration,
}

/// Reads all pictures, applies the operation to each, writes the results, prints the summary.
pub(super) fn run(
    caller: &Arc<Caller>,
    job: &BatchJob,
    inputs: &[PathBuf],
    out_dir: &Path,
    comm: &Arc<dyn Communicator>,
) -> Result<RunEnd> {
    let started = Instant::now();
    let options = &job.options;
    let first = comm.rank() == 0;
    let extension = options.format.as_deref().unwrap_or("png");
    let listed = on_first(&**comm, "listing the pictures of a series", || {
        let found = pictures(caller, inputs, options.files_from.as_deref())?;
        let pairs = outputs(found, out_dir, extension)?.into_iter();
        Ok(pairs
            .map(|PicturePair { input, output }| (input.into(), output.into()))
            .collect::<Vec<(OsString, OsString)>>())
    })?;
    let pairs: Vec<PicturePair> = match listed {
        Ok(listed) => listed
            .into_iter()
            .map(|(input, output)| PicturePair { input: input.into(), output: output.into() })
            .collect(),
        Err(message) => return Ok(RunEnd::Usage(message)),
    };
    let made = on_first(&**comm, "creating a folder", || std::fs::create_dir_all(out_dir).map_err(|e| e.to_string()))?;
    made.map_err(|cause| Error::write(out_dir, cause))?;
    let mut tally = SeriesTally::default();
    let all = pairs.len();
    check_overwrites(options, &pairs, &**comm)?;
    let pairs = if options.skip_existing { without_existing_outputs(pairs, &**comm)? } else { pairs };
    tally.skipped = all - pairs.len();

    let printer = Arc::new(Printer::of(caller));
    let session = session(caller, options, job.steps_per_pixel, comm, None, &printer)?;
    let records = Records::of(caller, &session, options, &job.work)?;
    caller.watch(&session, options.deadline, started);
    let bar = Rc::new(SeriesBar::new(first && !options.is_quiet() && caller.has_terminal(), pairs.len()));
    let outputs: HashMap<&Path, &Path> = pairs.iter().map(|p| (p.input.as_path(), p.output.as_path())).collect();
    let inputs = pairs.iter().map(|p| p.input.as_path());
    let series = session.series(inputs, |picture| (job.operation)(picture)).recorded_once();
    let name = |path: &Path| outputs.get(path).copied().unwrap_or(path).to_owned();
    let mut end = None;
    let saves = series.open_options(&options.open_options()).save(name, &job.save_options());
    let saves = saves.observe(own_share(&session, Rc::clone(&bar), pairs.len()));
    for item in saves {
        tally.bytes += bytes(&item);
        match item.result {
            Ok(_) => tally.written += 1,
            Err(e @ Error::Cancelled(_)) => end = Some(e),
            Err(e) => {
                tally.failed += 1;
                if first {
                    bar.suspend(|| caller.print_error(failure_message(item.path.as_deref(), &e)));
                }
            }
        }
        bar.update(tally.written + tally.failed, tally.bytes);
    }
    bar.finish();
    tally.time = started.elapsed();
    if first && !options.is_quiet() {
        printer.print(&format!("{}: {tally}", job.name));
    }
    records.write(caller, &session, options, &printer, || Ok(Vec::new()))?;
    printed(&session, &printer)?;
    let left = pairs.len() - tally.written - tally.failed;
    if left > 0 {
        let why = end.map_or_else(|| "the series ended".to_owned(), |e| e.to_string());
        return Ok(RunEnd::Cut(format!("{why}: {} of {} pictures remain; --skip-existing resumes", left, pairs.len())));
    }
    if tally.failed > 0 {
        return Ok(RunEnd::Failed(format!("{} of {} pictures failed", tally.failed, pairs.len())));
    }
    printer.end_process(session, 0);
    Ok(RunEnd::Done)
}

/// Bytes of a decoded picture.
fn bytes(item: &Item<Saved>) -> u64 {
    item.picture.map_or(0, |(shape, dtype)| (shape.len() * dtype.size()) as u64)
}

/// Shows progress of a series distributed over ranks, estimated from this rank's share: outcomes of other ranks arrive
/// at the end.
fn own_share(session: &Session, bar: Rc<SeriesBar>, all: usize) -> impl FnMut(&Item<Saved>) + 'static {
    let (ranks, mut done, mut read) = (session.ranks(), 0, 0);
    move |item| {
        done += 1;
        read += bytes(item);
        bar.update((done * ranks).min(all), read * ranks as u64);
    }
}

/// The pairs whose output rank 0 does not find.
fn without_existing_outputs(pairs: Vec<PicturePair>, comm: &dyn Communicator) -> Result<Vec<PicturePair>> {
    let there = on_first(comm, "looking for what is there", || {
        Ok(pairs.iter().map(|p| p.output.is_file()).collect::<Vec<bool>>())
    })?;
    let there = there.map_err(Error::Config)?;
    Ok(pairs.into_iter().zip(there).filter(|(_, there)| !there).map(|(pair, _)| pair).collect())
}

/// The message for a picture that failed.
pub(super) fn failure_message(path: Option<&Path>, e: &Error) -> String {
    let message = one_line(&e.to_string());
    match (path, e) {
        // The error names the file.
        (_, Error::File { .. }) | (None, _) => message,
        (Some(path), _) => format!("{}: {message}", path.display()),
    }
}

impl std::fmt::Display for SeriesTally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        write!(f, "{}, {}", count(self.written, "picture"), count(self.failed, "failure"))?;
        if self.skipped > 0 {
            write!(f, ", {} that already existed", self.skipped)?;
        }
        let seconds = self.time.as_secs_f64();
        let (pictures, megabytes) = (self.written as f64 / seconds, self.bytes as f64 / 1e6 / seconds);
        write!(f, ", in {seconds:.3} s: {pictures:.1} pictures/s, {megabytes:.1} MB/s")
    }
}

/// Checks that the trace and the report overwrite no picture that is read or written.
pub(super) fn check_overwrites(options: &BatchOptions, pairs: &[PicturePair], comm: &dyn Communicator) -> Result<()> {
    for path in [&options.trace, &options.report].into_iter().flatten() {
        let apart = on_first(comm, "comparing the files of a series", || {
            match pairs.iter().find(|p| same_file(path, &p.input) || same_file(path, &p.output)) {
                Some(pair) => Err(format!("it is also a picture of this run ({})", pair.input.display())),
                None => Ok(()),
            }
        })?;
        apart.map_err(|e| Error::write(path, e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_a_line() {
        let time = Duration::from_secs(4);
        let mut tally = SeriesTally { written: 10, failed: 1, skipped: 0, bytes: 20_000_000, time };
        assert_eq!(tally.to_string(), "10 pictures, 1 failure, in 4.000 s: 2.5 pictures/s, 5.0 MB/s");
        tally.skipped = 3;
        assert!(tally.to_string().contains("1 failure, 3 that already existed, in"));
    }
}
