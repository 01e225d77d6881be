//! Communication between ranks: what the planner's transfers are made of.

pub mod threads;

use std::fmt;

use crate::error::Error;

/// A communication failure, without the context that [`Error::Communication`] adds.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CommError(pub String);

/// The ranks that run one program together. Every call is collective: all ranks make the same calls in the same order.
pub trait Communicator: Send + Sync {
    /// This rank, `0..size`.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Sends one message to each listed rank and receives one from each listed rank; returns when all are done. A rank
    /// appears at most once in each list and never is this rank itself; a message may be empty only if absent on both
    /// sides. The lengths of the receive buffers are the lengths sent.
    ///
    /// # Errors
    /// When another rank failed or went away.
    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError>;

    /// Copies the root's bytes to every rank; lengths may differ before the call, and agree after it.
    ///
    /// # Errors
    /// When another rank failed or went away.
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError>;

    /// Replaces `values` on every rank by the sum over ranks, added in the order of ranks.
    ///
    /// # Errors
    /// When another rank failed or went away.
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError>;

    /// Tells all ranks to stop: their pending and later calls fail with `message`.
    fn abort(&self, message: &str);
}

/// The communicator of a program that runs alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Communicator for Alone {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError> {
        debug_assert!(sends.is_empty() && receives.is_empty(), "one rank has nobody to talk to");
        Ok(())
    }
    fn broadcast(&self, _root: usize, _bytes: &mut Vec<u8>) -> Result<(), CommError> {
        Ok(())
    }
    fn sum(&self, _values: &mut [f64]) -> Result<(), CommError> {
        Ok(())
    }
    fn abort(&self, _message: &str) {}
}

impl CommError {
    /// With the rank and the operation.
    pub fn during(self, rank: usize, op: impl fmt::Display) -> Error {
        Error::Communication { rank, op: op.to_string(), cause: self.0 }
    }
}
