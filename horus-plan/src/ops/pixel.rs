//! Pixel operations: one row per operation in `pixel_ops!`.
//!
//! A row holds the variant, its name, the Rust body (methods of
//! [`Arithmetic`](horus_base::dtype::Arithmetic), which define it), the equivalent CUDA expression,
//! and one line of documentation. The enum below, the CPU interpreter, the CUDA code generator, the
//! conformance tests and the book's page of operations iterate over the rows.

use std::fmt;

use horus_base::dtype::DType;

/// The table of pixel operations. Calls `$callback!` with the rows in four groups: `unary` and
/// `binary` yield the type of their operands, `compare` yields a `u8` mask of 0 and 1, and
/// `ternary` is spelled out (its first operand may be a mask).
#[macro_export]
macro_rules! pixel_ops {
    ($callback:ident) => {
        $callback! {
            unary {
                Neg "neg" |a| a.neg(), "hs_neg(a)", "`-a`";
                Abs "abs" |a| a.abs(), "hs_abs(a)", "`|a|`";
                Sqrt "sqrt" |a| a.sqrt(), "hs_sqrt(a)", "square root";
                Exp "exp" |a| a.exp(), "hs_exp(a)", "natural exponential";
                Log "log" |a| a.ln(), "hs_log(a)", "natural logarithm";
                Square "square" |a| a.mul(a), "hs_mul(a, a)", "`a * a`";
                Recip "recip" |a| T::ONE.div(a), "hs_div((T)1, a)", "`1 / a`";
                Sign "sign" |a| a.sign(), "hs_sign(a)", "-1, 0 or 1";
                Floor "floor" |a| a.floor(), "hs_floor(a)", "largest integer not above `a`";
                Ceil "ceil" |a| a.ceil(), "hs_ceil(a)", "smallest integer not below `a`";
                Round "round" |a| a.round(), "hs_round(a)", "nearest integer, the even one of two as near";
                Sin "sin" |a| a.sin(), "hs_sin(a)", "sine of an angle in radians";
                Cos "cos" |a| a.cos(), "hs_cos(a)", "cosine of an angle in radians";
            }
            binary {
                Add "add" |a, b| a.add(b), "hs_add(a, b)", "`a + b`";
                Sub "sub" |a, b| a.sub(b), "hs_sub(a, b)", "`a - b`";
                Mul "mul" |a, b| a.mul(b), "hs_mul(a, b)", "`a * b`";
                Div "div" |a, b| a.div(b), "hs_div(a, b)", "`a / b`";
                Min "min" |a, b| a.min(b), "hs_min(a, b)", "the smaller, ignoring NaN";
                Max "max" |a, b| a.max(b), "hs_max(a, b)", "the larger, ignoring NaN";
                Minimum "minimum" |a, b| a.minimum(b), "hs_minimum(a, b)", "the smaller, NaN if either is NaN";
                Maximum "maximum" |a, b| a.maximum(b), "hs_maximum(a, b)", "the larger, NaN if either is NaN";
                Lower "lower" |a, b| a.lower(b), "hs_lower(a, b)", "the first in the order of numbers: -0 before 0, NaN last";
                Upper "upper" |a, b| a.upper(b), "hs_upper(a, b)", "the last in the order of numbers: -0 before 0, NaN last";
                AbsDiff "absdiff" |a, b| a.absdiff(b), "hs_absdiff(a, b)", "`|a - b|`";
                Pow "pow" |a, b| a.pow(b), "hs_pow(a, b)", "`a` to the power `b`";
                Atan2 "atan2" |a, b| a.atan2(b), "hs_atan2(a, b)", "angle of the point with ordinate `a` and abscissa `b`, in radians";
                Hypot "hypot" |a, b| a.hypot(b), "hs_hypot(a, b)", "`sqrt(a * a + b * b)`";
                OrderDigit "order_digit" |a, b| a.order_digit(b), "hs_order_digit(a, b)", "16 bits, the `b`-th from the highest (0), of the place of `a` among numbers of its type; NaN of NaN";
                Rem "rem" |a, b| a.rem(b), "hs_rem(a, b)", "what `a / b` leaves, with the sign of `a`";
                BitwiseAnd "bitwise_and" |a, b| a.bitwise_and(b), "hs_bitwise_and(a, b)", "bits that both have; of floats, of their whole parts";
                BitwiseOr "bitwise_or" |a, b| a.bitwise_or(b), "hs_bitwise_or(a, b)", "bits that one or both have; of floats, of their whole parts";
                BitwiseXor "bitwise_xor" |a, b| a.bitwise_xor(b), "hs_bitwise_xor(a, b)", "bits that one of both has; of floats, of their whole parts";
                LeftShift "left_shift" |a, b| a.left_shift(b), "hs_left_shift(a, b)", "bits moved `b` places up, without those beyond the type";
                RightShift "right_shift" |a, b| a.right_shift(b), "hs_right_shift(a, b)", "bits moved `b` places down: `a` divided by a power of 2, rounded down";
                Threshold "threshold" |a, b| (if a > b { T::ONE } else { T::ZERO }), "(a > b ? (T)1 : (T)0)", "1 where `a > b`, else 0";
            }
            compare {
                Lt "lt" |a, b| a < b, "(a < b)", "1 where `a < b`";
                Le "le" |a, b| a <= b, "(a <= b)", "1 where `a <= b`";
                Gt "gt" |a, b| a > b, "(a > b)", "1 where `a > b`";
                Ge "ge" |a, b| a >= b, "(a >= b)", "1 where `a >= b`";
                Eq "eq" |a, b| a == b, "(a == b)", "1 where `a == b`";
                Ne "ne" |a, b| a != b, "(a != b)", "1 where `a != b`";
            }
            ternary {
                AbsDiv "absdiv" |a, b, c| a.absdiv(b, c), "hs_absdiv(a, b, c)", "`|a / b|`, 0 where `|b| < c`";
                MulAdd "mul_add" |a, b, c| a.mul_add(b, c), "hs_mul_add(a, b, c)", "`a * b + c`, of floats rounded once";
                Clamp "clamp" |a, b, c| b.max(a).min(c), "hs_min(hs_max(b, a), c)", "`a` limited to `b..=c`; NaN becomes `b`";
            }
            select {
                Select "select" "(m ? b : c)", "`b` where the mask `m` is not 0, else `c`";
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

/// Description of a pixel operation: one row of the table.
#[derive(Clone, Copy, Debug)]
pub struct PixelInfo {
    /// The operation.
    pub op: PixelOp,
    /// Its name in plans, errors and documentation.
    pub name: &'static str,
    /// Operand and result types.
    pub kind: PixelKind,
    /// CUDA expression over operands `a`, `b`, `c` (`m` for the mask) of type `T`.
    pub cuda: &'static str,
    /// One line of documentation.
    pub doc: &'static str,
}

macro_rules! define {
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $uc:literal, $ud:literal;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $bc:literal, $bd:literal;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $cc:literal, $cd:literal;)* }
     ternary { $($t:ident $tn:literal |$ta:ident, $tb:ident, $tc:ident| $tx:expr, $tcu:literal, $td:literal;)* }
     select { $($s:ident $sn:literal $sc:literal, $sd:literal;)* }) => {
        /// A pixel operation, without its operands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PixelOp {
            $(#[doc = $ud] $u,)* $(#[doc = $bd] $b,)* $(#[doc = $cd] $c,)* $(#[doc = $td] $t,)* $(#[doc = $sd] $s,)*
        }

        /// The table as data, in the order of the enum.
        pub const TABLE: &[PixelInfo] = &[
            $(PixelInfo { op: PixelOp::$u, name: $un, kind: PixelKind::Unary, cuda: $uc, doc: $ud },)*
            $(PixelInfo { op: PixelOp::$b, name: $bn, kind: PixelKind::Binary, cuda: $bc, doc: $bd },)*
            $(PixelInfo { op: PixelOp::$c, name: $cn, kind: PixelKind::Compare, cuda: $cc, doc: $cd },)*
            $(PixelInfo { op: PixelOp::$t, name: $tn, kind: PixelKind::Ternary, cuda: $tcu, doc: $td },)*
            $(PixelInfo { op: PixelOp::$s, name: $sn, kind: PixelKind::Select, cuda: $sc, doc: $sd },)*
        ];
    };
}
pixel_ops!(define);

impl PixelOp {
    /// The operation's row in the table.
    pub fn info(self) -> &'static PixelInfo {
        &TABLE[self as usize]
    }

    /// Returns `true` for a transcendental function: one of floats, which integers have by way of
    /// `f64`.
    pub const fn is_transcendental(self) -> bool {
        use PixelOp::{Atan2, Cos, Exp, Hypot, Log, Pow, Sin};
        matches!(self, Exp | Log | Sin | Cos | Pow | Atan2 | Hypot)
    }

    /// Cost of one evaluation. Division and square root are correctly rounded, transcendental
    /// functions are polynomials.
    pub const fn steps(self) -> f64 {
        match self {
            PixelOp::Div | PixelOp::Recip | PixelOp::Sqrt | PixelOp::AbsDiv => 10.0,
            PixelOp::Rem => 20.0,
            PixelOp::Pow | PixelOp::Atan2 => 60.0,
            op if op.is_transcendental() => 25.0,
            _ => 1.0,
        }
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

    /// The type that operand `i` must have if the (other) operands are of type `operand`.
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
