//! The session type for users, which chooses the device.

use std::io::Write as _;
use std::ops::Deref;
use std::sync::Arc;

use horus_core::comm::Communicator;
use horus_core::error::{Error, Result};
use horus_core::session::{Session as CoreSession, Settings};
use horus_core::session_settings;
use horus_core::settings::{self, DEVICE, DeviceChoice, THREADS, WEIGHTS};

use crate::devices::{DeviceSelection, DeviceSource, RankOnNode, open, open_devices};
use crate::{ranks, weights};

/// An open session: it owns images and runs programs on its device. Cheap to clone.
// Wraps the core's session and adds the choice of a device; users see only this type.
#[derive(Clone, Debug)]
pub struct Session(CoreSession);

impl Session {
    /// Opens a session on the best available device: the GPU or the CPU, whichever is predicted to
    /// finish the first evaluated program sooner, including the start of a GPU. The choice is made
    /// at the first evaluation, holds for the whole session and all ranks, and is logged.
    ///
    /// Environment variables override the choice ([`settings`](crate::settings)). Collective: all
    /// ranks open sessions together.
    ///
    /// # Errors
    /// [`Error::Config`] if the environment requests a device that does not exist. An unusable GPU
    /// may only be reported by the first evaluation.
    pub fn new() -> Result<Session> {
        Session::builder().build()
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Ends the process with this status. The system frees device memory, kernels and the driver's
    /// context, faster than destructors would. Destructors do not run and other threads stop, so
    /// write all output before. Standard output is flushed; if that fails, the status is at least
    /// 1.
    ///
    /// Under a launcher such as `mpirun` the session is closed first, and the process ends as with
    /// [`std::process::exit`], which finalises MPI.
    pub fn leave(self, status: u8) -> ! {
        let flushed = std::io::stdout().flush();
        log::logger().flush();
        let status = i32::from(if flushed.is_err() { status.max(1) } else { status });
        if self.ranks() > 1 || ranks::is_launched() {
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

/// Settings of a [`Session`]. The environment sets the defaults.
#[must_use]
pub struct Builder {
    device: Option<String>,
    threads: Option<usize>,
    comm: Option<Arc<dyn Communicator>>,
    /// A session whose devices and ranks are used.
    beside: Option<CoreSession>,
    rank_on_node: Option<usize>,
    eager: bool,
    steps_per_pixel: f64,
    settings: Settings,
    /// The outcome of reading the environment.
    environment: Result<()>,
}

impl Default for Builder {
    fn default() -> Builder {
        let checked = settings::check();
        // `auto` ignores a GPU that cannot be opened, but not an invalid setting.
        #[cfg(feature = "cuda")]
        let checked = checked.and_then(|()| horus_cuda::tuning::check());
        let (settings, environment) = match checked.and_then(|()| Settings::of_environment()) {
            Ok(settings) => (settings, Ok(())),
            Err(error) => (Settings::default(), Err(error)),
        };
        let (device, threads, comm, beside, rank_on_node) = Default::default();
        Builder {
            device,
            threads,
            comm,
            beside,
            rank_on_node,
            eager: false,
            steps_per_pixel: 0.0,
            settings,
            environment,
        }
    }
}

impl Builder {
    /// Sets the device: `auto` (the GPU or the CPU, whichever is predicted to finish the first
    /// evaluated program sooner), `cpu`, `cuda` or `cuda:N`; or several devices, as
    /// [`Builder::devices`] takes them: `cuda:all`, `cuda:0,1`, `cuda:0+cpu`.
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// Sets several devices of this process: `cpu`, `cuda:N` or `cuda:all`. Each computes a strip
    /// of every image, and copies its strip from and to the program's arrays. Rows are divided by
    /// the predicted speed of each device, or by [`Builder::weights`], one per device. A program
    /// that is predicted to be faster on the first device alone runs there. Not available under
    /// `mpirun`.
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

    /// Sets the number of threads of the CPU device, or of copies to and from a GPU (at most 16).
    /// Default: one per core, divided among the ranks that share the cores. Results do not depend
    /// on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Opens the device immediately, and with `auto` a GPU if there is one. Use it for
    /// measurements, and for programs that do little at first and much later. By default a GPU is
    /// opened in the background; the first evaluation waits for it and reports errors.
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

    /// Runs on the ranks of `comm` (default: [`ranks`](crate::ranks)).
    pub fn communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.comm = Some(comm);
        self
    }

    /// Uses the devices and ranks of an open session that has chosen its devices; settings of devices are ignored.
    #[doc(hidden)]
    pub fn beside(mut self, session: &Session) -> Self {
        self.beside = Some(session.0.clone());
        self
    }

    /// Sets this rank's index among the ranks of its node, which selects a GPU if none is named
    /// (default: given by the communicator).
    pub fn rank_on_node(mut self, rank: usize) -> Self {
        self.rank_on_node = Some(rank);
        self
    }

    session_settings!();

    /// Opens the session.
    ///
    /// # Errors
    /// [`Error::Config`] if a setting cannot be honoured, or a variable of the environment
    /// ([`VARIABLES`](crate::settings::VARIABLES)) has an invalid value, even if it is not used.
    pub fn build(self) -> Result<Session> {
        self.environment?;
        let mut settings = self.settings;
        if let Some(session) = self.beside {
            return session.open_beside(settings).map(Session);
        }
        let choice = match self.device {
            Some(name) => name.parse().map_err(|why| Error::Config(format!("device {name:?}: {why}")))?,
            None => DEVICE.get()?.unwrap_or_default(),
        };
        let threads = self.threads.map_or_else(|| THREADS.get(), |n| Ok(Some(n)))?;
        let comm = match self.comm {
            Some(comm) => comm,
            None if self.rank_on_node.is_some() => ranks::ranks()?,
            None => ranks::joined(&choice)?,
        };
        let threads = threads.or_else(|| ranks::share_of_cores(&*comm));
        let rank_on_node = self.rank_on_node.unwrap_or(comm.local_rank());
        let local = RankOnNode { rank: rank_on_node, ranks: comm.local_size() };
        let asked = WEIGHTS.get()?;
        if let DeviceChoice::Several(lanes) = &choice {
            if comm.size() > 1 {
                let why = "several devices of one process on several ranks: each rank computes on one device, such as `cuda`, which gives \
                           each rank of a host another GPU";
                return Err(Error::Config(why.into()));
            }
            let devices = open_devices(lanes, threads)?;
            if let (None, Some(asked)) = (&settings.weights, asked) {
                settings.weights = Some(weights::device_weights(&asked, &devices)?);
            }
            return Ok(Session(CoreSession::over(devices).communicator(comm).settings(settings).build()?));
        }
        if let (None, Some(asked)) = (&settings.weights, asked) {
            let measured = || open(&choice, threads, local);
            settings.weights = Some(weights::rank_weights(&asked, &*comm, &measured)?);
        }
        let builder = match DeviceSelection::begin(choice, threads, local, self.eager, self.steps_per_pixel)? {
            DeviceSource::Open(device) => CoreSession::on(device),
            DeviceSource::Deferred(devices) => {
                let (workers, pool) = (Arc::clone(devices.workers()), Arc::clone(devices.pool()));
                CoreSession::deferred(Arc::new(devices), workers, pool)
            }
        };
        Ok(Session(builder.communicator(comm).settings(settings).build()?))
    }
}
