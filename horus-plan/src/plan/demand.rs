//! Demand: the rows around its strip that will be read of each image, known before placement.

use super::draft::Draft;
use super::setting::Mode;
use super::state::Halo;
use crate::ir::graph::Graph;
use crate::ir::kernel::{Access, Kernel};

/// For each node, rows around its strips.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// Rows that its readers will ask for, including readers that compute rows around their own
    /// strips.
    pub(super) asked: Vec<Halo>,
    /// Rows that filters over it need themselves: they will be exchanged in any case.
    pub(super) filtered: Vec<Halo>,
}

/// Reach of a kernel beyond the rows that it computes, for one input; `None` if it reads elsewhere.
pub(super) fn needed(access: Access) -> Option<Halo> {
    let Access::Rows { reach, wrap } = access else { return None };
    Some(Halo { up: reach.up, down: reach.down, wrap: wrap && reach.up + reach.down > 0 })
}

impl Demand {
    /// No reads around strips.
    fn nothing(nodes: usize) -> Demand {
        Demand { asked: vec![Halo::NONE; nodes], filtered: vec![Halo::NONE; nodes] }
    }

    /// Walks the graph backwards. An exchange can then be made once, at the widest radius
    /// requested, and a pixel operation be computed on the rows that a later filter needs.
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

/// The pass: computes the demand where there are strips, except in naive mode, which transfers for
/// every operation.
pub(super) fn look_ahead(draft: &mut Draft<'_>) {
    draft.demand = if draft.ranks() > 1 && draft.setting.mode != Mode::Naive {
        Demand::of(draft.graph)
    } else {
        Demand::nothing(draft.graph.nodes.len())
    };
}
