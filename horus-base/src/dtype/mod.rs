//! Pixel types: the eight numeric types of pixels, and their arithmetic.
//!
//! The arithmetic here *is* the semantics: the reference, the CPU kernels and the CUDA kernels all follow it
//! to the bit. Integers saturate. `x / 0` is `0` for integers. A float becomes an integer by rounding to
//! nearest even and saturating. `min` and `max` of floats ignore a NaN and return the first operand on a tie.

mod arithmetic;
mod element;
mod math;
mod pixel;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use arithmetic::Arithmetic;
pub use element::{Element, are_truths};
pub use pixel::{Float, Pixel};

/// The pixel type of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DType {
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Truth values of a mask, one byte each. Kernels see [`DType::U8`], 0 and 1.
    Bool,
}

impl DType {
    /// All numeric types, for tests of each.
    pub const ALL: [DType; 8] =
        [DType::U8, DType::U16, DType::U32, DType::I8, DType::I16, DType::I32, DType::F32, DType::F64];

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 | DType::I8 | DType::Bool => 1,
            DType::U16 | DType::I16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::F64 => 8,
        }
    }

    /// Returns `true` for floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// Returns `true` for signed integers.
    pub const fn is_signed(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32)
    }

    /// Returns `true` for integers of 8 and 16 bits, whose values fit in a table.
    pub const fn is_narrow(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::I8 | DType::I16)
    }

    /// The type that linear filters of this type compute in and return: `F64` stays, all others become `F32`.
    pub const fn linear(self) -> DType {
        match self {
            DType::F64 => DType::F64,
            _ => DType::F32,
        }
    }

    /// The type that geometric operations interpolate in before rounding back: wide enough for every value.
    pub const fn interpolation(self) -> DType {
        match self {
            DType::F64 | DType::U32 | DType::I32 => DType::F64,
            _ => DType::F32,
        }
    }

    /// The type in memory and in kernels: `U8` for `Bool`, else the type itself.
    pub const fn stored(self) -> DType {
        match self {
            DType::Bool => DType::U8,
            number => number,
        }
    }

    /// [`DType::stored`] as a type that can be matched without a wildcard.
    #[doc(hidden)]
    pub const fn numeric(self) -> Numeric {
        match self {
            DType::U8 | DType::Bool => Numeric::U8,
            DType::U16 => Numeric::U16,
            DType::U32 => Numeric::U32,
            DType::I8 => Numeric::I8,
            DType::I16 => Numeric::I16,
            DType::I32 => Numeric::I32,
            DType::F32 => Numeric::F32,
            DType::F64 => Numeric::F64,
        }
    }

    /// The Rust name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::Bool => "bool",
        }
    }

    /// NumPy's name: kind and bytes.
    pub const fn numpy(self) -> &'static str {
        match self {
            DType::U8 => "u1",
            DType::U16 => "u2",
            DType::U32 => "u4",
            DType::I8 => "i1",
            DType::I16 => "i2",
            DType::I32 => "i4",
            DType::F32 => "f4",
            DType::F64 => "f8",
            DType::Bool => "b1",
        }
    }
}

/// The types in memory and in kernels. The enum is exhaustive, so that crates of Horus need no wildcard,
/// which would hide a new type from the compiler. Users match [`DType`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Numeric {
    U8,
    U16,
    U32,
    I8,
    I16,
    I32,
    F32,
    F64,
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A constant of a numeric type. Equality and hashing are by bits, so that NaN equals itself.
#[derive(Clone, Copy)]
pub enum Scalar {
    /// A `u8`.
    U8(u8),
    /// A `u16`.
    U16(u16),
    /// A `u32`.
    U32(u32),
    /// An `i8`.
    I8(i8),
    /// An `i16`.
    I16(i16),
    /// An `i32`.
    I32(i32),
    /// An `f32`.
    F32(f32),
    /// An `f64`.
    F64(f64),
}

impl Scalar {
    /// The element type of the constant.
    #[inline]
    pub const fn dtype(self) -> DType {
        match self {
            Scalar::U8(_) => DType::U8,
            Scalar::U16(_) => DType::U16,
            Scalar::U32(_) => DType::U32,
            Scalar::I8(_) => DType::I8,
            Scalar::I16(_) => DType::I16,
            Scalar::I32(_) => DType::I32,
            Scalar::F32(_) => DType::F32,
            Scalar::F64(_) => DType::F64,
        }
    }

    /// The value as `f64` (exact for every type).
    #[inline]
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::U8(v) => f64::from(v),
            Scalar::U16(v) => f64::from(v),
            Scalar::U32(v) => f64::from(v),
            Scalar::I8(v) => f64::from(v),
            Scalar::I16(v) => f64::from(v),
            Scalar::I32(v) => f64::from(v),
            Scalar::F32(v) => f64::from(v),
            Scalar::F64(v) => v,
        }
    }

    /// Converts `v` to `dtype` by the rules of [`Pixel::from_f64`].
    pub fn from_f64(dtype: DType, v: f64) -> Scalar {
        match dtype {
            DType::U8 => Scalar::U8(u8::from_f64(v)),
            DType::U16 => Scalar::U16(u16::from_f64(v)),
            DType::U32 => Scalar::U32(u32::from_f64(v)),
            DType::I8 => Scalar::I8(i8::from_f64(v)),
            DType::I16 => Scalar::I16(i16::from_f64(v)),
            DType::I32 => Scalar::I32(i32::from_f64(v)),
            DType::F32 => Scalar::F32(f32::from_f64(v)),
            DType::F64 => Scalar::F64(v),
            DType::Bool => Scalar::U8((v != 0.0).into()),
        }
    }

    /// The bit pattern, zero-extended to 64 bits.
    #[inline]
    pub fn bits(self) -> u64 {
        match self {
            Scalar::U8(v) => u64::from(v),
            Scalar::U16(v) => u64::from(v),
            Scalar::U32(v) => u64::from(v),
            Scalar::I8(v) => u64::from(v.cast_unsigned()),
            Scalar::I16(v) => u64::from(v.cast_unsigned()),
            Scalar::I32(v) => u64::from(v.cast_unsigned()),
            Scalar::F32(v) => u64::from(v.to_bits()),
            Scalar::F64(v) => v.to_bits(),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.dtype() == other.dtype() && self.bits() == other.bits()
    }
}
impl Eq for Scalar {}
impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.dtype().hash(state);
        self.bits().hash(state);
    }
}
impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::U8(v) => write!(f, "{v}u8"),
            Scalar::U16(v) => write!(f, "{v}u16"),
            Scalar::U32(v) => write!(f, "{v}u32"),
            Scalar::I8(v) => write!(f, "{v}i8"),
            Scalar::I16(v) => write!(f, "{v}i16"),
            Scalar::I32(v) => write!(f, "{v}i32"),
            Scalar::F32(v) => write!(f, "{v}"),
            Scalar::F64(v) => write!(f, "{v}f64"),
        }
    }
}

/// The rule for numbers that an integer type cannot represent. Floats always round to nearest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// Round to nearest even and saturate; a NaN becomes 0.
    #[default]
    Nearest,
    /// The cast of C and NumPy: truncated, modulo the range. Infinities and NaN become 0.
    Cast,
}

/// Converts one pixel to another type: exactly if possible, else by the rule.
#[inline(always)]
pub fn convert_pixel<S: Pixel, D: Pixel>(v: S, rule: Conversion) -> D {
    // f64 represents every element type exactly, so that a conversion rounds once.
    match rule {
        Conversion::Nearest => D::from_f64(v.to_f64()),
        Conversion::Cast => D::cast_f64(v.to_f64()),
    }
}

/// Runs `$body` with the type alias `$t` bound to the Rust type of a [`DType`] value.
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.numeric() {
            $crate::dtype::Numeric::U8 => {
                type $t = u8;
                $body
            }
            $crate::dtype::Numeric::U16 => {
                type $t = u16;
                $body
            }
            $crate::dtype::Numeric::U32 => {
                type $t = u32;
                $body
            }
            $crate::dtype::Numeric::I8 => {
                type $t = i8;
                $body
            }
            $crate::dtype::Numeric::I16 => {
                type $t = i16;
                $body
            }
            $crate::dtype::Numeric::I32 => {
                type $t = i32;
                $body
            }
            $crate::dtype::Numeric::F32 => {
                type $t = f32;
                $body
            }
            $crate::dtype::Numeric::F64 => {
                type $t = f64;
                $body
            }
        }
    };
}

/// Calls `$with!` with the Rust types and the variants of all numeric types in brackets, then with `$rest`.
#[doc(hidden)]
#[macro_export]
macro_rules! numeric_types {
    ([$($with:tt)*] $($rest:tt)*) => {
        $($with)*! { [u8 U8, u16 U16, u32 U32, i8 I8, i16 I16, i32 I32, f32 F32, f64 F64] $($rest)* }
    };
}

/// Like [`dispatch!`], for integers of 8 and 16 bits only; everything else selects `u8`.
#[macro_export]
macro_rules! dispatch_narrow {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::U16 => {
                type $t = u16;
                $body
            }
            $crate::dtype::DType::I8 => {
                type $t = i8;
                $body
            }
            $crate::dtype::DType::I16 => {
                type $t = i16;
                $body
            }
            _ => {
                type $t = u8;
                $body
            }
        }
    };
}

/// Like [`dispatch!`], for the two float types only; `F64` selects `f64`, everything else `f32`.
#[macro_export]
macro_rules! dispatch_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::F64 => {
                type $t = f64;
                $body
            }
            _ => {
                type $t = f32;
                $body
            }
        }
    };
}
