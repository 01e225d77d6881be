//! The host: its memory, from pools, and its threads.

pub mod buffer;
pub(crate) mod pages;
pub mod workers;
