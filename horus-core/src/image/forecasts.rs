//! Forecasts of an image's computation on other ranks, and of its memory.

use std::panic::Location;

use super::Image;
use crate::dtype::Element;
use crate::error::{Call, Error, Result};
use crate::plan::forecast::{Cluster, Forecast};
use crate::session::{MemoryForecast, Session};

/// Forecasts.
impl Session {
    /// Forecasts the messages and the computation, with their times, for a cluster that computes an
    /// image and gathers it on rank 0, as saving does. Nothing is computed. The number of ranks is
    /// independent of the session; by default their machines are like the session's.
    /// `(ranks, link)` means one rank per host. A [`Cluster`] may have several ranks per host, the
    /// network of the machines' profiles, and other machines.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let smooth = samples::worms(&session, 64, 64).gauss(1.0);
    /// let told = session.forecast(&smooth, (4, Link::default()))?;
    /// // All ranks have the worms. What three of them filter, 16 rows of f32 each, goes to rank 0.
    /// assert_eq!(told.total.total.bytes, 3 * 16 * 64 * 4);
    /// let told = session.forecast(&smooth, Cluster { ranks: 8, on_each_host: 4, network: None, machine: None })?;
    /// assert_eq!(told.computing.launches, 1);
    /// assert!(told.seconds() > told.total.time); // it computes, too
    /// // 512 GPUs, 8 on each host, which are not here.
    /// let (machine, on_each_host) = horus::machine::Machine::named("h200x8-ib").map_err(horus::error::Error::Config)?;
    /// let told = session.forecast(&smooth, Cluster { ranks: 512, on_each_host, network: None, machine: Some(machine) })?;
    /// assert!(told.efficiency().is_some_and(|e| e < 0.5)); // so many gain nothing on a small image
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the image carries; also if there are no ranks, no ranks on a host, or the
    /// image belongs to another session.
    #[track_caller]
    pub fn forecast<T: Element>(&self, image: &Image<T>, cluster: impl Into<Cluster>) -> Result<Forecast> {
        let (cluster, call) = (cluster.into(), Call::of("forecast"));
        if cluster.ranks == 0 || cluster.on_each_host == 0 {
            return Err(Error::parameter(call, "no ranks"));
        }
        if !self.same(image.session()) {
            return Err(Error::ForeignImage { op: call.op, site: call.site });
        }
        self.forecast_of(image.handle(), cluster)
    }

    /// Forecasts the memory and file reads of computing an image, and its regions if it does not
    /// fit (`HORUS_HOST_MEMORY`, `HORUS_GPU_MEMORY`); nothing is computed. Collective.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let device = || CpuDevice::new(Some(1)).map(Box::new);
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("large.npy");
    /// # Image::from_fn(&Session::on(device()?).build()?, 900, 1000, |y, x| (y * x) as u8).save(&file)?;
    /// let session = Session::on(device()?).host_memory(2_000_000).build()?;
    /// let on_demand = OpenOptions { on_demand: Some(true), ..OpenOptions::default() };
    /// let smooth = AnyImage::open_with(&session, &file, &on_demand)?.to_unit().gauss(2.0);
    /// let told = session.forecast_memory(&smooth)?;
    /// assert!(told.whole > 2_000_000 && told.division.is_some_and(|regions| regions.count() > 10));
    /// assert_eq!(session.forecast_memory(&smooth.crop(100, 100, 50, 60))?.division, None);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the image carries; also if a device cannot be chosen, or the image belongs to another session.
    #[track_caller]
    pub fn forecast_memory<T: Element>(&self, image: &Image<T>) -> Result<MemoryForecast> {
        if !self.same(image.session()) {
            return Err(Error::ForeignImage { op: "forecast_memory", site: Location::caller() });
        }
        self.memory_of(image.handle())
    }
}
