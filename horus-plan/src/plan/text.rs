//! Plans as text, as `--explain` prints them.

use std::collections::HashSet;
use std::fmt;

use super::finished::Plan;
use super::follow::Follower;
use super::launches::{LaunchedNodes, PlannedLaunches};
use super::setting::ResultDelivery;
use super::step::{Action, Band, ComputedRows, LaunchPart};
use crate::ir::graph::NodeId;
use horus_base::error::Audience;

/// The meaning of the words of a plan.
const LEGEND: [(&str, &str); 18] = [
    ("upload", "copy from the host's memory to the device's"),
    ("map", "kernels read or write the image in the host's memory, over the bus"),
    ("unmap", "they do so no more, and a result is on the host"),
    ("download", "copy from the device's memory to the host's"),
    ("scatter", "rank 0 sends each rank its strip of rows"),
    ("replicate", "every rank gets the whole image"),
    ("exchange", "ranks send each other the rows beside their strips, so many (the depth) up and down"),
    ("begin", "the same, while other steps go on"),
    ("finish", "wait for that"),
    ("fetch", "a copy of the rows that one launch reads, made for it"),
    (
        "launch",
        "%3 = 2x mul + max (%1, %2): one kernel computes %3 from %1 and %2 by these operations, two of them mul",
    ),
    ("evict", "the device's copy goes, to make room"),
    ("sum", "all ranks add up their parts"),
    ("gather", "rank 0 gets all strips as one image"),
    ("deliver", "the program gets the pixels"),
    ("send", "copy from the device's memory to where the program wants the pixels"),
    ("free", "nobody needs the image any more"),
    ("[...]", "why the step cannot be left out, or the line of the program that asked for it"),
];

/// Formats bytes: in millions, or exactly if they are few.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..100_000 => format!("{:.3} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// The launch of several nodes to which step `i` belongs, and `true` if the step is its first.
fn together<'a>(launches: &PlannedLaunches<'a>, i: usize) -> Option<(bool, LaunchedNodes<'a>)> {
    let first = (0..=i).rev().find(|i| !launches.computes_before(*i))?;
    Some((first == i, launches.at(first).filter(|l| l.nodes.len() > 1)?))
}

impl Plan {
    /// The notation of a printed plan: each word, and its meaning.
    pub fn notation(&self) -> Vec<(&'static str, String)> {
        let launches = self.launches();
        let words = self.steps.iter().enumerate().map(|(i, step)| {
            let text = self.describe_action(&step.action, together(&launches, i));
            text.split(' ').next().unwrap_or_default().to_owned()
        });
        let used: HashSet<String> = words.collect();
        let mut all = vec![(
            "%3 400x600x3 u8",
            "image 3 of a plan: rows x columns x channels (if several), type of pixels".into(),
        )];
        all.push(if self.setting.partition.ranks() > 1 {
            ("MB", "millions of bytes of the image of rank 0; between ranks, what all of them send together".into())
        } else {
            ("MB", "millions of bytes of the image".into())
        });
        let meant = |word: &str| used.contains(word) || word == "[...]";
        all.extend(LEGEND.iter().filter(|(word, _)| meant(word)).map(|(word, meaning)| (*word, (*meaning).to_owned())));
        all
    }

    /// The text of one action, as in a printed plan.
    pub fn describe(&self, action: &Action) -> String {
        let joins = !self.graph.joined.is_empty() && matches!(action, Action::Launch { .. });
        let at = joins.then(|| self.steps.iter().position(|s| s.action == *action)).flatten();
        self.describe_action(action, at.and_then(|i| together(&self.launches(), i)))
    }

    /// The text of an action. For a launch of several nodes, it names all of them; the flag marks the first
    /// step.
    fn describe_action(&self, action: &Action, together: Option<(bool, LaunchedNodes<'_>)>) -> String {
        let what = |id: NodeId| {
            let n = self.graph.node(id);
            format!("{id} {} {}", n.shape, n.dtype)
        };
        let of = |band: Band| if band.is_whole() { String::new() } else { format!("rows {band} of ") };
        let way = |direct| if direct { ", from device to device" } else { "" };
        match *action {
            Action::Upload { node, band } => format!("upload     {}{}", of(band), what(node)),
            Action::UploadStrip { node, halo, band } => {
                let around = if halo.is_none() { String::new() } else { format!(", and {halo} rows around it") };
                format!("upload     {}each strip of {}{around}", of(band), what(node))
            }
            Action::Map(n) => format!("map        {}", what(n)),
            Action::Unmap(n) => format!("unmap      {}", what(n)),
            Action::Download(n) => format!("download   {}", what(n)),
            Action::Scatter { node, halo, direct, .. } => {
                let around =
                    if halo.is_none() { String::new() } else { format!(", and {halo} rows around each strip") };
                format!("scatter    {}{around}{}", what(node), way(direct))
            }
            Action::Replicate { node, direct } => format!("replicate  {}{}", what(node), way(direct)),
            Action::Exchange { node, halo, direct } => {
                format!("exchange   {} to depth {halo}{}", what(node), way(direct))
            }
            Action::Begin { node, halo, direct } => {
                format!("begin      exchange of {} to depth {halo}{}", what(node), way(direct))
            }
            Action::Finish(n) => format!("finish     exchange of {}", what(n)),
            Action::Fetch { node, temp, direct, .. } => {
                format!("fetch      rows of {} for {}{}", what(node), temp.consumer, way(direct))
            }
            Action::Launch { node, rows, part, .. } => {
                let n = self.graph.node(node);
                let rows = match rows {
                    ComputedRows::Strip(extend) if !extend.is_none() => format!(", and {extend} rows around the strip"),
                    ComputedRows::On(rank) => format!(", on rank {rank} alone"),
                    _ => String::new(),
                };
                let part = match part {
                    LaunchPart::Whole => String::new(),
                    LaunchPart::Interior(_) => "interior of ".into(),
                    LaunchPart::Edges(_) => "edges of ".into(),
                    LaunchPart::Band(band) => of(band),
                };
                let list = |all: &[NodeId]| all.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ");
                match together {
                    Some((true, launched)) => {
                        let others: String =
                            launched.nodes[1..].iter().map(|n| format!(" with {}", what(*n))).collect();
                        let (name, inputs) = (launched.kernel.name(), list(launched.inputs));
                        format!("launch     {part}{}{others} = {name} ({inputs}){rows}", what(node))
                    }
                    Some((false, launched)) => {
                        format!("launch     {part}{}, by the launch of {}", what(node), launched.nodes[0])
                    }
                    None => {
                        let (name, inputs) = (n.op.name(), list(&n.inputs));
                        format!("launch     {part}{} = {name} ({inputs}){rows}", what(node))
                    }
                }
            }
            Action::Evict(n) => format!("evict      {} from the device", what(n)),
            Action::Sum(n) => format!("sum        {} over ranks", what(n)),
            Action::Gather { node, band, direct } => format!("gather     {}{}{}", of(band), what(node), way(direct)),
            Action::Collect(n) => format!("gather     {}", what(n)),
            Action::Deliver(n) => format!("deliver    {}", what(n)),
            Action::Send { node, band } => format!("send       {}{}", of(band), what(node)),
            Action::Free(n) => format!("free       {}", what(n)),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut follower, launches) = (Follower::new(self, 0, true), self.launches());
        for (i, s) in self.steps.iter().enumerate() {
            let text = self.describe_action(&s.action, together(&launches, i));
            write!(f, "{i:4}  {text}")?;
            if let Some(bytes) = follower.step(s.action) {
                write!(f, ", {}", size(bytes))?;
            }
            match s.action {
                _ if !s.why.is_empty() => writeln!(f, "    [{}]", s.why)?,
                Action::Launch { node, .. } if Audience::now() != Audience::Command => {
                    writeln!(f, "    [asked for at {}]", self.graph.node(node).site)?
                }
                _ => writeln!(f)?,
            }
        }
        let c = self.counts();
        writeln!(
            f,
            "      {} launches, {} uploads, {} downloads, {} scatters, {} gathers, {} exchanges, {} replications, {} fetches",
            c.launches, c.uploads, c.downloads, c.scatters, c.gathers, c.exchanges, c.replications, c.footprints
        )?;
        let several = self.setting.partition.ranks() > 1;
        for (root, want) in self.graph.roots.iter().zip(&self.wants) {
            let place = match want {
                ResultDelivery::Keep => continue,
                ResultDelivery::Root if several => "on the host of rank 0",
                ResultDelivery::Everyone if several => "on the host of every rank",
                ResultDelivery::Distributed if several => "on the hosts of the ranks that have its rows",
                ResultDelivery::Root | ResultDelivery::Everyone | ResultDelivery::Distributed => "on the host",
                ResultDelivery::Requester => "by somebody who waits for it",
            };
            writeln!(f, "      {root} is wanted {place}")?;
        }
        let whose = if several { " of rank 0" } else { "" };
        writeln!(f, "      {} of images at most at once in the memory of the device{whose}", size(follower.most))
    }
}
