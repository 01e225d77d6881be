//! Conversion between element types over contiguous runs, with the bits of
//! [`convert_pixel`](crate::dtype::convert_pixel).

use super::pixels::{Lanes, body, unary};
use super::simd::Isa;
use crate::dispatch;
use crate::dtype::{DType, Pixel};

/// Conversion to one type: a method per source type, so that each pair has the shortest way.
trait Target: Pixel {
    fn from_i32(v: i32) -> Self;
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
            fn from_f32_fast(v: f32) -> Self {
                // Limits before the conversion (a NaN becomes 0): rounding commutes with them, and a conversion that
                // cannot overflow is one instruction.
                let v = if v > 0.0 { v } else { 0.0 };
                let v = if v < f32::from($t::MAX) { v } else { f32::from($t::MAX) };
                // SAFETY: the value is within 0..=MAX.
                unsafe { v.round_ties_even().to_int_unchecked::<i32>() as $t }
            }
            #[inline(always)]
            fn from_f64_fast(v: f64) -> Self {
                let v = if v > 0.0 { v } else { 0.0 };
                let v = if v < f64::from($t::MAX) { v } else { f64::from($t::MAX) };
                // SAFETY: the value is within 0..=MAX.
                unsafe { v.round_ties_even().to_int_unchecked::<i32>() as $t }
            }
        }
    )*};
}
small!(u8 u16);

impl Target for i32 {
    #[inline(always)]
    fn from_i32(v: i32) -> Self {
        v
    }
    #[inline(always)]
    fn from_f32_fast(v: f32) -> Self {
        i32::from_f32(v)
    }
    #[inline(always)]
    fn from_f64_fast(v: f64) -> Self {
        i32::from_f64(v)
    }
}

macro_rules! float {
    ($($t:ident)*) => {$(
        impl Target for $t {
            #[inline(always)]
            fn from_i32(v: i32) -> Self {
                v as $t
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
float!(f32 f64);

unsafe fn to<D: Target>(from: DType, isa: Isa, args: &[Lanes; 3], out: *mut u8, n: usize) {
    // SAFETY: vouched for by the caller.
    unsafe {
        match from {
            DType::U8 | DType::Bool => {
                unary::<u8, D, _>(isa, args, out, n, body!(Unary [D: Target] |v: u8| -> D { D::from_i32(v.into()) }))
            }
            DType::U16 => {
                unary::<u16, D, _>(isa, args, out, n, body!(Unary [D: Target] |v: u16| -> D { D::from_i32(v.into()) }))
            }
            DType::I32 => {
                unary::<i32, D, _>(isa, args, out, n, body!(Unary [D: Target] |v: i32| -> D { D::from_i32(v) }))
            }
            DType::F32 => {
                unary::<f32, D, _>(isa, args, out, n, body!(Unary [D: Target] |v: f32| -> D { D::from_f32_fast(v) }))
            }
            DType::F64 => {
                unary::<f64, D, _>(isa, args, out, n, body!(Unary [D: Target] |v: f64| -> D { D::from_f64_fast(v) }))
            }
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
