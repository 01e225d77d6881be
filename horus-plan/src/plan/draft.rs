//! A draft of a plan, which goes from pass to pass.

use std::fmt;

use super::activity::BusyTimes;
use super::demand::{HaloDemand, around, halo_of_access};
use super::finished::Plan;
use super::lifetimes::Lifetimes;
use super::memory::Ledger;
use super::setting::{Mode, ResultDelivery, Setting};
use super::state::{Halo, ImageState, Placement, Residency, StateEvent, Transitions};
use super::step::{Action, Band, ComputedRows, PlanStep, Temp};
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;

/// A draft of a plan. Each pass reads the results of earlier passes and adds its own.
pub(super) struct PlanDraft<'a> {
    pub(super) graph: &'a Graph<Kernel>,
    pub(super) setting: &'a Setting,
    pub(super) wants: &'a [ResultDelivery],
    /// Initial states of the sources.
    pub(super) initial: Vec<Option<ImageState>>,
    /// Returns `true` for sources that are not needed after this plan has read them.
    pub(super) disposable: &'a dyn Fn(NodeId) -> bool,
    /// Lifetime of each image.
    pub(super) lifetimes: Lifetimes,
    /// The only rank that computes each node, if there is one.
    pub(super) owners: Vec<Option<usize>>,
    /// Nodes that every rank computes whole, because that takes less time than to send the result to all.
    pub(super) repeated: Vec<bool>,
    /// Rows that will be read around the strips of each image.
    pub(super) demand: HaloDemand,
    /// The contents of the device's memory after the steps, if it is limited.
    pub(super) memory: Option<Ledger>,
    /// The steps so far.
    pub(super) steps: Vec<PlanStep>,
    /// Bytes in use on a limited device when each step begins.
    pub(super) used: Vec<usize>,
    /// State of each image after the steps.
    pub(super) states: Vec<Option<ImageState>>,
    /// The exchanges among the steps.
    pub(super) exchanges: Vec<HaloExchange>,
}

/// A halo exchange for a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct HaloExchange {
    /// Index of its step.
    pub(super) step: usize,
    /// The launch that reads the rows.
    pub(super) reader: NodeId,
    /// The rows arrive on the device.
    pub(super) on_device: bool,
}

impl<'a> PlanDraft<'a> {
    /// A draft without steps.
    pub(super) fn new(
        graph: &'a Graph<Kernel>,
        wants: &'a [ResultDelivery],
        setting: &'a Setting,
        initial: Vec<Option<ImageState>>,
        disposable: &'a dyn Fn(NodeId) -> bool,
    ) -> PlanDraft<'a> {
        PlanDraft {
            graph,
            setting,
            wants,
            states: initial.clone(),
            initial,
            disposable,
            lifetimes: Lifetimes::default(),
            owners: vec![None; graph.nodes.len()],
            repeated: vec![false; graph.nodes.len()],
            demand: HaloDemand::default(),
            memory: None,
            steps: Vec::new(),
            used: Vec::new(),
            exchanges: Vec::new(),
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.setting.partition.ranks()
    }

    pub(super) fn naive(&self) -> bool {
        self.setting.mode == Mode::Naive
    }

    pub(super) fn label(&self, id: NodeId) -> String {
        format!("{id} {}", self.graph.node(id).op.name())
    }

    pub(super) fn state(&self, id: NodeId) -> ImageState {
        self.states[id.0].unwrap_or(ImageState { residency: Residency::Nothing, placement: Placement::Replicated })
    }

    pub(super) fn step(&mut self, action: Action, why: impl Into<String>) {
        self.steps.push(PlanStep { action, why: why.into(), waits: Vec::new() });
        self.used.push(self.memory.as_ref().map_or(0, Ledger::used));
    }

    pub(super) fn event(&mut self, id: NodeId, event: StateEvent) {
        let transitions = Transitions { unified: self.setting.unified };
        self.states[id.0] = Some(transitions.next(self.state(id), event));
        match event {
            StateEvent::Placed(_) => self.left_device(id),
            StateEvent::PlacedOnDevice(_) => self.resized(id),
            _ => {}
        }
    }

    pub(super) fn placed(&mut self, id: NodeId, placement: Placement, direct: bool) {
        self.event(id, if direct { StateEvent::PlacedOnDevice(placement) } else { StateEvent::Placed(placement) });
    }

    pub(super) fn on_device(&mut self, source: NodeId, reader: NodeId) {
        if !self.state(source).residency.device() {
            self.evict_for_image(source, None, reader);
            self.step(
                Action::Upload { node: source, band: Band::WHOLE },
                format!("{} reads it on the device", self.label(reader)),
            );
            self.event(source, StateEvent::Uploaded);
        }
    }

    pub(super) fn bring_to_host(&mut self, id: NodeId, why: &str) {
        if !self.state(id).residency.host() {
            self.step(Action::Download(id), why);
            self.event(id, StateEvent::Downloaded);
        }
    }

    /// Drops an image that is no longer needed.
    pub(super) fn free(&mut self, id: NodeId) {
        self.step(Action::Free(id), "");
        self.states[id.0] = None;
        self.left_device(id);
    }

    /// The rows that each rank computes of a node.
    pub(super) fn rows(&self, id: NodeId) -> ComputedRows {
        let whole = |i: &NodeId| self.state(*i).placement == Placement::Replicated;
        self.rows_if(id, self.graph.node(id).inputs.iter().all(whole))
    }

    /// The rows that each rank computes of a node if its inputs are or are not replicated.
    pub(super) fn rows_if(&self, id: NodeId, replicated: bool) -> ComputedRows {
        let node = self.graph.node(id);
        match self.owners[id.0] {
            Some(rank) => ComputedRows::On(rank),
            None if self.repeated[id.0] || node.op.is_on_every_rank(node.shape, || replicated) => ComputedRows::All,
            None => ComputedRows::Strip(self.demand.computed[id.0]),
        }
    }

    /// Returns `true` if a transfer of `source` goes from device to device: the devices are connected, and
    /// the image, the memory that the transfer leaves (`bytes`) and its packed messages fit. If so, the image
    /// is uploaded and the memory is made free.
    pub(super) fn between_devices(&mut self, source: NodeId, reader: NodeId, bytes: usize, sent: Action) -> bool {
        if !self.setting.direct || self.setting.unified || self.naive() {
            return false;
        }
        let bytes = if self.memory.is_some() { bytes + self.scratch(source, sent) } else { 0 };
        if !self.fits_beside(source, bytes, reader) {
            return false;
        }
        self.on_device(source, reader);
        self.make_room_for(bytes, source, reader);
        true
    }

    /// Bytes of the copies that `id` reads in place of its inputs, on the rank with the largest copies.
    pub(super) fn bytes_fetched(&self, node: NodeId, temp: Temp, rows: ComputedRows) -> usize {
        let (consumer, shape) = (self.graph.node(temp.consumer), self.graph.node(node).shape);
        let partition = &self.setting.partition;
        let held = (0..self.ranks()).map(|rank| {
            let computed = super::movement::rows_of(self.graph, partition, temp.consumer, rank, rows);
            consumer.op.footprint(temp.input, computed, consumer.shape, shape).len()
        });
        held.max().unwrap_or_default() * shape.line() * shape.planes() * self.graph.node(node).dtype.size()
    }

    /// The rows beyond its strip that a launch reads of an input, on the rank that reads most.
    pub(super) fn beyond_strips(&self, Temp { consumer, input }: Temp) -> Halo {
        let node = self.graph.node(consumer);
        if let Some(own) = halo_of_access(node.op.access(input)) {
            return around(own, self.demand.computed[consumer.0]);
        }
        let rows = self.rows(consumer);
        let (partition, shape) = (&self.setting.partition, self.graph.node(node.inputs[input]).shape);
        let beyond = |rank| {
            let strip = partition.strip(rank, shape.height);
            let computed = super::movement::rows_of(self.graph, partition, consumer, rank, rows);
            let read = node.op.footprint(input, computed, node.shape, shape);
            let rows = |n: isize| match (read.is_empty(), strip.is_empty()) {
                (true, _) => 0,
                // A strip without rows has no rows around it.
                (false, true) => usize::MAX,
                (false, false) => n.max(0).cast_unsigned(),
            };
            Halo { up: rows(strip.start - read.start), down: rows(read.end - strip.end), wrap: false }
        };
        (0..self.ranks()).map(beyond).fold(Halo::NONE, Halo::max)
    }

    /// Returns `true` if a rank that computes `id` reads all rows of its inputs, wherever its own strip is.
    pub(super) fn reads_whole(&self, id: NodeId) -> bool {
        self.owners[id.0].is_some() || self.repeated[id.0]
    }

    /// Returns `true` if strips with these valid rows around them contain all rows that a launch reads of an
    /// input.
    pub(super) fn holds(&self, valid: Halo, temp: Temp) -> bool {
        // Memory with rows beyond the image is not contiguous from the first row of the image to the last.
        // Memory without them may still have space reserved for them.
        let kernel = &self.graph.node(temp.consumer).op;
        let usual = halo_of_access(kernel.access(temp.input)).is_some() || !valid.wrap;
        !self.reads_whole(temp.consumer)
            && usual
            && !kernel.takes_end_to_end(temp.input)
            && valid.covers(self.beyond_strips(temp))
    }

    /// The plan so far.
    pub(super) fn so_far(&self, wants: Vec<ResultDelivery>) -> Plan {
        Plan {
            graph: self.graph.clone(),
            wants,
            steps: self.steps.clone(),
            setting: self.setting.clone(),
            initial: self.initial.clone(),
            states: self.states.clone(),
            predicted: 0.0,
            parts: BusyTimes::default(),
            fits: true,
            shortfall: None,
        }
    }
}

impl fmt::Display for PlanDraft<'_> {
    /// The steps, if any; otherwise the facts about each image.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.steps.is_empty() {
            return self.so_far(self.wants.to_vec()).fmt(f);
        }
        for (id, node) in self.graph.iter() {
            write!(f, "{id} {} {} {}", node.op.name(), node.shape, node.dtype)?;
            if let Some(readers) = self.lifetimes.readers.get(id.0).filter(|r| !r.is_empty()) {
                let readers: Vec<String> = readers.iter().map(NodeId::to_string).collect();
                write!(f, ", read by {}", readers.join(" "))?;
            }
            if self.lifetimes.outlives_plan.get(id.0) == Some(&true) {
                write!(f, ", kept")?;
            }
            if let Some(asked) = self.demand.asked.get(id.0).filter(|halo| !halo.is_none()) {
                let computed = if self.demand.computed[id.0].is_none() { "exchanged" } else { "computed" };
                write!(f, ", {asked} rows around strips, {computed}")?;
            }
            writeln!(f)?;
        }
        match &self.memory {
            Some(memory) => writeln!(f, "{} bytes in use on the device", memory.used()),
            None => Ok(()),
        }
    }
}
