//! Pixel operations over contiguous runs: the table of [`pixel_ops!`](horus_plan::pixel_ops),
//! instantiated for every element type and instruction set.

use std::mem::MaybeUninit;

use super::convert;
use super::simd::Isa;
use super::versions::for_each_isa;
use horus_base::dispatch;
use horus_base::dtype::{Conversion, DType, Pixel};
use horus_plan::ops::pixel::PixelOp;
use horus_plan::pixel_ops;

/// Elements computed at a time, and the length to which a constant operand is repeated.
pub(crate) const RUN: usize = 64;

/// An operand: an address, and a flag for a constant repeated [`RUN`] times instead of a run of pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOperand {
    /// The first element.
    pub(crate) at: *const u8,
    /// The operand is a constant: every run reads the same [`RUN`] elements.
    pub(crate) constant: bool,
}

impl RunOperand {
    /// The run of [`RUN`] elements from element `i` on.
    ///
    /// # Safety
    /// The operand has elements of type `T` up to there (a constant: [`RUN`]).
    #[inline(always)]
    unsafe fn run<'a, T>(self, i: usize) -> &'a [T; RUN] {
        // SAFETY: promised by the caller; memory of images and scratch is aligned for every
        // element type.
        unsafe { &*self.at.cast::<T>().add(if self.constant { 0 } else { i }).cast() }
    }

    /// Element `i`.
    ///
    /// # Safety
    /// As for [`RunOperand::run`].
    #[inline(always)]
    unsafe fn get<T: Copy>(self, i: usize) -> T {
        // SAFETY: promised by the caller.
        unsafe { *self.at.cast::<T>().add(if self.constant { 0 } else { i }) }
    }
}

/// Defines a loop body as a type whose function is always inlined. (A long closure is not inlined, which prevents
/// vectorisation.)
macro_rules! body {
    ($kind:ident [$($generics:tt)*] |$($arg:ident: $t:ty),+| -> $r:ty { $body:expr }) => {{
        struct Body;
        impl<$($generics)*> $crate::pixels::$kind<$($t,)+ $r> for Body {
            #[inline(always)]
            fn of($($arg: $t),+) -> $r {
                $body
            }
        }
        Body
    }};
}
pub(super) use body;

/// Generates the loop over operands of one arity, and its instantiation for every instruction set.
macro_rules! arity {
    ($name:ident, $kind:ident, $body:ident, $avx2:ident, $avx512:ident: $($arg:ident $t:ident $i:literal),+) => {
        /// The operation on one element.
        pub(super) trait $kind<$($t,)+ R> {
            fn of($($arg: $t),+) -> R;
        }

        #[inline(always)]
        unsafe fn $body<$($t: Pixel,)+ R: Pixel, F: $kind<$($t,)+ R>>(args: &[RunOperand; 3], out: *mut u8, n: usize) {
            #[inline(always)]
            fn whole<$($t: Pixel,)+ R: Pixel, F: $kind<$($t,)+ R>>($($arg: &[$t; RUN],)+ out: &mut [R; RUN]) {
                for i in 0..RUN {
                    out[i] = F::of($($arg[i]),+);
                }
            }
            debug_assert!(n >= RUN, "shorter ones are computed as runs");
            let out = out.cast::<R>();
            // SAFETY: the caller promises n elements of every operand and of the output, which overlaps none, and at
            // least a run.
            unsafe {
                // The last two runs may overlap: every element is computed from the operands alone.
                let mut next = 0;
                while next < n {
                    let i = next.min(n - RUN);
                    whole::<$($t,)+ R, F>($(args[$i].run::<$t>(i),)+ &mut *out.add(i).cast());
                    next += RUN;
                }
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $avx2<$($t: Pixel,)+ R: Pixel, F: $kind<$($t,)+ R>>(args: &[RunOperand; 3], out: *mut u8, n: usize) {
            // SAFETY: promised by the caller.
            unsafe { $body::<$($t,)+ R, F>(args, out, n) }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn $avx512<$($t: Pixel,)+ R: Pixel, F: $kind<$($t,)+ R>>(args: &[RunOperand; 3], out: *mut u8, n: usize) {
            // SAFETY: promised by the caller.
            unsafe { $body::<$($t,)+ R, F>(args, out, n) }
        }

        /// Computes `n` elements of `out`, at least [`RUN`].
        ///
        /// # Safety
        /// The operands have `n` elements of the types of the function's parameters, `out` has memory for `n` results
        /// and overlaps no operand, and the machine has the instruction set.
        pub(super) unsafe fn $name<$($t: Pixel,)+ R: Pixel, F: $kind<$($t,)+ R>>(
            isa: Isa, args: &[RunOperand; 3], out: *mut u8, n: usize, _: F
        ) {
            // SAFETY: promised by the caller.
            unsafe {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => $avx2::<$($t,)+ R, F>(args, out, n),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 if const { !R::DTYPE.is_float() } => $avx2::<$($t,)+ R, F>(args, out, n),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => $avx512::<$($t,)+ R, F>(args, out, n),
                    #[cfg(not(target_arch = "x86_64"))]
                    Isa::Portable => $body::<$($t,)+ R, F>(args, out, n),
                }
            }
        }
    };
}
arity!(unary, Unary, unary_body, unary_avx2, unary_avx512: a A 0);
arity!(binary, Binary, binary_body, binary_avx2, binary_avx512: a A 0, b B 1);
arity!(ternary, Ternary, ternary_body, ternary_avx2, ternary_avx512: a A 0, b B 1, c C 2);

/// Computes `n` sines or cosines with `near`, vectorised, or with `any` where a vector has an angle
/// far from zero.
///
/// # Safety
/// As for [`unary`].
unsafe fn angles<T: Pixel>(
    isa: Isa,
    args: &[RunOperand; 3],
    out: *mut u8,
    n: usize,
    near: impl Unary<T, T>,
    any: fn(T) -> T,
) {
    // SAFETY: promised by the caller.
    unsafe {
        unary::<T, T, _>(isa, args, out, n, near);
        if (0..n).fold(false, |far, i| far | args[0].get::<T>(i).far()) {
            for i in 0..n {
                *out.cast::<T>().add(i) = any(args[0].get(i));
            }
        }
    }
}

for_each_isa! {
    /// Powers of pixels with one exponent.
    fn powers[T: Pixel][T](pixels: &[T], exponent: T, out: &mut [T]) as powers_body
}

#[inline(always)]
fn powers_body<T: Pixel>(_: Isa, pixels: &[T], exponent: T, out: &mut [T]) {
    for (out, &a) in out.iter_mut().zip(pixels) {
        *out = a.pow(exponent);
    }
}

macro_rules! interpreter {
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $_ud:literal, $_ut:tt;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $_bd:literal, $_bt:tt;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $_cd:literal, $_ct:tt;)* }
     ternary { $($t:ident $tn:literal |$ta:ident, $tb:ident, $tc:ident| $tx:expr, $_td:literal, $_tt:tt;)* }
     select { $($s:ident $sn:literal $_sd:literal, $_st:tt;)* }) => {
        unsafe fn typed<T: Pixel>(op: PixelOp, isa: Isa, args: &[RunOperand; 3], out: *mut u8, n: usize) {
            debug_assert!(T::DTYPE.is_float() || !op.is_transcendental(), "{op:?} of integers has no loop");
            // SAFETY: promised by the caller.
            unsafe {
                // Operations that have a faster path than the loop over the table's body.
                match op {
                    _ if const { !T::DTYPE.is_float() } => {}
                    PixelOp::Sin => {
                        let near = body!(Unary [T: Pixel] |a: T| -> T { a.sin_near() });
                        return angles::<T>(isa, args, out, n, near, T::sin);
                    }
                    PixelOp::Cos => {
                        let near = body!(Unary [T: Pixel] |a: T| -> T { a.cos_near() });
                        return angles::<T>(isa, args, out, n, near, T::cos);
                    }
                    // Terms that depend on the exponent only are computed once.
                    PixelOp::Pow if args[1].constant && !args[0].constant => {
                        let pixels = std::slice::from_raw_parts(args[0].at.cast::<T>(), n);
                        let out = std::slice::from_raw_parts_mut(out.cast::<T>(), n);
                        return powers(isa, pixels, args[1].get::<T>(0), out);
                    }
                    _ => {}
                }
                match op {
                    $(PixelOp::$u => {
                        let body = body!(Unary [T: Pixel] |$ua: T| -> T { $ub });
                        if const { T::DTYPE.is_float() || !PixelOp::$u.is_transcendental() } {
                            unary::<T, T, _>(isa, args, out, n, body)
                        }
                    })*
                    $(PixelOp::$b => {
                        let body = body!(Binary [T: Pixel] |$ba: T, $bb: T| -> T { $bx });
                        if const { T::DTYPE.is_float() || !PixelOp::$b.is_transcendental() } {
                            binary::<T, T, T, _>(isa, args, out, n, body)
                        }
                    })*
                    $(PixelOp::$c => {
                        let body = body!(Binary [T: Pixel] |$ca: T, $cb: T| -> u8 { u8::from($cx) });
                        binary::<T, T, u8, _>(isa, args, out, n, body)
                    })*
                    $(PixelOp::$t => {
                        let body = body!(Ternary [T: Pixel] |$ta: T, $tb: T, $tc: T| -> T { $tx });
                        ternary::<T, T, T, T, _>(isa, args, out, n, body)
                    })*
                    $(PixelOp::$s => {
                        let body = body!(Ternary [T: Pixel] |m: u8, b: T, c: T| -> T { if m != 0 { b } else { c } });
                        ternary::<u8, T, T, T, _>(isa, args, out, n, body)
                    })*
                }
            }
        }
    };
}
pixel_ops!(interpreter);

/// [`apply`] for a function that integers compute in `f64`: through vectors of `f64`, converted in both directions.
///
/// # Safety
/// As for [`apply`].
unsafe fn by_f64(op: PixelOp, dtype: DType, isa: Isa, args: &[RunOperand; 3], out: *mut u8, n: usize) {
    let arity = op.arity();
    let mut operands = [[0.0f64; RUN]; 3];
    let mut results = [0.0f64; RUN];
    let results = results.as_mut_ptr().cast::<u8>();
    for i in (0..n).step_by(RUN) {
        let count = RUN.min(n - i);
        for (operand, arg) in operands.iter_mut().zip(&args[..arity]) {
            // A constant is converted once. Results of lanes beyond the end are not used.
            if i == 0 || !arg.constant {
                let count = if arg.constant { RUN } else { count };
                let from =
                    RunOperand { at: arg.at.wrapping_add(if arg.constant { 0 } else { i * dtype.size() }), ..*arg };
                // SAFETY: the caller's: that many elements from there on; the buffer is as long as a run.
                unsafe {
                    convert(Conversion::Nearest, dtype, DType::F64, isa, &[from; 3], operand.as_mut_ptr().cast(), count)
                }
            }
        }
        let lanes =
            [0, 1, 2].map(|k: usize| RunOperand { at: operands[k].as_ptr().cast(), constant: args[k].constant });
        let found = RunOperand { at: results, constant: false };
        // SAFETY: operands and results are runs; the output has memory for the rest of the caller's elements.
        unsafe {
            typed::<f64>(op, isa, &lanes, results, RUN);
            convert(Conversion::Nearest, DType::F64, dtype, isa, &[found; 3], out.add(i * dtype.size()), count);
        }
    }
}

/// Computes fewer elements than a run as a run: copies of the operands, followed by zeros. A loop for less than a run
/// in every instance would double the size of their code.
///
/// # Safety
/// The listed operands have `n` elements of `sizes` bytes (constants: [`RUN`]), `out` has memory for `n` results of
/// `size` bytes and overlaps none, and `compute` writes a run of results.
unsafe fn as_a_run(
    args: &[RunOperand; 3],
    sizes: &[usize],
    (out, size): (*mut u8, usize),
    n: usize,
    compute: impl FnOnce(&[RunOperand; 3], *mut u8),
) {
    if n == 0 {
        return;
    }
    let mut room = [const { MaybeUninit::<[u64; RUN]>::uninit() }; 3];
    let mut results = MaybeUninit::<[u64; RUN]>::uninit();
    let mut lanes = *args;
    // SAFETY: there is memory for a run of the largest elements; the caller promises the rest.
    unsafe {
        for ((lanes, room), size) in lanes.iter_mut().zip(&mut room).zip(sizes).filter(|((l, _), _)| !l.constant) {
            let to = room.as_mut_ptr().cast::<u8>();
            to.write_bytes(0, RUN * size);
            to.copy_from_nonoverlapping(lanes.at, n * size);
            lanes.at = to;
        }
        let results = results.as_mut_ptr().cast::<u8>();
        results.write_bytes(0, RUN * size);
        compute(&lanes, results);
        out.copy_from_nonoverlapping(results, n * size);
    }
}

/// Applies `op` to `n` elements of type `dtype` of each operand.
///
/// # Safety
/// The operands have `n` elements of the type that `op` takes there (constants: [`RUN`]), `out` has memory for `n`
/// results and overlaps no operand, all are aligned for their type, and the machine has the instruction set.
pub(crate) unsafe fn apply(op: PixelOp, dtype: DType, isa: Isa, args: &[RunOperand; 3], out: *mut u8, n: usize) {
    if n < RUN {
        let sizes = [0, 1, 2].map(|i| op.operand(i, dtype).size());
        let result = (out, op.result(dtype).size());
        // SAFETY: promised by the caller; a run of every operand and result.
        return unsafe {
            as_a_run(args, &sizes[..op.arity()], result, n, |args, out| apply(op, dtype, isa, args, out, RUN));
        };
    }
    if !dtype.is_float() && op.is_transcendental() {
        // SAFETY: promised by the caller.
        return unsafe { by_f64(op, dtype, isa, args, out, n) };
    }
    // SAFETY: promised by the caller.
    dispatch!(dtype, T => unsafe { typed::<T>(op, isa, args, out, n) })
}

/// Converts `n` elements.
///
/// # Safety
/// As for [`apply`], for the first operand.
pub(crate) unsafe fn convert(
    rule: Conversion,
    from: DType,
    to: DType,
    isa: Isa,
    args: &[RunOperand; 3],
    out: *mut u8,
    n: usize,
) {
    let run = |args: &[RunOperand; 3], out, n| {
        // SAFETY: promised by the caller, or a run of elements and of results.
        unsafe { convert::run(rule, from, to, isa, args, out, n) }
    };
    if n >= RUN {
        return run(args, out, n);
    }
    // SAFETY: promised by the caller.
    unsafe { as_a_run(args, &[from.size()], (out, to.size()), n, |args, out| run(args, out, RUN)) }
}
