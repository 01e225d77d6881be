//! Images prepared for files.
//!
//! Decoded pixels have the file's type. `Saving` records the samples of a file; its handles are
//! fetched in one evaluation with the scale, and an `Encoder`, which knows no session, writes them.

use std::path::Path;

use super::memory::unwritable;
use super::pixel_size;
use super::samples::{Recorded, unscaled};
use super::{Clipping, Draft, Format, IN_MEMORY, SaveOptions};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::image::Image;
use crate::session::Handle;

/// An image prepared for a file: its samples, and the scale and warnings, as recorded values. When these are evaluated,
/// an [`Encoder`](super::Encoder) writes them, on any thread.
///
/// [`Image::save_with`] does all of it.
pub struct Saving {
    /// The file. Without the handles, another thread can encode it: dropping handles there would
    /// wait for the session.
    pub(crate) draft: Draft,
    /// The samples, and what [`Draft::told`] takes.
    pub(crate) handles: Vec<Handle>,
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
        let saving = Saving::record(image, format, options).map_err(|cause| unwritable(format, cause))?;
        let mut saving = saving.located(image, Path::new(IN_MEMORY));
        saving.draft.describe(Path::new(IN_MEMORY));
        Ok(saving)
    }

    /// With the georeference of the image and the size of its pixels, if it has them, for the
    /// [description](Draft::describe) of a file; messages name `path`.
    pub(crate) fn located<T: Element>(mut self, image: &Image<T>, path: &Path) -> Saving {
        self.draft.pixel = pixel_size(image);
        if let Some(grid) = &image.handle().grid {
            grid.locate(&mut self.draft, path);
        }
        self
    }

    /// [`Saving::of`]; the error is the cause, without the path.
    #[track_caller]
    pub(crate) fn record<T: Element>(
        image: &Image<T>,
        format: Format,
        options: &SaveOptions,
    ) -> Result<Saving, String> {
        let dtype = T::TAG;
        let mut draft = Draft::new(format, dtype, image.shape(), options)?;
        let ((_, stored), scaling, handle) = (draft.stored(), options.scaling, image.handle().clone());
        let Recorded { pixels, scale, range, outside } = if draft.format() == Format::Npy {
            unscaled(handle)
        } else if dtype == DType::Bool {
            Recorded::of::<u8>(&Image::<bool>::from_handle(handle).convert(), true, stored, scaling, false)
        } else {
            let counted = options.clipping != Clipping::Allow;
            dispatch!(dtype, P => Recorded::of::<P>(&Image::from_handle(handle), false, stored, scaling, counted))
        };
        draft.scale = scale;
        draft.counted = outside.as_ref().map(|outside| outside.held);
        let values = range.into_iter().flatten().chain(outside.map(|outside| outside.count));
        Ok(Saving { draft, handles: [pixels].into_iter().chain(values).collect() })
    }
}
