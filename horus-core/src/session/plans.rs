//! Plan cache: a program that runs again, on other images of the same kind and in the same places,
//! is not planned again.
//!
//! A session keeps its last plans (`session/plans.rs`). A program that is recorded again, in the
//! same lines and of the same operations, over images of the same kind in the same places, reuses
//! the previous plan: a frame of a series is planned once. `session/replay.rs` goes further for a
//! series whose operation does the same to each picture (`Series::recorded_once`), and for
//! functions of arrays in Python (`jit`): the program is recorded once, and its plan runs on other
//! pixels in the place of its inputs. A replay is refused where other images of the program are no
//! longer where they were; then the program is recorded again.

use std::collections::HashMap;

use crate::dtype::DType;
use crate::ir::graph::{Graph, Op, ValueId};
use crate::ir::kernel::Kernel;
use crate::plan::state::State;
use crate::plan::{Mappable, Plan, Want};
use crate::shape::Shape;

/// Maximum number of cached plans; the least recently used is dropped first.
const MOST: usize = 16;

/// Everything that determines a plan, besides the settings of its session.
#[derive(Debug)]
pub(super) struct Request {
    /// The program as recorded.
    pub(super) graph: Graph<Op>,
    /// Deliveries of its roots.
    pub(super) wants: Vec<Want>,
    /// Its source images, their states, and a flag for those unreferenced afterwards.
    pub(super) sources: Vec<(ValueId, Option<State>, bool)>,
    /// Host memory that launches may use.
    pub(super) mappable: Mappable,
    /// The other images on the device, if its memory is limited and may not hold all.
    pub(super) others: Vec<Other>,
    /// Number of lanes of each source.
    pub(super) laid: Vec<usize>,
}

/// An image on the device that a program does not read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    pub(super) value: ValueId,
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) state: State,
    /// Number of its lanes.
    pub(super) laid: usize,
}

impl Other {
    /// Total bytes.
    pub(super) fn bytes(&self) -> usize {
        self.shape.len() * self.dtype.size()
    }
}

impl Request {
    /// Bytes of all images of the program.
    pub(super) fn bytes(&self) -> usize {
        self.graph.nodes.iter().map(|n| n.shape.len() * n.dtype.size()).sum()
    }

    /// Maps each image of `known` to the one in its place here, if both lead to the same plan.
    fn names(&self, known: &Request) -> Option<HashMap<ValueId, ValueId>> {
        let states = |r: &Request| r.sources.iter().map(|&(_, state, gone)| (state, gone)).collect::<Vec<_>>();
        let others = |r: &Request| r.others.iter().map(|o| (o.shape, o.dtype, o.state, o.laid)).collect::<Vec<_>>();
        let mappable = |r: &Request| {
            let source = |(v, ..): &(ValueId, Option<State>, bool)| r.mappable.sources.contains(v);
            (r.mappable.results, r.sources.iter().map(source).collect::<Vec<_>>())
        };
        if self.graph.nodes.len() != known.graph.nodes.len()
            || self.graph.roots != known.graph.roots
            || self.wants != known.wants
            || states(self) != states(known)
            || others(self) != others(known)
            || self.laid != known.laid
            || mappable(self) != mappable(known)
        {
            return None;
        }
        let mut names = HashMap::new();
        let mut taken = HashMap::new();
        let mut same = |before: ValueId, now: ValueId| {
            *names.entry(before).or_insert(now) == now && *taken.entry(now).or_insert(before) == before
        };
        for (before, now) in known.graph.nodes.iter().zip(&self.graph.nodes) {
            let op = match (&before.op, &now.op) {
                (Op::Source(a), Op::Source(b)) => same(*a, *b),
                (a, b) => a == b,
            };
            let rest = (&before.inputs, before.shape, before.dtype) == (&now.inputs, now.shape, now.dtype);
            if !op || !rest || before.site != now.site {
                return None;
            }
        }
        let pairs = known.others.iter().zip(&self.others);
        pairs.map(|(before, now)| (before.value, now.value)).all(|(before, now)| same(before, now)).then_some(names)
    }
}

/// Plans with their requests, the most recently used last.
#[derive(Debug, Default)]
pub(super) struct Plans(Vec<(Request, Plan)>);

impl Plans {
    /// The plan for a request, if one is known; removes it.
    pub(super) fn take(&mut self, request: &Request) -> Option<Plan> {
        let found = self.0.iter().enumerate().rev().find_map(|(i, (known, _))| Some((i, request.names(known)?)));
        let (i, names) = found?;
        let (_, mut plan) = self.0.remove(i);
        for node in &mut plan.graph.nodes {
            if let Kernel::Source(v) = &mut node.op {
                *v = *names.get(v)?;
            }
        }
        Some(plan)
    }

    /// The last plan used and its request; removes it.
    pub(super) fn take_last(&mut self) -> Option<(Request, Plan)> {
        self.0.pop()
    }

    /// Keeps a plan.
    pub(super) fn put(&mut self, request: Request, plan: Plan) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push((request, plan));
    }
}
