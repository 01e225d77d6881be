//! The pixels that each step moves between ranks: pure data, derived from the plan.
//!
//! Each rank *has* a range of rows and *requires* others. Every rank derives both from the step, so messages
//! carry only pixels, and the movements of a plan on any number of ranks are known without running it.
//!
//! Design: "Redistribution" in `docs/design/plan.md`.

use super::launches::LaunchedNodes;
use super::partition::Partition;
use super::state::Halo;
use super::step::{Action, ComputedRows, LaunchPart};
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::{Distribution, ImageExtent, Kernel, KernelWork};
use crate::machine::OverBus;
pub use crate::machine::{Link, LinkLevel, Load};
use horus_base::shape::Window;

/// Rows per column range in a footprint: a larger value fetches more unused pixels, a smaller one makes more
/// copies.
pub const BLOCK: usize = 16;

/// Alignment in bytes of the columns of a footprint, so that whole vectors are copied.
const VECTOR: usize = 16;

/// Pixels that a rank requires: columns `left..right` of image rows `rows`, to be stored from (possibly
/// virtual) row `at` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredPixels {
    /// Destination of the first row.
    pub at: isize,
    /// Rows of the image.
    pub rows: Window,
    /// First column.
    pub left: usize,
    /// Column after the last.
    pub right: usize,
}

impl RequiredPixels {
    /// Number of columns.
    pub fn width(&self) -> usize {
        self.right - self.left
    }

    /// Pixels of one plane.
    pub fn area(&self) -> usize {
        self.rows.len() * self.width()
    }

    /// The part that lies in rows `have`.
    pub fn within(&self, have: Window) -> Option<RequiredPixels> {
        let rows = self.rows.intersect(have);
        (!rows.is_empty()).then_some(RequiredPixels { at: self.at + (rows.start - self.rows.start), rows, ..*self })
    }
}

/// The size of rows in messages.
#[derive(Clone, Copy, Debug)]
pub struct RowSize {
    /// Pixels of one row of one plane.
    pub width: usize,
    /// Bytes of one pixel of one plane.
    pub pixel: usize,
    /// Number of planes.
    pub planes: usize,
}

/// The pixels that one step moves: the rows available on each rank, and the pixels that each rank requires.
#[derive(Clone, Debug)]
pub struct Movement {
    /// The size of rows.
    pub size: RowSize,
    /// By rank, in the order of rows. A row on several ranks is listed by one of them.
    pub have: Vec<Window>,
    /// By rank.
    pub required: Vec<Vec<RequiredPixels>>,
}

/// The messages of a step: in total, and on the ranks that send and receive most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// All ranks together.
    pub total: Load,
    /// Most bytes that one rank sends.
    pub sent: usize,
    /// Most bytes that one rank receives.
    pub received: usize,
    /// Predicted seconds on the rank that is busy longest.
    pub time: f64,
    /// All ranks together, by level of links.
    pub levels: [Load; LinkLevel::ALL.len()],
}

impl Traffic {
    /// Adds the traffic of a later step.
    pub fn add(&mut self, other: &Traffic) {
        let Traffic { total, sent, received, time, levels } = other;
        let all = self.levels.iter_mut().zip(levels).chain([(&mut self.total, total)]);
        for (load, more) in all {
            load.messages += more.messages;
            load.bytes += more.bytes;
        }
        self.sent += sent;
        self.received += received;
        self.time += time;
    }
}

impl Movement {
    /// The traffic of the movement, over equal links.
    pub fn traffic(&self, link: Link) -> Traffic {
        self.traffic_by(|_, _| (LinkLevel::Rack, link))
    }

    /// The traffic of the movement; `link` gives the link from one rank to another, and its level.
    pub(crate) fn traffic_by(&self, link: impl Fn(usize, usize) -> (LinkLevel, Link)) -> Traffic {
        let ranks = self.have.len();
        let (mut sending, mut receiving) = (vec![0.0; ranks], vec![0.0; ranks]);
        let (mut sent, mut received) = (vec![Load::default(); ranks], vec![Load::default(); ranks]);
        let mut levels = [Load::default(); LinkLevel::ALL.len()];
        self.messages(|giver, to, bytes| {
            let (level, link) = link(giver, to);
            let seconds = link.time(Load { messages: 1, bytes });
            sending[giver] += seconds;
            receiving[to] += seconds;
            for load in [&mut sent[giver], &mut received[to], &mut levels[level as usize]] {
                load.messages += 1;
                load.bytes += bytes;
            }
        });
        let busiest = sending.iter().chain(&receiving).copied().fold(0.0, f64::max);
        let sum = |f: fn(&Load) -> usize| sent.iter().map(f).sum();
        let most = |loads: &[Load]| loads.iter().map(|l| l.bytes).max().unwrap_or_default();
        Traffic {
            total: Load { messages: sum(|l| l.messages), bytes: sum(|l| l.bytes) },
            sent: most(&sent),
            received: most(&received),
            time: busiest,
            levels,
        }
    }

    /// Calls `each` with every message: its sender, its receiver and its bytes.
    fn messages(&self, mut each: impl FnMut(usize, usize, usize)) {
        let givers: Vec<(usize, Window)> =
            self.have.iter().copied().enumerate().filter(|(_, w)| !w.is_empty()).collect();
        let mut from = vec![0usize; self.have.len()];
        for (to, needs) in self.required.iter().enumerate() {
            let mut touched = Vec::new();
            for need in needs {
                let first = givers.partition_point(|(_, w)| w.end <= need.rows.start);
                for (giver, rows) in givers[first..].iter().take_while(|(_, w)| w.start < need.rows.end) {
                    if *giver != to
                        && let Some(piece) = need.within(*rows)
                    {
                        if from[*giver] == 0 {
                            touched.push(*giver);
                        }
                        from[*giver] += piece.area() * self.size.planes * self.size.pixel;
                    }
                }
            }
            for giver in touched {
                each(giver, to, std::mem::take(&mut from[giver]));
            }
        }
    }
}

/// The rows for which rank `rank` launches `n`: the rows of `n` that it computes (for a histogram, the rows
/// of the input that it counts).
pub fn rows_of(graph: &Graph<Kernel>, partition: &Partition, n: NodeId, rank: usize, rows: ComputedRows) -> Window {
    let node = graph.node(n);
    match (node.op.distribution(), rows) {
        (Distribution::Partial(_), _) => partition.strip(rank, graph.node(node.inputs[0]).shape.height),
        (Distribution::Whole, ComputedRows::All | ComputedRows::Strip(_)) => Window::whole(node.shape.height),
        (Distribution::Rows, _) | (Distribution::Whole, ComputedRows::On(_)) => {
            rows.window(partition, rank, node.shape.height)
        }
    }
}

/// The rows of one part of a launch. Edges are two windows; any window may be empty.
pub(crate) fn windows_of(
    graph: &Graph<Kernel>,
    partition: &Partition,
    n: NodeId,
    rank: usize,
    rows: ComputedRows,
    part: LaunchPart,
) -> [Window; 2] {
    match part {
        LaunchPart::Whole => [rows_of(graph, partition, n, rank, rows), Window::new(0, 0)],
        part => part.windows(rows, partition, rank, graph.node(n).shape.height),
    }
}

/// The work of a launch of `n` for these rows.
pub fn work_of(graph: &Graph<Kernel>, launched: &LaunchedNodes<'_>, rows: Window) -> KernelWork {
    let extent = |n: NodeId| (graph.node(n).shape, graph.node(n).dtype);
    let inputs: Vec<ImageExtent> = launched.inputs.iter().map(|i| extent(*i)).collect();
    launched.kernel.work(&inputs, extent(launched.nodes[0]), rows)
}

/// The traffic of a launch for these rows with the host's memory, where the `mapped` images are.
pub fn over_bus(
    graph: &Graph<Kernel>,
    launched: &LaunchedNodes<'_>,
    rows: Window,
    mapped: impl Fn(NodeId) -> bool,
) -> OverBus {
    let (kernel, results) = (launched.kernel, launched.nodes);
    let mut bus = OverBus::NONE;
    for (i, source) in launched.inputs.iter().enumerate().filter(|(_, source)| mapped(**source)) {
        let extent = (graph.node(*source).shape, graph.node(*source).dtype);
        let result = graph.node(results[0]);
        let times = kernel.times_read(i, (result.shape, result.dtype), rows.len());
        let bytes = times * kernel.bytes_read(i, rows, result.shape, extent) as f64;
        let in_pieces = matches!(kernel, Kernel::Whole(operation) if operation.reads_in_pieces(i));
        *(if in_pieces { &mut bus.pieces } else { &mut bus.read }) += bytes;
    }
    for node in results.iter().filter(|n| mapped(**n)).map(|n| graph.node(*n)) {
        let written = rows.clipped(node.shape.height).len() * node.shape.line() * node.shape.planes();
        bus.written += (written * node.dtype.size()) as f64;
    }
    bus
}

/// `strip` grown by the halo that memory is reserved for; it extends beyond the image only for a wrapped
/// halo.
pub fn with_room(strip: Window, room: Halo, height: usize) -> Window {
    let grown = strip.grown(room.up, room.down);
    if room.wrap { grown } else { grown.intersect(Window::whole(height)).union(strip) }
}

/// The movement of `action`; `None` for an action that involves no other rank, and for a sum. `owner`: the only
/// rank that has the image before. `block` is the number of rows that share a range of columns in a footprint
/// ([`BLOCK`], or more for an estimate).
pub fn movement(
    graph: &Graph<Kernel>,
    partition: &Partition,
    action: Action,
    owner: Option<usize>,
    block: usize,
) -> Option<Movement> {
    let (Action::Scatter { node, .. }
    | Action::Replicate { node, .. }
    | Action::Exchange { node, .. }
    | Action::Begin { node, .. }
    | Action::Fetch { node, .. }
    | Action::Gather { node, .. }
    | Action::Collect(node)) = action
    else {
        return None;
    };
    let n = graph.node(node);
    let (height, width) = (n.shape.height, n.shape.width);
    let strip = |rank| partition.strip(rank, height);
    let needs = |rank: usize| match action {
        // A rank without rows needs no rows around them.
        Action::Scatter { .. } if strip(rank).is_empty() => Vec::new(),
        Action::Scatter { halo, .. } => required_pixels(with_room(strip(rank), halo, height), height, width),
        Action::Exchange { halo, .. } | Action::Begin { halo, .. } => {
            needs_around(strip(rank), with_room(strip(rank), halo, height), height, width)
        }
        Action::Fetch { temp, rows, .. } => {
            let (consumer, rows) = (graph.node(temp.consumer), rows_of(graph, partition, temp.consumer, rank, rows));
            let whole =
                required_pixels(consumer.op.footprint(temp.input, rows, consumer.shape, n.shape), height, width);
            let columns = |block| consumer.op.columns(temp.input, rows, consumer.shape, n.shape, block);
            narrowed(&whole, block, (VECTOR / n.dtype.size()).max(1), columns)
        }
        Action::Gather { .. } | Action::Collect(_) if rank > 0 => Vec::new(),
        Action::Gather { band, .. } if !band.is_whole() => {
            let bands = (0..partition.ranks()).map(|rank| band.of(strip(rank)));
            bands.flat_map(|rows| required_pixels(rows, height, width)).collect()
        }
        _ => required_pixels(Window::whole(height), height, width),
    };
    let have = |rank| match owner {
        Some(owner) => Window::whole(if rank == owner { height } else { 0 }),
        None => strip(rank),
    };
    let ranks = 0..partition.ranks();
    Some(Movement {
        size: RowSize { width, pixel: n.shape.pixel_bytes(n.dtype), planes: n.shape.planes() },
        have: ranks.clone().map(have).collect(),
        required: ranks.map(needs).collect(),
    })
}

/// The part of each required rectangle that lies in `have`.
pub fn overlap(needs: &[RequiredPixels], have: Window) -> impl Iterator<Item = RequiredPixels> {
    needs.iter().filter_map(move |n| n.within(have))
}

/// The rows of a window; rows beyond the image are periodic copies.
pub fn required_pixels(window: Window, height: usize, width: usize) -> Vec<RequiredPixels> {
    let h = height.cast_signed();
    let mut out = Vec::new();
    let mut y = window.start;
    while y < window.end {
        let row = y.rem_euclid(h);
        let n = (h - row).min(window.end - y);
        out.push(RequiredPixels { at: y, rows: Window::new(row, row + n), left: 0, right: width });
        y += n;
    }
    out
}

/// The rows of `window` above and below `strip`.
pub fn needs_around(strip: Window, window: Window, height: usize, width: usize) -> Vec<RequiredPixels> {
    if strip.is_empty() {
        return Vec::new();
    }
    let mut out = required_pixels(Window::new(window.start, strip.start), height, width);
    out.extend(required_pixels(Window::new(strip.end, window.end), height, width));
    out
}

/// The required pixels restricted to the columns that are read. `columns` returns these for a block of rows,
/// or `None` for all columns. Ranges of columns are aligned to `grain`.
fn narrowed(
    needs: &[RequiredPixels],
    block: usize,
    grain: usize,
    columns: impl Fn(Window) -> Option<(usize, usize)>,
) -> Vec<RequiredPixels> {
    let mut out = Vec::new();
    for need in needs {
        let mut y = need.rows.start;
        while y < need.rows.end {
            let rows = Window::new(y, (y + block.max(1).cast_signed()).min(need.rows.end));
            match columns(rows) {
                None => {
                    out.extend(need.within(Window::new(y, need.rows.end)));
                    break;
                }
                Some((left, right)) if left < right => {
                    let (left, right) = (left / grain * grain, right.next_multiple_of(grain));
                    out.extend(need.within(rows).map(|n| RequiredPixels { left, right: right.min(n.right), ..n }));
                }
                Some(_) => {}
            }
            y = rows.end;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_split_at_periods() {
        let need = |at, start, end| RequiredPixels { at, rows: Window::new(start, end), left: 0, right: 7 };
        assert_eq!(required_pixels(Window::new(-3, 5), 4, 7), [need(-3, 1, 4), need(0, 0, 4), need(4, 0, 1)]);
        assert!(required_pixels(Window::new(2, 2), 4, 7).is_empty());
    }

    #[test]
    fn nothing_is_needed_around_an_empty_strip() {
        assert!(needs_around(Window::new(3, 3), Window::new(3, 3), 9, 1).is_empty());
        assert_eq!(needs_around(Window::new(3, 5), Window::new(2, 6), 9, 1).len(), 2);
    }

    #[test]
    fn traffic_counts_messages_between_pairs() {
        let size = RowSize { width: 10, pixel: 4, planes: 2 };
        let have = vec![Window::new(0, 4), Window::new(4, 4), Window::new(4, 8)];
        let whole = required_pixels(Window::whole(8), 8, 10);
        let all = Movement { size, have, required: vec![whole.clone(), whole, Vec::new()] };
        let t = all.traffic(Link { latency: 1.0, bandwidth: 320.0 });
        // Rank 0 gets 4 rows, rank 1 two times 4; a row has 80 bytes.
        assert_eq!(t.total, Load { messages: 3, bytes: 3 * 320 });
        assert_eq!((t.sent, t.received), (640, 640));
        assert!((t.time - 4.0).abs() < 1e-12, "two messages and twice 320 bytes: {t:?}");
    }
}
