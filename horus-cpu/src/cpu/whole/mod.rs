//! Kernels other than maps over pixels: merging planes, transposition, tables, reductions and
//! histograms.
//!
//! They divide their rows among the threads of the device's pool where that pays. The division does
//! not affect the result.

mod components;
mod distance;
mod fourier;
pub(crate) mod fused;
mod histogram;
pub(super) mod interleave;
mod labels;
mod layout;
mod product;
mod reconstruction;
mod resize;
mod rows;
#[allow(clippy::needless_range_loop, reason = "blocks of several arrays, in loops that become vectors")]
mod sampling;
mod tiles;

use horus_plan::ops::{Components, Remap, Tiled, Whole};
use rayon::prelude::*;

use super::plane::Plane;
use super::simd::Isa;
use super::versions::moved;
use super::windowed;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_base::{dispatch, dispatch_float, dispatch_narrow};
use horus_host::device::{Geometry, Launch, LaunchInput, Memory};

/// Minimum number of pixels of a task that is worth handing to another thread.
const GRAIN: usize = 1 << 15;

/// Runs an operation on host memory: inside the thread pool (`threads` of it), or on the calling thread alone if `threads` is 1.
///
/// # Errors
/// [`DeviceError::Argument`] for memory that is not the host's.
pub(crate) fn launch(launch: Launch<'_>, operation: &Whole, isa: Isa, threads: usize) -> Result<(), DeviceError> {
    if let Whole::Windowed(how) = operation {
        return windowed::launch(launch, how, isa, threads);
    }
    let Launch { inputs, output, geometry, rows, .. } = launch;
    let dtype = inputs.first().map_or(geometry.dtype, |i| i.geometry.dtype);
    match operation {
        Whole::Merge(_) => {
            moved!(dtype, T => layout::merge(&views::<T>(inputs)?, out(output)?, &geometry, rows, threads))
        }
        Whole::Transpose(_) => {
            moved!(dtype, T => layout::transpose(view::<T>(inputs, 0)?, out(output)?, &geometry, rows, threads))
        }
        Whole::Deinterleave(_) => {
            let how = interleave::How { isa, threads };
            moved!(dtype, T => interleave::deinterleave(view::<T>(inputs, 0)?, out(output)?, &geometry, rows, &how));
        }
        Whole::Interleave(_) => {
            let how = interleave::How { isa, threads };
            moved!(dtype, T => interleave::interleave(view::<T>(inputs, 0)?, out(output)?, &geometry, rows, &how));
        }
        Whole::MatrixProduct(_) => {
            let to = sampling::To { geometry, rows, threads, isa };
            dispatch_float!(dtype, T => product::product(view::<T>(inputs, 0)?, view(inputs, 1)?, out(output)?, &to));
        }
        Whole::Lookup(_) => moved!(geometry.dtype, T => {
            let table = view::<T>(inputs, 1)?.data;
            let out = out(output)?;
            dispatch_narrow!(dtype, S => {
                layout::lookup(view::<S>(inputs, 0)?, table, out, &geometry, rows, threads);
            });
        }),
        Whole::Remap(Remap { sampling: how, border, outside }) => {
            let positions = sampling::Positions::of(inputs)?;
            let to = sampling::To { geometry, rows, threads, isa };
            dispatch!(dtype, T => sampling::remap(view::<T>(inputs, 0)?, &positions, (*how, *border, *outside), out(output)?, &to));
        }
        Whole::Resize(how) => {
            let to = sampling::To { geometry, rows, threads, isa };
            dispatch!(dtype, T => resize::resize(view::<T>(inputs, 0)?, how, out(output)?, &to));
        }
        Whole::Fourier(how) => {
            let to = sampling::To { geometry, rows, threads, isa };
            dispatch_float!(dtype, T => fourier::filter(view::<T>(inputs, 0)?, how, out(output)?, &to));
        }
        Whole::RowReduce(how) => {
            let operand = || Ok(view::<f64>(inputs, 1)?.first().unwrap_or(0.0));
            let how = rows::How { reduce: *how, isa, threads };
            dispatch!(dtype, T => rows::reduce(how, view::<T>(inputs, 0)?, operand, output, &geometry, rows)?);
        }
        Whole::Running(_) => {
            dispatch!(dtype, T => rows::running(view::<T>(inputs, 0)?, out(output)?, &geometry, rows, (isa, threads)));
        }
        Whole::RunningDepth(_) => {
            dispatch!(dtype, T => layout::running_depth(view::<T>(inputs, 0)?, out(output)?, &geometry, rows, threads));
        }
        Whole::Fold(how) => dispatch!(dtype, T => {
            rows::fold(isa, *how, view::<T>(inputs, 0)?, out(output)?);
        }),
        Whole::Histogram(how) => {
            let bins = histogram::Bins { lo: how.lo(), hi: how.hi(), bins: how.bins };
            dispatch!(dtype, T => histogram::count((isa, threads), view::<T>(inputs, 0)?, bins, out(output)?, rows));
        }
        Whole::Labels(how) => {
            let (out, to) = (out::<f64>(output)?, labels::To { geometry, rows, threads });
            let labels = labels::Labels::of(inputs)?;
            match inputs.get(1).map(|i| i.geometry.dtype) {
                None => labels::shapes(*how, &labels, inputs[0].geometry.shape.width, out, &to),
                Some(image) => dispatch!(image, T => labels::reduce(*how, &labels, view::<T>(inputs, 1)?, out, &to)),
            }
        }
        Whole::Components(Components { neighbours: how }) => {
            dispatch!(dtype, T => components::label(view::<T>(inputs, 0)?, *how, out(output)?, threads));
        }
        Whole::Reconstruct(how) => dispatch!(dtype, T => {
            reconstruction::reconstruct(view::<T>(inputs, 0)?, view::<T>(inputs, 1)?, *how, out(output)?, threads);
        }),
        Whole::NearestOnLine(how) => dispatch!(dtype, T => {
            distance::nearest_on_line(how.along, view::<T>(inputs, 0)?, out(output)?, &geometry, rows, (isa, threads));
        }),
        Whole::NearestPixel(how) => distance::nearest(*how, view(inputs, 0)?, output, &geometry, rows, (isa, threads))?,
        Whole::Tiles(Tiled { grid, reduce: how }) => {
            let to = tiles::To { geometry, rows, threads, isa };
            dispatch!(dtype, T => tiles::reduce(view::<T>(inputs, 0)?, *grid, *how, output, &to)?);
        }
        Whole::Windowed(_) => {} // launched above
    }
    Ok(())
}

/// An input as typed planes.
#[derive(Clone, Copy)]
pub(super) struct View<'a, T> {
    data: &'a [T],
    geometry: Geometry,
}

impl<'a, T: Pixel> View<'a, T> {
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

pub(super) fn view<'a, T: Pixel>(inputs: &[LaunchInput<'a>], i: usize) -> Result<View<'a, T>, DeviceError> {
    let input = inputs.get(i).ok_or_else(|| DeviceError::Argument(format!("the launch has no input {i}")))?;
    let data = input.memory.host().ok_or_else(foreign)?.as_slice::<T>();
    Ok(View { data, geometry: input.geometry })
}

fn views<'a, T: Pixel>(inputs: &[LaunchInput<'a>]) -> Result<Vec<View<'a, T>>, DeviceError> {
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

/// Calls `f` with every chunk of `n` elements of `out` and its index: on the threads of the pool,
/// or for one thread here.
fn each_chunk<T: Send>(threads: usize, out: &mut [T], n: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    // Compiled once per type instead of once per kernel: a third of all functions would be these.
    fn each<T: Send>(threads: usize, out: &mut [T], n: usize, f: &(dyn Fn(usize, &mut [T]) + Sync)) {
        if threads <= 1 {
            out.chunks_mut(n).enumerate().for_each(|(k, out)| f(k, out));
        } else {
            out.par_chunks_mut(n).enumerate().for_each(|(k, out)| f(k, out));
        }
    }
    each(threads, out, n, &f);
}
