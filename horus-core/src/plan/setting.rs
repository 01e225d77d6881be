//! What a plan is made for.

use std::sync::Arc;

use super::partition::Partition;
use crate::machine::Profile;
pub use crate::settings::{Mode, Transfer};

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
    /// How images get to the device and back.
    pub transfer: Transfer,
    /// What things cost.
    pub profile: Arc<Profile>,
    /// Bytes that a device with memory of its own can hold; `None` if it need not be watched.
    pub capacity: Option<usize>,
}

impl Setting {
    /// Of devices with memory of their own that nobody has measured and that are not connected; everything is done as is
    /// predicted to be best.
    pub fn on(partition: Partition) -> Setting {
        Setting {
            partition,
            unified: false,
            direct: false,
            overlap: false,
            mode: Mode::Fused,
            transfer: Transfer::Auto,
            profile: Arc::new(Profile::of_default(false)),
            capacity: None,
        }
    }
}
