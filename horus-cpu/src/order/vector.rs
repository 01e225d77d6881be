//! Vector registers of pixels, for kernels that only compare and move pixels.

use crate::patch::Patch;
use crate::plane::OutputTile;
use horus_base::dtype::{DType, Pixel};
use horus_plan::ops::neighbourhood::Reach;

/// A vector register of pixels.
///
/// # Safety
/// Methods may only be called where the vector's instruction set was detected, in a function
/// compiled for it.
pub(super) trait PixelRegister: Copy {
    /// Bytes of the register.
    const BYTES: usize = size_of::<Self>();
    /// Reads one pixel for each SIMD lane.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes one pixel for each SIMD lane.
    unsafe fn store(self, to: *mut u8);
    /// The smaller of numbers, the first on a tie, lane by lane; `a` if `b` is a NaN.
    unsafe fn min(a: Self, b: Self) -> Self;
    /// The larger of numbers, the first on a tie, lane by lane; `a` if `b` is a NaN.
    unsafe fn max(a: Self, b: Self) -> Self;
    /// Lanes may be [special](PixelRegister::any_special).
    const FLOAT: bool;
    /// The first in the order of numbers, -0 before +0 and NaN last, lane by lane.
    #[inline(always)]
    unsafe fn lower(a: Self, b: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self::min(a, b) }
    }
    /// The last in this order, lane by lane.
    #[inline(always)]
    unsafe fn upper(a: Self, b: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self::max(a, b) }
    }
    /// Returns `true` if a lane of either is a NaN or -0, which minimum and maximum do not order.
    unsafe fn any_special(a: Self, b: Self) -> bool;
}

/// An array that the compiler vectorises, for any machine.
#[derive(Clone, Copy)]
pub(super) struct LaneArray<T, const N: usize>([T; N]);

/// A single pixel.
pub(super) type Single<T> = LaneArray<T, 1>;

impl<T: Pixel, const N: usize> PixelRegister for LaneArray<T, N> {
    const FLOAT: bool = T::DTYPE.is_float();
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller has pixels for all lanes.
        LaneArray(unsafe { from.cast::<[T; N]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller has memory for all lanes.
        unsafe { to.cast::<[T; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn min(a: Self, b: Self) -> Self {
        LaneArray(std::array::from_fn(|i| if b.0[i] < a.0[i] { b.0[i] } else { a.0[i] }))
    }
    #[inline(always)]
    unsafe fn max(a: Self, b: Self) -> Self {
        LaneArray(std::array::from_fn(|i| if b.0[i] > a.0[i] { b.0[i] } else { a.0[i] }))
    }
    #[inline(always)]
    unsafe fn lower(a: Self, b: Self) -> Self {
        LaneArray(std::array::from_fn(|i| a.0[i].lower(b.0[i])))
    }
    #[inline(always)]
    unsafe fn upper(a: Self, b: Self) -> Self {
        LaneArray(std::array::from_fn(|i| a.0[i].upper(b.0[i])))
    }
    #[inline(always)]
    unsafe fn any_special(a: Self, b: Self) -> bool {
        let special = |v: &T| v.is_nan() | (*v == T::ZERO && v.scalar().bits() != 0);
        (a.0.iter().zip(&b.0)).fold(false, |any, (a, b)| any | special(a) | special(b))
    }
}

/// A vector whose minimum and maximum follow the order of numbers.
#[derive(Clone, Copy)]
pub(super) struct OrderedVector<V>(V);

impl<V: PixelRegister> PixelRegister for OrderedVector<V> {
    const FLOAT: bool = V::FLOAT;
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: promised by the caller.
        OrderedVector(unsafe { V::load(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: promised by the caller.
        unsafe { self.0.store(to) }
    }
    #[inline(always)]
    unsafe fn min(a: Self, b: Self) -> Self {
        // SAFETY: promised by the caller.
        OrderedVector(unsafe { V::lower(a.0, b.0) })
    }
    #[inline(always)]
    unsafe fn max(a: Self, b: Self) -> Self {
        // SAFETY: promised by the caller.
        OrderedVector(unsafe { V::upper(a.0, b.0) })
    }
    #[inline(always)]
    unsafe fn any_special(a: Self, b: Self) -> bool {
        // SAFETY: promised by the caller.
        unsafe { V::any_special(a.0, b.0) }
    }
}

/// Rows of pixels: the first one, and bytes from row to row.
#[derive(Clone, Copy)]
pub(super) struct StridedRows {
    pub(super) at: *mut u8,
    pub(super) stride: usize,
}

impl StridedRows {
    /// The pixels that a window of reach `reach` reads around a tile, from their upper left corner on. They must not be
    /// written.
    pub(super) fn around<T: Pixel>(patch: &Patch<'_, T>, tile: &OutputTile<'_, T>, reach: Reach) -> StridedRows {
        let Reach { up, down, left, right } = reach;
        let (y, x) = (tile.rows.start - up.cast_signed(), tile.cols.start.cast_signed() - left.cast_signed());
        let (at, stride) = patch.rectangle(y, x, tile.rows.len() + up + down, tile.cols.len() + left + right);
        StridedRows { at: at.cast::<u8>().cast_mut(), stride: stride * size_of::<T>() }
    }

    /// The rows of a tile.
    pub(super) fn of<T: Pixel>(tile: &mut OutputTile<'_, T>) -> StridedRows {
        assert!((tile.rows.len() - 1) * tile.stride + tile.cols.len() <= tile.out.len(), "the tile holds its rows");
        StridedRows { at: tile.out.as_mut_ptr().cast(), stride: tile.stride * size_of::<T>() }
    }

    /// The view from `bytes` further right in a row further down.
    pub(super) fn from(self, rows: usize, bytes: usize) -> StridedRows {
        StridedRows { at: self.at.wrapping_add(rows * self.stride + bytes), ..self }
    }
}

/// The identity of minimum or maximum: the number that all others precede. 64 bytes of pixels, as many as the widest
/// register has.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct ExtremeIdentity([u64; 8]);

impl ExtremeIdentity {
    /// For pixels of type `dtype`: the lowest number for a maximum (`greatest`), the highest for a minimum.
    pub(super) fn of(dtype: DType, greatest: bool) -> ExtremeIdentity {
        let (byte, short, word) = (0x0101_0101_0101_0101, 0x0001_0001_0001_0001, 0x0000_0001_0000_0001);
        let (highest, lowest) = match dtype {
            DType::U8 | DType::U16 | DType::U32 | DType::Bool => (u64::MAX, 0),
            DType::I8 => (!(byte << 7), byte << 7),
            DType::I16 => (!(short << 15), short << 15),
            DType::I32 => (!(word << 31), word << 31),
            DType::F32 => (word * u64::from(f32::INFINITY.to_bits()), word * u64::from(f32::NEG_INFINITY.to_bits())),
            DType::F64 => (f64::INFINITY.to_bits(), f64::NEG_INFINITY.to_bits()),
        };
        ExtremeIdentity([if greatest { lowest } else { highest }; 8])
    }

    /// The address of the pixels.
    pub(super) fn pixels(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($($name:ident($reg:ty, $raw:ty): $load:ident $store:ident $min:ident $max:ident $(,
       |$a:ident, $b:ident| $special:expr, $lower:expr, $upper:expr)?;)*) => {$(
        #[derive(Clone, Copy)]
        pub(in crate::order) struct $name($reg);

        impl PixelRegister for $name {
            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the caller has the instruction set, and pixels for all lanes.
                $name(unsafe { $load(from.cast::<$raw>()) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller has the instruction set, and memory for all lanes.
                unsafe { $store(to.cast::<$raw>(), self.0) }
            }
            // For equal floats, and for a float and a NaN, the instructions return their second operand.
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
            vectors!(order $name $(|$a, $b| $special, $lower, $upper)?);
        }
    )*};
    (order $name:ident) => {
        const FLOAT: bool = false;
        #[inline(always)]
        unsafe fn any_special(_: Self, _: Self) -> bool {
            false
        }
    };
    (order $name:ident |$a:ident, $b:ident| $special:expr, $lower:expr, $upper:expr) => {
        const FLOAT: bool = true;
        #[inline(always)]
        unsafe fn lower(a: Self, b: Self) -> Self {
            let ($a, $b) = (a.0, b.0);
            // SAFETY: the caller has the instruction set.
            $name(unsafe { $lower })
        }
        #[inline(always)]
        unsafe fn upper(a: Self, b: Self) -> Self {
            let ($a, $b) = (a.0, b.0);
            // SAFETY: the caller has the instruction set.
            $name(unsafe { $upper })
        }
        #[inline(always)]
        unsafe fn any_special(a: Self, b: Self) -> bool {
            let ($a, $b) = (a.0, b.0);
            // SAFETY: the caller has the instruction set.
            unsafe { $special }
        }
    };
}

#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
mod x86 {
    use std::arch::x86_64::*;

    use super::PixelRegister;

    /// A NaN, quiet or signalling, or -0.
    const SPECIAL: i32 = 0x01 | 0x80 | 0x04;

    vectors! {
        U8x64(__m512i, __m512i): _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epu8 _mm512_max_epu8;
        I8x64(__m512i, __m512i): _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epi8 _mm512_max_epi8;
        U16x32(__m512i, __m512i): _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epu16 _mm512_max_epu16;
        I16x32(__m512i, __m512i): _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epi16 _mm512_max_epi16;
        U32x16(__m512i, __m512i): _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epu32 _mm512_max_epu32;
        I32x16(__m512i, __m512i): _mm512_loadu_si512 _mm512_storeu_si512 _mm512_min_epi32 _mm512_max_epi32;
        F32x16(__m512, f32): _mm512_loadu_ps _mm512_storeu_ps _mm512_min_ps _mm512_max_ps,
            |a, b| (_mm512_fpclass_ps_mask::<SPECIAL>(a) | _mm512_fpclass_ps_mask::<SPECIAL>(b)) != 0,
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(b, a) | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a)
                | (_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b) & _mm512_movepi32_mask(_mm512_castps_si512(b))), a, b),
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(b, a) | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(b, b)
                | (_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b) & _mm512_movepi32_mask(_mm512_castps_si512(a))), a, b);
        F64x8(__m512d, f64): _mm512_loadu_pd _mm512_storeu_pd _mm512_min_pd _mm512_max_pd,
            |a, b| (_mm512_fpclass_pd_mask::<SPECIAL>(a) | _mm512_fpclass_pd_mask::<SPECIAL>(b)) != 0,
            _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(b, a) | _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a)
                | (_mm512_cmp_pd_mask::<_CMP_EQ_OQ>(a, b) & _mm512_movepi64_mask(_mm512_castpd_si512(b))), a, b),
            _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_GT_OQ>(b, a) | _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(b, b)
                | (_mm512_cmp_pd_mask::<_CMP_EQ_OQ>(a, b) & _mm512_movepi64_mask(_mm512_castpd_si512(a))), a, b);
        U8x32(__m256i, __m256i): _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epu8 _mm256_max_epu8;
        I8x32(__m256i, __m256i): _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epi8 _mm256_max_epi8;
        U16x16(__m256i, __m256i): _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epu16 _mm256_max_epu16;
        I16x16(__m256i, __m256i): _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epi16 _mm256_max_epi16;
        U32x8(__m256i, __m256i): _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epu32 _mm256_max_epu32;
        I32x8(__m256i, __m256i): _mm256_loadu_si256 _mm256_storeu_si256 _mm256_min_epi32 _mm256_max_epi32;
        F32x8(__m256, f32): _mm256_loadu_ps _mm256_storeu_ps _mm256_min_ps _mm256_max_ps,
            |a, b| _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(a, b),
                _mm256_castsi256_ps(_mm256_or_si256(_mm256_cmpeq_epi32(_mm256_castps_si256(a), _mm256_set1_epi32(i32::MIN)), _mm256_cmpeq_epi32(_mm256_castps_si256(b), _mm256_set1_epi32(i32::MIN)))))) != 0,
            _mm256_blendv_ps(a, b, _mm256_or_ps(_mm256_and_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b), b),
                _mm256_or_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(b, a), _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a)))),
            _mm256_blendv_ps(a, b, _mm256_or_ps(_mm256_and_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b), a),
                _mm256_or_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(b, a), _mm256_cmp_ps::<_CMP_UNORD_Q>(b, b))));
        F64x4(__m256d, f64): _mm256_loadu_pd _mm256_storeu_pd _mm256_min_pd _mm256_max_pd,
            |a, b| _mm256_movemask_pd(_mm256_or_pd(_mm256_cmp_pd::<_CMP_UNORD_Q>(a, b),
                _mm256_castsi256_pd(_mm256_or_si256(_mm256_cmpeq_epi64(_mm256_castpd_si256(a), _mm256_set1_epi64x(i64::MIN)), _mm256_cmpeq_epi64(_mm256_castpd_si256(b), _mm256_set1_epi64x(i64::MIN)))))) != 0,
            _mm256_blendv_pd(a, b, _mm256_or_pd(_mm256_and_pd(_mm256_cmp_pd::<_CMP_EQ_OQ>(a, b), b),
                _mm256_or_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(b, a), _mm256_cmp_pd::<_CMP_UNORD_Q>(a, a)))),
            _mm256_blendv_pd(a, b, _mm256_or_pd(_mm256_and_pd(_mm256_cmp_pd::<_CMP_EQ_OQ>(a, b), a),
                _mm256_or_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(b, a), _mm256_cmp_pd::<_CMP_UNORD_Q>(b, b))));
    }
}
#[cfg(target_arch = "x86_64")]
pub(super) use self::x86::*;

/// Calls `$call!(avx2 | avx512 | portable, V, P)` with the vectors `V` of an instruction set for pixels of a type, and
/// the single pixels `P`.
macro_rules! with_vectors {
    ($isa:expr, $dtype:expr, $call:ident) => {
        with_vectors! { $isa, $dtype, $call,
            U8 | Bool: u8 U8x64 U8x32; U16: u16 U16x32 U16x16; U32: u32 U32x16 U32x8;
            I8: i8 I8x64 I8x32; I16: i16 I16x32 I16x16; I32: i32 I32x16 I32x8;
            F32: f32 F32x16 F32x8; F64: f64 F64x8 F64x4
        }
    };
    ($isa:expr, $dtype:expr, $call:ident, $($($name:ident)|+: $t:ident $wide:ident $middle:ident);*) => {
        match ($isa, $dtype) {$(
            #[cfg(target_arch = "x86_64")]
            ($crate::simd::Isa::Avx512, $(DType::$name)|+) => $call!(avx512, $wide, $t),
            #[cfg(target_arch = "x86_64")]
            ($crate::simd::Isa::Avx2, $(DType::$name)|+) => $call!(avx2, $middle, $t),
            #[cfg(not(target_arch = "x86_64"))]
            ($crate::simd::Isa::Portable, $(DType::$name)|+) => {
                $call!(portable, $crate::order::vector::LaneArray<$t, { 16 / size_of::<$t>() }>, $t)
            }
        )*}
    };
}
pub(super) use with_vectors;
