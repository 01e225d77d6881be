//! The declarations.

use std::num::NonZeroU8;
use std::path::PathBuf;

use super::device::{DeviceChoice, lanes};
use super::{Accepted, BYTES, Declared, PATH, Variable, Weights, word};

/// All variables, in the order in which they are shown and checked.
pub static VARIABLES: [&dyn Declared; 18] = [
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
    &WEIGHTS,
    &FABRIC,
    &OVERLAP,
    &TRANSFER,
    &STEPS,
    &STENCIL,
];

/// How much of the machinery is used, so that the worth of each idea can be measured on any program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every operation uploads its inputs, runs and downloads its result; on several ranks it scatters and gathers too
    /// (thesis, Figure 2.4).
    Naive,
    /// The state machines decide (thesis, Figure 2.5).
    Lazy,
    /// The state machines decide, over the optimised graph.
    #[default]
    Fused,
}

impl std::str::FromStr for Mode {
    type Err = String;
    fn from_str(text: &str) -> Result<Mode, String> {
        MODE.values.parse(text)
    }
}

/// The most that the CPU device uses of its instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// Whatever the compiler's target guarantees.
    Portable,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512.
    Avx512,
}

/// How the GPUs of several ranks exchange memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fabric {
    /// By NCCL where every rank has a GPU of its own and a trial exchange works, else through the host.
    #[default]
    Auto,
    /// By NCCL; an error where it does not work.
    Nccl,
    /// Through the host.
    Host,
}

/// When a rank computes the rows that need no halo while the halo travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Where it is predicted to pay.
    #[default]
    Auto,
    /// Wherever a strip is tall enough, on any device.
    Always,
}

/// How images get to a device with memory of its own and back: the strategies of chapter 5 of the thesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// Whatever is predicted to be fastest.
    #[default]
    Auto,
    /// Each image as a whole.
    Explicit,
    /// In bands, so that copies and kernels run at the same time: so many, or as many as are predicted to be best.
    Streams(Option<NonZeroU8>),
    /// Kernels read given images and write the result in the host's page-locked memory by themselves, over the bus.
    Implicit,
    /// Given images in bands, as many as are told or predicted to be best; kernels write the result in the host's memory.
    Hybrid(Option<NonZeroU8>),
}

impl Transfer {
    /// Most bands.
    pub const MOST: u8 = 64;

    /// The bands that are forced, if some are.
    pub const fn bands(self) -> Option<NonZeroU8> {
        match self {
            Transfer::Streams(bands) | Transfer::Hybrid(bands) => bands,
            Transfer::Auto | Transfer::Explicit | Transfer::Implicit => None,
        }
    }

    /// Whether kernels may read and write the host's memory.
    pub const fn may_map(self) -> bool {
        matches!(self, Transfer::Auto | Transfer::Implicit | Transfer::Hybrid(_))
    }
}

/// How many steps of a loop a launch makes, where they can be put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Steps {
    /// As many as is predicted to be fastest.
    #[default]
    Auto,
    /// At most so many; with 1, each step is a launch.
    Most(u8),
}

/// What becomes of what a filter reads, if that is computed and nobody else reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stencil {
    /// What is predicted to be fastest.
    #[default]
    Auto,
    /// It is stored whole.
    Stored,
    /// Where that can be, it is computed anew for each tap that reads it.
    Pixel,
    /// Where that can be, it is computed for each tile of the device, and around it.
    Tile,
}

impl Stencil {
    /// All of them.
    pub const ALL: [Stencil; 4] = [Stencil::Auto, Stencil::Stored, Stencil::Pixel, Stencil::Tile];

    /// Its name in `HORUS_STENCIL`.
    pub const fn name(self) -> &'static str {
        match self {
            Stencil::Auto => "auto",
            Stencil::Stored => "stored",
            Stencil::Pixel => "pixel",
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
            _ => lanes(text),
        },
    },
};

/// Threads of the host.
pub static THREADS: Variable<usize> = Variable {
    name: "HORUS_THREADS",
    help: "threads of the CPU device, or (up to 16) of copies to and from a GPU",
    values: Accepted::Form { expected: "a number", shown: "", parse: |text| text.parse().map_err(|_| String::new()) },
};

/// How much is optimised.
pub static MODE: Variable<Mode> = Variable {
    name: "HORUS_MODE",
    help: "how much is optimised",
    values: Accepted::Words(&[
        word("naive", Mode::Naive, "all transfers around each operation"),
        word("lazy", Mode::Lazy, "only needed transfers"),
        word("fused", Mode::Fused, "default"),
    ]),
};

/// The most that the CPU device uses.
pub static ISA: Variable<InstructionSet> = Variable {
    name: "HORUS_ISA",
    help: "the widest instruction set that the CPU device uses",
    values: Accepted::Words(&[
        word("portable", InstructionSet::Portable, ""),
        word("avx2", InstructionSet::Avx2, ""),
        word("avx512", InstructionSet::Avx512, "default"),
    ]),
};

/// Where NVRTC is.
pub static NVRTC: Variable<PathBuf> = Variable {
    name: "HORUS_NVRTC",
    help: "`libnvrtc.so`, or its directory, if the system does not find it",
    values: PATH,
};

/// Where NCCL is.
pub static NCCL: Variable<PathBuf> = Variable {
    name: "HORUS_NCCL",
    help: "`libnccl.so.2`, or its directory, if the system does not find it",
    values: PATH,
};

/// Where compiled kernels are kept; the path `off` is none.
pub static CACHE: Variable<PathBuf> = Variable {
    name: "HORUS_CACHE",
    help: "where compiled kernels are kept, up to 256 MiB (default: `horus/cubin` in `XDG_CACHE_HOME` or `~/.cache`; a directory that others \
           may write to is not used), or `off`",
    values: PATH,
};

/// The package of compiled kernels; the path `off` is none.
pub static KERNELS: Variable<PathBuf> = Variable {
    name: "HORUS_KERNELS",
    help: "the package of compiled kernels that `horus-kernels` writes (default: `horus-kernels.bin` beside the program or in `../lib/horus` \
           from there), or `off`",
    values: PATH,
};

/// The table of launch shapes.
pub static TUNING: Variable<PathBuf> = Variable {
    name: "HORUS_TUNING",
    help: "the table of launch shapes that `horus-tune` writes (default: `horus/tuning.json` in `XDG_CONFIG_HOME` or `~/.config`)",
    values: PATH,
};

/// The profile of the machine; the path `default` is the assumed one.
pub static PROFILE: Variable<PathBuf> = Variable {
    name: "HORUS_PROFILE",
    help: "the profile of this machine that `horus-machine --out` writes (default: the one measured on this hardware by `horus-machine`, kept in \
           `horus/machine` in `XDG_CACHE_HOME` or `~/.cache`, or in `machine` in `HORUS_CACHE`, else one that comes with Horus), or `default`, \
           which assumes a machine of which nothing is known",
    values: PATH,
};

/// Most memory of a GPU for images.
pub static GPU_MEMORY: Variable<usize> =
    Variable { name: "HORUS_GPU_MEMORY", help: "memory limit for images on a GPU", values: BYTES };

/// Most memory of the host for images.
pub static HOST_MEMORY: Variable<usize> = Variable {
    name: "HORUS_HOST_MEMORY",
    help: "memory limit for images on the host (all of the CPU device's, copies of a GPU's) and for what decoders and encoders take; a program \
           that needs more is computed region by region, or is an error before anything is read (default: 80 % of what is free)",
    values: BYTES,
};

/// How rows are divided among ranks.
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

/// How the GPUs of several ranks exchange memory.
pub static FABRIC: Variable<Fabric> = Variable {
    name: "HORUS_FABRIC",
    help: "how GPUs of several ranks exchange memory",
    values: Accepted::Words(&[
        word("auto", Fabric::Auto, "default: `nccl` where it works, else `host`"),
        word("nccl", Fabric::Nccl, "an error where it does not work"),
        word("host", Fabric::Host, "through the host"),
    ]),
};

/// When rows that need no halo are computed while the halo travels.
pub static OVERLAP: Variable<Overlap> = Variable {
    name: "HORUS_OVERLAP",
    help: "when a halo exchange overlaps with the rows that do not need it",
    values: Accepted::Words(&[
        word("auto", Overlap::Auto, "default: between devices, for long transfers"),
        word("always", Overlap::Always, "for any transfer, on any device"),
    ]),
};

/// How images get to the device and back.
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

/// What becomes of what filters read.
pub static STENCIL: Variable<Stencil> = Variable {
    name: "HORUS_STENCIL",
    help: "what becomes of a computed image that filters of one kernel alone read",
    values: Accepted::Form {
        expected: "auto, stored, pixel or tile",
        shown: "`auto` (default: as predicted to be fastest), `stored`, `pixel` (computed for each tap), `tile` (computed for each tile and around it)",
        parse: |text| Stencil::ALL.into_iter().find(|s| s.name() == text).ok_or_else(String::new),
    },
};

/// How many steps of a loop a launch makes.
pub static STEPS: Variable<Steps> = Variable {
    name: "HORUS_STEPS",
    help: "how many steps of a loop one launch makes, where a step is one kernel over its own result",
    values: Accepted::Form {
        expected: "auto, or a number from 1 to 64",
        shown: "`auto` (default: as predicted to be fastest), `N` (at most so many, 1 to 64)",
        parse: |text| match text {
            "auto" => Ok(Steps::Auto),
            _ => match text.parse() {
                Ok(n @ 1..=64) => Ok(Steps::Most(n)),
                _ => Err(String::new()),
            },
        },
    },
};
