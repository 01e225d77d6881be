//! Recorded values that somebody can still observe.

use std::sync::Arc;

use super::Session;
use super::failure::Failure;
use crate::dtype::DType;
use crate::error::{Result, SourceLine};
use crate::record::RecordId;
use crate::shape::Shape;

/// A recorded value that somebody can still observe. Dropping the last clone makes it unobservable.
#[doc(hidden)]
pub struct Handle {
    pub(crate) session: Session,
    /// Shape and type as far as they are known of a failed value.
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    /// The record, or the failure.
    pub(super) record: std::result::Result<RecordId, Arc<Failure>>,
}

impl Handle {
    /// The record, for somebody who looks at the value.
    pub(super) fn look(&self) -> Result<RecordId> {
        self.record.as_ref().copied().map_err(|failure| failure.look())
    }

    /// Says on behalf of which line of a program in another language the value was recorded, and all that it is computed from, as far
    /// as that was not said before: errors tell this line instead of the call.
    pub fn recorded_at(&self, line: SourceLine) {
        if let Ok(id) = self.record {
            self.session.change(move |_, state| state.program.recorded_at(id, line));
        }
    }

    /// Whether this is a failure.
    pub(crate) fn failed(&self) -> bool {
        self.record.is_err()
    }

    /// Whether both carry the same error.
    pub(crate) fn same_failure(&self, other: &Handle) -> bool {
        matches!((&self.record, &other.record), (Err(a), Err(b)) if Arc::ptr_eq(a, b))
    }

    /// Whether the value was recorded. Asks no other rank.
    pub(crate) fn check(&self) -> Result<()> {
        self.look().map(drop)
    }

    /// Notes that whoever reads this value carries on an earlier error than this one's.
    pub(crate) fn supersede(&self) {
        if let Err(failure) = &self.record {
            failure.supersede();
        }
    }

    /// Of a value that could not be recorded: what carries its error on, with another shape and type.
    pub(crate) fn carried(&self, shape: Shape, dtype: DType) -> Option<Handle> {
        let failure = self.record.as_ref().err()?;
        Some(Handle { session: self.session.clone(), shape, dtype, record: Err(Arc::clone(failure)) })
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        if let Ok(id) = self.record {
            self.session.change(move |_, state| state.program.retain(id));
        }
        Handle { session: self.session.clone(), shape: self.shape, dtype: self.dtype, record: self.record.clone() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Ok(id) = self.record else { return };
        self.session.change(move |_, state| {
            let values = state.program.release(id);
            state.forget(values);
        });
    }
}
