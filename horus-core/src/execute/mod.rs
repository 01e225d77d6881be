//! The executor: executes the steps of a plan on this rank, and decides nothing.
//!
//! Before a new plan runs, all its launches are announced to the device (`execute/ahead.rs`), which builds its kernels
//! together. An evaluation may return while its results are in transfer (`Session::begin_all`). Cancellation is checked
//! before each step. On one rank no step changes the pixels of an image, so a failed evaluation returns its source
//! images. On several ranks a failure ends all ranks. See `docs/design/failures.md`.

pub(crate) mod agree;
mod ahead;
mod batches;
mod collective;
mod deliver;
mod footprints;
mod gathered;
mod halos;
mod images;
mod launch;
mod mapped;
pub mod peers;
pub mod portions;
mod queues;
pub(crate) mod routes;
pub mod trace;
pub mod transfer;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use crate::comm::Communicator;
use crate::device::{Device, DownloadStart, Geometry, Memory, WorkLabel};
use crate::error::{DeviceError, Error, Result};
use crate::host::buffer::{HostBuffer, Pool};
use crate::ir::graph::NodeId;
use crate::plan::movement::{Load, rows_of};
use crate::plan::state::Placement;
use crate::plan::{Action, ComputedRows, LaunchedNodes, Plan, Temp, scattered_at_once};
use crate::shape::Window;

use self::footprints::FootprintCopy;
use self::gathered::GatheredStrips;
use self::halos::HaloTransfer;
use self::images::PlanImages;
use self::mapped::MappedResults;
use self::portions::Portion;
use self::queues::{PartialDownloads, StartedUploads};
use self::trace::Trace;
use self::transfer::RankPixels;

pub use ahead::prepare;
pub use batches::Batches;
pub use deliver::Delivered;
pub use images::RankImage;

/// Called before each step with its index, the number of steps, and its text.
pub type StepObserver<'a> = &'a dyn Fn(usize, usize, &dyn Fn() -> String);

/// Environment of an execution.
pub struct ExecutionContext<'a> {
    /// Device of this rank.
    pub device: &'a dyn Device,
    /// Communicator of the ranks.
    pub comm: &'a dyn Communicator,
    /// Pool of host memory.
    pub pool: &'a Arc<Pool>,
    /// Called before each step.
    pub observer: StepObserver<'a>,
    /// Called before each step; an error ends the execution.
    pub check: &'a dyn Fn() -> Result<()>,
    /// Records the time of each step.
    pub trace: &'a mut Trace,
    /// Maximum bytes of released source images that are retained until the plan ends, if memory suffices. They are
    /// returned if the execution fails.
    pub keep: usize,
    /// When copies of sent results start.
    pub sending: DownloadStart,
    /// Memory for delivered results, if it is known and the device can write to it.
    pub rooms: &'a mut Vec<HostBuffer>,
    /// Batches of the plan.
    pub batches: &'a mut Batches,
}

/// Error and remaining images of a failed execution.
pub struct FailedExecution<I = RankImage> {
    /// The error.
    pub error: Error,
    /// Intact source images, by node, in their current states, and computed roots.
    pub images: Vec<Option<I>>,
}

/// Outcome of an execution.
pub struct ExecutionOutcome<I = RankImage> {
    /// Remaining images, by node.
    pub images: Vec<Option<I>>,
    /// Delivered results, by node.
    pub delivered: HashMap<NodeId, Delivered>,
    /// Parts of results that one device of several delivers, by node.
    pub portions: HashMap<NodeId, Vec<Portion>>,
    /// Messages sent to other ranks.
    pub moved: Load,
}

/// Runs a plan. `images` are the sources, by node.
///
/// # Errors
/// If the device or communication fails. On one rank the images are returned. On several ranks they are lost, because
/// other ranks may have continued with theirs. One device of several returns its parts, as `PlanImages::remains`
/// describes.
pub fn execute(
    plan: &Plan,
    images: Vec<Option<RankImage>>,
    context: ExecutionContext<'_>,
) -> Result<ExecutionOutcome, FailedExecution> {
    let unified = context.device.memory().is_unified();
    let alone = context.comm.size() == 1;
    if alone && !unified {
        context.batches.expect(plan, &images, context.device);
    }
    let images = PlanImages::new(images, context.keep);
    let mut run = PlanExecution {
        plan,
        cx: context,
        unified,
        images,
        temps: HashMap::new(),
        halos: HashMap::new(),
        gathered: HashMap::new(),
        giving: HashMap::new(),
        delivered: HashMap::new(),
        portions: HashMap::new(),
        uploads: StartedUploads::default(),
        leaving: PartialDownloads::new(),
        incomplete: HashSet::new(),
        mapped: MappedResults::default(),
        moved: Load::default(),
    };
    match run.all() {
        Ok(()) => {
            let PlanExecution { images, delivered, portions, moved, .. } = run;
            Ok(ExecutionOutcome { images: images.left(plan), delivered, portions, moved })
        }
        Err(error) => {
            let in_lanes = plan.setting.has_shared_host();
            if in_lanes {
                run.settle_uploads();
            }
            for n in std::mem::take(&mut run.incomplete) {
                run.images.take(n);
            }
            let images = match (alone, in_lanes) {
                (true, _) => run.images.intact(plan, unified),
                (false, true) => run.images.remains(plan),
                (false, false) => Vec::new(),
            };
            Err(FailedExecution { images, error })
        }
    }
}

struct PlanExecution<'a> {
    plan: &'a Plan,
    cx: ExecutionContext<'a>,
    unified: bool,
    images: PlanImages,
    temps: HashMap<Temp, FootprintCopy>,
    /// Halo exchanges in progress, by image.
    halos: HashMap<NodeId, HaloTransfer<'a>>,
    /// Strips gathered on rank 0's device, by image.
    gathered: HashMap<NodeId, GatheredStrips>,
    /// Images with only the first bands of strips on the device, as they are on the host.
    giving: HashMap<NodeId, (HostBuffer, Geometry)>,
    delivered: HashMap<NodeId, Delivered>,
    portions: HashMap<NodeId, Vec<Portion>>,
    uploads: StartedUploads,
    leaving: PartialDownloads<'a>,
    /// Images with only the first rows computed.
    incomplete: HashSet<NodeId>,
    /// Results that launches write to the host's memory.
    mapped: MappedResults,
    moved: Load,
}

impl PlanExecution<'_> {
    fn all(&mut self) -> Result<()> {
        let plan = self.plan;
        self.cx.trace.predicted(Instant::now(), plan);
        self.sample_memory();
        let (launches, mut batched, mut scattered) = (plan.launches(), 0, 0);
        for (i, step) in plan.steps.iter().enumerate() {
            (self.cx.observer)(i, plan.steps.len(), &|| plan.name_step(&step.action));
            (self.cx.check)()?;
            if let Some(end) = self.submit(i)? {
                batched = end;
            }
            let launched = i < batched && !matches!(step.action, Action::Free(_));
            if launched || launches.computes_before(i) || i < scattered {
                continue;
            }
            if matches!(step.action, Action::Download(_)) && !self.unified {
                // The copy would wait for the preceding kernels. Waiting here separates their times.
                let start = Instant::now();
                self.cx.device.synchronize().map_err(self.failed(|| "waiting for the device".into()))?;
                self.cx.trace.waited(start);
            }
            let label = self.cx.trace.label(&step.action, plan);
            let entered = label.map(WorkLabel::enter);
            let (start, sent) = (Instant::now(), self.moved);
            let owner = |n| self.images.find(n).and_then(|image| image.state.placement.owner());
            let at_once = scattered_at_once(&plan.steps[i..], owner);
            if at_once > 1 {
                scattered = i + at_once;
                let scatters = &plan.steps[i..scattered];
                scatters.iter().try_for_each(|step| self.wait_for(&step.waits))?;
                self.scatter_at_once(scatters)?;
            } else {
                self.wait_for(&step.waits)?;
                self.step(i, step.action, launches.at(i))?;
            }
            let sent = Load { messages: self.moved.messages - sent.messages, bytes: self.moved.bytes - sent.bytes };
            drop(entered);
            self.cx.trace.add(start, &step.action, plan, label, sent);
            self.sample_memory();
        }
        self.finish_uploads()?;
        self.finish_gathers()
    }

    /// Records the memory in use, if steps are recorded. The first of several devices counts the host's.
    fn sample_memory(&mut self) {
        if self.cx.trace.is_on() {
            let is_first = !self.plan.setting.has_shared_host() || self.rank() == 0;
            let host = is_first.then(|| self.cx.pool.in_use().0);
            self.cx.trace.uses(host, self.cx.device.usage().memory.map(|(now, _)| now));
        }
    }

    fn step(&mut self, i: usize, action: Action, launched: Option<LaunchedNodes<'_>>) -> Result<()> {
        match action {
            Action::Upload { node, band } => self.upload(i, node, band),
            Action::UploadStrip { node, halo, band } => self.upload_strip(i, node, halo, band),
            Action::Map(n) => self.map(i, n),
            Action::Unmap(n) => self.unmap(n),
            Action::Download(n) => self.download(n),
            Action::Evict(n) => {
                if let Some(image) = self.images.find_mut(n) {
                    image.device = None;
                }
                Ok(())
            }
            Action::Scatter { node, halo, room, direct } => self.scatter(action, node, (halo, room), direct),
            Action::Replicate { node, direct } => self.replicate(action, node, direct),
            Action::Exchange { node, halo, direct } => {
                self.begin_exchange(action, node, halo, direct)?;
                self.finish_exchange(node)
            }
            Action::Begin { node, halo, direct } => self.begin_exchange(action, node, halo, direct),
            Action::Finish(n) => self.finish_exchange(n),
            Action::Fetch { node, temp, rows, direct } => self.fetch(action, node, temp, rows, direct),
            Action::Launch { rows, room, part, .. } => {
                launched.map_or(Ok(()), |launched| self.launch(&launched, rows, room, part))
            }
            Action::Sum(n) => self.sum(n),
            Action::Gather { node, band, direct: true } => self.begin_gather(action, node, band),
            Action::Gather { node, .. } => {
                let whole = self.collected(action, node)?;
                self.delivered.extend(whole.map(|w| (node, Delivered::OnHost(w))));
                Ok(())
            }
            Action::Collect(n) => {
                let whole = self.collected(action, n)?;
                self.set_placement(n, Placement::ROOT);
                self.place(n, Window::whole(self.geometry(n)?.shape.height), whole)
            }
            Action::Deliver(n) => {
                self.deliver(n);
                Ok(())
            }
            Action::Send { node, band } => self.send(node, band),
            Action::Free(n) => {
                self.images.free(n, self.plan.initial[n.0].is_some());
                Ok(())
            }
        }
    }

    fn rank(&self) -> usize {
        self.cx.comm.rank()
    }

    fn strip(&self, rank: usize, height: usize) -> Window {
        self.plan.setting.partition.strip(rank, height)
    }

    fn geometry(&self, n: NodeId) -> Result<Geometry> {
        Ok(self.images.get(n)?.geometry)
    }

    fn allocate(&self, op: impl FnOnce() -> String, bytes: usize) -> Result<Memory> {
        self.images.with_memory(|| self.cx.device.allocate(bytes)).map_err(self.failed(op))
    }

    fn host_memory(&self, label: impl FnOnce() -> String, bytes: usize) -> Result<HostBuffer> {
        self.images.with_memory(|| self.cx.pool.try_allocate(bytes)).map_err(self.failed(label))
    }

    /// Rows of node `n` that this rank computes; for a histogram, the rows that it counts.
    fn rows_of(&self, n: NodeId, rows: ComputedRows) -> Window {
        rows_of(&self.plan.graph, &self.plan.setting.partition, n, self.rank(), rows)
    }

    fn set_placement(&mut self, n: NodeId, placement: Placement) {
        if let Some(image) = self.images.find_mut(n) {
            image.state.placement = placement;
        }
    }

    /// Valid pixels of an image, on the host or the device, and their geometry.
    fn source(&self, n: NodeId) -> Result<(RankPixels<'_>, Geometry)> {
        let image = self.images.get(n)?;
        let source = match (image.host(), &image.device) {
            (Some(host), _) => RankPixels::Host(host.bytes()),
            (None, Some(memory)) => RankPixels::Device(self.cx.device, memory),
            (None, None) => RankPixels::Nowhere,
        };
        Ok((source, image.geometry))
    }
}

impl<'a> PlanExecution<'a> {
    /// Converts a device's error in operation `op`, whose text is made only then.
    fn failed<L: FnOnce() -> String>(&self, op: L) -> impl FnOnce(DeviceError) -> Error + use<'a, L> {
        let (device, rank) = (self.cx.device, self.rank());
        move |source| match source {
            DeviceError::Communication(e) => e.during(rank, op()),
            source => Error::Device { op: op(), device: device.names().name, source },
        }
    }

    /// Text of transfer errors for node `n`.
    fn label(&self, what: &'static str, n: NodeId) -> impl Fn() -> String + Copy + use<'a> {
        let node = self.plan.graph.node(n);
        move || format!("{what} of {} (recorded at {})", node.op.name(), node.site)
    }
}

fn missing(n: NodeId) -> Error {
    Error::Plan { step: n.0, text: n.to_string(), cause: "the image is not in memory".into() }
}
