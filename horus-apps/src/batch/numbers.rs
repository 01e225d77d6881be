//! What is told of pictures, and printed: `FILE<TAB>LINE`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use horus::core::comm::Communicator;
use horus::core::io::on_first;
use horus::prelude::*;

use super::series::{pack, told, unpack};
use super::single::read;
use super::{End, Job, Pair, STANDARD, ends, pictures, printed, session};
use crate::report::Printer;

/// Reads all pictures in their order and prints what is told of each.
pub(super) fn run(job: &Job, inputs: &[PathBuf], comm: &Arc<dyn Communicator>) -> Result<End> {
    let started = Instant::now();
    let options = &job.options;
    let first = comm.rank() == 0;
    let listed = on_first(&**comm, "listing pictures", || {
        // One picture may come from stdin; a series of them cannot.
        let alone = inputs.len() == 1 && options.files_from.is_none() && inputs[0].as_os_str() == STANDARD;
        let found = if alone { inputs.to_vec() } else { pictures(inputs, options.files_from.as_deref())? };
        let pairs = found.into_iter().map(|input| Pair { input, output: PathBuf::new() });
        Ok(pack(&pairs.collect::<Vec<_>>()))
    })?;
    let pictures = match listed {
        Ok(listed) => unpack(&listed),
        Err(message) => return Ok(End::Usage(message)),
    };
    let printer = Arc::new(Printer::default());
    let session = session(options, job.steps_per_pixel, comm, None, &printer)?;
    ends::watch(&session, options, started)?;
    let (mut failed, all) = (0, pictures.len());
    for Pair { input: path, .. } in pictures {
        match read(&session, &path, options).and_then(|picture| (job.numbers)(&picture)) {
            Ok(lines) if first => lines.iter().for_each(|line| printer.print(&format!("{}\t{line}", path.display()))),
            Ok(_) => {}
            Err(e @ Error::Cancelled(_)) => return Err(e),
            Err(e) => {
                failed += 1;
                if first {
                    eprintln!("error: {}", told(Some(&path), &e));
                }
            }
        }
    }
    printed(&session, &printer)?;
    // The system takes all back at once; MPI is left when the process exits.
    std::mem::forget(session.clone());
    Ok(if failed > 0 { End::Failed(format!("{failed} of {all} pictures failed")) } else { End::Done })
}
