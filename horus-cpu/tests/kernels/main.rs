//! Kernels as launches of a device, on every instruction set of the machine: what only depends on the
//! device's interface, so that the kernels are not compiled again for the tests.

mod device;
mod maps;
mod sampling;
mod whole;
mod windowed;
