//! The kernel of a region, composed of the kernels of its members.

use std::collections::HashMap;

use super::region::FusionRegion;
use super::{is_fill, map, reads_pixel, row_pass};
use crate::ir::graph::{Graph, Node, NodeId};
use crate::ir::kernel::{FilterSource, Instr, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use horus_base::dtype::Scalar;
use horus_base::shape::{Axis, Border};

impl FusionRegion<'_> {
    /// The region's kernel and its inputs.
    pub(super) fn build(&self) -> (MapKernel, Vec<NodeId>) {
        let mut order = self.members.clone();
        order.sort_unstable();
        let mut b = MapKernelBuilder::default();
        for id in order {
            let node = self.graph.node(id);
            let Some(m) = map(node) else { continue };
            if id != self.root && self.facts.stage[id.0] {
                if let Some(mut stage) = row_pass(node) {
                    stage.source = FilterSource::Input(b.input(node.inputs[0]));
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
                Val::Const(_) | Val::Index(..) => v,
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

#[derive(Default)]
struct MapKernelBuilder {
    kernel: MapKernel,
    inputs: Vec<NodeId>,
    values: HashMap<NodeId, Val>,
    stages: HashMap<NodeId, usize>,
}

impl MapKernelBuilder {
    fn input(&mut self, id: NodeId) -> usize {
        match self.inputs.iter().position(|i| *i == id) {
            Some(i) => i,
            None => {
                self.inputs.push(id);
                self.inputs.len() - 1
            }
        }
    }

    fn own_stage(&mut self, stage: &RowFilterStage, node: &Node<Kernel>) -> usize {
        let source = match stage.source {
            FilterSource::Input(i) => FilterSource::Input(self.input(node.inputs[i])),
            other => other,
        };
        let stage = RowFilterStage { source, ..stage.clone() };
        if let Some(i) = self.kernel.stages.iter().position(|s| *s == stage) {
            return i;
        }
        self.kernel.stages.push(stage);
        self.kernel.stages.len() - 1
    }

    fn leaf(&mut self, leaf: &Leaf, node: &Node<Kernel>, stages: &[usize], graph: &Graph<Kernel>) -> Val {
        let mut leaf = leaf.clone();
        if let LeafOp::Correlate(source @ FilterSource::Stage(_), ..) = &mut leaf.op {
            if let FilterSource::Stage(s) = *source {
                *source = FilterSource::Stage(stages[s]);
            }
        } else if let FilterSource::Input(i) = leaf.source() {
            let producer = node.inputs[i];
            if reads_pixel(&leaf)
                && let Some(&v) = self.values.get(&producer)
            {
                return v;
            }
            if let Some(v) = stored_nowhere(&leaf, graph.node(producer)) {
                return v;
            }
            match (&mut leaf.op, self.stages.get(&producer)) {
                (LeafOp::Correlate(source, ..), Some(&s)) => *source = FilterSource::Stage(s),
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

/// The pixel that a leaf reads from an image that is not stored, as a value of its readers.
fn stored_nowhere(leaf: &Leaf, producer: &Node<Kernel>) -> Option<Val> {
    let value = map(producer).filter(|_| is_fill(producer))?.result?;
    match (&leaf.op, value) {
        (LeafOp::Load(_), Val::Const(_) | Val::Index(..)) => Some(value),
        // Beyond the levels of the image the value is another.
        (LeafOp::LoadPlane(_, map), _) if matches!(map.border, Border::Constant(_)) => None,
        (LeafOp::LoadPlane(..), Val::Const(_) | Val::Index(Axis::Rows | Axis::Columns, _)) => Some(value),
        (LeafOp::LoadPlane(_, map), Val::Index(axis, dtype)) => {
            let (plane, channels) = (map.fixed()?, producer.shape.channels);
            let at = if axis == Axis::Depth { plane / channels } else { plane % channels };
            Some(Val::Const(Scalar::from_f64(dtype, at as f64)))
        }
        _ => None,
    }
}
