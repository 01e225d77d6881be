//! Instruction sets, and vectors: kernels are written once for all sets.
//!
//! A kernel is an `#[inline(always)]` function over `Vector`, instantiated inside functions that enable the features of
//! an [`Isa`]. All implementations round alike (one rounding for each fused multiply-add), so the choice of instruction
//! set never changes a bit.

use horus_base::dtype::Float;
use horus_base::error::Error;
use horus_base::settings::{ISA, InstructionSet};

/// An instruction set for which kernels are instantiated. Kernels only receive supported ones: from [`Isa::detect`] or
/// [`Isa::available`].
///
/// An x86-64 processor must have AVX2 and FMA: without fused multiply-add in hardware, each would be a call. Processors
/// with AVX2 also count bits (BMI1, POPCNT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// The baseline of the compiler's target.
    #[cfg(not(target_arch = "x86_64"))]
    Portable,
    /// AVX2 with FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL, besides AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The best instruction set of this machine. The environment variable `HORUS_ISA` (`avx2` or
    /// `avx512`) lowers it; a value above the machine's best has no effect.
    ///
    /// # Errors
    /// [`Error::Config`] for another value, and on a processor on which kernels cannot run.
    pub fn detect() -> Result<Isa, Error> {
        let widest = ISA.get()?;
        let best = Isa::available().into_iter().rev().find(|isa| isa.is_allowed(widest));
        best.ok_or_else(|| {
            Error::Config("this processor lacks AVX2 or FMA, which Horus needs on x86-64 (since 2013 to 2017)".into())
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn is_allowed(self, widest: Option<InstructionSet>) -> bool {
        self == Isa::Avx2 || widest != Some(InstructionSet::Avx2)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_allowed(self, _: Option<InstructionSet>) -> bool {
        true
    }

    /// All instruction sets of this machine, the lowest first.
    #[cfg(target_arch = "x86_64")]
    pub fn available() -> Vec<Isa> {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("popcnt");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let isas = [(Isa::Avx2, avx2), (Isa::Avx512, avx2 && avx512)];
        isas.into_iter().filter(|(_, supported)| *supported).map(|(isa, _)| isa).collect()
    }

    /// All instruction sets of this machine.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn available() -> Vec<Isa> {
        vec![Isa::Portable]
    }

    /// Name shown to users.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "AVX-512",
        }
    }
}

/// A vector of `LANES` elements of a row, with which filters accumulate products.
pub(crate) trait Lanes: Copy {
    /// The content of a SIMD lane: a pixel of a row, or several.
    type Elem: Copy + Default;
    /// The same for a single pixel.
    type One: Lanes<Elem = Self::Elem>;
    /// Number of lanes, each a pixel of the result.
    const LANES: usize;
    /// Columns of taps in a product.
    const TAPS: usize;

    /// `v` in every lane.
    ///
    /// # Safety
    /// The machine has the instruction set of the implementation.
    unsafe fn splat(v: Self::Elem) -> Self;

    /// The `LANES` elements from `at`, which need not be aligned.
    ///
    /// # Safety
    /// They can be read, and the machine has the instruction set.
    unsafe fn load(at: *const Self::Elem) -> Self;

    /// Stores the lanes at `at`, which need not be aligned: sums as pixels of the result.
    ///
    /// # Safety
    /// They can be written, and the machine has the instruction set.
    unsafe fn store(self, at: *mut Self::Elem);

    /// `self * a + b` with one rounding, or exactly; `self` are taps.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
}

/// A vector of `LANES` pixels.
pub(crate) trait Vector: Lanes<Elem: Float> {
    /// `self * a - b` with one rounding.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn fms(self, a: Self, b: Self) -> Self;

    /// `self + a`.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn add(self, a: Self) -> Self;

    /// `self - a`.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn sub(self, a: Self) -> Self;

    /// `self * a`.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn mul(self, a: Self) -> Self;
}

/// An array that the compiler vectorises, for any machine. With one lane, it is a single pixel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array<T, const N: usize>([T; N]);

impl<T: Float, const N: usize> Lanes for Array<T, N> {
    type Elem = T;
    type One = Array<T, 1>;
    const LANES: usize = N;
    const TAPS: usize = 1;

    #[inline(always)]
    unsafe fn splat(v: T) -> Self {
        Array([v; N])
    }
    #[inline(always)]
    unsafe fn load(at: *const T) -> Self {
        // SAFETY: the caller promises N readable elements.
        Array(unsafe { at.cast::<[T; N]>().read() })
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut T) {
        // SAFETY: the caller promises N writable elements.
        unsafe { at.cast::<[T; N]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn fma(self, a: Self, b: Self) -> Self {
        Array(std::array::from_fn(|i| self.0[i].fma(a.0[i], b.0[i])))
    }
}

impl<T: Float, const N: usize> Vector for Array<T, N> {
    #[inline(always)]
    unsafe fn fms(self, a: Self, b: Self) -> Self {
        Array(std::array::from_fn(|i| self.0[i].fma(a.0[i], b.0[i].neg())))
    }
    #[inline(always)]
    unsafe fn add(self, a: Self) -> Self {
        Array(std::array::from_fn(|i| self.0[i].add(a.0[i])))
    }
    #[inline(always)]
    unsafe fn sub(self, a: Self) -> Self {
        Array(std::array::from_fn(|i| self.0[i].sub(a.0[i])))
    }
    #[inline(always)]
    unsafe fn mul(self, a: Self) -> Self {
        Array(std::array::from_fn(|i| self.0[i].mul(a.0[i])))
    }
}

/// The vectors of a float type.
pub(crate) trait Simd: Float {
    /// Vectors of the portable instruction set.
    #[cfg(not(target_arch = "x86_64"))]
    type Portable: Vector<Elem = Self>;
    /// Vectors of AVX2.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Elem = Self>;
    /// Vectors of AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Elem = Self>;
}

impl Simd for f32 {
    #[cfg(not(target_arch = "x86_64"))]
    type Portable = Array<f32, 4>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F32x8;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::F32x16;
}

impl Simd for f64 {
    #[cfg(not(target_arch = "x86_64"))]
    type Portable = Array<f64, 2>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F64x4;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::F64x8;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Array, Lanes, Vector};

    macro_rules! vector {
        ($name:ident, $elem:ident, $lanes:literal, $raw:ident, $splat:ident, $load:ident, $store:ident, $fma:ident, $fms:ident, $add:ident, $sub:ident, $mul:ident) => {
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct $name($raw);

            impl Lanes for $name {
                type Elem = $elem;
                type One = Array<$elem, 1>;
                const LANES: usize = $lanes;
                const TAPS: usize = 1;

                #[inline(always)]
                unsafe fn splat(v: $elem) -> Self {
                    // SAFETY: the caller promises the instruction set.
                    $name(unsafe { $splat(v) })
                }
                #[inline(always)]
                unsafe fn load(at: *const $elem) -> Self {
                    // SAFETY: the caller promises the instruction set and the readable
                    // elements.
                    $name(unsafe { $load(at) })
                }
                #[inline(always)]
                unsafe fn store(self, at: *mut $elem) {
                    // SAFETY: the caller promises the instruction set and the writable
                    // elements.
                    unsafe { $store(at, self.0) }
                }
                #[inline(always)]
                unsafe fn fma(self, a: Self, b: Self) -> Self {
                    // SAFETY: the caller promises the instruction set.
                    $name(unsafe { $fma(self.0, a.0, b.0) })
                }
            }

            impl Vector for $name {
                #[inline(always)]
                unsafe fn fms(self, a: Self, b: Self) -> Self {
                    // SAFETY: the caller promises the instruction set.
                    $name(unsafe { $fms(self.0, a.0, b.0) })
                }
                #[inline(always)]
                unsafe fn add(self, a: Self) -> Self {
                    // SAFETY: the caller promises the instruction set.
                    $name(unsafe { $add(self.0, a.0) })
                }
                #[inline(always)]
                unsafe fn sub(self, a: Self) -> Self {
                    // SAFETY: the caller promises the instruction set.
                    $name(unsafe { $sub(self.0, a.0) })
                }
                #[inline(always)]
                unsafe fn mul(self, a: Self) -> Self {
                    // SAFETY: the caller promises the instruction set.
                    $name(unsafe { $mul(self.0, a.0) })
                }
            }
        };
    }

    vector!(
        F32x8,
        f32,
        8,
        __m256,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_fmadd_ps,
        _mm256_fmsub_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps
    );
    vector!(
        F64x4,
        f64,
        4,
        __m256d,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_fmadd_pd,
        _mm256_fmsub_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd
    );
    vector!(
        F32x16,
        f32,
        16,
        __m512,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        _mm512_fmsub_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps
    );
    vector!(
        F64x8,
        f64,
        8,
        __m512d,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_fmadd_pd,
        _mm512_fmsub_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        _mm512_mul_pd
    );
}

/// Bytes of an image that fit the second-level cache.
pub(crate) const CACHED: usize = 1 << 20;

/// Prefetches a pixel, which need not exist, into the caches.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address affects only caches.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detected_instruction_set_is_available() {
        assert!(Isa::available().contains(&Isa::detect().unwrap()));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_setting_bounds_the_instruction_set() {
        assert!(!Isa::Avx512.is_allowed(Some(InstructionSet::Avx2)));
        assert!(Isa::Avx2.is_allowed(Some(InstructionSet::Avx2)));
        assert!([Isa::Avx2, Isa::Avx512].iter().all(|isa| isa.is_allowed(None)));
    }
}
