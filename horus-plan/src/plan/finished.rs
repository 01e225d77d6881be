//! A plan that is made.

use std::collections::HashSet;

use super::activity::Parts;
use super::follow::Follower;
use super::launches::PlannedLaunches;
use super::setting::{Mode, Setting, Want};
use super::state::{Placement, State};
use super::step::{Action, Step};
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;
use horus_base::shape::Window;

/// How often each kind of transfer happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Copies from host to device.
    pub uploads: usize,
    /// Copies from device to host.
    pub downloads: usize,
    /// Kernels launched; one that is launched in parts counts once.
    pub launches: usize,
    /// Images scattered from rank 0.
    pub scatters: usize,
    /// Images gathered to rank 0.
    pub gathers: usize,
    /// Border exchanges.
    pub exchanges: usize,
    /// Images given to every rank.
    pub replications: usize,
    /// Footprints fetched.
    pub footprints: usize,
}

impl Counts {
    /// Copies between host and device.
    pub fn copies(&self) -> usize {
        self.uploads + self.downloads
    }

    /// Transfers between ranks.
    pub fn exchanges_between_ranks(&self) -> usize {
        self.scatters + self.gathers + self.exchanges + self.replications + self.footprints
    }

    /// Adds `other` to these counts.
    pub fn add(&mut self, other: &Counts) {
        self.uploads += other.uploads;
        self.downloads += other.downloads;
        self.launches += other.launches;
        self.scatters += other.scatters;
        self.gathers += other.gathers;
        self.exchanges += other.exchanges;
        self.replications += other.replications;
        self.footprints += other.footprints;
    }
}

/// The rows of an image of `height` rows, in this state, that rank `rank` hands over.
pub(super) fn handed_over(setting: &Setting, state: Option<State>, height: usize, rank: usize) -> Window {
    match state.map(|s| s.placement) {
        Some(Placement::Strips(_)) => setting.partition.strip(rank, height),
        _ if rank == 0 => Window::whole(height),
        _ => Window::new(0, 0),
    }
}

/// A plan without joins replaces one that tears them apart if it is predicted to take at most so many times as long: a guess. On an H200,
/// two programs over volumes from arrays to arrays took 1.09 and 1.26 times as long with joins torn apart.
const TORN: f64 = 1.02;

/// What to do, in order. The same on every rank.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kernels.
    pub graph: Graph<Kernel>,
    /// What is wanted of the graph's roots, one for each.
    pub wants: Vec<Want>,
    /// The steps.
    pub steps: Vec<Step>,
    /// What the plan was made for.
    pub setting: Setting,
    /// The states that the plan starts from: of the sources, in graph order.
    pub initial: Vec<Option<State>>,
    /// The states that the plan ends in.
    pub states: Vec<Option<State>>,
    /// Seconds that it is predicted to take.
    pub predicted: f64,
    /// For how long each part of rank 0's machine is predicted to be busy meanwhile.
    pub parts: Parts,
    /// Whether what each launch reads and writes fits in the device's memory, as far as it is estimated.
    pub fits: bool,
    /// The first node that does not fit beyond doubt, and the bytes that it takes at least, with all that it reads.
    pub lacking: Option<(NodeId, usize)>,
}

impl Plan {
    /// The rows of a result that rank `rank` hands over to somebody on the host of all ranks: of one in strips its own, else the
    /// first rank all.
    pub fn hands_over(&self, n: NodeId, rank: usize) -> Window {
        handed_over(&self.setting, self.states[n.0], self.graph.node(n).shape.height, rank)
    }

    /// The plan without one of its steps: what waited for it waits for nothing in its place. Such a plan is for tests, which
    /// show that no step can be left out.
    #[must_use]
    pub fn without(&self, step: usize) -> Plan {
        let mut plan = self.clone();
        plan.steps.remove(step);
        for waits in plan.steps.iter_mut().map(|s| &mut s.waits) {
            waits.retain(|w| *w != step);
            waits.iter_mut().filter(|w| **w > step).for_each(|w| *w -= 1);
        }
        plan
    }

    /// What each step launches.
    pub fn launches(&self) -> PlannedLaunches<'_> {
        PlannedLaunches::of(self)
    }

    /// This plan, or one `without` joined kernels where this computes apart what was joined, because of what is copied in between or of
    /// bands: what they share is computed twice.
    pub fn or_apart<E>(self, without: impl FnOnce() -> Result<Plan, E>) -> Result<Plan, E> {
        let launches = self.launches();
        let together = (0..self.steps.len()).filter_map(|i| launches.at(i)).filter(|l| l.nodes.len() > 1);
        let whole = together.map(|l| l.nodes[0]).collect::<HashSet<NodeId>>().len();
        if whole == self.graph.joined.len() || !self.fits {
            return Ok(self);
        }
        let apart = without()?;
        Ok(if apart.fits && apart.predicted <= TORN * self.predicted { apart } else { self })
    }

    /// Bytes of images that are in the memory of the device of rank 0 at most at once.
    pub fn most_on_device(&self) -> usize {
        let mut follower = Follower::new(self, false);
        for step in &self.steps {
            follower.step(step.action);
        }
        follower.most
    }

    /// How often each kind of transfer happens.
    pub fn counts(&self) -> Counts {
        let mut c = Counts::default();
        let launches = self.launches();
        for (i, s) in self.steps.iter().enumerate() {
            match s.action {
                Action::Launch { .. } if launches.computes_before(i) => {}
                Action::Upload { band, .. } | Action::UploadStrip { band, .. } => {
                    c.uploads += usize::from(band.ends());
                }
                Action::Download(_) => c.downloads += 1,
                Action::Send { band, .. } => c.downloads += usize::from(band.ends()),
                Action::Launch { part, .. } => c.launches += usize::from(part.ends()),
                Action::Scatter { .. } => c.scatters += 1,
                Action::Gather { band, .. } => c.gathers += usize::from(band.ends()),
                Action::Collect(_) => c.gathers += 1,
                Action::Exchange { .. } | Action::Begin { .. } => c.exchanges += 1,
                Action::Replicate { .. } => c.replications += 1,
                // Naive mode scatters an input, and uploads it, for every launch anew.
                Action::Fetch { .. } if self.setting.mode == Mode::Naive => {
                    c.scatters += 1;
                    c.uploads += usize::from(!self.setting.unified);
                }
                Action::Fetch { .. } => c.footprints += 1,
                Action::Map(_)
                | Action::Unmap(_)
                | Action::Finish(_)
                | Action::Evict(_)
                | Action::Sum(_)
                | Action::Deliver(_)
                | Action::Free(_) => {}
            }
        }
        c
    }
}
