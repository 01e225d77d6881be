//! Memory that is not Horus's: read where it lies, and never written.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use horus_base::dtype::Pixel;

/// Whoever keeps memory alive. Dropped, on any thread, once nothing reads the memory any more.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// Pixels in host memory of somebody else, who keeps them there, unchanged, as long as its owner lives: a vector, a mapped file, an
/// array of another language. `Image::from_external` reads them where they lie. Nobody writes to
/// them: what is to be changed is copied first.
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

// SAFETY: nobody writes to the memory, and the owner may be sent.
unsafe impl Send for External {}
// SAFETY: as above.
unsafe impl Sync for External {}

impl External {
    /// The pixels that `owner` holds, as it shows them now; it is kept.
    pub fn of<T: Pixel, O: AsRef<[T]> + Send + Sync + 'static>(owner: O) -> External {
        let owner = Arc::new(owner);
        let pixels: &[T] = (*owner).as_ref();
        let (at, bytes) = (pixels.as_ptr().cast(), size_of_val(pixels));
        External { at, bytes, owner }
    }

    /// The `bytes` bytes from `at` on, which `owner` keeps.
    ///
    /// # Safety
    /// From now until `owner` is dropped, the bytes may be read on any thread and have values, and nobody writes to them while
    /// Horus reads: from when the image is made until everything recorded on it has been evaluated, or is gone. `at` is not null.
    pub unsafe fn new(at: *const u8, bytes: usize, owner: Owner) -> External {
        External { at, bytes, owner }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: what `new` requires; of a slice that the owner has shown, its borrow of the owner, which is held.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }

    /// Who keeps the memory.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of somebody else at {:?}", self.bytes, self.at)
    }
}

/// Pixels in the memory of a GPU that another library of this process has allocated there, or that it is given to read: an address that
/// kernels in the device's primary context find.
#[derive(Clone)]
pub struct DeviceArray {
    address: u64,
    bytes: usize,
    stream: Option<u64>,
    owner: Owner,
}

impl DeviceArray {
    /// The `bytes` bytes from `address` on, which `owner` keeps; what was put into `stream` before this is used (a stream of CUDA, 1 and
    /// 2 for the default ones) comes first.
    ///
    /// # Safety
    /// As [`External::new`], of memory of the device that it is given to; of a stream that lives as long as the call that is given
    /// this. Memory that was written by a stream that is not told must be there already.
    pub unsafe fn new(address: u64, bytes: usize, stream: Option<u64>, owner: Owner) -> DeviceArray {
        DeviceArray { address, bytes, stream, owner }
    }

    /// Memory of a device of our own, which knows its owner.
    pub fn ours(address: u64, bytes: usize, owner: Owner) -> DeviceArray {
        DeviceArray { address, bytes, stream: None, owner }
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it must be waited for.
    pub fn stream(&self) -> Option<u64> {
        self.stream
    }

    /// Who keeps the memory.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl fmt::Debug for DeviceArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of a device at {:#x}", self.bytes, self.address)
    }
}
