//! Takes the outcome of an evaluation over into the session.

use std::collections::HashMap;

use super::evaluate::source_of;
use super::kept::Kept;
use super::{Mutable, Session};
use crate::error::Error;
use crate::ir::graph::{NodeId, ValueId};
use crate::plan::Plan;
use crate::record::RecordId;

impl Session {
    /// Takes over the images of an evaluation: sources return under their names, results get new
    /// names.
    pub(super) fn adopt(&self, state: &mut Mutable, plan: &Plan, roots: &[RecordId], images: Vec<Option<Kept>>) {
        let mut names: HashMap<NodeId, ValueId> = HashMap::new();
        for (i, image) in images.into_iter().enumerate() {
            let id = NodeId(i);
            let Some(image) = image else { continue };
            let name = match source_of(&plan.graph.node(id).op) {
                Some(v) => v,
                None => state.names.value(),
            };
            names.insert(id, name);
            state.images.here.insert(name, image);
        }
        let left = plan.steps.iter().filter_map(|s| s.action.unmaps()).filter_map(|n| names.get(&n).copied());
        state.images.mapped.extend(left);
        let mut freed = Vec::new();
        for (recorded, planned) in roots.iter().zip(&plan.graph.roots) {
            if let Some(&name) = names.get(planned) {
                freed.extend(state.program.evaluated(*recorded, name));
            }
        }
        // Two records may have become one value (common subexpressions): it stays while either is
        // alive.
        freed.retain(|v| !state.program.refers_to(*v));
        state.images.forget(freed);
    }
}

/// Records the images read by a failed plan that were lost with it and that the program still
/// refers to, unless they can be read again.
pub(super) fn note_lost(state: &mut Mutable, plan: &Plan, error: &Error) {
    let read = plan.graph.nodes.iter().filter_map(|n| source_of(&n.op));
    let there = |v: &ValueId| state.images.has(v);
    let lost: Vec<ValueId> = read.filter(|v| !there(v) && state.program.refers_to(*v)).collect();
    for v in lost {
        state.images.gone.insert(v, error.to_string());
    }
}

/// The values without a record.
pub(super) fn unreferred(state: &Mutable, mut values: Vec<ValueId>) -> Vec<ValueId> {
    values.retain(|v| !state.program.refers_to(*v));
    values
}
