//! Host memory: aligned, viewed as a type, copied on write, and recycled.

mod pool;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::external::External;
use crate::pages::prefer_large;
use horus_base::dtype::Pixel;
use horus_base::error::{DeviceError, MemoryBound};

pub use pool::{Pool, Reserved};

/// Alignment of every buffer, in bytes: a cache line, and the widest vector register.
pub const ALIGN: usize = 64;
const WORD: usize = size_of::<u64>();

/// Words of a block for `bytes` aligned bytes.
fn words(bytes: usize) -> usize {
    bytes.div_ceil(WORD) + ALIGN / WORD
}

/// Bytes that a buffer of `bytes` occupies in a pool.
pub fn block_bytes(bytes: usize) -> usize {
    words(bytes).saturating_mul(WORD)
}

/// Allocates a zeroed block for `bytes` bytes. The system provides its pages when they are first written or read.
fn zeros(bytes: usize) -> Result<Vec<u64>, DeviceError> {
    let block: Result<Box<[u64]>, ()> = bytemuck::allocation::try_zeroed_slice_box(words(bytes));
    let lacking = |()| DeviceError::OutOfMemory { bytes, used: 0, bound: MemoryBound::Machine };
    let block = block.map(Vec::from).map_err(lacking)?;
    prefer_large(block.as_ptr().cast(), block.len() * WORD);
    Ok(block)
}

/// Foreign host memory that returns to its owner when it is dropped: for example, pinned memory of a device.
pub trait HostMemory: Send + Sync + fmt::Debug {
    /// The bytes; address and length never change.
    fn bytes(&self) -> &[u8];
    /// The bytes, mutable.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// For downcasting by its provider.
    fn as_any(&self) -> &dyn Any;
    /// Other memory of the same kind and size, with unspecified contents, if available.
    fn allocate_alike(&self) -> Option<Box<dyn HostMemory>> {
        None
    }
}

#[derive(Debug)]
enum BufferStorage {
    /// Words, and the index of the first aligned one.
    Own(Vec<u64>, usize),
    Adopted(Box<dyn HostMemory>),
    /// Never written.
    External(External),
}

#[derive(Debug)]
struct BufferBlock {
    storage: BufferStorage,
    /// The buffer's pool, and the bytes counted there.
    pool: Option<(Arc<Pool>, usize)>,
}

impl Drop for BufferBlock {
    fn drop(&mut self) {
        let Some((pool, counted)) = self.pool.take() else { return };
        match &mut self.storage {
            BufferStorage::Own(words, _) => pool.recycle(std::mem::take(words), counted),
            BufferStorage::Adopted(_) | BufferStorage::External(_) => pool.uncount(counted),
        }
    }
}

/// A block of host memory, aligned to [`ALIGN`] bytes, or to its elements if it is external. Views determine the type
/// of its elements.
///
/// A clone shares the block; writing to a shared or external block copies it first.
#[derive(Clone, Debug)]
pub struct HostBuffer {
    block: Arc<BufferBlock>,
    bytes: usize,
}

impl HostBuffer {
    fn over(words: Vec<u64>, bytes: usize, pool: Option<(Arc<Pool>, usize)>) -> HostBuffer {
        let offset = words.as_ptr().align_offset(ALIGN);
        HostBuffer { block: Arc::new(BufferBlock { storage: BufferStorage::Own(words, offset), pool }), bytes }
    }

    /// A zeroed buffer outside any pool.
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

    /// Returns `true` if the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// A buffer of external memory, read in place. Memory for writes comes from `pool`.
    pub fn external(memory: External, pool: &Arc<Pool>) -> HostBuffer {
        let bytes = memory.bytes().len();
        HostBuffer {
            block: Arc::new(BufferBlock {
                storage: BufferStorage::External(memory),
                pool: Some((Arc::clone(pool), 0)),
            }),
            bytes,
        }
    }

    /// Returns `true` if the block has other owners.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.block) > 1 || matches!(self.block.storage, BufferStorage::External(_))
    }

    /// Transfers the memory to the program: it no longer counts against the bound of its pool. Does nothing and returns
    /// `false` if the memory is shared.
    pub fn hand_over(&mut self) -> bool {
        if self.is_shared() {
            return false;
        }
        let Some(block) = Arc::get_mut(&mut self.block) else { return false };
        if let Some((pool, counted)) = &mut block.pool {
            pool.uncount(std::mem::take(counted));
        }
        true
    }

    /// Bytes counted against the bound of its pool.
    pub fn counted(&self) -> usize {
        self.block.pool.as_ref().map_or(0, |(_, counted)| *counted)
    }

    /// The foreign memory under the buffer, if any; see [`Pool::try_adopt`].
    pub fn adopted(&self) -> Option<&dyn HostMemory> {
        match &self.block.storage {
            BufferStorage::Adopted(memory) => Some(&**memory),
            BufferStorage::Own(..) | BufferStorage::External(_) => None,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.block.storage {
            BufferStorage::Own(words, offset) => &bytemuck::cast_slice(&words[*offset..])[..self.bytes],
            BufferStorage::Adopted(memory) => &memory.bytes()[..self.bytes],
            BufferStorage::External(memory) => memory.bytes(),
        }
    }

    /// The bytes, mutable; a shared block is copied first.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.is_shared() {
            let mut copy = self.allocate_alike();
            copy.bytes_mut().copy_from_slice(self.bytes());
            *self = copy;
        }
        let block = Arc::get_mut(&mut self.block).expect("just made unique");
        match &mut block.storage {
            BufferStorage::External(_) => unreachable!("counts as shared"),
            BufferStorage::Own(words, offset) => &mut bytemuck::cast_slice_mut(&mut words[*offset..])[..self.bytes],
            BufferStorage::Adopted(memory) => &mut memory.bytes_mut()[..self.bytes],
        }
    }

    /// The bytes, for a caller that overwrites all of them. A shared block is replaced by another with unspecified
    /// contents.
    pub fn bytes_to_overwrite(&mut self) -> &mut [u8] {
        if self.is_shared() {
            *self = self.allocate_alike();
        }
        self.bytes_mut()
    }

    /// A buffer of the same size, of the same kind of memory if available.
    fn allocate_alike(&self) -> HostBuffer {
        let alike = self.adopted().and_then(HostMemory::allocate_alike);
        match (alike.filter(|memory| memory.bytes().len() >= self.bytes), &self.block.pool) {
            (Some(memory), pool) => {
                let pool = pool.as_ref().map(|(pool, _)| (Arc::clone(pool), 0));
                HostBuffer {
                    block: Arc::new(BufferBlock { storage: BufferStorage::Adopted(memory), pool }),
                    bytes: self.bytes,
                }
            }
            // The bound must not make this fail.
            (None, Some((pool, _))) => {
                pool.try_allocate(self.bytes).unwrap_or_else(|_| pool.allocate_unbounded(self.bytes))
            }
            (None, None) => HostBuffer::zeroed(self.bytes),
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
    fn what_is_somebody_elses_is_read_in_place_and_copied_before_it_is_written() {
        let (values, pool) = (Arc::new(vec![1u16, 2, 3]), Pool::bounded(1 << 20, 1 << 20));
        struct Shown(Arc<Vec<u16>>);
        impl AsRef<[u16]> for Shown {
            fn as_ref(&self) -> &[u16] {
                &self.0
            }
        }
        let mut b = HostBuffer::external(External::of(Shown(Arc::clone(&values))), &pool);
        assert_eq!(b.bytes().as_ptr(), values.as_ptr().cast(), "in place");
        assert!(b.is_shared() && b.adopted().is_none() && !b.hand_over());
        let other = b.clone();
        b.as_mut_slice::<u16>()[1] = 9;
        assert_eq!((b.as_slice::<u16>(), &values[..]), (&[1, 9, 3][..], &[1, 2, 3][..]));
        assert_eq!(Arc::strong_count(&values), 2, "kept");
        drop(other);
        assert_eq!(Arc::strong_count(&values), 1, "let go of");
    }

    #[test]
    fn what_is_handed_over_counts_no_longer() {
        let pool = Pool::bounded(1 << 20, 10_000);
        let mut result = pool.try_allocate(6000).unwrap();
        let share = result.clone();
        assert!(!result.hand_over() && pool.try_allocate(6000).is_err());
        drop(share);
        assert!(result.hand_over());
        assert!(pool.try_allocate(9000).is_ok());
        drop(result);
        assert!(pool.try_allocate(9000).is_ok(), "nor when it goes away");
    }

    #[test]
    fn writing_to_a_shared_buffer_leaves_the_other_alone() {
        let a = HostBuffer::from_slice(&[1u8, 2, 3]);
        let mut b = a.clone();
        b.as_mut_slice::<u8>()[0] = 9;
        assert_eq!((a.as_slice::<u8>()[0], b.as_slice::<u8>()[0]), (1, 9));
    }
}
