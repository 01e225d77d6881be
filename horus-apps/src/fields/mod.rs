//! Programs over volumes.

pub mod forecast;
pub mod hirlam;
pub mod kpp;
pub mod ocean;
pub mod pop;
pub mod tracers;
mod unesco;
pub mod weather;
