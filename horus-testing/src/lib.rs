//! Test support: the sequential oracle of operations and kernels ([`reference`](mod@reference)), a [`simulated`] device
//! that poisons memory and delivers late, a device that fails on request ([`faulty`]), [`pixels`] to compare by bits,
//! [`cases`] of long tests, and the [`numbers`] that functions of `f32` yield.

pub mod cases;
pub mod faulty;
pub mod numbers;
pub mod pixels;
pub mod reference;
pub mod simulated;
