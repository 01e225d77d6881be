//! Copies beside kernels: regardless of work in flight or enqueued later, a copy brings the bytes
//! that were there when it was ordered.

use std::sync::{Arc, mpsc};

use horus_core::device::{Device, DownloadStart, Geometry, Launch, LaunchInput, Memory, PendingDownload, Staging};
use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::buffer::{HostBuffer, Pool};
use horus_core::shape::{Border, Shape, Window};
use horus_cuda::CudaDevice;
use horus_cuda::workloads::correlate;

const K: usize = 1 << 10;
const M: usize = 1 << 20;

fn gpu() -> CudaDevice {
    CudaDevice::open(0, None).unwrap_or_else(|e| panic!("this test needs a GPU: {e}"))
}

/// Bytes that differ by seed and position.
fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    let word = |i: usize| ((i + seed * 0x9e37) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..bytes.div_ceil(8)).flat_map(word).take(bytes).collect()
}

fn uploaded(device: &CudaDevice, bytes: &[u8]) -> Memory {
    let mut memory = device.allocate(bytes.len()).unwrap();
    device.write(bytes, &mut memory, 0).unwrap();
    memory
}

/// Uploads a buffer to byte `at` of a block, beside kernels.
pub(crate) fn give(
    device: &CudaDevice,
    source: &HostBuffer,
    target: &mut Memory,
    at: usize,
) -> Result<(), DeviceError> {
    let ticket = device.begin_upload(source, target, &[StridedCopy::run(0, at, source.len())])?;
    device.wait_for_upload(ticket, target)
}

/// Keeps the GPU busy for some milliseconds, so that all following work is under way together.
pub(crate) struct Delay {
    input: Memory,
    output: Memory,
    geometry: Geometry,
}

impl Delay {
    pub(crate) fn new(device: &CudaDevice) -> Delay {
        let geometry = Geometry { shape: Shape::new(4096, 4096, 1), dtype: DType::F32, window: Window::whole(4096) };
        let mut delay = Delay {
            input: uploaded(device, &vec![0; geometry.bytes()]),
            output: device.allocate(geometry.bytes()).unwrap(),
            geometry,
        };
        delay.run(device); // compiles
        device.synchronize().unwrap();
        delay
    }

    pub(crate) fn run(&mut self, device: &CudaDevice) {
        let kernel = correlate(43, 43, DType::F32, Border::Reflect101);
        for _ in 0..4 {
            let inputs = [LaunchInput { memory: &self.input, geometry: self.geometry }];
            let (geometry, rows) = (self.geometry, self.geometry.window);
            device
                .launch(Launch {
                    kernel: &kernel,
                    inputs: &inputs,
                    output: &mut self.output,
                    additional_outputs: &mut [],
                    geometry,
                    rows,
                })
                .unwrap();
        }
    }
}

/// Sizes around thresholds: small ones, chunks, classes, and those that are chunked at their first
/// request.
fn sizes() -> Vec<usize> {
    let around = |n: usize| [n - 1, n, n + 1];
    let mut sizes = vec![0, 1, 7, 1000];
    sizes.extend([64 * K, M, 4 * M, 8 * M, 16 * M, 32 * M].into_iter().flat_map(around));
    sizes.extend([3 * M + 17, 21 * M + 5, 35 * M + 3, 35 * M + 3, 35 * M + 3, 70 * M + 1, 70 * M + 1]);
    sizes
}

fn land(landing: Box<dyn PendingDownload>) -> HostBuffer {
    landing.wait().unwrap()
}

#[test]
fn reads_of_every_size_land_in_any_order() {
    let (device, pool) = (gpu(), Pool::new(0));
    let mut delay = Delay::new(&device);
    for turn in 0..2 {
        let whole: Vec<Vec<u8>> =
            sizes().into_iter().enumerate().map(|(i, n)| pattern(i + 100 * turn, n + 13)).collect();
        let memories: Vec<Memory> = whole.iter().map(|w| uploaded(&device, w)).collect();
        delay.run(&device);
        let order =
            |(w, m): (&Vec<u8>, &Memory)| device.start_download(m, 13..w.len(), &pool, DownloadStart::AtOnce).unwrap();
        let mut landings: Vec<_> = whole.iter().zip(&memories).map(order).enumerate().collect();
        if turn == 0 {
            landings.reverse();
        } else {
            let half = landings.len() / 2;
            landings.rotate_left(half);
        }
        for (i, landing) in landings {
            assert!(land(landing).bytes() == &whole[i][13..], "{} bytes, turn {turn}", whole[i].len());
        }
    }
}

#[test]
fn memory_that_is_freed_and_used_again_changes_nothing_that_is_under_way() {
    let (device, pool) = (gpu(), Pool::new(0));
    let mut delay = Delay::new(&device);
    // The last one is chunked at its first request.
    for bytes in [5, 64 * K, 3 * M, 16 * M, 16 * M, 40 * M, 40 * M] {
        let want = pattern(bytes, bytes);
        delay.run(&device);
        let memory = uploaded(&device, &want);
        let landing = device.start_download(&memory, 0..bytes, &pool, DownloadStart::AtOnce).unwrap();
        drop(memory);
        let others: Vec<Memory> = (0..6).map(|i| uploaded(&device, &pattern(i, bytes))).collect();
        assert!(land(landing).bytes() == want, "{bytes} bytes");
        let mut got = vec![0; bytes];
        for (i, other) in others.iter().enumerate() {
            device.read(other, 0, &mut got).unwrap();
            assert!(got == pattern(i, bytes), "{bytes} bytes, block {i}");
        }
    }
}

#[test]
fn memory_that_is_written_again_changes_nothing_that_is_under_way() {
    let (device, pool) = (gpu(), Pool::new(0));
    let mut delay = Delay::new(&device);
    for bytes in [64 * K, 3 * M, 20 * M, 48 * M, 48 * M] {
        let (first, second) = (pattern(1, bytes), pattern(2, bytes));
        let (mut memory, other) = (uploaded(&device, &first), uploaded(&device, &second));
        delay.run(&device);
        let a = device.start_download(&memory, 0..bytes, &pool, DownloadStart::AtOnce).unwrap();
        device.copy(&other, &mut memory, &[StridedCopy::run(0, 0, bytes)]).unwrap();
        let b = device.start_download(&memory, 0..bytes, &pool, DownloadStart::AtOnce).unwrap();
        device.write(&first[..1000], &mut memory, 500).unwrap();
        let c = device.start_download(&memory, 0..bytes, &pool, DownloadStart::AtOnce).unwrap();
        device.write(&first, &mut memory, 0).unwrap();
        let mut third = second.clone();
        third[500..1500].copy_from_slice(&first[..1000]);
        assert!(land(c).bytes() == third, "{bytes} bytes, third");
        assert!(land(a).bytes() == first, "{bytes} bytes, first");
        assert!(land(b).bytes() == second, "{bytes} bytes, second");
        let mut got = vec![0; bytes];
        device.read(&memory, 0, &mut got).unwrap();
        assert!(got == first, "{bytes} bytes, last");
    }
}

#[test]
fn a_kernel_writes_behind_the_copies_of_its_output() {
    let (device, pool) = (gpu(), Pool::new(0));
    let mut delay = Delay::new(&device);
    let bytes = delay.geometry.bytes();
    for turn in 0..3 {
        let want = pattern(turn, bytes);
        device.write(&want, &mut delay.output, 0).unwrap();
        let landing = device.start_download(&delay.output, 0..bytes, &pool, DownloadStart::AtOnce).unwrap();
        delay.run(&device);
        assert!(land(landing).bytes() == want, "turn {turn}");
    }
}

#[test]
fn many_pictures_are_in_flight_and_land_on_other_threads() {
    const PICTURES: usize = 400;
    let (device, pool) = (gpu(), Pool::new(64 * M));
    let mut delay = Delay::new(&device);
    std::thread::scope(|scope| {
        let mut senders = Vec::new();
        for _ in 0..4 {
            let (sender, receiver) = mpsc::sync_channel::<(usize, Vec<u8>, Box<dyn PendingDownload>)>(5);
            senders.push(sender);
            scope.spawn(move || {
                for (i, want, landing) in receiver {
                    assert!(land(landing).bytes() == want, "picture {i}");
                }
            });
        }
        for i in 0..PICTURES {
            let bytes = [M, 2 * M + 300, 70 * K, 4 * M, 33 * M][i % 5];
            let mut want = pattern(i, bytes);
            if i % 16 == 0 {
                delay.run(&device);
            }
            let picture = uploaded(&device, &want);
            // Exchanges both halves on the GPU.
            let mut swapped = device.allocate(bytes).unwrap();
            let half = bytes / 2;
            let pieces = [StridedCopy::run(0, bytes - half, half), StridedCopy::run(half, 0, bytes - half)];
            device.copy(&picture, &mut swapped, &pieces).unwrap();
            want.rotate_left(half);
            let landing = device.start_download(&swapped, 0..bytes, &pool, DownloadStart::AtOnce).unwrap();
            senders[i % 4].send((i, want, landing)).unwrap();
        }
        drop(senders);
    });
    assert!(pool.try_allocate(M).is_ok());
}

#[test]
fn uploads_beside_kernels_are_there_when_something_reads_them() {
    let device = gpu();
    let mut delay = Delay::new(&device);
    for turn in 0..20 {
        delay.run(&device);
        for bytes in [M - 1, M, 5 * M + 3, 20 * M] {
            let want = pattern(turn, bytes);
            let mut first = uploaded(&device, &want);
            // No longer fresh, and in part.
            device.write(&want[..bytes / 2], &mut first, bytes - bytes / 2).unwrap();
            let mut copy = device.allocate(bytes).unwrap();
            device.copy(&first, &mut copy, &[StridedCopy::run(0, 0, bytes)]).unwrap();
            drop(first);
            let mut got = vec![0; bytes];
            device.read(&copy, 0, &mut got).unwrap();
            assert!(got[..bytes - bytes / 2] == want[..bytes - bytes / 2], "{bytes} bytes, turn {turn}");
            assert!(got[bytes - bytes / 2..] == want[..bytes / 2], "{bytes} bytes, turn {turn}");
        }
    }
}

#[test]
fn buffers_that_are_given_are_read_as_they_were() {
    let (device, pool) = (gpu(), Pool::new(64 * M));
    let mut delay = Delay::new(&device);
    for turn in 0..10 {
        delay.run(&device);
        for bytes in [1, 64 * K, M - 1, 5 * M + 3, 20 * M] {
            let want = pattern(turn, bytes);
            let mut room = device.allocate_read_ahead(bytes, &pool).unwrap();
            room.bytes_mut().copy_from_slice(&want);
            let mut memory = device.allocate_for_upload(bytes).unwrap();
            give(&device, &room, &mut memory, 0).unwrap();
            // A write goes to a copy, and an allocation gets other memory.
            room.bytes_mut().fill(0xee);
            drop(room);
            device.allocate_read_ahead(bytes, &pool).unwrap().bytes_mut().fill(0xdd);
            // In part, after the whole.
            let mut part = device.allocate_read_ahead(bytes.div_ceil(2), &pool).unwrap();
            part.bytes_mut().copy_from_slice(&want[..bytes.div_ceil(2)]);
            give(&device, &part, &mut memory, bytes / 2).unwrap();
            drop(part);
            let mut got = vec![0; bytes];
            device.read(&memory, 0, &mut got).unwrap();
            assert!(got[..bytes / 2] == want[..bytes / 2], "{bytes} bytes, turn {turn}");
            assert!(got[bytes / 2..] == want[..bytes.div_ceil(2)], "{bytes} bytes, turn {turn}");
        }
    }
    // Unpooled memory is copied as before.
    let want = pattern(7, 3 * M);
    let mut memory = device.allocate_for_upload(3 * M).unwrap();
    give(&device, &HostBuffer::from_slice(&want), &mut memory, 0).unwrap();
    let mut got = vec![0; 3 * M];
    device.read(&memory, 0, &mut got).unwrap();
    assert!(got == want);
    assert!(give(&device, &HostBuffer::from_slice(&want), &mut memory, 1).is_err(), "beyond the block");
}

#[test]
fn many_given_buffers_are_in_flight_and_outlive_the_device() {
    let (device, pool) = (gpu(), Pool::new(64 * M));
    let mut delay = Delay::new(&device);
    let mut there = Vec::new();
    for i in 0..100 {
        delay.run(&device);
        let mut room = device.allocate_read_ahead(2 * M + i, &pool).unwrap();
        room.bytes_mut().copy_from_slice(&pattern(i, 2 * M + i));
        let mut memory = device.allocate_for_upload(2 * M + i).unwrap();
        give(&device, &room, &mut memory, 0).unwrap();
        there.push(memory);
    }
    for (i, memory) in there.iter().enumerate() {
        let mut got = vec![0; 2 * M + i];
        device.read(memory, 0, &mut got).unwrap();
        assert!(got == pattern(i, 2 * M + i), "picture {i}");
    }
    let kept = device.allocate_read_ahead(M, &pool).unwrap();
    drop((there, delay, device));
    assert_eq!(kept.len(), M);
}

#[test]
fn what_nobody_waits_for_is_no_harm() {
    let (device, pool) = (gpu(), Pool::bounded(0, 200 * M));
    let mut delay = Delay::new(&device);
    let want = pattern(3, 20 * M);
    let memory = uploaded(&device, &want);
    for _ in 0..30 {
        delay.run(&device);
        drop(device.start_download(&memory, 0..want.len(), &pool, DownloadStart::AtOnce).unwrap());
    }
    let large = uploaded(&device, &pattern(4, 56 * M));
    drop(device.start_download(&large, 0..56 * M, &pool, DownloadStart::AtOnce).unwrap());
    drop(large);
    let landing = device.start_download(&memory, 0..want.len(), &pool, DownloadStart::AtOnce).unwrap();
    drop(memory);
    drop(delay);
    drop(device);
    let landed = land(landing);
    assert!(landed.bytes() == want, "lands when the device is gone");
    drop(landed);
    assert!(pool.try_allocate(199 * M).is_ok(), "nothing counts any more");
}

#[test]
fn a_bound_on_host_memory_holds_for_what_is_under_way() {
    let (device, pool) = (gpu(), Pool::bounded(0, 10 * M));
    let memory = uploaded(&device, &pattern(1, 6 * M));
    let order = |pool: &Arc<Pool>| device.start_download(&memory, 0..6 * M, pool, DownloadStart::AtOnce);
    let first = order(&pool).unwrap();
    assert!(matches!(order(&pool), Err(DeviceError::OutOfMemory { .. })));
    drop(first);
    assert!(land(order(&pool).unwrap()).bytes() == pattern(1, 6 * M));
    assert!(device.start_download(&memory, 1..6 * M + 1, &pool, DownloadStart::AtOnce).is_err(), "beyond the block");
}
