//! Test support: the sequential oracle of operations and kernels ([`reference`](mod@reference)), a
//! [`simulated`] device that poisons memory and delivers late, one that fails on request
//! ([`faulty`]), and [`pixels`] to compare by bits.

pub mod faulty;
pub mod pixels;
pub mod reference;
pub mod simulated;
