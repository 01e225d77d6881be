//! Operations over windows of any size: means and variances of rectangles, and ranks under footprints.
//!
//! A launch is cut into blocks of rows for the threads; the cut does not affect the result.

mod columns;
mod levels;
mod moments;
mod ranks;
mod sums;

use self::sums::ExtendedRows;
use crate::parallel;

use super::plane::Plane;
use super::whole::{self, CpuOperation, out, type_of, view};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::error::DeviceError;
use horus_base::shape::{Border, Window};
use horus_host::device::{Geometry, LaunchInput, Memory};
use horus_plan::ops::windowed::{BoxMean, Ranked, Sliding, Windowed, ordered};

impl CpuOperation for Sliding {
    fn run(
        &self,
        inputs: &[LaunchInput<'_>],
        output: &mut Memory,
        to: &whole::OperationOutput,
    ) -> Result<(), DeviceError> {
        let (how, border) = (&self.how, self.border);
        let &whole::OperationOutput { geometry, rows, threads, isa } = to;
        let dtype = type_of(inputs);
        if rows.is_empty() || geometry.shape.is_empty() {
            return Ok(());
        }
        match how {
            Windowed::Mean(mean) => dispatch!(dtype, S => {
                let input = view::<S>(inputs, 0)?;
                let to = WindowedOutput { geometry: geometry.flat(), rows, threads, reach: mean.height() };
                match geometry.dtype {
                    DType::F64 => to.each(out::<f64>(output)?, &|c, rows, out| {
                        means(&input.plane(c), (mean, border), rows, out);
                    }),
                    _ => to.each(out::<f32>(output)?, &|c, rows, out| {
                        means(&input.plane(c), (mean, border), rows, out);
                    }),
                }
            }),
            Windowed::Variance(mean) => dispatch!(dtype, S => {
                let input = view::<S>(inputs, 0)?;
                let to = WindowedOutput { geometry: geometry.flat(), rows, threads, reach: mean.height() };
                to.each(out::<f64>(output)?, &|c, rows, out| {
                    let plane = input.plane(c);
                    let read = |at: (isize, isize), line: &mut [f64]| sums::extend(&plane, at, border, line);
                    let image = ExtendedRows { width: plane.width, samples: plane.samples, read: &read };
                    moments::variances(&image, mean, rows, out);
                });
            }),
            Windowed::Rank(rank) => dispatch!(dtype, T => {
                let input = view::<T>(inputs, 0)?;
                let reach = rank.reach();
                let to = WindowedOutput { geometry, rows, threads, reach: reach.up + reach.down + 1 };
                let across = rank.crosses_levels();
                let by_columns = size_of::<T>() == 1 && rank.is_rectangle() && rank.count() <= columns::MOST;
                to.each(out::<T>(output)?, &|c, rows, out| {
                    let how = (rank, border);
                    if across {
                        levels::ranks(isa, &|c| input.plane(c), (geometry.shape, c), how, rows, out);
                    } else if by_columns {
                        by_histograms(&input.plane(c), how, rows, out);
                    } else {
                        ranks::ranks(&input.plane(c), rank, border, rows, out);
                    }
                });
            }),
        }
        Ok(())
    }
}

/// Output geometry and threads.
pub(super) struct WindowedOutput {
    pub(super) geometry: Geometry,
    pub(super) rows: Window,
    pub(super) threads: usize,
    /// Rows of the window. Blocks are taller, because the rows around them are read again.
    pub(super) reach: usize,
}

impl WindowedOutput {
    /// Calls `compute` with blocks of rows, each with its plane and the memory of its results.
    pub(super) fn each<T: Pixel>(&self, out: &mut [T], compute: &(dyn Fn(usize, Window, &mut [T]) + Sync)) {
        let Geometry { shape, window, .. } = self.geometry;
        let (planes, total, width) = (shape.planes(), self.rows.len(), shape.width);
        let fair = total.div_ceil(self.threads);
        let fine = if planes >= 2 * self.threads { total } else { total.div_ceil(2 * self.threads) };
        let block = fine.max(2 * self.reach).min(fair.max(1));
        let before = (self.rows.start - window.start).cast_unsigned() * width;
        let mut jobs = Vec::new();
        for (c, plane) in out.chunks_mut((window.len() * width).max(1)).take(planes).enumerate() {
            for (k, part) in plane[before..][..total * width].chunks_mut(block * width).enumerate() {
                let start = self.rows.start + (k * block).cast_signed();
                jobs.push((c, Window::new(start, start + (part.len() / width).cast_signed()), part));
            }
        }
        parallel::for_each(self.threads, jobs, |(c, rows, part)| compute(c, rows, part));
    }
}

/// Ranks of 8-bit pixels under a rectangle; signed pixels as unsigned numbers in the same order.
fn by_histograms<T: Pixel>(plane: &Plane<'_, T>, (rank, border): (&Ranked, Border), rows: Window, out: &mut [T]) {
    let constant = border.constant().map_or(T::ZERO, T::from_f64);
    let number = |v: T| ordered(v.scalar()) as u8;
    if let (Ok(data), Ok(out)) = (bytemuck::try_cast_slice(plane.data()), bytemuck::try_cast_slice_mut(out)) {
        columns::ranks(&plane.of(data), rank, (border, number(constant), number(T::ZERO)), rows, out);
    }
}

/// Means in the accumulator type of these pixels: `i32` for integers of few bits.
fn means<S: Pixel, R: Pixel>(plane: &Plane<'_, S>, (mean, border): (&BoxMean, Border), rows: Window, out: &mut [R]) {
    let area = mean.height().saturating_mul(mean.width());
    match S::DTYPE {
        DType::F32 => means_by::<S, f32, R>(plane, (mean, border), rows, out),
        narrow if narrow.is_narrow() && area < 1 << (31 - 8 * narrow.size()) => {
            means_by::<S, i32, R>(plane, (mean, border), rows, out);
        }
        _ => means_by::<S, f64, R>(plane, (mean, border), rows, out),
    }
}

fn means_by<S: Pixel, A: sums::Total, R: Pixel>(
    plane: &Plane<'_, S>,
    (mean, border): (&BoxMean, Border),
    rows: Window,
    out: &mut [R],
) {
    let read = |at: (isize, isize), line: &mut [A]| sums::extend(plane, at, border, line);
    let image = ExtendedRows { width: plane.width, samples: plane.samples, read: &read };
    sums::means(&image, mean, rows, out);
}
