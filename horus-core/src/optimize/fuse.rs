//! Fusion: kernels that feed each other pixel by pixel become one kernel.
//!
//! A *region* grows backwards from a node whose value must be stored. It takes in a producer when all readers of the
//! producer are inside and read it pixel by pixel (the producer becomes part of the expression), or when the producer
//! is a row pass that only column passes inside read (it becomes a stage, never stored whole).
//!
//! A reduction along rows then takes in the expression that it alone reduces.
//!
//! Growth is refused where it would cost more than it saves:
//! - a region holds filters of one kind, and 2-D filters of one geometry, so that a device can evaluate them as a bank;
//! - taking in a producer must not leave *more* values to be stored than before: if its own producers cannot follow, it
//!   stays outside (cutting a chain of maxima between two filter sizes costs one image, cutting inside costs three);
//! - the number of computed images read stays small, so that they need not all be alive at once.

use std::collections::HashMap;

use crate::graph::{Graph, Node, NodeId};
use crate::kernel::{Instr, Kernel, Leaf, LeafOp, MapKernel, Source, Stage, Val};
use crate::ops::neighbourhood::Layout;

/// Most nodes of one region, which bounds the time of planning.
const MAX_MEMBERS: usize = 192;
/// Most filter leaves of one kernel.
const MAX_FILTERS: usize = 64;
/// Most images that one kernel reads.
const MAX_INPUTS: usize = 12;
/// Most computed (not user-given) images that fusion makes a kernel read.
const MAX_COMPUTED: usize = 3;
/// 2-D filters up to this many taps may meet others of a different geometry.
const SMALL_FILTER: usize = 25;

/// Fuses what can be fused. Absorbed nodes stay in the graph, dead.
pub fn fuse(graph: &Graph<Kernel>) -> Graph<Kernel> {
    let facts = Facts::of(graph);
    let mut absorbed = vec![false; graph.nodes.len()];
    let mut out = graph.clone();
    for id in (0..graph.nodes.len()).rev().map(NodeId) {
        if absorbed[id.0] || !matches!(graph.node(id).op, Kernel::Map(_)) {
            continue;
        }
        let mut region = Region::new(graph, &facts, id);
        region.grow_inputs_of(id);
        region.members[1..].iter().for_each(|m| absorbed[m.0] = true);
        let (kernel, inputs) = region.build();
        let node = &mut out.nodes[id.0];
        node.op = Kernel::Map(kernel);
        node.inputs = inputs;
    }
    feed_reductions(graph, &facts, &mut out);
    out
}

/// A row reduction evaluates what it reduces, if that is an expression of pixels and nobody else reads it.
fn feed_reductions(graph: &Graph<Kernel>, facts: &Facts, out: &mut Graph<Kernel>) {
    for (id, node) in graph.iter() {
        let Kernel::RowReduce(how) = node.op else { continue };
        let p = node.inputs[0];
        let Kernel::Map(map) = &out.node(p).op else { continue };
        if facts.wanted[p.0] || facts.readers[p.0] != [id] || !map.is_pointwise() || map.inputs == 0 {
            continue;
        }
        let op = Kernel::MapReduce(map.clone(), how);
        let inputs = out.node(p).inputs.iter().chain(&node.inputs[1..]).copied().collect();
        (out.nodes[id.0].op, out.nodes[id.0].inputs) = (op, inputs);
    }
}

/// What does not depend on the region.
struct Facts {
    /// The distinct readers of each node.
    readers: Vec<Vec<NodeId>>,
    /// Whether the node's value must exist as such.
    wanted: Vec<bool>,
    /// Whether all readers read the node pixel by pixel.
    read_by_pixel: Vec<bool>,
    /// Whether the node is a row pass that column passes alone read.
    stage: Vec<bool>,
}

impl Facts {
    fn of(graph: &Graph<Kernel>) -> Facts {
        let n = graph.nodes.len();
        let mut facts = Facts {
            readers: graph.consumers(),
            wanted: vec![false; n],
            read_by_pixel: vec![true; n],
            stage: graph.nodes.iter().map(|x| row_pass(x).is_some()).collect(),
        };
        facts.readers.iter_mut().for_each(|r| r.dedup());
        graph.roots.iter().for_each(|r| facts.wanted[r.0] = true);
        for node in &graph.nodes {
            for (i, p) in node.inputs.iter().enumerate() {
                let mut leaves =
                    map(node).into_iter().flat_map(|m| m.leaves.iter().filter(move |l| l.input(&m.stages) == i));
                facts.stage[p.0] &= map(node).is_some() && leaves.clone().all(is_column_pass);
                facts.read_by_pixel[p.0] &= map(node).is_some() && leaves.all(reads_pixel);
            }
        }
        facts
    }
}

struct Region<'a> {
    graph: &'a Graph<Kernel>,
    facts: &'a Facts,
    members: Vec<NodeId>,
    member: Vec<bool>,
}

/// Kinds of leaves that are evaluated together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Columns,
    Filters,
    Order,
    Geometric,
}

fn map(node: &Node<Kernel>) -> Option<&MapKernel> {
    match &node.op {
        Kernel::Map(m) => Some(m),
        _ => None,
    }
}

/// The row filter of a kernel that is nothing but a row pass.
fn row_pass(node: &Node<Kernel>) -> Option<Stage> {
    let m = map(node)?;
    match (m.leaves.as_slice(), m.code.is_empty()) {
        ([Leaf { op: LeafOp::Correlate(Source::Input(0), f, b), .. }], true) if f.is_row() && !f.is_column() => {
            Some(Stage { input: 0, filter: f.clone(), border: *b })
        }
        _ => None,
    }
}

fn is_column_pass(leaf: &Leaf) -> bool {
    matches!(&leaf.op, LeafOp::Correlate(Source::Input(_), f, _) if f.is_column())
}

fn is_fill(node: &Node<Kernel>) -> bool {
    matches!(map(node), Some(m) if m.inputs == 0)
}

fn reads_pixel(leaf: &Leaf) -> bool {
    matches!(leaf.op, LeafOp::Load(_))
}

impl<'a> Region<'a> {
    fn new(graph: &'a Graph<Kernel>, facts: &'a Facts, root: NodeId) -> Region<'a> {
        let mut region = Region { graph, facts, members: Vec::new(), member: vec![false; graph.nodes.len()] };
        region.push(root);
        region
    }

    fn push(&mut self, id: NodeId) {
        self.members.push(id);
        self.member[id.0] = true;
    }

    fn truncate(&mut self, len: usize) {
        self.members.drain(len..).for_each(|m| self.member[m.0] = false);
    }

    fn contains(&self, id: NodeId) -> bool {
        self.member[id.0]
    }

    /// Whether `p` could be a member: it is computed by a map, nobody outside needs it, and members read it in a way
    /// that can be substituted.
    fn can_absorb(&self, p: NodeId) -> bool {
        let node = self.graph.node(p);
        if map(node).is_none() || self.facts.wanted[p.0] || !self.facts.readers[p.0].iter().all(|c| self.contains(*c)) {
            return false;
        }
        let same_shape = node.shape == self.graph.node(self.members[0]).shape;
        same_shape && (self.facts.read_by_pixel[p.0] || self.facts.stage[p.0])
    }

    /// Takes in producers of `id`, the most recently recorded first: along a chain `acc = max(acc, new)` the region then
    /// meets the filters of `new` before those of older terms, and ends where the filter size changes.
    fn grow_inputs_of(&mut self, id: NodeId) {
        let mut inputs = self.graph.node(id).inputs.clone();
        inputs.sort_unstable();
        for p in inputs.into_iter().rev() {
            if !self.contains(p) {
                self.absorb(p);
            }
        }
    }

    /// Takes in `p` and what of its producers can follow, or nothing.
    fn absorb(&mut self, p: NodeId) {
        if !self.can_absorb(p) {
            return;
        }
        let before = self.cost();
        let checkpoint = self.members.len();
        self.push(p);
        if self.members.len() <= MAX_MEMBERS && self.fits() {
            self.grow_inputs_of(p);
            let after = self.cost();
            if after.stored <= before.stored
                && after.computed <= before.computed.max(MAX_COMPUTED)
                && after.inputs <= before.inputs.max(MAX_INPUTS)
            {
                return;
            }
        }
        self.truncate(checkpoint);
    }

    /// Whether the filters of the members can be evaluated together.
    fn fits(&self) -> bool {
        let mut family = None;
        let mut geometry: Option<&Layout> = None;
        let mut filters = 0;
        for (id, leaf) in self
            .members
            .iter()
            .flat_map(|&m| map(self.graph.node(m)).into_iter().flat_map(move |k| k.leaves.iter().map(move |l| (m, l))))
        {
            let this = match &leaf.op {
                LeafOp::Load(_) | LeafOp::LoadChannel(..) => continue,
                LeafOp::Correlate(Source::Stage(_), ..) => Family::Columns,
                LeafOp::Correlate(Source::Input(_), f, _) => {
                    let source = self.graph.node(id).inputs[0];
                    if (f.is_column() && row_pass(self.graph.node(source)).is_some())
                        || (row_pass(self.graph.node(id)).is_some() && id != self.members[0])
                    {
                        Family::Columns
                    } else {
                        let large = f.taps().len() > SMALL_FILTER;
                        if geometry.is_some_and(|g| large && g != f.layout()) {
                            return false;
                        }
                        geometry = geometry.or(large.then_some(f.layout()));
                        Family::Filters
                    }
                }
                LeafOp::Generalized(..) | LeafOp::Median(..) => Family::Order,
                LeafOp::Warp(..) | LeafOp::Flip(..) => Family::Geometric,
            };
            if *family.get_or_insert(this) != this {
                return false;
            }
            filters += 1;
        }
        filters <= MAX_FILTERS
    }

    fn cost(&self) -> Cost {
        let mut outside: Vec<NodeId> = self.members.iter().flat_map(|m| &self.graph.node(*m).inputs).copied().collect();
        outside.sort_unstable();
        outside.dedup();
        outside.retain(|p| !self.contains(*p) && !is_fill(self.graph.node(*p)));
        let stored = outside.iter().filter(|p| self.can_absorb(**p)).count();
        // A row pass waits for its other readers: count the image it reads.
        let mut read: Vec<NodeId> = outside
            .iter()
            .map(|&p| if row_pass(self.graph.node(p)).is_some() { self.graph.node(p).inputs[0] } else { p })
            .collect();
        read.sort_unstable();
        read.dedup();
        let computed = read.iter().filter(|p| !matches!(self.graph.node(**p).op, Kernel::Source(_))).count();
        Cost { stored, computed, inputs: read.len() }
    }

    /// The region's kernel and its inputs.
    fn build(&self) -> (MapKernel, Vec<NodeId>) {
        let mut order = self.members.clone();
        order.sort_unstable();
        let mut b = Builder::default();
        for id in order {
            let node = self.graph.node(id);
            let Some(m) = map(node) else { continue };
            if id != self.members[0] && self.facts.stage[id.0] {
                if let Some(mut stage) = row_pass(node) {
                    stage.input = b.input(node.inputs[0]);
                    b.kernel.stages.push(stage);
                    b.stages.insert(id, b.kernel.stages.len() - 1);
                }
                continue;
            }
            let stages: Vec<usize> = m.stages.iter().map(|s| b.own_stage(s, node)).collect();
            let leaves: Vec<Val> = m.leaves.iter().map(|l| b.leaf(l, m, node, &stages, self.graph)).collect();
            let at = b.kernel.code.len();
            let value = |v: Val| match v {
                Val::Leaf(i) => leaves[i],
                Val::Instr(i) => Val::Instr(at + i),
                Val::Const(c) => Val::Const(c),
            };
            let code = m.code.iter().map(|i| Instr { args: i.args.iter().map(|&a| value(a)).collect(), ..i.clone() });
            b.kernel.code.extend(code);
            if let Some(result) = m.result {
                b.values.insert(id, value(result));
            }
        }
        b.kernel.result = b.values.get(&self.members[0]).copied();
        b.kernel.inputs = b.inputs.len();
        (b.kernel, b.inputs)
    }
}

/// What a region leaves to others.
struct Cost {
    /// Values that must be stored only because the region refused them.
    stored: usize,
    /// Computed images that are read.
    computed: usize,
    /// Images that are read.
    inputs: usize,
}

#[derive(Default)]
struct Builder {
    kernel: MapKernel,
    inputs: Vec<NodeId>,
    values: HashMap<NodeId, Val>,
    stages: HashMap<NodeId, usize>,
}

impl Builder {
    fn input(&mut self, id: NodeId) -> usize {
        match self.inputs.iter().position(|i| *i == id) {
            Some(i) => i,
            None => {
                self.inputs.push(id);
                self.inputs.len() - 1
            }
        }
    }

    fn own_stage(&mut self, stage: &Stage, node: &Node<Kernel>) -> usize {
        let stage = Stage { input: self.input(node.inputs[stage.input]), ..stage.clone() };
        if let Some(i) = self.kernel.stages.iter().position(|s| *s == stage) {
            return i;
        }
        self.kernel.stages.push(stage);
        self.kernel.stages.len() - 1
    }

    fn leaf(
        &mut self,
        leaf: &Leaf,
        m: &MapKernel,
        node: &Node<Kernel>,
        stages: &[usize],
        graph: &Graph<Kernel>,
    ) -> Val {
        let mut leaf = leaf.clone();
        if let LeafOp::Correlate(source @ Source::Stage(_), ..) = &mut leaf.op {
            if let Source::Stage(s) = *source {
                *source = Source::Stage(stages[s]);
            }
        } else {
            let producer = node.inputs[leaf.input(&m.stages)];
            if reads_pixel(&leaf) {
                if let Some(&v) = self.values.get(&producer) {
                    return v;
                }
                if let (true, Some(Val::Const(c))) =
                    (is_fill(graph.node(producer)), map(graph.node(producer)).and_then(|k| k.result))
                {
                    return Val::Const(c);
                }
            }
            match (&mut leaf.op, self.stages.get(&producer)) {
                (LeafOp::Correlate(source, ..), Some(&s)) => *source = Source::Stage(s),
                _ => {
                    let i = self.input(producer);
                    leaf.map_input(|_| i);
                }
            }
        }
        let known = self.kernel.leaves.iter().position(|l| *l == leaf);
        Val::Leaf(known.unwrap_or_else(|| {
            self.kernel.leaves.push(leaf);
            self.kernel.leaves.len() - 1
        }))
    }
}
