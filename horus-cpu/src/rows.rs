//! Row filters: up to three filters of one row, of any lengths, over the same source row at once.
//!
//! Most pixel vectors of a row filter straddle cache lines, so that loads, not multiplications, bound the speed. Every
//! loaded vector therefore serves all filters with a tap there.

use std::ops::Range;

use super::correlate::columns;
use super::simd::{Array, Isa, Simd, Vector};

/// Maximum number of filters evaluated together.
pub(super) const MOST: usize = 3;

/// A row filter: output `x` is the sum over `j` of `taps[j]` times source element `x + (start + j) * samples`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowFilter<'a, T> {
    /// Column of the first tap.
    pub(super) start: usize,
    /// The weights.
    pub(super) taps: &'a [T],
    /// The output row.
    pub(super) out: *mut T,
}

/// Applies one to [`MOST`] filters to a row of pixels of `samples` samples, for `width` output elements, each in the
/// canonical order of its taps.
///
/// # Safety
/// The source can be read as far as the taps reach, and the outputs written over `width` pixels, without overlap; the
/// machine has the instruction set.
pub(super) unsafe fn run<T: Simd>(
    source: *const T,
    filters: &[RowFilter<'_, T>],
    samples: usize,
    width: usize,
    isa: Isa,
) {
    // SAFETY: promised by the caller.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(source, filters, samples, width),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(source, filters, samples, width),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Portable => select::<T::Portable, 4, 2, 2>(source, filters, samples, width),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<T: Simd>(source: *const T, filters: &[RowFilter<'_, T>], samples: usize, width: usize) {
    // SAFETY: promised by the caller.
    unsafe { select::<T::Avx2, 8, 6, 4>(source, filters, samples, width) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512<T: Simd>(source: *const T, filters: &[RowFilter<'_, T>], samples: usize, width: usize) {
    // SAFETY: promised by the caller.
    unsafe { select::<T::Avx512, 8, 8, 8>(source, filters, samples, width) }
}

/// Selects the kernel for the number of filters, with `C1`, `C2` or `C3` column vectors.
#[inline(always)]
unsafe fn select<V: Vector, const C1: usize, const C2: usize, const C3: usize>(
    source: *const V::Elem,
    filters: &[RowFilter<'_, V::Elem>],
    samples: usize,
    width: usize,
) {
    // SAFETY: promised by the caller.
    unsafe {
        match *filters {
            [a] => row::<V, 1, C1>(source, &[a], samples, width),
            [a, b] => row::<V, 2, C2>(source, &[a, b], samples, width),
            [a, b, c] => row::<V, 3, C3>(source, &[a, b, c], samples, width),
            _ => debug_assert!(filters.is_empty(), "at most {MOST} filters"),
        }
    }
}

/// A range of columns in which the same filters have taps: a bit for each filter.
type Segment = (usize, usize, u8);

/// The segments between the starts and ends of the filters, in order.
fn segments<T, const NF: usize>(filters: &[RowFilter<'_, T>; NF]) -> ([Segment; 2 * MOST], usize) {
    let mut cuts = [0; 2 * MOST];
    for (i, f) in filters.iter().enumerate() {
        (cuts[2 * i], cuts[2 * i + 1]) = (f.start, f.start + f.taps.len());
    }
    let cuts = &mut cuts[..2 * NF];
    cuts.sort_unstable();
    let mut out = [(0, 0, 0); 2 * MOST];
    let mut n = 0;
    for w in cuts.windows(2).filter(|w| w[0] < w[1]) {
        let mask = filters
            .iter()
            .enumerate()
            .fold(0, |m, (i, f)| m | u8::from(f.start <= w[0] && w[1] <= f.start + f.taps.len()) << i);
        if mask != 0 {
            out[n] = (w[0], w[1], mask);
            n += 1;
        }
    }
    (out, n)
}

#[inline(always)]
unsafe fn row<V: Vector, const NF: usize, const C: usize>(
    source: *const V::Elem,
    filters: &[RowFilter<'_, V::Elem>; NF],
    samples: usize,
    width: usize,
) {
    let (cuts, n) = segments(filters);
    let cuts = &cuts[..n];
    // SAFETY: promised by the caller; a block stays inside the row.
    unsafe {
        columns!(
            width,
            V,
            C,
            |x| block::<V, NF, C>(source.add(x), filters, (cuts, samples), x),
            block::<V, NF, 1>(source.add(x), filters, (cuts, samples), x),
            block::<Array<V::Elem, 1>, NF, 1>(source.add(x), filters, (cuts, samples), x)
        );
    }
}

#[inline(always)]
unsafe fn block<V: Vector, const NF: usize, const C: usize>(
    source: *const V::Elem,
    filters: &[RowFilter<'_, V::Elem>; NF],
    (cuts, samples): (&[Segment], usize),
    x: usize,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut acc = [[V::splat(V::Elem::default()); C]; NF];
        for &(from, to, mask) in cuts {
            match mask {
                1 => segment::<V, NF, C, 1>(&mut acc, source, filters, from..to, samples),
                2 => segment::<V, NF, C, 2>(&mut acc, source, filters, from..to, samples),
                3 => segment::<V, NF, C, 3>(&mut acc, source, filters, from..to, samples),
                4 => segment::<V, NF, C, 4>(&mut acc, source, filters, from..to, samples),
                5 => segment::<V, NF, C, 5>(&mut acc, source, filters, from..to, samples),
                6 => segment::<V, NF, C, 6>(&mut acc, source, filters, from..to, samples),
                _ => segment::<V, NF, C, 7>(&mut acc, source, filters, from..to, samples),
            }
        }
        for f in 0..NF {
            for c in 0..C {
                acc[f][c].store(filters[f].out.add(x + c * V::LANES));
            }
        }
    }
}

/// Computes columns `columns` of pixels of `samples` samples, for the filters of `MASK`.
#[inline(always)]
unsafe fn segment<V: Vector, const NF: usize, const C: usize, const MASK: u8>(
    acc: &mut [[V; C]; NF],
    source: *const V::Elem,
    filters: &[RowFilter<'_, V::Elem>; NF],
    columns: Range<usize>,
    samples: usize,
) {
    if MASK >> NF != 0 {
        return;
    }
    let taps: [*const V::Elem; NF] =
        std::array::from_fn(|f| filters[f].taps.as_ptr().wrapping_add(columns.start).wrapping_sub(filters[f].start));
    // SAFETY: promised by the caller; the filters of the mask have taps at these columns.
    unsafe {
        for j in 0..columns.len() {
            let mut weights = [V::splat(V::Elem::default()); NF];
            for f in 0..NF {
                if MASK >> f & 1 != 0 {
                    weights[f] = V::splat(*taps[f].add(j));
                }
            }
            for c in 0..C {
                let pixels = V::load(source.add((columns.start + j) * samples + c * V::LANES));
                for f in 0..NF {
                    if MASK >> f & 1 != 0 {
                        acc[f][c] = weights[f].fma(pixels, acc[f][c]);
                    }
                }
            }
        }
    }
}
