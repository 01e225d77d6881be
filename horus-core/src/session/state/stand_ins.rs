//! Stand-ins for images: a program that will run on other images is recorded on them.
//!
//! A step of a loop, or a program to be replayed, is recorded like any other and runs later. Evaluations may come in
//! between, because of many operations, `start`, or another thread. They exclude values computed from stand-ins, unless
//! such a value is observed. An observation replaces operations by values, and is noted under the session's lock: then
//! there is nothing to replay.

use crate::dtype::Conversion;
use crate::error::Site;
use crate::ir::graph::Op;
use crate::record::RecordId;
use crate::session::{Handle, Session, SessionState};

/// Images that represent others, and the values computed from them: a step. Dropping them ends the step.
#[doc(hidden)]
pub struct StandIns {
    session: Session,
    pub(crate) step: RecordId,
    handles: Vec<Handle>,
    /// [`Session::looks`] at their creation.
    looks: u64,
}

impl StandIns {
    /// Creates stand-ins for these images. They are operations, so that their readers differ from readers of the
    /// images.
    pub fn new(session: &Session, given: &[&Handle], site: Site) -> StandIns {
        let step = session.0.numbers.record();
        let stand_in = |h: &&Handle| {
            let same = Op::Convert(Conversion::Nearest);
            let mut handle = session.append(same, &[h], (h.shape, h.dtype, site), Some(step));
            handle.attributes.clone_from(&h.attributes);
            handle
        };
        let handles = given.iter().map(stand_in).collect();
        StandIns { session: session.clone(), step, handles, looks: Session::looks() }
    }

    /// Stand-ins in the order of the images.
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// Returns `true` if this thread, which made them, has read any value since.
    pub fn looked(&self) -> bool {
        Session::looks() != self.looks
    }

    /// Returns `true` if a stand-in or a value computed from one was observed. Waits for evaluations.
    pub fn looked_into(&self) -> bool {
        self.session.acquire().program.looked_into(self.step)
    }

    /// Makes them aliases of the images that they represent, if those are evaluated.
    pub(crate) fn end(&self, state: &mut SessionState) {
        let ids = self.handles.iter().filter_map(|h| h.record.as_ref().ok());
        ids.for_each(|id| state.program.end_stand_in(*id));
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        self.handles.clear();
        let step = self.step;
        self.session.change(move |state| state.program.end_step(step));
    }
}
