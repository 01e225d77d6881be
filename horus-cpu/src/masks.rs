//! Erosions and dilations of masks: 64 pixels in a word, all steps of a block before its bytes are written.
//!
//! A pixel of `min != 0` is set if all pixels under the window are, one of `max != 0` if any is, whatever the bytes of
//! the image. Rows of a window that have the same columns share their results along rows.

use std::cell::RefCell;
use std::ops::Range;

use super::parallel;
use super::versions::for_least_isa;
use horus_base::dtype::{DType, Pixel, Scalar};
use horus_base::shape::{Border, Window};
use horus_host::buffer::HostBuffer;
use horus_host::device::{Geometry, LaunchInput};
use horus_plan::ir::kernel::{Instr, InstrOp, LeafOp, MapKernel, Val};
use horus_plan::ops::neighbourhood::{Combine, Generalized, OrderFilter, Reduce};
use horus_plan::ops::pixel::PixelOp;

/// Pixels of a word.
const BITS: usize = 64;
/// Bytes of the bits of a block: they fit the second-level cache.
const CACHED: usize = 256 << 10;
/// Minimum height of a block, as a multiple of the surrounding rows that are computed twice.
const TALL: usize = 8;

/// Consecutive columns of a window: the offset of the first, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
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
    columns: Vec<Columns>,
    /// The offset of each part of the window in a row, and the index of its columns.
    parts: Vec<(isize, usize)>,
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
        let outside = if border.constant()? as u8 == 0 { 0 } else { u64::MAX };
        let reach = window.reach();
        if reach.left.max(reach.right) >= BITS {
            return None;
        }
        let mut offsets = window.offsets();
        offsets.sort_unstable();
        offsets.dedup();
        let (mut columns, mut parts): (Vec<Columns>, Vec<(isize, Columns)>) = Default::default();
        for (y, x) in offsets {
            match parts.last_mut() {
                Some((row, of)) if (*row, of.first + of.count.cast_signed()) == (y, x) => of.count += 1,
                _ => parts.push((y, Columns { first: x, count: 1 })),
            }
        }
        let mut index = |of: Columns| {
            columns.iter().position(|known| *known == of).unwrap_or_else(|| {
                columns.push(of);
                columns.len() - 1
            })
        };
        let parts = parts.into_iter().map(|(y, of)| (y, index(of))).collect();
        Some(MaskFilter { input, grows, outside, reach: (reach.up, reach.down), columns, parts })
    }

    /// Applies the filter a number of times. Returns `false` if nothing was done, because pixels have several samples or
    /// memory is not the host's.
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
        // Rows of neighbouring blocks are computed by both.
        let around = iterations * (self.reach.0 + self.reach.1);
        let row = (2 + self.columns.len()) * (of.shape.width.div_ceil(BITS) + 2) * size_of::<u64>();
        let most = (CACHED / row).max(TALL * around).max(1);
        let n = rows.len().div_ceil(threads.max(1)).min(most);
        let (width, first) = (geometry.shape.width, geometry.row(0, rows.start));
        let mut blocks = Vec::new();
        for (c, plane) in output.chunks_mut(geometry.plane()).enumerate().take(geometry.shape.planes()) {
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
            scratch.resize((2 + self.columns.len()) * plane, self.outside);
            let (mut held, rest) = scratch.split_at_mut(plane);
            let (mut next, along) = rest.split_at_mut(plane);
            let inside = all.clipped(height);
            for y in inside.start..inside.end {
                pack(&from[of.row(c, y)..][..width], self.outside, &mut held[at(y) + 1..][..words]);
            }
            for left in (0..iterations).rev() {
                let (read, written) = (before(left + 1), before(left).clipped(height));
                let read = at(read.start)..at(read.end);
                let step = MaskStep { filter: self, width, read, written: at(written.start)..at(written.end) };
                iterate(&step, held, along, next);
                std::mem::swap(&mut held, &mut next);
            }
            for (y, out) in (rows.start..).zip(out.chunks_exact_mut(width)) {
                unpack(&held[at(y) + 1..][..words], out);
            }
        });
    }
}

thread_local! {
    /// Rows of bits, reused by later blocks.
    static SCRATCH: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// An iteration over rows of words, with a word of the border on either side and rows of it above and below.
struct MaskStep<'a> {
    filter: &'a MaskFilter,
    /// Pixels of a row.
    width: usize,
    /// Words of the rows that are read, and of those that are written.
    read: Range<usize>,
    written: Range<usize>,
}

for_least_isa! {
    /// Computes an iteration; `along` is memory for the results along rows.
    fn iterate[][](step: &MaskStep<'_>, held: &[u64], along: &mut [u64], next: &mut [u64]) as iterate_body
}

#[inline(always)]
fn iterate_body(step: &MaskStep<'_>, held: &[u64], along: &mut [u64], next: &mut [u64]) {
    if step.filter.grows {
        iterate_by(step, held, along, next, |a, b| a | b);
    } else {
        iterate_by(step, held, along, next, |a, b| a & b);
    }
}

#[inline(always)]
fn iterate_by(
    MaskStep { filter, width, read, written }: &MaskStep<'_>,
    held: &[u64],
    along: &mut [u64],
    next: &mut [u64],
    join: impl Fn(u64, u64) -> u64 + Copy,
) {
    for (columns, plane) in filter.columns.iter().zip(along.chunks_exact_mut(held.len())) {
        join_columns(*columns, &held[read.clone()], filter.outside, &mut plane[read.clone()], join);
    }
    let stride = width.div_ceil(BITS) + 2;
    for (k, (down, columns)) in filter.parts.iter().enumerate() {
        let first = columns * held.len() + written.start;
        let from = &along[first.wrapping_add_signed(down * stride.cast_signed())..][..written.len()];
        let to = &mut next[written.clone()];
        match k {
            0 => to.copy_from_slice(from),
            _ => to.iter_mut().zip(from).for_each(|(bits, more)| *bits = join(*bits, *more)),
        }
    }
    let used = if width.is_multiple_of(BITS) { u64::MAX } else { (1 << (width % BITS)) - 1 };
    for row in next[written.clone()].chunks_exact_mut(stride) {
        (row[0], row[stride - 1]) = (filter.outside, filter.outside);
        row[stride - 2] = row[stride - 2] & used | filter.outside & !used;
    }
}

/// Joins, for each pixel, the pixels of columns around it.
#[inline(always)]
fn join_columns(
    Columns { first, count }: Columns,
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

/// The nonzero pixels of at most 64: bit `i` is pixel `i`.
#[inline(always)]
pub(super) fn bits<T: Pixel>(pixels: &[T]) -> u64 {
    let mut set = [0u8; BITS];
    set.iter_mut().zip(pixels).for_each(|(set, v)| *set = u8::from(*v != T::ZERO));
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: sixteen bytes each, and every processor has these instructions.
        let part = |at: &[u8; 16]| unsafe {
            _mm_movemask_epi8(_mm_slli_epi16::<7>(_mm_loadu_si128(at.as_ptr().cast()))).cast_unsigned()
        };
        set.as_chunks::<16>().0.iter().rev().fold(0, |all, at| all << 16 | u64::from(part(at)))
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // The product gathers the lowest bit of each byte in the highest byte.
        let eight = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        set.as_chunks::<8>().0.iter().rev().fold(0, |all, part| all << 8 | eight(part))
    }
}

for_least_isa! {
    /// Packs a row of pixels; the bits after the last are those outside.
    fn pack[][](row: &[u8], outside: u64, to: &mut [u64]) as pack_body
}

#[inline(always)]
fn pack_body(row: &[u8], outside: u64, to: &mut [u64]) {
    let (whole, rest) = row.as_chunks::<BITS>();
    for (to, part) in to.iter_mut().zip(whole) {
        *to = bits(part);
    }
    if !rest.is_empty() {
        to[whole.len()] = bits(rest) | outside << rest.len();
    }
}

for_least_isa! {
    /// Writes pixels of 0 and 1.
    fn unpack[][](words: &[u64], row: &mut [u8]) as unpack_body
}

#[inline(always)]
fn unpack_body(words: &[u64], row: &mut [u8]) {
    let (whole, rest) = row.as_chunks_mut::<BITS>();
    words.iter().zip(whole).for_each(|(word, bytes)| *bytes = bytes_of(*word));
    if let (Some(last), false) = (words.last(), rest.is_empty()) {
        rest.copy_from_slice(&bytes_of(*last)[..rest.len()]);
    }
}

/// The bits of a word as bytes of 0 and 1.
#[inline(always)]
fn bytes_of(word: u64) -> [u8; BITS] {
    let mut bytes = [0; BITS];
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: thirty-two bytes each, and kernels run with AVX2.
        unsafe {
            // A copy of a byte for each of its bits, of which that bit is kept.
            let copies = _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
            let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
            for (half, to) in bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                let four = _mm256_set1_epi32((word >> (32 * half)) as u32 as i32);
                let kept = _mm256_and_si256(_mm256_shuffle_epi8(four, copies), bit);
                let set = _mm256_and_si256(_mm256_cmpeq_epi8(kept, bit), _mm256_set1_epi8(1));
                _mm256_storeu_si256(to.as_mut_ptr().cast(), set);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (word >> i) as u8 & 1);
    bytes
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
            let image: Vec<u8> = noise::<u8>(height * width, k as u64, false).iter().map(|v| v / 40 * 40).collect();
            let places: Vec<(i32, i32)> = offsets.iter().map(|&(y, x)| (y as i32, x as i32)).collect();
            let window = Filter::sparse(places, vec![1.0; offsets.len()]);
            for (reduce, outside) in [Reduce::Min, Reduce::Max].into_iter().flat_map(|r| [(r, 0.0), (r, 3.0)]) {
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
                                    _ => outside != 0.0,
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

    #[test]
    fn bits_are_bytes() {
        let words = [0, 1, u64::MAX, 1 << 63, 0x0123_4567_89ab_cdef, 0xfeed_0000_8000_0001];
        for width in [1, 7, 63, 64, 65, 200, 384] {
            let mut row = vec![9; width];
            unpack(&words[..width.div_ceil(BITS)], &mut row);
            let want: Vec<u8> = (0..width).map(|i| (words[i / BITS] >> (i % BITS)) as u8 & 1).collect();
            assert_eq!(row, want);
            for outside in [0, u64::MAX] {
                let mut packed = vec![7; width.div_ceil(BITS)];
                // Any number but zero counts.
                row.iter_mut().enumerate().filter(|(_, v)| **v != 0).for_each(|(i, v)| *v = i as u8 | 2);
                pack(&row, outside, &mut packed);
                for (i, word) in packed.iter().enumerate() {
                    let used = if (i + 1) * BITS <= width { u64::MAX } else { (1 << (width % BITS)) - 1 };
                    assert_eq!(*word, words[i] & used | outside & !used, "{width} {i}");
                }
                row.iter_mut().for_each(|v| *v = u8::from(*v != 0));
            }
        }
    }
}
