//! Places for small results in pinned blocks. There is one for each live result; pinning a block for each would take longer
//! than its launches.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use horus_core::host::buffer::HostMemory;

use super::{Pinned, PinnedBlock, SMALLEST};
use crate::staging::HostBytes;

/// Bytes of a place.
const PLACE: usize = 4 << 10;

/// Most blocks of a device: a guess of how many results a program has at once. They stay pinned.
const MOST_BLOCKS: usize = 16;

/// The places of a device, which grow by one block at a time.
#[derive(Debug, Default)]
pub(crate) struct PinnedPlaces(Mutex<FreePlaces>);

#[derive(Debug, Default)]
struct FreePlaces {
    places: Vec<Place>,
    /// Blocks so far.
    blocks: usize,
}

/// Bytes of a block, which nobody else has.
#[derive(Debug)]
struct Place {
    block: Arc<PinnedBlock<Pinned>>,
    at: usize,
}

impl PinnedPlaces {
    /// A place for `bytes` bytes; `None` if they are too many, if all places are in use, or no memory is pinned for them.
    pub(crate) fn take(self: &Arc<PinnedPlaces>, bytes: usize, source: &HostBytes) -> Option<PinnedPlace> {
        if !(1..=PLACE).contains(&bytes) {
            return None;
        }
        let mut free = self.free();
        if free.places.is_empty() && free.blocks < MOST_BLOCKS {
            let block = Arc::new(source.take(SMALLEST)?);
            free.places.extend((0..SMALLEST).step_by(PLACE).map(|at| Place { block: Arc::clone(&block), at }));
            free.blocks += 1;
        }
        let place = Some(free.places.pop()?);
        Some(PinnedPlace { place, places: Arc::clone(self) })
    }

    fn free(&self) -> MutexGuard<'_, FreePlaces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in use, returned when dropped, which must be after the GPU is done with it.
pub(crate) struct PinnedPlace {
    place: Option<Place>,
    places: Arc<PinnedPlaces>,
}

impl PinnedPlace {
    /// Its address, for the driver.
    pub(crate) fn address(&self) -> *mut c_void {
        let address = |place: &Place| place.block.address().wrapping_byte_add(place.at);
        self.place.as_ref().map_or(std::ptr::null_mut(), address)
    }
}

impl fmt::Debug for PinnedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a place of {PLACE} bytes")
    }
}

impl HostMemory for PinnedPlace {
    fn bytes(&self) -> &[u8] {
        // SAFETY: initialised memory of the block, which the place keeps alive and nobody else has. Callers wait for
        // launches that write there before they read.
        unsafe { std::slice::from_raw_parts(self.address().cast(), PLACE) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address().cast(), PLACE) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for PinnedPlace {
    fn drop(&mut self) {
        self.places.free().places.extend(self.place.take());
    }
}
