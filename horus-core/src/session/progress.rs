//! Progress of an evaluation, and statistics of all.

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
    /// Describes the step.
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
    /// Evaluations.
    pub evaluations: usize,
    /// Evaluations that needed a new plan; the others ran the plan of an earlier one.
    pub planned: usize,
    /// Transfers and launches made.
    pub made: PlanCounts,
    /// Transfers and launches that naive mode would have made (counted on request, see
    /// [`SessionBuilder::compare_naive`](crate::session::SessionBuilder::compare_naive)).
    pub naive: PlanCounts,
    /// Messages sent by this rank.
    pub sent: Load,
    /// Amount read from files on demand by this rank.
    pub read: FileTraffic,
    /// Predicted time of the plans, from the placement of their sources to the delivery of results.
    pub predicted: Duration,
    /// Predicted time of the host for recording the evaluated operations, and for finding cached
    /// plans.
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
