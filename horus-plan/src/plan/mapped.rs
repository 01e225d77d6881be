//! Launches that use the host's memory in place of copies: the strategies Implicit and Hybrid of the thesis
//! (sections 5.5.1 and 5.6).
//!
//! Launches read an image in the host's page-locked memory, and write a result to the requester's memory. A
//! mapping lasts for one plan: between plans such an image is only on the host. It requires a single rank and
//! one run of launches during which no image is evicted. All other images are copied.

use std::ops::Range;

use super::draft::PlanDraft;
use super::launches::LaunchedNodes;
use super::movement::work_of;
use super::setting::{Mode, Transfer};
use super::state::Residency;
use super::step::{Action, PlanStep};
use crate::ir::graph::NodeId;
use crate::ir::kernel::{Distribution, Kernel};
use horus_base::shape::Window;

/// The choice of images that are mapped instead of copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MappingChoice {
    /// All images are copied: Explicit and Streams.
    Copied,
    /// Results are mapped: Hybrid.
    Results,
    /// Results and sources are mapped: Implicit.
    Both,
}

impl MappingChoice {
    /// The choices that a setting allows.
    pub(super) const fn considered(transfer: Transfer) -> &'static [MappingChoice] {
        match transfer {
            Transfer::Auto => &[MappingChoice::Copied, MappingChoice::Both, MappingChoice::Results],
            Transfer::Explicit | Transfer::Streams(_) => &[MappingChoice::Copied],
            Transfer::Implicit => &[MappingChoice::Both],
            Transfer::Hybrid(_) => &[MappingChoice::Results],
        }
    }
}

/// The images of a run that launches use in the host's memory.
#[derive(Clone, Debug, Default)]
pub(super) struct MappedImages {
    sources: Vec<NodeId>,
    results: Vec<NodeId>,
}

impl MappedImages {
    /// No images.
    pub(super) fn none() -> MappedImages {
        MappedImages::default()
    }

    /// The mappable images of a run.
    pub(super) fn found(draft: &PlanDraft<'_>, run: &Range<usize>, way: MappingChoice) -> MappedImages {
        let launches = |steps: &[PlanStep]| steps.iter().filter(|s| matches!(s.action, Action::Launch { .. })).count();
        let whole = launches(&draft.steps) == launches(&draft.steps[run.clone()]);
        if way == MappingChoice::Copied || draft.ranks() > 1 || draft.setting.mode == Mode::Naive || !whole {
            return MappedImages::none();
        }
        let steps = &draft.steps[run.clone()];
        // Tiles read most pixels several times; predictions of such reads over the bus are the least
        // accurate.
        let in_tiles = |n: NodeId| {
            steps.iter().any(|s| match &s.action {
                Action::Launch { node, .. } if draft.graph.node(*node).inputs.contains(&n) => {
                    let launched = LaunchedNodes::single(draft.graph, node);
                    let rows = Window::whole(draft.graph.node(*node).shape.height);
                    work_of(draft.graph, &launched, rows).family.is_tiled()
                }
                _ => false,
            })
        };
        let read = |n: NodeId| is_locked(draft, n) && (draft.setting.transfer != Transfer::Auto || !in_tiles(n));
        let sources = steps.iter().filter_map(|s| match s.action {
            Action::Upload { node, .. } if way == MappingChoice::Both && read(node) => Some(node),
            _ => None,
        });
        let launched = |n: NodeId| steps.iter().any(|s| matches!(s.action, Action::Launch { node, .. } if node == n));
        let results = steps.iter().filter_map(|s| match s.action {
            Action::Send { node, .. } if draft.setting.mappable.results && launched(node) => Some(node),
            _ => None,
        });
        // Each pixel is written once, and no result is empty.
        let written = |n: &NodeId| {
            let node = draft.graph.node(*n);
            node.op.distribution() == Distribution::Rows && !node.op.launches_without_rows() && !node.shape.is_empty()
        };
        MappedImages { sources: sources.collect(), results: results.filter(written).collect() }
    }

    /// Returns `true` if there are no such images.
    pub(super) fn is_none(&self) -> bool {
        self.sources.is_empty() && self.results.is_empty()
    }

    /// Returns `true` if an image is one of them.
    pub(super) fn holds(&self, n: NodeId) -> bool {
        self.sources.contains(&n) || self.results.contains(&n)
    }

    /// The steps of a run, with steps that map and unmap images. Freeing an image also unmaps it.
    pub(super) fn around(&self, steps: impl Iterator<Item = PlanStep>, freed: &[NodeId]) -> Vec<PlanStep> {
        let step = |action, why: &str| PlanStep { action, why: why.to_owned(), waits: Vec::new() };
        let mut all = Vec::new();
        all.extend(self.sources.iter().map(|n| step(Action::Map(*n), "launches read it where the host has it")));
        all.extend(self.results.iter().map(|n| step(Action::Map(*n), "launches write it where the host wants it")));
        all.extend(steps);
        let left = self.sources.iter().filter(|n| !freed.contains(n));
        all.extend(left.map(|n| step(Action::Unmap(*n), "the next plan chooses anew")));
        for n in &self.results {
            all.push(step(Action::Unmap(*n), "the result is wanted by somebody who waits for it"));
            all.push(step(Action::Deliver(*n), ""));
        }
        all
    }
}

/// Returns `true` if an image is in page-locked host memory when the plan begins, and is read there once.
fn is_locked(draft: &PlanDraft<'_>, n: NodeId) -> bool {
    let Kernel::Source(value) = &draft.graph.node(n).op else { return false };
    let given = draft.initial[n.0].is_some_and(|s| s.residency == Residency::Host);
    let uploads = draft.steps.iter().filter(|s| matches!(s.action, Action::Upload { node, .. } if node == n)).count();
    given && uploads == 1 && draft.setting.mappable.sources.contains(value)
}

impl Action {
    /// The image that a step unmaps.
    pub const fn unmaps(&self) -> Option<NodeId> {
        match self {
            Action::Unmap(n) => Some(*n),
            _ => None,
        }
    }
}
