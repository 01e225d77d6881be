//! Connected components of runs of pixels.
//!
//! 1. Threads pack blocks of rows, or of levels, into bits, join runs that touch, and number the components of a block.
//! 2. Components of different blocks are joined along the first rows of blocks.
//! 3. The joined components are numbered.
//! 4. Threads write the labels or sizes of rows.
//!
//! Numbers follow the first runs of components, so the blocks do not affect labels.

use std::ops::Range;

use super::{CpuOperation, GRAIN, OperationOutput, TypedInput, each_chunk, out, type_of, view};
use crate::bits::{BITS, pack};
use crate::parallel;
use crate::versions::for_least_isa;
use horus_base::dispatch;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Components;
use horus_plan::ops::components::{ComponentValue, Connectivity};

impl CpuOperation for Components {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch!(type_of(inputs), T => write_components(*self, view::<T>(inputs, 0)?, out(output)?, to.threads));
        Ok(())
    }
}

/// The components of the pixels of an image of one channel.
fn write_components<T: Pixel>(of: Components, image: TypedInput<'_, T>, out: &mut [i32], threads: usize) {
    let shape = image.geometry.shape;
    let extent = [shape.height, shape.width];
    let block = block_rows(shape.depth * shape.height, shape.width, threads);
    let joined = JoinedBlocks::of(&image.data[..shape.len()], 0, extent, of.neighbours, block, threads);
    joined.write(of.value, shape.width, &mut out[..shape.len()], threads);
}

/// Rows of a block for a thread.
fn block_rows(rows: usize, width: usize, threads: usize) -> usize {
    rows.div_ceil(threads.max(1)).max(GRAIN.div_ceil(width))
}

/// Blocks of rows of an image, and their joined components.
struct JoinedBlocks {
    blocks: Vec<PixelRuns>,
    /// Rows of a block.
    block: usize,
    /// The component, from 0 on, that each component of the blocks is part of.
    components: Vec<u32>,
    count: u32,
}

impl JoinedBlocks {
    /// The components of rows from `start` on, counted over levels of `height` rows, among these rows.
    fn of<T: Pixel>(
        pixels: &[T],
        start: usize,
        [height, width]: [usize; 2],
        how: Connectivity,
        block: usize,
        threads: usize,
    ) -> JoinedBlocks {
        let rows = pixels.len() / width;
        let neighbours = EarlierNeighbours::of(how, height);
        let mut blocks = parallel::map(threads, rows.div_ceil(block), |k| {
            let (first, end) = (k * block, rows.min((k + 1) * block));
            PixelRuns::of(&pixels[first * width..end * width], width, start + first, &neighbours)
        });
        let mut components = 0;
        for runs in &mut blocks {
            runs.components_before = components;
            components += runs.count;
        }
        let mut components: Vec<u32> = (0..components).collect();
        // Neighbours are at most this many rows away.
        let reach = if start / height == (start + rows).saturating_sub(1) / height { 1 } else { height + 1 };
        for first in (block..rows).step_by(block) {
            for row in first..(first + reach).min(rows) {
                for (above, columns) in neighbours.rows(start + row) {
                    let Some(above) = above.checked_sub(start).filter(|above| *above < first) else { continue };
                    let row = (&blocks[row / block], row % block);
                    join_blocks(row, (&blocks[above / block], above % block), columns, &mut components);
                }
            }
        }
        let count = number(&mut components);
        JoinedBlocks { blocks, block, components, count }
    }

    /// The component of each run of a row, and its first pixel and the one after its last.
    fn runs(&self, row: usize, width: usize) -> impl Iterator<Item = [u32; 3]> {
        let (block, row) = (&self.blocks[row / self.block], row % self.block);
        let components = block.components[block.range(row).start as usize..].iter();
        let components = components.map(|k| self.components[(block.components_before + k) as usize]);
        block.row(row).columns(width as u32).into_iter().zip(components).map(|([start, end], k)| [start, end, k])
    }

    /// The number of pixels of each component.
    fn sizes(&self, width: usize, rows: usize) -> Vec<i32> {
        let mut sizes = vec![0; self.count as usize];
        for [start, end, component] in (0..rows).flat_map(|row| self.runs(row, width)) {
            sizes[component as usize] += (end - start) as i32;
        }
        sizes
    }

    /// Writes the values of pixels.
    fn write(&self, value: ComponentValue, width: usize, out: &mut [i32], threads: usize) {
        let values: Vec<i32> = match value {
            ComponentValue::Label => self.components.iter().map(|component| *component as i32 + 1).collect(),
            ComponentValue::Size => {
                let sizes = self.sizes(width, out.len() / width);
                self.components.iter().map(|component| sizes[*component as usize]).collect()
            }
        };
        write(&self.blocks, self.block, &values, width, out, threads);
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
        extent @ [_, width]: [usize; 2],
        how: Connectivity,
        threads: usize,
    ) -> ComponentRuns {
        let count = pixels.len() / width;
        let joined = JoinedBlocks::of(pixels, first, extent, how, block_rows(count, width, threads), threads);
        let mut found = ComponentRuns { rows: vec![0], runs: Vec::new(), count: joined.count as usize };
        for row in 0..count {
            found.runs.extend(joined.runs(row, width));
            found.rows.push(found.runs.len());
        }
        found
    }

    /// The number of pixels of each component.
    pub fn sizes(&self) -> Vec<i32> {
        let mut sizes = vec![0; self.count];
        self.runs.iter().for_each(|[start, end, component]| sizes[*component as usize] += (end - start) as i32);
        sizes
    }
}

/// The neighbours that precede a pixel.
struct EarlierNeighbours {
    /// Whether the pixel before it in its row is one. Otherwise runs are single pixels.
    in_row: bool,
    rows: Vec<RowNeighbours>,
    /// Rows of a level.
    height: usize,
}

/// Neighbours in an earlier row: the offset in levels and rows, and the column offsets.
struct RowNeighbours {
    level: isize,
    row: isize,
    columns: (i64, i64),
}

impl EarlierNeighbours {
    fn of(how: Connectivity, height: usize) -> EarlierNeighbours {
        let in_row = how.before().any(|by| by == [0, 0, -1]);
        let mut rows: Vec<RowNeighbours> = Vec::new();
        for [level, row, column] in how.before().filter(|[level, row, _]| [*level, *row] != [0, 0]) {
            let column = column as i64;
            match rows.last_mut() {
                // Single pixels touch one by one.
                Some(last) if in_row && (last.level, last.row, last.columns.1 + 1) == (level, row, column) => {
                    last.columns.1 = column;
                }
                _ => rows.push(RowNeighbours { level, row, columns: (column, column) }),
            }
        }
        EarlierNeighbours { in_row, rows, height }
    }

    /// The earlier rows with neighbours of pixels of `row`, and their columns. Rows are counted over all levels.
    fn rows(&self, row: usize) -> impl Iterator<Item = (usize, (i64, i64))> {
        let (level, y) = (row / self.height, row % self.height);
        self.rows.iter().filter_map(move |by| {
            let level = level.checked_add_signed(by.level)?;
            let y = y.checked_add_signed(by.row).filter(|y| *y < self.height)?;
            Some((level * self.height + y, by.columns))
        })
    }
}

/// Runs of consecutive pixels of a block of rows, in raster order, and their components.
struct PixelRuns {
    /// Pixels as bits; a row starts with a word.
    words: Vec<u64>,
    /// Words of a row.
    line: usize,
    /// Runs that start before each word, and the number of runs.
    before: Vec<u32>,
    /// The component of each run, numbered by their first runs.
    components: Vec<u32>,
    /// Number of components.
    count: u32,
    /// Components of the blocks before.
    components_before: u32,
    /// Whether consecutive pixels are a run.
    in_row: bool,
}

/// A row of runs.
#[derive(Clone, Copy)]
struct RunRow<'a> {
    words: &'a [u64],
    before: &'a [u32],
    in_row: bool,
}

impl RunRow<'_> {
    /// The first column of each run, and the one after its last.
    fn columns(self, width: u32) -> Vec<[u32; 2]> {
        let (mut runs, mut left, mut open) = (Vec::new(), LeftPixels::default(), None);
        for (k, word) in self.words.iter().enumerate() {
            let (x, before) = (BITS as u32 * k as u32, left.of(*word));
            if !self.in_row {
                for_each_bit(*word, |i| runs.push([x + i, x + i + 1]));
                continue;
            }
            // Pixels that differ from those to the left.
            for_each_bit(word ^ before, |i| match open.take() {
                None => open = Some(x + i),
                Some(start) => runs.push([start, x + i]),
            });
        }
        runs.extend(open.map(|start| [start, width]));
        runs
    }
}

impl PixelRuns {
    /// Finds the runs of rows of `width` pixels, the first of which is `first` in the image, and their components.
    fn of<T: Pixel>(pixels: &[T], width: usize, first: usize, neighbours: &EarlierNeighbours) -> PixelRuns {
        let line = width.div_ceil(BITS);
        let mut words = vec![0; pixels.len() / width * line];
        for (row, words) in pixels.chunks_exact(width).zip(words.chunks_exact_mut(line)) {
            pack(row, 0, words);
        }
        let (before, components) = (Vec::with_capacity(words.len() + 1), Vec::new());
        let in_row = neighbours.in_row;
        let mut runs = PixelRuns { words, line, before, components, count: 0, components_before: 0, in_row };
        join_rows(&mut runs, first, neighbours);
        runs
    }

    #[inline(always)]
    fn row(&self, row: usize) -> RunRow<'_> {
        let words = row * self.line..(row + 1) * self.line;
        RunRow { words: &self.words[words.clone()], before: &self.before[words], in_row: self.in_row }
    }

    /// The runs of a row.
    #[inline(always)]
    fn range(&self, row: usize) -> Range<u32> {
        self.before[row * self.line]..self.before[(row + 1) * self.line]
    }
}

for_least_isa! {
    /// Numbers runs, and joins those that touch to components.
    fn join_rows[][](runs: &mut PixelRuns, first: usize, neighbours: &EarlierNeighbours) as join_rows_body
}

#[inline(always)]
fn join_rows_body(runs: &mut PixelRuns, first: usize, neighbours: &EarlierNeighbours) {
    let (mut total, in_row) = (0, runs.in_row);
    for words in runs.words.chunks_exact(runs.line) {
        let mut left = LeftPixels::default();
        runs.before.extend(words.iter().map(|word| {
            let before = total;
            total += starts(*word, left.of(*word), in_row).count_ones();
            before
        }));
    }
    runs.before.push(total);
    let mut parents = Vec::with_capacity(total as usize);
    for row in 0..runs.words.len() / runs.line {
        let own = runs.range(row);
        if own.is_empty() {
            continue;
        }
        parents.extend(own);
        for (above, columns) in neighbours.rows(first + row) {
            let Some(above) = above.checked_sub(first) else { continue };
            // The last run, and its root.
            let mut last = (u32::MAX, 0);
            each_contact(runs.row(row), runs.row(above), columns, |i, j| {
                let from = if i == last.0 { last.1 } else { i };
                last = (i, join(&mut parents, from, j));
            });
        }
    }
    runs.count = number(&mut parents);
    runs.components = parents;
}

for_least_isa! {
    /// Joins the components that touch of a row of a block, and of an earlier row of another. `parents` has the
    /// components of all blocks.
    fn join_blocks[][](row: (&PixelRuns, usize), above: (&PixelRuns, usize), columns: (i64, i64), parents: &mut [u32]) as join_blocks_body
}

#[inline(always)]
fn join_blocks_body(
    (own, row): (&PixelRuns, usize),
    (other, above): (&PixelRuns, usize),
    columns: (i64, i64),
    parents: &mut [u32],
) {
    each_contact(own.row(row), other.row(above), columns, |i, j| {
        let component = |of: &PixelRuns, run: u32| of.components_before + of.components[run as usize];
        join(parents, component(own, i), component(other, j));
    });
}

/// The pixels to the left of those of the words of a row.
#[derive(Clone, Copy, Default)]
struct LeftPixels {
    /// The last pixel of the word before.
    carry: u64,
}

impl LeftPixels {
    #[inline(always)]
    fn of(&mut self, word: u64) -> u64 {
        let left = word << 1 | self.carry;
        self.carry = word >> (BITS - 1);
        left
    }
}

/// The first pixels of the runs of a word. `left` are the pixels to the left.
#[inline(always)]
fn starts(word: u64, left: u64, in_row: bool) -> u64 {
    if in_row { word & !left } else { word }
}

/// Calls `f` with each pair of touching runs of a row and of an earlier row, `above`. Neighbours of a pixel there are
/// `from` to `to` columns further right.
#[inline(always)]
fn each_contact(row: RunRow<'_>, above: RunRow<'_>, columns: (i64, i64), f: impl FnMut(u32, u32)) {
    // Faces and corners have loops of their own.
    match (row.in_row, columns) {
        (true, (0, 0)) => each_contact_in(row, above, true, (0, 0), f),
        (true, (-1, 1)) => each_contact_in(row, above, true, (-1, 1), f),
        _ => each_contact_in(row, above, row.in_row, columns, f),
    }
}

#[inline(always)]
fn each_contact_in(
    row: RunRow<'_>,
    above: RunRow<'_>,
    in_row: bool,
    (from, to): (i64, i64),
    mut f: impl FnMut(u32, u32),
) {
    let [to_left, to_same, to_right] = [-1, 0, 1].map(|by| if (from..=to).contains(&by) { u64::MAX } else { 0 });
    // The runs at a contact are the last that start there or before. A single pixel to the left starts before.
    let earlier = |column: u64| u32::from(!in_row && column != 0);
    let (own_earlier, other_earlier) = (earlier(to_right), earlier(to_left));
    let [mut a_left, mut b_left, mut touched] = [LeftPixels::default(); 3];
    let words = row.words.iter().zip(above.words);
    for ((a, b), (own, other)) in words.zip(row.before.iter().zip(above.before)) {
        let (a_left, b_left) = (a_left.of(*a), b_left.of(*b));
        let touching = (a & b & to_same) | (a & b_left & to_left) | (a_left & b & to_right);
        let (a_starts, b_starts) = (starts(*a, a_left, in_row), starts(*b, b_left, in_row));
        // The first pixel of each pair.
        for_each_bit(touching & (a_starts | b_starts | !touched.of(touching)), |i| {
            let until = u64::MAX >> (BITS as u32 - 1 - i);
            let own = own + (a_starts & until >> own_earlier).count_ones() - 1;
            f(own, other + (b_starts & until >> other_earlier).count_ones() - 1);
        });
    }
}

#[inline(always)]
fn for_each_bit(mut set: u64, mut f: impl FnMut(u32)) {
    while set != 0 {
        f(set.trailing_zeros());
        set &= set - 1;
    }
}

/// The root of `i` in a forest whose parents come first. Halves the path to it.
#[inline(always)]
fn root(parents: &mut [u32], mut i: u32) -> u32 {
    loop {
        let up = parents[i as usize];
        let further = parents[up as usize];
        if further == up {
            return up;
        }
        parents[i as usize] = further;
        i = further;
    }
}

/// Joins the trees of `i` and `j`. Returns their root.
#[inline(always)]
fn join(parents: &mut [u32], i: u32, j: u32) -> u32 {
    let (i, j) = (root(parents, i), root(parents, j));
    parents[i.max(j) as usize] = i.min(j);
    i.min(j)
}

/// Replaces parents by the numbers of their trees, in the order of roots. Returns the number of trees.
fn number(parents: &mut [u32]) -> u32 {
    let mut next = 0;
    for i in 0..parents.len() {
        // Parents come first: they have their number.
        let up = parents[i] as usize;
        let is_root = up == i;
        parents[i] = if is_root { next } else { parents[up] };
        next += u32::from(is_root);
    }
    next
}

/// Writes the values of pixels. `values` has those of the components of all blocks, which have `block` rows.
fn write(blocks: &[PixelRuns], block: usize, values: &[i32], width: usize, out: &mut [i32], threads: usize) {
    let grain = GRAIN.div_ceil(width);
    each_chunk(threads, out, grain * width, |k, out| {
        let mut of_runs = Vec::new();
        for (row, out) in (k * grain..).zip(out.chunks_exact_mut(width)) {
            let (runs, row) = (&blocks[row / block], row % block);
            let (first, range) = (runs.components_before, runs.range(row));
            let components = &runs.components[range.start as usize..range.end as usize];
            if components.is_empty() {
                out.fill(0);
                continue;
            }
            of_runs.clear();
            of_runs.push(0);
            of_runs.extend(components.iter().map(|component| values[(first + component) as usize]));
            of_runs.extend([0; LANES]);
            write_row(runs.row(row), &of_runs, out);
        }
    });
}

for_least_isa! {
    /// Writes a row. `labels` has the labels of its runs, one more before and `LANES` more after them.
    fn write_row[][](row: RunRow<'_>, labels: &[i32], out: &mut [i32]) as write_row_body
}

#[inline(always)]
fn write_row_body(row: RunRow<'_>, labels: &[i32], out: &mut [i32]) {
    let (mut run, mut left) = (0, LeftPixels::default());
    let (whole, rest) = out.as_chunks_mut::<BITS>();
    for (word, out) in row.words.iter().zip(whole) {
        run = write_word(*word, starts(*word, left.of(*word), row.in_row), labels, run, out);
    }
    if let (Some(word), false) = (row.words.last(), rest.is_empty()) {
        let mut pixels = [0; BITS];
        write_word(*word, starts(*word, left.of(*word), row.in_row), labels, run, &mut pixels);
        rest.copy_from_slice(&pixels[..rest.len()]);
    }
}

/// Writes the pixels of a word that has `run` runs before it. Returns the runs before the next word.
#[inline(always)]
fn write_word(word: u64, starts: u64, labels: &[i32], mut run: usize, out: &mut [i32; BITS]) -> usize {
    if starts == 0 && (word == 0 || word == u64::MAX) {
        *out = [if word == 0 { 0 } else { labels[run] }; BITS];
        return run;
    }
    for (k, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let (set, starts) = ((word >> (LANES * k)) as u8, (starts >> (LANES * k)) as u8);
        // The run of the first pixel.
        let first = run + usize::from(starts & 1);
        spread(set, &LATER_RUNS[usize::from(starts)], &labels[first..first + LANES], out);
        run += starts.count_ones() as usize;
    }
    run
}

/// Labels that are written at once.
const LANES: usize = 8;

/// By the starts of runs among `LANES` pixels: how many runs later than the first pixel each pixel is.
const LATER_RUNS: [[u8; LANES]; 256] = {
    let mut all = [[0; LANES]; 256];
    let mut starts = 0;
    while starts < 256 {
        let mut i = 1;
        while i < LANES {
            all[starts][i] = all[starts][i - 1] + (starts >> i & 1) as u8;
            i += 1;
        }
        starts += 1;
    }
    all
};

/// Writes `labels[of[i]]` to the pixels that are set, 0 to the others.
#[inline(always)]
fn spread(set: u8, of: &[u8; LANES], labels: &[i32], out: &mut [i32; LANES]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        let labels = &labels[..LANES];
        // SAFETY: eight bytes, eight labels and eight pixels, and kernels run with AVX2.
        unsafe {
            let of = _mm256_cvtepu8_epi32(_mm_loadl_epi64(of.as_ptr().cast()));
            let labels = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(labels.as_ptr().cast()), of);
            let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(i32::from(set)), bit), bit);
            _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_and_si256(labels, set));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (i, out) in out.iter_mut().enumerate() {
        *out = if set >> i & 1 == 1 { labels[usize::from(of[i])] } else { 0 };
    }
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

    /// Asserts that labels of any number of blocks are those of the definition.
    fn assert_labels(extent @ [depth, height, width]: [usize; 3], structures: &[Connectivity]) {
        for (k, there) in pictures(depth * height * width, width).into_iter().enumerate() {
            let pixels: Vec<u8> = there.iter().map(|there| u8::from(*there) * 255).collect();
            for how in structures {
                let want = components(&there, extent, *how);
                let mut sizes = vec![0; want.len() + 1];
                want.iter().for_each(|label| sizes[*label as usize] += i32::from(*label > 0));
                for blocks in 1..=7 {
                    let mut out = vec![7; there.len()];
                    let rows = (depth * height).div_ceil(blocks);
                    let joined = JoinedBlocks::of(&pixels, 0, [height, width], *how, rows, 3);
                    joined.write(ComponentValue::Label, width, &mut out, 3);
                    assert!(out == want, "picture {k} of {extent:?}, {how:?}, {blocks} blocks");
                    joined.write(ComponentValue::Size, width, &mut out, 3);
                    let differs = out.iter().zip(&want).any(|(size, label)| *size != sizes[*label as usize]);
                    assert!(!differs, "sizes of picture {k} of {extent:?}, {how:?}, {blocks} blocks");
                }
            }
        }
    }

    #[test]
    fn blocks_do_not_change_labels() {
        let mut lines = [[[false; 3]; 3]; 3];
        lines[1][0][2] = true;
        lines[2][1][1] = true;
        let structures = [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS, Connectivity::new(lines)];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for extent in [[1, 31, 23], [1, 1, 40], [1, 40, 1], [1, 9, 63], [1, 9, 64], [1, 9, 65], [1, 3, 200]] {
            pool.install(|| assert_labels(extent, &structures));
        }
        for extent in [[5, 9, 14], [6, 1, 9], [3, 4, 129]] {
            pool.install(|| assert_labels(extent, &structures));
        }
    }

    #[test]
    fn any_neighbours_define_components() {
        // Neighbours in the row, and the three in the row above.
        let structures: Vec<Connectivity> = (0..16)
            .map(|bits| {
                let mut structure = [[[false; 3]; 3]; 3];
                structure[1][1][0] = bits & 1 != 0;
                structure[1][0] = [2, 4, 8].map(|bit| bits & bit != 0);
                Connectivity::new(structure)
            })
            .collect();
        for extent in [[1, 31, 23], [1, 9, 64], [1, 7, 130]] {
            assert_labels(extent, &structures);
        }
    }

    #[test]
    fn pixels_other_than_zero_are_set() {
        let pixels = [0.0, f32::NAN, -0.0, f32::MIN_POSITIVE / 2.0, -1.0, 0.0, f32::INFINITY];
        let mut out = [7; 7];
        let joined = JoinedBlocks::of(&pixels, 0, [1, 7], Connectivity::FACES, 1, 1);
        joined.write(ComponentValue::Label, 7, &mut out, 1);
        assert_eq!(out, [0, 1, 0, 2, 2, 0, 3]);
    }
}
