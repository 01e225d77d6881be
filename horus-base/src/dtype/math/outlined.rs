//! The functions of `f64` for integers. They are not inlined, so that they are compiled once for all integer
//! types.

use super::double;

macro_rules! once {
    ($name:ident($($arg:ident),*)) => {
        #[inline(never)]
        pub(crate) fn $name($($arg: f64),*) -> f64 {
            double::$name($($arg),*)
        }
    };
}

macro_rules! all {
    ([] $($(#[$doc:meta])* $method:ident $function:ident($($further:ident)?);)*) => {
        $(once! { $function(a $(, $further)?) })*
    };
}
functions!(all);
once! { sin_near(a) }
once! { sin_far(a) }
once! { cos_near(a) }
once! { cos_far(a) }
