//! Copies to the host that are made when their pixels are read.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUdeviceptr;
use horus_core::device::{self, DeviceQueue, PendingDownload, WorkLabel};
use horus_core::error::DeviceError;
use horus_core::host::buffer::{HostBuffer, Pool};
use horus_core::host::sequential_output::SequentialOutput;
use horus_core::host::workers::Workers;

use super::{GpuTransfers, pinned, stream};
use crate::driver::{CudaEvent, CudaStream, grouped};
use crate::memory::{DeferredDownload, GpuBlock};
use crate::pinned::{Pinned, PinnedBlock};

/// Time for which a thread that waits for kernels polls before it sleeps.
const AWAKE: Duration = Duration::from_millis(1);

/// A copy that is made on demand.
#[derive(Debug)]
struct OnDemandDownload {
    state: Mutex<OnDemandDownloadState>,
    from: CUdeviceptr,
    bytes: usize,
    /// All bytes, in order.
    pieces: Vec<ReadyBytes>,
    /// The label under which it was requested.
    label: Option<WorkLabel>,
    transfers: Arc<GpuTransfers>,
}

/// Bytes that become ready at the same time.
#[derive(Clone, Debug)]
pub(super) struct ReadyBytes {
    bytes: Range<usize>,
    /// Passes when they are ready on the device.
    ready: Arc<CudaEvent>,
    /// Order in which pieces become ready: lower turns first. With strips in bands, this is not the order of their
    /// bytes.
    turn: usize,
}

impl ReadyBytes {
    /// The bytes that the launches so far write.
    pub(super) fn now(transfers: &GpuTransfers, bytes: Range<usize>) -> Result<ReadyBytes, DeviceError> {
        let ready = CudaEvent::to_sleep_for()?;
        ready.record(&transfers.core.stream)?;
        Ok(ReadyBytes { bytes, ready: Arc::new(ready), turn: 0 })
    }

    /// Other bytes that become ready with these.
    pub(super) fn with(&self, bytes: Range<usize>) -> ReadyBytes {
        ReadyBytes { bytes, ready: Arc::clone(&self.ready), turn: self.turn }
    }

    /// The same piece at another turn.
    pub(super) fn behind(self, turn: usize) -> ReadyBytes {
        ReadyBytes { turn, ..self }
    }

    /// Offset of the first byte.
    pub(super) fn start(&self) -> usize {
        self.bytes.start
    }
}

#[derive(Debug)]
enum OnDemandDownloadState {
    /// The source block, and the default target of its bytes.
    Pending(Arc<GpuBlock>, DownloadTarget),
    Done(Result<HostBuffer, DeviceError>),
    Taken,
}

/// Host memory for a copy.
#[derive(Debug)]
pub(super) enum DownloadTarget {
    Buffer(HostBuffer),
    /// Allocated from this pool on demand.
    Pool(Arc<Pool>),
}

/// A copy of `bytes` bytes at `from`, inside `source`, made of consecutive `pieces`.
pub(super) fn download_on_demand(
    transfers: &Arc<GpuTransfers>,
    source: Arc<GpuBlock>,
    from: CUdeviceptr,
    bytes: usize,
    host: DownloadTarget,
    pieces: Vec<ReadyBytes>,
) -> Result<Box<dyn PendingDownload>, DeviceError> {
    let in_turn = pieces.iter().try_fold(0, |at, p| (p.bytes.start == at).then_some(p.bytes.end));
    if in_turn != Some(bytes) {
        return Err(DeviceError::Argument(format!("the pieces of a download are not its {bytes} bytes in turn")));
    }
    let state = Mutex::new(OnDemandDownloadState::Pending(source, host));
    let label = WorkLabel::current();
    let waiting = Arc::new(OnDemandDownload { state, from, bytes, pieces, label, transfers: Arc::clone(transfers) });
    let deferred: Arc<dyn DeferredDownload> = Arc::clone(&waiting) as _;
    transfers.core.defer(Arc::downgrade(&deferred));
    Ok(Box::new(OnDemandLanding(waiting)))
}

impl GpuTransfers {
    /// An idle stream, until [`GpuTransfers::give_stream`].
    fn idle_stream(&self) -> Result<CudaStream, DeviceError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(CudaStream::new, Ok)
    }

    fn give_stream(&self, stream: CudaStream) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }
}

impl OnDemandDownload {
    fn state(&self) -> MutexGuard<'_, OnDemandDownloadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the copy unless it was made.
    fn copied(&self) -> MutexGuard<'_, OnDemandDownloadState> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, OnDemandDownloadState::Taken) {
            OnDemandDownloadState::Pending(block, room) => {
                let host = match room {
                    DownloadTarget::Buffer(host) => Ok(host),
                    DownloadTarget::Pool(pool) => pool.try_allocate(self.bytes),
                };
                let copied = host.and_then(|mut host| {
                    match pinned(&host) {
                        Some(to) => self.by_gpu(&block, to, Some(&host))?,
                        None => self.in_chunks(&mut SequentialOutput::over(host.bytes_mut()))?,
                    }
                    Ok(host)
                });
                drop(block);
                *state = OnDemandDownloadState::Done(copied);
            }
            other => *state = other,
        }
        state
    }

    fn in_chunks(&self, target: &mut SequentialOutput<'_>) -> Result<(), DeviceError> {
        let transfers = &*self.transfers;
        transfers.core.context.bind()?;
        let down = stream(&transfers.down)?;
        let mut next = 0;
        while let Some(piece) = self.pieces.get(next) {
            // Other copies may use the buffers while the kernels run.
            piece.ready.wait_for(|| format!("downloading {} bytes", self.bytes))?;
            // All pieces that are ready by now are copied together, which keeps the bus and the threads busy.
            let mut end = next + 1;
            while let Some(piece) = self.pieces.get(end)
                && piece.ready.passed()?
            {
                end += 1;
            }
            let bytes = piece.bytes.start..self.pieces[end - 1].bytes.end;
            let from = self.from + bytes.start as u64;
            let all = {
                let mut part = target.part(bytes.len());
                // SAFETY: the caller holds the block, and what wrote to these bytes is done.
                let copy = || unsafe { transfers.downloads().download(&transfers.workers, down, from, &mut part) };
                transfers.core.clock.note_for(self.label, DeviceQueue::Download, down, copy)?;
                part.remaining() == 0
            };
            if !all {
                return Err(twice());
            }
            // SAFETY: the part began there, and is full.
            unsafe { target.advance(bytes.len()) };
            next = end;
        }
        Ok(())
    }

    /// Makes the GPU copy to `to`, the beginning of the pinned buffer `target`, and waits. The stream is used by no
    /// other thread meanwhile: the pieces of several results become ready in turn. Without a `target`, `to` is a place
    /// in a pinned buffer that its owner leaks after an error.
    fn by_gpu(&self, block: &Arc<GpuBlock>, to: *mut c_void, target: Option<&HostBuffer>) -> Result<(), DeviceError> {
        let (transfers, bytes) = (&*self.transfers, self.bytes);
        let what = || format!("downloading {bytes} bytes");
        transfers.core.context.bind()?;
        let (down, done) = (transfers.idle_stream()?, CudaEvent::new(false)?);
        let mut in_turn: Vec<&ReadyBytes> = self.pieces.iter().collect();
        in_turn.sort_by_key(|piece| piece.turn);
        let begun = in_turn.chunk_by(|a, b| Arc::ptr_eq(&a.ready, &b.ready)).try_for_each(|band| {
            down.after(&band[0].ready)?;
            let runs = grouped(band.iter().map(|p| (p.bytes.start, p.bytes.start, p.bytes.len())));
            // SAFETY: the buffer is pinned, has room, and is borrowed mutably by the waiting
            // thread; the caller holds the block, of which these bytes are a part.
            let copies = || runs.iter().try_for_each(|r| unsafe { r.download(self.from, to, down.0) });
            transfers.core.clock.note_for(self.label, DeviceQueue::Download, &down, copies)
        });
        // Also behind a copy that the driver rejected.
        if let Err(e) = done.record(&down).and_then(|()| done.wait_for(what)) {
            // It is unknown when they are free, so they are leaked.
            std::mem::forget((target.cloned(), Arc::clone(block)));
            return Err(e);
        }
        transfers.give_stream(down);
        begun?;
        // Once the copy is done, everything that the program uploaded before it has been read.
        transfers.release_uploaded()
    }
}

impl DeferredDownload for OnDemandDownload {
    fn reads(&self, block: &Arc<GpuBlock>) -> bool {
        matches!(&*self.state(), OnDemandDownloadState::Pending(b, _) if Arc::ptr_eq(b, block))
    }

    fn complete(&self) {
        drop(self.copied());
    }
}

/// The pending result of a copy that is made on demand.
#[derive(Debug)]
struct OnDemandLanding(Arc<OnDemandDownload>);

impl PendingDownload for OnDemandLanding {
    fn allocate_target(&self, room: &mut device::HostAllocator<'_>) -> Result<(), DeviceError> {
        let mut state = self.0.state();
        if let OnDemandDownloadState::Pending(_, place @ DownloadTarget::Pool(_)) = &mut *state {
            let host = room(self.0.bytes)?;
            if host.len() != self.0.bytes {
                let text = format!("{} bytes of memory for a download of {}", host.len(), self.0.bytes);
                return Err(DeviceError::Argument(text));
            }
            *place = DownloadTarget::Buffer(host);
        }
        Ok(())
    }

    fn wait_until_started(&self) -> Result<(), DeviceError> {
        let OnDemandDownload { pieces, bytes, transfers, .. } = &*self.0;
        let Some(first) = pieces.iter().min_by_key(|piece| piece.turn) else { return Ok(()) };
        transfers.core.context.bind()?;
        let start = Instant::now();
        // Short kernels end before a sleeping thread would wake.
        while !first.ready.passed()? {
            if start.elapsed() > AWAKE {
                return first.ready.wait_for(|| format!("downloading {bytes} bytes"));
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn wait(self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        match std::mem::replace(&mut *self.0.copied(), OnDemandDownloadState::Taken) {
            OnDemandDownloadState::Done(result) => result,
            OnDemandDownloadState::Pending(..) | OnDemandDownloadState::Taken => Err(twice()),
        }
    }

    fn append_to(self: Box<Self>, target: &mut SequentialOutput<'_>, workers: &Workers) -> Result<(), DeviceError> {
        let (waiting, bytes) = (&*self.0, self.0.bytes);
        if target.remaining() != bytes {
            target.append(workers, self.wait()?.bytes());
            return Ok(());
        }
        let place = target.as_mut_ptr();
        let locked = bytes > 0 && target.lies_in::<PinnedBlock<Pinned>>();
        // Locked until the bytes have arrived: a write to the block waits for the copy.
        let mut state = waiting.state();
        match std::mem::replace(&mut *state, OnDemandDownloadState::Taken) {
            OnDemandDownloadState::Pending(block, _) if locked => {
                waiting.by_gpu(&block, place.cast(), None)?;
                // SAFETY: there is room for so many, and the GPU has written them.
                unsafe { target.advance(bytes) };
                Ok(())
            }
            OnDemandDownloadState::Pending(block, _) => {
                let copied = waiting.in_chunks(target);
                drop(block);
                copied.and_then(|()| waiting.transfers.release_uploaded())
            }
            OnDemandDownloadState::Done(result) => {
                target.append(workers, result?.bytes());
                Ok(())
            }
            OnDemandDownloadState::Taken => Err(twice()),
        }
    }

    fn copy_into(self: Box<Self>, target: &mut HostBuffer, workers: &Workers) -> Result<(), DeviceError> {
        target.bytes_to_overwrite();
        let (waiting, bytes) = (&*self.0, self.0.bytes);
        let Some(to) = pinned(target).filter(|_| target.len() == bytes) else {
            return self.append_to(&mut SequentialOutput::over(target.bytes_mut()), workers);
        };
        let mut state = waiting.state();
        match std::mem::replace(&mut *state, OnDemandDownloadState::Taken) {
            OnDemandDownloadState::Pending(block, _) => waiting.by_gpu(&block, to, Some(target)),
            OnDemandDownloadState::Done(result) => {
                workers.copy(result?.bytes(), target.bytes_mut());
                Ok(())
            }
            OnDemandDownloadState::Taken => Err(twice()),
        }
    }
}

fn twice() -> DeviceError {
    DeviceError::Internal("a download was finished twice".into())
}
