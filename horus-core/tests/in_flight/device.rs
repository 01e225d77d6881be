//! A simulated device that records the order of its calls, whose results land late, in memory
//! allocated for them.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use horus_core::cpu::device::CpuDevice;
use horus_core::device::{
    About, Device, Download, Landing, Launch, Memory, MemoryKind, Room, Sending, Staging, Ticket,
};
use horus_core::error::DeviceError;
use horus_core::host::Piece;
use horus_core::host::buffer::{HostBuffer, HostMemory, Pool};
use horus_core::host::workers::Workers;
use horus_testing::simulated::Simulated;

/// Calls of a device, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The first band of an image is uploaded.
    Upload,
    Launch,
    /// The copy of the i-th result to the host is ordered.
    Order(usize),
    /// That copy has arrived.
    Landed(usize),
    /// Memory was allocated for a result.
    Room,
}

/// The calls, and the conditions for landing.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    made: Mutex<Vec<Call>>,
    changed: Condvar,
    /// Results land once this many more images have been uploaded than results have landed, or none
    /// are left.
    ahead: AtomicUsize,
    images: AtomicUsize,
    orders: AtomicUsize,
    /// Lent blocks still alive.
    lent: AtomicUsize,
}

/// Longer than any device takes.
const NEVER: Duration = Duration::from_secs(20);

impl Calls {
    pub(crate) fn made(&self) -> Vec<Call> {
        self.made.lock().unwrap().clone()
    }

    pub(crate) fn lent(&self) -> usize {
        self.lent.load(Ordering::Relaxed)
    }

    fn note(&self, call: Call) {
        self.made.lock().unwrap().push(call);
        self.changed.notify_all();
    }

    /// Waits until the image after the one of result `i` has been uploaded and something computed
    /// of it.
    fn next_is_under_way(&self, i: usize) -> Result<(), DeviceError> {
        let (ahead, images) = (self.ahead.load(Ordering::Relaxed), self.images.load(Ordering::Relaxed));
        let wanted = (i + 1 + ahead).min(images);
        let lacks = |made: &mut Vec<Call>| {
            let uploads: Vec<usize> = (0..made.len()).filter(|k| made[*k] == Call::Upload).collect();
            ahead > 0 && uploads.get(wanted - 1).is_none_or(|from| !made[*from..].contains(&Call::Launch))
        };
        let made = self.made.lock().unwrap();
        let (mut made, over) = self.changed.wait_timeout_while(made, NEVER, lacks).unwrap();
        made.push(Call::Landed(i));
        if over.timed_out() { Err(DeviceError::Driver(format!("nothing goes on before result {i}"))) } else { Ok(()) }
    }
}

/// Memory that the device lends.
#[derive(Debug)]
pub(crate) struct Lent(Vec<u64>, Arc<Calls>);

impl HostMemory for Lent {
    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[self.0.as_ptr().align_offset(64) * 8..]
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        let at = self.0.as_ptr().align_offset(64) * 8;
        &mut bytemuck::cast_slice_mut(&mut self.0)[at..]
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.1.lent.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The device. It lends memory of up to `lends` bytes.
pub(crate) struct Watched {
    inner: Simulated<CpuDevice>,
    lends: usize,
    calls: Arc<Calls>,
}

impl Watched {
    /// A device whose results land once `ahead` more images are in progress, of `images` in all.
    pub(crate) fn new(lends: usize, ahead: usize, images: usize) -> (Watched, Arc<Calls>) {
        let calls = Arc::new(Calls { ahead: ahead.into(), images: images.into(), ..Calls::default() });
        let inner = Simulated::new(CpuDevice::new(Some(2)).unwrap(), 1 << 26);
        (Watched { inner, lends, calls: Arc::clone(&calls) }, calls)
    }

    fn late(&self, bytes: Vec<u8>, host: Option<HostBuffer>, pool: &Arc<Pool>) -> Box<dyn Landing> {
        let number = self.calls.orders.fetch_add(1, Ordering::Relaxed);
        self.calls.note(Call::Order(number));
        let (calls, pool) = (Arc::clone(&self.calls), Arc::clone(pool));
        Box::new(Late { number, bytes, host: Mutex::new(host), pool, calls })
    }
}

/// A result that arrives when the next image is in progress.
struct Late {
    number: usize,
    bytes: Vec<u8>,
    host: Mutex<Option<HostBuffer>>,
    pool: Arc<Pool>,
    calls: Arc<Calls>,
}

impl Landing for Late {
    fn make_room(&self, room: &mut Room<'_>) -> Result<(), DeviceError> {
        let mut host = self.host.lock().unwrap();
        if host.is_none() {
            *host = Some(room(self.bytes.len())?);
            self.calls.note(Call::Room);
        }
        Ok(())
    }

    fn land(self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        let mut host = match self.host.lock().unwrap().take() {
            Some(host) => host,
            None => self.pool.try_allocate(self.bytes.len())?,
        };
        self.calls.next_is_under_way(self.number)?;
        host.bytes_mut().copy_from_slice(&self.bytes);
        Ok(host)
    }
}

/// A result in bands.
struct Bands<'a>(Box<dyn Download + 'a>, &'a Watched, Arc<Pool>, Sending);

impl Download for Bands<'_> {
    fn add(&mut self, source: &Memory, bytes: &[Range<usize>]) -> Result<(), DeviceError> {
        self.0.add(source, bytes)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Landing>, DeviceError> {
        let there = self.0.finish()?.land()?;
        let bytes = there.bytes().to_vec();
        let host = (self.3 == Sending::AtOnce).then_some(there);
        Ok(self.1.late(bytes, host, &self.2))
    }
}

impl Device for Watched {
    fn about(&self) -> About {
        About::named("a device that is watched")
    }
    fn memory(&self) -> MemoryKind<'_> {
        self.inner.memory()
    }
    fn workers(&self) -> &Workers {
        self.inner.workers()
    }
    fn staging(&self) -> &dyn Staging {
        self
    }
    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.inner.allocate(bytes)
    }
    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        self.inner.write(source, target, at)
    }
    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(source, at, target)
    }
    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[Piece]) -> Result<(), DeviceError> {
        self.inner.copy(source, target, pieces)
    }
    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        self.calls.note(Call::Launch);
        self.inner.launch(launch)
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
}

impl Staging for Watched {
    fn lent(&self, bytes: usize) -> Option<Box<dyn HostMemory>> {
        (bytes <= self.lends).then(|| {
            self.calls.lent.fetch_add(1, Ordering::Relaxed);
            Box::new(Lent(vec![u64::MAX; bytes.div_ceil(8) + 8], Arc::clone(&self.calls))) as Box<dyn HostMemory>
        })
    }
    fn begin_upload(&self, source: &HostBuffer, target: &mut Memory, pieces: &[Piece]) -> Result<Ticket, DeviceError> {
        if pieces.first().is_some_and(|first| first.to == 0) {
            self.calls.note(Call::Upload);
        }
        self.inner.staging().begin_upload(source, target, pieces)
    }
    fn arrive(&self, ticket: Ticket, target: &mut Memory) -> Result<(), DeviceError> {
        self.inner.staging().arrive(ticket, target)
    }
    fn begin_download<'a>(
        &'a self,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: Sending,
    ) -> Result<Box<dyn Download + 'a>, DeviceError> {
        let begun = self.inner.staging().begin_download(range, pool, when)?;
        Ok(Box::new(Bands(begun, self, Arc::clone(pool), when)))
    }
    fn order_read(
        &self,
        source: &Memory,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: Sending,
    ) -> Result<Box<dyn Landing>, DeviceError> {
        let host = (when == Sending::AtOnce).then(|| pool.try_allocate(range.len())).transpose()?;
        let mut there = vec![0; range.len()];
        self.read(source, range.start, &mut there)?;
        Ok(self.late(there, host, pool))
    }
}
