//! Pixels between the program's memory and the GPU's: page-locked memory is accessed in place,
//! never while others may change it, and every path preserves the values.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use horus_core::device::{Device, DownloadStart, Memory, PendingDownload, Staging};
use horus_core::host::buffer::{HostBuffer, Pool};
use horus_core::host::sequential_output::SequentialOutput;
use horus_core::image::Image;
use horus_core::session::Session;
use horus_core::shape::Shape;
use horus_cuda::CudaDevice;

use crate::transfers::{Delay, give};

const K: usize = 1 << 10;
const M: usize = 1 << 20;

fn gpu() -> Arc<CudaDevice> {
    Arc::new(CudaDevice::open(0, None).unwrap_or_else(|e| panic!("this test needs a GPU: {e}")))
}

fn session(device: &Arc<CudaDevice>) -> Session {
    Session::sharing(Arc::clone(device) as Arc<dyn Device>).build().unwrap()
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

fn locked(device: &CudaDevice, bytes: usize, pool: &Arc<Pool>) -> HostBuffer {
    let memory = device.page_locked(bytes).unwrap().expect("a GPU reads it by itself");
    pool.try_adopt(memory, bytes).unwrap()
}

/// Held downloads land in every kind of memory, even if their source was freed or overwritten.
#[test]
fn what_is_held_lands_wherever_somebody_says() {
    let (device, pool) = (gpu(), Pool::new(0));
    let workers = device.workers();
    for bytes in [1, 1000, 64 * K - 1, 64 * K + 1, 4 * M, 4 * M + 3, 33 * M + 7, 300 * M + 5] {
        let (want, other) = (pattern(bytes, bytes), pattern(bytes + 1, bytes));
        let mut memory = uploaded(&device, &want);
        let hold = |memory: &Memory| -> Box<dyn PendingDownload> {
            device.start_download(memory, 0..bytes, &pool, DownloadStart::WithTarget).unwrap()
        };
        let mut slice = vec![7; bytes];
        hold(&memory).append_to(&mut SequentialOutput::over(&mut slice), workers).unwrap();
        assert!(slice == want, "{bytes} bytes, a slice");
        let mut buffer = locked(&device, bytes, &pool);
        let at = buffer.bytes().as_ptr();
        hold(&memory).copy_into(&mut buffer, workers).unwrap();
        assert!(buffer.bytes() == want && buffer.bytes().as_ptr() == at, "{bytes} bytes, page-locked");
        let mut ordinary = HostBuffer::try_zeroed(bytes).unwrap();
        hold(&memory).copy_into(&mut ordinary, workers).unwrap();
        assert!(ordinary.bytes() == want, "{bytes} bytes, ordinary");
        assert!(hold(&memory).wait().unwrap().bytes() == want, "{bytes} bytes, any");
        // The memory is written, freed, and reused meanwhile.
        let (first, second, third) = (hold(&memory), hold(&memory), hold(&memory));
        drop(hold(&memory)); // nobody waits for it
        device.write(&other, &mut memory, 0).unwrap();
        drop(memory);
        let _again = uploaded(&device, &pattern(9, bytes));
        // A shared buffer is not written.
        let shared = buffer.clone();
        first.copy_into(&mut buffer, workers).unwrap();
        second.append_to(&mut SequentialOutput::over(&mut slice), workers).unwrap();
        assert!(buffer.bytes() == want && slice == want && shared.bytes() == want, "{bytes} bytes, later");
        assert!(buffer.bytes().as_ptr() != shared.bytes().as_ptr());
        assert!(buffer.adopted().is_some(), "of the same kind");
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(third.wait().unwrap().bytes() == want, "{bytes} bytes, on another thread"));
        });
    }
}

/// Held downloads land in memory allocated while kernels ran: page-locked, lent or ordinary.
#[test]
fn what_is_held_lands_in_memory_made_for_it() {
    let (device, pool) = (gpu(), Pool::new(0));
    let mut delay = Delay::new(&device);
    for bytes in [1, 64 * K + 1, 5 * M + 3, 66 * M + 5] {
        let want = pattern(bytes, bytes);
        let memory = uploaded(&device, &want);
        // It is lent once the size is requested often.
        let mut lent =
            (0..40).find_map(|_| device.page_locked_for_transfer(bytes)).map(|m| pool.try_adopt(m, bytes).unwrap());
        assert!(lent.is_some(), "{bytes} bytes come often");
        let rooms = [lent.take().unwrap(), locked(&device, bytes, &pool), HostBuffer::try_zeroed(bytes).unwrap()];
        for (kind, room) in rooms.into_iter().enumerate() {
            delay.run(&device);
            let at = room.bytes().as_ptr();
            let landing = device.start_download(&memory, 0..bytes, &pool, DownloadStart::WithTarget).unwrap();
            let mut room = Some(room);
            landing
                .allocate_target(&mut |n| Ok(room.take().filter(|room| room.len() == n).expect("asked once")))
                .unwrap();
            landing.allocate_target(&mut |_| panic!("there is room")).unwrap();
            landing.wait_until_started().unwrap();
            let landed = landing.wait().unwrap();
            assert!(landed.bytes() == want && landed.bytes().as_ptr() == at, "{bytes} bytes, kind {kind}");
        }
        let landing = device.start_download(&memory, 0..bytes, &pool, DownloadStart::WithTarget).unwrap();
        assert!(landing.allocate_target(&mut |n| HostBuffer::try_zeroed(n + 1)).is_err(), "another size");
        assert!(landing.wait().unwrap().bytes() == want, "into other memory");
        // The smallest blocks also serve the device's own copies.
        assert!(bytes <= 64 * K || device.page_locked_for_transfer(bytes).is_some(), "{bytes} bytes went back");
    }
}

/// Downloads with few and many threads, during uploads.
#[test]
fn copies_both_ways_at_once_bring_the_same_bytes() {
    for threads in [1, 2, 5, 16] {
        let device = CudaDevice::open(0, Some(threads)).unwrap();
        let sizes = [700 * K, 3 * M + 1, 17 * M + 5, 90 * M + 3];
        std::thread::scope(|scope| {
            for half in 0..2 {
                let device = &device;
                scope.spawn(move || {
                    for (turn, bytes) in (0..3).flat_map(|turn| sizes.map(|bytes| (turn, bytes))) {
                        let want = pattern(turn + 10 * half, bytes);
                        let memory = uploaded(device, &want);
                        let mut got = vec![0; bytes];
                        device.read(&memory, 0, &mut got).unwrap();
                        assert!(got == want, "{bytes} bytes, {threads} threads, turn {turn}");
                    }
                });
            }
        });
    }
}

#[test]
fn page_locked_memory_is_read_as_it_was_given() {
    let (device, pool) = (gpu(), Pool::new(0));
    for turn in 0..5 {
        for bytes in [5, M - 1, 20 * M, 400 * M] {
            let want = pattern(turn, bytes);
            let mut buffer = locked(&device, bytes, &pool);
            buffer.bytes_mut().copy_from_slice(&want);
            let mut memory = device.allocate_for_upload(bytes).unwrap();
            give(&device, &buffer, &mut memory, 0).unwrap();
            buffer.bytes_to_overwrite().fill(0xee); // under way: another block
            drop(buffer);
            locked(&device, bytes, &pool).bytes_mut().fill(0xdd);
            let mut got = vec![0; bytes];
            device.read(&memory, 0, &mut got).unwrap();
            assert!(got == want, "{bytes} bytes, turn {turn}");
        }
    }
}

#[test]
fn a_kept_frame_and_a_kept_result_stay_where_they_are() {
    let device = gpu();
    let session = session(&device);
    for n in [50, 700, 3000] {
        let mut frame = session.pixels::<f32>(n, n, 1).unwrap();
        let mut result = session.pixels::<f32>(n, n, 1).unwrap();
        assert!(frame.is_page_locked() && result.is_page_locked());
        let (from, to) = (frame.as_ptr(), result.as_ptr());
        for i in 0..5 {
            frame.iter_mut().enumerate().for_each(|(k, v)| *v = (k % 1000 + i) as f32);
            let image = Image::from_pixels(&session, frame.clone());
            (image * 2.0).read_into(&mut result).unwrap();
            let right = |(k, v): (usize, &f32)| *v == 2.0 * (k % 1000 + i) as f32;
            assert!(result.iter().enumerate().all(right), "{n}, turn {i}");
            assert_eq!((frame.as_ptr(), result.as_ptr()), (from, to), "{n}, turn {i}");
        }
        // Also if nothing is read back.
        let image = Image::from_pixels(&session, frame.clone()).gauss(1.0);
        session.evaluate().unwrap();
        drop(image);
        frame.fill(0.0);
        assert_eq!(frame.as_ptr(), from);
    }
}

#[test]
fn every_way_in_and_out_brings_the_same_pixels() {
    let device = gpu();
    let session = session(&device);
    for (height, width, channels) in [(1, 1, 1), (30, 41, 3), (511, 600, 1), (1025, 1027, 2), (9000, 8000, 1)] {
        let n = height * width * channels;
        let values: Vec<u16> = (0..n).map(|i: usize| (i.wrapping_mul(0x9e37_79b9) >> 16) as u16).collect();
        let want: Vec<u16> = values.iter().map(|v| v.saturating_add(9)).collect();
        let mut pixels = session.pixels::<u16>(height, width, channels).unwrap();
        pixels.copy_from_slice(&values);
        let taken = Image::from_slice(&session, Shape::new(height, width, channels), &values);
        let given = Image::from_pixels(&session, pixels.clone());
        pixels.fill(0); // the images are not evaluated
        let mut kept = vec![0; n];
        for image in [taken, given] {
            let result = image + 9;
            assert!(result.to_vec().unwrap() == want);
            assert!(result.to_pixels().unwrap()[..] == want);
            assert!(result.gather().unwrap().unwrap()[..] == want);
            result.read_into(&mut kept).unwrap();
            assert!(kept == want);
            kept.fill(0);
            result.read_into(&mut pixels).unwrap();
            assert!(pixels[..] == want);
            pixels.fill(0);
        }
    }
    let mask = Image::from_pixels(&session, session.pixels::<bool>(100, 90, 1).unwrap());
    let mut not = session.pixels::<bool>(100, 90, 1).unwrap();
    (!mask).read_into(&mut not).unwrap();
    assert!(not.iter().all(|v| *v));
}

#[test]
fn several_results_come_at_the_same_time() {
    let device = gpu();
    let session = session(&device);
    // The largest sizes are computed in bands.
    for n in [1, 30, 700, 6000] {
        let mut frame = session.pixels::<f32>(n, n, 1).unwrap();
        frame.iter_mut().enumerate().for_each(|(k, v)| *v = (k % 1000) as f32);
        let mut locked: Vec<_> = (0..2).map(|_| session.pixels::<f32>(n, n, 1).unwrap()).collect();
        let mut kept = vec![vec![0.0; n * n]; 2];
        for turn in 0..3 {
            let image = Image::from_pixels(&session, frame.clone());
            let results: [Image<f32>; 4] = std::array::from_fn(|i| &image * (i + turn + 1) as f32);
            let (a, b) = results.split_at(2);
            let pairs = a.iter().zip(&mut locked).collect::<Vec<_>>();
            session.read_into((pairs, b.iter().zip(&mut kept).collect::<Vec<_>>())).unwrap();
            let all = locked.iter().map(|pixels| &pixels[..]).chain(kept.iter().map(|values| &values[..]));
            for (i, result) in all.enumerate() {
                let right = |(k, v): (usize, &f32)| *v == ((k % 1000) * (i + turn + 1)) as f32;
                assert!(result.iter().enumerate().all(right), "{n}, turn {turn}, result {i}");
            }
        }
    }
}

#[test]
fn slices_are_taken_at_once_and_beside_kernels() {
    let device = gpu();
    let (session, mut delay) = (session(&device), Delay::new(&device));
    let mut values = vec![0.0f32; 2000 * 2000];
    for i in 0..6 {
        delay.run(&device);
        values.fill(i as f32);
        let (one, two) = (
            Image::from_slice(&session, (2000, 2000), &values),
            Image::from_slice(&session, Shape::new(2000, 1000, 2), &values),
        );
        values.fill(-1.0); // it was copied
        assert_eq!(one.sum().get().unwrap() + two.sum().get().unwrap(), 8e6 * f64::from(i));
    }
    assert_eq!(session.stats().made.uploads, 12, "each once");
    let small = Image::from_slice(&session, (10, 10), &values[..100]);
    assert_eq!(small.sum().get().unwrap(), -100.0);
}

#[test]
fn pixels_outlive_device_and_session_and_serve_others() {
    let device = gpu();
    let first = session(&device);
    let mut pixels = first.pixels::<f32>(1200, 1000, 1).unwrap();
    pixels.fill(3.0);
    let result = (Image::from_pixels(&first, pixels.clone()) + 1.0).to_pixels().unwrap();
    drop((first, device));
    assert_eq!((pixels[7], result[7]), (3.0, 4.0));
    let second = session(&gpu());
    for _ in 0..3 {
        let image = Image::from_pixels(&second, pixels.clone()) * Image::from_pixels(&second, result.clone());
        image.read_into(&mut pixels).unwrap();
        assert!(pixels.iter().all(|v| *v == 12.0));
        pixels.fill(3.0);
    }
    drop(second);
    assert_eq!(pixels[0], 3.0);
    drop(pixels);
    assert_eq!(result[0], 4.0);
}

#[test]
fn threads_share_a_device_and_their_pixels() {
    let device = gpu();
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let (device, sender) = (&device, sender.clone());
            scope.spawn(move || {
                let session = session(device);
                let mut frame = session.pixels::<i32>(800, 900, 1).unwrap();
                for i in 0..20 {
                    frame.fill(100 * t + i);
                    let image = Image::from_pixels(&session, frame.clone()) * 2;
                    sender.send((200 * t + 2 * i, image.to_pixels().unwrap())).unwrap();
                }
            });
        }
        drop(sender);
        for (want, pixels) in results {
            assert!(pixels.iter().all(|v| *v == want), "{want}");
        }
    });
}

/// Not a test of correctness: prints the time of each path, for the record of a run
/// (`--nocapture`).
#[test]
fn times_of_every_way() {
    let device = gpu();
    let session = session(&device);
    for n in [1024, 4096, 16384] {
        let ms = |name: &str, f: &mut dyn FnMut()| {
            f();
            let mut times: Vec<f64> = (0..5)
                .map(|_| {
                    let start = Instant::now();
                    f();
                    start.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            let rate = (n * n * 4) as f64 / times[2] / 1e6;
            println!("{n:6} {name:12} median {:9.3} ms  min {:9.3}  {rate:6.1} GB/s", times[2], times[0]);
        };
        let mut frame = session.pixels::<f32>(n, n, 1).unwrap();
        let (values, mut kept) = (vec![1.0f32; n * n], vec![0.0f32; n * n]);
        ms("from_pixels", &mut || {
            let _image = Image::from_pixels(&session, frame.clone()) + 1.0;
            session.evaluate().unwrap();
        });
        ms("from_slice", &mut || {
            let _image = Image::from_slice(&session, (n, n), &values);
            device.synchronize().unwrap();
        });
        let result = Image::from_pixels(&session, frame.clone()) + 1.0;
        session.evaluate().unwrap();
        ms("into pixels", &mut || result.read_into(&mut frame).unwrap());
        ms("into slice", &mut || result.read_into(&mut kept).unwrap());
        ms("to_pixels", &mut || drop(result.to_pixels().unwrap()));
        ms("to_vec", &mut || drop(result.to_vec().unwrap()));
        assert!(kept.iter().all(|v| *v == 1.0) && frame.iter().all(|v| *v == 1.0));
    }
}
