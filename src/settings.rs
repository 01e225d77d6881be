//! The environment variables that Horus reads.
//!
//! Opening a session checks all of them, whatever device it then runs on: a value that nobody can use is an error at once
//! and not on the machine where it first matters. An empty value counts as none. What is set by [`Builder`](crate::Builder) goes
//! before them.

#[doc(inline)]
pub use horus_core::settings::{Declared, VARIABLES, check, table};
