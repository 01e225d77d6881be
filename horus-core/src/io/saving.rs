//! Images prepared for files.
//!
//! Decoded pixels have the file's type. `Saving` records the samples of a file; its handles are
//! fetched in one evaluation with the scale, and an `Encoder`, which knows no session, writes them.
//! PNM and npy are read by parallel preads into the buffer that becomes the image (`io/raster.rs`);
//! one thread writes, as file systems serialise writers, to blocks reserved before. `io/png.rs`
//! cuts rows into bands that depend only on the picture; `cpu/scanlines.rs` filters them,
//! `io/png/deflate.rs` encodes them. A file that is being written has no name until it is complete
//! (`io/replace.rs`, `O_TMPFILE` on Linux), so a killed process leaves nothing; where the file
//! system does not support that, it has a temporary name.

use std::sync::Arc;

use super::encode::{Format, Parts, write};
use super::memory::unwritable;
use super::samples::{Held, Recorded, Scaled};
use super::save::{Clipping, SaveOptions, Scale};
use super::target::Sink;
use crate::dispatch;
use crate::dtype::{DType, Element, Pixel};
use crate::error::{Audience, Result};
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
    clipping: Clipping,
}

impl Saving {
    /// Records the samples of a file of `format`: values converted, scaled to the file's range and
    /// narrowed, so that only the file's bytes are copied to the host.
    ///
    /// # Errors
    /// The error that the image carries, or if the format cannot hold the channels, the size or the
    /// depth.
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
            Recorded::of::<u8>(&Image::<bool>::from_handle(handle).convert(), true, stored, options.scaling, false)
        } else {
            let counted = options.clipping != Clipping::Allow;
            dispatch!(dtype, P => Recorded::of::<P>(&Image::from_handle(handle), false, stored, options.scaling, counted))
        };
        Ok(Saving { format, shape, dtype, stored, parts, samples, clipping: options.clipping })
    }

    /// The values that the encoder needs on the host.
    pub(crate) fn handles(&self) -> Vec<&Handle> {
        let mut handles = vec![&self.samples.pixels];
        if let Scaled::Range(low, high, _) = &self.samples.scale {
            handles.extend([low, high]);
        }
        handles.extend(self.samples.outside.as_ref().map(|outside| &outside.count));
        handles
    }

    /// Bytes that the encoder takes besides the samples.
    pub(super) fn beside(&self) -> usize {
        let whole = !matches!(self.format, Format::Npy | Format::Pgm | Format::Ppm | Format::Pnm);
        let interleaves = whole && self.parts == Parts::Usual && self.shape.channels > 1;
        if interleaves { self.shape.len() * self.stored.size() } else { 0 }
    }

    /// The encoder of the fetched values of [`Saving::handles`], in their order.
    ///
    /// # Panics
    /// If a buffer is missing.
    pub(crate) fn encoder(self, fetched: Vec<Arc<HostBuffer>>) -> Encoder {
        self.detached().encoder(fetched)
    }

    /// [`Saving::encoder`] without the handles, so that another thread can create the encoder:
    /// dropping handles there would wait for the session.
    pub(crate) fn detached(self) -> Detached {
        self.about()
    }

    /// The properties of the file, without its samples.
    fn about(&self) -> Detached {
        let &Saving { format, shape, dtype, stored, parts, ref samples, clipping } = self;
        let (known, full) = match samples.scale {
            Scaled::Not => (None, None),
            Scaled::By(scale) => (Some(scale), None),
            Scaled::Range(_, _, full) => (None, Some(full)),
        };
        let counted = samples.outside.as_ref().map(|outside| outside.held);
        Detached { format, shape, dtype, stored, parts, known, full, counted, clipping }
    }

    /// The format, and shape and type of the stored samples.
    pub(super) fn stores(&self) -> (Format, Shape, DType) {
        (self.format, self.shape, self.stored)
    }

    /// The scale, and the report on clipped values, from the fetched values of all handles but the
    /// first.
    pub(super) fn told(&self, fetched: &mut dyn Iterator<Item = Arc<HostBuffer>>) -> (Option<Scale>, Clipped) {
        self.about().told(fetched)
    }
}

/// The properties of a file, without its samples.
#[derive(Clone, Debug)]
pub(crate) struct Detached {
    format: Format,
    shape: Shape,
    dtype: DType,
    stored: DType,
    parts: Parts,
    /// The scale, if it does not depend on the samples.
    known: Option<Scale>,
    /// Upper end of the scale of the values' range, if they are scaled by it.
    full: Option<u16>,
    /// The range of the file, if values outside were counted.
    counted: Option<Held>,
    clipping: Clipping,
}

/// The report on clipped values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clipped {
    pub(super) warning: Option<String>,
    /// The reason for refusing the file.
    pub(super) error: Option<String>,
}

impl Detached {
    /// [`Saving::encoder`].
    pub(crate) fn encoder(self, fetched: Vec<Arc<HostBuffer>>) -> Encoder {
        let mut fetched = fetched.into_iter();
        let pixels = fetched.next().expect("a buffer for each handle");
        let (scale, clipped) = self.told(&mut fetched);
        let Detached { format, shape, stored, parts, .. } = self;
        Encoder { format, shape, stored, parts, pixels, scale, clipped }
    }

    /// See [`Saving::told`].
    fn told(&self, fetched: &mut dyn Iterator<Item = Arc<HostBuffer>>) -> (Option<Scale>, Clipped) {
        let mut next = || fetched.next().expect("a buffer for each handle");
        let found = self.full.map(|full| {
            let (low, high) = (next(), next());
            dispatch!(self.dtype, T => Scaled::range::<T>(&low, &high, full))
        });
        let clipped = self.counted.map(|held| self.clipped(next().as_slice::<f64>()[0], held));
        (self.known.or(found), clipped.unwrap_or_default())
    }

    fn clipped(&self, count: f64, held: Held) -> Clipped {
        if count == 0.0 {
            return Clipped::default();
        }
        let all = self.shape.len();
        let percent = match 100.0 * count / all as f64 {
            little if little < 0.1 => "less than 0.1 %".to_owned(),
            percent => format!("{percent:.1} %"),
        };
        let Held { low, high } = held;
        let lie = if count == 1.0 { "lies" } else { "lie" };
        let what = format!("{count} of {all} values {lie} outside {low}..={high} ({percent})");
        let unit = if self.dtype.is_float() {
            String::new()
        } else {
            let (low, high) = (0, dispatch!(self.dtype, T => T::HIGHEST.to_f64()));
            Audience::now().told(
                format!("Scaling::Unit scales {low}..={high}, "),
                format!("--scaling unit scales {low}..={high}, "),
            )
        };
        let range = Audience::now().told("Scaling::Range stretches", "--scaling range stretches");
        let allow = Audience::now().told("Clipping::Allow", "--clipping allow");
        let instead = format!("{unit}{range}, tif and npy files hold every value");
        match self.clipping {
            Clipping::Warn => Clipped { warning: Some(format!("{what} and were clipped; {instead}")), error: None },
            Clipping::Refuse => Clipped { warning: None, error: Some(format!("{what}; {instead}, {allow} clips")) },
            Clipping::Allow => Clipped::default(),
        }
    }
}

/// The samples of a file on the host, ready to be encoded on any thread. Belongs to no session.
#[derive(Debug)]
pub struct Encoder {
    format: Format,
    shape: Shape,
    stored: DType,
    parts: Parts,
    /// Planes of the channels.
    pub(super) pixels: Arc<HostBuffer>,
    scale: Option<Scale>,
    clipped: Clipped,
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
        self.clipped.warning.as_deref()
    }

    /// Writes the file, divided among `workers` as far as the format permits; its bytes do not
    /// depend on them. Returns the scale.
    ///
    /// # Errors
    /// A message, if clipped values are refused, the file cannot be written or memory is exhausted.
    pub fn write(self, to: &mut dyn Sink, workers: &Workers) -> Result<Option<Scale>, String> {
        if let Some(refused) = self.clipped.error {
            return Err(refused);
        }
        write(to, self.format, self.parts, &self.pixels, self.stored, self.shape, workers)?;
        Ok(self.scale)
    }
}
