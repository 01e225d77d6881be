//! Operations on whole images: merging planes, transposition, tables, reductions, histograms and others.
//!
//! Each operation implements [`CpuOperation`] in its module; the planner has the list of operations. An operation
//! divides its rows among the threads of the device's pool where that pays off. The division does not affect the
//! result.

pub(crate) mod components;
pub(crate) mod distance;
mod fourier;
pub(crate) mod fused;
mod histogram;
pub(super) mod interleave;
mod labels;
mod layout;
mod product;
pub(crate) mod reconstruction;
mod resize;
mod rows;
#[allow(clippy::needless_range_loop, reason = "blocks of several arrays, in loops that become vectors")]
mod sampling;
mod thin;
mod tiles;

use crate::parallel;
use horus_plan::ops::Whole;
use horus_plan::{implementation, whole_operations};

use super::plane::Plane;
use super::simd::Isa;
use horus_base::dtype::{DType, Pixel};
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::device::{Geometry, Launch, LaunchInput, Memory};

/// Minimum number of pixels of a task for another thread.
const GRAIN: usize = 1 << 15;

/// An operation on whole images, as the CPU computes it.
pub(super) trait CpuOperation {
    /// Computes the requested rows: inside the thread pool, or on the calling thread alone. The launch is one that
    /// [`check`](horus_host::device::check::check) accepts.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] for memory that is not the host's.
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError>;
}

/// The result of a launch, and the threads and instructions that compute it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperationOutput {
    pub(super) geometry: Geometry,
    /// The rows to compute; for a histogram or a reduction of labels, the rows of the input.
    pub(super) rows: Window,
    /// Threads of the pool; 1 is the calling thread alone.
    pub(super) threads: usize,
    pub(super) isa: Isa,
}

/// Runs an operation on host memory: inside the thread pool (`threads` of it), or on the calling thread alone if
/// `threads` is 1.
///
/// # Errors
/// [`DeviceError::Argument`] for memory that is not the host's.
pub(crate) fn launch(launch: Launch<'_>, operation: &Whole, isa: Isa, threads: usize) -> Result<(), DeviceError> {
    let Launch { inputs, output, geometry, rows, .. } = launch;
    whole_operations!(implementation operation as CpuOperation).run(
        inputs,
        output,
        &OperationOutput { geometry, rows, threads, isa },
    )
}

/// The type of the first input.
pub(super) fn type_of(inputs: &[LaunchInput<'_>]) -> DType {
    inputs.first().map_or(DType::U8, |input| input.geometry.dtype)
}

/// An input as typed planes.
#[derive(Clone, Copy)]
pub(super) struct TypedInput<'a, T> {
    data: &'a [T],
    geometry: Geometry,
}

impl<'a, T: Pixel> TypedInput<'a, T> {
    pub(super) fn plane(&self, c: usize) -> Plane<'a, T> {
        let g = &self.geometry;
        let data = &self.data[c * g.plane()..(c + 1) * g.plane()];
        Plane::new(data, g.shape.height, g.shape.line(), g.window).interleaved(g.shape.samples)
    }

    /// The first pixel of the image, which need not be the first in memory.
    pub(super) fn first(&self) -> Option<T> {
        let held = self.geometry.window.contains(0) && self.geometry.plane() > 0;
        held.then(|| self.data[self.geometry.row(0, 0)])
    }
}

pub(super) fn view<'a, T: Pixel>(inputs: &[LaunchInput<'a>], i: usize) -> Result<TypedInput<'a, T>, DeviceError> {
    let input = inputs.get(i).ok_or_else(|| DeviceError::Argument(format!("the launch has no input {i}")))?;
    let data = input.memory.host().ok_or_else(foreign)?.as_slice::<T>();
    Ok(TypedInput { data, geometry: input.geometry })
}

fn views<'a, T: Pixel>(inputs: &[LaunchInput<'a>]) -> Result<Vec<TypedInput<'a, T>>, DeviceError> {
    (0..inputs.len()).map(|i| view(inputs, i)).collect()
}

pub(super) fn out<T: Pixel>(memory: &mut Memory) -> Result<&mut [T], DeviceError> {
    Ok(memory.host_mut().ok_or_else(foreign)?.as_mut_slice())
}

fn foreign() -> DeviceError {
    DeviceError::Argument("a host kernel was given memory of another device".into())
}

/// Minimum number of rows of a task.
fn grain(width: usize) -> usize {
    GRAIN.div_ceil(width.max(1))
}

/// Calls `f` with every chunk of `n` elements of `out` and its index: on the threads of the pool, or for one thread on
/// the calling one.
fn each_chunk<T: Send>(threads: usize, out: &mut [T], n: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    // Compiled once for each type, not for each kernel.
    fn each<T: Send>(threads: usize, out: &mut [T], n: usize, f: &(dyn Fn(usize, &mut [T]) + Sync)) {
        parallel::for_each(threads, out.chunks_mut(n).enumerate().collect(), |(k, out)| f(k, out));
    }
    each(threads, out, n, &f);
}
