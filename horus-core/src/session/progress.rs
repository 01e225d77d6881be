//! Progress of one evaluation, and statistics of all evaluations.

use std::fmt;
use std::time::Duration;

use crate::plan::movement::Load;
use crate::plan::{BusyTimes, PlanCounts};
use horus_files::FileTraffic;

/// Progress of an evaluation.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// Index of the step that begins.
    pub step: usize,
    /// Number of steps.
    pub steps: usize,
    /// Text of the step.
    pub text: &'a dyn Fn() -> String,
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of {}: {}", self.step, self.steps, (self.text)())
    }
}

/// Statistics of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of evaluations.
    pub evaluations: usize,
    /// Number of evaluations that needed a new plan; the others ran a cached plan.
    pub planned: usize,
    /// Transfers and launches that were executed.
    pub made: PlanCounts,
    /// Transfers and launches that naive mode would have executed, counted on request (see
    /// [`SessionBuilder::compare_naive`](crate::session::SessionBuilder::compare_naive)).
    pub naive: PlanCounts,
    /// Messages sent by this rank.
    pub sent: Load,
    /// Pixels that this rank read from files on demand.
    pub read: FileTraffic,
    /// Predicted time of the plans, from the placement of their sources to the delivery of results.
    pub predicted: Duration,
    /// Predicted time in which the host records the evaluated operations and finds cached plans.
    pub recording: Duration,
    /// Predicted busy time of each part of rank 0's machine.
    pub parts: BusyTimes,
}

impl Stats {
    /// Adds the statistics of another session.
    pub(crate) fn add(&mut self, other: &Stats) {
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
