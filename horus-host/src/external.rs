//! External memory: read in place, never written.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use horus_base::dtype::Pixel;

/// Owner of external memory: keeps it alive. Dropped, on any thread, once nothing reads the memory any more.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// Pixels in host memory outside Horus: a vector, a mapped file, an array of another language. They are valid and
/// unchanged as long as their owner lives. `Image::from_external` reads them in place. They are never written: writes
/// go to a copy.
///
/// ```
/// # mod horus { pub use horus_core::host::external as types; }
/// use horus::types::External;
/// let pixels = External::of(vec![1.0f32, 2.0, 3.0]);
/// assert_eq!(pixels.bytes().len(), 12);
/// ```
#[derive(Clone)]
pub struct External {
    at: *const u8,
    bytes: usize,
    owner: Owner,
}

// SAFETY: the memory is never written, and the owner may be sent.
unsafe impl Send for External {}
// SAFETY: as above.
unsafe impl Sync for External {}

impl External {
    /// The pixels that `AsRef` of `owner` returns now; keeps `owner` alive.
    pub fn of<T: Pixel, O: AsRef<[T]> + Send + Sync + 'static>(owner: O) -> External {
        let owner = Arc::new(owner);
        let pixels: &[T] = (*owner).as_ref();
        let (at, bytes) = (pixels.as_ptr().cast(), size_of_val(pixels));
        External { at, bytes, owner }
    }

    /// The `bytes` bytes from address `at`, kept alive by `owner`.
    ///
    /// # Safety
    /// Until `owner` is dropped, the bytes are initialised and may be read on any thread. Nothing writes to them while
    /// Horus reads: from the creation of the image until everything recorded on it has been evaluated or dropped. `at`
    /// is not null.
    pub unsafe fn new(at: *const u8, bytes: usize, owner: Owner) -> External {
        External { at, bytes, owner }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as `new` requires; a slice borrowed from the owner lives as long as the owner, which this value keeps
        // alive.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }

    /// The owner, which keeps the memory alive.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of somebody else at {:?}", self.bytes, self.at)
    }
}

/// Pixels in GPU memory that another library of this process allocated or shares: an address valid for kernels in the
/// device's primary context.
#[derive(Clone)]
pub struct DeviceArray {
    address: u64,
    bytes: usize,
    stream: Option<u64>,
    owner: Owner,
}

impl DeviceArray {
    /// The `bytes` bytes from `address`, kept alive by `owner`. Work already enqueued in `stream` (a CUDA stream; 1 and
    /// 2 denote the default streams) completes before their first use.
    ///
    /// # Safety
    /// As for [`External::new`], with memory of the device that receives it and a stream that outlives the receiving
    /// call. Writes by all other streams have completed.
    pub unsafe fn new(address: u64, bytes: usize, stream: Option<u64>, owner: Owner) -> DeviceArray {
        DeviceArray { address, bytes, stream, owner }
    }

    /// Memory of one of Horus's devices, which recognises its owner, for use in `stream`.
    pub fn ours(address: u64, bytes: usize, stream: Option<u64>, owner: Owner) -> DeviceArray {
        DeviceArray { address, bytes, stream, owner }
    }

    /// CUDA's default stream, which synchronises with all blocking streams.
    pub const DEFAULT_STREAM: u64 = 1;

    /// Device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The stream to wait for.
    pub fn stream(&self) -> Option<u64> {
        self.stream
    }

    /// The owner, which keeps the memory alive.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl fmt::Debug for DeviceArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of a device at {:#x}", self.bytes, self.address)
    }
}
