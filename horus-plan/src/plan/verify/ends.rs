//! Conditions at the end of a plan.

use std::collections::HashMap;

use super::{PlanCheck, ValidCopies};
use crate::ir::graph::NodeId;
use crate::plan::setting::ResultDelivery;
use crate::plan::state::{ImageState, Placement};
use crate::plan::step::Band;
use horus_base::shape::Window;

impl PlanCheck<'_> {
    /// Fails if an operation is unfinished, a requested result was not delivered, or an image is
    /// not where the plan says.
    pub(super) fn check_end(&self) -> Result<(), String> {
        self.nothing_is_left()?;
        let (roots, wants) = (&self.plan.graph.roots, &self.plan.wants);
        if roots.len() != wants.len() {
            return Err(format!("{} results and {} wants", roots.len(), wants.len()));
        }
        roots.iter().zip(wants).try_for_each(|(root, want)| self.has_what_is_wanted(*root, *want))?;
        let states = self.plan.states.iter().enumerate();
        states.map(|(i, state)| (NodeId(i), *state)).try_for_each(|(n, state)| self.is_as_told(n, state))
    }

    /// Fails if an exchange or a launch was begun but not finished, or a footprint was never read.
    fn nothing_is_left(&self) -> Result<(), String> {
        let exchange = self.arriving.keys().next().map(|n| (*n, "an unfinished exchange"));
        let launch = self.begun.keys().next().map(|n| (*n, "an unfinished launch"));
        let footprint = self.temps.keys().next().map(|t| (t.consumer, "a footprint for a launch that was over"));
        let in_bands = [&self.uploaded, &self.sent].into_iter().flat_map(HashMap::keys).chain(self.computed.keys());
        let bands = in_bands.copied().next().map(|n| (n, "a part in bands"));
        let bands = bands.or(self.mapped.iter().next().map(|n| (*n, "a use of the host's memory")));
        let met =
            self.gathered_until.iter().find(|(_, met)| **met < Band::PARTS).map(|(n, _)| (*n, "an unfinished gather"));
        let left = met.or(exchange).or(launch).or(footprint).or(bands);
        left.map_or(Ok(()), |(n, what)| Err(format!("{what} of {n}")))
    }

    fn has_what_is_wanted(&self, root: NodeId, want: ResultDelivery) -> Result<(), String> {
        if self.plan.states[root.0].is_none() {
            return Err(format!("{root} is a result, and gone"));
        }
        let here = match want {
            ResultDelivery::Keep => false,
            ResultDelivery::Root => self.rank == 0,
            ResultDelivery::Everyone | ResultDelivery::Requester => true,
            ResultDelivery::Distributed => self.rank == 0 || self.is_in_strips(root),
        };
        let whole = match self.plan.setting.has_shared_host() {
            true => self.plan.hands_over(root, self.rank),
            false if want == ResultDelivery::Distributed && self.is_in_strips(root) => self.strip(self.height(root)),
            false => Window::whole(self.height(root)),
        };
        match self.delivered[root.0] {
            Some(rows) if !here || rows.covers(whole) => Ok(()),
            Some(rows) => Err(format!("rows {rows} of {root} are delivered, wanted are {whole}")),
            None if here => Err(format!("{root} is wanted and not delivered")),
            None => Ok(()),
        }
    }

    /// Returns `true` if the ranks have strips of an image at the end.
    fn is_in_strips(&self, n: NodeId) -> bool {
        self.plan.states[n.0].is_some_and(|state| matches!(state.placement, Placement::Strips(_)))
    }

    /// Fails unless the copies of an image match the final state in the plan.
    fn is_as_told(&self, n: NodeId, state: Option<ImageState>) -> Result<(), String> {
        let ValidCopies { host, device } = self.images[n.0];
        let Some(state) = state else {
            return if host.or(device).is_none() { Ok(()) } else { Err(format!("{n} is told to be gone, and is not")) };
        };
        self.added_up(n)?;
        let told = (state.residency.host(), state.residency.device(), state.placement.owner());
        if (host.is_some(), device.is_some(), self.owner[n.0]) != told {
            return Err(format!("{n} is told to be {state}, and is elsewhere"));
        }
        let need = match state.placement {
            Placement::On(owner) if self.rank != owner => Window::new(0, 0),
            Placement::On(_) | Placement::Replicated => Window::whole(self.height(n)),
            Placement::Strips(halo) => self.grown(self.height(n), halo),
        };
        let mut held = [host, device].into_iter().flatten();
        held.try_for_each(|rows| {
            if rows.covers(need) { Ok(()) } else { Err(format!("{n} holds rows {rows}, told are {need}")) }
        })
    }
}
