//! Stand-ins for images, on which a replayed program is recorded.
//!
//! A step of a loop, and a program that is replayed on other pixels, are recorded like anything
//! else and run later. Evaluations come in between: forced by many operations, started
//! concurrently, requested by another thread. They exclude values computed from stand-ins, unless
//! one is observed; an observation replaces operations by values, and is recorded under the
//! session's lock: then there is nothing to replay.

use crate::dtype::Conversion;
use crate::error::Site;
use crate::ir::graph::Op;
use crate::record::RecordId;
use crate::session::{Handle, Session, SessionState};

/// Images that represent others, and the values computed from them: a step. It ends when they are
/// dropped.
#[doc(hidden)]
pub struct StandIns {
    session: Session,
    pub(crate) step: RecordId,
    handles: Vec<Handle>,
    /// [`Session::looks`] at their creation.
    looks: u64,
}

impl StandIns {
    /// Stand-ins for these images: operations, so that their readers are distinguished from readers
    /// of the images.
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

    /// The stand-ins, in the order of the images.
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// True if this thread, which made them, has read any value since.
    pub fn looked(&self) -> bool {
        Session::looks() != self.looks
    }

    /// True if a stand-in or a value computed from one was observed. Waits for evaluations.
    pub fn looked_into(&self) -> bool {
        self.session.acquire().program.looked_into(self.step)
    }

    /// Makes them aliases of the images that they represent, as far as these are evaluated.
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
