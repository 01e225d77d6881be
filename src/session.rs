//! The session type for users, which chooses the device.

use std::io::Write as _;
use std::ops::Deref;
use std::sync::Arc;

use horus_core::comm::Communicator;
use horus_core::error::{Error, Result};
use horus_core::plan::Mode;
use horus_core::session::{Progress, Session as CoreSession, SessionBuilder};
use horus_core::settings::{self, DeviceChoice, Overlap, Stencil, Steps, Transfer};

use crate::devices::{Devices, Local, Origin, open, open_lanes};
use crate::{ranks, weights};

/// An open session: it owns images and runs programs on its device. Cheap to clone.
// Named like the core's session, to which it adds the choice among this machine's devices; users
// see only this one.
#[derive(Clone, Debug)]
pub struct Session(CoreSession);

impl Session {
    /// Opens a session on the best available device: the GPU or the CPU, whichever is predicted to
    /// finish the first evaluated program sooner, including the start of a GPU. The choice is made
    /// at the first evaluation, for the whole session and all ranks, and logged.
    ///
    /// Environment variables override it ([`settings`](crate::settings)). Collective: all ranks
    /// must open sessions together.
    ///
    /// # Errors
    /// [`Error::Config`] if the environment requests a device that does not exist. An unusable GPU
    /// may be reported only by the first evaluation.
    pub fn new() -> Result<Session> {
        Session::builder().build()
    }

    /// Settings for a session.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Ends the process with this status, as the last action of a program: device memory, kernels
    /// and the driver's context are left to the system, which frees them faster than destructors
    /// would. Destructors do not run, and other threads are stopped, so everything must have been
    /// written before. Standard output is flushed; if that fails, the status is at least 1.
    ///
    /// Under a launcher such as `mpirun` the session is closed first, and the process ends as with
    /// [`std::process::exit`], which finalises MPI.
    pub fn leave(self, status: u8) -> ! {
        let flushed = std::io::stdout().flush();
        log::logger().flush();
        let status = i32::from(if flushed.is_err() { status.max(1) } else { status });
        if self.ranks() > 1 || ranks::launched() {
            drop(self);
            std::process::exit(status);
        }
        std::mem::forget(self);
        #[cfg(feature = "cuda")]
        horus_cuda::end_process(status);
        #[cfg(not(feature = "cuda"))]
        std::process::exit(status)
    }
}

impl Deref for Session {
    type Target = CoreSession;
    fn deref(&self) -> &CoreSession {
        &self.0
    }
}

type Configure = Box<dyn FnOnce(SessionBuilder) -> SessionBuilder>;

/// Settings of a [`Session`]. The environment sets the defaults.
#[must_use]
#[derive(Default)]
pub struct Builder {
    device: Option<String>,
    threads: Option<usize>,
    mode: Option<Mode>,
    weights: Option<Vec<f64>>,
    comm: Option<Arc<dyn Communicator>>,
    rank_on_node: Option<usize>,
    eager: bool,
    steps_per_pixel: f64,
    configure: Vec<Configure>,
}

impl Builder {
    /// Sets the device: `auto` (the GPU or the CPU, whichever is predicted to finish the first
    /// evaluated program sooner), `cpu`, `cuda` or `cuda:N`; or several devices, as
    /// [`Builder::devices`] takes them: `cuda:all`, `cuda:0,1`, `cuda:0+cpu`.
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// Sets several devices of this process, each of which computes a strip of every image: `cpu`,
    /// `cuda:N` or `cuda:all`. They share the host's memory, so each copies its strip from and to
    /// the program's arrays. Rows are divided by the predicted speed of each device, or by
    /// [`Builder::weights`], one per device. A program that is predicted to take less time on the
    /// first device alone runs there. Not under `mpirun`.
    ///
    /// ```
    /// # use horus::prelude::*;
    /// let session = Session::builder().devices(["cpu", "cpu"]).threads(2).build()?; // several are useful only with a GPU
    /// let image = Image::from_slice(&session, (2, 2), &[1.0f32, 2.0, 3.0, 4.0]);
    /// assert_eq!((image + 1.0).to_vec()?, [2.0, 3.0, 4.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn devices<D: AsRef<str>>(self, names: impl IntoIterator<Item = D>) -> Self {
        let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
        self.device(names.join("+"))
    }

    /// Uses all of several devices for every program, regardless of predictions; see
    /// [`SessionBuilder::all_lanes`](horus_core::session::SessionBuilder::all_lanes).
    pub fn all_lanes(self, on: bool) -> Self {
        self.with(move |b| b.all_lanes(on))
    }

    /// Sets the number of threads of the CPU device, or of copies to and from a GPU (at most 16).
    /// Default: one per core, divided among the ranks that share the cores. Results do not depend
    /// on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Opens the device immediately, and with `auto` a GPU if there is one: for measurements, and
    /// for programs that do little at first and much later. Otherwise a GPU is opened in the
    /// background until the first evaluation, which waits for it and reports errors.
    pub fn eager(mut self, on: bool) -> Self {
        self.eager = on;
        self
    }

    /// Hints at the approximate number of multiply-adds per pixel of the pictures that the program
    /// opens. If there are many, `auto` starts to open a GPU while the first picture is read.
    /// Results do not depend on it.
    pub fn steps_per_pixel(mut self, steps: f64) -> Self {
        self.steps_per_pixel = steps;
        self
    }

    /// Sets the optimisation mode.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Runs on the ranks of `comm` (default: [`ranks`](crate::ranks)).
    pub fn communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.comm = Some(comm);
        self
    }

    /// Sets the local rank, this rank's index among the ranks of its node, by which a GPU is chosen
    /// if none is named (default: that of the communicator).
    pub fn rank_on_node(mut self, rank: usize) -> Self {
        self.rank_on_node = Some(rank);
        self
    }

    /// Divides rows among ranks in proportion to `weights`, one per rank; or among several devices
    /// of this process, one per device.
    pub fn weights(mut self, weights: Vec<f64>) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Calls `observer` before each step of each evaluation. It may drop, copy and record images of
    /// the session, which takes effect after the evaluation; reading values is [`Error::Reentry`].
    pub fn observer(self, observer: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.with(move |b| b.observer(observer))
    }

    /// Passes the text of each plan to `sink`, which may use the session as an observer may.
    pub fn explain(self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.with(move |b| b.explain(sink))
    }

    /// Also passes the text of the recorded graph, of the graph after each optimisation pass, and
    /// of the unfinished plan after each planning pass, to the sink of [`Builder::explain`].
    pub fn explain_passes(self, on: bool) -> Self {
        self.with(move |b| b.explain_passes(on))
    }

    /// Also counts the transfers that naive mode would have made.
    pub fn compare_naive(self, on: bool) -> Self {
        self.with(move |b| b.compare_naive(on))
    }

    /// Records the time of each step; see [`CoreSession::trace_json`].
    pub fn trace(self, on: bool) -> Self {
        self.with(move |b| b.trace(on))
    }

    /// Measures copies and kernels by the device's own clock; see [`CoreSession::measured`].
    pub fn measure(self, on: bool) -> Self {
        self.with(move |b| b.measure(on))
    }

    /// Overlaps halo exchanges with the rows of a strip that do not need the halo; overrides
    /// `HORUS_OVERLAP`. See [`SessionBuilder::overlap`].
    pub fn overlap(self, on: bool) -> Self {
        self.with(move |b| b.overlap(on))
    }

    /// Sets the transfer strategy of images between host and GPU; overrides `HORUS_TRANSFER`. See
    /// [`SessionBuilder::transfer`].
    pub fn transfer(self, transfer: Transfer) -> Self {
        self.with(move |b| b.transfer(transfer))
    }

    /// Sets the treatment of filter inputs; overrides `HORUS_STENCIL`. See
    /// [`SessionBuilder::stencil`].
    pub fn stencil(self, stencil: Stencil) -> Self {
        self.with(move |b| b.stencil(stencil))
    }

    /// Sets the number of loop steps per launch; overrides `HORUS_STEPS`. See
    /// [`SessionBuilder::steps_per_launch`].
    pub fn steps_per_launch(self, steps: Steps) -> Self {
        self.with(move |b| b.steps_per_launch(steps))
    }

    /// Bounds the memory for images on the host; overrides `HORUS_HOST_MEMORY`. See
    /// [`SessionBuilder::host_memory`].
    pub fn host_memory(self, bytes: usize) -> Self {
        self.with(move |b| b.host_memory(bytes))
    }

    /// Evaluates automatically once so many operations are pending, or so many bytes of images are
    /// alive only because pending operations read them.
    pub fn flush_limits(self, operations: usize, bytes: usize) -> Self {
        self.with(move |b| b.flush_limits(operations, bytes))
    }

    fn with(mut self, f: impl FnOnce(SessionBuilder) -> SessionBuilder + 'static) -> Self {
        self.configure.push(Box::new(f));
        self
    }

    /// Opens the session.
    ///
    /// # Errors
    /// [`Error::Config`] if a setting cannot be honoured, or a variable of the environment
    /// ([`VARIABLES`](crate::settings::VARIABLES)) has an invalid value, even if it is not used.
    pub fn build(self) -> Result<Session> {
        settings::check()?;
        let choice = match self.device {
            Some(name) => name.parse().map_err(|why| Error::Config(format!("device {name:?}: {why}")))?,
            None => settings::DEVICE.get()?.unwrap_or_default(),
        };
        let threads = self.threads.map_or_else(|| settings::THREADS.get(), |n| Ok(Some(n)))?;
        let mode = self.mode.map_or_else(|| settings::MODE.get(), |m| Ok(Some(m)))?.unwrap_or_default();
        let comm = self.comm.map_or_else(ranks::ranks, Ok)?;
        let threads = threads.or_else(|| ranks::share_of_cores(&*comm));
        let rank_on_node = self.rank_on_node.unwrap_or(comm.local_rank());
        let local = Local { rank: rank_on_node, ranks: comm.local_size() };
        let asked = settings::WEIGHTS.get()?;
        if let DeviceChoice::Lanes(lanes) = &choice {
            if comm.size() > 1 {
                let why = "several devices of one process on several ranks: each rank computes on one device, such as `cuda`, which gives \
                           each rank of a host another GPU";
                return Err(Error::Config(why.into()));
            }
            let devices = open_lanes(lanes, threads)?;
            let weights = match (self.weights, asked) {
                (None, Some(asked)) => Some(weights::of_lanes(&asked, &devices)?),
                (given, _) => given,
            };
            return configured(CoreSession::over(devices), comm, mode, weights, self.configure);
        }
        let weights = match (self.weights, asked) {
            (None, Some(asked)) => {
                let measured = || open(&choice, threads, local);
                Some(weights::weights(&asked, &*comm, &measured)?)
            }
            (given, _) => given,
        };
        let builder = match Devices::begin(choice, threads, local, self.eager, self.steps_per_pixel)? {
            Origin::Open(device) => CoreSession::on(device),
            Origin::Later(devices) => {
                let (workers, pool) = (Arc::clone(devices.workers()), Arc::clone(devices.pool()));
                CoreSession::deferred(Arc::new(devices), workers, pool)
            }
        };
        configured(builder, comm, mode, weights, self.configure)
    }
}

/// Opens a session with all settings.
fn configured(
    builder: SessionBuilder,
    comm: Arc<dyn Communicator>,
    mode: Mode,
    weights: Option<Vec<f64>>,
    configure: Vec<Configure>,
) -> Result<Session> {
    let mut builder = builder.communicator(comm).mode(mode);
    if let Some(weights) = weights {
        builder = builder.weights(weights);
    }
    builder = builder.host_memory(settings::HOST_MEMORY.get()?.unwrap_or(usize::MAX));
    builder = builder.overlap(settings::OVERLAP.get()? == Some(Overlap::Always));
    builder = builder.transfer(settings::TRANSFER.get()?.unwrap_or_default());
    builder = builder.stencil(settings::STENCIL.get()?.unwrap_or_default());
    builder = builder.steps_per_launch(settings::STEPS.get()?.unwrap_or_default());
    let builder = configure.into_iter().fold(builder, |b, f| f(b));
    Ok(Session(builder.build()?))
}
