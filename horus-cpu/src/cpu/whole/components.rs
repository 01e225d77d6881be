//! Connected components: a forest of pixels whose roots are the first of each component.
//!
//! Threads join the pixels within blocks of rows, or of levels; the blocks are then joined with
//! each other along their first rows. The root of a component is its first pixel, whatever the
//! blocks.

use rayon::prelude::*;

use super::{GRAIN, View, each_chunk};
use horus_base::dtype::Pixel;
use horus_plan::ops::components::Connectivity;

/// Parent of background pixels. Values below it number a root.
const BACKGROUND: i32 = -1;

/// Parents of a range of pixels: the index of an earlier pixel of the same component, or the
/// pixel's own.
struct Forest<'a> {
    parents: &'a mut [i32],
    base: usize,
}

impl Forest<'_> {
    fn there(&self, i: usize) -> bool {
        self.parents[i - self.base] != BACKGROUND
    }

    /// The root of pixel `i`; compresses the path to it.
    fn root(&mut self, mut i: usize) -> usize {
        loop {
            let up = self.parents[i - self.base];
            let further = self.parents[up as usize - self.base];
            if further == up {
                return up as usize;
            }
            self.parents[i - self.base] = further;
            i = further as usize;
        }
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parents[a.max(b) - self.base] = a.min(b) as i32;
        }
    }
}

/// Neighbours that precede a pixel in raster order.
struct Neighbours {
    offsets: Vec<[isize; 3]>,
    /// The pixel to the left is a neighbour.
    left: bool,
    height: usize,
    width: usize,
}

impl Neighbours {
    /// Joins the pixels of row `row` (of all rows of all levels) with their preceding neighbours
    /// among the pixels of a forest; only those before pixel `end`.
    fn join_row(&self, forest: &mut Forest<'_>, row: usize, end: usize) {
        let (width, first) = (self.width, row * self.width);
        let (z, y) = (row / self.height, row % self.height);
        // First pixel of the row of each neighbour, and its column offset.
        let above = self.offsets.iter().filter_map(|&[dz, dy, dx]| {
            let (z, y) = (z.checked_add_signed(dz)?, y.checked_add_signed(dy).filter(|y| *y < self.height)?);
            let start = (z * self.height + y) * width;
            (start >= forest.base && start < end && start != first).then_some((start, dx))
        });
        let above: Vec<(usize, isize)> = above.collect();
        let within = self.left && first < end;
        let mut left = false;
        for x in 0..width {
            let i = first + x;
            if !forest.there(i) {
                left = false;
                continue;
            }
            if left && within {
                forest.join(i, i - 1);
            }
            for &(start, dx) in &above {
                let Some(column) = x.checked_add_signed(dx).filter(|column| *column < width) else { continue };
                let other = start + column;
                // The neighbour beside both has joined the left neighbours already.
                let joined = left && self.left && column > 0 && forest.there(other - 1);
                if forest.there(other) && !joined {
                    forest.join(i, other);
                }
            }
            left = true;
        }
    }
}

/// The labels of the pixels of an image of one channel.
pub(super) fn label<T: Pixel>(image: View<'_, T>, how: Connectivity, out: &mut [i32], threads: usize) {
    let shape = image.geometry.shape;
    let mut parents = vec![BACKGROUND; shape.len()];
    each_chunk(threads, &mut parents, GRAIN, |k, parents| {
        let first = k * GRAIN;
        let pixels = image.data[first..].iter();
        for ((i, parent), _) in (first..).zip(parents).zip(pixels).filter(|(_, v)| **v != T::ZERO) {
            *parent = i as i32;
        }
    });
    let offsets: Vec<[isize; 3]> = how.before().collect();
    let left = offsets.contains(&[0, 0, -1]);
    let neighbours = Neighbours { offsets, left, height: shape.height, width: shape.width };
    // Neighbours are at most this many rows away.
    let unit = if shape.depth > 1 { shape.height } else { 1 };
    let rows = shape.depth * shape.height;
    let block = rows.div_ceil(threads.max(1)).max(GRAIN.div_ceil(shape.width)).next_multiple_of(unit);
    number(&neighbours, &mut parents, out, (unit, block), threads);
}

/// Joins the pixels of a forest, in blocks of a number of rows that is a multiple of a unit, and
/// numbers its roots.
fn number(
    neighbours: &Neighbours,
    parents: &mut [i32],
    out: &mut [i32],
    (unit, block): (usize, usize),
    threads: usize,
) {
    let rows = parents.len() / neighbours.width;
    let pixels = block * neighbours.width;
    each_chunk(threads, parents, pixels, |k, parents| {
        let (first, count) = (k * block, parents.len() / neighbours.width);
        let end = k * pixels + parents.len();
        let mut forest = Forest { parents, base: k * pixels };
        (first..first + count).for_each(|row| neighbours.join_row(&mut forest, row, end));
    });
    let mut forest = Forest { parents, base: 0 };
    for first in (block..rows).step_by(block) {
        (first..(first + unit).min(rows))
            .for_each(|row| neighbours.join_row(&mut forest, row, first * neighbours.width));
    }
    // Roots become numbers below that of the background.
    let roots = |(k, block): (usize, &[i32])| {
        let own = (k * GRAIN..).zip(block);
        own.filter(|(i, parent)| **parent == *i as i32).count()
    };
    let counts: Vec<usize> = match threads {
        1 => parents.chunks(GRAIN).enumerate().map(roots).collect(),
        _ => parents.par_chunks(GRAIN).enumerate().map(roots).collect(),
    };
    let sums = counts.iter().scan(0, |sum, n| Some(std::mem::replace(sum, *sum + n)));
    let before: Vec<usize> = sums.collect();
    each_chunk(threads, parents, GRAIN, |k, parents| {
        let mut label = BACKGROUND - before[k] as i32;
        for (_, parent) in (k * GRAIN..).zip(parents).filter(|(i, parent)| **parent == *i as i32) {
            label -= 1;
            *parent = label;
        }
    });
    let parents = &*parents;
    each_chunk(threads, &mut out[..parents.len()], GRAIN, |k, out| {
        for (out, parent) in out.iter_mut().zip(&parents[k * GRAIN..]) {
            let mut at = *parent;
            while at >= 0 {
                at = parents[at as usize];
            }
            *out = BACKGROUND - at;
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
        for extent @ [depth, height, width] in [[1, 31, 23], [1, 1, 40], [1, 40, 1], [5, 9, 14], [6, 1, 9]] {
            for (k, there) in pictures(depth * height * width, width).into_iter().enumerate() {
                for how in structures {
                    let want = components(&there, extent, how);
                    let offsets: Vec<[isize; 3]> = how.before().collect();
                    let left = offsets.contains(&[0, 0, -1]);
                    let neighbours = Neighbours { offsets, left, height, width };
                    let unit = if depth > 1 { height } else { 1 };
                    for blocks in 1..=7 {
                        let parent = |(i, there): (usize, &bool)| if *there { i as i32 } else { BACKGROUND };
                        let mut parents: Vec<i32> = there.iter().enumerate().map(parent).collect();
                        let mut out = vec![7; parents.len()];
                        let rows = (depth * height).div_ceil(blocks).next_multiple_of(unit);
                        pool.install(|| number(&neighbours, &mut parents, &mut out, (unit, rows), 3));
                        assert_eq!(out, want, "picture {k} of {extent:?}, {how:?}, {blocks} blocks");
                    }
                }
            }
        }
    }
}
