//! Memory use of a session.

use crate::error::{Call, Error, Result};
use crate::host::buffer::Reserved;
use crate::session::Session;
use crate::session::cache::PlanCache;
use crate::session::devices::Engine;

/// Bytes of one kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInUse {
    /// Bytes of images, results and messages now.
    pub current: usize,
    /// Peak of `current`.
    pub peak: usize,
    /// Bytes cached for later images; [`Session::trim`] releases them.
    pub kept: usize,
}

/// Memory use of a session; see [`Session::memory`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Host memory. A session on the CPU counts the images of all sessions that share its device. Memory of the program
    /// does not count.
    pub host: MemoryInUse,
    /// Memory of each device with its own memory. It includes tables of filters, and excludes memory that the driver
    /// caches.
    pub devices: Vec<MemoryInUse>,
}

impl Session {
    /// Memory that images use now, and its peak.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let smooth = Image::<f32>::constant(&session, (100, 100), 1.0).gauss(1.0);
    /// assert_eq!(session.memory().host.current, 0); // nothing has been computed
    /// smooth.to_vec()?;
    /// assert!(session.memory().host.current >= 40_000);
    /// drop(smooth);
    /// let left = session.memory().host;
    /// assert!(left.current == 0 && left.peak >= 40_000 && left.kept >= 40_000);
    /// session.trim()?;
    /// assert_eq!(session.memory().host.kept, 0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn memory(&self) -> MemoryUse {
        let pool = &self.0.pool;
        let (current, peak) = pool.in_use();
        let device = |(current, peak)| MemoryInUse { current, peak, kept: 0 };
        let devices = self.engine().into_iter().flat_map(Engine::devices).filter_map(|device| device.usage().memory);
        MemoryUse {
            host: MemoryInUse { current, peak, kept: pool.cached_bytes() },
            devices: devices.map(device).collect(),
        }
    }

    /// Reserves memory that the program gets from a call, until it has it. Images that can be read again and cached
    /// memory are released if necessary.
    pub(crate) fn reserve_for_program(&self, bytes: usize, call: Call) -> Result<Reserved> {
        let pool = &self.0.pool;
        if pool.bounds().1.saturating_add(pool.cached_bytes()).saturating_add(bytes) > pool.most() {
            pool.trim();
        }
        if let Ok(counted) = pool.reserve(bytes) {
            return Ok(counted);
        }
        self.lock_to_give(call.op)?.images.release(|_| false);
        pool.reserve(bytes).or_else(|source| self.refused(self.at_host(call, source)))
    }

    /// Returns cached memory to the system, and drops cached plans and pixels that can be read again. Images stay. A
    /// program that continues allocates again, which costs page faults.
    ///
    /// # Errors
    /// [`Error::Reentry`] during an evaluation on this thread; errors of a device in earlier work.
    pub fn trim(&self) -> Result<()> {
        let mut state = self.lock("giving memory back")?;
        state.plans = PlanCache::default();
        state.images.release(|_| false);
        drop(state);
        self.0.pool.trim();
        let mut devices = self.engine().into_iter().flat_map(Engine::devices);
        let trimmed = devices.try_for_each(|device| device.trim());
        trimmed.map_err(|source| Error::Device { op: "giving memory back".into(), device: self.device_name(), source })
    }
}
