//! Cache of plans.
//!
//! A session keeps its last plans. A program with the same operations, over images of the same shapes, types and
//! states, reuses the plan of the earlier program: a series is planned once, and a function that is called from several
//! lines is planned once. The design is in `docs/design/replay.md`.

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
use crate::session::devices::Engine;
use crate::shape::Shape;

/// Maximum number of cached plans; the least recently used plan is dropped first.
const MOST: NonZeroUsize = NonZeroUsize::new(128).unwrap();
/// Maximum number of nodes of all cached programs.
const MOST_NODES: usize = 1 << 14;

/// Everything that determines a plan, apart from the settings of its session.
#[derive(Debug, Default)]
pub(crate) struct PlanRequest {
    /// The program as recorded.
    pub(crate) graph: Graph<Op>,
    /// Deliveries of the program's roots.
    pub(crate) wants: Vec<ResultDelivery>,
    /// Source images of the program, their states, and `true` for an image that nothing references afterwards.
    pub(crate) sources: Vec<(ValueId, Option<ImageState>, bool)>,
    /// Host memory that launches may use.
    pub(crate) mappable: Mappable,
    /// Other images on the device, if its memory is limited and may not hold all images.
    pub(crate) others: Vec<ResidentImage>,
    /// Number of ranks or devices over which each source is divided.
    pub(crate) laid: Vec<usize>,
}

/// An image on the device that a program does not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResidentImage {
    pub(crate) value: ValueId,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) state: ImageState,
    /// Number of ranks or devices over which the image is divided.
    pub(crate) laid: usize,
}

impl ResidentImage {
    /// Total bytes of several images.
    pub(crate) fn bytes_of(all: &[ResidentImage]) -> usize {
        all.iter().map(ResidentImage::bytes).sum()
    }

    /// Total bytes of the image.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.len() * self.dtype.size()
    }
}

/// Hash of a program: equal for programs that lead to the same plan, rarely equal for others.
pub(crate) fn digest(graph: &Graph<Op>) -> u64 {
    let mut digest = Digest::default();
    for node in &graph.nodes {
        // Separate digests let a processor compute those of several nodes in parallel.
        let mut own = Digest::default();
        match &node.op {
            Op::Source(_) => {} // any image of its shape and type
            op => op.hash(&mut own),
        }
        node.inputs.iter().for_each(|input| own.word(input.0 as u64));
        // The pixel type, levels and channels of any other node follow from its inputs.
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

    /// Images and calls of this request that replace those of `known`; `None` unless both lead to the same plan.
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

/// Images and calls of a cached program, with their replacements in a new program.
#[derive(Default)]
struct ProgramRenames {
    images: ValueRenames,
    /// Images of the cached program, by image of the new program.
    back: ValueRenames,
    /// A short list: one pair for each line of the program.
    calls: Vec<(RecordedCall, RecordedCall)>,
}

impl ProgramRenames {
    /// Adds a pair of images; returns `false` if either image has another counterpart.
    fn image(&mut self, before: ValueId, now: ValueId) -> bool {
        *self.images.entry(before).or_insert(now) == now && *self.back.entry(now).or_insert(before) == before
    }

    /// Adds a pair of calls; returns `false` if `before` has another counterpart, because a plan has no more calls than
    /// the program that it was made for.
    fn call(&mut self, before: RecordedCall, now: RecordedCall) -> bool {
        // The pair is usually recent, from a line of the same loop or function.
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
    /// Digest of the program, once the plan has been cached.
    pub(crate) digest: Option<u64>,
    /// Seconds that the plan takes longer than one for which devices would have to be connected first.
    pub(crate) forgone: f64,
}

impl CachedPlan {
    /// Returns `true` unless a plan for connected devices would be better by now.
    pub(crate) fn is_best(&self, engine: &Engine) -> bool {
        self.forgone == 0.0 || engine.seconds_to_connect() > 0.0
    }
}

impl From<Plan> for CachedPlan {
    fn from(plan: Plan) -> CachedPlan {
        CachedPlan { plan, batches: Batches::default(), digest: None, forgone: 0.0 }
    }
}

/// Plans with their requests, the most recently used last. It is not an `LruCache`, because several plans may share a
/// digest, and there are two limits.
#[derive(Debug)]
pub(crate) struct PlanCache {
    known: Vec<(u64, Box<(PlanRequest, CachedPlan)>)>,
    nodes: usize,
    /// Maximum number of plans, and of the nodes of all plans.
    most: [usize; 2],
    /// Programs over images in memory that may not fit on a device, with the host memory at the time of the decision,
    /// and `true` for programs that are computed by regions.
    by_regions: LruCache<ProgramKey, (usize, bool)>,
    /// Graph that the last cached program had before; the next graph overwrites it.
    pub(crate) former: Graph<Op>,
}

/// Digest of a program, and `true` if its results are delivered as they are computed.
pub(crate) type ProgramKey = (u64, bool);

impl Default for PlanCache {
    fn default() -> PlanCache {
        let (known, by_regions, former) = (Vec::new(), LruCache::new(MOST), Graph::default());
        PlanCache { known, nodes: 0, most: [MOST.get(), MOST_NODES], by_regions, former }
    }
}

impl PlanCache {
    /// Raises the limits for the plans of a loop, all of which run in each iteration, and for as many others.
    pub(crate) fn hold(&mut self, plans: usize, nodes: usize) {
        self.most = [self.most[0].max(2 * plans), self.most[1].max(2 * nodes)];
    }

    /// Returns `true` if a program is computed by regions with this much host memory; `None` if that is unknown.
    pub(crate) fn by_regions(&mut self, program: ProgramKey, host: usize) -> Option<bool> {
        let (noted, is) = *self.by_regions.get(&program)?;
        (if is { host >= noted } else { host <= noted }).then_some(is)
    }

    /// Records whether a program is computed by regions.
    pub(crate) fn note_by_regions(&mut self, program: ProgramKey, host: usize, is: bool) {
        self.by_regions.put(program, (host, is));
    }

    /// Removes and returns the cached plan for a request.
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
        }
        if elsewhere {
            let graph = &mut plan.plan.graph;
            let sites = graph.nodes.iter_mut().map(|node| &mut node.site);
            for site in sites.chain(graph.calls.iter_mut().flatten()) {
                if let Some((_, now)) = names.calls.iter().find(|(before, _)| before == site) {
                    *site = *now;
                }
            }
        }
        Some(CachedPlan { digest: Some(digest), ..plan })
    }

    /// Removes and returns the last plan used, with its request.
    pub(crate) fn take_last(&mut self) -> Option<(PlanRequest, CachedPlan)> {
        (!self.known.is_empty()).then(|| self.remove(self.known.len() - 1))
    }

    fn remove(&mut self, i: usize) -> (PlanRequest, CachedPlan) {
        let (_, known) = self.known.remove(i);
        self.nodes -= known.0.graph.nodes.len();
        *known
    }

    /// Adds a plan to the cache.
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
