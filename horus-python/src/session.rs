//! Sessions, and interrupts by Ctrl-C.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use horus::prelude::Session as Open;
use horus::types::Canceller;
use horus_core::comm::{Communicator, SingleRankComm};
use pyo3::prelude::*;

use crate::any::Any;
use crate::ending::attached;
use crate::errors::{caught, detached};
use crate::files;
use crate::image::PyImage;
use crate::ranks::Mpi4pyRanks;

/// Interval at which an evaluation checks for interrupts: long enough to cost nothing.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Most texts of plans that are stored.
const MOST_PLANS: usize = 192;

/// The latest texts of plans.
#[derive(Default)]
struct PlanTexts {
    texts: VecDeque<String>,
    /// Number of texts that have not been returned.
    new: usize,
}

/// Receives reports of a running evaluation.
#[derive(Default)]
pub(crate) struct EvaluationWatch {
    canceller: OnceLock<Canceller>,
    /// The exception that a signal handler raised, such as `KeyboardInterrupt`.
    raised: Mutex<Option<PyErr>>,
    last_check: Mutex<Option<Instant>>,
    plans: Mutex<PlanTexts>,
}

impl EvaluationWatch {
    /// Runs Python's signal handlers at intervals, and cancels the evaluation if one raised an exception. Handlers run
    /// only in Python's main thread; elsewhere this does nothing.
    fn check_signals(&self) {
        let now = Instant::now();
        {
            let mut looked = lock(&self.last_check);
            if looked.is_some_and(|before| now - before < CHECK_INTERVAL) {
                return;
            }
            *looked = Some(now);
        }
        if let Some(Err(error)) = attached(|py| py.check_signals()) {
            *lock(&self.raised) = Some(error);
            self.canceller.get().into_iter().for_each(Canceller::cancel);
        }
    }

    /// The result of an evaluation, or the exception that ended it.
    pub(crate) fn finish_evaluation<R>(&self, came: PyResult<R>) -> PyResult<R> {
        let raised = lock(&self.raised).take();
        match raised {
            None => came,
            Some(error) => {
                self.canceller.get().into_iter().for_each(Canceller::clear);
                Err(error)
            }
        }
    }
}

/// Watches of the open sessions.
static OPEN: Mutex<Vec<Weak<EvaluationWatch>>> = Mutex::new(Vec::new());

fn open() -> Vec<Arc<EvaluationWatch>> {
    lock(&OPEN).iter().filter_map(Weak::upgrade).collect()
}

/// Ends all evaluations between two of their steps, and later ones immediately.
pub(crate) fn cancel_all() {
    open().iter().filter_map(|watch| watch.canceller.get()).for_each(Canceller::cancel);
}

/// Allows evaluations again.
pub(crate) fn allow_all() {
    open().iter().filter_map(|watch| watch.canceller.get()).for_each(Canceller::clear);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session of Horus.
#[pyclass(frozen, name = "Session", module = "horus_image._horus")]
pub(crate) struct PySession {
    pub(crate) open: Open,
    pub(crate) watch: Arc<EvaluationWatch>,
}

#[pymethods]
impl PySession {
    /// Opens a session on a device, with so many threads and bytes of memory; the environment sets the defaults. With
    /// `explain`, it stores the text of its plans. It runs alone, or on the ranks of a communicator of mpi4py, which
    /// compare the arrays that they are given.
    #[new]
    #[pyo3(signature = (device=None, threads=None, memory=None, explain=false, comm=None))]
    fn new(
        py: Python<'_>,
        device: Option<String>,
        threads: Option<usize>,
        memory: Option<usize>,
        explain: bool,
        comm: Option<Bound<'_, PyAny>>,
    ) -> PyResult<PySession> {
        let comm: Arc<dyn Communicator> = match comm {
            Some(comm) => Mpi4pyRanks::of(py, &comm)?,
            None => Arc::new(SingleRankComm),
        };
        let watch = Arc::new(EvaluationWatch::default());
        let (observed, told) = (Arc::clone(&watch), Arc::clone(&watch));
        let open = detached(py, move || {
            let mut builder = Open::builder().observer(move |_| observed.check_signals()).communicator(comm);
            if let Some(device) = device {
                builder = builder.device(device);
            }
            if let Some(threads) = threads {
                builder = builder.threads(threads);
            }
            if let Some(bytes) = memory {
                builder = builder.host_memory(bytes);
            }
            if explain {
                builder = builder.trace(true).explain(move |text| {
                    let mut plans = lock(&told.plans);
                    if plans.texts.len() == MOST_PLANS {
                        plans.texts.pop_front();
                    }
                    plans.texts.push_back(text.to_owned());
                    plans.new = (plans.new + 1).min(MOST_PLANS);
                });
            }
            builder.build()
        })?;
        let _ = watch.canceller.set(open.canceller());
        let mut known = lock(&OPEN);
        known.retain(|watch| watch.strong_count() > 0);
        known.push(Arc::downgrade(&watch));
        drop(known);
        Ok(PySession { open, watch })
    }

    /// The name of the device.
    fn device(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || Ok(self.open.device_name()))
    }

    /// This rank, and the number of ranks.
    fn ranks(&self) -> (usize, usize) {
        (self.open.rank(), self.open.ranks())
    }

    /// The text of the plans since the last call.
    fn plans(&self) -> Vec<String> {
        let mut plans = lock(&self.watch.plans);
        let first = plans.texts.len() - std::mem::take(&mut plans.new);
        plans.texts.range(first..).cloned().collect()
    }

    /// A page of HTML about the session, which must have been opened with `explain`.
    fn report(&self, py: Python<'_>, title: &str) -> PyResult<String> {
        let plans: Vec<String> = lock(&self.watch.plans).texts.iter().cloned().collect();
        detached(py, || self.open.report(title, &plans)).map(Option::unwrap_or_default)
    }

    /// A page of `report` with pictures, names and PNG files, beside the page of an earlier run if there is one.
    #[staticmethod]
    fn complete_report(page: &str, images: Vec<(String, Vec<u8>)>, earlier: Option<&str>) -> PyResult<String> {
        caught(|| {
            let page = horus::report::with_images(page, &images)?;
            earlier.map_or(Ok(page.clone()), |earlier| horus::report::beside(earlier, &page))
        })
    }

    /// The plans that a page of `report` draws, as SVG; empty if there are none.
    fn drawing(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || self.open.drawing()).map(Option::unwrap_or_default)
    }

    /// Evaluates everything that is recorded and still referenced.
    fn evaluate(&self, py: Python<'_>) -> PyResult<()> {
        self.watch.finish_evaluation(detached(py, || self.open.evaluate()))
    }

    /// Begins to evaluate everything that is recorded and still referenced.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.open.start();
            Ok(())
        })
    }

    /// Evaluations, launches and transfers so far.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || Ok(format!("{:?}", self.open.stats())))
    }

    /// The number of the GPU. Chooses the device if it is not chosen yet.
    fn gpu(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        if self.open.device().is_none() {
            detached(py, || self.open.settle_device())?;
        }
        Ok(self.open.gpu())
    }

    /// Current, largest and cached bytes on the host, and on each device.
    fn memory(&self, py: Python<'_>) -> PyResult<Vec<(usize, usize, usize)>> {
        let used = detached(py, || Ok(self.open.memory()))?;
        let all = std::iter::once(&used.host).chain(&used.devices);
        Ok(all.map(|memory| (memory.current, memory.peak, memory.kept)).collect())
    }

    /// Returns cached memory to the system.
    fn trim(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.open.trim())
    }

    /// Reads a picture; as a volume, all its pages.
    #[pyo3(signature = (path, page=None, volume=false, size=0, max_pixels=None))]
    fn read(
        &self,
        py: Python<'_>,
        path: PathBuf,
        page: Option<usize>,
        volume: bool,
        size: usize,
        max_pixels: Option<u64>,
    ) -> PyResult<PyImage> {
        let picture = detached(py, || files::open(&self.open, &path, page, volume, size, max_pixels))?;
        Ok(self.image(Any::try_from(picture)?))
    }
}

impl PySession {
    /// An image of this session, for Python.
    pub(crate) fn image(&self, any: Any) -> PyImage {
        PyImage::new(any, Arc::clone(&self.watch))
    }
}
