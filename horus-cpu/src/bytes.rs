//! Linear filters of bytes by integer taps, in integers: products of four bytes at a time.
//!
//! Where [`MapKernel::bytes`](horus_plan::ir::kernel::MapKernel::bytes) is true, `f32` represents every sum of a filter
//! exactly, so that integer sums in any order have the same bits. A row is stored in *quads*: element `x` is an `i32`
//! whose bytes are the same sample of four neighbouring pixels. Taps are quads, too, with zeros after the last of a
//! row. Signed pixels are stored with 128 added; sums begin with a correction.

use super::simd::Isa;
#[cfg(target_arch = "x86_64")]
use super::simd::Lanes;
use horus_base::dtype::DType;
use horus_plan::ops::neighbourhood::{Filter, FilterLayout};

/// Pixels of a quad.
pub(crate) const QUAD: usize = 4;
/// Most samples of a pixel that [`widen`] supports.
pub(crate) const SAMPLES: usize = 4;
/// Bytes beyond the pixels of a row that [`widen`] may read.
pub(crate) const BEYOND: usize = 32;

/// Instructions that multiply and add bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dot {
    /// `vpdpbusd` of AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    /// `vpdpbusd` of AVX.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// `vpmaddubsw`, for taps whose products of pairs fit 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Dot {
    /// The instructions for a filter of integer taps, if they are faster than `f32`.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn of(filter: &Filter, isa: Isa) -> Option<Dot> {
        let FilterLayout::Dense { width, .. } = *filter.layout() else { return None };
        match isa {
            Isa::Avx512 if is_x86_feature_detected!("avx512vnni") => Some(Dot::Avx512Vnni),
            _ if is_x86_feature_detected!("avxvnni") => Some(Dot::AvxVnni),
            _ => {
                let small = |pair: &[f64]| pair.iter().map(|tap| tap.abs()).sum::<f64>() <= 128.0;
                filter.taps().chunks(width).all(|row| row.chunks(2).all(small)).then_some(Dot::Avx2)
            }
        }
    }

    /// The instructions for a filter: none that are faster than `f32`.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn of(_: &Filter, _: Isa) -> Option<Dot> {
        None
    }
}

/// The taps of dense filters of one shape as quads, row by row: for each quad, the taps of all filters.
pub(crate) fn taps(filters: &[&Filter]) -> Vec<i32> {
    let Some(FilterLayout::Dense { height, width, .. }) = filters.first().map(|f| f.layout()) else {
        return Vec::new();
    };
    let quads = (0..*height).flat_map(|y| (0..*width).step_by(QUAD).map(move |x| (y, x)));
    let quad = |filter: &Filter, (y, x): (usize, usize)| {
        let row = &filter.taps()[y * width..][..*width];
        i32::from_le_bytes(std::array::from_fn(|k| row.get(x + k).map_or(0, |tap| *tap as i8 as u8)))
    };
    quads.flat_map(|at| filters.iter().map(move |filter| quad(filter, at))).collect()
}

/// Initial sums of filters of pixels of this type.
pub(crate) fn starts(filters: &[&Filter], dtype: DType) -> Vec<i32> {
    let start = |filter: &&Filter| match dtype {
        DType::I8 => -128 * filter.taps().iter().map(|tap| *tap as i32).sum::<i32>(),
        _ => 0,
    };
    filters.iter().map(start).collect()
}

/// Bits in which pixels of this type differ from unsigned bytes.
pub(crate) fn flip(dtype: DType) -> u8 {
    if dtype == DType::I8 { 0x80 } else { 0 }
}

/// Converts a row of bytes, of pixels of at most [`SAMPLES`] samples, to quads. [`BEYOND`] more bytes can be read.
pub(crate) fn widen(bytes: &[u8], samples: usize, flip: u8, quads: &mut [i32]) {
    assert!(bytes.len() >= quads.len() + BEYOND && samples <= SAMPLES, "bytes beyond a row can be read");
    let flip = i32::from_le_bytes([flip; QUAD]);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every kernel of this architecture needs AVX2.
    unsafe {
        x86::widen(bytes, samples, flip, quads);
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (quad, bytes) in quads.iter_mut().zip(bytes.windows(QUAD * samples)) {
        *quad = i32::from_le_bytes(std::array::from_fn(|k| bytes[k * samples])) ^ flip;
    }
}

/// A quad, or its sum.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct One(i32);

#[cfg(target_arch = "x86_64")]
impl Lanes for One {
    type Elem = i32;
    type One = One;
    const LANES: usize = 1;
    const TAPS: usize = QUAD;

    #[inline(always)]
    unsafe fn splat(v: i32) -> One {
        One(v)
    }
    #[inline(always)]
    unsafe fn load(at: *const i32) -> One {
        // SAFETY: the caller promises a readable quad.
        One(unsafe { at.read() })
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut i32) {
        // SAFETY: the caller promises a writable pixel.
        unsafe { at.cast::<f32>().write(self.0 as f32) }
    }
    #[inline(always)]
    unsafe fn fma(self, a: One, b: One) -> One {
        let products = self.0.to_le_bytes().into_iter().zip(a.0.to_le_bytes());
        One(products.fold(b.0, |sum, (tap, pixel)| sum + i32::from(tap.cast_signed()) * i32::from(pixel)))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2Quads, Avx512Quads, AvxQuads};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{BEYOND, Lanes, One, QUAD, SAMPLES};

    macro_rules! quads {
        ($name:ident, $lanes:literal, $raw:ident, $splat:ident, $load:ident, $store:ident, $float:ident, $dot:expr) => {
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct $name($raw);

            impl Lanes for $name {
                type Elem = i32;
                type One = One;
                const LANES: usize = $lanes;
                const TAPS: usize = QUAD;

                #[inline(always)]
                unsafe fn splat(v: i32) -> Self {
                    // SAFETY: the caller promises the instruction set.
                    $name(unsafe { $splat(v) })
                }
                #[inline(always)]
                unsafe fn load(at: *const i32) -> Self {
                    // SAFETY: the caller promises the instruction set and the readable
                    // elements.
                    $name(unsafe { $load(at.cast()) })
                }
                #[inline(always)]
                unsafe fn store(self, at: *mut i32) {
                    // SAFETY: the caller promises the instruction set and the writable
                    // pixels.
                    unsafe { $store(at.cast(), $float(self.0)) }
                }
                #[inline(always)]
                unsafe fn fma(self, a: Self, b: Self) -> Self {
                    // SAFETY: the caller promises the instruction set.
                    $name(unsafe { $dot(b.0, a.0, self.0) })
                }
            }
        };
    }

    quads!(
        Avx512Quads,
        16,
        __m512i,
        _mm512_set1_epi32,
        _mm512_loadu_si512,
        _mm512_storeu_ps,
        _mm512_cvtepi32_ps,
        _mm512_dpbusd_epi32
    );
    quads!(
        AvxQuads,
        8,
        __m256i,
        _mm256_set1_epi32,
        _mm256_loadu_si256,
        _mm256_storeu_ps,
        _mm256_cvtepi32_ps,
        _mm256_dpbusd_avx_epi32
    );
    quads!(
        Avx2Quads,
        8,
        __m256i,
        _mm256_set1_epi32,
        _mm256_loadu_si256,
        _mm256_storeu_ps,
        _mm256_cvtepi32_ps,
        |sum, pixels, taps| {
            let pairs = _mm256_maddubs_epi16(pixels, taps);
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    );

    /// See [`widen`](super::widen).
    ///
    /// # Safety
    /// The machine has AVX2, and [`BEYOND`] bytes beyond the quads can be read.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn widen(bytes: &[u8], samples: usize, flip: i32, quads: &mut [i32]) {
        const { assert!(BEYOND >= 8 + 4 + 16 && 3 + (QUAD - 1) * SAMPLES < 16) };
        // Each half has sixteen bytes, for the four quads that begin at its first four bytes.
        let mut from = [0; 16];
        from.iter_mut().enumerate().for_each(|(i, from)| *from = (i / QUAD + i % QUAD * samples) as i8);
        // SAFETY: sixteen bytes.
        let from = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(from.as_ptr().cast()) });
        let flip = _mm256_set1_epi32(flip);
        let (whole, rest) = quads.as_chunks_mut::<8>();
        let eight = |x: usize| {
            // SAFETY: promised by the caller: `x` is at most the number of quads.
            let read = unsafe { _mm256_loadu2_m128i(bytes.as_ptr().add(x + 4).cast(), bytes.as_ptr().add(x).cast()) };
            _mm256_xor_si256(_mm256_shuffle_epi8(read, from), flip)
        };
        let at = 8 * whole.len();
        for (i, to) in whole.iter_mut().enumerate() {
            // SAFETY: eight quads can be written.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), eight(8 * i)) }
        }
        let mut last = [0; 8];
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(last.as_mut_ptr().cast(), eight(at)) }
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quads_are_a_sample_of_four_pixels() {
        for (n, samples) in (0..40).flat_map(|n| (1..=SAMPLES).map(move |samples| (n, samples))) {
            let bytes: Vec<u8> = (0..n + BEYOND).map(|v| (v * 37) as u8).collect();
            let mut quads = vec![0; n];
            widen(&bytes, samples, 0x80, &mut quads);
            for (x, quad) in quads.iter().enumerate() {
                let want = [0, 1, 2, 3].map(|k| bytes[x + k * samples]);
                assert_eq!(quad.to_le_bytes().map(|v| v ^ 0x80), want);
            }
        }
    }

    #[test]
    fn taps_are_padded_by_zeros_in_each_row() {
        let (a, b) = (Filter::dense(2, 5, (1..11).map(f64::from).collect::<Vec<_>>()), Filter::dense(2, 5, [-1.0; 10]));
        let got: Vec<[i8; 4]> = taps(&[&a, &b]).iter().map(|q| q.to_le_bytes().map(u8::cast_signed)).collect();
        let whole = [-1; 4];
        let want =
            [[1, 2, 3, 4], whole, [5, 0, 0, 0], [-1, 0, 0, 0], [6, 7, 8, 9], whole, [10, 0, 0, 0], [-1, 0, 0, 0]];
        assert_eq!(got, want);
        assert_eq!(starts(&[&a, &b], DType::I8), [-128 * 55, 1280]);
        assert_eq!(starts(&[&a, &b], DType::U8), [0, 0]);
    }
}
