//! State of a session behind its lock: the program, the images, and the outcomes of evaluations.

pub(crate) mod failure;
pub(crate) mod handle;
pub(crate) mod lock;
pub(crate) mod record;
mod stack;
pub(crate) mod stand_ins;
pub(crate) mod start;
pub(crate) mod wait;

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::Error;
use crate::execute::trace::Trace;
use crate::host::buffer::HostBuffer;
use crate::record::{Numbering, RecordedProgram};
use crate::session::Session;
use crate::session::blocks::BlockMap;
use crate::session::cache::PlanCache;
use crate::session::images::SessionImages;
use crate::session::progress::Stats;

/// State of a session.
pub(crate) struct SessionState {
    pub(crate) program: RecordedProgram,
    /// Source of value numbers; behind the lock, so that all ranks name values alike.
    pub(crate) names: Numbering,
    pub(crate) images: SessionImages,
    /// Targets of the current read, if the device can write to their memory.
    pub(crate) rooms: Vec<HostBuffer>,
    /// Plans of programs that may run again.
    pub(crate) plans: PlanCache,
    pub(crate) stats: Stats,
    pub(crate) trace: Trace,
    /// Traces of all devices but the first.
    pub(crate) lane_traces: Vec<Trace>,
    /// Blocks in which loops are computed, and a session of this rank only, which caches their plans; no session before
    /// the first loop.
    pub(crate) blocks: Option<(Arc<BlockMap>, Option<Session>)>,
    /// Words of plans that have been explained already.
    pub(crate) explained: HashSet<&'static str>,
    /// An error that has not been reported yet.
    pub(crate) error: Option<Error>,
    /// After a failure: numbers of operations and pinned bytes below which the program is not evaluated automatically.
    pub(crate) patience: (usize, usize),
    /// Reason why the session is unusable.
    pub(crate) lost: Option<String>,
}

impl SessionState {
    /// Returns `true` if more operations are pending, or more bytes pinned, than these limits and the last failure
    /// allow.
    pub(crate) fn is_full(&self, (pending, pinned): (usize, usize)) -> bool {
        self.program.pending() > pending.max(self.patience.0)
            || self.program.pinned_bytes() > pinned.max(self.patience.1)
    }
}
