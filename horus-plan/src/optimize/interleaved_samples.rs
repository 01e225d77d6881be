//! Single samples of interleaved pixels, read and written in place: pixel operations on channels, such as a
//! luminance or a change of colour space, need no planes.

use super::fuse::{MAX_INPUTS, MAX_MEMBERS, MAX_PLANES, distinct, weight};
use crate::ir::graph::{Graph, Node, NodeId};
use crate::ir::kernel::{FilterSource, JoinPart, Kernel, Leaf, LeafOp, MapKernel, Val};
use crate::ops::Whole;
use crate::ops::planes::PlaneMap;
use horus_base::shape::Shape;

/// Maximum number of samples that one kernel computes.
const MOST: usize = 8;
/// Maximum number of kernels that read single samples of the same interleaved pixels. Each reads all bytes;
/// with more kernels, making planes once takes less time.
const READERS: usize = 3;

/// Computes channels that are only interleaved by one kernel, which writes interleaved pixels. Then reads
/// samples of interleaved pixels instead of planes made of these pixels, where no other node needs the
/// planes.
pub fn weave(graph: Graph<Kernel>) -> Graph<Kernel> {
    let is = |node: &Node<Kernel>| matches!(node.op, Kernel::Whole(Whole::Interleave(_) | Whole::Deinterleave(_)));
    if !graph.nodes.iter().any(is) {
        return graph;
    }
    without_planes(interleaved(graph)).without_dead()
}

/// An image in a [`JoinPart`]: a node, or a channel of a node.
type ChannelRef = (NodeId, Option<usize>);

/// The graph with one kernel for each image that was stacked and interleaved.
fn interleaved(mut graph: Graph<Kernel>) -> Graph<Kernel> {
    let readers = graph.consumers();
    let mut wanted = vec![false; graph.nodes.len()];
    graph.roots.iter().for_each(|root| wanted[root.0] = true);
    for id in (0..graph.nodes.len()).map(NodeId) {
        let node = graph.node(id);
        let Kernel::Whole(Whole::Interleave(_)) = node.op else { continue };
        let stack = node.inputs[0];
        let apart = graph.node(stack).inputs.iter().all(|i| graph.node(*i).shape.depth == node.shape.depth);
        let only = !wanted[stack.0] && readers[stack.0].iter().all(|reader| *reader == id);
        if !apart || !only || node.shape.is_empty() || !(2..=MOST).contains(&node.shape.samples) {
            continue;
        }
        let woven = match graph.node(stack).op {
            Kernel::Whole(Whole::Merge(_)) => {
                let members = members(&graph, stack, &readers, &wanted);
                kernel(&graph, stack, &members).or_else(|| kernel(&graph, stack, &[]))
            }
            _ => channels_of(&graph, stack),
        };
        if let Some((kernel, inputs)) = woven {
            let node = &mut graph.nodes[id.0];
            (node.op, node.inputs) = (Kernel::Map(kernel), inputs);
        }
    }
    graph.without_dead()
}

/// The pixel operations, in order, whose results are used for stacked channels only.
fn members(graph: &Graph<Kernel>, stack: NodeId, readers: &[Vec<NodeId>], wanted: &[bool]) -> Vec<NodeId> {
    let pixel = Shape { channels: 1, ..graph.node(stack).shape };
    let mut members = Vec::new();
    // Backwards, so that all readers of a node are visited before it.
    for id in (0..stack.0).rev().map(NodeId) {
        let node = graph.node(id);
        let inside = |reader: &NodeId| *reader == stack || members.contains(reader);
        if node.shape == pixel
            && map(node).is_some()
            && !wanted[id.0]
            && !readers[id.0].is_empty()
            && readers[id.0].iter().all(inside)
        {
            if members.len() == MAX_MEMBERS {
                return Vec::new();
            }
            members.push(id);
        }
    }
    members.reverse();
    members
}

/// The kernel that computes all stacked channels with these members, and its inputs.
fn kernel(graph: &Graph<Kernel>, stack: NodeId, members: &[NodeId]) -> Option<(MapKernel, Vec<NodeId>)> {
    let node = graph.node(stack);
    let of_node = |id: NodeId| -> ChannelRef { (id, None) };
    // The channels, and the members' own inputs.
    let channels: Vec<ChannelRef> = (node.inputs.iter())
        .flat_map(|i| {
            let one = members.contains(i);
            (0..graph.node(*i).shape.channels).map(move |c| (*i, (!one).then_some(c)))
        })
        .collect();
    let read: Vec<Vec<ChannelRef>> =
        members.iter().map(|m| graph.node(*m).inputs.iter().copied().map(of_node).collect()).collect();
    let mut outside: Vec<(ChannelRef, MapKernel, [ChannelRef; 1])> = Vec::new();
    for part @ (id, channel) in &channels {
        let Some(c) = *channel else { continue };
        if outside.iter().any(|(known, ..)| known == part) {
            continue;
        }
        let from = graph.node(*id);
        let op = if from.shape.channels == 1 {
            LeafOp::Load(0)
        } else {
            LeafOp::LoadPlane(0, PlaneMap::channel(from.shape, c))
        };
        let leaves = vec![Leaf { op, dtype: from.dtype }];
        let kernel = MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() };
        outside.push((*part, kernel, [of_node(*id)]));
    }
    let mut parts = Vec::with_capacity(members.len() + outside.len());
    for (member, inputs) in members.iter().zip(&read) {
        parts.push(JoinPart { id: of_node(*member), kernel: map(graph.node(*member))?, inputs });
    }
    parts.extend(outside.iter().map(|(id, kernel, inputs)| JoinPart { id: *id, kernel, inputs }));
    let (mut kernel, inputs) = MapKernel::join(&parts, |part| channels.contains(&part))?;
    let stored: Vec<ChannelRef> = parts.iter().map(|part| part.id).filter(|part| channels.contains(part)).collect();
    let values: Vec<Val> = kernel.results().collect();
    let mut results = channels.iter().map(|part| stored.iter().position(|known| known == part).map(|at| values[at]));
    kernel.result = results.next()?;
    kernel.additional_results = results.collect::<Option<_>>()?;
    kernel.woven = true;
    fitting(graph, kernel, inputs)
}

/// The kernel of all channels of pixel operations that read one channel (such as a mask) for all of them, and
/// its inputs.
fn channels_of(graph: &Graph<Kernel>, id: NodeId) -> Option<(MapKernel, Vec<NodeId>)> {
    let node = graph.node(id);
    let whole = map(node).filter(|m| m.additional_results.is_empty() && node.shape.depth == 1)?;
    let one = |c: usize| {
        let of_channel = |leaf: &Leaf| {
            let (i, plane) = match &leaf.op {
                LeafOp::Load(i) => (*i, c),
                LeafOp::LoadPlane(i, map) => (*i, map.at(c)?),
                _ => return None,
            };
            let from = graph.node(node.inputs[i]).shape;
            let op =
                if from.channels == 1 { LeafOp::Load(i) } else { LeafOp::LoadPlane(i, PlaneMap::channel(from, plane)) };
            Some(Leaf { op, dtype: leaf.dtype })
        };
        let leaves = whole.leaves.iter().map(of_channel).collect::<Option<_>>()?;
        Some(MapKernel { leaves, ..whole.clone() })
    };
    let channels: Vec<MapKernel> = (0..node.shape.channels).map(one).collect::<Option<_>>()?;
    let inputs: Vec<ChannelRef> = node.inputs.iter().map(|i| (*i, None)).collect();
    let parts: Vec<JoinPart<'_, ChannelRef>> = channels
        .iter()
        .enumerate()
        .map(|(c, kernel)| JoinPart { id: (id, Some(c)), kernel, inputs: &inputs })
        .collect();
    let (kernel, inputs) = MapKernel::join(&parts, |_| true)?;
    fitting(graph, MapKernel { woven: true, ..kernel }, inputs)
}

/// A kernel and its inputs, if it is not too large.
fn fitting(graph: &Graph<Kernel>, kernel: MapKernel, inputs: Vec<ChannelRef>) -> Option<(MapKernel, Vec<NodeId>)> {
    let inputs: Vec<NodeId> = inputs.into_iter().map(|(id, _)| id).collect();
    let reads: usize = distinct(&inputs).map(|i| weight(graph, i)).sum();
    let fits = kernel.code.len() <= MAX_MEMBERS && kernel.leaves.len() <= MAX_PLANES && reads <= MAX_INPUTS;
    fits.then_some((kernel, inputs))
}

/// The graph whose pixel operations read interleaved pixels if all readers of the planes can. Reductions
/// along rows (of each sample by itself) and histograms (which count all samples alike) also read interleaved
/// pixels.
fn without_planes(mut graph: Graph<Kernel>) -> Graph<Kernel> {
    let readers = graph.consumers();
    for id in (0..graph.nodes.len()).map(NodeId) {
        let node = graph.node(id);
        let Kernel::Whole(Whole::Deinterleave(_)) = node.op else { continue };
        let samples = node.inputs[0];
        let mut all: Vec<NodeId> = distinct(&readers[id.0]).collect();
        all.dedup();
        let reads_planes = |reader: &NodeId| {
            let reader = graph.node(*reader);
            let at = |i: usize| reader.inputs[i] == id;
            match reader.op {
                Kernel::Whole(Whole::Histogram(_)) => return true,
                Kernel::Whole(Whole::RowReduce(_)) => return !reader.inputs[1..].contains(&id),
                _ => {}
            }
            map(reader).is_some_and(|m| {
                m.leaves.iter().all(|leaf| match (&leaf.op, leaf.source()) {
                    (LeafOp::LoadPlane(..), _) => true,
                    (_, FilterSource::Input(i)) => !at(i),
                    _ => false,
                })
            })
        };
        if graph.roots.contains(&id) || all.len() > READERS || !all.iter().all(reads_planes) {
            continue;
        }
        for reader in all {
            graph.nodes[reader.0].inputs.iter_mut().filter(|i| **i == id).for_each(|i| *i = samples);
        }
    }
    graph
}

/// The kernel of pixel operations that may read single samples.
fn map(node: &Node<Kernel>) -> Option<&MapKernel> {
    match &node.op {
        Kernel::Map(m) if m.reads_samples() && (m.woven || node.shape.samples == 1) => Some(m),
        _ => None,
    }
}
