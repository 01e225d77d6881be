//! What a session tells of itself: how far an evaluation has come, and what all of them have done.

use std::fmt;
use std::time::Duration;

use crate::plan::movement::Load;
use crate::plan::{Counts, Parts};

/// How far an evaluation has come.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// Index of the step that begins.
    pub step: usize,
    /// Number of steps.
    pub steps: usize,
    /// Describes the step.
    pub text: &'a dyn Fn() -> String,
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of {}: {}", self.step, self.steps, (self.text)())
    }
}

/// What was read of files when evaluations asked for their pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PixelsRead {
    /// Strips, tiles or chunks that were decoded; of files without, rows.
    pub chunks: u64,
    /// Bytes of files.
    pub bytes: u64,
}

/// Statistics of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Evaluations.
    pub evaluations: usize,
    /// Evaluations that needed a new plan; the others ran the plan of an earlier one.
    pub planned: usize,
    /// Transfers and launches made.
    pub made: Counts,
    /// Transfers and launches that naive mode would have made (counted on request, see
    /// [`SessionBuilder::compare_naive`](crate::session::SessionBuilder::compare_naive)).
    pub naive: Counts,
    /// What this rank sent to others.
    pub sent: Load,
    /// What this rank read of files that are read when their pixels are needed.
    pub read: PixelsRead,
    /// Time that the plans were predicted to take, from where their images were to where they were wanted.
    pub predicted: Duration,
    /// Time that the host was predicted to take for recording what they evaluate, and for finding plans again.
    pub recording: Duration,
    /// For how long each part of the machine of rank 0 was predicted to be busy meanwhile.
    pub parts: Parts,
}

impl Stats {
    /// Adds what another session did.
    pub(super) fn add(&mut self, other: &Stats) {
        let Stats { evaluations, planned, made, naive, sent, read, predicted, recording, parts } = other;
        self.evaluations += evaluations;
        self.planned += planned;
        self.made.add(made);
        self.naive.add(naive);
        self.sent.messages += sent.messages;
        self.sent.bytes += sent.bytes;
        self.read.chunks += read.chunks;
        self.read.bytes += read.bytes;
        self.predicted += *predicted;
        self.recording += *recording;
        self.parts.add(parts);
    }
}
