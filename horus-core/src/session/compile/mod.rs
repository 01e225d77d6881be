//! Compiles programs: optimises and plans them, and verifies the plan.

pub(crate) mod division;
pub(crate) mod fits;
pub(crate) mod host_access;
pub(crate) mod memory;
pub(crate) mod readers;
pub(crate) mod region;
pub(crate) mod schedule;
pub(crate) mod search;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::error::{DeviceError, Error, MemoryBound, Result};
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ir::kernel::Kernel;
use crate::optimize::{OptimizationTarget, lower::lower, optimize_for, parts::divide};
use crate::plan::drawing::draw;
use crate::plan::partition::Partition;
use crate::plan::predict::predict;
use crate::plan::state::{Hosts, ImageState, Placement, Residency};
use crate::plan::verify::verify;
use crate::plan::work::ProgramWork;
use crate::plan::{Mappable, Mode, Plan, ResultDelivery, Setting, plan};
use crate::session::cache::{CachedPlan, PlanRequest, ResidentImage};
use crate::session::devices::Engine;
use crate::session::{Session, SessionState, Settings};

/// Receives the name of each pass and its result.
pub(crate) type Dump<'a> = &'a mut dyn FnMut(&str, &dyn fmt::Display);

/// State of an image at the beginning of a plan, if it exists, and `true` if the plan may release it.
pub(crate) type StateLookup<'a> = &'a dyn Fn(ValueId) -> Option<(ImageState, bool)>;

impl Session {
    /// Setting of plans for these strips.
    pub(crate) fn setting(&self, engine: &Engine, partition: Partition) -> Setting {
        let (unified, direct, capacity) = (engine.unified(), engine.direct(), engine.capacity());
        let Settings { overlap, transfer, mode, .. } = self.0.settings;
        let machine = Arc::clone(&engine.machine);
        let mappable = Mappable::default();
        let hosts = Hosts::Separate;
        Setting { partition, hosts, unified, direct, overlap, transfer, mappable, mode, capacity, machine }
    }

    /// Kernels of a program. This is the only call of the optimiser.
    pub(crate) fn kernels(
        &self,
        graph: Graph<Op>,
        setting: &Setting,
        (fuse, joined): (bool, bool),
        dump: Dump<'_>,
    ) -> Result<Graph<Kernel>> {
        let Setting { machine, partition, direct, .. } = setting;
        let (steps, stencil) = (self.0.settings.steps, self.0.settings.stencil);
        let aim = OptimizationTarget { machine, ranks: partition.ranks(), direct: *direct, steps, stencil, joined };
        optimize_for(graph, fuse && self.mode() == Mode::Fused, &aim, dump)
    }

    /// Plan for a request, on `among` ranks or devices if that is given, otherwise on as many as are predicted to take the
    /// least time.
    pub(crate) fn plan(
        &self,
        engine: &Engine,
        state: &mut SessionState,
        request: &PlanRequest,
        among: Option<usize>,
    ) -> Result<CachedPlan> {
        if self.0.settings.compare_naive {
            let of_all = self.setting_among(engine, self.all(engine), || ProgramWork::of(&request.graph));
            let naive = self.plan_for(engine, request, Setting { mode: Mode::Naive, ..of_all })?;
            state.stats.naive.add(&naive.counts());
        }
        let (made, said) = self.cheapest(engine, state, request, among)?;
        let plan = &made.plan;
        let explain = |title: &str, text: &dyn fmt::Display| {
            if let Some(sink) = &self.0.settings.explain {
                sink(&format!("{title}:\n{text}"));
            }
        };
        if !said.is_empty() {
            explain("predicted to take", &said);
        }
        explain("plan", &format_args!("{plan}costs by the {}\n", plan.setting.machine));
        explain("predicted", &predict(plan));
        if self.0.settings.explain.is_some() {
            let new = plan.notation().into_iter().filter(|(word, _)| state.explained.insert(word));
            let lines: String = new.map(|(word, meaning)| format!("      {word:16}  {meaning}\n")).collect();
            if !lines.is_empty() {
                explain("notation, told once", &lines);
            }
        }
        let shows = state.trace.shows_plans();
        if shows || self.0.settings.drawings.is_some() {
            let drawing = draw(&request.graph, plan);
            if let Some(sink) = &self.0.settings.drawings {
                sink(&drawing);
            }
            if shows {
                state.trace.show_plan(plan, drawing);
            }
        }
        verify(plan)?;
        match (plan.shortfall, plan.setting.capacity) {
            (Some((node, bytes)), Some(capacity)) => Err(too_large(engine, plan.graph.node(node), bytes, capacity)),
            _ => Ok(made),
        }
    }

    /// Plan for a request in a setting.
    pub(crate) fn plan_for(&self, engine: &Engine, request: &PlanRequest, setting: Setting) -> Result<Plan> {
        let PlanRequest { graph, wants, sources, mappable, others, laid } = request;
        let setting = Setting { mappable: mappable.clone(), ..setting };
        // State in which this plan finds an image. Other images on devices use memory.
        let among = setting.partition.ranks();
        let found = |(source, laid): (&(ValueId, Option<ImageState>, bool), &usize)| {
            let at = source.1.map(|at| self.arranged(engine, at, *laid, among));
            (source.0, at, source.2)
        };
        let sources: Vec<_> = sources.iter().zip(laid).map(found).collect();
        let is_same = |other: &ResidentImage| self.arranged(engine, other.state, other.laid, among) == other.state;
        let (others, elsewhere): (Vec<ResidentImage>, Vec<ResidentImage>) =
            others.iter().partition(|other| is_same(other));
        let part = |other: &ResidentImage| {
            if matches!(other.state.placement, Placement::Strips(_)) {
                other.bytes() / other.laid
            } else {
                other.bytes()
            }
        };
        let taken = elsewhere.iter().map(part).sum();
        let setting = Setting { capacity: setting.capacity.map(|bytes| bytes.saturating_sub(taken)), ..setting };
        let nowhere = ImageState { residency: Residency::Host, placement: Placement::ROOT };
        let read = sources.iter().map(|(value, at, gone)| (*value, (at.unwrap_or(nowhere), *gone)));
        let others_there = others.iter().map(|other| (other.value, (other.state, false)));
        let there: HashMap<ValueId, (ImageState, bool)> = others_there.chain(read).collect();
        let explains = self.0.settings.explain_passes;
        let mut dump = |pass: &str, text: &dyn fmt::Display| {
            if let Some(sink) = self.0.settings.explain.as_ref().filter(|_| explains) {
                sink(&format!("{pass}:\n{text}"));
            }
        };
        self.plan_of((graph, wants), &setting, (&|value| there.get(&value).copied(), &others), &mut dump)
    }

    /// Plan for a program, given the state of each image and the other images on the device: the faster of a plan that
    /// divides rows, and one in which ranks also compute [parts](divide) of a result alone. This is the only call of the
    /// planner.
    pub(crate) fn plan_of(
        &self,
        (graph, wants): (&Graph<Op>, &[ResultDelivery]),
        setting: &Setting,
        (found, others): (StateLookup<'_>, &[ResidentImage]),
        dump: Dump<'_>,
    ) -> Result<Plan> {
        let is_compared = setting.mode != self.0.settings.mode;
        let mut with = |graph: &Graph<Op>, fuse: bool, joined: bool| -> Result<Plan> {
            let mut kernels = if is_compared {
                lower(graph.clone())
            } else {
                self.kernels(graph.clone(), setting, (fuse, joined), dump)?
            };
            add_bystanders(&mut kernels, others);
            let values: Vec<Option<ValueId>> = kernels.nodes.iter().map(|n| n.op.source_value()).collect();
            let at = |n: NodeId| values[n.0].and_then(found);
            let nowhere = ImageState { residency: Residency::Host, placement: Placement::ROOT };
            let (state, gone) =
                (|n| at(n).map_or(nowhere, |(state, _)| state), |n| at(n).is_some_and(|(_, gone)| gone));
            plan(kernels, wants, setting, state, gone, dump)
        };
        let plan = with(graph, true, true)?.or_apart(|| with(graph, true, false))?;
        let ranks = setting.partition.ranks();
        let meet = setting.hosts == Hosts::Separate || setting.direct;
        // Ranks with different kinds of devices predict different times.
        let is_open = self.mode() == Mode::Fused && !is_compared && meet && !setting.machine.is_mixed();
        let divided = is_open.then(|| divide(graph, setting.machine.of(0), ranks)).flatten();
        if let Some(graph) = &divided {
            let in_parts = with(graph, true, true)?;
            if in_parts.fits && (!plan.fits || in_parts.predicted < plan.predicted) {
                return Ok(in_parts);
            }
        }
        if plan.fits || is_compared || self.mode() != Mode::Fused {
            return Ok(plan);
        }
        // A fused kernel may read more images at once than fit on the device. One operation reads at most three.
        log::info!("fused kernels need more memory than the device has; continuing without fusion");
        with(graph, false, false)
    }
}

/// Error: an operation exceeds the device's memory even after all evictions.
fn too_large(engine: &Engine, node: &Node<Kernel>, bytes: usize, capacity: usize) -> Error {
    let op = format!("{} (recorded at {})", node.op.name(), node.site);
    let bound = MemoryBound::Images { bytes: capacity };
    Error::Device { op, device: engine.smallest(), source: DeviceError::OutOfMemory { bytes, used: 0, bound } }
}

/// Adds the images on the device that this program does not read, because the planner may have to evict them.
fn add_bystanders(graph: &mut Graph<Kernel>, others: &[ResidentImage]) {
    for &ResidentImage { value, shape, dtype, .. } in others {
        let site = std::panic::Location::caller().into();
        graph.push(Node { op: Kernel::Source(value), inputs: Vec::new(), shape, dtype, site });
    }
}
