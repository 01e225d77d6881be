//! `horus serve SOCKET`: a process that stays, and runs commands for clients in one session.

use std::sync::Arc;

use clap::{CommandFactory, Parser};

use super::CommandError;
use crate::batch;
use crate::caller::Caller;
use crate::server::{self, Commands, ServeArgs};

/// The command, for its help.
pub(super) fn command() -> clap::Command {
    ServeArgs::command()
}

/// Runs `serve SOCKET`, if the words are this command.
pub(super) fn asked(caller: &Arc<Caller>) -> Option<Result<String, CommandError>> {
    (caller.words().first()? == "serve").then(|| {
        if caller.is_client() {
            return Err(CommandError::Message("serve: a server starts no other server".into()));
        }
        let args = ServeArgs::try_parse_from(caller.words())?;
        batch::log_for(caller, batch::level(args.quiet, args.verbose));
        let ended = server::run(caller, &args, Commands { execute: super::execute, reads_input: super::reads_input });
        ended.map(|()| String::new()).map_err(|why| CommandError::Message(format!("serve: {why}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_well_formed() {
        command().debug_assert();
        assert!(ServeArgs::try_parse_from(["serve", "s", "--quiet", "-v"]).is_err());
    }
}
