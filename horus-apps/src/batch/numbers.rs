//! Numbers of pictures, printed as `FILE<TAB>LINE`, or as JSON.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use horus::prelude::*;
use horus_core::comm::Communicator;
use horus_core::io::on_first;
use serde_json::{Number, Value as Json, json};

use super::series::{check_overwrites, failure_message};
use super::single::read;
use super::{BatchJob, PicturePair, Records, RunEnd, STANDARD, pictures, printed, session, stores};
use crate::caller::Caller;
use crate::progress::SeriesBar;
use crate::report::Printer;

/// The outcome of the pictures so far.
struct NumbersTally<'a> {
    caller: &'a Caller,
    first: bool,
    json: bool,
    printer: &'a Printer,
    bar: SeriesBar,
    printed: usize,
    failed: usize,
    bytes: u64,
}

impl NumbersTally<'_> {
    /// Prints the numbers of a picture, or its error.
    ///
    /// # Errors
    /// An error that ends the run.
    fn add(&mut self, path: Option<&Path>, lines: Result<Vec<String>>) -> Result<()> {
        match lines {
            Ok(lines) => {
                self.printed += 1;
                if self.first {
                    let name = path.map_or_else(String::new, named);
                    let lines = if self.json {
                        vec![object(&name, &lines).to_string()]
                    } else {
                        lines.iter().map(|line| format!("{name}\t{line}")).collect()
                    };
                    self.bar.suspend(|| lines.iter().for_each(|line| self.printer.print(line)));
                }
            }
            Err(e @ Error::Cancelled(_)) => {
                self.bar.finish();
                return Err(e);
            }
            Err(e) => {
                self.failed += 1;
                if self.first {
                    self.bar.suspend(|| self.caller.print_error(failure_message(path, &e)));
                }
            }
        }
        self.bar.update(self.printed + self.failed, self.bytes);
        Ok(())
    }
}

/// Reads all pictures in order and prints the numbers of each.
pub(super) fn run(
    caller: &Arc<Caller>,
    job: &BatchJob,
    inputs: &[PathBuf],
    comm: &Arc<dyn Communicator>,
) -> Result<RunEnd> {
    let started = Instant::now();
    let options = &job.options;
    let first = comm.rank() == 0;
    // A single picture may come from stdin or from a store, and is read on demand; pictures of a series are not.
    let one = inputs.len() == 1 && options.files_from.is_none();
    let is_alone = |path: &Path| path.is_file() || stores::is_store(path) || stores::is_url(path);
    let is_one = || on_first(&**comm, "looking at a picture", || Ok(is_alone(&inputs[0])));
    let alone = one && (inputs[0].as_os_str() == STANDARD || is_one()? == Ok(true));
    let listed = on_first(&**comm, "listing pictures", || {
        let found = if alone { inputs.to_vec() } else { pictures(caller, inputs, options.files_from.as_deref())? };
        Ok(found.into_iter().map(PathBuf::into_os_string).collect::<Vec<OsString>>())
    })?;
    let pair = |input: OsString| PicturePair { input: input.into(), output: PathBuf::new() };
    let pictures: Vec<PicturePair> = match listed {
        Ok(listed) => listed.into_iter().map(pair).collect(),
        Err(message) => return Ok(RunEnd::Usage(message)),
    };
    check_overwrites(options, &pictures, &**comm)?;
    let open = on_first(&**comm, "opening stdout", || caller.stdout_is_open())?;
    open.map_err(Error::Config)?;
    let printer = Arc::new(Printer::of(caller));
    let session = session(caller, options, job.steps_per_pixel, comm, None, &printer)?;
    let records = Records::of(caller, &session, options, &job.work)?;
    let all = pictures.len();
    let bar = SeriesBar::new(first && !options.is_quiet() && !alone && caller.has_terminal(), all);
    let (json, printer) = (job.json, &*printer);
    let mut tally = NumbersTally { caller, first, json, printer, bar, printed: 0, failed: 0, bytes: 0 };
    if alone {
        // Until the input is read, an interrupt ends the process, because the input may never end.
        let picture = read(caller, &session, &inputs[0], options);
        caller.watch(&session, options.deadline, started);
        let lines = picture.and_then(|picture| session.get_all((job.numbers)(&picture)?));
        tally.add(Some(inputs[0].as_path()), lines)?;
    } else {
        caller.watch(&session, options.deadline, started);
        let paths = pictures.iter().map(|p| p.input.as_path());
        let series = session.series(paths, |picture| (job.numbers)(picture)).recorded_once();
        let series = series.open_options(&options.open_options());
        for item in series.values() {
            tally.bytes += item.picture.map_or(0, |(shape, dtype)| (shape.len() * dtype.size()) as u64);
            tally.add(item.path.as_deref(), item.result)?;
            if printer.is_unread() && session.ranks() == 1 {
                break; // the reader of the output has closed it
            }
        }
    }
    tally.bar.finish();
    let NumbersTally { failed, .. } = tally;
    records.write(caller, &session, options, printer, || Ok(Vec::new()))?;
    printed(&session, printer)?;
    printer.leave_open(&session);
    Ok(if failed > 0 { RunEnd::Failed(format!("{failed} of {all} pictures failed")) } else { RunEnd::Done })
}

/// A name in a line: characters that would end the line or a column are escaped as in Rust (`\n`, `\t`).
fn named(path: &Path) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    path.to_string_lossy().chars().map(shown).collect()
}

/// A picture and its numbers: one number, a list for one line, or a list of lines. NaN and infinity are null.
fn object(name: &str, lines: &[String]) -> Json {
    let only = |mut all: Vec<Json>| if let [_] = all[..] { all.swap_remove(0) } else { Json::Array(all) };
    let number = |text: &str| text.parse::<Number>().map_or(Json::Null, Json::Number);
    let numbers = only(lines.iter().map(|line| only(line.split('\t').map(number).collect())).collect());
    json!({ "file": name, "numbers": numbers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_json_as_they_are() {
        let told = |lines: &[&str]| {
            object("a b.png", &lines.iter().map(|line| line.to_string()).collect::<Vec<_>>()).to_string()
        };
        let of = |numbers: &str| format!(r#"{{"file":"a b.png","numbers":{numbers}}}"#);
        assert_eq!(told(&["0.1"]), of("0.1"));
        assert_eq!(told(&["-3\t18446744073709551615"]), of("[-3,18446744073709551615]"));
        assert_eq!(told(&["0\t1.5", "1\tNaN"]), of("[[0,1.5],[1,null]]"));
        assert_eq!(told(&["none"]), of("null"));
    }

    #[test]
    fn a_name_takes_one_line_and_one_column() {
        assert_eq!(named(Path::new("a b/ü.png")), "a b/ü.png");
        assert_eq!(named(Path::new("new\nline\t.png")), "new\\nline\\t.png");
    }
}
