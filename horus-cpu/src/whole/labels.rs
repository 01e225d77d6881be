//! Reductions of the pixels of each label: exact sums, in any order, and extremes of blocks of rows. Sums are integers
//! below 2^53, in `f64`.

use std::sync::{Mutex, PoisonError};

use super::{CpuOperation, OperationOutput, TypedInput, each_chunk, out, view};
use crate::parallel;
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::labels::{DIGIT_BITS, Digits, LabelReduce, MASK, identity, square};

impl CpuOperation for LabelReduce {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        let (out, labels) = (out::<f64>(output)?, Labels::of(inputs)?);
        match inputs.get(1).map(|i| i.geometry.dtype) {
            None => shapes(*self, &labels, inputs[0].geometry.shape.width, out, to),
            Some(image) => dispatch!(image, T => reduce(*self, &labels, view::<T>(inputs, 1)?, out, to)),
        }
        Ok(())
    }
}

/// Elements of all tables of threads together, and elements merged at a time.
const ROOM: usize = 1 << 24;
const MERGED: usize = 1 << 14;

/// Labels of any integer type, read row by row, so that kernels are not compiled for each pair of types.
struct Labels<'a> {
    row: Box<LabelRow<'a>>,
}

/// Fills in the labels of a row of a plane. A negative label becomes a number above every count.
type LabelRow<'a> = dyn Fn(usize, isize, &mut Vec<u32>) + Sync + 'a;

impl<'a> Labels<'a> {
    /// The labels in the first input.
    pub(super) fn of(inputs: &[LaunchInput<'a>]) -> Result<Labels<'a>, DeviceError> {
        let dtype = inputs.first().map_or(DType::U8, |input| input.geometry.dtype);
        dispatch!(dtype, L => {
            let view = view::<L>(inputs, 0)?;
            let row = move |plane: usize, y: isize, to: &mut Vec<u32>| {
                to.clear();
                to.extend(view.plane(plane).row(y).iter().map(|label| number(*label)));
            };
            Ok(Labels { row: Box::new(row) })
        })
    }
}

/// A label as a number, of any integer type.
#[inline(always)]
fn number<L: Pixel>(label: L) -> u32 {
    let bits = label.scalar().bits() as u32;
    if L::LOWEST.to_f64() >= 0.0 {
        return bits;
    }
    // Extends the sign.
    let above = 32 - 8 * size_of::<L>().min(4);
    ((bits << above).cast_signed() >> above).cast_unsigned()
}

/// Reduces the pixels of `image` by `labels` of the same shape.
fn reduce<T: Pixel>(
    how: LabelReduce,
    labels: &Labels<'_>,
    image: TypedInput<'_, T>,
    out: &mut [f64],
    to: &OperationOutput,
) {
    match how {
        LabelReduce::Sum { .. } => sums(how, labels, image, out, to),
        LabelReduce::Shape { .. } => shapes(how, labels, image.geometry.shape.width, out, to),
        LabelReduce::Min { .. } | LabelReduce::Max { .. } if to.rows.is_empty() => {}
        LabelReduce::Min { count, block } | LabelReduce::Max { count, block } => {
            let at = to.geometry.row(0, to.rows.start);
            each_chunk(to.threads, &mut out[at..at + to.rows.len() * count], count, |k, found| {
                let first = (to.rows.start.cast_unsigned() + k) * block;
                let last = (first + block).min(image.geometry.shape.height);
                let rows = Window::new(first.cast_signed(), last.cast_signed());
                found.fill(identity(how));
                let least = matches!(how, LabelReduce::Min { .. });
                each_pixel(labels, image, count, rows, |label, v| {
                    // Normalises the sign of zeros.
                    let (v, found) = (v + 0.0, &mut found[label]);
                    if if least { v < *found } else { v > *found } {
                        *found = v;
                    }
                });
            });
        }
    }
}

/// Calls `f` with the label and the value of each pixel whose label is below `count`.
#[inline(always)]
fn each_pixel<T: Pixel>(
    labels: &Labels<'_>,
    image: TypedInput<'_, T>,
    count: usize,
    rows: Window,
    mut f: impl FnMut(usize, f64),
) {
    let mut row = Vec::with_capacity(image.geometry.shape.width);
    for plane in 0..image.geometry.shape.planes() {
        let image = image.plane(plane);
        for y in rows.start..rows.end {
            (labels.row)(plane, y, &mut row);
            for (&label, v) in row.iter().zip(image.row(y)) {
                if (label as usize) < count {
                    f(label as usize, v.to_f64());
                }
            }
        }
    }
}

/// Sums of pixels, and of their squares.
fn sums<T: Pixel>(
    how: LabelReduce,
    labels: &Labels<'_>,
    image: TypedInput<'_, T>,
    out: &mut [f64],
    to: &OperationOutput,
) {
    let squares = matches!(how, LabelReduce::Sum { squares: true, .. });
    let ((count, columns), of, of_squares) = (how.extent(0), Digits::of(T::DTYPE), Digits::of_squares(T::DTYPE));
    summed(count * columns, out, to, |rows, table| {
        each_pixel(labels, image, count, rows, |label, v| {
            let row = &mut table[label * columns..][..columns];
            row[0] += 1.0;
            of.add(&mut row[1..], v);
            if squares {
                let squared = &mut row[1 + of.columns()..];
                let (high, low) = square(v);
                of_squares.add(squared, high);
                if low != 0.0 {
                    of_squares.add(squared, low);
                }
            }
        });
    });
}

/// Sums of rows, columns and their products, for labels in rows of `width` pixels.
fn shapes(how: LabelReduce, labels: &Labels<'_>, width: usize, out: &mut [f64], to: &OperationOutput) {
    let LabelReduce::Shape { origin: [first_row, first_column], .. } = how else { return };
    let (count, columns) = how.extent(0);
    let digit = |v: u64, k: usize| v >> (k * DIGIT_BITS) & MASK;
    // Prefix sums of the digits of columns and of their squares: a run of pixels of one label is one difference.
    let mut up_to = vec![[0u64; 5]; width + 1];
    for x in 0..width {
        let at = (first_column + x) as u64;
        let parts = [digit(at, 0), digit(at, 1), digit(at * at, 0), digit(at * at, 1), digit(at * at, 2)];
        up_to[x + 1] = std::array::from_fn(|k| up_to[x][k] + parts[k]);
    }
    summed(count * columns, out, to, |rows, table| {
        let mut line = Vec::with_capacity(width);
        for y in rows.start..rows.end {
            (labels.row)(0, y, &mut line);
            let y = (first_row + y.unsigned_abs()) as u64;
            let down = [digit(y, 0), digit(y, 1), digit(y * y, 0), digit(y * y, 1), digit(y * y, 2)];
            let mut start = 0;
            for same in line.chunk_by(|a, b| a == b) {
                let (x, end) = (start, start + same.len());
                start = end;
                let label = same[0] as usize;
                if label >= count {
                    continue;
                }
                let n = same.len() as u64;
                let along: [u64; 5] = std::array::from_fn(|k| up_to[end][k] - up_to[x][k]);
                let across = if y * ((first_column + end) as u64) <= MASK {
                    // Products of one digit.
                    [y * along[0], 0, 0]
                } else {
                    (x..end).fold([0u64; 3], |sums, x| {
                        let product = y * (first_column + x) as u64;
                        std::array::from_fn(|k| sums[k] + digit(product, k))
                    })
                };
                let ([y0, y1, yy @ ..], [x0, x1, xx @ ..]) = (down.map(|digit| digit * n), along);
                let (yx, places) = (across, [n, y0, y1, x0, x1]);
                let sums = places.into_iter().chain(yy).chain(yx).chain(xx);
                let row = &mut table[label * columns..][..columns];
                row.iter_mut().zip(sums).for_each(|(sum, v)| *sum += v as f64);
            }
        }
    });
}

/// Adds up tables of `elements` integers, to which `part` adds its rows: one table for each thread, if memory allows.
fn summed(elements: usize, out: &mut [f64], to: &OperationOutput, part: impl Fn(Window, &mut [f64]) + Sync) {
    let out = &mut out[..elements];
    let parts = to.threads.min(ROOM / elements.max(1)).clamp(1, to.rows.len().max(1));
    let cut = |k: usize| to.rows.start + (to.rows.len() * k / parts).cast_signed();
    let window = |k: usize| Window::new(cut(k), cut(k + 1));
    let mut more = vec![Vec::new(); parts - 1];
    out.fill(0.0);
    let tables = std::iter::once(None).chain(more.iter_mut().map(Some)).enumerate().collect();
    let first = Mutex::new(&mut *out);
    parallel::for_each(to.threads, tables, |(k, table): (usize, Option<&mut Vec<f64>>)| match table {
        Some(table) => {
            *table = vec![0.0; elements];
            part(window(k), table);
        }
        None => part(window(k), &mut first.lock().unwrap_or_else(PoisonError::into_inner)),
    });
    each_chunk(to.threads, out, MERGED, |k, out| {
        for table in &more {
            out.iter_mut().zip(&table[k * MERGED..]).for_each(|(out, v)| *out += v);
        }
    });
}
