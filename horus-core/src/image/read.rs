//! Reading pixels back.

use std::panic::Location;
use std::sync::Arc;

use ndarray::{Array2, Array3, ArrayView3};

use super::Image;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::host::buffer::HostBuffer;
use crate::plan::Want;
use crate::plan::forecast::{Cluster, Forecast};
use crate::plan::movement::Link;
use crate::session::Handle;

/// Reading pixels back. These methods, [`Value::get`](super::Value::get) and saving trigger evaluation.
///
/// ```
/// # use horus_core::{cpu::device::CpuDevice, image::Image, session::Session};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, 2, 2, &[1u8, 2, 3, 4]);
/// let colour = Image::stack(&session, [&image, &(&image * 10)]);
/// assert_eq!(image.to_array()?[[1, 0]], 3);
/// assert_eq!(colour.to_array3()?[[1, 0, 1]], 30); // row, column, channel
/// assert_eq!(colour.to_vec()?, [1, 2, 3, 4, 10, 20, 30, 40]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// All pixels, channels one after the other, each in row-major order.
    ///
    /// # Errors
    /// The error that the image carries; also if the evaluation fails on the device or between ranks, or there is not
    /// enough memory.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let fetched = fetch(self.handle())?;
        let copied = self.session().workers().copied(elements(&fetched));
        copied.map_err(|source| Error::Device { op: "to_vec".into(), device: "the host".into(), source })
    }

    /// The pixels of an image of one channel, of shape `(height, width)`.
    ///
    /// # Errors
    /// If there are several channels, or as [`Image::to_vec`].
    #[track_caller]
    pub fn to_array(&self) -> Result<Array2<T>> {
        self.look()?;
        if self.channels() != 1 {
            let message = format!("the image has {} channels; use to_array3", self.channels());
            return Err(Error::parameter("to_array", message, Location::caller()));
        }
        let array = Array2::from_shape_vec((self.height(), self.width()), self.to_vec()?);
        Ok(array.expect("a fetched image fills its shape"))
    }

    /// The pixels, of shape `(height, width, channels)`.
    ///
    /// # Errors
    /// As [`Image::to_vec`].
    pub fn to_array3(&self) -> Result<Array3<T>> {
        let pixels = fetch(self.handle())?;
        let shape = (self.channels(), self.height(), self.width());
        let planes = ArrayView3::from_shape(shape, elements(&pixels)).expect("a fetched image fills its shape");
        Ok(planes.permuted_axes([1, 2, 0]).as_standard_layout().into_owned())
    }

    /// What `ranks` ranks, each on a host of its own, would exchange to compute this image and gather it on rank 0, as a
    /// program that saves it does, and how long it takes them; nothing is computed. The number of ranks is independent of
    /// the session's, their machines are like the session's.
    ///
    /// ```
    /// # use horus_core::{cpu::device::CpuDevice, image::Image, plan::movement::Link, session::Session};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let smooth = Image::worms(&session, 64, 64).gauss(1.0);
    /// let told = smooth.forecast(4, Link::default())?;
    /// // All ranks have the worms. What three of them filter, 16 rows of f32 each, goes to rank 0.
    /// assert_eq!(told.total.total.bytes, 3 * 16 * 64 * 4);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the image carries, or if `ranks` is zero.
    #[track_caller]
    pub fn forecast(&self, ranks: usize, link: Link) -> Result<Forecast> {
        self.forecast_on(Cluster { ranks, on_each_host: 1, network: Some(link) })
    }

    /// [`Image::forecast`] on several ranks of each host, and with what their machines tell of the network.
    ///
    /// ```
    /// # use horus_core::{cpu::device::CpuDevice, image::Image, plan::forecast::Cluster, session::Session};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let smooth = Image::worms(&session, 64, 64).gauss(1.0);
    /// let told = smooth.forecast_on(Cluster { ranks: 8, on_each_host: 4, network: None })?;
    /// assert_eq!(told.computing.launches, 1);
    /// assert!(told.seconds() > told.total.time); // it computes, too
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Image::forecast`]; also if there are no ranks on a host.
    #[track_caller]
    pub fn forecast_on(&self, cluster: Cluster) -> Result<Forecast> {
        if cluster.ranks == 0 || cluster.on_each_host == 0 {
            return Err(Error::parameter("forecast", "no ranks", Location::caller()));
        }
        self.session().forecast(self.handle(), cluster)
    }

    /// The first channel's pixel in row `y` and column `x`.
    ///
    /// Copies the whole image to the host each time: for many pixels call [`Image::to_vec`] once.
    ///
    /// # Errors
    /// If it lies outside, or as [`Image::to_vec`].
    #[track_caller]
    pub fn pixel(&self, y: usize, x: usize) -> Result<T> {
        self.pixel_at(y, x, 0)
    }

    /// The pixel in row `y` and column `x` of channel `channel`.
    ///
    /// Copies the whole image to the host each time: for many pixels call [`Image::to_vec`] once.
    ///
    /// # Errors
    /// If it lies outside, or as [`Image::to_vec`].
    #[track_caller]
    pub fn pixel_at(&self, y: usize, x: usize, channel: usize) -> Result<T> {
        self.look()?;
        let shape = self.shape();
        if y >= shape.height || x >= shape.width || channel >= shape.channels {
            let message = format!("row {y}, column {x}, channel {channel} is outside {shape}");
            return Err(Error::parameter("pixel", message, Location::caller()));
        }
        let pixels = fetch(self.handle())?;
        Ok(elements(&pixels)[channel * shape.area() + y * shape.width + x])
    }

    /// The error that the image carries, which comes before any other.
    pub(crate) fn look(&self) -> Result<()> {
        if self.handle().failed() { fetch(self.handle()).map(drop) } else { Ok(()) }
    }
}

/// The pixels in a buffer. Masks hold 0 and 1 only.
fn elements<T: Element>(buffer: &HostBuffer) -> &[T] {
    bytemuck::checked::cast_slice(buffer.bytes())
}

/// Evaluates a value and brings it to every rank.
pub(super) fn fetch(handle: &Handle) -> Result<Arc<HostBuffer>> {
    let pixels = handle.session.fetch(handle, Want::Everyone)?;
    Ok(pixels.expect("a value fetched for everyone is everywhere"))
}
