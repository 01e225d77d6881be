//! The state of a session behind its lock: the program, the images, and the outcomes of
//! evaluations.

pub(crate) mod failure;
pub(crate) mod handle;
pub(crate) mod lock;
pub(crate) mod record;
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

/// The state of a session, behind its lock.
pub(crate) struct SessionState {
    pub(crate) program: RecordedProgram,
    /// Numbers values: behind the lock, so that all ranks name them alike.
    pub(crate) names: Numbering,
    pub(crate) images: SessionImages,
    /// The target of the current read, if the device can write to that memory.
    pub(crate) room: Option<HostBuffer>,
    /// Plans of programs that may run again.
    pub(crate) plans: PlanCache,
    pub(crate) stats: Stats,
    pub(crate) trace: Trace,
    /// Traces of the lanes after the first.
    pub(crate) lane_traces: Vec<Trace>,
    /// The blocks in which loops are computed, and a session of this rank only, which keeps their
    /// plans; none before the first loop.
    pub(crate) blocks: Option<(Arc<BlockMap>, Option<Session>)>,
    /// Words of plans that have been explained.
    pub(crate) explained: HashSet<&'static str>,
    /// An error that has not been reported yet.
    pub(crate) error: Option<Error>,
    /// Operations and pinned bytes below which the program is not evaluated automatically, after a
    /// failure.
    pub(crate) patience: (usize, usize),
    /// The reason why the session is unusable.
    pub(crate) lost: Option<String>,
}

impl SessionState {
    /// Returns `true` if more operations are pending, or more bytes pinned, than these limits, and than the last
    /// failure allows.
    pub(crate) fn is_full(&self, (pending, pinned): (usize, usize)) -> bool {
        self.program.pending() > pending.max(self.patience.0)
            || self.program.pinned_bytes() > pinned.max(self.patience.1)
    }
}
