//! The operations of Horus, as data.
//!
//! Each family is a table or a small parameter type: what the operation is called, what it computes, and which rows
//! and columns of its input it reads. Recording, planning, tests, documentation and every backend derive from these.

pub mod components;
pub mod geometric;
pub mod labels;
pub mod neighbourhood;
pub mod pixel;
pub mod planes;
pub mod reconstruction;
pub mod reduce;
pub mod sampling;
pub mod tiles;
pub mod windowed;
