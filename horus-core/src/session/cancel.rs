//! Cancels evaluations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::error::{Cause, Error, Result};
use crate::session::Session;

/// Cancels the evaluations of a session; see [`Session::canceller`]. Cheap to clone, and usable from any thread.
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    cancelled: AtomicBool,
    deadline: Mutex<Option<Instant>>,
}

impl Canceller {
    /// Ends the current evaluation between two of its steps with [`Error::Cancelled`]. Later evaluations end at once,
    /// until [`Canceller::clear`].
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Allows evaluations again.
    pub fn clear(&self) {
        self.0.cancelled.store(false, Ordering::Relaxed);
    }

    /// Returns `true` if evaluations are cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.check().is_err()
    }

    /// Sets a deadline. Evaluations that run at this time, or start later, end with [`Error::Cancelled`]. `None`
    /// removes the deadline.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        *self.0.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    /// # Errors
    /// [`Error::Cancelled`] if evaluations are cancelled or the deadline has passed.
    pub fn check(&self) -> Result<()> {
        if self.0.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled(Cause::Asked));
        }
        let deadline = *self.0.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        match deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::Cancelled(Cause::Deadline)),
            _ => Ok(()),
        }
    }
}

impl Session {
    /// A handle that cancels evaluations from elsewhere: from another thread, an observer or a signal handler.
    ///
    /// A cancelled evaluation ends between two steps. On one rank the session remains usable: images that were given or
    /// computed stay, as after any failure, and can be read once the handle is cleared. On several ranks the evaluation
    /// fails on all of them, because the others would wait, and the session is unusable.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = samples::worms(&session, 32, 32).gauss(1.0);
    /// let canceller = session.canceller();
    /// canceller.cancel(); // from wherever
    /// assert!(matches!(image.mean().get(), Err(Error::Cancelled(_))));
    /// canceller.clear();
    /// assert!(image.mean().get()? > 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn canceller(&self) -> Canceller {
        self.0.settings.canceller.clone()
    }

    /// Sets a deadline: evaluations that run at this time, or start later, end as with [`Session::canceller`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # use std::time::{Duration, Instant};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// session.set_deadline(Some(Instant::now() + Duration::from_secs(60)));
    /// assert!(samples::worms(&session, 32, 32).max_value().get()? > 0.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.0.settings.canceller.set_deadline(deadline);
    }
}
