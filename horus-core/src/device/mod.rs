//! What a device is: memory and launches. A device decides nothing; it does what a plan says.

pub mod check;
pub mod faulty;
pub mod simulated;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::comm::{CommError, Communicator};
use crate::dtype::DType;
use crate::error::DeviceError;
use crate::host::Piece;
use crate::host::buffer::{HostBuffer, Pool};
use crate::host::workers::Workers;
use crate::ir::kernel::Kernel;
use crate::shape::{Shape, Window};

/// Memory of a device that is not the host's. Only the device that allocated it knows what is inside.
pub trait DeviceMemory: Any + Send + Sync + fmt::Debug {
    /// Size in bytes.
    fn len(&self) -> usize;
    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// For downcasting by the device that allocated it.
    fn as_any(&self) -> &dyn Any;
    /// For downcasting by the device that allocated it.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// A block of memory that a device can compute on.
#[derive(Debug)]
pub enum Memory {
    /// Host memory: what a device with unified memory computes on.
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

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The host buffer, if it is one.
    pub fn host(&self) -> Option<&HostBuffer> {
        match self {
            Memory::Host(b) => Some(b),
            Memory::Device(_) => None,
        }
    }

    /// The host buffer, if it is one.
    pub fn into_host(self) -> Option<HostBuffer> {
        match self {
            Memory::Host(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// The host buffer, if it is one.
    pub fn host_mut(&mut self) -> Option<&mut HostBuffer> {
        match self {
            Memory::Host(b) => Some(b),
            Memory::Device(_) => None,
        }
    }
}

/// The geometry of an image's local buffer: rows `window` of each plane, planes one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Extent of the whole image.
    pub shape: Shape,
    /// Element type.
    pub dtype: DType,
    /// The rows held.
    pub window: Window,
}

impl Geometry {
    /// Elements of one plane of the buffer.
    pub fn plane(&self) -> usize {
        self.window.len() * self.shape.width
    }

    /// Size of the buffer in bytes.
    pub fn bytes(&self) -> usize {
        self.plane() * self.shape.channels * self.dtype.size()
    }

    /// Index of the first element of row `y` (which must be held) of plane `c`.
    pub fn row(&self, c: usize, y: isize) -> usize {
        debug_assert!(self.window.contains(y), "row {y} is not in {}", self.window);
        c * self.plane() + (y - self.window.start).cast_unsigned() * self.shape.width
    }

    /// Byte range of rows `rows` (which must be held) of plane `c`.
    pub fn row_bytes(&self, c: usize, rows: Window) -> std::ops::Range<usize> {
        if rows.is_empty() {
            return 0..0;
        }
        let at = self.row(c, rows.start) * self.dtype.size();
        at..at + rows.len() * self.shape.width * self.dtype.size()
    }
}

/// An input of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Its memory.
    pub memory: &'a Memory,
    /// What is in it.
    pub geometry: Geometry,
}

/// One kernel launch: compute `rows` of the output from the inputs.
///
/// Every row that the kernel reads for these rows is held by the inputs' windows (after border handling; for
/// [`Border::Wrap`](crate::shape::Border::Wrap) possibly as a virtual row, which is preferred when held).
#[derive(Debug)]
pub struct Launch<'a> {
    /// What to compute.
    pub kernel: &'a Kernel,
    /// From what.
    pub inputs: &'a [Input<'a>],
    /// Where to: memory of this device.
    pub output: &'a mut Memory,
    /// What the output is.
    pub geometry: Geometry,
    /// The output rows to compute: inside the image and inside the output's window. For
    /// [`Kernel::Histogram`], the rows of the *input* to count; for [`Kernel::Fold`], `0..1`.
    pub rows: Window,
}

/// A launch that is to come, without its memory: all that its kernel is made from.
#[derive(Clone, Debug)]
pub struct Prepared<'a> {
    /// What will be computed.
    pub kernel: &'a Kernel,
    /// From what.
    pub inputs: Vec<Geometry>,
    /// What the output is.
    pub output: Geometry,
    /// The rows, as in [`Launch::rows`].
    pub rows: Window,
}

/// Bytes on their way to the host; see [`Device::order_read`].
pub trait Landing: Send {
    /// Waits for the bytes; on any thread.
    ///
    /// # Errors
    /// What the driver reports, including errors of launches before.
    fn land(self: Box<Self>) -> Result<HostBuffer, DeviceError>;
}

/// Bytes that arrived at once.
impl Landing for HostBuffer {
    fn land(self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        Ok(*self)
    }
}

/// Whether a device computes on the host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The device computes on host memory: nothing is ever copied.
    Unified,
    /// The device has memory of its own.
    Separate,
}

/// Bytes of a block of memory that go to another rank's device or come from there; see [`Device::exchange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The other rank.
    pub rank: usize,
    /// Which block: the blocks that are read come first, then those that are written.
    pub block: usize,
    /// The first byte.
    pub at: usize,
    /// How many bytes, at least one.
    pub bytes: usize,
}

/// Bytes to copy from one block to another; blocks are numbered as in [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCopy {
    /// Which block is read.
    pub from: usize,
    /// Which block is written.
    pub to: usize,
    /// What is copied; the pieces do not overlap in the target.
    pub pieces: Vec<Piece>,
}

/// What [`Device::exchange`] does, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Copies that make up what is sent.
    pub before: Vec<BlockCopy>,
    /// Messages to other ranks, at most one for each.
    pub sends: Vec<Message>,
    /// Messages from other ranks, at most one from each.
    pub receives: Vec<Message>,
    /// Copies of what has been received to where it belongs, and of what this rank has itself.
    pub after: Vec<BlockCopy>,
}

/// An exchange under way; see [`Device::exchange`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

/// Whether no address is 0 and no two are equal: whether devices at them can be connected.
pub fn distinct(addresses: &[u64]) -> bool {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted.first() != Some(&0) && sorted.windows(2).all(|w| w[0] != w[1])
}

/// What making kernels has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// Time spent generating, compiling and loading.
    pub time: Duration,
    /// Kernels compiled.
    pub compiled: usize,
    /// Kernels found compiled on disk.
    pub from_disk: usize,
}

/// A compute device.
///
/// Calls are ordered: a launch sees the effect of all calls before it. Launches and uploads may return before they are
/// done; `download` and `read` return when the data is there.
pub trait Device: Send + Sync {
    /// Name for the user, such as "CPU (2 threads, AVX-512)".
    fn name(&self) -> String;

    /// Whether the device computes on host memory.
    fn memory(&self) -> MemoryKind;

    /// The host's threads for the work around this device: its kernels if it is the CPU, copies of pixels.
    fn workers(&self) -> &Workers;

    /// Bytes that images may take on a device with memory of its own; `None` if it need not be watched.
    fn capacity(&self) -> Option<usize> {
        None
    }

    /// Where memory comes from on a device that computes on the host's: a session takes host memory there too, so that a
    /// bound holds for both.
    fn host_pool(&self) -> Option<&Arc<Pool>> {
        None
    }

    /// What making kernels has cost so far, on a device that makes its own.
    fn compilation(&self) -> Compilation {
        Compilation::default()
    }

    /// New memory with unspecified contents. A device with unified memory returns [`Memory::Host`].
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError>;

    /// Copies host bytes into device memory at byte `at`. Never called on a device with unified memory.
    ///
    /// # Errors
    /// What the driver reports.
    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError>;

    /// Host memory from `pool` for pixels that the program gives, with unspecified contents: where the device fetches them
    /// fastest, if there is room there. May be called on any thread.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the host's memory does not allow it.
    fn room(&self, bytes: usize, pool: &Arc<Pool>) -> Result<HostBuffer, DeviceError> {
        pool.try_uncounted(bytes)
    }

    /// [`Device::write`] of a buffer that may still be read when this returns: the device holds a share of it until it has
    /// been, so that whoever writes to it writes to a copy.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn upload(&self, source: &HostBuffer, target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        self.write(source.bytes(), target, at)
    }

    /// Copies device memory from byte `at` into host bytes, and waits for it. Never called on a device with unified
    /// memory.
    ///
    /// # Errors
    /// What the driver reports, including errors of earlier launches.
    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError>;

    /// Begins to copy `bytes` bytes of device memory from byte `at` to host memory from `pool`, behind all launches so
    /// far. Calls that follow, and dropping the memory, do not change what arrives. Never called on a device with unified
    /// memory. By default all is done here.
    ///
    /// # Errors
    /// What the driver reports; [`DeviceError::OutOfMemory`] if the pool has no room.
    fn order_read(
        &self,
        source: &Memory,
        at: usize,
        bytes: usize,
        pool: &Arc<Pool>,
    ) -> Result<Box<dyn Landing>, DeviceError> {
        let mut host = pool.try_allocate(bytes)?;
        self.read(source, at, host.bytes_mut())?;
        Ok(Box::new(host))
    }

    /// Makes the kernels of launches that are to come, all at once, on a device that makes its own: compiles those that
    /// were never compiled, loads those that are not loaded. A launch that was not prepared makes its own.
    ///
    /// # Errors
    /// What the compiler reports.
    fn prepare(&self, _launches: &[Prepared<'_>]) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Copies bytes between two blocks of this device's memory. The pieces do not overlap in the target.
    ///
    /// # Errors
    /// What the driver reports; if a piece reaches beyond its block.
    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[Piece]) -> Result<(), DeviceError>;

    /// A number that tells this device from all others, if it can exchange memory with the devices of other ranks
    /// without the host; 0 if it cannot.
    fn address(&self) -> u64 {
        0
    }

    /// Opens a way between the devices of all ranks of `comm`, if there is one; whether [`Device::exchange`] works from
    /// now on. `addresses` are the [`Device::address`]es of all ranks. Collective, and so is the answer: without an
    /// address on some rank, or with one device twice, it is `false` at once and nothing is communicated.
    ///
    /// # Errors
    /// When a way was insisted on and there is none; when another rank failed or went away.
    fn connect(&self, _comm: &dyn Communicator, _addresses: &[u64]) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// Begins to send messages to the devices of other ranks and to receive others from there, with the copies that this
    /// takes; what is sent and copied is as the calls before left it. It lies in `reads` or `writes`; what is received or
    /// the target of a copy, in `writes`, and does not overlap. Until [`Device::arrive`], what is written is not there, and
    /// what is read must not change, but launches may read it and all else in the blocks; those of `reads` may go away.
    /// Collective among the ranks that have messages for each other, after [`Device::connect`] on the same communicator.
    ///
    /// # Errors
    /// What the driver reports; when another rank failed or went away; if a copy or a message reaches beyond its block.
    fn exchange(
        &self,
        _comm: &dyn Communicator,
        _reads: &[&Memory],
        _writes: &mut [&mut Memory],
        _work: &Exchange,
    ) -> Result<Ticket, DeviceError> {
        Err(CommError(format!("{} is not connected to other devices", self.name())).into())
    }

    /// Ends an exchange: the calls that follow see what it brought to `writes`, the blocks it was begun with. Exchanges
    /// end in any order. One that never ends does no harm: what it reads and writes stays its own until it is done, also
    /// when the blocks are dropped.
    ///
    /// # Errors
    /// As [`Device::exchange`]; if `writes` are other blocks.
    fn arrive(&self, _ticket: Ticket, _writes: &mut [&mut Memory]) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Runs a kernel.
    ///
    /// # Errors
    /// What the driver reports.
    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError>;

    /// Waits until everything is done.
    ///
    /// # Errors
    /// What the driver reports of earlier calls.
    fn synchronize(&self) -> Result<(), DeviceError>;
}
