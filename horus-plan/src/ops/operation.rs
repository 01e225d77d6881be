//! The interface through which planner, checks and devices query an operation.

use super::Whole;
use super::footprint::{Access, InputRead, Rect};
use horus_base::dtype::DType;
use horus_base::position_map::PositionMap;
use horus_base::shape::{Border, Shape};
use serde::{Deserialize, Serialize};

/// Shape and type of an image.
pub type ImageExtent = (Shape, DType);

/// A whole-image operation. The value itself has the parameters; images are given by their shapes and types.
///
/// Recording, regions, planning, checks and devices all query this trait, so that each fact is written once, next to
/// the parameters.
pub trait ImageOperation {
    /// The name, without parameters.
    fn kind(&self) -> &'static str;

    /// Short name for plans and messages.
    fn name(&self) -> String {
        self.kind().to_owned()
    }

    /// Checks shapes and types, for images in memory.
    ///
    /// # Errors
    /// Describes the violated rule.
    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String>;

    /// The pixels of input `input`, of shape `of`, from which `need` of the result is computed.
    fn reads(&self, input: usize, need: Rect, of: Shape) -> InputRead;

    /// The rows of an input that rows of the result require.
    fn access(&self, input: usize) -> Access;

    /// Returns `true` if input `input` has the pixels of the result at the same positions.
    fn in_place(&self, input: usize) -> bool;

    /// Returns `true` if each level of the result reads only the same level of input `input`; `false` if it may read
    /// other levels, or if all levels read the same pixels.
    fn by_levels(&self, _input: usize) -> bool {
        false
    }

    /// Returns `true` if the operation can be computed on pixels of several samples; see
    /// [`Op::knows_samples`](crate::ir::graph::Op::knows_samples).
    fn supports_samples(&self) -> bool {
        false
    }

    /// The map from the pixels of the result, of shape `to`, to positions in input `input`, of shape `from`; `None` for
    /// an input that is not the picture that the result shows.
    fn position_map(&self, input: usize, from: Shape, to: Shape) -> Option<PositionMap>;

    /// Returns `true` if input `input` is a table, whose entries are not pixels of a picture.
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

    /// The operation that computes region `region` of the result from the [pixels that it reads](Self::reads); `None`
    /// for the same operation.
    fn for_region(&self, _region: Rect) -> Option<Whole> {
        None
    }

    /// The distribution of the work over ranks.
    fn distribution(&self) -> Distribution {
        Distribution::Rows
    }

    /// Returns `true` if devices need input `input` in contiguous memory from the first row of the image to the last.
    fn requires_contiguous_input(&self, _input: usize) -> bool {
        self.distribution() == Distribution::Whole
    }

    /// The work of a launch of `rows` rows.
    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort;

    /// The number of times that a GPU reads each pixel of an input for the first `rows` rows of a result, if no cache
    /// serves repeated reads, as over the bus to the host's memory.
    fn times_read(&self, _input: usize, _output: ImageExtent, _rows: usize) -> usize {
        1
    }

    /// Returns `true` if a GPU reads an input in pieces of 32 bytes, the smallest that memory transfers.
    fn reads_in_pieces(&self, _input: usize) -> bool {
        false
    }

    /// The largest number of pixels of a result in memory. Larger ones are computed by regions.
    fn most_pixels(&self) -> usize {
        usize::MAX
    }

    /// Bytes of parameters that copies of this value share.
    fn shared_bytes(&self) -> usize {
        0
    }

    /// Bytes of temporary memory in addition to inputs and results of this shape, as far as they grow with the image.
    fn scratch(&self, _shape: Shape) -> usize {
        0
    }
}

/// Sample parameters of an operation, with images that fit them, for tests.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The operation.
    pub operation: Whole,
    /// Its inputs.
    pub inputs: Vec<ImageExtent>,
    /// Its result.
    pub output: ImageExtent,
    /// `false` if the operation may read less than [`ImageOperation::reads`] says, because its reads depend on pixels
    /// or have gaps.
    pub exact: bool,
}

impl Instance {
    /// An operation that reads all of its footprint.
    pub(crate) fn of(operation: impl Into<Whole>, inputs: &[ImageExtent], output: ImageExtent) -> Instance {
        Instance { operation: operation.into(), inputs: inputs.to_vec(), output, exact: true }
    }

    /// The same sample, for an operation that may read less.
    pub(crate) fn loose(self) -> Instance {
        Instance { exact: false, ..self }
    }
}

/// The images of samples, and the border mode of samples that have one.
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
    /// Multiply-adds per pixel, with other arithmetic converted to multiply-adds.
    pub cost: f64,
    /// Total rows read above and below the computed ones.
    pub reach: usize,
}

impl LaunchEffort {
    /// The work for `rows` rows of an image of shape `of`.
    pub const fn of_rows(family: Family, of: Shape, rows: usize, steps: f64) -> LaunchEffort {
        LaunchEffort { family, pixels: rows * of.line() * of.planes(), cost: steps, reach: 0 }
    }
}

/// The distribution of a kernel over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Each rank computes its own rows of the output.
    Rows,
    /// Every rank computes the whole result from the whole input.
    Whole,
    /// Each rank computes a full-size result from its own rows *of the first input*, which a launch is given. The
    /// results of all ranks are then combined.
    Partial(AllReduce),
}

/// The combination of the ranks' full-size results. The order of the ranks must not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllReduce {
    /// Element-wise addition of `f64` numbers: counts or digits of exact sums. They are integers below 2^53, so sums
    /// are exact.
    Sum,
}

/// Families of kernels that use a machine alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Pixel operations, copies of planes, tables.
    Pixel,
    /// Linear filters of fewer than 100 taps.
    CorrelateSmall,
    /// Linear filters of 100 taps and more, and matrix products, which are assumed to be as efficient.
    CorrelateLarge,
    /// Linear filters of bytes whose sums are [exact](crate::ops::neighbourhood::Filter::is_exact_for).
    CorrelateBytes,
    /// Linear filters by Fourier transforms of tiles.
    Transforms,
    /// Linear filters with arbitrary tap offsets, such as along oblique lines.
    Sparse,
    /// Row and column filters in one kernel.
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

    /// Returns `true` if kernels of the family read and write images tile by tile.
    pub(crate) const fn is_tiled(self) -> bool {
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

    /// The name in plain words.
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

/// Fails unless `condition` holds; the text is made only on failure.
pub(crate) fn ensure(condition: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(text()) }
}

/// The inputs of an operation on `N` images; an error for another number.
pub(crate) fn images<const N: usize>(inputs: &[ImageExtent]) -> Result<[ImageExtent; N], String> {
    inputs.try_into().map_err(|_| format!("it reads {N} images, got {}", inputs.len()))
}

/// Fails unless the result has the required shape and type.
pub(crate) fn makes(wanted: ImageExtent, output: ImageExtent) -> Result<(), String> {
    ensure(wanted.0 == output.0, || format!("it makes an image of {}, wanted is {}", wanted.0, output.0))?;
    ensure(wanted.1 == output.1, || format!("it makes {}, wanted is {}", wanted.1, output.1))
}

/// Fails unless an image is read at the positions of the result.
pub(crate) fn same_places(input: Shape, output: Shape) -> Result<(), String> {
    ensure(input == output, || format!("it reads {input} pixel by pixel and is {output}"))
}

/// The map of pixels that stay in place.
pub(crate) fn stays(from: Shape, to: Shape) -> Option<PositionMap> {
    ((from.height, from.width) == (to.height, to.width)).then(PositionMap::default)
}
