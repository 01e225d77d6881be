//! Memory of other libraries as images, and images as memory for other libraries.

use crate::device::Foreign;
use crate::dtype::DType;
use crate::error::{Call, DeviceError, Error, Result};
use crate::host::buffer::HostBuffer;
use crate::host::external::{DeviceArray, External};
use crate::host::sequential_output::SequentialOutput;
use crate::ir::graph::{Graph, Op};
use crate::plan::state::Placement;
use crate::session::{Handle, Session};
use crate::shape::{Shape, Window};

impl Session {
    /// Host memory outside Horus, read in place.
    #[doc(hidden)]
    pub fn external(&self, pixels: External) -> HostBuffer {
        HostBuffer::external(pixels, &self.0.pool)
    }

    /// CUDA's index of the session's GPU among those visible to this process; `None` on the CPU, on several devices or
    /// ranks, and before the device is chosen.
    pub fn gpu(&self) -> Option<usize> {
        let engine = self.engine().filter(|engine| engine.device_count() == 1 && self.ranks() == 1)?;
        engine.device.foreign().map(|device| device.ordinal())
    }

    /// Chooses the device now, if it is not chosen yet. This is for a session on a requested kind of device whose
    /// memory is used before the first evaluation. Collective.
    ///
    /// # Errors
    /// If the device cannot be opened; [`Error::Reentry`] during an evaluation on this thread.
    pub fn settle_device(&self) -> Result<()> {
        let mut state = self.lock("choosing a device")?;
        self.choose_engine(&mut state, &Graph::default()).map(drop)
    }

    /// The single device, if other libraries can access its memory.
    pub(crate) fn known_device(&self, call: Call) -> Result<&dyn Foreign> {
        let refused = |message: String| Err(Error::parameter(call, message));
        if self.ranks() > 1 {
            return refused(format!(
                "the program runs on {} ranks, each of which has a part of an image",
                self.ranks()
            ));
        }
        match self.engine().map(|engine| (engine.device_count(), engine.device.foreign())) {
            Some((2.., _)) => {
                refused(format!("the session computes on {}, each of which has a part of an image", self.device_name()))
            }
            Some((_, Some(device))) => Ok(device),
            _ => refused(format!("the session computes on {}, not on a GPU", self.device_name())),
        }
    }

    /// Creates an image from pixels in the device's memory, in place or from a copy that is started now.
    pub(crate) fn source_of_device(
        &self,
        shape: Shape,
        dtype: DType,
        array: &DeviceArray,
        copied: bool,
        call: Call,
    ) -> Result<Handle> {
        let device = self.known_device(call)?;
        let mut state = self.lock_to_give("reading memory of a device")?;
        let pixels = device.adopt(array, copied).map_err(|source| self.at_host(call, source))?;
        let id = self.0.numbers.record();
        let value = state.names.value();
        state.images.give_device(value, shape.stored(), dtype, vec![(pixels, Window::whole(shape.height))]);
        state.images.given.insert(value, Placement::Replicated);
        state.program.record(id, Op::Source(value), &[], (shape, dtype), call.site);
        drop(state);
        Ok(Handle::new(self, Ok(id), (shape, dtype)))
    }

    /// Evaluates a value and exports its pixels on the device, uploading them if necessary.
    pub(crate) fn device_array(&self, value: &Handle, stream: Option<u64>, call: Call) -> Result<DeviceArray> {
        let id = value.look()?;
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        self.evaluate_records(state, vec![id])?;
        if self.engine().is_none() {
            self.choose_engine(state, &Graph::default())?;
        }
        let device = self.known_device(call)?;
        let name = state.program.value(id);
        self.read_now(state, &Graph::default(), name.as_slice())?;
        self.publish(state);
        let image = name.and_then(|v| state.images.in_memory.get(&v));
        let lend = || -> Result<DeviceArray, DeviceError> {
            if let Some(memory) = image.and_then(|image| image.device.as_ref()) {
                return device.export(memory, stream);
            }
            let lost = || DeviceError::Internal("pixels that are lent are not in memory".into());
            let host = image.and_then(|image| image.host.as_ref()).ok_or_else(lost)?;
            let mut memory = device.allocate(host.len())?;
            device.write(host.bytes(), &mut memory, 0)?;
            device.export(&memory, stream)
        };
        lend().map_err(|source| self.at_host(call, source))
    }

    /// Evaluates a value and returns its pixels on the host: a copy, made by all threads, or possibly shared.
    ///
    /// # Errors
    /// As [`Image::to_vec`](crate::image::Image::to_vec).
    #[doc(hidden)]
    #[track_caller]
    pub fn buffer_of(&self, value: &Handle, copied: bool) -> Result<HostBuffer> {
        let bytes = value.shape.len() * value.dtype.size();
        let read = self.read_back(value, false, Call::of("reading pixels"), |coming| {
            if coming.is_here() && !copied {
                return coming.shared();
            }
            let mut room = self.0.pool.try_allocate(bytes)?;
            if !coming.is_here() {
                SequentialOutput::over(room.bytes_mut()).fault(coming.workers()); // while the kernels run
            }
            coming.put_into(&mut room)?;
            Ok(room)
        })?;
        read.ok_or_else(|| Error::Lost("another rank has the pixels".into()))
    }
}
