//! Every operation, type and border, on every device that needs no hardware, every mode and 1 to 5 ranks: the same bits
//! as the sequential reference.

mod harness;
mod ops;
mod programs;
mod random;
