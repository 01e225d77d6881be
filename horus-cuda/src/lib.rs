//! The CUDA device of Horus.
//!
//! A device is memory, a compiler and launches; it decides nothing. Kernels are generated from
//! their structure ([`codegen`]), compiled for the GPU at hand ([`nvrtc`]) and kept on disk
//! ([`cache`]), so a program's second run compiles nothing; with a package of compiled kernels
//! ([`shipped`]) neither does the first. No CUDA toolkit is needed to build this crate, and no GPU
//! to generate and compile kernels.
//!
//! `horus-cuda` implements `Device`. `cuda` is a default feature and needs no toolkit to build; the
//! log names the chosen device and the reason in one line. Operations are ordered by one stream:
//! memory comes from the driver's pool, launches return at once. Two more streams carry copies
//! (`transfers.rs`). A copy to the host waits for all earlier launches and holds its block; later
//! writes to the block wait for the copy. A large upload beside kernels gets a new block, for which
//! the stream then waits. Copies pass through pinned chunks (`staging.rs`). Threads synchronise
//! once for many chunks, and each thread sends off the chunks it finishes; downloads bypass the
//! caches. Two chunks for each direction are pinned in advance, others once much has been copied.
//! Copies in host memory are divided among the device's threads (`host/workers.rs`), as one alone
//! is slower than the bus.
//!
//! - **Kernels** (`codegen/`) are generated from the structure of a `Kernel`: accesses, sizes,
//!   types, border modes. Taps, constants and geometry are parameters, so all orientations of a
//!   detector share one binary. `schedule` decides which leaves are computed together and what lies
//!   in shared memory: tiles with the border applied, row passes as stages, filters beyond shared
//!   memory in bands of rows or straight from global memory. A chain is a C++ type with the
//!   interface of an image, so every template reads either; a chain with filters reads the images
//!   around its pixel, with its own border modes. `similar` finds repeated steps (a pair of
//!   filters, the same arithmetic, the maximum) and makes them one loop: unrolled, a detector's
//!   code exceeds every instruction cache. Floats are divided as the processor does it, without its
//!   branch per pixel; operands that need the branch are found at the end (`hs_division`). The
//!   templates are in `kernels/`.
//! - **Compilation** happens in NVRTC, beside other launches; machine code is kept on disk under a
//!   hash of source, options, architecture and compiler version (`cache/`), so a second run
//!   compiles nothing. The cache's directory and files must belong to this user or root and be
//!   writable by nobody else; at 256 MiB those used least recently are removed. A release may ship
//!   a package of compiled kernels (`horus-kernels`, `shipped.rs`), which is searched after the
//!   cache and before the compiler (`origin.rs`). Within a process `memo.rs` keys launches by all
//!   that they depend on, so a recurring one generates no source. NVRTC is loaded only to compile.
//!   All kernels of a new plan are made before it runs (`device/making.rs`): each source once, the
//!   costliest first, several at a time.
//! - **Compile time** of a kernel is estimated by its instructions once unrolled
//!   (`codegen/cost.rs`). Above 3500, templates used more than once become functions
//!   (`codegen/cpp/calls.rs`); above 5500 a thread gets fewer pixels. Row passes of several sizes in a
//!   loop share the code that loads their input. Fusion gives a kernel at
//!   most four row passes. The extent of a sparse filter's tile is data, so that all directions
//!   share a binary.
//! - **Tuning** (`tuning.rs`) chooses threads, pixels per thread and unrolling, never results: the
//!   user's table first, then `kernels/tuning/`, at the nearest architecture and size, then a
//!   model. `horus-tune` searches and compares every bit.
//! - **Memory**: the planner keeps the images within the memory that was free at the start less a
//!   margin, or within `HORUS_GPU_MEMORY`. A program of one process that needs more is computed by
//!   regions if these repeat little work (`session/compile/fits.rs` of the core); else the planner evicts
//!   the image whose next read is last, and if a fused kernel does not fit continues without fusion.
//!   `HORUS_HOST_MEMORY` bounds spilled images.
//! - **The same bits** hold because contraction is off, every fma is explicit, division and roots
//!   are IEEE, and reductions follow the canonical order. `horus-cuda/tests/emulate.rs` compiles
//!   the same sources with the host's compiler and runs them, `tests/nvrtc.rs` compiles all of
//!   them, and `horus-cuda-check` and `tests/gpu` compare bits on a GPU.
//!
//! The generator builds statements and expressions (`codegen/cpp`), and text once at the end, which
//! is never parsed: repeated templates are marked in the statements, and a division is a node.
//! `schedule` groups leaves, `similar` finds loops, `map/shared` lays out shared memory; long C++
//! is in `kernels/`. A structure that cannot be emitted is an error. docs/design/kernel.md follows one
//! kernel all the way; docs/design/cpu-scratch.md shows the CPU's memory. A kernel comes from the user's
//! cache, else from the package that a release ships (`shipped.rs`, found by source and
//! architecture), else from the compiler (`origin.rs`).
//!
//! Pixels of a series are decoded into page-locked memory (`Staging::allocate_read_ahead`), and the GPU fetches
//! them from there (`Staging::begin_upload`): the device shares the buffer until then, so a write
//! meanwhile goes to a copy.
#![allow(unsafe_code, reason = "the driver, NVRTC and NCCL are C libraries")]

pub mod cache;
mod clock;
pub mod codegen;
mod compiler;
mod device;
mod driver;
mod ending;
mod fabric;
mod launch_cache;
pub mod measure;
mod memory;
mod nccl;
mod nvml;
pub mod nvrtc;
mod origin;
pub mod pieces;
mod pinned;
pub mod profile;
pub mod recorder;
pub mod shipped;
mod staging;
mod transfers;
pub mod tuning;
pub mod workloads;

pub use device::{CudaDevice, Gpu, Limiter, Resources, Statistics};
pub use ending::end_process;
