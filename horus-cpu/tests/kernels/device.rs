//! Transfers and properties of the device.

use horus_cpu::device::CpuDevice;
use horus_cpu::simd::Isa;
use horus_host::StridedCopy;
use horus_host::device::Device;

#[test]
fn transfers_move_the_bytes_asked_for_and_refuse_others() {
    let d = CpuDevice::new(Some(1)).unwrap();
    let (mut a, mut b) = (d.allocate(8).unwrap(), d.allocate(8).unwrap());
    d.write(&[1, 2, 3, 4, 5, 6, 7, 8], &mut a, 0).unwrap();
    d.write(&[0; 8], &mut b, 0).unwrap();
    d.copy(&a, &mut b, &[StridedCopy::run(0, 6, 2), StridedCopy::run(7, 0, 1)]).unwrap();
    let mut out = [0; 8];
    d.read(&b, 0, &mut out).unwrap();
    assert_eq!(out, [8, 0, 0, 0, 0, 0, 1, 2]);
    assert!(d.write(&[0; 4], &mut a, 5).is_err());
    assert!(d.copy(&a, &mut b, &[StridedCopy::run(usize::MAX, 0, 2)]).is_err());
}

#[test]
fn a_device_tells_its_threads_and_needs_one() {
    let refused = |threads: usize| CpuDevice::new(Some(threads)).unwrap_err().to_string();
    assert_eq!(refused(0), "requested 0 threads; a device needs at least 1");
    assert_eq!(refused(4097), "requested 4097 threads; the limit is 4096");
    assert!(refused(usize::MAX).contains("the limit is 4096"));
    let least = Isa::available()[0];
    let name = CpuDevice::new(Some(2)).unwrap().with_isa(least).names().name;
    let expected = if cfg!(target_arch = "x86_64") { "CPU (2 threads, AVX2)" } else { "CPU (2 threads, portable)" };
    assert_eq!(name, expected);
}
