//! Chains: expressions that filters and shifts of the same kernel read, and that are never stored whole.

use super::work::of_instruction;
use super::{Leaf, LeafOp, MapKernel, Source};

/// Chains within each other, at most.
const DEPTH: usize = 3;
/// Pixels that an evaluation of a chain reads straight from the images, at most: each is code of a kernel.
const READS: usize = 100;
/// The furthest that a chain reads in any direction.
const FURTHEST: usize = 16;

/// What a read of a device's nearest cache takes, in multiply-adds: an estimate from the rates of both on an H100.
const READ: f64 = 4.0;
/// What it takes besides to evaluate a chain for a pixel of a tile and to read it from there.
const IN_TILE: f64 = 8.0;
/// Pixels of a tile, those around its own included, for each pixel of its own that small filters read.
const AROUND: f64 = 1.3;

impl MapKernel {
    /// Why a chain of this kernel, or of its chains, cannot be evaluated where it is read; none if all can.
    ///
    /// Chains of pixel operations alone always can. Others have linear filters, row passes and shifts as well, over inputs or over
    /// chains of their own, in floating point and as far as an evaluation reads few pixels.
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
            LeafOp::Generalized(..) | LeafOp::Median(..) | LeafOp::Warp(..) | LeafOp::Flip(..) => false,
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

    /// Pixels of images that are read for a pixel where nothing is kept.
    pub fn reads_per_pixel(&self) -> usize {
        self.leaves.iter().map(|l| self.taps(l).saturating_mul(self.evaluated(l, &MapKernel::reads_per_pixel, 1))).sum()
    }

    /// How often a leaf reads an input or a chain, through a row pass or itself.
    fn taps(&self, leaf: &Leaf) -> usize {
        match &leaf.op {
            LeafOp::Correlate(Source::Stage(s), f, _) => f.taps().len() * self.stages[*s].filter.taps().len(),
            LeafOp::Correlate(_, f, _) => f.taps().len(),
            _ => 1,
        }
    }

    /// What `of` tells of the chain that a leaf reads; `itself` for a leaf that reads an input.
    fn evaluated<T>(&self, leaf: &Leaf, of: &dyn Fn(&MapKernel) -> T, itself: T) -> T {
        match self.image(leaf) {
            Source::Chain(c) => of(&self.chains[c]),
            _ => itself,
        }
    }

    /// What it takes to evaluate a chain for one pixel where nothing is kept, in multiply-adds.
    fn evaluation(&self) -> f64 {
        let leaves =
            self.leaves.iter().map(|l| self.taps(l) as f64 * (1.0 + self.evaluated(l, &MapKernel::evaluation, READ)));
        leaves.sum::<f64>() + self.code.iter().map(|i| of_instruction(i.op)).sum::<f64>()
    }

    /// What chains that read around their pixels take for each pixel, where evaluations read images themselves.
    pub(super) fn straight(&self) -> f64 {
        let of_chain = |(c, chain): (usize, &MapKernel)| {
            let source = Source::Chain(c);
            let readers = self.leaves.iter().filter(|l| l.source() == source);
            let times = match self.per_pixel {
                // Row passes read tiles all the same.
                true => readers.map(|l| self.taps(l)).sum::<usize>(),
                false if chain.is_pointwise() => return 0.0,
                false => 0,
            };
            let tiles = self.evaluations(c) - usize::from(self.per_pixel && times > 0);
            times as f64 * chain.evaluation() + tiles as f64 * AROUND * (IN_TILE + chain.evaluation())
        };
        self.chains.iter().enumerate().map(of_chain).sum()
    }

    /// All leaves, each with the kernel or the chain that it is of.
    pub(super) fn all_leaves(&self) -> Vec<(&MapKernel, &Leaf)> {
        let mut all: Vec<_> = self.leaves.iter().map(|l| (self, l)).collect();
        all.extend(self.chains.iter().flat_map(MapKernel::all_leaves));
        all
    }
}
