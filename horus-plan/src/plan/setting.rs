//! The setting of a plan.

use std::sync::Arc;

use super::partition::Partition;
use super::state::Hosts;
use crate::ir::graph::ValueId;
use crate::machine::Machine;
pub use horus_base::settings::{Mode, Transfer};

/// The delivery of a computed root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultDelivery {
    /// None: it stays in place.
    Keep,
    /// The pixels on rank 0's host.
    Root,
    /// The pixels on every rank's host.
    Everyone,
    /// On a single rank, or on lanes: the pixels for the requester, which blocks until they arrive.
    /// The host keeps no copy of a device's image. Each lane hands over its strip.
    Requester,
}

/// Page-locked host memory that launches may access directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappable {
    /// Images in such memory.
    pub sources: Vec<ValueId>,
    /// Such memory is available for a result that is handed over.
    pub results: bool,
    /// The host begins to copy results when it has issued everything else: whoever waits for them gives their memory then.
    pub downloads_last: bool,
}

/// The setting of a plan.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Division of rows among ranks.
    pub partition: Partition,
    /// Sharing of host memory.
    pub hosts: Hosts,
    /// The device computes on host memory.
    pub unified: bool,
    /// The devices of the ranks exchange memory without the host.
    pub direct: bool,
    /// Launches overlap with halo exchanges in every case, not only where a gain is predicted.
    pub overlap: bool,
    /// Degree of optimisation.
    pub mode: Mode,
    /// Transfers of images to the device and back.
    pub transfer: Transfer,
    /// Host memory that may be mapped, where `transfer` allows it.
    pub mappable: Mappable,
    /// Bytes that a device with its own memory can hold; `None` if unlimited.
    pub capacity: Option<usize>,
    /// The machines of all ranks, from which costs are predicted; equal on all ranks, so that plans
    /// are equal too.
    pub machine: Arc<Machine>,
}

impl Setting {
    /// Returns `true` if the ranks are several lanes of one process.
    pub fn has_shared_host(&self) -> bool {
        self.hosts == Hosts::Shared && self.partition.ranks() > 1
    }

    /// The usual setting: fused, unlimited memory, transfers through the host, the default machine.
    pub fn of(partition: Partition, unified: bool) -> Setting {
        Setting {
            partition,
            hosts: Hosts::Separate,
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
