//! Shipped profiles: defaults for unknown hardware, and measured devices.

use std::collections::BTreeMap;

use super::link::Link;
use super::profile::{
    ArithmeticRates, CopyTime, CopyTimes, Efficiency, FileRates, Hardware, Launching, Links, MachineProfile,
    ProfileOrigin, Rates,
};
use crate::ir::kernel::Family;

const GB: f64 = 1e9;
const TB: f64 = 1e12;
const MIB: f64 = 1_048_576.0;

const fn family(memory: f64, arithmetic: f64) -> Efficiency {
    Efficiency { memory, arithmetic }
}

/// Fitted to kernels of one H200 at 4096x4096 (`docs/performance/gpu.md`; `tests/rooms/machine.rs` repeats
/// the comparison). Bytes and transforms are fitted to kernels of one H100 (the same page). Rank filters,
/// histograms and transpositions are estimates.
const GPU: [(Family, Efficiency); 12] = [
    (Family::Pixel, family(1.25, 0.5)),
    (Family::CorrelateSmall, family(1.0, 0.7)),
    (Family::CorrelateLarge, family(1.0, 0.8)),
    (Family::CorrelateBytes, family(1.0, 2.5)),
    (Family::Transforms, family(1.0, 0.145)),
    (Family::Sparse, family(1.0, 0.18)),
    (Family::Separable, family(0.68, 0.65)),
    (Family::Warp, family(0.64, 0.5)),
    (Family::Rank, family(0.9, 0.4)),
    (Family::Reduction, family(1.2, 0.3)),
    (Family::Histogram, family(0.8, 0.1)),
    (Family::Transpose, family(0.8, 1.0)),
];

/// Fitted to kernels on 2 cores of a Xeon with AVX-512 (`docs/performance/cpu.md`). Bytes and transforms
/// follow from their ratio to large filters on another CPU (the same page, and `docs/performance/model.md`).
/// Rank filters, histograms and transpositions are estimates.
const CPU: [(Family, Efficiency); 12] = [
    (Family::Pixel, family(1.35, 0.25)),
    (Family::CorrelateSmall, family(1.2, 0.95)),
    (Family::CorrelateLarge, family(1.2, 1.0)),
    (Family::CorrelateBytes, family(1.2, 3.0)),
    (Family::Transforms, family(1.2, 0.77)),
    (Family::Sparse, family(1.0, 0.33)),
    (Family::Separable, family(0.85, 0.85)),
    (Family::Warp, family(0.3, 0.2)),
    (Family::Rank, family(0.9, 1.0)),
    (Family::Reduction, family(3.0, 0.45)),
    (Family::Histogram, family(1.0, 0.01)),
    (Family::Transpose, family(0.5, 1.0)),
];

const fn line(latency: f64, bandwidth: f64) -> CopyTime {
    CopyTime { latency, overhead: 0.0, gap: 0.0, bandwidth }
}

impl MachineProfile {
    /// The assumed profile of unknown hardware: a device with its own memory, or a device that computes on
    /// the host's memory (`unified`). Links and bus are as in a good machine of 2020 and later.
    pub fn of_default(unified: bool) -> MachineProfile {
        if unified { MachineProfile::of_cores(4) } else { gpu() }
    }

    /// The assumed profile of a CPU with `threads` threads.
    pub fn of_cores(threads: usize) -> MachineProfile {
        let threads = threads.max(1);
        let most = threads.min(8) as f64;
        // No copies are made between a host and itself.
        let here = line(0.0, MachineProfile::NO_COPY);
        let here = CopyTimes { pinned: here, staged: here, mapped: here, tiled: here };
        MachineProfile {
            upload: here,
            download: here,
            both_ways: 1.0,
            launch: Launching { host: 20e-6, device: 5e-6 },
            memory: Rates(vec![(MIB, 11.0 * GB * most)]),
            arithmetic: ArithmeticRates {
                f32: 60.0 * GB * threads as f64,
                f64: 30.0 * GB * threads as f64,
                ..gpu().arithmetic
            },
            families: BTreeMap::from(CPU),
            hardware: Hardware { device: String::new(), driver: String::new(), host: String::new(), threads },
            ..gpu()
        }
    }

    /// The shipped profile of a device of this name.
    pub fn shipped(device: &str) -> Option<MachineProfile> {
        match device {
            name if name.contains("H200") => Some(h200()),
            name if name.contains("H100") => Some(h100()),
            _ => None,
        }
    }
}

/// An unknown GPU.
fn gpu() -> MachineProfile {
    let bus = line(0.0, 20.0 * GB);
    let bus = CopyTimes { pinned: bus, staged: bus, mapped: bus, tiled: bus };
    MachineProfile {
        version: MachineProfile::VERSION,
        hardware: Hardware { device: String::new(), driver: String::new(), host: String::new(), threads: 4 },
        origin: ProfileOrigin::Default,
        upload: bus,
        download: bus,
        both_ways: 1.0,
        // Two further launches take 50 us: about 30 us on one host, and a margin.
        launch: Launching { host: 20e-6, device: 5e-6 },
        recording: 2e-6,
        memory: Rates(vec![(128.0 * MIB, 1.5 * TB)]),
        arithmetic: ArithmeticRates { f32: 10.0 * TB, f64: 0.3 * TB, fill: 0.0, tiles: 132.0 },
        tile_rows: 40.0,
        families: BTreeMap::from(GPU),
        host_copy: Rates(vec![(1.0, 20.0 * GB)]),
        files: FileRates { read: 2.0 * GB, write: 1.0 * GB },
        links: Links {
            // 1.4 MB to one neighbour take 17 microseconds between two H200s by NVLink
            // (horus-fabric-bench).
            peers: Link { latency: 10e-6, bandwidth: 150.0 * GB },
            host: Link::default(),
            network: Link::default(),
        },
    }
}

/// An H200 on PCIe 5, driver 580.
fn h200() -> MachineProfile {
    let mapped = CopyTime { latency: 2e-6, overhead: 0.0, gap: 0.0, bandwidth: 51.0 * GB };
    let upload = CopyTimes {
        pinned: CopyTime { latency: 5e-6, overhead: 7e-6, gap: 6e-6, bandwidth: 54.5 * GB },
        staged: CopyTime { latency: 20e-6, overhead: 4e-6, gap: 3e-6, bandwidth: 40.0 * GB },
        mapped,
        tiled: CopyTime { bandwidth: 17.0 * GB, ..mapped },
    };
    let download = CopyTimes {
        pinned: CopyTime { latency: 0.0, overhead: 12e-6, gap: 12e-6, ..upload.pinned },
        tiled: mapped,
        ..upload
    };
    MachineProfile {
        hardware: Hardware { device: "NVIDIA H200".into(), driver: String::new(), host: String::new(), threads: 16 },
        origin: ProfileOrigin::Shipped,
        upload,
        download,
        both_ways: 1.09,
        // Device: everyday kernels of 64 to 512 squared, whose first blocks read before they compute
        // (`docs/performance/model.md`). Empty kernels take 2.1 us.
        launch: Launching { host: 5e-6, device: 4e-6 },
        // Without the launch: 64 MiB are copied in 45 us, of which an empty kernel takes 5.5 us.
        memory: Rates(vec![(8.0 * MIB, 3.2 * TB), (128.0 * MIB, 3.4 * TB), (4096.0 * MIB, 4.2 * TB)]),
        arithmetic: ArithmeticRates { f32: 30.5 * TB, f64: 15.0 * TB, fill: 0.0, tiles: 132.0 },
        host_copy: Rates(vec![(1.0, 6.0 * GB), (16.0, 45.0 * GB)]),
        links: Links { peers: Link { latency: 12e-6, bandwidth: 290.0 * GB }, ..gpu().links },
        ..gpu()
    }
}

/// An H100 with memory of 3.35 TB/s: like the H200 except for its memory.
fn h100() -> MachineProfile {
    let wide = h200();
    MachineProfile {
        hardware: Hardware { device: "NVIDIA H100".into(), ..wide.hardware },
        memory: Rates(vec![(8.0 * MIB, 2.6 * TB), (128.0 * MIB, 2.5 * TB), (4096.0 * MIB, 2.9 * TB)]),
        ..wide
    }
}
