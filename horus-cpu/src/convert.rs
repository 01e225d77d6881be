//! Conversion between element types over contiguous runs, with the bits of
//! [`convert_pixel`](horus_base::dtype::convert_pixel).

use super::pixels::{RunOperand, body, unary};
use super::simd::Isa;
use horus_base::dispatch;
use horus_base::dtype::{Conversion, DType, Numeric, Pixel};

/// Conversion to one type, with a method for each source type, so that each pair takes the shortest path. 8- and 16-bit
/// integers are converted through `i32`.
trait ConversionTarget: Pixel {
    fn from_i32(v: i32) -> Self;
    fn from_u32(v: u32) -> Self;
    fn from_f32_fast(v: f32) -> Self;
    fn from_f64_fast(v: f64) -> Self;
    fn cast_f32_fast(v: f32) -> Self;
    fn cast_f64_fast(v: f64) -> Self;
}

/// The integer part of a float modulo `$extent`, a power of two, from 0 on; 0 for infinities and NaN. Nothing is
/// rounded if the type represents every integer below `$extent`.
macro_rules! remainder {
    ($v:ident, $extent:expr) => {{
        let whole = $v.trunc();
        let low = whole - (whole * (1.0 / $extent)).floor() * $extent;
        if low > 0.0 { low } else { 0.0 }
    }};
}

macro_rules! small {
    ($($t:ident)*) => {$(
        impl ConversionTarget for $t {
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
                // Saturates before the conversion (a NaN becomes 0). Rounding commutes with saturation, and a
                // conversion that cannot overflow is one instruction.
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
            #[inline(always)]
            fn cast_f32_fast(v: f32) -> Self {
                // SAFETY: the remainder is below 2^16.
                unsafe { remainder!(v, (1u32 << $t::BITS) as f32).to_int_unchecked::<i32>() as $t }
            }
            #[inline(always)]
            fn cast_f64_fast(v: f64) -> Self {
                // SAFETY: the remainder is below 2^16.
                unsafe { remainder!(v, f64::from(1u32 << $t::BITS)).to_int_unchecked::<i32>() as $t }
            }
        }
    )*};
}
small!(u8 u16 i8 i16);

macro_rules! wide {
    ($($t:ident |$i:ident| $from_i32:expr, |$u:ident| $from_u32:expr, |$f:ident| $cast:expr;)*) => {$(
        impl ConversionTarget for $t {
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
            #[inline(always)]
            fn cast_f32_fast(v: f32) -> Self {
                Self::cast_f64_fast(v.into())
            }
            #[inline(always)]
            fn cast_f64_fast($f: f64) -> Self {
                $cast
            }
        }
    )*};
}
wide! {
    u32 |v| Ord::max(v, 0) as u32, |v| v, |v| low_bits(v);
    i32 |v| v, |v| Ord::min(v, i32::MAX as u32) as i32, |v| low_bits(v) as i32;
    f32 |v| v as f32, |v| v as f32, |v| v as f32;
    f64 |v| v.into(), |v| v.into(), |v| v;
}

/// The integer part modulo 2^32.
#[inline(always)]
fn low_bits(v: f64) -> u32 {
    // From 2^52 on, the low bits of a number are its integer part.
    (remainder!(v, 4_294_967_296.0) + 4_503_599_627_370_496.0).to_bits() as u32
}

/// [`Conversion::Cast`] of floats.
unsafe fn cast_to<D: ConversionTarget>(from: DType, isa: Isa, args: &[RunOperand; 3], out: *mut u8, n: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        match from {
            DType::F32 => unary::<f32, D, _>(
                isa,
                args,
                out,
                n,
                body!(Unary [D: ConversionTarget] |v: f32| -> D { D::cast_f32_fast(v) }),
            ),
            _ => unary::<f64, D, _>(
                isa,
                args,
                out,
                n,
                body!(Unary [D: ConversionTarget] |v: f64| -> D { D::cast_f64_fast(v) }),
            ),
        }
    }
}

/// [`Conversion::Cast`] of integers to narrower ones: keeps the low bits.
unsafe fn narrow(from: usize, to: usize, isa: Isa, args: &[RunOperand; 3], out: *mut u8, n: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        match (from, to) {
            (2, _) => unary::<u16, u8, _>(isa, args, out, n, body!(Unary [] |v: u16| -> u8 { v as u8 })),
            (_, 1) => unary::<u32, u8, _>(isa, args, out, n, body!(Unary [] |v: u32| -> u8 { v as u8 })),
            _ => unary::<u32, u16, _>(isa, args, out, n, body!(Unary [] |v: u32| -> u16 { v as u16 })),
        }
    }
}

/// The integer type with the given size and the sign of another type.
fn with_sign_of(of: DType, size: usize) -> DType {
    let signed = matches!(of, DType::I8 | DType::I16 | DType::I32);
    match (size, signed) {
        (1, true) => DType::I8,
        (1, false) => DType::U8,
        (2, true) => DType::I16,
        (2, false) => DType::U16,
        (_, true) => DType::I32,
        (_, false) => DType::U32,
    }
}

unsafe fn to<D: ConversionTarget>(from: DType, isa: Isa, args: &[RunOperand; 3], out: *mut u8, n: usize) {
    macro_rules! run {
        ($s:ident, |$v:ident| $body:expr) => {
            unary::<$s, D, _>(isa, args, out, n, body!(Unary [D: ConversionTarget] |$v: $s| -> D { $body }))
        };
    }
    // SAFETY: promised by the caller.
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
pub(super) unsafe fn run(
    rule: Conversion,
    from: DType,
    to_type: DType,
    isa: Isa,
    args: &[RunOperand; 3],
    out: *mut u8,
    n: usize,
) {
    let mut to_type = to_type;
    if rule == Conversion::Cast && !to_type.is_float() {
        if from.is_float() {
            // SAFETY: promised by the caller.
            return dispatch!(to_type, D => unsafe { cast_to::<D>(from, isa, args, out, n) });
        }
        if from.size() > to_type.size() {
            // SAFETY: promised by the caller.
            return unsafe { narrow(from.size(), to_type.size(), isa, args, out, n) };
        }
        to_type = with_sign_of(from, to_type.size());
    }
    if from == to_type && !args[0].constant {
        // SAFETY: the caller promises n elements on both sides that do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(args[0].at, out, n * from.size()) }
        return;
    }
    // SAFETY: promised by the caller.
    dispatch!(to_type, D => unsafe { to::<D>(from, isa, args, out, n) })
}
