//! Output memory that is written sequentially: spare capacity of a vector, or a program's result buffer.

use std::any::TypeId;
use std::collections::TryReserveError;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::buffer::{HostBuffer, HostMemory};
use super::pages::prefer_large;
use super::workers::{SHARE, Workers};
use horus_base::dtype::Pixel;
use horus_base::error::{DeviceError, MemoryBound};

/// The smallest page size of any system: writing one byte of each page faults in the whole block.
const PAGE: usize = 4 << 10;
/// Bytes that one thread faults in at a time: a large page. Smaller blocks are not worth a second thread.
const LARGE: usize = 2 << 20;

/// Bytes written in order; they may be uninitialised before.
#[derive(Debug)]
pub struct SequentialOutput<'a> {
    at: *mut u8,
    len: usize,
    written: usize,
    /// Type of the foreign memory that contains the bytes, if any.
    kind: Option<TypeId>,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: stands for a `&mut [u8]` or a `&mut [MaybeUninit<u8>]`; both are `Send`.
unsafe impl Send for SequentialOutput<'_> {}
// SAFETY: a shared reference gives the length, and the address only to code that is the only writer.
unsafe impl Sync for SequentialOutput<'_> {}

impl<'a> SequentialOutput<'a> {
    /// Output over initialised bytes.
    pub fn over(bytes: &'a mut [u8]) -> SequentialOutput<'a> {
        SequentialOutput { at: bytes.as_mut_ptr(), len: bytes.len(), written: 0, kind: None, memory: PhantomData }
    }

    /// Output over a buffer, which is made exclusive: a shared buffer is replaced.
    pub fn in_buffer(buffer: &'a mut HostBuffer) -> SequentialOutput<'a> {
        buffer.bytes_to_overwrite();
        let kind = buffer.adopted().map(|memory| memory.as_any().type_id());
        SequentialOutput { kind, ..SequentialOutput::over(buffer.bytes_mut()) }
    }

    /// Returns `true` if the bytes are in foreign memory of type `M`, which its owner provided as a buffer.
    pub fn lies_in<M: HostMemory + 'static>(&self) -> bool {
        self.kind == Some(TypeId::of::<M>())
    }

    /// Output over pixels that may be uninitialised.
    fn of<T: Pixel>(room: &'a mut [MaybeUninit<T>]) -> SequentialOutput<'a> {
        SequentialOutput {
            at: room.as_mut_ptr().cast(),
            len: size_of_val(room),
            written: 0,
            kind: None,
            memory: PhantomData,
        }
    }

    /// Bytes still to be written.
    pub fn remaining(&self) -> usize {
        self.len - self.written
    }

    /// The next `bytes` bytes, to be written separately. They count as written after [`SequentialOutput::advance`].
    ///
    /// # Panics
    /// If fewer bytes are left.
    pub fn part(&mut self, bytes: usize) -> SequentialOutput<'_> {
        assert!(bytes <= self.remaining(), "{bytes} bytes where {} are left", self.remaining());
        SequentialOutput { at: self.as_mut_ptr(), len: bytes, written: 0, kind: self.kind, memory: PhantomData }
    }

    /// Writes the next bytes in consecutive parts of these lengths. `write` receives all parts, possibly for several
    /// threads, and fills each.
    ///
    /// # Errors
    /// Errors of `write`; [`DeviceError::Internal`] if a part is not full.
    ///
    /// # Panics
    /// If fewer bytes are left.
    pub fn in_parts(
        &mut self,
        lengths: &[usize],
        write: impl FnOnce(&mut [SequentialOutput<'_>]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let total: usize = lengths.iter().sum();
        assert!(total <= self.remaining(), "{total} bytes where {} are left", self.remaining());
        let (mut at, kind) = (self.as_mut_ptr(), self.kind);
        let part = |len: &usize| {
            let part = SequentialOutput { at, len: *len, written: 0, kind, memory: PhantomData };
            at = at.wrapping_add(*len);
            part
        };
        let mut parts: Vec<SequentialOutput<'_>> = lengths.iter().map(part).collect();
        let places: Vec<*mut u8> = parts.iter().map(|p| p.at).collect();
        write(&mut parts)?;
        // No part may have been replaced by another.
        if parts.iter().zip(places).any(|(part, place)| part.remaining() > 0 || part.at != place) {
            return Err(DeviceError::Internal("a part of what is to be written is missing".into()));
        }
        self.written += total;
        Ok(())
    }

    /// Address of the next byte, for code known to be the only writer.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.at.wrapping_add(self.written)
    }

    /// Address of the next byte. Up to [`SequentialOutput::remaining`] bytes may be written there; none may be read.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.at.wrapping_add(self.written)
    }

    /// Marks the next `bytes` bytes as written.
    ///
    /// # Safety
    /// They have been written at [`SequentialOutput::as_mut_ptr`], and at least as many were left.
    pub unsafe fn advance(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.remaining());
        self.written += bytes;
    }

    /// Writes the next bytes, by all workers.
    ///
    /// # Panics
    /// If fewer bytes are left.
    pub fn append(&mut self, workers: &Workers, bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "{} bytes where {} are left", bytes.len(), self.remaining());
        let to = self.ahead(bytes.len());
        let copy = |(to, from): (&mut [MaybeUninit<u8>], &[u8])| {
            // SAFETY: any byte may be stored in possibly uninitialised memory; both parts have the
            // same length and do not overlap: one is borrowed mutably.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), from.len()) };
        };
        if workers.threads() > 1 && bytes.len() >= 2 * SHARE {
            let share = (bytes.len() / workers.threads()).max(SHARE);
            workers.all(to.chunks_mut(share).zip(bytes.chunks(share)).collect(), copy);
        } else {
            copy((to, bytes));
        }
        self.written += bytes.len();
    }

    /// Faults in the remaining memory with all workers: for fresh memory, while its contents are computed. May
    /// overwrite previous contents.
    pub fn fault(&mut self, workers: &Workers) {
        let left = self.remaining();
        if left < 2 * LARGE || workers.threads() == 1 {
            return;
        }
        let touch = |part: &mut [MaybeUninit<u8>]| {
            for byte in part.iter_mut().step_by(PAGE) {
                // SAFETY: a valid place to write to. Volatile, because the compiler would remove an ordinary store.
                unsafe { byte.as_mut_ptr().write_volatile(0) };
            }
        };
        let room = self.ahead(left);
        workers.all(room.chunks_mut(LARGE).collect(), touch);
    }

    /// The next `bytes` bytes.
    fn ahead(&mut self, bytes: usize) -> &mut [MaybeUninit<u8>] {
        debug_assert!(bytes <= self.remaining());
        // SAFETY: inside the memory of this output, which is mutably borrowed as long as `self`.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().cast(), bytes) }
    }
}

/// A vector whose pixels are still uninitialised.
#[derive(Debug)]
pub struct Unwritten<T> {
    values: Vec<T>,
    len: usize,
}

impl<T: Pixel> Unwritten<T> {
    /// Capacity for `len` pixels, in large pages where available.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn new(len: usize) -> Result<Unwritten<T>, DeviceError> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut values: Vec<T> = Vec::new();
        let lacking = |_: TryReserveError| DeviceError::OutOfMemory { bytes, used: 0, bound: MemoryBound::Machine };
        values.try_reserve_exact(len).map_err(lacking)?;
        prefer_large(values.as_ptr().cast(), bytes);
        Ok(Unwritten { values, len })
    }

    /// Faults in the memory with all workers.
    pub fn fault(&mut self, workers: &Workers) {
        SequentialOutput::of(&mut self.values.spare_capacity_mut()[..self.len]).fault(workers);
    }

    /// Fills the vector with `write` and returns it.
    ///
    /// # Errors
    /// Errors of `write`; [`DeviceError::Internal`] if it has not written all bytes.
    pub fn written(
        mut self,
        write: impl FnOnce(&mut SequentialOutput<'_>) -> Result<(), DeviceError>,
    ) -> Result<Vec<T>, DeviceError> {
        let mut spare = SequentialOutput::of(&mut self.values.spare_capacity_mut()[..self.len]);
        write(&mut spare)?;
        if spare.remaining() > 0 {
            return Err(DeviceError::Internal(format!("{} bytes of pixels are missing", spare.remaining())));
        }
        // SAFETY: all bytes have been written, and any bit pattern is a valid number.
        unsafe { self.values.set_len(self.len) };
        Ok(self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_threads_writes_the_same_in_any_parts() {
        let from: Vec<u16> = (0..3_000_001u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 16) as u16).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&from);
        for threads in [1, 2, 5] {
            let workers = Workers::new(Some(threads)).unwrap();
            for part in [bytes.len(), 1_000_001, 4 << 20] {
                let mut room = Unwritten::<u16>::new(from.len()).unwrap();
                room.fault(&workers);
                let written = room.written(|spare| {
                    for part in bytes.chunks(part) {
                        spare.append(&workers, part);
                    }
                    spare.fault(&workers);
                    Ok(())
                });
                assert!(written.unwrap() == from, "{threads} threads, {part} bytes at a time");
                let mut kept = vec![7; bytes.len()];
                let mut spare = SequentialOutput::over(&mut kept);
                bytes.chunks(part).for_each(|part| spare.append(&workers, part));
                assert_eq!(spare.remaining(), 0);
                assert!(kept == bytes);
            }
        }
    }

    #[test]
    fn what_is_written_already_stays_when_faults_are_met() {
        let workers = Workers::new(Some(3)).unwrap();
        let mut bytes = vec![0; 7 << 20];
        let mut spare = SequentialOutput::over(&mut bytes);
        spare.append(&workers, &vec![9; 1 << 20]);
        spare.fault(&workers);
        assert_eq!(spare.remaining(), 6 << 20);
        assert!(bytes[..1 << 20].iter().all(|b| *b == 9));
    }

    #[test]
    fn a_vector_that_is_not_written_whole_is_an_error() {
        let workers = Workers::alone();
        let half = |spare: &mut SequentialOutput<'_>| {
            spare.append(&workers, &[1; 6]);
            Ok(())
        };
        let error = Unwritten::<i32>::new(3).map(|room| room.written(half)).unwrap().unwrap_err();
        assert!(error.to_string().contains("6 bytes of pixels are missing"), "{error}");
        assert!(Unwritten::<u8>::new(usize::MAX).is_err());
        assert!(Unwritten::<f64>::new(0).unwrap().written(|_| Ok(())).unwrap().is_empty());
    }

    #[test]
    #[should_panic(expected = "5 bytes where 4 are left")]
    fn more_than_there_is_room_for_is_refused() {
        SequentialOutput::over(&mut [0; 4]).append(&Workers::alone(), &[1; 5]);
    }
}
