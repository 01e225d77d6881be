//! Guarantees of a device about copies to the host that are ordered and land later.

use horus_core::cpu::device::CpuDevice;
use horus_core::device::{Device, DownloadStart, Staging};
use horus_core::error::DeviceError;
use horus_core::host::buffer::Pool;
use horus_testing::simulated::SimulatedDevice;

#[test]
fn what_lands_is_what_was_there_when_it_was_ordered() {
    let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20);
    let pool = Pool::new(1 << 20);
    let pattern = |seed: usize| -> Vec<u8> { (0..1000).map(|i| (i * 7 + seed * 31) as u8).collect() };
    let mut landings = Vec::new();
    for seed in 0..20 {
        let mut memory = device.allocate(1000).unwrap();
        device.write(&pattern(seed), &mut memory, 0).unwrap();
        landings.push((seed, device.start_download(&memory, 10..990, &pool, DownloadStart::AtOnce).unwrap()));
        device.write(&pattern(seed + 100), &mut memory, 0).unwrap();
        landings.push((seed + 100, device.start_download(&memory, 10..990, &pool, DownloadStart::AtOnce).unwrap()));
    }
    assert_eq!(device.call_counts().get().bytes, 0, "all memory was dropped");
    std::thread::scope(|scope| {
        for (seed, landing) in landings.into_iter().rev() {
            scope.spawn(move || assert_eq!(landing.wait().unwrap().bytes(), &pattern(seed)[10..990], "{seed}"));
        }
    });
}

#[test]
fn what_cannot_be_ordered_is_refused_and_what_nobody_waits_for_counts_no_more() {
    let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20);
    let pool = Pool::bounded(0, 10_000);
    let memory = device.allocate(6000).unwrap();
    assert!(device.start_download(&memory, 1..6001, &pool, DownloadStart::AtOnce).is_err(), "beyond the block");
    let first = device.start_download(&memory, 0..6000, &pool, DownloadStart::AtOnce).unwrap();
    assert!(matches!(
        device.start_download(&memory, 0..6000, &pool, DownloadStart::AtOnce),
        Err(DeviceError::OutOfMemory { .. })
    ));
    drop(first);
    let landed = device.start_download(&memory, 0..6000, &pool, DownloadStart::AtOnce).unwrap().wait().unwrap();
    assert_eq!(landed.len(), 6000);
    drop(landed);
    assert!(pool.try_allocate(9000).is_ok());
}
