//! Colour profiles (ICC) of files: read and validated, but not applied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns a profile if it is for pixels of this many channels: grey or RGB, with or without alpha.
pub(super) fn of(profile: Vec<u8>, channels: usize) -> Option<Arc<[u8]>> {
    let fits = match profile.get(16..20) {
        Some(b"GRAY") => matches!(channels, 1 | 2),
        Some(b"RGB ") => matches!(channels, 3 | 4),
        _ => false,
    };
    fits.then(|| profile.into())
}

/// Warns that a colour profile is not applied, once for each process, because many pictures may have the same profile.
pub(super) fn log_unapplied_profile(bytes: usize) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let level = if TOLD.swap(true, Ordering::Relaxed) { log::Level::Debug } else { log::Level::Info };
    log::log!(level, "a colour profile of {bytes} bytes is not applied; samples are used as stored");
}
