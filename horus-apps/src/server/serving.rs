//! The server: requests of all clients, one after the other.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use horus::prelude::*;
use horus_core::warning;
use tempfile::SpooledTempFile;

use super::protocol::{ASK, RequestWords, read_input};
use super::socket::SocketFile;
use super::{Commands, ServeArgs};
use crate::batch;
use crate::caller::{Caller, ClientCaller};
use crate::execution::SessionOptions;
use crate::interrupts::{Interruption, leave, on_signals};
use crate::outbox::{Outbox, Stream, header};
use crate::report::count;

/// Time that a client has to send its request, or to receive what is left in the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that are connected at the same time at most.
const MOST_CLIENTS: usize = 256;
/// Exit status of a request that panicked, as of a process.
const PANICKED: u8 = 101;

/// A request that waits for its turn.
struct Request {
    directory: PathBuf,
    words: Vec<OsString>,
    input: Option<SpooledTempFile>,
    outbox: Arc<Outbox>,
    interruption: Arc<Interruption>,
}

/// What the thread of the session waits for.
enum Event {
    Request(Request),
    /// The server ends.
    End,
}

/// What the signal handler shares with the thread of the session.
#[derive(Default)]
struct Turn {
    ends: AtomicBool,
    /// Of the request that runs.
    running: Mutex<Option<Arc<Interruption>>>,
}

impl Turn {
    /// Makes this the request that runs; `false` if the server ends.
    fn begin(&self, interruption: Option<&Arc<Interruption>>) -> bool {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = interruption.cloned();
        !self.ends.load(Ordering::SeqCst)
    }

    /// Cancels the request that runs, and those that follow. Returns `false` the second time.
    fn end(&self) -> bool {
        let first = !self.ends.swap(true, Ordering::SeqCst);
        if let Some(running) = &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            running.ask(|_| ());
        }
        first
    }
}

/// Serves clients until a signal ends the server, and the process with status 0.
///
/// # Errors
/// A message: the server cannot start.
pub(crate) fn run(caller: &Arc<Caller>, args: &ServeArgs, commands: Commands) -> std::result::Result<(), String> {
    serve(caller, args, commands)?.leave(0)
}

/// Serves clients; returns the session in the end.
fn serve(caller: &Arc<Caller>, args: &ServeArgs, commands: Commands) -> std::result::Result<Session, String> {
    let text = |e: Error| e.to_string();
    let comm = caller.ranks(args.session.device.as_deref()).map_err(text)?;
    if comm.size() > 1 {
        return Err(format!("a server has one rank, and there are {}: start it without mpirun", comm.size()));
    }
    let (file, listener) = SocketFile::listen(&args.socket)?;
    let (turn, (events, waiting)) = (Arc::new(Turn::default()), channel());
    let (of_signals, end) = (Arc::clone(&turn), events.clone());
    on_signals(move |_| match of_signals.end() {
        // The thread of the session may have ended.
        true => drop(end.send(Event::End)),
        false => leave(),
    })
    .map_err(text)?;
    let session =
        caller.session(&args.session, false, |builder| builder.communicator(comm).eager(true)).map_err(text)?;
    let home = std::env::current_dir().map_err(|e| format!("cannot find the current directory: {e}"))?;
    let accepting = move || accept(&listener, &events, commands.reads_input);
    std::thread::Builder::new().name("horus-accept".into()).spawn(accepting).map_err(|e| e.to_string())?;
    if !args.quiet {
        let line = format!("serving at {} on {}\n", args.socket.display(), session.device_name());
        // Nobody needs to read it.
        drop(caller.write(Stream::Output, line.as_bytes()));
    }
    let mut server = Server { caller: Arc::clone(caller), session, options: args.session.clone(), home, served: 0 };
    let level = batch::level(args.quiet, args.verbose);
    let mut last = VecDeque::new();
    while let Ok(Event::Request(request)) = waiting.recv() {
        let outbox = Arc::clone(&request.outbox);
        if turn.begin(Some(&request.interruption)) {
            server.answer(request, commands.execute, level);
        } else {
            refuse(&outbox, "the server ends");
        }
        turn.begin(None);
        last.push_back(outbox);
        last.retain(|outbox: &Arc<Outbox>| !outbox.is_closed());
    }
    drop(file); // no more clients
    let Server { session, .. } = server;
    while let Ok(Event::Request(request)) = waiting.try_recv() {
        refuse(&request.outbox, "the server ends");
        last.push_back(request.outbox);
    }
    let until = Instant::now() + PATIENCE;
    last.iter().for_each(|outbox| outbox.wait_until_closed(until.saturating_duration_since(Instant::now())));
    Ok(session)
}

/// The session of the server, on its thread.
struct Server {
    caller: Arc<Caller>,
    session: Session,
    options: SessionOptions,
    /// The directory of the server, apart from requests.
    home: PathBuf,
    served: usize,
}

impl Server {
    /// Runs a request, unless its client is gone.
    fn answer(&mut self, request: Request, execute: fn(&Arc<Caller>) -> u8, level: log::LevelFilter) {
        let Request { directory, words, input, outbox, interruption } = request;
        if outbox.is_closed() {
            return;
        }
        let started = Instant::now();
        let client = ClientCaller {
            outbox: Arc::clone(&outbox),
            input: Mutex::new(input),
            session: self.session.clone(),
            options: self.options.clone(),
        };
        let caller = Caller::client(words, Arc::clone(&interruption), client);
        let status = self.run(&caller, &directory, execute);
        interruption.close();
        self.session.canceller().clear();
        self.session.set_deadline(None);
        batch::log_for(&self.caller, level);
        outbox.end(status);
        self.served += 1;
        let stats = self.session.stats();
        log::info!(
            "request {}: status {status} after {:.1} ms; {} so far, {} planned",
            self.served,
            started.elapsed().as_secs_f64() * 1e3,
            count(stats.evaluations, "evaluation"),
            stats.planned
        );
    }

    /// Runs a command in its directory. A panic does not end the server.
    fn run(&mut self, caller: &Arc<Caller>, directory: &Path, command: impl FnOnce(&Arc<Caller>) -> u8) -> u8 {
        if let Err(e) = std::env::set_current_dir(directory) {
            caller.print_error(format_args!("cannot enter {}: {e}", directory.display()));
            return 1;
        }
        let ran = catch_unwind(AssertUnwindSafe(|| command(caller)));
        if let Err(e) = std::env::set_current_dir(&self.home) {
            log::debug!("cannot return to {}: {e}", self.home.display());
        }
        ran.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            caller.print_error(format_args!("the request panicked: {text}; please report this"));
            // The state of the session is unknown.
            match self.options.apply(Session::builder().beside(&self.session)).build() {
                Ok(session) => self.session = session,
                Err(e) => self.caller.print_error(format_args!("serve: the session cannot be opened again: {e}")),
            }
            PANICKED
        })
    }
}

/// Answers with an error.
fn refuse(outbox: &Outbox, message: &str) {
    // A client that is gone needs no answer.
    drop(outbox.push(Stream::Error, format!("error: serve: {message}\n").as_bytes()));
    outbox.end(1);
}

/// Starts a thread for each client. Messages do not go to the logger, which belongs to the request that runs.
fn accept(listener: &UnixListener, events: &Sender<Event>, reads_input: fn(&[OsString]) -> bool) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) => {
                // Too many open files, for example.
                warning::print(format_args!("warning: serve: cannot accept a client: {e}"));
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let (events, clients) = (events.clone(), Arc::clone(&clients));
        let serve = move || {
            let others = clients.fetch_add(1, Ordering::Relaxed);
            let admitted = others < MOST_CLIENTS;
            converse(stream, &events, admitted.then_some(reads_input));
            clients.fetch_sub(1, Ordering::Relaxed);
        };
        if let Err(e) = std::thread::Builder::new().name("horus-client".into()).spawn(serve) {
            warning::print(format_args!("warning: serve: a client is turned away: {e}"));
        }
    }
}

/// Reads the request of a client, unless there are too many, and writes its answer.
fn converse(mut stream: UnixStream, events: &Sender<Event>, reads_input: Option<fn(&[OsString]) -> bool>) {
    let (outbox, interruption) = (Arc::new(Outbox::default()), Arc::<Interruption>::default());
    // The write ends from time to time, to see whether the client is still wanted.
    let patient = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE / 10)));
    let request = match (reads_input, patient) {
        (_, Err(e)) => Err(e.to_string()),
        (None, _) => Err(format!("{MOST_CLIENTS} clients are connected already")),
        (Some(reads_input), Ok(())) => received(&mut stream, reads_input),
    };
    match request {
        Ok(None) => return,
        Ok(Some((RequestWords { directory, words }, input))) => {
            watch(&stream, &outbox, &interruption);
            let words = std::iter::once("horus".into()).chain(words).collect();
            let (outbox, interruption) = (Arc::clone(&outbox), Arc::clone(&interruption));
            let request = Request { directory, words, input, outbox, interruption };
            if events.send(Event::Request(request)).is_err() {
                return; // the process ends
            }
        }
        Err(message) => refuse(&outbox, &message),
    }
    while let Some(frames) = outbox.take() {
        if write(&mut stream, &frames, &outbox).is_err() {
            interruption.ask(|_| ());
            break;
        }
    }
    outbox.close();
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// The request of a client, with its standard input if the words ask for it. There is no hurry for input: nothing waits
/// for it.
fn received(
    stream: &mut UnixStream,
    reads_input: fn(&[OsString]) -> bool,
) -> std::result::Result<Option<(RequestWords, Option<SpooledTempFile>)>, String> {
    let Some(request) = RequestWords::read(stream)? else { return Ok(None) };
    stream.set_read_timeout(None).map_err(|e| e.to_string())?;
    let words: Vec<OsString> = std::iter::once("horus".into()).chain(request.words.iter().cloned()).collect();
    if !reads_input(&words) {
        return Ok(Some((request, None)));
    }
    stream.write_all(&header(ASK, 0)).map_err(|e| format!("cannot ask for stdin: {e}"))?;
    let input = read_input(stream)?;
    Ok(Some((request, Some(input))))
}

/// Cancels the request once the client has closed its end.
fn watch(stream: &UnixStream, outbox: &Arc<Outbox>, interruption: &Arc<Interruption>) {
    let Ok(mut stream) = stream.try_clone() else { return };
    let (outbox, interruption) = (Arc::clone(outbox), Arc::clone(interruption));
    let wait = move || {
        let mut ignored = [0; 64];
        loop {
            match stream.read(&mut ignored) {
                Ok(1..) => {} // nothing is expected
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        outbox.close();
        interruption.ask(|_| ());
    };
    // Without a thread, a client that is gone is noticed when its answer is written.
    drop(std::thread::Builder::new().name("horus-watch".into()).spawn(wait));
}

/// Writes frames, unless the client is taken as gone meanwhile.
fn write(stream: &mut UnixStream, mut frames: &[u8], outbox: &Outbox) -> std::io::Result<()> {
    while !frames.is_empty() {
        match stream.write(frames) {
            Ok(written) => frames = &frames[written..],
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) && !outbox.is_closed() => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_its_request_only() {
        let session = || Session::builder().device("cpu").threads(1).eager(true).build().unwrap();
        let home = std::env::current_dir().unwrap();
        let options = SessionOptions::default();
        let mut server =
            Server { caller: Caller::process(), session: session(), options, home: home.clone(), served: 0 };
        let outbox = Arc::new(Outbox::default());
        let client = || ClientCaller {
            outbox: Arc::clone(&outbox),
            input: Mutex::default(),
            session: session(),
            options: SessionOptions::default(),
        };
        let caller = Caller::client(Vec::new(), Arc::default(), client());
        let panicked = server.session.clone();
        assert_eq!(server.run(&caller, &home, |_| panic!("as {}", "planned")), PANICKED);
        let told = outbox.take().unwrap();
        assert!(told.ends_with(b"error: the request panicked: as planned; please report this\n"));
        assert!(!server.session.same(&panicked));
        let sum = |server: &Server| Image::from_slice(&server.session, (1, 2), &[1.0f32, 2.0]).sum().get().unwrap();
        assert_eq!((server.run(&caller, &home, |_| 7), sum(&server)), (7, 3.0));
    }
}
