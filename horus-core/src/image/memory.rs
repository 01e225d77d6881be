//! Memory forecasts of images.

use super::Image;
use crate::dtype::Element;
use crate::error::Result;
use crate::session::MemoryForecast;

impl<T: Element> Image<T> {
    /// Forecasts the memory and file reads of computing the image, and its regions if it does not
    /// fit (`HORUS_HOST_MEMORY`, `HORUS_GPU_MEMORY`); nothing is computed. Collective.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let device = || CpuDevice::new(Some(1)).map(Box::new);
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("large.npy");
    /// # Image::from_fn(&Session::on(device()?).build()?, 900, 1000, |y, x| (y * x) as u8).save(&file)?;
    /// let session = Session::on(device()?).host_memory(2_000_000).build()?;
    /// let later = OpenOptions { later: Some(true), ..OpenOptions::default() };
    /// let smooth = AnyImage::open_with(&session, &file, &later)?.to_unit().gauss(2.0);
    /// let told = smooth.forecast_memory()?;
    /// assert!(told.whole > 2_000_000 && told.division.is_some_and(|regions| regions.count() > 10));
    /// assert_eq!(smooth.crop(100, 100, 50, 60).forecast_memory()?.division, None);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the image carries; also if a device cannot be chosen.
    pub fn forecast_memory(&self) -> Result<MemoryForecast> {
        self.session().forecast_memory(self.handle())
    }
}
