//! Forecasts of a program's time on other ranks, and of its memory use.

pub(crate) mod device;
pub(crate) mod memory;
pub(crate) mod ranks;
