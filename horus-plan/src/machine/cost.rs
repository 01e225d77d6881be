//! Cost model: predicted seconds on a machine.

use super::profile::{CopyTime, CopyTimes, HostSide, MachineProfile};
use crate::ir::kernel::{CACHED, Family, KernelWork};
use horus_base::dtype::DType;

/// Seconds until all threads of a CPU work, and the bytes of computed pixels from which on they do: measured
/// on two cores (`docs/performance/model.md`).
const FORK: (f64, usize) = (12e-6, 512 << 10);

/// Bytes per pixel below which a GPU's filters and maps are no faster: a pixel read and a pixel written in
/// `f32` (`docs/performance/model.md`).
const LEAST_MOVED: f64 = 8.0;

/// Rows and columns of the tiles in which a GPU computes several iterations of a loop.
const TILE: [f64; 2] = [64.0, 64.0];
/// Speed of neighbour reads of iterations in tiles, almost all from registers, relative to single iterations:
/// fitted to 4 and 8 iterations of Jacobi's relaxation (`docs/performance/model.md`).
const IN_TILES: f64 = 8.0;

/// The bottleneck of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchBottleneck {
    /// The launch overhead.
    Launch,
    /// The device's memory.
    Memory,
    /// Multiply-adds.
    Arithmetic,
    /// Traffic to and from the host's memory.
    Bus,
}

/// Bytes that a launch itself transfers between the host's memory and the device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OverBus {
    /// Bytes read, counted once per transfer over the bus.
    pub read: f64,
    /// Bytes read in small pieces.
    pub pieces: f64,
    /// Bytes written.
    pub written: f64,
}

impl OverBus {
    /// No traffic.
    pub const NONE: OverBus = OverBus { read: 0.0, pieces: 0.0, written: 0.0 };
}

/// The cost of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Predicted device time in seconds, from the end of the previous launch to the end of this one.
    pub seconds: f64,
    /// The dominant term.
    pub bound: LaunchBottleneck,
}

impl CopyTime {
    /// Seconds until `bytes` have arrived; 0 for none.
    pub fn time(self, bytes: usize) -> f64 {
        self.in_turn(bytes, 1)
    }

    /// Seconds until `bytes` have arrived in `copies` consecutive copies (thesis, section 5.4: `L + o + kG +
    /// g(n - 1)`).
    pub fn in_turn(self, bytes: usize, copies: usize) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        let gaps = self.gap * copies.saturating_sub(1) as f64;
        self.latency + self.overhead + bytes as f64 / self.bandwidth + gaps
    }
}

impl CopyTimes {
    /// The copy times for this kind of host memory.
    pub fn of(&self, side: HostSide) -> CopyTime {
        match side {
            HostSide::Pinned => self.pinned,
            HostSide::Staged => self.staged,
        }
    }
}

impl MachineProfile {
    /// The cost of a launch: its fixed time plus the root of the sum of squares of memory and arithmetic,
    /// which overlap the more the less balanced they are.
    ///
    /// Filters work in tiles that include the surrounding rows ([`MachineProfile::tile_rows`]). Row filters,
    /// and pixel operations that filters read, are computed for the surrounding rows as well. A launch of few
    /// pixels leaves part of the device idle.
    pub fn launch(&self, work: &KernelWork) -> Cost {
        if work.bytes() == 0 {
            return Cost { seconds: 0.0, bound: LaunchBottleneck::Launch };
        }
        let of = self.efficiency(work.family);
        let around = self.around(work.reach);
        // Every further evaluation of a chain finds most of its inputs in a cache.
        let again = work.evaluations.saturating_sub(1) as f64 * CACHED;
        let chained = if work.evaluations > 0 { (1.0 + again) * (1.0 + around) } else { 1.0 };
        let tiles = self.in_tiles(work);
        let moved = work.read as f64 * chained * (1.0 + (tiles - 1.0) * CACHED) + work.written as f64;
        let per_pixel = !self.is_unified() && (work.family.is_tiled() || work.family == Family::Warp);
        let moved = if per_pixel { moved.max(LEAST_MOVED * work.pixels as f64) } else { moved };
        let memory = moved / (self.memory.at(work.bytes() as f64) * of.memory);
        let rate = self.rate(work.dtype);
        let idle = (self.arithmetic.fill / work.pixels.max(1) as f64).max(1.0);
        let idle = if tiles > 1.0 {
            // A tile takes all registers of a multiprocessor, and arithmetic waits for the last tile: at 1024
            // x 1024 an iteration of Perona-Malik takes .0233 ms in tiles and .0178 ms alone
            // (`docs/performance/model.md`).
            let all = work.pixels.max(1) as f64 * tiles / (TILE[0] * TILE[1]);
            let at_once = self.arithmetic.tiles;
            idle.max((all / at_once).ceil() * at_once / all)
        } else {
            idle
        };
        let spared = if tiles > 1.0 { work.taps * (1.0 - 1.0 / IN_TILES) } else { 0.0 };
        let slid = if self.is_unified() { work.slid } else { 0.0 };
        let computed = (work.multiply_adds - slid - spared + work.staged * around) * tiles;
        // Reads of chains directly from caches do not depend on how well a family of filters uses shared
        // memory.
        let straight = if self.is_unified() { 0.0 } else { work.straight };
        let arithmetic = (computed / of.arithmetic + straight) * idle / rate;
        let forks = self.is_unified() && self.hardware.threads > 1 && work.pixels * work.dtype.size() >= FORK.1;
        let fixed = self.launch.device + if forks { FORK.0 } else { 0.0 };
        let bound = match fixed {
            fixed if fixed > memory.max(arithmetic) => LaunchBottleneck::Launch,
            _ if memory >= arithmetic => LaunchBottleneck::Memory,
            _ => LaunchBottleneck::Arithmetic,
        };
        Cost { seconds: fixed + memory.hypot(arithmetic), bound }
    }

    /// Multiply-adds of a type per second. A CPU computes more values of a narrow type at once.
    pub fn rate(&self, dtype: DType) -> f64 {
        match dtype {
            DType::F64 => self.arithmetic.f64,
            narrow if self.is_unified() => self.arithmetic.f32 * (DType::F32.size() as f64 / narrow.size() as f64),
            _ => self.arithmetic.f32,
        }
    }

    /// The cost of a [`MachineProfile::launch`] with part of its traffic in the host's memory (thesis,
    /// section 5.5.1). The bus works in both directions, concurrently with memory and with arithmetic that
    /// does not take longer than memory. Tiles of filters that reach further than a row cross the bus with
    /// all their surroundings.
    pub fn launch_over(&self, work: &KernelWork, bus: OverBus) -> Cost {
        /// Rows above and below a pixel that tiles find in a cache.
        const BESIDE: usize = 2;
        /// Slowdown of a kernel's reads and stores of the host's memory when both take equally long: 25.5 ms
        /// for 1 GiB each way on an H200, where the reads alone take 20.9 ms and the stores 20.4 ms
        /// (`docs/performance/model.md`).
        const BOTH_WAYS: f64 = 1.22;
        let here = self.launch(work);
        if bus == OverBus::NONE || work.bytes() == 0 {
            return here;
        }
        let around = work.family.is_tiled() && work.reach > BESIDE;
        let of = |copies: &CopyTimes| if around { copies.tiled } else { copies.mapped };
        let (up, down) = (of(&self.upload), of(&self.download));
        let read = bus.read / up.bandwidth + bus.pieces / self.upload.tiled.bandwidth;
        let written = bus.written / down.bandwidth;
        let latency = if read > 0.0 { up.latency } else { down.latency };
        let slowdown = if read.min(written) > 0.5 * read.max(written) { BOTH_WAYS } else { 1.0 };
        let (here_alone, over) = (here.seconds - self.launch.device, read.max(written) * slowdown + latency);
        let bound = if over > here_alone { LaunchBottleneck::Bus } else { here.bound };
        // A kernel with much arithmetic has few concurrent reads and stores: with 43 x 43 taps it takes the
        // sum of both times.
        let both = if here.bound == LaunchBottleneck::Arithmetic { over + here_alone } else { over.hypot(here_alone) };
        Cost { seconds: self.launch.device + both, bound }
    }

    /// Ratio of pixels computed by several iterations to pixels stored. On a GPU, all pixels of each tile are
    /// computed in all iterations. On a CPU, the number of threads determines the height of blocks.
    fn in_tiles(&self, work: &KernelWork) -> f64 {
        /// Minimum fraction of a tile that is stored.
        const LEAST: f64 = 0.1;
        if work.iterations == 1 || self.is_unified() {
            return 1.0;
        }
        let stored = TILE.map(|n| (1.0 - work.reach as f64 / n).max(LEAST));
        1.0 / (stored[0] * stored[1])
    }

    /// Number of surrounding rows per row of a tile for a filter of reach `reach`. It is small for small
    /// filters, because tiles are as large as possible, and grows as fewer of the tile's own rows fit.
    fn around(&self, reach: usize) -> f64 {
        /// Maximum, because tiles have a minimum height.
        const MOST: f64 = 4.0;
        (reach as f64 / self.tile_rows).powi(3).min(MOST)
    }

    /// Seconds to upload `bytes` from the host to the device.
    pub fn upload(&self, bytes: usize, side: HostSide) -> f64 {
        self.upload.of(side).time(bytes)
    }

    /// Seconds to download `bytes` from the device to the host.
    pub fn download(&self, bytes: usize, side: HostSide) -> f64 {
        self.download.of(side).time(bytes)
    }

    /// Seconds for all of the host's threads to copy `bytes`.
    pub fn host_copy(&self, bytes: usize) -> f64 {
        bytes as f64 / self.host_copy.at(self.hardware.threads.max(1) as f64)
    }

    /// Additional seconds of a launch divided into two more parts, without their pixels: launch overhead of
    /// host and device.
    pub fn division(&self) -> f64 {
        2.0 * (self.launch.host + self.launch.device)
    }
}
