//! The compare-exchange networks of medians as straight-line code over vector registers.
//!
//! A loop over [`median_network`](horus_plan::ops::neighbourhood::median_network) keeps its values
//! in memory, as registers cannot be indexed, and waits for every store. Unrolled, most values stay
//! in registers.

use std::arch::x86_64::*;

use crate::cpu::patch::Patch;
use crate::cpu::plane::Tile;
use crate::cpu::simd::Isa;
use horus_base::dtype::{DType, Pixel};
use horus_plan::ops::neighbourhood::MedianSize;

/// A vector register of pixels.
///
/// # Safety
/// Methods may only be called where the vector's instruction set was detected, in a function
/// compiled for it.
trait Vector: Copy {
    const LANES: usize;
    /// Reads one pixel per lane.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes one pixel per lane.
    unsafe fn store(self, to: *mut u8);
    /// `b < a ? b : a`, lane by lane.
    unsafe fn min(a: Self, b: Self) -> Self;
    /// `b > a ? b : a`, lane by lane.
    unsafe fn max(a: Self, b: Self) -> Self;
    /// Returns `true` if a lane of either is a NaN.
    unsafe fn any_nan(a: Self, b: Self) -> bool;
}

macro_rules! vectors {
    ($($name:ident($reg:ty, $raw:ty), $lanes:literal: $load:ident $store:ident $min:ident $max:ident,
       |$a:ident, $b:ident| $nan:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name($reg);

        impl Vector for $name {
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the caller has the instruction set, and pixels for all lanes.
                $name(unsafe { $load(from.cast::<$raw>()) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller has the instruction set, and room for all lanes.
                unsafe { $store(to.cast::<$raw>(), self.0) }
            }
            // Of equal floats, the instructions return their second operand.
            #[inline(always)]
            unsafe fn min(a: Self, b: Self) -> Self {
                // SAFETY: the caller has the instruction set.
                $name(unsafe { $min(b.0, a.0) })
            }
            #[inline(always)]
            unsafe fn max(a: Self, b: Self) -> Self {
                // SAFETY: the caller has the instruction set.
                $name(unsafe { $max(b.0, a.0) })
            }
            #[inline(always)]
            #[allow(unused_unsafe)]
            unsafe fn any_nan(a: Self, b: Self) -> bool {
                let ($a, $b) = (a.0, b.0);
                // SAFETY: the caller has the instruction set.
                unsafe { $nan }
            }
        }
    )*};
}

#[rustfmt::skip]
vectors! {
    U8x64(__m512i, __m512i), 64: _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epu8 _mm512_max_epu8, |_a, _b| false;
    U16x32(__m512i, __m512i), 32: _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epu16 _mm512_max_epu16, |_a, _b| false;
    U32x16(__m512i, __m512i), 16: _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epu32 _mm512_max_epu32, |_a, _b| false;
    I8x64(__m512i, __m512i), 64: _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epi8 _mm512_max_epi8, |_a, _b| false;
    I16x32(__m512i, __m512i), 32: _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epi16 _mm512_max_epi16, |_a, _b| false;
    I32x16(__m512i, __m512i), 16: _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epi32 _mm512_max_epi32, |_a, _b| false;
    F32x16(__m512, f32), 16: _mm512_loadu_ps _mm512_storeu_ps _mm512_min_ps _mm512_max_ps, |a, b| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b) != 0;
    F64x8(__m512d, f64), 8: _mm512_loadu_pd _mm512_storeu_pd _mm512_min_pd _mm512_max_pd, |a, b| _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, b) != 0;
    U8x32(__m256i, __m256i), 32: _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epu8 _mm256_max_epu8, |_a, _b| false;
    U16x16(__m256i, __m256i), 16: _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epu16 _mm256_max_epu16, |_a, _b| false;
    U32x8(__m256i, __m256i), 8: _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epu32 _mm256_max_epu32, |_a, _b| false;
    I8x32(__m256i, __m256i), 32: _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epi8 _mm256_max_epi8, |_a, _b| false;
    I16x16(__m256i, __m256i), 16: _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epi16 _mm256_max_epi16, |_a, _b| false;
    I32x8(__m256i, __m256i), 8: _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epi32 _mm256_max_epi32, |_a, _b| false;
    F32x8(__m256, f32), 8: _mm256_loadu_ps _mm256_storeu_ps _mm256_min_ps _mm256_max_ps, |a, b| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(a, b)) != 0;
    F64x4(__m256d, f64), 4: _mm256_loadu_pd _mm256_storeu_pd _mm256_min_pd _mm256_max_pd, |a, b| _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_UNORD_Q>(a, b)) != 0;
}

/// A network over `N` values.
trait Network<const N: usize> {
    /// The median of `v`.
    ///
    /// # Safety
    /// As for [`Vector`].
    unsafe fn median<V: Vector>(v: [V; N]) -> V;
}

/// Defines a network as code, and as data for the test.
macro_rules! networks {
    ($($name:ident $n:literal: $(($i:literal $j:literal))*;)*) => {$(
        struct $name;

        impl Network<$n> for $name {
            #[inline(always)]
            unsafe fn median<V: Vector>(mut v: [V; $n]) -> V {
                $(
                    // SAFETY: the caller has the instruction set.
                    (v[$i], v[$j]) = unsafe { (V::min(v[$i], v[$j]), V::max(v[$j], v[$i])) };
                )*
                v[$n / 2]
            }
        }

        #[cfg(test)]
        impl $name {
            const EXCHANGES: &[(usize, usize)] = &[$(($i, $j)),*];
        }
    )*};
}

#[rustfmt::skip]
networks! {
    Three 9:
        (0 8) (0 4) (1 5) (2 6) (3 7) (4 8) (0 2) (1 3) (4 6) (5 7) (2 8) (2 4) (3 5) (6 8) (0 1) (2 3) (4 5) (6 7)
        (1 8) (1 4) (3 6) (3 4);
    Five 25:
        (0 16) (1 17) (2 18) (3 19) (4 20) (5 21) (6 22) (7 23) (8 24) (0 8) (1 9) (2 10) (3 11) (4 12) (5 13)
        (6 14) (7 15) (16 24) (8 16) (9 17) (10 18) (11 19) (12 20) (13 21) (14 22) (15 23) (0 4) (1 5) (2 6) (3 7)
        (8 12) (9 13) (10 14) (11 15) (16 20) (17 21) (18 22) (19 23) (4 16) (5 17) (6 18) (7 19) (12 24) (4 8)
        (5 9) (6 10) (7 11) (12 16) (13 17) (14 18) (15 19) (20 24) (0 2) (1 3) (4 6) (5 7) (8 10) (9 11) (12 14)
        (13 15) (16 18) (17 19) (20 22) (21 23) (2 16) (3 17) (6 20) (7 21) (10 24) (2 8) (3 9) (6 12) (7 13)
        (10 16) (11 17) (14 20) (15 21) (18 24) (2 4) (3 5) (6 8) (7 9) (10 12) (11 13) (14 16) (15 17) (18 20)
        (19 21) (22 24) (0 1) (2 3) (4 5) (6 7) (8 9) (10 11) (12 13) (14 15) (16 17) (18 19) (20 21) (22 23) (1 16)
        (3 18) (5 20) (7 22) (9 24) (5 12) (7 14) (9 16) (11 18) (9 12) (11 14) (11 12);
}

/// Computes the medians of a tile. Returns `false` if `isa` has no vectors or the tile is narrower
/// than one. Vectors with a NaN are left to `slow(y, x, out)`: medians of the pixels from column
/// `x` of row `y` on.
pub(super) fn medians<T: Pixel>(
    isa: Isa,
    patch: &Patch<'_, T>,
    size: MedianSize,
    tile: &mut Tile<'_, T>,
    slow: impl Fn(isize, usize, &mut [T]),
) -> bool {
    macro_rules! run {
        ($compiled:ident, $v:ident) => {{
            if tile.cols.len() < $v::LANES {
                return false;
            }
            // SAFETY: an instruction set is only named after it was detected; the vectors are of
            // it, and of `T`.
            unsafe {
                match size {
                    MedianSize::Three => $compiled::<T, $v, Three, 9>(patch, 1, tile, slow),
                    MedianSize::Five => $compiled::<T, $v, Five, 25>(patch, 2, tile, slow),
                }
            }
        }};
    }
    match (isa, T::DTYPE) {
        (Isa::Portable, _) => return false,
        (Isa::Avx512, DType::U8 | DType::Bool) => run!(avx512, U8x64),
        (Isa::Avx512, DType::U16) => run!(avx512, U16x32),
        (Isa::Avx512, DType::U32) => run!(avx512, U32x16),
        (Isa::Avx512, DType::I8) => run!(avx512, I8x64),
        (Isa::Avx512, DType::I16) => run!(avx512, I16x32),
        (Isa::Avx512, DType::I32) => run!(avx512, I32x16),
        (Isa::Avx512, DType::F32) => run!(avx512, F32x16),
        (Isa::Avx512, DType::F64) => run!(avx512, F64x8),
        (Isa::Avx2, DType::U8 | DType::Bool) => run!(avx2, U8x32),
        (Isa::Avx2, DType::U16) => run!(avx2, U16x16),
        (Isa::Avx2, DType::U32) => run!(avx2, U32x8),
        (Isa::Avx2, DType::I8) => run!(avx2, I8x32),
        (Isa::Avx2, DType::I16) => run!(avx2, I16x16),
        (Isa::Avx2, DType::I32) => run!(avx2, I32x8),
        (Isa::Avx2, DType::F32) => run!(avx2, F32x8),
        (Isa::Avx2, DType::F64) => run!(avx2, F64x4),
    }
    true
}

macro_rules! compiled {
    ($name:ident, $features:literal) => {
        /// # Safety
        /// `V` holds pixels of type `T`, belongs to this instruction set, and is no wider than the
        /// tile.
        #[target_feature(enable = $features)]
        unsafe fn $name<T: Pixel, V: Vector, S: Network<N>, const N: usize>(
            patch: &Patch<'_, T>,
            radius: isize,
            tile: &mut Tile<'_, T>,
            slow: impl Fn(isize, usize, &mut [T]),
        ) {
            // SAFETY: the caller's.
            unsafe { rows::<T, V, S, N>(patch, radius, tile, slow) }
        }
    };
}
compiled!(avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma");
compiled!(avx2, "avx2,fma");

/// # Safety
/// As for the functions compiled from it.
#[inline(always)]
unsafe fn rows<T: Pixel, V: Vector, S: Network<N>, const N: usize>(
    patch: &Patch<'_, T>,
    radius: isize,
    tile: &mut Tile<'_, T>,
    slow: impl Fn(isize, usize, &mut [T]),
) {
    let (first, side) = (tile.cols.start, 2 * radius + 1);
    for y in tile.rows.start..tile.rows.end {
        let out = tile.row_mut(y);
        let n = out.len();
        for at in (0..n).step_by(V::LANES) {
            // The last vector may overlap the previous one and repeats its values.
            let at = at.min(n - V::LANES);
            let out = &mut out[at..at + V::LANES];
            let left = (first + at).cast_signed() - radius;
            let line = |i: isize| patch.line(y - radius + i / side, left + i % side, V::LANES).as_ptr().cast::<u8>();
            // SAFETY: lines and output have as many pixels as the vector lanes, the rest is the
            // caller's.
            unsafe {
                let mut wires = [V::load(line(0)); N];
                for (i, wire) in wires.iter_mut().enumerate().skip(1) {
                    *wire = V::load(line(i.cast_signed()));
                }
                let mut nan = V::any_nan(wires[N - 1], wires[N - 1]);
                for i in (1..N).step_by(2) {
                    nan |= V::any_nan(wires[i - 1], wires[i]);
                }
                // For a number and a NaN, a comparator yields the number twice; the instructions do
                // not.
                if nan {
                    slow(y, first + at, out);
                } else {
                    S::median(wires).store(out.as_mut_ptr().cast());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_plan::ops::neighbourhood::median_network;

    #[test]
    fn the_written_networks_are_the_defined_ones() {
        assert_eq!(Three::EXCHANGES, median_network(9));
        assert_eq!(Five::EXCHANGES, median_network(25));
    }
}
