//! What a plan is made for.

use std::sync::Arc;

use super::partition::Partition;
use super::state::Hosts;
use crate::ir::graph::ValueId;
use crate::machine::Machine;
pub use horus_base::settings::{Mode, Transfer};

/// What is wanted of a root once it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing more: it stays where it is.
    Keep,
    /// The pixels on rank 0's host.
    Root,
    /// The pixels on every rank's host.
    Everyone,
    /// Of the only rank, or of lanes: the pixels for whoever asked, who waits for them. No copy of a device's image stays on the
    /// host. Each lane hands over its strip.
    Handed,
}

/// What launches may read and write in the host's memory: what is page-locked there, for the device to use by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappable {
    /// Images that the host has there.
    pub sources: Vec<ValueId>,
    /// Whether there is such memory for a result that is handed over.
    pub results: bool,
}

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How rows are divided, and among how many ranks.
    pub partition: Partition,
    /// Whose memory their hosts are.
    pub hosts: Hosts,
    /// Whether the device has memory of its own.
    pub unified: bool,
    /// Whether the devices of the ranks exchange memory without the host.
    pub direct: bool,
    /// Whether launches compute what they can while border rows travel in every case, not only where that is predicted to
    /// gain.
    pub overlap: bool,
    /// How much of the machinery is used.
    pub mode: Mode,
    /// How images get to the device and back.
    pub transfer: Transfer,
    /// What may be used in the host's memory, where `transfer` allows it.
    pub mappable: Mappable,
    /// Bytes that a device with memory of its own can hold; `None` if it need not be watched.
    pub capacity: Option<usize>,
    /// The machines of all ranks, by which costs are predicted. Plans are the same on every rank because it is.
    pub machine: Arc<Machine>,
}

impl Setting {
    /// Whether the ranks are several lanes of one process.
    pub fn in_lanes(&self) -> bool {
        self.hosts == Hosts::Shared && self.partition.ranks() > 1
    }

    /// What is usual: fused, memory that need not be watched, transfers through the host, a machine of which nothing is known.
    pub fn of(partition: Partition, unified: bool) -> Setting {
        Setting {
            partition,
            hosts: Hosts::Apart,
            unified,
            direct: false,
            overlap: false,
            mode: Mode::Fused,
            transfer: Transfer::Auto,
            mappable: Mappable::default(),
            capacity: None,
            machine: Arc::new(Machine::of_default(unified)),
        }
    }
}
