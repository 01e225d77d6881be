//! Programs recorded once, then run again on other arrays or repeated on their own results.

use std::ops::ControlFlow;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use horus::error::Result;
use horus::prelude::{DType, Ending, Iterated, Norm, Session as Open, Until};
use horus::types::LoopState;
use horus_core::host::buffer::HostBuffer;
use horus_core::host::external::DeviceArray;
use horus_core::plan::Want;
use horus_core::session::{Handle, Pending, Refused, Replay, StandIns, Whose};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::any::{Any, Behind, each};
use crate::arrays::{handed, in_place};
use crate::ending::attached;
use crate::errors::detached;
use crate::foreign::{GpuArray, GpuPixels};
use crate::image::Image;
use crate::memory::{DeviceMemory, Layout, Memory, on_gpu};
use crate::session::{Session, Watch};

/// Stand-ins for images, on which a program is recorded that is to be repeated.
#[pyclass(frozen, module = "horus_image._horus")]
pub(crate) struct Recording {
    stand_ins: StandIns,
    watch: Arc<Watch>,
    kinds: Vec<(DType, Behind)>,
}

#[pymethods]
impl Recording {
    #[new]
    fn new(py: Python<'_>, session: &Session, images: Vec<PyRef<'_, Image>>) -> PyResult<Recording> {
        let given = handles(&images);
        let stand_ins = detached(py, || Ok(StandIns::new(&session.open, &given, Location::caller())))?;
        let kinds = images.iter().map(|image| (image.any.dtype(), image.any.behind())).collect();
        Ok(Recording { stand_ins, watch: Arc::clone(&session.watch), kinds })
    }

    /// The images to record on, in the order of those given.
    fn images(&self) -> Vec<Image> {
        let all = self.stand_ins.handles().iter().zip(&self.kinds);
        all.map(|(handle, (_, behind))| Image::new(behind(handle.clone()), Arc::clone(&self.watch))).collect()
    }

    /// True once the program has looked at one of them or at a value computed from them.
    fn looked_into(&self, py: Python<'_>) -> PyResult<bool> {
        detached(py, || Ok(self.stand_ins.looked_into()))
    }
}

/// A program and its plan, ready to run on arrays of the types and shapes that it was recorded for.
#[pyclass(frozen, module = "horus_image._horus")]
pub(crate) struct Program {
    session: Open,
    watch: Arc<Watch>,
    replay: Mutex<Replay>,
    inputs: Vec<DType>,
    results: Vec<(DType, Layout)>,
}

fn handles<'a>(images: &'a [PyRef<'_, Image>]) -> Vec<&'a Handle> {
    let mut all = Vec::new();
    images.iter().for_each(|image| each!(&image.any, image => image.handles(&mut all)));
    all
}

/// The buffers of results, in order.
fn landed(pending: Pending) -> Result<Vec<HostBuffer>> {
    let missing = || horus::error::Error::Lost("another rank has the result".into());
    let buffer = |buffer: Option<Arc<HostBuffer>>| {
        Ok(Arc::try_unwrap(buffer.ok_or_else(missing)?).unwrap_or_else(|shared| (*shared).clone()))
    };
    pending.wait()?.into_iter().map(buffer).collect()
}

/// The results as memory of the calling program.
fn memories(pending: Pending, kinds: &[(DType, Layout)]) -> Result<Vec<Memory>> {
    let buffers = landed(pending)?.into_iter();
    Ok(buffers.zip(kinds).map(|(buffer, (dtype, layout))| Memory::owned(buffer, *dtype, layout.clone())).collect())
}

#[pymethods]
impl Program {
    /// Evaluates results that this thread recorded for images of arrays, or of a GPU, and keeps how, if that can be repeated.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        session: &Session,
        recording: &Recording,
        results: Vec<PyRef<'_, Image>>,
        layouts: Vec<Layout>,
        on_gpu: bool,
    ) -> PyResult<(Option<Program>, Vec<Memory>)> {
        let kinds: Vec<DType> = recording.kinds.iter().map(|(dtype, _)| *dtype).collect();
        let made: Vec<_> = results.iter().map(|image| image.any.dtype()).zip(layouts).collect();
        let (wanted, stand_ins) = (handles(&results), &recording.stand_ins);
        let (looked, whose) = (stand_ins.looked(), if on_gpu { Whose::Images } else { Whose::Pixels });
        let evaluated = detached(py, || {
            let (pending, replay) = session.open.begin_repeatable(&wanted, stand_ins, Want::Everyone, whose)?;
            Ok((memories(pending, &made)?, replay.filter(|_| !looked)))
        });
        let (memories, replay) = session.watch.after(evaluated)?;
        let (open, watch) = (session.open.clone(), Arc::clone(&session.watch));
        let keep = |replay| Program { session: open, watch, replay: Mutex::new(replay), inputs: kinds, results: made };
        Ok((replay.map(keep), memories))
    }

    /// Runs the program on arrays in C order; `None` if it should be recorded again.
    fn run(&self, py: Python<'_>, arrays: Vec<Bound<'_, PyAny>>) -> PyResult<Option<Vec<Memory>>> {
        self.ran(py, &arrays, |results| memories(results, &self.results))
    }

    /// Runs the program of one array and one result, an array that holds its pixels.
    fn run_one<'py>(&self, py: Python<'py>, array: Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.ran(py, &[array], landed)?;
        self.only(py, found)
    }

    /// Runs the program of one array on a GPU and one result, an array that holds its pixels.
    fn run_on_gpu<'py>(&self, py: Python<'py>, array: &GpuArray) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(pixels) = array.extents().and_then(|shape| array.pixels(py, shape)) else { return Ok(None) };
        let found = detached(py, || {
            let image = pixels.image(&self.session, false)?;
            let mut inputs = Vec::new();
            each!(&image, image => image.handles(&mut inputs));
            let mut replay = self.replay.lock().unwrap_or_else(PoisonError::into_inner);
            self.session.repeat_and_read(&mut replay, &inputs)?.map(landed).transpose()
        });
        let found = self.watch.after(found)?;
        self.only(py, found)
    }
}

impl Program {
    /// An array that holds the pixels of the only result.
    fn only<'py>(&self, py: Python<'py>, found: Option<Vec<HostBuffer>>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match (found.and_then(|mut buffers| buffers.pop()), self.results.first()) {
            (Some(buffer), Some((dtype, layout))) => handed(py, buffer, *dtype, layout.clone()).map(Some),
            _ => Ok(None),
        }
    }

    /// Runs the program, and converts its results while other Python threads run.
    fn ran<R: Send>(
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
                    let Refused { error, .. } = *refused;
                    error.map_or(Ok(None), Err)
                }
            }
        });
        self.watch.after(ran)
    }
}

/// The pixels of several images of a session, evaluated together, with these extents and strides (in pixels).
#[pyfunction]
pub(crate) fn get_all(
    py: Python<'_>,
    session: &Session,
    images: Vec<PyRef<'_, Image>>,
    layouts: Vec<Layout>,
) -> PyResult<Vec<Memory>> {
    let kinds: Vec<_> = images.iter().map(|image| image.any.dtype()).zip(layouts).collect();
    let wanted = handles(&images);
    let read = || memories(session.open.begin_all(&wanted, Want::Everyone)?, &kinds);
    session.watch.after(detached(py, read))
}

/// A program and its plan, ready to run on images of the recorded types, shapes and places.
#[pyclass(frozen, module = "horus_image._horus")]
pub(crate) struct ImageProgram {
    session: Open,
    watch: Arc<Watch>,
    replay: Mutex<Replay>,
    results: Vec<(Behind, Layout)>,
}

/// An input of a program of images: an image of the session, or an array that becomes one for a
/// run.
#[derive(FromPyObject)]
enum Input<'py> {
    #[pyo3(transparent)]
    Array(PyRef<'py, GpuArray>),
    #[pyo3(transparent)]
    Image(PyRef<'py, Image>),
}

/// An [`Input`] apart from Python.
enum Apart<'a> {
    Array(GpuPixels),
    Image(&'a Any),
}

impl Input<'_> {
    /// The input; `None` if it cannot be read in place.
    fn apart(&self, py: Python<'_>) -> Option<Apart<'_>> {
        match self {
            Input::Array(array) => array.pixels(py, array.extents()?).map(Apart::Array),
            Input::Image(image) => Some(Apart::Image(&image.any)),
        }
    }
}

#[pymethods]
impl ImageProgram {
    /// Evaluates results that this thread recorded for images, where they are, and keeps how, if that can be repeated; the results of
    /// later runs have these layouts.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        session: &Session,
        recording: &Recording,
        results: Vec<PyRef<'_, Image>>,
        layouts: Vec<Layout>,
    ) -> PyResult<Option<ImageProgram>> {
        let kinds = results.iter().map(|image| image.any.behind()).zip(layouts).collect();
        let (wanted, stand_ins) = (handles(&results), &recording.stand_ins);
        let looked = stand_ins.looked();
        let replay = detached(py, || session.open.keep_repeatable(&wanted, stand_ins));
        let (open, watch) = (session.open.clone(), Arc::clone(&session.watch));
        let keep = |replay| ImageProgram { session: open, watch, replay: Mutex::new(replay), results: kinds };
        Ok(session.watch.after(replay)?.filter(|_| !looked).map(keep))
    }

    /// Runs the program on evaluated images, and arrays on a GPU; `None` if it should be recorded again. Its results are evaluated.
    fn run(&self, py: Python<'_>, inputs: Vec<Input<'_>>) -> PyResult<Option<Vec<(Image, DeviceMemory)>>> {
        let given: Option<Vec<_>> = inputs.iter().map(|input| input.apart(py)).collect();
        let Some(given) = given else { return Ok(None) };
        let ran = detached(py, || {
            let image = |input: &Apart<'_>| match input {
                Apart::Array(pixels) => pixels.image(&self.session, false),
                Apart::Image(any) => Ok((*any).clone()),
            };
            let images = given.iter().map(image).collect::<Result<Vec<Any>>>()?;
            let mut inputs = Vec::with_capacity(images.len());
            images.iter().for_each(|any| each!(any, image => image.handles(&mut inputs)));
            let mut replay = self.replay.lock().unwrap_or_else(PoisonError::into_inner);
            self.session.repeat_on(&mut replay, &inputs)
        });
        let Some(found) = self.watch.after(ran)? else { return Ok(None) };
        let one = |(handle, (behind, layout)): (Handle, &(Behind, Layout))| {
            let image = Image::new(behind(handle), Arc::clone(&self.watch));
            let how = (false, Some(DeviceArray::DEFAULT_STREAM));
            let memory = each!(&image.any, typed => on_gpu(py, &image, typed, layout.clone(), how))?;
            Ok((image, memory))
        };
        found.into_iter().zip(&self.results).map(one).collect::<PyResult<_>>().map(Some)
    }
}

/// The state of a loop: images of any types.
struct State(Vec<Any>);

impl LoopState for State {
    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.0.iter().for_each(|any| each!(any, image => image.handles(to)));
    }

    fn with(&self, from: &mut dyn Iterator<Item = Handle>) -> State {
        let next = |any: &Any| any.behind()(from.next().expect("an image for each of the state"));
        State(self.0.iter().map(next).collect())
    }
}

/// Calls Python between two steps, and keeps its exception for the end.
struct Caller<'a> {
    watch: &'a Arc<Watch>,
    raised: Mutex<Option<PyErr>>,
}

impl Caller<'_> {
    fn keep<R>(&self, came: PyResult<R>) -> Option<R> {
        match came {
            Ok(found) => Some(found),
            Err(error) => {
                self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                None
            }
        }
    }

    fn images(&self, state: &State) -> Vec<Image> {
        state.0.iter().map(|any| Image::new(any.clone(), Arc::clone(self.watch))).collect()
    }

    /// The next state, or one that carries an error.
    fn step(&self, step: &Py<PyAny>, state: &State) -> State {
        let called = attached(|py| -> PyResult<State> {
            let found = step.bind(py).call1((self.images(state),))?;
            let next: Vec<PyRef<'_, Image>> = found.extract()?;
            Ok(State(next.iter().map(|image| image.any.clone()).collect()))
        });
        called.and_then(|called| self.keep(called)).unwrap_or_else(|| {
            let one = |(i, any): (usize, &Any)| if i == 0 { any.failed() } else { any.clone() };
            State(state.0.iter().enumerate().map(one).collect())
        })
    }

    /// Returns `Continue` if the loop goes on.
    fn look(&self, look: &Py<PyAny>, step: usize, state: &State) -> ControlFlow<()> {
        let called = attached(|py| look.bind(py).call1((step, self.images(state)))?.is_truthy());
        match called.and_then(|called| self.keep(called)) {
            Some(false) => ControlFlow::Continue(()),
            Some(true) | None => ControlFlow::Break(()),
        }
    }
}

/// The state, the number of steps, the last change, and the reason for the end of the loop.
type Made = (Vec<Image>, usize, Option<f64>, &'static str);

/// The most steps, the bound on the change, its measure, and the interval of measuring in steps.
type Ends = (usize, Option<f64>, String, usize);

/// Repeats a step, which takes images and returns as many, until the given number of steps is made
/// or the change of one is below a bound. `look` gets number and state at the same interval, and a
/// true result ends the loop.
#[pyfunction]
#[pyo3(signature = (session, state, step, ends, look))]
pub(crate) fn iterate(
    py: Python<'_>,
    session: &Session,
    state: Vec<PyRef<'_, Image>>,
    step: Py<PyAny>,
    ends: Ends,
    look: Option<(Py<PyAny>, usize)>,
) -> PyResult<Made> {
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
    let initial = State(state.iter().map(|image| image.any.clone()).collect());
    drop(state);
    let caller = Caller { watch: &session.watch, raised: Mutex::default() };
    let run = || {
        let step = |state: &State| caller.step(&step, state);
        match &look {
            None => session.open.iterate(initial, until, step),
            Some((look, watched)) => {
                let look = |steps: usize, state: &State| Ok(caller.look(look, steps, state));
                session.open.iterate_watched(initial, until, step, *watched, look)
            }
        }
    };
    let ran = session.watch.after(detached(py, run));
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
