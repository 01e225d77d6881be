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

use crate::ir::graph::{Graph, Node, NodeId};
use crate::ir::kernel::{Instr, Kernel, Leaf, LeafOp, MapKernel, Source, Stage, Val};
use crate::ops::neighbourhood::Layout;

/// Most nodes of one region, which bounds the time of planning.
const MAX_MEMBERS: usize = 192;
/// Most filter leaves of one kernel.
const MAX_FILTERS: usize = 64;
/// Most row passes of one kernel: each is code of its own, and what the next kernel reads again is one image.
const MAX_STAGES: usize = 4;
/// Most images that one kernel reads.
pub(super) const MAX_INPUTS: usize = 12;
/// Most computed (not user-given) images that fusion makes a kernel read.
const MAX_COMPUTED: usize = 3;
/// 2-D filters up to this many taps may meet others of a different geometry.
const SMALL_FILTER: usize = 25;

/// Fuses what can be fused. Absorbed nodes stay in the graph, dead.
pub fn fuse(graph: &Graph<Kernel>) -> Graph<Kernel> {
    let facts = Facts::of(graph);
    let mut absorbed = vec![false; graph.nodes.len()];
    let mut out = graph.clone();
    let mut region = Region::new(graph, &facts);
    for id in (0..graph.nodes.len()).rev().map(NodeId) {
        if absorbed[id.0] || map(graph.node(id)).is_none() {
            continue;
        }
        region.grow_from(id);
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
    /// Whether the node is nothing but a row pass.
    row_pass: Vec<bool>,
    /// Whether the node is a row pass that column passes alone read.
    stage: Vec<bool>,
    /// Whether the node is a constant.
    fill: Vec<bool>,
}

impl Facts {
    fn of(graph: &Graph<Kernel>) -> Facts {
        let n = graph.nodes.len();
        let row_pass: Vec<bool> = graph.nodes.iter().map(|x| row_pass(x).is_some()).collect();
        let mut facts = Facts {
            readers: graph.consumers(),
            wanted: vec![false; n],
            read_by_pixel: vec![true; n],
            stage: row_pass.clone(),
            row_pass,
            fill: graph.nodes.iter().map(is_fill).collect(),
        };
        facts.readers.iter_mut().for_each(|r| r.dedup());
        graph.roots.iter().for_each(|r| facts.wanted[r.0] = true);
        for node in &graph.nodes {
            for (i, p) in node.inputs.iter().enumerate() {
                let mut leaves = map(node).into_iter().flat_map(|m| m.leaves.iter().filter(move |l| m.reads(l, i)));
                facts.stage[p.0] &= map(node).is_some() && leaves.clone().all(is_column_pass);
                facts.read_by_pixel[p.0] &= map(node).is_some() && leaves.all(reads_pixel);
            }
        }
        facts
    }
}

/// A region that grows, with its cost kept up to date as members come and go. One serves all regions of a graph in turn.
struct Region<'a> {
    graph: &'a Graph<Kernel>,
    facts: &'a Facts,
    root: NodeId,
    members: Vec<NodeId>,
    member: Vec<bool>,
    /// For each node, how many of its readers are members.
    inside: Vec<usize>,
    /// For each image, how many values that members read are it, or wait for it as its row pass.
    reads: Vec<usize>,
    cost: Cost,
    bank: Bank<'a>,
}

/// What the filters of the members have in common.
#[derive(Clone, Copy, Default)]
struct Bank<'a> {
    family: Option<Family>,
    geometry: Option<&'a Layout>,
    filters: usize,
    stages: usize,
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
            Some(Stage { source: Source::Input(0), filter: f.clone(), border: *b })
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

/// The nodes of a short list, each once.
fn distinct(inputs: &[NodeId]) -> impl Iterator<Item = NodeId> {
    inputs.iter().enumerate().filter(|(i, p)| !inputs[..*i].contains(p)).map(|(_, p)| *p)
}

fn reads_pixel(leaf: &Leaf) -> bool {
    matches!(leaf.op, LeafOp::Load(_))
}

impl<'a> Region<'a> {
    fn new(graph: &'a Graph<Kernel>, facts: &'a Facts) -> Region<'a> {
        let n = graph.nodes.len();
        Region {
            graph,
            facts,
            root: NodeId(0),
            members: Vec::new(),
            member: vec![false; n],
            inside: vec![0; n],
            reads: vec![0; n],
            cost: Cost::default(),
            bank: Bank::default(),
        }
    }

    /// The region of `root`, instead of what it was.
    fn grow_from(&mut self, root: NodeId) {
        self.truncate(0);
        self.root = root;
        self.bank = Bank::default();
        self.push(root);
        if let Some(bank) = self.joined(root) {
            self.bank = bank;
            self.grow_inputs_of(root);
        }
    }

    fn push(&mut self, id: NodeId) {
        if self.inside[id.0] > 0 {
            self.account(id, false);
        }
        self.members.push(id);
        self.member[id.0] = true;
        for p in distinct(&self.graph.node(id).inputs) {
            if self.inside[p.0] > 0 {
                self.account(p, false);
            }
            self.inside[p.0] += 1;
            self.account(p, true);
        }
    }

    fn truncate(&mut self, len: usize) {
        while self.members.len() > len
            && let Some(id) = self.members.pop()
        {
            for p in distinct(&self.graph.node(id).inputs) {
                self.account(p, false);
                self.inside[p.0] -= 1;
                if self.inside[p.0] > 0 {
                    self.account(p, true);
                }
            }
            self.member[id.0] = false;
            if self.inside[id.0] > 0 {
                self.account(id, true);
            }
        }
    }

    /// Adds what it costs that members read `p` from outside, or takes it back.
    fn account(&mut self, p: NodeId, add: bool) {
        if self.facts.fill[p.0] {
            return;
        }
        let change = |n: &mut usize| *n = if add { *n + 1 } else { *n - 1 };
        if self.can_absorb(p) {
            change(&mut self.cost.stored);
        }
        // A row pass waits for its other readers: count the image it reads.
        let image = if self.facts.row_pass[p.0] { self.graph.node(p).inputs[0] } else { p };
        let before = self.reads[image.0];
        change(&mut self.reads[image.0]);
        if before == 0 || self.reads[image.0] == 0 {
            change(&mut self.cost.inputs);
            if !matches!(self.graph.node(image).op, Kernel::Source(_)) {
                change(&mut self.cost.computed);
            }
        }
    }

    /// Whether `p` could be a member: it is computed by a map, nobody outside needs it, and members read it in a way
    /// that can be substituted.
    fn can_absorb(&self, p: NodeId) -> bool {
        let node = self.graph.node(p);
        map(node).is_some()
            && !self.facts.wanted[p.0]
            && self.inside[p.0] == self.facts.readers[p.0].len()
            && (self.facts.read_by_pixel[p.0] || self.facts.stage[p.0])
            && node.shape == self.graph.node(self.root).shape
    }

    /// Takes in producers of `id`, the most recently recorded first: along a chain `acc = max(acc, new)` the region then
    /// meets the filters of `new` before those of older terms, and ends where the filter size changes.
    fn grow_inputs_of(&mut self, id: NodeId) {
        let mut inputs = self.graph.node(id).inputs.clone();
        inputs.sort_unstable();
        for p in inputs.into_iter().rev() {
            if !self.member[p.0] {
                self.absorb(p);
            }
        }
    }

    /// Takes in `p` and what of its producers can follow, or nothing.
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

    /// The bank with the filters of `id`, if they can be evaluated together.
    fn joined(&self, id: NodeId) -> Option<Bank<'a>> {
        let mut bank = self.bank;
        let node = self.graph.node(id);
        bank.stages += usize::from(self.facts.stage[id.0] && id != self.root);
        for leaf in map(node).into_iter().flat_map(|m| &m.leaves) {
            let this = match &leaf.op {
                LeafOp::Load(_) | LeafOp::LoadChannel(..) => continue,
                LeafOp::Correlate(Source::Stage(_), ..) => Family::Columns,
                LeafOp::Correlate(_, f, _) => {
                    let of_stage = f.is_column() && self.facts.row_pass[node.inputs[0].0];
                    if of_stage || (self.facts.row_pass[id.0] && id != self.root) {
                        Family::Columns
                    } else {
                        let large = f.taps().len() > SMALL_FILTER;
                        if bank.geometry.is_some_and(|g| large && g != f.layout()) {
                            return None;
                        }
                        bank.geometry = bank.geometry.or(large.then_some(f.layout()));
                        Family::Filters
                    }
                }
                LeafOp::Generalized(..) | LeafOp::Median(..) => Family::Order,
                LeafOp::Warp(..) | LeafOp::Flip(..) => Family::Geometric,
            };
            if *bank.family.get_or_insert(this) != this {
                return None;
            }
            bank.filters += 1;
        }
        (bank.filters <= MAX_FILTERS && bank.stages <= MAX_STAGES).then_some(bank)
    }

    /// The region's kernel and its inputs.
    fn build(&self) -> (MapKernel, Vec<NodeId>) {
        let mut order = self.members.clone();
        order.sort_unstable();
        let mut b = Builder::default();
        for id in order {
            let node = self.graph.node(id);
            let Some(m) = map(node) else { continue };
            if id != self.root && self.facts.stage[id.0] {
                if let Some(mut stage) = row_pass(node) {
                    stage.source = Source::Input(b.input(node.inputs[0]));
                    b.kernel.stages.push(stage);
                    b.stages.insert(id, b.kernel.stages.len() - 1);
                }
                continue;
            }
            let stages: Vec<usize> = m.stages.iter().map(|s| b.own_stage(s, node)).collect();
            let leaves: Vec<Val> = m.leaves.iter().map(|l| b.leaf(l, node, &stages, self.graph)).collect();
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
        b.kernel.result = b.values.get(&self.root).copied();
        b.kernel.inputs = b.inputs.len();
        (b.kernel, b.inputs)
    }
}

/// What a region leaves to others.
#[derive(Clone, Copy, Default)]
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
        let source = match stage.source {
            Source::Input(i) => Source::Input(self.input(node.inputs[i])),
            other => other,
        };
        let stage = Stage { source, ..stage.clone() };
        if let Some(i) = self.kernel.stages.iter().position(|s| *s == stage) {
            return i;
        }
        self.kernel.stages.push(stage);
        self.kernel.stages.len() - 1
    }

    fn leaf(&mut self, leaf: &Leaf, node: &Node<Kernel>, stages: &[usize], graph: &Graph<Kernel>) -> Val {
        let mut leaf = leaf.clone();
        if let LeafOp::Correlate(source @ Source::Stage(_), ..) = &mut leaf.op {
            if let Source::Stage(s) = *source {
                *source = Source::Stage(stages[s]);
            }
        } else if let Source::Input(i) = leaf.source() {
            let producer = node.inputs[i];
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
