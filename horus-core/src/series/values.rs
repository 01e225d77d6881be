//! Series whose results are numbers.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::distribution::NumberedInputs;
use super::engine::{Finish, PictureOperation, Pipeline};
use super::{Input, Item, Series};
use crate::error::{Error, Result};
use crate::host::buffer::HostBuffer;
use crate::image::{ValueReader, Values};
use crate::io::AnyImage;
use crate::plan::ResultDelivery;
use crate::session::{Handle, Session};

/// A result of an operation for [`Series::values`]: a [`Value`](crate::image::Value), several
/// ([`Values`]), or an error.
pub trait Computable {
    /// Type of the yielded items.
    type Output: Send + 'static;
    /// The values that the result consists of.
    type Values: Values<Output = Self::Output>;

    /// The values.
    ///
    /// # Errors
    /// The error of the operation.
    fn values(&self) -> Result<&Self::Values>;
}

impl<V> Computable for V
where
    V: Values,
    V::Output: Send,
{
    type Output = V::Output;
    type Values = V;

    fn values(&self) -> Result<&V> {
        Ok(self)
    }
}

impl<C: Computable> Computable for Result<C> {
    type Output = C::Output;
    type Values = C::Values;

    fn values(&self) -> Result<&C::Values> {
        self.as_ref().map_err(Clone::clone)?.values()
    }
}

/// Copies values to every rank.
struct ValuesOperation<F>(F);

impl<F, C> PictureOperation for ValuesOperation<F>
where
    F: Fn(&AnyImage) -> C,
    C: Computable,
{
    type Output = C::Output;
    type Ready = ValueReader<C::Output>;
    const WANT: ResultDelivery = ResultDelivery::Everyone;
    const HELD: bool = true;

    fn kind(&self, _: &Path) -> OsString {
        OsString::new()
    }

    #[track_caller]
    fn record(&mut self, picture: &AnyImage, _: &Path) -> Result<(Vec<Handle>, Self::Ready)> {
        let made = (self.0)(picture);
        let values = made.values()?;
        let mut handles: Vec<&Handle> = Vec::new();
        values.handles(&mut handles);
        if handles.iter().any(|h| !picture.handle().session.same(&h.session)) {
            return Err(Error::ForeignImage { op: "values", site: std::panic::Location::caller() });
        }
        // An error during recording belongs to this picture.
        handles.iter().try_for_each(|h| h.check())?;
        Ok((handles.into_iter().cloned().collect(), values.reader()))
    }

    fn finish(&self, _: &Session, read: Self::Ready, _: &Path) -> Result<Finish<C::Output>> {
        Ok(Box::new(move |fetched: Vec<Arc<HostBuffer>>| Ok(read(&mut fetched.into_iter()))))
    }

    fn share_outcome(&self, _: &Session, own: Result<C::Output>, _: &Path) -> Result<C::Output> {
        own
    }
}

/// The values of the pictures of a series, in order; see [`Series::values`].
pub struct SeriesValues<I, F, C: Computable>(
    Pipeline<NumberedInputs<I>, ValuesOperation<F>, C::Output, ValueReader<C::Output>>,
);

impl<I, F, C> Iterator for SeriesValues<I, F, C>
where
    I: Iterator,
    I::Item: Into<Input>,
    F: Fn(&AnyImage) -> C,
    C: Computable,
{
    type Item = Item<C::Output>;

    fn next(&mut self) -> Option<Item<C::Output>> {
        self.0.next()
    }
}

impl<I, F> Series<I, F>
where
    I: Iterator,
    I::Item: Into<Input>,
{
    /// Yields the values of each picture, on every rank. The values of a picture are computed
    /// together, while the next pictures are read.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # fn main() -> Result<()> {
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let file = |name: &str| concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/").to_owned() + name;
    /// let paths = [file("small.png"), file("vessels.png")];
    /// let range = session.series(paths, |picture| {
    ///     let grey = picture.luminance();
    ///     (grey.min_value(), grey.max_value())
    /// });
    /// for item in range.values() {
    ///     let (low, high) = item.result?;
    ///     assert!(low < high && high <= 1.0);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn values<C>(self) -> SeriesValues<I, F, C>
    where
        F: Fn(&AnyImage) -> C,
        C: Computable,
    {
        let Series { session, inputs, operation, options, bounds } = self;
        SeriesValues(Pipeline::new(session, NumberedInputs::all(inputs), ValuesOperation(operation), options, bounds))
    }
}
