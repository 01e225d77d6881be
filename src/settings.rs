//! The environment variables that Horus reads.
//!
//! Opening a session checks all of them, whichever device is chosen, so an invalid value is an
//! error at once. An empty value counts as unset. Settings of [`Builder`](crate::Builder) take
//! precedence.

#[doc(inline)]
pub use horus_core::settings::{Declared, VARIABLES, check, table};
