//! Image programs written sequentially, run in parallel on anything.
//!
//! A program over images mentions no device, copy, rank or border exchange. Each call records an operation; when a value
//! is looked at, the recorded program is optimised and runs on what is there: the CPU's cores, a GPU, or many processes.
//! The same program gives the same bits everywhere.
//!
//! ```
//! use horus::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let session = Session::new()?;
//! let image = Image::<f32>::worms(&session, 64, 96)?;
//! let mut lines = Image::zeros(&session, 64, 96)?;
//! for sigma in [1.0, 2.0] {
//!     let second = image.gauss_xy(3.0, sigma, 0, 2)?;
//!     let smooth = image.gauss_xy(3.0, sigma, 0, 0)?;
//!     lines = lines.max(&(second.absdiv(&smooth, 1e-3)? * sigma as f32))?;
//! }
//! assert!(lines.max_value().get()? > 0.0);
//! # Ok(())
//! # }
//! ```
//!
//! [`Session`] picks the device; [`Image`](prelude::Image) holds the operations. How it works is told in
//! `ARCHITECTURE.md` of the repository.

mod ranks;
mod session;
pub mod settings;
mod weights;

pub use horus_core as core;
pub use ranks::ranks;
pub use session::{Builder, Session};

/// What a program needs: `use horus::prelude::*`.
pub mod prelude {
    pub use crate::session::{Builder, Session};
    pub use horus_core::dtype::{DType, Float, Pixel, Scalar};
    pub use horus_core::error::{Error, Result};
    pub use horus_core::filters::{self, Footprint};
    pub use horus_core::forecast::Forecast;
    pub use horus_core::image::{Image, Value};
    pub use horus_core::io::{AnyImage, Depth, OpenOptions, SaveOptions, Scale, Scaling};
    pub use horus_core::movement::Link;
    pub use horus_core::ops::geometric::{Flip, Interpolation};
    pub use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Reduce};
    pub use horus_core::plan::Mode;
    pub use horus_core::session::{Progress, Stats};
    pub use horus_core::shape::{Border, Shape};
    pub use horus_core::trace::Times;
}
