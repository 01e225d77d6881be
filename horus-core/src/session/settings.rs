//! Settings of a session, spelled once: fields here, and the methods that set them, of each builder.

use std::sync::Arc;

use crate::error::Result;
use crate::plan::{Mode, Transfer};
use crate::session::{Canceller, Progress};
use crate::settings::{
    HOST_MEMORY, MODE, OVERLAP, Overlap, RANKS, Ranks, STENCIL, STEPS, Stencil, StepsPerLaunch, TRANSFER,
};

/// Pending operations at which the program is evaluated automatically.
const MAX_PENDING: usize = 4096;
/// Bytes of images kept alive only by pending operations at which the program is evaluated
/// automatically.
const MAX_PINNED: usize = 512 << 20;

type ProgressObserver = Arc<dyn Fn(Progress<'_>) + Send + Sync>;
type ExplainSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Settings of a [`Session`](crate::session::Session), as the methods of builders set them, which document
/// them.
#[doc(hidden)]
#[derive(Clone)]
pub struct Settings {
    pub mode: Mode,
    pub weights: Option<Vec<f64>>,
    pub ranks: Ranks,
    pub observer: Option<ProgressObserver>,
    pub explain: Option<ExplainSink>,
    pub explain_passes: bool,
    pub compare_naive: bool,
    pub trace: bool,
    pub compare_given: bool,
    pub measure: bool,
    pub max_pending: usize,
    pub max_pinned: usize,
    pub host_memory: usize,
    pub overlap: bool,
    pub transfer: Transfer,
    pub steps: StepsPerLaunch,
    pub stencil: Stencil,
    pub canceller: Canceller,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mode: Mode::default(),
            weights: None,
            ranks: Ranks::All,
            observer: None,
            explain: None,
            explain_passes: false,
            compare_naive: false,
            trace: false,
            compare_given: true,
            measure: false,
            max_pending: MAX_PENDING,
            max_pinned: MAX_PINNED,
            host_memory: usize::MAX,
            overlap: false,
            transfer: Transfer::Auto,
            steps: StepsPerLaunch::Auto,
            stencil: Stencil::Auto,
            canceller: Canceller::default(),
        }
    }
}

impl Settings {
    /// Returns `true` if the device's times are recorded.
    pub(crate) fn measures(&self) -> bool {
        self.trace || self.measure
    }

    /// The defaults of the environment.
    ///
    /// # Errors
    /// [`Error::Config`](crate::error::Error::Config) for a value that is none of its variable.
    pub fn of_environment() -> Result<Settings> {
        Ok(Settings {
            mode: MODE.get()?.unwrap_or_default(),
            host_memory: HOST_MEMORY.get()?.unwrap_or(usize::MAX),
            ranks: RANKS.get()?.unwrap_or_default(),
            overlap: OVERLAP.get()? == Some(Overlap::Always),
            transfer: TRANSFER.get()?.unwrap_or_default(),
            steps: STEPS.get()?.unwrap_or_default(),
            stencil: STENCIL.get()?.unwrap_or_default(),
            ..Settings::default()
        })
    }
}

/// The methods of a builder that has [`Settings`] in its field `settings`.
#[doc(hidden)]
#[macro_export]
macro_rules! session_settings {
    () => {
        /// Sets the degree of optimisation (default: fused; in `horus` `HORUS_MODE`).
        pub fn mode(mut self, mode: $crate::plan::Mode) -> Self {
            self.settings.mode = mode;
            self
        }

        /// Divides rows among ranks in proportion to `weights`, one per rank (default: equally), or
        /// among the devices of this process, one per lane (default: by the predicted speed of each).
        pub fn weights(mut self, weights: Vec<f64>) -> Self {
            self.settings.weights = Some(weights);
            self
        }

        /// Calls `observer` before each step of each evaluation. It may drop, copy and record images of
        /// the session, which takes effect when the evaluation ends, and read the session's statistics;
        /// reading values is `Error::Reentry`.
        pub fn observer(mut self, observer: impl Fn($crate::session::Progress<'_>) + Send + Sync + 'static) -> Self {
            self.settings.observer = Some(std::sync::Arc::new(observer));
            self
        }

        /// Passes the text of each plan to `sink`, which may use the session like an observer.
        pub fn explain(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
            self.settings.explain = Some(std::sync::Arc::new(sink));
            self
        }

        /// Also passes the text of the recorded graph, of the graph after each optimisation pass, and
        /// of the draft of the plan after each planning pass, to the sink of
        /// `explain`.
        pub fn explain_passes(mut self, on: bool) -> Self {
            self.settings.explain_passes = on;
            self
        }

        /// Also counts the transfers that naive mode would have made.
        pub fn compare_naive(mut self, on: bool) -> Self {
            self.settings.compare_naive = on;
            self
        }

        /// Records the time of each step; see `Session::trace_json`.
        pub fn trace(mut self, on: bool) -> Self {
            self.settings.trace = on;
            self
        }

        /// Compares the pixels that the ranks give to one image (default: `true`): an evaluation that reads
        /// other pixels than those of rank 0 ends all ranks with an error, which names the image and the
        /// ranks. On several ranks this takes one pass over the pixels when they are given; without it the
        /// rows of an image come from the pixels of different ranks.
        pub fn compare_given(mut self, on: bool) -> Self {
            self.settings.compare_given = on;
            self
        }

        /// Records the times of the device's copies and kernels, by its own clock; see
        /// `Session::measured`. On a GPU this takes some microseconds for each launch and copy. A
        /// `trace` includes it.
        pub fn measure(mut self, on: bool) -> Self {
            self.settings.measure = on;
            self
        }

        /// Limits the bytes of host memory for images: all images on a device that computes on host
        /// memory, otherwise the host's copies, and the memory of decoders and encoders besides
        /// (default: 80 % of the memory that is free when the first session of a device is opened; in
        /// `horus` `HORUS_HOST_MEMORY`). A
        /// program that needs more is computed region by region, or fails before anything is read or
        /// computed, with an error that names the required limit.
        pub fn host_memory(mut self, bytes: usize) -> Self {
            self.settings.host_memory = bytes;
            self
        }

        /// Divides launches so that halo exchanges overlap with the rows of a strip that do not need the halo,
        /// wherever the strip is tall enough (default: only peer to peer, and where the exchange is predicted to
        /// take long; used only if all ranks request it). Results and messages do not depend on it.
        pub fn overlap(mut self, on: bool) -> Self {
            self.settings.overlap = on;
            self
        }

        /// Sets the transfer of images to and from a device with its own memory (default: the strategy
        /// predicted to be fastest; also if ranks request different ones). Results do not depend on it.
        pub fn transfer(mut self, transfer: $crate::plan::Transfer) -> Self {
            self.settings.transfer = transfer;
            self
        }

        /// Sets the storage of computed images that only filters of one kernel read (default: the
        /// choice predicted to be fastest). Results do not depend on it. If ranks request different
        /// choices, the default applies.
        pub fn stencil(mut self, stencil: $crate::settings::Stencil) -> Self {
            self.settings.stencil = stencil;
            self
        }

        /// Sets the number of steps of a loop per launch, where a step is one kernel over its own
        /// result (default: the number predicted to be fastest; also if ranks request different ones).
        /// Results do not depend on it.
        pub fn steps_per_launch(mut self, steps: $crate::settings::StepsPerLaunch) -> Self {
            self.settings.steps = steps;
            self
        }

        /// Evaluates automatically once this many operations are pending, or this many bytes of images
        /// are alive only because pending operations read them.
        pub fn flush_limits(mut self, operations: usize, bytes: usize) -> Self {
            (self.settings.max_pending, self.settings.max_pinned) = (operations.max(1), bytes);
            self
        }

        /// Sets how many ranks, or devices of this process, compute a program: the first ones (default: all; in `horus`
        /// `HORUS_RANKS`, by default as many as are predicted to take the least time; all if rows are divided by
        /// [weights](Self::weights), or if ranks request different numbers). Results do not depend on it.
        pub fn ranks(mut self, ranks: $crate::settings::Ranks) -> Self {
            self.settings.ranks = ranks;
            self
        }
    };
}
