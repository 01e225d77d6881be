//! Stacks: a program recorded for a picture, recorded again for a volume whose levels are many pictures.

use std::collections::HashMap;

use crate::ir::graph::{NodeId, Op, ValueId};
use crate::record::{Extract, RecordId};
use crate::region::stack;
use crate::session::{Handle, Session, StandIns};

impl Session {
    /// Records what `values` compute from the only stand-in of `picture` for each level of `volume`: a level of a result
    /// is the value of that picture. `None` if an operation cannot be computed level by level, or if a value was
    /// evaluated. The explain sink gets the reason.
    #[doc(hidden)]
    pub fn stacked(&self, values: &[&Handle], picture: &StandIns, volume: &Handle) -> Option<Vec<Handle>> {
        let id = |handle: &Handle| handle.record.as_ref().ok().copied();
        let targets: Vec<RecordId> = values.iter().map(|value| id(value)).collect::<Option<_>>()?;
        let (one, all) = (id(picture.handles().first()?)?, id(volume)?);
        let explain =
            |text: String| self.0.settings.explain.iter().for_each(|sink| sink(&format!("series:\n{text}\n")));
        let mut state = self.acquire();
        let state = &mut *state;
        if state.program.looked_into(picture.step) {
            explain("picture by picture: the operation reads values".into());
            return None;
        }
        let Extract { mut graph, records } = state.program.extract(&targets, 0);
        let roots = graph.roots[..targets.len()].to_vec();
        graph.roots = roots.into_iter().map(|root| graph.planar(root)).collect();
        let at = NodeId(records.iter().position(|record| *record == one)?);
        let stacked = stack(&graph, at, volume.shape.depth);
        explain(match &stacked {
            Ok(_) => format!("{} pictures as the levels of a volume", volume.shape.depth),
            Err(n) => format!("picture by picture: {} is not computed level by level", graph.node(*n).op.name()),
        });
        let stacked = stacked.ok()?;
        let mut made: Vec<RecordId> = Vec::with_capacity(stacked.nodes.len());
        for node in &stacked.nodes {
            let id = match node.op {
                Op::Source(ValueId(n)) if n as usize == at.0 => all,
                Op::Source(ValueId(n)) => records[n as usize],
                _ => {
                    let (id, inputs) = (self.0.numbers.record(), node.inputs.iter().map(|n| made[n.0]));
                    let inputs: Vec<RecordId> = inputs.collect();
                    state.program.record(id, node.op.clone(), &inputs, (node.shape, node.dtype), node.site);
                    id
                }
            };
            made.push(id);
        }
        let mut results: HashMap<NodeId, Handle> = HashMap::new();
        for root in &stacked.roots {
            let node = stacked.node(*root);
            let handle = || Handle::new(self, Ok(made[root.0]), (node.shape, node.dtype));
            let is_volume = made[root.0] == all;
            results.entry(*root).or_insert_with(|| if is_volume { volume.clone() } else { handle() });
        }
        let inner = stacked.iter().filter(|(n, node)| !matches!(node.op, Op::Source(_)) && !results.contains_key(n));
        for (n, _) in inner {
            let values = state.program.release(made[n.0]);
            state.images.forget(values);
        }
        Some(stacked.roots.iter().map(|root| results[root].clone()).collect())
    }
}
