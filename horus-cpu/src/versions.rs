//! Portable code that is compiled for each instruction set, or for the smallest.

/// Defines a function that runs `$body` compiled for the instruction set that it is given:
///
/// ```text
/// for_each_isa! { fn name[T: Pixel][T](plane: &Plane<'_, T>) -> u32 as body }
/// ```
///
/// defines `fn name<T: Pixel>(isa: Isa, plane: &Plane<'_, T>) -> u32`, which calls `body(isa, plane)`. The body must be
/// `#[inline(always)]`: otherwise it would not have the features of the function into which it is compiled.
macro_rules! for_each_isa {
    ($(#[$doc:meta])* $vis:vis fn $name:ident[$($generics:tt)*][$($used:tt)*]($($arg:ident: $ty:ty),* $(,)?)
     $(-> $ret:ty)? as $body:ident) => {
        $(#[$doc])*
        $vis fn $name<$($generics)*>(isa: $crate::simd::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            fn avx512<$($generics)*>($($arg: $ty),*) $(-> $ret)? {
                $body::<$($used)*>($crate::simd::Isa::Avx512, $($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2<$($generics)*>($($arg: $ty),*) $(-> $ret)? {
                $body::<$($used)*>($crate::simd::Isa::Avx2, $($arg),*)
            }
            match isa {
                // SAFETY: an instruction set is only named after it was detected
                // (`Isa::available`).
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Isa::Avx512 => unsafe { avx512::<$($used)*>($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Isa::Avx2 => unsafe { avx2::<$($used)*>($($arg),*) },
                #[cfg(not(target_arch = "x86_64"))]
                $crate::simd::Isa::Portable => $body::<$($used)*>(isa, $($arg),*),
            }
        }
    };
}
pub(crate) use for_each_isa;

/// Like [`for_each_isa!`], compiled once, for the smallest instruction set: for code that wider vectors do not speed up
/// (`docs/performance/building.md`). Functions and bodies do not take the set.
macro_rules! for_least_isa {
    ($(#[$doc:meta])* $vis:vis fn $name:ident[$($generics:tt)*][$($used:tt)*]($($arg:ident: $ty:ty),* $(,)?)
     $(-> $ret:ty)? as $body:ident) => {
        $(#[$doc])*
        $vis fn $name<$($generics)*>($($arg: $ty),*) $(-> $ret)? {
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,bmi1,fma,popcnt"))]
            fn compiled<$($generics)*>($($arg: $ty),*) $(-> $ret)? {
                $body::<$($used)*>($($arg),*)
            }
            // SAFETY: kernels run with at least these instructions.
            #[allow(unused_unsafe)]
            unsafe { compiled::<$($used)*>($($arg),*) }
        }
    };
}
pub(crate) use for_least_isa;

/// Calls a function for the vectors of an instruction set and a type, compiled into a function that enables the set.
/// All callers do the same. Vectors are not loaded in closures: a closure that is not inlined has the baseline's
/// instructions, and takes several times as long.
macro_rules! by_vectors {
    ($isa:expr, $type:ty, $body:ident($($arg:expr),*)) => {
        match $isa {
            // SAFETY: an instruction set is only named after it was detected (`Isa::available`).
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Isa::Avx512 => unsafe { $body::<<$type as $crate::simd::Simd>::Avx512>($($arg),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Isa::Avx2 => unsafe { $body::<<$type as $crate::simd::Simd>::Avx2>($($arg),*) },
            // SAFETY: arrays need no instruction set.
            #[cfg(not(target_arch = "x86_64"))]
            $crate::simd::Isa::Portable => unsafe { $body::<<$type as $crate::simd::Simd>::Portable>($($arg),*) },
        }
    };
}
pub(crate) use by_vectors;

/// [`dispatch!`](horus_base::dispatch) for kernels that only move pixels: one type for each pixel size.
macro_rules! moved {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            _ => {
                type $t = f64;
                $body
            }
        }
    };
}
pub(crate) use moved;
