//! Copies between pageable host memory and the device, through pinned buffers: while the GPU transfers one chunk, host
//! threads copy the next. One thread does not reach the speed of the bus.
//!
//! A buffer is touched again only when its event has passed, and the event is recorded behind every copy, also one that
//! the driver refused. Where it cannot be recorded nobody knows when the GPU is done: the buffer is left alone for good.
//! Where nothing can be pinned at all the driver copies by itself, which is slow.

use std::collections::VecDeque;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdeviceptr, CUstream};
use horus_core::error::DeviceError;
use horus_core::host::buffer::HostMemory as _;
use horus_core::host::spare::Spare;
use horus_core::host::workers::Workers;

use crate::driver::{Event, Stream, check};
use crate::memory::Core;
use crate::pinned::{Blocks, Loan, Pinned};

/// Buffers in flight in one direction.
const BUFFERS: usize = 4;
/// Bytes of a buffer: enough for the full speed of the bus, and pinned in a moment.
pub(crate) const CHUNK: usize = 4 << 20;
/// Up to so many bytes have a buffer of their own on their way to the host.
pub(crate) const SMALL: usize = 64 << 10;
/// Where bytes may begin in a buffer.
const ALIGN: usize = 256;

#[derive(Debug)]
struct Buffer {
    memory: Loan<Pinned>,
    /// Passed when the GPU is done with the buffer.
    free: Event,
    /// Bytes from the start that may be under way, all in one stream: an event tells of one.
    filled: usize,
    stream: CUstream,
}

// SAFETY: the stream is only told from others.
unsafe impl Send for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.free.wait().is_err() {
            self.memory.abandon();
        }
    }
}

/// Pinned memory of one device.
#[derive(Clone, Debug)]
pub(crate) struct HostBytes {
    pub(crate) core: Arc<Core>,
    pub(crate) blocks: Arc<Blocks<Pinned>>,
}

impl HostBytes {
    /// A block of at least `bytes` bytes, if there is one; see [`Blocks::take`].
    pub(crate) fn take(&self, bytes: usize) -> Option<Loan<Pinned>> {
        self.blocks.take(bytes, |size| Pinned::new(&self.core, size))
    }

    fn buffer(&self, bytes: usize) -> Result<Option<Buffer>, DeviceError> {
        let Some(memory) = self.take(bytes) else { return Ok(None) };
        Ok(Some(Buffer { memory, free: Event::new(false)?, filled: 0, stream: std::ptr::null_mut() }))
    }
}

/// The buffers of copies to the device.
#[derive(Debug)]
pub(crate) struct Uploads {
    source: HostBytes,
    /// In the order in which they were filled, that at `at` last.
    buffers: Vec<Buffer>,
    at: usize,
}

impl Uploads {
    pub(crate) fn new(source: HostBytes) -> Uploads {
        Uploads { source, buffers: Vec::new(), at: 0 }
    }

    /// Room for `bytes` bytes that the GPU does not read: a buffer, and where in it. None if nothing can be pinned.
    fn room(&mut self, bytes: usize, stream: &Stream) -> Result<Option<(usize, usize)>, DeviceError> {
        if let Some(buffer) = self.buffers.get(self.at) {
            let at = buffer.filled.next_multiple_of(ALIGN);
            if at + bytes <= CHUNK && buffer.stream == stream.0 {
                return Ok(Some((self.at, at)));
            }
        }
        let next = if self.buffers.is_empty() { 0 } else { (self.at + 1) % self.buffers.len() };
        let idle = match self.buffers.get(next) {
            Some(buffer) => buffer.free.passed()?,
            None => false,
        };
        if !idle
            && self.buffers.len() < BUFFERS
            && let Some(buffer) = self.source.buffer(CHUNK)?
        {
            // After the one that is full, before the one that was filled first.
            self.at = (self.at + 1).min(self.buffers.len());
            self.buffers.insert(self.at, buffer);
            return Ok(Some((self.at, 0)));
        }
        let Some(buffer) = self.buffers.get_mut(next) else { return Ok(None) };
        buffer.free.wait()?;
        buffer.filled = 0;
        self.at = next;
        Ok(Some((next, 0)))
    }

    /// Copies `source` to the device; returns when `source` may change, the last chunks still on their way.
    ///
    /// # Safety
    /// `target` has room for as many bytes until the stream is past the copy, and nothing else touches them meanwhile.
    pub(crate) unsafe fn upload(
        &mut self,
        workers: &Workers,
        stream: &Stream,
        source: &[u8],
        target: CUdeviceptr,
    ) -> Result<(), DeviceError> {
        let what = || format!("uploading {} bytes", source.len());
        for (k, chunk) in source.chunks(CHUNK).enumerate() {
            let to = target + (k * CHUNK) as u64;
            let Some((i, at)) = self.room(chunk.len(), stream)? else {
                // SAFETY: pageable memory, which the driver has read when it returns; the rest is the caller's promise.
                let code = unsafe { sys::cuMemcpyHtoDAsync_v2(to, chunk.as_ptr().cast(), chunk.len(), stream.0) };
                check(code, what)?;
                continue;
            };
            let buffer = &mut self.buffers[i];
            let staged = &mut buffer.memory.bytes_mut()[at..at + chunk.len()];
            workers.copy(chunk, staged);
            (buffer.filled, buffer.stream) = (at + chunk.len(), stream.0);
            // SAFETY: these bytes of the buffer are not touched before its event has passed; the caller's promise.
            let code = unsafe { sys::cuMemcpyHtoDAsync_v2(to, staged.as_ptr().cast(), chunk.len(), stream.0) };
            if let Err(e) = buffer.free.record(stream) {
                self.buffers.remove(i).memory.abandon();
                self.at = 0;
                return Err(e);
            }
            check(code, what)?;
        }
        Ok(())
    }
}

/// The buffers of copies to the host.
#[derive(Debug)]
pub(crate) struct Downloads {
    source: HostBytes,
    /// One of [`SMALL`] bytes.
    small: Vec<Buffer>,
    buffers: Vec<Buffer>,
}

impl Downloads {
    pub(crate) fn new(source: HostBytes) -> Downloads {
        Downloads { source, small: Vec::new(), buffers: Vec::new() }
    }

    /// Copies from the device as many bytes as `target` has room for; returns when they are there.
    ///
    /// # Safety
    /// `source` holds as many bytes until this returns, and what writes them is in the stream, or done.
    pub(crate) unsafe fn download(
        &mut self,
        workers: &Workers,
        stream: &Stream,
        source: CUdeviceptr,
        target: &mut Spare<'_>,
    ) -> Result<(), DeviceError> {
        let total = target.left();
        let what = || format!("downloading {total} bytes");
        let (buffers, size, most) =
            if total <= SMALL { (&mut self.small, SMALL, 1) } else { (&mut self.buffers, CHUNK, BUFFERS) };
        let useful = total.div_ceil(size).min(most);
        while buffers.len() < useful
            && let Some(buffer) = self.source.buffer(size)?
        {
            buffers.push(buffer);
        }
        let there = buffers.len().min(useful);
        if there == 0 && total > 0 {
            // SAFETY: pageable memory, which the driver has written when the stream is done; the caller's promise.
            let code = unsafe { sys::cuMemcpyDtoHAsync_v2(target.as_mut_ptr().cast(), source, total, stream.0) };
            stream.synchronize()?;
            check(code, what)?;
            // SAFETY: there is room for so many, and the stream is past the copy.
            unsafe { target.wrote(total) };
            return Ok(());
        }
        let mut land = |buffers: &[Buffer], (i, bytes): (usize, usize)| {
            buffers[i].free.wait_for(what)?;
            target.append(workers, &buffers[i].memory.bytes()[..bytes]);
            Ok::<(), DeviceError>(())
        };
        let mut flying: VecDeque<(usize, usize)> = VecDeque::new();
        for (k, at) in (0..total).step_by(size).enumerate() {
            if flying.len() == there
                && let Some(oldest) = flying.pop_front()
            {
                land(buffers, oldest)?;
            }
            let (i, bytes) = (k % there, size.min(total - at));
            let buffer = &mut buffers[i];
            // After a failure a copy may still be under way.
            buffer.free.wait()?;
            let from = source + at as u64;
            // SAFETY: the buffer is not read before its event has passed; the caller's promise.
            let code = unsafe { sys::cuMemcpyDtoHAsync_v2(buffer.memory.address(), from, bytes, stream.0) };
            if let Err(e) = buffer.free.record(stream) {
                buffers.remove(i).memory.abandon();
                return Err(e);
            }
            check(code, what)?;
            flying.push_back((i, bytes));
        }
        flying.into_iter().try_for_each(|arrived| land(buffers, arrived))
    }
}
