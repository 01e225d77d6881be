//! Pools of host memory: freed blocks are reused, and the bytes in use stay within a bound.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ALIGN, BufferBlock, BufferStorage, HostBuffer, HostMemory, WORD, words, zeros};
use crate::pages::return_large_blocks;
use horus_base::error::{DeviceError, MemoryBound};

/// A pool of host memory. It caches freed buffers, so that a fresh image causes no page faults. Cached and used memory
/// together stay within three quarters of the limit of bytes in use, unless used memory alone exceeds that: the process
/// uses memory for more than images.
#[derive(Debug)]
pub struct Pool {
    free: Mutex<Free>,
    limit: usize,
    /// Limit of bytes in use.
    most: AtomicUsize,
    /// The limit is the default, not a setting.
    by_default: AtomicBool,
}

#[derive(Debug, Default)]
struct Free {
    bytes: usize,
    blocks: Vec<Vec<u64>>,
    /// Bytes in use, including foreign memory and reservations.
    used: usize,
    /// Bytes of the pool's own blocks in use.
    out: usize,
    /// Peak of `out`.
    peak: usize,
}

impl Free {
    /// Releases cached blocks, the oldest first, until the remaining ones and `more` bytes take at most `most`.
    fn trim(&mut self, most: usize, more: usize) -> Vec<Vec<u64>> {
        let mut dropped = Vec::new();
        while !self.blocks.is_empty() && self.bytes.saturating_add(more) > most {
            let oldest = self.blocks.remove(0);
            self.bytes -= oldest.len() * WORD;
            dropped.push(oldest);
        }
        dropped
    }
}

impl Pool {
    /// A pool that caches at most `limit` bytes of freed memory.
    pub fn new(limit: usize) -> Arc<Pool> {
        Pool::bounded(limit, usize::MAX)
    }

    /// A pool that caches at most `limit` bytes of freed memory and allocates at most `most`.
    pub fn bounded(limit: usize, most: usize) -> Arc<Pool> {
        let (most, by_default) = (AtomicUsize::new(most), AtomicBool::new(false));
        Arc::new(Pool { free: Mutex::default(), limit: limit.min(most.load(Ordering::Relaxed)), most, by_default })
    }

    /// Lowers the limit of bytes in use to `most`, in addition to the limit given at creation.
    pub fn bound(&self, most: usize) {
        if most == usize::MAX {
            return;
        }
        return_large_blocks();
        if self.by_default.swap(false, Ordering::Relaxed) {
            self.most.store(most, Ordering::Relaxed);
        }
        self.most.fetch_min(most, Ordering::Relaxed);
    }

    /// Limits the bytes in use, unless a limit is set.
    pub fn bound_by_default(&self, most: usize) {
        let unbounded = self.most.compare_exchange(usize::MAX, most, Ordering::Relaxed, Ordering::Relaxed);
        if unbounded.is_ok() {
            self.by_default.store(true, Ordering::Relaxed);
        }
    }

    /// The limit of bytes in use, and the bytes in use.
    pub fn bounds(&self) -> (MemoryBound, usize) {
        (self.limits(), self.free().used)
    }

    fn limits(&self) -> MemoryBound {
        let bytes = self.most.load(Ordering::Relaxed);
        MemoryBound::Host { bytes, by_default: self.by_default.load(Ordering::Relaxed) }
    }

    /// The limit of bytes in use, if any.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Counts memory allocated elsewhere for the lifetime of the result.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the pool's bound does not allow it.
    pub fn reserve(self: &Arc<Pool>, bytes: usize) -> Result<Reserved, DeviceError> {
        drop(self.count(bytes, bytes)?);
        Ok(Reserved { pool: Arc::clone(self), bytes })
    }

    /// Bytes of freed memory that the pool caches.
    pub fn cached_bytes(&self) -> usize {
        self.free().bytes
    }

    /// The pool's own bytes that buffers use now, and their peak.
    pub fn in_use(&self) -> (usize, usize) {
        let free = self.free();
        (free.out, free.peak)
    }

    /// Returns cached memory to the system.
    pub fn trim(&self) {
        let dropped = self.free().trim(0, 0);
        drop(dropped);
    }

    /// A buffer of `bytes` bytes with unspecified (but initialised) contents.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the pool's bound or the host's memory does not allow it.
    pub fn try_allocate(self: &Arc<Pool>, bytes: usize) -> Result<HostBuffer, DeviceError> {
        self.take(bytes, true)
    }

    /// [`Pool::try_allocate`] without the pool's bound, for memory that must not be refused, such as messages between
    /// ranks. The bytes are counted.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the host's memory does not allow it.
    pub fn try_allocate_unbounded(self: &Arc<Pool>, bytes: usize) -> Result<HostBuffer, DeviceError> {
        self.take(bytes, false)
    }

    /// Allocates a buffer; with `bounded`, the pool's bound may refuse it.
    fn take(self: &Arc<Pool>, bytes: usize, bounded: bool) -> Result<HostBuffer, DeviceError> {
        let words = words(bytes);
        let counted = super::block_bytes(bytes);
        let (recycled, dropped) = {
            let mut free = if bounded { self.count(counted, bytes)? } else { self.counted(counted) };
            let fits = |b: &Vec<u64>| b.len() >= words && b.len() <= words + words / 4;
            let recycled = free.blocks.iter().rposition(fits).map(|i| {
                let block = free.blocks.remove(i);
                free.bytes -= block.len() * WORD;
                block
            });
            // An impossible size is refused below and subtracted again.
            free.out = free.out.wrapping_add(recycled.as_ref().map_or(words, Vec::len).wrapping_mul(WORD));
            let out = free.out;
            free.peak = free.peak.max(out);
            (recycled, free.trim(self.cache_limit(), out))
        };
        drop(dropped); // before more memory is allocated
        let block = match recycled {
            Some(block) => block,
            None => zeros(bytes).inspect_err(|_| {
                let mut free = self.free();
                free.used = free.used.wrapping_sub(counted);
                free.out = free.out.wrapping_sub(words.wrapping_mul(WORD));
            })?,
        };
        Ok(HostBuffer::over(block, bytes, Some((Arc::clone(self), counted))))
    }

    /// A buffer over the first `bytes` bytes of foreign memory. They count against the bound like the pool's own.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the pool's bound does not allow it;
    /// [`DeviceError::Argument`] if the memory is too short, or not aligned to [`ALIGN`] bytes.
    pub fn try_adopt(self: &Arc<Pool>, memory: Box<dyn HostMemory>, bytes: usize) -> Result<HostBuffer, DeviceError> {
        let whole = memory.bytes();
        if whole.len() < bytes || whole.as_ptr().align_offset(ALIGN) != 0 {
            let text = format!("{} bytes at {:?} cannot hold a buffer of {bytes}", whole.len(), whole.as_ptr());
            return Err(DeviceError::Argument(text));
        }
        drop(self.count(bytes, bytes)?);
        let pool = Some((Arc::clone(self), bytes));
        Ok(HostBuffer { block: Arc::new(BufferBlock { storage: BufferStorage::Adopted(memory), pool }), bytes })
    }

    /// Counts `counted` bytes for a buffer of `bytes`, if the bound allows it.
    fn count(&self, counted: usize, bytes: usize) -> Result<MutexGuard<'_, Free>, DeviceError> {
        let mut free = self.free();
        let (used, most) = (free.used, self.most.load(Ordering::Relaxed));
        let Some(after) = used.checked_add(counted).filter(|after| *after <= most) else {
            return Err(DeviceError::OutOfMemory { bytes, used, bound: self.limits() });
        };
        free.used = after;
        Ok(free)
    }

    /// Counts bytes regardless of the bound.
    fn counted(&self, counted: usize) -> MutexGuard<'_, Free> {
        let mut free = self.free();
        free.used = free.used.wrapping_add(counted); // subtracted if memory is short
        free
    }

    /// Limit of bytes in use or cached, unless more are in use.
    fn cache_limit(&self) -> usize {
        let most = self.most.load(Ordering::Relaxed);
        most - most / 4
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

    /// [`Pool::try_allocate_unbounded`] for a copy on write.
    ///
    /// # Panics
    /// If there is no memory.
    pub(super) fn allocate_unbounded(self: &Arc<Pool>, bytes: usize) -> HostBuffer {
        self.try_allocate_unbounded(bytes).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Subtracts the bytes counted for a buffer.
    pub(super) fn uncount(&self, counted: usize) {
        self.free().used -= counted;
    }

    /// Takes a block back and subtracts its counted bytes.
    pub(super) fn recycle(&self, block: Vec<u64>, counted: usize) {
        let size = block.len() * WORD;
        let mut free = self.free();
        free.used -= counted;
        free.out -= size;
        let room = self.cache_limit().saturating_sub(free.out).min(self.limit);
        if size > room {
            return; // the cache is full
        }
        let dropped = free.trim(room, size);
        free.bytes += size;
        free.blocks.push(block);
        drop(free);
        drop(dropped);
    }
}

/// Memory elsewhere, counted against the bound of a pool.
#[derive(Debug)]
pub struct Reserved {
    pool: Arc<Pool>,
    bytes: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.pool.uncount(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;

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
        assert!(pool.cached_bytes() <= 10_000);
    }

    #[test]
    fn what_is_kept_and_what_is_in_use_stay_within_the_bound_together() {
        let pool = Pool::bounded(usize::MAX, 27_000);
        let beyond = pool.try_allocate_unbounded(8000).unwrap();
        let counted = pool.try_allocate(8000).unwrap();
        drop(counted);
        assert!(pool.cached_bytes() >= 8000, "there is room for both");
        let larger = pool.try_allocate(11_000).unwrap();
        assert_eq!(pool.cached_bytes(), 0, "what was kept made room");
        drop(beyond);
        assert!((8000..=20_250 - 11_000).contains(&pool.cached_bytes()));
        drop(larger);
        assert!(pool.cached_bytes() <= 20_250);
        assert_eq!(pool.free.lock().unwrap().out, 0);
        assert!(pool.try_allocate_unbounded(usize::MAX).is_err());
        let free = pool.free.lock().unwrap();
        assert_eq!((free.out, free.used), (0, 0), "what was refused is not in use");
    }

    #[test]
    fn a_bounded_pool_refuses_what_is_beyond_its_bound() {
        let pool = Pool::bounded(1 << 20, 10_000);
        let a = pool.try_allocate(6000).unwrap();
        let message = pool.try_allocate(6000).unwrap_err().to_string();
        assert!(message.contains("6000 bytes needed"), "{message}");
        assert!(message.contains("of the 10000 bytes that HORUS_HOST_MEMORY allows are in use"), "{message}");
        let other = pool.try_allocate_unbounded(6000).expect("is not refused");
        drop(a);
        assert!(pool.try_allocate(6000).is_err() && pool.reserve(6000).is_err(), "and counts");
        drop(other);
        let reserved = pool.reserve(6000).unwrap();
        assert!(pool.try_allocate(6000).is_err());
        drop(reserved);
        assert!(pool.try_allocate(6000).is_ok());
        assert!(pool.try_allocate(isize::MAX.cast_unsigned()).is_err());
        pool.bound_by_default(10);
        pool.bound(isize::MAX.cast_unsigned());
        assert!(pool.try_allocate(isize::MAX.cast_unsigned() / 2).is_err(), "more than the machine has");
        pool.bound(8000);
        let mut shared = pool.try_allocate(6000).expect("what was refused does not count");
        let _other = shared.clone();
        assert_eq!(shared.bytes_mut().len(), 6000, "a copy on writing is made all the same");
    }

    /// Memory that signals its release.
    #[derive(Debug)]
    struct ReleaseProbe(Vec<u64>, Arc<AtomicUsize>);

    impl HostMemory for ReleaseProbe {
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

    impl Drop for ReleaseProbe {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn adopted_memory_is_a_buffer_like_others_and_goes_back() {
        let back = Arc::new(AtomicUsize::new(0));
        let lent = |words| Box::new(ReleaseProbe(vec![7; words], Arc::clone(&back)));
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
}
