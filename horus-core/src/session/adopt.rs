//! Takes the outcome of an evaluation over into the session.

use super::carried::Made;
use super::{Mutable, Session};
use crate::ir::graph::{NodeId, ValueId};
use crate::record::RecordId;

impl Session {
    /// Takes over the images of an evaluation, under new names, as the values of these records.
    pub(super) fn adopt(&self, state: &mut Mutable, made: &mut Made, roots: &[RecordId]) {
        made.keep(state, |_| true);
        let name = |node: &NodeId| made.names[node.0].filter(|value| state.images.here.contains_key(value));
        let left: Vec<ValueId> = made.mapped.iter().filter_map(name).collect();
        let named: Vec<Option<ValueId>> = made.roots.iter().map(name).collect();
        state.images.mapped.extend(left);
        let mut freed = Vec::new();
        for (recorded, name) in roots.iter().zip(named) {
            if let Some(name) = name {
                freed.extend(state.program.evaluated(*recorded, name));
            }
        }
        // Two records may have become one value (common subexpressions): it stays while either is
        // alive.
        freed.retain(|v| !state.program.refers_to(*v));
        state.images.forget(freed);
    }
}

/// The values without a record.
pub(super) fn unreferred(state: &Mutable, mut values: Vec<ValueId>) -> Vec<ValueId> {
    values.retain(|v| !state.program.refers_to(*v));
    values
}
