//! Copies between pageable host memory and the device through pinned buffers: the GPU transfers some chunks while host
//! threads copy the next, because one thread does not reach the speed of the bus.
//!
//! A buffer is reused only after its event has passed. If the event cannot be recorded, the buffer is leaked. If
//! nothing can be pinned, the driver copies, which is slow. Design and measurements: `docs/design/cuda.md`.

mod downloads;

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdeviceptr, CUstream};
use horus_core::error::DeviceError;
use horus_core::host::buffer::HostMemory as _;
use horus_core::host::sequential_output::SequentialOutput;
use horus_core::host::stores::Stores;
use horus_core::host::workers::Workers;

use crate::driver::{ContiguousHostCopy, CudaEvent, CudaStream, StridedHostCopy, check, grouped};
use crate::memory::Core;
use crate::pinned::{Pinned, PinnedBlock, PinnedBlocks};

pub(crate) use downloads::DownloadBuffers;

/// Most buffers in flight in one direction: some are filled while the GPU transfers others.
const BUFFERS: usize = 6;
/// Buffers that are pinned in advance; with fewer, the GPU waits for the host. Pinning another one takes longer than
/// ten copies of its size, so it waits until [`MUCH`] has been copied.
pub(crate) const FEWEST: usize = 2;
/// Copied bytes after which many more are likely to follow.
const MUCH: usize = 256 << 20;
/// Bytes of a buffer: enough for the full speed of the bus, and quickly pinned.
pub(crate) const CHUNK: usize = 4 << 20;
/// Downloads of up to this many bytes have small buffers of their own.
pub(crate) const SMALL: usize = 64 << 10;
/// Alignment of data in a buffer.
const ALIGN: usize = 256;

#[derive(Debug)]
struct ChunkBuffer {
    memory: PinnedBlock<Pinned>,
    /// Passes when the GPU is done with the buffer.
    free: CudaEvent,
    /// Bytes from the start that may be under way, all in one stream, because an event covers one stream.
    filled: usize,
    stream: CUstream,
}

// SAFETY: the stream is only compared with others.
unsafe impl Send for ChunkBuffer {}
// SAFETY: as above; shared memory is only read, and events may be used from any thread.
unsafe impl Sync for ChunkBuffer {}

impl Drop for ChunkBuffer {
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
    pub(crate) blocks: Arc<PinnedBlocks<Pinned>>,
}

impl HostBytes {
    /// A block of at least `bytes` bytes, if there is one; see [`PinnedBlocks::take`].
    pub(crate) fn take(&self, bytes: usize) -> Option<PinnedBlock<Pinned>> {
        self.blocks.take(bytes, |size| Pinned::new(&self.core, size))
    }

    /// Makes free blocks; see [`PinnedBlocks::stock`].
    pub(crate) fn stock(&self, bytes: usize, count: usize) {
        self.blocks.stock(bytes, count, |size| Pinned::new(&self.core, size));
    }

    /// A buffer for a caller that has `some` and has copied `moved` bytes: a free one, or a newly pinned one if it is
    /// necessary or worth its cost.
    fn buffer(&self, bytes: usize, some: usize, moved: usize) -> Result<Option<ChunkBuffer>, DeviceError> {
        let pays = some < FEWEST || moved >= MUCH;
        let Some(memory) = (if pays { self.take(bytes) } else { None }) else { return Ok(None) };
        Ok(Some(ChunkBuffer { memory, free: CudaEvent::new(false)?, filled: 0, stream: std::ptr::null_mut() }))
    }
}

/// Failures of several threads that send chunks.
#[derive(Debug, Default)]
struct CopyFailures {
    any: AtomicBool,
    outcome: Mutex<(Option<DeviceError>, Vec<usize>)>,
}

impl CopyFailures {
    /// Notes the outcome for buffer `k`: `copied` is the result of its copy, `known` the result of recording its event.
    fn note(&self, k: usize, copied: Result<(), DeviceError>, known: Result<(), DeviceError>) {
        if known.is_ok() && copied.is_ok() {
            return;
        }
        self.any.store(true, Ordering::Release);
        let mut failures = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_err() {
            failures.1.push(k);
        }
        if let Some(e) = known.err().or(copied.err()) {
            failures.0.get_or_insert(e);
        }
    }

    /// Returns `true` if any thread failed.
    fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The first error, and the buffers that must be leaked.
    fn into_outcome(self) -> (Result<(), DeviceError>, Vec<usize>) {
        let (error, unknown) = self.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        (error.map_or(Ok(()), Err), unknown)
    }
}

/// The buffers of copies to the device.
#[derive(Debug)]
pub(crate) struct UploadBuffers {
    source: HostBytes,
    /// Ordered by the time of filling.
    buffers: VecDeque<ChunkBuffer>,
    /// Bytes copied so far.
    moved: usize,
}

/// A buffer to be filled from byte `at`.
struct FillingBuffer {
    buffer: ChunkBuffer,
    at: usize,
}

/// A chunk that is sent to its places on the device when it is copied.
struct OutgoingChunk<'a> {
    from: *const c_void,
    to: Vec<StridedHostCopy>,
    /// Parts of the chunk that are not copied yet.
    left: AtomicUsize,
    free: &'a CudaEvent,
}

// SAFETY: the address is for the driver, which may be called from any thread.
unsafe impl Sync for OutgoingChunk<'_> {}

/// The bytes of a copy that are not under way yet; the first run may be a remainder.
struct RemainingCopies {
    run: ContiguousHostCopy,
    runs: std::vec::IntoIter<ContiguousHostCopy>,
    bytes: usize,
}

impl RemainingCopies {
    /// Takes the next runs, `bytes` bytes in all unless fewer are left.
    fn next(&mut self, bytes: usize) -> Vec<ContiguousHostCopy> {
        let (mut taken, mut room) = (Vec::new(), bytes.min(self.bytes));
        self.bytes -= room;
        while room > 0 {
            let (from, to, n) = self.run;
            let now = n.min(room);
            if now > 0 {
                taken.push((from, to, now));
            }
            room -= now;
            self.run = if now == n && room > 0 {
                self.runs.next().unwrap_or((0, 0, 0))
            } else {
                (from + now, to + now, n - now)
            };
        }
        taken
    }
}

impl UploadBuffers {
    pub(crate) fn new(source: HostBytes) -> UploadBuffers {
        UploadBuffers { source, buffers: VecDeque::new(), moved: 0 }
    }

    /// The rest of the buffer that was filled last, if `bytes` bytes fit and it is used in this stream.
    fn rest(&mut self, bytes: usize, stream: &CudaStream) -> Option<FillingBuffer> {
        let last = self.buffers.back()?;
        let at = last.filled.next_multiple_of(ALIGN);
        let fits = at + bytes <= CHUNK && last.stream == stream.0;
        if fits { self.buffers.pop_back().map(|buffer| FillingBuffer { buffer, at }) } else { None }
    }

    /// A buffer that the GPU does not read, for a caller that has `some`. A caller without one waits; `None` if nothing
    /// can be pinned.
    fn next(&mut self, some: usize) -> Result<Option<FillingBuffer>, DeviceError> {
        let idle = match self.buffers.front() {
            Some(oldest) => oldest.free.passed()?,
            None => false,
        };
        let all = self.buffers.len() + some;
        if !idle
            && all < BUFFERS
            && let Some(buffer) = self.source.buffer(CHUNK, all, self.moved)?
        {
            return Ok(Some(FillingBuffer { buffer, at: 0 }));
        }
        if !idle && some > 0 {
            return Ok(None);
        }
        let Some(mut buffer) = self.buffers.pop_front() else { return Ok(None) };
        buffer.free.wait()?;
        buffer.filled = 0;
        Ok(Some(FillingBuffer { buffer, at: 0 }))
    }

    /// Copies runs of `source` to places behind `target`. Returns when `source` may change; the last chunks may still
    /// be under way. Runs share chunks: separate calls for each run would take longer than copying it.
    ///
    /// # Safety
    /// `target` must have room for these places until the stream has passed the copy, and nothing
    /// else may touch them meanwhile.
    pub(crate) unsafe fn upload(
        &mut self,
        workers: &Workers,
        stream: &CudaStream,
        source: &[u8],
        target: CUdeviceptr,
        runs: Vec<ContiguousHostCopy>,
    ) -> Result<(), DeviceError> {
        let bytes = runs.iter().map(|(.., n)| n).sum();
        self.moved = self.moved.saturating_add(bytes);
        let mut left = RemainingCopies { run: (0, 0, 0), runs: runs.into_iter(), bytes };
        while left.bytes > 0 {
            let mut fillings: Vec<FillingBuffer> = self.rest(left.bytes.min(CHUNK), stream).into_iter().collect();
            while fillings.len() < left.bytes.div_ceil(CHUNK) {
                let Some(next) = self.next(fillings.len())? else { break };
                fillings.push(next);
            }
            if fillings.is_empty() {
                for (from, to, n) in left.next(usize::MAX) {
                    let (from, to) = (source[from..from + n].as_ptr().cast(), target + to as u64);
                    // SAFETY: pageable memory, which the driver has read when it returns; the rest is
                    // the caller's promise.
                    let code = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, n, stream.0) };
                    check(code, || format!("uploading {n} bytes"))?;
                }
                return Ok(());
            }
            // SAFETY: the caller's promise.
            unsafe { self.send(workers, stream, source, target, &mut left, fillings) }?;
        }
        Ok(())
    }

    /// Copies the next chunks through buffers, one for each.
    ///
    /// # Safety
    /// As for [`UploadBuffers::upload`].
    unsafe fn send(
        &mut self,
        workers: &Workers,
        stream: &CudaStream,
        source: &[u8],
        target: CUdeviceptr,
        left: &mut RemainingCopies,
        mut fillings: Vec<FillingBuffer>,
    ) -> Result<(), DeviceError> {
        let (mut parts, mut chunk_of, mut sent) = (Vec::new(), Vec::new(), Vec::with_capacity(fillings.len()));
        for (k, FillingBuffer { buffer, at }) in fillings.iter_mut().enumerate() {
            let runs = left.next(CHUNK);
            let bytes: usize = runs.iter().map(|(.., n)| n).sum();
            (buffer.filled, buffer.stream) = (*at + bytes, stream.0);
            let ChunkBuffer { memory, free, .. } = buffer;
            let mut staged = &mut memory.bytes_mut()[*at..*at + bytes];
            let from = staged.as_ptr().cast();
            let (mut places, mut offset) = (Vec::with_capacity(runs.len()), 0);
            for (host, device, n) in runs {
                let (part, rest) = staged.split_at_mut(n);
                parts.push((&source[host..host + n], SequentialOutput::over(part)));
                chunk_of.push(k);
                places.push((offset, device, n));
                (staged, offset) = (rest, offset + n);
            }
            sent.push(OutgoingChunk { from, left: AtomicUsize::new(places.len()), to: grouped(places), free });
        }
        let (core, failures) = (&self.source.core, CopyFailures::default());
        let (sent, chunk_of) = (&sent[..], &chunk_of[..]);
        let send = |part: usize| {
            let k = chunk_of[part];
            let OutgoingChunk { from, to, left, free } = &sent[k];
            if left.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            if let Err(e) = core.context.bind() {
                return failures.note(k, Err(e), Ok(()));
            }
            // SAFETY: these bytes of the buffer are written, and not touched before its event has
            // passed; the caller's promise.
            let copied = to.iter().try_for_each(|runs| unsafe { runs.upload(*from, target, stream.0) });
            failures.note(k, copied, free.record(stream));
        };
        workers.copy_in_turn(parts, Stores::Cached, send);
        let (done, unknown) = failures.into_outcome();
        for (k, FillingBuffer { mut buffer, .. }) in fillings.into_iter().enumerate() {
            if unknown.contains(&k) {
                buffer.memory.abandon();
            } else {
                self.buffers.push_back(buffer);
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_all_runs_in_order() {
        let all: [Vec<ContiguousHostCopy>; 4] =
            [Vec::new(), vec![(7, 3, 10)], vec![(0, 0, 0), (5, 100, 4), (9, 200, 0), (9, 300, 9)], vec![(0, 1, 6); 5]];
        for runs in all {
            let bytes: usize = runs.iter().map(|(.., n)| n).sum();
            let want: Vec<ContiguousHostCopy> =
                runs.iter().flat_map(|(a, b, n)| (0..*n).map(move |i| (a + i, b + i, 1))).collect();
            for chunk in 1..=bytes + 1 {
                let mut left = RemainingCopies { run: (0, 0, 0), runs: runs.clone().into_iter(), bytes };
                let mut got = Vec::new();
                while left.bytes > 0 {
                    let before = got.len();
                    got.extend(
                        left.next(chunk).into_iter().flat_map(|(a, b, n)| (0..n).map(move |i| (a + i, b + i, 1))),
                    );
                    assert_eq!(got.len() - before, chunk.min(bytes - before));
                }
                assert!(got == want, "{runs:?} in chunks of {chunk}");
            }
        }
    }
}
