//! One picture, one file.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use horus::core::comm::Communicator;
use horus::core::device::Device;
use horus::core::io::{Target, on_first, on_root, same_file};
use horus::prelude::*;

use super::{Job, printed, session, write_trace};
use crate::progress::Bar;
use crate::report::{Breakdown, Printer, Summary};

/// Reads `input`, does what is to be done, writes `output`, prints the summary.
pub(super) fn run(job: &Job, input: &Path, output: &Path, comm: &Arc<dyn Communicator>) -> Result<()> {
    let started = Instant::now();
    let options = &job.options;
    let first = comm.rank() == 0;
    if let Some(trace) = &options.trace {
        on_first(&**comm, "comparing the files of a run", || distinct(trace, input, output))?.map_err(Error::Config)?;
    }
    let bar = Arc::new(Bar::new(first && !options.quiet));
    let printer = Arc::new(Printer::default());
    let session = session(options, comm, Some(&bar), &printer)?;
    let start = started.elapsed();
    let mut trace = None;
    if let Some(path) = &options.trace {
        let made = on_root(&session, "making a file for the trace", || {
            trace = Some(Target::new(path)?);
            Ok(Vec::new())
        });
        made?.map_err(|e| Error::write(path, e))?;
    }
    let picture = AnyImage::open_with(&session, input, &options.open_options())?;
    let read = started.elapsed() - start;
    let response = (job.operation)(&picture)?;
    response.check().inspect_err(|_| bar.finish())?;
    if let Some(ranks) = options.dry_run_ranks {
        let forecast = response.forecast(ranks.get(), options.link())?;
        if first {
            printer.print(&forecast);
        }
        return printed(&session, &printer);
    }
    let saved = response.save_with(output, &job.save_options());
    bar.finish();
    let scale = saved?;
    let time = started.elapsed();
    let times = session.times();
    let breakdown = (options.verbose > 0).then(|| Breakdown {
        start,
        read,
        times,
        compilation: session.device().map(Device::compilation).unwrap_or_default(),
        write: time.saturating_sub(start + read + times.total()),
    });
    if let Some(path) = &options.trace {
        write_trace(&session, path, trace)?;
    }
    if !options.quiet && first {
        printer.print(&Summary {
            name: job.name,
            shape: picture.shape(),
            about: &job.about,
            device: session.device_name(),
            ranks: session.ranks(),
            time,
            stats: session.stats(),
            output: output.display().to_string(),
            scale,
            breakdown,
        });
    }
    printed(&session, &printer)
}

/// Checks that what a run writes overwrites neither its input nor its result. That the result may replace the input is
/// because it is written when all is computed.
fn distinct(trace: &Path, input: &Path, output: &Path) -> Result<Vec<u8>, String> {
    for (what, path) in [("result", output), ("input", input)] {
        if same_file(trace, path) {
            return Err(format!("the trace and the {what} cannot be one file ({})", path.display()));
        }
    }
    Ok(Vec::new())
}
