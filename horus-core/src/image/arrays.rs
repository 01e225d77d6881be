//! Conversion of images to arrays of ndarray.

use ndarray::{Array, Array3, Array4, Axis, Dimension, Ix2, Ix3, Ix4, IxDyn};

use super::Image;
use crate::dtype::Element;
use crate::error::{Call, Error, Result};
use crate::shape::Shape;

/// The numbers of axes that [`Image::to_array`] supports: `Ix2`, `Ix3`, `Ix4` and `IxDyn` of
/// ndarray.
pub trait ArrayAxes: Dimension + sealed::SealedAxes {
    /// The pixels as an array of these axes.
    #[doc(hidden)]
    fn array<T: Element>(image: &Image<T>, call: Call) -> Result<Array<T, Self>>;
}

mod sealed {
    /// Prevents implementations elsewhere.
    pub trait SealedAxes {}

    impl SealedAxes for ndarray::Ix2 {}
    impl SealedAxes for ndarray::Ix3 {}
    impl SealedAxes for ndarray::Ix4 {}
    impl SealedAxes for ndarray::IxDyn {}
}

impl ArrayAxes for Ix2 {
    fn array<T: Element>(image: &Image<T>, call: Call) -> Result<Array<T, Ix2>> {
        image.look()?;
        if image.channels() != 1 {
            let message = format!("the image has {} channels; take three axes, or a channel", image.channels());
            return Err(Error::parameter(call, message));
        }
        image.one_level(call)?;
        let pixels = image.vec(call)?;
        Ok(Array::from_shape_vec((image.height(), image.width()), pixels).expect("a fetched image fills its shape"))
    }
}

impl ArrayAxes for Ix3 {
    fn array<T: Element>(image: &Image<T>, call: Call) -> Result<Array<T, Ix3>> {
        image.one_level(call)?;
        Ok(image.array4(call)?.index_axis_move(Axis(0), 0))
    }
}

impl ArrayAxes for Ix4 {
    fn array<T: Element>(image: &Image<T>, call: Call) -> Result<Array<T, Ix4>> {
        image.array4(call)
    }
}

impl ArrayAxes for IxDyn {
    fn array<T: Element>(image: &Image<T>, call: Call) -> Result<Array<T, IxDyn>> {
        let Shape { depth, channels, .. } = image.shape();
        let array = image.array4(call)?.into_dyn();
        Ok(match (depth, channels) {
            (1, 1) => array.index_axis_move(Axis(3), 0).index_axis_move(Axis(0), 0),
            (_, 1) => array.index_axis_move(Axis(3), 0),
            _ => array,
        })
    }
}

/// Reading pixels back as arrays.
impl<T: Element> Image<T> {
    /// Returns the pixels as an array. Its number of axes is given by the type of the result or by
    /// a type parameter:
    ///
    /// | | axes |
    /// | --- | --- |
    /// | `Array2`, `Ix2` | height, width; of one channel and one level |
    /// | `Array3`, `Ix3` | height, width, channels; of one level |
    /// | `Array4`, `Ix4` | depth, height, width, channels |
    /// | `ArrayD`, `IxDyn` | height, width for one channel and one level; depth, height, width for one channel; else all four |
    ///
    /// [`Image::to_volume_array`] returns depth, height and width of a volume of one channel.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use ndarray::{Array2, Ix3, Ix4, IxDyn};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 2), &[1u8, 2, 3, 4]);
    /// let array: Array2<u8> = image.to_array()?;
    /// assert_eq!(array[[1, 0]], 3);
    /// let colour = Image::stack(&session, [&image, &(&image * 10)], Axis::Channels);
    /// assert_eq!(colour.to_array::<Ix3>()?[[1, 0, 1]], 30); // row, column, channel
    /// let volume = Image::from_volume_fn(&session, 2, 3, 4, |z, y, x| (100 * z + 10 * y + x) as u8);
    /// assert_eq!(volume.to_array::<Ix4>()?[[1, 2, 3, 0]], 123);
    /// assert_eq!(volume.to_array::<IxDyn>()?.shape(), [2, 3, 4]);
    /// assert_eq!(volume.slice(1).to_array::<IxDyn>()?.shape(), [3, 4]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more channels or levels than the axes hold, or as [`Image::to_vec`].
    #[track_caller]
    pub fn to_array<D: ArrayAxes>(&self) -> Result<Array<T, D>> {
        D::array(self, Call::of("to_array"))
    }

    /// Returns the pixels of a volume or an image of one channel as an array of shape
    /// `(depth, height, width)`, which [`Image::from_volume_array`] accepts.
    ///
    /// # Errors
    /// If there are several channels, or as [`Image::to_vec`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let volume = Image::from_volume_fn(&session, 2, 3, 4, |z, y, x| (100 * z + 10 * y + x) as u8);
    /// assert_eq!(volume.to_volume_array()?[[1, 2, 3]], 123);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn to_volume_array(&self) -> Result<Array3<T>> {
        let call = Call::of("to_volume_array");
        self.look()?;
        if self.channels() != 1 {
            let message =
                format!("the image has {} channels; take four axes (`to_array`), or a channel", self.channels());
            return Err(Error::parameter(call, message));
        }
        Ok(self.array4(call)?.index_axis_move(Axis(3), 0))
    }

    fn array4(&self, call: Call) -> Result<Array4<T>> {
        let Shape { depth, height, width, channels, .. } = self.shape();
        let array = Array4::from_shape_vec((depth, height, width, channels), self.vec(call)?);
        Ok(array.expect("a fetched image fills its shape"))
    }

    /// Fails if this is a volume, which the result cannot hold.
    fn one_level(&self, call: Call) -> Result<()> {
        self.look()?;
        if self.depth() == 1 {
            return Ok(());
        }
        let message = format!("the image has {} levels; take four axes, or a slice", self.depth());
        Err(Error::parameter(call, message))
    }
}
