//! The declarations of all environment variables.

use std::num::{NonZeroU8, NonZeroUsize};
use std::path::PathBuf;

use super::device::{DeviceChoice, parse_devices};
use super::{Accepted, BYTES, Declared, PATH, Variable, Weights, word};

/// All variables, in the order in which they are listed and checked.
pub static VARIABLES: [&dyn Declared; 19] = [
    &DEVICE,
    &THREADS,
    &MODE,
    &ISA,
    &NVRTC,
    &NCCL,
    &CACHE,
    &KERNELS,
    &TUNING,
    &PROFILE,
    &GPU_MEMORY,
    &HOST_MEMORY,
    &RANKS,
    &WEIGHTS,
    &FABRIC,
    &OVERLAP,
    &TRANSFER,
    &STEPS,
    &STENCIL,
];

/// The degree of optimisation. Lower degrees switch parts of the machinery off, so that their benefit can be
/// measured on any program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every operation uploads its inputs, runs, and downloads its result; on several ranks it also scatters
    /// and gathers (thesis, Figure 2.4).
    Naive,
    /// The state machines decide on transfers (thesis, Figure 2.5).
    Lazy,
    /// Same as `Lazy`, over the optimised graph.
    #[default]
    Fused,
}

impl std::str::FromStr for Mode {
    type Err = String;
    fn from_str(text: &str) -> Result<Mode, String> {
        MODE.values.parse(text)
    }
}

/// Upper limit of the CPU device's instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512.
    Avx512,
}

/// Exchange of memory between the GPUs of several ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FabricChoice {
    /// By NCCL if every rank has its own GPU and a trial exchange works, else through the host.
    #[default]
    Auto,
    /// By NCCL; an error if it does not work.
    Nccl,
    /// Through the host.
    Host,
}

/// The ranks of a job, or the devices of a process, that compute a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ranks {
    /// The first ranks, as many as are predicted to take the least time.
    #[default]
    Auto,
    /// All.
    All,
    /// The first ranks up to this number, or all if there are fewer.
    First(NonZeroUsize),
}

/// Overlap of a halo's transfer with the computation of rows that do not need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Where a gain is predicted.
    #[default]
    Auto,
    /// Wherever a strip is tall enough, on any device.
    Always,
}

/// Transfers of images to a device with its own memory and back: the strategies of chapter 5 of the
/// thesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// The strategy predicted to be fastest.
    #[default]
    Auto,
    /// Each image as a whole.
    Explicit,
    /// In bands, so that copies and kernels overlap: the given number, or the number predicted to be best.
    Streams(Option<NonZeroU8>),
    /// Kernels read source images and write results directly in the host's page-locked memory, over
    /// the bus.
    Implicit,
    /// Source images in bands (the given number, or the number predicted to be best); kernels write results
    /// to host memory.
    Hybrid(Option<NonZeroU8>),
}

impl Transfer {
    /// Maximum number of bands.
    pub const MOST: u8 = 64;

    /// The forced number of bands, if any.
    pub const fn bands(self) -> Option<NonZeroU8> {
        match self {
            Transfer::Streams(bands) | Transfer::Hybrid(bands) => bands,
            Transfer::Auto | Transfer::Explicit | Transfer::Implicit => None,
        }
    }

    /// Returns `true` if kernels may access host memory.
    pub const fn may_map(self) -> bool {
        matches!(self, Transfer::Auto | Transfer::Implicit | Transfer::Hybrid(_))
    }
}

/// The number of iterations of a loop per launch, where iterations can be combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StepsPerLaunch {
    /// The number predicted to be fastest.
    #[default]
    Auto,
    /// At most this many; with 1, each iteration is a launch.
    Most(u8),
}

/// Storage of a computed intermediate image that only a filter reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stencil {
    /// The choice predicted to be fastest.
    #[default]
    Auto,
    /// Stored whole.
    Stored,
    /// Computed for each tile of the device and around it (on a CPU, row by row), where the device supports
    /// that.
    Tile,
}

impl Stencil {
    /// All choices.
    pub const ALL: [Stencil; 3] = [Stencil::Auto, Stencil::Stored, Stencil::Tile];

    /// Its name in `HORUS_STENCIL`.
    pub const fn name(self) -> &'static str {
        match self {
            Stencil::Auto => "auto",
            Stencil::Stored => "stored",
            Stencil::Tile => "tile",
        }
    }
}

/// The device.
pub static DEVICE: Variable<DeviceChoice> = Variable {
    name: "HORUS_DEVICE",
    help: "the device",
    values: Accepted::Form {
        expected: "auto, cpu, cuda or cuda:N (N the index of a GPU), or several devices: cuda:all, cuda:0,1, cuda:0+cpu",
        shown: "`auto` (default: the one predicted to finish sooner), `cpu`, `cuda`, `cuda:N`; several devices of one process, each for a \
                strip of every image: `cuda:all`, `cuda:0,1`, `cuda:0+cpu`",
        parse: |text| match text {
            "auto" | "" => Ok(DeviceChoice::Auto),
            "cuda" => Ok(DeviceChoice::Cuda(None)),
            _ => parse_devices(text),
        },
    },
};

/// Number of host threads.
pub static THREADS: Variable<usize> = Variable {
    name: "HORUS_THREADS",
    help: "threads of the CPU device, or (up to 16) of copies to and from a GPU",
    values: Accepted::Form { expected: "a number", shown: "", parse: |text| text.parse().map_err(|_| String::new()) },
};

/// Degree of optimisation.
pub static MODE: Variable<Mode> = Variable {
    name: "HORUS_MODE",
    help: "how much is optimised",
    values: Accepted::Words(&[
        word("naive", Mode::Naive, "all transfers around each operation"),
        word("lazy", Mode::Lazy, "only needed transfers"),
        word("fused", Mode::Fused, "default"),
    ]),
};

/// Upper limit of the CPU device's instruction set.
pub static ISA: Variable<InstructionSet> = Variable {
    name: "HORUS_ISA",
    help: "the widest instruction set that the CPU device uses",
    values: Accepted::Words(&[
        word("avx2", InstructionSet::Avx2, ""),
        word("avx512", InstructionSet::Avx512, "default"),
    ]),
};

/// Path of NVRTC.
pub static NVRTC: Variable<PathBuf> = Variable {
    name: "HORUS_NVRTC",
    help: "`libnvrtc.so`, or its directory, if the system does not find it",
    values: PATH,
};

/// Path of NCCL.
pub static NCCL: Variable<PathBuf> = Variable {
    name: "HORUS_NCCL",
    help: "`libnccl.so.2`, or its directory, if the system does not find it",
    values: PATH,
};

/// The directory of compiled kernels; `off` disables the cache.
pub static CACHE: Variable<PathBuf> = Variable {
    name: "HORUS_CACHE",
    help: "where compiled kernels are kept, up to 256 MiB (default: `horus/cubin` in `XDG_CACHE_HOME` or `~/.cache`; a directory that others \
           may write to is not used), or `off`",
    values: PATH,
};

/// The package of compiled kernels; `off` disables it.
pub static KERNELS: Variable<PathBuf> = Variable {
    name: "HORUS_KERNELS",
    help: "the package of compiled kernels that `horus-kernels` writes (default: `horus-kernels.bin` beside the program or in `../lib/horus` \
           from there), or `off`",
    values: PATH,
};

/// The table of launch shapes of kernels.
pub static TUNING: Variable<PathBuf> = Variable {
    name: "HORUS_TUNING",
    help: "the table of launch shapes that `horus-tune` writes (default: `horus/tuning.json` in `XDG_CONFIG_HOME` or `~/.config`)",
    values: PATH,
};

/// The profile of the machine; `default` selects the assumed one.
pub static PROFILE: Variable<PathBuf> = Variable {
    name: "HORUS_PROFILE",
    help: "the profile of this machine that `horus-machine --out` writes (default: the one measured on this hardware by `horus-machine`, kept in \
           `horus/machine` in `XDG_CACHE_HOME` or `~/.cache`, or in `machine` in `HORUS_CACHE`, else one that comes with Horus), or `default`, \
           which assumes a machine of which nothing is known",
    values: PATH,
};

/// Maximum memory of a GPU for images.
pub static GPU_MEMORY: Variable<usize> =
    Variable { name: "HORUS_GPU_MEMORY", help: "memory limit for images on a GPU", values: BYTES };

/// Maximum host memory for images.
pub static HOST_MEMORY: Variable<usize> = Variable {
    name: "HORUS_HOST_MEMORY",
    help: "memory limit for images on the host (all of the CPU device's, copies of a GPU's) and for what decoders and encoders take; a program \
           that needs more is computed region by region, or is an error before anything is read (default: 80 % of what is free)",
    values: BYTES,
};

/// Division of rows among ranks.
pub static WEIGHTS: Variable<Weights> = Variable {
    name: "HORUS_WEIGHTS",
    help: "how rows are divided among ranks",
    values: Accepted::Form {
        expected: "1,2,1 (ranks), node:2,1 (nodes), node:2(1,3),1 (nodes and their ranks) or measure",
        shown: "`1,2,1` (ranks), `node:2,1` (nodes), `node:2(1,3),1` (nodes, and the ranks within one), `measure` (each rank's speed in a \
                fixed filter)",
        parse: str::parse,
    },
};

/// Exchange of memory between the GPUs of several ranks.
pub static FABRIC: Variable<FabricChoice> = Variable {
    name: "HORUS_FABRIC",
    help: "how GPUs of several ranks exchange memory",
    values: Accepted::Words(&[
        word("auto", FabricChoice::Auto, "default: `nccl` where it works, else `host`"),
        word("nccl", FabricChoice::Nccl, "an error if they are to and it does not work"),
        word("host", FabricChoice::Host, "through the host"),
    ]),
};

/// The ranks of a job, or the devices of a process, that compute a program.
pub static RANKS: Variable<Ranks> = Variable {
    name: "HORUS_RANKS",
    help: "how many ranks, or devices of a process, compute a program",
    values: Accepted::Form {
        expected: "auto, all, or a number from 1",
        shown: "`auto` (default: as many of the first ones as are predicted to take the least time), `all`, `N` (the first `N`)",
        parse: |text| match text {
            "auto" => Ok(Ranks::Auto),
            "all" => Ok(Ranks::All),
            _ => text.parse().map(Ranks::First).map_err(|_| String::new()),
        },
    },
};

/// Overlap of a halo's transfer with the computation of rows that do not need it.
pub static OVERLAP: Variable<Overlap> = Variable {
    name: "HORUS_OVERLAP",
    help: "when a halo exchange overlaps with the rows that do not need it",
    values: Accepted::Words(&[
        word("auto", Overlap::Auto, "default: between devices, for long transfers"),
        word("always", Overlap::Always, "for any transfer, on any device"),
    ]),
};

/// Transfers of images to the device and back.
pub static TRANSFER: Variable<Transfer> = Variable {
    name: "HORUS_TRANSFER",
    help: "how images get to a GPU and back",
    values: Accepted::Form {
        expected: "auto, explicit, streams, implicit, hybrid, streams:N or hybrid:N (N bands, 1 to 64)",
        shown: "`auto` (default: the one predicted to finish sooner), `explicit` (each image as a whole), `streams` (in bands, beside kernels), \
                `streams:N` (in N bands, at most 64), `implicit` (kernels read and write page-locked memory of the host), `hybrid` and \
                `hybrid:N` (in bands to the device; kernels write the result)",
        parse: |text| match text {
            "auto" => Ok(Transfer::Auto),
            "explicit" => Ok(Transfer::Explicit),
            "streams" => Ok(Transfer::Streams(None)),
            "implicit" => Ok(Transfer::Implicit),
            "hybrid" => Ok(Transfer::Hybrid(None)),
            _ => {
                let (strategy, bands) = text.split_once(':').ok_or_else(String::new)?;
                let bands: NonZeroU8 = bands.parse().map_err(|_| String::new())?;
                match strategy {
                    _ if bands.get() > Transfer::MOST => Err(String::new()),
                    "streams" => Ok(Transfer::Streams(Some(bands))),
                    "hybrid" => Ok(Transfer::Hybrid(Some(bands))),
                    _ => Err(String::new()),
                }
            }
        },
    },
};

/// Storage of intermediate images that filters read.
pub static STENCIL: Variable<Stencil> = Variable {
    name: "HORUS_STENCIL",
    help: "what becomes of a computed image that filters of one kernel alone read",
    values: Accepted::Form {
        expected: "auto, stored or tile",
        shown: "`auto` (default: as predicted to be fastest), `stored`, `tile` (computed for each tile and around it, where the device can)",
        parse: |text| Stencil::ALL.into_iter().find(|s| s.name() == text).ok_or_else(String::new),
    },
};

/// The number of iterations of a loop per launch.
pub static STEPS: Variable<StepsPerLaunch> = Variable {
    name: "HORUS_STEPS",
    help: "how many steps of a loop one launch makes, where a step is one kernel over its own result",
    values: Accepted::Form {
        expected: "auto, or a number from 1 to 64",
        shown: "`auto` (default: as predicted to be fastest), `N` (at most so many, 1 to 64)",
        parse: |text| match text {
            "auto" => Ok(StepsPerLaunch::Auto),
            _ => match text.parse() {
                Ok(n @ 1..=64) => Ok(StepsPerLaunch::Most(n)),
                _ => Err(String::new()),
            },
        },
    },
};
