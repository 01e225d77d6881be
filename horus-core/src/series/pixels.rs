//! Series whose results are arrays of pixels.

use std::ffi::OsString;
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use ndarray::{Array3, ArrayView3};

use super::deal::Numbered;
use super::engine::{Finish, Make, Pipeline};
use super::{Input, Item};
use crate::dtype::Element;
use crate::error::Result;
use crate::host::buffer::HostBuffer;
use crate::image::Image;
use crate::io::AnyImage;
use crate::plan::Want;
use crate::session::{Handle, Session};
use crate::shape::Shape;

/// The pixels of a result: channels one after the other, each in row-major order.
///
/// ```
/// # use horus_core::{cpu::device::CpuDevice, error::Result, session::Session};
/// # fn main() -> Result<()> {
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/small.png");
/// for item in session.series([file], |picture| picture.luminance().gt(0.5)) {
///     let mask = item.result?;
///     let bright = mask.iter().filter(|v| **v).count(); // as a slice
///     assert_eq!(mask.to_array3().iter().filter(|v| **v).count(), bright);
///     assert_eq!(mask.len(), mask.shape().area());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Pixels<T: Element> {
    shape: Shape,
    buffer: Arc<HostBuffer>,
    pixel: PhantomData<T>,
}

impl<T: Element> Pixels<T> {
    /// Rows, columns and channels.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The pixels, of shape `(height, width, channels)`.
    pub fn to_array3(&self) -> Array3<T> {
        let Shape { height, width, channels } = self.shape;
        let planes = ArrayView3::from_shape((channels, height, width), self).expect("a fetched image fills its shape");
        planes.permuted_axes([1, 2, 0]).as_standard_layout().into_owned()
    }
}

impl<T: Element> Deref for Pixels<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::checked::cast_slice(self.buffer.bytes())
    }
}

/// Copies the pixels to every rank.
pub(super) struct Look<F>(pub(super) F);

impl<F, T> Make for Look<F>
where
    F: Fn(&AnyImage) -> Image<T>,
    T: Element,
{
    type Output = Pixels<T>;
    type Ready = Shape;
    const WANT: Want = Want::Everyone;
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
            Ok(Pixels { shape, buffer, pixel: PhantomData })
        }))
    }

    fn tell(&self, _: &Session, own: Result<Pixels<T>>, _: &Path) -> Result<Pixels<T>> {
        own
    }
}

/// The pixels of the results of a series, in order; see [`Session::series`].
pub struct Frames<I, F, T: Element>(pub(super) Pipeline<Numbered<I>, Look<F>, Pixels<T>, Shape>);

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
