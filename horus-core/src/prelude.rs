//! The imports of a program. The crate `horus` replaces the session by one that chooses a device;
//! the examples of this crate use this prelude.

pub use crate::dtype::{DType, Float, Pixel, Scalar};
pub use crate::error::{Error, Result};
pub use crate::execute::trace::Times;
pub use crate::filters::{self, Footprint};
pub use crate::image::{
    Colour, Ending, Image, Iterated, MovingWindow, Norm, Pixels, Rank, Taps, Until, Value, bilateral, canny,
    equalize_adapthist, equalize_hist, hough_line, local_maxima, peak_local_max, samples, thin, watershed,
};
pub use crate::io::{AnyImage, Clipping, Compression, Depth, Downsampling, OpenOptions, SaveOptions, Scale, Scaling};
pub use crate::ops::components::Connectivity;
pub use crate::ops::geometric::Interpolation;
pub use crate::ops::neighbourhood::{Combine, Filter, Generalized, Reduce};
pub use crate::ops::reconstruction::Reconstruction;
pub use crate::ops::resize::Resampling;
pub use crate::ops::sampling::Sampling;
pub use crate::plan::forecast::{Cluster, Forecast};
pub use crate::plan::movement::Link;
pub use crate::plan::{Mode, Transfer};
pub use crate::session::{BlockMap, Progress, Session, Stats};
pub use crate::settings::{Stencil, StepsPerLaunch};
pub use crate::shape::{Axis, Border, Region, Shape};
