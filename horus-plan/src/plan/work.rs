//! The amount of work of a program: an estimate for choosing a device before one is opened.

use crate::ir::graph::{Graph, Node, Op};
use crate::ir::kernel::{Distribution, Family};
use crate::machine::{HostSide, MachineProfile};

/// The work of a recorded program, ignoring fusion, borders and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgramWork {
    /// Number of operations.
    pub operations: usize,
    /// Multiply-adds of filters, interpolations and sorting, over all pixels.
    pub filtering: f64,
    /// Results of all other operations, over all pixels.
    pub pointwise: f64,
    /// Bytes of the images read and of the results.
    pub bytes: f64,
}

impl ProgramWork {
    /// The work of a graph.
    pub fn of(graph: &Graph<Op>) -> ProgramWork {
        let mut work = ProgramWork::default();
        for (_, node) in graph.iter() {
            let ProgramWork { operations, filtering, pointwise, bytes } = ProgramWork::of_node(graph, node);
            work.operations += operations;
            work.filtering += filtering;
            work.pointwise += pointwise;
            work.bytes += bytes;
        }
        let roots = graph.roots.iter().map(|r| graph.node(*r));
        work.bytes += roots.map(|n| (n.shape.len() * n.dtype.size()) as f64).sum::<f64>();
        work
    }

    /// The work of one node, without its result's bytes.
    pub(crate) fn of_node(graph: &Graph<Op>, node: &Node<Op>) -> ProgramWork {
        let (operations, bytes) = match node.op {
            Op::Source(_) => (0, node.shape.len() * node.dtype.size()),
            Op::Fill(_) | Op::Index(_) => (0, 0),
            _ => (1, 0),
        };
        let (filtering, pointwise) = cost(graph, node);
        ProgramWork { operations, filtering, pointwise, bytes: bytes as f64 }
    }

    /// The same work, `n` times.
    #[must_use]
    pub fn times(self, n: usize) -> ProgramWork {
        let f = n as f64;
        ProgramWork {
            operations: self.operations.saturating_mul(n),
            filtering: self.filtering * f,
            pointwise: self.pointwise * f,
            bytes: self.bytes * f,
        }
    }
}

impl ProgramWork {
    /// Approximate seconds on one of `ranks` ranks of such a machine, accurate enough to tell seconds from
    /// milliseconds.
    pub fn seconds(&self, machine: &MachineProfile, ranks: usize) -> f64 {
        /// Bytes of two pixels read and one written.
        const PIXEL: f64 = 12.0;
        let share = 1.0 / ranks.max(1) as f64;
        let ProgramWork { operations, filtering, pointwise, bytes } = *self;
        let filters = filtering / (machine.arithmetic.f32 * machine.efficiency(Family::Separable).arithmetic);
        let moved = pointwise * PIXEL;
        let others = moved / (machine.memory.at(moved.max(1.0)) * machine.efficiency(Family::Pixel).memory);
        let copies = machine.upload((bytes * share) as usize, HostSide::Staged);
        (filters + others) * share + copies + operations as f64 * (machine.launch.host + machine.launch.device)
    }
}

/// The filtering cost of a node, and the number of values by which its other work moves memory.
fn cost(graph: &Graph<Op>, node: &Node<Op>) -> (f64, f64) {
    let values = node.shape.len() as f64;
    let read = node.inputs.first().map_or(0.0, |i| graph.node(*i).shape.len() as f64);
    let moved = values.max(read);
    let filtered = |steps: f64| (steps * values, 0.0);
    match &node.op {
        Op::Source(_) | Op::Fill(_) | Op::Index(_) => (0.0, 0.0),
        Op::Correlate(f, _) => filtered(f.cost()),
        Op::Separable { row, column, .. } => filtered(row.cost() + column.cost()),
        Op::OrderFilter(filter, _) => filtered(filter.cost()),
        Op::Warp(_, how, _) => (how.cost() * values, moved),
        Op::Pixel(..) | Op::Convert(_) | Op::Planes(_) | Op::Flip(_) => (0.0, moved),
        Op::Whole(operation) => {
            let extent = |node: &Node<Op>| (node.shape, node.dtype.stored());
            let inputs: Vec<_> = node.inputs.iter().map(|i| extent(graph.node(*i))).collect();
            let rows = match operation.distribution() {
                Distribution::Partial(_) => inputs.first().map_or(0, |i| i.0.height),
                Distribution::Rows | Distribution::Whole => node.shape.height,
            };
            let effort = operation.effort(&inputs, extent(node), rows);
            (effort.cost * effort.pixels as f64, if effort.family.is_tiled() { 0.0 } else { moved })
        }
    }
}
