//! The interface of a device: memory and launches. A device decides nothing; it executes a plan.

// Long, as it specifies the contract of a device beside its methods.

pub mod apart;
pub mod check;
mod exchange;
mod landing;
mod launch;
pub mod recording;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::comm::{CommError, Communicator};
use crate::host::Piece;
use crate::host::buffer::{HostBuffer, HostMemory, Pool};
use crate::host::external::DeviceArray;
use crate::host::workers::Workers;
use horus_base::dtype::DType;
use horus_base::error::DeviceError;
use horus_base::shape::{Shape, Window};

pub use self::exchange::{BlockCopy, Exchange, Message, distinct};
use self::landing::Blocking;
pub use self::landing::{Download, Landing, Room, Sending};
pub use self::launch::{Launch, LaunchInput, Prepared, more_geometries};
pub use self::recording::{DeviceSpan, Label, Lane};

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
    /// Extent of the whole image.
    pub shape: Shape,
    /// Element type.
    pub dtype: DType,
    /// The rows held.
    pub window: Window,
}

impl Geometry {
    /// Elements of one plane of the buffer.
    #[inline]
    pub fn plane(&self) -> usize {
        self.window.len() * self.shape.width
    }

    /// Size of the buffer in bytes.
    pub fn bytes(&self) -> usize {
        self.plane() * self.shape.planes() * self.dtype.size()
    }

    /// Index of the first element of row `y` (which must be held) of plane `c`.
    #[inline]
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

/// Memory kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The device computes on host memory: no copies are made.
    Unified,
    /// The device has its own memory.
    Separate,
}

/// An exchange or an upload in progress; see [`Device::exchange`] and [`Device::begin_upload`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The ticket of an operation that completed immediately.
    pub const OVER: Ticket = Ticket(u64::MAX);
}

/// Statistics of kernel compilation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// Time spent generating, compiling and loading.
    pub time: Duration,
    /// Kernels compiled.
    pub compiled: usize,
    /// Kernels compiled by an earlier run, found on disk.
    pub from_disk: usize,
    /// Kernels shipped compiled with the program.
    pub shipped: usize,
}

/// A compute device.
///
/// Calls are ordered: a launch sees the effect of all calls before it. Launches and uploads may
/// return before they complete; [`Device::read`] returns when the data has arrived.
pub trait Device: Send + Sync {
    /// Name shown to users, such as "CPU (2 threads, AVX-512)".
    fn name(&self) -> String;

    /// Name of the hardware: equal for devices of equal speed, wherever they are.
    fn hardware(&self) -> String {
        self.name()
    }

    /// Version of the software that drives the device, for which measurements of it are valid;
    /// empty if there is none besides Horus.
    fn driver(&self) -> String {
        String::new()
    }

    /// The kind of the device's memory.
    fn memory(&self) -> MemoryKind;

    /// The host's threads for work of this device: kernels for the CPU, copies of pixels otherwise.
    fn workers(&self) -> &Workers;

    /// Bytes available for images on a device with separate memory; `None` if unlimited.
    fn capacity(&self) -> Option<usize> {
        None
    }

    /// The pool from which a device with unified memory allocates. The session allocates host
    /// memory from it too, so that one limit applies to both.
    fn host_pool(&self) -> Option<&Arc<Pool>> {
        None
    }

    /// Statistics of kernel compilation so far, for a device that compiles kernels.
    fn compilation(&self) -> Compilation {
        Compilation::default()
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

    /// Host memory for pixels that other threads read ahead, with unspecified contents: the memory
    /// from which the device uploads fastest, if available, else from `pool`. May be called on any
    /// thread.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if host memory is exhausted.
    fn room(&self, bytes: usize, pool: &Arc<Pool>) -> Result<HostBuffer, DeviceError> {
        pool.try_allocate(bytes)
    }

    /// Page-locked host memory of this size, which the device accesses directly, with unspecified
    /// contents, as much as the machine allows; `None` if the device has no use for it. May be
    /// called on any thread.
    ///
    /// # Errors
    /// Driver errors if pages cannot be locked.
    fn page_locked(&self, _bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        Ok(None)
    }

    /// Returns `true` if launches can use this host memory in place of the device's, that is, if
    /// [`Device::map`] accepts it.
    fn maps(&self, _buffer: &HostBuffer) -> bool {
        false
    }

    /// Maps the buffer: launches read and write it in host memory, over the bus. Nothing else may
    /// write to the buffer meanwhile; if launches write to it, it must not be shared. The device
    /// keeps it alive for pending launches, even if the memory is dropped.
    ///
    /// # Errors
    /// The buffer itself if it cannot be mapped.
    fn map(&self, buffer: HostBuffer) -> Result<Memory, HostBuffer> {
        Err(buffer)
    }

    /// Waits for all launches so far, and returns the buffer of memory that [`Device::map`] made.
    ///
    /// # Errors
    /// Driver errors of earlier calls; [`DeviceError::Argument`] for any other memory.
    fn unmap(&self, _memory: Memory) -> Result<HostBuffer, DeviceError> {
        Err(DeviceError::Argument("memory that is not the host's cannot be given back to it".into()))
    }

    /// Page-locked host memory of this size, which the device accesses directly, with unspecified
    /// contents, for pixels that are transferred once. Returned if such memory is unused, or if
    /// this size has been requested so often that locking pages pays; otherwise pageable memory is
    /// faster in spite of its slower copies. May be called on any thread.
    fn lent(&self, _bytes: usize) -> Option<Box<dyn HostMemory>> {
        None
    }

    /// CUDA's index of the GPU among those visible to this process, by which other libraries know
    /// it; `None` for other devices.
    fn ordinal(&self) -> Option<usize> {
        None
    }

    /// Imports memory of this device owned by another library: launches read it in place, ordered
    /// after its stream. The device holds its owner for pending launches, even if the memory is
    /// dropped. It must not be written.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if it is not this device's; driver errors.
    fn adopt(&self, array: &DeviceArray) -> Result<Memory, DeviceError> {
        Err(DeviceError::Argument(format!("{} has no memory that other libraries know: {array:?}", self.name())))
    }

    /// Exports a share of the memory to another library, once all launches so far have completed.
    /// Its owner keeps it alive; it must not be written.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if other libraries cannot access this device's memory; driver
    /// errors.
    fn lend(&self, _memory: &Memory) -> Result<DeviceArray, DeviceError> {
        Err(DeviceError::Argument(format!("{} has no memory that other libraries know", self.name())))
    }

    /// Bytes of its own memory currently allocated, and their peak; `None` if the device does not
    /// count.
    fn used(&self) -> Option<(usize, usize)> {
        None
    }

    /// Returns memory kept for reuse to the system.
    ///
    /// # Errors
    /// Driver errors of earlier calls.
    fn trim(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Copies the program's pixels, the concatenated parts, to new device memory; returns when the
    /// parts may be changed. `None` if they are better kept in host memory until a plan needs them.
    /// May be called on any thread.
    ///
    /// # Errors
    /// Driver errors.
    fn take(&self, _parts: &[&[u8]]) -> Result<Option<Memory>, DeviceError> {
        Ok(None)
    }

    /// [`Device::write`] of a range of a buffer's bytes that may return before they are read: the
    /// device holds a share of the buffer until then, so that later writes go to a copy.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn upload_part(
        &self,
        source: &HostBuffer,
        range: Range<usize>,
        target: &mut Memory,
        at: usize,
    ) -> Result<(), DeviceError> {
        self.write(&source.bytes()[range], target, at)
    }

    /// [`Device::allocate`] of a block that [`Device::begin_upload`] fills completely before
    /// anything else uses it: the copies need not be ordered after the device's current work.
    ///
    /// # Errors
    /// As [`Device::allocate`].
    fn allocate_for_upload(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.allocate(bytes)
    }

    /// Starts to copy pieces of a buffer to a block, concurrently with launches: only calls after
    /// [`Device::arrive`] with the ticket and the block see them. Uploads execute in the order in
    /// which they are started. The device holds a share of the buffer, and the block's memory, as
    /// long as it needs them. Until the upload has arrived, these bytes of the block must not be
    /// read or written; launches may read others. The default implementation is blocking.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn begin_upload(&self, source: &HostBuffer, target: &mut Memory, pieces: &[Piece]) -> Result<Ticket, DeviceError> {
        if let Some(p) = pieces.iter().find(|p| !p.fits(source.len(), target.len())) {
            return Err(DeviceError::Argument(format!("a copy reaches beyond its buffers: {p:?}")));
        }
        for (from, to, bytes) in pieces.iter().flat_map(|p| p.runs()) {
            self.write(&source.bytes()[from..from + bytes], target, to)?;
        }
        Ok(Ticket::OVER)
    }

    /// Starts a download of `range`, bytes of a block, in pieces: to memory from `pool` unless a
    /// target is given when it lands. Never called on a device with unified memory. The default
    /// implementation is blocking.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the pool is exhausted.
    fn begin_download<'a>(
        &'a self,
        range: Range<usize>,
        pool: &Arc<Pool>,
        _when: Sending,
    ) -> Result<Box<dyn Download + 'a>, DeviceError> {
        Ok(Box::new(Blocking { device: self, at: range.start, host: pool.try_allocate(range.len())? }))
    }

    /// Copies device memory from byte `at` to host bytes, and waits for completion. Never called on
    /// a device with unified memory.
    ///
    /// # Errors
    /// Driver errors, including those of earlier launches.
    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError>;

    /// Starts to copy `bytes` bytes of device memory from byte `at` to host memory from `pool`,
    /// ordered after all launches so far. Later calls, and dropping the memory, do not change the
    /// result. Never called on a device with unified memory. The default implementation is
    /// blocking.
    ///
    /// # Errors
    /// Driver errors; [`DeviceError::OutOfMemory`] if the pool is exhausted.
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

    /// [`Device::order_read`] for a caller that provides the target, by [`Landing::land_on`] or
    /// [`Landing::land_in`]: the copy may wait until then.
    ///
    /// # Errors
    /// As [`Device::order_read`].
    fn hold(
        &self,
        source: &Memory,
        at: usize,
        bytes: usize,
        pool: &Arc<Pool>,
    ) -> Result<Box<dyn Landing>, DeviceError> {
        self.order_read(source, at, bytes, pool)
    }

    /// Builds the kernels of future launches together, on a device that compiles kernels: compiles
    /// those not in a cache and loads those not yet loaded. A launch without preparation builds its
    /// own.
    ///
    /// # Errors
    /// Compiler errors.
    fn prepare(&self, _launches: &[Prepared<'_>]) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Copies bytes between two blocks of this device's memory. The pieces do not overlap in the
    /// target.
    ///
    /// # Errors
    /// Driver errors; [`DeviceError::Argument`] if a piece reaches beyond its block.
    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[Piece]) -> Result<(), DeviceError>;

    /// An identifier of this device, unique among all ranks, if it can exchange memory with other
    /// devices peer to peer (not through the host); 0 if it cannot.
    fn address(&self) -> u64 {
        0
    }

    /// Connects the devices of all ranks of `comm` peer to peer, if possible; returns `true` if
    /// [`Device::exchange`] works from now on. `addresses` are the [`Device::address`]es of all
    /// ranks. Collective: all ranks call it and get the same answer. If an address is 0 or occurs
    /// twice the answer is `false` without communication.
    ///
    /// # Errors
    /// If peer-to-peer exchange is required (`HORUS_FABRIC=nccl`) and not possible, or another rank
    /// failed or left.
    fn connect(&self, _comm: &dyn Communicator, _addresses: &[u64]) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// Aborts exchanges with other devices after a failure: pending ones end, here and, if all
    /// devices call this, elsewhere; later ones are refused until the devices are connected again.
    /// May be called on any thread.
    fn disconnect(&self) {}

    /// Starts a non-blocking exchange with the devices of other ranks, as `MPI_Isend` and
    /// `MPI_Irecv` do for host memory, and returns a ticket with which [`Device::arrive`] completes
    /// it. Ranks whose `work` names each other must call this in the same order (pairwise
    /// collective), after [`Device::connect`] returned `true` on the same communicator.
    ///
    /// `reads` and `writes` are blocks of this device, numbered through: [`Message::block`] and
    /// [`BlockCopy`] count `reads` first, then `writes`.
    ///
    /// An implementation guarantees:
    /// - Order with earlier calls: sent and copied bytes are those left by all earlier calls
    ///   (launches, writes, copies, exchanges that have arrived).
    /// - Order within: all of `work.before`, then `work.sends` and `work.receives` together in any
    ///   order, then all of `work.after`. The k-th message from one rank to another matches the
    ///   k-th that the other receives from it; both have the same number of bytes.
    /// - Lifetime: it keeps the memory of `reads` and `writes` until the exchange completes, even
    ///   if the blocks are dropped before, or the exchange never arrives.
    /// - Progress: it may return before anything is sent, and may wait until the other ranks have
    ///   started theirs, but not for any of their later calls.
    ///
    /// A caller guarantees:
    /// - Targets of receives and of copies lie in `writes`. Within `work.receives`, and within each
    ///   list of copies, targets overlap neither each other nor sent bytes; a copy of `after` may
    ///   read results of `before` and received bytes.
    /// - Until [`Device::arrive`], targets are neither read nor written, and sent or copied bytes
    ///   are not written. Launches may read those, and read and write everything else in the
    ///   blocks. Blocks of `reads` may be dropped.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if a copy or a message reaches beyond its block, names no block,
    /// or the device is not connected; driver errors; [`DeviceError::Communication`] if another
    /// rank failed or left.
    fn exchange(
        &self,
        _comm: &dyn Communicator,
        _reads: &[&Memory],
        _writes: &mut [&mut Memory],
        _work: &Exchange,
    ) -> Result<Ticket, DeviceError> {
        Err(CommError(format!("{} is not connected to other devices", self.name())).into())
    }

    /// Completes an upload or an exchange: later calls see its writes to `writes`, the blocks that
    /// it was started with, in the same order. It need not block the host: an order between queues
    /// suffices. Exchanges are completed in any order, each once. One that is never completed is
    /// harmless (see the lifetime of [`Device::exchange`]).
    ///
    /// # Errors
    /// As [`Device::exchange`]; [`DeviceError::Argument`] if `writes` differ from those blocks.
    fn arrive(&self, _ticket: Ticket, _writes: &mut [&mut Memory]) -> Result<(), DeviceError> {
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

    /// Waits for the work recorded so far under labels (see [`recording`]), and takes the spans of
    /// labels that are `own`. A copy made on landing is reported once it has landed. The default
    /// implementation records nothing.
    ///
    /// # Errors
    /// Driver errors of earlier calls.
    fn recorded(&self, _own: &dyn Fn(Label) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        Ok(Vec::new())
    }
}
