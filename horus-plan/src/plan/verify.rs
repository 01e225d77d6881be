//! Plan verification: every step finds the data that it reads, on every rank. A plan that would read a stale
//! row, or not deliver a requested result, never runs.
//!
//! Verifier and planner share the steps and the facts of operations (rows read, distribution), which a test
//! compares with the definitions (`horus_testing::reference::reads`). The verifier tracks the valid rows of
//! each copy, rank by rank, while the planner uses states common to all ranks. At the end it checks
//! deliveries and final states (`ends`). Every order that queues and waits allow must yield the same rows
//! (`order`).
//!
//! Design: "Verify" in `docs/design/plan.md`.

mod bands;
mod ends;
mod mapped;
mod order;

use std::collections::{HashMap, HashSet};

use self::order::StepOrder;
use super::finished::Plan;
use super::state::{Halo, Placement};
use super::step::{Action, Band, ComputedRows, LaunchPart, Temp};
use crate::ir::graph::NodeId;
use crate::ir::kernel::{Access, Distribution};
use horus_base::error::{Error, Result};
use horus_base::shape::Window;

/// Valid rows of an image on one rank.
#[derive(Clone, Copy, Debug, Default)]
struct ValidCopies {
    host: Option<Window>,
    device: Option<Window>,
}

/// Checks every step of `plan`.
///
/// # Errors
/// [`Error::Plan`] naming the first step that reads missing data or makes a redundant copy, or what is
/// missing at the end.
pub fn verify(plan: &Plan) -> Result<()> {
    let launches = plan.launches();
    for rank in 0..plan.setting.partition.ranks() {
        let mut check = PlanCheck::new(plan, rank);
        for (i, step) in plan.steps.iter().enumerate() {
            // A launch of several nodes begins at its first step.
            let late = launches.computes_before(i) && !step.waits.is_empty();
            let begun = if late { Err("waits in the middle of a launch".into()) } else { check.order.begin() };
            begun.and_then(|()| check.step(step.action)).map_err(|cause| Error::Plan {
                step: i,
                text: plan.describe(&step.action),
                cause: format!("{cause} on rank {rank}"),
            })?;
        }
        check.check_end().map_err(|cause| Error::Plan {
            step: plan.steps.len(),
            text: "the end".into(),
            cause: format!("{cause} on rank {rank}"),
        })?;
    }
    Ok(())
}

struct PlanCheck<'a> {
    plan: &'a Plan,
    rank: usize,
    images: Vec<ValidCopies>,
    /// For images on one rank: this rank. Others have no rows to send.
    owner: Vec<Option<usize>>,
    /// Images whose memory may have space for rows beyond the image, valid or not. Strips from an earlier
    /// plan may have it.
    beyond: Vec<bool>,
    temps: HashMap<Temp, Window>,
    /// Pending exchanges: the rows valid after each.
    arriving: HashMap<NodeId, Window>,
    /// Images with only the interior computed, and the distance of the interior from the edges.
    begun: HashMap<NodeId, (ComputedRows, Halo)>,
    /// Images with only this rank's partial result, valid nowhere until the sum over all ranks.
    partial: Vec<bool>,
    /// Images uploaded, computed or sent in part: the end of the last band.
    uploaded: HashMap<NodeId, u8>,
    computed: HashMap<NodeId, (ComputedRows, u8)>,
    sent: HashMap<NodeId, u8>,
    /// Images that launches use in the host's memory.
    mapped: HashSet<NodeId>,
    /// Images gathered in part on rank 0's device: the end of the last band.
    gathered_until: HashMap<NodeId, u8>,
    /// Order between steps.
    order: StepOrder<'a>,
    /// Rows delivered of each result.
    delivered: Vec<Option<Window>>,
}

impl<'a> PlanCheck<'a> {
    fn new(plan: &'a Plan, rank: usize) -> PlanCheck<'a> {
        let n = plan.graph.nodes.len();
        let mut check = PlanCheck {
            plan,
            rank,
            images: vec![ValidCopies::default(); n],
            owner: vec![None; n],
            beyond: vec![false; n],
            temps: HashMap::new(),
            arriving: HashMap::new(),
            begun: HashMap::new(),
            partial: vec![false; n],
            uploaded: HashMap::new(),
            computed: HashMap::new(),
            sent: HashMap::new(),
            mapped: HashSet::new(),
            gathered_until: HashMap::new(),
            order: StepOrder::new(&plan.steps, n),
            delivered: vec![None; n],
        };
        for (i, state) in plan.initial.iter().enumerate() {
            let Some(state) = state else { continue };
            let height = plan.graph.nodes[i].shape.height;
            let rows = match state.placement {
                Placement::On(owner) if rank != owner => Window::new(0, 0),
                Placement::On(_) | Placement::Replicated => Window::whole(height),
                Placement::Strips(halo) => check.grown(height, halo),
            };
            check.owner[i] = state.placement.owner();
            check.beyond[i] = matches!(state.placement, Placement::Strips(_));
            check.images[i] = ValidCopies {
                host: state.residency.host().then_some(rows),
                device: state.residency.device().then_some(rows),
            };
        }
        check
    }

    fn height(&self, n: NodeId) -> usize {
        self.plan.graph.node(n).shape.height
    }

    fn strip(&self, height: usize) -> Window {
        self.plan.setting.partition.strip(self.rank, height)
    }

    fn grown(&self, height: usize, halo: Halo) -> Window {
        let grown = self.strip(height).grown(halo.up, halo.down);
        if halo.wrap { grown } else { grown.clipped(height) }
    }

    fn set(&mut self, n: NodeId, host: Option<Window>, device: Option<Window>) {
        let unified = self.plan.setting.unified;
        let both = host.or(device);
        self.images[n.0] =
            if unified { ValidCopies { host: both, device: both } } else { ValidCopies { host, device } };
    }

    fn host(&self, n: NodeId) -> Result<Window, String> {
        self.images[n.0].host.ok_or_else(|| format!("the host copy of {n} is stale"))
    }

    fn device(&self, n: NodeId) -> Result<Window, String> {
        self.images[n.0].device.ok_or_else(|| format!("the device copy of {n} is stale"))
    }

    /// The copy that a transfer between ranks reads.
    fn side(&self, n: NodeId, direct: bool) -> Result<Window, String> {
        if direct && !self.plan.setting.direct {
            return Err("the devices of the ranks are not connected".into());
        }
        if direct { self.device(n) } else { self.host(n) }
    }

    /// Records that a transfer between ranks leaves one valid copy.
    fn arrives(&mut self, n: NodeId, direct: bool, rows: Window) {
        self.set(n, (!direct).then_some(rows), direct.then_some(rows));
    }

    /// The rows that this rank must have for a transfer of the whole image.
    fn must_give(&self, n: NodeId) -> Window {
        match self.owner[n.0] {
            Some(owner) if owner == self.rank => Window::whole(self.height(n)),
            Some(_) => Window::new(0, 0),
            None => self.strip(self.height(n)),
        }
    }

    fn added_up(&self, n: NodeId) -> Result<(), String> {
        if self.partial[n.0] { Err(format!("the parts of {n} were not added up")) } else { Ok(()) }
    }

    fn gives(&self, n: NodeId, rows: Window) -> Result<(), String> {
        self.added_up(n)?;
        let need = self.must_give(n);
        if rows.covers(need) { Ok(()) } else { Err(format!("{n} holds rows {rows}, must give {need}")) }
    }

    /// The image that `action` modifies or removes as a whole, which is forbidden during an exchange of its
    /// halos.
    fn disturbs(action: Action) -> Option<NodeId> {
        match action {
            Action::Download(n)
            | Action::Map(n)
            | Action::Unmap(n)
            | Action::Evict(n)
            | Action::Collect(n)
            | Action::Sum(n)
            | Action::Free(n) => Some(n),
            Action::Upload { node, .. }
            | Action::UploadStrip { node, .. }
            | Action::Scatter { node, .. }
            | Action::Replicate { node, .. }
            | Action::Exchange { node, .. }
            | Action::Begin { node, .. }
            | Action::Launch { node, .. } => Some(node),
            Action::Finish(_)
            | Action::Fetch { .. }
            | Action::Gather { .. }
            | Action::Deliver(_)
            | Action::Send { .. } => None,
        }
    }

    fn step(&mut self, action: Action) -> Result<(), String> {
        if let Some(n) = Self::disturbs(action).filter(|n| self.arriving.contains_key(n)) {
            return Err(format!("borders of {n} are still under way"));
        }
        self.leaves_mapped(action)?;
        self.notes_room(action);
        if let Some(n) = Self::settles(action) {
            self.order.sees(n, None)?;
            if let Some(what) = self.unfinished(n) {
                return Err(format!("{what} of {n} is not complete"));
            }
        }
        match action {
            Action::Upload { node, band } => self.upload(node, band)?,
            Action::UploadStrip { node, halo, band } => self.upload_strip(node, halo, band)?,
            Action::Map(n) => self.map(n)?,
            Action::Unmap(n) => self.unmap(n)?,
            Action::Download(n) => {
                let rows = self.device(n)?;
                if self.images[n.0].host.is_some() {
                    return Err(format!("{n} is on the host already"));
                }
                self.set(n, Some(rows), Some(rows));
            }
            Action::Evict(n) => {
                let rows = self.host(n)?;
                self.set(n, Some(rows), None);
            }
            Action::Scatter { node, halo, direct, .. } => {
                self.gives(node, self.side(node, direct)?)?;
                self.owner[node.0] = None;
                self.arrives(node, direct, self.grown(self.height(node), halo));
            }
            Action::Replicate { node, direct } => {
                self.gives(node, self.side(node, direct)?)?;
                self.owner[node.0] = None;
                self.arrives(node, direct, Window::whole(self.height(node)));
            }
            Action::Gather { node, band, direct: true } => self.gather_band(node, band)?,
            Action::Gather { node, band, .. } => {
                self.gives(node, self.host(node)?)?;
                if !band.is_whole() {
                    return Err(format!("rows {band} of {node} are gathered by the host alone"));
                }
                if self.rank == 0 {
                    self.delivered[node.0] = Some(Window::whole(self.height(node)));
                }
            }
            Action::Collect(n) => {
                self.gives(n, self.host(n)?)?;
                self.owner[n.0] = Some(0);
                let rows = if self.rank == 0 { Window::whole(self.height(n)) } else { Window::new(0, 0) };
                self.set(n, Some(rows), None);
            }
            Action::Deliver(n) => {
                self.added_up(n)?;
                self.delivered[n.0] = Some(self.delivers(n, self.host(n)?));
            }
            Action::Send { node, band } => self.send(node, band)?,
            Action::Exchange { node, halo, direct } => {
                let on_device = self.gives_borders(node, direct)?;
                let rows = self.grown(self.height(node), halo);
                self.set(node, (!on_device).then_some(rows), on_device.then_some(rows));
            }
            Action::Begin { node, halo, direct } => {
                let on_device = self.gives_borders(node, direct)?;
                let strip = self.strip(self.height(node));
                self.set(node, (!on_device).then_some(strip), on_device.then_some(strip));
                self.arriving.insert(node, self.grown(self.height(node), halo));
            }
            Action::Finish(n) => {
                let rows = self.arriving.remove(&n).ok_or_else(|| format!("no exchange of {n} was begun"))?;
                let ValidCopies { host, device } = self.images[n.0];
                self.set(n, host.map(|_| rows), device.map(|_| rows));
            }
            Action::Fetch { node, temp, rows, direct } => {
                let copies = self.images[node.0];
                let held = if direct { Some(self.side(node, true)?) } else { copies.host.or(copies.device) };
                self.gives(node, held.ok_or_else(|| format!("{node} is nowhere valid"))?)?;
                let consumer = self.plan.graph.node(temp.consumer);
                let rows = self.rows(temp.consumer, rows);
                let shape = self.plan.graph.node(node).shape;
                let footprint = consumer.op.footprint(temp.input, rows, consumer.shape, shape);
                if self.temps.insert(temp, footprint).is_some() {
                    return Err(format!("rows of {node} are fetched twice"));
                }
            }
            Action::Launch { node, rows, part, .. } => self.launch(node, rows, part)?,
            Action::Sum(n) => {
                let rows = self.host(n)?;
                if !std::mem::take(&mut self.partial[n.0]) {
                    return Err(format!("{n} has no parts to add up"));
                }
                self.set(n, Some(rows), None);
            }
            Action::Free(n) => self.free(n),
        }
        self.notes_writes(action);
        Ok(())
    }

    /// Records whether the memory of an image has space for rows beyond it after a step.
    fn notes_room(&mut self, action: Action) {
        let (node, room) = match action {
            Action::Scatter { node, halo, room, .. } => (node, halo.wrap || room.wrap),
            Action::UploadStrip { node, halo, .. } => (node, halo.wrap),
            Action::Replicate { node, .. } | Action::Collect(node) | Action::Free(node) => (node, false),
            Action::Launch { node, rows, room, .. } => match rows {
                ComputedRows::All | ComputedRows::On(_) => (node, false),
                ComputedRows::Strip(extend) => (node, room.wrap || extend.wrap),
            },
            // Memory grows and never shrinks.
            Action::Exchange { node, halo, .. } | Action::Begin { node, halo, .. } => {
                (node, self.beyond[node.0] || halo.wrap)
            }
            Action::Upload { .. }
            | Action::Map(_)
            | Action::Unmap(_)
            | Action::Download(_)
            | Action::Evict(_)
            | Action::Finish(_)
            | Action::Fetch { .. }
            | Action::Sum(_)
            | Action::Gather { .. }
            | Action::Deliver(_)
            | Action::Send { .. } => return,
        };
        self.beyond[node.0] = room;
    }

    /// Returns `true` if the device copy sends and receives halo rows.
    fn gives_borders(&self, n: NodeId, direct: bool) -> Result<bool, String> {
        if self.owner[n.0].is_some() {
            return Err(format!("{n} has no strips"));
        }
        let copies = self.images[n.0];
        if direct {
            self.side(n, true)?;
        }
        self.gives(n, copies.device.or(copies.host).ok_or_else(|| format!("{n} is nowhere valid"))?)?;
        Ok(copies.device.is_some())
    }

    fn launch(&mut self, node: NodeId, rows: ComputedRows, part: LaunchPart) -> Result<(), String> {
        let windows = match part {
            LaunchPart::Whole => [self.rows(node, rows), Window::new(0, 0)],
            _ => part.windows(rows, &self.plan.setting.partition, self.rank, self.height(node)),
        };
        for input in 0..self.plan.graph.node(node).inputs.len() {
            windows.iter().try_for_each(|w| self.reads(node, input, *w, matches!(part, LaunchPart::Band(_))))?;
        }
        match (part, self.begun.remove(&node)) {
            (LaunchPart::Band(band), None) => {
                Self::next_band(&mut self.computed, node, band, (rows, band.from), (rows, band.to))?;
            }
            (LaunchPart::Interior(reach), None) => {
                self.images[node.0] = ValidCopies::default();
                self.begun.insert(node, (rows, reach));
                return Ok(());
            }
            (LaunchPart::Whole, None) => {}
            (LaunchPart::Edges(reach), Some(interior)) if interior == (rows, reach) => {}
            _ => return Err(format!("the parts of {node} do not make a whole")),
        }
        let held = match rows {
            ComputedRows::All => Window::whole(self.height(node)),
            ComputedRows::Strip(_) | ComputedRows::On(_) => self.rows(node, rows),
        };
        self.owner[node.0] = rows.placement().owner();
        let held = match part {
            LaunchPart::Band(band) => Window::new(held.start, Band::row(band.to, held)),
            _ => held,
        };
        self.set(node, None, Some(held));
        let several = self.plan.setting.partition.ranks() > 1;
        self.partial[node.0] =
            several && matches!(self.plan.graph.node(node).op.distribution(), Distribution::Partial(_));
        if part.ends() {
            self.temps.retain(|t, _| t.consumer != node);
        }
        Ok(())
    }

    /// The rows that a launch computes; for counts and sums over all rows, the rows that it reads.
    fn rows(&self, n: NodeId, rows: ComputedRows) -> Window {
        let node = self.plan.graph.node(n);
        match node.op.distribution() {
            Distribution::Partial(_) => self.strip(self.height(node.inputs[0])),
            Distribution::Whole if !matches!(rows, ComputedRows::On(_)) => Window::whole(node.shape.height),
            Distribution::Whole | Distribution::Rows => {
                rows.window(&self.plan.setting.partition, self.rank, node.shape.height)
            }
        }
    }

    fn reads(&self, n: NodeId, input: usize, rows: Window, in_bands: bool) -> Result<(), String> {
        if rows.is_empty() {
            return Ok(());
        }
        let node = self.plan.graph.node(n);
        let source = node.inputs[input];
        let shape = self.plan.graph.node(source).shape;
        let footprint = node.op.footprint(input, rows, node.shape, shape);
        if let Some(held) = self.temps.get(&Temp { consumer: n, input }) {
            return if held.covers(footprint) {
                Ok(())
            } else {
                Err(format!("rows {footprint} of {source} not fetched"))
            };
        }
        let held = self.device(source)?;
        self.added_up(source)?;
        // A launch that is not in bands waits for all rows.
        self.order.sees(source, Some(footprint).filter(|_| in_bands))?;
        let beyond = self.beyond[source.0];
        if beyond && node.op.takes_end_to_end(input) {
            return Err(format!("takes the memory of {source} from end to end, which has rows beyond the image"));
        }
        // Devices read rows beyond the image where memory has space for them.
        let read = match node.op.access(input) {
            Access::Rows { reach, wrap: true } if beyond => rows.grown(reach.up, reach.down),
            _ => footprint,
        };
        if held.covers(read) {
            Ok(())
        } else {
            Err(format!("reads rows {read} of {source}, of which {held} are up to date"))
        }
    }
}
