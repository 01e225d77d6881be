//! What steps are about, by which their times are told, predicted and measured.

use std::time::Duration;

use super::predict::Prediction;
use super::step::Action;

/// What a step is about.
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
    /// Memory that changes hands.
    Rest,
}

impl Action {
    /// What the step is about.
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

    /// Whether devices exchange messages in this step themselves, not through the host.
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

/// For how long each part of a machine is busy. Parts work at the same time, so that their sum may be more than passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Copies from the host to the device.
    pub upload: Duration,
    /// Kernels.
    pub kernels: Duration,
    /// Copies from the device to the host.
    pub download: Duration,
    /// Messages between ranks.
    pub communication: Duration,
}

impl Parts {
    /// Adds time for an activity; none is told of [`Activity::Rest`].
    pub fn spend(&mut self, activity: Activity, time: Duration) {
        match activity {
            Activity::Upload => self.upload += time,
            Activity::Kernels => self.kernels += time,
            Activity::Download => self.download += time,
            Activity::Communication => self.communication += time,
            Activity::Rest => {}
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Parts) {
        let Parts { upload, kernels, download, communication } = other;
        self.upload += *upload;
        self.kernels += *kernels;
        self.download += *download;
        self.communication += *communication;
    }
}

impl Prediction<'_> {
    /// For how long each part of the machine is predicted to be busy.
    pub fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        for (step, timing) in self.plan().steps.iter().zip(&self.steps) {
            let time = Duration::try_from_secs_f64(timing.end - timing.start).unwrap_or_default();
            parts.spend(step.action.activity(), time);
        }
        parts
    }
}
