//! Forecasts: of a program on other ranks, and of its memory.

pub(crate) mod memory;
pub(crate) mod ranks;
