//! The functions of `f64` for integers, not inlined: they are compiled once for all integer types.

use super::double;

macro_rules! functions {
    ($($name:ident($($arg:ident),+);)*) => {
        $(#[inline(never)]
        pub(crate) fn $name($($arg: f64),+) -> f64 {
            double::$name($($arg),+)
        })*
    };
}
functions! {
    exp(a);
    log(a);
    pow(a, b);
    sin_near(a);
    sin_far(a);
    cos_near(a);
    cos_far(a);
    atan2(a, b);
    hypot(a, b);
}
