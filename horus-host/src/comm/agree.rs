//! Agreement: before ranks communicate, they check that they make the same call.
//!
//! A program that branches on its rank may record different operations on different ranks, which would then wait for
//! messages that are never sent. So every evaluation, every file and the end of the program begin with an exchange of
//! one digest per rank. If the digests differ, all ranks stop, and rank 0 names the first difference.

use std::hash::{Hash, Hasher as _};

use serde::{Deserialize, Serialize};

use crate::comm::{CommError, Communicator, share};
use horus_base::digest::Digest;
use horus_base::error::Result;

/// Maximum number of characters shown of an operation.
const LONGEST: usize = 400;

/// Part of the call that a rank is about to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Digest of the call and its arguments.
    pub digest: u64,
    /// The call in words.
    pub text: String,
}

/// Checks that `what` is the same on every rank.
///
/// # Errors
/// [`Error::Communication`](horus_base::error::Error::Communication) on every rank if it differs,
/// naming the calls of two ranks (the communicator may end ranks other than 0 instead).
pub fn agree_on(comm: &dyn Communicator, what: &str) -> Result<()> {
    agree(comm, claim(what, &()).digest, || vec![claim(what, &())])
}

/// A claim whose text does not show its parameters.
pub fn claim(text: &str, parameters: &impl Hash) -> Claim {
    let mut d = Digest::default();
    text.hash(&mut d);
    parameters.hash(&mut d);
    Claim { digest: d.finish(), text: text.to_owned() }
}

/// Checks that the digests of all ranks are equal; otherwise rank 0 compares `claims`, the content of `digest`.
pub fn agree(comm: &dyn Communicator, digest: u64, claims: impl FnOnce() -> Vec<Claim>) -> Result<()> {
    let met = || -> Result<(), CommError> {
        let digests = comm.gather(digest)?;
        match digests.iter().position(|d| *d != digests[0]) {
            None => Ok(()),
            Some(other) => Err(report_difference(comm, other, &claims())),
        }
    };
    met().map_err(|e| e.during(comm.rank(), "synchronizing with the other ranks"))
}

/// Rank 0 compares its claims with the claims of the first rank that differs from it, and stops all ranks.
fn report_difference(comm: &dyn Communicator, other: usize, claims: &[Claim]) -> CommError {
    let short = |claim: &Claim| Claim { text: claim.text.chars().take(LONGEST).collect(), digest: claim.digest };
    match share(comm, other, || claims.iter().map(short).collect::<Vec<Claim>>()) {
        Ok(theirs) if comm.rank() == 0 => {
            let difference = difference(claims, other, &theirs);
            comm.abort(&difference);
            CommError(difference)
        }
        // Rank 0 reports the difference and stops all ranks; this rank waits for that.
        Ok(_) => match comm.broadcast(0, &mut Vec::new()) {
            Ok(()) => CommError("the ranks run different programs".into()),
            Err(e) => e,
        },
        Err(e) => e,
    }
}

fn difference(ours: &[Claim], other: usize, theirs: &[Claim]) -> String {
    let same = ours.iter().zip(theirs).take_while(|(a, b)| a.digest == b.digest).count();
    let text = |claims: &[Claim]| claims.get(same).map_or("nothing more".to_owned(), |i| format!("`{}`", i.text));
    let (a, b) = (text(ours), text(theirs));
    let hint = if a == b { ", which differ in their parameters" } else { "" };
    format!("the ranks run different programs: rank 0 reached {a}, rank {other} reached {b}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::threads::ThreadComm;

    #[test]
    fn ranks_that_agree_go_on_and_ranks_that_do_not_are_told_why() {
        let alike = ThreadComm::run(3, |c| agree_on(&c, "the end"));
        assert!(alike.iter().all(Result::is_ok));
        let unlike = ThreadComm::run(4, |c| agree_on(&c, if c.rank() == 2 { "a file" } else { "the end" }));
        for (rank, result) in unlike.into_iter().enumerate() {
            let message = result.unwrap_err().to_string();
            assert!(message.contains("rank 0 reached `the end`, rank 2 reached `a file`"), "rank {rank}: {message}");
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let ours = [claim("x", &0), claim("y", &0)];
        assert!(difference(&ours, 1, &[claim("x", &0)]).contains("`y`, rank 1 reached nothing more"));
        assert!(difference(&ours, 1, &[claim("x", &1)]).contains("differ in their parameters"));
    }
}
