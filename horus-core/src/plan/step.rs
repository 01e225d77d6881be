//! The steps of a plan: pure data, which everything else about plans is written in.

use super::partition::Partition;
use super::state::{Halo, Placement};
use crate::ir::graph::NodeId;
use crate::shape::Window;

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

/// Which of its rows a launch computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    #[default]
    Whole,
    /// Those of the strip that no row around it reaches: further from its edges than the depth given. The image's own
    /// edges count only if the depth is wrapped. A strip that is too thin to gain has no such rows.
    Interior(Halo),
    /// The others.
    Edges(Halo),
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
