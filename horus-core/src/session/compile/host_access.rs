//! The host memory that launches of a plan may use.

use crate::device::DownloadStart;
use crate::ir::graph::ValueId;
use crate::plan::state::{ImageState, Residency};
use crate::plan::{Mappable, Mode, Transfer};
use crate::session::devices::Engine;
use crate::session::{Session, SessionState};

impl Session {
    /// Returns `true` if launches may use the host's memory at all. Each of several ranks needs a part of an image,
    /// which is copied.
    pub(crate) fn may_map(&self) -> bool {
        self.0.settings.transfer.may_map() && self.ranks() == 1 && self.lanes() == 1 && self.mode() != Mode::Naive
    }

    /// Host memory that the launches of a plan with these sources may use. If predictions decide, they consider only
    /// one plan. There is none from the time that another plan reads an image which was used in host memory: with a
    /// copy on the device it would have crossed the bus only once.
    pub(crate) fn mappable(
        &self,
        engine: &Engine,
        state: &mut SessionState,
        sources: &[(ValueId, Option<ImageState>, bool)],
        sending: DownloadStart,
    ) -> Mappable {
        let none = Mappable { downloads_last: sending == DownloadStart::WithTarget, ..Mappable::default() };
        if engine.unified() || !self.may_map() {
            return none;
        }
        let foreseen = self.0.settings.transfer == Transfer::Auto;
        if foreseen {
            state.images.mapped.retain(|v| state.images.in_memory.contains_key(v));
            state.images.read_again |= sources.iter().any(|(v, ..)| state.images.mapped.contains(v));
            if state.images.read_again {
                return none;
            }
        }
        let staging = engine.device.staging();
        let locked =
            |v: &ValueId| state.images.in_memory.get(v).and_then(|i| i.host.as_ref()).is_some_and(|b| staging.maps(b));
        let on_host = sources.iter().filter(|(_, s, _)| s.is_some_and(|s| s.residency == Residency::Host));
        let results = match state.rooms.as_slice() {
            // A caller that waits now is indifferent to where the result is computed. Pages are locked for it only on
            // request.
            [] => !foreseen && sending == DownloadStart::WithTarget,
            rooms => rooms.iter().all(|room| staging.maps(room)),
        };
        Mappable { sources: on_host.map(|(v, ..)| *v).filter(locked).collect(), results, ..none }
    }
}
