//! Programs recorded once, then replayed on other arrays or repeated on their own results.

use std::ops::ControlFlow;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use horus::error::Result;
use horus::prelude::{DType, Ending, Iterated, Norm, Session as Open, Until};
use horus::types::LoopState;
use horus_core::host::buffer::HostBuffer;
use horus_core::host::external::DeviceArray;
use horus_core::image::Checkpoints;
use horus_core::plan::ResultDelivery;
use horus_core::session::{DeviceInput, FailedReplay, Handle, Pending, Replay, ReplayInputKind, StandIns};
use horus_zarr::ZarrCheckpoints;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::any::{Any, ImageFromHandle, each};
use crate::arrays::{export_buffer, in_place};
use crate::ending::attached;
use crate::errors::detached;
use crate::foreign::{GpuArray, GpuPixels};
use crate::image::PyImage;
use crate::memory::{PyDeviceMemory, PyMemory, StridedLayout, on_gpu};
use crate::session::{EvaluationWatch, PySession};

/// Placeholder images, on which a program that will be repeated is recorded.
#[pyclass(frozen, name = "Recording", module = "horus_image._horus")]
pub(crate) struct PyRecording {
    stand_ins: StandIns,
    watch: Arc<EvaluationWatch>,
    kinds: Vec<(DType, ImageFromHandle)>,
}

#[pymethods]
impl PyRecording {
    #[new]
    fn new(py: Python<'_>, session: &PySession, images: Vec<PyRef<'_, PyImage>>) -> PyResult<PyRecording> {
        let given = handles(&images);
        let stand_ins = detached(py, || Ok(StandIns::new(&session.open, &given, Location::caller())))?;
        let kinds = images.iter().map(|image| (image.any.dtype(), image.any.handle_converter())).collect();
        Ok(PyRecording { stand_ins, watch: Arc::clone(&session.watch), kinds })
    }

    /// The images to record on, in the order of the given images.
    fn images(&self) -> Vec<PyImage> {
        let all = self.stand_ins.handles().iter().zip(&self.kinds);
        all.map(|(handle, (_, behind))| PyImage::new(behind(handle.clone()), Arc::clone(&self.watch))).collect()
    }

    /// What the program computes from the only image, for each level of a volume: images whose levels are the results for
    /// its levels. `None` if the program is not computed level by level.
    fn stacked(
        &self,
        py: Python<'_>,
        session: &PySession,
        results: Vec<PyRef<'_, PyImage>>,
        volume: &PyImage,
    ) -> PyResult<Option<Vec<PyImage>>> {
        let mut levels = handles(&results);
        each!(&volume.any, image => image.handles(&mut levels));
        let found = detached(py, || {
            let (volume, wanted) = levels.split_last().expect("a volume has a handle");
            Ok(session.open.stacked(wanted, &self.stand_ins, volume))
        })?;
        let image = |(handle, result): (Handle, &PyRef<'_, PyImage>)| {
            PyImage::new(result.any.handle_converter()(handle), Arc::clone(&self.watch))
        };
        Ok(found.map(|found| found.into_iter().zip(&results).map(image).collect()))
    }

    /// True once the program has read one of them, or a value computed from them.
    fn looked_into(&self, py: Python<'_>) -> PyResult<bool> {
        detached(py, || Ok(self.stand_ins.looked_into()))
    }
}

/// A program and its plan, ready to run on arrays of the types and shapes that it was recorded for.
#[pyclass(frozen, name = "Program", module = "horus_image._horus")]
pub(crate) struct PyProgram {
    session: Open,
    watch: Arc<EvaluationWatch>,
    replay: Mutex<Replay>,
    inputs: Vec<DType>,
    results: Vec<(DType, StridedLayout)>,
}

fn handles<'a>(images: &'a [PyRef<'_, PyImage>]) -> Vec<&'a Handle> {
    let mut all = Vec::new();
    images.iter().for_each(|image| each!(&image.any, image => image.handles(&mut all)));
    all
}

/// The buffers of results, in order.
fn wait_for_buffers(pending: Pending) -> Result<Vec<HostBuffer>> {
    let missing = || horus::error::Error::Lost("another rank has the result".into());
    let buffer = |buffer: Option<Arc<HostBuffer>>| {
        Ok(Arc::try_unwrap(buffer.ok_or_else(missing)?).unwrap_or_else(|shared| (*shared).clone()))
    };
    pending.wait()?.into_iter().map(buffer).collect()
}

/// The results as memory of the calling program.
fn wait_for_memories(pending: Pending, kinds: &[(DType, StridedLayout)]) -> Result<Vec<PyMemory>> {
    let buffers = wait_for_buffers(pending)?.into_iter();
    Ok(buffers.zip(kinds).map(|(buffer, (dtype, layout))| PyMemory::owned(buffer, *dtype, layout.clone())).collect())
}

#[pymethods]
impl PyProgram {
    /// Evaluates results that this thread recorded for images of arrays, or of a GPU. Stores the executable if it can
    /// be replayed.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        session: &PySession,
        recording: &PyRecording,
        results: Vec<PyRef<'_, PyImage>>,
        layouts: Vec<StridedLayout>,
        on_gpu: bool,
    ) -> PyResult<(Option<PyProgram>, Vec<PyMemory>)> {
        let kinds: Vec<DType> = recording.kinds.iter().map(|(dtype, _)| *dtype).collect();
        let made: Vec<_> = results.iter().map(|image| image.any.dtype()).zip(layouts).collect();
        let (wanted, stand_ins) = (handles(&results), &recording.stand_ins);
        let (looked, whose) =
            (stand_ins.looked(), if on_gpu { ReplayInputKind::Images } else { ReplayInputKind::Pixels });
        let evaluated = detached(py, || {
            let (pending, replay) =
                session.open.begin_repeatable(&wanted, stand_ins, ResultDelivery::Everyone, whose)?;
            Ok((wait_for_memories(pending, &made)?, replay.filter(|_| !looked)))
        });
        let (memories, replay) = session.watch.finish_evaluation(evaluated)?;
        let (open, watch) = (session.open.clone(), Arc::clone(&session.watch));
        let keep =
            |replay| PyProgram { session: open, watch, replay: Mutex::new(replay), inputs: kinds, results: made };
        Ok((replay.map(keep), memories))
    }

    /// Runs the program on arrays in C order; `None` if it should be recorded again.
    fn run(&self, py: Python<'_>, arrays: Vec<Bound<'_, PyAny>>) -> PyResult<Option<Vec<PyMemory>>> {
        self.run_on_arrays(py, &arrays, |results| wait_for_memories(results, &self.results))
    }

    /// Runs the program of one array and one result; returns an array of the result's pixels.
    fn run_one<'py>(&self, py: Python<'py>, array: Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.run_on_arrays(py, &[array], wait_for_buffers)?;
        self.only_result(py, found)
    }

    /// Runs the program of one array on a GPU and one result; returns an array of the result's pixels.
    fn run_on_gpu<'py>(&self, py: Python<'py>, array: &GpuArray) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(pixels) = array.extents().and_then(|shape| array.pixels(py, shape)) else { return Ok(None) };
        let found = detached(py, || {
            let mut replay = self.replay.lock().unwrap_or_else(PoisonError::into_inner);
            self.session.repeat_and_read(&mut replay, &[pixels.input()])?.map(wait_for_buffers).transpose()
        });
        let found = self.watch.finish_evaluation(found)?;
        self.only_result(py, found)
    }
}

impl PyProgram {
    /// An array of the pixels of the only result.
    fn only_result<'py>(&self, py: Python<'py>, found: Option<Vec<HostBuffer>>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match (found.and_then(|mut buffers| buffers.pop()), self.results.first()) {
            (Some(buffer), Some((dtype, layout))) => export_buffer(py, buffer, *dtype, layout.clone()).map(Some),
            _ => Ok(None),
        }
    }

    /// Runs the program, and converts its results while other Python threads run.
    fn run_on_arrays<R: Send>(
        &self,
        py: Python<'_>,
        arrays: &[Bound<'_, PyAny>],
        read: impl FnOnce(Pending) -> Result<R> + Send,
    ) -> PyResult<Option<R>> {
        let mut pixels = Vec::with_capacity(arrays.len());
        for (array, dtype) in arrays.iter().zip(&self.inputs) {
            let Some(external) = in_place(array, *dtype)? else { return Ok(None) };
            pixels.push(self.session.external(external));
        }
        let ran = detached(py, || {
            let mut replay = self.replay.lock().unwrap_or_else(PoisonError::into_inner);
            match self.session.repeat(&mut replay, pixels) {
                Ok(pending) => read(pending).map(Some),
                Err(refused) => {
                    let FailedReplay { error, .. } = *refused;
                    error.map_or(Ok(None), Err)
                }
            }
        });
        self.watch.finish_evaluation(ran)
    }
}

/// The pixels of several images of a session, evaluated together, with these extents and strides (in pixels).
#[pyfunction]
pub(crate) fn get_all(
    py: Python<'_>,
    session: &PySession,
    images: Vec<PyRef<'_, PyImage>>,
    layouts: Vec<StridedLayout>,
) -> PyResult<Vec<PyMemory>> {
    let kinds: Vec<_> = images.iter().map(|image| image.any.dtype()).zip(layouts).collect();
    let wanted = handles(&images);
    let read = || wait_for_memories(session.open.begin_all(&wanted, ResultDelivery::Everyone)?, &kinds);
    session.watch.finish_evaluation(detached(py, read))
}

/// A program and its plan, ready to run on images of the recorded types, shapes and places.
#[pyclass(frozen, name = "ImageProgram", module = "horus_image._horus")]
pub(crate) struct PyImageProgram {
    session: Open,
    watch: Arc<EvaluationWatch>,
    replay: Mutex<Replay>,
    results: Vec<(ImageFromHandle, StridedLayout)>,
}

/// An input of a program of images: an image of the session, or an array that becomes one for a run.
#[derive(FromPyObject)]
enum ProgramInput<'py> {
    #[pyo3(transparent)]
    Array(PyRef<'py, GpuArray>),
    #[pyo3(transparent)]
    Image(PyRef<'py, PyImage>),
}

/// A [`ProgramInput`] without Python objects.
enum DetachedInput<'a> {
    Array(GpuPixels),
    Image(&'a Any),
}

impl ProgramInput<'_> {
    /// The input; `None` if it cannot be read in place.
    fn detach(&self, py: Python<'_>) -> Option<DetachedInput<'_>> {
        match self {
            ProgramInput::Array(array) => array.pixels(py, array.extents()?).map(DetachedInput::Array),
            ProgramInput::Image(image) => Some(DetachedInput::Image(&image.any)),
        }
    }
}

#[pymethods]
impl PyImageProgram {
    /// Evaluates results that this thread recorded for images, where they are. Stores the executable if it can be
    /// replayed; the results of later runs have these layouts.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        session: &PySession,
        recording: &PyRecording,
        results: Vec<PyRef<'_, PyImage>>,
        layouts: Vec<StridedLayout>,
    ) -> PyResult<Option<PyImageProgram>> {
        let kinds = results.iter().map(|image| image.any.handle_converter()).zip(layouts).collect();
        let (wanted, stand_ins) = (handles(&results), &recording.stand_ins);
        let looked = stand_ins.looked();
        let replay = detached(py, || session.open.keep_repeatable(&wanted, stand_ins));
        let (open, watch) = (session.open.clone(), Arc::clone(&session.watch));
        let keep = |replay| PyImageProgram { session: open, watch, replay: Mutex::new(replay), results: kinds };
        Ok(session.watch.finish_evaluation(replay)?.filter(|_| !looked).map(keep))
    }

    /// Runs the program on evaluated images, and arrays on a GPU; `None` if it should be recorded again. Its results
    /// are evaluated.
    fn run(&self, py: Python<'_>, inputs: Vec<ProgramInput<'_>>) -> PyResult<Option<Vec<(PyImage, PyDeviceMemory)>>> {
        let given: Option<Vec<_>> = inputs.iter().map(|input| input.detach(py)).collect();
        let Some(given) = given else { return Ok(None) };
        let ran = detached(py, || {
            let mut inputs = Vec::with_capacity(given.len());
            for input in &given {
                match input {
                    DetachedInput::Array(pixels) => inputs.push(pixels.input()),
                    DetachedInput::Image(any) => {
                        let mut handles = Vec::new();
                        each!(any, image => image.handles(&mut handles));
                        inputs.extend(handles.into_iter().map(DeviceInput::Image));
                    }
                }
            }
            let mut replay = self.replay.lock().unwrap_or_else(PoisonError::into_inner);
            self.session.repeat_on(&mut replay, &inputs)
        });
        let Some(found) = self.watch.finish_evaluation(ran)? else { return Ok(None) };
        let one = |(handle, (behind, layout)): (Handle, &(ImageFromHandle, StridedLayout))| {
            let image = PyImage::new(behind(handle), Arc::clone(&self.watch));
            let how = (false, Some(DeviceArray::DEFAULT_STREAM));
            let memory = each!(&image.any, typed => on_gpu(py, &image, typed, layout.clone(), how))?;
            Ok((image, memory))
        };
        found.into_iter().zip(&self.results).map(one).collect::<PyResult<_>>().map(Some)
    }
}

/// The state of a loop: images of any types.
struct PyLoopState(Vec<Any>);

impl LoopState for PyLoopState {
    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.0.iter().for_each(|any| each!(any, image => image.handles(to)));
    }

    fn with(&self, from: &mut dyn Iterator<Item = Handle>) -> PyLoopState {
        let next = |any: &Any| any.handle_converter()(from.next().expect("an image for each of the state"));
        PyLoopState(self.0.iter().map(next).collect())
    }
}

/// Calls Python between two iterations, and stores its exception for the end.
struct StepCaller<'a> {
    watch: &'a Arc<EvaluationWatch>,
    raised: Mutex<Option<PyErr>>,
}

impl StepCaller<'_> {
    fn store_exception<R>(&self, came: PyResult<R>) -> Option<R> {
        match came {
            Ok(found) => Some(found),
            Err(error) => {
                self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                None
            }
        }
    }

    fn images(&self, state: &PyLoopState) -> Vec<PyImage> {
        state.0.iter().map(|any| PyImage::new(any.clone(), Arc::clone(self.watch))).collect()
    }

    /// The next state, or a state that carries an error.
    fn step(&self, step: &Py<PyAny>, state: &PyLoopState) -> PyLoopState {
        let called = attached(|py| -> PyResult<PyLoopState> {
            let found = step.bind(py).call1((self.images(state),))?;
            let next: Vec<PyRef<'_, PyImage>> = found.extract()?;
            Ok(PyLoopState(next.iter().map(|image| image.any.clone()).collect()))
        });
        called.and_then(|called| self.store_exception(called)).unwrap_or_else(|| {
            let one = |(i, any): (usize, &Any)| if i == 0 { any.failed() } else { any.clone() };
            PyLoopState(state.0.iter().enumerate().map(one).collect())
        })
    }

    /// Returns `Continue` if the loop continues.
    fn call_observer(&self, look: &Py<PyAny>, step: usize, state: &PyLoopState) -> ControlFlow<()> {
        let called = attached(|py| look.bind(py).call1((step, self.images(state)))?.is_truthy());
        match called.and_then(|called| self.store_exception(called)) {
            Some(false) => ControlFlow::Continue(()),
            Some(true) | None => ControlFlow::Break(()),
        }
    }
}

/// The state, the number of iterations, the last change, and the reason for the end of the loop.
type IterateResult = (Vec<PyImage>, usize, Option<f64>, &'static str);

/// The most iterations, the bound on the change, its measure, and the interval of measuring in iterations.
type StoppingRule = (usize, Option<f64>, String, usize);

/// Iterates a function that takes images and returns as many, until the given number of iterations is reached or the
/// change of an iteration is below a bound. `look` is called with number and state at an interval; a true result ends the
/// loop. `checkpoints` are the path of a store, an interval, and whether the loop continues from the last one.
#[pyfunction]
#[pyo3(signature = (session, state, step, ends, look, checkpoints))]
pub(crate) fn iterate(
    py: Python<'_>,
    session: &PySession,
    state: Vec<PyRef<'_, PyImage>>,
    step: Py<PyAny>,
    ends: StoppingRule,
    look: Option<(Py<PyAny>, usize)>,
    checkpoints: Option<(PathBuf, usize, bool)>,
) -> PyResult<IterateResult> {
    let (steps, below, norm, every) = ends;
    let norm = match norm.as_str() {
        "max" => Norm::Max,
        "rms" => Norm::Rms,
        "l2" => Norm::L2,
        other => {
            return Err(PyValueError::new_err(format!("norm is {other:?}; there are \"max\", \"rms\" and \"l2\"")));
        }
    };
    let until = match below {
        Some(bound) => Until::below(bound, steps).norm(norm).every(every),
        None => Until::steps(steps),
    };
    let initial = PyLoopState(state.iter().map(|image| image.any.clone()).collect());
    drop(state);
    let caller = StepCaller { watch: &session.watch, raised: Mutex::default() };
    let run = || {
        let step = |state: &PyLoopState| caller.step(&step, state);
        let mut watch = look.as_ref().map(|(look, every)| {
            (*every, |steps: usize, state: &PyLoopState| Ok(caller.call_observer(look, steps, state)))
        });
        match (&checkpoints, &mut watch) {
            (Some((path, every, resumes)), watch) => {
                let checkpoints = Checkpoints::new(ZarrCheckpoints::at(path), *every).resume(*resumes);
                let watch = watch.as_mut().map(|(every, watch)| (*every, watch as _));
                session.open.iterate_checkpointed(initial, until, step, &checkpoints, watch)
            }
            (None, Some((every, watch))) => session.open.iterate_watched(initial, until, step, *every, watch),
            (None, None) => session.open.iterate(initial, until, step),
        }
    };
    let ran = session.watch.finish_evaluation(detached(py, run));
    if let Some(error) = caller.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    let Iterated { state, steps, change, ending } = ran?;
    let ending = match ending {
        Ending::Steps => "steps",
        Ending::Converged => "converged",
        Ending::Diverged => "diverged",
        Ending::Stopped => "stopped",
    };
    Ok((caller.images(&state), steps, change, ending))
}
