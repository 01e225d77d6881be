//! The planner: what must happen, and in which order, so that no operation reads stale data.
//!
//! Every transfer is presumed redundant. It enters the plan only if an operation would otherwise read something that is
//! not there (lazy parallelization, thesis section 2.3). The planner is a pure function of graph, states and setting.

mod footprints;
pub mod forecast;
mod halos;
mod memory;
pub mod movement;
mod part;
pub mod partition;
mod planner;
mod spread;
pub mod state;
mod text;
pub mod verify;
pub mod work;

pub use part::Part;
pub use planner::plan;

use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;
use crate::plan::partition::Partition;
use crate::plan::state::{Halo, Placement, State};
pub use crate::settings::Mode;
use crate::shape::Window;

/// What is wanted of a root once it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing more: it stays where it is.
    Keep,
    /// The pixels on rank 0's host.
    Root,
    /// The pixels on every rank's host.
    Everyone,
    /// Of the only rank: the pixels for whoever asked, who waits for them. No copy of a device's image stays on the host.
    Handed,
}

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How rows are divided, and among how many ranks.
    pub partition: Partition,
    /// Whether the device has memory of its own.
    pub unified: bool,
    /// Whether the devices of the ranks exchange memory without the host.
    pub direct: bool,
    /// Whether launches compute what they can while border rows travel in every case, not only where that is predicted to
    /// gain.
    pub overlap: bool,
    /// How much of the machinery is used.
    pub mode: Mode,
    /// Bytes that a device with memory of its own can hold; `None` if it need not be watched.
    pub capacity: Option<usize>,
}

/// A copy of some rows of an image, made for one input of one launch and dropped after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Temp {
    /// The launch.
    pub consumer: NodeId,
    /// Its input.
    pub input: usize,
}

/// Which rows of a result a rank computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All of them; every rank does the same.
    All,
    /// The rank's strip and so many rows around it.
    Strip(Halo),
}

impl Rows {
    /// Where the result is afterwards.
    pub const fn placement(self) -> Placement {
        match self {
            Rows::All => Placement::Replicated,
            Rows::Strip(extend) => Placement::Strips(extend),
        }
    }

    /// The rows of rank `rank` of a result of `height` rows.
    pub fn window(self, partition: &Partition, rank: usize, height: usize) -> Window {
        match self {
            Rows::All => Window::whole(height),
            Rows::Strip(extend) => partition.strip(rank, height).grown(extend.up, extend.down).clipped(height),
        }
    }
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Copy the host's buffer to the device.
    Upload(NodeId),
    /// Copy this rank's strip, and rows around it, of an image that every host has whole to the device; the host's buffer
    /// goes.
    UploadStrip {
        /// The image.
        node: NodeId,
        /// Rows around the strip.
        halo: Halo,
    },
    /// Copy the device's buffer to the host.
    Download(NodeId),
    /// Send each rank its strip of an image that rank 0 has; `room` rows of halo are reserved around it.
    Scatter {
        /// The image.
        node: NodeId,
        /// Rows reserved around the strip.
        room: Halo,
        /// From device to device: rank 0 has the image there, and the strips arrive there.
        direct: bool,
    },
    /// Give every rank the whole image.
    Replicate {
        /// The image.
        node: NodeId,
        /// From device to device.
        direct: bool,
    },
    /// Bring the border rows up to date, to the depth given.
    Exchange {
        /// The image.
        node: NodeId,
        /// Depth after the exchange.
        halo: Halo,
        /// From device to device; else through the host, wherever the image is.
        direct: bool,
    },
    /// Begin an exchange: until it is finished, only the rows of the strip are valid, and nothing may write them.
    Begin {
        /// The image.
        node: NodeId,
        /// Depth after the exchange.
        halo: Halo,
        /// From device to device; else through the host, wherever the image is.
        direct: bool,
    },
    /// Finish the exchange that was begun.
    Finish(NodeId),
    /// Bring the rows that one launch reads of one input into a temporary buffer.
    Fetch {
        /// The image.
        node: NodeId,
        /// For whom.
        temp: Temp,
        /// The rows that the launch computes.
        rows: Rows,
        /// From device to device; else through the host, wherever the image is.
        direct: bool,
    },
    /// Run a kernel.
    Launch {
        /// The node to compute.
        node: NodeId,
        /// The rows to compute.
        rows: Rows,
        /// Rows reserved around the strip.
        room: Halo,
        /// Which of these rows: the interior comes first, the edges complete the result.
        part: Part,
    },
    /// Drop the device's copy, to make room.
    Evict(NodeId),
    /// Add up the partial results of all ranks.
    Sum(NodeId),
    /// Collect the whole image on rank 0's host, as the result; the strips stay.
    Gather(NodeId),
    /// Collect the whole image on rank 0, and drop the strips (naive mode).
    Collect(NodeId),
    /// Hand the host's buffer over, as the result.
    Deliver(NodeId),
    /// Send the device's buffer to whoever asked for the result and waits for it; no copy stays on the host.
    Send(NodeId),
    /// Drop an image that nobody needs any more.
    Free(NodeId),
}

/// One step of a plan: what to do, and why leaving it out would be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// Why.
    pub why: String,
}

/// How often each kind of transfer happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Copies from host to device.
    pub uploads: usize,
    /// Copies from device to host.
    pub downloads: usize,
    /// Kernels launched; one that is launched in parts counts once.
    pub launches: usize,
    /// Images scattered from rank 0.
    pub scatters: usize,
    /// Images gathered to rank 0.
    pub gathers: usize,
    /// Border exchanges.
    pub exchanges: usize,
    /// Images given to every rank.
    pub replications: usize,
    /// Footprints fetched.
    pub footprints: usize,
}

impl Counts {
    /// Copies between host and device.
    pub fn copies(&self) -> usize {
        self.uploads + self.downloads
    }

    /// Transfers between ranks.
    pub fn exchanges_between_ranks(&self) -> usize {
        self.scatters + self.gathers + self.exchanges + self.replications + self.footprints
    }

    /// Adds `other` to these counts.
    pub fn add(&mut self, other: &Counts) {
        self.uploads += other.uploads;
        self.downloads += other.downloads;
        self.launches += other.launches;
        self.scatters += other.scatters;
        self.gathers += other.gathers;
        self.exchanges += other.exchanges;
        self.replications += other.replications;
        self.footprints += other.footprints;
    }
}

/// What to do, in order. The same on every rank.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kernels.
    pub graph: Graph<Kernel>,
    /// The steps.
    pub steps: Vec<Step>,
    /// What the plan was made for.
    pub setting: Setting,
    /// The states that the plan starts from: of the sources, in graph order.
    pub initial: Vec<Option<State>>,
    /// The states that the plan ends in.
    pub states: Vec<Option<State>>,
    /// Whether what each launch reads and writes fits in the device's memory, as far as it is estimated.
    pub fits: bool,
    /// The first node that does not fit beyond doubt, and the bytes that it takes at least, with all that it reads.
    pub lacking: Option<(NodeId, usize)>,
}

impl Plan {
    /// How often each kind of transfer happens.
    pub fn counts(&self) -> Counts {
        let mut c = Counts::default();
        for s in &self.steps {
            match s.action {
                Action::Upload(_) | Action::UploadStrip { .. } => c.uploads += 1,
                Action::Download(_) | Action::Send(_) => c.downloads += 1,
                Action::Launch { part, .. } => c.launches += usize::from(!matches!(part, Part::Edges(_))),
                Action::Scatter { .. } => c.scatters += 1,
                Action::Gather(_) | Action::Collect(_) => c.gathers += 1,
                Action::Exchange { .. } | Action::Begin { .. } => c.exchanges += 1,
                Action::Replicate { .. } => c.replications += 1,
                // Naive mode scatters an input, and uploads it, for every launch anew.
                Action::Fetch { .. } if self.setting.mode == Mode::Naive => {
                    c.scatters += 1;
                    c.uploads += usize::from(!self.setting.unified);
                }
                Action::Fetch { .. } => c.footprints += 1,
                Action::Finish(_) | Action::Evict(_) | Action::Sum(_) | Action::Deliver(_) | Action::Free(_) => {}
            }
        }
        c
    }
}
