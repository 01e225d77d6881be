//! The state of a session behind its lock: the program, the images, and the outcomes of
//! evaluations.

use std::collections::HashSet;
use std::sync::Arc;

use super::Session;
use super::blocks::BlockMap;
use super::images::Images;
use super::plans::Plans;
use super::progress::Stats;
use crate::error::Error;
use crate::execute::trace::Trace;
use crate::host::buffer::HostBuffer;
use crate::record::{Numbering, Recording};

/// The state of a session, behind its lock.
pub(super) struct Mutable {
    pub(super) program: Recording,
    /// Numbers values: behind the lock, so that all ranks name them alike.
    pub(super) names: Numbering,
    pub(super) images: Images,
    /// The target of the current read, if the device can write to that memory.
    pub(super) room: Option<HostBuffer>,
    /// Plans of programs that may run again.
    pub(super) plans: Plans,
    pub(super) stats: Stats,
    pub(super) trace: Trace,
    /// Traces of the lanes after the first.
    pub(super) lane_traces: Vec<Trace>,
    /// The blocks in which loops are computed, and a session of this rank only, which keeps their
    /// plans; none before the first loop.
    pub(super) blocks: Option<(Arc<BlockMap>, Option<Session>)>,
    /// Words of plans that have been explained.
    pub(super) explained: HashSet<&'static str>,
    /// An error that has not been reported yet.
    pub(super) error: Option<Error>,
    /// Operations and pinned bytes below which the program is not evaluated automatically, after a
    /// failure.
    pub(super) patience: (usize, usize),
    /// The reason why the session is unusable.
    pub(super) lost: Option<String>,
}

impl Mutable {
    /// Returns `true` if more operations are pending, or more bytes pinned, than these limits, and than the last
    /// failure allows.
    pub(super) fn is_full(&self, (pending, pinned): (usize, usize)) -> bool {
        self.program.pending() > pending.max(self.patience.0)
            || self.program.pinned_bytes() > pinned.max(self.patience.1)
    }
}
