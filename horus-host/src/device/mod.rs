//! What a device is: memory and launches. A device decides nothing; it does what a plan says.

// Long because the contract of a device is told in full beside its methods.

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

/// A block of memory that a device computes on.
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

/// Whether a device computes on the host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The device computes on host memory: nothing is ever copied.
    Unified,
    /// The device has memory of its own.
    Separate,
}

/// An exchange or an upload in progress; see [`Device::exchange`] and [`Device::begin_upload`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Of what was over when it was begun.
    pub const OVER: Ticket = Ticket(u64::MAX);
}

/// What building kernels has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// Time spent generating, compiling and loading.
    pub time: Duration,
    /// Kernels compiled.
    pub compiled: usize,
    /// Kernels that an earlier run compiled, found on disk.
    pub from_disk: usize,
    /// Kernels that came compiled with the program.
    pub shipped: usize,
}

/// A compute device.
///
/// Calls are ordered: a launch sees the effect of all calls before it. Launches and uploads may return before they are
/// done; [`Device::read`] returns when the data is there.
pub trait Device: Send + Sync {
    /// Name for the user, such as "CPU (2 threads, AVX-512)".
    fn name(&self) -> String;

    /// Name of the hardware: the same for devices that are as fast, wherever they are.
    fn hardware(&self) -> String {
        self.name()
    }

    /// Version of the software that drives the device, for which what was measured of it holds; empty if there is none apart
    /// from Horus.
    fn driver(&self) -> String {
        String::new()
    }

    /// Whether the device computes on host memory.
    fn memory(&self) -> MemoryKind;

    /// The host's threads for work of this device: kernels if it is the CPU, copies of pixels otherwise.
    fn workers(&self) -> &Workers;

    /// Bytes that images may take on a device with separate memory; `None` if there is no limit to observe.
    fn capacity(&self) -> Option<usize> {
        None
    }

    /// The pool that a device with unified memory allocates from: the session allocates host memory from it too, so
    /// that one limit holds for both.
    fn host_pool(&self) -> Option<&Arc<Pool>> {
        None
    }

    /// What building kernels has cost so far, on a device that compiles kernels.
    fn compilation(&self) -> Compilation {
        Compilation::default()
    }

    /// Allocates memory with unspecified contents. A device with unified memory returns [`Memory::Host`].
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError>;

    /// Copies host bytes into device memory at byte `at`. Never called on a device with unified memory.
    ///
    /// # Errors
    /// What the driver reports.
    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError>;

    /// Host memory from `pool` for pixels that other threads read ahead, with unspecified contents: where the device fetches
    /// them fastest, if there is room there. May be called on any thread.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the host's memory does not allow it.
    fn room(&self, bytes: usize, pool: &Arc<Pool>) -> Result<HostBuffer, DeviceError> {
        pool.try_allocate(bytes)
    }

    /// Host memory of this size that the device reads and writes by itself, with unspecified contents, as much as the
    /// machine allows; `None` where that is of no use. May be called on any thread.
    ///
    /// # Errors
    /// What the driver reports where pages cannot be locked.
    fn page_locked(&self, _bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        Ok(None)
    }

    /// Whether launches can use this memory of the host in place of the device's: whether [`Device::map`] takes it.
    fn maps(&self, _buffer: &HostBuffer) -> bool {
        false
    }

    /// Memory that is the buffer's: launches read and write it where the host has it, over the bus. Nobody else writes to the
    /// buffer meanwhile; if launches write to it, nobody else has a share of it. The device holds it as long as launches under
    /// way use it, also if the memory is dropped. The buffer comes back where that is not possible.
    ///
    /// # Errors
    /// The buffer.
    fn map(&self, buffer: HostBuffer) -> Result<Memory, HostBuffer> {
        Err(buffer)
    }

    /// Waits for everything that was launched so far, and gives back the buffer of memory that [`Device::map`] made.
    ///
    /// # Errors
    /// What the driver reports of earlier calls; [`DeviceError::Argument`] if the memory is other memory.
    fn unmap(&self, _memory: Memory) -> Result<HostBuffer, DeviceError> {
        Err(DeviceError::Argument("memory that is not the host's cannot be given back to it".into()))
    }

    /// Host memory of this size that the device reads and writes by itself, with unspecified contents, for pixels that pass
    /// once: if such memory lies unused, or so many bytes have come so often that locking pages pays. Otherwise ordinary
    /// memory is faster, whatever its copies take. May be called on any thread.
    fn lent(&self, _bytes: usize) -> Option<Box<dyn HostMemory>> {
        None
    }

    /// The number of the GPU, as CUDA counts those that this process may use, if it is one: by which other libraries know it.
    fn ordinal(&self) -> Option<usize> {
        None
    }

    /// Memory of this device that another library keeps: launches read it where it lies, after what it must be waited for. The
    /// device holds its owner as long as launches under way read it, also if the memory is dropped. Nobody writes to it.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if it is not this device's; what the driver reports.
    fn adopt(&self, array: &DeviceArray) -> Result<Memory, DeviceError> {
        Err(DeviceError::Argument(format!("{} has no memory that other libraries know: {array:?}", self.name())))
    }

    /// A share of the memory for another library, once everything that was launched so far is done. Whoever holds its owner keeps
    /// it; nobody writes to it.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if other libraries do not know this device's memory; what the driver reports.
    fn lend(&self, _memory: &Memory) -> Result<DeviceArray, DeviceError> {
        Err(DeviceError::Argument(format!("{} has no memory that other libraries know", self.name())))
    }

    /// Bytes of its own memory that are allocated now, and the most at a time so far; `None` of a device that does not count.
    fn used(&self) -> Option<(usize, usize)> {
        None
    }

    /// Gives memory that is kept for reuse back to the system.
    ///
    /// # Errors
    /// What the driver reports of earlier calls.
    fn trim(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// New device memory with a copy of the pixels that the program gives, its parts one after the other; returns when they
    /// may change. `None` where they had better wait in host memory until a plan needs them. May be called on any thread.
    ///
    /// # Errors
    /// What the driver reports.
    fn take(&self, _parts: &[&[u8]]) -> Result<Option<Memory>, DeviceError> {
        Ok(None)
    }

    /// [`Device::write`] of a range of a buffer's bytes that may still be read when this returns: the device holds a share of
    /// the buffer until they have been, so that whoever writes to it writes to a copy.
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

    /// [`Device::allocate`] of a block that [`Device::begin_upload`] will fill, all of it, before anything else uses it: the
    /// copies need not come after what the device does now.
    ///
    /// # Errors
    /// As [`Device::allocate`].
    fn allocate_for_upload(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.allocate(bytes)
    }

    /// Starts to copy pieces of a buffer to a block, beside launches: only what follows [`Device::arrive`],
    /// called with the ticket and the block, sees them. Uploads are carried out in the order in which they are begun. The
    /// device holds a share of the buffer, and the block's memory, as long as it needs them. Until the upload has arrived
    /// nobody reads or writes these bytes of the block; launches may read others. The default implementation is blocking.
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

    /// Begins to copy `range`, some bytes of a block, to the host, piece by piece: to memory from `pool`, if nobody says where they go.
    /// Never called on a device with unified memory. The default implementation is blocking.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the pool has no room.
    fn begin_download<'a>(
        &'a self,
        range: Range<usize>,
        pool: &Arc<Pool>,
        _when: Sending,
    ) -> Result<Box<dyn Download + 'a>, DeviceError> {
        Ok(Box::new(Blocking { device: self, at: range.start, host: pool.try_allocate(range.len())? }))
    }

    /// Copies device memory from byte `at` into host bytes, and waits for it. Never called on a device with unified
    /// memory.
    ///
    /// # Errors
    /// What the driver reports, including errors of earlier launches.
    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError>;

    /// Starts to copy `bytes` bytes of device memory from byte `at` to host memory from `pool`, ordered after all
    /// launches so far. Later calls, and dropping the memory, do not change what arrives. Never called on a device with
    /// unified memory. The default implementation is blocking.
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

    /// [`Device::order_read`] for somebody who will have the bytes in memory of their own, by [`Landing::land_on`] or
    /// [`Landing::land_in`]: nothing need be copied before.
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

    /// Builds the kernels of future launches together, on a device that compiles kernels: compiles those that are in no
    /// cache, loads those that are not loaded. A launch that was not prepared builds its own.
    ///
    /// # Errors
    /// What the compiler reports.
    fn prepare(&self, _launches: &[Prepared<'_>]) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Copies bytes between two blocks of this device's memory. The pieces do not overlap in the target.
    ///
    /// # Errors
    /// What the driver reports; [`DeviceError::Argument`] if a piece reaches beyond its block.
    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[Piece]) -> Result<(), DeviceError>;

    /// An identifier of this device, unique among all ranks, if it can exchange memory with other devices peer to peer (not
    /// through the host); 0 if it cannot.
    fn address(&self) -> u64 {
        0
    }

    /// Connects the devices of all ranks of `comm` peer to peer, if that is possible; returns whether [`Device::exchange`]
    /// works from now on. `addresses` are the [`Device::address`]es of all ranks. Collective: all ranks call it and get the
    /// same answer. If an address is 0 or occurs twice the answer is `false` without communication.
    ///
    /// # Errors
    /// When peer-to-peer exchange was required (`HORUS_FABRIC=nccl`) and is not possible; when another rank failed or went
    /// away.
    fn connect(&self, _comm: &dyn Communicator, _addresses: &[u64]) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// Gives up exchanges with other devices after a failure: those under way end, here and, if all devices do so, elsewhere; later
    /// ones are refused until the devices are connected again. May be called on any thread.
    fn disconnect(&self) {}

    /// Starts a non-blocking exchange with the devices of other ranks, as `MPI_Isend` and `MPI_Irecv` do for host memory,
    /// and returns a ticket with which [`Device::arrive`] completes it. Ranks whose `work` names each other must call this
    /// in the same order (pairwise collective), after [`Device::connect`] returned `true` on the same communicator.
    ///
    /// `reads` and `writes` are blocks of this device, numbered through: [`Message::block`] and [`BlockCopy`] count `reads`
    /// first, then `writes`.
    ///
    /// What an implementation guarantees:
    /// - Order with earlier calls: what is sent or copied has the contents that all earlier calls (launches, writes, copies,
    ///   exchanges that have arrived) leave.
    /// - Order within: all of `work.before`, then `work.sends` and `work.receives` together in any order, then all of
    ///   `work.after`. The k-th message from one rank to another matches the k-th that the other receives from it; both
    ///   have the same number of bytes.
    /// - Lifetime: it keeps the memory of `reads` and `writes` until the exchange is done, also if the blocks are dropped
    ///   before, or the exchange never arrives.
    /// - Progress: it may return before anything was sent, and may wait until the other ranks have started theirs, but not for
    ///   anything that they do after that.
    ///
    /// What a caller guarantees:
    /// - Targets of receives and of copies lie in `writes`. Within `work.receives`, and within each list of copies, targets
    ///   do not overlap each other, nor what is sent; a copy of `after` may read what `before` or a message brought.
    /// - Until [`Device::arrive`], nobody reads or writes the targets, and nobody writes the bytes that are sent or copied.
    ///   Launches may read those, and read and write everything else in the blocks. Blocks of `reads` may be dropped.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if a copy or a message reaches beyond its block, names no block, or the device is not
    /// connected; what the driver reports; [`DeviceError::Communication`] when another rank failed or went away.
    fn exchange(
        &self,
        _comm: &dyn Communicator,
        _reads: &[&Memory],
        _writes: &mut [&mut Memory],
        _work: &Exchange,
    ) -> Result<Ticket, DeviceError> {
        Err(CommError(format!("{} is not connected to other devices", self.name())).into())
    }

    /// Completes an upload or an exchange: calls that follow see what it wrote to `writes`, which are the blocks that it was started
    /// with, in the same order. It need not block the host: an order between queues is enough. Exchanges are completed in
    /// any order, each once. One that is never completed does no harm (see the lifetime of [`Device::exchange`]).
    ///
    /// # Errors
    /// As [`Device::exchange`]; [`DeviceError::Argument`] if `writes` are other blocks.
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

    /// Waits for what was done so far under labels (see [`recording`]), and takes when it ran, of those labels that are
    /// `own`. A copy that is made when it lands is told once it has. The default is a device that does not tell.
    ///
    /// # Errors
    /// What the driver reports of earlier calls.
    fn recorded(&self, _own: &dyn Fn(Label) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        Ok(Vec::new())
    }
}
