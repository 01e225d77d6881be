//! Many pictures in sequence, on one session: reading, computing and writing of different pictures
//! overlap. The design is in `docs/design/series.md`.
//!
//! The program's thread records and evaluates, while other threads read, decode, encode and write.
//! The number and the bytes of pictures in progress are limited ([`Series::ahead`],
//! [`Series::memory`]).
//!
//! Results are in the order of the pictures. Each has its own error, such as an unreadable file or
//! a full disk; the series continues. Only errors that make the session unusable, and
//! [`Canceller::cancel`](crate::session::Canceller::cancel), end a series: that error is the last
//! item.
//!
//! ```
//! # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
//! # fn main() -> Result<()> {
//! # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
//! # let out = tempfile::tempdir().expect("a folder");
//! # let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets");
//! let pictures = ["small.png", "vessels.png", "none.png"].map(|name| format!("{assets}/{name}"));
//! let name = |path: &std::path::Path| out.path().join(path.file_stem().unwrap()).with_extension("jpg");
//! let mut failed = Vec::new();
//! for item in session.series(pictures, |picture| picture.luminance().gauss(2.0)).save(name, &SaveOptions::default()) {
//!     match item.result {
//!         Ok(saved) => assert!(saved.path.exists()),
//!         Err(e) => failed.push(e.to_string()),
//!     }
//! }
//! assert!(failed.len() == 1 && failed[0].contains("none.png"));
//! # Ok(())
//! # }
//! ```
//!
//! # On several ranks
//! Every rank runs the same series. Rank 0 reads, and each picture is divided in strips. For small
//! pictures this is slower than one rank alone. [`Series::save`] therefore distributes whole
//! pictures of fewer than [`DEALT`] pixels: each rank reads, computes and writes its own pictures,
//! and all ranks get the outcomes at the end.

mod distribution;
mod engine;
mod input;
mod pixels;
mod queue;
mod save;
mod threads;
mod values;

use std::panic::Location;
use std::path::PathBuf;

use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::image::{Image, Pixels};
use crate::io::{AnyImage, OpenOptions, SaveOptions};
use crate::session::Session;
use crate::shape::Shape;

use self::distribution::NumberedInputs;
use self::engine::Pipeline;
use self::pixels::PixelsOperation;
use self::queue::Bounds;

pub use distribution::DEALT;
pub use input::Input;
pub use pixels::Frames;
pub use save::{Savable, Saved, Saves};
pub use values::{Computable, SeriesValues};

/// Default limit for the bytes of pictures and results in progress.
const MEMORY: usize = 2 << 30;

/// The outcome of a picture.
#[derive(Clone, Debug)]
pub struct Item<R> {
    /// Its position in the series, from 0.
    pub number: usize,
    /// The file that the picture was read from, or the name of the input.
    pub path: Option<PathBuf>,
    /// Size and type of the picture, if it could be read.
    pub picture: Option<(Shape, DType)>,
    /// The result.
    pub result: Result<R>,
}

/// A series of pictures and the operation to apply to each. See [`Session::series`]. Nothing is
/// read before the series is iterated.
#[must_use = "a series does nothing until it is iterated"]
#[derive(Clone, Debug)]
pub struct Series<I, F> {
    session: Session,
    inputs: I,
    operation: F,
    options: OpenOptions,
    bounds: Bounds,
}

impl Session {
    /// Applies `operation` to each of `inputs`: paths of files, or pictures that the program makes
    /// on demand (see [`Input`]). The thread that iterates calls the operation once per picture, in
    /// order, to record the program. Use a `RefCell` for state that the operation keeps between
    /// pictures.
    ///
    /// Iterating yields the pixels of each result. [`Series::save`] writes files instead;
    /// [`Series::values`] yields numbers.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # fn main() -> Result<()> {
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let file = |name: &str| concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/").to_owned() + name;
    /// let paths = [file("small.png"), file("vessels.png")];
    /// for item in session.series(paths, |picture| picture.luminance().gauss(2.0)) {
    ///     let pixels = item.result?;
    ///     assert!(pixels.shape().area() > 0 && pixels.iter().all(|v| (0.0..=1.0).contains(v)));
    /// }
    /// assert_eq!(session.stats().evaluations, 2);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn series<I, F, R>(&self, inputs: I, operation: F) -> Series<I::IntoIter, F>
    where
        I: IntoIterator,
        I::Item: Into<Input>,
        F: Fn(&AnyImage) -> R,
    {
        Series {
            session: self.clone(),
            inputs: inputs.into_iter(),
            operation,
            options: OpenOptions::default(),
            bounds: Bounds { pictures: None, bytes: MEMORY, once: false, site: Location::caller() },
        }
    }
}

impl<I, F> Series<I, F>
where
    I: Iterator,
    I::Item: Into<Input>,
{
    /// Sets the options for reading files.
    pub fn open_options(mut self, options: &OpenOptions) -> Self {
        self.options = *options;
        self
    }

    /// Limits the number of pictures in progress, from the moment an input is taken until its
    /// result is yielded. The default, two per thread of the session plus three, suits files; small
    /// pictures that are [recorded once](Series::recorded_once) are more, up to 24 MiB. The minimum
    /// is one. For a camera, results are late by as many frames: with 1, each result is
    /// yielded before the next picture is taken.
    pub fn ahead(mut self, pictures: usize) -> Self {
        self.bounds.pictures = Some(pictures);
        self
    }

    /// Limits the bytes of decoded pictures and results in progress (default: 2 GiB). A single
    /// picture is processed however large it is.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.bounds.bytes = bytes;
        self
    }

    /// Declares that the operation is the same for all pictures of equal shape, type and size of
    /// pixels. It is then recorded once for each such kind and replayed for the other pictures,
    /// which saves most of the work of the program's thread: a series of small pictures can be
    /// several times as fast on a GPU. The operation is still called each time if it reads a value
    /// (`picture.luminance().mean().get()`), or if its picture is divided in strips.
    ///
    /// Small pictures of a kind are computed together, with the bits of each alone, so that
    /// thousands take a few launches on a GPU. The operation may be called once for each number of
    /// pictures that are computed together. Pictures whose operation needs more of a picture than
    /// sums and extremes (labels, histograms) are computed one by one.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # use std::cell::Cell;
    /// # fn main() -> Result<()> {
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png");
    /// let calls = Cell::new(0);
    /// let smooth = session.series([file; 3], |picture| {
    ///     calls.set(calls.get() + 1);
    ///     picture.luminance().gauss(2.0)
    /// });
    /// assert_eq!(smooth.recorded_once().into_iter().count(), 3);
    /// assert_eq!(calls.get(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn recorded_once(mut self) -> Self {
        self.bounds.once = true;
        self
    }

    /// Writes each result to a file, as [`Image::save_with`] does, when the series is iterated.
    /// `name` maps the picture's path to the path of the file; pictures without a path are named by
    /// their number, `000007`. The result of a picture must not depend on other pictures or on
    /// images of the session, because each rank may process its own pictures (unless
    /// [`Series::ahead`] is 1).
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use horus::io::Picture;
    /// # fn main() -> Result<()> {
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let out = tempfile::tempdir().expect("a folder");
    /// # let camera = || std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png")).expect("a file");
    /// let frames = (0..3).map(|_| camera()); // the bytes of files
    /// let name = |number: &std::path::Path| out.path().join(number).with_extension("png");
    /// let saved = session.series(frames, |frame| frame.luminance().sobel(Axis::Columns)).save(name, &SaveOptions::default()).all()?;
    /// assert!(saved[2].path.ends_with("000002.png"));
    /// assert_eq!(session.stats().planned, 1); // frames of equal kind share a plan
    /// # Ok(())
    /// # }
    /// ```
    pub fn save<N, P, S>(self, name: N, options: &SaveOptions) -> Saves<I, F, N>
    where
        F: Fn(&AnyImage) -> S,
        S: Savable,
        N: Fn(&std::path::Path) -> P,
        P: Into<PathBuf>,
    {
        Saves::new(self, name, *options)
    }
}

impl<I, F, T> IntoIterator for Series<I, F>
where
    I: Iterator,
    I::Item: Into<Input>,
    F: Fn(&AnyImage) -> Image<T>,
    T: Element,
{
    type Item = Item<Pixels<T>>;
    type IntoIter = Frames<I, F, T>;

    fn into_iter(self) -> Frames<I, F, T> {
        let Series { session, inputs, operation, options, bounds } = self;
        Frames(Pipeline::new(session, NumberedInputs::all(inputs), PixelsOperation(operation), options, bounds))
    }
}
