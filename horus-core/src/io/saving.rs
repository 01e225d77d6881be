//! Images prepared for files.
//!
//! `Saving` records the samples of a file. One evaluation computes them and the scale, and an
//! `Encoder`, which does not use a session, writes them. The design is in `docs/design/saving.md`.

use std::path::Path;
use std::sync::Arc;

use super::memory::unwritable;
use super::samples::{RecordedSamples, smaller, unscaled};
use super::{Alpha, Clipping, Downsampling, FileSpec, Format, IN_MEMORY, SaveOptions, Scaling, StoredScale, on_root};
use crate::dispatch;
use crate::dtype::{DType, Element, Pixel};
use crate::error::{Audience, Call, Error, Result};
use crate::image::Image;
use crate::session::{Attributes, Handle, Session, SizeReduction};
use crate::shape::Axis;

/// An image prepared for a file: samples, scale and warnings as recorded values. After their
/// evaluation an [`Encoder`](super::Encoder) writes the file, on any thread.
///
/// [`Image::save_with`] does all of this.
pub struct Saving {
    /// The file. It has no handles, so that another thread can encode it: dropping handles there
    /// would wait for the session.
    pub(crate) draft: FileSpec,
    /// The samples of each [size](FileSpec::sizes), and the arguments of
    /// [`FileSpec::scale_and_clipping`].
    pub(crate) handles: Vec<Handle>,
    /// Metadata of the image.
    pub(crate) attributes: Option<Arc<Attributes>>,
}

impl Saving {
    /// Records the samples of a file of `format`: values are converted, scaled to the file's range
    /// and narrowed, so that only the file's samples are copied to the host.
    ///
    /// # Errors
    /// The error that the image carries; also if the format does not support the channels, the size
    /// or the depth.
    #[track_caller]
    pub fn of<T: Element>(image: &Image<T>, format: Format, options: &SaveOptions) -> Result<Saving> {
        image.look()?;
        let saving = Saving::record(image, format, options)?.map_err(|cause| unwritable(format, cause))?;
        Ok(saving.described(image.session(), Path::new(IN_MEMORY)))
    }

    /// Adds the metadata of the file at a path, on rank 0, which writes the file.
    pub(super) fn described(mut self, session: &Session, path: &Path) -> Saving {
        if session.rank() == 0 {
            describe(self.attributes.as_ref(), &mut self.draft, path);
        }
        self
    }

    /// [`Saving::of`] without metadata. The inner error is the cause, without the path; the outer
    /// error is a failure of ranks.
    #[track_caller]
    pub(crate) fn record<T: Element>(
        image: &Image<T>,
        format: Format,
        options: &SaveOptions,
    ) -> Result<Result<Saving, String>> {
        let dtype = T::TAG;
        let mut draft = match FileSpec::new(format, dtype, image.shape(), options) {
            Ok(draft) => draft,
            Err(cause) => return Ok(Err(cause)),
        };
        let ((_, stored), scaling, handle) = (draft.stored(), options.scaling, image.handle().clone());
        let own = Attributes::alpha(handle.attributes.as_ref()).filter(|_| dtype != DType::Bool);
        let kind = draft.format().alpha_kind(image.channels()).filter(|kind| own.is_some_and(|own| own != *kind));
        let handle = if kind.is_none() {
            handle
        } else if dtype.is_float() && scaling == Scaling::Range && !stored.is_float() {
            let range = Audience::now().select_wording("Scaling::Range", "--scaling range", "scaling=\"range\"");
            crate::warn!(
                "the colours of a {} file stay multiplied by alpha, because {range} scales them as they are",
                draft.format().name()
            );
            handle
        } else {
            let of = if dtype.is_float() && scaling == Scaling::None { stored } else { dtype };
            let opaque = if of.is_float() { 1.0 } else { dispatch!(of, P => P::HIGHEST.to_f64()) };
            dispatch!(dtype, P => with_kind(&Image::<P>::from_handle(handle), kind == Some(Alpha::Associated), opaque))
        };
        let RecordedSamples { pixels, scale, range, outside } = if draft.format().keeps_values() {
            unscaled(handle)
        } else if dtype == DType::Bool {
            RecordedSamples::of::<u8>(&Image::<bool>::from_handle(handle).convert(), true, stored, scaling, false)
        } else {
            let counted = options.clipping != Clipping::Allow;
            dispatch!(dtype, P => RecordedSamples::of::<P>(&Image::from_handle(handle), false, stored, scaling, counted))
        };
        draft.scale = scale;
        draft.counted = outside.as_ref().map(|outside| outside.held);
        let mut handles = vec![pixels];
        let of_scale = scale != StoredScale::Not;
        add_sizes(&mut handles, options.sizes, || reduced(image.handle(), stored, of_scale, options.into()))?;
        handles.extend(range.into_iter().flatten().chain(outside.map(|outside| outside.count)));
        Ok(Ok(Saving { draft, handles, attributes: image.handle().attributes.clone() }))
    }
}

/// The image with its colours `multiplied` or divided by alpha, the last channel. A division leaves
/// colours unchanged where alpha is 0.
#[track_caller]
fn with_kind<T: Pixel>(image: &Image<T>, multiplied: bool, opaque: f64) -> Handle {
    let mut channels = image.unstack(Axis::Channels);
    if let Some((alpha, colours)) = channels.split_last_mut() {
        let factor = if multiplied {
            alpha.convert::<f64>() / opaque
        } else {
            alpha.gt(T::from_f64(0.0)).select(opaque / alpha.convert::<f64>(), 1.0)
        };
        colours.iter_mut().for_each(|colour| *colour = (colour.convert::<f64>() * &factor).convert());
    }
    Image::stack(image.session(), &channels, Axis::Channels).handle().clone()
}

/// Adds an image's metadata to the file at a path, and warns of metadata that the file cannot
/// contain. Called last, on the rank that writes the file.
pub(crate) fn describe(attributes: Option<&Arc<Attributes>>, draft: &mut FileSpec, path: &Path) {
    for warning in Attributes::describe(attributes, draft, path) {
        crate::warn!("{warning}");
    }
}

/// Warns, on rank 0, of metadata of the image's source files that a store at `path` does not
/// contain. Stores contain only sizes of pixels and names of channels. For crates of stores.
#[doc(hidden)]
pub fn tell_untold<T: Element>(image: &Image<T>, path: &Path) {
    let attributes = image.handle().attributes.as_ref().filter(|_| image.session().rank() == 0);
    for warning in attributes.into_iter().flat_map(|all| all.untold_by_store(image.depth(), path)) {
        crate::warn!("{warning}");
    }
}

/// Returns an image in several sizes, the largest first, for sinks of several sizes
/// ([`save_all_to`](super::save_all_to)). See [`SaveOptions::sizes`] and
/// [`SaveOptions::resampling`]. Every rank passes the same arguments.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let row = Image::from_slice(&session, (1, 5), &[0.0f32, 1.0, 2.0, 3.0, 4.0]);
/// let sizes = horus::io::sizes_of(&row, 3, None)?;
/// assert_eq!(sizes[1].to_vec()?, [0.5, 2.5, 4.0]);
/// assert_eq!(sizes[2].to_vec()?, [1.5, 4.0]);
/// let labels = Image::from_slice(&session, (2, 2), &[7u32, 0, 9, 9]);
/// assert_eq!(horus::io::sizes_of(&labels, 2, None)?[1].to_vec()?, [9]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// If `sizes` is 0 or above 32; the error that the image carries; if the ranks cannot communicate.
#[track_caller]
pub fn sizes_of<T: Element>(image: &Image<T>, sizes: usize, resampling: Option<Downsampling>) -> Result<Vec<Image<T>>> {
    const MOST: usize = 32;
    if !(1..=MOST).contains(&sizes) {
        return Err(Error::parameter(Call::of("sizes_of"), format!("{sizes} sizes; the range is 1 to {MOST}")));
    }
    image.look()?;
    let mut handles = vec![image.handle().clone()];
    add_sizes(&mut handles, sizes, || {
        reduced(image.handle(), T::TAG, false, SmallerSizeOptions { resampling, nodata: None })
    })?;
    Ok(handles.into_iter().map(Image::from_handle).collect())
}

/// Appends smaller sizes of the samples until there are `sizes`.
#[track_caller]
fn add_sizes(samples: &mut Vec<Handle>, sizes: usize, how: impl FnOnce() -> Result<SizeReduction>) -> Result<()> {
    if sizes > 1 {
        let how = how()?;
        while samples.len() < sizes {
            samples.push(smaller(&samples[samples.len() - 1], how));
        }
    }
    Ok(())
}

/// The program's options for the pixels of smaller sizes.
struct SmallerSizeOptions {
    resampling: Option<Downsampling>,
    /// The value of missing pixels.
    nodata: Option<f64>,
}

impl From<&SaveOptions> for SmallerSizeOptions {
    fn from(options: &SaveOptions) -> SmallerSizeOptions {
        SmallerSizeOptions { resampling: options.resampling, nodata: options.nodata }
    }
}

/// Chooses how smaller sizes of an image are computed, when samples of type `stored` are saved,
/// `scaled` or not. Rank 0 knows the metadata of the source file.
fn reduced(image: &Handle, stored: DType, scaled: bool, wanted: SmallerSizeOptions) -> Result<SizeReduction> {
    let means = wanted.nodata.map_or(SizeReduction::Means, SizeReduction::MeansBut);
    match wanted.resampling {
        Some(Downsampling::Mode) => return Ok(SizeReduction::Mode),
        Some(Downsampling::Nearest) => return Ok(SizeReduction::Nearest),
        None if image.dtype == DType::Bool => return Ok(SizeReduction::Mode),
        // Scaled values are neither the file's missing value nor labels.
        _ if scaled => return Ok(means),
        None if matches!(image.dtype, DType::I32 | DType::U32) => return Ok(SizeReduction::Mode),
        _ => {}
    }
    let told = on_root(&image.session, "choosing the pixels of smaller sizes", || {
        Ok(image.attributes.as_ref().map_or(SizeReduction::Means, |all| all.reduced(stored)))
    });
    Ok(match told?.map_err(Error::Lost)? {
        SizeReduction::MeansBut(missing) => SizeReduction::MeansBut(wanted.nodata.unwrap_or(missing)),
        SizeReduction::Mode if wanted.resampling.is_none() => SizeReduction::Mode,
        _ => means,
    })
}
