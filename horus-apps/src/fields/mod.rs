//! Programs over volumes.

pub mod ocean;
pub mod pop;
