//! Bands: images cut in time, so that rows are copied, computed and sent concurrently.
//!
//! Bands apply within a run of steps in which no rank waits for another. Each pixel is computed once, by the
//! same kernel as without bands: bands change the order, not the result. The number of bands, possibly one,
//! is the one predicted to be cheapest; `HORUS_TRANSFER` forces a number. Alternatives include launches that
//! use the host's memory in place of copies ([`mapped`](super::mapped)).
//!
//! Design: `docs/design/bands.md`.

mod choice;
mod schedule;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use self::choice::cheapest;
use self::schedule::{BandSchedule, ScheduleBuilder};
use super::draft::PlanDraft;
use super::mapped::MappedImages;
use super::setting::{Mode, Transfer};
use super::step::{Action, Band, ComputedRows, LaunchPart, PlanStep};
use crate::ir::graph::NodeId;
use crate::ir::kernel::Distribution;
use crate::machine::{Load, Machine, MachineProfile};
use crate::plan::launches::{LaunchedNodes, PlannedLaunches};
use crate::plan::movement::{over_bus, rows_of, with_room, work_of};
use crate::plan::state::{Halo, ImageState, Placement, StateEvent};
use horus_base::shape::Window;

/// Minimum time of copies worth considering, as a multiple of the time of dividing a launch: a guess.
const WORTHWHILE: f64 = 8.0;

/// The pass: cuts each run of steps without communication into bands where a gain is predicted.
pub(super) fn cut(draft: &mut PlanDraft<'_>) {
    let setting = draft.setting;
    if setting.unified || setting.mode == Mode::Naive || setting.transfer == Transfer::Explicit {
        return;
    }
    for run in runs(draft).into_iter().rev() {
        if let Some((steps, used)) = cheapest(draft, run.clone()) {
            let unmapped: Vec<NodeId> = steps.iter().filter_map(|s| s.action.unmaps()).collect();
            draft.used.splice(run.clone(), vec![used; steps.len()]);
            draft.steps.splice(run, steps);
            unmapped.into_iter().for_each(|n| draft.event(n, StateEvent::Placed(Placement::Replicated)));
        }
    }
}

/// The longest runs of steps that can be reordered.
fn runs(draft: &PlanDraft<'_>) -> Vec<Range<usize>> {
    let movable = |step: &PlanStep| match step.action {
        Action::Upload { .. } | Action::UploadStrip { .. } | Action::Send { .. } | Action::Free(_) => true,
        // The inputs that it fetches are in place before the run.
        Action::Launch { part, .. } => part == LaunchPart::Whole,
        // Every rank uses the same number of bands: each band is a synchronisation of all ranks.
        Action::Gather { direct, .. } => direct,
        _ => false,
    };
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (i, step) in draft.steps.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if movable(step) && run.end == i => run.end = i + 1,
            _ if movable(step) => runs.push(i..i + 1),
            _ => {}
        }
    }
    runs
}

/// An input of a launch that is uploaded or computed in the same run.
#[derive(Clone, Copy)]
struct BandLaunchInput {
    /// The node of the launch that reads it.
    node: NodeId,
    /// Its index among the inputs of that node.
    index: usize,
    /// Its image.
    source: NodeId,
}

/// A launch of a run.
struct BandLaunch {
    /// Its nodes; several for a kernel with several results.
    nodes: Vec<NodeId>,
    rows: ComputedRows,
    room: Halo,
    /// The launch can be computed in bands.
    divisible: bool,
    inputs: Vec<BandLaunchInput>,
}

/// A run of steps, prepared for division into bands.
struct Board<'d, 'a> {
    draft: &'d PlanDraft<'a>,
    machine: &'d Machine,
    jobs: Vec<BandLaunch>,
    /// Uploaded images with their bytes, in the order in which they are read.
    uploads: Vec<(NodeId, usize)>,
    /// For images uploaded in strips, the rows that each rank uploads around its strip.
    strips: HashMap<NodeId, Halo>,
    /// Images sent, with their bytes.
    sends: Vec<(NodeId, usize)>,
    /// Images gathered from other ranks before they are sent.
    gathered: HashSet<NodeId>,
    /// Images that every device sends in strips.
    by_lane: HashSet<NodeId>,
    frees: Vec<NodeId>,
    /// Images that launches use in the host's memory.
    mapped: MappedImages,
    /// Predicted seconds of all copies.
    copied: f64,
    reasons: HashMap<(u8, NodeId), String>,
    /// Cached results, because schedules repeat the queries.
    found: RefCell<BandCache>,
}

/// Cached properties of bands of launches.
#[derive(Default)]
struct BandCache {
    seconds: HashMap<(NodeId, Band), f64>,
    /// By launch, input and cut.
    needed: HashMap<(NodeId, usize, u8), u8>,
}

fn key(action: Action) -> (u8, NodeId) {
    match action {
        Action::Upload { node, .. } | Action::UploadStrip { node, .. } => (0, node),
        Action::Launch { node, .. } => (1, node),
        Action::Send { node, .. } => (2, node),
        Action::Free(node) => (3, node),
        Action::Gather { node, .. } => (4, node),
        _ => (5, NodeId(0)),
    }
}

impl<'d, 'a> Board<'d, 'a> {
    /// `None` if nothing is computed or copied, or the steps cannot be reordered.
    fn new(draft: &'d PlanDraft<'a>, run: Range<usize>, mapped: MappedImages) -> Option<Board<'d, 'a>> {
        let mut board = Board {
            draft,
            machine: &draft.setting.machine,
            jobs: Vec::new(),
            uploads: Vec::new(),
            strips: HashMap::new(),
            sends: Vec::new(),
            gathered: HashSet::new(),
            by_lane: HashSet::new(),
            frees: Vec::new(),
            mapped,
            copied: 0.0,
            reasons: HashMap::new(),
            found: RefCell::default(),
        };
        let mut here: HashSet<NodeId> = HashSet::new();
        let launches = PlannedLaunches::of(draft.graph, &draft.steps);
        for (i, step) in draft.steps.iter().enumerate().take(run.end).skip(run.start) {
            board.reasons.insert(key(step.action), step.why.clone());
            match step.action {
                Action::Upload { node, .. } | Action::Send { node, .. } if board.mapped.holds(node) => {}
                Action::Upload { node, .. } => {
                    // Strips are cut at their own position, which differs from the position of the rows of a
                    // whole image.
                    let whole = |s: ImageState| s.placement == Placement::Replicated;
                    if draft.ranks() > 1 && !draft.initial[node.0].is_some_and(whole) {
                        return None;
                    }
                    here.insert(node);
                    board.uploads.push((node, draft.bytes_as(node, ComputedRows::All)));
                }
                Action::UploadStrip { node, halo, .. } => {
                    here.insert(node);
                    board.uploads.push((node, draft.bytes_as(node, ComputedRows::Strip(halo))));
                    board.strips.insert(node, halo);
                }
                Action::Launch { node, rows, room, .. } => {
                    let kernel = draft.graph.node(node);
                    let inputs = kernel.inputs.iter().copied().enumerate();
                    let inputs = inputs
                        .filter(|(_, source)| here.contains(source))
                        .map(|(index, source)| BandLaunchInput { node, index, source });
                    let divisible = kernel.op.distribution() == Distribution::Rows && kernel.shape.height > 1;
                    match board.jobs.last_mut().filter(|_| launches.computes_before(i)) {
                        Some(job) => {
                            job.nodes.push(node);
                            job.inputs.extend(inputs);
                            job.divisible &= divisible;
                        }
                        None => {
                            let (nodes, inputs) = (vec![node], inputs.collect());
                            board.jobs.push(BandLaunch { nodes, rows, room, divisible, inputs });
                        }
                    }
                    here.insert(node);
                }
                Action::Send { node, .. } => {
                    let strips =
                        draft.setting.has_shared_host() && matches!(draft.state(node).placement, Placement::Strips(_));
                    if strips {
                        board.by_lane.insert(node);
                    }
                    let rows = if strips { ComputedRows::Strip(Halo::NONE) } else { ComputedRows::All };
                    board.sends.push((node, draft.bytes_as(node, rows)));
                }
                Action::Gather { node, .. } => {
                    board.gathered.insert(node);
                }
                Action::Free(node) => board.frees.push(node),
                _ => return None,
            }
        }
        board.copied = board.uploads.iter().map(|(_, bytes)| board.upload(*bytes, 1)).sum::<f64>()
            + board.sends.iter().map(|(_, bytes)| board.download(*bytes, 1)).sum::<f64>();
        let something = board.copied > 0.0 || !board.mapped.is_none();
        (!board.jobs.is_empty() && something).then_some(board)
    }

    /// Returns `true` if copies take long enough for bands to be considered.
    fn is_worthwhile(&self) -> bool {
        self.copied > WORTHWHILE * self.machine.slowest(MachineProfile::division)
    }

    fn upload(&self, bytes: usize, copies: usize) -> f64 {
        self.machine.slowest(|p| p.upload.pinned.in_turn(bytes, copies))
    }

    fn download(&self, bytes: usize, copies: usize) -> f64 {
        self.machine.slowest(|p| p.download.pinned.in_turn(bytes, copies))
    }

    /// Copies of a band of an image, one for each plane, or of the whole image.
    fn copies(&self, node: NodeId, is_whole: bool) -> usize {
        if is_whole { 1 } else { self.draft.graph.node(node).shape.planes() }
    }

    /// Predicted seconds to bring the other ranks' share of an image of `bytes` bytes to rank 0; 0 if it is
    /// not gathered.
    fn meeting(&self, node: NodeId, bytes: usize) -> f64 {
        if !self.gathered.contains(&node) {
            return 0.0;
        }
        let messages = self.ranks() - 1;
        self.draft.link().time(Load { messages, bytes: bytes * messages / self.ranks() })
    }

    fn ranks(&self) -> usize {
        self.draft.ranks()
    }

    /// All rows that rank `rank` computes in a launch, or has of an uploaded image.
    fn all(&self, node: NodeId, rank: usize) -> Window {
        let (partition, height) = (&self.draft.setting.partition, self.draft.graph.node(node).shape.height);
        match (self.jobs.iter().find(|job| job.nodes.contains(&node)), self.strips.get(&node)) {
            (Some(job), _) => rows_of(self.draft.graph, partition, node, rank, job.rows),
            (None, Some(halo)) => with_room(partition.strip(rank, height), *halo, height),
            (None, None) => Window::whole(height),
        }
    }

    /// The step that uploads a band.
    fn uploading(&self, node: NodeId, band: Band) -> Action {
        match self.strips.get(&node) {
            Some(halo) => Action::UploadStrip { node, halo: *halo, band },
            None => Action::Upload { node, band },
        }
    }

    /// The non-empty strips of ranks, each with all rows that the rank computes; rows around the strip are
    /// not sent.
    fn strips(&self, node: NodeId) -> impl Iterator<Item = (Window, Window)> {
        let height = self.draft.graph.node(node).shape.height;
        let strip = move |rank| (self.draft.setting.partition.strip(rank, height), self.all(node, rank));
        (0..self.ranks()).map(strip).filter(|(strip, _)| !strip.is_empty())
    }

    /// Returns `true` if bands of every strip of a result are sent, rather than bands of all rows that ranks
    /// compute.
    fn leaves_in_strips(&self, node: NodeId) -> bool {
        self.gathered.contains(&node) || self.by_lane.contains(&node)
    }

    /// The cut up to which a result computed up to `cut` can be sent.
    fn sendable_cut(&self, node: NodeId, cut: u8) -> u8 {
        if cut == Band::PARTS || !self.leaves_in_strips(node) {
            return cut;
        }
        let last = |(strip, all): (Window, Window)| {
            let end = Band::row(cut, all);
            (0..=Band::PARTS).rev().find(|c| Band::row(*c, strip) <= end).unwrap_or(0)
        };
        self.strips(node).map(last).min().unwrap_or(cut)
    }

    /// The cut up to which a result must be computed to be sent up to `cut`.
    fn required_cut(&self, node: NodeId, cut: u8) -> u8 {
        if cut == Band::PARTS || !self.leaves_in_strips(node) {
            return cut;
        }
        self.strips(node).map(|(strip, all)| Band::cut_behind(Band::row(cut, strip), all)).max().unwrap_or(cut)
    }

    /// Predicted seconds of a band of a launch, on the slowest rank.
    fn seconds(&self, job: &BandLaunch, band: Band) -> f64 {
        if let Some(known) = self.found.borrow().seconds.get(&(job.nodes[0], band)) {
            return *known;
        }
        let launched = LaunchedNodes::of(self.draft.graph, &job.nodes);
        let seconds = |rank| {
            let rows = band.of(self.all(job.nodes[0], rank));
            let work = work_of(self.draft.graph, &launched, rows);
            let bus = over_bus(self.draft.graph, &launched, rows, |n| self.mapped.holds(n));
            self.machine.slowest(|p| p.launch_over(&work, bus).seconds)
        };
        let longest = (0..self.ranks()).map(seconds).fold(0.0, f64::max);
        self.found.borrow_mut().seconds.insert((job.nodes[0], band), longest);
        longest
    }

    /// The cut up to which an input must be available for the rows of its reader up to `cut`.
    fn needed(&self, BandLaunchInput { node: reader, index, source }: BandLaunchInput, cut: u8) -> u8 {
        if let Some(known) = self.found.borrow().needed.get(&(reader, index, cut)) {
            return *known;
        }
        let graph = self.draft.graph;
        let (node, shape) = (graph.node(reader), graph.node(source).shape);
        let needed = |rank| {
            let rows = Band { from: 0, to: cut }.of(self.all(reader, rank));
            let read = node.op.footprint(index, rows, node.shape, shape);
            // A rank that reads no row of the image also needs it to exist.
            if read.is_empty() { u8::from(cut > 0) } else { Band::cut_behind(read.end, self.all(source, rank)).max(1) }
        };
        let most = (0..self.ranks()).map(needed).max().unwrap_or(0);
        self.found.borrow_mut().needed.insert((reader, index, cut), most);
        most
    }

    /// The cut up to which `job` can be computed if its inputs are available up to the cuts that `there`
    /// returns.
    fn possible(&self, job: &BandLaunch, from: u8, there: impl Fn(NodeId) -> u8) -> u8 {
        let is_possible = |cut: u8| job.inputs.iter().all(|input| self.needed(*input, cut) <= there(input.source));
        if is_possible(Band::PARTS) {
            return Band::PARTS;
        }
        if !job.divisible {
            return from;
        }
        let (mut low, mut high) = (from, Band::PARTS);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_possible(middle) { low = middle } else { high = middle }
        }
        low
    }

    /// Candidate sets of launches to compute band by band at the end: the empty set, and a set grown
    /// backwards from the results until the copies to the host are hidden.
    fn tails(&self) -> Vec<Vec<usize>> {
        let mut tails = vec![Vec::new()];
        let copied: f64 = self.sends.iter().map(|(_, bytes)| self.download(*bytes, 1)).sum();
        let sent: HashSet<NodeId> = self.sends.iter().map(|(node, _)| *node).collect();
        let (mut tail, mut members, mut seconds) = (Vec::new(), HashSet::new(), 0.0);
        for (j, job) in self.jobs.iter().enumerate().rev() {
            let is_used = |node: &NodeId| sent.contains(node) || self.readers(*node).next().is_some();
            let follow = |node: &NodeId| {
                self.readers(*node).all(|(at, reader)| members.contains(&at) && self.follows(reader, *node))
            };
            let joins = job.divisible && job.nodes.iter().all(|node| is_used(node) && follow(node));
            if joins {
                members.insert(j);
                tail.insert(0, j);
                seconds += self.seconds(job, Band::WHOLE);
                if seconds >= copied {
                    tails.push(tail.clone());
                    break;
                }
            }
        }
        if tails.len() == 1 && !tail.is_empty() {
            tails.push(tail);
        }
        tails
    }

    /// The launches of the run that read an image, with their positions.
    fn readers(&self, source: NodeId) -> impl Iterator<Item = (usize, &BandLaunch)> {
        self.jobs.iter().enumerate().filter(move |(_, job)| job.inputs.iter().any(|input| input.source == source))
    }

    /// Returns `true` if the upper half of a launch needs at most a few rows beyond the upper half of its
    /// input.
    fn follows(&self, job: &BandLaunch, source: NodeId) -> bool {
        let half = Band::PARTS / 2;
        let of_it = job.inputs.iter().filter(|input| input.source == source);
        of_it.map(|input| self.needed(*input, half)).all(|cut| cut <= half + half / 2)
    }

    /// The steps in `count` bands, with the launches of `tail` band by band at the end, and their predicted
    /// end.
    fn schedule(&self, count: u8, tail: &[usize]) -> BandSchedule {
        ScheduleBuilder::new(self, count).run(tail)
    }

    /// Peak bytes on the device, in addition to bytes in use before the run.
    fn peak(&self, actions: impl Iterator<Item = Action>) -> usize {
        let made =
            |n: &NodeId| self.uploads.iter().any(|(u, _)| u == n) || self.jobs.iter().any(|job| job.nodes.contains(n));
        let given = self.frees.iter().filter(|n| !made(n)).map(|n| (*n, self.draft.bytes_as(*n, ComputedRows::All)));
        let (mut held, mut most): (HashMap<NodeId, usize>, usize) = (given.collect(), 0);
        let mut met: HashMap<NodeId, usize> = HashMap::new();
        for action in actions.filter(|action| !self.mapped.holds(action.node())) {
            let _before = match action {
                Action::Upload { node, .. } => held.insert(node, self.draft.bytes_as(node, ComputedRows::All)),
                Action::UploadStrip { node, halo, .. } => {
                    held.insert(node, self.draft.bytes_as(node, ComputedRows::Strip(halo)))
                }
                Action::Launch { node, rows, .. } => held.insert(node, self.draft.bytes_as(node, rows)),
                Action::Free(node) => held.remove(&node),
                Action::Gather { node, .. } => met.insert(node, self.draft.bytes_as(node, ComputedRows::All)),
                _ => None,
            };
            most = most.max(held.values().chain(met.values()).sum());
        }
        most
    }

    fn steps(&self, actions: &[Action]) -> Vec<PlanStep> {
        let why = |action: Action| self.reasons.get(&key(action)).cloned().unwrap_or_default();
        let steps = actions.iter().map(|action| PlanStep { action: *action, why: why(*action), waits: Vec::new() });
        self.mapped.around(steps, &self.frees)
    }
}
