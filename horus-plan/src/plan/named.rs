//! Steps by the names of the user's calls: what a page about a run shows.

use super::finished::Plan;
use super::follow::Follower;
use super::launches::LaunchedNodes;
use super::step::{Action, ComputedRows, LaunchPart};
use super::text::size;
use crate::ir::graph::NodeId;
use horus_base::error::RecordedCall;

/// Maximum number of calls in the name of a launch.
const MOST_CALLS: usize = 12;

/// A step of a plan, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStep {
    /// Its number in the plan.
    pub step: usize,
    /// The word of printed plans, such as `upload`, and what limits the step to some rows.
    pub action: String,
    /// The calls that a launch computes, or the call that made the image: `gauss_xy, detectors.rs:66`.
    pub calls: Vec<String>,
    /// Shape and pixel type.
    pub image: String,
    /// The bytes that it moves, creates or frees.
    pub size: String,
    /// The reason.
    pub why: String,
    /// Set if it moves pixels.
    pub is_transfer: bool,
}

impl Plan {
    /// The calls that the kernel of a node computes, in the order of recording.
    pub fn calls(&self, node: NodeId) -> &[RecordedCall] {
        let own = std::slice::from_ref(&self.graph.node(node).site);
        self.graph.calls.get(node.0).filter(|calls| !calls.is_empty()).map_or(own, Vec::as_slice)
    }

    /// The steps, without those that an earlier launch computes.
    pub fn named_steps(&self) -> Vec<NamedStep> {
        let (mut follower, launches) = (Follower::new(self, 0, true), self.launches());
        let mut named = Vec::with_capacity(self.steps.len());
        for (step, planned) in self.steps.iter().enumerate() {
            let bytes = follower.step(planned.action);
            if launches.computes_before(step) {
                continue;
            }
            let (action, is_transfer) = word(&planned.action);
            named.push(NamedStep {
                step,
                action,
                calls: self.titles(&planned.action, launches.at(step)),
                image: self.image(planned.action.node()),
                size: bytes.map(size).unwrap_or_default(),
                why: self.name_images(&planned.why),
                is_transfer,
            });
        }
        named
    }

    /// The name of a step in one line, such as `launch gauss_xy, detectors.rs:66: 384x512 f32`.
    pub fn name_step(&self, action: &Action) -> String {
        let joined = matches!(action, Action::Launch { .. })
            .then(|| self.graph.joined.iter().find(|joined| joined.nodes.contains(&action.node())))
            .flatten()
            .map(|joined| LaunchedNodes { nodes: &joined.nodes, kernel: &joined.op, inputs: &joined.inputs });
        let mut calls = self.titles(action, joined);
        let more = calls.len().saturating_sub(MOST_CALLS);
        calls.truncate(MOST_CALLS);
        let more = if more > 0 { format!(" + {more} more") } else { String::new() };
        format!("{} {}{more}: {}", word(action).0, calls.join(" + "), self.image(action.node()))
    }

    /// A reason in which images have the names of their calls instead of numbers and kernels.
    pub(super) fn name_images(&self, why: &str) -> String {
        let mut parts = why.split('%');
        let mut named = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = part.split_at(digits);
            match number.parse().ok().filter(|id| *id < self.graph.nodes.len()).map(|id| self.graph.node(NodeId(id))) {
                Some(node) => {
                    named += &node.site.title();
                    named += rest.strip_prefix(&format!(" {}", node.op.name())).unwrap_or(rest);
                }
                None => named.extend(["%", part]),
            }
        }
        named
    }

    /// Shape and type of an image.
    pub(super) fn image(&self, node: NodeId) -> String {
        let node = self.graph.node(node);
        format!("{} {}", node.shape, node.dtype)
    }

    /// The calls of a step, equal ones together.
    fn titles(&self, action: &Action, launched: Option<LaunchedNodes<'_>>) -> Vec<String> {
        let node = action.node();
        if !matches!(action, Action::Launch { .. }) {
            return vec![self.graph.node(node).site.title()];
        }
        let nodes = launched.map_or(std::slice::from_ref(&node), |launched| launched.nodes);
        let mut titles: Vec<(String, usize)> = Vec::new();
        for call in nodes.iter().flat_map(|node| self.calls(*node)) {
            let title = call.title();
            match titles.iter_mut().find(|(known, _)| *known == title) {
                Some((_, count)) => *count += 1,
                None => titles.push((title, 1)),
            }
        }
        let counted = |(title, count)| if count > 1 { format!("{count}x {title}") } else { title };
        titles.into_iter().map(counted).collect()
    }
}

/// The word of a step with its rows, and `true` if it moves pixels.
pub(super) fn word(action: &Action) -> (String, bool) {
    let rows = |band: super::step::Band| if band.is_whole() { String::new() } else { format!(", rows {band}") };
    let word = match *action {
        Action::Upload { band, .. } => format!("upload{}", rows(band)),
        Action::UploadStrip { band, .. } => format!("upload strips{}", rows(band)),
        Action::Map(_) => "map".into(),
        Action::Unmap(_) => "unmap".into(),
        Action::Download(_) => "download".into(),
        Action::Scatter { .. } => "scatter".into(),
        Action::Replicate { .. } => "replicate".into(),
        Action::Exchange { halo, .. } | Action::Begin { halo, .. } => format!("exchange to depth {halo}"),
        Action::Finish(_) => "finish exchange".into(),
        Action::Fetch { .. } => "fetch".into(),
        Action::Launch { rows: ComputedRows::On(rank), .. } => format!("launch on rank {rank}"),
        Action::Launch { part: LaunchPart::Interior(_), .. } => "launch, interior".into(),
        Action::Launch { part: LaunchPart::Edges(_), .. } => "launch, edges".into(),
        Action::Launch { part: LaunchPart::Band(band), .. } => format!("launch{}", rows(band)),
        Action::Launch { .. } => "launch".into(),
        Action::Evict(_) => "evict".into(),
        Action::Sum(_) => "sum over ranks".into(),
        Action::Gather { band, .. } => format!("gather{}", rows(band)),
        Action::Collect(_) => "gather".into(),
        Action::Deliver(_) => "deliver".into(),
        Action::Send { band, .. } => format!("send{}", rows(band)),
        Action::Free(_) => "free".into(),
    };
    (word, !matches!(action, Action::Launch { .. } | Action::Free(_) | Action::Finish(_)))
}
