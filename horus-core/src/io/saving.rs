//! Images prepared for files.
//!
//! Decoded pixels have the file's type. `Saving` records what a file stores; its handles are fetched in one
//! evaluation with the scale, and an `Encoder`, which knows no session, writes them. PNM and npy are read by
//! parallel preads into the buffer that becomes the image (`io/raster.rs`); one thread writes, as file systems
//! admit one, into blocks reserved before. `io/png.rs` cuts rows into bands that follow from the picture alone;
//! `cpu/scanlines.rs` filters them, `io/png/deflate.rs` codes them. A file that is being written has no name until
//! it is complete (`io/replace.rs`, `O_TMPFILE` on Linux), so a killed process leaves nothing; where the file
//! system does not offer that, it has a temporary name.

use std::sync::Arc;

use super::encode::{Format, Parts, write};
use super::memory::unwritable;
use super::samples::{Recorded, Scaled};
use super::save::{SaveOptions, Scale};
use super::target::Sink;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::host::buffer::HostBuffer;
use crate::host::workers::Workers;
use crate::image::Image;
use crate::session::Handle;
use crate::shape::Shape;

/// An image prepared for a file: its samples, and the scale and warnings, as recorded values. When these are evaluated,
/// an [`Encoder`] writes them, on any thread.
///
/// [`Image::save_with`] does all of it.
pub struct Saving {
    format: Format,
    shape: Shape,
    /// The type of the image, and of the samples.
    dtype: DType,
    stored: DType,
    parts: Parts,
    samples: Recorded,
}

impl Saving {
    /// Records what a file of `format` stores of an image: values converted, scaled to the file's range and narrowed, so that
    /// no more comes to the host than goes into the file.
    ///
    /// # Errors
    /// The error that the image carries, or if the format cannot hold the channels, the size or the depth.
    #[track_caller]
    pub fn of<T: Element>(image: &Image<T>, format: Format, options: &SaveOptions) -> Result<Saving> {
        image.look()?;
        Saving::record(image, format, options).map_err(|cause| unwritable(format, cause))
    }

    /// [`Saving::of`]; the error is the cause, without the path.
    #[track_caller]
    pub(crate) fn record<T: Element>(
        image: &Image<T>,
        format: Format,
        options: &SaveOptions,
    ) -> Result<Saving, String> {
        let (dtype, shape) = (T::TAG, image.shape());
        let format = format.with_channels(shape.channels);
        let stored = format.stored(dtype, shape, options)?;
        let parts = Parts::of(format, stored, shape, options)?;
        let handle = image.handle().clone();
        let samples = if format == Format::Npy {
            Recorded { pixels: handle, scale: Scaled::Not, outside: None }
        } else if dtype == DType::Bool {
            Recorded::of::<u8>(&Image::<bool>::from_handle(handle).convert(), true, stored, options.scaling)
        } else {
            dispatch!(dtype, P => Recorded::of::<P>(&Image::from_handle(handle), false, stored, options.scaling))
        };
        Ok(Saving { format, shape, dtype, stored, parts, samples })
    }

    /// The values that the encoder needs on the host.
    pub(crate) fn handles(&self) -> Vec<&Handle> {
        let mut handles = vec![&self.samples.pixels];
        if let Scaled::Range(low, high, _) = &self.samples.scale {
            handles.extend([low, high]);
        }
        handles.extend(&self.samples.outside);
        handles
    }

    /// Bytes that the encoder takes beside the samples.
    pub(super) fn beside(&self) -> usize {
        let whole = !matches!(self.format, Format::Npy | Format::Pgm | Format::Ppm | Format::Pnm);
        let interleaves = whole && self.parts == Parts::Usual && self.shape.channels > 1;
        if interleaves { self.shape.len() * self.stored.size() } else { 0 }
    }

    /// Encodes what was fetched of [`Saving::handles`], in their order.
    ///
    /// # Panics
    /// If there is not a buffer for each.
    pub(crate) fn encoder(self, fetched: Vec<Arc<HostBuffer>>) -> Encoder {
        self.detached().encoder(fetched)
    }

    /// [`Saving::encoder`] without the handles, so that another thread can make the encoder: it would wait for the session to
    /// be free if it dropped them.
    pub(crate) fn detached(self) -> Detached {
        self.about()
    }

    /// What is known of the file before its samples.
    fn about(&self) -> Detached {
        let &Saving { format, shape, dtype, stored, parts, ref samples } = self;
        let (known, full) = match samples.scale {
            Scaled::Not => (None, None),
            Scaled::By(scale) => (Some(scale), None),
            Scaled::Range(_, _, full) => (None, Some(full)),
        };
        Detached { format, shape, dtype, stored, parts, known, full, counted: samples.outside.is_some() }
    }

    /// The format, and shape and type of what it stores.
    pub(super) fn stores(&self) -> (Format, Shape, DType) {
        (self.format, self.shape, self.stored)
    }

    /// The scale and a warning about the values, from what was fetched of all handles but the first.
    pub(super) fn told(&self, fetched: &mut dyn Iterator<Item = Arc<HostBuffer>>) -> (Option<Scale>, Option<String>) {
        self.about().told(fetched)
    }
}

/// What is known of a file before its samples.
#[derive(Clone, Debug)]
pub(crate) struct Detached {
    format: Format,
    shape: Shape,
    dtype: DType,
    stored: DType,
    parts: Parts,
    /// The scale, if it does not depend on the samples.
    known: Option<Scale>,
    /// What the range of the values is stretched to, if it is.
    full: Option<u16>,
    /// Whether values outside of the range were counted.
    counted: bool,
}

impl Detached {
    /// [`Saving::encoder`].
    pub(crate) fn encoder(self, fetched: Vec<Arc<HostBuffer>>) -> Encoder {
        let mut fetched = fetched.into_iter();
        let pixels = fetched.next().expect("a buffer for each handle");
        let (scale, warning) = self.told(&mut fetched);
        let Detached { format, shape, stored, parts, .. } = self;
        Encoder { format, shape, stored, parts, pixels, scale, warning }
    }

    /// The scale and a warning about the values, from what was fetched of all handles but the first.
    fn told(&self, fetched: &mut dyn Iterator<Item = Arc<HostBuffer>>) -> (Option<Scale>, Option<String>) {
        let mut next = || fetched.next().expect("a buffer for each handle");
        let found = self.full.map(|full| {
            let (low, high) = (next(), next());
            dispatch!(self.dtype, T => Scaled::range::<T>(&low, &high, full))
        });
        let outside = if self.counted { next().as_slice::<f64>()[0] } else { 0.0 };
        (self.known.or(found), outside_warning(outside, self.shape))
    }
}

/// A warning for floats outside `0..=1` where no scaling was requested. A few pixels, as filters leave them at an edge,
/// do not count.
fn outside_warning(outside: f64, shape: Shape) -> Option<String> {
    const ODD: usize = 100;
    (outside > (shape.len() / ODD) as f64).then(|| {
        let percent = 100.0 * outside / shape.len() as f64;
        format!(
            "{percent:.0} % of the values lie outside 0..=1, the range that is stored, and were saturated; \
             Scaling::Range stretches, Scaling::None keeps, tif and npy files hold every value"
        )
    })
}

/// The samples of a file on the host, ready to be encoded on any thread. Belongs to no session.
#[derive(Debug)]
pub struct Encoder {
    format: Format,
    shape: Shape,
    stored: DType,
    parts: Parts,
    /// Channels one after the other.
    pub(super) pixels: Arc<HostBuffer>,
    scale: Option<Scale>,
    warning: Option<String>,
}

impl Encoder {
    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The scale, if values were scaled.
    pub fn scale(&self) -> Option<Scale> {
        self.scale
    }

    /// A warning about the values, if any.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Writes the file, divided among `workers` as far as the format permits; its bytes do not depend on them. Returns the
    /// scale.
    ///
    /// # Errors
    /// A message, if the file cannot be written or there is not enough memory.
    pub fn write(self, to: &mut dyn Sink, workers: &Workers) -> Result<Option<Scale>, String> {
        write(to, (self.format, self.parts), &self.pixels, self.stored, self.shape, workers)?;
        Ok(self.scale)
    }
}
