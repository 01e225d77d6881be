//! Kernels that move pixels: merging planes, transposition, lookup tables. Also running sums over levels.

use super::{CpuOperation, GRAIN, OperationOutput, TypedInput, each_chunk, grain, out, type_of, view, views};
use crate::versions::moved;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_base::{dispatch, dispatch_narrow};
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::planes::stacked;
use horus_plan::ops::{Lookup, Merge, RunningDepth, Transpose};

impl CpuOperation for Merge {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        moved!(to.geometry.dtype, T => merge(&views::<T>(inputs)?, out(output)?, to));
        Ok(())
    }
}

impl CpuOperation for Transpose {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        moved!(to.geometry.dtype, T => transpose(view::<T>(inputs, 0)?, out(output)?, to));
        Ok(())
    }
}

impl CpuOperation for Lookup {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        moved!(to.geometry.dtype, T => {
            let table = view::<T>(inputs, 1)?.data;
            let out = out(output)?;
            dispatch_narrow!(type_of(inputs), S => lookup(view::<S>(inputs, 0)?, table, out, to));
        });
        Ok(())
    }
}

impl CpuOperation for RunningDepth {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => running_depth(view::<T>(inputs, 0)?, out(output)?, to));
        Ok(())
    }
}

/// Side of the squares that are transposed at once, through the stack, so that the lines of a column of pixels need not
/// stay in the same cache set.
const SQUARE: usize = 16;
/// Side of the blocks of squares: both sides of a block fit the translation lookaside buffer.
const BLOCK: usize = 64;

/// Concatenates rows `rows` of the planes of the inputs.
fn merge<T: Pixel>(inputs: &[TypedInput<'_, T>], out: &mut [T], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, threads, .. } = to;
    let width = geometry.shape.width;
    if rows.is_empty() || width == 0 {
        return;
    }
    let planes = stacked(inputs.iter().map(|i| i.geometry.shape), geometry.shape).unwrap_or_default();
    for (p, (input, plane)) in planes.into_iter().enumerate() {
        let input = &inputs[input];
        let (from, to) = (input.geometry.row(plane, rows.start), geometry.row(p, rows.start));
        let n = rows.len() * width;
        let (from, to) = (&input.data[from..from + n], &mut out[to..to + n]);
        each_chunk(threads, to, GRAIN, |k, to| to.copy_from_slice(&from[k * GRAIN..][..to.len()]));
    }
}

/// Running sums along the depth of the pixels of rows `rows`, level after level.
fn running_depth<T: Pixel>(input: TypedInput<'_, T>, out: &mut [f64], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, threads, .. } = to;
    let (n, channels) = (rows.len() * geometry.shape.width, geometry.shape.channels);
    if n == 0 {
        return;
    }
    for p in 0..geometry.shape.planes() {
        let from = &input.data[input.geometry.row(p, rows.start)..][..n];
        let (before, to) = out.split_at_mut(geometry.row(p, rows.start));
        let before = p.checked_sub(channels).map(|p| &before[geometry.row(p, rows.start)..][..n]);
        each_chunk(threads, &mut to[..n], GRAIN, |k, to| {
            let from = &from[k * GRAIN..];
            match before {
                None => to.iter_mut().zip(from).for_each(|(to, v)| *to = v.to_f64()),
                Some(before) => {
                    let terms = before[k * GRAIN..].iter().zip(from);
                    to.iter_mut().zip(terms).for_each(|(to, (sum, v))| *to = sum + v.to_f64());
                }
            }
        });
    }
}

/// The entries of `table` indexed by the pixels of rows `rows`, counted from the smallest pixel value. The table has an
/// entry for every pixel value.
fn lookup<S: Pixel + Into<i32>, T: Pixel>(input: TypedInput<'_, S>, table: &[T], out: &mut [T], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, threads, .. } = to;
    let (width, lowest): (usize, i32) = (geometry.shape.width, S::LOWEST.into());
    if rows.is_empty() || width == 0 {
        return;
    }
    for c in 0..geometry.shape.planes() {
        let (from, to) = (input.geometry.row(c, rows.start), geometry.row(c, rows.start));
        let n = rows.len() * width;
        let (from, to) = (&input.data[from..from + n], &mut out[to..to + n]);
        each_chunk(threads, to, GRAIN, |k, to| {
            to.iter_mut().zip(&from[k * GRAIN..]).for_each(|(to, from)| {
                let v: i32 = (*from).into();
                *to = table[(v - lowest) as usize];
            });
        });
    }
}

/// Output (`y`, `x`) is input (`x`, `y`), for output rows `rows` of every plane. All rows of the input are in memory.
fn transpose<T: Pixel>(input: TypedInput<'_, T>, out: &mut [T], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, threads, .. } = to;
    let width = geometry.shape.width;
    if rows.is_empty() || width == 0 {
        return;
    }
    for c in 0..geometry.shape.planes() {
        let plane = input.plane(c);
        let from = (-plane.window.start).cast_unsigned() * plane.width;
        let pixels = &plane.data()[from..];
        let at = geometry.row(c, rows.start);
        let n = grain(width).next_multiple_of(BLOCK);
        each_chunk(threads, &mut out[at..at + rows.len() * width], n * width, |k, out| {
            let first = rows.start.cast_unsigned() + k * n;
            for (y, band) in (first..).step_by(BLOCK).zip(out.chunks_mut(BLOCK * width)) {
                for x in (0..width).step_by(BLOCK) {
                    for (y, band) in (y..).step_by(SQUARE).zip(band.chunks_mut(SQUARE * width)) {
                        for x in (x..width.min(x + BLOCK)).step_by(SQUARE) {
                            transpose_square(pixels, plane.width, (y, x), band, width);
                        }
                    }
                }
            }
        });
    }
}

/// Transposes the square of `pixels` whose corner is row `x`, column `y`, to column `x` of the rows `band` of the
/// output.
#[inline(always)]
fn transpose_square<T: Pixel>(pixels: &[T], stride: usize, (y, x): (usize, usize), band: &mut [T], width: usize) {
    let n = SQUARE.min(width - x);
    if n == SQUARE && band.len() == SQUARE * width {
        let mut square = [[T::ZERO; SQUARE]; SQUARE];
        for (i, row) in square.iter_mut().enumerate() {
            row.copy_from_slice(&pixels[(x + i) * stride + y..][..SQUARE]);
        }
        for (j, row) in band.chunks_exact_mut(width).enumerate() {
            row[x..x + SQUARE].iter_mut().zip(&square).for_each(|(o, from)| *o = from[j]);
        }
    } else {
        for (j, row) in band.chunks_exact_mut(width).enumerate() {
            (x..x + n).for_each(|x| row[x] = pixels[x * stride + y + j]);
        }
    }
}
