//! Plans as text: what `--explain` prints.

use std::fmt;

use super::finished::Plan;
use super::movement::{BLOCK, Link, movement, with_room};
use super::setting::Want;
use super::state::Placement;
use super::step::{Action, Part, Rows};
use crate::ir::graph::NodeId;
use crate::shape::Window;

/// What the words of a plan mean; those that it uses end its text.
const LEGEND: [(&str, &str); 15] = [
    ("upload", "copy from the host's memory to the device's"),
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
    ("free", "nobody needs the image any more"),
    ("[...]", "why the step cannot be left out, or the line of the program that asked for it"),
];

/// Bytes for people: in millions, or as they are if they are few.
fn size(bytes: usize) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..100_000 => format!("{:.3} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

impl Plan {
    /// The text of one action, as in the plan's display.
    pub fn describe(&self, action: &Action) -> String {
        let what = |id: NodeId| {
            let n = self.graph.node(id);
            format!("{id} {} {}", n.shape, n.dtype)
        };
        let way = |direct| if direct { ", from device to device" } else { "" };
        match *action {
            Action::Upload(n) => format!("upload     {}", what(n)),
            Action::UploadStrip { node, halo } if halo.is_none() => format!("upload     each strip of {}", what(node)),
            Action::UploadStrip { node, halo } => {
                format!("upload     each strip of {}, and {halo} rows around it", what(node))
            }
            Action::Download(n) => format!("download   {}", what(n)),
            Action::Scatter { node, direct, .. } => format!("scatter    {}{}", what(node), way(direct)),
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
                let inputs: Vec<String> = n.inputs.iter().map(NodeId::to_string).collect();
                let rows = match rows {
                    Rows::Strip(extend) if !extend.is_none() => format!(", and {extend} rows around the strip"),
                    _ => String::new(),
                };
                let part = match part {
                    Part::Whole => "",
                    Part::Interior(_) => "interior of ",
                    Part::Edges(_) => "edges of ",
                };
                format!("launch     {part}{} = {} ({}){rows}", what(node), n.op.name(), inputs.join(", "))
            }
            Action::Evict(n) => format!("evict      {} from the device", what(n)),
            Action::Sum(n) => format!("sum        {} over ranks", what(n)),
            Action::Gather(n) | Action::Collect(n) => format!("gather     {}", what(n)),
            Action::Deliver(n) => format!("deliver    {}", what(n)),
            Action::Send(n) => format!("send       {}", what(n)),
            Action::Free(n) => format!("free       {}", what(n)),
        }
    }
}

/// Follows a plan: which rows of each image rank 0 has, and what lies in its device's memory.
pub(super) struct Replay<'a> {
    plan: &'a Plan,
    rows: Vec<usize>,
    on_device: Vec<bool>,
    /// Images that rank 0 alone has.
    on_root: Vec<bool>,
    /// Bytes of copies that launches read, with the launch.
    copies: Vec<(NodeId, usize)>,
    most: usize,
    /// Whether what ranks send is counted.
    counts: bool,
}

impl<'a> Replay<'a> {
    pub(super) fn new(plan: &'a Plan, counts: bool) -> Replay<'a> {
        let mut replay = Replay {
            plan,
            rows: vec![0; plan.graph.nodes.len()],
            on_device: vec![false; plan.graph.nodes.len()],
            on_root: vec![false; plan.graph.nodes.len()],
            copies: Vec::new(),
            most: 0,
            counts,
        };
        for (i, state) in plan.initial.iter().enumerate() {
            let (Some(state), height) = (state, plan.graph.nodes[i].shape.height) else { continue };
            replay.rows[i] = match state.placement {
                Placement::Strips(halo) => with_room(replay.strip(height), halo, height).len(),
                Placement::Root | Placement::Replicated => height,
            };
            replay.on_root[i] = state.placement == Placement::Root && plan.setting.partition.ranks() > 1;
            replay.on_device[i] = state.residency.device();
        }
        replay.look();
        replay
    }

    fn strip(&self, height: usize) -> Window {
        self.plan.setting.partition.strip(0, height)
    }

    /// Bytes of what rank 0 has of an image.
    fn bytes(&self, n: NodeId) -> usize {
        let node = self.plan.graph.node(n);
        self.rows[n.0] * node.shape.width * node.shape.channels * node.dtype.size()
    }

    fn look(&mut self) {
        let images = (0..self.rows.len()).filter(|i| self.on_device[*i]).map(|i| self.bytes(NodeId(i)));
        self.most = self.most.max(images.sum::<usize>() + self.copies.iter().map(|(_, b)| b).sum::<usize>());
    }

    /// Bytes that all ranks send each other in a step.
    fn sent(&self, action: Action, n: NodeId) -> Option<usize> {
        if !self.counts {
            return None;
        }
        let moved = movement(&self.plan.graph, &self.plan.setting.partition, action, self.on_root[n.0], BLOCK);
        moved.map(|m| m.traffic(Link::default()).total.bytes)
    }

    /// Carries a step out; the bytes that it moves, makes or gives up.
    pub(super) fn step(&mut self, action: Action) -> Option<usize> {
        let (graph, unified) = (&self.plan.graph, self.plan.setting.unified);
        let height = |n: NodeId| graph.node(n).shape.height;
        let bytes = match action {
            Action::Upload(n) => {
                self.on_device[n.0] = true;
                Some(self.bytes(n))
            }
            Action::UploadStrip { node, halo } => {
                self.rows[node.0] = with_room(self.strip(height(node)), halo, height(node)).len();
                self.on_device[node.0] = true;
                Some(self.bytes(node))
            }
            Action::Download(n) | Action::Deliver(n) | Action::Send(n) => Some(self.bytes(n)),
            Action::Evict(n) | Action::Free(n) => {
                self.on_device[n.0] = false;
                Some(self.bytes(n))
            }
            Action::Scatter { node, room, direct } => {
                let sent = self.sent(action, node);
                self.rows[node.0] = with_room(self.strip(height(node)), room, height(node)).len();
                (self.on_device[node.0], self.on_root[node.0]) = (direct || unified, false);
                sent
            }
            Action::Replicate { node, direct } => {
                let sent = self.sent(action, node);
                self.rows[node.0] = height(node);
                (self.on_device[node.0], self.on_root[node.0]) = (direct || unified, false);
                sent
            }
            Action::Exchange { node, halo, .. } | Action::Begin { node, halo, .. } => {
                let rows = with_room(self.strip(height(node)), halo, height(node)).len();
                self.rows[node.0] = self.rows[node.0].max(rows);
                self.sent(action, node)
            }
            Action::Finish(_) => None,
            Action::Fetch { node, temp, rows, .. } => {
                let (reader, source) = (graph.node(temp.consumer), graph.node(node));
                let computed = rows.window(&self.plan.setting.partition, 0, reader.shape.height);
                let read = reader.op.footprint(temp.input, computed, reader.shape, source.shape).len();
                let row = source.shape.width * source.shape.channels * source.dtype.size();
                self.copies.push((temp.consumer, read * row));
                self.sent(action, node)
            }
            Action::Launch { node, rows, room, .. } => {
                self.rows[node.0] = match rows {
                    Rows::All => height(node),
                    Rows::Strip(extend) => with_room(self.strip(height(node)), room.max(extend), height(node)).len(),
                };
                self.on_device[node.0] = true;
                Some(self.bytes(node))
            }
            Action::Sum(n) => {
                self.on_device[n.0] = unified;
                Some(2 * (self.plan.setting.partition.ranks() - 1) * self.bytes(n))
            }
            Action::Gather(n) => self.sent(action, n),
            Action::Collect(n) => {
                let sent = self.sent(action, n);
                self.rows[n.0] = height(n);
                (self.on_device[n.0], self.on_root[n.0]) = (unified, true);
                sent
            }
        };
        self.look();
        if let Action::Launch { node, part: Part::Whole | Part::Edges(_), .. } = action {
            self.copies.retain(|(reader, _)| *reader != node);
        }
        bytes
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut replay = Replay::new(self, true);
        let mut used = vec!["[...]"];
        for (i, s) in self.steps.iter().enumerate() {
            let text = self.describe(&s.action);
            write!(f, "{i:4}  {text}")?;
            if let Some(bytes) = replay.step(s.action) {
                write!(f, ", {}", size(bytes))?;
            }
            match s.action {
                _ if !s.why.is_empty() => writeln!(f, "    [{}]", s.why)?,
                Action::Launch { node, .. } => writeln!(f, "    [asked for at {}]", self.graph.node(node).site)?,
                _ => writeln!(f)?,
            }
            used.extend(LEGEND.iter().map(|(word, _)| *word).filter(|word| text.split(' ').next() == Some(word)));
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
                Want::Keep => continue,
                Want::Root if several => "on the host of rank 0",
                Want::Everyone if several => "on the host of every rank",
                Want::Root | Want::Everyone => "on the host",
                Want::Handed => "by somebody who waits for it",
            };
            writeln!(f, "      {root} is wanted {place}")?;
        }
        let whose = if several { " of rank 0" } else { "" };
        writeln!(f, "      {} of images at most at once in the memory of the device{whose}", size(replay.most))?;
        let between = if several { "; between ranks, what all of them send together" } else { "" };
        writeln!(
            f,
            "      %3 400x600x3 u8   image 3 of this plan: rows x columns x channels (if several), type of pixels"
        )?;
        writeln!(f, "      MB                millions of bytes of the image{whose}{between}")?;
        for (word, meaning) in LEGEND.iter().filter(|(word, _)| used.contains(word)) {
            writeln!(f, "      {word:16}  {meaning}")?;
        }
        Ok(())
    }
}
