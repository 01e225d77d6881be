//! The numbers of one machine.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::link::Link;
use crate::ir::kernel::Family;

/// What the machine of one rank does in a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Version of what the numbers mean: [`Profile::VERSION`], or they are of no use.
    pub version: u32,
    /// The machine.
    pub hardware: Hardware,
    /// Where the numbers come from.
    pub origin: Origin,
    /// Copies from the host to the device.
    pub upload: Copies,
    /// Copies from the device to the host.
    pub download: Copies,
    /// How many times as long copies in both directions take when both run at once.
    pub both_ways: f64,
    /// What a launch costs, whatever it does.
    pub launch: Launching,
    /// Seconds that the host spends on a recorded operation beside its launches: to record it, to find its plan again, to let
    /// go of it.
    pub recording: f64,
    /// Bytes per second, read and written together, that a copy within the device's memory moves, by the bytes that it goes through.
    pub memory: Rates,
    /// Multiply-adds per second.
    pub arithmetic: ArithmeticRates,
    /// Rows that filters may read around a pixel until a tile has as many rows around it as of its own.
    pub tile_rows: f64,
    /// How kernels use memory and arithmetic.
    pub families: BTreeMap<Family, Efficiency>,
    /// Bytes per second that the host copies, by the number of threads.
    pub host_copy: Rates,
    /// Files.
    pub files: Files,
    /// Messages.
    pub links: Links,
}

/// What a profile is of, without the name of a host: what was measured of another, or by another driver, is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hardware {
    /// The device, as it calls itself.
    pub device: String,
    /// Version of its driver; empty if it has none.
    pub driver: String,
    /// Model of the host's processor.
    pub host: String,
    /// Threads of the host that work for the device.
    pub threads: usize,
}

/// Where a profile comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Measured on this machine.
    Measured,
    /// Measured on a machine with this device, and part of Horus.
    Shipped,
    /// Assumed.
    Default,
}

/// Which memory of the host a copy reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostSide {
    /// Page-locked: the device copies by itself.
    Pinned,
    /// Pageable: the host's threads copy through page-locked buffers.
    Staged,
    /// Page-locked and mapped: kernels read and write it themselves.
    Mapped,
}

/// Copies in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copies {
    /// From or to page-locked memory.
    pub pinned: Line,
    /// From or to pageable memory.
    pub staged: Line,
    /// By kernels that go through images pixel by pixel.
    pub mapped: Line,
    /// By kernels that work in tiles.
    pub tiled: Line,
}

/// The seconds of a copy, as a function of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Seconds before the first byte (L).
    pub latency: f64,
    /// Seconds that the host spends on it (o).
    pub overhead: f64,
    /// Seconds between copies that follow each other (g).
    pub gap: f64,
    /// Bytes per second (1 / G).
    pub bandwidth: f64,
}

/// What a launch costs, whatever it does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launching {
    /// Seconds of the host.
    pub host: f64,
    /// Seconds of the device between launches that depend on each other.
    pub device: f64,
}

/// Multiply-adds per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArithmeticRates {
    /// In `f32`.
    pub f32: f64,
    /// In `f64`.
    pub f64: f64,
    /// Pixels of a launch that keep all of the device busy: one of fewer takes as long.
    pub fill: f64,
}

/// How kernels of a family use a machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Share of the bandwidth of a copy; above 1 if they do better.
    pub memory: f64,
    /// Share of the multiply-adds.
    pub arithmetic: f64,
}

/// Bytes per second of files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// Read, from the system's cache.
    pub read: f64,
    /// Written.
    pub write: f64,
}

/// Messages between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// From device to device.
    pub peers: Link,
    /// Through the memory of one host.
    pub host: Link,
    /// From host to host.
    pub network: Link,
}

/// Rates at some sizes, ascending; interpolated in between by the logarithm of the size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates(pub Vec<(f64, f64)>);

impl Rates {
    /// The rate at `size`; outside the table, that of its nearest end.
    pub fn at(&self, size: f64) -> f64 {
        let after = self.0.iter().position(|(s, _)| *s >= size).unwrap_or(self.0.len());
        match (after.checked_sub(1).map(|i| self.0[i]), self.0.get(after)) {
            (Some((a, low)), Some(&(b, high))) => low + (high - low) * (size / a).ln() / (b / a).ln(),
            (Some((_, rate)), None) | (None, Some(&(_, rate))) => rate,
            (None, None) => 1e9,
        }
    }

    fn sound(&self) -> bool {
        let ascending = self.0.windows(2).all(|w| w[0].0 < w[1].0);
        !self.0.is_empty() && ascending && self.0.iter().all(|(s, r)| *s >= 1.0 && s.is_finite() && useful(*r))
    }
}

/// Whether a number can be divided by.
fn useful(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

/// Whether a number can be a time.
fn time(seconds: f64) -> bool {
    seconds.is_finite() && seconds >= 0.0
}

impl Profile {
    /// The version that this Horus writes and reads.
    pub const VERSION: u32 = 4;

    /// Bytes per second between a host and a device that computes on the host's memory: nothing is copied.
    pub(super) const NO_COPY: f64 = 1e18;

    /// Whether the device computes on the host's memory: nothing is copied between them.
    pub fn is_unified(&self) -> bool {
        self.upload.pinned.bandwidth >= Profile::NO_COPY
    }

    /// The same device as one of several that copy at the same time. Each has a link of its own to the host; copies from and to pageable
    /// memory go through the host's processors and memory, which they share.
    #[must_use]
    pub fn beside(mut self, devices: usize) -> Profile {
        /// A copy that no cache holds.
        const LARGE: f64 = 256e6;
        if !self.is_unified() {
            let share = self.host_copy.at(LARGE) / devices.max(1) as f64;
            for copies in [&mut self.upload, &mut self.download] {
                copies.staged.bandwidth = copies.staged.bandwidth.min(share);
            }
        }
        self
    }

    /// How kernels of `family` use the machine.
    pub fn efficiency(&self, family: Family) -> Efficiency {
        const ALL: Efficiency = Efficiency { memory: 1.0, arithmetic: 1.0 };
        self.families.get(&family).copied().unwrap_or(ALL)
    }

    /// The first thing about the profile that cannot be, if any: it was made by something else, or damaged.
    pub fn fault(&self) -> Option<&'static str> {
        let Profile { upload, download, launch, arithmetic, files, links, .. } = self;
        let lines = [upload, download].into_iter().flat_map(|c| [c.pinned, c.staged, c.mapped, c.tiled]);
        let line = |l: Line| time(l.latency) && time(l.overhead) && time(l.gap) && useful(l.bandwidth);
        let link = |l: Link| time(l.latency) && useful(l.bandwidth);
        let families = |e: &Efficiency| useful(e.memory) && useful(e.arithmetic);
        let checks = [
            (self.version == Profile::VERSION, "its version is another"),
            (lines.into_iter().all(line), "a copy between host and device"),
            (useful(self.both_ways) && self.both_ways >= 1.0, "copies both ways"),
            (time(launch.host) && time(launch.device), "launches"),
            (time(self.recording), "recording"),
            (self.memory.sound(), "the device's memory"),
            (useful(arithmetic.f32) && useful(arithmetic.f64) && time(arithmetic.fill), "multiply-adds"),
            (useful(self.tile_rows), "the rows of a tile"),
            (self.families.values().all(families), "a family of kernels"),
            (self.host_copy.sound(), "copies of the host"),
            (useful(files.read) && useful(files.write), "files"),
            ([links.peers, links.host, links.network].into_iter().all(link), "messages"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let driver = if self.driver.is_empty() { String::new() } else { format!(" by {}", self.driver) };
        write!(f, "{}{driver}, {}, {} threads", self.device, self.host, self.threads)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Measured => "measured",
            Origin::Shipped => "shipped",
            Origin::Default => "default",
        })
    }
}
