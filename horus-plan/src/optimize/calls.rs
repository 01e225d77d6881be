//! The recorded calls that each kernel computes: a lowered program is followed through the passes by the numbers of
//! its nodes, which those passes keep. What a kernel computes lies between it and its inputs.

use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;
use crate::ops::Whole;
use horus_base::error::RecordedCall;

/// A program as it was lowered.
pub(super) struct LoweredCalls {
    /// By node: its call, its inputs, and `false` if it only reorders pixels, which no call asked for.
    nodes: Vec<(RecordedCall, Vec<NodeId>, bool)>,
    /// By node: the last kernel that was found to compute it.
    seen: Vec<usize>,
}

impl LoweredCalls {
    /// Takes the calls of a program, and numbers its nodes.
    pub(super) fn take(graph: &mut Graph<Kernel>) -> LoweredCalls {
        let mut nodes = Vec::with_capacity(graph.nodes.len());
        for (i, node) in graph.nodes.iter_mut().enumerate() {
            let reorders = matches!(node.op, Kernel::Whole(Whole::Interleave(_) | Whole::Deinterleave(_)));
            nodes.push((node.site, node.inputs.clone(), !reorders));
            node.site.record = i as u64;
        }
        LoweredCalls { seen: vec![usize::MAX; nodes.len()], nodes }
    }

    /// Returns their calls to the nodes of the program that the passes made, and lists the calls of each kernel.
    pub(super) fn give(mut self, graph: &mut Graph<Kernel>) {
        let was: Vec<usize> = graph.nodes.iter().map(|node| node.site.record as usize).collect();
        let mut calls: Vec<Vec<RecordedCall>> = Vec::with_capacity(was.len());
        for (id, node) in graph.iter() {
            let joined = graph.joined.iter().find(|joined| joined.nodes.contains(&id));
            let inputs = joined.map_or(&node.inputs, |joined| &joined.inputs);
            inputs.iter().filter(|input| **input != id).for_each(|input| self.seen[was[input.0]] = id.0);
            calls.push(self.between(was[id.0], id.0));
        }
        for (node, was) in graph.nodes.iter_mut().zip(was) {
            node.site = self.nodes[was].0;
        }
        graph.calls = calls;
    }

    /// The calls from node `last` back to nodes that kernel `kernel` has seen, in the order of recording.
    fn between(&mut self, last: usize, kernel: usize) -> Vec<RecordedCall> {
        let (mut calls, mut open) = (Vec::new(), vec![last]);
        self.seen[last] = kernel;
        while let Some(at) = open.pop() {
            let (call, inputs, is_call) = &self.nodes[at];
            if *is_call {
                calls.push(*call);
            }
            for input in inputs {
                if self.seen[input.0] != kernel {
                    self.seen[input.0] = kernel;
                    open.push(input.0);
                }
            }
        }
        calls.sort_by_key(|call| call.record);
        calls.dedup_by_key(|call| call.record);
        calls
    }
}
