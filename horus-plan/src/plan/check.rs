//! Checks of invariants after each pass of planning.
//!
//! Cheap checks run in every build. With debug assertions, all steps are also replayed on all ranks
//! ([`verify`]) after each pass; otherwise the session requests the replay once, for the finished plan.

use super::demand::{around, halo_of_access};
use super::draft::PlanDraft;
use super::passes::PlanStage;
use super::setting::ResultDelivery;
use super::step::{Action, LaunchPart};
use super::verify::verify;
use super::waits;
use crate::ir::graph::NodeId;
use crate::ir::kernel::Kernel;
use horus_base::error::Error;

/// Checks the draft after a pass.
pub(super) fn check(draft: &PlanDraft<'_>, stage: PlanStage) -> Result<(), String> {
    facts(draft)?;
    if stage == PlanStage::Facts {
        return if draft.steps.is_empty() { Ok(()) } else { Err("there are steps already".into()) };
    }
    order(draft)?;
    if cfg!(debug_assertions) { replay(draft, stage) } else { Ok(()) }
}

/// Checks the facts about each image and each step.
fn facts(draft: &PlanDraft<'_>) -> Result<(), String> {
    let nodes = draft.graph.nodes.len();
    if draft.states.len() != nodes || draft.wants.len() != draft.graph.roots.len() {
        return Err("the images of the plan are not those of the program".into());
    }
    let several = draft.ranks() > 1 && !draft.naive();
    let in_strips = |id: NodeId| several && !draft.demand.asked.is_empty() && draft.owners[id.0].is_none();
    for (id, node) in draft.graph.iter().filter(|(id, _)| in_strips(*id)) {
        for (i, input) in node.inputs.iter().enumerate() {
            let Some(own) = halo_of_access(node.op.access(i)) else { continue };
            let (asked, read) = (draft.demand.asked[input.0], around(own, draft.demand.computed[id.0]));
            if !asked.covers(read) {
                return Err(format!("{input} is asked for {asked} rows around strips, {id} reads {read}"));
            }
        }
    }
    if draft.used.len() != draft.steps.len() {
        return Err("steps and memory in use do not belong together".into());
    }
    let is_exchange = |step: usize| matches!(draft.steps.get(step).map(|s| s.action), Some(Action::Exchange { .. }));
    match draft.exchanges.iter().find(|e| !is_exchange(e.step)) {
        Some(e) => Err(format!("step {} is told to be an exchange", e.step)),
        None => Ok(()),
    }
}

/// Checks that every node is computed once, after its inputs and before they are freed.
fn order(draft: &PlanDraft<'_>) -> Result<(), String> {
    let mut there: Vec<bool> = draft.initial.iter().map(Option::is_some).collect();
    let mut computed = vec![false; there.len()];
    for step in &draft.steps {
        match step.action {
            Action::Launch { node, part, .. } => {
                if let Some(missing) = draft.graph.node(node).inputs.iter().find(|i| !there[i.0]) {
                    return Err(format!("{node} is computed where {missing} is not there"));
                }
                // Readers wait for the bands that they need; `verify` checks which bands.
                there[node.0] |= matches!(part, LaunchPart::Band(_));
                if !part.ends() {
                    continue;
                }
                if std::mem::replace(&mut computed[node.0], true) {
                    return Err(format!("{node} is computed twice"));
                }
                there[node.0] = true;
            }
            Action::Free(n) if !std::mem::replace(&mut there[n.0], false) => {
                return Err(format!("{n} goes where it is not there"));
            }
            _ => {}
        }
    }
    let source = |id: NodeId| matches!(draft.graph.node(id).op, Kernel::Source(_));
    match (0..computed.len()).map(NodeId).find(|id| !computed[id.0] && !source(*id)) {
        Some(id) => Err(format!("{id} is never computed")),
        None => Ok(()),
    }
}

/// Replays all steps on all ranks. Results are required once they have been delivered.
fn replay(draft: &PlanDraft<'_>, stage: PlanStage) -> Result<(), String> {
    let delivered = stage >= PlanStage::Delivered;
    let wants = draft.wants.iter().map(|want| if delivered { *want } else { ResultDelivery::Keep }).collect();
    let mut plan = draft.so_far(wants);
    if stage < PlanStage::Ordered {
        plan.steps.iter_mut().zip(waits::of(draft)).for_each(|(step, waits)| step.waits = waits);
    }
    verify(&plan).map_err(|error| match error {
        Error::Plan { step, text, cause } => format!("step {step} ({text}): {cause}"),
        other => other.to_string(),
    })
}
