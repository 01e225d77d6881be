//! Handles of recorded values.

use std::ops::Deref;
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Result, SourceLine};
use crate::record::RecordId;
use crate::session::Session;
use crate::session::attributes::Attributes;
use crate::session::state::failure::ValueFailure;
use crate::shape::Shape;

/// A handle of a recorded value. Dropping the last clone makes the value unobservable.
#[doc(hidden)]
#[derive(Clone)]
pub struct Handle {
    value: Arc<Observed>,
    /// Attributes apart from the pixels.
    pub(crate) attributes: Option<Arc<Attributes>>,
}

/// A value that clones of a handle can observe. The session is informed only when the last clone is dropped, because an
/// operation clones handles several times.
#[doc(hidden)]
pub struct Observed {
    pub(crate) session: Session,
    /// Shape; of a failed value as far as it is known.
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    /// The record, or the failure.
    pub(crate) record: std::result::Result<RecordId, Arc<ValueFailure>>,
}

impl Deref for Handle {
    type Target = Observed;
    fn deref(&self) -> &Observed {
        &self.value
    }
}

impl Handle {
    /// The only handle of a new record, or of a failure.
    pub(crate) fn new(
        session: &Session,
        record: std::result::Result<RecordId, Arc<ValueFailure>>,
        (shape, dtype): (Shape, DType),
    ) -> Handle {
        Handle { value: Arc::new(Observed { session: session.clone(), shape, dtype, record }), attributes: None }
    }

    /// The record, for reading the value.
    pub(crate) fn look(&self) -> Result<RecordId> {
        self.record.as_ref().copied().map_err(|failure| failure.look())
    }

    /// Sets the line, in a program in another language, of the value and of all values that it depends on and that have
    /// none. Errors name this line instead of the call.
    pub fn recorded_at(&self, line: SourceLine) {
        if let Ok(id) = self.record {
            self.session.change(move |state| state.program.recorded_at(id, line));
        }
    }

    /// Returns `true` for a failure.
    pub(crate) fn failed(&self) -> bool {
        self.record.is_err()
    }

    /// Returns `true` if both carry the same error.
    pub(crate) fn same_failure(&self, other: &Handle) -> bool {
        matches!((&self.record, &other.record), (Err(a), Err(b)) if Arc::ptr_eq(a, b))
    }

    /// Returns the error of a failure. Involves no other rank.
    pub(crate) fn check(&self) -> Result<()> {
        self.look().map(drop)
    }

    /// Marks this value's error as superseded by an earlier one.
    pub(crate) fn supersede(&self) {
        if let Err(failure) = &self.record {
            failure.supersede();
        }
    }

    /// Failure with the same error and another shape and type; `None` if the value did not fail.
    pub(crate) fn failure_with_shape(&self, shape: Shape, dtype: DType) -> Option<Handle> {
        let failure = self.record.as_ref().err()?;
        Some(Handle::new(&self.session, Err(Arc::clone(failure)), (shape, dtype)))
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let Ok(id) = self.record else { return };
        self.session.change(move |state| {
            let values = state.program.release(id);
            state.images.forget(values);
        });
    }
}
