//! Histograms.

use super::describe::{Accepts, Group, Pattern, describe, description, optional, required};
use super::footprint::{Access, Reading, Rect};
use super::operation::{
    AllReduce, Distribution, Effort, Extent, Family, ImageOperation, Instance, Sampled, Sizes, hold, images,
};
use horus_base::dtype::{DType, Scalar};
use horus_base::placed::Placed;
use horus_base::shape::Shape;

describe! {
    HISTOGRAM = description("histogram", Group::Numbers, Pattern::Reduction, "The number of pixels in each of equal bins over `lo..=hi`, a column each")
        .takes(&[required("bins", Accepts::Count, ""), optional("lo", Accepts::Limit, "auto", "the smallest number of the type; of floats 0"), optional("hi", Accepts::Limit, "auto", "the largest number of the type; of floats white")])
        .elsewhere(&["np.histogram", "cv.calcHist", "imageproc::stats::histogram"])
        .differs("the last bin includes its end as in NumPy; OpenCV excludes it")
        .example("histogram 4");
}

/// Counts in `bins` equal bins over a range, across all planes: a `1 x bins x 1` image of `f64`. A
/// launch counts only its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Histogram {
    /// Number of bins.
    pub bins: usize,
    /// Lower end of the first bin and upper end of the last, compared bitwise.
    range: [Scalar; 2],
}

impl Histogram {
    /// Bins over `lo..=hi`.
    pub const fn new(bins: usize, lo: f64, hi: f64) -> Histogram {
        Histogram { bins, range: [Scalar::F64(lo), Scalar::F64(hi)] }
    }

    /// Lower end of the first bin.
    pub fn lo(&self) -> f64 {
        self.range[0].to_f64()
    }

    /// Upper end of the last bin.
    pub fn hi(&self) -> f64 {
        self.range[1].to_f64()
    }
}

impl ImageOperation for Histogram {
    fn kind(&self) -> &'static str {
        "histogram"
    }

    fn name(&self) -> String {
        format!("histogram {}", self.bins)
    }

    fn check(&self, inputs: &[Extent], output: Extent) -> Result<(), String> {
        let [_] = images(inputs)?;
        let fits = self.bins > 0 && (Shape::new(1, self.bins, 1), DType::F64) == output;
        hold(fits, || format!("{} bins in {} {}", self.bins, output.0, output.1))
    }

    fn reads(&self, _: usize, _: Rect, of: Shape) -> Reading {
        Reading::whole(of)
    }

    fn access(&self, _: usize) -> Access {
        Access::IN_PLACE
    }

    fn placed(&self, _: usize, _: Shape, _: Shape) -> Option<Placed> {
        None
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn distribution(&self) -> Distribution {
        Distribution::Partial(AllReduce::Sum)
    }

    fn effort(&self, inputs: &[Extent], output: Extent, rows: usize) -> Effort {
        Effort::of_rows(Family::Histogram, inputs.first().unwrap_or(&output).0, rows, 1.0)
    }
}

impl Sampled for Histogram {
    fn samples(of: Sizes) -> Vec<Instance> {
        let how = Histogram::new(3, 0.0, 1.0);
        vec![Instance::of(how, &[of.image], (Shape::new(1, 3, 1), DType::F64))]
    }
}
