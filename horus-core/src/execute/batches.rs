//! Batches: launches that are submitted together, when a plan runs again and nothing comes between them.
//!
//! A plan runs step by step the first time. For its second run, launches between other steps become batches of the
//! device ([`Batching`](crate::device::Batching)), which live as long as the plan. A batch owns the memory of images
//! that only its launches use; only its inputs and results differ between runs. Launches are made one by one if the
//! inputs have other rows, if memory is short, or if steps are timed.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::Instant;

use super::launch::launch_of;
use super::{PlanExecution, RankImage};
use crate::device::{Batch, BatchMemory, BatchedLaunch, Device, Geometry, Memory};
use crate::error::{DeviceError, Error, Result};
use crate::ir::graph::NodeId;
use crate::ir::kernel::Kernel;
use crate::ops::Whole;
use crate::plan::movement::{Load, rows_of};
use crate::plan::state::{ImageState, Residency};
use crate::plan::{Action, ComputedRows, LaunchPart, Plan, PlannedLaunches};
use crate::shape::Window;

/// Batches of one plan, which are made when it runs for the second time.
#[derive(Debug, Default)]
pub struct Batches {
    runs: usize,
    made: Vec<PreparedBatch>,
}

/// A batch with its steps and images.
#[derive(Debug)]
struct PreparedBatch {
    batch: Box<dyn Batch>,
    steps: Range<usize>,
    inputs: Vec<(NodeId, Geometry)>,
    outputs: Vec<(NodeId, Geometry, ComputedRows)>,
}

impl Batches {
    /// Counts a run of the plan on one rank alone, and makes its batches for the second run. `images` are its sources.
    pub(super) fn expect(&mut self, plan: &Plan, images: &[Option<RankImage>], device: &dyn Device) {
        self.runs += 1;
        let Some(device) = device.batching().filter(|_| self.runs == 2) else { return };
        let launches = plan.launches();
        for steps in stretches(plan, &launches) {
            let BatchDescription { each, inputs, outputs } = described(plan, &launches, &steps, images);
            match device.batch(&each) {
                Ok(None) => {}
                Ok(Some(batch)) => self.made.push(PreparedBatch { batch, steps, inputs, outputs }),
                // Launched one by one, they return the same error, or none.
                Err(e) => log::debug!("launches are made one by one: {e}"),
            }
        }
    }
}

/// Ranges of steps that only launch and release images.
fn stretches(plan: &Plan, launches: &PlannedLaunches<'_>) -> Vec<Range<usize>> {
    let together = |i: usize| match plan.steps[i].action {
        Action::Free(_) => true,
        Action::Launch { part: LaunchPart::Whole, .. } => {
            launches.at(i).is_none_or(|l| !matches!(l.kernel, Kernel::Source(_) | Kernel::Whole(Whole::Merge(_))))
        }
        _ => false,
    };
    let launch = |i| launches.at(i).is_some();
    let (mut found, mut start) = (Vec::new(), 0);
    while start < plan.steps.len() {
        let mut end = start;
        // Only the first step may wait for others: a batch begins when all of it can.
        while end < plan.steps.len() && together(end) && (end == start || plan.steps[end].waits.is_empty()) {
            end += 1;
        }
        if (start..end).any(launch) {
            found.push(start..end);
        }
        start = end.max(start + 1);
    }
    found
}

/// Launches for a device, with their images.
struct BatchDescription<'a> {
    each: Vec<BatchedLaunch<'a>>,
    inputs: Vec<(NodeId, Geometry)>,
    outputs: Vec<(NodeId, Geometry, ComputedRows)>,
}

/// The launches of these steps on one rank.
fn described<'a>(
    plan: &'a Plan,
    launches: &PlannedLaunches<'a>,
    steps: &Range<usize>,
    images: &[Option<RankImage>],
) -> BatchDescription<'a> {
    let (graph, partition) = (&plan.graph, &plan.setting.partition);
    let geometry = |n: NodeId| {
        let node = graph.node(n);
        let given = images[n.0].as_ref().map(|image| image.geometry);
        let window = Window::whole(node.shape.height);
        given.unwrap_or(Geometry { shape: node.shape, dtype: node.dtype, window })
    };
    let freed = |step: usize| if let Action::Free(n) = plan.steps[step].action { Some(n) } else { None };
    let freed: HashSet<NodeId> = steps.clone().filter_map(freed).collect();
    let mut slots: HashMap<NodeId, BatchMemory> = HashMap::new();
    let (mut inputs, mut outputs, mut inside) = (Vec::new(), Vec::new(), 0..);
    let mut each = Vec::new();
    for i in steps.clone() {
        let (Some(launched), Action::Launch { rows, .. }) = (launches.at(i), plan.steps[i].action) else { continue };
        let mut read = Vec::with_capacity(launched.inputs.len());
        for &n in launched.inputs {
            let slot = *slots.entry(n).or_insert_with(|| {
                inputs.push((n, geometry(n)));
                BatchMemory::Input(inputs.len() - 1)
            });
            read.push((slot, geometry(n)));
        }
        let mut written = Vec::with_capacity(launched.nodes.len());
        for &n in launched.nodes {
            let slot = if freed.contains(&n) {
                BatchMemory::Intermediate(inside.next().unwrap_or_default())
            } else {
                outputs.push((n, geometry(n), rows));
                BatchMemory::Output(outputs.len() - 1)
            };
            slots.insert(n, slot);
            written.push(slot);
        }
        let first = launched.nodes[0];
        each.push(BatchedLaunch {
            kernel: launched.kernel,
            inputs: read,
            outputs: written,
            geometry: geometry(first),
            rows: rows_of(graph, partition, first, 0, rows),
        });
    }
    BatchDescription { each, inputs, outputs }
}

impl PlanExecution<'_> {
    /// Submits the batch that begins with step `i`. Returns the end of its steps, whose images the caller must still
    /// release; `None` if there is no batch or it cannot run.
    pub(super) fn submit(&mut self, i: usize) -> Result<Option<usize>> {
        let Some(at) = self.cx.batches.made.iter().position(|made| made.steps.start == i) else { return Ok(None) };
        let Some(device) = self.cx.device.batching().filter(|_| !self.cx.trace.tells_steps()) else { return Ok(None) };
        let (start, plan) = (Instant::now(), self.plan);
        self.wait_for(&plan.steps[i].waits)?;
        let outputs = self.cx.batches.made[at].outputs.iter().map(|(n, geometry, _)| (*n, geometry.bytes()));
        let outputs: Vec<_> = outputs.collect();
        let mut rooms: Vec<_> = outputs.into_iter().map(|(n, bytes)| self.output_memory(n, bytes)).collect();
        let PreparedBatch { batch, steps, inputs, outputs } = &mut self.cx.batches.made[at];
        let given = inputs.iter().map(|(n, geometry)| {
            let image = self.images.find(*n).filter(|image| image.geometry == *geometry)?;
            image.device.as_ref()
        });
        let submitted = match (given.collect::<Option<Vec<_>>>(), rooms.iter().all(Result::is_ok)) {
            (Some(given), true) => {
                let mut made: Vec<Memory> = rooms.drain(..).flatten().collect();
                let submitted = self.images.with_memory(|| device.submit(&mut **batch, &given, &mut made));
                rooms.extend(made.into_iter().map(Ok));
                submitted
            }
            _ => Ok(false),
        };
        let launched = match submitted {
            Ok(launched) => launched,
            Err(DeviceError::OutOfMemory { .. }) => false,
            Err(source) => {
                let op = outputs.first().map_or_else(String::new, |(n, ..)| launch_of(plan.graph.node(*n)));
                return Err(Error::Device { op, device: device.names().name, source });
            }
        };
        let end = steps.end;
        for ((n, geometry, rows), room) in outputs.iter().zip(rooms) {
            match room {
                Ok(memory) if launched => {
                    let state = ImageState { residency: Residency::Device, placement: rows.placement() };
                    self.images.put(*n, RankImage { geometry: *geometry, state, host: None, device: Some(memory) });
                }
                Ok(memory) => self.mapped.put_back(*n, memory),
                Err(_) => {}
            }
        }
        if launched {
            self.cx.trace.add(start, &plan.steps[i].action, plan, None, Load::default());
        }
        Ok(launched.then_some(end))
    }
}
