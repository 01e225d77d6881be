//! Programs over volumes.

pub mod hirlam;
pub mod ocean;
pub mod pop;
pub mod weather;
