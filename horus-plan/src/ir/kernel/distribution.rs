//! How kernels are distributed over ranks: what every rank computes, from which rows, and how the results of ranks make
//! the whole result.
//!
//! Planner, movement, executor and devices ask here, so that a new kernel says it once. (The checker of plans,
//! `plan::verify`, asks nobody: it has its own view.)

use super::Kernel;
use horus_base::shape::Shape;

/// How a kernel is distributed over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Each rank computes the rows of the output that are its own.
    Rows,
    /// Every rank computes the whole result, from all of the input.
    Whole,
    /// Each rank makes a result of the full size from the rows *of the first input* that are its own; these rows are what a
    /// launch is given. Combined, the results of all ranks are the result.
    Partial(AllReduce),
}

/// How the results of ranks, one of the full size each, make the whole result. The order of the ranks must not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllReduce {
    /// `f64` numbers are added element by element. They are counts, or digits of exact sums: whole numbers below 2^53, whose sums are
    /// exact.
    Sum,
}

impl Kernel {
    /// How the kernel is distributed.
    pub const fn distribution(&self) -> Distribution {
        match self {
            Kernel::Fold(_) | Kernel::Components(_) | Kernel::Reconstruct(_) => Distribution::Whole,
            Kernel::Histogram { .. } => Distribution::Partial(AllReduce::Sum),
            Kernel::Labels(how) if how.adds_up() => Distribution::Partial(AllReduce::Sum),
            Kernel::Source(_)
            | Kernel::Map(_)
            | Kernel::Repeat(_)
            | Kernel::Merge
            | Kernel::Transpose
            | Kernel::Lookup
            | Kernel::Remap(..)
            | Kernel::Windowed(..)
            | Kernel::RowReduce(_)
            | Kernel::Running
            | Kernel::Tiles(..)
            | Kernel::RunningDepth
            | Kernel::Labels(_)
            | Kernel::MapReduce(..) => Distribution::Rows,
        }
    }

    /// How the results of ranks are combined; `None` for a kernel whose launches yield the result itself.
    pub const fn all_reduce(&self) -> Option<AllReduce> {
        match self.distribution() {
            Distribution::Partial(how) => Some(how),
            Distribution::Rows | Distribution::Whole => None,
        }
    }

    /// Whether the rows that a launch is given are rows of the first input, not of the output.
    pub const fn goes_over_input(&self) -> bool {
        self.all_reduce().is_some()
    }

    /// Whether every rank holds the whole output of shape `output` after a launch. One pixel is computed by every rank
    /// where all inputs are `replicated`: that is less than sending it.
    pub fn is_on_every_rank(&self, output: Shape, replicated: impl FnOnce() -> bool) -> bool {
        match self.distribution() {
            Distribution::Whole | Distribution::Partial(_) => true,
            Distribution::Rows => output.area() == 1 && replicated(),
        }
    }

    /// Whether a launch adds to its output, which is cleared before. So a rank that has no rows launches it all the same.
    pub const fn launches_without_rows(&self) -> bool {
        self.all_reduce().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::reduce::{Fold, RowReduce};

    const HISTOGRAM: Kernel = Kernel::Histogram { bins: 3, lo: 0.0, hi: 1.0 };

    #[test]
    fn one_pixel_is_computed_everywhere_only_from_what_is_everywhere() {
        let (one, many) = (Shape::new(1, 1, 3), Shape::new(2, 1, 1));
        for replicated in [false, true] {
            let everywhere = |kernel: &Kernel, shape| kernel.is_on_every_rank(shape, || replicated);
            assert_eq!(everywhere(&Kernel::Merge, one), replicated);
            assert!(!everywhere(&Kernel::Merge, many));
            assert!(everywhere(&Kernel::Fold(Fold::Sum), one), "it reads all rows, wherever they are");
            assert!(everywhere(&HISTOGRAM, many), "counts are added up everywhere");
        }
    }

    #[test]
    fn only_partial_results_are_combined_and_launched_without_rows() {
        let strips = [Kernel::Merge, Kernel::Transpose, Kernel::Lookup, Kernel::RowReduce(RowReduce::Sum)];
        for kernel in strips.iter().chain([&Kernel::Fold(Fold::Max)]) {
            let answers = (kernel.all_reduce(), kernel.goes_over_input(), kernel.launches_without_rows());
            assert_eq!(answers, (None, false, false), "{}", kernel.name());
        }
        assert_eq!(HISTOGRAM.all_reduce(), Some(AllReduce::Sum));
        assert!(HISTOGRAM.goes_over_input() && HISTOGRAM.launches_without_rows());
    }
}
