//! Thinning: rows of bytes, with a false pixel on each side, in two copies that passes write in turn.

use super::{CpuOperation, To, out, type_of, view};
use horus_base::dispatch;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Thin;
use rayon::prelude::*;

impl CpuOperation for Thin {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &To) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => {
            let (input, out) = (view::<T>(inputs, 0)?, out::<T>(output)?);
            let (shape, plane) = (to.geometry.shape, to.geometry.plane());
            if to.rows.is_empty() || shape.is_empty() {
                return Ok(());
            }
            for c in 0..shape.planes() {
                let from = input.plane(c);
                let rows = (0..shape.height.cast_signed()).map(|y| Row::of(from.row(y)));
                let thin = thinned(rows.collect(), to.threads);
                let first = c * plane + to.geometry.row(0, to.rows.start);
                let wanted = out[first..first + to.rows.len() * shape.line()].chunks_mut(shape.line());
                for (y, out) in (to.rows.start..).zip(wanted) {
                    let row = &thin[y.cast_unsigned() + 1].pixels[1..];
                    for ((out, v), there) in out.iter_mut().zip(from.row(y)).zip(row) {
                        *out = if *there == 1 { *v } else { T::ZERO };
                    }
                }
            }
        });
        Ok(())
    }
}

/// A row of a mask, and the number of the last pass that changed it.
#[derive(Clone)]
struct Row {
    pixels: Vec<u8>,
    changed: usize,
}

impl Row {
    fn of<T: Pixel>(row: &[T]) -> Row {
        let inside = row.iter().map(|v| u8::from(*v != T::ZERO));
        Row { pixels: std::iter::once(0).chain(inside).chain([0]).collect(), changed: 0 }
    }
}

/// The rows of a thinned mask, with an empty one above and below.
fn thinned(rows: Vec<Row>, threads: usize) -> Vec<Row> {
    let empty = Row { pixels: vec![0; rows[0].pixels.len()], changed: 0 };
    let mut now: Vec<Row> = std::iter::once(empty.clone()).chain(rows).chain([empty]).collect();
    let mut next = now.clone();
    let removed = [0, 1].map(|pass| -> [bool; 256] { std::array::from_fn(|bits| Thin::removes(bits as u8, pass)) });
    let mut pass = 0;
    loop {
        let removed = &removed[pass % 2];
        pass += 1;
        let row = |(next, around): (&mut Row, &[Row])| {
            // Both copies of a row are alike once two passes leave it and those beside it.
            if around.iter().all(|row| row.changed + 2 < pass) {
                return;
            }
            let [above, here, below] = [0, 1, 2].map(|k| &around[k].pixels[..]);
            next.pixels.copy_from_slice(here);
            next.changed = around[1].changed;
            for x in (1..here.len() - 1).filter(|x| here[*x] == 1) {
                let bits = here[x + 1]
                    | above[x + 1] << 1
                    | above[x] << 2
                    | above[x - 1] << 3
                    | here[x - 1] << 4
                    | below[x - 1] << 5
                    | below[x] << 6
                    | below[x + 1] << 7;
                if removed[usize::from(bits)] {
                    next.pixels[x] = 0;
                    next.changed = pass;
                }
            }
        };
        let inside = next.len() - 1;
        if threads <= 1 {
            next[1..inside].iter_mut().zip(now.windows(3)).for_each(row);
        } else {
            next[1..inside].par_iter_mut().zip(now.par_windows(3)).with_min_len(16).for_each(row);
        }
        std::mem::swap(&mut now, &mut next);
        if pass % 2 == 0 && now.iter().all(|row| row.changed + 2 <= pass) {
            return now;
        }
    }
}
