//! Series whose results are numbers.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::deal::Numbered;
use super::engine::{Finish, Make, Pipeline};
use super::{Input, Item, Series};
use crate::error::{Error, Result};
use crate::host::buffer::HostBuffer;
use crate::image::{Reader, Values};
use crate::io::AnyImage;
use crate::plan::Want;
use crate::session::{Handle, Session};

/// Results of an operation for [`Series::values`]: a [`Value`](crate::image::Value) or several
/// ([`Values`]), or an error.
pub trait Computable {
    /// Type of the yielded items.
    type Output: Send + 'static;
    /// Its component values.
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
struct Compute<F>(F);

impl<F, C> Make for Compute<F>
where
    F: Fn(&AnyImage) -> C,
    C: Computable,
{
    type Output = C::Output;
    type Ready = Reader<C::Output>;
    const WANT: Want = Want::Everyone;
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
        // An error of recording belongs to this picture.
        handles.iter().try_for_each(|h| h.check())?;
        Ok((handles.into_iter().cloned().collect(), values.reader()))
    }

    fn finish(&self, _: &Session, read: Self::Ready, _: &Path) -> Result<Finish<C::Output>> {
        Ok(Box::new(move |fetched: Vec<Arc<HostBuffer>>| Ok(read(&mut fetched.into_iter()))))
    }

    fn tell(&self, _: &Session, own: Result<C::Output>, _: &Path) -> Result<C::Output> {
        own
    }
}

/// The values of the pictures of a series, in order; see [`Series::values`].
pub struct Computed<I, F, C: Computable>(Pipeline<Numbered<I>, Compute<F>, C::Output, Reader<C::Output>>);

impl<I, F, C> Iterator for Computed<I, F, C>
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
    /// Yields the values of each picture, on every rank: those of one picture are computed
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
    pub fn values<C>(self) -> Computed<I, F, C>
    where
        F: Fn(&AnyImage) -> C,
        C: Computable,
    {
        let Series { session, inputs, operation, options, bounds } = self;
        Computed(Pipeline::new(session, Numbered::all(inputs), Compute(operation), options, bounds))
    }
}
