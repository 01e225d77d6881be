//! Distribution of kernels over ranks: the rows that each rank computes, and the combination of the ranks'
//! results.
//!
//! Planner, movement, executor, devices and verifier all query this module, so that each fact is stated once.

use super::{AllReduce, Distribution, Kernel};
use horus_base::shape::Shape;

impl Kernel {
    /// Distribution of the kernel.
    pub fn distribution(&self) -> Distribution {
        match self {
            Kernel::Source(_) | Kernel::Map(_) | Kernel::Repeat(_) | Kernel::MapReduce(..) => Distribution::Rows,
            Kernel::Whole(operation) => operation.distribution(),
        }
    }

    /// The combination of the ranks' results; `None` if launches yield the result itself.
    pub fn all_reduce(&self) -> Option<AllReduce> {
        match self.distribution() {
            Distribution::Partial(how) => Some(how),
            Distribution::Rows | Distribution::Whole => None,
        }
    }

    /// Returns `true` if a launch is given rows of the first input instead of the output.
    pub fn goes_over_input(&self) -> bool {
        self.all_reduce().is_some()
    }

    /// Returns `true` if every rank has the whole output (of shape `output`) after a launch. If all inputs
    /// are `replicated`, every rank computes a single pixel itself, which is cheaper than a message.
    pub fn is_on_every_rank(&self, output: Shape, replicated: impl FnOnce() -> bool) -> bool {
        match self.distribution() {
            Distribution::Whole | Distribution::Partial(_) => true,
            Distribution::Rows => output.area() == 1 && replicated(),
        }
    }

    /// Returns `true` if a launch accumulates into a cleared output, so that ranks without rows also launch
    /// it.
    pub fn launches_without_rows(&self) -> bool {
        self.all_reduce().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Fold, Histogram, Lookup, Merge, RowReduce, Transpose, Whole};

    const HISTOGRAM: Kernel = Kernel::Whole(Whole::Histogram(Histogram::new(3, 0.0, 1.0)));

    #[test]
    fn one_pixel_is_computed_everywhere_only_from_what_is_everywhere() {
        let (one, many) = (Shape::new(1, 1, 3), Shape::new(2, 1, 1));
        for replicated in [false, true] {
            let everywhere = |kernel: &Kernel, shape| kernel.is_on_every_rank(shape, || replicated);
            assert_eq!(everywhere(&Kernel::from(Merge), one), replicated);
            assert!(!everywhere(&Kernel::from(Merge), many));
            assert!(everywhere(&Kernel::from(Fold::Sum), one), "it reads all rows, wherever they are");
            assert!(everywhere(&HISTOGRAM, many), "counts are added up everywhere");
        }
    }

    #[test]
    fn only_partial_results_are_combined_and_launched_without_rows() {
        let strips = [Kernel::from(Merge), Kernel::from(Transpose), Kernel::from(Lookup), Kernel::from(RowReduce::Sum)];
        for kernel in strips.iter().chain([&Kernel::from(Fold::Max)]) {
            let answers = (kernel.all_reduce(), kernel.goes_over_input(), kernel.launches_without_rows());
            assert_eq!(answers, (None, false, false), "{}", kernel.name());
        }
        assert_eq!(HISTOGRAM.all_reduce(), Some(AllReduce::Sum));
        assert!(HISTOGRAM.goes_over_input() && HISTOGRAM.launches_without_rows());
    }
}
