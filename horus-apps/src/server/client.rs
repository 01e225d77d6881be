//! `horus --server SOCKET ...`: a command that a server runs.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use horus_core::host::streams::stdout_was_closed;

use super::protocol::{ASK, RequestWords, read_frame, send_input};
use crate::outbox::{END, Stream};

/// Exit status of wrong usage.
const WRONG_USAGE: u8 = 2;

/// Lets the server at `socket` run a command line, and prints its answer. Returns the exit status of the command.
pub(crate) fn send(socket: Option<&Path>, words: &[OsString]) -> u8 {
    let told = |message: fmt::Arguments<'_>, status| {
        horus_core::warning::print(format_args!("error: {message}"));
        status
    };
    let Some(socket) = socket else {
        return told(format_args!("--server requires the SOCKET of a server"), WRONG_USAGE);
    };
    let shown = socket.display();
    let stream = match UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(e) => return told(format_args!("no server at {shown} (`horus serve {shown}` starts one): {e}"), 1),
    };
    match answer(stream, words.get(1..).unwrap_or_default()) {
        Ok(status) => status,
        Err(Failure::Connection(e)) => told(format_args!("the server at {shown} gave no complete answer: {e}"), 1),
        Err(Failure::Output(e)) => told(format_args!("cannot print to stdout: {e}"), 1),
    }
}

enum Failure {
    Connection(io::Error),
    Output(io::Error),
}

fn answer(mut stream: UnixStream, words: &[OsString]) -> Result<u8, Failure> {
    let directory = std::env::current_dir().map_err(Failure::Connection)?;
    // A server that refuses a request does not read it; its answer tells why.
    let sent = RequestWords::write(&directory, words, &mut stream);
    let (mut output, mut failure) = (io::stdout().lock(), None);
    loop {
        let (kind, bytes) =
            read_frame(&mut stream).map_err(|e| Failure::Connection(sent.as_ref().err().map_or(e, copy)))?;
        match kind {
            ASK => {
                let mut to = stream.try_clone().map_err(Failure::Connection)?;
                // The answer may come before all input is read, and the process then ends.
                let send = move || drop(send_input(io::stdin().lock(), &mut to));
                std::thread::Builder::new().spawn(send).map_err(Failure::Connection)?;
            }
            END => {
                let status = bytes.first().copied().unwrap_or(1);
                return failure.filter(|_| status == 0).map_or(Ok(status), |e| Err(Failure::Output(e)));
            }
            kind if kind == Stream::Output as u8 => {
                let open = if stdout_was_closed() { Err(io::Error::other("it is closed")) } else { Ok(()) };
                let printed = open.and_then(|()| output.write_all(&bytes)).and_then(|()| output.flush());
                // A closed pipe means that the reader has read enough.
                failure = failure.or(printed.err().filter(|e| e.kind() != ErrorKind::BrokenPipe));
            }
            // A closed pipe is not an error.
            _ => drop(io::stderr().write_all(&bytes)),
        }
    }
}

fn copy(e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), e.to_string())
}
