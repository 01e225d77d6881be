//! Profiles: the numbers of one machine.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::link::Link;
use crate::ir::kernel::Family;

/// The speed of the machine of one rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineProfile {
    /// Version of the format and its meaning. A profile with another version than [`MachineProfile::VERSION`]
    /// is ignored.
    pub version: u32,
    /// The machine.
    pub hardware: Hardware,
    /// The origin of the numbers.
    pub origin: ProfileOrigin,
    /// Copies from the host to the device.
    pub upload: CopyTimes,
    /// Copies from the device to the host.
    pub download: CopyTimes,
    /// Slowdown of copies in both directions when both run concurrently.
    pub both_ways: f64,
    /// Fixed cost of a launch.
    pub launch: Launching,
    /// Host seconds per recorded operation in addition to its launches: recording it, finding its plan,
    /// releasing it.
    pub recording: f64,
    /// Bytes per second (read and written together) of a copy within the device's memory, by its total bytes.
    pub memory: Rates,
    /// Multiply-adds per second.
    pub arithmetic: ArithmeticRates,
    /// The reach in rows at which a tile of a filter has as many surrounding rows as rows of its own.
    pub tile_rows: f64,
    /// Efficiency of kernels in memory and arithmetic.
    pub families: BTreeMap<Family, Efficiency>,
    /// Bytes per second that the host copies, by number of threads.
    pub host_copy: Rates,
    /// Files.
    pub files: FileRates,
    /// Messages.
    pub links: Links,
}

/// Identifies the hardware of a profile, without a host name. Measurements do not apply to other hardware or
/// another driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hardware {
    /// The name that the device reports.
    pub device: String,
    /// Version of its driver; empty if there is none.
    pub driver: String,
    /// Model of the host's processor.
    pub host: String,
    /// Threads of the host that work for the device.
    pub threads: usize,
}

/// Origin of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileOrigin {
    /// Measured on this machine.
    Measured,
    /// Measured on a machine with such a device, and shipped with Horus.
    Shipped,
    /// Assumed.
    Default,
}

/// The kind of host memory that a copy reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostSide {
    /// Page-locked: the device copies directly.
    Pinned,
    /// Pageable: the host's threads copy through page-locked buffers.
    Staged,
}

/// Copies in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyTimes {
    /// From or to page-locked memory.
    pub pinned: CopyTime,
    /// From or to pageable memory.
    pub staged: CopyTime,
    /// By kernels that access images pixel by pixel.
    pub mapped: CopyTime,
    /// By filters that read, in tiles, more than the rows next to a pixel.
    pub tiled: CopyTime,
}

/// The seconds of a copy, as a function of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyTime {
    /// Seconds before the first byte (L).
    pub latency: f64,
    /// Host seconds per copy (o).
    pub overhead: f64,
    /// Seconds between consecutive copies (g).
    pub gap: f64,
    /// Bytes per second (1 / G).
    pub bandwidth: f64,
}

/// Fixed cost of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launching {
    /// Host seconds.
    pub host: f64,
    /// Device seconds between dependent launches.
    pub device: f64,
}

/// Multiply-adds per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArithmeticRates {
    /// In `f32`.
    pub f32: f64,
    /// In `f64`.
    pub f64: f64,
    /// Minimum number of pixels that occupies the whole device: a smaller launch takes as long.
    pub fill: f64,
    /// Number of tiles of several iterations of a loop that a GPU computes at once: one on each
    /// multiprocessor. It is not measured but taken from the shipped profile.
    pub tiles: f64,
}

/// Efficiency of a family of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Fraction of the bandwidth of a copy; may exceed 1.
    pub memory: f64,
    /// Fraction of the peak multiply-adds.
    pub arithmetic: f64,
}

/// Bytes per second of files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileRates {
    /// Read from the system's cache.
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

/// Rates at some sizes, ascending, interpolated by the logarithm of the size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates(pub Vec<(f64, f64)>);

impl Rates {
    /// The rate at `size`; outside the table, the rate at the nearest end.
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

/// Returns `true` for a valid divisor.
fn useful(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

/// Returns `true` for a valid time.
fn time(seconds: f64) -> bool {
    seconds.is_finite() && seconds >= 0.0
}

impl MachineProfile {
    /// The version that this Horus writes and reads.
    pub const VERSION: u32 = 7;

    /// Bytes per second between a host and a device that computes on the host's memory, where no copies are
    /// made.
    pub(super) const NO_COPY: f64 = 1e18;

    /// Returns `true` if the device computes on the host's memory, so that no copies are made.
    pub fn is_unified(&self) -> bool {
        self.upload.pinned.bandwidth >= MachineProfile::NO_COPY
    }

    /// The device as one of several that copy concurrently. Each has its own link to the host; copies of
    /// pageable memory share the host's CPUs and memory.
    #[must_use]
    pub fn sharing_host_copies(mut self, devices: usize) -> MachineProfile {
        /// A copy larger than any cache.
        const LARGE: f64 = 256e6;
        if !self.is_unified() {
            let share = self.host_copy.at(LARGE) / devices.max(1) as f64;
            for copies in [&mut self.upload, &mut self.download] {
                copies.staged.bandwidth = copies.staged.bandwidth.min(share);
            }
        }
        self
    }

    /// A device that computes on its own part of the host's memory, together with devices that have their own
    /// memory: its inputs and results are copied, at the measured rate of one thread
    /// (`docs/performance/model.md`).
    #[must_use]
    pub fn with_host_copies(self) -> MachineProfile {
        let copy = CopyTime { latency: 0.0, overhead: 0.0, gap: 0.0, bandwidth: self.host_copy.at(1.0) };
        let copies = CopyTimes { pinned: copy, staged: copy, mapped: copy, tiled: copy };
        MachineProfile { upload: copies, download: copies, ..self }
    }

    /// Efficiency of kernels of `family`.
    pub fn efficiency(&self, family: Family) -> Efficiency {
        const ALL: Efficiency = Efficiency { memory: 1.0, arithmetic: 1.0 };
        self.families.get(&family).copied().unwrap_or(ALL)
    }

    /// The first invalid number of the profile, if any: the profile is then foreign or damaged.
    pub fn fault(&self) -> Option<&'static str> {
        let MachineProfile { upload, download, launch, arithmetic, files, links, .. } = self;
        let lines = [upload, download].into_iter().flat_map(|c| [c.pinned, c.staged, c.mapped, c.tiled]);
        let line = |l: CopyTime| time(l.latency) && time(l.overhead) && time(l.gap) && useful(l.bandwidth);
        let link = |l: Link| time(l.latency) && useful(l.bandwidth);
        let families = |e: &Efficiency| useful(e.memory) && useful(e.arithmetic);
        let checks = [
            (self.version == MachineProfile::VERSION, "its version is another"),
            (lines.into_iter().all(line), "a copy between host and device"),
            (useful(self.both_ways) && self.both_ways >= 1.0, "copies both ways"),
            (time(launch.host) && time(launch.device), "launches"),
            (time(self.recording), "recording"),
            (self.memory.sound(), "the device's memory"),
            (useful(arithmetic.f32) && useful(arithmetic.f64) && time(arithmetic.fill), "multiply-adds"),
            (useful(arithmetic.tiles), "the tiles computed at once"),
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

impl fmt::Display for ProfileOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProfileOrigin::Measured => "measured",
            ProfileOrigin::Shipped => "shipped",
            ProfileOrigin::Default => "default",
        })
    }
}
