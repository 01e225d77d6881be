//! Several images read at once: their pixels, for any device, mode and number of ranks; refusals
//! and failures.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::plan::Mode;
use horus_core::session::Session;
use horus_core::shape::Axis;
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::SimulatedDevice;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(1)).unwrap()
}

/// A float, a mask and a volume made of it, of one image each, into all kinds of memory.
fn read(session: &Session, height: usize, width: usize) -> Result<(Vec<f32>, Vec<bool>, Vec<f32>)> {
    let image = Image::from_fn(session, height, width, |y, x| ((y * 31 + x * 7) % 23) as f32);
    let (smooth, mask) = (image.gauss(1.0), image.gt(11.0));
    let volume = Image::stack(session, [&image, &smooth], Axis::Depth);
    let (mut pixels, mut marks) = (session.pixels(height, width, 1)?, vec![false; height * width]);
    let mut levels = vec![-1.0; 2 * height * width];
    session.read_into(((&smooth, &mut pixels), (&mask, &mut marks), (&volume, &mut levels)))?;
    Ok((pixels.to_vec(), marks, levels))
}

#[test]
fn each_has_the_pixels_that_it_has_alone() {
    for (height, width) in [(1, 1), (7, 5), (40, 33)] {
        let session = Session::on(Box::new(cpu())).build().unwrap();
        let image = Image::from_fn(&session, height, width, |y, x| ((y * 31 + x * 7) % 23) as f32);
        let (smooth, mask) = (image.gauss(1.0).to_vec().unwrap(), image.gt(11.0).to_vec().unwrap());
        let levels = [image.to_vec().unwrap(), smooth.clone()].concat();
        let want = (smooth, mask, levels);
        for mode in [Mode::Naive, Mode::Lazy, Mode::Fused] {
            for ranks in 1..=3 {
                let all = ThreadComm::run(ranks, |comm| {
                    let device = SimulatedDevice::new(cpu(), 1 << 30);
                    let session =
                        Session::on(Box::new(device)).communicator(Arc::new(comm)).mode(mode).build().unwrap();
                    read(&session, height, width).unwrap()
                });
                assert!(all.iter().all(|one| *one == want), "{height}x{width}, {mode:?}, {ranks} ranks");
            }
            let session = Session::on(Box::new(cpu())).mode(mode).build().unwrap();
            assert_eq!(read(&session, height, width).unwrap(), want, "{height}x{width}, {mode:?}, CPU");
        }
    }
}

#[test]
fn one_image_may_be_read_twice_and_any_number_may() {
    let session = Session::on(Box::new(SimulatedDevice::new(cpu(), 1 << 30))).build().unwrap();
    let image = Image::from_slice(&session, (1, 3), &[1u8, 2, 3]);
    // The first two become one value.
    let images = [&image + 1, &image + 1, &image * 2];
    let mut kept = vec![vec![0; 3]; 3];
    session.read_into(images.iter().zip(&mut kept).collect::<Vec<_>>()).unwrap();
    assert_eq!(kept, [[2, 3, 4], [2, 3, 4], [2, 4, 6]]);
    let [a, b, _] = &mut kept[..] else { unreachable!() };
    session.read_into([(&image, a), (&image, b)]).unwrap();
    assert_eq!(kept[0], kept[1]);
    session.read_into(Vec::<(&Image<u8>, &mut Vec<u8>)>::new()).unwrap();
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_computed() {
    let session = Session::on(Box::new(cpu())).build().unwrap();
    let other = Session::on(Box::new(cpu())).build().unwrap();
    let (image, foreign) =
        (Image::from_slice(&session, (1, 3), &[1u8, 2, 3]) + 1, Image::from_slice(&other, (1, 1), &[1u8]));
    let (mut right, mut wrong) = ([0; 3], [0; 2]);
    let error = session.read_into(((&image, &mut right), (&image, &mut wrong[..]))).unwrap_err().to_string();
    assert!(error.contains("read_into") && error.contains("room for 2 values"), "{error}");
    assert!(error.contains("read_several.rs"), "the caller's line: {error}");
    let error = session.read_into(((&image, &mut right), (&foreign, &mut wrong[..1]))).unwrap_err().to_string();
    assert!(error.contains("different sessions"), "{error}");
    assert_eq!((right, session.stats().evaluations), ([0; 3], 0));
    let failed = Image::from_slice(&session, (1, 3), &[1u8, 2]);
    let error = session.read_into(((&image, &mut right), (&failed, &mut [0; 3]))).unwrap_err().to_string();
    assert!(error.contains("from_slice"), "{error}");
}

#[test]
fn a_failure_of_any_call_is_an_error_and_the_images_stay() {
    let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), 1 << 30));
    let session = Session::on(Box::new(device)).build().unwrap();
    let want = read(&session, 9, 8).unwrap();
    let mut failures = 0;
    for call in 0.. {
        fault.fail_after(call);
        let outcome = read(&session, 9, 8);
        if !fault.disarm() {
            break;
        }
        match outcome {
            // Without memory for their results together, launches are made one by one.
            Ok(found) => assert_eq!(found, want, "as call {call} failed"),
            Err(error) => {
                assert!(error.to_string().contains("on purpose"), "{error}");
                failures += 1;
            }
        }
        assert_eq!(read(&session, 9, 8).unwrap(), want, "after call {call} failed");
    }
    assert!(failures > 5, "{failures}");
}
