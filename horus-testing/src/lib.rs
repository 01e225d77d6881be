//! Test support: the sequential oracle of operations and kernels ([`reference`](mod@reference)), a
//! [`simulated`] device that poisons memory and delivers late, and one that fails on request
//! ([`faulty`]).

pub mod faulty;
pub mod reference;
pub mod simulated;
