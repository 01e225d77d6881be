//! Copies of pixels between the program's memory and the device's memory.
//!
//! Pixels are copied once. The GPU reads and writes page-locked buffers in place; other memory goes through page-locked
//! chunks, band by band, copied by all threads. The design is in `docs/design/copies.md`.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use crate::comm::agree::agree_on;
use crate::device::{Device, DownloadStart, Memory, WorkLabel};
use crate::error::{Call, CallSuffix, DeviceError, Error, MemoryBound, Result};
use crate::execute::Delivered;
use crate::execute::trace::Trace;
use crate::host::buffer::HostBuffer;
use crate::host::sequential_output::SequentialOutput;
use crate::host::workers::Workers;
use crate::ir::graph::NodeId;
use crate::plan::{Mode, ResultDelivery};
use crate::session::state::start::SessionOwner;
use crate::session::{Handle, Session, SessionState};

/// A requested value, computed or being computed, to be copied to its reader's memory.
pub(crate) struct RequestedValue<'a> {
    delivered: Delivered,
    workers: &'a Workers,
    /// `None` if another of the values that are read together records the times.
    trace: Option<&'a mut Trace>,
}

impl RequestedValue<'_> {
    /// Threads that copy the value.
    pub(crate) fn workers(&self) -> &Workers {
        self.workers
    }

    /// Returns `true` if the pixels are in host memory already.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self.delivered, Delivered::OnHost(_))
    }

    /// Returns `true` if the pixels are in page-locked memory, such as a target's.
    fn is_in_page_locked_memory(&self) -> bool {
        matches!(&self.delivered, Delivered::OnHost(host) if host.adopted().is_some())
    }

    /// Waits for the pixels and returns a buffer with them, possibly shared.
    pub(crate) fn shared(mut self) -> Result<HostBuffer, DeviceError> {
        self.computed()?;
        let start = Instant::now();
        let landed = match self.delivered {
            Delivered::OnHost(host) => Ok(host),
            Delivered::InFlight(landing) => landing.wait(),
        };
        self.trace.into_iter().for_each(|trace| trace.brought(start));
        landed
    }

    /// Like `shared`, for a reader who reads the pixels once: allocates the target of the copy in advance.
    pub(crate) fn brought(mut self, session: &Session) -> Result<HostBuffer, DeviceError> {
        if let Delivered::InFlight(landing) = &self.delivered {
            let start = Instant::now();
            landing.allocate_target(&mut |bytes| session.room_for_result(bytes))?;
            self.tell(|trace| trace.waited(start));
        }
        self.shared()
    }

    /// Appends the pixels to `target`, which has the capacity.
    pub(crate) fn append_to(mut self, target: &mut SequentialOutput<'_>) -> Result<(), DeviceError> {
        self.computed()?;
        let start = Instant::now();
        let landed = match self.delivered {
            Delivered::OnHost(host) => {
                target.append(self.workers, host.bytes());
                Ok(())
            }
            Delivered::InFlight(landing) => landing.append_to(target, self.workers),
        };
        self.trace.into_iter().for_each(|trace| trace.brought(start));
        landed
    }

    /// Copies the pixels to `target`, a buffer of their size.
    pub(crate) fn put_into(mut self, target: &mut HostBuffer) -> Result<(), DeviceError> {
        self.computed()?;
        let start = Instant::now();
        let landed = match self.delivered {
            Delivered::OnHost(host) => {
                self.workers.copy(host.bytes(), target.bytes_to_overwrite());
                Ok(())
            }
            Delivered::InFlight(landing) => landing.copy_into(target, self.workers),
        };
        self.trace.into_iter().for_each(|trace| trace.brought(start));
        landed
    }

    /// Waits until there is something to copy, so that the time of kernels is counted separately.
    fn computed(&mut self) -> Result<(), DeviceError> {
        if self.is_here() {
            return Ok(());
        }
        let start = Instant::now();
        let begun = self.begun();
        self.tell(|trace| trace.waited(start));
        begun
    }

    fn begun(&self) -> Result<(), DeviceError> {
        match &self.delivered {
            Delivered::OnHost(_) => Ok(()),
            Delivered::InFlight(landing) => landing.wait_until_started(),
        }
    }

    fn tell(&mut self, f: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &mut self.trace {
            f(trace);
        }
    }
}

/// A session that provided memory before it had chosen its device.
#[derive(Clone)]
pub(crate) struct DeferredSession(Weak<SessionOwner>);

impl DeferredSession {
    /// Returns `true` if the device is known, or never will be: the memory may have to be replaced.
    pub(crate) fn is_over(&self) -> bool {
        self.0.upgrade().is_none_or(|session| session.engine.get().is_some())
    }

    /// Page-locked memory that replaces `buffer`, if the device provides it; with the contents if `kept`.
    pub(crate) fn replaced(&self, buffer: &HostBuffer, kept: bool) -> Option<HostBuffer> {
        let session = Session(self.0.upgrade()?);
        let mut locked = session.page_locked(buffer.len())?;
        if kept {
            session.workers().copy(buffer.bytes(), locked.bytes_mut());
        }
        Some(locked)
    }
}

/// The target of one of several results.
pub(crate) trait ResultTarget: Send {
    /// Moves out the memory, if a device can compute there.
    fn lend(&mut self, session: &Session) -> Option<HostBuffer>;
    /// Takes back memory that fits, if the target has lent its own.
    fn take_back(&mut self, rooms: &mut Vec<HostBuffer>);
    /// Writes the result.
    fn put(&mut self, coming: RequestedValue<'_>) -> Result<(), DeviceError>;
    /// Replaces memory that was lost in a failed evaluation. If it `failed`, the memory may be that of a target of
    /// another type.
    fn repair(&mut self, session: &Session, failed: bool) -> Result<(), DeviceError>;
}

impl Session {
    /// Evaluates a value, whose pixels `reader` copies to this rank's host. With `root` only rank 0 gets them, and the
    /// others get `None`. Pixels are row-major, with the channels of each pixel next to each other. Errors name the
    /// call.
    pub(crate) fn read_back<R>(
        &self,
        value: &Handle,
        root: bool,
        call: Call,
        reader: impl FnOnce(RequestedValue<'_>) -> Result<R, DeviceError>,
    ) -> Result<Option<R>> {
        self.read_back_into(value, root, call, &mut Vec::new(), |coming, _| reader(coming))
    }

    /// Like [`Session::read_back`], but the device may compute into one of `rooms`, which must not be shared. That one
    /// becomes the result; the reader gets the others back.
    pub(crate) fn read_back_into<R>(
        &self,
        value: &Handle,
        root: bool,
        call: Call,
        rooms: &mut Vec<HostBuffer>,
        reader: impl FnOnce(RequestedValue<'_>, &mut Vec<HostBuffer>) -> Result<R, DeviceError>,
    ) -> Result<Option<R>> {
        let want = match (self.ranks(), root) {
            (1, _) => ResultDelivery::Requester,
            (_, true) => ResultDelivery::Root,
            (_, false) => ResultDelivery::Everyone,
        };
        let mut state = self.lock("evaluating")?;
        state.rooms = std::mem::take(rooms);
        let looked = self.look_at(&mut state, &[value], want, DownloadStart::WithTarget);
        *rooms = std::mem::take(&mut state.rooms);
        let mut pending = looked?;
        let delivered = pending.nodes.first().and_then(|n| pending.delivered.remove(n));
        // The pixels that rank 0 requests may also be on other ranks.
        let delivered = delivered.filter(|_| !root || self.rank() == 0);
        let Some(delivered) = delivered else { return Ok(None) };
        let read = reader(RequestedValue { delivered, workers: self.workers(), trace: Some(&mut state.trace) }, rooms);
        self.publish(&state);
        match read {
            Ok(read) => Ok(Some(read)),
            Err(source) => Err(self.unread(&mut state, call, source)),
        }
    }

    /// [`Session::read_back`] for several values, in one evaluation, with a target for each. They are copied
    /// concurrently; if all targets lend their memory, the device may compute there.
    pub(crate) fn read_several<'a>(
        &self,
        results: Vec<(&Handle, Box<dyn ResultTarget + 'a>)>,
        call: Call,
    ) -> Result<()> {
        let (values, mut targets): (Vec<&Handle>, Vec<_>) = results.into_iter().unzip();
        let lent: Vec<Option<HostBuffer>> = targets.iter_mut().map(|target| target.lend(self)).collect();
        let all_lend = lent.iter().all(Option::is_some);
        let mut rooms: Vec<HostBuffer> = lent.into_iter().flatten().collect();
        if !all_lend {
            targets.iter_mut().for_each(|target| target.take_back(&mut rooms));
        }
        let read = self.read_to(&values, &mut targets, &mut rooms, call);
        let repair = |target: &mut Box<dyn ResultTarget + 'a>| {
            target.take_back(&mut rooms);
            target.repair(self, read.is_err())
        };
        let repaired = targets.iter_mut().map(repair).fold(Ok(()), Result::and);
        read.and(repaired.map_err(|source| self.at_host(call, source)))
    }

    /// [`Session::read_several`], with the memory that the targets lent. What is not used is left in `rooms`.
    fn read_to<'a>(
        &self,
        values: &[&Handle],
        targets: &mut [Box<dyn ResultTarget + 'a>],
        rooms: &mut Vec<HostBuffer>,
        call: Call,
    ) -> Result<()> {
        let want = if self.ranks() > 1 { ResultDelivery::Everyone } else { ResultDelivery::Requester };
        let mut state = self.lock("evaluating")?;
        state.rooms = std::mem::take(rooms);
        let looked = self.look_at(&mut state, values, want, DownloadStart::WithTarget);
        *rooms = std::mem::take(&mut state.rooms);
        let mut pending = looked?;
        let workers = self.workers();
        let (mut coming, mut again): (Vec<(RequestedValue<'_>, _)>, Vec<_>) = (Vec::new(), Vec::new());
        for ((node, value), target) in pending.nodes.iter().zip(values).zip(targets) {
            match pending.delivered.remove(node) {
                Some(delivered) => coming.push((RequestedValue { delivered, workers, trace: None }, target)),
                // Two values have become one node.
                None => again.push((value, target)),
            }
        }
        // Rooms that are left belong to the targets of results that are elsewhere.
        for is_room in [false, true] {
            let of_these = coming.iter_mut().filter(|(coming, _)| coming.is_in_page_locked_memory() == is_room);
            of_these.for_each(|(_, target)| target.take_back(rooms));
        }
        let start = Instant::now();
        let begun = coming.first().map_or(Ok(()), |(first, _)| first.begun());
        state.trace.waited(start);
        let start = Instant::now();
        let read = std::thread::scope(|scope| {
            let (mut flying, mut read) = (Vec::new(), begun);
            for (coming, target) in coming {
                if coming.is_here() {
                    read = read.and_then(|()| target.put(coming));
                } else {
                    flying.push(scope.spawn(move || target.put(coming)));
                }
            }
            let died = |_| Err(DeviceError::Internal("a thread that reads a result has panicked".into()));
            flying.into_iter().fold(read, |read, thread| read.and(thread.join().unwrap_or_else(died)))
        });
        state.trace.brought(start);
        self.publish(&state);
        read.map_err(|source| self.unread(&mut state, call, source))?;
        drop(state);
        again.into_iter().try_for_each(|(value, target)| {
            target.take_back(rooms);
            self.read_back(value, false, call, |coming| target.put(coming)).map(drop)
        })
    }

    /// An error of pixels on their way to this rank's host. It ends the other ranks, which would not learn of a late
    /// error of the device.
    fn unread(&self, state: &mut SessionState, call: Call, source: DeviceError) -> Error {
        let here = matches!(source, DeviceError::OutOfMemory { .. });
        let error = self.at_host(call, source);
        if self.ranks() > 1 && !here { self.abandon(state, error) } else { error }
    }

    /// Evaluates values, in one evaluation, for a caller that reads their pixels once, such as an encoder. Pixels are
    /// on rank 0's host; other ranks get `None`. The session keeps no copies, bands arrive while kernels run, and the
    /// device writes to page-locked memory if there is any.
    pub(crate) fn bring(&self, values: &[&Handle], call: Call) -> Result<Vec<Option<Arc<HostBuffer>>>> {
        let want = if self.ranks() > 1 { ResultDelivery::Root } else { ResultDelivery::Requester };
        let mut state = self.lock("evaluating")?;
        let mut pending = self.look_at(&mut state, values, want, DownloadStart::WithTarget)?;
        if self.rank() > 0 {
            return Ok(vec![None; values.len()]); // other ranks may have the pixels, too
        }
        let mut brought: HashMap<NodeId, Arc<HostBuffer>> = HashMap::new();
        for node in &pending.nodes {
            // Two values may have become one node.
            let Some(delivered) = pending.delivered.remove(node) else { continue };
            let coming = RequestedValue { delivered, workers: self.workers(), trace: Some(&mut state.trace) };
            let buffer = coming.brought(self);
            let buffer = buffer.map_err(|source| self.unread(&mut state, call, source))?;
            brought.insert(*node, Arc::new(buffer));
        }
        self.publish(&state);
        Ok(pending.nodes.iter().map(|node| brought.get(node).cloned()).collect())
    }

    /// An error of a call that moves pixels between the host and the device.
    pub(crate) fn at_host(&self, call: Call, source: DeviceError) -> Error {
        let host = match &source {
            DeviceError::OutOfMemory { bound, .. } => matches!(bound, MemoryBound::Machine | MemoryBound::Host { .. }),
            _ => false,
        };
        let device = if host { "the host".into() } else { self.device_name() };
        Error::Device { op: format!("{}{}", call.op, CallSuffix(call.site)), device, source }
    }

    /// Returns an error of this rank in a collective call, and informs the other ranks, which may not have the error.
    pub(crate) fn refused<T>(&self, error: Error) -> Result<T> {
        if self.ranks() > 1 {
            agree_on(self.comm(), &format!("a call that was refused: {error}"))?;
        }
        Err(error)
    }

    /// Allocates page-locked host memory, with unspecified contents; ordinary memory if there is no device yet, or it
    /// has no page-locked memory.
    pub(crate) fn locked_room(&self, bytes: usize) -> Result<HostBuffer, DeviceError> {
        match (self.page_locked(bytes), self.engine()) {
            (Some(locked), _) => Ok(locked),
            (None, Some(engine)) if !engine.unified() => self.0.pool.try_allocate(bytes),
            (None, _) => self.room(bytes),
        }
    }

    /// Allocates page-locked host memory, with unspecified contents, if the device provides it.
    fn page_locked(&self, bytes: usize) -> Option<HostBuffer> {
        let engine = self.engine().filter(|engine| !engine.unified())?;
        let adopted = engine.device.staging().page_locked(bytes).and_then(|memory| match memory {
            Some(memory) => self.0.pool.try_adopt(memory, bytes).map(Some),
            None => Ok(None),
        });
        let slow = |e: &DeviceError| {
            crate::warn!("{bytes} bytes of pixels are in pageable memory, which takes longer to copy: {e}");
        };
        adopted.inspect_err(slow).ok().flatten()
    }

    /// This session, for memory that it provides before it has chosen a device.
    pub(crate) fn undecided(&self) -> Option<DeferredSession> {
        self.engine().is_none().then(|| DeferredSession(Arc::downgrade(&self.0)))
    }

    /// Copies the program's pixels, parts of whole levels of `height` rows and `level` bytes, to the device if it takes
    /// them now; the device records the time under a label. Each of several connected devices takes its strip, once the partition of rows is known.
    /// Returns nothing if the pixels stay on the host.
    pub(crate) fn taken(
        &self,
        parts: &[&[u8]],
        (level, height): (usize, usize),
        label: WorkLabel,
    ) -> Result<Vec<Memory>, DeviceError> {
        /// Minimum bytes for several devices to take their strips: less may belong to a program for one device.
        const MANY: usize = 64 << 20;
        // Each of several ranks needs a part, which only a plan determines.
        let Some(engine) = self.engine().filter(|e| !e.unified() && self.ranks() == 1 && self.mode() != Mode::Naive)
        else {
            return Ok(Vec::new());
        };
        let take = |device: &dyn Device, parts: &[&[u8]]| {
            let _entered = self.0.settings.measures().then(|| label.enter());
            device.staging().upload_parts(parts)
        };
        if engine.device_count() == 1 {
            return Ok(take(&*engine.device, parts)?.into_iter().collect());
        }
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let Some(partition) = engine.divided(engine.device_count()).filter(|_| engine.direct() && bytes >= MANY) else {
            return Ok(Vec::new());
        };
        let strip = |lane: usize| {
            let rows = partition.strip(lane, height);
            let [from, to] = [rows.start, rows.end].map(|row| level / height.max(1) * row.cast_unsigned());
            let levels = parts.iter().flat_map(|part| part.chunks_exact(level.max(1)));
            levels.map(|level| &level[from..to]).collect::<Vec<&[u8]>>()
        };
        let taken: Vec<Result<Option<Memory>, DeviceError>> = std::thread::scope(|scope| {
            let take = &take;
            let lanes = engine.devices().enumerate().map(|(lane, device)| (strip(lane), device));
            let lanes: Vec<_> = lanes.map(|(strip, device)| scope.spawn(move || take(&**device, &strip))).collect();
            lanes.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
        });
        let taken: Option<Vec<Memory>> = taken.into_iter().collect::<Result<_, _>>()?;
        Ok(taken.unwrap_or_default())
    }
}
