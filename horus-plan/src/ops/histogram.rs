//! Histograms.

use super::describe::{Accepts, OperationGroup, Pattern, describe, description, optional, required};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    AllReduce, Distribution, Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages,
    SampleOperations, ensure, images,
};
use horus_base::dtype::{DType, Scalar};
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

describe! {
    HISTOGRAM = description("histogram", OperationGroup::Numbers, Pattern::Reduction, "The number of pixels in each of equal bins over `lo..=hi`, a column each")
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
    /// The lower end of the first bin and the upper end of the last, compared bitwise.
    range: [Scalar; 2],
}

impl Histogram {
    /// A histogram of `bins` bins over `lo..=hi`.
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

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [_] = images(inputs)?;
        let fits = self.bins > 0 && (Shape::new(1, self.bins, 1), DType::F64) == output;
        ensure(fits, || format!("{} bins in {} {}", self.bins, output.0, output.1))
    }

    fn reads(&self, _: usize, _: Rect, of: Shape) -> InputRead {
        InputRead::whole(of)
    }

    fn access(&self, _: usize) -> Access {
        Access::IN_PLACE
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        None
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn distribution(&self) -> Distribution {
        Distribution::Partial(AllReduce::Sum)
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        LaunchEffort::of_rows(Family::Histogram, inputs.first().unwrap_or(&output).0, rows, 1.0)
    }
}

impl SampleOperations for Histogram {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let how = Histogram::new(3, 0.0, 1.0);
        vec![Instance::of(how, &[of.image], (Shape::new(1, 3, 1), DType::F64))]
    }
}
