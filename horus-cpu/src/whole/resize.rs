//! Resizing by kernels.
//!
//! The sums down the columns of a row of the result are stored in a line, from which the sums along the row read a group
//! of pixels at a time, tap by tap. The samples of a pixel are adjacent columns.

use std::ops::Range;

use super::{CpuOperation, OperationOutput, TypedInput, each_chunk, out, type_of, view};
use crate::plane::Plane;
use crate::versions::for_least_isa;
use horus_base::dispatch;
use horus_base::dtype::{Float, Pixel};
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Resize;
use horus_plan::ops::resize::{WeightedRun, WeightedRuns};

impl CpuOperation for Resize {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => resize(view::<T>(inputs, 0)?, self, out(output)?, to));
        Ok(())
    }
}

/// Rows of a task.
const ROWS: usize = 16;
/// Columns summed together.
const COLUMNS: usize = 64;
/// Elements of a row of the result that are computed together.
const LANES: usize = 16;
/// Taps whose sums stay in registers.
const TAPS: usize = 4;

/// The sums along an axis, with weights of the type of the computation.
struct ResizeSums<F> {
    runs: Vec<WeightedRun>,
    weights: Vec<F>,
}

impl<F: Float> ResizeSums<F> {
    fn of(WeightedRuns { runs, weights }: WeightedRuns) -> ResizeSums<F> {
        ResizeSums { runs, weights: weights.into_iter().map(F::from_f64).collect() }
    }

    fn weights(&self, run: &WeightedRun) -> &[F] {
        &self.weights[run.weights.clone()]
    }
}

/// Sums along rows, a group of elements at a time.
struct RowSums<F> {
    groups: Vec<SumGroup>,
    /// The weights of the groups, tap by tap.
    weights: Vec<[F; LANES]>,
    /// Elements between the taps of a sum: the samples of a pixel.
    step: usize,
    /// Elements that are read.
    read: usize,
}

/// The sums of adjacent elements.
struct SumGroup {
    /// The element of each first tap, and the number of taps.
    first: [u32; LANES],
    taps: [u32; LANES],
    /// The fewest taps.
    least: usize,
    /// Its weights.
    weights: Range<usize>,
}

impl<F: Float> RowSums<F> {
    fn of(sums: &ResizeSums<F>, samples: usize) -> RowSums<F> {
        let mut all = RowSums { groups: Vec::new(), weights: Vec::new(), step: samples, read: 0 };
        all.read = sums.runs.iter().map(|run| run.start + run.weights.len()).max().unwrap_or(0) * samples;
        let width = sums.runs.len() * samples;
        for from in (0..width).step_by(LANES) {
            // The last group repeats its last element.
            let runs: [(&WeightedRun, usize); LANES] = std::array::from_fn(|l| {
                let element = (from + l).min(width - 1);
                (&sums.runs[element / samples], element % samples)
            });
            let taps = runs.map(|(run, _)| run.weights.len() as u32);
            let most = taps.iter().fold(0, |most, taps| most.max(*taps)) as usize;
            let weight = |k: usize, run: &WeightedRun| sums.weights(run).get(k).copied().unwrap_or(F::ZERO);
            let at = all.weights.len();
            all.weights.extend((0..most).map(|k| runs.map(|(run, _)| weight(k, run))));
            all.groups.push(SumGroup {
                first: runs.map(|(run, sample)| (run.start * samples + sample) as u32),
                taps,
                least: taps.iter().fold(most, |least, taps| least.min(*taps as usize)),
                weights: at..at + most,
            });
        }
        all
    }
}

/// Computes the requested rows.
fn resize<T: Pixel>(input: TypedInput<'_, T>, how: &Resize, out: &mut [T], to: &OperationOutput) {
    let OperationOutput { geometry, rows, threads, .. } = *to;
    let shape = geometry.shape;
    if rows.is_empty() || shape.width == 0 {
        return;
    }
    let across = ResizeSums::<T::Interp>::of(how.columns.runs(how.how, Window::whole(shape.width)));
    let across = RowSums::of(&across, shape.samples);
    let down = ResizeSums::of(how.rows.runs(how.how, rows));
    for c in 0..shape.planes() {
        let plane = input.plane(c);
        let at = geometry.row(c, rows.start);
        let line = shape.line();
        each_chunk(threads, &mut out[at..at + rows.len() * line], ROWS * line, |k, out| {
            // Elements to the right of the last run are not read.
            let mut sums = vec![T::Interp::ZERO; across.read];
            for (run, out) in down.runs[k * ROWS..].iter().zip(out.chunks_mut(line)) {
                sum_down(&plane, run, down.weights(run), &mut sums);
                sum_across(&across, &sums, out);
            }
        });
    }
}

for_least_isa! {
    /// Sums of each column, weighed from the first row of a run on.
    fn sum_down[T: Pixel][T](
        plane: &Plane<'_, T>,
        run: &WeightedRun,
        weights: &[T::Interp],
        sums: &mut [T::Interp],
    ) as sum_down_body
}

#[inline(always)]
fn sum_down_body<T: Pixel>(plane: &Plane<'_, T>, run: &WeightedRun, weights: &[T::Interp], sums: &mut [T::Interp]) {
    for (b, sums) in sums.chunks_mut(COLUMNS).enumerate() {
        let n = sums.len();
        let pixels = |y: usize| &plane.row(y.cast_signed())[b * COLUMNS..][..n];
        sums.fill(T::Interp::ZERO);
        let (four, rest) = weights.as_chunks::<TAPS>();
        for (k, w) in four.iter().enumerate() {
            let [a, b, c, d] = std::array::from_fn(|i| pixels(run.start + k * TAPS + i));
            for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let two = w[1].fma(b.to_interp(), w[0].fma(a.to_interp(), *sum));
                *sum = w[3].fma(d.to_interp(), w[2].fma(c.to_interp(), two));
            }
        }
        for (k, w) in rest.iter().enumerate() {
            let line = pixels(run.start + four.len() * TAPS + k);
            sums.iter_mut().zip(line).for_each(|(sum, v)| *sum = w.fma(v.to_interp(), *sum));
        }
    }
}

for_least_isa! {
    /// A row of the result from the sums of columns.
    fn sum_across[T: Pixel][T](across: &RowSums<T::Interp>, columns: &[T::Interp], out: &mut [T]) as sum_across_body
}

#[inline(always)]
fn sum_across_body<T: Pixel>(across: &RowSums<T::Interp>, columns: &[T::Interp], out: &mut [T]) {
    assert!(columns.len() >= across.read, "the columns are summed");
    let step = across.step;
    for (group, out) in across.groups.iter().zip(out.chunks_mut(LANES)) {
        let SumGroup { first, taps, least, .. } = group;
        let mut sums = [T::Interp::ZERO; LANES];
        for (k, weights) in across.weights[group.weights.clone()].iter().enumerate() {
            let mut values = [T::Interp::ZERO; LANES];
            if k < *least {
                for l in 0..LANES {
                    // SAFETY: every tap of a sum is among the elements that are read, as asserted.
                    values[l] = unsafe { *columns.get_unchecked(first[l] as usize + k * step) };
                }
                for l in 0..LANES {
                    sums[l] = weights[l].fma(values[l], sums[l]);
                }
                continue;
            }
            for l in (0..LANES).filter(|l| k < taps[*l] as usize) {
                sums[l] = weights[l].fma(columns[first[l] as usize + k * step], sums[l]);
            }
        }
        let pixels = sums.map(T::from_interp);
        match out.len() {
            LANES => out.copy_from_slice(&pixels),
            n => out.copy_from_slice(&pixels[..n]),
        }
    }
}
