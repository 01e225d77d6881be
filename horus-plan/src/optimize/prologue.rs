//! Prologues: nodes that only the filters and shifts of one kernel read become *chains* of that kernel,
//! evaluated around its pixels and never stored. A chain has pixel operations, shifts or (on CPUs) filters of
//! a few taps, and may read chains itself.
//!
//! A pixel is then evaluated more than once, which pays while the filters are short or the operations read
//! few images, as predicted from the machine profile. Otherwise the node is a kernel of its own, and only a
//! conversion at its end becomes a chain ([`narrow`]). [`Stencil`] forces the choice.
//!
//! Design: "Prologues" in `docs/design/fusion.md`.

use super::OptimizationTarget;
use super::blocks::ordered;
use super::fuse::{MAX_INPUTS, weight};
use crate::ir::graph::{Graph, Node, NodeId};
use crate::ir::kernel::{FilterSource, ImageExtent, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Val};
use crate::ops::neighbourhood::Reach;
use horus_base::settings::Stencil;
use horus_base::shape::{Border, Shape, Window};

/// Maximum number of images that filters read through a chain, counted once per evaluation of the chain for a
/// pixel: each evaluation is code of its own.
const MAX_READS: usize = 8;
/// Maximum reach of filters over a chain, in rows or columns on both sides together, so that a tile fits.
const MAX_REACH: usize = 64;
/// Maximum number of constants of a chain. On a GPU they are kernel parameters, which share their space with
/// taps.
const MAX_CONSTANTS: usize = 32;

/// Maximum number of chains of a kernel if any has filters.
const MAX_CHAINS: usize = 6;
/// A kernel whose chains have filters must take at most this fraction of the time of its separate parts,
/// because the cost of such chains is an estimate.
const GAIN: f64 = 0.9;

/// Moves nodes that filters read into the kernels that read them. The absorbed nodes stay in the graph, dead.
///
/// All nodes of the graph must be needed by its roots.
pub fn absorb(mut graph: Graph<Kernel>, aim: &OptimizationTarget<'_>) -> Graph<Kernel> {
    if aim.stencil == Stencil::Stored {
        return graph;
    }
    let mut readers = graph.consumers();
    readers.iter_mut().for_each(|r| r.dedup());
    let mut wanted = vec![false; graph.nodes.len()];
    graph.roots.iter().for_each(|r| wanted[r.0] = true);
    for id in (0..graph.nodes.len()).map(NodeId) {
        // Other kernels have no chains and may read any number of images.
        if !matches!(graph.node(id).op, Kernel::Map(_)) {
            continue;
        }
        // Once readers of a node have become chains of this kernel, the node may be left to this kernel
        // alone.
        let mut refused: Vec<NodeId> = Vec::new();
        loop {
            let sole = |p: &&NodeId| readers[p.0] == [id] && !wanted[p.0] && !refused.contains(p);
            let Some(&p) = graph.node(id).inputs.iter().filter(sole).min() else { break };
            let chain = map(&graph, p).and_then(|chain| joined(&graph, id, p, (chain, &graph.node(p).inputs)));
            let found = chain.and_then(|(kernel, inputs)| {
                let kernel = chosen(&graph, aim, kernel, &inputs, [p, id])?;
                Some((Kernel::Map(kernel), inputs))
            });
            let Some(joined) = found else {
                refused.push(p);
                continue;
            };
            for q in &graph.node(p).inputs {
                readers[q.0].retain(|r| *r != p && *r != id);
                readers[q.0].push(id);
            }
            let node = &mut graph.nodes[id.0];
            (node.op, node.inputs) = joined;
        }
    }
    graph
}

fn map(graph: &Graph<Kernel>, id: NodeId) -> Option<&MapKernel> {
    if let Kernel::Map(map) = &graph.node(id).op { Some(map) } else { None }
}

/// Stores images that the filters of one kernel read before their last operation, if that converts to a wider
/// type: the conversion becomes a chain of the filters.
///
/// All nodes of the graph must be needed by its roots.
pub fn narrow(mut graph: Graph<Kernel>, aim: &OptimizationTarget<'_>) -> Graph<Kernel> {
    if aim.stencil == Stencil::Stored {
        return graph;
    }
    let readers = graph.consumers();
    for p in (0..graph.nodes.len()).map(NodeId).filter(|p| !graph.roots.contains(p)).collect::<Vec<_>>() {
        if let Some((id, others)) = readers[p.0].split_first()
            && others.iter().all(|r| r == id)
        {
            convert_later(&mut graph, *id, p);
        }
    }
    graph
}

/// Stores node `p` in the narrower type before its last conversion. Node `id`, its only reader, converts as
/// it reads.
fn convert_later(graph: &mut Graph<Kernel>, id: NodeId, p: NodeId) {
    let Some(MapKernel { result: Some(Val::Instr(last)), code, additional_results: more, .. }) = map(graph, p) else {
        return;
    };
    let Some((&Instr { op: InstrOp::Convert(rule), operand, result, ref args }, [])) =
        code.get(*last..).and_then(<[_]>::split_first)
    else {
        return;
    };
    let (&[value @ Val::Instr(_)], true) = (&args[..], more.is_empty() && operand.size() < result.size()) else {
        return;
    };
    let convert = Instr { op: InstrOp::Convert(rule), operand, result, args: vec![Val::Leaf(0)] };
    let leaf = Leaf { op: LeafOp::Load(0), dtype: operand };
    let chain = MapKernel {
        inputs: 1,
        leaves: vec![leaf],
        code: vec![convert],
        result: Some(Val::Instr(0)),
        ..MapKernel::default()
    };
    let Some((kernel, inputs)) = joined(graph, id, p, (&chain, &[p])) else { return };
    (graph.nodes[id.0].op, graph.nodes[id.0].inputs) = (Kernel::Map(kernel), inputs);
    let node = &mut graph.nodes[p.0];
    node.dtype = operand;
    if let Kernel::Map(map) = &mut node.op {
        map.code.pop();
        map.result = Some(value);
    }
}

/// The kernel of node `id` with `chain` in place of node `p`, and its inputs; `None` if that is impossible.
fn joined(
    graph: &Graph<Kernel>,
    id: NodeId,
    p: NodeId,
    (chain, chain_inputs): (&MapKernel, &[NodeId]),
) -> Option<(MapKernel, Vec<NodeId>)> {
    let (node, producer) = (graph.node(id), graph.node(p));
    let reader = map(graph, id).filter(|_| producer.shape == node.shape)?;
    // An iteration of a loop reads the previous one: another pass decides the number of iterations per
    // launch.
    let bare = |m: &MapKernel| m.stages.is_empty() && m.chains.is_empty() && !m.is_pointwise();
    if bare(reader) && bare(chain) && ordered(reader, &node.inputs).0 == ordered(chain, chain_inputs).0 {
        return None;
    }
    let (reader, chain) = {
        let shifted = |inputs, map| shifting(graph, (inputs, node.shape), map, |_, _| true);
        (shifted(&node.inputs, reader), shifted(chain_inputs, chain))
    };
    // The inputs without the producer, then the inputs of the chain.
    let mut inputs: Vec<NodeId> = node.inputs.iter().copied().filter(|i| *i != p).collect();
    for i in chain_inputs {
        if !inputs.contains(i) {
            inputs.push(*i);
        }
    }
    if inputs.iter().map(|i| weight(graph, *i)).sum::<usize>() > MAX_INPUTS {
        return None;
    }
    // Readers of the producer are changed below.
    let to = |id: NodeId| inputs.iter().position(|i| *i == id).unwrap_or(usize::MAX);
    let chain = renumbered(&chain, inputs.len(), &|i| to(chain_inputs[i]));
    let kernel =
        renumbered(&reader, inputs.len(), &|i| if node.inputs[i] == p { usize::MAX } else { to(node.inputs[i]) });
    if !fits(&kernel, &chain) {
        return None;
    }
    let kernel = substituted(kernel, &chain);
    let plain = kernel.chains.iter().all(MapKernel::is_pointwise);
    ((plain || kernel.chains.len() <= MAX_CHAINS) && kernel.chain_fault().is_none()).then_some((kernel, inputs))
}

/// Placeholder for the producer in a kernel that absorbs it as a chain.
const GONE: FilterSource = FilterSource::Input(usize::MAX);

/// The kernel with `chain` in place of the producer, including in chains that read the producer.
fn substituted(mut kernel: MapKernel, chain: &MapKernel) -> MapKernel {
    kernel.chains = kernel.chains.into_iter().map(|c| substituted(c, chain)).collect();
    let source = FilterSource::Chain(kernel.chains.len());
    let mut around = false;
    let mut redirected = |s: &mut FilterSource| {
        if *s == GONE {
            (*s, around) = (source, true);
        }
    };
    kernel.stages.iter_mut().for_each(|s| redirected(&mut s.source));
    for leaf in &mut kernel.leaves {
        if let LeafOp::Correlate(s, ..) | LeafOp::Shift(s, ..) = &mut leaf.op {
            redirected(s);
        }
    }
    if around {
        kernel.chains.push(chain.clone());
    }
    if kernel.leaves.iter().any(|l| l.op == LeafOp::Load(usize::MAX)) {
        kernel = inlined(kernel, chain.clone());
    }
    kernel
}

/// The kernel with those samples at whole pixels replaced by shifts that are wanted, if their image has the kernel's
/// shape.
fn shifting(
    graph: &Graph<Kernel>,
    (inputs, shape): (&[NodeId], Shape),
    m: &MapKernel,
    is_wanted: impl Fn([isize; 2], Border) -> bool,
) -> MapKernel {
    let mut m = m.clone();
    for leaf in &mut m.leaves {
        if let Some((FilterSource::Input(i), by, border)) = leaf.at_offset()
            && graph.node(inputs[i]).shape == shape
            && leaf.dtype.is_float()
            && is_wanted(by, border)
        {
            leaf.op = LeafOp::Shift(FilterSource::Input(i), by, border);
        }
    }
    m
}

/// Replaces samples at whole pixels a few rows away by shifts, if rows are divided among ranks: a shift reads rows
/// around the strip, which one halo exchange serves, a warp a footprint of its own.
pub(crate) fn shift_rows(mut graph: Graph<Kernel>, aim: &OptimizationTarget<'_>) -> Graph<Kernel> {
    /// Maximum number of rows: a guess.
    const MOST: usize = 8;
    if aim.ranks == 1 {
        return graph;
    }
    let is_near = |[down, right]: [isize; 2], border| {
        down.unsigned_abs() <= MOST && right.unsigned_abs() <= MAX_REACH && border != Border::Wrap
    };
    for at in 0..graph.nodes.len() {
        let Node { op: Kernel::Map(map), inputs, shape, .. } = &graph.nodes[at] else { continue };
        graph.nodes[at].op = Kernel::Map(shifting(&graph, (inputs, *shape), map, is_near));
    }
    graph
}

/// The same kernel over `inputs` inputs, renumbered by `to`.
fn renumbered(m: &MapKernel, inputs: usize, to: &dyn Fn(usize) -> usize) -> MapKernel {
    let mut m = MapKernel { inputs, ..m.clone() };
    m.leaves.iter_mut().for_each(|l| l.map_input(to));
    for stage in &mut m.stages {
        if let FilterSource::Input(i) = &mut stage.source {
            *i = to(*i);
        }
    }
    m.chains = m.chains.iter().map(|c| renumbered(c, inputs, to)).collect();
    m
}

/// The kernel, if `Stencil` requests it or it is predicted to be faster than the kernels of nodes `apart` in
/// sequence. On an H200, at 4096 x 4096 f32, filters of a product of two images take this fraction of the
/// time of product and filter in sequence: 3 x 3 taps 0.66, 17 x 17 0.87, 5 + 5 0.80, 19 + 19 0.83, 43 + 43
/// 1.07.
fn chosen(
    graph: &Graph<Kernel>,
    aim: &OptimizationTarget<'_>,
    kernel: MapKernel,
    inputs: &[NodeId],
    apart: [NodeId; 2],
) -> Option<MapKernel> {
    if kernel.chains_filters() && !aim.machine.is_unified() {
        return None;
    }
    match aim.stencil {
        Stencil::Stored => return None,
        Stencil::Tile => return Some(kernel),
        Stencil::Auto => {}
    }
    let extent = |id: NodeId| (graph.node(id).shape, graph.node(id).dtype);
    let work = |kernel: &Kernel, inputs: &[NodeId], out: NodeId| {
        let inputs: Vec<ImageExtent> = inputs.iter().map(|i| extent(*i)).collect();
        kernel.work(&inputs, extent(out), Window::whole(graph.node(out).shape.height))
    };
    let plain = kernel.chains.iter().all(MapKernel::is_pointwise);
    let kernel = Kernel::Map(kernel);
    let joined = work(&kernel, inputs, apart[1]);
    let joined = aim.machine.slowest(|m| m.launch(&joined).seconds);
    let parts = apart.map(|id| work(&graph.node(id).op, &graph.node(id).inputs, id));
    let parts = aim.machine.slowest(|m| parts.iter().map(|w| m.launch(w).seconds).sum());
    let Kernel::Map(kernel) = kernel else { return None };
    (joined < if plain { parts } else { GAIN * parts }).then_some(kernel)
}

/// Returns `true` if only filters or shifts of `reader` or its chains read the producer, and all reads allow
/// substitution of `chain`. Code and tiles of the joined kernel must be of moderate size.
fn fits(reader: &MapKernel, chain: &MapKernel) -> bool {
    let Some((reach, evaluations)) = readings(reader) else { return false };
    let small = (reach.up + reach.down).max(reach.left + reach.right) <= MAX_REACH;
    let constants = chain.code.iter().flat_map(|i| &i.args).filter(|v| matches!(v, Val::Const(_))).count();
    small && constants <= MAX_CONSTANTS && (1..=MAX_READS).contains(&(chain.leaves.len() * evaluations))
}

/// The reach of filters over the producer, and the number of its evaluations as a chain; `None` if the
/// producer is read in another way.
fn readings(reader: &MapKernel) -> Option<(Reach, usize)> {
    let mut reach = Reach::NONE;
    let mut sources: Vec<FilterSource> = Vec::new();
    for leaf in reader.leaves.iter().filter(|l| reader.image(l) == GONE) {
        match leaf.op {
            LeafOp::Load(_) => continue,
            LeafOp::Correlate(..) | LeafOp::Shift(..) => {}
            _ => return None,
        }
        reach = reach.max(leaf.reach(&reader.stages).map_or(Reach::NONE, |(r, _)| r));
        if !sources.contains(&leaf.source()) {
            sources.push(leaf.source());
        }
    }
    let mut evaluations = sources.len();
    for chain in &reader.chains {
        let (of_chain, times) = readings(chain)?;
        let itself = chain.leaves.iter().any(|l| l.op == LeafOp::Load(usize::MAX));
        (reach, evaluations) = (reach.max(of_chain), evaluations + times + usize::from(itself));
    }
    Some((reach, evaluations))
}

/// `kernel` with the code of `chain` in place of the leaf that reads its result pixel by pixel.
fn inlined(kernel: MapKernel, mut chain: MapKernel) -> MapKernel {
    let mut out = MapKernel { leaves: Vec::new(), code: Vec::new(), ..kernel.clone() };
    // Chains and row filters of the chain become chains and row filters of the kernel.
    let (chains, stages) = (out.chains.len(), out.stages.len());
    let moved = |s: &mut FilterSource| match s {
        FilterSource::Chain(c) => *c += chains,
        FilterSource::Stage(s) => *s += stages,
        FilterSource::Input(_) => {}
    };
    chain.stages.iter_mut().for_each(|s| moved(&mut s.source));
    for leaf in &mut chain.leaves {
        if let LeafOp::Correlate(source, ..) | LeafOp::Shift(source, ..) = &mut leaf.op {
            moved(source);
        }
    }
    out.chains.append(&mut chain.chains);
    out.stages.append(&mut chain.stages);
    let mut leaf = |l: &Leaf| {
        let known = out.leaves.iter().position(|o| o == l);
        Val::Leaf(known.unwrap_or_else(|| {
            out.leaves.push(l.clone());
            out.leaves.len() - 1
        }))
    };
    let of_chain: Vec<Val> = chain.leaves.iter().map(&mut leaf).collect();
    let gone = LeafOp::Load(usize::MAX);
    let of_kernel: Vec<Option<Val>> = kernel.leaves.iter().map(|l| (l.op != gone).then(|| leaf(l))).collect();
    let in_chain = |v: Val| if let Val::Leaf(i) = v { of_chain[i] } else { v };
    let value = |v: Val| match v {
        Val::Leaf(i) => of_kernel[i].or(chain.result.map(in_chain)).unwrap_or(v),
        Val::Instr(i) => Val::Instr(chain.code.len() + i),
        Val::Const(_) | Val::Index(..) => v,
    };
    let moved =
        |i: &Instr, to: &dyn Fn(Val) -> Val| Instr { args: i.args.iter().map(|&a| to(a)).collect(), ..i.clone() };
    out.code.extend(chain.code.iter().map(|i| moved(i, &in_chain)));
    out.code.extend(kernel.code.iter().map(|i| moved(i, &value)));
    out.result = kernel.result.map(value);
    out
}
