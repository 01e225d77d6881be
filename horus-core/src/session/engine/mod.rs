//! Evaluates compiled programs.

mod blocks;
pub(crate) mod deliver;
pub(crate) mod devices;
pub(crate) mod distribute;
pub(crate) mod evaluate;
pub(crate) mod failure;
mod inputs;
pub(crate) mod loops;
pub(crate) mod read;
pub(crate) mod regions;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod stages;
