//! Strips of an image: uploaded from their place in a larger buffer, and downloaded in an order
//! other than that of their bytes, as with several ranks.

use std::ops::Range;
use std::sync::Arc;

use horus_core::device::{Device, DownloadStart, Memory, PendingDownload, Staging};
use horus_core::host::StridedCopy;
use horus_core::host::buffer::{HostBuffer, Pool};
use horus_core::host::sequential_output::SequentialOutput;
use horus_cuda::CudaDevice;

use crate::transfers::Delay;

const M: usize = 1 << 20;

fn gpu() -> CudaDevice {
    CudaDevice::open(0, None).unwrap_or_else(|e| panic!("this test needs a GPU: {e}"))
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

/// A buffer of page-locked memory, or an ordinary one.
fn buffer(device: &CudaDevice, pool: &Arc<Pool>, bytes: usize, locked: bool) -> HostBuffer {
    match device.page_locked(bytes).unwrap() {
        Some(memory) if locked => pool.try_adopt(memory, bytes).unwrap(),
        _ => pool.try_allocate(bytes).unwrap(),
    }
}

#[test]
fn a_strip_goes_up_in_bands_from_inside_a_larger_buffer() {
    let (device, pool) = (gpu(), Pool::new(1 << 28));
    // Below and above the size at which copies run beside kernels.
    for strip in [1000, 3 * M + 5] {
        for locked in [true, false] {
            let whole = pattern(4 * strip);
            let mut source = buffer(&device, &pool, whole.len(), locked);
            source.bytes_mut().copy_from_slice(&whole);
            let mut memory = device.allocate_for_upload(2 * strip).unwrap();
            let mut delay = Delay::new(&device);
            delay.run(&device);
            // Two planes with strips at different places, in two bands.
            let half = strip / 2;
            let bands = [(0, half), (half, strip - half)].map(|(from, bytes)| {
                [
                    StridedCopy::run(strip + from, from, bytes),
                    StridedCopy::run(2 * strip + 7 + from, strip + from, bytes),
                ]
            });
            let tickets = bands.map(|pieces| device.begin_upload(&source, &mut memory, &pieces).unwrap());
            source.bytes_to_overwrite().fill(1); // a copy: the device holds its share
            for ticket in tickets {
                device.wait_for_upload(ticket, &mut memory).unwrap();
            }
            let mut got = vec![0; 2 * strip];
            device.read(&memory, 0, &mut got).unwrap();
            assert!(got[..strip] == whole[strip..2 * strip], "{strip} bytes, locked {locked}");
            assert!(got[strip..] == whole[2 * strip + 7..3 * strip + 7], "{strip} bytes, locked {locked}");
        }
    }
    let (source, mut target) = (buffer(&device, &pool, 100, false), device.allocate(50).unwrap());
    for piece in [StridedCopy::run(0, 1, 50), StridedCopy::run(60, 0, 41), StridedCopy::run(usize::MAX, 0, 2)] {
        assert!(device.begin_upload(&source, &mut target, &[piece]).is_err(), "{piece:?}");
    }
}

/// Bands of two strips alternately, in the order of their arrival.
fn in_turns(bytes: usize, bands: usize) -> Vec<[Range<usize>; 2]> {
    let half = bytes / 2;
    let band = |k: usize, of: usize| of * k / bands..of * (k + 1) / bands;
    (0..bands)
        .map(|k| {
            let second = band(k, bytes - half);
            [band(k, half), half + second.start..half + second.end]
        })
        .collect()
}

#[test]
fn bands_of_strips_land_where_they_belong() {
    let (device, pool) = (gpu(), Pool::new(1 << 28));
    for bytes in [1000, 9 * M + 3] {
        let want = pattern(bytes);
        for when in [DownloadStart::AtOnce, DownloadStart::WithTarget] {
            let coming = |memory: &Memory, delay: &mut Delay| -> Box<dyn PendingDownload> {
                let mut download = device.begin_download(0..bytes, &pool, when).unwrap();
                for band in in_turns(bytes, 4) {
                    delay.run(&device);
                    download.add(memory, &band).unwrap();
                }
                download.finish().unwrap()
            };
            let mut memory = device.allocate(bytes).unwrap();
            device.write(&want, &mut memory, 0).unwrap();
            let mut delay = Delay::new(&device);
            assert!(coming(&memory, &mut delay).wait().unwrap().bytes() == want, "{bytes} bytes {when:?}");
            for locked in [true, false] {
                let mut target = buffer(&device, &pool, bytes, locked);
                coming(&memory, &mut delay).copy_into(&mut target, device.workers()).unwrap();
                assert!(target.bytes() == want, "{bytes} bytes {when:?}, locked {locked}");
            }
            let mut target = vec![0; bytes];
            coming(&memory, &mut delay).append_to(&mut SequentialOutput::over(&mut target), device.workers()).unwrap();
            assert!(target == want, "{bytes} bytes {when:?}");
            // A download that is dropped while under way keeps its memory until it is done.
            let landing = coming(&memory, &mut delay);
            drop(memory);
            assert!(landing.wait().unwrap().bytes() == want, "{bytes} bytes {when:?}");
        }
    }
}
