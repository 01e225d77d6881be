//! The amount of work of a program: enough to choose a device before one is opened.

use crate::ir::graph::{Graph, Node, Op};
use crate::ir::kernel::Family;
use crate::machine::{HostSide, Profile};
use crate::ops::geometric::Interpolation;
use crate::ops::neighbourhood::MedianSize;

/// The work of a recorded program. A sketch: it ignores fusion, borders and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Number of operations.
    pub operations: usize,
    /// Multiply-adds of filters, interpolations and sorting, over all pixels.
    pub filtering: f64,
    /// Results of all other operations, over all pixels.
    pub pointwise: f64,
    /// Bytes of the images read and of the results.
    pub bytes: f64,
}

impl Work {
    /// The work of a graph.
    pub fn of(graph: &Graph<Op>) -> Work {
        let mut work = Work::default();
        for (_, node) in graph.iter() {
            let values = node.shape.len() as f64;
            match node.op {
                Op::Source(_) => work.bytes += values * node.dtype.size() as f64,
                Op::Fill(_) | Op::Index(_) => {}
                _ => work.operations += 1,
            }
            let read = node.inputs.first().map_or(0.0, |i| graph.node(*i).shape.len() as f64);
            let (filtering, pointwise) = cost(node);
            work.filtering += filtering * values;
            work.pointwise += pointwise * values.max(read);
        }
        let roots = graph.roots.iter().map(|r| graph.node(*r));
        work.bytes += roots.map(|n| (n.shape.len() * n.dtype.size()) as f64).sum::<f64>();
        work
    }

    /// The same work `n` times.
    #[must_use]
    pub fn times(self, n: usize) -> Work {
        let f = n as f64;
        Work {
            operations: self.operations.saturating_mul(n),
            filtering: self.filtering * f,
            pointwise: self.pointwise * f,
            bytes: self.bytes * f,
        }
    }
}

impl Work {
    /// Approximate seconds of one of `ranks` ranks with such a machine, accurate enough to choose
    /// between seconds and milliseconds.
    pub fn seconds(&self, machine: &Profile, ranks: usize) -> f64 {
        /// Bytes of two pixels read and one written.
        const PIXEL: f64 = 12.0;
        let share = 1.0 / ranks.max(1) as f64;
        let Work { operations, filtering, pointwise, bytes } = *self;
        let filters = filtering / (machine.arithmetic.f32 * machine.efficiency(Family::Separable).arithmetic);
        let moved = pointwise * PIXEL;
        let others = moved / (machine.memory.at(moved.max(1.0)) * machine.efficiency(Family::Pixel).memory);
        let copies = machine.upload((bytes * share) as usize, HostSide::Staged);
        (filters + others) * share + copies + operations as f64 * (machine.launch.host + machine.launch.device)
    }
}

/// Steps of filtering and of other work for each value.
fn cost(node: &Node<Op>) -> (f64, f64) {
    let taps = |n: usize| n as f64;
    match &node.op {
        Op::Source(_) | Op::Fill(_) | Op::Index(_) => (0.0, 0.0),
        Op::Correlate(f, _) => (taps(f.taps().len()), 0.0),
        Op::Separable { row, column, .. } => (taps(row.taps().len() + column.taps().len()), 0.0),
        Op::Generalized(g, _) => (taps(g.window.taps().len()), 0.0),
        // Exchanges of the sorting networks.
        Op::Median(MedianSize::Three, _) => (19.0, 0.0),
        Op::Median(MedianSize::Five, _) => (99.0, 0.0),
        Op::Windowed(how, _) => (how.steps(), 0.0),
        Op::Warp(_, Interpolation::Nearest, _) => (2.0, 1.0),
        Op::Warp(_, Interpolation::Bilinear, _) => (8.0, 1.0),
        Op::Warp(_, Interpolation::Bicubic, _) => (32.0, 1.0),
        Op::Remap(how, _) => ((how.taps() * how.taps()) as f64, 1.0),
        Op::Pixel(..)
        | Op::Convert
        | Op::Planes(_)
        | Op::Merge
        | Op::Lookup
        | Op::Flip(_)
        | Op::Transpose
        | Op::RowReduce(_)
        | Op::Running
        | Op::RunningDepth
        | Op::Fold(_)
        | Op::Tiles(..)
        | Op::Labels(_)
        | Op::Components(_)
        | Op::Reconstruct(_)
        | Op::Histogram { .. } => (0.0, 1.0),
    }
}
