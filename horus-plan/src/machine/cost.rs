//! What things cost on a machine: predicted seconds.

use super::link::Link;
use super::profile::{Copies, HostSide, Line, Profile};
use crate::ir::kernel::KernelWork;
use horus_base::dtype::DType;

/// How much of an image is read from memory by each evaluation of a chain after the first: an estimate, between what it takes for
/// three row passes over one image, which pay, and for two over two images, which do not.
pub(crate) const CACHED: f64 = 0.45;

/// Rows and columns of the tiles in which a GPU makes several steps of a loop.
const TILE: [f64; 2] = [64.0, 128.0];
/// Tiles of several steps that a GPU computes at a time: one on each multiprocessor of an H100 or an H200, as a tile has all of its
/// registers. Arithmetic waits for the last of them: at 1024 x 1024 a step of Perona-Malik takes .0233 ms in tiles and .0178 one by one
/// (`benches/results/2026-11-22-blocking.md`).
const AT_ONCE: f64 = 132.0;
/// How many times as fast as steps one by one a GPU reads neighbours for steps in tiles, from registers and shared memory: an estimate. With
/// it the choice at 4096 is within a tenth of 6, 8 and 10 steps, all that were measured beside it
/// (`benches/results/2026-11-22-blocking.md`).
const IN_TILES: f64 = 1.8;

/// What bounds a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The launch itself.
    Launch,
    /// The device's memory.
    Memory,
    /// Multiply-adds.
    Arithmetic,
    /// What it reads and writes in the host's memory.
    Bus,
}

/// Bytes that a launch itself moves between the host's memory and the device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OverBus {
    /// Read, each byte as often as it comes over the bus.
    pub read: f64,
    /// Written.
    pub written: f64,
}

impl OverBus {
    /// Nothing.
    pub const NONE: OverBus = OverBus { read: 0.0, written: 0.0 };
}

/// What a launch takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Predicted seconds of the device, from the end of the launch before to the end of this one.
    pub seconds: f64,
    /// What most of them go into.
    pub bound: Bound,
}

impl Line {
    /// Seconds until `bytes` have arrived. Nothing takes no time.
    pub fn time(self, bytes: usize) -> f64 {
        self.in_turn(bytes, 1)
    }

    /// Seconds until `bytes` have arrived in `copies` copies that follow each other (thesis, section 5.4: `L + o + kG + g(n - 1)`).
    pub fn in_turn(self, bytes: usize, copies: usize) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        let gaps = self.gap * copies.saturating_sub(1) as f64;
        self.latency + self.overhead + bytes as f64 / self.bandwidth + gaps
    }
}

impl Copies {
    /// Of this memory of the host.
    pub fn of(&self, side: HostSide) -> Line {
        match side {
            HostSide::Pinned => self.pinned,
            HostSide::Staged => self.staged,
            HostSide::Mapped => self.mapped,
        }
    }
}

impl Profile {
    /// What a launch takes: its fixed time, then memory and arithmetic, which overlap the more the less they are alike: the root of
    /// the sum of their squares.
    ///
    /// Filters work in tiles that hold the rows around them too ([`Profile::tile_rows`]). Row passes, and pixel operations that filters
    /// read, are computed for those as well. A launch of few pixels leaves some of the device idle.
    pub fn launch(&self, work: &KernelWork) -> Cost {
        if work.bytes() == 0 {
            return Cost { seconds: 0.0, bound: Bound::Launch };
        }
        let of = self.efficiency(work.family);
        let around = self.around(work.reach);
        // Every further evaluation of a chain finds most of what it reads in a cache.
        let again = work.evaluations.saturating_sub(1) as f64 * CACHED;
        let chained = if work.evaluations > 0 { (1.0 + again) * (1.0 + around) } else { 1.0 };
        let tiles = self.in_tiles(work);
        let moved = work.read as f64 * chained * (1.0 + (tiles - 1.0) * CACHED) + work.written as f64;
        let memory = moved / (self.memory.at(work.bytes() as f64) * of.memory);
        let rate = if work.dtype == DType::F64 { self.arithmetic.f64 } else { self.arithmetic.f32 };
        let idle = (self.arithmetic.fill / work.pixels.max(1) as f64).max(1.0);
        let idle = if tiles > 1.0 {
            let all = work.pixels.max(1) as f64 * tiles / (TILE[0] * TILE[1]);
            idle.max((all / AT_ONCE).ceil() * AT_ONCE / all)
        } else {
            idle
        };
        let spared = if tiles > 1.0 { work.taps * (1.0 - 1.0 / IN_TILES) } else { 0.0 };
        let computed = (work.multiply_adds - spared + work.staged * around) * tiles;
        // What chains read straight from caches does not depend on how well a kind of filters uses shared memory.
        let straight = if self.is_unified() { 0.0 } else { work.straight };
        let arithmetic = (computed / of.arithmetic + straight) * idle / rate;
        let bound = match self.launch.device {
            fixed if fixed > memory.max(arithmetic) => Bound::Launch,
            _ if memory >= arithmetic => Bound::Memory,
            _ => Bound::Arithmetic,
        };
        Cost { seconds: self.launch.device + memory.hypot(arithmetic), bound }
    }

    /// [`Profile::launch`], where some of what is read and written lies in the host's memory (thesis, section 5.2.3): the bus
    /// works in both directions beside memory and arithmetic. Rows around tiles come over the bus once for each tile.
    pub fn launch_over(&self, work: &KernelWork, bus: OverBus) -> Cost {
        let here = self.launch(work);
        if bus == OverBus::NONE || work.bytes() == 0 {
            return here;
        }
        let of = |copies: &Copies| if work.family.is_tiled() { copies.tiled } else { copies.mapped };
        let (up, down) = (of(&self.upload), of(&self.download));
        let read = bus.read * (1.0 + self.around(work.reach));
        let (read, written) = (read / up.bandwidth, bus.written / down.bandwidth);
        let latency = if read > 0.0 { up.latency } else { down.latency };
        let slowdown = if read.min(written) > 0.5 * read.max(written) { self.both_ways } else { 1.0 };
        let (here_alone, over) = (here.seconds - self.launch.device, read.max(written) * slowdown + latency);
        let bound = if over > here_alone { Bound::Bus } else { here.bound };
        Cost { seconds: self.launch.device + over.hypot(here_alone), bound }
    }

    /// How many times as many pixels several steps compute as a launch stores: on a GPU, all of each tile in all steps. On a processor
    /// blocks are as tall as its threads leave them.
    fn in_tiles(&self, work: &KernelWork) -> f64 {
        /// Of a tile at least so much is stored.
        const LEAST: f64 = 0.1;
        if work.steps == 1 || self.is_unified() {
            return 1.0;
        }
        let stored = TILE.map(|n| (1.0 - work.reach as f64 / n).max(LEAST));
        1.0 / (stored[0] * stored[1])
    }

    /// How many rows around each row of a tile there are for a filter that reads `reach` of them: few for small filters, as tiles
    /// are as large as fits, and the more the fewer of its own fit.
    fn around(&self, reach: usize) -> f64 {
        /// Tiles never are thinner than that.
        const MOST: f64 = 4.0;
        (reach as f64 / self.tile_rows).powi(3).min(MOST)
    }

    /// Seconds in which `bytes` get from the host to the device.
    pub fn upload(&self, bytes: usize, side: HostSide) -> f64 {
        self.upload.of(side).time(bytes)
    }

    /// Seconds in which `bytes` get from the device to the host.
    pub fn download(&self, bytes: usize, side: HostSide) -> f64 {
        self.download.of(side).time(bytes)
    }

    /// Seconds in which all of the host's threads copy `bytes`.
    pub fn host_copy(&self, bytes: usize) -> f64 {
        bytes as f64 / self.host_copy.at(self.hardware.threads.max(1) as f64)
    }

    /// Seconds in which a device copies `bytes` within its memory, beside the launch.
    pub fn device_copy(&self, bytes: usize) -> f64 {
        2.0 * bytes as f64 / self.memory.at(2.0 * bytes as f64)
    }

    /// How long messages between ranks take: from device to device, or through hosts, of which the network is assumed.
    pub fn link(&self, direct: bool) -> Link {
        if direct { self.links.peers } else { self.links.network }
    }

    /// How many times as long copies in both directions take when both run at once.
    pub fn slowdown_of_both_ways(&self) -> f64 {
        self.both_ways
    }

    /// Seconds that a launch takes longer if it is made in two parts more, beside the pixels computed: launches of the host and the device.
    pub fn division(&self) -> f64 {
        2.0 * (self.launch.host + self.launch.device)
    }
}
