//! What a session has of memory.

use super::engine::Engine;
use super::plans::Plans;
use super::{Session, later};
use crate::error::{Error, Result};

/// Bytes of one kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInUse {
    /// What images, results and messages take now.
    pub current: usize,
    /// The most that they took at a time.
    pub peak: usize,
    /// What is kept beside that, for images that come: [`Session::trim`] gives it back.
    pub kept: usize,
}

/// What a session has of memory; see [`Session::memory`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The host's: of a session on the CPU, that of all sessions which share its device. What the program gave or took is the program's.
    pub host: MemoryInUse,
    /// That of each device with memory of its own, tables of filters included; what its driver keeps for reuse is not told.
    pub devices: Vec<MemoryInUse>,
}

impl Session {
    /// What images take of memory now, and the most that they took at a time.
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
        let devices = self.engine().into_iter().flat_map(Engine::devices).filter_map(|device| device.used());
        MemoryUse { host: MemoryInUse { current, peak, kept: pool.kept() }, devices: devices.map(device).collect() }
    }

    /// Gives memory that is kept for images to come back to the system, and forgets kept plans and pixels that can be read again. Images
    /// stay. A program that goes on takes memory anew, which costs page faults.
    ///
    /// # Errors
    /// [`Error::Reentry`] during an evaluation on this thread; what a device reports of earlier work.
    pub fn trim(&self) -> Result<()> {
        let mut state = self.lock("giving memory back")?;
        state.plans = Plans::default();
        later::let_go(&mut state);
        drop(state);
        self.0.pool.trim();
        let mut devices = self.engine().into_iter().flat_map(Engine::devices);
        let trimmed = devices.try_for_each(|device| device.trim());
        trimmed.map_err(|source| Error::Device { op: "giving memory back".into(), device: self.device_name(), source })
    }
}
