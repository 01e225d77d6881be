//! Series whose results are arrays of pixels.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::distribution::NumberedInputs;
use super::engine::{Finish, PictureOperation, Pipeline};
use super::{Input, Item};
use crate::dtype::Element;
use crate::error::Result;
use crate::host::buffer::HostBuffer;
use crate::image::{Image, Pixels};
use crate::io::AnyImage;
use crate::plan::ResultDelivery;
use crate::session::{Handle, Session};
use crate::shape::Shape;

/// Copies the pixels to every rank.
pub(super) struct PixelsOperation<F>(pub(super) F);

impl<F, T> PictureOperation for PixelsOperation<F>
where
    F: Fn(&AnyImage) -> Image<T>,
    T: Element,
{
    type Output = Pixels<T>;
    type Ready = Shape;
    const WANT: ResultDelivery = ResultDelivery::Everyone;
    const HELD: bool = true;

    fn kind(&self, _: &Path) -> OsString {
        OsString::new()
    }

    fn record(&mut self, picture: &AnyImage, _: &Path) -> Result<(Vec<Handle>, Shape)> {
        let image = (self.0)(picture);
        image.look()?;
        Ok((vec![image.handle().clone()], image.shape()))
    }

    fn finish(&self, _: &Session, shape: Shape, _: &Path) -> Result<Finish<Pixels<T>>> {
        Ok(Box::new(move |fetched: Vec<Arc<HostBuffer>>| {
            let buffer = fetched.into_iter().next().expect("a buffer for each handle");
            Ok(Pixels::over(shape, Arc::unwrap_or_clone(buffer)))
        }))
    }

    fn share_outcome(&self, _: &Session, own: Result<Pixels<T>>, _: &Path) -> Result<Pixels<T>> {
        own
    }
}

/// The pixels of the results of a series, in order; see [`Session::series`].
pub struct Frames<I, F, T: Element>(pub(super) Pipeline<NumberedInputs<I>, PixelsOperation<F>, Pixels<T>, Shape>);

impl<I, F, T> Iterator for Frames<I, F, T>
where
    I: Iterator,
    I::Item: Into<Input>,
    F: Fn(&AnyImage) -> Image<T>,
    T: Element,
{
    type Item = Item<Pixels<T>>;

    fn next(&mut self) -> Option<Item<Pixels<T>>> {
        self.0.next()
    }
}
