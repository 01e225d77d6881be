//! Graph passes: they turn a recorded program into kernels.
//!
//! [`PASSES`] lists the passes in order, lowering included; each is a function from graph to graph. After
//! each, the graph can be dumped and is checked ([`check`]): a pass that breaks an invariant is named.
//!
//! Separable filters are split into row and column filters, common subexpressions are merged (parameters by
//! bits), and dead code is removed. Then every operation is lowered to a kernel, and *fusion* merges kernels.
//!
//! Design: `docs/design/fusion.md`.

pub mod blocks;
mod calls;
pub mod check;
pub mod cse;
pub mod fuse;
pub mod interleaved;
pub mod interleaved_samples;
pub mod lower;
pub mod multiple_results;
pub mod parts;
pub mod prologue;
pub mod reductions;
pub mod separable;
pub mod shared_reductions;
pub mod transforms;
pub mod windowed;

use std::fmt;

use self::calls::LoweredCalls;
use crate::ir::graph::{Graph, Op};
use crate::ir::kernel::Kernel;
use crate::machine::Machine;
use crate::region;
use horus_base::error::{Error, Result};
use horus_base::settings::{Stencil, StepsPerLaunch};

/// A pass.
#[derive(Clone, Copy, Debug)]
pub struct GraphPass {
    /// Its name in dumps and errors.
    pub name: &'static str,
    /// The pass is skipped if operations run one by one, as recorded.
    pub fusing: bool,
    /// Its function.
    pub run: PassFunction,
}

/// The function of a pass, by its domain.
#[derive(Clone, Copy, Debug)]
pub enum PassFunction {
    /// Changes recorded operations.
    Recorded(fn(Graph<Op>) -> Graph<Op>),
    /// Turns operations into kernels.
    Lower(fn(Graph<Op>) -> Graph<Kernel>),
    /// Changes kernels.
    Kernels(fn(Graph<Kernel>) -> Graph<Kernel>),
    /// Changes kernels where that is predicted to be faster on the given ranks.
    CostBased(fn(Graph<Kernel>, &OptimizationTarget<'_>) -> Graph<Kernel>),
}

/// The target of optimisation. The same on every rank.
#[derive(Clone, Copy, Debug)]
pub struct OptimizationTarget<'a> {
    /// Predicts times.
    pub machine: &'a Machine,
    /// Number of ranks among which rows are divided.
    pub ranks: usize,
    /// Set if the devices of the ranks exchange memory without the host.
    pub direct: bool,
    /// Number of iterations of a loop per launch.
    pub steps: StepsPerLaunch,
    /// Storage of intermediate images that filters read.
    pub stencil: Stencil,
    /// Set if a launch may have several results.
    pub joined: bool,
}

impl<'a> OptimizationTarget<'a> {
    /// One rank; each iteration of a loop is a launch of its own.
    pub fn of(machine: &'a Machine) -> OptimizationTarget<'a> {
        OptimizationTarget {
            machine,
            ranks: 1,
            direct: false,
            steps: StepsPerLaunch::Most(1),
            stencil: Stencil::Auto,
            joined: true,
        }
    }
}

/// The passes, in order.
pub const PASSES: &[GraphPass] = &[
    GraphPass { name: "narrow to regions read", fusing: true, run: PassFunction::Recorded(region::narrow) },
    GraphPass { name: "split separable filters", fusing: true, run: PassFunction::Recorded(separable::split) },
    GraphPass { name: "split large rectangles", fusing: false, run: PassFunction::Recorded(windowed::split) },
    GraphPass { name: "common subexpressions", fusing: true, run: PassFunction::Recorded(cse::merge) },
    GraphPass { name: "share reductions", fusing: true, run: PassFunction::Recorded(shared_reductions::reduce) },
    GraphPass { name: "share transforms", fusing: true, run: PassFunction::Recorded(transforms::share) },
    GraphPass { name: "dead code", fusing: false, run: PassFunction::Recorded(Graph::without_dead) },
    GraphPass {
        name: "keep pixels interleaved",
        fusing: true,
        run: PassFunction::Recorded(interleaved::keep_interleaved),
    },
    GraphPass { name: "lower", fusing: false, run: PassFunction::Lower(lower::lower) },
    GraphPass { name: "remove copies", fusing: true, run: PassFunction::Kernels(cse::without_copies) },
    GraphPass { name: "remove widening", fusing: true, run: PassFunction::Kernels(cse::without_widening) },
    GraphPass { name: "fuse", fusing: true, run: PassFunction::CostBased(fuse::fuse) },
    GraphPass { name: "feed reductions", fusing: true, run: PassFunction::Kernels(reductions::feed) },
    GraphPass { name: "dead code after fusion", fusing: true, run: PassFunction::Kernels(Graph::without_dead) },
    GraphPass { name: "prologues", fusing: true, run: PassFunction::CostBased(prologue::absorb) },
    GraphPass { name: "dead code after prologues", fusing: true, run: PassFunction::Kernels(Graph::without_dead) },
    GraphPass { name: "narrow images", fusing: true, run: PassFunction::CostBased(prologue::narrow) },
    GraphPass { name: "block iterations", fusing: true, run: PassFunction::CostBased(blocks::block) },
    GraphPass { name: "dead code after blocking", fusing: true, run: PassFunction::Kernels(Graph::without_dead) },
    GraphPass { name: "interleave samples", fusing: true, run: PassFunction::Kernels(interleaved_samples::weave) },
    GraphPass { name: "shift rows", fusing: true, run: PassFunction::CostBased(prologue::shift_rows) },
    GraphPass { name: "join results", fusing: true, run: PassFunction::CostBased(multiple_results::join) },
];

/// A program between passes.
#[derive(Clone, Debug)]
enum LoweringState {
    Recorded(Graph<Op>),
    Lowered(Graph<Kernel>),
}

impl fmt::Display for LoweringState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoweringState::Recorded(graph) => graph.fmt(f),
            LoweringState::Lowered(graph) => graph.fmt(f),
        }
    }
}

/// Runs the passes as [`optimize_for`] does, for [one rank](OptimizationTarget::of) with the predictions of
/// `machine`.
///
/// # Errors
/// See [`optimize_for`].
pub fn optimize(
    graph: Graph<Op>,
    fuse: bool,
    machine: &Machine,
    dump: &mut dyn FnMut(&str, &dyn fmt::Display),
) -> Result<Graph<Kernel>> {
    optimize_for(graph, fuse, &OptimizationTarget::of(machine), dump)
}

/// Runs the passes. Without `fuse`, operations are lowered one by one, as recorded. `dump` receives the name
/// of each pass and the text of the graph after it.
///
/// # Errors
/// [`Error::Pass`] naming the pass that broke an invariant: a defect of Horus.
pub fn optimize_for(
    graph: Graph<Op>,
    fuse: bool,
    aim: &OptimizationTarget<'_>,
    dump: &mut dyn FnMut(&str, &dyn fmt::Display),
) -> Result<Graph<Kernel>> {
    run(PASSES, graph, fuse, aim, dump)
}

fn run(
    passes: &[GraphPass],
    graph: Graph<Op>,
    fuse: bool,
    aim: &OptimizationTarget<'_>,
    dump: &mut dyn FnMut(&str, &dyn fmt::Display),
) -> Result<Graph<Kernel>> {
    dump("recorded", &graph);
    let failed = |pass: &'static str| move |cause: String| Error::Pass { pass, cause };
    let wanted = check::ProgramResults::of(&graph);
    check::recorded(&graph, &wanted).map_err(failed("record"))?;
    let mut program = LoweringState::Recorded(graph);
    let mut calls = None;
    for pass in passes.iter().filter(|p| fuse || !p.fusing) {
        program = match (program, pass.run) {
            (LoweringState::Recorded(graph), PassFunction::Recorded(run)) => LoweringState::Recorded(run(graph)),
            (LoweringState::Recorded(graph), PassFunction::Lower(run)) => {
                let mut graph = run(graph);
                calls = Some(LoweredCalls::take(&mut graph));
                LoweringState::Lowered(graph)
            }
            (LoweringState::Lowered(graph), PassFunction::Kernels(run)) => LoweringState::Lowered(run(graph)),
            (LoweringState::Lowered(graph), PassFunction::CostBased(run)) => LoweringState::Lowered(run(graph, aim)),
            _ => return Err(failed(pass.name)("it does not run on what the pass before it makes".into())),
        };
        dump(pass.name, &program);
        match &program {
            LoweringState::Recorded(graph) => check::recorded(graph, &wanted),
            LoweringState::Lowered(graph) => check::lowered(graph, &wanted),
        }
        .map_err(failed(pass.name))?;
    }
    match program {
        LoweringState::Lowered(mut graph) => {
            calls.into_iter().for_each(|calls| calls.give(&mut graph));
            Ok(graph)
        }
        LoweringState::Recorded(_) => Err(failed("lower")("it did not run".into())),
    }
}

#[cfg(test)]
mod tests;
