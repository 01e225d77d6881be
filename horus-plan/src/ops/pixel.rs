//! Pixel operations: one row per operation in `pixel_ops!`.
//!
//! A row has the variant, its name, the Rust body (methods of [`Arithmetic`](horus_base::dtype::Arithmetic), which
//! define it), one line of documentation and, in braces, the equivalent CUDA expression, the cost, the method of
//! `Image`, and names in other libraries. The enum below, the methods, the CPU interpreter, the CUDA code generator,
//! the conformance tests, the command and the page of operations derive from the rows.

use std::fmt;

use horus_base::dtype::DType;

use super::describe::{Accepts, Description, OperationGroup, Parameter, Pattern, describe, description, required};

/// The table of pixel operations. Calls `$callback!` with the rows in five groups: `unary` and `binary` yield the type
/// of their operands, `compare` yields a `u8` mask of 0 and 1; `ternary` (whose first operand may be a mask) and
/// `select` are spelled out.
///
/// In the braces:
/// - the CUDA expression;
/// - the cost of an evaluation in multiply-adds, followed by `transcendental` for a function of floats, which integers
///   compute in `f64` (division and square root are correctly rounded, transcendental functions are polynomials);
/// - `fn` and the name of a method of `Image`, with its aliases in the documentation;
/// - `like` and names in other libraries;
/// - `but` and differences from these.
#[macro_export]
macro_rules! pixel_ops {
    ($callback:ident) => {
        $callback! {
            unary {
                Neg "neg" |a| a.neg(), "`-a`; integers saturate", { "hs_neg(a)", 1.0, like "np.negative" };
                Abs "abs" |a| a.abs(), "`|a|`; integers saturate", { "hs_abs(a)", 1.0, fn abs, like "np.abs" "cv.absdiff" "imageproc::map::map_pixels" };
                Sqrt "sqrt" |a| a.sqrt(), "Square root; integers round to nearest even, of negative ones it is 0, of negative floats NaN", { "hs_sqrt(a)", 10.0, fn sqrt, like "np.sqrt" "cv.sqrt", but "of integers NumPy yields floats" };
                Exp "exp" |a| a.exp(), "Natural exponential", { "hs_exp(a)", 25.0 transcendental, fn exp, like "np.exp" "cv.exp", but "of integers NumPy yields floats" };
                Log "log" |a| a.ln(), "Natural logarithm", { "hs_log(a)", 25.0 transcendental, fn log, like "np.log" "cv.log", but "of integers NumPy yields floats" };
                Square "square" |a| a.mul(a), "`a * a`; integers saturate", { "hs_mul(a, a)", 1.0, fn square, like "np.square" };
                Recip "recip" |a| T::ONE.div(a), "`1 / a`", { "hs_div((T)1, a)", 10.0, like "np.reciprocal", but "of an image in Rust `1.0 / a`" };
                Sign "sign" |a| a.sign(), "-1, 0 or 1", { "hs_sign(a)", 1.0, fn sign, like "np.sign" };
                Floor "floor" |a| a.floor(), "Largest integer not above `a`", { "hs_floor(a)", 1.0, fn floor, like "np.floor" };
                Ceil "ceil" |a| a.ceil(), "Smallest integer not below `a`", { "hs_ceil(a)", 1.0, fn ceil, like "np.ceil" };
                Round "round" |a| a.round(), "Nearest integer, the even one of two as near", { "hs_round(a)", 1.0, fn round alias "rint", like "np.rint" };
                Trunc "trunc" |a| (if a < T::ZERO { a.ceil() } else { a.floor() }), "The whole part: the nearest integer not farther from 0", { "(a < (T)0 ? hs_ceil(a) : hs_floor(a))", 1.0, like "np.trunc" };
                Sin "sin" |a| a.sin(), "Sine of an angle in radians", { "hs_sin(a)", 25.0 transcendental, fn sin alias "polarToCart", like "np.sin" "cv.polarToCart" };
                Cos "cos" |a| a.cos(), "Cosine of an angle in radians", { "hs_cos(a)", 25.0 transcendental, fn cos, like "np.cos" "cv.polarToCart" };
            }
            binary {
                Add "add" |a, b| a.add(b), "`a + b`", { "hs_add(a, b)", 1.0, like "np.add" "cv.add" "imageproc::map::map_pixels2", but "of integers NumPy wraps" };
                Sub "sub" |a, b| a.sub(b), "`a - b`", { "hs_sub(a, b)", 1.0, like "np.subtract" "cv.subtract" };
                Mul "mul" |a, b| a.mul(b), "`a * b`", { "hs_mul(a, b)", 1.0, like "np.multiply" "cv.multiply" };
                Div "div" |a, b| a.div(b), "`a / b`; integers truncate, and by 0 it is 0", { "hs_div(a, b)", 10.0, like "np.divide" "cv.divide", but "NumPy yields floats, OpenCV rounds" };
                Min "min" |a, b| a.min(b), "The smaller, ignoring NaN", { "hs_min(a, b)", 1.0, fn min alias "fmin", like "np.fmin" "cv.min" };
                Max "max" |a, b| a.max(b), "The larger, ignoring NaN", { "hs_max(a, b)", 1.0, fn max alias "fmax", like "np.fmax" "cv.max" };
                Minimum "minimum" |a, b| a.minimum(b), "The smaller, NaN if either is NaN", { "hs_minimum(a, b)", 1.0, fn minimum, like "np.minimum" };
                Maximum "maximum" |a, b| a.maximum(b), "The larger, NaN if either is NaN", { "hs_maximum(a, b)", 1.0, fn maximum, like "np.maximum" };
                Lower "lower" |a, b| a.lower(b), "The first in the order of numbers: -0 before 0, NaN last", { "hs_lower(a, b)", 1.0 };
                Upper "upper" |a, b| a.upper(b), "The last in the order of numbers: -0 before 0, NaN last", { "hs_upper(a, b)", 1.0 };
                AbsDiff "absdiff" |a, b| a.absdiff(b), "`|a - b|`; integers saturate", { "hs_absdiff(a, b)", 1.0, fn absdiff, like "cv.absdiff" };
                Pow "pow" |a, b| a.pow(b), "`a` to the power `b`", { "hs_pow(a, b)", 60.0 transcendental, fn pow alias "power", like "np.power" "cv.pow", but "OpenCV takes `abs(a)` for fractional powers; of integers NumPy wraps" };
                Atan2 "atan2" |a, b| a.atan2(b), "Angle of the point with ordinate `a` and abscissa `b`, in radians", { "hs_atan2(a, b)", 60.0 transcendental, fn atan2 alias "arctan2" "phase" "cartToPolar", like "np.arctan2" "cv.phase" "cv.cartToPolar", but "OpenCV's angles are in 0..2 pi and approximate" };
                Hypot "hypot" |a, b| a.hypot(b), "`sqrt(a * a + b * b)` without over- or underflow in between", { "hs_hypot(a, b)", 25.0 transcendental, fn hypot alias "magnitude", like "np.hypot" "cv.magnitude" };
                OrderDigit "order_digit" |a, b| a.order_digit(b), "16 bits, the `b`-th from the highest (0), of the place of `a` among numbers of its type; NaN of NaN", { "hs_order_digit(a, b)", 1.0 };
                Rem "rem" |a, b| a.rem(b), "What `a / b` leaves, with the sign of `a`", { "hs_rem(a, b)", 20.0, like "np.fmod" };
                BitwiseAnd "bitwise_and" |a, b| a.bitwise_and(b), "Bits that both have; of floats, of their whole parts", { "hs_bitwise_and(a, b)", 1.0, like "np.bitwise_and" "cv.bitwise_and" };
                BitwiseOr "bitwise_or" |a, b| a.bitwise_or(b), "Bits that one or both have; of floats, of their whole parts", { "hs_bitwise_or(a, b)", 1.0, like "np.bitwise_or" "cv.bitwise_or" };
                BitwiseXor "bitwise_xor" |a, b| a.bitwise_xor(b), "Bits that one of both has; of floats, of their whole parts", { "hs_bitwise_xor(a, b)", 1.0, like "np.bitwise_xor" "cv.bitwise_xor" };
                LeftShift "left_shift" |a, b| a.left_shift(b), "Bits moved `b` places up, without those beyond the type", { "hs_left_shift(a, b)", 1.0, like "np.left_shift" };
                RightShift "right_shift" |a, b| a.right_shift(b), "Bits moved `b` places down: `a` divided by a power of 2, rounded down", { "hs_right_shift(a, b)", 1.0, like "np.right_shift" };
                Threshold "threshold" |a, b| (if a > b { T::ONE } else { T::ZERO }), "1 where `a > b`, else 0, in the type of `a`", { "(a > b ? (T)1 : (T)0)", 1.0, fn threshold, like "cv.threshold" "imageproc::contrast::threshold" };
            }
            compare {
                Lt "lt" |a, b| a < b, "True where `a < b`", { "(a < b)", 1.0, fn lt alias "less", like "np.less" "cv.compare" };
                Le "le" |a, b| a <= b, "True where `a <= b`", { "(a <= b)", 1.0, fn le alias "less_equal", like "np.less_equal" "cv.compare" };
                Gt "gt" |a, b| a > b, "True where `a > b`", { "(a > b)", 1.0, fn gt alias "greater", like "np.greater" "cv.compare" };
                Ge "ge" |a, b| a >= b, "True where `a >= b`", { "(a >= b)", 1.0, fn ge alias "greater_equal", like "np.greater_equal" "cv.compare" };
                Eq "eq" |a, b| a == b, "True where `a == b`", { "(a == b)", 1.0, fn eq alias "equal", like "np.equal" "cv.compare" };
                Ne "ne" |a, b| a != b, "True where `a != b`", { "(a != b)", 1.0, fn ne alias "not_equal", like "np.not_equal" "cv.compare" };
            }
            ternary {
                AbsDiv "absdiv" |a, b, c| a.absdiv(b, c), "`|a / b|`, 0 where `|b| < c`", { "hs_absdiv(a, b, c)", 10.0, fn absdiv };
                MulAdd "mul_add" |a, b, c| a.mul_add(b, c), "`a * b + c`, of floats rounded once", { "hs_mul_add(a, b, c)", 1.0, fn mul_add, like "cv.scaleAdd" };
                Clamp "clamp" |a, b, c| b.max(a).min(c), "`a` limited to `b..=c`; NaN becomes `b`", { "hs_min(hs_max(b, a), c)", 1.0, fn clamp, like "np.clip" };
            }
            select {
                Select "select" "`b` where the mask `m` is not 0, else `c`", { "(m ? b : c)", 1.0, fn select, like "np.where" "cv.copyTo" };
            }
        }
    };
}

/// Operand and result types of a pixel operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelKind {
    /// One operand; yields its type.
    Unary,
    /// Two operands of one type; yields that type.
    Binary,
    /// Two operands of one type; yields a `u8` mask.
    Compare,
    /// Three operands of one type; yields that type.
    Ternary,
    /// A `u8` mask and two operands of one type; yields that type.
    Select,
}

/// A row of the table: a pixel operation and its properties.
#[derive(Clone, Copy, Debug)]
pub struct PixelInfo {
    /// The operation.
    pub op: PixelOp,
    /// Its name in plans, errors and documentation.
    pub name: &'static str,
    /// Operand and result types.
    pub kind: PixelKind,
    /// The CUDA expression over operands `a`, `b`, `c` (`m` for the mask) of type `T`.
    pub cuda: &'static str,
    /// Cost of one evaluation.
    pub cost: f64,
    /// `true` for a function of floats, which integers compute in `f64`.
    pub transcendental: bool,
    /// The description, with the parameters of the command.
    pub described: Description,
}

/// Makes a row of the table from a row of the macro.
macro_rules! info {
    ($op:ident $name:literal $kind:ident
     $doc:literal, { $cuda:literal, $steps:literal $($transcendental:ident)?
       $(, fn $method:ident $(alias $($alias:literal)*)?)? $(, like $($like:literal)*)? $(, but $differs:literal)? }) => {
        PixelInfo {
            op: PixelOp::$op,
            name: $name,
            kind: PixelKind::$kind,
            cuda: $cuda,
            cost: $steps,
            transcendental: !stringify!($($transcendental)?).is_empty(),
            described: of_row($name, PixelKind::$kind, $doc)
                .called(concat!($(stringify!($method))?))
                .example(example!($kind $name))
                .elsewhere(&[$($($like),*)?])
                .differs(concat!($($differs)?)),
        }
    };
}

/// An example of the command.
macro_rules! example {
    (Unary $name:literal) => {
        $name
    };
    (Binary $name:literal) => {
        concat!($name, " 2")
    };
    (Compare $name:literal) => {
        concat!($name, " 2")
    };
    ($further:ident $name:literal) => {
        ""
    };
}

/// Makes the description of a row. An operation of one or two operands is also an operation of the command.
const fn of_row(name: &'static str, kind: PixelKind, doc: &'static str) -> Description {
    const B: &[Parameter] = &[required("b", Accepts::Operand, "")];
    let group = match kind {
        PixelKind::Compare | PixelKind::Select => OperationGroup::Thresholds,
        _ => OperationGroup::Arithmetic,
    };
    let row = description(name, group, Pattern::Pixel, doc);
    match kind {
        PixelKind::Binary | PixelKind::Compare => row.takes(B),
        PixelKind::Unary | PixelKind::Ternary | PixelKind::Select => row,
    }
}

macro_rules! define {
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $ud:literal, $ut:tt;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $bd:literal, $bt:tt;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $cd:literal, $ct:tt;)* }
     ternary { $($t:ident $tn:literal |$ta:ident, $tb:ident, $tc:ident| $tx:expr, $td:literal, $tt:tt;)* }
     select { $($s:ident $sn:literal $sd:literal, $st:tt;)* }) => {
        /// A pixel operation, without its operands. [`PixelOp::info`] describes it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PixelOp {
            $(#[doc = $ud] $u,)* $(#[doc = $bd] $b,)* $(#[doc = $cd] $c,)* $(#[doc = $td] $t,)* $(#[doc = $sd] $s,)*
        }

        /// The table as data, in the order of the enum.
        pub const TABLE: &[PixelInfo] = &[
            $(info!($u $un Unary $ud, $ut),)*
            $(info!($b $bn Binary $bd, $bt),)*
            $(info!($c $cn Compare $cd, $ct),)*
            $(info!($t $tn Ternary $td, $tt),)*
            $(info!($s $sn Select $sd, $st),)*
        ];
    };
}
pixel_ops!(define);

// The descriptions of operations of three operands, with the parameters of the command.
describe! {
    ABSDIV = description("absdiv", OperationGroup::Arithmetic, Pattern::Pixel, "`|a / b|`, 0 where `|b| < eps`")
        .takes(&[required("b", Accepts::Operand, ""), required("eps", Accepts::Number, "where `|b|` is less, the result is 0")])
        .example("luminance absdiv @in 0.001");
    CLAMP = description("clamp", OperationGroup::Arithmetic, Pattern::Pixel, "`a` limited to `lo..=hi`; NaN becomes `lo`")
        .also(&["clip"])
        .takes(&[required("lo", Accepts::Number, ""), required("hi", Accepts::Number, "")])
        .elsewhere(&["np.clip", "imageproc::map::map_subpixels"])
        .example("luminance clamp 0.2 0.8");
    SELECT = description("select", OperationGroup::Thresholds, Pattern::Pixel, "`b` where the mask is true, else `c`; numbers alone are `f32` in which white is 1")
        .takes(&[required("b", Accepts::Operand, "where the mask is true"), required("c", Accepts::Operand, "where it is false")])
        .elsewhere(&["np.where", "cv.copyTo"])
        .example("luminance otsu select @in 0");
}

impl PixelOp {
    /// The operation's row in the table.
    pub const fn info(self) -> &'static PixelInfo {
        &TABLE[self as usize]
    }

    /// Returns `true` for a transcendental function: a function of floats, which integers compute in `f64`.
    pub const fn is_transcendental(self) -> bool {
        self.info().transcendental
    }

    /// Cost of one evaluation, in multiply-adds.
    pub const fn cost(self) -> f64 {
        self.info().cost
    }

    /// Number of operands.
    pub fn arity(self) -> usize {
        match self.info().kind {
            PixelKind::Unary => 1,
            PixelKind::Binary | PixelKind::Compare => 2,
            PixelKind::Ternary | PixelKind::Select => 3,
        }
    }

    /// The type of the result for operands of type `operand` (for `Select`, of the two choices).
    pub fn result(self, operand: DType) -> DType {
        match self.info().kind {
            PixelKind::Compare => DType::U8,
            _ => operand,
        }
    }

    /// The type of operand `i` if the (other) operands are of type `operand`.
    pub fn operand(self, i: usize, operand: DType) -> DType {
        match self.info().kind {
            PixelKind::Select if i == 0 => DType::U8,
            _ => operand,
        }
    }
}

impl fmt::Display for PixelOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.op as usize, i, "{}", row.name);
        }
    }

    #[test]
    fn a_comparison_yields_a_mask_and_select_takes_one() {
        assert_eq!(PixelOp::Lt.result(DType::F32), DType::U8);
        assert_eq!(PixelOp::Select.operand(0, DType::F64), DType::U8);
        assert_eq!(PixelOp::Select.operand(1, DType::F64), DType::F64);
    }
}
