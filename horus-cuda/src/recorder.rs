//! A device that computes nothing and records its launches, to inspect a program's kernels without a GPU.

use horus_core::ops::Whole;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use horus_core::device::{
    Device, DeviceMemory, DeviceNames, Geometry, Launch, LaunchInput, Memory, MemoryKind, Staging,
};
use horus_core::error::{DeviceError, Error};
use horus_core::host::StridedCopy;
use horus_core::host::workers::Workers;
use horus_core::ir::kernel::Kernel;
use horus_core::shape::Window;

use crate::codegen::{Generated, KernelLimits, Shapes, generate_bounded};
use crate::tuning::all_sizes;

/// One launch, without its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedLaunch {
    /// The launched kernel.
    pub kernel: Kernel,
    /// The inputs' geometries.
    pub inputs: Vec<Geometry>,
    /// The output's geometry.
    pub output: Geometry,
    /// The computed rows.
    pub rows: Window,
}

impl RecordedLaunch {
    /// Returns `true` if nothing is computed.
    pub fn is_copy(&self) -> bool {
        matches!(self.kernel, Kernel::Whole(Whole::Merge(_)) | Kernel::Source(_))
    }

    /// The programs that a GPU of sm_`arch` with these limits would run for images of all sizes, the program for a
    /// large image first; none for a copy.
    ///
    /// # Errors
    /// Errors of [`generate_bounded`].
    pub fn programs(&self, arch: u32, limits: KernelLimits) -> Result<Vec<Generated>, DeviceError> {
        if self.is_copy() {
            return Ok(Vec::new());
        }
        let dtype = self.inputs.first().map_or(self.output.dtype, |g| g.dtype);
        let shapes = Shapes { inputs: &self.inputs, output: self.output, rows: self.rows };
        let tunings = all_sizes(&self.kernel, dtype, arch);
        tunings.iter().map(|tuning| generate_bounded(&self.kernel, &shapes, tuning, limits)).collect()
    }
}

/// The launches of a [`RecordingDevice`], readable while a session owns the device.
#[derive(Clone, Debug, Default)]
pub struct RecordedLaunches(Arc<Mutex<Vec<RecordedLaunch>>>);

impl RecordedLaunches {
    /// Launches so far, in order.
    pub fn get(&self) -> Vec<RecordedLaunch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A device that records launches: every pixel read from it is 0. It reports the memory of a GPU and allocates none.
#[derive(Debug)]
pub struct RecordingDevice {
    workers: Workers,
    launches: RecordedLaunches,
}

impl RecordingDevice {
    /// A new device.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new() -> Result<RecordingDevice, Error> {
        Ok(RecordingDevice { workers: Workers::new(Some(1))?, launches: RecordedLaunches::default() })
    }

    /// The recorded launches.
    pub fn launches(&self) -> RecordedLaunches {
        self.launches.clone()
    }
}

#[derive(Debug)]
struct UnbackedMemory(usize);

impl DeviceMemory for UnbackedMemory {
    fn len(&self) -> usize {
        self.0
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Staging for RecordingDevice {}

impl Device for RecordingDevice {
    fn names(&self) -> DeviceNames {
        DeviceNames::named("recorder")
    }

    fn memory(&self) -> MemoryKind<'_> {
        MemoryKind::Separate(Some(64 << 30))
    }

    fn workers(&self) -> &Workers {
        &self.workers
    }

    fn staging(&self) -> &dyn Staging {
        self
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        Ok(Memory::Device(Box::new(UnbackedMemory(bytes))))
    }

    fn write(&self, _source: &[u8], _target: &mut Memory, _at: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(&self, _source: &Memory, _at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        target.fill(0);
        Ok(())
    }

    fn copy(&self, _source: &Memory, _target: &mut Memory, _pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        let inputs = launch.inputs.iter().map(|i: &LaunchInput<'_>| i.geometry).collect();
        let Launch { kernel, geometry: output, rows, .. } = launch;
        let launched = RecordedLaunch { kernel: kernel.clone(), inputs, output, rows };
        self.launches.0.lock().unwrap_or_else(PoisonError::into_inner).push(launched);
        Ok(())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
