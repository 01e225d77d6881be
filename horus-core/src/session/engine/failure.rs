//! Evaluations that fail.

use crate::error::Error;

/// An evaluation that failed.
pub(crate) enum Unevaluated {
    /// Before execution, on all ranks alike.
    Foreseen(Error),
    /// During execution.
    Met(Error),
}

/// An error of a call that executes nothing.
impl From<Error> for Unevaluated {
    fn from(error: Error) -> Unevaluated {
        Unevaluated::Foreseen(error)
    }
}

impl Unevaluated {
    pub(crate) fn error(self) -> Error {
        let (Unevaluated::Foreseen(error) | Unevaluated::Met(error)) = self;
        error
    }
}
