//! Smallest and largest pixels under windows of any shape.
//!
//! Windows are rectangles, or runs of pixels in rows. The extremes of four neighbours, of sixteen
//! and so on are computed along rows (and columns, for a rectangle), and some of them that overlap
//! cover each run. Steps of four take fewer passes through the cache than steps of two. One
//! function, [`join`], visits the pixels.
//!
//! An extreme is the first in the order of the offsets. The first extreme of windows that overlap,
//! compared in order, is that of their union: the bits equal those of a scan, pixel by pixel. NaNs
//! count as the identity, with which every extreme starts.

use std::cell::RefCell;

use super::vector::*;
use crate::cpu::patch::Patch;
use crate::cpu::plane::Tile;
use crate::cpu::simd::Isa;
use horus_base::dtype::{DType, Pixel};
use horus_plan::ops::neighbourhood::{Combine, Generalized, Reach, Reduce};

/// Pixels under a window, from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    y: usize,
    x: usize,
    len: usize,
}

#[derive(Debug)]
enum Window {
    /// Rows and columns from a corner `(y, x)` on; of equal pixels, the first one is that of the
    /// first row, or column.
    Rectangle {
        corner: (usize, usize),
        size: (usize, usize),
        by_columns: bool,
    },
    Runs(Vec<Run>),
}

/// A generalized convolution that is a smallest or largest pixel, prepared for tiles.
pub(super) struct Extremes {
    window: Window,
    reach: Reach,
    order: Order,
    dtype: DType,
}

/// Runs of offsets that follow each other.
fn runs(offsets: &[(usize, usize)]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for &(y, x) in offsets {
        match runs.last_mut() {
            Some(run) if (run.y, run.x + run.len) == (y, x) => run.len += 1,
            _ => runs.push(Run { y, x, len: 1 }),
        }
    }
    runs
}

/// The corner and the size of runs that are a rectangle.
fn rectangle(runs: &[Run]) -> Option<((usize, usize), (usize, usize))> {
    let first = runs.first()?;
    let regular = runs.iter().zip(first.y..).all(|(run, y)| *run == Run { y, ..*first });
    regular.then_some(((first.y, first.x), (runs.len(), first.len)))
}

fn turned((y, x): (usize, usize)) -> (usize, usize) {
    (x, y)
}

impl Window {
    fn of(g: &Generalized, dtype: DType) -> Window {
        let reach = g.window.reach();
        let inside = |at: isize, before: usize| (at + before.cast_signed()).cast_unsigned();
        let inside = |(y, x): (isize, isize)| (inside(y, reach.up), inside(x, reach.left));
        let mut offsets: Vec<(usize, usize)> = g.window.offsets().into_iter().map(inside).collect();
        if !dtype.is_float() {
            // Equal integers have equal bits, so that their order does not matter.
            offsets.sort_unstable();
            offsets.dedup();
        }
        let rows = runs(&offsets);
        if let Some((corner, size)) = rectangle(&rows) {
            return Window::Rectangle { corner, size, by_columns: false };
        }
        offsets.iter_mut().for_each(|offset| *offset = turned(*offset));
        match rectangle(&runs(&offsets)) {
            Some((corner, size)) => Window::Rectangle { corner: turned(corner), size: turned(size), by_columns: true },
            None => Window::Runs(rows),
        }
    }
}

/// Memory of intermediate results.
#[derive(Default)]
struct Scratch {
    buffers: Vec<Vec<u64>>,
}

thread_local! {
    /// Reused by later tiles.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Scratch {
    /// Rows for results, with unspecified contents; another index is other memory.
    fn rows(&mut self, index: usize, rows: usize, bytes: usize) -> View {
        if self.buffers.len() <= index {
            self.buffers.resize_with(index + 1, Vec::new);
        }
        // Not a power of two, which would make rows compete for the same lines of the cache.
        let stride = bytes.next_multiple_of(64) + 64;
        let buffer = &mut self.buffers[index];
        buffer.reserve((rows * stride).div_ceil(size_of::<u64>()));
        View { at: buffer.as_mut_ptr().cast(), stride }
    }
}

/// An axis of a window.
#[derive(Clone, Copy, PartialEq)]
enum Along {
    Row,
    Column,
}

impl Extremes {
    /// The preparation of `g` for pixels of type `dtype`; `None` if it is no smallest or largest
    /// pixel.
    pub(super) fn of(g: &Generalized, dtype: DType) -> Option<Extremes> {
        let reversed = match (g.combine, g.reduce) {
            (Combine::Pixel, Reduce::Min) => false,
            (Combine::Pixel, Reduce::Max) => true,
            _ => return None,
        };
        let order = Order::of(dtype, reversed);
        Some(Extremes { window: Window::of(g, dtype), reach: g.window.reach(), order, dtype })
    }

    /// Computes the extremes of a tile.
    pub(super) fn compute<T: Pixel>(&self, isa: Isa, patch: &Patch<'_, T>, tile: &mut Tile<'_, T>) {
        let (rows, n, size) = (tile.rows.len(), tile.cols.len(), size_of::<T>());
        let Reach { up, down, left, right } = self.reach;
        let (all_rows, all) = (rows + up + down, n + left + right);
        let (image, out) = (View::around(patch, tile, self.reach), View::of(tile));
        SCRATCH.with_borrow_mut(|scratch| {
            let work = Work { of: self, isa, size, scratch, next: 0 };
            work.tile(image, (all_rows, all), out, (rows, n));
        });
    }
}

/// A tile being computed.
struct Work<'a> {
    of: &'a Extremes,
    isa: Isa,
    /// Bytes of a pixel.
    size: usize,
    scratch: &'a mut Scratch,
    /// The memory that the latest result is not in.
    next: usize,
}

impl Work<'_> {
    /// Computes the tile `out` of `rows` rows of `n` pixels, from `all` pixels around it in each of
    /// `all_rows` rows.
    fn tile(mut self, image: View, all: (usize, usize), out: View, (rows, n): (usize, usize)) {
        match self.of.window {
            Window::Rectangle { corner, size: (tall, wide), by_columns } => {
                let from = image.from(corner.0, corner.1 * self.size);
                if tall == 1 {
                    self.windows(from, Along::Row, wide, Some(out), (rows, n));
                } else if wide == 1 {
                    self.windows(from, Along::Column, tall, Some(out), (rows, n));
                } else if by_columns {
                    let columns = self.windows(from, Along::Column, tall, None, (rows, n + wide - 1));
                    self.windows(columns, Along::Row, wide, Some(out), (rows, n));
                } else {
                    let lines = self.windows(from, Along::Row, wide, None, (rows + tall - 1, n));
                    self.windows(lines, Along::Column, tall, Some(out), (rows, n));
                }
            }
            Window::Runs(ref runs) => self.footprint(image, runs, all, out, (rows, n)),
        }
    }

    /// Extremes of `k` pixels along an axis, from those of `from` on, for `rows` rows of `n`
    /// pixels: in `out`, or in scratch.
    fn windows(&mut self, from: View, along: Along, k: usize, out: Option<View>, (rows, n): (usize, usize)) -> View {
        let size = self.size;
        let at = |from: View, i: usize| match along {
            Along::Row => from.from(0, i * size),
            Along::Column => from.from(i, 0),
        };
        let (mut of, mut held) = (1, from);
        while k > 4 * of {
            let more = k - 4 * of;
            let extent = if along == Along::Row { (rows, n + more) } else { (rows + more, n) };
            held = self.join(&mut std::array::from_fn::<_, 4, _>(|i| at(held, i * of)), None, extent);
            of *= 4;
        }
        let mut sources: Vec<View> = (0..k.div_ceil(of)).map(|i| at(held, (i * of).min(k - of))).collect();
        self.join(&mut sources, out, (rows, n))
    }

    /// Extremes under runs of an image of `all` pixels in each of `all_rows` rows.
    fn footprint(
        &mut self,
        image: View,
        runs: &[Run],
        (all_rows, all): (usize, usize),
        out: View,
        extent: (usize, usize),
    ) {
        let longest = runs.iter().map(|run| run.len).max().unwrap_or(0);
        let mut levels = vec![(1, image)];
        let mut of = 1;
        while longest > 4 * of {
            let held = levels[levels.len() - 1].1;
            let mut sources: [View; 4] = std::array::from_fn(|i| held.from(0, i * of * self.size));
            of *= 4;
            let n = all + 1 - of;
            let to = self.scratch.rows(levels.len(), all_rows, n * self.size);
            self.join(&mut sources, Some(to), (all_rows, n));
            levels.push((of, to));
        }
        let mut sources = Vec::new();
        for run in runs {
            let (of, held) = levels.iter().rev().find(|(of, _)| *of <= run.len).copied().unwrap_or((1, image));
            let windows = (0..run.len.div_ceil(of)).map(|i| run.x + (i * of).min(run.len - of));
            sources.extend(windows.map(|x| held.from(run.y, x * self.size)));
        }
        self.join(&mut sources, Some(out), extent);
    }

    fn join(&mut self, sources: &mut [View], out: Option<View>, (rows, n): (usize, usize)) -> View {
        let bytes = n * self.size;
        let out = out.unwrap_or_else(|| {
            self.next = 1 - self.next;
            self.scratch.rows(1 - self.next, rows, bytes)
        });
        // SAFETY: windows stay within the rows that the patch holds, and scratch and tile have room
        // for these rows; sources are not written to.
        unsafe { join(self.isa, self.of.dtype, Join { sources, out, rows, bytes, order: &self.of.order }) }
        out
    }
}

/// Extremes of pixels in equal places of several images, for rows of `bytes` bytes.
struct Join<'a> {
    /// The first rows; moved to the next ones.
    sources: &'a mut [View],
    out: View,
    rows: usize,
    bytes: usize,
    order: &'a Order,
}

/// # Safety
/// Sources and output have as many rows, of pixels of type `dtype`; the output is apart from the
/// sources. The machine has the instruction set.
unsafe fn join(isa: Isa, dtype: DType, job: Join<'_>) {
    macro_rules! run {
        ($compiled:ident, $v:ty, $t:ident) => {
            // SAFETY: the caller's.
            unsafe { $compiled::<$v, Single<$t>>(job) }
        };
    }
    with_vectors!(isa, dtype, run);
}

macro_rules! compiled {
    ($name:ident $(, $features:literal)?) => {
        /// # Safety
        /// As for [`join`]; the vectors are of this instruction set.
        $(#[target_feature(enable = $features)])?
        unsafe fn $name<V: Vector, P: Vector>(job: Join<'_>) {
            // SAFETY: the caller's.
            unsafe { if job.bytes < V::BYTES { joined::<P>(job) } else { joined::<V>(job) } }
        }
    };
}
#[cfg(target_arch = "x86_64")]
compiled!(avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled!(avx2, "avx2,fma");
#[cfg(not(target_arch = "x86_64"))]
compiled!(portable);

/// # Safety
/// As for [`join`]; rows are no shorter than a vector.
#[inline(always)]
unsafe fn joined<V: Vector>(Join { sources, mut out, rows, bytes, order }: Join<'_>) {
    /// Vectors that are computed together.
    const TOGETHER: usize = 4;
    // SAFETY: vectors start within rows, as far from their end as they are long.
    unsafe {
        let (flip, last) = (V::load(order.flip()), V::load(order.last()));
        for _ in 0..rows {
            let mut x = 0;
            while x + TOGETHER * V::BYTES <= bytes {
                let mut least = [last; TOGETHER];
                for source in &*sources {
                    for (k, least) in least.iter_mut().enumerate() {
                        let pixels = V::load(source.at.add(x + k * V::BYTES));
                        *least = V::min(*least, V::xor(pixels, flip));
                    }
                }
                for (k, least) in least.into_iter().enumerate() {
                    V::xor(least, flip).store(out.at.add(x + k * V::BYTES));
                }
                x += TOGETHER * V::BYTES;
            }
            while x < bytes {
                // The last vector overlaps the one before.
                let at = x.min(bytes - V::BYTES);
                let mut least = last;
                for source in &*sources {
                    least = V::min(least, V::xor(V::load(source.at.add(at)), flip));
                }
                V::xor(least, flip).store(out.at.add(at));
                x += V::BYTES;
            }
            sources.iter_mut().for_each(|source| *source = source.from(1, 0));
            out = out.from(1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::plane::whole;
    use horus_base::shape::Window as Rows;
    use horus_plan::ops::neighbourhood::Filter;
    use horus_testing::for_each_type;
    use horus_testing::pixels::{assert_same, borders, noise};

    /// Lengths around the boundaries of steps of four.
    const LENGTHS: [usize; 14] = [1, 2, 3, 4, 5, 8, 9, 13, 16, 17, 48, 63, 65, 80];

    type Offsets = Vec<(i32, i32)>;

    /// Rectangles of many sizes, row by row or column by column, and other windows.
    fn windows() -> Vec<Offsets> {
        let mut all: Vec<Offsets> = Vec::new();
        for (i, tall) in LENGTHS.into_iter().enumerate() {
            let wide = LENGTHS[(5 * i + 3) % LENGTHS.len()];
            let (up, left) = ((tall / 3) as i32, (wide - 1 - wide / 3) as i32);
            let (rows, columns) = (-up..tall as i32 - up, -left..wide as i32 - left);
            all.push(rows.clone().flat_map(|y| columns.clone().map(move |x| (y, x))).collect());
            all.push(columns.flat_map(|x| rows.clone().map(move |y| (y, x))).collect());
        }
        let disc = |r: i32| {
            (-r..=r).flat_map(move |y| (-r..=r).map(move |x| (y, x))).filter(move |(y, x)| y * y + x * x <= r * r)
        };
        all.extend([disc(1).collect(), disc(4).collect(), disc(11).collect(), disc(5).rev().collect()]);
        all.push(disc(3).chain(disc(2)).chain([(9, -7), (9, -6), (5, 12)]).collect());
        all.push((4..30).map(|x| (3, x)).collect());
        all.push(vec![(-4, 30)]);
        all
    }

    fn extremes_follow_the_definition<T: Pixel>() {
        for (i, offsets) in windows().into_iter().enumerate() {
            let (h, w) = [(23, 70), (7, 150), (40, 20)][i % 3];
            let image = noise::<T>(h * w, i as u64, true);
            let plane = whole(&image, h, w);
            let border = borders()[i % borders().len()];
            for reduce in [Reduce::Min, Reduce::Max] {
                let window = Filter::sparse(offsets.clone(), vec![0.0; offsets.len()]);
                let g = Generalized { window, combine: Combine::Pixel, reduce };
                let extremes = Extremes::of(&g, T::DTYPE).expect("an extreme");
                let mut copy = Vec::new();
                let patch = Patch::around(&plane, Rows::whole(h), &(0..w), g.window.reach(), border, &mut copy);
                let further = |a: T, b: T| if reduce == Reduce::Min { b < a } else { b > a };
                let identity = if reduce == Reduce::Min { T::HIGHEST } else { T::LOWEST };
                let under = |i: usize| {
                    let at = |dy: i32, dx: i32| {
                        plane.pixel((i / w) as isize + dy as isize, (i % w) as isize + dx as isize, border)
                    };
                    let pixels = offsets.iter().map(|&(dy, dx)| at(dy, dx));
                    pixels.fold(identity, |a, b| if further(a, b) { b } else { a })
                };
                let want: Vec<T> = (0..h * w).map(under).collect();
                for isa in Isa::available() {
                    let mut out = vec![T::ONE; h * w];
                    let mut tile = Tile { out: &mut out, stride: w, rows: Rows::whole(h), cols: 0..w };
                    extremes.compute(isa, &patch, &mut tile);
                    assert_same(&out, &want, &format!("{reduce:?} window {i} {} {border} {isa:?}", T::DTYPE));
                }
            }
        }
    }

    #[test]
    fn extremes_follow_the_definition_for_every_type() {
        for_each_type!(extremes_follow_the_definition);
    }

    #[test]
    fn rectangles_are_recognised() {
        let rectangle = |offsets: Offsets, dtype| {
            let window = Filter::sparse(offsets.clone(), vec![0.0; offsets.len()]);
            match Window::of(&Generalized { window, combine: Combine::Pixel, reduce: Reduce::Max }, dtype) {
                Window::Rectangle { size, by_columns, .. } => Some((size, by_columns)),
                Window::Runs(_) => None,
            }
        };
        let by_rows: Offsets = vec![(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)];
        let by_columns: Offsets = vec![(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)];
        assert_eq!(rectangle(by_rows, DType::F32), Some(((3, 2), false)));
        assert_eq!(rectangle(by_columns.clone(), DType::F32), Some(((3, 2), true)));
        assert_eq!(rectangle(by_columns.clone(), DType::I8), Some(((3, 2), false)));
        let backwards: Offsets = by_columns.into_iter().rev().collect();
        assert_eq!(rectangle(backwards.clone(), DType::F64), None, "zeros of either sign");
        assert_eq!(rectangle(backwards, DType::U16), Some(((3, 2), false)));
    }
}
