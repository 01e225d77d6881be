//! Medians of small windows: compare-exchange networks over vector registers.
//!
//! The network of 3x3 pixels sorts columns first. Neighbours share columns, which are sorted once, in place, a few rows
//! at a time. The network of 5x5 pixels is straight-line code. (A loop over [`MedianSize::network`] stores its values
//! in memory, because registers cannot be indexed, and waits for every store.)
//!
//! The processor's minimum and maximum of a number and a NaN, or of zeros, return the second operand, which would lose
//! the first. Where pixels are NaNs or -0, comparisons exchange them in the order of numbers.

use super::padded_line::{OrderScratch, PaddedLine, rows_at};
use super::vector::*;
use crate::patch::for_each_block;
use crate::plane::{OutputTile, Plane};
use crate::simd::Isa;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Border, Window};
use horus_plan::ops::neighbourhood::MedianSize;

/// Computes the median of the window around each pixel of `tile`: its values in row-major order go through
/// [`MedianSize::network`].
pub(crate) fn median<T: Pixel>(
    plane: &Plane<'_, T>,
    size: MedianSize,
    border: Border,
    tile: &mut OutputTile<'_, T>,
    isa: Isa,
) {
    match size {
        MedianSize::Three => OrderScratch::with(|scratch| by_columns(plane, border, tile, isa, scratch)),
        MedianSize::Five => for_each_block(plane, size.reach(), border, tile, |patch, block| {
            let (rows, n) = (block.rows.len(), block.cols.len());
            let reach = size.reach().in_samples(plane.samples);
            let (image, out) = (StridedRows::around(patch, block, reach), StridedRows::of(block));
            let (bytes, pixel) = (n * size_of::<T>(), plane.samples * size_of::<T>());
            let job = Medians { image, out, rows, bytes, pixel };
            // SAFETY: the patch holds the pixels around the tile; the device checked the
            // instruction set.
            unsafe { medians(isa, T::DTYPE, job) }
        }),
    }
}

/// Bytes of a row of a block.
const BLOCK_BYTES: usize = 1024;
/// Rows whose columns are sorted before any are merged: no vector is read while it is still being stored.
const TOGETHER_ROWS: usize = 8;

/// Medians of 3x3 pixels.
fn by_columns<T: Pixel>(
    plane: &Plane<'_, T>,
    border: Border,
    tile: &mut OutputTile<'_, T>,
    isa: Isa,
    scratch: &mut OrderScratch,
) {
    let (size, samples) = (size_of::<T>(), plane.samples);
    let constant = scratch.rows(3, 1, plane.width * size);
    let is_special = |v: f64| v.is_nan() || (v == 0.0 && v.is_sign_negative());
    let beyond_is_special = T::DTYPE.is_float() && border.constant().is_some_and(is_special);
    let all = StridedRows::of(tile);
    let mut sources = Vec::new();
    for x in tile.cols.clone().step_by(BLOCK_BYTES / size) {
        let n = (BLOCK_BYTES / size).min(tile.cols.end - x);
        let around =
            PaddedLine::new(x.cast_signed() - samples.cast_signed(), n + 2 * samples, (plane.width, samples), border);
        let lines = [0, 1, 2].map(|i| scratch.rows(i, TOGETHER_ROWS, around.places * size));
        for y in (tile.rows.start..tile.rows.end).step_by(TOGETHER_ROWS) {
            let rows = TOGETHER_ROWS.min((tile.rows.end - y).cast_unsigned());
            rows_at(plane, Window::new(y - 1, y + 1 + rows.cast_signed()), border, constant, &mut sources);
            let out = all.from((y - tile.rows.start).cast_unsigned(), (x - tile.cols.start) * size);
            let compute = |ordered: bool| {
                let mut special = false;
                for (columns, place) in &around.columns {
                    let lines = lines.map(|lines| lines.from(0, place * size));
                    let (at, bytes) = (columns.start * size, columns.len() * size);
                    // SAFETY: the image has these columns in the rows that are read, and lines are large enough for
                    // them.
                    special |=
                        unsafe { sort(isa, T::DTYPE, ordered, Sort { sources: &sources, at, bytes, lines, rows }) };
                }
                if special && !ordered {
                    return false;
                }
                // SAFETY: lines are large enough for all places, and the tile for its rows.
                unsafe {
                    lines.iter().for_each(|lines| around.complete::<T>(*lines, rows, border));
                    merge(
                        isa,
                        T::DTYPE,
                        ordered,
                        MedianMerge { lines, out, rows, bytes: n * size, pixel: samples * size },
                    );
                }
                true
            };
            if beyond_is_special || !compute(false) {
                compute(true);
            }
        }
    }
}

/// Sorts columns of three pixels, for `rows` rows of `bytes` bytes; there are two more sources than rows.
struct Sort<'a> {
    sources: &'a [*const u8],
    /// Bytes of the sources before the first pixel.
    at: usize,
    bytes: usize,
    /// The smallest, the middle and the largest pixels.
    lines: [StridedRows; 3],
    rows: usize,
}

/// Medians of `rows` rows of `bytes` bytes, from sorted columns.
struct MedianMerge {
    lines: [StridedRows; 3],
    out: StridedRows,
    rows: usize,
    bytes: usize,
    /// Bytes of a pixel.
    pixel: usize,
}

macro_rules! dispatched {
    ($name:ident, $job:ty, $result:ty, $body:ident, $avx512:ident $avx2:ident $portable:ident) => {
        /// # Safety
        /// Sources and results have these rows, of pixels of type `dtype`; results do not overlap the sources. The
        /// machine has the instruction set.
        unsafe fn $name(isa: Isa, dtype: DType, ordered: bool, job: $job) -> $result {
            macro_rules! run {
                (avx512, $v:ty, $t:ident) => {
                    run!($avx512 $v, $t)
                };
                (avx2, $v:ty, $t:ident) => {
                    run!($avx2 $v, $t)
                };
                (portable, $v:ty, $t:ident) => {
                    run!($portable $v, $t)
                };
                ($compiled:ident $v:ty, $t:ident) => {
                    // SAFETY: promised by the caller.
                    unsafe { $compiled::<$v, Single<$t>>(ordered, job) }
                };
            }
            with_vectors!(isa, dtype, run)
        }

        dispatched!(compiled $avx512, $job, $result, $body, #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]);
        dispatched!(compiled $avx2, $job, $result, $body, #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]);
        dispatched!(compiled $portable, $job, $result, $body, #[cfg(not(target_arch = "x86_64"))]);
    };
    (compiled $name:ident, $job:ty, $result:ty, $body:ident, $(#[$how:meta])*) => {
        /// # Safety
        /// As above; the vectors are of this instruction set.
        $(#[$how])*
        unsafe fn $name<V: PixelRegister, P: PixelRegister>(ordered: bool, job: $job) -> $result {
            // SAFETY: promised by the caller.
            unsafe {
                match (job.bytes < V::BYTES, V::FLOAT && ordered) {
                    (false, false) => $body::<V>(job),
                    (false, true) => $body::<OrderedVector<V>>(job),
                    (true, false) => $body::<P>(job),
                    (true, true) => $body::<OrderedVector<P>>(job),
                }
            }
        }
    };
}
dispatched!(sort, Sort<'_>, bool, sorted, sort_avx512 sort_avx2 sort_portable);
dispatched!(merge, MedianMerge, (), merged, merge_avx512 merge_avx2 merge_portable);

/// Returns `true` if there is a NaN or -0.
///
/// # Safety
/// As for [`sort`]; rows are no shorter than a vector.
#[inline(always)]
unsafe fn sorted<V: PixelRegister>(Sort { sources, at, bytes, lines, rows }: Sort<'_>) -> bool {
    let mut special = false;
    for y in 0..rows {
        let [low, middle, high] = [lines[0].from(y, 0).at, lines[1].from(y, 0).at, lines[2].from(y, 0).at];
        let [upper, own, lower] = [sources[y], sources[y + 1], sources[y + 2]].map(|row| row.wrapping_add(at));
        for x in (0..bytes).step_by(V::BYTES) {
            // The last vector overlaps the one before.
            let x = x.min(bytes - V::BYTES);
            // SAFETY: the caller's; vectors end within the row.
            unsafe {
                let [a, b, c] = [V::load(upper.add(x)), V::load(own.add(x)), V::load(lower.add(x))];
                special |= V::any_special(a, b) | V::any_special(c, c);
                let [a, b, c] = three(a, b, c);
                a.store(low.add(x));
                b.store(middle.add(x));
                c.store(high.add(x));
            }
        }
    }
    special
}

/// # Safety
/// As for [`merge`]; rows are no shorter than a vector.
#[inline(always)]
unsafe fn merged<V: PixelRegister>(MedianMerge { lines, out, rows, bytes, pixel }: MedianMerge) {
    for y in 0..rows {
        let [low, middle, high] = [lines[0].from(y, 0).at, lines[1].from(y, 0).at, lines[2].from(y, 0).at];
        let to = out.from(y, 0).at;
        for x in (0..bytes).step_by(V::BYTES) {
            // The last vector overlaps the one before.
            let x = x.min(bytes - V::BYTES);
            // SAFETY: the caller's; vectors end within the row.
            unsafe {
                let [a, b, c] = load_neighbours::<V>(low.add(x), pixel);
                let largest = V::max(c, V::max(b, a));
                let [a, b, c] = load_neighbours::<V>(high.add(x), pixel);
                let smallest = V::min(a, V::min(b, c));
                let [a, b, c] = load_neighbours::<V>(middle.add(x), pixel);
                let [_, median, _] = three(a, b, c);
                let [_, median, _] = three(largest, median, smallest);
                median.store(to.add(x));
            }
        }
    }
}

/// The pixels at an address, and one and two pixels further.
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn load_neighbours<V: PixelRegister>(at: *const u8, pixel: usize) -> [V; 3] {
    // SAFETY: promised by the caller.
    unsafe { [V::load(at), V::load(at.add(pixel)), V::load(at.add(2 * pixel))] }
}

/// Sorts three values.
///
/// # Safety
/// As for [`PixelRegister`].
#[inline(always)]
unsafe fn three<V: PixelRegister>(a: V, b: V, c: V) -> [V; 3] {
    // SAFETY: promised by the caller.
    unsafe {
        let (a, b) = (V::min(a, b), V::max(b, a));
        let (b, c) = (V::min(b, c), V::max(c, b));
        [V::min(a, b), V::max(b, a), c]
    }
}

/// Defines a network as code, and as data for the test.
macro_rules! network {
    ($(($i:literal $j:literal))*) => {
        /// The median of 25 values.
        ///
        /// # Safety
        /// As for [`PixelRegister`].
        #[inline(always)]
        unsafe fn five<V: PixelRegister>(mut v: [V; 25]) -> V {
            $(
                // SAFETY: the caller has the instruction set.
                (v[$i], v[$j]) = unsafe { (V::min(v[$i], v[$j]), V::max(v[$j], v[$i])) };
            )*
            v[12]
        }

        #[cfg(test)]
        const EXCHANGES: &[(usize, usize)] = &[$(($i, $j)),*];
    };
}

#[rustfmt::skip]
network! {
    (0 1) (3 4) (2 4) (2 3) (6 7) (5 7) (5 6) (9 10) (8 10) (8 9) (12 13) (11 13) (11 12) (15 16) (14 16)
    (14 15) (18 19) (17 19) (17 18) (21 22) (20 22) (20 21) (23 24) (2 5) (3 6) (0 6) (0 3) (4 7) (1 7)
    (1 4) (11 14) (8 14) (8 11) (12 15) (9 15) (9 12) (13 16) (10 16) (10 13) (20 23) (17 23) (17 20)
    (21 24) (18 24) (18 21) (19 22) (8 17) (9 18) (0 18) (0 9) (10 19) (1 19) (1 10) (11 20) (2 20) (2 11)
    (12 21) (3 21) (3 12) (13 22) (4 22) (4 13) (14 23) (5 23) (5 14) (15 24) (6 24) (6 15) (7 16) (7 19)
    (13 21) (15 23) (7 13) (7 15) (1 9) (3 11) (5 17) (11 17) (9 17) (4 10) (6 12) (7 14) (4 6) (4 7)
    (12 14) (10 14) (6 7) (10 12) (6 10) (6 17) (12 17) (7 17) (7 10) (12 18) (7 12) (10 18) (12 20)
    (10 20) (10 12)
}

/// Medians of 5x5 pixels: `rows` rows of `bytes` bytes.
struct Medians {
    /// The image from the upper left corner of the first window on.
    image: StridedRows,
    out: StridedRows,
    rows: usize,
    bytes: usize,
    /// Bytes of a pixel.
    pixel: usize,
}

/// # Safety
/// The output has these rows, of pixels of type `dtype`, and the image the pixels around them. The
/// machine has the instruction set.
unsafe fn medians(isa: Isa, dtype: DType, job: Medians) {
    macro_rules! run {
        ($compiled:ident, $v:ty, $t:ident) => {
            // SAFETY: promised by the caller.
            unsafe { $compiled::<$v, Single<$t>>(job) }
        };
    }
    with_vectors!(isa, dtype, run);
}

macro_rules! compiled {
    ($name:ident $(, $features:literal)?) => {
        /// # Safety
        /// As for [`medians`]; the vectors are of this instruction set.
        $(#[target_feature(enable = $features)])?
        unsafe fn $name<V: PixelRegister, P: PixelRegister>(job: Medians) {
            // SAFETY: promised by the caller.
            unsafe { all_rows::<V, P>(job) }
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
/// As for [`medians`].
#[inline(always)]
unsafe fn all_rows<V: PixelRegister, P: PixelRegister>(job: Medians) {
    let Medians { mut image, mut out, rows, bytes, pixel } = job;
    for _ in 0..rows {
        for x in (0..bytes).step_by(V::BYTES) {
            // SAFETY: the caller's; vectors end within the row.
            unsafe {
                if bytes < V::BYTES {
                    singles::<P>(image, out, bytes, pixel);
                    break;
                }
                // The last vector overlaps the one before.
                let x = x.min(bytes - V::BYTES);
                let wires = window::<V>(image.from(0, x), pixel);
                let mut special = V::any_special(wires[24], wires[24]);
                for i in (1..25).step_by(2) {
                    special |= V::any_special(wires[i - 1], wires[i]);
                }
                if special {
                    five(window::<OrderedVector<V>>(image.from(0, x), pixel)).store(out.at.add(x));
                } else {
                    five(wires).store(out.at.add(x));
                }
            }
        }
        (image, out) = (image.from(1, 0), out.from(1, 0));
    }
}

/// The 5x5 pixels under windows, `pixel` bytes each.
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn window<V: PixelRegister>(image: StridedRows, pixel: usize) -> [V; 25] {
    // SAFETY: promised by the caller.
    std::array::from_fn(|i| unsafe { V::load(image.from(i / 5, i % 5 * pixel).at) })
}

/// Medians one by one, of the first `bytes` bytes of a row.
///
/// # Safety
/// As for [`medians`].
#[inline(never)]
unsafe fn singles<P: PixelRegister>(image: StridedRows, out: StridedRows, bytes: usize, pixel: usize) {
    for x in (0..bytes).step_by(P::BYTES) {
        // SAFETY: promised by the caller.
        unsafe { five(window::<OrderedVector<P>>(image.from(0, x), pixel)).store(out.at.add(x)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_network_is_the_defined_one() {
        assert_eq!(EXCHANGES, MedianSize::Five.network());
    }
}
