//! The caller of a program: this process, or a client of a server (`crate::server`).
//!
//! A program prints, reads its standard input and opens its session through its caller only, so that a server runs it
//! for a client in the same way.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use horus::prelude::*;
use horus::{Builder, comm::SingleRankComm};
use horus_core::comm::Communicator;
use horus_core::host::streams::stdout_was_closed;
use horus_core::io::FileTarget;
use horus_core::warning::plain;
use tempfile::SpooledTempFile;

use crate::execution::{Execution, SessionOptions};
use crate::interrupts::Interruption;
use crate::outbox::{Outbox, Stream};

/// The word for stdin and stdout.
pub const STANDARD: &str = "-";

/// The words of a command line, the standard streams, and the session of who runs a program.
pub struct Caller {
    /// The program and its words.
    words: Vec<OsString>,
    pub(crate) interruption: Arc<Interruption>,
    client: Option<ClientCaller>,
}

/// A client of a server.
pub(crate) struct ClientCaller {
    /// Its standard output and error.
    pub(crate) outbox: Arc<Outbox>,
    /// Its standard input, if the words ask for it.
    pub(crate) input: Mutex<Option<SpooledTempFile>>,
    /// The session of the server, and the options that it was opened with.
    pub(crate) session: Session,
    pub(crate) options: SessionOptions,
}

impl Caller {
    /// This process.
    pub fn process() -> Arc<Caller> {
        let words = std::env::args_os().collect();
        Arc::new(Caller { words, interruption: Interruption::of_process(), client: None })
    }

    /// A client whose request has these words.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no servers"))]
    pub(crate) fn client(words: Vec<OsString>, interruption: Arc<Interruption>, client: ClientCaller) -> Arc<Caller> {
        Arc::new(Caller { words, interruption, client: Some(client) })
    }

    /// Returns `true` if the caller is a client of a server, whose process and session remain.
    pub(crate) fn is_client(&self) -> bool {
        self.client.is_some()
    }

    /// The program and its words.
    pub(crate) fn command_line(&self) -> &[OsString] {
        &self.words
    }

    /// The words after the program.
    pub(crate) fn words(&self) -> &[OsString] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Writes to a standard stream.
    ///
    /// # Errors
    /// Of the stream; a closed pipe if the client is gone.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        match (&self.client, stream) {
            (Some(client), stream) => client.outbox.push(stream, bytes),
            (None, Stream::Output) => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            (None, Stream::Error) => io::stderr().write_all(bytes),
        }
    }

    /// Prints `error: MESSAGE`, in one write and without control characters.
    pub(crate) fn print_error(&self, message: impl fmt::Display) {
        // A closed pipe is not an error.
        drop(self.write(Stream::Error, plain(&format!("error: {message}\n")).as_bytes()));
    }

    /// Prints the help or the error of a command line, and returns its exit status.
    pub(crate) fn print_usage(&self, usage: &clap::Error) -> u8 {
        let stream = if usage.use_stderr() { Stream::Error } else { Stream::Output };
        // As clap does, failures to print are ignored.
        drop(match &self.client {
            Some(_) => self.write(stream, usage.render().to_string().as_bytes()),
            None => usage.print(),
        });
        u8::try_from(usage.exit_code()).unwrap_or(2)
    }

    /// Fails if printed results would be lost.
    pub(crate) fn stdout_is_open(&self) -> Result<(), String> {
        match self.client.is_none() && stdout_was_closed() {
            true => Err("cannot print to stdout: it is closed".into()),
            false => Ok(()),
        }
    }

    /// Standard input.
    pub(crate) fn input(&self) -> Box<dyn Read> {
        match &self.client {
            Some(client) => match client.input.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(input) => Box::new(input),
                None => Box::new(io::empty()),
            },
            None => Box::new(io::stdin().lock()),
        }
    }

    /// Returns `true` if progress can be shown.
    pub(crate) fn has_terminal(&self) -> bool {
        self.client.is_none() && io::stderr().is_terminal()
    }

    /// A file to write; `-` is standard output.
    ///
    /// # Errors
    /// A message, if the file cannot be written.
    pub(crate) fn file(&self, path: &Path) -> Result<OutputFile, String> {
        let standard = path.as_os_str() == STANDARD;
        match &self.client {
            Some(client) if standard => Ok(OutputFile::OfClient(Arc::clone(&client.outbox))),
            Some(client) => Ok(match FileTarget::new(path)? {
                target if target.is_stdout() => OutputFile::OfClient(Arc::clone(&client.outbox)),
                target => OutputFile::Here(target),
            }),
            None => FileTarget::new(if standard { Path::new("/dev/stdout") } else { path }).map(OutputFile::Here),
        }
    }

    /// The ranks that a run on this device joins.
    ///
    /// # Errors
    /// If the ranks cannot be joined.
    pub(crate) fn ranks(&self, device: Option<&str>) -> Result<Arc<dyn Communicator>> {
        if self.is_client() { Ok(Arc::new(SingleRankComm)) } else { horus::ranks_beside(device) }
    }

    /// The session of a run with these options and `settings`: of a client the server's, or one on the same devices if
    /// the run is `observed`, because settings report what it does.
    ///
    /// # Errors
    /// If the session cannot be opened, or the server's session was opened with other options.
    pub(crate) fn session(
        &self,
        options: &SessionOptions,
        observed: bool,
        settings: impl FnOnce(Builder) -> Builder,
    ) -> Result<Session> {
        let Some(client) = &self.client else { return settings(options.apply(Session::builder())).build() };
        client.options.allow(options).map_err(Error::Config)?;
        let session = match observed {
            false => client.session.clone(),
            true => settings(client.options.apply(Session::builder().beside(&client.session))).build()?,
        };
        // A client that is gone ends every evaluation.
        self.interruption.watch(&session);
        Ok(session)
    }

    /// The session of a run of one process that passes requested plans to `print`.
    ///
    /// # Errors
    /// As [`Caller::session`].
    pub(crate) fn session_of(
        &self,
        execution: &Execution,
        print: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Session> {
        let explained = |builder: Builder| execution.explained(builder, print);
        self.session(&execution.session, execution.explain.is_some(), explained)
    }

    /// Makes an interrupt, or a deadline counted from `started`, cancel the session's evaluations between two steps.
    pub(crate) fn watch(&self, session: &Session, deadline: Option<Duration>, started: Instant) {
        if let Some(limit) = deadline {
            // A deadline too far away to be represented is ignored.
            session.set_deadline(started.checked_add(limit));
        }
        self.interruption.watch(session);
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caller of {:?}", self.words)
    }
}

/// A file to write: one of this system, or the standard output of a client.
pub(crate) enum OutputFile {
    Here(FileTarget),
    OfClient(Arc<Outbox>),
}

impl OutputFile {
    /// Returns `true` for standard output, by any name.
    pub(crate) fn is_stdout(&self) -> bool {
        match self {
            OutputFile::Here(target) => target.is_stdout(),
            OutputFile::OfClient(_) => true,
        }
    }

    /// Writes the complete file.
    ///
    /// # Errors
    /// A message, if the file could not be written.
    pub(crate) fn fill(self, bytes: &[u8]) -> Result<(), String> {
        match self {
            OutputFile::Here(target) => target.fill(|to| to.write_all(bytes).map_err(|e| e.to_string())),
            OutputFile::OfClient(outbox) => outbox.push(Stream::Output, bytes).map_err(|e| e.to_string()),
        }
    }
}
