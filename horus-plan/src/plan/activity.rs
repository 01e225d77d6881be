//! Kinds of activity; the times of steps are predicted, measured and reported by kind.

use std::time::Duration;

use super::predict::PlanPrediction;
use super::step::{Action, ComputedRows};

/// The activity of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// A copy from the host to the device.
    Upload,
    /// A launch.
    Kernels,
    /// A copy from the device to the host.
    Download,
    /// Messages between ranks.
    Communication,
    /// Bookkeeping of memory.
    Rest,
}

impl Action {
    /// The activity of the step.
    pub const fn activity(&self) -> Activity {
        match self {
            Action::Upload { .. } | Action::UploadStrip { .. } => Activity::Upload,
            Action::Launch { .. } => Activity::Kernels,
            Action::Download(_) | Action::Send { .. } => Activity::Download,
            Action::Map(_) | Action::Unmap(_) | Action::Deliver(_) | Action::Free(_) | Action::Evict(_) => {
                Activity::Rest
            }
            Action::Scatter { .. }
            | Action::Replicate { .. }
            | Action::Exchange { .. }
            | Action::Begin { .. }
            | Action::Finish(_)
            | Action::Fetch { .. }
            | Action::Sum(_)
            | Action::Gather { .. }
            | Action::Collect(_) => Activity::Communication,
        }
    }

    /// Returns `true` if devices exchange messages in this step directly, not through the host.
    pub const fn is_direct(&self) -> bool {
        matches!(
            self,
            Action::Scatter { direct: true, .. }
                | Action::Replicate { direct: true, .. }
                | Action::Exchange { direct: true, .. }
                | Action::Begin { direct: true, .. }
                | Action::Fetch { direct: true, .. }
                | Action::Gather { direct: true, .. }
        )
    }
}

/// Busy time of each part of a machine. Parts work concurrently, so that the sum may exceed the elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes {
    /// Copies from the host to the device.
    pub upload: Duration,
    /// Kernels.
    pub kernels: Duration,
    /// Copies from the device to the host.
    pub download: Duration,
    /// Messages between ranks.
    pub communication: Duration,
}

impl BusyTimes {
    /// Adds time for an activity. Time of [`Activity::Rest`] is not counted.
    pub fn spend(&mut self, activity: Activity, time: Duration) {
        match activity {
            Activity::Upload => self.upload += time,
            Activity::Kernels => self.kernels += time,
            Activity::Download => self.download += time,
            Activity::Communication => self.communication += time,
            Activity::Rest => {}
        }
    }

    /// Adds the times of `other`.
    pub fn add(&mut self, other: &BusyTimes) {
        let BusyTimes { upload, kernels, download, communication } = other;
        self.upload += *upload;
        self.kernels += *kernels;
        self.download += *download;
        self.communication += *communication;
    }
}

impl PlanPrediction<'_> {
    /// Predicted busy time of each part of the machine.
    pub fn parts(&self) -> BusyTimes {
        let mut parts = BusyTimes::default();
        let elsewhere = |action| matches!(action, Action::Launch { rows: ComputedRows::On(rank), .. } if rank > 0);
        let steps = self.plan().steps.iter().zip(&self.steps);
        for (step, timing) in steps.filter(|(step, _)| !elsewhere(step.action)) {
            let time = Duration::try_from_secs_f64(timing.end - timing.start).unwrap_or_default();
            parts.spend(step.action.activity(), time);
        }
        parts
    }
}
