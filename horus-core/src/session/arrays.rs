//! Pixels between the program's memory and the device's: each is copied once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::start::Held;
use super::{Handle, Session};
use crate::comm::agree::agree_on;
use crate::device::{Label, Memory, Sending};
use crate::error::{DeviceError, Error, MemoryBound, Result, Site};
use crate::execute::Delivered;
use crate::execute::trace::Trace;
use crate::host::buffer::HostBuffer;
use crate::host::spare::Spare;
use crate::host::workers::Workers;
use crate::ir::graph::NodeId;
use crate::plan::{Mode, Want};
use crate::settings::HOST_MEMORY;

/// A value that is read: computed, or about to be, and on its way to memory that its reader names.
pub(crate) struct Coming<'a> {
    delivered: Delivered,
    workers: &'a Workers,
    trace: &'a mut Trace,
}

impl Coming<'_> {
    /// The threads that copy it.
    pub(crate) fn workers(&self) -> &Workers {
        self.workers
    }

    /// Whether the pixels are in host memory already.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self.delivered, Delivered::Here(_))
    }

    /// A buffer with the pixels, which others may share.
    pub(crate) fn shared(mut self) -> Result<HostBuffer, DeviceError> {
        self.computed()?;
        let start = Instant::now();
        let landed = match self.delivered {
            Delivered::Here(host) => Ok(host),
            Delivered::Coming(landing) => landing.land(),
        };
        self.trace.brought(start);
        landed
    }

    /// A buffer with the pixels for somebody who reads them once; others may share it.
    pub(crate) fn brought(self, session: &Session) -> Result<HostBuffer, DeviceError> {
        if let Delivered::Coming(landing) = &self.delivered {
            let start = Instant::now();
            landing.make_room(&mut |bytes| session.room_for_result(bytes))?;
            self.trace.waited(start);
        }
        self.shared()
    }

    /// Appends the pixels to `target`, which has room for them.
    pub(crate) fn append_to(mut self, target: &mut Spare<'_>) -> Result<(), DeviceError> {
        self.computed()?;
        let start = Instant::now();
        let landed = match self.delivered {
            Delivered::Here(host) => {
                target.append(self.workers, host.bytes());
                Ok(())
            }
            Delivered::Coming(landing) => landing.land_on(target, self.workers),
        };
        self.trace.brought(start);
        landed
    }

    /// Puts the pixels into `target`, a buffer of as many bytes.
    pub(crate) fn put_into(mut self, target: &mut HostBuffer) -> Result<(), DeviceError> {
        self.computed()?;
        let start = Instant::now();
        let landed = match self.delivered {
            Delivered::Here(host) => {
                self.workers.copy(host.bytes(), target.overwritten());
                Ok(())
            }
            Delivered::Coming(landing) => landing.land_in(target, self.workers),
        };
        self.trace.brought(start);
        landed
    }

    /// Waits until there is something to copy, so that the time of kernels is told apart.
    fn computed(&mut self) -> Result<(), DeviceError> {
        let Delivered::Coming(landing) = &self.delivered else { return Ok(()) };
        let start = Instant::now();
        let begun = landing.begun();
        self.trace.waited(start);
        begun
    }
}

/// A session that had not chosen its device when it gave memory.
#[derive(Clone)]
pub(crate) struct Undecided(Weak<Held>);

impl Undecided {
    /// Whether memory may have to be replaced, as the device is known now, or never will be.
    pub(crate) fn is_over(&self) -> bool {
        self.0.upgrade().is_none_or(|session| session.engine.get().is_some())
    }

    /// Memory that the device reads and writes by itself, in place of `buffer`, if it has any; with the contents if they are
    /// to be `kept`.
    pub(crate) fn replaced(&self, buffer: &HostBuffer, kept: bool) -> Option<HostBuffer> {
        let session = Session(self.0.upgrade()?);
        let mut locked = session.page_locked(buffer.len())?;
        if kept {
            session.workers().copy(buffer.bytes(), locked.bytes_mut());
        }
        Some(locked)
    }
}

impl Session {
    /// Evaluates a value and lets `reader` bring its pixels to this rank's host; on rank 0 alone if only `root` wants them,
    /// then `None` on the others. Planes one after the other, row-major. `op` names the call at `site` in errors.
    pub(crate) fn read_back<R>(
        &self,
        value: &Handle,
        root: bool,
        (op, site): (&'static str, Site),
        reader: impl FnOnce(Coming<'_>) -> Result<R, DeviceError>,
    ) -> Result<Option<R>> {
        let want = match (self.ranks(), root) {
            (1, _) => Want::Handed,
            (_, true) => Want::Root,
            (_, false) => Want::Everyone,
        };
        let mut state = self.lock("evaluating")?;
        let mut pending = self.look_at(&mut state, &[value], want, Sending::WhenLanded)?;
        let delivered = pending.nodes.first().and_then(|n| pending.delivered.remove(n));
        // Other ranks may have what rank 0 wants, too.
        let delivered = delivered.filter(|_| !root || self.rank() == 0);
        let Some(delivered) = delivered else { return Ok(None) };
        let read = reader(Coming { delivered, workers: self.workers(), trace: &mut state.trace });
        self.publish(&state);
        match read {
            Ok(read) => Ok(Some(read)),
            // What a device meets late, on its way to one of several ranks, the others would not learn.
            Err(source) if self.ranks() > 1 && !matches!(source, DeviceError::OutOfMemory { .. }) => {
                let error = self.at_host((op, site), source);
                Err(self.lose(&mut state, error))
            }
            Err(source) => Err(self.at_host((op, site), source)),
        }
    }

    /// Evaluates values, in one evaluation, for somebody who reads their pixels once, as an encoder does: on rank 0's host,
    /// `None` elsewhere. On one rank no copies stay with the session, bands come while kernels run, and where page-locked memory
    /// is at hand the device writes there.
    pub(crate) fn bring(
        &self,
        values: &[&Handle],
        (op, site): (&'static str, Site),
    ) -> Result<Vec<Option<Arc<HostBuffer>>>> {
        if self.ranks() > 1 {
            return self.fetch_all(values, Want::Root);
        }
        let mut state = self.lock("evaluating")?;
        let mut pending = self.look_at(&mut state, values, Want::Handed, Sending::WhenLanded)?;
        let mut brought: HashMap<NodeId, Arc<HostBuffer>> = HashMap::new();
        for node in &pending.nodes {
            // Two values may have become one.
            let Some(delivered) = pending.delivered.remove(node) else { continue };
            let coming = Coming { delivered, workers: self.workers(), trace: &mut state.trace };
            let buffer = coming.brought(self).map_err(|source| self.at_host((op, site), source))?;
            brought.insert(*node, Arc::new(buffer));
        }
        self.publish(&state);
        Ok(pending.nodes.iter().map(|node| brought.get(node).cloned()).collect())
    }

    /// An error of a call that moves pixels between the host and the device.
    pub(crate) fn at_host(&self, (op, site): (&'static str, Site), source: DeviceError) -> Error {
        let host = match &source {
            DeviceError::OutOfMemory { bound: MemoryBound::Machine, .. } => true,
            DeviceError::OutOfMemory { bound: MemoryBound::Setting { name, .. }, .. } => *name == HOST_MEMORY.name,
            _ => false,
        };
        let device = if host { "the host".into() } else { self.device_name() };
        Error::Device { op: format!("{op} (at {site})"), device, source }
    }

    /// An error that this rank meets in a call that all ranks make together: others, which may not meet it, are told.
    pub(crate) fn refused<T>(&self, error: Error) -> Result<T> {
        if self.ranks() > 1 {
            agree_on(self.comm(), &format!("a call that was refused: {error}"))?;
        }
        Err(error)
    }

    /// Host memory that the device reads and writes by itself, with unspecified contents; ordinary memory where there is no
    /// such device (yet), or its driver has none.
    pub(crate) fn locked_room(&self, bytes: usize) -> Result<HostBuffer, DeviceError> {
        match (self.page_locked(bytes), self.engine()) {
            (Some(locked), _) => Ok(locked),
            (None, Some(engine)) if !engine.unified() => self.0.pool.try_uncounted(bytes),
            (None, _) => self.room(bytes),
        }
    }

    /// Host memory that the device reads and writes by itself, with unspecified contents, if it has any.
    fn page_locked(&self, bytes: usize) -> Option<HostBuffer> {
        let engine = self.engine().filter(|engine| !engine.unified())?;
        let adopted = engine.device.page_locked(bytes).and_then(|memory| match memory {
            Some(memory) => self.0.pool.try_adopt_uncounted(memory, bytes).map(Some),
            None => Ok(None),
        });
        let slow = |e: &DeviceError| {
            log::warn!("{bytes} bytes of pixels are in pageable memory, which takes longer to copy: {e}");
        };
        adopted.inspect_err(slow).ok().flatten()
    }

    /// The session, for memory that it gives before it has chosen a device.
    pub(crate) fn undecided(&self) -> Option<Undecided> {
        self.engine().is_none().then(|| Undecided(Arc::downgrade(&self.0)))
    }

    /// Device memory with a copy of pixels that the program gives, parts one after the other, if the device takes them now;
    /// it notes when under a label.
    pub(crate) fn taken(&self, parts: &[&[u8]], label: Label) -> Result<Option<Memory>, DeviceError> {
        // Of several ranks each needs a part, which only a plan knows.
        match self.engine() {
            Some(engine) if !engine.unified() && self.ranks() == 1 && self.mode() != Mode::Naive => {
                let _entered = self.0.measuring.then(|| label.enter());
                engine.device.take(parts)
            }
            _ => Ok(None),
        }
    }
}
