//! The definitions themselves: small examples with their results, and the simulated device.

mod cases;
mod components;
mod distance;
mod exchange;
mod geometric;
mod image;
mod neighbourhood;
mod pixel;
mod programs;
mod reads;
mod reconstruction;
mod reduce;
mod sampling;
mod stack;
mod windowed;
