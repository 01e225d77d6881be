//! Neighbourhood operations: linear filters, generalized convolutions and medians.
//!
//! They read a fixed set of offsets around each pixel. Linear filters accumulate in one canonical order: the
//! accumulator starts at +0 and becomes `fma(tap, pixel, accumulator)` tap by tap, in the order of [`Filter::taps`].

use super::describe::{Accepts, BORDER, OperationGroup, Parameter, Pattern, describe, description, optional, required};
use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use horus_base::dtype::DType;
use horus_base::error::{Call, Error};
use horus_base::shape::Border;

const THETA: Parameter = required("theta", Accepts::Number, "degrees, anti-clockwise");
const SIGMA: Parameter = required("sigma", Accepts::Length, "in pixels, or a length: 2.5um");
const SIGMA_U: Parameter = required("sigma_u", Accepts::Number, "along the line, in pixels");
const SIGMA_V: Parameter = required("sigma_v", Accepts::Number, "across the line, in pixels");
const ORDER_U: Parameter = optional("order_u", Accepts::Count, "0", "of the derivative: 0, 1 or 2");
const ORDER_V: Parameter = optional("order_v", Accepts::Count, "0", "of the derivative: 0, 1 or 2");
const FOOTPRINT: Parameter = optional("footprint", Accepts::Footprint, "3", "");

fn combinations() -> Vec<&'static str> {
    Combine::ALL.map(Combine::name).to_vec()
}

fn reductions() -> Vec<&'static str> {
    Reduce::ALL.map(Reduce::name).to_vec()
}

describe! {
    CORRELATE = description("correlate", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Correlation with a filter")
        .takes(&[required("taps", Accepts::Taps, "anchored at the centre"), BORDER])
        .elsewhere(&["ndi.correlate", "cv.filter2D", "imageproc::filter::filter"])
        .differs("a `&Filter` in the plane of each level, a filter for each of several levels, or `Taps::Depth` along levels alone (`ndi.correlate1d(axis=0)`); even sizes have their anchor at half the size")
        .example("correlate 1,0,-1/2,0,-2/1,0,-1");
    CONVOLVE = description("convolve", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Convolution: correlation with the filter rotated by 180 degrees")
        .takes(&[required("taps", Accepts::Taps, "anchored at the centre"), BORDER])
        .elsewhere(&["ndi.convolve"])
        .differs("even sizes are rotated about their anchor as in ndi")
        .example("convolve 1,2,3");
    SEPARABLE = description("separable", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Correlation with a row of taps, then with a column")
        .elsewhere(&["ndi.correlate1d", "cv.sepFilter2D", "imageproc::filter::separable_filter"])
        .differs("row first");
    GENERALIZED = description("generalized", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Generalized convolution, in the type of the picture")
        .takes(&[required("weights", Accepts::Taps, "anchored at the centre"), optional("combine", Accepts::Choice(combinations), "mul", "each pixel with its weight"), optional("reduce", Accepts::Choice(reductions), "sum", "of the combined values"), BORDER])
        .elsewhere(&["ndi.grey_erosion", "ndi.generic_filter"])
        .differs("combines with weights and reduces")
        .example("generalized 1,0,1 add min");
    GAUSS = description("gauss", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Gaussian smoothing of radius `ceil(3 sigma)`")
        .also(&["blur"])
        .takes(&[SIGMA, BORDER])
        .details("Taps `exp(-x^2 / 2 sigma^2)`, normalised to sum 1 in `f64`.")
        .elsewhere(&["ndi.gaussian_filter", "cv.GaussianBlur", "imageproc::filter::gaussian_blur_f32"])
        .differs("one sigma applies to all axes, in a volume to three as in ndi; `(y, x)` in the plane of each level, `(z, y, x)`; ndi reaches 4 sigma, OpenCV 4 of floats and 3 of bytes, imageproc 2")
        .example("gauss 2");
    GAUSS_DERIVATIVE = description("gauss_derivative", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Derivative along y and x of the picture smoothed by `gauss`")
        .takes(&[SIGMA, required("order_y", Accepts::Count, "0, 1 or 2"), required("order_x", Accepts::Count, "0, 1 or 2"), BORDER])
        .elsewhere(&["ndi.gaussian_filter"])
        .differs("`order=(y, x)`; the same sign; orders `(y, x)` or `(z, y, x)`")
        .example("gauss_derivative 1 0 1");
    GAUSS_XY = description("gauss_xy", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Anisotropic Gaussian, u along x and v along y")
        .takes(&[SIGMA_U, SIGMA_V, ORDER_U, ORDER_V, BORDER])
        .elsewhere(&["ndi.correlate1d"])
        .differs("u along x, v along y; odd orders have the sign of the derivative, as ndi's")
        .example("gauss_xy 3 1 0 2");
    GAUSS_2D = description("gauss_2d", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Anisotropic Gaussian, rotated, as one kernel; the border mode is reflect101")
        .takes(&[THETA, SIGMA_U, SIGMA_V, ORDER_U, ORDER_V])
        .elsewhere(&["cv.getGaborKernel"])
        .differs("rotated by `theta`, anti-clockwise")
        .example("gauss_2d 30 3 1 0 2");
    GAUSS_UV = description("gauss_uv", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Anisotropic Gaussian, rotated, first along u and then along v; the border mode is reflect101")
        .takes(&[THETA, SIGMA_U, SIGMA_V, ORDER_U, ORDER_V])
        .details("Two passes, along `(cos theta, -sin theta)` and then across it, that interpolate bilinearly between pixels.")
        .differs("rotated by `theta`, anti-clockwise")
        .example("gauss_uv 30 3 1 0 2");
    BOX_FILTER = description("box_filter", OperationGroup::Filters, Pattern::GeneralizedConvolution, "Mean over `size` x `size` pixels")
        .also(&["box"])
        .takes(&[required("size", Accepts::Count, "side of the square"), BORDER])
        .elsewhere(&["ndi.uniform_filter", "cv.blur"])
        .differs("the taps, in `filters`")
        .example("box_filter 5");
    SOBEL = description("sobel", OperationGroup::Filters, Pattern::Composition, "Magnitude of the gradient by Sobel: 8 times the slope")
        .takes(&[BORDER])
        .elsewhere(&["ndi.sobel", "cv.Sobel", "imageproc::gradients::horizontal_sobel",
            "imageproc::gradients::vertical_sobel"])
        .differs("`sobel(Axis::Columns)` is `axis=1` and `dx=1`: one derivative, 8 times the slope, positive where it rises; the command takes the magnitude of both")
        .example("gauss 2 sobel");
    SOBEL_X = description("sobel_x", OperationGroup::Filters, Pattern::GeneralizedConvolution, "8 times the slope along x by Sobel")
        .called("sobel")
        .takes(&[BORDER])
        .example("sobel_x");
    SOBEL_Y = description("sobel_y", OperationGroup::Filters, Pattern::GeneralizedConvolution, "8 times the slope along y by Sobel")
        .called("sobel")
        .takes(&[BORDER])
        .example("sobel_y");
    LAPLACE = description("laplace", OperationGroup::Filters, Pattern::GeneralizedConvolution, "The four neighbours minus four times the pixel")
        .takes(&[BORDER])
        .elsewhere(&["ndi.laplace", "cv.Laplacian", "imageproc::filter::laplacian_filter"])
        .differs("the same taps; of volumes along three axes, as ndi")
        .example("laplace");
    MEDIAN = description("median", OperationGroup::Filters, Pattern::Neighbourhood, "The median of a square of pixels")
        .takes(&[optional("size", Accepts::Count, "3", "side of the square"), BORDER])
        .elsewhere(&["ndi.median_filter", "cv.medianBlur", "imageproc::filter::median_filter"])
        .differs("a size for all axes, `(height, width)`, or a footprint; of a volume also across levels; OpenCV and imageproc replicate the edge: `a.with_border(Border::Replicate).median(3)`")
        .example("median 5");
    ERODE = description("erode", OperationGroup::Morphology, Pattern::GeneralizedConvolution, "The smallest pixel under the footprint")
        .takes(&[FOOTPRINT, BORDER])
        .elsewhere(&["ndi.grey_erosion", "ndi.binary_erosion", "ndi.minimum_filter", "cv.erode", "imageproc::morphology::grayscale_erode"])
        .differs("a size as in `median`, a footprint, or one for each of several levels; OpenCV ignores pixels outside: `a.with_border(Border::Constant(f64::INFINITY)).erode(&fp)`; `binary_erosion` reads false there")
        .example("erode disc 2");
    DILATE = description("dilate", OperationGroup::Morphology, Pattern::GeneralizedConvolution, "The largest pixel under the footprint")
        .takes(&[FOOTPRINT, BORDER])
        .elsewhere(&["ndi.grey_dilation", "ndi.binary_dilation", "ndi.maximum_filter", "cv.dilate", "imageproc::morphology::grayscale_dilate"])
        .differs("the footprint is rotated by 180 degrees, as in ndi; `cv.dilate` and `ndi.maximum_filter` do not rotate it")
        .example("dilate cross 1");
}

/// Distances in pixels that an operation reads beyond the computed pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reach {
    /// Rows above.
    pub up: usize,
    /// Rows below.
    pub down: usize,
    /// Columns to the left.
    pub left: usize,
    /// Columns to the right.
    pub right: usize,
}

impl Reach {
    /// Only the pixel itself.
    pub const NONE: Reach = Reach { up: 0, down: 0, left: 0, right: 0 };

    /// The larger reach in each direction.
    pub fn max(self, o: Reach) -> Reach {
        Reach {
            up: self.up.max(o.up),
            down: self.down.max(o.down),
            left: self.left.max(o.left),
            right: self.right.max(o.right),
        }
    }

    /// The same reach in elements of rows whose pixels have several samples.
    #[must_use]
    pub const fn in_samples(self, samples: usize) -> Reach {
        Reach { left: self.left * samples, right: self.right * samples, ..self }
    }

    /// The reach of two operations in sequence.
    pub fn then(self, o: Reach) -> Reach {
        Reach { up: self.up + o.up, down: self.down + o.down, left: self.left + o.left, right: self.right + o.right }
    }
}

/// Positions of the taps of a [`Filter`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FilterLayout {
    /// A full `height x width` rectangle, row-major; element (`anchor_y`, `anchor_x`) is on the pixel.
    Dense {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// Row of the element on the pixel.
        anchor_y: usize,
        /// Column of the element on the pixel.
        anchor_x: usize,
    },
    /// Explicit offsets `(dy, dx)`, one per tap, in the order of accumulation.
    Sparse(Arc<[(i32, i32)]>),
}

/// The taps of a linear filter, applied as a correlation (no flip).
///
/// Taps are in `f64`; a filter over an `f32` image rounds them to `f32`. Constructors never fail: a filter without
/// taps, with the wrong number of taps or with too large a reach carries its error into the image it is applied to.
#[derive(Clone, Debug)]
pub struct Filter(Arc<FilterData>);

/// The data that copies of a filter share, because programs copy filters often.
#[derive(Clone, Debug)]
struct FilterData {
    layout: FilterLayout,
    taps: Arc<[f64]>,
    /// A hash of layout and taps: launches are looked up by their kernels, and so by all taps.
    digest: u64,
    /// The reason why the filter cannot be applied.
    fault: Option<Arc<Error>>,
    /// The role of this filter in a filter computed within a tolerance; not part of its value.
    note: Option<Arc<str>>,
}

impl Filter {
    fn of(layout: FilterLayout, taps: Arc<[f64]>, fault: Option<Arc<Error>>) -> Filter {
        let mut hasher = DefaultHasher::new();
        layout.hash(&mut hasher);
        taps.iter().for_each(|t| t.to_bits().hash(&mut hasher));
        Filter(Arc::new(FilterData { layout, taps, digest: hasher.finish(), fault, note: None }))
    }

    /// Multiply-adds per pixel.
    pub fn cost(&self) -> f64 {
        self.taps().len() as f64
    }

    /// A dense filter of `height * width` row-major taps, anchored at (`height / 2`, `width / 2`). Another number of
    /// taps is an error of the filter.
    #[track_caller]
    pub fn dense(height: usize, width: usize, taps: impl Into<Arc<[f64]>>) -> Filter {
        let taps = taps.into();
        if height.checked_mul(width) != Some(taps.len()) {
            let message = format!("{} taps for a filter of {height}x{width}", taps.len());
            return Filter::faulty(Error::parameter(Call::of("Filter::dense"), message));
        }
        Filter::of(FilterLayout::Dense { height, width, anchor_y: height / 2, anchor_x: width / 2 }, taps, None)
    }

    /// A row or a column of a dense filter, with this anchor.
    pub(crate) fn anchored((height, width): (usize, usize), (y, x): (usize, usize), taps: Vec<f64>) -> Filter {
        let layout = FilterLayout::Dense { height, width, anchor_y: y.min(height - 1), anchor_x: x.min(width - 1) };
        Filter::of(layout, taps.into(), None)
    }

    /// A filter of one row.
    #[track_caller]
    pub fn row(taps: impl Into<Arc<[f64]>>) -> Filter {
        let taps = taps.into();
        Filter::dense(1, taps.len(), taps)
    }

    /// A filter of one column.
    #[track_caller]
    pub fn column(taps: impl Into<Arc<[f64]>>) -> Filter {
        let taps = taps.into();
        Filter::dense(taps.len(), 1, taps)
    }

    /// A filter with explicit `(dy, dx)` offsets, accumulated in the given order. The numbers of taps and offsets must
    /// be equal.
    #[track_caller]
    pub fn sparse(offsets: impl Into<Arc<[(i32, i32)]>>, taps: impl Into<Arc<[f64]>>) -> Filter {
        let (offsets, taps) = (offsets.into(), taps.into());
        if offsets.len() != taps.len() {
            let message = format!("{} taps for {} offsets", taps.len(), offsets.len());
            return Filter::faulty(Error::parameter(Call::of("Filter::sparse"), message));
        }
        Filter::of(FilterLayout::Sparse(offsets), taps, None)
    }

    /// A filter that carries `error` into any image it is applied to.
    pub(crate) fn faulty(error: Error) -> Filter {
        Filter::of(FilterLayout::Sparse(Arc::new([])), Arc::new([]), Some(Arc::new(error)))
    }

    /// The same filter with a note that follows its size in plans.
    pub(crate) fn noted(&self, note: &Arc<str>) -> Filter {
        Filter(Arc::new(FilterData { note: Some(note.clone()), ..(*self.0).clone() }))
    }

    /// The error found at construction, if any.
    pub fn fault(&self) -> Option<&Error> {
        self.0.fault.as_deref()
    }

    /// The filter rotated by 180 degrees about its anchor: correlation with it is convolution with `self`.
    pub fn flipped(&self) -> Filter {
        let taps: Arc<[f64]> = self.0.taps.iter().rev().copied().collect();
        let layout = match &self.0.layout {
            &FilterLayout::Dense { height, width, anchor_y, anchor_x } => {
                // A filter without taps stays as it is.
                let turned = |size: usize, anchor: usize| size.saturating_sub(anchor + 1);
                FilterLayout::Dense {
                    height,
                    width,
                    anchor_y: turned(height, anchor_y),
                    anchor_x: turned(width, anchor_x),
                }
            }
            // An offset that cannot be negated exceeds every legal reach.
            FilterLayout::Sparse(o) => {
                FilterLayout::Sparse(o.iter().rev().map(|&(y, x)| (y.saturating_neg(), x.saturating_neg())).collect())
            }
        };
        Filter::of(layout, taps, self.0.fault.clone())
    }

    /// Positions of the taps.
    pub fn layout(&self) -> &FilterLayout {
        &self.0.layout
    }

    /// The taps in order of accumulation.
    pub fn taps(&self) -> &[f64] {
        &self.0.taps
    }

    /// `(dy, dx)` of each tap, in order of accumulation.
    #[inline]
    pub fn offsets(&self) -> Vec<(isize, isize)> {
        match &self.0.layout {
            &FilterLayout::Dense { height, width, anchor_y, anchor_x } => {
                let at = |i: usize, anchor: usize| i.cast_signed() - anchor.cast_signed();
                (0..height).flat_map(|y| (0..width).map(move |x| (at(y, anchor_y), at(x, anchor_x)))).collect()
            }
            FilterLayout::Sparse(o) => o.iter().map(|&(y, x)| (y as isize, x as isize)).collect(),
        }
    }

    /// The reach of the filter.
    pub fn reach(&self) -> Reach {
        match &self.0.layout {
            &FilterLayout::Dense { height, width, anchor_y, anchor_x } => Reach {
                up: anchor_y,
                down: height.saturating_sub(anchor_y + 1),
                left: anchor_x,
                right: width.saturating_sub(anchor_x + 1),
            },
            FilterLayout::Sparse(o) => o.iter().fold(Reach::NONE, |r, &(y, x)| {
                r.max(Reach {
                    up: y.min(0).unsigned_abs() as usize,
                    down: y.max(0) as usize,
                    left: x.min(0).unsigned_abs() as usize,
                    right: x.max(0) as usize,
                })
            }),
        }
    }

    /// Returns `true` if every sum of the filter over bytes of this type is an integer below 2^24, which `f32`
    /// represents exactly: sums of integers in any order then have the bits of the canonical order. This holds for
    /// dense filters of at least three columns (with fewer, products of four bytes gain nothing) whose taps are
    /// integers of a signed byte, if the sum of their absolute values times the largest magnitude of a byte is below
    /// 2^24.
    ///
    /// ```
    /// use horus_base::{dtype::DType, shape::Border};
    /// use horus_plan::ops::neighbourhood::Filter;
    ///
    /// let laplace = Filter::dense(3, 3, [0.0, 1.0, 0.0, 1.0, -4.0, 1.0, 0.0, 1.0, 0.0]);
    /// assert!(laplace.is_exact_for(DType::U8, Border::Reflect101));
    /// assert!(!laplace.is_exact_for(DType::U8, Border::Constant(0.5)));
    /// assert!(!Filter::row([0.25, 0.5, 0.25]).is_exact_for(DType::U8, Border::Reflect101));
    /// ```
    pub fn is_exact_for(&self, dtype: DType, border: Border) -> bool {
        const EXACT: f64 = 16_777_216.0;
        let FilterLayout::Dense { width: 3.., .. } = self.0.layout else { return false };
        let range = match dtype {
            DType::U8 => 0.0..=255.0,
            DType::I8 => -128.0..=127.0,
            _ => return false,
        };
        let most = f64::max(*range.end(), -*range.start());
        let sum: f64 = self.0.taps.iter().map(|tap| tap.abs()).sum();
        self.0.taps.iter().all(|tap| tap.fract() == 0.0 && (-128.0..=127.0).contains(tap))
            && border.constant().is_none_or(|v| v.fract() == 0.0 && range.contains(&v))
            && sum * most < EXACT
    }

    /// Returns `true` for a dense filter of a single row.
    pub fn is_row(&self) -> bool {
        matches!(self.0.layout, FilterLayout::Dense { height: 1, .. })
    }

    /// Returns `true` for a dense filter of a single column.
    pub fn is_column(&self) -> bool {
        matches!(self.0.layout, FilterLayout::Dense { width: 1, .. })
    }
}

impl PartialEq for Filter {
    fn eq(&self, o: &Filter) -> bool {
        let (a, b) = (&*self.0, &*o.0);
        let same_taps = || a.taps.iter().map(|tap| tap.to_bits()).eq(b.taps.iter().map(|tap| tap.to_bits()));
        std::ptr::eq(a, b) || (a.digest == b.digest && a.layout == b.layout && same_taps())
    }
}
impl Eq for Filter {}
impl Hash for Filter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.digest.hash(state);
    }
}
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.layout {
            FilterLayout::Dense { height, width, .. } => write!(f, "{height}x{width}"),
            FilterLayout::Sparse(o) => write!(f, "sparse {}", o.len()),
        }?;
        self.0.note.as_ref().map_or(Ok(()), |note| write!(f, " ({note})"))
    }
}

/// The combination of a pixel with a weight in a generalized convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The pixel alone; the weight only marks the offset as part of the window.
    Pixel,
    /// `pixel + weight`.
    Add,
    /// `pixel - weight`.
    Sub,
    /// `pixel * weight`.
    Mul,
    /// `min(pixel, weight)`.
    Min,
    /// `max(pixel, weight)`.
    Max,
}

impl Combine {
    /// All combinations, for tests of each.
    pub const ALL: [Combine; 6] =
        [Combine::Pixel, Combine::Add, Combine::Sub, Combine::Mul, Combine::Min, Combine::Max];

    /// Name.
    pub const fn name(self) -> &'static str {
        match self {
            Combine::Pixel => "pixel",
            Combine::Add => "add",
            Combine::Sub => "sub",
            Combine::Mul => "mul",
            Combine::Min => "min",
            Combine::Max => "max",
        }
    }
}

/// The reduction of the combined values in a generalized convolution, in the order of the offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// The sum, from 0; integers saturate at each addition.
    Sum,
    /// The product, from 1; integers saturate at each multiplication.
    Product,
    /// The smallest value, from the type's highest (infinity); ignores NaN.
    Min,
    /// The largest value, from the type's lowest (minus infinity); ignores NaN.
    Max,
}

impl Reduce {
    /// All reductions, for tests of each.
    pub const ALL: [Reduce; 4] = [Reduce::Sum, Reduce::Product, Reduce::Min, Reduce::Max];

    /// Name.
    pub const fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Product => "product",
            Reduce::Min => "min",
            Reduce::Max => "max",
        }
    }
}

/// A generalized convolution: `out(p) = reduce over offsets o of combine(in(p + o), weight(o))`,
/// starting from the reduction's identity, in the arithmetic of the image's own type. Erosion is
/// (`Pixel`, `Min`), dilation (`Pixel`, `Max`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Generalized {
    /// Offsets and weights; weights are converted to the image's type.
    pub window: Filter,
    /// The combination of pixel and weight.
    pub combine: Combine,
    /// The reduction over the window.
    pub reduce: Reduce,
}

impl Generalized {
    /// Cost per pixel: each tap is combined and reduced.
    pub fn cost(&self) -> f64 {
        2.0 * self.window.cost()
    }
}

/// The value that a tap of a [`Truncated`] filter multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// A pixel.
    Single,
    /// The sum of two pixels; the first tap multiplies one pixel.
    Sum,
    /// The difference of two pixels; the first tap multiplies one pixel.
    Difference,
}

impl Pairing {
    /// All pairings, for tests of each.
    pub const ALL: [Pairing; 3] = [Pairing::Single, Pairing::Sum, Pairing::Difference];
}

/// A linear filter in the image's own type, rounded as a C program such as SciPy rounds it: from +0, `sum = sum + tap *
/// pixel` in `f64`, with each product and each sum rounded, in the order of the taps. The result is truncated to the
/// type ([`Conversion::Cast`](horus_base::dtype::Conversion)).
///
/// The order matters when only roundings keep the sum from being an integer. SciPy adds the two pixels of
/// equal taps before it multiplies: the taps after the first form pairs, and the tap of the first of a pair multiplies
/// the sum of both pixels, or the first pixel minus the second.
///
/// Taps of a volume may read other levels. The border mode continues levels as it does rows and columns.
///
/// ```
/// use horus_plan::ops::neighbourhood::{Filter, Pairing, Truncated};
///
/// // The tap in the middle first, then those around it.
/// let window = Filter::sparse([(0, 0), (0, -1), (0, 1)], [0.5, 0.25, 0.25]);
/// assert!(Truncated { window, pairing: Pairing::Sum, levels: None }.is_paired());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Truncated {
    /// Offsets and taps, in the order of the sum.
    pub window: Filter,
    /// The value that a tap multiplies.
    pub pairing: Pairing,
    /// The levels that taps read; `None` for the level of each pixel.
    pub levels: Option<TapLevels>,
}

impl Truncated {
    /// Returns `true` if every pixel that needs a partner has one.
    pub fn is_paired(&self) -> bool {
        self.pairing == Pairing::Single || !self.window.taps().len().is_multiple_of(2)
    }

    /// The offsets of the levels that taps read, relative to the pixel's level, in order.
    pub fn levels(&self) -> Vec<i32> {
        let mut all = self.levels.as_ref().map_or(vec![0], |levels| levels.by.to_vec());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The offset of the level that tap `k` reads, relative to the pixel's level.
    pub fn level(&self, k: usize) -> i32 {
        self.levels.as_ref().map_or(0, |levels| levels.by[k])
    }

    /// The plane `by` levels from plane `plane`; `None` if the border's constant is read.
    pub fn plane(&self, plane: usize, by: i32, border: Border) -> Option<usize> {
        match &self.levels {
            Some(levels) if by != 0 => {
                let (z, c) = (plane / levels.channels, plane % levels.channels);
                Some(border.map(z.cast_signed() + by as isize, levels.depth)? * levels.channels + c)
            }
            _ => Some(plane),
        }
    }

    /// Returns `true` if an image of `planes` planes has these levels.
    pub fn fits(&self, planes: usize) -> bool {
        self.levels.as_ref().is_none_or(|TapLevels { by, depth, channels }| {
            *channels > 0 && depth.checked_mul(*channels) == Some(planes) && by.len() == self.window.taps().len()
        })
    }
}

/// The levels of a volume that the taps of a filter read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TapLevels {
    /// For each tap, the offset of the level that it reads, relative to the pixel's level.
    pub by: Arc<[i32]>,
    /// Number of levels of the volume.
    pub depth: usize,
    /// Number of channels of the volume.
    pub channels: usize,
}

/// A filter of the pixels around each pixel, in the image's own type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OrderFilter {
    /// A generalized convolution.
    Fold(Generalized),
    /// A linear filter whose result is truncated to the type.
    Truncated(Truncated),
    /// The median of a square.
    Median(MedianSize),
}

impl OrderFilter {
    /// Returns `true` if the filter can be computed on pixels of several samples: it reads no other levels.
    pub(crate) fn knows_samples(&self) -> bool {
        !matches!(self, OrderFilter::Truncated(filter) if filter.levels.is_some())
    }

    /// The reach of the filter.
    pub fn reach(&self) -> Reach {
        match self {
            OrderFilter::Fold(g) => g.window.reach(),
            OrderFilter::Truncated(t) => t.window.reach(),
            OrderFilter::Median(size) => size.reach(),
        }
    }

    /// Cost per pixel.
    pub fn cost(&self) -> f64 {
        match self {
            OrderFilter::Fold(g) => g.cost(),
            OrderFilter::Truncated(t) => t.window.cost(),
            OrderFilter::Median(size) => size.cost(),
        }
    }

    /// Cost per pixel on a CPU, where minima and maxima slide along lines of any length; for other windows each run of
    /// pixels is looked up. Measured on two cores (`docs/performance/model.md`).
    pub fn sliding(&self) -> f64 {
        let OrderFilter::Fold(Generalized { window, combine: Combine::Pixel, reduce: Reduce::Min | Reduce::Max }) =
            self
        else {
            return self.cost();
        };
        const LINE: f64 = 18.0;
        const RUN: f64 = 9.0;
        let line = |n: usize| if n > 1 { LINE } else { 0.0 };
        match window.layout() {
            &FilterLayout::Dense { height, width, .. } => line(height) + line(width),
            FilterLayout::Sparse(offsets) => {
                let all: HashSet<(i32, i32)> = offsets.iter().copied().collect();
                let runs = all.iter().filter(|(y, x)| !all.contains(&(*y, x.wrapping_sub(1)))).count();
                RUN * runs as f64
            }
        }
    }

    /// Returns `true` if it reads levels other than the pixel's.
    pub fn crosses_levels(&self) -> bool {
        matches!(self, OrderFilter::Truncated(Truncated { levels: Some(_), .. }))
    }

    /// The window with its weights; `None` for a median, which has no weights.
    pub fn window(&self) -> Option<&Filter> {
        match self {
            OrderFilter::Fold(g) => Some(&g.window),
            OrderFilter::Truncated(t) => Some(&t.window),
            OrderFilter::Median(_) => None,
        }
    }

    /// The kind, for errors and timings.
    pub fn kind(&self) -> &'static str {
        match self {
            OrderFilter::Fold(_) => "generalized",
            OrderFilter::Truncated(_) => "truncated",
            OrderFilter::Median(_) => "median",
        }
    }
}

impl std::fmt::Display for OrderFilter {
    /// `pixel/min 3x3`, `truncated 1x9`, `median 5x5`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OrderFilter::Fold(g) => write!(f, "{}/{} {}", g.combine.name(), g.reduce.name(), g.window),
            OrderFilter::Truncated(t) => match t.levels().len() {
                1 => write!(f, "truncated {}", t.window),
                levels => write!(f, "truncated {} of {levels} levels", t.window),
            },
            OrderFilter::Median(size) => write!(f, "median {0}x{0}", 2 * size.radius() + 1),
        }
    }
}

impl From<Generalized> for OrderFilter {
    fn from(filter: Generalized) -> OrderFilter {
        OrderFilter::Fold(filter)
    }
}

impl From<Truncated> for OrderFilter {
    fn from(filter: Truncated) -> OrderFilter {
        OrderFilter::Truncated(filter)
    }
}

impl From<MedianSize> for OrderFilter {
    fn from(size: MedianSize) -> OrderFilter {
        OrderFilter::Median(size)
    }
}

/// Window sizes of the median network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MedianSize {
    /// 3x3, the 5th of 9 values.
    Three,
    /// 5x5, the 13th of 25 values.
    Five,
}

impl MedianSize {
    /// Pixels on each side of the centre.
    pub const fn radius(self) -> usize {
        match self {
            MedianSize::Three => 1,
            MedianSize::Five => 2,
        }
    }

    /// Cost per pixel: each exchange computes a minimum and a maximum.
    pub fn cost(self) -> f64 {
        2.0 * self.network().len() as f64
    }

    /// The compare-exchange sequence `(i, j)`, after which the middle value is the median.
    ///
    /// A compare-exchange replaces `(v[i], v[j])` by `(v[i].lower(v[j]), v[i].upper(v[j]))` in the arithmetic of
    /// [`Arithmetic`](horus_base::dtype::Arithmetic): the order of [`Ranked`](super::windowed::Ranked).
    pub const fn network(self) -> &'static [(usize, usize)] {
        match self {
            MedianSize::Three => &THREE,
            MedianSize::Five => &FIVE,
        }
    }

    /// The reach of the median.
    pub const fn reach(self) -> Reach {
        let r = self.radius();
        Reach { up: r, down: r, left: r, right: r }
    }
}

/// Sorts the columns; then takes the median of the largest of the smallest, the median of the middle values, and the
/// smallest of the largest.
#[rustfmt::skip]
const THREE: [(usize, usize); 19] = [
    (0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (0, 3), (1, 4), (2, 5), (0, 1), (1, 2), (7, 8), (6, 7),
    (3, 4), (4, 5), (3, 4), (2, 4), (4, 6), (2, 4),
];

/// N. Devillard, *Fast median search: an ANSI C implementation* (1998).
#[rustfmt::skip]
const FIVE: [(usize, usize); 99] = [
    (0, 1), (3, 4), (2, 4), (2, 3), (6, 7), (5, 7), (5, 6), (9, 10), (8, 10), (8, 9), (12, 13), (11, 13),
    (11, 12), (15, 16), (14, 16), (14, 15), (18, 19), (17, 19), (17, 18), (21, 22), (20, 22), (20, 21),
    (23, 24), (2, 5), (3, 6), (0, 6), (0, 3), (4, 7), (1, 7), (1, 4), (11, 14), (8, 14), (8, 11), (12, 15),
    (9, 15), (9, 12), (13, 16), (10, 16), (10, 13), (20, 23), (17, 23), (17, 20), (21, 24), (18, 24), (18, 21),
    (19, 22), (8, 17), (9, 18), (0, 18), (0, 9), (10, 19), (1, 19), (1, 10), (11, 20), (2, 20), (2, 11),
    (12, 21), (3, 21), (3, 12), (13, 22), (4, 22), (4, 13), (14, 23), (5, 23), (5, 14), (15, 24), (6, 24),
    (6, 15), (7, 16), (7, 19), (13, 21), (15, 23), (7, 13), (7, 15), (1, 9), (3, 11), (5, 17), (11, 17),
    (9, 17), (4, 10), (6, 12), (7, 14), (4, 6), (4, 7), (12, 14), (10, 14), (6, 7), (10, 12), (6, 10), (6, 17),
    (12, 17), (7, 17), (7, 10), (12, 18), (7, 12), (10, 18), (12, 20), (10, 20), (10, 12),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_filters_anchor_at_half_their_size_and_flip_about_it() {
        let f = Filter::row([1.0, 2.0, 3.0, 4.0]);
        assert_eq!(f.reach(), Reach { left: 2, right: 1, ..Reach::NONE });
        let g = f.flipped();
        assert_eq!(g.reach(), Reach { left: 1, right: 2, ..Reach::NONE });
        assert_eq!(g.taps(), &[4.0, 3.0, 2.0, 1.0]);
    }

    #[test]
    fn filters_that_cannot_be_applied_can_be_made() {
        for f in [Filter::row(vec![]), Filter::column(vec![]), Filter::dense(0, usize::MAX, vec![])] {
            assert_eq!(f.flipped().taps(), &[] as &[f64]);
            assert!(f.offsets().is_empty());
        }
        let far = Filter::sparse([(i32::MIN, i32::MAX)], [1.0]);
        assert_eq!(far.reach(), Reach { up: 1 << 31, right: (1 << 31) - 1, ..Reach::NONE });
        assert_eq!(far.flipped().reach(), Reach { down: (1 << 31) - 1, left: (1 << 31) - 1, ..Reach::NONE });
    }

    #[test]
    fn a_wrong_number_of_taps_is_remembered_with_the_line() {
        let cause = |f: Filter| f.flipped().fault().expect("a fault").to_string();
        assert!(
            cause(Filter::dense(1 << 32, 1 << 32, vec![])).contains("0 taps for a filter of 4294967296x4294967296")
        );
        let sparse = cause(Filter::sparse([(0, 0)], [1.0, 2.0]));
        assert!(
            sparse.starts_with("Filter::sparse: 2 taps for 1 offsets (at ") && sparse.contains(file!()),
            "{sparse}"
        );
    }

    /// A network that selects the median of all sequences of zeros and ones selects the median of all numbers. The test
    /// uses 64 sequences at a time, each a bit of a word.
    #[test]
    fn median_networks_select_the_median() {
        for size in [MedianSize::Three, MedianSize::Five] {
            let n = (2 * size.radius() + 1).pow(2);
            // The first six values vary within a word, the others from word to word.
            const COUNT: [u64; 6] = [
                0xAAAA_AAAA_AAAA_AAAA,
                0xCCCC_CCCC_CCCC_CCCC,
                0xF0F0_F0F0_F0F0_F0F0,
                0xFF00_FF00_FF00_FF00,
                0xFFFF_0000_FFFF_0000,
                0xFFFF_FFFF_0000_0000,
            ];
            for high in 0..1u64 << (n - 6) {
                let value = |i: usize| if i < 6 { COUNT[i] } else { (high >> (i - 6) & 1).wrapping_neg() };
                let mut v: [u64; 25] = std::array::from_fn(|i| if i < n { value(i) } else { 0 });
                for &(i, j) in size.network() {
                    (v[i], v[j]) = (v[i] & v[j], v[i] | v[j]);
                }
                // More ones than zeros: at least this many of the first six.
                let more = (n / 2 + 1).saturating_sub(high.count_ones() as usize);
                let want = (0..64).filter(|k: &u32| k.count_ones() as usize >= more).fold(0, |w, k| w | 1u64 << k);
                assert_eq!(v[n / 2], want, "{n} values, {high:b}");
            }
        }
    }
}
