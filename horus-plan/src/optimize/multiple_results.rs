//! Several results of one launch: kernels of one shape that read, filter or compute the same are joined where
//! that is predicted to be faster. A pixel operation may read the result of another; values read only within
//! a group are not stored.
//!
//! The graph has a node for each result and records groups in addition ([`Graph::joined`]); the nodes of a
//! group become adjacent. Operation, inputs and readers of a node do not change, so a plan can still compute
//! each node alone. Adjacent launches of a group for the same rows become one launch (`Plan::launches`). If
//! bands or copies split a group, a plan without joined kernels is used if it is predicted to be as fast.

mod runs;

use std::cell::Cell;

use super::OptimizationTarget;
use super::fuse::{MAX_FILTERS, MAX_INPUTS, MAX_MEMBERS, MAX_PLANES, MAX_STAGES, SMALL_FILTER, weight};
use crate::ir::graph::{Graph, Joined, Node, NodeId};
use crate::ir::kernel::{FilterKind, ImageExtent, JoinPart, Kernel, KernelWork, Leaf, LeafOp, MapKernel};
use horus_base::shape::Window;
use runs::{AHEAD, JOINED};

/// Maximum number of results of a launch: each result takes registers of every GPU thread until it is stored.
const MOST: usize = 8;
/// Maximum number of kernels with which one kernel is tried, which bounds the time of planning.
const TRIED: usize = 8;
/// Distance in the graph within which readers of other levels must come, for a launch to store values for
/// them.
const SOON: usize = 16;
/// Minimum saving, as a fraction of the work of a launch: a row that two kernels read is no reason to join
/// them.
const PART: f64 = 1.0 / 16.0;

/// Joins kernels that share inputs.
pub fn join(graph: Graph<Kernel>, aim: &OptimizationTarget<'_>) -> Graph<Kernel> {
    if !aim.joined {
        return graph;
    }
    let mut one_by_one = KernelGroups::new(&graph, aim);
    one_by_one.enter_all();
    let mut runs = KernelGroups::new(&graph, aim);
    if !runs.enter_runs() {
        return one_by_one.arranged();
    }
    runs.enter_all();
    if runs.seconds() < one_by_one.seconds() { runs.arranged() } else { one_by_one.arranged() }
}

fn map(node: &Node<Kernel>) -> Option<&MapKernel> {
    match &node.op {
        Kernel::Map(m) if !m.woven => Some(m),
        _ => None,
    }
}

/// Kernels computed together.
#[derive(Clone)]
struct KernelGroup {
    /// The nodes, in the order of the graph.
    nodes: Vec<NodeId>,
    /// Nodes whose results are stored; only nodes of the group read the others.
    stored: Vec<NodeId>,
    whole: MapKernel,
    inputs: Vec<NodeId>,
    cost: LaunchCost,
}

impl KernelGroup {
    fn has(&self, id: NodeId) -> bool {
        self.nodes.binary_search(&id).is_ok()
    }
}

/// The work and the predicted time of a launch.
#[derive(Clone, Copy)]
struct LaunchCost {
    work: KernelWork,
    seconds: f64,
}

/// For each node, a node at or before it from which to search for a *floor*: a node that no group spans, that
/// is, no group starts before it and continues after it. A floor points to itself. Growing groups only remove
/// floors, so that path compression makes searches nearly free.
struct Floors(Vec<Cell<NodeId>>);

impl Floors {
    fn new(nodes: usize) -> Floors {
        Floors((0..nodes).map(|n| Cell::new(NodeId(n))).collect())
    }

    /// The last floor at or before `n`: nodes before it depend on no node after it, not even through groups.
    fn below(&self, n: NodeId) -> NodeId {
        let mut at = n;
        while self.0[at.0].get() != at {
            let next = self.0[at.0].get();
            self.0[at.0].set(self.0[next.0].get());
            at = next;
        }
        at
    }

    /// Removes the floors that a group of these nodes (in order) spans.
    fn cover(&self, nodes: &[NodeId]) {
        let Some((first, last)) = nodes.first().zip(nodes.last()) else { return };
        let mut at = self.below(*last);
        while at > *first {
            self.0[at.0].set(NodeId(at.0 - 1));
            at = self.below(at);
        }
    }
}

struct KernelGroups<'a> {
    graph: &'a Graph<Kernel>,
    aim: &'a OptimizationTarget<'a>,
    readers: Vec<Vec<NodeId>>,
    wanted: Vec<bool>,
    /// Nodes that read only the pixel itself, possibly of other levels.
    pixelwise: Vec<bool>,
    groups: Vec<KernelGroup>,
    /// Group of each node.
    of: Vec<Option<usize>>,
    /// The floors between groups.
    floors: Floors,
    /// For each node, the last search that visited it, and the number of searches.
    seen: Vec<Cell<usize>>,
    searches: Cell<usize>,
    /// Nodes visited and joined so far.
    effort: Cell<usize>,
}

impl<'a> KernelGroups<'a> {
    fn new(graph: &'a Graph<Kernel>, aim: &'a OptimizationTarget<'a>) -> KernelGroups<'a> {
        let n = graph.nodes.len();
        let mut wanted = vec![false; n];
        graph.roots.iter().for_each(|r| wanted[r.0] = true);
        let pixelwise = graph.nodes.iter().map(runs::is_pixelwise).collect();
        let (readers, groups, of) = (graph.consumers(), Vec::new(), vec![None; n]);
        let (floors, seen, searches) = (Floors::new(n), vec![Cell::new(0); n], Cell::new(0));
        KernelGroups {
            graph,
            aim,
            readers,
            wanted,
            pixelwise,
            groups,
            of,
            floors,
            seen,
            searches,
            effort: Cell::new(0),
        }
    }

    fn takes(&self, effort: usize) {
        self.effort.set(self.effort.get() + effort);
    }

    /// Puts all remaining nodes into groups.
    fn enter_all(&mut self) {
        for id in (0..self.graph.nodes.len()).map(NodeId) {
            let node = self.graph.node(id);
            if self.of[id.0].is_none() && map(node).is_some() && !node.shape.is_empty() {
                self.enter(id);
            }
        }
    }

    /// Total time of all launches.
    fn seconds(&self) -> f64 {
        self.groups.iter().map(|g| g.cost.seconds).sum()
    }

    /// Puts a node into the group with the largest saving, or into a new group.
    fn enter(&mut self, id: NodeId) {
        let best = self.candidates(id).into_iter().filter_map(|g| Some((g, self.joined(g, id)?)));
        let spared = |(g, joined): &(usize, KernelGroup)| self.groups[*g].cost.seconds - joined.cost.seconds;
        let best = best.max_by(|a, b| spared(a).total_cmp(&spared(b)).then(b.0.cmp(&a.0)));
        let at = match best {
            Some((g, joined)) => {
                self.floors.cover(&joined.nodes);
                self.groups[g] = joined;
                g
            }
            None => {
                self.groups.extend(self.alone(id));
                self.groups.len() - 1
            }
        };
        self.of[id.0] = Some(at);
    }

    /// The groups of the inputs of `id` and of earlier readers of the same images, the last first.
    fn candidates(&self, id: NodeId) -> Vec<usize> {
        let of_input = |input: &'a NodeId| {
            let readers = &self.readers[input.0];
            let before = &readers[..readers.partition_point(|r| *r < id)];
            before.iter().rev().take(AHEAD).chain([input]).filter_map(move |n| self.of[n.0])
        };
        let mut found: Vec<usize> = self.graph.node(id).inputs.iter().flat_map(of_input).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.dedup();
        found.truncate(TRIED);
        found
    }

    fn alone(&self, id: NodeId) -> Option<KernelGroup> {
        let node = self.graph.node(id);
        let whole = map(node)?.clone();
        let cost = self.cost(&whole, &node.inputs, node);
        Some(KernelGroup { nodes: vec![id], stored: vec![id], whole, inputs: node.inputs.clone(), cost })
    }

    /// The kernel of the nodes in `nodes` that are `stored`.
    fn kernel(&self, nodes: &[NodeId], stored: impl Fn(NodeId) -> bool) -> Option<(MapKernel, Vec<NodeId>)> {
        let part = |id: &NodeId| {
            let node = self.graph.node(*id);
            Some(JoinPart { id: *id, kernel: map(node)?, inputs: &node.inputs[..] })
        };
        let parts = nodes.iter().map(part).collect::<Option<Vec<_>>>()?;
        self.takes(JOINED * parts.iter().map(|p| p.kernel.leaves.len() + p.kernel.code.len()).sum::<usize>());
        MapKernel::join(&parts, stored)
    }

    /// A group with one more node, if one launch can compute it and it is predicted to be faster than group
    /// and node separately.
    fn joined(&self, group: usize, id: NodeId) -> Option<KernelGroup> {
        let (group, node) = (&self.groups[group], self.graph.node(id));
        let first = self.graph.node(group.nodes[0]);
        if first.shape != node.shape {
            return None;
        }
        let mut nodes = group.nodes.clone();
        nodes.push(id);
        if !self.is_launch(&self.stored(&nodes)) {
            return None;
        }
        let alone = self.alone(id)?;
        let joined = self.group(nodes)?;
        // Fusion decides about nodes that become one kernel, and about inputs of filters.
        let reads = node.inputs.iter().any(|i| group.nodes.contains(i));
        if reads && joined.whole.leaves.iter().any(|l| l.filter_kind().is_some()) {
            return None;
        }
        let cost = joined.cost;
        let spared = |of: fn(&KernelWork) -> f64| {
            let apart = of(&group.cost.work) + of(&alone.cost.work);
            apart - of(&cost.work) >= of(&cost.work) * PART && apart > of(&cost.work)
        };
        let shares = spared(|w| w.bytes() as f64) || spared(|w| w.multiply_adds);
        let faster = cost.seconds < group.cost.seconds + alone.cost.seconds;
        (shares && faster).then_some(joined)
    }

    /// Nodes of one shape as a group, if a device can hold them and no dependency leads from one to another
    /// through outside nodes.
    fn group(&self, mut nodes: Vec<NodeId>) -> Option<KernelGroup> {
        nodes.sort_unstable();
        let stored = self.stored(&nodes);
        let (whole, inputs) = self.kernel(&nodes, |n| stored.contains(&n))?;
        let reads: usize = inputs.iter().map(|i| weight(self.graph, *i)).sum();
        // Only pixel operations read single samples of pixels.
        let of_samples =
            |l: &Leaf| matches!(l.op, LeafOp::LoadPlane(i, _) if self.graph.node(inputs[i]).shape.samples > 1);
        let fits = whole.reads_samples() || !whole.leaves.iter().any(of_samples);
        if reads > MAX_INPUTS || !fits || !is_sound(&whole) || !self.is_free(&nodes) {
            return None;
        }
        let cost = self.cost(&whole, &inputs, self.graph.node(nodes[0]));
        Some(KernelGroup { nodes, stored, whole, inputs, cost })
    }

    /// The nodes of a group that are results of the program or that outside nodes read.
    fn stored(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let is_stored = |n: &NodeId| self.wanted[n.0] || self.readers[n.0].iter().any(|r| !nodes.contains(r));
        nodes.iter().copied().filter(is_stored).collect()
    }

    /// Returns `true` if the stored nodes can be the results of one launch.
    fn is_launch(&self, stored: &[NodeId]) -> bool {
        (2..=MOST).contains(&stored.len()) && self.is_read_together(stored)
    }

    /// Returns `true` if one node reads all stored values that are not roots, or if nodes that read other
    /// levels, which no launch absorbs, soon read them. Otherwise the values occupy memory while others are
    /// computed, and leave the caches before they are read.
    fn is_read_together(&self, stored: &[NodeId]) -> bool {
        let mut passing = stored.iter().filter(|n| !self.wanted[n.0]).map(|n| &self.readers[n.0]);
        let Some(first) = passing.next() else { return true };
        let others: Vec<_> = passing.collect();
        let last = stored.iter().max().map_or(0, |n| n.0);
        let is_soon = |reader: &NodeId| reader.0 <= last + SOON && reads_levels(self.graph.node(*reader));
        first.iter().any(|reader| others.iter().all(|readers| readers.contains(reader)))
            || others.iter().chain([&first]).all(|readers| readers.iter().all(is_soon))
    }

    /// The cost of a launch on the rank with the most work.
    fn cost(&self, kernel: &MapKernel, inputs: &[NodeId], like: &Node<Kernel>) -> LaunchCost {
        let extent = |i: &NodeId| -> ImageExtent { (self.graph.node(*i).shape, self.graph.node(*i).dtype) };
        let inputs: Vec<ImageExtent> = inputs.iter().map(extent).collect();
        // A strip in the middle has surrounding rows on both sides.
        let height = like.shape.height;
        let strip = height.div_ceil(self.aim.ranks.max(1));
        let above = (height - strip) / 2;
        let rows = Window::new(above.cast_signed(), (above + strip).cast_signed());
        let work = Kernel::Map(kernel.clone()).work(&inputs, (like.shape, kernel.result_type()), rows);
        LaunchCost { work, seconds: self.aim.machine.slowest(|p| p.launch(&work).seconds) }
    }

    /// Returns `true` if these nodes (in order) can be computed together: none depends on another through an
    /// outside node or through earlier groups.
    fn is_free(&self, nodes: &[NodeId]) -> bool {
        let Some(first) = nodes.first() else { return true };
        let floor = self.floors.below(*first);
        // All transitive dependencies.
        self.searches.set(self.searches.get() + 1);
        let mut stack: Vec<NodeId> = Vec::new();
        let wait = |n: NodeId, stack: &mut Vec<NodeId>| stack.extend(&self.graph.node(n).inputs);
        nodes.iter().for_each(|n| wait(*n, &mut stack));
        stack.retain(|n| !nodes.contains(n));
        while let Some(n) = stack.pop() {
            if n < floor {
                continue;
            }
            if nodes.binary_search(&n).is_ok() {
                return false;
            }
            if self.seen[n.0].replace(self.searches.get()) != self.searches.get() {
                self.takes(1);
                match self.of[n.0].map(|g| &self.groups[g].nodes) {
                    Some(group) => group.iter().for_each(|m| wait(*m, &mut stack)),
                    None => wait(n, &mut stack),
                }
            }
        }
        true
    }

    /// The kernel that computes a node of a group alone, from the group's inputs.
    fn apart(&self, group: &KernelGroup, id: NodeId) -> Option<(MapKernel, Vec<NodeId>)> {
        let mut needed = vec![id];
        for n in group.nodes.iter().rev().filter(|n| **n <= id) {
            if needed.contains(n) {
                needed.extend(self.graph.node(*n).inputs.iter().filter(|i| group.nodes.contains(i)));
            }
        }
        let nodes: Vec<NodeId> = group.nodes.iter().copied().filter(|n| needed.contains(n)).collect();
        self.kernel(&nodes, |n| n == id)
    }

    /// The graph with the results of each group adjacent, at the place of the first.
    fn arranged(mut self) -> Graph<Kernel> {
        self.groups.retain(|g| g.nodes.len() > 1);
        if self.groups.is_empty() {
            return self.graph.clone();
        }
        let n = self.graph.nodes.len();
        let mut of: Vec<Option<&KernelGroup>> = vec![None; n];
        self.groups.iter().for_each(|group| group.nodes.iter().for_each(|m| of[m.0] = Some(group)));
        let (mut order, mut begun) = (Vec::with_capacity(n), vec![false; n]);
        for first in (0..n).map(NodeId) {
            // Explicit stack, because programs may be long. A node is visited twice, before and after its
            // inputs.
            let mut stack = vec![(first, false)];
            while let Some((id, inputs_are_there)) = stack.pop() {
                let (group, alone) = (of[id.0], [id]);
                if inputs_are_there {
                    order.extend_from_slice(group.map_or(&alone[..], |g| &g.stored));
                } else if !begun[id.0] {
                    let nodes = group.map_or(&alone[..], |g| &g.nodes);
                    let inputs = group.map_or(&self.graph.node(id).inputs, |g| &g.inputs);
                    nodes.iter().for_each(|m| begun[m.0] = true);
                    stack.push((id, true));
                    stack.extend(inputs.iter().rev().filter(|i| !begun[i.0]).map(|i| (*i, false)));
                }
            }
        }
        let mut at = vec![NodeId(usize::MAX); n];
        order.iter().enumerate().for_each(|(new, old)| at[old.0] = NodeId(new));
        let moved = |nodes: &[NodeId]| nodes.iter().map(|n| at[n.0]).collect::<Vec<_>>();
        let mut out = Graph::default();
        for old in &order {
            let node = self.graph.node(*old).clone();
            out.push(match of[old.0].and_then(|group| self.apart(group, *old)) {
                Some((kernel, inputs)) => Node { op: Kernel::Map(kernel), inputs: moved(&inputs), ..node },
                None => Node { inputs: moved(&node.inputs), ..node },
            });
        }
        out.roots = moved(&self.graph.roots);
        let joined = self.groups.iter().map(|g| Joined {
            nodes: moved(&g.stored),
            op: Kernel::Map(g.whole.clone()),
            inputs: moved(&g.inputs),
        });
        out.joined = joined.collect();
        out
    }
}

/// Returns `true` if devices can hold a kernel: it is within the limits of fusion and has filters of one
/// kind. Warps of one image read different positions, so that joining saves nothing; filters of many taps are
/// bound by arithmetic, so that joining saves little.
fn is_sound(m: &MapKernel) -> bool {
    let filters = m.leaves.iter().filter_map(|l| match &l.op {
        LeafOp::Correlate(_, f, _) => Some(f),
        _ => None,
    });
    let large = filters.chain(m.stages.iter().map(|s| &s.filter)).any(|f| f.taps().len() > SMALL_FILTER);
    let filters = m.leaves.iter().filter(|l| l.filter_kind().is_some()).count();
    let planes = m.leaves.iter().filter(|l| matches!(l.op, LeafOp::LoadPlane(..))).count();
    // A launch of several results would recompute the filters of chains for each of them.
    let plain = m.chains.iter().all(|c| c.is_pointwise() && c.chains.is_empty());
    plain
        && alike(m.leaves.iter().filter_map(Leaf::filter_kind))
        && !m.leaves.iter().any(|l| l.filter_kind() == Some(FilterKind::Geometric))
        && !large
        && m.stages.len() <= MAX_STAGES
        && filters <= MAX_FILTERS
        && planes <= MAX_PLANES
        && m.code.len() <= MAX_MEMBERS
}

/// Returns `true` if a node reads a pixel of another level.
fn reads_levels(node: &Node<Kernel>) -> bool {
    let other = |l: &Leaf| match &l.op {
        LeafOp::LoadPlane(_, map) => map.step != 0,
        LeafOp::OrderFilter(_, filter, _) => filter.crosses_levels(),
        _ => false,
    };
    map(node).is_some_and(|m| m.leaves.iter().any(other))
}

/// Returns `true` if all values are equal.
fn alike<T: PartialEq>(mut all: impl Iterator<Item = T>) -> bool {
    all.next().is_none_or(|first| all.all(|other| other == first))
}
