//! Pixels as bits of words, and back as bytes of 0 and 1.

use super::versions::for_least_isa;
use horus_base::dtype::Pixel;

/// Pixels of a word.
pub(super) const BITS: usize = 64;

/// The nonzero pixels of at most 64: bit `i` is pixel `i`.
#[inline(always)]
fn bits_of<T: Pixel>(pixels: &[T]) -> u64 {
    let mut set = [0u8; BITS];
    set.iter_mut().zip(pixels).for_each(|(set, v)| *set = if *v == T::ZERO { 0 } else { 255 });
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        let mut all = 0;
        for at in set.as_chunks::<16>().0.iter().rev() {
            // SAFETY: sixteen bytes, and every processor has these instructions.
            let part = unsafe { _mm_movemask_epi8(_mm_loadu_si128(at.as_ptr().cast())) };
            all = all << 16 | u64::from(part.cast_unsigned());
        }
        all
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // The product gathers the lowest bit of each byte in the highest byte.
        let eight = |eight: &[u8; 8]| {
            let lowest = u64::from_le_bytes(*eight) & 0x0101_0101_0101_0101;
            lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56
        };
        set.as_chunks::<8>().0.iter().rev().fold(0, |all, part| all << 8 | eight(part))
    }
}

for_least_isa! {
    /// Packs a row of pixels; the bits after the last are those outside.
    pub(super) fn pack[T: Pixel][T](row: &[T], outside: u64, to: &mut [u64]) as pack_body
}

#[inline(always)]
fn pack_body<T: Pixel>(row: &[T], outside: u64, to: &mut [u64]) {
    let (whole, rest) = row.as_chunks::<BITS>();
    for (to, part) in to.iter_mut().zip(whole) {
        *to = bits_of(part);
    }
    if !rest.is_empty() {
        to[whole.len()] = bits_of(rest) | outside << rest.len();
    }
}

for_least_isa! {
    /// Writes pixels of 0 and 1.
    pub(super) fn unpack[][](words: &[u64], row: &mut [u8]) as unpack_body
}

#[inline(always)]
fn unpack_body(words: &[u64], row: &mut [u8]) {
    let (whole, rest) = row.as_chunks_mut::<BITS>();
    for (word, bytes) in words.iter().zip(whole) {
        *bytes = bytes_of(*word);
    }
    if let (Some(last), false) = (words.last(), rest.is_empty()) {
        rest.copy_from_slice(&bytes_of(*last)[..rest.len()]);
    }
}

/// The bits of a word as bytes of 0 and 1.
#[inline(always)]
fn bytes_of(word: u64) -> [u8; BITS] {
    let mut bytes = [0; BITS];
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: thirty-two bytes each, and kernels run with AVX2.
        unsafe {
            // A copy of a byte for each of its bits, of which that bit is kept.
            let copies = _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
            let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
            for (half, to) in bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                let four = _mm256_set1_epi32((word >> (32 * half)) as u32 as i32);
                let kept = _mm256_and_si256(_mm256_shuffle_epi8(four, copies), bit);
                let set = _mm256_and_si256(_mm256_cmpeq_epi8(kept, bit), _mm256_set1_epi8(1));
                _mm256_storeu_si256(to.as_mut_ptr().cast(), set);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (word >> i) as u8 & 1);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_bytes() {
        let words = [0, 1, u64::MAX, 1 << 63, 0x0123_4567_89ab_cdef, 0xfeed_0000_8000_0001];
        for width in [1, 7, 63, 64, 65, 200, 384] {
            let mut row = vec![9; width];
            unpack(&words[..width.div_ceil(BITS)], &mut row);
            let want: Vec<u8> = (0..width).map(|i| (words[i / BITS] >> (i % BITS)) as u8 & 1).collect();
            assert_eq!(row, want);
            for outside in [0, u64::MAX] {
                let mut packed = vec![7; width.div_ceil(BITS)];
                // Any number but zero counts.
                row.iter_mut().enumerate().filter(|(_, v)| **v != 0).for_each(|(i, v)| *v = i as u8 | 2);
                pack(&row, outside, &mut packed);
                for (i, word) in packed.iter().enumerate() {
                    let used = if (i + 1) * BITS <= width { u64::MAX } else { (1 << (width % BITS)) - 1 };
                    assert_eq!(*word, words[i] & used | outside & !used, "{width} {i}");
                }
                row.iter_mut().for_each(|v| *v = u8::from(*v != 0));
            }
        }
    }
}
