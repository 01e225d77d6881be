//! The setting of a plan.

use std::sync::Arc;

use super::partition::Partition;
use super::state::Hosts;
use crate::ir::graph::ValueId;
use crate::machine::Machine;
pub use horus_base::settings::{Mode, Transfer};

/// How a result is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultDelivery {
    /// Not delivered: the image stays in place.
    Keep,
    /// The pixels on rank 0's host.
    Root,
    /// The pixels on every rank's host.
    Everyone,
    /// On each rank's host the rows that the rank has.
    Distributed,
    /// On a single rank, or on several devices of one process: the pixels go to the requester, which blocks
    /// until they arrive. The host keeps no copy of an image on a device. Each device delivers its strip.
    Requester,
}

/// Page-locked host memory that launches may access directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappable {
    /// Source images in such memory.
    pub sources: Vec<ValueId>,
    /// Set if the result is delivered to such memory.
    pub results: bool,
    /// Set if the host begins to copy results after it has issued all other steps, because the requester
    /// provides their memory only then.
    pub downloads_last: bool,
}

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Partition of rows among ranks.
    pub partition: Partition,
    /// Sharing of host memory.
    pub hosts: Hosts,
    /// Set if the device computes on host memory.
    pub unified: bool,
    /// Set if the devices of the ranks exchange memory without the host.
    pub direct: bool,
    /// Set if launches overlap with halo exchanges in every case, not only where a gain is predicted.
    pub overlap: bool,
    /// Degree of optimisation.
    pub mode: Mode,
    /// Transfers of images to the device and back.
    pub transfer: Transfer,
    /// Host memory that may be mapped, where `transfer` allows it.
    pub mappable: Mappable,
    /// Bytes that a device with its own memory can hold; `None` if unlimited.
    pub capacity: Option<usize>,
    /// The machines of all ranks, from which costs are predicted; the same on all ranks, so that plans are
    /// the same.
    pub machine: Arc<Machine>,
}

impl Setting {
    /// Returns `true` if the ranks are several devices of one process.
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
