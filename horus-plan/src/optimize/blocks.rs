//! Temporal blocking: iterations of a loop that are one expression per pixel over their own result become
//! launches of several iterations (`Kernel::Repeat`), whose intermediate results stay in a cache.
//!
//! This saves a round trip to memory per iteration, and on several ranks a halo exchange. It costs redundant
//! rows around the part of each rank and each tile of a device. The number of iterations per launch, possibly
//! one, is the one predicted to be cheapest; `HORUS_STEPS` forces it.
//!
//! Design: "Temporal blocking" in `docs/design/fusion.md`.

use super::OptimizationTarget;
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::{FilterSource, ImageExtent, Instr, Kernel, MapKernel, Repeat, Val};
use crate::machine::Load;
use horus_base::settings::StepsPerLaunch;
use horus_base::shape::Window;

/// Minimum height of a strip, as a multiple of the surrounding rows that a launch reads. Thinner strips
/// compute most rows twice.
const TALL: usize = 4;

/// Combines consecutive iterations. The replaced nodes stay in the graph, dead.
pub fn block(mut graph: Graph<Kernel>, aim: &OptimizationTarget<'_>) -> Graph<Kernel> {
    if aim.steps == StepsPerLaunch::Most(1) {
        return graph;
    }
    let chains = StepChains::of(&graph);
    let mut seen = vec![false; graph.nodes.len()];
    for first in (0..graph.nodes.len()).map(NodeId) {
        if seen[first.0] {
            continue;
        }
        let Some(chain) = chains.from(&graph, first) else { continue };
        chain.nodes.iter().for_each(|n| seen[n.0] = true);
        let steps = match aim.steps {
            StepsPerLaunch::Most(n) => usize::from(n),
            StepsPerLaunch::Auto => chain.cheapest(&graph, aim),
        };
        chain.join(&mut graph, steps);
    }
    graph
}

/// Consecutive iterations of a loop.
struct StepChain<'a> {
    nodes: Vec<NodeId>,
    /// The expression of each iteration, and the inputs of the first.
    body: &'a MapKernel,
    inputs: &'a [NodeId],
    /// The input of each iteration that is the result of the previous one.
    state: usize,
}

/// Facts from which chains are found.
struct StepChains {
    readers: Vec<Vec<NodeId>>,
    wanted: Vec<bool>,
    /// Expressions in a canonical order, so that equal ones compare equal.
    ordered: Vec<Option<(MapKernel, Vec<NodeId>)>>,
}

impl StepChains {
    fn of(graph: &Graph<Kernel>) -> StepChains {
        let mut wanted = vec![false; graph.nodes.len()];
        graph.roots.iter().for_each(|r| wanted[r.0] = true);
        let ordered = graph.nodes.iter().map(|n| match &n.op {
            Kernel::Map(m) if m.stages.is_empty() && m.chains.is_empty() => Some(ordered(m, &n.inputs)),
            _ => None,
        });
        StepChains { readers: graph.consumers(), wanted, ordered: ordered.collect() }
    }

    /// The longest chain of iterations from a node on, if there are at least two.
    fn from(&self, graph: &Graph<Kernel>, first: NodeId) -> Option<StepChain<'_>> {
        let (body, inputs) = self.ordered[first.0].as_ref()?;
        let (_, of_second) = self.ordered[self.next(first)?.0].as_ref()?;
        let state = of_second.iter().position(|i| *i == first)?;
        let like = |n: NodeId| (graph.node(n).shape, graph.node(n).dtype);
        if repeat(body, state, 2).is_none() || like(inputs[state]) != like(first) {
            return None;
        }
        let mut nodes = vec![first];
        let mut last = first;
        while let Some(next) = self.next(last) {
            let Some((other, read)) = &self.ordered[next.0] else { break };
            let same =
                |(i, (a, b)): (usize, (&NodeId, &NodeId))| if i == state { *b == last } else { a == b && *b != last };
            let reads = inputs.len() == read.len() && inputs.iter().zip(read).enumerate().all(same);
            if !reads || other != body || like(next) != like(first) {
                break;
            }
            nodes.push(next);
            last = next;
        }
        (nodes.len() > 1).then_some(StepChain { nodes, body, inputs, state })
    }

    /// The only reader of a node that has no other use.
    fn next(&self, node: NodeId) -> Option<NodeId> {
        match self.readers[node.0][..] {
            [reader] if !self.wanted[node.0] => Some(reader),
            _ => None,
        }
    }
}

/// The same expression with leaves, instructions and inputs in the order in which the result needs them.
/// Fusion numbers values in another order, by where it finds them.
pub(super) fn ordered(m: &MapKernel, inputs: &[NodeId]) -> (MapKernel, Vec<NodeId>) {
    let mut leaves: Vec<Option<usize>> = vec![None; m.leaves.len()];
    let mut code: Vec<Option<usize>> = vec![None; m.code.len()];
    let (mut out, mut read) = (MapKernel::default(), Vec::new());
    // Explicit stack, because expressions may be long. An instruction is visited twice, before and after its
    // operands.
    let mut stack: Vec<(Val, bool)> = m.result.into_iter().map(|v| (v, false)).collect();
    while let Some((value, operands_are_there)) = stack.pop() {
        match value {
            Val::Leaf(l) if leaves[l].is_none() => {
                let mut leaf = m.leaves[l].clone();
                if let FilterSource::Input(i) = leaf.source() {
                    let at = read.iter().position(|n| *n == inputs[i]).unwrap_or_else(|| {
                        read.push(inputs[i]);
                        read.len() - 1
                    });
                    leaf.map_input(|_| at);
                }
                leaves[l] = Some(out.leaves.len());
                out.leaves.push(leaf);
            }
            Val::Instr(i) if code[i].is_none() && !operands_are_there => {
                stack.push((value, true));
                stack.extend(m.code[i].args.iter().rev().map(|a| (*a, false)));
            }
            Val::Instr(i) if code[i].is_none() => {
                let args = m.code[i].args.iter().map(|a| renamed(*a, &leaves, &code)).collect();
                code[i] = Some(out.code.len());
                out.code.push(Instr { args, ..m.code[i].clone() });
            }
            Val::Leaf(_) | Val::Instr(_) | Val::Const(_) | Val::Index(..) => {}
        }
    }
    out.result = m.result.map(|v| renamed(v, &leaves, &code));
    out.inputs = read.len();
    (out, read)
}

fn renamed(value: Val, leaves: &[Option<usize>], code: &[Option<usize>]) -> Val {
    match value {
        Val::Leaf(l) => Val::Leaf(leaves[l].unwrap_or(l)),
        Val::Instr(i) => Val::Instr(code[i].unwrap_or(i)),
        Val::Const(_) | Val::Index(..) => value,
    }
}

/// A launch of `steps` iterations, if they can be combined.
fn repeat(body: &MapKernel, state: usize, steps: usize) -> Option<Repeat> {
    let repeat = Repeat { body: body.clone(), state, iterations: steps };
    repeat.fault().is_none().then_some(repeat)
}

impl StepChain<'_> {
    /// The number of iterations of each launch, with at most `steps` per launch.
    fn sizes(&self, steps: usize) -> Vec<usize> {
        let all = self.nodes.len();
        let can = |n: &usize| *n == 1 || repeat(self.body, self.state, *n).is_some();
        let most = (1..=steps.min(all)).rev().find(can).unwrap_or(1);
        (0..all).step_by(most).map(|at| most.min(all - at)).collect()
    }

    /// The number of iterations per launch that is predicted to be fastest.
    fn cheapest(&self, graph: &Graph<Kernel>, aim: &OptimizationTarget<'_>) -> usize {
        let node = graph.node(self.nodes[0]);
        let inputs: Vec<ImageExtent> =
            self.inputs.iter().map(|i| (graph.node(*i).shape, graph.node(*i).dtype)).collect();
        // A strip in the middle has surrounding rows on both sides.
        let height = node.shape.height;
        let strip = height.div_ceil(aim.ranks.max(1));
        let above = (height - strip) / 2;
        let rows = Window::new(above.cast_signed(), (above + strip).cast_signed());
        let row = node.shape.line() * node.shape.planes() * node.dtype.size();
        let link = aim.machine.link(aim.direct);
        let launch = |steps: usize| -> Option<f64> {
            let kernel = match repeat(self.body, self.state, steps) {
                Some(repeat) if steps > 1 => Kernel::Repeat(repeat),
                _ => Kernel::Map(self.body.clone()),
            };
            let work = kernel.work(&inputs, (node.shape, node.dtype), rows);
            let computed = aim.machine.slowest(|p| p.launch(&work).seconds);
            if aim.ranks == 1 {
                return Some(computed);
            }
            let thin = steps > 1 && strip < TALL * work.reach;
            (!thin).then(|| computed + link.time(Load { messages: 2, bytes: work.reach * row }))
        };
        let seconds = |steps: usize| self.sizes(steps).into_iter().map(launch).sum::<Option<f64>>();
        let mut best = (1, seconds(1).unwrap_or(f64::INFINITY));
        for steps in 2..=self.nodes.len() {
            if let Some(seconds) = seconds(steps).filter(|s| *s < best.1) {
                best = (steps, seconds);
            }
        }
        best.0
    }

    /// Creates launches of `steps` iterations.
    fn join(&self, graph: &mut Graph<Kernel>, steps: usize) {
        let (mut done, mut before) = (0, self.inputs[self.state]);
        for steps in self.sizes(steps) {
            let last = self.nodes[done + steps - 1];
            if let Some(repeat) = repeat(self.body, self.state, steps).filter(|_| steps > 1) {
                let mut inputs = self.inputs.to_vec();
                inputs[self.state] = before;
                let node = &mut graph.nodes[last.0];
                (node.op, node.inputs) = (Kernel::Repeat(repeat), inputs);
            }
            done += steps;
            before = last;
        }
    }
}
