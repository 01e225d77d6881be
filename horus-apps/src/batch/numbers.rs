//! What is told of pictures, and printed: `FILE<TAB>LINE`.

use std::path::PathBuf;
use std::sync::Arc;

use horus::core::comm::Communicator;
use horus::core::io::on_first;
use horus::prelude::*;

use super::series::{pack, unpack};
use super::{End, Job, Pair, STANDARD, one_line, pictures, printed, session};
use crate::report::Printer;

/// Reads all pictures in their order and prints what is told of each.
pub(super) fn run(job: &Job, inputs: &[PathBuf], comm: &Arc<dyn Communicator>) -> Result<End> {
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
    let session = session(options, comm, None, &printer)?;
    let mut failed = false;
    for Pair { input: path, .. } in pictures {
        let told = AnyImage::open_with(&session, &path, &options.open_options()).and_then(|p| (job.numbers)(&p));
        match told {
            Ok(lines) if first => lines.iter().for_each(|line| printer.print(&format!("{}\t{line}", path.display()))),
            Ok(_) => {}
            Err(e) => {
                failed = true;
                if first {
                    eprintln!("error: {}: {}", path.display(), one_line(&e.to_string()));
                }
            }
        }
    }
    printed(&session, &printer)?;
    Ok(if failed { End::Failed } else { End::Done })
}
