//! Sines and cosines of large arguments, by the method of Payne and Hanek: only the bits of 2 / pi that
//! affect the quadrant and the angle within it are multiplied.

use super::{PI_2_LOW, fma};

/// Bits of 2 / pi, after 32 zeros.
const TWO_OVER_PI: [u32; 41] = [
    0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026,
    0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f,
    0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
    0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d,
];

/// The quadrant of `x`, in the low bits, and the angle to its middle in two parts; NaN if `x` is not finite.
/// `|x|` must be at least 2^22.
pub(super) fn reduce(x: f64) -> (u64, f64, f64) {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as u32;
    if exponent == 0x7ff {
        return (0, f64::NAN, f64::NAN);
    }
    // |x| is mantissa * 2^(exponent - 1075). Bits before this one count multiples of 4 quarter turns.
    let mantissa = (bits & 0x000f_ffff_ffff_ffff) | 1 << 52;
    let first = exponent + 32 - 2 - 1075;
    let (word, shift) = ((first / 32) as usize, first % 32);
    // 192 bits from there on, the lowest word first, times the mantissa.
    let (mut product, mut carry) = ([0u32; 6], 0u64);
    for i in 0..6 {
        let pair = u64::from(TWO_OVER_PI[word + 5 - i]) << 32 | u64::from(TWO_OVER_PI[word + 6 - i]);
        let sum = (mantissa & 0xffff_ffff) * (pair << shift >> 32) + carry;
        (product[i], carry) = (sum as u32, sum >> 32);
    }
    carry = 0;
    for i in 0..5 {
        let pair = u64::from(TWO_OVER_PI[word + 5 - i]) << 32 | u64::from(TWO_OVER_PI[word + 6 - i]);
        let sum = (mantissa >> 32) * (pair << shift >> 32) + u64::from(product[i + 1]) + carry;
        (product[i + 1], carry) = (sum as u32, sum >> 32);
    }
    let top = u64::from(product[5]) << 32 | u64::from(product[4]);
    let next = u64::from(product[3]) << 32 | u64::from(product[2]);
    // Two bits of quadrant. The others are a fraction of the quadrant, relative to the nearest middle if the
    // first bit is read as a sign.
    let (mut high, mut low) = (top << 2 | next >> 62, next << 2 | u64::from(product[1]) >> 30);
    let behind = high >> 63;
    let mut quadrant = (top >> 62) + behind;
    if behind != 0 {
        (high, low) = (!high, !low);
    }
    let mut unit = 1.0 / 9_007_199_254_740_992.0;
    for _ in 0..127 {
        if high >> 63 != 0 {
            break;
        }
        (high, low) = (high << 1 | low >> 63, low << 1);
        unit *= 0.5;
    }
    // 53 bits and the next 53.
    let f = (high >> 11) as f64 * unit;
    let f_low = ((high & 0x7ff) << 42 | low >> 22) as f64 * (unit / 9_007_199_254_740_992.0);
    let r = f * std::f64::consts::FRAC_PI_2;
    let r_low = fma(f, PI_2_LOW, fma(f_low, std::f64::consts::FRAC_PI_2, fma(f, std::f64::consts::FRAC_PI_2, -r)));
    let backwards = (behind != 0) != (x < 0.0);
    if x < 0.0 {
        quadrant = quadrant.wrapping_neg();
    }
    if backwards { (quadrant, -r, -r_low) } else { (quadrant, r, r_low) }
}
