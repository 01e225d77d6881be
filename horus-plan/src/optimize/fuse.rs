//! Fusion: kernels that feed each other pixel by pixel become one kernel.
//!
//! A *region* grows backwards from a node whose value must be stored. It absorbs a producer if all its
//! readers are inside and read it pixel by pixel: the producer becomes part of the expression. It also
//! absorbs a row filter that only column filters inside read, if these are not long: the row filter becomes a
//! stage, which is never stored whole. Every reader recomputes a few pixel operations on broadcast rows,
//! columns and pixels: that costs less than reading their result.
//!
//! Design and limits of regions: `docs/design/fusion.md`.

mod build;
mod region;

use super::OptimizationTarget;
use crate::ir::graph::{Graph, Node, NodeId};
use crate::ir::kernel::{FilterSource, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage};
use region::{FusionRegion, MAX_LEVELS};
pub(super) use region::{MAX_FILTERS, MAX_MEMBERS, MAX_PLANES, MAX_STAGES, SMALL_FILTER};

/// Maximum [`weight`] of the images that one kernel reads.
pub(super) const MAX_INPUTS: usize = 12 * IMAGE;
/// The weight of an image.
const IMAGE: usize = 4;
/// Maximum number of taps of a column filter over a stage on a GPU. Row filters are computed for all rows around
/// a tile; with more taps, storing their result takes less time (`docs/performance/gpu.md`). A CPU computes
/// each row once.
const MAX_COLUMN: usize = 48;
/// Maximum number of operations that each reader recomputes.
const MAX_REPEATED: usize = 8;

/// Fuses kernels where possible. Absorbed nodes stay in the graph, dead.
pub fn fuse(graph: Graph<Kernel>, aim: &OptimizationTarget<'_>) -> Graph<Kernel> {
    let unified = aim.machine.is_unified();
    let (most_taps, most_planes) = if unified { (usize::MAX, MAX_LEVELS) } else { (MAX_COLUMN, MAX_PLANES) };
    let facts = FusionFacts::of(&graph, most_taps, most_planes);
    let mut absorbed = vec![false; graph.nodes.len()];
    let mut out = graph.clone();
    let mut region = FusionRegion::new(&graph, &facts);
    for id in (0..graph.nodes.len()).rev().map(NodeId) {
        if facts.repeated[id.0] {
            // Not if another node still reads it.
            let reads = |r: &NodeId| !absorbed[r.0] && out.node(*r).inputs.contains(&id);
            absorbed[id.0] = !facts.wanted[id.0] && !facts.readers[id.0].iter().any(reads);
        }
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
    out
}

/// Facts that do not depend on the region.
struct FusionFacts {
    /// The distinct readers of each node.
    readers: Vec<Vec<NodeId>>,
    /// The value of the node must be stored.
    wanted: Vec<bool>,
    /// All readers read the node pixel by pixel.
    read_by_pixel: Vec<bool>,
    /// The node is only a row filter.
    row_pass: Vec<bool>,
    /// The node is a row filter that only column filters read.
    stage: Vec<bool>,
    /// The node is a constant.
    fill: Vec<bool>,
    /// The node is a few pixel operations on broadcast pixels, which each reader recomputes.
    repeated: Vec<bool>,
    /// Planes that the node reads, directly or through other nodes of its shape.
    planes: Vec<usize>,
    /// Maximum number of reads of other planes in a kernel.
    most_planes: usize,
}

impl FusionFacts {
    fn of(graph: &Graph<Kernel>, most_taps: usize, most_planes: usize) -> FusionFacts {
        let n = graph.nodes.len();
        let row_pass: Vec<bool> = graph.nodes.iter().map(|x| row_pass(x).is_some()).collect();
        let mut facts = FusionFacts {
            readers: graph.consumers(),
            wanted: vec![false; n],
            read_by_pixel: vec![true; n],
            stage: row_pass.clone(),
            row_pass,
            fill: graph.nodes.iter().map(is_fill).collect(),
            repeated: repeated(graph),
            planes: Vec::with_capacity(n),
            most_planes,
        };
        facts.readers.iter_mut().for_each(|r| r.dedup());
        graph.roots.iter().for_each(|r| facts.wanted[r.0] = true);
        for node in &graph.nodes {
            let leaves = map(node).into_iter().flat_map(|m| &m.leaves);
            let own = leaves.filter(|l| matches!(l.op, LeafOp::LoadPlane(..))).count();
            let through = distinct(&node.inputs).filter(|p| graph.node(*p).shape == node.shape);
            facts.planes.push(through.fold(own, |all, p| all.saturating_add(facts.planes[p.0])));
            for (i, p) in node.inputs.iter().enumerate() {
                let mut leaves = map(node).into_iter().flat_map(|m| m.leaves.iter().filter(move |l| m.reads(l, i)));
                facts.stage[p.0] &= map(node).is_some() && leaves.clone().all(|l| is_column_pass(l, most_taps));
                facts.read_by_pixel[p.0] &= map(node).is_some() && leaves.all(reads_pixel);
            }
        }
        facts
    }
}

/// The weight of an image in the limit of what a kernel reads. An image of one pixel per plane, such as a
/// coefficient for each level, counts a fourth.
pub(super) fn weight(graph: &Graph<Kernel>, image: NodeId) -> usize {
    if graph.node(image).shape.area() == 1 { 1 } else { IMAGE }
}

fn map(node: &Node<Kernel>) -> Option<&MapKernel> {
    match &node.op {
        Kernel::Map(m) => Some(m),
        _ => None,
    }
}

/// The filter of a kernel that is only a row filter.
fn row_pass(node: &Node<Kernel>) -> Option<RowFilterStage> {
    let m = map(node)?;
    match (m.leaves.as_slice(), m.code.is_empty()) {
        ([Leaf { op: LeafOp::Correlate(FilterSource::Input(0), f, b), .. }], true) if f.is_row() && !f.is_column() => {
            Some(RowFilterStage { source: FilterSource::Input(0), filter: f.clone(), border: *b })
        }
        _ => None,
    }
}

fn is_column_pass(leaf: &Leaf, most: usize) -> bool {
    matches!(&leaf.op, LeafOp::Correlate(FilterSource::Input(_), f, _) if f.is_column() && f.taps().len() <= most)
}

/// Marks nodes of at most [`MAX_REPEATED`] pixel operations on broadcast rows, columns and pixels.
fn repeated(graph: &Graph<Kernel>) -> Vec<bool> {
    let mut operations: Vec<Option<usize>> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let input = |leaf: &Leaf| match leaf.op {
            // Constants are part of their readers in any case.
            LeafOp::Load(i) if is_fill(graph.node(node.inputs[i])) => Some(0),
            LeafOp::Load(i) => operations[node.inputs[i].0],
            _ if leaf.repeats() => Some(0),
            _ => None,
        };
        let own = map(node).filter(|m| m.inputs > 0 && m.chains.is_empty() && m.stages.is_empty());
        let sum = own.and_then(|m| m.leaves.iter().map(input).sum::<Option<usize>>());
        operations.push(sum.map(|n| n + 1).filter(|n| *n <= MAX_REPEATED));
    }
    operations.iter().map(Option::is_some).collect()
}

fn is_fill(node: &Node<Kernel>) -> bool {
    matches!(map(node), Some(m) if m.inputs == 0)
}

/// The distinct nodes of a short list.
pub(super) fn distinct(inputs: &[NodeId]) -> impl Iterator<Item = NodeId> {
    inputs.iter().enumerate().filter(|(i, p)| !inputs[..*i].contains(p)).map(|(_, p)| *p)
}

fn reads_pixel(leaf: &Leaf) -> bool {
    matches!(leaf.op, LeafOp::Load(_))
}
