//! A process that stays and runs `horus` for clients: `horus serve SOCKET`, and `horus --server SOCKET ...`.
//!
//! A server has one open session and runs one request at a time, on the thread that started it (`serving`). A thread
//! for each client reads its request and writes what the request prints (`protocol`, [`crate::outbox`]), so that no client can
//! block the server. The file permissions of the socket (`socket`) decide who may connect. `docs/command.md` describes
//! the protocol.

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod protocol;
#[cfg(unix)]
mod serving;
#[cfg(unix)]
mod socket;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgAction, Parser};

use crate::caller::Caller;
use crate::execution::SessionOptions;

#[cfg(unix)]
pub(crate) use self::{client::send, serving::run};

/// Stays, and runs commands for clients, one after the other, in one open session: devices, kernels and plans are ready from the
/// second picture of a kind on. `horus --server SOCKET ...` sends a command. Only the user of the server may connect. SIGINT and
/// SIGTERM end it
#[derive(Parser, Debug)]
#[command(name = "horus serve", bin_name = "horus serve", version)]
pub(crate) struct ServeArgs {
    /// The socket to create; it is removed in the end
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,

    /// Options of the session, for all requests.
    #[command(flatten)]
    pub(crate) session: SessionOptions,

    /// Print nothing but errors
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print a line about each request; twice for debugging
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The commands that a server runs.
#[derive(Clone, Copy)]
#[cfg_attr(not(unix), expect(dead_code, reason = "there are no servers"))]
pub(crate) struct Commands {
    /// Runs the command of a caller, and returns its exit status.
    pub(crate) execute: fn(&Arc<Caller>) -> u8,
    /// Returns `true` if a command of these words reads standard input.
    pub(crate) reads_input: fn(&[OsString]) -> bool,
}

/// The socket of `--server SOCKET` anywhere in a command line (`None` if it is missing), and the other words; `None`
/// without this option.
pub(crate) fn addressed(words: &[OsString]) -> Option<(Option<PathBuf>, Vec<OsString>)> {
    const FLAG: &str = "--server";
    let joined = |word: &OsString| word.to_str()?.strip_prefix(FLAG)?.strip_prefix('=').map(PathBuf::from);
    let at = words.iter().position(|word| word == FLAG || joined(word).is_some())?;
    let (socket, taken) = match joined(&words[at]) {
        Some(socket) => (Some(socket), 1),
        None => (words.get(at + 1).map(PathBuf::from), 2),
    };
    let rest = words.iter().take(at).chain(words.iter().skip(at + taken));
    Some((socket, rest.cloned().collect()))
}

#[cfg(not(unix))]
const WITHOUT: &str = "servers need Unix sockets, which this system does not have";

#[cfg(not(unix))]
pub(crate) fn send(_: Option<&std::path::Path>, _: &[OsString]) -> u8 {
    horus_core::warning::print(format_args!("error: {WITHOUT}"));
    1
}

#[cfg(not(unix))]
pub(crate) fn run(_: &Arc<Caller>, _: &ServeArgs, _: Commands) -> Result<(), String> {
    Err(WITHOUT.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_named_anywhere() {
        let found = |words: &[&str]| addressed(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let rest = || ["horus", "a.png", "mean"].map(OsString::from).to_vec();
        assert_eq!(found(&["horus", "--server", "s", "a.png", "mean"]), Some((Some("s".into()), rest())));
        assert_eq!(found(&["horus", "a.png", "mean", "--server=s"]), Some((Some("s".into()), rest())));
        assert_eq!(found(&["horus", "a.png", "mean", "--server"]), Some((None, rest())));
        assert_eq!(found(&["horus", "a.png", "mean"]), None);
    }
}
