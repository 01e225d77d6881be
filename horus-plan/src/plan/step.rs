//! The steps of a plan: pure data.

use std::fmt;

use super::partition::Partition;
use super::state::{Halo, Placement};
use crate::ir::graph::NodeId;
use horus_base::shape::Window;

/// A copy of some rows of an image, made for one input of one launch and dropped after the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Temp {
    /// The launch.
    pub consumer: NodeId,
    /// Its input.
    pub input: usize,
}

/// The rows of a result that a rank computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputedRows {
    /// All rows: every rank computes the same.
    All,
    /// The rank's strip and these rows around it.
    Strip(Halo),
    /// All rows on this rank, none on others: they compute other parts of the program at the same time.
    On(usize),
}

impl ComputedRows {
    /// Placement of the result.
    pub const fn placement(self) -> Placement {
        match self {
            ComputedRows::All => Placement::Replicated,
            ComputedRows::Strip(extend) => Placement::Strips(extend),
            ComputedRows::On(rank) => Placement::On(rank),
        }
    }

    /// The rows of rank `rank` of a result of `height` rows.
    pub fn window(self, partition: &Partition, rank: usize, height: usize) -> Window {
        self.placement().rows(partition, rank, height)
    }
}

/// A range of the rows that a rank has or computes, as the unit of waiting: the rows between two cuts. Cuts
/// count parts of [`Band::PARTS`], so that a band means the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Band {
    /// The first part.
    pub from: u8,
    /// One past the last part.
    pub to: u8,
}

impl Band {
    /// Number of parts of a rank's rows.
    pub const PARTS: u8 = 64;
    /// All rows.
    pub const WHOLE: Band = Band { from: 0, to: Band::PARTS };

    /// The first row of part `cut` of `rows`.
    pub fn row(cut: u8, rows: Window) -> isize {
        rows.start + (rows.len() * usize::from(cut.min(Band::PARTS)) / usize::from(Band::PARTS)).cast_signed()
    }

    /// The first cut of `rows` at or beyond row `end`.
    pub(crate) fn cut_behind(end: isize, rows: Window) -> u8 {
        (0..Band::PARTS).find(|cut| Band::row(*cut, rows) >= end).unwrap_or(Band::PARTS)
    }

    /// The band's part of `rows`.
    pub fn of(self, rows: Window) -> Window {
        Window::new(Band::row(self.from, rows), Band::row(self.to, rows))
    }

    /// Returns `true` if these are the first rows.
    pub const fn begins(self) -> bool {
        self.from == 0
    }

    /// Returns `true` if these are the last rows.
    pub const fn ends(self) -> bool {
        self.to == Band::PARTS
    }

    /// Returns `true` if these are all rows.
    pub const fn is_whole(self) -> bool {
        self.begins() && self.ends()
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shift = (self.from | self.to | Band::PARTS).trailing_zeros();
        write!(f, "{} to {} of {}", self.from >> shift, self.to >> shift, Band::PARTS >> shift)
    }
}

/// The part of its rows that a launch computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaunchPart {
    /// All of them.
    #[default]
    Whole,
    /// Rows of the strip that do not depend on surrounding rows: rows further from its edges than the given
    /// depth. The image's own edges count only if the depth is wrapped. A strip that is too thin to gain has
    /// no such rows.
    Interior(Halo),
    /// The remaining rows.
    Edges(Halo),
    /// A band. Bands of one launch come in the order of rows; other steps may come in between.
    Band(Band),
}

impl LaunchPart {
    /// Returns `true` if this is the first part of a launch.
    pub const fn begins(self) -> bool {
        match self {
            LaunchPart::Whole | LaunchPart::Interior(_) => true,
            LaunchPart::Edges(_) => false,
            LaunchPart::Band(band) => band.begins(),
        }
    }

    /// Returns `true` if the result is complete after this part.
    pub const fn ends(self) -> bool {
        match self {
            LaunchPart::Whole | LaunchPart::Edges(_) => true,
            LaunchPart::Interior(_) => false,
            LaunchPart::Band(band) => band.ends(),
        }
    }
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Copies a band of the host's buffer to the device. Bands of an image come in the order of rows.
    Upload {
        /// The image.
        node: NodeId,
        /// Its rows.
        band: Band,
    },
    /// Copies a band of this rank's strip and the rows around it to the device, of an image that every host has
    /// whole. Bands come in the order of rows. After the last band, the host's buffer is released.
    UploadStrip {
        /// The image.
        node: NodeId,
        /// Rows around the strip.
        halo: Halo,
        /// The band of all these rows.
        band: Band,
    },
    /// Lets launches of a single rank use the host's page-locked memory in place of the device's memory, to
    /// read an image or to write a result. No copies are made: launches access it over the bus.
    Map(NodeId),
    /// Ends the use of host memory. A result is on the host when the launches that write it have completed.
    Unmap(NodeId),
    /// Copies the device's buffer to the host.
    Download(NodeId),
    /// Sends each rank its strip of an image that one rank has, and rows around it.
    Scatter {
        /// The image.
        node: NodeId,
        /// Rows around the strip that are sent.
        halo: Halo,
        /// Rows reserved around the strip.
        room: Halo,
        /// From device to device: that rank's device has the image, and the strips arrive on devices.
        direct: bool,
    },
    /// Sends every rank the whole image.
    Replicate {
        /// The image.
        node: NodeId,
        /// From device to device.
        direct: bool,
    },
    /// Brings the halo rows up to date, to the given depth.
    Exchange {
        /// The image.
        node: NodeId,
        /// Depth after the exchange.
        halo: Halo,
        /// From device to device; else through the host, wherever the image is.
        direct: bool,
    },
    /// Begins an exchange. Until it is finished, only the rows of the strip are valid, and no step may write
    /// them.
    Begin {
        /// The image.
        node: NodeId,
        /// Depth after the exchange.
        halo: Halo,
        /// From device to device; else through the host, wherever the image is.
        direct: bool,
    },
    /// Finishes the exchange that was begun.
    Finish(NodeId),
    /// Brings the rows that one launch reads of one input into a temporary buffer.
    Fetch {
        /// The image.
        node: NodeId,
        /// The temporary copy.
        temp: Temp,
        /// The rows that the launch computes.
        rows: ComputedRows,
        /// From device to device; else through the host, wherever the image is.
        direct: bool,
    },
    /// Runs a kernel.
    Launch {
        /// The node to compute.
        node: NodeId,
        /// The rows to compute.
        rows: ComputedRows,
        /// Rows reserved around the strip.
        room: Halo,
        /// The part of these rows: the interior comes first, the edges complete the result.
        part: LaunchPart,
    },
    /// Drops the device's copy to free memory.
    Evict(NodeId),
    /// Adds up the partial results of all ranks.
    Sum(NodeId),
    /// Collects an image on rank 0; the strips stay.
    Gather {
        /// The image.
        node: NodeId,
        /// Rows of every strip. Bands come in the order of rows; through the host there is one.
        band: Band,
        /// From device to device: the strips are gathered in memory of rank 0's device, separate from its own
        /// strip, and sent to the host from there. Otherwise they are gathered on rank 0's host as the
        /// result.
        direct: bool,
    },
    /// Collects the whole image on rank 0, and drops the strips (naive mode).
    Collect(NodeId),
    /// Delivers the host's buffer as the result.
    Deliver(NodeId),
    /// Sends a band of the device's buffer to the requester, which waits for the result; no copy stays on the
    /// host. Bands come in the order of rows. On several ranks, rank 0 sends the image gathered on its
    /// device, a band of every strip; the other ranks do nothing. Of several devices of one process, each
    /// sends its own strip, or the first sends an image that all have.
    Send {
        /// The image.
        node: NodeId,
        /// Its rows.
        band: Band,
    },
    /// Drops an image that is no longer needed.
    Free(NodeId),
}

/// One step of a plan: its action, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// The action.
    pub action: Action,
    /// The reason.
    pub why: String,
    /// The earlier steps for which it waits: steps of other queues whose results it needs, unless an earlier
    /// step of its own queue has waited for them.
    pub waits: Vec<usize>,
}

/// The number of steps from the first of `steps` on that scatter images of different ranks through their hosts: they
/// travel at once. `owner` returns the only rank that has an image.
pub fn scattered_at_once(steps: &[PlanStep], owner: impl Fn(NodeId) -> Option<usize>) -> usize {
    let mut owners = Vec::new();
    let is_new = |step: &&PlanStep| match step.action {
        Action::Scatter { node, direct: false, .. } => {
            let owner = owner(node);
            let is_new = !owners.contains(&owner);
            owners.push(owner);
            is_new
        }
        _ => false,
    };
    steps.iter().take_while(is_new).count()
}
