//! Runs of pixel operations that read each other or the same images. They are collected node by node, because
//! a launch of several results may pay only with the last node.

use super::{KernelGroup, KernelGroups, MOST, map};
use crate::ir::graph::{Node, NodeId};
use crate::ir::kernel::{Kernel, MapKernel};
use crate::optimize::fuse::{MAX_INPUTS, distinct, weight};

/// Search distance from a run to another node, and from a node to groups with the same inputs; bounds the
/// time of planning.
pub(super) const AHEAD: usize = 64;
/// Search budget for runs: per node of the graph, and a constant. Beyond it, nodes are added one by one.
const EFFORT: [usize; 2] = [1 << 12, 1 << 20];
/// Effort per joined part of a kernel; visiting a node counts 1.
pub(super) const JOINED: usize = 16;

impl KernelGroups<'_> {
    /// Groups pixel operations that read each other or the same images, as many as a launch can hold; returns
    /// `true` if there are any. An intermediate group may store more values than a launch can: an expression
    /// of several results is collected node by node, and its number of stored results is known only at the
    /// end.
    /// results is known only at the end.
    pub(super) fn enter_runs(&mut self) -> bool {
        let [each, besides] = EFFORT;
        let most = each * self.graph.nodes.len() + besides;
        for first in (0..self.graph.nodes.len()).map(NodeId) {
            if self.of[first.0].is_none()
                && self.pixelwise[first.0]
                && let Some(group) = self.run_from(first, most)
            {
                group.nodes.iter().for_each(|n| self.of[n.0] = Some(self.groups.len()));
                self.floors.cover(&group.nodes);
                self.groups.push(group);
            }
        }
        !self.groups.is_empty()
    }

    /// The run from a node on with the largest saving, found with an effort of at most `most`.
    fn run_from(&self, first: NodeId, most: usize) -> Option<KernelGroup> {
        let mut run = self.alone(first)?;
        let mut apart = run.cost.seconds;
        let mut best: Option<(f64, KernelGroup)> = None;
        // Nodes of the run that every longer run also stores.
        let mut kept: Vec<NodeId> = [first].into_iter().filter(|n| self.is_kept(*n)).collect();
        let mut refused = Vec::new();
        while self.effort.get() < most
            && let Some(next) = self.next_of(&run, &mut refused)
        {
            let nodes = run.nodes.iter().copied().chain([next]).collect();
            let Some((longer, alone)) = self.group(nodes).zip(self.alone(next)) else {
                refused.push(next);
                continue;
            };
            apart += alone.cost.seconds;
            let spared = apart - longer.cost.seconds;
            if self.is_launch(&longer.stored) && spared > best.as_ref().map_or(0.0, |(most, _)| *most) {
                best = Some((spared, longer.clone()));
            }
            if self.is_kept(next) {
                kept.push(next);
                if kept.len() > MOST || !self.is_read_together(&kept) {
                    break; // no run that is longer is a launch
                }
            }
            run = longer;
        }
        best.map(|(_, group)| group)
    }

    /// Returns `true` if every run with this node stores it: it is a result of the program, or a node that is
    /// in no run reads it.
    fn is_kept(&self, id: NodeId) -> bool {
        let shape = self.graph.node(id).shape;
        let joins = |r: &NodeId| self.pixelwise[r.0] && self.of[r.0].is_none() && self.graph.node(*r).shape == shape;
        self.wanted[id.0] || !self.readers[id.0].iter().all(joins)
    }

    /// Returns `true` if a run with one more node stays within the limit of inputs.
    fn has_room(&self, run: &KernelGroup, next: NodeId) -> bool {
        let node = self.graph.node(next);
        let known = run.inputs.iter().copied().filter(|i| *i != next);
        let new = distinct(&node.inputs).filter(|i| !run.inputs.contains(i) && !run.has(*i));
        known.chain(new).map(|i| weight(self.graph, i)).sum::<usize>() <= MAX_INPUTS
    }

    /// The next node of pixel operations on the same shape that the run reads, that reads the run, or that
    /// reads the same images. Nodes that would exceed the limit of inputs are added to `refused`.
    fn next_of(&self, run: &KernelGroup, refused: &mut Vec<NodeId>) -> Option<NodeId> {
        let shape = self.graph.node(run.nodes[0]).shape;
        let from = run.nodes[0].0.saturating_sub(AHEAD);
        let to = self.graph.nodes.len().min(run.nodes[run.nodes.len() - 1].0 + AHEAD);
        let found = (from..to).map(NodeId).find(|id| {
            let node = self.graph.node(*id);
            let is_near = || {
                let reads = |i: &NodeId| run.inputs.contains(i) || run.has(*i);
                run.inputs.contains(id) || node.inputs.iter().any(reads)
            };
            let is_free = self.of[id.0].is_none() && !run.has(*id) && !refused.contains(id);
            if !self.pixelwise[id.0] || node.shape != shape || !is_free || !is_near() {
                return false;
            }
            let has_room = self.has_room(run, *id);
            if !has_room {
                refused.push(*id);
            }
            has_room
        });
        self.takes(found.map_or(to, |id| id.0) - from);
        found
    }
}

/// Returns `true` if a node reads only the pixel itself, possibly of other levels.
pub(super) fn is_pixelwise(node: &Node<Kernel>) -> bool {
    let pixelwise = |m: &MapKernel| m.stages.is_empty() && m.leaves.iter().all(|l| l.filter_kind().is_none());
    !node.shape.is_empty() && map(node).is_some_and(pixelwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::{Graph, Op, PixelOpOperand, ValueId};
    use crate::machine::Machine;
    use crate::ops::Merge;
    use crate::ops::pixel::PixelOp;
    use crate::optimize::{OptimizationTarget, optimize_for};
    use horus_base::dtype::{DType, Scalar};
    use horus_base::shape::Shape;

    fn push(graph: &mut Graph<Op>, op: Op, inputs: &[NodeId], planes: usize) -> NodeId {
        let site = std::panic::Location::caller().into();
        let (inputs, shape, dtype) = (inputs.to_vec(), Shape::new(9, 7, planes), DType::F32);
        graph.push(Node { op, inputs, shape, dtype, site })
    }

    fn pixel(graph: &mut Graph<Op>, op: PixelOp, inputs: &[NodeId]) -> NodeId {
        let mut operands: Vec<PixelOpOperand> = (0..inputs.len()).map(PixelOpOperand::Input).collect();
        operands.extend((operands.len()..op.arity()).map(|i| PixelOpOperand::Const(Scalar::F32(i as f32))));
        push(graph, Op::Pixel(op, operands), inputs, 1)
    }

    /// An odd-even transposition sort of `images` images, with as many rounds.
    fn sorted(images: u64) -> Graph<Op> {
        let mut g = Graph::default();
        let mut all: Vec<NodeId> = (0..images).map(|i| push(&mut g, Op::Source(ValueId(i)), &[], 1)).collect();
        for turn in 0..all.len() {
            for pair in all[turn % 2..].chunks_exact_mut(2) {
                let both = [pair[0], pair[1]];
                pair[0] = pixel(&mut g, PixelOp::Min, &both);
                pair[1] = pixel(&mut g, PixelOp::Max, &both);
            }
        }
        g.roots = vec![all[all.len() / 2]];
        g
    }

    /// Planes computed from one image, merged into one image.
    fn stacked(planes: usize) -> Graph<Op> {
        let mut g = Graph::default();
        let image = push(&mut g, Op::Source(ValueId(0)), &[], 1);
        let all: Vec<NodeId> = (0..planes)
            .map(|i| {
                let operands = vec![PixelOpOperand::Input(0), PixelOpOperand::Const(Scalar::F32(i as f32 + 2.0))];
                push(&mut g, Op::Pixel(PixelOp::Mul, operands), &[image], 1)
            })
            .collect();
        g.roots = vec![push(&mut g, Op::from(Merge), &all, planes)];
        g
    }

    #[test]
    fn the_effort_is_linear_in_the_size_of_the_program() {
        let machine = Machine::of_default(false);
        let aim = OptimizationTarget { joined: false, ..OptimizationTarget::of(&machine) };
        for program in [sorted(9), sorted(20), stacked(50), stacked(400)] {
            let graph = optimize_for(program, true, &aim, &mut |_, _| ()).unwrap();
            let n = graph.nodes.len();
            let mut one_by_one = KernelGroups::new(&graph, &aim);
            one_by_one.enter_all();
            let mut runs = KernelGroups::new(&graph, &aim);
            runs.enter_runs();
            // The last attempt visits each node and joins at most as many as a launch can hold.
            let most = EFFORT[0] * n + EFFORT[1] + n + 4096 * JOINED;
            let efforts = [&one_by_one, &runs].map(|g| g.effort.get());
            assert!(efforts.iter().all(|effort| *effort < most), "{efforts:?} of {n} nodes");
            // An input of a node that cannot be part of a joined launch is known to be stored.
            let few = efforts[1] < 1024 * n;
            assert!(few || graph.nodes.iter().all(|node| node.op != Kernel::from(Merge)), "{efforts:?} of {n} nodes");
        }
    }
}
