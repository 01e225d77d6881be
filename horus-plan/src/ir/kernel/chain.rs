//! Chains: expressions that filters and shifts of the same kernel read; never stored whole.

use super::work::of_instruction;
use super::{FilterSource, Leaf, LeafOp, MapKernel};
use crate::ops::edge::WarpEdge;
use crate::ops::geometric::Interpolation;
use horus_base::shape::Border;

/// Maximum nesting depth of chains.
const DEPTH: usize = 3;
/// Maximum number of pixels that one evaluation of a chain reads directly from images: each read is code of
/// the kernel.
const READS: usize = 49;
/// Maximum reach of a chain in any direction. It leaves the long row filters of detectors in kernels of their
/// own: otherwise absorption would depend on the image size, while precompiled kernels serve all sizes.
const FURTHEST: usize = 8;

/// Cost of a read from a GPU's nearest cache, in multiply-adds: an estimate from the rates of both on an
/// H100.
const READ: f64 = 4.0;
/// Additional cost of evaluating a chain for a pixel of a tile and reading it back: an estimate.
const IN_TILE: f64 = 8.0;
/// Pixels of a tile with its surroundings, per pixel of the tile itself, for small filters: an estimate.
const AROUND: f64 = 1.3;

impl MapKernel {
    /// The reason why a chain of this kernel, or of its chains, cannot be evaluated where it is read; `None`
    /// if all can.
    ///
    /// Chains of pixel operations alone always can. Other chains may have linear filters, row filters and
    /// shifts (over inputs or over their own chains) and broadcast rows, columns and pixels. They must be in
    /// floating point and read few pixels per evaluation.
    pub fn chain_fault(&self) -> Option<&'static str> {
        let shifts = |m: &MapKernel| m.leaves.iter().any(|l| matches!(l.op, LeafOp::Shift(..)) && !l.dtype.is_float());
        if shifts(self) {
            return Some("a shift of integers");
        }
        self.chains.iter().find_map(|c| c.fault_within(DEPTH))
    }

    fn fault_within(&self, depth: usize) -> Option<&'static str> {
        if self.is_pointwise() && self.chains.is_empty() {
            return None;
        }
        let linear = |l: &Leaf| match l.op {
            LeafOp::Load(_) | LeafOp::LoadPlane(..) => true,
            LeafOp::Correlate(..) | LeafOp::Shift(..) => l.dtype.is_float(),
            LeafOp::Warp(_, map, Interpolation::Nearest, WarpEdge::Border(Border::Replicate)) => {
                map.broadcast().is_some()
            }
            LeafOp::OrderFilter(..) | LeafOp::Warp(..) | LeafOp::Flip(..) => false,
        };
        let reaches = self.leaves.iter().filter_map(|l| l.reach(&self.stages));
        let furthest = reaches.map(|(r, _)| r.up.max(r.down).max(r.left).max(r.right)).max().unwrap_or(0);
        [
            (depth == 1, "chains within too many others"),
            (!self.leaves.iter().all(linear), "a chain that is neither linear filters, shifts nor pixel operations"),
            (self.reads_per_pixel() > READS, "the pixels that a chain reads"),
            (furthest > FURTHEST, "the reach of a chain"),
        ]
        .into_iter()
        .find_map(|(wrong, what)| wrong.then_some(what))
        .or_else(|| self.chains.iter().find_map(|c| c.fault_within(depth - 1)))
    }

    /// Image pixels read per output pixel if no intermediate values are stored: 45 for a filter of 5 taps
    /// over a filter of 9.
    pub fn reads_per_pixel(&self) -> usize {
        self.leaves.iter().map(|l| self.taps(l).saturating_mul(self.evaluated(l, &MapKernel::reads_per_pixel, 1))).sum()
    }

    /// Number of reads of an input or a chain by a leaf, directly or through a row filter.
    fn taps(&self, leaf: &Leaf) -> usize {
        match &leaf.op {
            LeafOp::Correlate(FilterSource::Stage(s), f, _) => f.taps().len() * self.stages[*s].filter.taps().len(),
            LeafOp::Correlate(_, f, _) => f.taps().len(),
            _ => 1,
        }
    }

    /// Applies `of` to the chain that a leaf reads; returns `itself` for a leaf that reads an input.
    fn evaluated<T>(&self, leaf: &Leaf, of: &dyn Fn(&MapKernel) -> T, itself: T) -> T {
        match self.image(leaf) {
            FilterSource::Chain(c) => of(&self.chains[c]),
            _ => itself,
        }
    }

    /// Cost in multiply-adds of evaluating a chain for one pixel if no intermediate values are stored.
    fn evaluation(&self) -> f64 {
        let leaves =
            self.leaves.iter().map(|l| self.taps(l) as f64 * (1.0 + self.evaluated(l, &MapKernel::evaluation, READ)));
        leaves.sum::<f64>() + self.code.iter().map(|i| of_instruction(i.op)).sum::<f64>()
    }

    /// Cost per pixel of chains that read around their pixels, if images are read directly.
    pub(super) fn straight(&self) -> f64 {
        let around = self.chains.iter().enumerate().filter(|(_, chain)| !chain.is_pointwise());
        around.map(|(c, chain)| self.evaluations(c) as f64 * AROUND * (IN_TILE + chain.evaluation())).sum()
    }

    /// Returns `true` if a chain of this kernel, or of its chains, has a filter. Only CPUs compute such
    /// chains: on a GPU, computing filters again costs more than it saves (`docs/performance/model.md`).
    pub fn chains_filters(&self) -> bool {
        let filter = |l: &Leaf| matches!(l.op, LeafOp::Correlate(..));
        self.chains.iter().any(|chain| chain.leaves.iter().any(filter) || chain.chains_filters())
    }

    /// All leaves, each with its kernel or chain.
    pub(super) fn all_leaves(&self) -> Vec<(&MapKernel, &Leaf)> {
        let mut all: Vec<_> = self.leaves.iter().map(|l| (self, l)).collect();
        all.extend(self.chains.iter().flat_map(MapKernel::all_leaves));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::kernel::{Access, Kernel, Val};
    use crate::ops::neighbourhood::{Filter, MedianSize};
    use horus_base::dtype::DType;
    use horus_base::shape::{Shape, Window};

    const BORDERS: [Border; 5] = Border::all(0.0);

    fn kernel(chains: Vec<MapKernel>, op: LeafOp) -> MapKernel {
        let leaves = vec![Leaf { op, dtype: DType::F32 }];
        MapKernel { inputs: 1, chains, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() }
    }

    fn column(up: i32, down: i32) -> Filter {
        Filter::sparse([(-up, 0), (0, 0), (down, 0)], [1.0; 3])
    }

    #[test]
    fn a_launch_reads_what_its_chains_read_around_all_rows_that_are_read_of_them() {
        for (inner, outer) in BORDERS.into_iter().flat_map(|b| BORDERS.map(|c| (b, c))) {
            for [(a, b), (c, d)] in [[(1, 0), (0, 2)], [(0, 3), (2, 0)], [(1, 1), (1, 1)]] {
                let chain = kernel(vec![], LeafOp::Correlate(FilterSource::Input(0), column(a, b), inner));
                let all = kernel(vec![chain], LeafOp::Correlate(FilterSource::Chain(0), column(c, d), outer));
                let Access::Rows { reach, wrap } = all.access(0) else { panic!("rows around") };
                assert_eq!(wrap, inner == Border::Wrap || outer == Border::Wrap);
                for h in 1..9usize {
                    let shape = Shape::new(h, 4, 1);
                    for (start, end) in (0..h).flat_map(|s| (s + 1..=h).map(move |e| (s, e))) {
                        let rows = Window::new(start as isize, end as isize);
                        let got = Kernel::Map(all.clone()).footprint(0, rows, shape, shape);
                        let around = rows.grown(reach.up, reach.down);
                        for y in start..end {
                            for dy in [-c, 0, d] {
                                let Some(of_chain) = outer.map(y as isize + dy as isize, h) else { continue };
                                for dz in [-a, 0, b] {
                                    let Some(row) = inner.map(of_chain as isize + dz as isize, h) else { continue };
                                    let row = row as isize;
                                    assert!(got.contains(row), "{inner} {outer} {rows} of {h}: {row} not in {got}");
                                    // The row is in place or, with periodic borders, a copy.
                                    let copies = (-9..=9).map(|k| row + k * h as isize);
                                    let mut held = copies.filter(|y| around.contains(*y) && (wrap || *y == row));
                                    assert!(
                                        held.next().is_some(),
                                        "{inner} {outer} {rows} of {h}: {row} beyond {around}"
                                    );
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn chains_that_cannot_be_evaluated_are_told() {
        let filter =
            |source, taps: usize| LeafOp::Correlate(source, Filter::dense(1, taps, vec![1.0; taps]), Border::Wrap);
        let over = |chain: MapKernel| kernel(vec![chain], filter(FilterSource::Chain(0), 3));
        let pixels = kernel(vec![], LeafOp::Load(0));
        let one = over(kernel(vec![], filter(FilterSource::Input(0), 5)));
        assert_eq!(over(pixels.clone()).chain_fault(), None);
        assert_eq!(one.chain_fault(), None);
        assert_eq!((one.chains[0].reads_per_pixel(), one.reads_per_pixel()), (5, 15));
        assert_eq!(over(one.clone()).chain_fault(), None);
        assert_eq!(over(over(over(pixels))).chain_fault(), None, "pixel operations may be within two others");
        let mut bytes = kernel(vec![], LeafOp::Shift(FilterSource::Input(0), [0, 1], Border::Wrap));
        bytes.leaves[0].dtype = DType::U8;
        let bad = [
            (over(over(one)), "too many others"),
            (over(kernel(vec![], filter(FilterSource::Input(0), 101))), "pixels that a chain reads"),
            (over(kernel(vec![], filter(FilterSource::Input(0), 35))), "reach"),
            (over(kernel(vec![], LeafOp::OrderFilter(0, MedianSize::Three.into(), Border::Wrap))), "linear"),
            (over(bytes.clone()), "linear"),
            (bytes, "integers"),
        ];
        for (kernel, what) in bad {
            assert!(
                kernel.chain_fault().is_some_and(|fault| fault.contains(what)),
                "{what}: {:?}",
                kernel.chain_fault()
            );
        }
    }
}
