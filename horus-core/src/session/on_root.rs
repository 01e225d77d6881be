//! Work of rank 0, whose result all ranks get, and questions to all ranks.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Session;
use crate::comm::agree::agree_on;
use crate::comm::{Communicator, guarded, share, share_first};
use crate::error::Result;

/// Runs `work` on rank 0 and returns its result or error on every rank. `op` names the call, for
/// messages if ranks make different calls.
///
/// # Errors
/// If another rank failed, ended, or makes a different call.
pub fn on_root<T: Serialize + DeserializeOwned>(
    session: &Session,
    op: &str,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<Result<T, String>> {
    on_first(session.comm(), op, work)
}

/// Returns `true` if this is so on every rank.
pub(crate) fn everywhere(session: &Session, op: &str, is_so: bool) -> Result<bool> {
    let comm = session.comm();
    let all = comm.gather(u64::from(is_so)).map_err(|e| e.during(comm.rank(), op))?;
    Ok(all.iter().all(|is_so| *is_so > 0))
}

/// The value of the first rank that has one, on every rank.
pub(crate) fn first_of_ranks<T: Serialize + DeserializeOwned>(
    session: &Session,
    op: &str,
    mine: Option<T>,
) -> Result<Option<T>> {
    let comm = session.comm();
    share_first(comm, mine).map_err(|e| e.during(comm.rank(), op))
}

/// Like [`on_root`], without a session.
///
/// # Errors
/// As [`on_root`].
pub fn on_first<T: Serialize + DeserializeOwned>(
    comm: &dyn Communicator,
    op: &str,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<Result<T, String>> {
    agree_on(comm, op)?;
    share(comm, 0, || guarded(comm, op, work)).map_err(|e| e.during(comm.rank(), op))
}
