//! Settings of a session: their fields, and the methods of builders that set them.

use std::sync::Arc;

use crate::error::Result;
use crate::plan::{Mode, Transfer};
use crate::session::{Canceller, Progress};
use crate::settings::{
    HOST_MEMORY, MODE, OVERLAP, Overlap, RANKS, Ranks, STENCIL, STEPS, Stencil, StepsPerLaunch, TRANSFER,
};

/// Number of pending operations at which the program is evaluated automatically.
const MAX_PENDING: usize = 4096;
/// Bytes of images that only pending operations keep alive at which the program is evaluated automatically.
const MAX_PINNED: usize = 512 << 20;

type ProgressObserver = Arc<dyn Fn(Progress<'_>) + Send + Sync>;
type ExplainSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Settings of a [`Session`](crate::session::Session). The methods of builders set and document them.
#[doc(hidden)]
#[derive(Clone)]
pub struct Settings {
    pub mode: Mode,
    pub weights: Option<Vec<f64>>,
    pub ranks: Ranks,
    pub observer: Option<ProgressObserver>,
    pub explain: Option<ExplainSink>,
    pub explain_passes: bool,
    pub drawings: Option<ExplainSink>,
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
            drawings: None,
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

    /// Defaults from the environment.
    ///
    /// # Errors
    /// [`Error::Config`](crate::error::Error::Config) if a variable has an invalid value.
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
        /// Sets the optimisation mode (default: fused; in `horus` `HORUS_MODE`).
        pub fn mode(mut self, mode: $crate::plan::Mode) -> Self {
            self.settings.mode = mode;
            self
        }

        /// Divides rows over ranks in proportion to `weights`, one per rank (default: equally), or over the devices of
        /// this process, one per device (default: by predicted speed).
        pub fn weights(mut self, weights: Vec<f64>) -> Self {
            self.settings.weights = Some(weights);
            self
        }

        /// Calls `observer` before each step of each evaluation. The observer may read the session's statistics, and
        /// may drop, copy and record images, which takes effect when the evaluation ends. Reading values is
        /// `Error::Reentry`.
        pub fn observer(mut self, observer: impl Fn($crate::session::Progress<'_>) + Send + Sync + 'static) -> Self {
            self.settings.observer = Some(std::sync::Arc::new(observer));
            self
        }

        /// Passes the text of each plan to `sink`, which may use the session like an observer.
        pub fn explain(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
            self.settings.explain = Some(std::sync::Arc::new(sink));
            self
        }

        /// Also passes to the sink of `explain` the recorded graph, the graph after each optimisation pass, and the
        /// draft of the plan after each planning pass.
        pub fn explain_passes(mut self, on: bool) -> Self {
            self.settings.explain_passes = on;
            self
        }

        /// Passes a drawing of each plan to `sink`, as a complete SVG file: the program as recorded, beside the launches
        /// and transfers that it became. The sink may use the session like an observer.
        pub fn explain_drawings(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
            self.settings.drawings = Some(std::sync::Arc::new(sink));
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

        /// Compares the pixels that the ranks give to one image (default: `true`). If they differ from rank 0's pixels,
        /// the evaluation that reads them ends all ranks with an error that names the image and the ranks. On several
        /// ranks this reads all pixels once when they are given. Without the comparison, the rows of an image come from
        /// the pixels of different ranks.
        pub fn compare_given(mut self, on: bool) -> Self {
            self.settings.compare_given = on;
            self
        }

        /// Records the times of the device's copies and kernels, by its own clock; see `Session::measured`. On a GPU
        /// this takes some microseconds for each launch and copy. `trace` includes it.
        pub fn measure(mut self, on: bool) -> Self {
            self.settings.measure = on;
            self
        }

        /// Limits the bytes of host memory for images (default: 80 % of the memory that is free when the first session
        /// of a device is opened; in `horus` `HORUS_HOST_MEMORY`). On a device that computes on host memory this counts
        /// all images, otherwise the host's copies. It also counts the memory of decoders and encoders. A program that
        /// needs more is computed region by region. If that is impossible it fails before anything is read or computed,
        /// with an error that names the required limit.
        pub fn host_memory(mut self, bytes: usize) -> Self {
            self.settings.host_memory = bytes;
            self
        }

        /// Divides launches so that halo exchanges overlap with the rows of a strip that do not need the halo, if the
        /// strip is tall enough (default: only peer to peer, and only for exchanges that are predicted to take long).
        /// It applies only if all ranks request it. Results and messages do not depend on it.
        pub fn overlap(mut self, on: bool) -> Self {
            self.settings.overlap = on;
            self
        }

        /// Sets how images are transferred to and from a device with its own memory (default: the way that is predicted
        /// to be fastest; also if ranks request different ones). Results do not depend on it.
        pub fn transfer(mut self, transfer: $crate::plan::Transfer) -> Self {
            self.settings.transfer = transfer;
            self
        }

        /// Sets the storage of computed images that only filters of one kernel read (default: the storage that is
        /// predicted to be fastest; also if ranks request different ones). Results do not depend on it.
        pub fn stencil(mut self, stencil: $crate::settings::Stencil) -> Self {
            self.settings.stencil = stencil;
            self
        }

        /// Sets the number of iterations of a loop per launch, if an iteration is one kernel over its own result
        /// (default: the number that is predicted to be fastest; also if ranks request different ones). Results do not
        /// depend on it.
        pub fn steps_per_launch(mut self, steps: $crate::settings::StepsPerLaunch) -> Self {
            self.settings.steps = steps;
            self
        }

        /// Evaluates automatically once this many operations are pending, or this many bytes of images are alive only
        /// because pending operations read them.
        pub fn flush_limits(mut self, operations: usize, bytes: usize) -> Self {
            (self.settings.max_pending, self.settings.max_pinned) = (operations.max(1), bytes);
            self
        }

        /// Sets how many ranks, or devices of this process, compute a program; these are the first ones (default: all;
        /// in `horus` `HORUS_RANKS`, by default as many as are predicted to take the least time; all if rows are
        /// divided by [weights](Self::weights), or if ranks request different numbers). Results do not depend on it.
        pub fn ranks(mut self, ranks: $crate::settings::Ranks) -> Self {
            self.settings.ranks = ranks;
            self
        }
    };
}
