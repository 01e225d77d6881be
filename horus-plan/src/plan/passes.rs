//! The passes of planning, in one list.
//!
//! Each pass changes one draft: lifetimes, demand for halos, memory in use, transfers and launches, delivery,
//! overlap, early exchanges, bands, waits. Checks run after each pass.
//!
//! Design: `docs/design/plan.md` follows one plan of ConvRot through the passes.

use std::fmt;

use super::activity::BusyTimes;
use super::check::check;
use super::draft::PlanDraft;
use super::finished::Plan;
use super::owners::owners;
use super::predict::predict;
use super::setting::{ResultDelivery, Setting};
use super::state::ImageState;
use super::{bands, delivery, demand, lifetimes, memory, overlap, transfers, waits};
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;
use horus_base::error::{Error, Result};

/// A pass over a draft of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanPass {
    /// Its name in dumps and errors.
    pub(super) name: &'static str,
    /// Its function.
    pub(super) run: fn(&mut PlanDraft<'_>),
    /// The stage after it.
    pub(super) stage_after: PlanStage,
}

/// Stages of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PlanStage {
    /// Facts about each image; no steps.
    Facts,
    /// Steps that compute every node.
    Computed,
    /// Steps that also deliver results.
    Delivered,
    /// Steps that wait for each other.
    Ordered,
}

/// The passes, in order.
pub(super) const PASSES: &[PlanPass] = &[
    PlanPass { name: "lifetimes", run: lifetimes::find, stage_after: PlanStage::Facts },
    PlanPass { name: "demand for halos", run: demand::compute_demand, stage_after: PlanStage::Facts },
    PlanPass { name: "memory in use", run: memory::watch, stage_after: PlanStage::Facts },
    PlanPass { name: "transfers and launches", run: transfers::walk, stage_after: PlanStage::Computed },
    PlanPass { name: "delivery", run: delivery::deliver, stage_after: PlanStage::Delivered },
    PlanPass { name: "overlap", run: overlap::divide, stage_after: PlanStage::Delivered },
    PlanPass { name: "early exchanges", run: overlap::begin_early, stage_after: PlanStage::Delivered },
    PlanPass { name: "bands", run: bands::cut, stage_after: PlanStage::Delivered },
    PlanPass { name: "waits", run: waits::find, stage_after: PlanStage::Ordered },
];

/// Makes a plan that computes the roots of the graph. `wants` has one entry per result; further roots are
/// [parts](crate::optimize::parts) of results, the first for rank 0 to compute alone, the second for rank 1, and so on.
/// `state` returns the state of each source node; `disposable` returns `true` for sources that are not needed after this
/// plan. `dump` receives the name of each pass and the draft after it as text.
///
/// # Errors
/// [`Error::Pass`] naming the pass that broke an invariant: a defect of Horus.
pub fn plan(
    mut graph: Graph<Kernel>,
    wants: &[ResultDelivery],
    setting: &Setting,
    state: impl Fn(NodeId) -> ImageState,
    disposable: impl Fn(NodeId) -> bool,
    dump: &mut dyn FnMut(&str, &dyn fmt::Display),
) -> Result<Plan> {
    let parts = graph.roots.split_off(wants.len());
    let owners = owners(&graph, &parts);
    graph.joined.retain(|joined| joined.nodes.iter().all(|n| owners[n.0] == owners[joined.nodes[0].0]));
    let sources = graph.iter().map(|(id, n)| matches!(n.op, Kernel::Source(_)).then(|| state(id)));
    let mut draft = PlanDraft::new(&graph, wants, setting, sources.collect(), &disposable);
    draft.owners = owners;
    run(PASSES, &mut draft, dump)?;
    let fits = draft.memory.as_ref().is_none_or(|m| !m.overflown);
    let lacking = draft.memory.as_ref().and_then(|m| m.shortfall);
    let PlanDraft { steps, states, initial, .. } = draft;
    let (wants, setting) = (wants.to_vec(), setting.clone());
    let (predicted, parts) = (0.0, BusyTimes::default());
    let mut plan = Plan { graph, wants, steps, setting, initial, states, predicted, parts, fits, shortfall: lacking };
    let prediction = predict(&plan);
    (plan.predicted, plan.parts) = (prediction.seconds, prediction.parts());
    Ok(plan)
}

pub(super) fn run(
    passes: &[PlanPass],
    draft: &mut PlanDraft<'_>,
    dump: &mut dyn FnMut(&str, &dyn fmt::Display),
) -> Result<()> {
    for pass in passes {
        (pass.run)(draft);
        dump(pass.name, draft);
        check(draft, pass.stage_after).map_err(|cause| Error::Pass { pass: pass.name, cause })?;
    }
    Ok(())
}
