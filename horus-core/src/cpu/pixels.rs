//! Pixel operations over contiguous runs: the table of [`pixel_ops!`](crate::pixel_ops), instantiated for every
//! element type and instruction set.

use super::convert;
use super::simd::Isa;
use crate::dtype::{DType, Pixel};
use crate::ops::pixel::PixelOp;
use crate::{dispatch, pixel_ops};

/// Elements that are computed at a time, and the length to which a constant operand is repeated.
pub(crate) const RUN: usize = 64;

/// An operand: where it starts, and whether it is a constant repeated [`RUN`] times rather than a run of pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    /// The first element.
    pub(crate) at: *const u8,
    /// Whether the same [`RUN`] elements are read again and again.
    pub(crate) constant: bool,
}

impl Operand {
    /// The run of [`RUN`] elements from element `i` on.
    ///
    /// # Safety
    /// The operand has elements of type `T` that far (a constant: [`RUN`]).
    #[inline(always)]
    unsafe fn run<'a, T>(self, i: usize) -> &'a [T; RUN] {
        // SAFETY: vouched for by the caller; memory of images and scratch is aligned for every element type.
        unsafe { &*self.at.cast::<T>().add(if self.constant { 0 } else { i }).cast() }
    }

    /// Element `i`.
    ///
    /// # Safety
    /// As for [`Operand::run`].
    #[inline(always)]
    unsafe fn get<T: Copy>(self, i: usize) -> T {
        // SAFETY: vouched for by the caller.
        unsafe { *self.at.cast::<T>().add(if self.constant { 0 } else { i }) }
    }
}

/// Calls `whole` for the starts of whole runs that cover `n >= RUN` elements (the last two may overlap: every element
/// is computed from the operands alone), or `single` over the elements of a short run.
#[inline(always)]
fn cover(n: usize, mut whole: impl FnMut(usize), mut single: impl FnMut(usize)) {
    if n < RUN {
        (0..n).for_each(&mut single);
        return;
    }
    let mut i = 0;
    while i + RUN <= n {
        whole(i);
        i += RUN;
    }
    if i < n {
        whole(n - RUN);
    }
}

/// Generates the loop over operands of one arity, and its instantiation for every instruction set.
macro_rules! arity {
    ($name:ident, $body:ident, $avx2:ident, $avx512:ident, $f:ident: $($arg:ident $t:ident $i:literal),+) => {
        #[inline(always)]
        unsafe fn $body<$($t: Pixel,)+ R: Pixel>(
            args: &[Operand; 3], out: *mut u8, n: usize, $f: impl Fn($($t),+) -> R
        ) {
            #[inline(always)]
            fn whole<$($t: Pixel,)+ R: Pixel>($($arg: &[$t; RUN],)+ out: &mut [R; RUN], $f: impl Fn($($t),+) -> R) {
                for i in 0..RUN {
                    out[i] = $f($($arg[i]),+);
                }
            }
            let out = out.cast::<R>();
            cover(
                n,
                // SAFETY: the caller vouches for n elements of every operand and of the output, which overlaps none.
                |i| unsafe { whole($(args[$i].run::<$t>(i),)+ &mut *out.add(i).cast(), &$f) },
                // SAFETY: as above.
                |i| unsafe { *out.add(i) = $f($(args[$i].get::<$t>(i)),+) },
            );
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $avx2<$($t: Pixel,)+ R: Pixel>(
            args: &[Operand; 3], out: *mut u8, n: usize, $f: impl Fn($($t),+) -> R
        ) {
            // SAFETY: vouched for by the caller.
            unsafe { $body(args, out, n, $f) }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn $avx512<$($t: Pixel,)+ R: Pixel>(
            args: &[Operand; 3], out: *mut u8, n: usize, $f: impl Fn($($t),+) -> R
        ) {
            // SAFETY: vouched for by the caller.
            unsafe { $body(args, out, n, $f) }
        }

        /// Computes `n` elements of `out`.
        ///
        /// # Safety
        /// The operands have `n` elements of the types of the function's parameters, `out` has room for `n` results and
        /// overlaps no operand, and the machine has the instruction set.
        pub(super) unsafe fn $name<$($t: Pixel,)+ R: Pixel>(
            isa: Isa, args: &[Operand; 3], out: *mut u8, n: usize, $f: impl Fn($($t),+) -> R
        ) {
            // SAFETY: vouched for by the caller.
            unsafe {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => $avx2(args, out, n, $f),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => $avx512(args, out, n, $f),
                    _ => $body(args, out, n, $f),
                }
            }
        }
    };
}
arity!(unary, unary_body, unary_avx2, unary_avx512, f: a A 0);
arity!(binary, binary_body, binary_avx2, binary_avx512, f: a A 0, b B 1);
arity!(ternary, ternary_body, ternary_avx2, ternary_avx512, f: a A 0, b B 1, c C 2);

macro_rules! interpreter {
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $uc:literal, $ud:literal;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $bc:literal, $bd:literal;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $cc:literal, $cd:literal;)* }
     ternary { $($t:ident $tn:literal |$ta:ident, $tb:ident, $tc:ident| $tx:expr, $tcu:literal, $td:literal;)* }
     select { $($s:ident $sn:literal $sc:literal, $sd:literal;)* }) => {
        unsafe fn typed<T: Pixel>(op: PixelOp, isa: Isa, args: &[Operand; 3], out: *mut u8, n: usize) {
            // SAFETY: vouched for by the caller.
            unsafe {
                match op {
                    $(PixelOp::$u => unary(isa, args, out, n, |$ua: T| -> T { $ub }),)*
                    $(PixelOp::$b => binary(isa, args, out, n, |$ba: T, $bb: T| -> T { $bx }),)*
                    $(PixelOp::$c => binary(isa, args, out, n, |$ca: T, $cb: T| u8::from($cx)),)*
                    $(PixelOp::$t => ternary(isa, args, out, n, |$ta: T, $tb: T, $tc: T| -> T { $tx }),)*
                    $(PixelOp::$s => ternary(isa, args, out, n, |m: u8, b: T, c: T| if m != 0 { b } else { c }),)*
                }
            }
        }
    };
}
pixel_ops!(interpreter);

/// Applies `op` to `n` elements of type `dtype` of each operand.
///
/// # Safety
/// The operands have `n` elements of the type that `op` takes there (constants: [`RUN`]), `out` has room for `n` results
/// and overlaps no operand, all are aligned for their type, and the machine has the instruction set.
pub(crate) unsafe fn apply(op: PixelOp, dtype: DType, isa: Isa, args: &[Operand; 3], out: *mut u8, n: usize) {
    // SAFETY: vouched for by the caller.
    dispatch!(dtype, T => unsafe { typed::<T>(op, isa, args, out, n) })
}

/// Converts `n` elements.
///
/// # Safety
/// As for [`apply`], for the first operand.
pub(crate) unsafe fn convert(from: DType, to: DType, isa: Isa, args: &[Operand; 3], out: *mut u8, n: usize) {
    // SAFETY: vouched for by the caller.
    unsafe { convert::run(from, to, isa, args, out, n) }
}
