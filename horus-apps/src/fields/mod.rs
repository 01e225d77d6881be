//! Programs over volumes.

pub mod hirlam;
pub mod kpp;
pub mod ocean;
pub mod pop;
mod unesco;
pub mod weather;
