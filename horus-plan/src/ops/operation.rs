//! The facts of an operation that planner, checks and devices ask for.

use super::footprint::{Access, Reading, Rect};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use serde::{Deserialize, Serialize};

/// Extent and type of an image.
pub type Extent = (Shape, DType);

/// An operation on whole images. Its parameters are the value itself; images are told by their extents.
///
/// Recording, regions, planning, checks and devices ask here, so that a fact is written once, beside the parameters.
pub trait ImageOperation {
    /// The name, without parameters.
    fn kind(&self) -> &'static str;

    /// Short name for plans and messages.
    fn name(&self) -> String {
        self.kind().to_owned()
    }

    /// The rule of shapes and types, as memory holds them.
    ///
    /// # Errors
    /// What does not hold.
    fn check(&self, inputs: &[Extent], output: Extent) -> Result<(), String>;

    /// The pixels of input `input`, of shape `of`, that `need` of the result is computed from.
    fn reads(&self, input: usize, need: Rect, of: Shape) -> Reading;

    /// How the rows of an input follow from those of the result.
    fn access(&self, input: usize) -> Access;

    /// Returns `true` if input `input` has the pixels of the result, at the same places.
    fn in_place(&self, input: usize) -> bool;

    /// The part of the result, of shape `of`, that is computed where `need` is needed.
    fn computed(&self, need: Rect, of: Shape) -> Rect {
        match self.distribution() {
            Distribution::Rows => need,
            Distribution::Whole | Distribution::Partial(_) => Rect::whole(of),
        }
    }

    /// How ranks share the work.
    fn distribution(&self) -> Distribution {
        Distribution::Rows
    }

    /// Returns `true` if devices take input `input` as memory that begins with the first row of the image and ends with its last.
    fn end_to_end(&self, _input: usize) -> bool {
        self.distribution() == Distribution::Whole
    }

    /// The work of a launch of `rows` rows.
    fn effort(&self, inputs: &[Extent], output: Extent, rows: usize) -> Effort;

    /// Bytes that a processor takes beside inputs and results of this shape, where that grows with the image.
    fn scratch(&self, _shape: Shape) -> usize {
        0
    }
}

/// The work of a launch, without its memory traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Kernels that use a machine alike.
    pub family: Family,
    /// Pixels computed, of all planes (for reductions and histograms: read).
    pub pixels: usize,
    /// Multiply-adds for each of these pixels, and other arithmetic counted as so many.
    pub steps: f64,
    /// Rows above and below those computed that are read, together.
    pub reach: usize,
}

impl Effort {
    /// `rows` rows of an image of shape `of`.
    pub const fn of_rows(family: Family, of: Shape, rows: usize, steps: f64) -> Effort {
        Effort { family, pixels: rows * of.width * of.planes(), steps, reach: 0 }
    }
}

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

/// Kinds of kernels that use a machine alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Pixel operations, copies of planes, tables.
    Pixel,
    /// Linear filters of fewer than 100 taps.
    CorrelateSmall,
    /// Linear filters of 100 taps and more.
    CorrelateLarge,
    /// Linear filters with taps wherever they are told, as those along oblique lines.
    Sparse,
    /// Row and column passes in one kernel.
    Separable,
    /// Samples of affine maps, mirror images.
    Warp,
    /// Medians and generalized convolutions.
    Rank,
    /// Reductions, with the expression that is reduced.
    Reduction,
    /// Histograms.
    Histogram,
    /// Transpositions.
    Transpose,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 10] = [
        Family::Pixel,
        Family::CorrelateSmall,
        Family::CorrelateLarge,
        Family::Sparse,
        Family::Separable,
        Family::Warp,
        Family::Rank,
        Family::Reduction,
        Family::Histogram,
        Family::Transpose,
    ];

    /// Whether its kernels read and write images tile by tile.
    pub const fn is_tiled(self) -> bool {
        match self {
            Family::CorrelateSmall | Family::CorrelateLarge | Family::Sparse | Family::Separable | Family::Rank => true,
            Family::Pixel | Family::Warp | Family::Reduction | Family::Histogram | Family::Transpose => false,
        }
    }

    /// Its name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Pixel => "pixel operations",
            Family::CorrelateSmall => "small filters",
            Family::CorrelateLarge => "large filters",
            Family::Sparse => "filters with scattered taps",
            Family::Separable => "separable filters",
            Family::Warp => "affine maps",
            Family::Rank => "rank filters",
            Family::Reduction => "reductions",
            Family::Histogram => "histograms",
            Family::Transpose => "transpositions",
        }
    }
}

/// Fails unless `condition`; the text is made only then.
pub(crate) fn hold(condition: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(text()) }
}

/// The images that an operation on `N` images reads.
pub(crate) fn images<const N: usize>(inputs: &[Extent]) -> Result<[Extent; N], String> {
    inputs.try_into().map_err(|_| format!("it reads {N} images, got {}", inputs.len()))
}

/// Fails unless the result is of the wanted extent and type.
pub(crate) fn makes(wanted: Extent, output: Extent) -> Result<(), String> {
    hold(wanted.0 == output.0, || format!("it makes an image of {}, wanted is {}", wanted.0, output.0))?;
    hold(wanted.1 == output.1, || format!("it makes {}, wanted is {}", wanted.1, output.1))
}

/// Fails unless an image is read at the places of the result.
pub(crate) fn same_places(input: Shape, output: Shape) -> Result<(), String> {
    hold(input == output, || format!("it reads {input} pixel by pixel and is {output}"))
}
