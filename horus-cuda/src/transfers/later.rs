//! Copies to the host that are made when they land.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUdeviceptr;
use horus_core::device::{self, Label, Landing, Lane};
use horus_core::error::DeviceError;
use horus_core::host::buffer::{HostBuffer, Pool};
use horus_core::host::spare::Spare;
use horus_core::host::workers::Workers;

use super::{Transfers, pinned, stream};
use crate::driver::{Event, Stream, grouped};
use crate::memory::{Block, Deferred};
use crate::pinned::{Loan, Pinned};

/// Time for which a thread that waits for kernels polls before it sleeps.
const AWAKE: Duration = Duration::from_millis(1);

/// A copy that is made on demand.
#[derive(Debug)]
struct Waiting {
    state: Mutex<State>,
    from: CUdeviceptr,
    bytes: usize,
    /// All bytes, in order.
    pieces: Vec<Piece>,
    /// The label under which it was ordered.
    label: Option<Label>,
    transfers: Arc<Transfers>,
}

/// Bytes that become ready at the same time.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    bytes: Range<usize>,
    /// Passes when they are ready on the device.
    ready: Arc<Event>,
    /// Pieces with lower turns are ready earlier; with strips that meet in bands, that is not the
    /// order of their bytes.
    turn: usize,
}

impl Piece {
    /// The bytes that the launches so far write.
    pub(super) fn now(transfers: &Transfers, bytes: Range<usize>) -> Result<Piece, DeviceError> {
        let ready = Event::to_sleep_for()?;
        ready.record(&transfers.core.stream)?;
        Ok(Piece { bytes, ready: Arc::new(ready), turn: 0 })
    }

    /// Other bytes that become ready with these.
    pub(super) fn with(&self, bytes: Range<usize>) -> Piece {
        Piece { bytes, ready: Arc::clone(&self.ready), turn: self.turn }
    }

    /// The same piece at another turn.
    pub(super) fn behind(self, turn: usize) -> Piece {
        Piece { turn, ..self }
    }

    /// Offset of the first byte.
    pub(super) fn start(&self) -> usize {
        self.bytes.start
    }
}

#[derive(Debug)]
enum State {
    /// The source block, and the default target of its bytes.
    Waits(Arc<Block>, Room),
    Done(Result<HostBuffer, DeviceError>),
    Taken,
}

/// Host memory for a copy.
#[derive(Debug)]
pub(super) enum Room {
    There(HostBuffer),
    /// Allocated from this pool on demand.
    Of(Arc<Pool>),
}

/// A copy of `bytes` bytes at `from`, inside `source`, made of consecutive `pieces`.
pub(super) fn landing(
    transfers: &Arc<Transfers>,
    source: Arc<Block>,
    from: CUdeviceptr,
    bytes: usize,
    host: Room,
    pieces: Vec<Piece>,
) -> Result<Box<dyn Landing>, DeviceError> {
    let in_turn = pieces.iter().try_fold(0, |at, p| (p.bytes.start == at).then_some(p.bytes.end));
    if in_turn != Some(bytes) {
        return Err(DeviceError::Argument(format!("the pieces of a download are not its {bytes} bytes in turn")));
    }
    let state = Mutex::new(State::Waits(source, host));
    let label = Label::current();
    let waiting = Arc::new(Waiting { state, from, bytes, pieces, label, transfers: Arc::clone(transfers) });
    let deferred: Arc<dyn Deferred> = Arc::clone(&waiting) as _;
    transfers.core.defer(Arc::downgrade(&deferred));
    Ok(Box::new(Landed(waiting)))
}

impl Transfers {
    /// An idle stream, until [`Transfers::give_stream`].
    fn idle_stream(&self) -> Result<Stream, DeviceError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(Stream::new, Ok)
    }

    fn give_stream(&self, stream: Stream) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }
}

impl Waiting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the copy unless it was made.
    fn copied(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Waits(block, room) => {
                let host = match room {
                    Room::There(host) => Ok(host),
                    Room::Of(pool) => pool.try_allocate(self.bytes),
                };
                let copied = host.and_then(|mut host| {
                    match pinned(&host) {
                        Some(to) => self.by_gpu(&block, to, Some(&host))?,
                        None => self.in_chunks(&mut Spare::over(host.bytes_mut()))?,
                    }
                    Ok(host)
                });
                drop(block);
                *state = State::Done(copied);
            }
            other => *state = other,
        }
        state
    }

    fn in_chunks(&self, target: &mut Spare<'_>) -> Result<(), DeviceError> {
        let transfers = &*self.transfers;
        transfers.core.context.bind()?;
        let down = stream(&transfers.down)?;
        let mut next = 0;
        while let Some(piece) = self.pieces.get(next) {
            // Other copies may use the buffers while the kernels run.
            piece.ready.wait_for(|| format!("downloading {} bytes", self.bytes))?;
            // All pieces that are ready by now are copied together, which keeps the bus and the
            // threads busy.
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
                transfers.core.clock.note_for(self.label, Lane::Download, down, copy)?;
                part.left() == 0
            };
            if !all {
                return Err(twice());
            }
            // SAFETY: the part began there, and is full.
            unsafe { target.wrote(bytes.len()) };
            next = end;
        }
        Ok(())
    }

    /// Makes the GPU copy to `to`, the beginning of the pinned buffer `target`, and waits, in a
    /// stream that no other thread uses meanwhile: the pieces of several results become ready in
    /// turn. Without a `target`, `to` is a place in a pinned buffer that its owner leaks after an
    /// error.
    fn by_gpu(&self, block: &Arc<Block>, to: *mut c_void, target: Option<&HostBuffer>) -> Result<(), DeviceError> {
        let (transfers, bytes) = (&*self.transfers, self.bytes);
        let what = || format!("downloading {bytes} bytes");
        transfers.core.context.bind()?;
        let (down, done) = (transfers.idle_stream()?, Event::new(false)?);
        let mut in_turn: Vec<&Piece> = self.pieces.iter().collect();
        in_turn.sort_by_key(|piece| piece.turn);
        let begun = in_turn.chunk_by(|a, b| Arc::ptr_eq(&a.ready, &b.ready)).try_for_each(|band| {
            down.after(&band[0].ready)?;
            let runs = grouped(band.iter().map(|p| (p.bytes.start, p.bytes.start, p.bytes.len())));
            // SAFETY: the buffer is pinned, has room, and is borrowed mutably by the waiting
            // thread; the caller holds the block, of which these bytes are a part.
            let copies = || runs.iter().try_for_each(|r| unsafe { r.download(self.from, to, down.0) });
            transfers.core.clock.note_for(self.label, Lane::Download, &down, copies)
        });
        // Also behind a copy that the driver refused.
        if let Err(e) = done.record(&down).and_then(|()| done.wait_for(what)) {
            // It is unknown when they are free, so they are leaked.
            std::mem::forget((target.cloned(), Arc::clone(block)));
            return Err(e);
        }
        transfers.give_stream(down);
        begun?;
        // Once the copy is done, everything that the program gave before it has been read.
        transfers.let_go()
    }
}

impl Deferred for Waiting {
    fn reads(&self, block: &Arc<Block>) -> bool {
        matches!(&*self.state(), State::Waits(b, _) if Arc::ptr_eq(b, block))
    }

    fn bring(&self) {
        drop(self.copied());
    }
}

/// The landing of a copy that is made on demand.
#[derive(Debug)]
struct Landed(Arc<Waiting>);

impl Landing for Landed {
    fn make_room(&self, room: &mut device::Room<'_>) -> Result<(), DeviceError> {
        let mut state = self.0.state();
        if let State::Waits(_, place @ Room::Of(_)) = &mut *state {
            let host = room(self.0.bytes)?;
            if host.len() != self.0.bytes {
                let text = format!("{} bytes of memory for a download of {}", host.len(), self.0.bytes);
                return Err(DeviceError::Argument(text));
            }
            *place = Room::There(host);
        }
        Ok(())
    }

    fn begun(&self) -> Result<(), DeviceError> {
        let Waiting { pieces, bytes, transfers, .. } = &*self.0;
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

    fn land(self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        match std::mem::replace(&mut *self.0.copied(), State::Taken) {
            State::Done(result) => result,
            State::Waits(..) | State::Taken => Err(twice()),
        }
    }

    fn land_on(self: Box<Self>, target: &mut Spare<'_>, workers: &Workers) -> Result<(), DeviceError> {
        let (waiting, bytes) = (&*self.0, self.0.bytes);
        if target.left() != bytes {
            target.append(workers, self.land()?.bytes());
            return Ok(());
        }
        let place = target.as_mut_ptr();
        let locked = bytes > 0 && target.lies_in::<Loan<Pinned>>();
        // Locked until the bytes have arrived: a write to the block waits for the copy.
        let mut state = waiting.state();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Waits(block, _) if locked => {
                waiting.by_gpu(&block, place.cast(), None)?;
                // SAFETY: there is room for so many, and the GPU has written them.
                unsafe { target.wrote(bytes) };
                Ok(())
            }
            State::Waits(block, _) => {
                let copied = waiting.in_chunks(target);
                drop(block);
                copied.and_then(|()| waiting.transfers.let_go())
            }
            State::Done(result) => {
                target.append(workers, result?.bytes());
                Ok(())
            }
            State::Taken => Err(twice()),
        }
    }

    fn land_in(self: Box<Self>, target: &mut HostBuffer, workers: &Workers) -> Result<(), DeviceError> {
        target.overwritten();
        let (waiting, bytes) = (&*self.0, self.0.bytes);
        let Some(to) = pinned(target).filter(|_| target.len() == bytes) else {
            return self.land_on(&mut Spare::over(target.bytes_mut()), workers);
        };
        let mut state = waiting.state();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Waits(block, _) => waiting.by_gpu(&block, to, Some(target)),
            State::Done(result) => {
                workers.copy(result?.bytes(), target.bytes_mut());
                Ok(())
            }
            State::Taken => Err(twice()),
        }
    }
}

fn twice() -> DeviceError {
    DeviceError::Internal("a download was finished twice".into())
}
