//! Models of the ocean, the weather and heat: programs over volumes, and programs with loops. Each module with a `run`
//! is a command of this crate. Choices of the models: `docs/design/models.md`.

pub mod forecast;
pub mod hirlam;
pub mod jacobi;
pub mod kpp;
mod loops;
pub mod ocean;
pub mod perona_malik;
pub mod poisson;
pub mod pop;
pub mod surface;
pub mod tracers;
mod unesco;
pub mod weather;

pub use loops::{CheckpointOptions, in_parts, iterate};
