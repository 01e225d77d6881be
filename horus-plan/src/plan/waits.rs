//! Waits: dependencies of steps on other queues.
//!
//! A launch waits for the uploads of the rows that it reads; a result sent to the host waits for the launches
//! that compute it. One wait for the last such step suffices because a queue works in order. A step need not
//! repeat a wait of an earlier step of its own queue.

use std::collections::HashMap;

use super::draft::PlanDraft;
use super::finished::handed_over;
use super::launches::PlannedLaunches;
use super::movement::with_room;
use super::queue::Queue;
use super::step::{Action, Band, ComputedRows, LaunchPart};
use crate::ir::graph::NodeId;
use horus_base::shape::Window;

/// The pass: sets the waits of each step.
pub(super) fn find(draft: &mut PlanDraft<'_>) {
    let found = of(draft);
    draft.steps.iter_mut().zip(found).for_each(|(step, waits)| step.waits = waits);
}

/// The waits of each step. The first step of a launch of several nodes waits for the inputs of all of them.
pub(super) fn of(draft: &PlanDraft<'_>) -> Vec<Vec<usize>> {
    let mut waits = Waits { draft, writers: HashMap::new(), seen: HashMap::new() };
    let mut found: Vec<Vec<usize>> = (0..draft.steps.len()).map(|step| waits.of(step)).collect();
    let launches = PlannedLaunches::of(draft.graph, &draft.steps);
    for step in (1..found.len()).rev().filter(|step| launches.computes_before(*step)) {
        let later = std::mem::take(&mut found[step]);
        found[step - 1].extend(later);
    }
    let last_of_queue =
        |all: &Vec<usize>, step: &usize| all.iter().all(|s| s <= step || waits.group(*s) != waits.group(*step));
    for all in &mut found {
        let before = all.clone();
        all.retain(|step| last_of_queue(&before, step));
        all.sort_unstable();
    }
    found
}

/// Rows of an image on each rank.
type Windows = Vec<Window>;

/// A copy on a device: of a rank's part of an image, or of the parts gathered by rank 0, whose rows are given
/// in parts of every strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DeviceCopy {
    Own(NodeId),
    Gathered(NodeId),
}

/// Parts of every strip.
fn parts(band: Band) -> Window {
    Window::new(band.from.into(), band.to.into())
}

struct Waits<'d, 'a> {
    draft: &'d PlanDraft<'a>,
    /// The steps that wrote rows of the device's copies.
    writers: HashMap<DeviceCopy, Vec<(usize, Windows)>>,
    /// The last step of one queue for which another queue has waited.
    seen: HashMap<(QueueGroup, QueueGroup), usize>,
}

/// Queues whose steps are ordered among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum QueueGroup {
    Up,
    Main,
    Down,
}

fn group(queue: Queue) -> QueueGroup {
    match queue {
        Queue::Upload => QueueGroup::Up,
        Queue::Download => QueueGroup::Down,
        Queue::Host | Queue::Compute | Queue::Network => QueueGroup::Main,
    }
}

impl Waits<'_, '_> {
    fn group(&self, step: usize) -> QueueGroup {
        group(self.draft.steps[step].action.queue())
    }

    /// The waits of step `step`; also records the writes of the step.
    fn of(&mut self, step: usize) -> Vec<usize> {
        let action = self.draft.steps[step].action;
        let mut needed: HashMap<QueueGroup, usize> = HashMap::new();
        for (copy, rows) in self.reads(action) {
            for (writer, written) in self.writers.get(&copy).into_iter().flatten() {
                let meets = |(a, b): (&Window, &Window)| !a.intersect(*b).is_empty();
                if self.group(*writer) != self.group(step) && rows.iter().zip(written).any(meets) {
                    let last = needed.entry(self.group(*writer)).or_default();
                    *last = (*last).max(*writer);
                }
            }
        }
        let here = self.group(step);
        let mut waits = Vec::new();
        for (there, writer) in needed {
            let seen = self.seen.get(&(here, there)).copied();
            if seen.is_none_or(|seen| seen < writer) {
                self.seen.insert((here, there), writer);
                waits.push(writer);
            }
        }
        waits.sort_unstable();
        self.writes(step, action);
        waits
    }

    fn height(&self, n: NodeId) -> usize {
        self.draft.graph.node(n).shape.height
    }

    fn everywhere(&self, rows: impl Fn(usize) -> Window) -> Windows {
        (0..self.draft.ranks()).map(rows).collect()
    }

    /// All possible rows of an image, including rows beyond its edges; at least one row, even for an empty
    /// image.
    fn all(&self, n: NodeId) -> Windows {
        let height = self.height(n).max(1).cast_signed();
        self.everywhere(|_| Window::new(-height, 2 * height))
    }

    /// The rows that a part of a launch computes.
    fn computed(&self, node: NodeId, rows: ComputedRows, part: LaunchPart, rank: usize) -> Vec<Window> {
        part.windows(rows, &self.draft.setting.partition, rank, self.height(node)).to_vec()
    }

    /// The rows of device copies that a step reads or removes.
    fn reads(&self, action: Action) -> Vec<(DeviceCopy, Windows)> {
        match action {
            Action::Launch { node, rows, part, .. } => {
                let kernel = self.draft.graph.node(node);
                let reads = kernel.inputs.iter().enumerate().map(|(input, source)| {
                    if kernel.op.goes_over_input() || !matches!(part, LaunchPart::Band(_)) {
                        return (DeviceCopy::Own(*source), self.all(*source));
                    }
                    let shape = self.draft.graph.node(*source).shape;
                    let read = |rank| {
                        let computed = self.computed(node, rows, part, rank);
                        let read = computed.iter().map(|w| kernel.op.footprint(input, *w, kernel.shape, shape));
                        read.fold(Window::new(0, 0), Window::union)
                    };
                    (DeviceCopy::Own(*source), self.everywhere(read))
                });
                reads.collect()
            }
            Action::Send { node, band } if self.draft.setting.has_shared_host() => {
                let (state, height) = (self.draft.states[node.0], self.height(node));
                let sent = |rank| band.of(handed_over(self.draft.setting, state, height, rank));
                vec![(DeviceCopy::Own(node), if band.is_whole() { self.all(node) } else { self.everywhere(sent) })]
            }
            Action::Send { node, band } if self.draft.ranks() > 1 => {
                vec![(DeviceCopy::Gathered(node), self.everywhere(|_| parts(band)))]
            }
            Action::Gather { node, band, direct: true } => {
                let strip = |rank| self.draft.setting.partition.strip(rank, self.height(node));
                let read = |rank| band.of(strip(rank));
                vec![(DeviceCopy::Own(node), if band.is_whole() { self.all(node) } else { self.everywhere(read) })]
            }
            Action::Send { node, band } => {
                let height = self.height(node);
                vec![(DeviceCopy::Own(node), self.everywhere(|_| band.of(Window::whole(height))))]
            }
            Action::Upload { .. }
            | Action::UploadStrip { .. }
            | Action::Map(_)
            | Action::Gather { .. }
            | Action::Deliver(_) => Vec::new(),
            Action::Download(node)
            | Action::Unmap(node)
            | Action::Finish(node)
            | Action::Evict(node)
            | Action::Sum(node)
            | Action::Collect(node)
            | Action::Free(node)
            | Action::Scatter { node, .. }
            | Action::Replicate { node, .. }
            | Action::Exchange { node, .. }
            | Action::Begin { node, .. }
            | Action::Fetch { node, .. } => vec![(DeviceCopy::Own(node), self.all(node))],
        }
    }

    fn writes(&mut self, step: usize, action: Action) {
        let (copy, written, first) = match action {
            Action::Upload { node, band } => (DeviceCopy::Own(node), self.uploaded(node, band), band.begins()),
            Action::Gather { node, band, direct: true } => {
                (DeviceCopy::Gathered(node), self.everywhere(|_| parts(band)), band.begins())
            }
            Action::Launch { node, rows, part, .. } => {
                let all =
                    |rank| self.computed(node, rows, part, rank).into_iter().fold(Window::new(0, 0), Window::union);
                // The edges complete a result even if they are empty.
                let whole = self.draft.graph.node(node).op.goes_over_input() || matches!(part, LaunchPart::Edges(_));
                let written = if whole { self.all(node) } else { self.everywhere(all) };
                (DeviceCopy::Own(node), written, part.begins())
            }
            Action::UploadStrip { node, halo, band } => {
                let strip = |rank| self.draft.setting.partition.strip(rank, self.height(node));
                let rows = |rank| band.of(with_room(strip(rank), halo, self.height(node)));
                let all = band.is_whole() || self.height(node) == 0;
                (DeviceCopy::Own(node), if all { self.all(node) } else { self.everywhere(rows) }, band.begins())
            }
            // These steps are in order with all reads of a device's copy, except downloads.
            Action::Scatter { node, .. }
            | Action::Replicate { node, .. }
            | Action::Exchange { node, .. }
            | Action::Begin { node, .. } => (DeviceCopy::Own(node), self.all(node), true),
            Action::Finish(node) => (DeviceCopy::Own(node), self.all(node), false),
            Action::Free(node) | Action::Evict(node) | Action::Unmap(node) => {
                self.writers.remove(&DeviceCopy::Own(node));
                return;
            }
            Action::Map(_)
            | Action::Download(_)
            | Action::Fetch { .. }
            | Action::Sum(_)
            | Action::Gather { .. }
            | Action::Collect(_)
            | Action::Deliver(_)
            | Action::Send { .. } => return,
        };
        let writers = self.writers.entry(copy).or_default();
        if first {
            writers.clear();
        }
        writers.push((step, written));
    }

    /// The rows of a band on each rank, of an image that each rank uploads as far as its host has it.
    fn uploaded(&self, node: NodeId, band: Band) -> Windows {
        if band.is_whole() || self.height(node) == 0 {
            self.all(node)
        } else {
            self.everywhere(|_| band.of(Window::whole(self.height(node))))
        }
    }
}
