//! Image programs written sequentially, run in parallel on anything.
//!
//! A program over images mentions no device, copy, rank or halo exchange. Each call records an
//! operation; when a value is read, the recorded program is optimised and runs on the CPU's cores,
//! a GPU, or many processes. The same program gives the same bits everywhere.
//!
//! # Open, filter, save
//! ```
//! use horus::prelude::*;
//!
//! # fn main() -> Result<()> {
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let output = folder.path().join("sharp.png");
//! let session = Session::new()?;
//! let image = session.open("assets/vessels.png")?.luminance();
//! let detail = &image - image.gauss(2.0);
//! let sharp = (image + detail * 1.5).clamp(0.0, 1.0);
//! sharp.save(output)?;
//! # Ok(())
//! # }
//! ```
//! [`Session::new`] chooses the GPU or the CPU, whichever is predicted to finish the first
//! evaluation sooner; [`Session::builder`] and the environment override it. `open` reads PNG, JPEG,
//! TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 and npy as [`AnyImage`], whose pixels have the file's
//! type. Most programs continue with `luminance` (one channel of `f32` in `0..=1`) or `to_unit` (all channels
//! in that range); `save` scales `0..=1` back to the full range of the file. Pixels also come from
//! slices and arrays ([`Image::from_slice`], [`Image::from_array`]) and are copied to them
//! ([`Image::to_vec`], [`Image::to_array`], [`Image::read_into`]). Memory that a GPU accesses
//! directly is fastest ([`Pixels`](prelude::Pixels)).
//!
//! # Recording
//! An [`Image`] is a handle on a value that has not been computed yet. Operators and methods only
//! append to the session's program. They take no time and do not change their operands, which may
//! be borrowed (`&image`) or moved (`image`). Reading a value computes its dependencies, once:
//! [`Image::save`], [`Image::to_vec`], [`Image::to_array`], [`Image::pixel`], [`Value::get`].
//! Because the whole program is known by then, Horus fuses operations, shares common parts, and
//! transfers only the pixels that are needed.
//! ```
//! # use horus::prelude::*;
//! # fn main() -> Result<()> {
//! # let session = Session::new()?;
//! let image = samples::worms(&session, 64, 96);
//! let mut lines = Image::<f32>::zeros(&session, image.shape());
//! for sigma in [1.0, 2.0] {
//!     let across = image.gauss_xy(3.0, sigma, 0, 2);
//!     let smooth = image.gauss_xy(3.0, sigma, 0, 0);
//!     lines = lines.max(across.absdiv(smooth, 1e-3) * sigma as f32);
//! }
//! assert_eq!(session.stats().evaluations, 0); // nothing has been computed
//! assert!(lines.max_value().get()? > 0.0); // now it has
//! # Ok(())
//! # }
//! ```
//!
//! # Scalars, reductions, masks
//! The other operand of a pixel operation is an image, a scalar, an array of one value per channel,
//! or a reduction (a [`Value`]), which need not be evaluated first
//! ([`Argument`](horus_core::image::Argument)). Axes of length 1 broadcast: one channel combines
//! with many, a row or a column with an image. Comparisons yield masks, `Image<bool>`, which
//! combine by `& | ^ !`.
//! ```
//! # use horus::prelude::*;
//! # fn main() -> Result<()> {
//! # let session = Session::new()?;
//! # let image = samples::worms(&session, 64, 96);
//! let unit = (&image - image.min_value()) / (image.max_value() - image.min_value());
//! let worms = unit.gt(0.5).opening(&Footprint::disc(1)); // morphology takes masks, too
//! let (pixels, mean) = session.get_all((worms.count(), unit.over(&worms).mean()))?; // computed together
//! assert!(pixels > 0 && mean > 0.5);
//! let marked = worms.select([1.0, 0.0, 0.0], &unit); // red where the mask holds: three channels
//! assert_eq!(marked.to_string(), "64x96x3 f32 image");
//! # Ok(())
//! # }
//! ```
//!
//! # Borders
//! Filters read beyond the edge of an image; the border mode ([`Border`]) defines the values there.
//! Filters (`gauss`, `sobel`, `erode`, ...) mirror the image about its edge pixels
//! ([`Border::Reflect101`]); operations that move pixels (`rotate`, `translate`, `shift`, ...)
//! yield 0 where there is no source. [`Image::with_border`] sets the border mode for the next
//! operation.
//! ```
//! # use horus::prelude::*;
//! # fn main() -> Result<()> {
//! # let session = Session::new()?;
//! # let image = samples::worms(&session, 64, 96);
//! let mirrored = image.gauss(2.0);
//! let on_black = image.with_border(Border::Constant(0.0)).gauss(2.0);
//! assert!(on_black.pixel((0, 0))? < mirrored.pixel((0, 0))?);
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//! Recording never fails. An invalid call, such as sizes that differ or a negative sigma, yields an
//! image that carries the error, with the line of *your* program. Everything computed from that
//! image carries the error too. Reading such an image returns its first error; [`Image::check`]
//! returns it at any time. Only opening and reading return a [`Result`], so a program needs `?`
//! only there. An error that is never read is logged as a warning. Warnings go to the program's
//! logger (crate `log`), or to standard error if there is none.
//! ```
//! # use horus::prelude::*;
//! # fn main() -> Result<()> {
//! # let session = Session::new()?;
//! # let image = samples::worms(&session, 64, 96);
//! let wrong = image.gauss(-1.0);
//! let error = (wrong * 2.0).mean().get().unwrap_err();
//! assert!(error.to_string().contains("sigma is -1; it must be positive and finite (at "));
//! # Ok(())
//! # }
//! ```
//!
//! # When to evaluate
//! [`Session::evaluate`](horus_core::session::Session::evaluate) computes every image that the
//! program still uses. No result depends on it, and most programs never call it. Call it
//! - at the end of each iteration of a long loop that carries images on (`state = f(state, frame)`)
//!   and reads nothing: recorded operations keep their input images in memory;
//! - before and after the code that you measure;
//! - to get the errors of images that are never read.
//!
//! Drop unneeded images first; they are then not computed.
//!
//! # On many ranks
//! With the feature `mpi`, `mpirun -n 4 program` runs the program on four ranks, each of which
//! computes some rows of every image. All run the same program on the same values. Reading a value
//! is collective: every rank calls it and gets the same result. Rank 0 reads and writes files, of
//! large ones each rank its rows; printing is up to the program:
//! ```
//! # use horus::prelude::*;
//! # fn main() -> Result<()> {
//! # let session = Session::new()?;
//! # let image = samples::worms(&session, 64, 96);
//! let mean = image.mean().get()?; // on every rank
//! if session.rank() == 0 {
//!     println!("mean {mean:.3}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # In your crate, features, and the speed of debug builds
//! ```toml
//! [dependencies]
//! horus-image = { path = "../horus" } # where you cloned the repository
//! ```
//! - `cuda` (default): NVIDIA GPUs. It builds without CUDA. Driver and NVRTC are loaded at run
//!   time; without them the CPU computes.
//! - `mpi`: ranks under `mpirun`. Requires an MPI library and libclang to build.
//! - `image`: conversion between pictures of the crate `image` and [`AnyImage`].
//!
//! Build with `--release`: without optimisation CPU kernels are about 75 times slower. To debug
//! your own crate at full speed, let its `Cargo.toml` optimise its dependencies, without their
//! debug information:
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 3
//! debug = false
//! ```
//!
//! # Further reading
//! [`Image`] and [`Value`] document all operations, with examples; [`filters`] taps and footprints;
//! [`Builder`] and [`settings`] the settings; [`Session`] the state of a session (`stats`, `times`,
//! `rank`). In the repository, `examples/` has programs with their pictures, `docs/operations.md`
//! and `docs/names.md` list the equivalents in SciPy, OpenCV and imageproc, and `ARCHITECTURE.md`
//! explains how Horus works.
//!
//! [`AnyImage`]: prelude::AnyImage
//! [`Border`]: prelude::Border
//! [`Border::Reflect101`]: prelude::Border::Reflect101
//! [`Image`]: prelude::Image
//! [`Image::check`]: prelude::Image::check
//! [`Image::from_array`]: prelude::Image::from_array
//! [`Image::from_slice`]: prelude::Image::from_slice
//! [`Image::pixel`]: prelude::Image::pixel
//! [`Image::read_into`]: prelude::Image::read_into
//! [`Image::save`]: prelude::Image::save
//! [`Image::to_array`]: prelude::Image::to_array
//! [`Image::to_vec`]: prelude::Image::to_vec
//! [`Image::with_border`]: prelude::Image::with_border
//! [`Value`]: prelude::Value
//! [`Value::get`]: prelude::Value::get
//! [`filters`]: prelude::filters

mod devices;
mod ranks;
mod session;
pub mod settings;
mod weights;

pub use devices::keep_current_gpu;
#[doc(inline)]
pub use horus_core::error::{Error, Result};
#[doc(inline)]
pub use horus_core::image::Image;
#[doc(inline)]
pub use horus_core::image::samples;
#[doc(inline)]
pub use horus_core::io::AnyImage;
/// The crate ndarray, version 0.17, whose types appear in signatures
/// ([`Image::to_array`](prelude::Image::to_array)). Import it from here: arrays of other versions
/// are different types.
pub use horus_core::ndarray;
pub use ranks::{ranks, ranks_beside};
pub use session::{Builder, Session};

/// Errors of all layers, down to the device.
pub mod error {
    #[doc(inline)]
    pub use horus_core::error::{Call, Cause, DeviceError, Error, MemoryBound, RecordedCall, Result, Site, SourceLine};
}

/// Items for pictures in files and in memory that are not in the prelude.
pub mod io {
    #[doc(inline)]
    pub use horus_core::host::workers::Workers;
    #[doc(inline)]
    #[cfg(feature = "image")]
    pub use horus_core::io::DynamicImage;
    #[doc(inline)]
    pub use horus_core::io::{
        Alpha, Downsampling, Encoder, FileTarget, Format, Georeference, Metadata, Orientation, Picture, Saving, Sink,
        save_all_to, save_to, sizes_of,
    };
    #[doc(inline)]
    pub use horus_core::io::{
        ByteRanges, FileInfo, FileTraffic, PictureReader, PictureWriter, RegionSink, RegionSource,
    };
    #[doc(inline)]
    pub use horus_core::io::{
        PixelSize, alpha, channel_names, length, pixel_size, pixel_size_of, with_alpha, with_pixel_size,
    };
}

/// Many pictures in sequence: argument and result types of
/// [`Session::series`](horus_core::session::Session::series).
pub mod series {
    #[doc(inline)]
    pub use horus_core::image::Pixels;
    #[doc(inline)]
    pub use horus_core::series::{Frames, Input, Item, Savable, Saved, Saves, Series};
}

/// Communicators between ranks, for [`Builder::communicator`].
pub mod comm {
    #[doc(inline)]
    pub use horus_core::comm::threads::ThreadComm;
    #[doc(inline)]
    pub use horus_core::comm::{CommError, Communicator, Parcel, PendingExchange, SingleRankComm};
}

/// Additions to pages about runs, which `Session::report` returns.
pub mod report {
    #[doc(inline)]
    pub use horus_core::report::{beside, with_images};
}

/// Traits that bound generic code, and types that sessions return.
pub mod types {
    #[doc(inline)]
    pub use horus_core::dtype::{Arithmetic, Element};
    #[doc(inline)]
    pub use horus_core::host::external::{DeviceArray, External};
    #[doc(inline)]
    pub use horus_core::image::{
        Argument, ArrayAxes, Axes, ByLabel, Distances, Footprints, Grouping, Inside, LabelShape, LevelRange, LoopState,
        Over, PerAxis, PixelIndex, PlaneArray, Positions, ReadTarget, Reads, Resizing, Several, Table, Tiles, Values,
        VolumeArray,
    };
    #[doc(inline)]
    pub use horus_core::session::{Canceller, MemoryForecast, MemoryInUse, MemoryUse, Pending, SessionBuilder};
}

/// The names that programs use: `use horus::prelude::*`.
pub mod prelude {
    #[doc(inline)]
    pub use crate::session::{Builder, Session};
    #[doc(inline)]
    pub use horus_core::prelude::*;
}
