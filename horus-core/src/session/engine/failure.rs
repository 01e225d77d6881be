//! Evaluations that fail.

use crate::error::Error;

/// An evaluation that failed.
pub(crate) enum EvaluationError {
    /// Before execution, on all ranks alike.
    BeforeExecution(Error),
    /// During execution.
    DuringExecution(Error),
}

/// Errors of a call that executes nothing.
impl From<Error> for EvaluationError {
    fn from(error: Error) -> EvaluationError {
        EvaluationError::BeforeExecution(error)
    }
}

impl EvaluationError {
    pub(crate) fn error(self) -> Error {
        let (EvaluationError::BeforeExecution(error) | EvaluationError::DuringExecution(error)) = self;
        error
    }
}
