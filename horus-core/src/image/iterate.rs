//! Loops over images: the loop body is recorded once and repeated.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Image, LoopState, Value};
use crate::dtype::Conversion;
use crate::error::{Call, Error, Result, Site};
use crate::ir::graph::Op;
use crate::session::{Attributes, Handle, LoopLimits, LoopResult, RecordedLoop, Session, StandIns};

/// A measure of the change of a state in one iteration: one number, in `f64`, for all pixels of all
/// its images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Norm {
    /// The largest difference of a pixel.
    #[default]
    Max,
    /// The square root of the mean of squared differences.
    Rms,
    /// The square root of the sum of squared differences.
    L2,
}

/// The end of a loop; see [`Session::iterate`].
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// let _ = Until::steps(100);
/// let _ = Until::below(1e-4, 10_000).norm(Norm::Rms).every(50);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Until {
    /// Number of iterations that were made before the loop.
    done: usize,
    steps: usize,
    below: Option<f64>,
    norm: Norm,
    every: usize,
}

impl Until {
    /// Ends the loop after this many iterations.
    pub fn steps(steps: usize) -> Until {
        Until { done: 0, steps, below: None, norm: Norm::Max, every: 1 }
    }

    /// Ends the loop when an iteration changes the state by less than `eps`, or after `most`
    /// iterations. The change is measured after every tenth iteration and after the last one; see
    /// [`Until::every`].
    pub fn below(eps: f64, most: usize) -> Until {
        Until { done: 0, steps: most, below: Some(eps), norm: Norm::Max, every: 10 }
    }

    /// Sets the measure of change (default: [`Norm::Max`]).
    pub fn norm(self, norm: Norm) -> Until {
        Until { norm, ..self }
    }

    /// Measures the change after every `steps` iterations. A measurement reads the state once more.
    pub fn every(self, steps: usize) -> Until {
        Until { every: steps, ..self }
    }

    /// Continues a loop that has made so many iterations.
    pub(super) fn after(self, done: usize) -> Until {
        Until { done, ..self }
    }

    /// Fails if the loop ends before so many iterations.
    pub(super) fn allows(&self, done: usize) -> std::result::Result<(), String> {
        if done <= self.steps {
            Ok(())
        } else {
            Err(format!("its checkpoint is after {done} steps, the loop has {}", self.steps))
        }
    }

    fn check(&self, site: Site) -> Result<()> {
        let refused = |message: String| Err(Error::parameter(Call { op: "iterate", site }, message));
        match self.below {
            Some(eps) if eps.is_nan() || eps < 0.0 => {
                refused(format!("the bound on the change is {eps}; it must not be negative"))
            }
            _ if self.every == 0 => refused("the change cannot be measured every 0 steps".into()),
            _ => Ok(()),
        }
    }
}

impl From<usize> for Until {
    fn from(steps: usize) -> Until {
        Until::steps(steps)
    }
}

/// The reason for the end of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Ending {
    /// All iterations were done.
    Steps,
    /// The change was below the bound.
    Converged,
    /// The change was not a finite number.
    Diverged,
    /// `watch` ended the loop.
    Stopped,
}

/// The outcome of a loop.
#[derive(Clone, Debug)]
pub struct Iterated<S> {
    /// The state after the last iteration.
    pub state: S,
    /// Number of iterations.
    pub steps: usize,
    /// The last change that was measured.
    pub change: Option<f64>,
    /// The reason for the end of the loop.
    pub ending: Ending,
}

/// Numbers that determine the change of a state, for each of its images.
fn changes(before: &[&Handle], after: &[&Handle], norm: Norm, site: Site) -> Vec<Value<f64>> {
    let wide =
        |h: &Handle| -> Image<f64> { super::record(&h.session, Op::Convert(Conversion::Nearest), &[h], h.shape, site) };
    let change = |(before, after): (&&Handle, &&Handle)| {
        let d = wide(after).absdiff(wide(before));
        match norm {
            // A NaN must not be ignored.
            Norm::Max => d.le(f64::MAX).select(&d, f64::INFINITY).max_value(),
            Norm::Rms | Norm::L2 => (&d * &d).sum(),
        }
    };
    before.iter().zip(after).map(change).collect()
}

impl Norm {
    /// Combines the numbers of each image, for a state of `pixels` pixels.
    fn of(self, numbers: &[f64], pixels: usize) -> f64 {
        let sum: f64 = numbers.iter().sum();
        match self {
            Norm::Max => numbers.iter().copied().fold(0.0, f64::max),
            Norm::Rms => (sum / pixels as f64).sqrt(),
            Norm::L2 => sum.sqrt(),
        }
    }
}

pub(super) fn handles<S: LoopState>(state: &S) -> Vec<&Handle> {
    let mut all = Vec::new();
    state.handles(&mut all);
    all
}

fn kinds(handles: &[&Handle]) -> String {
    let text: Vec<String> = handles.iter().map(|h| format!("{} {}", h.shape, h.dtype)).collect();
    if text.is_empty() { "no image".into() } else { text.join(", ") }
}

/// Fails unless the loop body keeps the number, shapes and types of the state's images.
fn same_kind(before: &[&Handle], after: &[&Handle], session: &Session, site: Site) -> Result<()> {
    for h in after {
        h.check()?;
        if !session.same(&h.session) {
            return Err(Error::ForeignImage { op: "iterate", site });
        }
    }
    let kind = |h: &&&Handle| (h.shape, h.dtype);
    let same = before.len() == after.len() && before.iter().zip(after).all(|(a, b)| kind(&a) == kind(&b));
    let text =
        || format!("a step makes {} of {}; number, shapes and types must stay the same", kinds(after), kinds(before));
    if same { Ok(()) } else { Err(Error::parameter(Call { op: "iterate", site }, text())) }
}

impl Session {
    /// Repeats `state = step(state)` until `until` ends the loop. The state is an image, or a
    /// tuple, array or `Vec` of images.
    ///
    /// `step` is called once, to record an iteration. The recorded program then runs as often as
    /// needed, with several iterations in one plan: nothing is recorded or planned per iteration,
    /// memory does not grow with their number, and on a GPU the host runs ahead. Values that do not
    /// depend on the state are computed once; cheap pixel operations on them, and broadcasts, are
    /// repeated in each iteration rather than stored. Results have the same bits as a loop that
    /// calls `step` each time, unless a [block map](crate::session::BlockMap::relaxed) relaxes
    /// this.
    ///
    /// In one process, a loop that does not fit in memory or on a device is computed by regions.
    /// Its state is then in host memory if it is small, else in temporary files.
    ///
    /// A `step` that reads a value ([`Image::to_vec`], [`Value::get`], a nested loop) is called for
    /// each iteration instead. Other evaluations meanwhile exclude the images of an iteration.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// // Heat in a plate whose edges are kept at 0: each pixel becomes the mean of its four neighbours.
    /// let cross = Filter::dense(3, 3, vec![0.0, 0.25, 0.0, 0.25, 0.0, 0.25, 0.0, 0.25, 0.0]);
    /// let hot = Image::from_fn(&session, 16, 16, |y, x| if (y, x) == (8, 8) { 100.0f32 } else { 0.0 });
    /// let done = session.iterate(hot, 50, |u| u.with_border(Border::Constant(0.0)).correlate(&cross))?;
    /// assert_eq!(done.steps, 50);
    /// assert!(done.state.max_value().get()? < 5.0);
    ///
    /// let done = session.iterate(done.state, Until::below(1e-3, 10_000), |u| u.with_border(Border::Constant(0.0)).correlate(&cross))?;
    /// assert!(done.steps < 1000 && done.change < Some(1e-3));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// A loop that does not converge within its iterations, or whose change is not finite, ends
    /// with its current state; [`Iterated::ending`] and the log report it.
    ///
    /// # Errors
    /// If the state carries an error; if `step` records an error, or changes number, shape or type
    /// of the images; if the bound is negative or NaN; if a relaxed loop may not converge; if the
    /// evaluation fails.
    #[track_caller]
    pub fn iterate<S: LoopState>(
        &self,
        state: S,
        until: impl Into<Until>,
        step: impl Fn(&S) -> S,
    ) -> Result<Iterated<S>> {
        self.looped(state, until.into(), step, None, Call::of("iterate").site)
    }

    /// [`Session::iterate`] that calls `watch` after every `every` iterations, with their number
    /// and the state, to save or print it, or to end the loop.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # use std::ops::ControlFlow;
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = samples::worms(&session, 32, 32);
    /// let mut ranges = Vec::new();
    /// session.iterate_watched(image, 30, |u| u.gauss(1.0), 10, |step, u| {
    ///     ranges.push((step, u.max_value().get()?));
    ///     Ok(ControlFlow::Continue(()))
    /// })?;
    /// assert_eq!(ranges.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [10, 20, 30]);
    /// assert!(ranges[0].1 > ranges[2].1);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::iterate`]; also if `every` is 0, and the errors of `watch`.
    #[track_caller]
    pub fn iterate_watched<S: LoopState>(
        &self,
        state: S,
        until: impl Into<Until>,
        step: impl Fn(&S) -> S,
        every: usize,
        mut watch: impl FnMut(usize, &S) -> Result<ControlFlow<()>>,
    ) -> Result<Iterated<S>> {
        let call @ Call { site, .. } = Call::of("iterate");
        if every == 0 {
            return self.refused(Error::parameter(call, "the state cannot be watched every 0 steps"));
        }
        self.looped(state, until.into(), step, Some(([Some(every), None], &mut watch)), site)
    }

    pub(super) fn looped<S: LoopState>(
        &self,
        state: S,
        until: Until,
        step: impl Fn(&S) -> S,
        watch: Option<WatchedLoop<'_, S>>,
        site: Site,
    ) -> Result<Iterated<S>> {
        let given = handles(&state);
        let known = || given.iter().try_for_each(|h| h.check());
        if let Err(e) = until.check(site).and_then(|()| same_kind(&given, &given, self, site)).and_then(|()| known()) {
            return self.refused(e);
        }
        if until.steps <= until.done || given.is_empty() {
            self.evaluate_these(&given)?;
            return Ok(Iterated { state, steps: until.done, change: None, ending: Ending::Steps });
        }
        let stand_ins = StandIns::new(self, &given, site);
        let next = step(&state.with(&mut stand_ins.handles().iter().cloned()));
        let looked = stand_ins.looked();
        if let Err(e) = same_kind(&given, &handles(&next), self, site) {
            return self.refused(e);
        }
        let told = LoopMonitor { until, change: None, ending: None, pixels: given.iter().map(|h| h.shape.len()).sum() };
        if looked {
            drop((next, stand_ins));
            return self.repeat_each(state, step, watch, told, site);
        }
        let recorded = RecordedStep { next, stand_ins };
        self.repeat_recorded(state, recorded, step, watch, told, site)
    }

    /// Runs a loop whose body was recorded.
    fn repeat_recorded<S: LoopState>(
        &self,
        state: S,
        recorded: RecordedStep<S>,
        step: impl Fn(&S) -> S,
        watch: Option<WatchedLoop<'_, S>>,
        mut told: LoopMonitor,
        site: Site,
    ) -> Result<Iterated<S>> {
        let initial: Vec<Handle> = handles(&state).into_iter().cloned().collect();
        drop(state);
        let RecordedStep { next, stand_ins } = &recorded;
        let (before, after) = (stand_ins.handles().iter().collect::<Vec<_>>(), handles(next));
        let until = told.until;
        let measured = match until.below {
            Some(_) => changes(&before, &after, until.norm, site),
            None => Vec::new(),
        };
        let measured: Vec<&Handle> = measured.iter().map(Value::handle).collect();
        let (every, mut watch) = watch.unzip();
        let measured_every = until.below.map(|_| until.every);
        let ends = LoopLimits {
            done: until.done,
            steps: until.steps,
            measured: measured_every,
            watched: every.unwrap_or_default(),
        };
        let mut stopped = false;
        let attributes: Vec<_> = before.iter().zip(&after).map(|(b, a)| Attributes::of_loop(b, a)).collect();
        let known = |handles: Vec<Handle>| {
            let with = |(mut handle, all): (Handle, &Option<Arc<Attributes>>)| {
                handle.attributes.clone_from(all);
                handle
            };
            handles.into_iter().zip(&attributes).map(with).collect::<Vec<Handle>>()
        };
        let ended = self.run_loop(
            RecordedLoop { initial, stand_ins, next: &after, measured: &measured, site },
            ends,
            &mut |_, numbers| told.decide(numbers),
            &mut |steps, handles| {
                let Some(watch) = &mut watch else { return Ok(ControlFlow::Continue(())) };
                let flow = watch(steps, &next.with(&mut known(handles).into_iter()))?;
                stopped = flow.is_break();
                Ok(flow)
            },
        )?;
        match ended {
            LoopResult::After(steps, state) => Ok(told.ended(next.with(&mut known(state).into_iter()), steps, stopped)),
            LoopResult::LookedInto(initial) => {
                let state = next.with(&mut initial.into_iter());
                drop(recorded);
                self.repeat_each(state, step, every.zip(watch), told, site)
            }
        }
    }

    /// Runs a loop whose body reads values, so that it is called each time.
    fn repeat_each<S: LoopState>(
        &self,
        mut state: S,
        step: impl Fn(&S) -> S,
        mut watch: Option<WatchedLoop<'_, S>>,
        mut told: LoopMonitor,
        site: Site,
    ) -> Result<Iterated<S>> {
        let until = told.until;
        self.check_loop_fits(&handles(&state), site)?;
        for done in until.done + 1..=until.steps {
            let next = step(&state);
            let (before, after) = (handles(&state), handles(&next));
            if let Err(e) = same_kind(&before, &after, self, site) {
                return self.refused(e);
            }
            let due = until.below.is_some() && (done == until.steps || done.is_multiple_of(until.every));
            let changes = if due { changes(&before, &after, until.norm, site) } else { Vec::new() };
            self.evaluate_these(&after)?;
            state = next;
            if due && told.decide(&self.get_all(changes)?).is_break() {
                return Ok(told.ended(state, done, false));
            }
            if let Some((intervals, watch)) = &mut watch
                && intervals.iter().flatten().any(|every| done.is_multiple_of(*every))
                && watch(done, &state)?.is_break()
            {
                return Ok(told.ended(state, done, true));
            }
        }
        Ok(told.ended(state, until.steps, false))
    }
}

/// A recorded loop body. Fields are dropped in this order.
struct RecordedStep<S> {
    next: S,
    stand_ins: StandIns,
}

/// Numbers of iterations between calls of a watcher, and the watcher.
pub(super) type WatchedLoop<'a, S> = ([Option<usize>; 2], StepWatcher<'a, S>);

/// Receives the number of iterations and the state, and may end the loop.
pub(super) type StepWatcher<'a, S> = &'a mut dyn FnMut(usize, &S) -> Result<ControlFlow<()>>;

/// Decides when a loop ends.
struct LoopMonitor {
    until: Until,
    pixels: usize,
    change: Option<f64>,
    ending: Option<Ending>,
}

impl LoopMonitor {
    /// Ends the loop if the change requires it.
    fn decide(&mut self, numbers: &[f64]) -> ControlFlow<()> {
        let change = self.until.norm.of(numbers, self.pixels);
        self.change = Some(change);
        self.ending = match self.until.below {
            _ if !change.is_finite() => Some(Ending::Diverged),
            Some(eps) if change < eps => Some(Ending::Converged),
            _ => None,
        };
        if self.ending.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn ended<S>(self, state: S, steps: usize, stopped: bool) -> Iterated<S> {
        let ending = if stopped { Ending::Stopped } else { self.ending.unwrap_or(Ending::Steps) };
        let change = self.change;
        match (ending, self.until.below, change) {
            (Ending::Diverged, ..) => {
                crate::warn!("a loop diverged: step {steps} changed its state by a number that is not finite")
            }
            (Ending::Steps, Some(eps), Some(change)) => {
                crate::warn!(
                    "a loop did not converge in {steps} steps: the last one changed its state by {change:e}, not by less than {eps:e}"
                );
            }
            _ => {}
        }
        Iterated { state, steps, change, ending }
    }
}
