//! Connected components: a forest of runs of pixels, whose roots are the first runs of the components.
//!
//! Threads find the runs of blocks of rows, or of levels, and join runs that touch. The blocks are then joined along
//! their first rows. The root of a component is its first run, regardless of the blocks.

use std::ops::Range;

use super::{CpuOperation, GRAIN, OperationOutput, TypedInput, each_chunk, out, type_of, view};
use crate::bits::{BITS, bits_of};
use crate::parallel;
use horus_base::dispatch;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Components;
use horus_plan::ops::components::{ComponentValue, Connectivity};

impl CpuOperation for Components {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => label(view::<T>(inputs, 0)?, *self, out(output)?, to.threads));
        Ok(())
    }
}

/// Consecutive pixels of a row: the first column, and the one after the last.
#[derive(Clone, Copy, Debug)]
struct PixelRun {
    start: u32,
    end: u32,
}

/// The runs of some rows, counted over all levels, in raster order.
struct PixelRuns {
    runs: Vec<PixelRun>,
    /// The first run of each row, and the end of the last.
    rows: Vec<usize>,
    /// The number of an earlier run of the same component, or the run's own.
    parents: Vec<u32>,
}

impl PixelRuns {
    /// The runs of rows of `width` pixels; of single pixels if pixels of a row are no neighbours.
    fn of<T: Pixel>(pixels: &[T], width: usize, single: bool) -> PixelRuns {
        let mut found = PixelRuns { runs: Vec::new(), rows: vec![0], parents: Vec::new() };
        for row in pixels.chunks_exact(width) {
            let mut open = None;
            for (k, part) in row.chunks(BITS).enumerate() {
                let (x, set) = ((BITS * k) as u32, bits_of(part));
                if single {
                    for_each_bit(set, |i| found.runs.push(PixelRun { start: x + i, end: x + i + 1 }));
                    continue;
                }
                // Positions where pixels differ from those before.
                for_each_bit(set ^ (set << 1 | u64::from(open.is_some())), |i| match open.take() {
                    None => open = Some(x + i),
                    Some(start) => found.runs.push(PixelRun { start, end: x + i }),
                });
            }
            if let Some(start) = open {
                found.runs.push(PixelRun { start, end: width as u32 });
            }
            found.rows.push(found.runs.len());
        }
        found.parents.extend(0..found.runs.len() as u32);
        found
    }

    /// The runs of rows from `first` on, counted over levels of `height` rows, joined among these rows.
    fn joined<T: Pixel>(pixels: &[T], first: usize, [height, width]: [usize; 2], how: Connectivity) -> PixelRuns {
        let single = !how.before().any(|by| by == [0, 0, -1]);
        let above = EarlierNeighbours::of(how);
        let mut runs = PixelRuns::of(pixels, width, single);
        for row in first..first + pixels.len() / width {
            for by in &above {
                if let Some(other) = by.at(row, height).filter(|other| *other >= first) {
                    runs.join_rows(row - first, other - first, by.columns);
                }
            }
        }
        runs
    }

    /// The number of pixels of each component.
    fn sizes(&self, count: u32) -> Vec<i32> {
        let mut sizes = vec![0; count as usize];
        for (run, component) in self.runs.iter().zip(&self.parents) {
            sizes[*component as usize] += (run.end - run.start) as i32;
        }
        sizes
    }

    /// Replaces parents by the numbers of their components, in raster order, from `first` on; returns the end.
    fn number(&mut self, first: u32) -> u32 {
        // Parents come first: they have their number when it is read.
        let mut next = first;
        for i in 0..self.parents.len() {
            let parent = self.parents[i] as usize;
            self.parents[i] = if parent == i {
                next += 1;
                next - 1
            } else {
                self.parents[parent]
            };
        }
        next
    }

    fn row(&self, row: usize) -> Range<usize> {
        self.rows[row]..self.rows[row + 1]
    }

    /// The root of run `i`; compresses the path to it.
    fn root(&mut self, mut i: u32) -> u32 {
        loop {
            let up = self.parents[i as usize];
            let further = self.parents[up as usize];
            if further == up {
                return up;
            }
            self.parents[i as usize] = further;
            i = further;
        }
    }

    /// Joins the runs of `row` with the runs of an earlier row `above` whose columns are `from` to `to` further right.
    fn join_rows(&mut self, row: usize, above: usize, (from, to): (i64, i64)) {
        let (mut other, others) = (self.rows[above], self.rows[above + 1]);
        for i in self.row(row) {
            let (start, end) = (i64::from(self.runs[i].start) + from, i64::from(self.runs[i].end) + to);
            while other < others && i64::from(self.runs[other].end) <= start {
                other += 1;
            }
            let first = other;
            let mut root = None;
            while other < others && i64::from(self.runs[other].start) < end {
                let own = root.unwrap_or_else(|| self.root(i as u32));
                let found = self.root(other as u32);
                self.parents[own.max(found) as usize] = own.min(found);
                root = Some(own.min(found));
                other += 1;
            }
            // The last one may touch the next run, too.
            other = first.max(other.saturating_sub(1));
        }
    }
}

/// Runs of pixels of consecutive rows of an image, and their components among these rows.
#[derive(Debug)]
pub struct ComponentRuns {
    /// The first run of each row, and the end of the last.
    pub rows: Vec<usize>,
    /// The first column of each run, the one after its last, and its component, from 0 on in raster order.
    pub runs: Vec<[u32; 3]>,
    /// Number of components.
    pub count: usize,
}

impl ComponentRuns {
    /// The runs of rows from `first` on, counted over levels of `height` rows.
    pub fn of<T: Pixel>(
        pixels: &[T],
        first: usize,
        extent: [usize; 2],
        how: Connectivity,
        threads: usize,
    ) -> ComponentRuns {
        let _ = threads;
        let mut found = PixelRuns::joined(pixels, first, extent, how);
        let count = found.number(0) as usize;
        let runs = found.runs.iter().zip(&found.parents);
        let runs = runs.map(|(run, component)| [run.start, run.end, *component]).collect();
        ComponentRuns { rows: found.rows, runs, count }
    }

    /// The number of pixels of each component.
    pub fn sizes(&self) -> Vec<i32> {
        let mut sizes = vec![0; self.count];
        self.runs.iter().for_each(|[start, end, component]| sizes[*component as usize] += (end - start) as i32);
        sizes
    }
}

#[inline(always)]
fn for_each_bit(mut set: u64, mut f: impl FnMut(u32)) {
    while set != 0 {
        f(set.trailing_zeros());
        set &= set - 1;
    }
}

/// Neighbours in an earlier row: the offset in levels and rows, and the column offsets.
#[derive(Clone, Copy)]
struct EarlierNeighbours {
    level: isize,
    row: isize,
    columns: (i64, i64),
}

impl EarlierNeighbours {
    /// The earlier rows that contain neighbours of a pixel.
    fn of(how: Connectivity) -> Vec<EarlierNeighbours> {
        let mut all: Vec<EarlierNeighbours> = Vec::new();
        for [level, row, column] in how.before().filter(|[level, row, _]| [*level, *row] != [0, 0]) {
            let column = column as i64;
            match all.last_mut() {
                Some(last) if (last.level, last.row, last.columns.1 + 1) == (level, row, column) => {
                    last.columns.1 = column;
                }
                _ => all.push(EarlierNeighbours { level, row, columns: (column, column) }),
            }
        }
        all
    }

    /// The earlier row, counted over all levels, for pixels of `row`.
    fn at(self, row: usize, height: usize) -> Option<usize> {
        let level = (row / height).checked_add_signed(self.level)?;
        let y = (row % height).checked_add_signed(self.row).filter(|y| *y < height)?;
        Some(level * height + y)
    }
}

/// The labels of the pixels of an image of one channel.
fn label<T: Pixel>(image: TypedInput<'_, T>, how: Components, out: &mut [i32], threads: usize) {
    let shape = image.geometry.shape;
    // Neighbours are at most this many rows away.
    let unit = if shape.depth > 1 { shape.height } else { 1 };
    let rows = shape.depth * shape.height;
    let block = rows.div_ceil(threads.max(1)).max(GRAIN.div_ceil(shape.width)).next_multiple_of(unit);
    let extent = [shape.depth, shape.height, shape.width];
    by_blocks(&image.data[..shape.len()], extent, how, &mut out[..shape.len()], (unit, block), threads);
}

/// Labels pixels by blocks whose number of rows is a multiple of `unit`.
fn by_blocks<T: Pixel>(
    pixels: &[T],
    [depth, height, width]: [usize; 3],
    Components { neighbours: how, value }: Components,
    out: &mut [i32],
    (unit, block): (usize, usize),
    threads: usize,
) {
    let rows = depth * height;
    let above = EarlierNeighbours::of(how);
    let joined = |k: usize| {
        let own = k * block..rows.min((k + 1) * block);
        PixelRuns::joined(&pixels[own.start * width..own.end * width], own.start, [height, width], how)
    };
    let blocks = rows.div_ceil(block);
    let mut parts = parallel::map(threads, blocks, joined).into_iter();
    let Some(mut all) = parts.next() else { return };
    for part in parts {
        let before = all.runs.len();
        all.runs.extend(part.runs);
        all.rows.extend(part.rows[1..].iter().map(|end| before + end));
        all.parents.extend(part.parents.iter().map(|parent| before as u32 + parent));
    }
    for first in (block..rows).step_by(block) {
        for row in first..(first + unit).min(rows) {
            for by in &above {
                if let Some(other) = by.at(row, height).filter(|other| *other < first) {
                    all.join_rows(row, other, by.columns);
                }
            }
        }
    }
    let count = all.number(0);
    let values = match value {
        ComponentValue::Label => (1..=count as i32).collect(),
        ComponentValue::Size => all.sizes(count),
    };
    let grain = GRAIN.div_ceil(width);
    each_chunk(threads, out, grain * width, |k, out| {
        for (row, out) in (k * grain..).zip(out.chunks_exact_mut(width)) {
            out.fill(0);
            for i in all.row(row) {
                let PixelRun { start, end } = all.runs[i];
                out[start as usize..end as usize].fill(values[all.parents[i] as usize]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_testing::reference::components::components;

    /// Masks of patches, threads and noise.
    fn pictures(count: usize, width: usize) -> Vec<Vec<bool>> {
        let noise = |i: usize| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 100;
        let stripe = |i: usize| (i % width).is_multiple_of(2) || (i / width) % 7 == 6;
        let spiral = |i: usize| {
            let (y, x) = ((i / width).cast_signed() - 9, (i % width).cast_signed() - 11);
            y.abs().max(x.abs()) % 2 == 0 && !(y + x == 1 && y > 0)
        };
        let all: [&dyn Fn(usize) -> bool; 6] =
            [&|i| noise(i) < 45, &|i| noise(i) < 65, &|i| noise(i / 3) < 40, &stripe, &spiral, &|_| true];
        all.iter().map(|f| (0..count).map(f).collect()).collect()
    }

    #[test]
    fn blocks_do_not_change_labels() {
        let mut lines = [[[false; 3]; 3]; 3];
        lines[1][0][2] = true;
        lines[2][1][1] = true;
        let structures = [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS, Connectivity::new(lines)];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for extent @ [depth, height, width] in [[1, 31, 23], [1, 1, 40], [1, 40, 1], [1, 3, 200], [5, 9, 14], [6, 1, 9]]
        {
            for (k, there) in pictures(depth * height * width, width).into_iter().enumerate() {
                let pixels: Vec<u8> = there.iter().map(|there| u8::from(*there) * 255).collect();
                for how in structures {
                    let want = components(&there, extent, how);
                    let unit = if depth > 1 { height } else { 1 };
                    for blocks in 1..=7 {
                        let mut out = vec![7; there.len()];
                        let rows = (depth * height).div_ceil(blocks).next_multiple_of(unit);
                        pool.install(|| by_blocks(&pixels, extent, Components::labels(how), &mut out, (unit, rows), 3));
                        assert_eq!(out, want, "picture {k} of {extent:?}, {how:?}, {blocks} blocks");
                    }
                }
            }
        }
    }
}
