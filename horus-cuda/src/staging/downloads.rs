//! Copies to the host through pinned buffers: all threads copy chunks out as they arrive.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cudarc::driver::sys::{self, CUdeviceptr};
use horus_core::error::DeviceError;
use horus_core::host::sequential_output::SequentialOutput;
use horus_core::host::stores::Stores;
use horus_core::host::workers::{RawCopy, Workers};

use super::{ALIGN, BUFFERS, CHUNK, ChunkBuffer, CopyFailures, HostBytes, SMALL};
use crate::driver::{CudaStream, check};
use crate::memory::Core;

/// Fewest bytes worth a separate copy to the host.
const LEAST: usize = 512 << 10;
/// Size from which the caches are too small for a download.
const LARGE: usize = 8 << 20;

/// The buffers of copies to the host.
#[derive(Debug)]
pub(crate) struct DownloadBuffers {
    source: HostBytes,
    /// Buffers of [`SMALL`] bytes.
    small: Vec<ChunkBuffer>,
    buffers: Vec<ChunkBuffer>,
    /// Bytes copied so far.
    moved: usize,
}

impl DownloadBuffers {
    pub(crate) fn new(source: HostBytes) -> DownloadBuffers {
        DownloadBuffers { source, small: Vec::new(), buffers: Vec::new(), moved: 0 }
    }

    /// Copies as many bytes from the device as `target` has space for; returns when they have arrived.
    ///
    /// # Safety
    /// `source` must hold as many bytes until this returns, and the work that writes them must be
    /// in the stream, or done.
    pub(crate) unsafe fn download(
        &mut self,
        workers: &Workers,
        stream: &CudaStream,
        source: CUdeviceptr,
        target: &mut SequentialOutput<'_>,
    ) -> Result<(), DeviceError> {
        let total = target.remaining();
        self.moved = self.moved.saturating_add(total);
        let what = || format!("downloading {total} bytes");
        let (buffers, room, most) =
            if total <= SMALL { (&mut self.small, SMALL, 1) } else { (&mut self.buffers, CHUNK, BUFFERS) };
        // Small downloads are also split, so that the first chunks are copied out while others
        // arrive.
        let size = if total <= SMALL { SMALL } else { (total / 4).clamp(LEAST, CHUNK).next_multiple_of(ALIGN) };
        let chunks = total.div_ceil(size);
        while buffers.len() < chunks.min(most)
            && let Some(buffer) = self.source.buffer(room, buffers.len(), self.moved)?
        {
            buffers.push(buffer);
        }
        let there = buffers.len().min(chunks);
        if there == 0 && total > 0 {
            // SAFETY: pageable memory, which the driver has written when the stream is done; the
            // caller's promise.
            let code = unsafe { sys::cuMemcpyDtoHAsync_v2(target.as_mut_ptr().cast(), source, total, stream.0) };
            stream.synchronize()?;
            check(code, what)?;
            // SAFETY: there is room for so many, and the stream is past the copy.
            unsafe { target.advance(total) };
            return Ok(());
        }
        // Copies may still be under way after a failure.
        buffers[..there].iter().try_for_each(|buffer| buffer.free.wait())?;
        let flight = ChunkedDownload {
            core: &self.source.core,
            stream,
            source,
            buffers: &buffers[..there],
            size,
            total,
            ordered: (0..chunks).map(|_| AtomicBool::new(false)).collect(),
            landed: AtomicUsize::new(0),
            asking: Mutex::default(),
            drained: AtomicUsize::new(0),
            failures: CopyFailures::default(),
        };
        flight.all(workers, target);
        let (complete, (done, mut unknown)) = (flight.drained.into_inner() == chunks, flight.failures.into_outcome());
        unknown.sort_unstable();
        unknown.dedup();
        unknown.into_iter().rev().for_each(|i| buffers.remove(i).memory.abandon());
        if done.is_err() {
            // The source may be freed when this returns. A driver that fails here has failed before.
            buffers.iter().for_each(|buffer| drop(buffer.free.wait()));
        }
        done?;
        if !complete {
            return Err(DeviceError::Internal("chunks of a download are missing".into()));
        }
        // SAFETY: there is room for so many, and all chunks have been copied there.
        unsafe { target.advance(total) };
        Ok(())
    }
}

/// A copy to the host under way: chunks pass through the buffers in turn.
struct ChunkedDownload<'a> {
    core: &'a Core,
    stream: &'a CudaStream,
    source: CUdeviceptr,
    buffers: &'a [ChunkBuffer],
    /// Bytes of a chunk, and of all chunks.
    size: usize,
    total: usize,
    /// Chunks whose copy by the GPU is enqueued.
    ordered: Vec<AtomicBool>,
    /// Number of chunks that have arrived.
    landed: AtomicUsize,
    /// Locked by the one thread that polls the driver for all.
    asking: Mutex<()>,
    /// Number of chunks that have been copied out.
    drained: AtomicUsize,
    failures: CopyFailures,
}

impl ChunkedDownload<'_> {
    fn bytes(&self, k: usize) -> usize {
        self.size.min(self.total - k * self.size)
    }

    fn buffer(&self, k: usize) -> &ChunkBuffer {
        &self.buffers[k % self.buffers.len()]
    }

    /// Copies all chunks to `target`; stops after a failure.
    fn all(&self, workers: &Workers, target: &mut SequentialOutput<'_>) {
        let chunks = self.ordered.len();
        (0..self.buffers.len()).for_each(|k| self.order(k));
        if chunks == 0 || self.failures.any() {
            return;
        }
        // Kernels may precede the first chunk: a thread that waits for them sleeps or does other work. The other chunks
        // follow at once.
        let first = self.buffer(0).free.wait_for(|| format!("downloading {} bytes", self.total));
        if let Err(e) = first {
            return self.failures.note(0, Err(e), Ok(()));
        }
        let to = target.as_mut_ptr();
        let chunk = |k: usize| RawCopy {
            from: self.buffer(k).memory.address().cast_const().cast(),
            to: to.wrapping_add(k * self.size),
            bytes: self.bytes(k),
        };
        let parts: Vec<RawCopy> = (0..chunks).map(chunk).collect();
        let stores = if self.total >= LARGE { Stores::Streamed } else { Stores::Cached };
        let drained = |k: usize| {
            self.drained.fetch_add(1, Ordering::Relaxed);
            if k + self.buffers.len() < chunks {
                self.order(k + self.buffers.len());
            }
        };
        // SAFETY: a chunk has arrived once its event has passed, and its buffer is written again
        // only when it is drained; the target is borrowed mutably, has room for all chunks, and
        // they do not overlap there.
        unsafe { workers.copy_arriving(&parts, stores, |k| self.has_landed(k), drained) };
    }

    /// Enqueues the copy of chunk `k` to its buffer, which must be drained.
    fn order(&self, k: usize) {
        let i = k % self.buffers.len();
        if let Err(e) = self.core.context.bind() {
            return self.failures.note(i, Err(e), Ok(()));
        }
        let (buffer, from, bytes) = (self.buffer(k), self.source + (k * self.size) as u64, self.bytes(k));
        // SAFETY: the buffer is not read before its event has passed; the promise of the caller of
        // `download`.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(buffer.memory.address(), from, bytes, self.stream.0) };
        let known = buffer.free.record(self.stream);
        self.failures.note(i, check(code, || format!("downloading {} bytes", self.total)), known);
        self.ordered[k].store(true, Ordering::Release);
    }

    /// Waits for chunk `k`; returns `true` if it arrived. It must be enqueued, or another thread copies the chunk
    /// before it.
    fn has_landed(&self, k: usize) -> bool {
        /// Polls before other threads get this processor.
        const PATIENCE: usize = 1000;
        for look in 1.. {
            let next = self.landed.load(Ordering::Acquire);
            if next > k {
                return true;
            }
            if self.failures.any() {
                return false;
            }
            if self.ordered[next].load(Ordering::Acquire)
                && let Ok(_asking) = self.asking.try_lock()
                && self.landed.load(Ordering::Acquire) == next
            {
                match self.core.context.bind().and_then(|()| self.buffer(next).free.passed()) {
                    Ok(true) => self.landed.store(next + 1, Ordering::Release),
                    Ok(false) => {}
                    Err(e) => self.failures.note(next % self.buffers.len(), Err(e), Ok(())),
                }
            }
            if look % PATIENCE == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        false
    }
}
