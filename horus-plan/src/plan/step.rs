//! The steps of a plan: pure data, which everything else about plans is written in.

use std::fmt;

use super::partition::Partition;
use super::state::{Halo, Placement};
use crate::ir::graph::NodeId;
use horus_base::shape::Window;

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

/// Rows of an image in time: of those that a rank holds or computes, the ones between two cuts. Cuts are in parts of
/// [`Band::PARTS`], so that a band means the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Band {
    /// The first part.
    pub from: u8,
    /// Behind the last part.
    pub to: u8,
}

impl Band {
    /// Parts that the rows of a rank are cut into.
    pub const PARTS: u8 = 64;
    /// All rows.
    pub const WHOLE: Band = Band { from: 0, to: Band::PARTS };

    /// The first row of part `cut` of `rows`.
    pub fn row(cut: u8, rows: Window) -> isize {
        rows.start + (rows.len() * usize::from(cut.min(Band::PARTS)) / usize::from(Band::PARTS)).cast_signed()
    }

    /// The first cut of `rows` that row `end` does not lie behind.
    pub fn cut_behind(end: isize, rows: Window) -> u8 {
        (0..Band::PARTS).find(|cut| Band::row(*cut, rows) >= end).unwrap_or(Band::PARTS)
    }

    /// Those of `rows`.
    pub fn of(self, rows: Window) -> Window {
        Window::new(Band::row(self.from, rows), Band::row(self.to, rows))
    }

    /// Whether these are the first rows.
    pub const fn begins(self) -> bool {
        self.from == 0
    }

    /// Whether these are the last rows.
    pub const fn ends(self) -> bool {
        self.to == Band::PARTS
    }

    /// Whether these are all rows.
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
    /// A band of them: bands of one launch come in the order of rows, and other steps may come between.
    Band(Band),
}

impl Part {
    /// Whether this is the first part of a launch.
    pub const fn begins(self) -> bool {
        match self {
            Part::Whole | Part::Interior(_) => true,
            Part::Edges(_) => false,
            Part::Band(band) => band.begins(),
        }
    }

    /// Whether the result is complete after it.
    pub const fn ends(self) -> bool {
        match self {
            Part::Whole | Part::Edges(_) => true,
            Part::Interior(_) => false,
            Part::Band(band) => band.ends(),
        }
    }
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Copy a band of the host's buffer to the device. Bands of an image come in the order of rows.
    Upload {
        /// The image.
        node: NodeId,
        /// Which of its rows.
        band: Band,
    },
    /// Copy a band of this rank's strip, and rows around it, of an image that every host has whole to the device. Bands come
    /// in the order of rows; after the last, the host's buffer goes.
    UploadStrip {
        /// The image.
        node: NodeId,
        /// Rows around the strip.
        halo: Halo,
        /// Which of all these rows.
        band: Band,
    },
    /// Let launches of the only rank use the host's page-locked memory in place of the device's: read an image there that the
    /// host has, or write a result there that is not computed yet. Nothing is copied: what launches read and write goes over
    /// the bus.
    Map(NodeId),
    /// End that. A result is the host's when the launches that write it are over.
    Unmap(NodeId),
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
    /// Collect an image on rank 0; the strips stay.
    Gather {
        /// The image.
        node: NodeId,
        /// Which rows of every strip. Bands come in the order of rows; through the host there is one.
        band: Band,
        /// From device to device: the strips meet in memory of rank 0's device, apart from its own strip, and are sent to
        /// the host from there. Else they meet on rank 0's host, as the result.
        direct: bool,
    },
    /// Collect the whole image on rank 0, and drop the strips (naive mode).
    Collect(NodeId),
    /// Hand the host's buffer over, as the result.
    Deliver(NodeId),
    /// Send a band of the device's buffer to whoever asked for the result and waits for it; no copy stays on the host. Bands
    /// come in the order of rows. On several ranks, rank 0 sends what was gathered on its device, a band of every strip; the
    /// others do nothing. Of lanes each sends its own strip, or the first the image that all have.
    Send {
        /// The image.
        node: NodeId,
        /// Which of its rows.
        band: Band,
    },
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
    /// The steps before that it waits for: those of other queues whose work it needs, as far as no step before it in its
    /// own queue has waited for them.
    pub waits: Vec<usize>,
}
