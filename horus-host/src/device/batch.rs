//! Launches submitted together: a device that knows them beforehand starts all of them in one call,
//! and those that do not depend on one another at the same time.

use std::any::Any;
use std::fmt;

use super::{Device, Geometry, Memory};
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_plan::ir::kernel::Kernel;

/// The memory of an image in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchMemory {
    /// An input of the batch, by its place among all.
    Input(usize),
    /// A result of the batch, by its place among all.
    Output(usize),
    /// An image that only launches of the batch use: a number of its own.
    Intermediate(usize),
}

/// A launch without its memory, as in [`Launch`](super::Launch).
#[derive(Clone, Debug)]
pub struct BatchedLaunch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The inputs: written by earlier launches of the batch, or its inputs.
    pub inputs: Vec<(BatchMemory, Geometry)>,
    /// The output, and the others of a kernel with several results; none is written twice.
    pub outputs: Vec<BatchMemory>,
    /// The geometry of the output.
    pub geometry: Geometry,
    /// The rows to compute.
    pub rows: Window,
}

/// Launches that are ready to be submitted. Only the device that made it knows its contents.
pub trait Batch: Any + Send + Sync + fmt::Debug {}

/// A device that submits launches together.
pub trait Batching: Device {
    /// Prepares launches for being submitted together any number of times; `None` if they are
    /// better submitted one by one.
    ///
    /// # Errors
    /// Compiler and driver errors.
    fn batch(&self, launches: &[BatchedLaunch<'_>]) -> Result<Option<Box<dyn Batch>>, DeviceError>;

    /// Runs the launches of a batch of this device, in an order in which each sees the results
    /// that it reads, after all earlier calls. Inputs and outputs are those of the slots. `false`
    /// if nothing was launched: the launches can be made one by one.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] before anything is launched, if there is no room for images
    /// inside; driver errors.
    fn submit(&self, batch: &mut dyn Batch, inputs: &[&Memory], outputs: &mut [Memory]) -> Result<bool, DeviceError>;
}
