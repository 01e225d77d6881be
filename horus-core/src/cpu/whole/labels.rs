//! Reductions of the pixels of each label: exact sums, in any order, and extremes of blocks of rows.

use rayon::prelude::*;

use super::{View, each_chunk, view};
use crate::device::{Geometry, LaunchInput};
use crate::dispatch;
use crate::dtype::Pixel;
use crate::error::DeviceError;
use crate::ops::labels::{BLOCK, LabelReduce, SUM_COLUMNS, digits, identity, square};
use crate::shape::Window;

/// Elements of all tables that threads add up in.
const ROOM: usize = 1 << 24;

/// Where results go, and on what they are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct To {
    pub(super) geometry: Geometry,
    pub(super) rows: Window,
    pub(super) threads: usize,
}

/// Labels of any integer type, which are read row by row: else every kernel here would be compiled for each pair of types.
pub(super) struct Labels<'a> {
    row: Box<Row<'a>>,
}

/// Fills in the labels of a row of a plane.
type Row<'a> = dyn Fn(usize, isize, &mut Vec<usize>) + Sync + 'a;

impl<'a> Labels<'a> {
    /// Those of the first input.
    pub(super) fn of(inputs: &[LaunchInput<'a>]) -> Result<Labels<'a>, DeviceError> {
        let dtype = inputs.first().map_or(crate::dtype::DType::U8, |input| input.geometry.dtype);
        dispatch!(dtype, L => {
            let view = view::<L>(inputs, 0)?;
            let row = move |plane: usize, y: isize, to: &mut Vec<usize>| {
                to.clear();
                // A negative label is a large number.
                to.extend(view.plane(plane).row(y).iter().map(|label| label.to_f64() as i64 as usize));
            };
            Ok(Labels { row: Box::new(row) })
        })
    }
}

/// Reduces the pixels of `image` by `labels` of the same extent.
pub(super) fn reduce<T: Pixel>(how: LabelReduce, labels: &Labels<'_>, image: View<'_, T>, out: &mut [f64], to: &To) {
    match how {
        LabelReduce::Sum { count, squares } => sums((count, squares), labels, image, out, to),
        LabelReduce::Min { .. } | LabelReduce::Max { .. } if to.rows.is_empty() => {}
        LabelReduce::Min { count } | LabelReduce::Max { count } => {
            let at = to.geometry.row(0, to.rows.start);
            each_chunk(to.threads, &mut out[at..at + to.rows.len() * count], count, |k, found| {
                let first = (to.rows.start.cast_unsigned() + k) * BLOCK;
                let last = (first + BLOCK).min(image.geometry.shape.height);
                let rows = Window::new(first.cast_signed(), last.cast_signed());
                found.fill(identity(how));
                let least = matches!(how, LabelReduce::Min { .. });
                each_pixel(labels, image, count, rows, |label, v| {
                    // Zeros have no sign.
                    let (v, found) = (v + 0.0, &mut found[label]);
                    if if least { v < *found } else { v > *found } {
                        *found = v;
                    }
                });
            });
        }
    }
}

/// Calls `f` with the label and the value of each pixel whose label is one of `count`.
#[inline(always)]
fn each_pixel<T: Pixel>(
    labels: &Labels<'_>,
    image: View<'_, T>,
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
                if label < count {
                    f(label, v.to_f64());
                }
            }
        }
    }
}

fn sums<T: Pixel>((count, squares): (usize, bool), labels: &Labels<'_>, image: View<'_, T>, out: &mut [f64], to: &To) {
    let columns = LabelReduce::Sum { count, squares }.extent(0).1;
    let elements = count * columns;
    let part = |rows: Window| {
        let mut table = vec![0i64; elements];
        each_pixel(labels, image, count, rows, |label, v| {
            let row = &mut table[label * columns..][..columns];
            row[0] += 1;
            add(&mut row[1..], v);
            if squares {
                let (high, low) = square(v);
                add(&mut row[1 + SUM_COLUMNS..], high);
                if low != 0.0 {
                    add(&mut row[1 + SUM_COLUMNS..], low);
                }
            }
        });
        table
    };
    let parts = to.threads.min(ROOM / elements.max(1)).clamp(1, to.rows.len().max(1));
    let cut = |k: usize| to.rows.start + (to.rows.len() * k / parts).cast_signed();
    let window = |k: usize| Window::new(cut(k), cut(k + 1));
    let merged = |mut a: Vec<i64>, b: Vec<i64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let table = match parts {
        1 => part(to.rows),
        _ => (0..parts).into_par_iter().map(|k| part(window(k))).reduce_with(merged).unwrap_or_default(),
    };
    out[..elements].iter_mut().zip(table).for_each(|(out, v)| *out = v as f64);
}

/// Adds a number to an exact sum.
#[inline(always)]
fn add(columns: &mut [i64], v: f64) {
    let (first, parts) = digits(v);
    for (column, part) in columns[first..].iter_mut().zip(parts) {
        *column += part;
    }
}
