//! Bilinear samples with gathers.
//!
//! The two pixels of a row that a sample reads are adjacent, so one 64-bit gather reads both: half as many loads as one
//! gather for each corner.

use super::PlaneRows;
use super::line::WarpLine;
use crate::simd::Isa;
#[cfg(target_arch = "x86_64")]
use horus_base::dtype::DType;
use horus_base::dtype::Pixel;

/// Computes the samples at `line`, whose 2x2 neighbourhoods are all inside the rows in memory. Returns `false` except
/// for results in floating point on an instruction set with gathers.
#[inline(always)]
pub(super) fn run<P: Pixel, T: Pixel>(isa: Isa, held: &PlaneRows<'_, P>, line: &WarpLine, out: &mut [T]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if T::DTYPE.is_float() && x86::reads::<P>(held.data.len()) && !out.is_empty() {
        let mut line = *line;
        line.y.start -= (held.window.start as i64) << 32;
        debug_assert!([0, out.len() - 1].into_iter().map(|i| line.at(i)).all(|(y, x)| {
            let (rows, width) = (held.window.len() as i64, held.width as i64);
            (0..rows - 1).contains(&(y >> 32)) && (0..width - 1).contains(&(x >> 32))
        }));
        if (P::DTYPE, T::DTYPE) != (DType::F32, DType::F32) {
            if out.len() < 8 {
                return false;
            }
            // SAFETY: detected; the neighbourhoods are inside, because those of the first and the last sample are, and
            // positions are monotone. There are at least 8 samples.
            unsafe { x86::any(held.data, held.width, &line, bytemuck::cast_slice_mut::<T, T::Interp>(out)) };
            return true;
        }
        let data = bytemuck::cast_slice::<P, f32>(held.data);
        let out = bytemuck::cast_slice_mut::<T, f32>(out);
        match isa {
            // SAFETY: detected, and the neighbourhoods are inside, because those of the first and the last sample are,
            // and positions are monotone. Indices fit 32 bits because the length does.
            Isa::Avx512 => unsafe { x86::avx512(data, held.width, &line, out) },
            // SAFETY: as above; there are at least 8 samples.
            Isa::Avx2 if out.len() >= 8 => unsafe { x86::avx2(data, held.width, &line, out) },
            _ => return false,
        }
        return true;
    }
    let _ = (isa, held, line, out);
    false
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::line::{LinearCoordinate, WarpLine};
    use super::super::pairs::x86::gather;
    pub(super) use super::super::pairs::x86::reads;
    use horus_base::dtype::{DType, Float, Pixel};

    /// # Safety
    /// The neighbourhoods of all samples are in `data`, whose length fits an `i32`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) unsafe fn avx512(data: &[f32], width: usize, line: &WarpLine, out: &mut [f32]) {
        let (mut x, mut y) = (positions16(line.x), positions16(line.y));
        let (dx, dy) = (_mm512_set1_epi64(line.x.step * 16), _mm512_set1_epi64(line.y.step * 16));
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
        let stride = _mm512_set1_epi32(width as i32);
        let fraction = |p: [__m512i; 2]| {
            let upper = _mm512_srli_epi32::<8>(_mm512_permutex2var_epi32(p[0], even, p[1]));
            _mm512_mul_ps(_mm512_cvtepi32_ps(upper), _mm512_set1_ps(1.0 / 16_777_216.0))
        };
        for out in out.chunks_mut(16) {
            let lanes = (u32::MAX >> (32 - out.len())) as u16;
            let whole = |p: [__m512i; 2]| _mm512_permutex2var_epi32(p[0], odd, p[1]);
            let at = _mm512_add_epi32(_mm512_mullo_epi32(whole(y), stride), whole(x));
            let (fx, fy) = (fraction(x), fraction(y));
            let row = |data: *const f32| {
                let zero = _mm512_setzero_si512();
                let data = data.cast::<i64>();
                let (lower, upper) = (_mm512_castsi512_si256(at), _mm512_extracti64x4_epi64::<1>(at));
                // SAFETY: lanes beyond the run are masked out, and the pairs of the others are in the data.
                let (a, b) = unsafe {
                    (
                        _mm512_mask_i32gather_epi64::<4>(zero, lanes as u8, lower, data),
                        _mm512_mask_i32gather_epi64::<4>(zero, (lanes >> 8) as u8, upper, data),
                    )
                };
                let (a, b) = (_mm512_castsi512_ps(a), _mm512_castsi512_ps(b));
                lerp16(_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b), fx)
            };
            let top = row(data.as_ptr());
            let bottom = row(data.as_ptr().wrapping_add(width));
            // SAFETY: the mask has as many lanes as the chunk.
            unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), lanes, lerp16(top, bottom, fy)) };
            for k in 0..2 {
                x[k] = _mm512_add_epi64(x[k], dx);
                y[k] = _mm512_add_epi64(y[k], dy);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn lerp16(a: __m512, b: __m512, t: __m512) -> __m512 {
        _mm512_fmadd_ps(t, _mm512_sub_ps(b, a), a)
    }

    /// Coordinates of the first 16 samples.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn positions16(axis: LinearCoordinate) -> [__m512i; 2] {
        let lanes = _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(axis.step));
        [0, 8].map(|i| _mm512_add_epi64(_mm512_set1_epi64(axis.start + axis.step * i), lanes))
    }

    /// # Safety
    /// The neighbourhoods of all samples are in `data`, whose length fits an `i32`; there are at least 8 samples.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(data: &[f32], width: usize, line: &WarpLine, out: &mut [f32]) {
        let (x, y) = (lanes8(line.x.step), lanes8(line.y.step));
        let stride = _mm256_set1_epi32(width as i32);
        for i in (0..out.len()).step_by(8) {
            // The last eight may overlap the previous ones and repeat their values.
            let i = i.min(out.len() - 8);
            let ((xi, fx), (yi, fy)) = (split8(line.x, x, i), split8(line.y, y, i));
            let (fx, fy) = (single8(fx), single8(fy));
            let at = _mm256_add_epi32(_mm256_mullo_epi32(yi, stride), xi);
            // In the order 0, 1, 4, 5, 2, 3, 6, 7, so that the shuffles below restore the order of
            // the samples.
            let at = _mm256_permute4x64_epi64::<0b11_01_10_00>(at);
            let row = |data: *const f32| {
                let data = data.cast::<i64>();
                let (lower, upper) = (_mm256_castsi256_si128(at), _mm256_extracti128_si256::<1>(at));
                // SAFETY: the pairs lie in the data.
                let (a, b) =
                    unsafe { (_mm256_i32gather_epi64::<4>(data, lower), _mm256_i32gather_epi64::<4>(data, upper)) };
                let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
                lerp8(_mm256_shuffle_ps::<0b10_00_10_00>(a, b), _mm256_shuffle_ps::<0b11_01_11_01>(a, b), fx)
            };
            let top = row(data.as_ptr());
            let bottom = row(data.as_ptr().wrapping_add(width));
            // SAFETY: i + 8 is at most the length.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(i), lerp8(top, bottom, fy)) };
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn lerp8(a: __m256, b: __m256, t: __m256) -> __m256 {
        _mm256_fmadd_ps(t, _mm256_sub_ps(b, a), a)
    }

    /// `step` times 0, 1, 4, 5 and 2, 3, 6, 7: the order that an in-lane shuffle of both sorts.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn lanes8(step: i64) -> [__m256i; 2] {
        [_mm256_setr_epi64x(0, step, step * 4, step * 5), _mm256_setr_epi64x(step * 2, step * 3, step * 6, step * 7)]
    }

    /// Integer parts and the bits of the fractions of the coordinates of samples `i..i + 8`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn split8(axis: LinearCoordinate, lanes: [__m256i; 2], i: usize) -> (__m256i, __m256i) {
        let start = _mm256_set1_epi64x(axis.at(i));
        let [a, b] = lanes.map(|l| _mm256_castsi256_ps(_mm256_add_epi64(start, l)));
        let whole = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(a, b));
        let bits = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(a, b));
        (whole, bits)
    }

    /// Fractions as `f32`: their upper 24 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn single8(bits: __m256i) -> __m256 {
        let upper = _mm256_cvtepi32_ps(_mm256_srli_epi32::<8>(bits));
        _mm256_mul_ps(upper, _mm256_set1_ps(1.0 / 16_777_216.0))
    }

    /// Fractions as `f64`, exactly.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn double8(bits: __m256i) -> [__m256d; 2] {
        // The bits as the low bits of 2^52 + bits.
        let large = _mm256_set1_pd(4_503_599_627_370_496.0);
        [_mm256_castsi256_si128(bits), _mm256_extracti128_si256::<1>(bits)].map(|bits| {
            let sum = _mm256_or_si256(_mm256_cvtepu32_epi64(bits), _mm256_castpd_si256(large));
            let bits = _mm256_sub_pd(_mm256_castsi256_pd(sum), large);
            _mm256_mul_pd(bits, _mm256_set1_pd(1.0 / 4_294_967_296.0))
        })
    }

    /// Samples of pixels of any type that is gathered, converted to `F`.
    ///
    /// # Safety
    /// [`reads`] is true for the data, which contain the neighbourhoods of all samples; there are at least 8 samples.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn any<P: Pixel, F: Float>(data: &[P], width: usize, line: &WarpLine, out: &mut [F]) {
        let (x, y) = (lanes8(line.x.step), lanes8(line.y.step));
        let stride = _mm256_set1_epi32(width as i32);
        for i in (0..out.len()).step_by(8) {
            // The last eight may overlap the previous ones and repeat their values.
            let i = i.min(out.len() - 8);
            let ((xi, fx), (yi, fy)) = (split8(line.x, x, i), split8(line.y, y, i));
            let at = _mm256_add_epi32(_mm256_mullo_epi32(yi, stride), xi);
            // SAFETY: the pairs lie in the data, and i + 8 is at most the length.
            unsafe {
                let (top, bottom) = (gather(data, at), gather(data, _mm256_add_epi32(at, stride)));
                let to = out.as_mut_ptr().add(i);
                if F::DTYPE == DType::F32 {
                    let ((a, b), (c, d)) = (top.singles(), bottom.singles());
                    let (fx, fy) = (single8(fx), single8(fy));
                    _mm256_storeu_ps(to.cast(), lerp8(lerp8(a, b, fx), lerp8(c, d, fx), fy));
                } else {
                    let ((a, b), (c, d)) = (top.doubles(), bottom.doubles());
                    let (fx, fy) = (double8(fx), double8(fy));
                    for k in 0..2 {
                        let (above, below) = (lerp4(a[k], b[k], fx[k]), lerp4(c[k], d[k], fx[k]));
                        _mm256_storeu_pd(to.cast::<f64>().add(4 * k), lerp4(above, below, fy[k]));
                    }
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn lerp4(a: __m256d, b: __m256d, t: __m256d) -> __m256d {
        _mm256_fmadd_pd(t, _mm256_sub_pd(b, a), a)
    }
}
