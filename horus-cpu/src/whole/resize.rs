//! Resizing by kernels.
//!
//! A group of rows is computed together, one in each SIMD lane. Sums down the columns are stored with the rows of a
//! column adjacent, so that sums along the rows need no gathers. The samples of a pixel are adjacent columns.

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

/// Rows computed together.
const ROWS: usize = 16;
/// Columns summed together.
const COLUMNS: usize = 64;
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

/// Computes the requested rows.
fn resize<T: Pixel>(input: TypedInput<'_, T>, how: &Resize, out: &mut [T], to: &OperationOutput) {
    let OperationOutput { geometry, rows, threads, .. } = *to;
    let shape = geometry.shape;
    if rows.is_empty() || shape.width == 0 {
        return;
    }
    let across = ResizeSums::<T::Interp>::of(how.columns.runs(how.how, Window::whole(shape.width)));
    let down = ResizeSums::of(how.rows.runs(how.how, rows));
    // Elements to the right of the last run are not read.
    let read = across.runs.iter().map(|run| run.start + run.weights.len()).max().unwrap_or(0) * shape.samples;
    for c in 0..shape.planes() {
        let plane = input.plane(c);
        let at = geometry.row(c, rows.start);
        let line = shape.line();
        each_chunk(threads, &mut out[at..at + rows.len() * line], ROWS * line, |k, out| {
            let lines = &down.runs[k * ROWS..][..out.len() / line];
            let mut columns = vec![[T::Interp::ZERO; ROWS]; read];
            sum_down(&plane, &down, lines, &mut columns);
            sum_across(&across, &columns, lines.len(), shape.samples, out);
        });
    }
}

for_least_isa! {
    /// Sums of each column for each of up to [`ROWS`] rows.
    fn sum_down[T: Pixel][T](
        plane: &Plane<'_, T>,
        down: &ResizeSums<T::Interp>,
        lines: &[WeightedRun],
        columns: &mut [[T::Interp; ROWS]],
    ) as sum_down_body
}

#[inline(always)]
fn sum_down_body<T: Pixel>(
    plane: &Plane<'_, T>,
    down: &ResizeSums<T::Interp>,
    lines: &[WeightedRun],
    columns: &mut [[T::Interp; ROWS]],
) {
    for (b, columns) in columns.chunks_mut(COLUMNS).enumerate() {
        let n = columns.len();
        let pixels = |y: usize| &plane.row(y.cast_signed())[b * COLUMNS..][..n];
        for (lane, run) in lines.iter().enumerate() {
            let mut sums = [T::Interp::ZERO; COLUMNS];
            let sums = &mut sums[..n];
            let (four, rest) = down.weights(run).as_chunks::<TAPS>();
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
            columns.iter_mut().zip(&*sums).for_each(|(column, sum)| column[lane] = *sum);
        }
    }
}

for_least_isa! {
    /// Rows of the result from the sums of columns.
    fn sum_across[T: Pixel][T](
        across: &ResizeSums<T::Interp>,
        columns: &[[T::Interp; ROWS]],
        rows: usize,
        samples: usize,
        out: &mut [T],
    ) as sum_across_body
}

#[inline(always)]
fn sum_across_body<T: Pixel>(
    across: &ResizeSums<T::Interp>,
    columns: &[[T::Interp; ROWS]],
    rows: usize,
    samples: usize,
    out: &mut [T],
) {
    let width = across.runs.len() * samples;
    for (x, run) in across.runs.iter().enumerate() {
        let weights = across.weights(run);
        let columns = &columns[run.start * samples..][..weights.len() * samples];
        for sample in 0..samples {
            let mut sums = [T::Interp::ZERO; ROWS];
            for (w, column) in weights.iter().zip(columns[sample..].iter().step_by(samples)) {
                sums.iter_mut().zip(column).for_each(|(sum, v)| *sum = w.fma(*v, *sum));
            }
            let (at, pixels) = (x * samples + sample, sums.map(T::from_interp));
            if rows == ROWS {
                (0..ROWS).for_each(|y| out[y * width + at] = pixels[y]);
            } else {
                (0..rows).for_each(|y| out[y * width + at] = pixels[y]);
            }
        }
    }
}
