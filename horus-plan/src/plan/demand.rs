//! How far around its strip each image will be read: known before anything is placed.

use super::draft::Draft;
use super::setting::Mode;
use super::state::Halo;
use crate::ir::graph::Graph;
use crate::ir::kernel::{Access, Kernel};

/// For each node, rows around its strips.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// What its readers will ask for, those that compute on rows around their own strips included.
    pub(super) asked: Vec<Halo>,
    /// What filters over it need themselves: it will be exchanged in any case.
    pub(super) filtered: Vec<Halo>,
}

/// How far beyond the rows that it computes a kernel reads, for one input; `None` if it reads elsewhere.
pub(super) fn needed(access: Access) -> Option<Halo> {
    let Access::Rows { reach, wrap } = access else { return None };
    Some(Halo { up: reach.up, down: reach.down, wrap: wrap && reach.up + reach.down > 0 })
}

impl Demand {
    /// Of images that nobody reads around strips.
    fn nothing(nodes: usize) -> Demand {
        Demand { asked: vec![Halo::NONE; nodes], filtered: vec![Halo::NONE; nodes] }
    }

    /// Walks the graph backwards, so that an exchange can be made once, at the widest radius anybody will ask for, and a
    /// pixel operation can be computed on the rows that a later filter needs.
    fn of(graph: &Graph<Kernel>) -> Demand {
        let mut demand = Demand::nothing(graph.nodes.len());
        for (id, node) in graph.iter().rev() {
            for (i, input) in node.inputs.iter().enumerate() {
                if let Some(own) = needed(node.op.access(i)) {
                    demand.filtered[input.0] = demand.filtered[input.0].max(own);
                    let passed_on = if own.is_none() { Halo { wrap: false, ..demand.asked[id.0] } } else { own };
                    demand.asked[input.0] = demand.asked[input.0].max(passed_on);
                }
            }
        }
        demand
    }
}

/// The pass: looks ahead where there are strips, but in naive mode, which transfers for every operation anew.
pub(super) fn look_ahead(draft: &mut Draft<'_>) {
    draft.demand = if draft.ranks() > 1 && draft.setting.mode != Mode::Naive {
        Demand::of(draft.graph)
    } else {
        Demand::nothing(draft.graph.nodes.len())
    };
}
