//! Thinning: rows of bytes, with a zero on each side, in two copies that sweeps write in turn.

use super::{CpuOperation, OperationOutput, out, type_of, view};
use crate::parallel;
use horus_base::dispatch;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Thin;

/// Rows swept at a time.
const TASK: usize = 16;

impl CpuOperation for Thin {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => {
            let (input, out) = (view::<T>(inputs, 0)?, out::<T>(output)?);
            let (shape, plane) = (to.geometry.shape, to.geometry.plane());
            if to.rows.is_empty() || shape.is_empty() {
                return Ok(());
            }
            for c in 0..shape.planes() {
                let from = input.plane(c);
                let mut mask = ThinningMask::new(shape.height, shape.line());
                for (y, row) in (0..).zip(mask.pixels.chunks_mut(mask.width).skip(1).take(shape.height)) {
                    row[1..].iter_mut().zip(from.row(y)).for_each(|(there, v)| *there = u8::from(*v != T::ZERO));
                }
                let thin = thinned(mask, to.threads);
                let first = c * plane + to.geometry.row(0, to.rows.start);
                let wanted = out[first..first + to.rows.len() * shape.line()].chunks_mut(shape.line());
                for (y, out) in (to.rows.start..).zip(wanted) {
                    let row = &thin.pixels[(y.cast_unsigned() + 1) * thin.width + 1..];
                    for ((out, v), there) in out.iter_mut().zip(from.row(y)).zip(row) {
                        *out = if *there == 1 { *v } else { T::ZERO };
                    }
                }
            }
        });
        Ok(())
    }
}

/// Rows of bytes with a 0 on each side, an empty row above and one below, and for each row the last sweep that changed
/// it.
#[derive(Clone)]
struct ThinningMask {
    pixels: Vec<u8>,
    changed: Vec<usize>,
    width: usize,
}

impl ThinningMask {
    fn new(height: usize, width: usize) -> ThinningMask {
        ThinningMask { pixels: vec![0; (height + 2) * (width + 2)], changed: vec![0; height + 2], width: width + 2 }
    }
}

/// Thins a mask until no pixel changes.
fn thinned(mask: ThinningMask, threads: usize) -> ThinningMask {
    let removed = [0, 1].map(|pass| -> [bool; 256] { std::array::from_fn(|bits| Thin::removes(bits as u8, pass)) });
    let (mut now, mut next) = (mask.clone(), mask);
    let (width, inside) = (now.width, now.changed.len() - 1);
    let mut pass = 0;
    loop {
        let removed = &removed[pass % 2];
        pass += 1;
        let row = |y: usize, to: &mut [u8], changed: &mut usize| {
            let (around, passes) = (&now.pixels[y * width..], &now.changed[y..y + 3]);
            // Both copies of a row are equal once two sweeps have not changed it or its neighbours.
            if passes.iter().all(|changed| changed + 2 < pass) {
                return;
            }
            let [above, here, below] = [0, 1, 2].map(|k| &around[k * width..(k + 1) * width]);
            to.copy_from_slice(here);
            *changed = passes[1];
            for x in (1..width - 1).filter(|x| here[*x] == 1) {
                let bits = here[x + 1]
                    | above[x + 1] << 1
                    | above[x] << 2
                    | above[x - 1] << 3
                    | here[x - 1] << 4
                    | below[x - 1] << 5
                    | below[x] << 6
                    | below[x + 1] << 7;
                if removed[usize::from(bits)] {
                    to[x] = 0;
                    *changed = pass;
                }
            }
        };
        let rows = &mut next.pixels[width..width * inside];
        let changed = &mut next.changed[1..inside];
        let tasks = rows.chunks_mut(TASK * width).zip(changed.chunks_mut(TASK)).enumerate().collect();
        parallel::for_each(threads, tasks, |(k, (rows, changed)): (usize, (&mut [u8], &mut [_]))| {
            let rows = rows.chunks_mut(width).zip(changed).enumerate();
            rows.for_each(|(y, (to, changed))| row(k * TASK + y, to, changed));
        });
        std::mem::swap(&mut now, &mut next);
        if pass % 2 == 0 && now.changed.iter().all(|changed| changed + 2 <= pass) {
            return now;
        }
    }
}
