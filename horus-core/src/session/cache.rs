//! Plan cache: a program that runs again, on other images of the same kind and in the same places,
//! is not planned again.
//!
//! A session keeps its last plans (`session/cache.rs`). A program that is recorded again, of the
//! same operations over images of the same kind in the same places, reuses the previous plan: a
//! frame of a series is planned once, and so is a function that is called from several lines. `session/engine/replay.rs` goes further for a
//! series whose operation does the same to each picture (`Series::recorded_once`), and for
//! functions of arrays in Python (`jit`): the program is recorded once, and its plan runs on other
//! pixels in the place of its inputs. A replay is refused where other images of the program are no
//! longer where they were; then the program is recorded again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::num::NonZeroUsize;

use lru::LruCache;

use crate::digest::Digest;
use crate::dtype::DType;
use crate::error::RecordedCall;
use crate::execute::Batches;
use crate::ir::graph::{Graph, Op, ValueId};
use crate::ir::kernel::Kernel;
use crate::plan::state::ImageState;
use crate::plan::{Mappable, Plan, ResultDelivery};
use crate::shape::Shape;

/// Maximum number of cached plans; the least recently used is dropped first.
const MOST: NonZeroUsize = NonZeroUsize::new(128).unwrap();
/// Maximum number of nodes of all cached programs.
const MOST_NODES: usize = 1 << 14;

/// Everything that determines a plan, besides the settings of its session.
#[derive(Debug, Default)]
pub(crate) struct PlanRequest {
    /// The program as recorded.
    pub(crate) graph: Graph<Op>,
    /// Deliveries of its roots.
    pub(crate) wants: Vec<ResultDelivery>,
    /// Its source images, their states, and a flag for those unreferenced afterwards.
    pub(crate) sources: Vec<(ValueId, Option<ImageState>, bool)>,
    /// Host memory that launches may use.
    pub(crate) mappable: Mappable,
    /// The other images on the device, if its memory is limited and may not hold all.
    pub(crate) others: Vec<ResidentImage>,
    /// The number of ranks, or lanes, among which each source is divided.
    pub(crate) laid: Vec<usize>,
}

/// An image on the device that a program does not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResidentImage {
    pub(crate) value: ValueId,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) state: ImageState,
    /// The number of ranks, or lanes, among which it is divided.
    pub(crate) laid: usize,
}

impl ResidentImage {
    /// Total bytes of several.
    pub(crate) fn bytes_of(all: &[ResidentImage]) -> usize {
        all.iter().map(ResidentImage::bytes).sum()
    }

    /// Total bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.len() * self.dtype.size()
    }
}

/// Equal for programs that lead to the same plan, and rarely for others.
pub(crate) fn digest(graph: &Graph<Op>) -> u64 {
    let mut digest = Digest::default();
    for node in &graph.nodes {
        // A processor computes the digests of several nodes side by side.
        let mut own = Digest::default();
        match &node.op {
            Op::Source(_) => {} // any image of its kind
            op => op.hash(&mut own),
        }
        node.inputs.iter().for_each(|input| own.word(input.0 as u64));
        // The types of others, and all but their rows and columns, follow from what they are computed of.
        if node.inputs.is_empty() {
            (node.shape, node.dtype).hash(&mut own);
        } else {
            own.word((node.shape.height as u64).rotate_left(32) ^ node.shape.width as u64);
        }
        digest.word(own.finish());
    }
    for root in &graph.roots {
        let node = graph.node(*root);
        (root, node.shape, node.dtype).hash(&mut digest);
    }
    digest.finish()
}

impl PlanRequest {
    /// Bytes of all images of the program.
    pub(crate) fn bytes(&self) -> usize {
        self.graph.nodes.iter().map(|n| n.shape.len() * n.dtype.size()).sum()
    }

    /// The images and calls here in the places of those of `known`, if both lead to the same plan.
    fn names(&self, known: &PlanRequest) -> Option<ProgramRenames> {
        let states = |r: &PlanRequest| r.sources.iter().map(|&(_, state, gone)| (state, gone)).collect::<Vec<_>>();
        let others = |o: &ResidentImage| (o.shape, o.dtype, o.state, o.laid);
        let mappable =
            |r: &PlanRequest| r.sources.iter().map(|(v, ..)| r.mappable.sources.contains(v)).collect::<Vec<_>>();
        let (new, old) = (&self.graph, &known.graph);
        if new.nodes.len() != old.nodes.len()
            || new.roots != old.roots
            || self.wants != known.wants
            || !self.others.iter().map(others).eq(known.others.iter().map(others))
            || self.laid != known.laid
            || self.mappable.results != known.mappable.results
            || self.mappable.downloads_last != known.mappable.downloads_last
            || states(self) != states(known)
            || mappable(self) != mappable(known)
        {
            return None;
        }
        let mut names = ProgramRenames::default();
        for (before, now) in old.nodes.iter().zip(&new.nodes) {
            let op = match (&before.op, &now.op) {
                (Op::Source(a), Op::Source(b)) => names.image(*a, *b),
                (a, b) => a == b,
            };
            let rest = (&before.inputs, before.shape, before.dtype) == (&now.inputs, now.shape, now.dtype);
            if !op || !rest || !names.call(before.site, now.site) {
                return None;
            }
        }
        let mut pairs = known.others.iter().zip(&self.others);
        pairs.all(|(before, now)| names.image(before.value, now.value)).then_some(names)
    }
}

type ValueRenames = HashMap<ValueId, ValueId, BuildHasherDefault<Digest>>;

/// The images and calls of one program in the places of those of another.
#[derive(Default)]
struct ProgramRenames {
    images: ValueRenames,
    /// The images of the other program for those of this one.
    back: ValueRenames,
    /// Few: as many as lines of the program.
    calls: Vec<(RecordedCall, RecordedCall)>,
}

impl ProgramRenames {
    /// Notes an image in the place of another; `false` if either has another counterpart.
    fn image(&mut self, before: ValueId, now: ValueId) -> bool {
        *self.images.entry(before).or_insert(now) == now && *self.back.entry(now).or_insert(before) == before
    }

    /// Notes a call in the place of another; `false` if that has another counterpart: a plan has no
    /// more calls than the program that it was made for.
    fn call(&mut self, before: RecordedCall, now: RecordedCall) -> bool {
        // Most often that of a line shortly before, of a loop or a function.
        match self.calls.iter().rev().find(|(a, _)| *a == before) {
            Some((_, b)) => *b == now,
            None => {
                self.calls.push((before, now));
                true
            }
        }
    }
}

/// A plan and the batches of its launches.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    pub(crate) plan: Plan,
    pub(crate) batches: Batches,
    /// That of the program, once it has been kept.
    pub(crate) digest: Option<u64>,
}

impl From<Plan> for CachedPlan {
    fn from(plan: Plan) -> CachedPlan {
        CachedPlan { plan, batches: Batches::default(), digest: None }
    }
}

/// Plans with their requests, the most recently used last: not an `LruCache`, as several may have one digest, and there are
/// two limits.
#[derive(Debug)]
pub(crate) struct PlanCache {
    known: Vec<(u64, Box<(PlanRequest, CachedPlan)>)>,
    nodes: usize,
    /// Maximum number of plans, and of nodes of all.
    most: [usize; 2],
    /// Programs over images in memory that may not fit on a device, with the host's memory when that was
    /// decided, and `true` for those by regions.
    by_regions: LruCache<ProgramKey, (usize, bool)>,
    /// The graph that the last known program had before: the next is written over it.
    pub(crate) former: Graph<Op>,
}

/// The digest of a program, and `true` if its results are taken as they are computed.
pub(crate) type ProgramKey = (u64, bool);

impl Default for PlanCache {
    fn default() -> PlanCache {
        let (known, by_regions, former) = (Vec::new(), LruCache::new(MOST), Graph::default());
        PlanCache { known, nodes: 0, most: [MOST.get(), MOST_NODES], by_regions, former }
    }
}

impl PlanCache {
    /// Makes room for the plans of a loop, all of which run in each step, and for as many others.
    pub(crate) fn hold(&mut self, plans: usize, nodes: usize) {
        self.most = [self.most[0].max(2 * plans), self.most[1].max(2 * nodes)];
    }

    /// Returns `true` if a program is computed by regions with so much of the host's memory, if that is known.
    pub(crate) fn by_regions(&mut self, program: ProgramKey, host: usize) -> Option<bool> {
        let (noted, is) = *self.by_regions.get(&program)?;
        (if is { host >= noted } else { host <= noted }).then_some(is)
    }

    /// Notes that a program is computed by regions, or is not.
    pub(crate) fn note_by_regions(&mut self, program: ProgramKey, host: usize, is: bool) {
        self.by_regions.put(program, (host, is));
    }

    /// The plan for a request, if one is known; removes it.
    pub(crate) fn take(&mut self, request: &PlanRequest) -> Option<CachedPlan> {
        let digest = digest(&request.graph);
        let alike = self.known.iter().enumerate().rev().filter(|(_, (d, _))| *d == digest);
        let (i, names) = alike.map(|(i, (_, known))| (i, request.names(&known.0))).find_map(|(i, n)| Some((i, n?)))?;
        let (request, mut plan) = self.remove(i);
        self.former = request.graph;
        let elsewhere = names.calls.iter().any(|(before, now)| before != now);
        for node in &mut plan.plan.graph.nodes {
            if let Kernel::Source(v) = &mut node.op {
                *v = *names.images.get(v)?;
            }
            if elsewhere && let Some((_, now)) = names.calls.iter().find(|(before, _)| *before == node.site) {
                node.site = *now;
            }
        }
        Some(CachedPlan { digest: Some(digest), ..plan })
    }

    /// The last plan used and its request; removes it.
    pub(crate) fn take_last(&mut self) -> Option<(PlanRequest, CachedPlan)> {
        (!self.known.is_empty()).then(|| self.remove(self.known.len() - 1))
    }

    fn remove(&mut self, i: usize) -> (PlanRequest, CachedPlan) {
        let (_, known) = self.known.remove(i);
        self.nodes -= known.0.graph.nodes.len();
        *known
    }

    /// Keeps a plan.
    pub(crate) fn put(&mut self, request: PlanRequest, plan: CachedPlan) {
        let nodes = request.graph.nodes.len();
        let [plans, most] = self.most;
        while !self.known.is_empty() && (self.known.len() >= plans || self.nodes + nodes > most) {
            drop(self.remove(0));
        }
        self.nodes += nodes;
        self.known.push((plan.digest.unwrap_or_else(|| digest(&request.graph)), Box::new((request, plan))));
    }
}
