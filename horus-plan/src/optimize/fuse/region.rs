//! Regions: sets of nodes that become one kernel, and their limits.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{FusionFacts, IMAGE, MAX_INPUTS, distinct, map, weight};
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::{FilterKind, FilterSource, Kernel, LeafOp};
use crate::ops::neighbourhood::FilterLayout;

/// Maximum number of nodes of a region, which bounds the time of planning.
pub(in crate::optimize) const MAX_MEMBERS: usize = 256;
/// Maximum number of filter leaves of a kernel.
pub(in crate::optimize) const MAX_FILTERS: usize = 64;
/// Maximum number of row filters of a kernel. Each is code of its own, and a second kernel re-reads only one
/// image.
pub(in crate::optimize) const MAX_STAGES: usize = 4;
/// Maximum number of reads of other planes in a kernel: a GPU thread holds all of them in registers at once.
pub(in crate::optimize) const MAX_PLANES: usize = 32;
/// The same limit on a CPU, which reads the levels of a filter along the depth together; the longest filter
/// of splines has 99 taps.
pub(super) const MAX_LEVELS: usize = 100;
/// Maximum number of computed images (not given by the user) that fusion lets a kernel read.
const MAX_COMPUTED: usize = 3;
/// 2-D filters of at most this many taps may be combined with filters of another geometry.
pub(in crate::optimize) const SMALL_FILTER: usize = 25;

/// A growing region, whose cost is updated as members come and go. One value serves all regions of a graph in
/// turn.
pub(super) struct FusionRegion<'a> {
    pub(super) graph: &'a Graph<Kernel>,
    pub(super) facts: &'a FusionFacts,
    pub(super) root: NodeId,
    pub(super) members: Vec<NodeId>,
    member: Vec<bool>,
    /// Number of each node's readers that are members.
    inside: Vec<usize>,
    /// Number of reads of each image by members, directly or through its row filter.
    reads: Vec<usize>,
    cost: RegionCost,
    bank: RegionFilters<'a>,
}

/// The common properties of the members' filters.
#[derive(Clone, Copy, Default)]
struct RegionFilters<'a> {
    family: Option<LeafFamily>,
    geometry: Option<&'a FilterLayout>,
    filters: usize,
    stages: usize,
    planes: usize,
}

/// A set of leaves that are evaluated together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LeafFamily {
    kind: FilterKind,
    /// Column filters over a row filter, as opposed to other linear filters.
    columns: bool,
}

/// The cost that a region leaves to other kernels.
#[derive(Clone, Copy, Default)]
struct RegionCost {
    /// Values that must be stored only because the region did not absorb them.
    stored: usize,
    /// Computed images that the region reads.
    computed: usize,
    /// The weight of the images that the region reads.
    inputs: usize,
}

impl<'a> FusionRegion<'a> {
    pub(super) fn new(graph: &'a Graph<Kernel>, facts: &'a FusionFacts) -> FusionRegion<'a> {
        let n = graph.nodes.len();
        FusionRegion {
            graph,
            facts,
            root: NodeId(0),
            members: Vec::new(),
            member: vec![false; n],
            inside: vec![0; n],
            reads: vec![0; n],
            cost: RegionCost::default(),
            bank: RegionFilters::default(),
        }
    }

    /// Replaces the region by a region that grows from `root`.
    pub(super) fn grow_from(&mut self, root: NodeId) {
        self.truncate(0);
        self.root = root;
        self.bank = RegionFilters::default();
        self.push(root);
        if let Some(bank) = self.joined(root) {
            self.bank = bank;
            if !self.takes_all() {
                self.truncate(1);
                self.bank = bank;
                self.grow_inputs_of(root);
            }
        }
    }

    /// Absorbs all nodes that only the root needs; returns `false` if these are too many for one kernel. A
    /// network of comparisons reads each value twice: regions that grow node by node would exceed limits on
    /// the way.
    fn takes_all(&mut self) -> bool {
        let (before, mut next) = (self.cost, BTreeSet::from_iter(self.graph.node(self.root).inputs.iter().copied()));
        // All readers of the last node have been visited.
        while let Some(p) = next.pop_last() {
            if self.members.len() >= MAX_MEMBERS || !self.can_absorb(p) {
                continue;
            }
            let Some(bank) = self.joined(p) else { return false };
            self.bank = bank;
            self.push(p);
            next.extend(&self.graph.node(p).inputs);
        }
        let after = self.cost;
        after.stored == 0
            && after.computed <= before.computed.max(MAX_COMPUTED)
            && after.inputs <= before.inputs.max(MAX_INPUTS)
    }

    fn push(&mut self, id: NodeId) {
        if self.inside[id.0] > 0 {
            self.account(id, false);
        }
        self.members.push(id);
        self.member[id.0] = true;
        for p in distinct(&self.graph.node(id).inputs) {
            let outside = !self.member[p.0];
            if outside && self.inside[p.0] > 0 {
                self.account(p, false);
            }
            self.inside[p.0] += 1;
            if outside {
                self.account(p, true);
            }
        }
    }

    fn truncate(&mut self, len: usize) {
        while self.members.len() > len
            && let Some(id) = self.members.pop()
        {
            for p in distinct(&self.graph.node(id).inputs) {
                let outside = !self.member[p.0];
                if outside {
                    self.account(p, false);
                }
                self.inside[p.0] -= 1;
                if outside && self.inside[p.0] > 0 {
                    self.account(p, true);
                }
            }
            self.member[id.0] = false;
            if self.inside[id.0] > 0 {
                self.account(id, true);
            }
        }
    }

    /// Adds the cost of members reading `p` from outside, or subtracts it.
    fn account(&mut self, p: NodeId, add: bool) {
        if self.facts.fill[p.0] {
            return;
        }
        let change = |n: &mut usize, by: usize| *n = if add { *n + by } else { *n - by };
        if self.can_absorb(p) {
            change(&mut self.cost.stored, 1);
        }
        // A row filter also waits for its other readers: count its image.
        let image = if self.facts.row_pass[p.0] { self.graph.node(p).inputs[0] } else { p };
        let before = self.reads[image.0];
        change(&mut self.reads[image.0], 1);
        if before == 0 || self.reads[image.0] == 0 {
            let weight = weight(self.graph, image);
            change(&mut self.cost.inputs, weight);
            if weight == IMAGE && !matches!(self.graph.node(image).op, Kernel::Source(_)) {
                change(&mut self.cost.computed, 1);
            }
        }
    }

    /// Returns `true` if `p` can be a member: a map computes it, no outside node needs it (unless all can
    /// recompute it), and the reads of members allow substitution.
    fn can_absorb(&self, p: NodeId) -> bool {
        let node = self.graph.node(p);
        map(node).is_some()
            && !self.facts.wanted[p.0]
            && (self.facts.repeated[p.0] || self.inside[p.0] == self.facts.readers[p.0].len())
            && (self.facts.read_by_pixel[p.0] || self.facts.stage[p.0])
            && node.shape == self.graph.node(self.root).shape
    }

    /// Absorbs producers of `id`, the most recently recorded first. Along a chain `acc = max(acc, new)` the
    /// region then absorbs the filters of `new` before those of older terms, and ends where the filter size
    /// changes.
    fn grow_inputs_of(&mut self, id: NodeId) {
        let mut inputs = self.graph.node(id).inputs.clone();
        // If the planes are too many, absorb producers that are read near the root first: the rest is then a
        // chain, too.
        let too_many = self.facts.planes[id.0] > self.facts.most_planes;
        inputs.sort_unstable_by_key(|p| (Reverse(if too_many { self.facts.planes[p.0] } else { 0 }), *p));
        for p in inputs.into_iter().rev() {
            if !self.member[p.0] {
                self.absorb(p);
            }
        }
    }

    /// Absorbs `p` and those of its producers that can follow, or nothing.
    fn absorb(&mut self, p: NodeId) {
        if self.members.len() >= MAX_MEMBERS || !self.can_absorb(p) {
            return;
        }
        let Some(bank) = self.joined(p) else { return };
        let (before, bank) = (self.cost, std::mem::replace(&mut self.bank, bank));
        let checkpoint = self.members.len();
        self.push(p);
        self.grow_inputs_of(p);
        let after = self.cost;
        if after.stored > before.stored
            || after.computed > before.computed.max(MAX_COMPUTED)
            || after.inputs > before.inputs.max(MAX_INPUTS)
        {
            self.truncate(checkpoint);
            self.bank = bank;
        }
    }

    /// The bank of filters with those of `id`, if they can be evaluated together.
    fn joined(&self, id: NodeId) -> Option<RegionFilters<'a>> {
        let mut bank = self.bank;
        let node = self.graph.node(id);
        bank.stages += usize::from(self.facts.stage[id.0] && id != self.root);
        for leaf in map(node).into_iter().flat_map(|m| &m.leaves) {
            let Some(kind) = leaf.filter_kind() else {
                bank.planes += usize::from(matches!(leaf.op, LeafOp::LoadPlane(..)));
                continue;
            };
            let columns = match &leaf.op {
                LeafOp::Correlate(FilterSource::Stage(_), ..) => true,
                LeafOp::Correlate(_, f, _) => {
                    let of_stage = f.is_column() && self.facts.row_pass[node.inputs[0].0];
                    let columns = of_stage || (self.facts.row_pass[id.0] && id != self.root);
                    if !columns {
                        let large = f.taps().len() > SMALL_FILTER;
                        if bank.geometry.is_some_and(|g| large && g != f.layout()) {
                            return None;
                        }
                        bank.geometry = bank.geometry.or(large.then_some(f.layout()));
                    }
                    columns
                }
                _ => false,
            };
            // A row filter that pixel operations read can be combined with column filters and with other
            // filters.
            let alone = self.facts.row_pass[id.0] && !self.facts.stage[id.0] && id != self.root;
            let this = LeafFamily { kind, columns };
            if !alone && *bank.family.get_or_insert(this) != this {
                return None;
            }
            bank.filters += 1;
        }
        (bank.filters <= MAX_FILTERS && bank.stages <= MAX_STAGES && bank.planes <= self.facts.most_planes)
            .then_some(bank)
    }
}
