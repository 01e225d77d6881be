//! Linear filters over tiles, blocked in registers: filters of one geometry form a *bank*, and every loaded pixel
//! vector serves all filters and all output rows that use it.
//!
//! Each output pixel accumulates in the canonical order, `acc = fma(tap, pixel, acc)` from +0, tap by tap. Blocking
//! decides only which accumulators share the registers. No tap is skipped and none is added.

use super::bytes::Dot;
#[cfg(target_arch = "x86_64")]
use super::bytes::{Avx2Quads, Avx512Quads, AvxQuads, QUAD};
use super::simd::{Array, Isa, Lanes, Simd, Vector};

/// Maximum number of filters evaluated together.
pub(crate) const GROUP: usize = 6;

/// Sizes of groups that have a kernel: a bank of `n` filters is cut into these, largest first.
pub(crate) fn group_size(n: usize) -> usize {
    match n {
        0..=4 => n,
        5 => 3,
        7 | 8 => 4,
        _ => GROUP,
    }
}

/// Tap positions of a group, relative to its table of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TapPositions<'a> {
    /// A rectangle: tap (`i`, `j`) of output row `y` reads row `y + i`, `j` pixels to the right.
    Dense {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// Tap `(i, j)` of output row `y` reads row `y + i`, `j` elements to the right.
    Sparse(&'a [(usize, usize)]),
}

/// A group of filters over a tile.
#[derive(Debug)]
pub(crate) struct TileFilterBank<'a, T> {
    /// Tap positions.
    pub(crate) layout: TapPositions<'a>,
    /// Elements of a pixel.
    pub(crate) samples: usize,
    /// The weights in order of accumulation: for each tap, the weights of all filters.
    pub(crate) weights: &'a [T],
    /// Initial sums of the filters; zeros if it is empty.
    pub(crate) start: &'a [T],
    /// For every source row: the address of the pixel `along` columns before the one under the first column of taps at
    /// the tile's first column.
    pub(crate) rows: &'a [*const T],
    /// See `rows`.
    pub(crate) along: usize,
    /// For each filter, the tile's first output pixel and the distance from row to row.
    pub(crate) out: &'a [(*mut T, usize)],
    /// Rows of the tile.
    pub(crate) height: usize,
    /// Columns of the tile.
    pub(crate) width: usize,
}

impl<T: Simd> TileFilterBank<'_, T> {
    /// Computes the tile.
    ///
    /// # Safety
    /// There is a weight for each tap and filter. The table has the rows that the taps of the tile read, which can be
    /// read over `width` columns and the reach of the taps. The outputs can be written, and overlap nothing that is
    /// read. The machine has the instruction set.
    pub(crate) unsafe fn run(&self, isa: Isa) {
        // SAFETY: promised by the caller.
        unsafe {
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => avx2(self),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => avx512(self),
                #[cfg(not(target_arch = "x86_64"))]
                Isa::Portable => portable(self),
            }
        }
    }
}

impl TileFilterBank<'_, i32> {
    /// Computes the tile of a bank over quads of bytes: pixels and sums are `f32`.
    ///
    /// # Safety
    /// As for [`TileFilterBank::run`]; the machine has the instructions.
    pub(crate) unsafe fn run_bytes(&self, dot: Dot) {
        // SAFETY: promised by the caller.
        #[allow(unused_unsafe)]
        unsafe {
            match dot {
                #[cfg(target_arch = "x86_64")]
                Dot::Avx512Vnni => avx512_vnni(self),
                #[cfg(target_arch = "x86_64")]
                Dot::AvxVnni => avx_vnni(self),
                #[cfg(target_arch = "x86_64")]
                Dot::Avx2 => avx2_bytes(self),
            }
        }
    }
}

/// Selects the dense kernel for the number of filters: `vectors of row filters, (filters: rows, column vectors)`.
macro_rules! select_dense {
    ($bank:ident, $height:expr, $width:expr, $v:ty, $row:literal, $($nf:literal: $r:literal $c:literal),+) => {
        // SAFETY: promised by the caller.
        unsafe {
            match ($bank.out.len(), $height, $width) {
                (1, 1, width) => dense::<$v, 1, 1, $row>($bank, 1, width),
                $(($nf, height, 1) => dense::<$v, $nf, $r, $c>($bank, height, 1),
                ($nf, height, width) => dense::<$v, $nf, $r, $c>($bank, height, width),)+
                (n, ..) => debug_assert!(n == 0, "no kernel for a group of {n} filters"),
            }
        }
    };
}

/// Selects the kernel for the layout and the number of filters: `vectors of row filters, (filters: rows, column vectors
/// of dense kernels; of sparse kernels)`.
macro_rules! select {
    ($bank:ident, $v:ty, $row:literal, $($nf:literal: $r:literal $c:literal $s:literal),+) => {
        match $bank.layout {
            TapPositions::Dense { height, width } => select_dense!($bank, height, width, $v, $row, $($nf: $r $c),+),
            // SAFETY: promised by the caller.
            TapPositions::Sparse(at) => unsafe {
                match $bank.out.len() {
                    $($nf => sparse::<$v, $nf, $s>($bank, at),)+
                    n => debug_assert!(n == 0, "no kernel for a group of {n} filters"),
                }
            },
        }
    };
}

/// Selects the kernel of a bank over quads, which is dense.
#[cfg(target_arch = "x86_64")]
macro_rules! select_quads {
    ($bank:ident, $v:ty, $row:literal, $($nf:literal: $r:literal $c:literal),+) => {
        match $bank.layout {
            TapPositions::Dense { height, width } => {
                select_dense!($bank, height, width.div_ceil(QUAD), $v, $row, $($nf: $r $c),+);
            }
            TapPositions::Sparse(_) => debug_assert!(false, "filters of bytes are dense"),
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn portable<T: Simd>(bank: &TileFilterBank<'_, T>) {
    select!(bank, T::Portable, 4, 1: 4 2 4, 2: 2 2 2, 3: 2 2 2, 4: 2 1 2, 6: 1 1 1)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<T: Simd>(bank: &TileFilterBank<'_, T>) {
    select!(bank, T::Avx2, 8, 1: 4 2 8, 2: 2 3 6, 3: 2 2 4, 4: 1 3 3, 6: 1 2 2)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512<T: Simd>(bank: &TileFilterBank<'_, T>) {
    select!(bank, T::Avx512, 8, 1: 4 4 8, 2: 4 2 8, 3: 2 4 6, 4: 2 2 5, 6: 2 2 4)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")]
unsafe fn avx512_vnni(bank: &TileFilterBank<'_, i32>) {
    select_quads!(bank, Avx512Quads, 8, 1: 4 4, 2: 4 2, 3: 2 4, 4: 2 2, 6: 2 2);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avxvnni,avx2,fma")]
unsafe fn avx_vnni(bank: &TileFilterBank<'_, i32>) {
    select_quads!(bank, AvxQuads, 8, 1: 4 2, 2: 2 3, 3: 2 2, 4: 1 3, 6: 1 2);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_bytes(bank: &TileFilterBank<'_, i32>) {
    select_quads!(bank, Avx2Quads, 6, 1: 4 2, 2: 2 2, 3: 2 1, 4: 1 2, 6: 1 1);
}

/// Evaluates `$wide` at the starts of blocks of `$c` vectors that cover `$width` columns. If the width is no multiple,
/// the last block overlaps the one before: the same values are computed twice. Narrower tiles use single vectors, or
/// pixels.
/// Narrower tiles take single vectors, or pixels.
macro_rules! columns {
    ($width:expr, $v:ty, $c:expr, |$x:ident| $wide:expr, $single:expr, $pixel:expr) => {
        let lanes = <$v>::LANES;
        let width: usize = $width;
        let mut $x = 0;
        if width >= $c * lanes {
            loop {
                $wide;
                if $x + $c * lanes >= width {
                    break;
                }
                $x = ($x + $c * lanes).min(width - $c * lanes);
            }
        } else if width >= lanes {
            loop {
                $single;
                if $x + lanes >= width {
                    break;
                }
                $x = ($x + lanes).min(width - lanes);
            }
        } else {
            while $x < width {
                let () = $pixel;
                $x += 1;
            }
        }
    };
}
pub(super) use columns;

#[inline(always)]
unsafe fn dense<V: Lanes, const NF: usize, const R: usize, const C: usize>(
    bank: &TileFilterBank<'_, V::Elem>,
    height: usize,
    width: usize,
) {
    let mut y = 0;
    // SAFETY: promised by the caller; a block stays inside the tile.
    unsafe {
        // Tiles narrower than a vector use single rows of single pixels.
        while bank.width >= V::LANES && y + R <= bank.height {
            columns!(
                bank.width,
                V,
                C,
                |x| dense_block::<V, NF, R, C>(bank, height, width, y, x),
                dense_block::<V, NF, R, 1>(bank, height, width, y, x),
                // A tile as wide as a vector has no single pixels.
                ()
            );
            y += R;
        }
        while y < bank.height {
            columns!(
                bank.width,
                V,
                C,
                |x| dense_block::<V, NF, 1, C>(bank, height, width, y, x),
                dense_block::<V, NF, 1, 1>(bank, height, width, y, x),
                dense_block::<V::One, NF, 1, 1>(bank, height, width, y, x)
            );
            y += 1;
        }
    }
}

/// Accumulators of a block, by output row, filter and column vector.
type AccumulatorBlock<V, const NF: usize, const R: usize, const C: usize> = [[[V; C]; NF]; R];

/// `NF` filters at `R` rows from `y` and `C` vectors from `x`, source row by source row: all output rows but the first
/// and last few read each source row.
#[inline(always)]
unsafe fn dense_block<V: Lanes, const NF: usize, const R: usize, const C: usize>(
    bank: &TileFilterBank<'_, V::Elem>,
    height: usize,
    width: usize,
    y: usize,
    x: usize,
) {
    // SAFETY: promised by the caller of the kernel: rows y..y + R + height - 1 are in the table.
    unsafe {
        let mut acc: AccumulatorBlock<V, NF, R, C> = [[[V::splat(V::Elem::default()); C]; NF]; R];
        for f in 0..bank.start.len().min(NF) {
            for r in 0..R {
                acc[r][f] = [V::splat(bank.start[f]); C];
            }
        }
        let rows = bank.rows.as_ptr().add(y);
        let taps = bank.weights.as_ptr();
        let row = |k: usize| (*rows.add(k)).add(bank.along + x);
        let full = R - 1..height.max(R - 1);
        for k in 0..full.start.min(height + R - 1) {
            edge(&mut acc, row(k), taps, k, height, (width, bank.samples));
        }
        for k in full.clone() {
            line::<V, NF, R, C, 0, R>(&mut acc, row(k), taps, k, (width, bank.samples));
        }
        for k in full.end..height + R - 1 {
            edge(&mut acc, row(k), taps, k, height, (width, bank.samples));
        }
        for r in 0..R {
            for f in 0..NF {
                let (out, stride) = *bank.out.get_unchecked(f);
                for c in 0..C {
                    acc[r][f][c].store(out.add((y + r) * stride + x + c * V::LANES));
                }
            }
        }
    }
}

/// Source row `k` of a block for output rows `FROM..TO`, all of which read it. A constant range
/// keeps the accumulators in registers.
#[inline(always)]
unsafe fn line<V: Lanes, const NF: usize, const R: usize, const C: usize, const FROM: usize, const TO: usize>(
    acc: &mut AccumulatorBlock<V, NF, R, C>,
    row: *const V::Elem,
    taps: *const V::Elem,
    k: usize,
    (width, samples): (usize, usize),
) {
    if TO > R {
        return;
    }
    // SAFETY: promised by the caller; the filter has rows k - FROM down to k - TO + 1.
    unsafe {
        for j in 0..width {
            let mut pixels = [V::splat(V::Elem::default()); C];
            for c in 0..C {
                pixels[c] = V::load(row.add(j * V::TAPS * samples + c * V::LANES));
            }
            for r in FROM..TO {
                let taps = taps.add(((k - r) * width + j) * NF);
                for f in 0..NF {
                    let tap = V::splat(*taps.add(f));
                    for c in 0..C {
                        acc[r][f][c] = tap.fma(pixels[c], acc[r][f][c]);
                    }
                }
            }
        }
    }
}

/// Source row `k` of a block for the output rows that read it: near the first and the last row of the filter, not all
/// do.
#[inline(always)]
unsafe fn edge<V: Lanes, const NF: usize, const R: usize, const C: usize>(
    acc: &mut AccumulatorBlock<V, NF, R, C>,
    row: *const V::Elem,
    taps: *const V::Elem,
    k: usize,
    height: usize,
    (width, samples): (usize, usize),
) {
    const { assert!(R <= 4) };
    let (from, to) = ((k + 1).saturating_sub(height), R.min(k + 1));
    macro_rules! select {
        ($($from:literal $to:literal),+) => {
            match (from, to) {
                // SAFETY: promised by the caller; exactly these rows read row k.
                $(($from, $to) => unsafe { line::<V, NF, R, C, $from, $to>(acc, row, taps, k, (width, samples)) },)+
                _ => {}
            }
        };
    }
    select!(0 1, 0 2, 0 3, 1 2, 1 3, 1 4, 2 3, 2 4, 3 4);
}

#[inline(always)]
unsafe fn sparse<V: Vector, const NF: usize, const C: usize>(
    bank: &TileFilterBank<'_, V::Elem>,
    at: &[(usize, usize)],
) {
    // SAFETY: promised by the caller; a block stays inside the tile.
    unsafe {
        for y in 0..bank.height {
            columns!(
                bank.width,
                V,
                C,
                |x| sparse_block::<V, NF, C>(bank, at, y, x),
                sparse_block::<V, NF, 1>(bank, at, y, x),
                sparse_block::<Array<V::Elem, 1>, NF, 1>(bank, at, y, x)
            );
        }
    }
}

#[inline(always)]
unsafe fn sparse_block<V: Vector, const NF: usize, const C: usize>(
    bank: &TileFilterBank<'_, V::Elem>,
    at: &[(usize, usize)],
    y: usize,
    x: usize,
) {
    // SAFETY: promised by the caller of the kernel.
    unsafe {
        let mut acc = [[V::splat(V::Elem::default()); C]; NF];
        let rows = bank.rows.as_ptr().add(y);
        let mut taps = bank.weights.as_ptr();
        for &(i, j) in at {
            let row = (*rows.add(i)).add(bank.along + x + j);
            let mut pixels = [V::splat(V::Elem::default()); C];
            for c in 0..C {
                pixels[c] = V::load(row.add(c * V::LANES));
            }
            for f in 0..NF {
                let tap = V::splat(*taps.add(f));
                for c in 0..C {
                    acc[f][c] = tap.fma(pixels[c], acc[f][c]);
                }
            }
            taps = taps.add(NF);
        }
        for f in 0..NF {
            let (out, stride) = *bank.out.get_unchecked(f);
            for c in 0..C {
                acc[f][c].store(out.add(y * stride + x + c * V::LANES));
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::bytes;
    use horus_plan::ops::neighbourhood::Filter;

    /// Instructions that better machines never choose give the sums of integers, also for the brightest pixels. (The
    /// device chooses the better ones.)
    #[test]
    fn products_of_pairs_of_bytes_give_the_sums_of_integers() {
        let mut state = 5u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 20
        };
        for (case, (h, w)) in [(1, 3), (3, 3), (2, 5), (5, 8), (15, 15), (4, 18)].into_iter().enumerate() {
            for (tile_rows, tile) in [(1, 1), (4, 7), (5, 16), (3, 65), (6, 40), (8, 130)] {
                for n in [1, 2, 3, 4, 6] {
                    let length = tile + w - 1;
                    let pixels: Vec<Vec<u8>> = (0..tile_rows + h - 1)
                        .map(|_| (0..length + bytes::BEYOND).map(|_| (next() % 300).min(255) as u8).collect())
                        .collect();
                    // Products of pairs fit 16 bits.
                    let filters: Vec<Filter> = (0..n)
                        .map(|_| {
                            Filter::dense(h, w, (0..h * w).map(|_| f64::from(next() % 129) - 64.0).collect::<Vec<_>>())
                        })
                        .collect();
                    let all: Vec<&Filter> = filters.iter().collect();
                    let quads: Vec<Vec<i32>> = pixels
                        .iter()
                        .map(|row| {
                            let mut quads = vec![0; length];
                            bytes::widen(row, 1, 0, &mut quads);
                            quads
                        })
                        .collect();
                    let rows: Vec<*const i32> = quads.iter().map(|row| row.as_ptr()).collect();
                    let (weights, start) = (bytes::taps(&all), vec![case as i32 - 2; n]);
                    let mut got = vec![vec![0.0f32; tile_rows * tile]; n];
                    let out: Vec<_> = got.iter_mut().map(|o| (o.as_mut_ptr().cast::<i32>(), tile)).collect();
                    let layout = TapPositions::Dense { height: h, width: w };
                    let bank = TileFilterBank {
                        layout,
                        samples: 1,
                        weights: &weights,
                        start: &start,
                        rows: &rows,
                        along: 0,
                        out: &out,
                        height: tile_rows,
                        width: tile,
                    };
                    // SAFETY: the rows have the tile's columns and the reach; kernels run with AVX2.
                    unsafe { avx2_bytes(&bank) };
                    for (f, got) in got.iter().enumerate() {
                        for (i, got) in got.iter().enumerate() {
                            let (y, x) = (i / tile, i % tile);
                            let product = |k: usize| {
                                let (dy, dx) = (k / w, k % w);
                                filters[f].taps()[k] as i32 * i32::from(pixels[y + dy][x + dx])
                            };
                            let want = start[f] + (0..h * w).map(product).sum::<i32>();
                            assert_eq!(*got, want as f32, "{n} of {h}x{w}, tile {tile_rows}x{tile} at {y}, {x}");
                        }
                    }
                }
            }
        }
    }
}
