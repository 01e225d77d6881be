//! Host memory: aligned, typed by view, shared until written, and recycled.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dtype::Pixel;
use crate::error::{DeviceError, MemoryBound};
use crate::host::pages::prefer_large;
use crate::settings::HOST_MEMORY;

/// Alignment of every buffer, in bytes: a cache line, and the widest vector register.
pub const ALIGN: usize = 64;
const WORD: usize = size_of::<u64>();

/// Words of a block that holds `bytes` aligned bytes.
fn words(bytes: usize) -> usize {
    bytes.div_ceil(WORD) + ALIGN / WORD
}

/// A zeroed block for `bytes` bytes. Its pages come from the system when they are first touched.
fn zeros(bytes: usize) -> Result<Vec<u64>, DeviceError> {
    let block: Result<Box<[u64]>, ()> = bytemuck::allocation::try_zeroed_slice_box(words(bytes));
    let lacking = |()| DeviceError::OutOfMemory { bytes, used: 0, bound: MemoryBound::Machine };
    let block = block.map(Vec::from).map_err(lacking)?;
    prefer_large(block.as_ptr().cast(), block.len() * WORD);
    Ok(block)
}

/// Keeps freed buffers for reuse, so that a fresh image costs no page faults.
#[derive(Debug)]
pub struct Pool {
    free: Mutex<Free>,
    limit: usize,
    /// Limit of bytes in use by buffers of [`Pool::try_allocate`].
    most: AtomicUsize,
}

#[derive(Debug, Default)]
struct Free {
    bytes: usize,
    blocks: Vec<Vec<u64>>,
    /// Bytes in use that count against the limit.
    used: usize,
}

impl Pool {
    /// A pool that keeps at most `limit` bytes of freed memory.
    pub fn new(limit: usize) -> Arc<Pool> {
        Pool::bounded(limit, usize::MAX)
    }

    /// A pool that keeps at most `limit` bytes of freed memory and allocates at most `most`.
    pub fn bounded(limit: usize, most: usize) -> Arc<Pool> {
        Arc::new(Pool { free: Mutex::default(), limit: limit.min(most), most: AtomicUsize::new(most) })
    }

    /// Lowers the limit of bytes in use to `most`, in addition to the limit that the pool was created with.
    pub fn bound(&self, most: usize) {
        self.most.fetch_min(most, Ordering::Relaxed);
    }

    /// A buffer of `bytes` bytes with unspecified (but initialised) contents.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the pool's bound or the host's memory does not allow it.
    pub fn try_allocate(self: &Arc<Pool>, bytes: usize) -> Result<HostBuffer, DeviceError> {
        self.take(bytes, words(bytes).saturating_mul(WORD))
    }

    /// [`Pool::try_allocate`] for pixels that a program gives, and for messages: they do not count against the bound.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the host's memory does not allow it.
    pub fn try_uncounted(self: &Arc<Pool>, bytes: usize) -> Result<HostBuffer, DeviceError> {
        self.take(bytes, 0)
    }

    /// A buffer of which `counted` bytes count against the bound.
    fn take(self: &Arc<Pool>, bytes: usize, counted: usize) -> Result<HostBuffer, DeviceError> {
        let words = words(bytes);
        let recycled = {
            let mut free = self.count(counted, bytes)?;
            let fits = |b: &Vec<u64>| b.len() >= words && b.len() <= words + words / 4;
            free.blocks.iter().rposition(fits).map(|i| {
                let block = free.blocks.remove(i);
                free.bytes -= block.len() * WORD;
                block
            })
        };
        let block = match recycled {
            Some(block) => block,
            None => zeros(bytes).inspect_err(|_| self.free().used -= counted)?,
        };
        Ok(HostBuffer::over(block, bytes, Some((Arc::clone(self), counted))))
    }

    /// A buffer over the first `bytes` bytes of somebody else's memory, which count against the bound as if they were the
    /// pool's.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the pool's bound does not allow it; [`DeviceError::Argument`] if the memory is too
    /// short, or not aligned to [`ALIGN`] bytes.
    pub fn try_adopt(self: &Arc<Pool>, memory: Box<dyn HostMemory>, bytes: usize) -> Result<HostBuffer, DeviceError> {
        self.adopt(memory, bytes, bytes)
    }

    /// [`Pool::try_adopt`] for pixels that a program gives: they do not count against the bound.
    ///
    /// # Errors
    /// As [`Pool::try_adopt`], except for the limit.
    pub fn try_adopt_uncounted(
        self: &Arc<Pool>,
        memory: Box<dyn HostMemory>,
        bytes: usize,
    ) -> Result<HostBuffer, DeviceError> {
        self.adopt(memory, bytes, 0)
    }

    fn adopt(
        self: &Arc<Pool>,
        memory: Box<dyn HostMemory>,
        bytes: usize,
        counted: usize,
    ) -> Result<HostBuffer, DeviceError> {
        let whole = memory.bytes();
        if whole.len() < bytes || whole.as_ptr().align_offset(ALIGN) != 0 {
            let text = format!("{} bytes at {:?} cannot hold a buffer of {bytes}", whole.len(), whole.as_ptr());
            return Err(DeviceError::Argument(text));
        }
        drop(self.count(counted, bytes)?);
        let pool = Some((Arc::clone(self), counted));
        Ok(HostBuffer { block: Arc::new(Block { storage: Storage::Adopted(memory), pool }), bytes })
    }

    /// Counts `counted` bytes for a buffer of `bytes`, if the bound allows it.
    fn count(&self, counted: usize, bytes: usize) -> Result<MutexGuard<'_, Free>, DeviceError> {
        let mut free = self.free();
        let (used, most) = (free.used, self.most.load(Ordering::Relaxed));
        let Some(after) = used.checked_add(counted).filter(|after| *after <= most) else {
            let bound = MemoryBound::Setting { name: HOST_MEMORY.name, bytes: most };
            return Err(DeviceError::OutOfMemory { bytes, used, bound });
        };
        free.used = after;
        Ok(free)
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`Pool::try_allocate`] for small buffers.
    ///
    /// # Panics
    /// If there is no memory.
    pub fn allocate(self: &Arc<Pool>, bytes: usize) -> HostBuffer {
        self.try_allocate(bytes).unwrap_or_else(|e| panic!("{e}"))
    }

    /// [`Pool::try_uncounted`] for small buffers.
    ///
    /// # Panics
    /// If there is no memory.
    fn uncounted(self: &Arc<Pool>, bytes: usize) -> HostBuffer {
        self.try_uncounted(bytes).unwrap_or_else(|e| panic!("{e}"))
    }

    fn recycle(&self, block: Vec<u64>, asked: usize) {
        let size = block.len() * WORD;
        let mut dropped = Vec::new();
        self.free().used -= asked;
        if size <= self.limit {
            let mut free = self.free();
            while free.bytes + size > self.limit {
                let oldest = free.blocks.remove(0);
                free.bytes -= oldest.len() * WORD;
                dropped.push(oldest);
            }
            free.bytes += size;
            free.blocks.push(block);
        }
    }
}

/// Foreign host memory that returns to its owner when it is dropped: pinned memory of a device, for example.
pub trait HostMemory: Send + Sync + fmt::Debug {
    /// The bytes, always the same number at the same place.
    fn bytes(&self) -> &[u8];
    /// The bytes, mutable.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// For downcasting by whoever gave it.
    fn as_any(&self) -> &dyn Any;
}

#[derive(Debug)]
enum Storage {
    /// Words, of which the first aligned one has this index.
    Own(Vec<u64>, usize),
    Adopted(Box<dyn HostMemory>),
}

#[derive(Debug)]
struct Block {
    storage: Storage,
    /// Its pool, and the bytes counted for it.
    pool: Option<(Arc<Pool>, usize)>,
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some((pool, counted)) = self.pool.take() else { return };
        match &mut self.storage {
            Storage::Own(words, _) => pool.recycle(std::mem::take(words), counted),
            Storage::Adopted(_) => pool.free().used -= counted,
        }
    }
}

/// A block of host memory, aligned to [`ALIGN`] bytes. Its elements have whatever type it is viewed as.
///
/// A clone shares the block; writing to a shared block copies it first.
#[derive(Clone, Debug)]
pub struct HostBuffer {
    block: Arc<Block>,
    bytes: usize,
}

impl HostBuffer {
    fn over(words: Vec<u64>, bytes: usize, pool: Option<(Arc<Pool>, usize)>) -> HostBuffer {
        let offset = words.as_ptr().align_offset(ALIGN);
        HostBuffer { block: Arc::new(Block { storage: Storage::Own(words, offset), pool }), bytes }
    }

    /// A zeroed buffer that belongs to no pool.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn try_zeroed(bytes: usize) -> Result<HostBuffer, DeviceError> {
        Ok(HostBuffer::over(zeros(bytes)?, bytes, None))
    }

    /// [`HostBuffer::try_zeroed`] for small buffers.
    ///
    /// # Panics
    /// If there is no memory.
    pub fn zeroed(bytes: usize) -> HostBuffer {
        HostBuffer::try_zeroed(bytes).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A buffer holding a copy of `values`.
    pub fn from_slice<T: Pixel>(values: &[T]) -> HostBuffer {
        let mut b = HostBuffer::zeroed(size_of_val(values));
        b.as_mut_slice().copy_from_slice(values);
        b
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The memory that it was made over, if that is somebody else's; see [`Pool::try_adopt`].
    pub fn adopted(&self) -> Option<&dyn HostMemory> {
        match &self.block.storage {
            Storage::Adopted(memory) => Some(&**memory),
            Storage::Own(..) => None,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.block.storage {
            Storage::Own(words, offset) => &bytemuck::cast_slice(&words[*offset..])[..self.bytes],
            Storage::Adopted(memory) => &memory.bytes()[..self.bytes],
        }
    }

    /// The bytes, mutable; a shared block is copied first.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if Arc::get_mut(&mut self.block).is_none() {
            let mut copy = match &self.block.pool {
                // A limit is no reason to fail here.
                Some((pool, _)) => pool.try_allocate(self.bytes).unwrap_or_else(|_| pool.uncounted(self.bytes)),
                None => HostBuffer::zeroed(self.bytes),
            };
            copy.bytes_mut().copy_from_slice(self.bytes());
            *self = copy;
        }
        let block = Arc::get_mut(&mut self.block).expect("just made unique");
        match &mut block.storage {
            Storage::Own(words, offset) => &mut bytemuck::cast_slice_mut(&mut words[*offset..])[..self.bytes],
            Storage::Adopted(memory) => &mut memory.bytes_mut()[..self.bytes],
        }
    }

    /// The elements, as type `T`.
    pub fn as_slice<T: Pixel>(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }

    /// The elements, as type `T`, mutable.
    pub fn as_mut_slice<T: Pixel>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_recycled_within_the_limit() {
        let pool = Pool::new(10_000);
        let a = pool.allocate(4000);
        assert_eq!(a.bytes().as_ptr().align_offset(ALIGN), 0);
        let at = a.bytes().as_ptr();
        drop(a);
        assert_eq!(pool.allocate(3900).bytes().as_ptr(), at);
        let many: Vec<_> = (0..5).map(|_| pool.allocate(4000)).collect();
        drop(many);
        assert!(pool.free.lock().unwrap().bytes <= 10_000);
    }

    #[test]
    fn a_bounded_pool_refuses_what_is_beyond_its_bound() {
        let pool = Pool::bounded(1 << 20, 10_000);
        let a = pool.try_allocate(6000).unwrap();
        let message = pool.try_allocate(6000).unwrap_err().to_string();
        assert!(message.contains("6000 bytes needed"), "{message}");
        assert!(message.contains("of the 10000 bytes that HORUS_HOST_MEMORY allows are in use"), "{message}");
        let other = pool.try_uncounted(6000).expect("does not count");
        drop(a);
        assert!(pool.try_allocate(6000).is_ok());
        drop(other);
        assert!(pool.try_allocate(6000).is_ok(), "nor when it goes away");
        assert!(pool.try_allocate(isize::MAX.cast_unsigned()).is_err());
        pool.bound(isize::MAX.cast_unsigned());
        assert!(pool.try_allocate(isize::MAX.cast_unsigned() / 2).is_err(), "more than the machine has");
        pool.bound(8000);
        let mut shared = pool.try_allocate(6000).expect("what was refused does not count");
        let _other = shared.clone();
        assert_eq!(shared.bytes_mut().len(), 6000, "a copy on writing is made all the same");
    }

    /// Memory that tells when it is given back.
    #[derive(Debug)]
    struct Lent(Vec<u64>, Arc<AtomicUsize>);

    impl HostMemory for Lent {
        fn as_any(&self) -> &dyn Any {
            self
        }

        fn bytes(&self) -> &[u8] {
            let at = self.0.as_ptr().align_offset(ALIGN);
            &bytemuck::cast_slice(&self.0)[at * WORD..]
        }
        fn bytes_mut(&mut self) -> &mut [u8] {
            let at = self.0.as_ptr().align_offset(ALIGN);
            &mut bytemuck::cast_slice_mut(&mut self.0)[at * WORD..]
        }
    }

    impl Drop for Lent {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn adopted_memory_is_a_buffer_like_others_and_goes_back() {
        let back = Arc::new(AtomicUsize::new(0));
        let lent = |words| Box::new(Lent(vec![7; words], Arc::clone(&back)));
        let pool = Pool::bounded(1 << 20, 1000);
        let mut a = pool.try_adopt(lent(100), 600).unwrap();
        assert_eq!((a.len(), a.as_slice::<f32>().len()), (600, 150));
        let at = a.bytes().as_ptr();
        a.bytes_mut()[0] = 9;
        assert_eq!(a.bytes().as_ptr(), at, "written in place");
        let mut b = a.clone();
        b.bytes_mut()[0] = 1;
        assert_eq!((a.bytes()[0], b.bytes()[0], b.len()), (9, 1, 600), "a shared one is copied first");
        drop(b);
        assert!(pool.try_adopt(lent(100), 600).is_err(), "the bound counts");
        assert_eq!(back.swap(0, Ordering::Relaxed), 1);
        drop(a);
        assert_eq!(back.load(Ordering::Relaxed), 1);
        assert_eq!(pool.free().used, 0);
        assert!(pool.try_allocate(900).is_ok());
        assert!(pool.try_adopt(lent(20), 600).unwrap_err().to_string().contains("cannot hold a buffer of 600"));
    }

    #[test]
    fn too_much_memory_is_an_error_that_says_how_much() {
        for bytes in [isize::MAX.cast_unsigned() / 2, usize::MAX] {
            for result in [Pool::new(0).try_allocate(bytes), HostBuffer::try_zeroed(bytes)] {
                let error = result.expect_err("no machine has so much");
                assert!(error.to_string().contains(&format!("{bytes} bytes")), "{error}");
            }
        }
    }

    #[test]
    fn views_have_the_right_number_of_elements() {
        let b = HostBuffer::from_slice(&[1.5f32, 2.5, 3.5]);
        assert_eq!(b.len(), 12);
        assert_eq!(b.as_slice::<f32>(), &[1.5, 2.5, 3.5]);
        assert!(HostBuffer::zeroed(0).as_slice::<f64>().is_empty());
    }

    #[test]
    fn writing_to_a_shared_buffer_leaves_the_other_alone() {
        let a = HostBuffer::from_slice(&[1u8, 2, 3]);
        let mut b = a.clone();
        b.as_mut_slice::<u8>()[0] = 9;
        assert_eq!((a.as_slice::<u8>()[0], b.as_slice::<u8>()[0]), (1, 9));
    }
}
