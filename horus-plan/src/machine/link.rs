//! Times of messages between ranks.

use serde::{Deserialize, Serialize};

/// A number of messages, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Number of messages.
    pub messages: usize,
    /// Their total bytes.
    pub bytes: usize,
}

/// The level of the hierarchy of links that a message crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkLevel {
    /// From device to device of one host.
    Device,
    /// Through the memory of one host.
    Host,
    /// From host to host of one rack.
    Rack,
    /// From rack to rack.
    Cluster,
}

impl LinkLevel {
    /// All levels, from the innermost.
    pub const ALL: [LinkLevel; 4] = [LinkLevel::Device, LinkLevel::Host, LinkLevel::Rack, LinkLevel::Cluster];

    /// Names the ends of the links of a level.
    pub const fn between(self) -> &'static str {
        match self {
            LinkLevel::Device => "devices of a host",
            LinkLevel::Host => "ranks of a host",
            LinkLevel::Rack => "hosts",
            LinkLevel::Cluster => "racks",
        }
    }
}

/// The speed of messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Seconds before the first byte.
    pub latency: f64,
    /// Bytes per second, in each direction at once.
    pub bandwidth: f64,
}

impl Default for Link {
    /// 5 microseconds and 20 GB/s: a good network of 2020 and later.
    fn default() -> Link {
        Link { latency: 5e-6, bandwidth: 20e9 }
    }
}

impl Link {
    /// Seconds for one rank to send or receive `load`.
    pub fn time(self, load: Load) -> f64 {
        self.latency * load.messages as f64 + load.bytes as f64 / self.bandwidth
    }

    /// Seconds of one allreduce of a word among `ranks`: a tree up and down.
    pub fn round(self, ranks: usize) -> f64 {
        2.0 * self.latency * f64::from(ranks.max(1).next_power_of_two().trailing_zeros())
    }

    /// A link with the larger latency and the smaller bandwidth of both.
    #[must_use]
    pub fn worse(self, other: Link) -> Link {
        Link { latency: self.latency.max(other.latency), bandwidth: self.bandwidth.min(other.bandwidth) }
    }
}
