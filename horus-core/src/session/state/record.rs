//! Records operations and given images, and evaluates automatically if there are too many.

use std::sync::Arc;
use std::time::Instant;

use crate::device::DownloadStart;
use crate::device::{Memory, WorkLabel};
use crate::dtype::DType;
use crate::error::{RecordedCall, Site};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::Op;
use crate::plan::ResultDelivery;
use crate::plan::state::Placement;
use crate::record::RecordId;
use crate::session::attributes::Attributes;
use crate::session::images::on_demand::OnDemandImage;
use crate::session::state::SessionState;
use crate::session::state::wait::waiting;
use crate::session::{Handle, Session};
use crate::shape::Shape;

impl Session {
    /// Appends an operation to the program. Inputs must belong to this session. If an input could not be recorded,
    /// neither can this operation: its value carries the first such error. Evaluates only if the flush limits are
    /// exceeded; the next call that can return an error returns the error of that evaluation.
    pub(crate) fn record(&self, op: Op, inputs: &[&Handle], shape: Shape, dtype: DType, site: Site) -> Handle {
        self.append(op, inputs, (shape, dtype, site), None)
    }

    /// [`Session::record`]; with `step`, the operation is a stand-in of that step.
    pub(crate) fn append(
        &self,
        op: Op,
        inputs: &[&Handle],
        (shape, dtype, site): (Shape, DType, Site),
        step: Option<RecordId>,
    ) -> Handle {
        let ids: std::result::Result<Vec<RecordId>, _> = inputs.iter().map(|h| h.record.clone()).collect();
        let handles = inputs;
        let inputs = match ids {
            Ok(ids) => ids,
            Err(failure) => {
                let others = inputs.iter().filter_map(|h| h.record.as_ref().err());
                others.filter(|other| !Arc::ptr_eq(other, &failure)).for_each(|other| other.supersede());
                return Handle::new(self, Err(failure), (shape, dtype));
            }
        };
        let id = self.0.numbers.record();
        let attributes = Attributes::after(&op, handles, shape, dtype);
        // Records by an observer at each step would otherwise be evaluated, and observed, without end.
        let observer = self.is_mine();
        let limits = (self.0.settings.max_pending, self.0.settings.max_pinned);
        let call = RecordedCall::from(site);
        let record = move |state: &mut SessionState| {
            state.program.record(id, op, &inputs, (shape, dtype), call);
            if let Some(step) = step {
                state.program.begin_step(step, id);
            }
            state.is_full(limits)
        };
        match self.free() {
            Some(mut state) => {
                let full = record(&mut state);
                drop(state);
                if full {
                    self.change_with(0, Session::flush);
                }
            }
            None => self.change_with(0, move |session, state| {
                if record(state) && !observer {
                    session.flush(state);
                }
            }),
        }
        let mut handle = Handle::new(self, Ok(id), (shape, dtype));
        handle.attributes = attributes;
        handle
    }

    /// Evaluates if the flush limits are exceeded.
    fn flush(&self, state: &mut SessionState) {
        let (pending, pinned) = (state.program.pending(), state.program.pinned_bytes());
        let full = state.is_full((self.0.settings.max_pending, self.0.settings.max_pinned));
        if full && state.error.is_none() && state.lost.is_none() && !std::thread::panicking() {
            let targets = state.program.observable();
            if targets.is_empty() {
                return; // the recorder of steps evaluates them
            }
            let wants = vec![ResultDelivery::Keep; targets.len()];
            state.patience = (0, 0);
            let mut ran = Ok(());
            waiting(|| ran = self.run(state, &targets, &wants, DownloadStart::AtOnce).map(drop));
            if let Err(e) = ran {
                state.error = Some(e);
                // After a failure, later operations do not retry at once.
                state.patience = (2 * pending, 2 * pinned);
            }
        }
    }

    /// Creates an image whose pixels every rank has: row-major, the channels of each pixel next to each other.
    pub(crate) fn source(&self, shape: Shape, dtype: DType, pixels: HostBuffer, site: Site) -> Handle {
        self.keep(shape, dtype, Some(pixels), Placement::Replicated, site)
    }

    /// Creates an image whose pixels are on the single rank's device, or in strips on several devices. They were copied
    /// there from `start` to now, under a label.
    pub(crate) fn source_on_device(
        &self,
        shape: Shape,
        dtype: DType,
        pixels: Vec<Memory>,
        (start, label, site): (Instant, WorkLabel, Site),
    ) -> Handle {
        let id = self.0.numbers.record();
        let (took, call) = (start.elapsed(), RecordedCall::from(site));
        let bytes = pixels.iter().map(Memory::len).sum();
        self.change_with(bytes, move |session, state| {
            let value = state.names.value();
            state.images.give_device(value, shape.stored(), dtype, session.strips_of(pixels, shape.height));
            state.images.given.insert(value, Placement::Replicated);
            state.stats.made.uploads += 1;
            state.trace.taken(start, took, label);
            state.program.record(id, Op::Source(value), &[], (shape, dtype), call);
        });
        Handle::new(self, Ok(id), (shape, dtype))
    }

    /// Creates an image whose pixels rank 0 has. Other ranks pass `None` and must agree on shape and type.
    pub(crate) fn source_on_root(&self, shape: Shape, dtype: DType, pixels: Option<HostBuffer>, site: Site) -> Handle {
        self.keep(shape, dtype, pixels, Placement::ROOT, site)
    }

    fn keep(&self, shape: Shape, dtype: DType, pixels: Option<HostBuffer>, placement: Placement, site: Site) -> Handle {
        let given = placement;
        // On a single rank, rank 0's pixels are everyone's.
        let placement = if self.ranks() == 1 { Placement::Replicated } else { placement };
        let id = self.0.numbers.record();
        let (bytes, call) = (pixels.as_ref().map_or(0, HostBuffer::len), RecordedCall::from(site));
        self.change_with(bytes, move |_, state| {
            let value = state.names.value();
            if let (Some(pixels), Placement::Replicated) = (&pixels, placement) {
                state.images.note_given(value, pixels);
            }
            state.images.give(value, shape.stored(), dtype, pixels, placement);
            state.images.given.insert(value, given);
            state.program.record(id, Op::Source(value), &[], (shape, dtype), call);
        });
        Handle::new(self, Ok(id), (shape, dtype))
    }

    /// Creates an image whose pixels are read on demand.
    pub(crate) fn source_later(&self, later: OnDemandImage, site: Site) -> Handle {
        let (shape, dtype, call) = (later.shape.planar(), later.dtype, RecordedCall::from(site));
        let id = self.0.numbers.record();
        self.change(move |state| {
            let value = state.names.value();
            state.images.on_demand.insert(value, later);
            state.images.given.insert(value, Placement::ROOT);
            state.program.record(id, Op::Source(value), &[], (shape, dtype), call);
        });
        Handle::new(self, Ok(id), (shape, dtype))
    }
}
