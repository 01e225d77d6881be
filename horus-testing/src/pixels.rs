//! Pseudo-random pixels, sweeps over borders, sizes and pixel types, and comparison by bits.

use horus_base::dtype::{Float, Pixel};
use horus_base::shape::{Border, Window};

/// Pseudo-random pixels over the whole range of an integer type. Floats are about -8..8; if `special`, one in eight is
/// a signed zero, an infinity or a NaN.
pub fn noise<T: Pixel>(n: usize, seed: u64, special: bool) -> Vec<T> {
    let mut s = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        s
    };
    (0..n)
        .map(|_| {
            let r = next();
            let unit = (r >> 11) as f64 / (1u64 << 53) as f64;
            let (least, most) = (T::LOWEST.to_f64(), T::HIGHEST.to_f64());
            match T::DTYPE.is_float() {
                false => T::from_f64((least + unit * (most - least + 1.0)).floor()),
                true if special && r & 7 == 0 => {
                    T::from_f64([0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0][(r >> 3) as usize % 6])
                }
                true => T::from_f64((unit - 0.5) * 16.0),
            }
        })
        .collect()
}

/// Floats between -8 and 8 of which one in `every` is a NaN, of either sign, and half as many are infinite; none is zero.
pub fn with_nan<T: Float>(n: usize, seed: u64, every: u8) -> Vec<T> {
    let special = noise::<u8>(n, seed + 1, false).into_iter().map(|r| r % (2 * every));
    let signs = noise::<u8>(n, seed + 2, false).into_iter().map(|r| if r < 128 { 1.0 } else { -1.0 });
    (noise::<T>(n, seed, false).into_iter().zip(special.zip(signs)))
        .map(|(v, (special, sign))| match special {
            0 | 1 => T::from_f64(f64::NAN.copysign(sign)),
            2 => T::from_f64(sign * f64::INFINITY),
            _ => v,
        })
        .collect()
}

/// All borders, with constants that are significant.
pub fn borders() -> Vec<Border> {
    let constants = [0.0, -0.0, 3.25].map(Border::Constant);
    Border::all(f64::NAN).into_iter().chain(constants).collect()
}

/// Odd extents.
pub const SIZES: [(usize, usize); 6] = [(1, 1), (1, 37), (41, 1), (2, 3), (13, 17), (23, 150)];

/// A plane with rows `window` of `image`; virtual rows are wrapped.
pub fn rows_of<T: Pixel>(image: &[T], height: usize, width: usize, window: Window) -> Vec<T> {
    (window.start..window.end)
        .flat_map(|y| {
            let y = y.rem_euclid(height.cast_signed()).cast_unsigned();
            image[y * width..(y + 1) * width].to_vec()
        })
        .collect()
}

/// Asserts equal bits, except that any NaN equals any other: no operation defines which payload survives an addition of
/// two NaNs.
#[track_caller]
pub fn assert_same<T: Pixel>(got: &[T], want: &[T], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = g.scalar() == w.scalar() || (g.is_nan() && w.is_nan());
        assert!(same, "{what}: element {i} is {g:?}, not {w:?}");
    }
}

/// Runs `check::<T>()` for every pixel type.
#[macro_export]
macro_rules! for_each_type {
    ($check:ident) => {
        $check::<u8>();
        $check::<u16>();
        $check::<u32>();
        $check::<i8>();
        $check::<i16>();
        $check::<i32>();
        $check::<f32>();
        $check::<f64>();
    };
}
