//! Erosions and dilations whose pixels are compared with 0: 64 pixels in a word, all iterations of a block before its
//! bytes are written.
//!
//! An erosion (`min != 0`) sets a pixel if all pixels under the window are set, a dilation (`max != 0`) if any is. Rows
//! of a window with the same columns share their result along rows.

use std::cell::RefCell;
use std::ops::Range;

use super::bits::{BITS, pack, unpack};
use super::parallel;
use super::versions::for_least_isa;
use horus_base::dtype::{DType, Pixel, Scalar};
use horus_base::shape::{Border, Window};
use horus_host::buffer::HostBuffer;
use horus_host::device::{Geometry, LaunchInput};
use horus_plan::ir::kernel::{Instr, InstrOp, LeafOp, MapKernel, Val};
use horus_plan::ops::neighbourhood::{Combine, Generalized, OrderFilter, Reduce};
use horus_plan::ops::pixel::PixelOp;

/// Bytes of a block's bits that fit the second-level cache. A block is larger if a window or iterations reach many rows.
const CACHED: usize = 256 << 10;
/// A block may be this many times as tall as the rows around it, which neighbouring blocks compute twice, even if its bits
/// exceed the cache.
const TALL: usize = 8;
/// Maximum number of bytes of a block's bits, on each thread.
const MOST: usize = 8 << 20;
/// Planes of bits of a block: before an iteration, along rows, and after it.
const PLANES: usize = 3;

/// Consecutive columns of a window: the offset of the first, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ColumnRun {
    first: isize,
    count: usize,
}

/// An erosion, or a dilation, of a mask with a constant border.
#[derive(Debug)]
pub(super) struct MaskFilter {
    /// The input of the kernel.
    input: usize,
    /// A dilation.
    grows: bool,
    /// All bits of a word beyond the edges.
    outside: u64,
    /// Rows above and below that the window reaches.
    reach: (usize, usize),
    /// Columns of the window, and the offsets of the rows that have them.
    parts: Vec<(ColumnRun, Vec<isize>)>,
}

impl MaskFilter {
    /// The filter that a kernel is; `None` if it is no such filter.
    pub(super) fn of(kernel: &MapKernel, inputs: &[DType]) -> Option<MaskFilter> {
        let Val::Instr(i) = kernel.result.filter(|_| kernel.additional_results.is_empty() && !kernel.woven)? else {
            return None;
        };
        let Instr { op: InstrOp::Pixel(PixelOp::Ne), args, .. } = &kernel.code[i] else { return None };
        let &[Val::Leaf(leaf), Val::Const(Scalar::U8(0))] = &args[..] else { return None };
        let LeafOp::OrderFilter(input, OrderFilter::Fold(how), border) = &kernel.leaves[leaf].op else { return None };
        if inputs[*input] != DType::U8 {
            return None;
        }
        MaskFilter::new(*input, how, *border)
    }

    /// The filter of an input whose results are compared with 0; `None` if it has another form.
    fn new(input: usize, how: &Generalized, border: Border) -> Option<MaskFilter> {
        let Generalized { window, combine: Combine::Pixel, reduce } = how else { return None };
        let grows = match reduce {
            Reduce::Min => false,
            Reduce::Max => true,
            Reduce::Sum | Reduce::Product => return None,
        };
        let outside = if u8::from_f64(border.constant()?) == 0 { 0 } else { u64::MAX };
        let reach = window.reach();
        if reach.left.max(reach.right) >= BITS {
            return None;
        }
        let mut offsets = window.offsets();
        offsets.sort_unstable();
        offsets.dedup();
        let mut runs: Vec<(isize, ColumnRun)> = Vec::new();
        for (y, x) in offsets {
            match runs.last_mut() {
                Some((row, run)) if (*row, run.first + run.count.cast_signed()) == (y, x) => run.count += 1,
                _ => runs.push((y, ColumnRun { first: x, count: 1 })),
            }
        }
        let mut parts: Vec<(ColumnRun, Vec<isize>)> = Vec::new();
        for (y, run) in runs {
            match parts.iter_mut().find(|(known, _)| *known == run) {
                Some((_, rows)) => rows.push(y),
                None => parts.push((run, vec![y])),
            }
        }
        Some(MaskFilter { input, grows, outside, reach: (reach.up, reach.down), parts })
    }

    /// Applies the filter a number of times. Returns `false` if nothing was done: pixels have several samples, memory is
    /// not the host's, or too many bits are read for a row.
    pub(super) fn launch(
        &self,
        inputs: &[LaunchInput<'_>],
        output: &mut [u8],
        (geometry, rows): (Geometry, Window),
        iterations: usize,
        threads: usize,
    ) -> bool {
        let LaunchInput { memory, geometry: of } = inputs[self.input];
        let Some(from) = memory.host().map(HostBuffer::bytes).filter(|_| of.shape.samples == 1) else { return false };
        let (width, planes) = (geometry.shape.width, geometry.shape.planes());
        // Rows of neighbouring blocks that are computed by both.
        let around = iterations * (self.reach.0 + self.reach.1);
        let row = PLANES * (width.div_ceil(BITS) + 2) * size_of::<u64>();
        let most = (CACHED / row).max(TALL * around).max(1).min((MOST / row).saturating_sub(around));
        if most < around.max(1) {
            return false;
        }
        // Planes are divided unless there are several for each thread.
        let n = if planes >= 4 * threads { rows.len() } else { rows.len().div_ceil(threads.max(1)) }.min(most);
        let first = geometry.row(0, rows.start);
        let mut blocks = Vec::new();
        for (c, plane) in output.chunks_mut(geometry.plane()).enumerate().take(planes) {
            let out = plane[first..][..rows.len() * width].chunks_mut(n * width);
            blocks.extend((rows.start..).step_by(n).zip(out).map(|(y, out)| (c, y, out)));
        }
        parallel::for_each(threads, blocks, |(c, y, out)| self.block(from, (&of, c), y, out, iterations));
        true
    }

    /// Writes rows of plane `c` from row `y` on.
    fn block(&self, from: &[u8], (of, c): (&Geometry, usize), y: isize, out: &mut [u8], iterations: usize) {
        let (width, height) = (of.shape.width, of.shape.height);
        let rows = Window::new(y, y + (out.len() / width).cast_signed());
        // Rows that are read before so many further iterations.
        let before = |left: usize| rows.grown(self.reach.0 * left, self.reach.1 * left);
        let all = before(iterations);
        let words = width.div_ceil(BITS);
        let stride = words + 2;
        let at = |y: isize| (y - all.start).cast_unsigned() * stride;
        SCRATCH.with_borrow_mut(|scratch| {
            let plane = all.len() * stride;
            scratch.clear();
            scratch.resize(PLANES * plane, self.outside);
            let (mut current, rest) = scratch.split_at_mut(plane);
            let (mut next, along) = rest.split_at_mut(plane);
            let inside = all.clipped(height);
            for y in inside.start..inside.end {
                pack(&from[of.row(c, y)..][..width], self.outside, &mut current[at(y) + 1..][..words]);
            }
            for left in (0..iterations).rev() {
                let (read, written) = (before(left + 1), before(left).clipped(height));
                let read = at(read.start)..at(read.end);
                let rows = MaskIteration { filter: self, width, read, written: at(written.start)..at(written.end) };
                iterate(&rows, current, along, next);
                std::mem::swap(&mut current, &mut next);
            }
            for (y, out) in (rows.start..).zip(out.chunks_exact_mut(width)) {
                unpack(&current[at(y) + 1..][..words], out);
            }
        });
    }
}

thread_local! {
    /// Rows of bits, reused by later blocks.
    static SCRATCH: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// An iteration over rows of words, with a word of the border on either side and rows of it above and below.
struct MaskIteration<'a> {
    filter: &'a MaskFilter,
    /// Pixels of a row.
    width: usize,
    /// Words of the rows that are read, and of those that are written.
    read: Range<usize>,
    written: Range<usize>,
}

for_least_isa! {
    /// Computes an iteration; `along` is memory for the results along rows.
    fn iterate[][](rows: &MaskIteration<'_>, current: &[u64], along: &mut [u64], next: &mut [u64]) as iterate_body
}

#[inline(always)]
fn iterate_body(rows: &MaskIteration<'_>, current: &[u64], along: &mut [u64], next: &mut [u64]) {
    if rows.filter.grows {
        iterate_by(rows, current, along, next, |a, b| a | b);
    } else {
        iterate_by(rows, current, along, next, |a, b| a & b);
    }
}

#[inline(always)]
fn iterate_by(
    MaskIteration { filter, width, read, written }: &MaskIteration<'_>,
    current: &[u64],
    along: &mut [u64],
    next: &mut [u64],
    join: impl Fn(u64, u64) -> u64 + Copy,
) {
    let stride = width.div_ceil(BITS) + 2;
    let next = &mut next[written.clone()];
    next.fill(if filter.grows { 0 } else { u64::MAX });
    for (run, offsets) in &filter.parts {
        join_columns(*run, &current[read.clone()], filter.outside, &mut along[read.clone()], join);
        for down in offsets {
            let first = written.start.wrapping_add_signed(down * stride.cast_signed());
            for (bits, more) in next.iter_mut().zip(&along[first..][..written.len()]) {
                *bits = join(*bits, *more);
            }
        }
    }
    let used = if width.is_multiple_of(BITS) { u64::MAX } else { (1 << (width % BITS)) - 1 };
    for row in next.chunks_exact_mut(stride) {
        (row[0], row[stride - 1]) = (filter.outside, filter.outside);
        row[stride - 2] = row[stride - 2] & used | filter.outside & !used;
    }
}

/// Joins, for each pixel, the pixels of columns around it.
#[inline(always)]
fn join_columns(
    ColumnRun { first, count }: ColumnRun,
    from: &[u64],
    outside: u64,
    to: &mut [u64],
    join: impl Fn(u64, u64) -> u64,
) {
    let (last, by) = (to.len() - 1, first.unsigned_abs());
    match first {
        0 => to.copy_from_slice(from),
        1.. => {
            for (to, pair) in to.iter_mut().zip(from.windows(2)) {
                *to = pair[0] >> by | pair[1] << (BITS - by);
            }
            to[last] = from[last] >> by | outside << (BITS - by);
        }
        _ => {
            to[0] = from[0] << by | outside >> (BITS - by);
            for (to, pair) in to[1..].iter_mut().zip(from.windows(2)) {
                *to = pair[1] << by | pair[0] >> (BITS - by);
            }
        }
    }
    let mut joined = 1;
    while joined < count {
        let by = joined.min(count - joined);
        for i in 0..last {
            to[i] = join(to[i], to[i] >> by | to[i + 1] << (BITS - by));
        }
        to[last] = join(to[last], to[last] >> by | outside << (BITS - by));
        joined += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_base::shape::Shape;
    use horus_plan::ops::neighbourhood::Filter;
    use horus_testing::pixels::noise;

    /// Filters of masks whose sizes are and are no multiples of a word, in blocks of a few rows.
    #[test]
    fn filters_do_what_their_windows_say() {
        let windows: [&[(isize, isize)]; 6] = [
            &[(0, 0)],
            &[(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)],
            &[(-2, -1), (-2, 0), (-2, 1), (3, -63), (3, -61), (0, 63)],
            &[(1, -3), (0, 5), (0, 6)],
            &[(-4, 2)],
            &std::array::from_fn::<_, 127, _>(|i| (0, i as isize - 63)),
        ];
        for (k, (offsets, (height, width))) in
            windows.iter().flat_map(|w| [(1, 1), (5, 63), (9, 64), (7, 130)].map(|size| (w, size))).enumerate()
        {
            let places: Vec<(i32, i32)> = offsets.iter().map(|&(y, x)| (y as i32, x as i32)).collect();
            let window = Filter::sparse(places, vec![1.0; offsets.len()]);
            for (reduce, outside) in
                [Reduce::Min, Reduce::Max].into_iter().flat_map(|r| [0.0, 0.5, 0.75, 3.0, f64::NAN].map(|v| (r, v)))
            {
                // As many pixels are alone as leave some under a window, whatever its size.
                let alone = noise::<u32>(height * width, k as u64, false).into_iter();
                let alone = alone.map(|v| v % (2 * offsets.len() as u32) == 0);
                let image: Vec<u8> = alone.map(|alone| 77 * u8::from(alone == (reduce == Reduce::Max))).collect();
                let how = Generalized { window: window.clone(), combine: Combine::Pixel, reduce };
                let filter = MaskFilter::new(0, &how, Border::Constant(outside)).unwrap();
                let mut want: Vec<bool> = image.iter().map(|v| *v != 0).collect();
                for iterations in 1..4 {
                    want = (0..height * width)
                        .map(|i| {
                            let at = |&(y, x): &(isize, isize)| {
                                let (y, x) = ((i / width).checked_add_signed(y), (i % width).checked_add_signed(x));
                                match (y, x) {
                                    (Some(y), Some(x)) if y < height && x < width => want[y * width + x],
                                    _ => u8::from_f64(outside) != 0,
                                }
                            };
                            if filter.grows { offsets.iter().any(at) } else { offsets.iter().all(at) }
                        })
                        .collect();
                    let geometry = Geometry {
                        shape: Shape::new(height, width, 1),
                        dtype: DType::U8,
                        window: Window::whole(height),
                    };
                    for rows in [1, 3, height] {
                        let mut out = vec![9; height * width];
                        for (y, out) in (0..).step_by(rows).zip(out.chunks_mut(rows * width)) {
                            filter.block(&image, (&geometry, 0), y, out, iterations);
                        }
                        let found: Vec<bool> = out.iter().map(|v| *v == 1).collect();
                        assert!(out.iter().all(|v| *v < 2));
                        assert_eq!(found, want, "{offsets:?} {reduce:?} {outside} {height}x{width} {iterations}");
                    }
                }
            }
        }
    }
}
