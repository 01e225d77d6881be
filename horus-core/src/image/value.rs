//! Values that are not images.

use std::fmt;
use std::sync::Arc;

use super::Image;
use super::read::fetch;
use crate::dtype::{Element, Pixel};
use crate::error::{Error, Result};
use crate::host::buffer::HostBuffer;
use crate::plan::ResultDelivery;
use crate::session::{Handle, Session};

/// A recorded value that is not an image, such as a sum or a histogram. [`Value::get`] computes it.
///
/// A value of one number need not be evaluated first to be an operand of pixel operations (see
/// [`Argument`](super::Argument)), or of `+ - * /` with values and scalars.
///
/// A value does not implement `Display`: `{}` could not return an error of the evaluation, and a
/// rank that prints alone would wait for the others. Print the result of [`Value::get`].
///
/// ```compile_fail,E0277
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// println!("{}", samples::worms(&session, 64, 64).mean());
/// # Ok::<(), horus_core::error::Error>(())
/// ```
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// println!("{}", samples::worms(&session, 64, 64).mean().get()?);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (1, 3), &[2.0f32, 4.0, 10.0]);
/// let range = image.max_value() - image.min_value();
/// assert_eq!(range.get()?, 8.0);
/// assert_eq!((&image / range).to_vec()?, [0.25, 0.5, 1.25]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[must_use = "a value is only recorded: `get` computes it"]
#[derive(Clone)]
pub struct Value<V> {
    handle: Handle,
    read: Arc<dyn Fn(&HostBuffer) -> V + Send + Sync>,
}

impl<V> Value<V> {
    /// A value that `read` extracts from the pixels of an image.
    pub(super) fn of<T: Element>(
        image: &Image<T>,
        read: impl Fn(&HostBuffer) -> V + Send + Sync + 'static,
    ) -> Value<V> {
        Value { handle: image.handle().clone(), read: Arc::new(read) }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Evaluates and returns the value, on every rank. For several values see [`Session::get_all`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 3), &[1u8, 2, 3]);
    /// assert_eq!(image.mean().get()?, 2.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the value carries; also if the evaluation fails on the device or between ranks.
    pub fn get(&self) -> Result<V> {
        Ok((self.read)(&*fetch(&self.handle)?))
    }

    /// Starts the evaluation of the value and returns at once; [`Value::get`] waits.
    /// [`Session::start`] starts all recorded values.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mean = samples::worms(&session, 64, 64).gauss(2.0).mean();
    /// mean.start();
    /// assert!(mean.get()? > 0.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn start(&self) {
        self.handle.session.start_one(&self.handle);
    }

    /// Returns the error that the value carries, if any. Nothing is computed, and no other rank is involved.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let empty = Image::<f32>::zeros(&session, (0, 8));
    /// let message = empty.mean().check().unwrap_err().to_string();
    /// assert!(message.starts_with("zeros: "), "{message}");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of the value or of its operands.
    pub fn check(&self) -> Result<()> {
        self.handle.check()
    }
}

impl<T: Pixel> Value<T> {
    /// The only element of a 1x1 image.
    pub(super) fn single(image: &Image<T>) -> Value<T> {
        Value::of(image, |b| b.as_slice::<T>()[0])
    }

    /// The value as an image of one pixel, which broadcasts in pixel operations.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 4), &[1.0, 1.0, 5.0, 5.0]);
    /// let deviation = image.variance().to_image().sqrt();
    /// let standard = (&image - image.mean()) / deviation;
    /// assert_eq!(standard.to_vec()?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn to_image(&self) -> Image<T> {
        Image::from_handle(self.handle.clone())
    }
}

impl Value<Vec<u64>> {
    /// The counts of a histogram as an image of one row, for further computation on the device.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 5), &[0.0f32, 0.1, 0.5, 0.6, 1.0]);
    /// let share = image.histogram(2, 0.0, 1.0).counts() / 5.0;
    /// assert_eq!(share.to_vec()?, [0.4, 0.6]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn counts(&self) -> Image<f64> {
        Image::from_handle(self.handle.clone())
    }
}

impl<V> fmt::Debug for Value<V> {
    /// Writes the state, recorded or failed; nothing is computed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = if self.handle.failed() { "failed: check() tells why" } else { "recorded: get() computes it" };
        write!(f, "Value({}, {told})", self.handle.dtype)
    }
}

/// Several [`Value`]s, for [`Session::get_all`]: a value, a reference to one, or a tuple, array, slice or `Vec` of such.
pub trait Values {
    /// The type of the result.
    type Output: 'static;

    /// The values to compute.
    #[doc(hidden)]
    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>);

    /// A function that reads the computed [`Values::handles`], in their order, on any thread.
    #[doc(hidden)]
    fn reader(&self) -> ValueReader<Self::Output>;
}

/// Assembles the result of [`Values`] from the computed pixels.
#[doc(hidden)]
pub type ValueReader<R> = Arc<dyn Fn(&mut dyn Iterator<Item = Arc<HostBuffer>>) -> R + Send + Sync>;

impl<V: 'static> Values for Value<V> {
    type Output = V;

    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        to.push(&self.handle);
    }

    fn reader(&self) -> ValueReader<V> {
        let read = Arc::clone(&self.read);
        Arc::new(move |from| read(&from.next().expect("a buffer for each value")))
    }
}

impl<V: Values + ?Sized> Values for &V {
    type Output = V::Output;

    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        (**self).handles(to);
    }

    fn reader(&self) -> ValueReader<V::Output> {
        (**self).reader()
    }
}

impl<V: Values + ?Sized> Values for Box<V> {
    type Output = V::Output;

    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        (**self).handles(to);
    }

    fn reader(&self) -> ValueReader<V::Output> {
        (**self).reader()
    }
}

impl<V: Values> Values for [V] {
    type Output = Vec<V::Output>;

    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.iter().for_each(|v| v.handles(to));
    }

    fn reader(&self) -> ValueReader<Vec<V::Output>> {
        let readers: Vec<_> = self.iter().map(V::reader).collect();
        Arc::new(move |from| readers.iter().map(|read| read(from)).collect())
    }
}

impl<V: Values> Values for Vec<V> {
    type Output = Vec<V::Output>;

    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.as_slice().handles(to);
    }

    fn reader(&self) -> ValueReader<Vec<V::Output>> {
        self.as_slice().reader()
    }
}

impl<V: Values, const N: usize> Values for [V; N] {
    type Output = [V::Output; N];

    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.iter().for_each(|v| v.handles(to));
    }

    fn reader(&self) -> ValueReader<[V::Output; N]> {
        let readers = self.each_ref().map(V::reader);
        Arc::new(move |from| readers.each_ref().map(|read| read(from)))
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: Values),+> Values for ($($name,)+) {
            type Output = ($($name::Output,)+);

            #[allow(non_snake_case)]
            fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
                let ($($name,)+) = self;
                $($name.handles(to);)+
            }

            #[allow(non_snake_case)]
            fn reader(&self) -> ValueReader<Self::Output> {
                let ($($name,)+) = self;
                let ($($name,)+) = ($($name.reader(),)+);
                Arc::new(move |from| ($($name(from),)+))
            }
        }
    };
}
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);

impl Session {
    /// Evaluates several values together and returns them, on every rank. Shared operations are
    /// computed once.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_fn(&session, 3, 3, |y, x| (3 * y + x) as f32);
    /// let (low, high, mean) = session.get_all((image.min_value(), image.max_value(), image.mean()))?;
    /// assert_eq!((low, high, mean), (0.0, 8.0, 4.0));
    /// assert_eq!(session.stats().evaluations, 1);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a value belongs to another session, or as [`Value::get`].
    #[track_caller]
    pub fn get_all<V: Values>(&self, values: V) -> Result<V::Output> {
        let mut handles = Vec::new();
        values.handles(&mut handles);
        if handles.iter().any(|h| !self.same(&h.session)) {
            return Err(Error::ForeignImage { op: "get_all", site: std::panic::Location::caller() });
        }
        let buffers = self.fetch_all(&handles, ResultDelivery::Everyone)?;
        let all = |b: Option<_>| b.expect("a value fetched for everyone is everywhere");
        Ok(values.reader()(&mut buffers.into_iter().map(all)))
    }
}
