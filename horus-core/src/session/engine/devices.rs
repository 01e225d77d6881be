//! Evaluation on several devices of one process.
//!
//! To the planner each device is a rank whose host the others share ([`Hosts::Shared`](crate::plan::state::Hosts)). The
//! session records and plans once, and runs the plan on a thread for each device. The design is in
//! `docs/design/devices.md`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::comm::threads::ThreadComm;
use crate::comm::{Communicator, guarded};
use crate::device::{DownloadStart, Memory};
use crate::error::{Error, Result};
use crate::execute::portions::{Portion, assembled};
use crate::execute::{Batches, ExecutionContext, ExecutionOutcome, FailedExecution, RankImage, execute, prepare};
use crate::ir::graph::NodeId;
use crate::plan::Plan;
use crate::session::devices::{Engine, named};
use crate::session::images::image::StoredImage;
use crate::session::{Progress, Session, SessionState};
use crate::shape::Window;

/// Error of device `lane` of `lanes`, with the device's name.
fn of_lane(error: Error, lane: usize, lanes: usize) -> Error {
    match error {
        Error::Device { op, device, source } => Error::Device { op, device: named(&device, lane, lanes), source },
        other => other,
    }
}

/// Guard of a device's thread: if the thread panics, the others do not wait for its messages.
struct DisconnectGuard<'a>(&'a Engine);

impl Drop for DisconnectGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.disconnect();
        }
    }
}

impl Session {
    /// Number of devices of this process that run the program together.
    pub fn lanes(&self) -> usize {
        self.engine().map_or(1, Engine::device_count)
    }

    /// Memory of all devices, with each one's rows of an image of `height` rows.
    pub(crate) fn strips_of(&self, pixels: Vec<Memory>, height: usize) -> Vec<(Memory, Window)> {
        let partition = self.engine().filter(|_| pixels.len() > 1).map(|engine| engine.partition(pixels.len()));
        let rows = |lane| partition.map_or(Window::whole(height), |partition| partition.strip(lane, height));
        pixels.into_iter().enumerate().map(|(lane, memory)| (memory, rows(lane))).collect()
    }

    /// Runs a plan on its devices concurrently, the first on this thread.
    pub(crate) fn run_plan_on_devices(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        plan: &Plan,
        images: Vec<Option<StoredImage>>,
        (new, sending): (bool, DownloadStart),
    ) -> Result<ExecutionOutcome<StoredImage>, FailedExecution<StoredImage>> {
        let lanes = plan.setting.partition.ranks();
        engine.divide(&plan.setting.partition);
        let images = self.laid_out(engine, images, lanes)?;
        let mut per_lane: Vec<Vec<Option<RankImage>>> = (0..lanes).map(|_| Vec::with_capacity(images.len())).collect();
        for image in images {
            let mut parts = image.map_or_else(Vec::new, StoredImage::into_each).into_iter();
            per_lane.iter_mut().for_each(|lane| lane.push(parts.next()));
        }
        let SessionState { trace, lane_traces, rooms, .. } = state;
        let keep = self.0.settings.max_pinned;
        let failed: Mutex<Option<Error>> = Mutex::default();
        let observe = |step, steps, text: &dyn Fn() -> String| {
            if let Some(observer) = &self.0.settings.observer {
                observer(Progress { step, steps, text });
            }
        };
        let run = |comm: &ThreadComm, images: Vec<Option<RankImage>>, new: bool, context: ExecutionContext<'_>| {
            let lane = comm.rank();
            let _leaving = DisconnectGuard(engine);
            let made = if new { prepare(plan, &images, context.device, lane) } else { Ok(()) };
            let ran = guarded(comm, "an evaluation", || match made {
                Ok(()) => execute(plan, images, context),
                Err(error) => Err(FailedExecution { error, images }),
            });
            ran.map_err(|FailedExecution { error, images }| {
                // The first error is the cause of all.
                let error = of_lane(error, lane, lanes);
                let text = error.to_string();
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                comm.abort(&text);
                engine.disconnect();
                images
            })
        };
        let comms = ThreadComm::group(lanes);
        let mut others = per_lane.split_off(1).into_iter();
        let first = per_lane.pop().unwrap_or_default();
        if new {
            // Other devices find its compiled kernels.
            let start = std::time::Instant::now();
            let prepared = prepare(plan, &first, &*engine.device, 0);
            trace.prepared(start);
            if let Err(error) = prepared {
                let lanes_left = std::iter::once(first).chain(others).collect();
                return Err(FailedExecution {
                    error: of_lane(error, 0, lanes),
                    images: self.reconciled(engine, plan, lanes_left),
                });
            }
        }
        let run = &run;
        let ran: Vec<Result<ExecutionOutcome, Vec<Option<RankImage>>>> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for ((comm, device), trace) in comms.iter().zip(engine.devices()).skip(1).zip(lane_traces.iter_mut()) {
                let images = others.next().unwrap_or_default();
                threads.push(scope.spawn(move || {
                    let context = ExecutionContext {
                        device: &**device,
                        comm,
                        pool: &self.0.pool,
                        observer: &|_, _, _| (),
                        check: &|| self.0.settings.canceller.check(),
                        trace,
                        keep,
                        sending,
                        rooms: &mut Vec::new(),
                        batches: &mut Batches::default(),
                    };
                    run(comm, images, new, context)
                }));
            }
            let context = ExecutionContext {
                device: &*engine.device,
                comm: &comms[0],
                pool: &self.0.pool,
                observer: &observe,
                check: &|| self.0.settings.canceller.check(),
                trace,
                keep,
                sending,
                rooms,
                batches: &mut Batches::default(),
            };
            let first = run(&comms[0], first, false, context);
            let joined = threads.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            std::iter::once(first).chain(joined).collect()
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => self.together(plan, ran.into_iter().flatten().collect()),
            Some(error) => {
                let left = ran.into_iter().map(|ran| ran.map_or_else(|images| images, |outcome| outcome.images));
                Err(FailedExecution { error, images: self.reconciled(engine, plan, left.collect()) })
            }
        }
    }

    /// Combines the outcomes of all devices.
    fn together(
        &self,
        plan: &Plan,
        outcomes: Vec<ExecutionOutcome>,
    ) -> Result<ExecutionOutcome<StoredImage>, FailedExecution<StoredImage>> {
        let lanes = outcomes.len();
        let mut images: Vec<Vec<RankImage>> = (0..plan.graph.nodes.len()).map(|_| Vec::with_capacity(lanes)).collect();
        let mut portions: HashMap<NodeId, Vec<Vec<Portion>>> = HashMap::new();
        let mut moved = crate::plan::movement::Load::default();
        for outcome in outcomes {
            moved.messages += outcome.moved.messages;
            moved.bytes += outcome.moved.bytes;
            images.iter_mut().zip(outcome.images).for_each(|(lanes, image)| lanes.extend(image));
            outcome.portions.into_iter().for_each(|(n, p)| portions.entry(n).or_default().push(p));
        }
        let images: Vec<Option<StoredImage>> = images.into_iter().map(StoredImage::of).collect();
        let mut delivered = HashMap::new();
        for (n, portions) in portions {
            let node = plan.graph.node(n);
            match assembled(portions, node.shape.len() * node.dtype.size(), &self.0.pool) {
                Ok(whole) => drop(delivered.insert(n, whole)),
                Err(source) => {
                    let op = format!("{} (recorded at {})", node.op.name(), node.site);
                    return Err(FailedExecution {
                        error: Error::Device { op, device: self.device_name(), source },
                        images,
                    });
                }
            }
        }
        Ok(ExecutionOutcome { images, delivered, portions: HashMap::new(), moved })
    }
}
