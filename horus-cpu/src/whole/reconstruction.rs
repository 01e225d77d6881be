//! Reconstruction by Vincent's hybrid algorithm: a sweep in raster order, one against it, and a queue of the remaining
//! pixels.
//!
//! All threads sweep over blocks of rows, or of levels; one queue then continues across blocks. The result does not
//! depend on the blocks.

use std::collections::VecDeque;

use super::{CpuOperation, GRAIN, OperationOutput, TypedInput, each_chunk, grain, out, type_of, view};
use horus_base::dispatch;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::reconstruction::Reconstruction;

impl CpuOperation for Reconstruction {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => {
            reconstruct(view::<T>(inputs, 0)?, view::<T>(inputs, 1)?, *self, out(output)?, to.threads);
        });
        Ok(())
    }
}

/// An image under reconstruction.
struct Growth<'a, T> {
    how: Reconstruction,
    mask: &'a [T],
    /// Preceding neighbours in other rows, and a flag for the left one.
    before: Vec<[isize; 3]>,
    left: bool,
    height: usize,
    width: usize,
}

impl<T: Pixel> Growth<'_, T> {
    /// Neighbouring rows of row `row` (counted over all levels) among rows `rows`, and the column offsets of the
    /// neighbours: preceding ones, times `sign`.
    fn neighbours(&self, row: usize, sign: isize, rows: [usize; 2]) -> Vec<(usize, isize)> {
        let (z, y) = (row / self.height, row % self.height);
        let places = self.before.iter().filter_map(|&[dz, dy, dx]| {
            let y = y.checked_add_signed(sign * dy).filter(|y| *y < self.height)?;
            let row = z.checked_add_signed(sign * dz)? * self.height + y;
            (rows[0] <= row && row < rows[1]).then_some((row, sign * dx))
        });
        places.collect()
    }

    /// Sweeps over rows `rows` in `out`: in raster order for `sign` 1, against it for -1. Each pixel grows from the
    /// pixels before it.
    fn sweep(&self, out: &mut [T], rows: [usize; 2], sign: isize) {
        let order = |k: usize| if sign > 0 { rows[0] + k } else { rows[1] - 1 - k };
        for row in (0..rows[1] - rows[0]).map(order) {
            self.row(out, rows, row, sign);
        }
    }

    /// Sweeps over a row.
    fn row(&self, out: &mut [T], rows: [usize; 2], row: usize, sign: isize) {
        let (how, width) = (self.how, self.width);
        let first = (row - rows[0]) * width;
        let mask = &self.mask[row * width..][..width];
        for (other, dx) in self.neighbours(row, sign, rows) {
            let other = (other - rows[0]) * width;
            let (row, other) = if first > other {
                let (head, tail) = out.split_at_mut(first);
                (&mut tail[..width], &head[other..][..width])
            } else {
                let (head, tail) = out.split_at_mut(other);
                (&mut head[first..][..width], &tail[..width])
            };
            let (row, other) = shifted(row, other, dx);
            for (v, other) in row.iter_mut().zip(other) {
                *v = how.grown(*v, *other);
            }
        }
        let row = &mut out[first..][..width];
        for (v, mask) in row.iter_mut().zip(mask) {
            *v = how.within(*v, how.ordered(*mask));
        }
        if !self.left {
            return;
        }
        let along = |last: &mut Option<T>, (v, mask): (&mut T, &T)| {
            if let Some(last) = *last {
                *v = how.within(how.grown(*v, last), how.ordered(*mask));
            }
            *last = Some(*v);
        };
        let (mut last, pixels) = (None, row.iter_mut().zip(mask));
        if sign > 0 {
            pixels.for_each(|pixel| along(&mut last, pixel));
        } else {
            pixels.rev().for_each(|pixel| along(&mut last, pixel));
        }
    }

    /// Marks the pixels of row `row` whose neighbours on the side `sign` may grow from them.
    fn mark(&self, out: &[T], row: usize, sign: isize, marks: &mut [bool]) {
        let (how, width) = (self.how, self.width);
        let rows = out.len() / width;
        let own = &out[row * width..][..width];
        for (other, dx) in self.neighbours(row, sign, [0, rows]).into_iter().chain(self.left.then_some((row, -sign))) {
            let theirs = other * width..(other + 1) * width;
            let (marks, other) = shifted(marks, &out[theirs.clone()], dx);
            let (_, mask) = shifted::<T, T>(&mut [], &self.mask[theirs], dx);
            let own = &own[if dx < 0 { 1.min(width) } else { 0 }..];
            for (((mark, own), other), mask) in marks.iter_mut().zip(own).zip(other).zip(mask) {
                *mark |= how.may_grow(*other, *own, how.ordered(*mask));
            }
        }
    }

    /// Grows pixels from those in `queue` until nothing changes.
    fn flood(&self, out: &mut [T], mut queue: PixelQueue) {
        let width = self.width;
        let rows = out.len() / width;
        while let Some(i) = queue.pop() {
            let (row, x, v) = (i / width, i % width, out[i]);
            for sign in [1, -1] {
                let mut visit = |row: usize, dx: isize| {
                    let Some(x) = x.checked_add_signed(dx).filter(|x| *x < width) else { return };
                    let j = row * width + x;
                    let mask = self.how.ordered(self.mask[j]);
                    if self.how.may_grow(out[j], v, mask) {
                        out[j] = self.how.within(v, mask);
                        queue.push(j);
                    }
                };
                let (z, y) = (row / self.height, row % self.height);
                for &[dz, dy, dx] in &self.before {
                    let Some(y) = y.checked_add_signed(sign * dy).filter(|y| *y < self.height) else { continue };
                    let Some(z) = z.checked_add_signed(sign * dz) else { continue };
                    let row = z * self.height + y;
                    if row < rows {
                        visit(row, sign * dx);
                    }
                }
                if self.left {
                    visit(row, -sign);
                }
            }
        }
    }
}

/// The overlap of two rows, one shifted by `dx` columns.
fn shifted<'a, 'b, S, T>(row: &'a mut [S], other: &'b [T], dx: isize) -> (&'a mut [S], &'b [T]) {
    match dx {
        0 => (row, other),
        1.. => (row, other.get(1..).unwrap_or_default()),
        _ => (row.get_mut(1..).unwrap_or_default(), other),
    }
}

/// Pixels to visit, each at most once.
struct PixelQueue {
    pixels: VecDeque<u32>,
    is_queued: Vec<bool>,
}

impl PixelQueue {
    fn of(waiting: Vec<bool>) -> PixelQueue {
        let there = waiting.iter().enumerate().filter(|(_, waits)| **waits);
        PixelQueue { pixels: there.map(|(i, _)| i as u32).collect(), is_queued: waiting }
    }

    fn push(&mut self, i: usize) {
        if !std::mem::replace(&mut self.is_queued[i], true) {
            self.pixels.push_back(i as u32);
        }
    }

    fn pop(&mut self) -> Option<usize> {
        let i = self.pixels.pop_front()? as usize;
        self.is_queued[i] = false;
        Some(i)
    }
}

/// Reconstructs `marker` under `mask`, both whole, non-empty images of one channel.
fn reconstruct<T: Pixel>(
    marker: TypedInput<'_, T>,
    mask: TypedInput<'_, T>,
    how: Reconstruction,
    out: &mut [T],
    threads: usize,
) {
    let shape = mask.geometry.shape;
    reconstruct_rows(how, (marker.data, mask.data), &mut out[..shape.len()], [shape.height, shape.width], threads);
}

/// Reconstructs rows, or whole levels of this height and width, as if they were an image.
pub fn reconstruct_rows<T: Pixel>(
    how: Reconstruction,
    images: (&[T], &[T]),
    out: &mut [T],
    [height, width]: [usize; 2],
    threads: usize,
) {
    // Neighbours are at most this many rows away.
    let rows = out.len() / width;
    let unit = if rows > height { height } else { 1 };
    let block = rows.div_ceil(threads.max(1)).max(GRAIN.div_ceil(width)).next_multiple_of(unit);
    blocks(how, images, out, ([height, width], block), threads);
}

/// [`reconstruct`] in blocks of a given number of rows.
fn blocks<T: Pixel>(
    how: Reconstruction,
    (marker, mask): (&[T], &[T]),
    out: &mut [T],
    ([height, width], block): ([usize; 2], usize),
    threads: usize,
) {
    let all: Vec<[isize; 3]> = how.neighbours.before().collect();
    let left = all.contains(&[0, 0, -1]);
    let before = all.into_iter().filter(|by| *by != [0, 0, -1]).collect();
    let growth = Growth { how, mask, before, left, height, width };
    let passes = |k: usize, out: &mut [T]| {
        let (first, count) = (k * block, out.len() / width);
        let at = first * width;
        for ((out, marker), mask) in out.iter_mut().zip(&marker[at..]).zip(&mask[at..]) {
            *out = how.within(how.ordered(*marker), how.ordered(*mask));
        }
        for sign in [1, -1] {
            growth.sweep(out, [first, first + count], sign);
        }
    };
    let mut waiting = vec![false; out.len()];
    each_chunk(threads, out, block * width, passes);
    // After the second sweep, a pixel may still grow into pixels after it; a pixel at the beginning of a block also
    // into pixels of the block before.
    let (done, level) = (&*out, if out.len() > height * width { height } else { 1 });
    let mark = |(row, marks): (usize, &mut [bool])| {
        growth.mark(done, row, -1, marks);
        if row % block < level {
            growth.mark(done, row, 1, marks);
        }
    };
    let lines = grain(width);
    each_chunk(threads, &mut waiting, lines * width, |k, marks| {
        (k * lines..).zip(marks.chunks_mut(width)).for_each(mark);
    });
    growth.flood(out, PixelQueue::of(waiting));
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_plan::ops::components::Connectivity;
    use horus_testing::reference::reconstruction::reconstruction;

    /// Masks and markers within them: noise, walls of a maze filled from a single pixel, a spiral,
    /// and flat images.
    fn pictures(count: usize, width: usize) -> Vec<[Vec<i16>; 2]> {
        let noise = |i: usize, seed: usize| ((i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 100;
        let one = |i: usize| if i == 0 { 90 } else { -5 };
        let serpentine = |i: usize| {
            let (y, x) = (i / width, i % width);
            let gate = if y % 4 == 1 { width - 1 } else { 0 };
            if y.is_multiple_of(2) || x == gate { 50 } else { -3 }
        };
        let spiral = |i: usize| {
            let (y, x) = ((i / width).cast_signed() - 9, (i % width).cast_signed() - 11);
            if y.abs().max(x.abs()) % 2 == 0 || (y + x == 1 && y > 0) { 40 + (i % 7) as i16 } else { 2 }
        };
        type Make<'a> = &'a dyn Fn(usize) -> i16;
        let all: [[Make<'_>; 2]; 5] = [
            [&|i| noise(i, 1) as i16 - if noise(i, 9) < 90 { 60 } else { 0 }, &|i| noise(i, 2) as i16],
            [&|i| if noise(i, 3) < 3 { 80 } else { -9 }, &|i| noise(i / 5, 4) as i16],
            [&one, &serpentine],
            [&one, &spiral],
            [&|i| noise(i, 5) as i16, &|_| 30],
        ];
        all.iter().map(|pair| pair.map(|f| (0..count).map(f).collect())).collect()
    }

    #[test]
    fn blocks_do_not_change_images() {
        let mut lines = [[[false; 3]; 3]; 3];
        lines[1][0][2] = true;
        lines[2][1][1] = true;
        let nothing = Connectivity::new([[[false; 3]; 3]; 3]);
        let structures =
            [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS, Connectivity::new(lines), nothing];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for extent @ [depth, height, width] in
            [[1, 31, 23], [1, 1, 40], [1, 40, 1], [5, 9, 14], [6, 1, 9], [7, 8, 1], [1, 1, 1]]
        {
            for (k, [marker, mask]) in pictures(depth * height * width, width).into_iter().enumerate() {
                for (neighbours, erosion) in structures.into_iter().flat_map(|s| [(s, false), (s, true)]) {
                    let how = Reconstruction { erosion, neighbours };
                    let turned = |pixels: &[i16]| pixels.iter().map(|v| if erosion { -v } else { *v }).collect();
                    let [marker, mask]: [Vec<i16>; 2] = [turned(&marker), turned(&mask)];
                    let want = reconstruction(&marker, &mask, extent, how);
                    let unit = if depth > 1 { height } else { 1 };
                    for parts in 1..=7 {
                        let mut out = vec![7; mask.len()];
                        let rows = (depth * height).div_ceil(parts).next_multiple_of(unit);
                        pool.install(|| blocks(how, (&marker, &mask), &mut out, ([height, width], rows), 3));
                        assert_eq!(out, want, "picture {k} of {extent:?}, {how:?}, {parts} blocks");
                    }
                }
            }
        }
    }
}
