//! The interface of a device: memory and launches. A device decides nothing; it executes a plan.
//!
//! A [`Device`] returns its capabilities: [`Staging`] for transfers concurrent with launches, [`Batching`] for launches
//! submitted together, [`Fabric`] for peer-to-peer messages, [`Foreign`] for memory shared with other libraries.

mod batch;
pub mod check;
mod download;
mod fabric;
mod foreign;
mod launch;
pub mod recording;
pub mod separate_memory;
mod staging;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::StridedCopy;
use crate::buffer::{HostBuffer, Pool};
use crate::workers::Workers;
use horus_base::dtype::DType;
use horus_base::error::DeviceError;
use horus_base::shape::{Shape, Window};

pub use self::batch::{Batch, BatchMemory, BatchedLaunch, Batching};
pub use self::download::{Download, DownloadStart, HostAllocator, PendingDownload};
pub use self::fabric::{BlockCopy, Exchange, Fabric, Message, distinct};
pub use self::foreign::Foreign;
pub use self::launch::{Launch, LaunchInput, PreparedLaunch, more_geometries};
pub use self::recording::{DeviceQueue, DeviceSpan, WorkLabel};
pub use self::staging::Staging;

/// Memory of a device other than the host. Only the device that allocated it knows its contents.
pub trait DeviceMemory: Any + Send + Sync + fmt::Debug {
    /// Size in bytes.
    fn len(&self) -> usize;
    /// Returns `true` if there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// For downcasting by the device that allocated it.
    fn as_any(&self) -> &dyn Any;
    /// For downcasting by the device that allocated it.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// A block of memory that a device computes on.
#[derive(Debug)]
pub enum Memory {
    /// Host memory, for a device with unified memory.
    Host(HostBuffer),
    /// Memory of a separate device.
    Device(Box<dyn DeviceMemory>),
}

impl Memory {
    /// Size in bytes.
    pub fn len(&self) -> usize {
        match self {
            Memory::Host(b) => b.len(),
            Memory::Device(b) => b.len(),
        }
    }

    /// Returns `true` if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The host buffer, if the block is one.
    pub fn host(&self) -> Option<&HostBuffer> {
        match self {
            Memory::Host(b) => Some(b),
            Memory::Device(_) => None,
        }
    }

    /// The host buffer, if the block is one.
    pub fn into_host(self) -> Option<HostBuffer> {
        match self {
            Memory::Host(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// The host buffer, if the block is one.
    pub fn host_mut(&mut self) -> Option<&mut HostBuffer> {
        match self {
            Memory::Host(b) => Some(b),
            Memory::Device(_) => None,
        }
    }
}

/// The geometry of an image's local buffer: rows `window` of each plane, planes contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Shape of the whole image.
    pub shape: Shape,
    /// Element type.
    pub dtype: DType,
    /// The rows in the buffer.
    pub window: Window,
}

impl Geometry {
    /// Elements of one plane of the buffer.
    #[inline]
    pub fn plane(&self) -> usize {
        self.window.len() * self.shape.line()
    }

    /// The geometry of the same elements as pixels of one sample.
    #[must_use]
    pub const fn flat(self) -> Geometry {
        Geometry { shape: self.shape.flat(), ..self }
    }

    /// Size of the buffer in bytes.
    pub fn bytes(&self) -> usize {
        self.plane() * self.shape.planes() * self.dtype.size()
    }

    /// Index of the first element of row `y` (which must be in the buffer) of plane `c`.
    #[inline]
    pub fn row(&self, c: usize, y: isize) -> usize {
        debug_assert!(self.window.contains(y), "row {y} is not in {}", self.window);
        c * self.plane() + (y - self.window.start).cast_unsigned() * self.shape.line()
    }

    /// Byte range of rows `rows` (which must be in the buffer) of plane `c`.
    pub fn row_bytes(&self, c: usize, rows: Window) -> std::ops::Range<usize> {
        if rows.is_empty() {
            return 0..0;
        }
        let at = self.row(c, rows.start) * self.dtype.size();
        at..at + rows.len() * self.shape.line() * self.dtype.size()
    }
}

/// The memory that a device computes on.
#[derive(Clone, Copy, Debug)]
pub enum MemoryKind<'a> {
    /// Host memory from this pool: no copies are made. The session also allocates host memory from this pool, so that
    /// one limit applies to both.
    Unified(&'a Arc<Pool>),
    /// The device's own memory, and its bytes available for images; `None` if unlimited.
    Separate(Option<usize>),
}

impl MemoryKind<'_> {
    /// Returns `true` for host memory.
    pub fn is_unified(self) -> bool {
        matches!(self, MemoryKind::Unified(_))
    }

    /// Bytes available for images in separate memory; `None` if unlimited.
    pub fn capacity(self) -> Option<usize> {
        if let MemoryKind::Separate(capacity) = self { capacity } else { None }
    }
}

/// An exchange or an upload in progress; see [`Fabric::exchange`] and [`Staging::begin_upload`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The ticket of an operation that completed immediately.
    pub const OVER: Ticket = Ticket(u64::MAX);
}

/// Statistics of kernel compilation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// Time to generate, compile and load kernels.
    pub time: Duration,
    /// Kernels compiled.
    pub compiled: usize,
    /// Kernels compiled by an earlier run, found on disk.
    pub from_disk: usize,
    /// Kernels shipped compiled with the program.
    pub shipped: usize,
}

impl Compilation {
    /// The difference from earlier statistics of the same device.
    pub fn since(&self, earlier: &Compilation) -> Compilation {
        Compilation {
            time: self.time.saturating_sub(earlier.time),
            compiled: self.compiled - earlier.compiled,
            from_disk: self.from_disk - earlier.from_disk,
            shipped: self.shipped - earlier.shipped,
        }
    }
}

/// The names of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceNames {
    /// Name shown to users, such as "CPU (2 threads, AVX-512)".
    pub name: String,
    /// Name of the hardware: equal for devices of equal speed, wherever they are.
    pub hardware: String,
    /// Version of the driver software, for which measurements of the device are valid; empty if there is none besides
    /// Horus.
    pub driver: String,
}

impl DeviceNames {
    /// The names of a device named after its hardware, without a driver.
    pub fn named(name: impl Into<String>) -> DeviceNames {
        let name = name.into();
        DeviceNames { hardware: name.clone(), name, driver: String::new() }
    }
}

/// Compilation and memory of a device so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsage {
    /// Kernel compilation so far, on a device that compiles kernels.
    pub compilation: Compilation,
    /// Bytes of its own memory currently allocated, and their peak; `None` if the device does not
    /// count.
    pub memory: Option<(usize, usize)>,
}

/// A compute device.
///
/// Calls are ordered: a launch sees the effect of all calls before it. Launches and uploads may
/// return before they complete; [`Device::read`] returns when the data has arrived.
pub trait Device: Send + Sync {
    /// The device's names.
    fn names(&self) -> DeviceNames;

    /// The device's memory.
    fn memory(&self) -> MemoryKind<'_>;

    /// The host's threads for work of this device: kernels for the CPU, copies of pixels otherwise.
    fn workers(&self) -> &Workers;

    /// Transfers concurrent with launches.
    fn staging(&self) -> &dyn Staging;

    /// Launches submitted together, if that is faster than one by one.
    fn batching(&self) -> Option<&dyn Batching> {
        None
    }

    /// Messages to devices of other ranks, if the device can exchange them peer to peer (not through the host).
    fn fabric(&self) -> Option<&dyn Fabric> {
        None
    }

    /// Memory shared with other libraries, if they can access this device's memory.
    fn foreign(&self) -> Option<&dyn Foreign> {
        None
    }

    /// Compilation and memory so far.
    fn usage(&self) -> DeviceUsage {
        DeviceUsage::default()
    }

    /// Returns cached memory to the system.
    ///
    /// # Errors
    /// Driver errors of earlier calls.
    fn trim(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Allocates memory with unspecified contents. A device with unified memory returns
    /// [`Memory::Host`].
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError>;

    /// Copies host bytes into device memory at byte `at`. Never called on a device with unified
    /// memory.
    ///
    /// # Errors
    /// Driver errors.
    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError>;

    /// Copies device memory from byte `at` to host bytes, and waits for completion. Never called on
    /// a device with unified memory.
    ///
    /// # Errors
    /// Driver errors, including those of earlier launches.
    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies bytes between two blocks of this device's memory. The pieces do not overlap in the
    /// target.
    ///
    /// # Errors
    /// Driver errors; [`DeviceError::Argument`] if a piece reaches beyond its block.
    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError>;

    /// Builds the kernels of future launches together, on a device that compiles kernels: compiles those not in a cache
    /// and loads those not yet loaded. A launch without preparation builds its own kernel.
    ///
    /// # Errors
    /// Compiler errors.
    fn prepare(&self, _launches: &[PreparedLaunch<'_>]) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Runs a kernel.
    ///
    /// # Errors
    /// Driver errors.
    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError>;

    /// Waits for all calls so far.
    ///
    /// # Errors
    /// Driver errors of earlier calls.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// Waits for the work recorded so far under labels (see [`recording`]), and takes the spans whose label is `own`. A
    /// copy made with its target is reported once it has completed. The default implementation records nothing.
    ///
    /// # Errors
    /// Driver errors of earlier calls.
    fn recorded(&self, _own: &dyn Fn(WorkLabel) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        Ok(Vec::new())
    }
}
