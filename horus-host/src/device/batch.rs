//! Launches submitted together: a device that knows them beforehand starts all of them in one call, and independent
//! ones at the same time.

use std::any::Any;
use std::fmt;

use super::{Device, Geometry, Memory};
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_plan::ir::kernel::Kernel;

/// The memory of an image in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchMemory {
    /// An input of the batch, by its index among all.
    Input(usize),
    /// A result of the batch, by its index among all.
    Output(usize),
    /// An image that only launches of the batch use, by its own number.
    Intermediate(usize),
}

/// A launch without its memory, as in [`Launch`](super::Launch).
#[derive(Clone, Debug)]
pub struct BatchedLaunch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The inputs: written by earlier launches of the batch, or its inputs.
    pub inputs: Vec<(BatchMemory, Geometry)>,
    /// The output, and the additional ones of a kernel with several results; none is written twice.
    pub outputs: Vec<BatchMemory>,
    /// The geometry of the output.
    pub geometry: Geometry,
    /// The rows to compute.
    pub rows: Window,
}

/// Launches that are ready to be submitted. Only the device that made the batch knows its contents.
pub trait Batch: Any + Send + Sync + fmt::Debug {}

/// A device that submits launches together.
pub trait Batching: Device {
    /// Prepares launches to be submitted together any number of times; `None` if submitting them one by one is better.
    ///
    /// # Errors
    /// Compiler and driver errors.
    fn batch(&self, launches: &[BatchedLaunch<'_>]) -> Result<Option<Box<dyn Batch>>, DeviceError>;

    /// Runs the launches of a batch of this device after all earlier calls, in an order that respects their
    /// dependences, with these inputs and outputs. Returns `false` if nothing was launched: the launches can be made
    /// one by one.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] before anything is launched, if memory for intermediates runs out; driver errors.
    fn submit(&self, batch: &mut dyn Batch, inputs: &[&Memory], outputs: &mut [Memory]) -> Result<bool, DeviceError>;
}
