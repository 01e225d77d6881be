//! Demand: the rows that will be read around the strips of each image, known before placement.
//!
//! Rows around a strip come from other ranks or are computed from deeper halos of the inputs. A filter over a
//! filter needs one exchange, at the depth that both need, if computing the additional rows is predicted to
//! be cheaper than a second exchange. The choice for a launch determines the depth of the exchanges of its
//! inputs, and so affects earlier launches: choices are made backwards, then improved one by one, and jointly
//! for launches that read one image.
//!
//! Periodic copies of rows beyond the image (a wrapped halo) are always exchanged.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::draft::PlanDraft;
use super::launches::LaunchedNodes;
use super::movement::{rows_of, work_of};
use super::setting::Mode;
use super::state::{Halo, Placement};
use super::step::ComputedRows;
use crate::ir::graph::NodeId;
use crate::ir::kernel::{Access, Kernel};

/// Weight of the predicted time of an exchange relative to the time of computing its rows. Ranks also wait
/// for each other, which the model leaves out. A guess: predicted times are then up to 1.2 % longer in 99 of
/// 100 programs (`docs/performance/model.md`).
const WAITING: f64 = 2.0;

/// Part of the time of an exchange that counts for an image that outlives the plan: its halo also serves later
/// programs, such as the next iterations of a loop. A guess.
const KEPT: f64 = 0.25;

/// For each node, rows around its strips.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HaloDemand {
    /// Rows that its readers request, including readers that compute rows around their own strips.
    pub(super) asked: Vec<Halo>,
    /// Rows that its launch computes: all requested rows, or none, in which case the rows are exchanged.
    pub(super) computed: Vec<Halo>,
}

/// Reach of a kernel beyond the rows that it computes, for one input; `None` if it reads elsewhere.
pub(super) fn halo_of_access(access: Access) -> Option<Halo> {
    let Access::Rows { reach, wrap } = access else { return None };
    Some(Halo { up: reach.up, down: reach.down, wrap: wrap && reach.up + reach.down > 0 })
}

/// Rows that a launch reads around a strip if it also computes `computed` rows around the strip.
pub(super) fn around(own: Halo, computed: Halo) -> Halo {
    Halo { up: own.up + computed.up, down: own.down + computed.down, ..own }
}

impl HaloDemand {
    /// A demand without reads around strips.
    fn nothing(nodes: usize) -> HaloDemand {
        HaloDemand { asked: vec![Halo::NONE; nodes], computed: vec![Halo::NONE; nodes] }
    }
}

/// The pass: computes the demand where there are strips. Naive mode transfers for every operation and has no
/// demand.
pub(super) fn compute_demand(draft: &mut PlanDraft<'_>) {
    draft.demand = if draft.ranks() > 1 && draft.setting.mode != Mode::Naive {
        DemandSearch::new(draft).cheapest()
    } else {
        HaloDemand::nothing(draft.graph.nodes.len())
    };
}

/// Search for the launches that compute rows around strips, by least predicted time.
struct DemandSearch<'d, 'a> {
    draft: &'d PlanDraft<'a>,
    /// By node: the index in `launches` of its launch; `None` for given images and for results that one rank
    /// or every rank computes whole.
    launch_of: Vec<Option<usize>>,
    /// The nodes of each launch, consecutive.
    launches: Vec<Vec<NodeId>>,
    /// By node: the inputs that it reads at a fixed distance.
    reads: Vec<Vec<(NodeId, Halo)>>,
    /// Predicted seconds of exchanges.
    exchanges: RefCell<HashMap<(NodeId, Halo), f64>>,
    /// Predicted seconds of computing rows around strips, by launch.
    computations: RefCell<HashMap<(usize, Halo), f64>>,
}

impl<'d, 'a> DemandSearch<'d, 'a> {
    fn new(draft: &'d PlanDraft<'a>) -> DemandSearch<'d, 'a> {
        let graph = draft.graph;
        let mut launch_of = vec![None; graph.nodes.len()];
        let mut launches: Vec<Vec<NodeId>> = Vec::new();
        let mut reads = Vec::with_capacity(graph.nodes.len());
        let together: HashMap<NodeId, usize> =
            graph.joined.iter().enumerate().flat_map(|(g, j)| j.nodes.iter().map(move |n| (*n, g))).collect();
        let mut last = None;
        for (id, node) in graph.iter() {
            let group = together.get(&id).copied();
            let is_whole = draft.owners[id.0].is_some() || node.op.is_on_every_rank(node.shape, || true);
            if !matches!(node.op, Kernel::Source(_)) && !is_whole {
                match launches.last_mut() {
                    Some(nodes) if group.is_some() && group == last => nodes.push(id),
                    _ => launches.push(vec![id]),
                }
                launch_of[id.0] = Some(launches.len() - 1);
                last = group;
            }
            let inputs = node.inputs.iter().enumerate().filter(|_| draft.owners[id.0].is_none());
            reads.push(inputs.filter_map(|(i, input)| Some((*input, halo_of_access(node.op.access(i))?))).collect());
        }
        let (exchanges, computations) = (RefCell::default(), RefCell::default());
        DemandSearch { draft, launch_of, launches, reads, exchanges, computations }
    }

    /// The demand of the cheapest choices that the search finds.
    fn cheapest(&self) -> HaloDemand {
        /// Maximum product of choices and nodes up to which choices are always improved.
        const WORK: usize = 1 << 14;
        /// Seconds for each unit of this product, at least, that exchanges take where more choices are improved. A
        /// guess: trying all choices once takes about as long.
        const WORTH: f64 = 100e-9;
        /// Maximum number of times that all choices are tried: a guess.
        const PASSES: usize = 16;
        let mut computes = self.backwards();
        let mut best = self.demand(&computes);
        let deepest = self.demand(&vec![true; self.launches.len()]);
        let open: Vec<usize> = (0..self.launches.len()).filter(|l| self.is_open(*l, &deepest)).collect();
        let mut least = self.seconds(&best);
        let work = open.len() * self.reads.len();
        if work > WORK && least < WORTH * work as f64 {
            return best;
        }
        let alternatives = self.alternatives(&open);
        let all = self.seconds(&deepest);
        if all < least {
            (computes, best, least) = (vec![true; self.launches.len()], deepest, all);
        }
        for _ in 0..PASSES {
            let mut improved = false;
            for (launches, computed) in &alternatives {
                let mut other = computes.clone();
                launches.iter().for_each(|l| other[*l] = *computed);
                if other != computes {
                    let demand = self.demand(&other);
                    let seconds = self.seconds(&demand);
                    if seconds < least {
                        (computes, best, least, improved) = (other, demand, seconds, true);
                    }
                }
            }
            if !improved {
                break;
            }
        }
        best
    }

    /// A choice for each launch, from the last to the first, as if its inputs were exchanged.
    fn backwards(&self) -> Vec<bool> {
        let mut computes = vec![false; self.launches.len()];
        // Rows that are exchanged in any case.
        let mut asked = self.demand(&computes).asked;
        for (l, nodes) in self.launches.iter().enumerate().rev() {
            let demanded = self.demanded(nodes, &asked);
            if !demanded.is_none() && !demanded.wrap {
                let deeper = self.inputs(nodes, demanded, &asked);
                // In the same order on all ranks, because sums of seconds are rounded.
                let sum =
                    |halos: &BTreeMap<NodeId, Halo>| halos.iter().map(|(n, h)| self.exchange(*n, *h)).sum::<f64>();
                let now = deeper.keys().map(|n| (*n, asked[n.0])).collect();
                let exchanged = nodes.iter().map(|n| self.exchange(*n, asked[n.0])).sum::<f64>();
                if self.computation(l, demanded) + sum(&deeper) - sum(&now) < exchanged {
                    computes[l] = true;
                    deeper.into_iter().for_each(|(n, halo)| asked[n.0] = halo);
                }
            }
        }
        computes
    }

    /// The halo depths of the inputs of a launch that computes `computed` rows around its strips, in addition
    /// to the requested depths.
    fn inputs(&self, nodes: &[NodeId], computed: Halo, asked: &[Halo]) -> BTreeMap<NodeId, Halo> {
        let mut deeper = BTreeMap::new();
        for (input, own) in nodes.iter().flat_map(|n| &self.reads[n.0]).filter(|(input, _)| !nodes.contains(input)) {
            let halo = deeper.entry(*input).or_insert(asked[input.0]);
            *halo = around(*own, computed).max(*halo);
        }
        deeper
    }

    /// Other choices to try: for one launch, for a launch with all earlier launches on which it depends, or
    /// for all launches that read one image.
    fn alternatives(&self, open: &[usize]) -> Vec<(Vec<usize>, bool)> {
        let mut siblings: HashMap<NodeId, Vec<usize>> = HashMap::new();
        for l in open {
            let inputs = self.launches[*l].iter().flat_map(|n| &self.reads[n.0]);
            for (input, _) in inputs {
                let readers = siblings.entry(*input).or_default();
                if readers.last() != Some(l) {
                    readers.push(*l);
                }
            }
        }
        let mut together: Vec<(NodeId, Vec<usize>)> = siblings.into_iter().filter(|(_, r)| r.len() > 1).collect();
        together.sort_unstable();
        let single = open.iter().rev().map(|l| vec![*l]);
        let upstream = open.iter().rev().map(|l| self.upstream(*l, open)).filter(|launches| launches.len() > 1);
        let sets: Vec<Vec<usize>> =
            single.chain(upstream).chain(together.into_iter().map(|(_, readers)| readers)).collect();
        let both = |set: Vec<usize>| [(set.clone(), true), (set, false)];
        sets.into_iter().flat_map(both).collect()
    }

    /// A launch and those launches of `open` whose results reach it without a footprint in between.
    fn upstream(&self, launch: usize, open: &[usize]) -> Vec<usize> {
        let mut found = vec![launch];
        let mut at = 0;
        while let Some(&reader) = found.get(at) {
            for (input, _) in self.launches[reader].iter().flat_map(|n| &self.reads[n.0]) {
                if let Some(l) = self.launch_of[input.0]
                    && open.binary_search(&l).is_ok()
                    && !found.contains(&l)
                {
                    found.push(l);
                }
            }
            at += 1;
        }
        found
    }

    /// Returns `true` if a launch could either compute rows around its strips or leave them to exchanges.
    fn is_open(&self, launch: usize, demand: &HaloDemand) -> bool {
        let asked = self.demanded(&self.launches[launch], &demand.asked);
        !asked.is_none() && !asked.wrap
    }

    /// Rows that readers request of any node of a launch.
    fn demanded(&self, nodes: &[NodeId], asked: &[Halo]) -> Halo {
        nodes.iter().map(|n| asked[n.0]).fold(Halo::NONE, Halo::max)
    }

    /// The demand if these launches compute the requested rows around their strips.
    fn demand(&self, computes: &[bool]) -> HaloDemand {
        let mut demand = HaloDemand::nothing(self.reads.len());
        for id in (0..self.reads.len()).rev() {
            // All outside readers of the nodes of a launch come after its last node.
            if let Some(l) = self.launch_of[id]
                && self.launches[l].last() == Some(&NodeId(id))
                && computes[l]
            {
                let computed = self.demanded(&self.launches[l], &demand.asked);
                if !computed.wrap {
                    self.launches[l].iter().for_each(|n| demand.computed[n.0] = computed);
                }
            }
            for (input, own) in &self.reads[id] {
                let read = around(*own, demand.computed[id]);
                demand.asked[input.0] = demand.asked[input.0].max(read);
            }
        }
        demand
    }

    /// Predicted seconds of all rows around strips: the exchanges, and the additional time of launches.
    fn seconds(&self, demand: &HaloDemand) -> f64 {
        let nodes = (0..self.reads.len()).map(NodeId);
        let exchanged = nodes.filter(|n| !demand.computed[n.0].covers(demand.asked[n.0]));
        let exchanges: f64 = exchanged.map(|n| self.exchange(n, demand.asked[n.0])).sum();
        let launches = self.launches.iter().enumerate();
        exchanges + launches.map(|(l, nodes)| self.computation(l, demand.computed[nodes[0].0])).sum::<f64>()
    }

    /// Predicted seconds of exchanging the halo of an image.
    fn exchange(&self, node: NodeId, halo: Halo) -> f64 {
        if halo.is_none() || !self.is_in_strips(node, halo) {
            return 0.0;
        }
        *self.exchanges.borrow_mut().entry((node, halo)).or_insert_with(|| {
            let is_kept = self.draft.initial[node.0].is_some() && !(self.draft.disposable)(node);
            let part = if is_kept { KEPT } else { 1.0 };
            let exchanged = part * WAITING * self.draft.exchanging(node, halo);
            if self.draft.initial[node.0].is_some_and(|s| s.placement.owner().is_some()) {
                self.draft.scattering(node, halo).min(exchanged)
            } else {
                exchanged
            }
        })
    }

    /// Returns `true` if rows around the strips of an image are missing, as far as is known before any step.
    fn is_in_strips(&self, node: NodeId, halo: Halo) -> bool {
        match self.draft.initial[node.0].map(|s| s.placement) {
            Some(Placement::Replicated) => false,
            Some(Placement::Strips(valid)) => !valid.covers(halo),
            Some(Placement::On(_)) => true,
            None => self.launch_of[node.0].is_some(),
        }
    }

    /// Predicted seconds to compute these rows around the strip, on the rank that computes most.
    fn computation(&self, launch: usize, halo: Halo) -> f64 {
        if halo.is_none() {
            return 0.0;
        }
        *self.computations.borrow_mut().entry((launch, halo)).or_insert_with(|| {
            let (graph, setting) = (self.draft.graph, self.draft.setting);
            let nodes = &self.launches[launch];
            let launched = LaunchedNodes::of(graph, nodes);
            let rows = |rank, halo| rows_of(graph, &setting.partition, nodes[0], rank, ComputedRows::Strip(halo));
            let busiest = (0..setting.partition.ranks()).max_by_key(|rank| rows(*rank, halo).len()).unwrap_or(0);
            let seconds = |halo| {
                let work = work_of(graph, &launched, rows(busiest, halo));
                setting.machine.slowest(|m| m.launch(&work).seconds)
            };
            seconds(halo) - seconds(Halo::NONE)
        })
    }
}
