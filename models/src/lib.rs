//! Models of the ocean, the weather and heat: programs over volumes, and programs that repeat an
//! iteration. Each module with a `run` is a command of this crate.

pub mod forecast;
pub mod hirlam;
pub mod jacobi;
pub mod kpp;
mod loops;
pub mod ocean;
pub mod perona_malik;
pub mod poisson;
pub mod pop;
pub mod tracers;
mod unesco;
pub mod weather;

pub use loops::in_parts;
