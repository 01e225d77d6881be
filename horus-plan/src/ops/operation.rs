//! The interface through which planner, checks and devices query an operation.

use super::Whole;
use super::footprint::{Access, InputRead, Rect};
use horus_base::dtype::DType;
use horus_base::position_map::PositionMap;
use horus_base::shape::{Border, Shape};
use serde::{Deserialize, Serialize};

/// Extent and type of an image.
pub type ImageExtent = (Shape, DType);

/// A whole-image operation. The value itself holds the parameters; images are given by their
/// extents.
///
/// Recording, regions, planning, checks and devices all query this trait, so that each fact is
/// written once, beside the parameters.
pub trait ImageOperation {
    /// The name, without parameters.
    fn kind(&self) -> &'static str;

    /// Short name for plans and messages.
    fn name(&self) -> String {
        self.kind().to_owned()
    }

    /// The rule for shapes and types, for images held in memory.
    ///
    /// # Errors
    /// Describes the violated rule.
    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String>;

    /// The pixels of input `input`, of shape `of`, from which `need` of the result is computed.
    fn reads(&self, input: usize, need: Rect, of: Shape) -> InputRead;

    /// The rows of an input that given rows of the result require.
    fn access(&self, input: usize) -> Access;

    /// Returns `true` if input `input` holds the pixels of the result at the same positions.
    fn in_place(&self, input: usize) -> bool;

    /// Returns `true` if each level of the result reads only the same level of input `input`, and
    /// `false` if it may read others, or if all levels read the same pixels.
    fn by_levels(&self, _input: usize) -> bool {
        false
    }

    /// Returns `true` if it is computed of images whose pixels have several samples; see
    /// [`Op::knows_samples`](crate::ir::graph::Op::knows_samples).
    fn supports_samples(&self) -> bool {
        false
    }

    /// The place in input `input`, of shape `from`, of the pixels of the result, of shape `to`: of a
    /// picture that was changed, not computed from.
    fn position_map(&self, input: usize, from: Shape, to: Shape) -> Option<PositionMap>;

    /// Returns `true` if input `input` is a table, whose entries are no pixels of a picture.
    fn is_table(&self, _input: usize) -> bool {
        false
    }

    /// The part of the result, of shape `of`, that is computed when `need` is required.
    fn computed(&self, need: Rect, of: Shape) -> Rect {
        match self.distribution() {
            Distribution::Rows => need,
            Distribution::Whole | Distribution::Partial(_) => Rect::whole(of),
        }
    }

    /// The operation that computes region `region` of the result from the [pixels that it
    /// reads](Self::reads); `None` if it is the same.
    fn for_region(&self, _region: Rect) -> Option<Whole> {
        None
    }

    /// Distribution of the work over ranks.
    fn distribution(&self) -> Distribution {
        Distribution::Rows
    }

    /// Returns `true` if devices take input `input` as memory from the first row of the image to
    /// its last.
    fn requires_contiguous_input(&self, _input: usize) -> bool {
        self.distribution() == Distribution::Whole
    }

    /// The work of a launch of `rows` rows.
    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort;

    /// Bytes of parameters that copies of this value share.
    fn shared_bytes(&self) -> usize {
        0
    }

    /// Scratch bytes beside inputs and results of this shape, as far as they grow with the image.
    fn scratch(&self, _shape: Shape) -> usize {
        0
    }
}

/// Sample parameters of an operation, with the extents of images that they fit: what tests run of it.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The operation.
    pub operation: Whole,
    /// Its inputs.
    pub inputs: Vec<ImageExtent>,
    /// Its result.
    pub output: ImageExtent,
    /// `false` if it may read less than [`ImageOperation::reads`] says: what it reads depends on pixels, or has gaps.
    pub exact: bool,
}

impl Instance {
    /// An operation that reads all of its footprint.
    pub(crate) fn of(operation: impl Into<Whole>, inputs: &[ImageExtent], output: ImageExtent) -> Instance {
        Instance { operation: operation.into(), inputs: inputs.to_vec(), output, exact: true }
    }

    /// The same, of an operation that may read less.
    pub(crate) fn loose(self) -> Instance {
        Instance { exact: false, ..self }
    }
}

/// The images that samples are of, and the border mode of those that have one.
#[derive(Clone, Copy, Debug)]
pub struct SampleImages {
    /// An image of floats, of any number of levels and channels.
    pub image: ImageExtent,
    /// One of its planes.
    pub plane: ImageExtent,
    /// The border mode.
    pub border: Border,
}

impl SampleImages {
    /// An image of this shape and type.
    pub const fn of(shape: Shape, dtype: DType, border: Border) -> SampleImages {
        SampleImages { image: (shape, dtype), plane: (Shape::new(shape.height, shape.width, 1), dtype), border }
    }
}

/// An operation with sample parameters.
pub trait SampleOperations {
    /// Samples of each of its kinds.
    fn samples(of: SampleImages) -> Vec<Instance>;
}

/// The work of a launch, without its memory traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchEffort {
    /// Kernel family with similar machine use.
    pub family: Family,
    /// Pixels computed, of all planes (for reductions and histograms: pixels read).
    pub pixels: usize,
    /// Multiply-adds per pixel, other arithmetic converted to them.
    pub cost: f64,
    /// Rows read above and below the computed ones, together.
    pub reach: usize,
}

impl LaunchEffort {
    /// `rows` rows of an image of shape `of`.
    pub const fn of_rows(family: Family, of: Shape, rows: usize, steps: f64) -> LaunchEffort {
        LaunchEffort { family, pixels: rows * of.line() * of.planes(), cost: steps, reach: 0 }
    }
}

/// Distribution of a kernel over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Each rank computes its own rows of the output.
    Rows,
    /// Every rank computes the whole result from the whole input.
    Whole,
    /// Each rank makes a full-size result from its own rows *of the first input*; a launch is given
    /// these rows. The results of all ranks combined are the result.
    Partial(AllReduce),
}

/// Combination of the ranks' full-size results. The order of the ranks must not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllReduce {
    /// Element-wise addition of `f64` numbers: counts or digits of exact sums, integers below 2^53,
    /// so sums are exact.
    Sum,
}

/// Kernel families with similar machine use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Pixel operations, copies of planes, tables.
    Pixel,
    /// Linear filters of fewer than 100 taps.
    CorrelateSmall,
    /// Linear filters of 100 taps and more, and matrix products, which are taken to be as efficient.
    CorrelateLarge,
    /// Linear filters of bytes whose sums are [exact](crate::ops::neighbourhood::Filter::is_exact_for).
    CorrelateBytes,
    /// Linear filters by Fourier transforms of tiles.
    Transforms,
    /// Linear filters with arbitrary tap offsets, as along oblique lines.
    Sparse,
    /// Row and column passes in one kernel.
    Separable,
    /// Affine warps and mirror images.
    Warp,
    /// Medians and generalized convolutions.
    Rank,
    /// Reductions, including the reduced expression.
    Reduction,
    /// Histograms.
    Histogram,
    /// Transpositions.
    Transpose,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 12] = [
        Family::Pixel,
        Family::CorrelateSmall,
        Family::CorrelateLarge,
        Family::CorrelateBytes,
        Family::Transforms,
        Family::Sparse,
        Family::Separable,
        Family::Warp,
        Family::Rank,
        Family::Reduction,
        Family::Histogram,
        Family::Transpose,
    ];

    /// True if its kernels read and write images tile by tile.
    pub const fn is_tiled(self) -> bool {
        match self {
            Family::CorrelateSmall
            | Family::CorrelateLarge
            | Family::CorrelateBytes
            | Family::Transforms
            | Family::Sparse
            | Family::Separable
            | Family::Rank => true,
            Family::Pixel | Family::Warp | Family::Reduction | Family::Histogram | Family::Transpose => false,
        }
    }

    /// Name in plain words.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Pixel => "pixel operations",
            Family::CorrelateSmall => "small filters",
            Family::CorrelateLarge => "large filters",
            Family::CorrelateBytes => "filters of bytes",
            Family::Transforms => "transforms of tiles",
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

/// Fails unless `condition` holds; the text is only made on failure.
pub(crate) fn ensure(condition: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(text()) }
}

/// The inputs of an operation on `N` images.
pub(crate) fn images<const N: usize>(inputs: &[ImageExtent]) -> Result<[ImageExtent; N], String> {
    inputs.try_into().map_err(|_| format!("it reads {N} images, got {}", inputs.len()))
}

/// Fails unless the result has the wanted extent and type.
pub(crate) fn makes(wanted: ImageExtent, output: ImageExtent) -> Result<(), String> {
    ensure(wanted.0 == output.0, || format!("it makes an image of {}, wanted is {}", wanted.0, output.0))?;
    ensure(wanted.1 == output.1, || format!("it makes {}, wanted is {}", wanted.1, output.1))
}

/// Fails unless an image is read at the positions of the result.
pub(crate) fn same_places(input: Shape, output: Shape) -> Result<(), String> {
    ensure(input == output, || format!("it reads {input} pixel by pixel and is {output}"))
}

/// The place of pixels that stay where they are.
pub(crate) fn stays(from: Shape, to: Shape) -> Option<PositionMap> {
    ((from.height, from.width) == (to.height, to.width)).then(PositionMap::default)
}
