//! Linear filters over tiles, register-blocked: filters of one geometry form a *bank*, and every
//! pixel vector that is loaded serves all filters and all output rows that need it.
//!
//! Each output pixel accumulates in the canonical order, `acc = fma(tap, pixel, acc)` from +0, tap
//! by tap: the blocking decides only which accumulators live in registers together. No tap is
//! skipped and none is added.

use super::simd::{Array, Isa, Simd, Vector};

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
pub(crate) enum Taps<'a> {
    /// A rectangle: tap (`i`, `j`) of output row `y` reads row `y + i`, `j` pixels to the right.
    Dense {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// Tap `(i, j)` of output row `y` reads row `y + i`, `j` pixels to the right.
    Sparse(&'a [(usize, usize)]),
}

/// A group of filters over a tile.
#[derive(Debug)]
pub(crate) struct Bank<'a, T> {
    /// Tap positions.
    pub(crate) layout: Taps<'a>,
    /// The weights in order of accumulation, those of all filters for the first tap first.
    pub(crate) weights: &'a [T],
    /// For every source row that is read, the pixel `along` columns before the one under the first
    /// column of taps at the tile's first column.
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

impl<T: Simd> Bank<'_, T> {
    /// Computes the tile.
    ///
    /// # Safety
    /// There is a weight per tap and filter; the rows that the taps of the tile reach are in the
    /// table and can be read over `width` columns and the reach of the taps; the outputs can be
    /// written, and overlap nothing that is read; the machine has the instruction set.
    pub(crate) unsafe fn run(&self, isa: Isa) {
        // SAFETY: vouched for by the caller.
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

/// Selects the kernel for the number of filters: `(filters: rows, column vectors of dense; of
/// sparse; of row filters)`.
macro_rules! select {
    ($bank:ident, $v:ty, $row:literal, $($nf:literal: $r:literal $c:literal $s:literal),+) => {
        // SAFETY: vouched for by the caller.
        unsafe {
            match ($bank.out.len(), $bank.layout) {
                (1, Taps::Dense { height: 1, width }) => dense::<$v, 1, 1, $row>($bank, 1, width),
                $(($nf, Taps::Dense { height, width: 1 }) => dense::<$v, $nf, $r, $c>($bank, height, 1),
                ($nf, Taps::Dense { height, width }) => dense::<$v, $nf, $r, $c>($bank, height, width),
                ($nf, Taps::Sparse(at)) => sparse::<$v, $nf, $s>($bank, at),)+
                (n, _) => debug_assert!(n == 0, "no kernel for a group of {n} filters"),
            }
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn portable<T: Simd>(bank: &Bank<'_, T>) {
    select!(bank, T::Portable, 4, 1: 4 2 4, 2: 2 2 2, 3: 2 2 2, 4: 2 1 2, 6: 1 1 1)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<T: Simd>(bank: &Bank<'_, T>) {
    select!(bank, T::Avx2, 8, 1: 4 2 8, 2: 2 3 6, 3: 2 2 4, 4: 1 3 3, 6: 1 2 2)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512<T: Simd>(bank: &Bank<'_, T>) {
    select!(bank, T::Avx512, 8, 1: 4 4 8, 2: 4 2 8, 3: 2 4 6, 4: 2 2 5, 6: 2 2 4)
}

/// Evaluates `$wide` at the starts of blocks of `$c` vectors that cover `$width` columns. The last
/// block overlaps the one before when the width is no multiple: the same values are computed twice.
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
unsafe fn dense<V: Vector, const NF: usize, const R: usize, const C: usize>(
    bank: &Bank<'_, V::Elem>,
    height: usize,
    width: usize,
) {
    let mut y = 0;
    // SAFETY: vouched for by the caller; a block stays inside the tile.
    unsafe {
        // Tiles narrower than a vector take single rows, as they take single pixels.
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
                dense_block::<Array<V::Elem, 1>, NF, 1, 1>(bank, height, width, y, x)
            );
            y += 1;
        }
    }
}

/// Accumulators of a block, by output row, filter and column vector.
type Block<V, const NF: usize, const R: usize, const C: usize> = [[[V; C]; NF]; R];

/// `NF` filters at `R` rows from `y` and `C` vectors from `x`: source row by source row, as all
/// output rows but the first and last few need each of them.
#[inline(always)]
unsafe fn dense_block<V: Vector, const NF: usize, const R: usize, const C: usize>(
    bank: &Bank<'_, V::Elem>,
    height: usize,
    width: usize,
    y: usize,
    x: usize,
) {
    // SAFETY: vouched for by the caller of the kernel: rows y..y + R + height - 1 are in the table.
    unsafe {
        let mut acc: Block<V, NF, R, C> = [[[V::splat(V::Elem::default()); C]; NF]; R];
        let rows = bank.rows.as_ptr().add(y);
        let taps = bank.weights.as_ptr();
        let row = |k: usize| (*rows.add(k)).add(bank.along + x);
        let full = R - 1..height.max(R - 1);
        for k in 0..full.start.min(height + R - 1) {
            edge(&mut acc, row(k), taps, k, height, width);
        }
        for k in full.clone() {
            line::<V, NF, R, C, 0, R>(&mut acc, row(k), taps, k, width);
        }
        for k in full.end..height + R - 1 {
            edge(&mut acc, row(k), taps, k, height, width);
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
unsafe fn line<V: Vector, const NF: usize, const R: usize, const C: usize, const FROM: usize, const TO: usize>(
    acc: &mut Block<V, NF, R, C>,
    row: *const V::Elem,
    taps: *const V::Elem,
    k: usize,
    width: usize,
) {
    if TO > R {
        return;
    }
    // SAFETY: vouched for by the caller; the filter has rows k - FROM down to k - TO + 1.
    unsafe {
        for j in 0..width {
            let mut pixels = [V::splat(V::Elem::default()); C];
            for c in 0..C {
                pixels[c] = V::load(row.add(j + c * V::LANES));
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

/// Source row `k` of a block for those output rows that read it: near the first and the last row of
/// the filter, not all of them do.
#[inline(always)]
unsafe fn edge<V: Vector, const NF: usize, const R: usize, const C: usize>(
    acc: &mut Block<V, NF, R, C>,
    row: *const V::Elem,
    taps: *const V::Elem,
    k: usize,
    height: usize,
    width: usize,
) {
    const { assert!(R <= 4) };
    let (from, to) = ((k + 1).saturating_sub(height), R.min(k + 1));
    macro_rules! select {
        ($($from:literal $to:literal),+) => {
            match (from, to) {
                // SAFETY: vouched for by the caller; just these rows read row k.
                $(($from, $to) => unsafe { line::<V, NF, R, C, $from, $to>(acc, row, taps, k, width) },)+
                _ => {}
            }
        };
    }
    select!(0 1, 0 2, 0 3, 1 2, 1 3, 1 4, 2 3, 2 4, 3 4);
}

#[inline(always)]
unsafe fn sparse<V: Vector, const NF: usize, const C: usize>(bank: &Bank<'_, V::Elem>, at: &[(usize, usize)]) {
    // SAFETY: vouched for by the caller; a block stays inside the tile.
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
    bank: &Bank<'_, V::Elem>,
    at: &[(usize, usize)],
    y: usize,
    x: usize,
) {
    // SAFETY: vouched for by the caller of the kernel.
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
