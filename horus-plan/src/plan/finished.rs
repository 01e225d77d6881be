//! Finished plans.

use std::collections::{BTreeSet, HashSet};

use super::activity::BusyTimes;
use super::follow::Follower;
use super::launches::PlannedLaunches;
use super::setting::{Mode, ResultDelivery, Setting, Transfer};
use super::state::{ImageState, Placement};
use super::step::{Action, ComputedRows, PlanStep};
use crate::ir::graph::{Graph, Node, NodeId};
use crate::ir::kernel::Kernel;
use crate::ops::Whole;
use horus_base::shape::Window;

/// Number of transfers and launches by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Copies from host to device.
    pub uploads: usize,
    /// Copies from device to host.
    pub downloads: usize,
    /// Kernels launched. A launch in parts counts once.
    pub launches: usize,
    /// Images scattered from one rank.
    pub scatters: usize,
    /// Images gathered to rank 0.
    pub gathers: usize,
    /// Halo exchanges.
    pub exchanges: usize,
    /// Images replicated on every rank.
    pub replications: usize,
    /// Footprints fetched.
    pub footprints: usize,
}

impl PlanCounts {
    /// Copies between host and device.
    pub fn copies(&self) -> usize {
        self.uploads + self.downloads
    }

    /// Transfers between ranks.
    pub fn exchanges_between_ranks(&self) -> usize {
        self.scatters + self.gathers + self.exchanges + self.replications + self.footprints
    }

    /// Adds `other` to these counts.
    pub fn add(&mut self, other: &PlanCounts) {
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

/// The rows that rank `rank` delivers of an image of `height` rows in this state.
pub(super) fn handed_over(setting: &Setting, state: Option<ImageState>, height: usize, rank: usize) -> Window {
    match state.map(|s| s.placement) {
        Some(Placement::Strips(_)) => setting.partition.strip(rank, height),
        _ if rank == 0 => Window::whole(height),
        _ => Window::new(0, 0),
    }
}

/// A plan without joined kernels replaces one that splits joined kernels if its predicted time is at most
/// this multiple: a guess. On an H200, two programs over volumes, from arrays to arrays, took 1.09 and 1.26
/// times as long when joined kernels were split.
const TORN: f64 = 1.02;

/// Most bytes of a result that launches write in host memory: a guess. On an H200, a number arrives 8 µs after a
/// launch begins that writes it there, and 17 µs after one whose result is copied.
const SMALL: usize = 4 << 10;

/// A finished plan: ordered steps, identical on every rank.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Kernel graph.
    pub graph: Graph<Kernel>,
    /// Delivery of each root of the graph.
    pub wants: Vec<ResultDelivery>,
    /// The steps.
    pub steps: Vec<PlanStep>,
    /// The setting for which the plan was made.
    pub setting: Setting,
    /// Initial states of the sources, in graph order.
    pub initial: Vec<Option<ImageState>>,
    /// Final states.
    pub states: Vec<Option<ImageState>>,
    /// Predicted time in seconds.
    pub predicted: f64,
    /// Predicted busy time of each part of rank 0's machine.
    pub parts: BusyTimes,
    /// Set if the inputs and results of every launch are estimated to fit in device memory.
    pub fits: bool,
    /// The first node that certainly does not fit, and a lower bound of its bytes with its inputs.
    pub shortfall: Option<(NodeId, usize)>,
}

impl Plan {
    /// The rows of a result that rank `rank` delivers on its host: its own strip if the result is in strips,
    /// else all rows on the first rank.
    pub fn hands_over(&self, n: NodeId, rank: usize) -> Window {
        handed_over(&self.setting, self.states[n.0], self.graph.node(n).shape.height, rank)
    }

    /// Returns `true` if the launch that computes a result should write it in host memory: a copy of a few bytes takes
    /// longer than a launch. No launch of the plan reads it, each of its values is written once, and its kernel does not
    /// read them. Launches of later plans read it over the bus.
    pub fn is_written_to_host(&self, n: NodeId) -> bool {
        let Node { op, shape, dtype, .. } = self.graph.node(n);
        let written_once = matches!(op, Kernel::Map(_) | Kernel::MapReduce(..) | Kernel::Whole(Whole::Fold(_)));
        let bytes = shape.len() * dtype.size();
        let is_small = (1..=SMALL).contains(&bytes) && written_once && op.source_value().is_none();
        let copies =
            self.setting.unified || self.setting.partition.ranks() > 1 || self.setting.transfer != Transfer::Auto;
        let wanted =
            || self.graph.roots.iter().zip(&self.wants).any(|(root, want)| *root == n && *want != ResultDelivery::Keep);
        is_small && !copies && wanted() && !self.graph.nodes.iter().any(|node| node.inputs.contains(&n))
    }

    /// The plan without one step and without the waits for that step. Tests use it to show that every step is
    /// necessary.
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

    /// The launch of each step.
    pub fn launches(&self) -> PlannedLaunches<'_> {
        PlannedLaunches::of(&self.graph, &self.steps)
    }

    /// This plan, or the plan `without` joined kernels if this one splits them (because copies or bands come
    /// in between) and thus repeats shared computation.
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

    /// Peak bytes of images on a device: that of rank 0, or of another rank that computes something alone.
    pub fn most_on_device(&self) -> usize {
        let alone = |step: &PlanStep| match step.action {
            Action::Launch { rows: ComputedRows::On(rank), .. } => Some(rank),
            _ => None,
        };
        let ranks: BTreeSet<usize> = self.steps.iter().filter_map(alone).chain([0]).collect();
        let most = |rank| {
            let mut follower = Follower::new(self, rank, false);
            for step in &self.steps {
                follower.step(step.action);
            }
            follower.most
        };
        ranks.into_iter().map(most).max().unwrap_or_default()
    }

    /// Number of transfers and launches by kind.
    pub fn counts(&self) -> PlanCounts {
        let mut c = PlanCounts::default();
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
                // Naive mode scatters and uploads inputs again for every launch.
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
