//! Several iterations of a loop in one launch: the contents of [`Kernel::Repeat`](super::Kernel::Repeat).

use super::{Access, FilterSource, Leaf, LeafOp, MapKernel};
use crate::ops::edge::WarpEdge;
use crate::ops::neighbourhood::{OrderFilter, Reach};
use horus_base::shape::{Border, Shape, Window};

/// An expression per pixel that is applied to its own result, iteration by iteration. Intermediate results
/// are never stored whole.
///
/// Each result is an image of its own, with the border mode of the expression beyond its edges. All
/// iterations but the last therefore also compute surrounding rows, as far as later iterations reach, but
/// none beyond the image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repeat {
    /// One iteration.
    pub body: MapKernel,
    /// Index of the input that each iteration replaces by the previous result. The other inputs are constant.
    pub state: usize,
    /// Number of iterations.
    pub iterations: usize,
}

impl Repeat {
    /// Maximum number of iterations per launch.
    pub const MOST: usize = 64;
    /// Maximum number of taps of all filters of an iteration: with more, memory is not the bottleneck.
    pub const TAPS: usize = 64;
    /// Maximum reach of all iterations of a launch together, in each direction: the margin of device tiles.
    pub const FURTHEST: usize = 16;

    /// The reason why one launch cannot compute the iterations; `None` if it can. The state must have the
    /// type and the shape of the result.
    ///
    /// Filters must read the state with a single non-periodic border. Other images must be read pixel by
    /// pixel or broadcast.
    pub fn fault(&self) -> Option<&'static str> {
        let Repeat { body, state, iterations: steps } = self;
        let state = FilterSource::Input(*state);
        let of_state = |l: &Leaf| l.source() == state;
        let border = self.border();
        let sound = |l: &Leaf| match &l.op {
            LeafOp::Load(_) => true,
            LeafOp::Correlate(_, _, b) | LeafOp::OrderFilter(_, OrderFilter::Fold(_), b) => {
                of_state(l) && Some(*b) == border && *b != Border::Wrap
            }
            LeafOp::LoadPlane(_, map) => !of_state(l) && map.fixed().is_some(),
            LeafOp::Warp(_, _, _, edge) => !of_state(l) && l.repeats() && matches!(edge, WarpEdge::Border(_)),
            LeafOp::OrderFilter(..) | LeafOp::Flip(..) | LeafOp::Shift(..) => false,
        };
        let typed = |l: &Leaf| !of_state(l) || l.dtype == body.result_type();
        [
            (self.state >= body.inputs || !body.leaves.iter().any(of_state), "no step reads what the step before made"),
            (!body.chains.is_empty() || !body.stages.is_empty(), "row passes or chains"),
            (!body.leaves.iter().all(sound), "what a step reads elsewhere"),
            (!body.leaves.iter().all(typed), "a step of another type"),
            (!(1..=Repeat::MOST).contains(steps), "the number of steps"),
            (self.taps() > Repeat::TAPS, "the number of taps"),
            (self.furthest() > Repeat::FURTHEST, "a reach that no tile has room for"),
        ]
        .into_iter()
        .find_map(|(wrong, what)| wrong.then_some(what))
    }

    /// The border with which the state is read; `None` if only the pixel itself is read.
    pub fn border(&self) -> Option<Border> {
        let of_state = self.body.leaves.iter().filter(|l| l.source() == FilterSource::Input(self.state));
        of_state
            .filter_map(|l| match l.op {
                LeafOp::Correlate(_, _, b) | LeafOp::OrderFilter(_, _, b) => Some(b),
                _ => None,
            })
            .next()
    }

    /// Reach of one iteration in the state. A reflecting border makes it symmetric.
    pub fn reach(&self) -> Reach {
        let of_state = self.body.leaves.iter().filter(|l| l.source() == FilterSource::Input(self.state));
        let all = of_state.filter_map(|l| l.reach(&[])).fold(Reach::NONE, |all, (reach, _)| all.max(reach));
        if self.border().and_then(Border::mirror).is_none() {
            return all;
        }
        let across = all.left.max(all.right);
        Reach { left: across, right: across, ..all }
    }

    /// Maximum reach of all iterations together, in any direction.
    fn furthest(&self) -> usize {
        let Reach { up, down, left, right } = self.reach();
        up.max(down).max(left).max(right).saturating_mul(self.iterations)
    }

    /// Taps of all filters of an iteration.
    fn taps(&self) -> usize {
        let taps = |l: &Leaf| match &l.op {
            LeafOp::Correlate(_, f, _) => f.taps().len(),
            LeafOp::OrderFilter(_, filter, _) => filter.window().map_or(0, |w| w.taps().len()),
            _ => 0,
        };
        self.body.leaves.iter().map(taps).sum()
    }

    /// Access to input `i`: to the state with the reach of all iterations, to others around the rows that the
    /// first iteration computes.
    pub(super) fn access(&self, i: usize) -> Access {
        let around = |steps: usize| {
            let Reach { up, down, left, right } = self.reach();
            let times = |n: usize| n.saturating_mul(steps);
            Reach { up: times(up), down: times(down), left: times(left), right: times(right) }
        };
        match self.body.access(i) {
            Access::Rows { .. } if i == self.state => Access::Rows { reach: around(self.iterations), wrap: false },
            Access::Rows { reach, wrap } => {
                Access::Rows { reach: around(self.iterations.saturating_sub(1)).then(reach), wrap }
            }
            other => other,
        }
    }

    /// The rows of an image of shape `out` that each iteration computes, so that the last can compute `rows`.
    pub fn windows(&self, rows: Window, out: Shape) -> Vec<Window> {
        let mut windows = vec![rows.clipped(out.height)];
        for _ in 1..self.iterations {
            let last = windows[windows.len() - 1];
            windows.push(self.before(last, out));
        }
        windows.reverse();
        windows
    }

    /// The rows of the state that an iteration reads.
    fn before(&self, rows: Window, out: Shape) -> Window {
        self.body.footprint(self.state, rows, out, out).union(rows)
    }

    pub(super) fn footprint(&self, i: usize, rows: Window, out: Shape, input: Shape) -> Window {
        let mut first = rows.clipped(out.height);
        for _ in 1..self.iterations {
            first = self.before(first, out);
        }
        self.body.footprint(i, first, out, input)
    }

    /// Pixels per column that all iterations compute for `rows`.
    pub(super) fn rows_computed(&self, rows: Window, out: Shape) -> usize {
        self.windows(rows, out).iter().map(|w| w.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::kernel::{Kernel, Val};
    use crate::ops::geometric::{Affine, Interpolation};
    use crate::ops::neighbourhood::Filter;
    use crate::ops::planes::PlaneMap;
    use horus_base::dtype::DType;

    fn leaf(op: LeafOp) -> Leaf {
        Leaf { op, dtype: DType::F32 }
    }

    fn filter(taps: &[(i32, i32)], border: Border) -> Leaf {
        leaf(LeafOp::Correlate(FilterSource::Input(0), Filter::sparse(taps, vec![1.0; taps.len()]), border))
    }

    fn repeat(leaves: Vec<Leaf>, steps: usize) -> Repeat {
        let body = MapKernel { inputs: 2, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() };
        Repeat { body, state: 0, iterations: steps }
    }

    #[test]
    fn what_a_launch_reads_is_what_its_steps_read_one_after_the_other() {
        for border in [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Constant(1.0)] {
            for taps in [&[(-1, 0), (1, 0)][..], &[(2, 1), (0, 0)], &[(-3, 0)], &[(0, -1), (0, 1)]] {
                for (steps, h) in [(1, 9), (2, 9), (3, 9), (4, 2), (5, 40)] {
                    let all = repeat(vec![filter(taps, border), leaf(LeafOp::Load(1))], steps);
                    let (shape, kernel) = (Shape::new(h, 5, 1), Kernel::Repeat(all.clone()));
                    for start in 0..h.cast_signed() {
                        for end in start + 1..=h.cast_signed() {
                            let rows = Window::new(start, end);
                            let (mut state, mut others) = (rows, rows);
                            for _ in 0..steps {
                                others = state;
                                state = Kernel::Map(all.body.clone()).footprint(0, state, shape, shape).union(state);
                            }
                            let read = kernel.footprint(0, rows, shape, shape);
                            assert!(
                                state.covers(read) && read.covers(others.intersect(read)),
                                "{border} {taps:?} {rows}"
                            );
                            assert_eq!(kernel.footprint(1, rows, shape, shape), others, "{border} {taps:?} {rows}");
                            let Access::Rows { reach, wrap: false } = kernel.access(0) else { panic!("rows around") };
                            assert!(
                                rows.grown(reach.up, reach.down).clipped(h).covers(read),
                                "{border} {taps:?} {rows}"
                            );
                            let Access::Rows { reach, wrap: false } = kernel.access(1) else { panic!("rows around") };
                            assert!(rows.grown(reach.up, reach.down).clipped(h).covers(others), "{border} {rows}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn steps_that_cannot_be_put_together_are_told() {
        let cross = |b| filter(&[(0, 1), (1, 0)], b);
        let row = |input, map| leaf(LeafOp::Warp(input, map, Interpolation::Nearest, Border::Replicate.into()));
        let repeated = Affine { yy: 0, ..Affine::IDENTITY };
        let good = repeat(vec![cross(Border::Reflect), leaf(LeafOp::Load(0)), row(1, repeated)], 3);
        assert_eq!(good.fault(), None);
        let bad = [
            repeat(vec![cross(Border::Wrap)], 3),
            repeat(vec![cross(Border::Reflect), cross(Border::Replicate)], 3),
            repeat(vec![leaf(LeafOp::Load(1))], 3),
            repeat(vec![leaf(LeafOp::LoadPlane(0, PlaneMap::one(1)))], 3),
            repeat(vec![cross(Border::Reflect), row(0, repeated)], 3),
            repeat(vec![cross(Border::Reflect), row(1, Affine::IDENTITY)], 3),
            repeat(vec![cross(Border::Reflect)], 0),
            repeat(vec![cross(Border::Reflect)], Repeat::MOST + 1),
            Repeat { state: 2, ..good.clone() },
        ];
        for repeat in bad {
            assert!(repeat.fault().is_some(), "{repeat:?}");
        }
        let mut of_bytes = good;
        of_bytes.body.leaves[1].dtype = DType::U8;
        assert!(of_bytes.fault().is_some());
    }
}
