//! A plan that is made.

use super::activity::Parts;
use super::setting::{Mode, Setting, Want};
use super::state::State;
use super::step::{Action, Step};
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;

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

    /// How often each kind of transfer happens.
    pub fn counts(&self) -> Counts {
        let mut c = Counts::default();
        for s in &self.steps {
            match s.action {
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
                Action::Finish(_) | Action::Evict(_) | Action::Sum(_) | Action::Deliver(_) | Action::Free(_) => {}
            }
        }
        c
    }
}
