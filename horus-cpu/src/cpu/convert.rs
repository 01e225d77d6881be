//! Conversion between element types over contiguous runs, with the bits of
//! [`convert_pixel`](horus_base::dtype::convert_pixel).

use super::pixels::{Lanes, body, unary};
use super::simd::Isa;
use horus_base::dispatch;
use horus_base::dtype::{DType, Numeric, Pixel};

/// Conversion to one type: a method per source type, so that each pair takes the shortest path. 8-
/// and 16-bit integers pass through `i32`.
trait Target: Pixel {
    fn from_i32(v: i32) -> Self;
    fn from_u32(v: u32) -> Self;
    fn from_f32_fast(v: f32) -> Self;
    fn from_f64_fast(v: f64) -> Self;
}

macro_rules! small {
    ($($t:ident)*) => {$(
        impl Target for $t {
            #[inline(always)]
            fn from_i32(v: i32) -> Self {
                v.clamp($t::MIN.into(), $t::MAX.into()) as $t
            }
            #[inline(always)]
            fn from_u32(v: u32) -> Self {
                Ord::min(v, $t::MAX as u32) as $t
            }
            #[inline(always)]
            fn from_f32_fast(v: f32) -> Self {
                // Limits before the conversion (a NaN becomes 0): rounding commutes with them, and
                // a conversion that cannot overflow is one instruction.
                let v = if $t::MIN != 0 && v.is_nan() { 0.0 } else { v };
                let v = if v > f32::from($t::MIN) { v } else { f32::from($t::MIN) };
                let v = if v < f32::from($t::MAX) { v } else { f32::from($t::MAX) };
                // SAFETY: the value is within MIN..=MAX.
                unsafe { v.round_ties_even().to_int_unchecked::<i32>() as $t }
            }
            #[inline(always)]
            fn from_f64_fast(v: f64) -> Self {
                let v = if $t::MIN != 0 && v.is_nan() { 0.0 } else { v };
                let v = if v > f64::from($t::MIN) { v } else { f64::from($t::MIN) };
                let v = if v < f64::from($t::MAX) { v } else { f64::from($t::MAX) };
                // SAFETY: the value is within MIN..=MAX.
                unsafe { v.round_ties_even().to_int_unchecked::<i32>() as $t }
            }
        }
    )*};
}
small!(u8 u16 i8 i16);

macro_rules! wide {
    ($($t:ident |$i:ident| $from_i32:expr, |$u:ident| $from_u32:expr;)*) => {$(
        impl Target for $t {
            #[inline(always)]
            fn from_i32($i: i32) -> Self {
                $from_i32
            }
            #[inline(always)]
            fn from_u32($u: u32) -> Self {
                $from_u32
            }
            #[inline(always)]
            fn from_f32_fast(v: f32) -> Self {
                $t::from_f32(v)
            }
            #[inline(always)]
            fn from_f64_fast(v: f64) -> Self {
                $t::from_f64(v)
            }
        }
    )*};
}
wide! {
    u32 |v| Ord::max(v, 0) as u32, |v| v;
    i32 |v| v, |v| Ord::min(v, i32::MAX as u32) as i32;
    f32 |v| v as f32, |v| v as f32;
    f64 |v| v.into(), |v| v.into();
}

unsafe fn to<D: Target>(from: DType, isa: Isa, args: &[Lanes; 3], out: *mut u8, n: usize) {
    macro_rules! run {
        ($s:ident, |$v:ident| $body:expr) => {
            unary::<$s, D, _>(isa, args, out, n, body!(Unary [D: Target] |$v: $s| -> D { $body }))
        };
    }
    // SAFETY: vouched for by the caller.
    unsafe {
        match from.numeric() {
            Numeric::U8 => run!(u8, |v| D::from_i32(v.into())),
            Numeric::U16 => run!(u16, |v| D::from_i32(v.into())),
            Numeric::U32 => run!(u32, |v| D::from_u32(v)),
            Numeric::I8 => run!(i8, |v| D::from_i32(v.into())),
            Numeric::I16 => run!(i16, |v| D::from_i32(v.into())),
            Numeric::I32 => run!(i32, |v| D::from_i32(v)),
            Numeric::F32 => run!(f32, |v| D::from_f32_fast(v)),
            Numeric::F64 => run!(f64, |v| D::from_f64_fast(v)),
        }
    }
}

/// Converts `n` elements of the first operand.
///
/// # Safety
/// As for [`pixels::apply`](super::pixels::apply).
pub(super) unsafe fn run(from: DType, to_type: DType, isa: Isa, args: &[Lanes; 3], out: *mut u8, n: usize) {
    if from == to_type && !args[0].constant {
        // SAFETY: the caller vouches for n elements on both sides that do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(args[0].at, out, n * from.size()) }
        return;
    }
    // SAFETY: vouched for by the caller.
    dispatch!(to_type, D => unsafe { to::<D>(from, isa, args, out, n) })
}
