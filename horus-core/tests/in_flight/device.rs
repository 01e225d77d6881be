//! A simulated device that records the order of its calls, whose results land late, in memory
//! allocated for them.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use horus_core::cpu::device::CpuDevice;
use horus_core::device::{
    Device, DeviceNames, Download, DownloadStart, HostAllocator, Launch, Memory, MemoryKind, PendingDownload, Staging,
    Ticket,
};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::buffer::{HostBuffer, HostMemory, Pool};
use horus_core::host::workers::Workers;
use horus_testing::simulated::SimulatedDevice;

/// Calls of a device, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceCall {
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
pub(crate) struct DeviceCallLog {
    made: Mutex<Vec<DeviceCall>>,
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

impl DeviceCallLog {
    pub(crate) fn made(&self) -> Vec<DeviceCall> {
        self.made.lock().unwrap().clone()
    }

    pub(crate) fn lent(&self) -> usize {
        self.lent.load(Ordering::Relaxed)
    }

    fn note(&self, call: DeviceCall) {
        self.made.lock().unwrap().push(call);
        self.changed.notify_all();
    }

    /// Waits until the image after the one of result `i` has been uploaded and something computed
    /// of it.
    fn next_is_under_way(&self, i: usize) -> Result<(), DeviceError> {
        let (ahead, images) = (self.ahead.load(Ordering::Relaxed), self.images.load(Ordering::Relaxed));
        let wanted = (i + 1 + ahead).min(images);
        let lacks = |made: &mut Vec<DeviceCall>| {
            let uploads: Vec<usize> = (0..made.len()).filter(|k| made[*k] == DeviceCall::Upload).collect();
            ahead > 0 && uploads.get(wanted - 1).is_none_or(|from| !made[*from..].contains(&DeviceCall::Launch))
        };
        let made = self.made.lock().unwrap();
        let (mut made, over) = self.changed.wait_timeout_while(made, NEVER, lacks).unwrap();
        made.push(DeviceCall::Landed(i));
        if over.timed_out() { Err(DeviceError::Driver(format!("nothing goes on before result {i}"))) } else { Ok(()) }
    }
}

/// Memory that the device lends.
#[derive(Debug)]
pub(crate) struct DeviceHostBlock(Vec<u64>, Arc<DeviceCallLog>);

impl HostMemory for DeviceHostBlock {
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

impl Drop for DeviceHostBlock {
    fn drop(&mut self) {
        self.1.lent.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The device. It lends memory of up to `lends` bytes.
pub(crate) struct CallRecordingDevice {
    inner: SimulatedDevice<CpuDevice>,
    lends: usize,
    calls: Arc<DeviceCallLog>,
}

impl CallRecordingDevice {
    /// A device whose results land once `ahead` more images are in progress, of `images` in all.
    pub(crate) fn new(lends: usize, ahead: usize, images: usize) -> (CallRecordingDevice, Arc<DeviceCallLog>) {
        let calls = Arc::new(DeviceCallLog { ahead: ahead.into(), images: images.into(), ..DeviceCallLog::default() });
        let inner = SimulatedDevice::new(CpuDevice::new(Some(2)).unwrap(), 1 << 26);
        (CallRecordingDevice { inner, lends, calls: Arc::clone(&calls) }, calls)
    }

    fn late(&self, bytes: Vec<u8>, host: Option<HostBuffer>, pool: &Arc<Pool>) -> Box<dyn PendingDownload> {
        let number = self.calls.orders.fetch_add(1, Ordering::Relaxed);
        self.calls.note(DeviceCall::Order(number));
        let (calls, pool) = (Arc::clone(&self.calls), Arc::clone(pool));
        Box::new(LateResult { number, bytes, host: Mutex::new(host), pool, calls })
    }
}

/// A result that arrives when the next image is in progress.
struct LateResult {
    number: usize,
    bytes: Vec<u8>,
    host: Mutex<Option<HostBuffer>>,
    pool: Arc<Pool>,
    calls: Arc<DeviceCallLog>,
}

impl PendingDownload for LateResult {
    fn allocate_target(&self, room: &mut HostAllocator<'_>) -> Result<(), DeviceError> {
        let mut host = self.host.lock().unwrap();
        if host.is_none() {
            *host = Some(room(self.bytes.len())?);
            self.calls.note(DeviceCall::Room);
        }
        Ok(())
    }

    fn wait(self: Box<Self>) -> Result<HostBuffer, DeviceError> {
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
struct BandedResult<'a>(Box<dyn Download + 'a>, &'a CallRecordingDevice, Arc<Pool>, DownloadStart);

impl Download for BandedResult<'_> {
    fn add(&mut self, source: &Memory, bytes: &[Range<usize>]) -> Result<(), DeviceError> {
        self.0.add(source, bytes)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn PendingDownload>, DeviceError> {
        let there = self.0.finish()?.wait()?;
        let bytes = there.bytes().to_vec();
        let host = (self.3 == DownloadStart::AtOnce).then_some(there);
        Ok(self.1.late(bytes, host, &self.2))
    }
}

impl Device for CallRecordingDevice {
    fn names(&self) -> DeviceNames {
        DeviceNames::named("a device that is watched")
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
    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        self.inner.copy(source, target, pieces)
    }
    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        self.calls.note(DeviceCall::Launch);
        self.inner.launch(launch)
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
}

impl Staging for CallRecordingDevice {
    fn page_locked_for_transfer(&self, bytes: usize) -> Option<Box<dyn HostMemory>> {
        (bytes <= self.lends).then(|| {
            self.calls.lent.fetch_add(1, Ordering::Relaxed);
            Box::new(DeviceHostBlock(vec![u64::MAX; bytes.div_ceil(8) + 8], Arc::clone(&self.calls)))
                as Box<dyn HostMemory>
        })
    }
    fn begin_upload(
        &self,
        source: &HostBuffer,
        target: &mut Memory,
        pieces: &[StridedCopy],
    ) -> Result<Ticket, DeviceError> {
        if pieces.first().is_some_and(|first| first.to == 0) {
            self.calls.note(DeviceCall::Upload);
        }
        self.inner.staging().begin_upload(source, target, pieces)
    }
    fn wait_for_upload(&self, ticket: Ticket, target: &mut Memory) -> Result<(), DeviceError> {
        self.inner.staging().wait_for_upload(ticket, target)
    }
    fn begin_download<'a>(
        &'a self,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: DownloadStart,
    ) -> Result<Box<dyn Download + 'a>, DeviceError> {
        let begun = self.inner.staging().begin_download(range, pool, when)?;
        Ok(Box::new(BandedResult(begun, self, Arc::clone(pool), when)))
    }
    fn start_download(
        &self,
        source: &Memory,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: DownloadStart,
    ) -> Result<Box<dyn PendingDownload>, DeviceError> {
        let host = (when == DownloadStart::AtOnce).then(|| pool.try_allocate(range.len())).transpose()?;
        let mut there = vec![0; range.len()];
        self.read(source, range.start, &mut there)?;
        Ok(self.late(there, host, pool))
    }
}
