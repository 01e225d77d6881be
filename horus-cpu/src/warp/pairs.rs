//! Linear interpolation between pairs of neighbouring pixels, eight pairs at a time.
//!
//! Distant pairs are gathered, both pixels of a pair at once. The first pixels of eight pairs may be among sixteen, for
//! example along a row that is enlarged, or reduced by about two. Then loads and shuffles read the first pixels, and
//! again the second pixels, at the distance of a pixel's samples.

use super::line::LinearCoordinate;
use crate::simd::Isa;
use horus_base::dtype::{DType, Float, Pixel};

/// Maximum number of pairs looked up at once.
pub(super) const WIDTH: usize = 512;
/// Pairs computed together.
const LANES: usize = 8;
/// Pixels of a load that contains the first pixels of a group.
const WINDOW: usize = 16;

/// First pixels of pairs along a row, and fractions between them.
pub(super) struct PairColumns<F> {
    n: usize,
    /// Samples of a pixel: the distance in elements between the pixels of a pair.
    samples: usize,
    /// Elements before the first whole pixel.
    before: usize,
    firsts: [i32; WIDTH],
    fractions: [F; WIDTH],
    /// The load of each group of pairs; empty if hardly any group has one.
    windows: Vec<PairLoad>,
}

/// The first pixel of a load, and the positions in it of a group's first pixels: of bytes if a pixel has two bytes,
/// otherwise of pixels. The eight positions of pixels are stored twice. `None` for a group that does not fit one load.
type PairLoad = Option<(u32, [u8; WINDOW])>;

impl<F: Float> PairColumns<F> {
    /// The pairs of `n` elements of a row of `width`, from sample `first` of the first position on, with pixels of
    /// `samples`. Loads of groups are for pixels of [`window_pixel`] bytes.
    #[inline(always)]
    pub(super) fn new(
        axis: &LinearCoordinate,
        [first, samples]: [usize; 2],
        n: usize,
        width: usize,
        window_pixel: Option<usize>,
    ) -> PairColumns<F> {
        let (firsts, fractions) = ([0; WIDTH], [F::ZERO; WIDTH]);
        let before = (samples - first) % samples;
        let mut columns = PairColumns { n, samples, before, firsts, fractions, windows: Vec::new() };
        let (mut pixel, mut sample) = (0, first);
        for i in 0..n {
            let x = axis.at(pixel);
            columns.firsts[i] = (x >> 32) as i32 * samples as i32 + sample as i32;
            columns.fractions[i] = F::from_fraction(x as u32);
            sample += 1;
            if sample == samples {
                (pixel, sample) = (pixel + 1, 0);
            }
        }
        let span = axis.step.unsigned_abs() >> 31;
        if let Some(bytes) = window_pixel
            && n >= LANES
            && width >= WINDOW + samples
            && (span <= 4 || samples > 1)
        {
            columns.windows = columns.groups().map(|i| columns.window(i, width, bytes)).collect();
            if 2 * columns.windows.iter().flatten().count() < columns.windows.len() {
                columns.windows.clear();
            }
        }
        columns
    }

    /// The load of the group of pair `i`, if one load suffices.
    #[inline(always)]
    fn window(&self, i: usize, width: usize, bytes: usize) -> PairLoad {
        let group = &self.firsts[i..i + LANES];
        let least = group.iter().fold(i32::MAX, |least, first| least.min(*first));
        let base = least.min((width - self.samples - WINDOW) as i32);
        let fits = group.iter().all(|first| ((first - base) as usize) < WINDOW);
        let place = |l: usize| (group[l] - base) as u8;
        let places = |l: usize| if bytes == 2 { 2 * place(l / 2) + (l % 2) as u8 } else { place(l % LANES) };
        fits.then(|| (base as u32, std::array::from_fn(places)))
    }

    /// The first pair of each group. Groups begin with pixels: a group may overlap the next, which repeats its values.
    /// The last group ends with the row.
    #[inline(always)]
    fn groups(&self) -> impl Iterator<Item = usize> + Clone + use<F> {
        let PairColumns { n, samples, before, .. } = *self;
        let step = if samples < LANES { LANES - LANES % samples } else { LANES };
        (0..before.min(n)).step_by(LANES).chain((before..n).step_by(step)).map(move |i| i.min(n - LANES))
    }

    pub(super) fn firsts(&self) -> &[i32] {
        &self.firsts[..self.n]
    }

    pub(super) fn fractions(&self) -> &[F] {
        &self.fractions[..self.n]
    }
}

/// The bytes of a pixel if loads and shuffles of pixels of a type are faster than a gather.
pub(super) fn window_pixel<P: Pixel>() -> Option<usize> {
    matches!(P::DTYPE, DType::U8 | DType::U16 | DType::I16 | DType::F32).then_some(size_of::<P>())
}

/// Interpolates between all pairs of a row. Returns `false` if there is no fast method for these types.
#[inline(always)]
pub(super) fn between<P: Pixel, F: Float>(isa: Isa, columns: &PairColumns<F>, row: &[P], out: &mut [F]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if columns.n >= LANES && x86::reads::<P>(row.len()) {
        debug_assert!(columns.firsts().iter().all(|&x| x >= 0 && (x as usize) + columns.samples < row.len()));
        let inside = |(base, _): &(u32, _)| *base as usize + columns.samples + WINDOW <= row.len();
        debug_assert!(columns.windows.iter().flatten().all(inside));
        assert!(out.len() == columns.n);
        // SAFETY: the instruction set is detected, pairs are in the row, windows were made for rows of its width and
        // pixels of its type, and there are fractions and results for whole groups.
        unsafe {
            match (P::DTYPE, isa) {
                _ if columns.windows.is_empty() => x86::gathered(row, columns, out),
                (DType::F32, Isa::Avx512) => x86::permuted(row, columns, out),
                _ => x86::shuffled(row, columns, out),
            }
        }
        return true;
    }
    let _ = (isa, columns, row, out);
    false
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::*;

    use super::{DType, Float, PairColumns, Pixel};

    /// Eight pairs of pixels: the first ones and the second ones.
    #[derive(Clone, Copy)]
    pub(in super::super) enum Pairs {
        Integers(__m256i, __m256i),
        Singles(__m256, __m256),
        Doubles([__m256d; 2], [__m256d; 2]),
    }

    /// Returns `true` if pairs of `len` pixels of a type can be read.
    #[inline(always)]
    pub(in super::super) fn reads<P: Pixel>(len: usize) -> bool {
        let known = matches!(P::DTYPE, DType::U8 | DType::U16 | DType::I16 | DType::F32 | DType::F64);
        known && len >= 4 && i32::try_from(len).is_ok()
    }

    /// Pairs whose first pixels are at `at`.
    ///
    /// # Safety
    /// The pairs are in `data`, and [`reads`] is true for it.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(in super::super) unsafe fn gather<P: Pixel>(data: &[P], at: __m256i) -> Pairs {
        let words = data.as_ptr().cast::<i32>();
        // SAFETY: the four bytes read contain the pair and are in the data, as promised.
        unsafe {
            match P::DTYPE {
                DType::U8 => {
                    // The last pairs are read from an earlier address.
                    let from = _mm256_min_epi32(at, _mm256_set1_epi32(data.len() as i32 - 4));
                    let behind = _mm256_slli_epi32::<3>(_mm256_sub_epi32(at, from));
                    let both = _mm256_srlv_epi32(_mm256_i32gather_epi32::<1>(words, from), behind);
                    let byte = _mm256_set1_epi32(255);
                    let second = _mm256_and_si256(_mm256_srli_epi32::<8>(both), byte);
                    Pairs::Integers(_mm256_and_si256(both, byte), second)
                }
                DType::U16 => {
                    let both = _mm256_i32gather_epi32::<2>(words, at);
                    let first = _mm256_and_si256(both, _mm256_set1_epi32(0xffff));
                    Pairs::Integers(first, _mm256_srli_epi32::<16>(both))
                }
                DType::I16 => {
                    let both = _mm256_i32gather_epi32::<2>(words, at);
                    let first = _mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(both));
                    Pairs::Integers(first, _mm256_srai_epi32::<16>(both))
                }
                DType::F32 => {
                    let data = data.as_ptr().cast::<f32>();
                    let second = _mm256_i32gather_ps::<4>(data.wrapping_add(1), at);
                    Pairs::Singles(_mm256_i32gather_ps::<4>(data, at), second)
                }
                _ => {
                    let data = data.as_ptr().cast::<f64>();
                    let (low, high) = (_mm256_castsi256_si128(at), _mm256_extracti128_si256::<1>(at));
                    let of =
                        |data: *const f64| [_mm256_i32gather_pd::<8>(data, low), _mm256_i32gather_pd::<8>(data, high)];
                    Pairs::Doubles(of(data), of(data.wrapping_add(1)))
                }
            }
        }
    }

    impl Pairs {
        /// Combines the first pixels of these pairs with the second ones of others, of the same type.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        fn with_seconds_of(self, others: Pairs) -> Pairs {
            match (self, others) {
                (Pairs::Integers(a, _), Pairs::Integers(_, b)) => Pairs::Integers(a, b),
                (Pairs::Singles(a, _), Pairs::Singles(_, b)) => Pairs::Singles(a, b),
                (Pairs::Doubles(a, _), Pairs::Doubles(_, b)) => Pairs::Doubles(a, b),
                _ => unreachable!("pairs of one type"),
            }
        }

        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(in super::super) fn singles(self) -> (__m256, __m256) {
            match self {
                Pairs::Integers(a, b) => (_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b)),
                Pairs::Singles(a, b) => (a, b),
                Pairs::Doubles(..) => unreachable!("doubles are not narrowed"),
            }
        }

        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(in super::super) fn doubles(self) -> ([__m256d; 2], [__m256d; 2]) {
            match self {
                Pairs::Integers(a, b) => (wide_integers(a), wide_integers(b)),
                Pairs::Singles(a, b) => (wide_singles(a), wide_singles(b)),
                Pairs::Doubles(a, b) => (a, b),
            }
        }

        /// Stores the interpolated values.
        ///
        /// # Safety
        /// Fractions and results are eight each, of the same type.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn lerp<F: Float>(self, t: *const F, out: *mut F) {
            // SAFETY: as promised.
            unsafe {
                if F::DTYPE == DType::F32 {
                    let (a, b) = self.singles();
                    let t = _mm256_loadu_ps(t.cast());
                    _mm256_storeu_ps(out.cast(), _mm256_fmadd_ps(t, _mm256_sub_ps(b, a), a));
                    return;
                }
                let (a, b) = self.doubles();
                for k in 0..2 {
                    let t = _mm256_loadu_pd(t.cast::<f64>().add(4 * k));
                    let value = _mm256_fmadd_pd(t, _mm256_sub_pd(b[k], a[k]), a[k]);
                    _mm256_storeu_pd(out.cast::<f64>().add(4 * k), value);
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn wide_integers(v: __m256i) -> [__m256d; 2] {
        [_mm256_cvtepi32_pd(_mm256_castsi256_si128(v)), _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(v))]
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn wide_singles(v: __m256) -> [__m256d; 2] {
        [_mm256_cvtps_pd(_mm256_castps256_ps128(v)), _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v))]
    }

    /// # Safety
    /// The pairs are in the row, and [`reads`] is true for it; there are at least eight, and as many fractions and
    /// results.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn gathered<P: Pixel, F: Float>(row: &[P], columns: &PairColumns<F>, out: &mut [F]) {
        for i in columns.groups() {
            // SAFETY: as promised.
            unsafe { group(row, columns, i, out) }
        }
    }

    /// The group of pair `i`, like [`gathered`].
    ///
    /// # Safety
    /// As for [`gathered`].
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn group<P: Pixel, F: Float>(row: &[P], columns: &PairColumns<F>, i: usize, out: &mut [F]) {
        // SAFETY: as promised.
        unsafe {
            let at = _mm256_loadu_si256(columns.firsts.as_ptr().add(i).cast());
            let pairs = gather(row, at);
            let pairs = if columns.samples == 1 {
                pairs
            } else {
                // The second pixels are the first ones of the neighbouring pairs.
                pairs.with_seconds_of(gather(row, _mm256_add_epi32(at, _mm256_set1_epi32(columns.samples as i32 - 1))))
            };
            pairs.lerp(columns.fractions.as_ptr().add(i), out.as_mut_ptr().add(i));
        }
    }

    /// # Safety
    /// The row contains its windows; there are as many fractions and results as pairs.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn shuffled<P: Pixel, F: Float>(row: &[P], columns: &PairColumns<F>, out: &mut [F]) {
        for (i, window) in columns.groups().zip(&columns.windows) {
            // SAFETY: as promised.
            unsafe {
                let Some((base, places)) = window else {
                    group(row, columns, i, out);
                    continue;
                };
                let first = row.as_ptr().add(*base as usize);
                let (second, places) = (first.add(columns.samples), _mm_loadu_si128(places.as_ptr().cast()));
                let pairs = if P::DTYPE == DType::F32 {
                    Pairs::Singles(singles_of(first.cast(), places), singles_of(second.cast(), places))
                } else {
                    Pairs::Integers(integers_of(first, places), integers_of(second, places))
                };
                pairs.lerp(columns.fractions.as_ptr().add(i), out.as_mut_ptr().add(i));
            }
        }
    }

    /// Eight of sixteen pixels.
    ///
    /// # Safety
    /// There are sixteen pixels, of `u8`, `u16` or `i16`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn integers_of<P: Pixel>(from: *const P, places: __m128i) -> __m256i {
        // SAFETY: as promised.
        unsafe {
            let low = _mm_loadu_si128(from.cast());
            if P::DTYPE == DType::U8 {
                return _mm256_cvtepu8_epi32(_mm_shuffle_epi8(low, places));
            }
            // A shuffle writes zeros where the highest bit of a place is set.
            let low = _mm_shuffle_epi8(low, _mm_add_epi8(places, _mm_set1_epi8(0x70)));
            let high = _mm_loadu_si128(from.add(8).cast());
            let both = _mm_or_si128(low, _mm_shuffle_epi8(high, _mm_sub_epi8(places, _mm_set1_epi8(16))));
            if P::DTYPE == DType::I16 { _mm256_cvtepi16_epi32(both) } else { _mm256_cvtepu16_epi32(both) }
        }
    }

    /// Eight of sixteen pixels.
    ///
    /// # Safety
    /// There are sixteen pixels.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn singles_of(from: *const f32, places: __m128i) -> __m256 {
        let places = _mm256_cvtepu8_epi32(places);
        // SAFETY: as promised.
        let [low, high] = unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] };
        // The bit of 8 becomes the highest, which selects.
        let is_high = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(places));
        _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, places), _mm256_permutevar8x32_ps(high, places), is_high)
    }

    /// # Safety
    /// The row is of `f32` and contains its windows; there are as many fractions and results as pairs.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    pub(super) unsafe fn permuted<P: Pixel, F: Float>(row: &[P], columns: &PairColumns<F>, out: &mut [F]) {
        for (i, window) in columns.groups().zip(&columns.windows) {
            // SAFETY: as promised.
            unsafe {
                let Some((base, places)) = window else {
                    group(row, columns, i, out);
                    continue;
                };
                let from = row.as_ptr().add(*base as usize);
                let places = _mm512_cvtepu8_epi32(_mm_loadu_si128(places.as_ptr().cast()));
                let a = _mm512_permutexvar_ps(places, _mm512_loadu_ps(from.cast()));
                let b = _mm512_permutexvar_ps(places, _mm512_loadu_ps(from.add(columns.samples).cast()));
                let pairs = Pairs::Singles(_mm512_castps512_ps256(a), _mm512_castps512_ps256(b));
                pairs.lerp(columns.fractions.as_ptr().add(i), out.as_mut_ptr().add(i));
            }
        }
    }
}
