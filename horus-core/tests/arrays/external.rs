//! Memory of other libraries, read in place; device memory lent to others; and its return.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::device::Device;
use horus_core::error::Error;
use horus_core::host::external::{DeviceArray, External};
use horus_core::image::Image;
use horus_core::session::Session;
use horus_core::shape::{Axis, Shape};
use ndarray::{ArrayView4, Ix4, s};

use super::{DEVICES, cpu, simulated};

/// An owner that reports its release.
struct ReportingOwner {
    values: Vec<f32>,
    _told: Arc<()>,
}

impl AsRef<[f32]> for ReportingOwner {
    fn as_ref(&self) -> &[f32] {
        &self.values
    }
}

#[test]
fn memory_of_somebody_else_is_read_in_place_kept_and_never_written() {
    for (number, device) in DEVICES.into_iter().enumerate() {
        for ranks in [1, 3] {
            ThreadComm::run(ranks, |comm| {
                let session = Session::on(device()).communicator(Arc::new(comm)).build().unwrap();
                let told = Arc::new(());
                let values: Vec<f32> = (0..7 * 5 * 2).map(|i| (i * i % 31) as f32).collect();
                let at = values.as_ptr();
                let kept = External::of(ReportingOwner { values: values.clone(), _told: Arc::clone(&told) });
                let (first, owner) = (kept.bytes().to_vec(), Arc::downgrade(kept.owner()));
                assert_ne!(kept.bytes().as_ptr(), at.cast(), "a copy of this test");
                let place = kept.bytes().as_ptr();
                let shape = Shape::volume(2, 7, 5, 1);
                let image = Image::<f32>::from_external(&session, shape, kept.clone());
                assert_eq!(image.to_vec().unwrap(), values);
                let smooth = image.gauss(1.0);
                let plain = Image::from_slice(&session, (2, 7, 5), &values).gauss(1.0);
                let bits = |image: &Image<f32>| image.to_vec().unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&smooth), bits(&plain));
                let mut pixels = image.to_pixels().unwrap();
                if number == 0 && ranks == 1 {
                    assert_eq!(pixels.as_ptr().cast(), place, "in place");
                }
                pixels[3] = 99.0;
                assert_eq!(kept.bytes(), first, "what is written is written elsewhere");
                assert_eq!(image.to_vec().unwrap(), values);
                drop((pixels, image, smooth, kept));
                session.evaluate().unwrap();
                if ranks == 1 {
                    assert!(owner.upgrade().is_none(), "device {number} lets go of it");
                    assert_eq!(Arc::strong_count(&told), 1);
                }
            });
        }
    }
}

#[test]
fn channels_lie_beside_each_other_in_memory_of_somebody_else() {
    for device in DEVICES {
        let session = Session::on(device()).build().unwrap();
        let shape = Shape::volume(2, 5, 4, 3);
        let values: Vec<f32> = (0..shape.len()).map(|i| i as f32).collect();
        let array = ArrayView4::from_shape((2, 5, 4, 3), &values).unwrap();
        let image = Image::<f32>::from_external(&session, shape, External::of(values.clone()));
        assert_eq!(image.to_array::<Ix4>().unwrap(), array);
        assert_eq!((&image * 2.0).to_array::<Ix4>().unwrap(), &array * 2.0);
        assert_eq!(image.pixel((1, 4, 3, 2)).unwrap(), array[[1, 4, 3, 2]]);
        let turned = image.flip(Axis::Columns).to_array::<Ix4>().unwrap();
        assert_eq!(turned, array.slice(s![.., .., ..;-1, ..]));
        let part = image.crop(1, 1, 3, 2).to_array::<Ix4>().unwrap();
        assert_eq!(part, array.slice(s![.., 1..4, 1..3, ..]), "a part of rows and of columns");
        let planes = session.pixels_of::<f32>(shape).unwrap();
        assert_eq!(Image::from_volume_array(&session, planes.view4()).to_vec().unwrap(), planes.to_vec());
        let same = Image::from_volume_array(&session, array);
        assert_eq!(same.to_vec().unwrap(), image.to_vec().unwrap());
    }
}

#[test]
fn external_memory_that_does_not_fit_is_an_error() {
    let session = Session::on(cpu()).build().unwrap();
    let told = |image: Result<(), Error>| image.unwrap_err().to_string();
    let bytes = External::of(vec![2u8; 9]);
    let shape = Shape::new(2, 4, 1);
    assert!(
        told(Image::<u8>::from_external(&session, shape, bytes.clone()).check())
            .contains("9 bytes for 2x4 pixels of u8")
    );
    let mask = External::of(vec![2u8; 8]);
    assert!(
        told(Image::<bool>::from_external(&session, shape, mask).check())
            .contains("a mask has bytes other than 0 and 1")
    );
    struct Odd(Vec<u8>);
    impl AsRef<[u8]> for Odd {
        fn as_ref(&self) -> &[u8] {
            let from = usize::from((self.0.as_ptr() as usize).is_multiple_of(2));
            &self.0[from..from + 16]
        }
    }
    let odd = Image::<u16>::from_external(&session, shape, External::of(Odd(vec![0; 17])));
    assert!(told(odd.check()).contains("is not aligned for u16"));
    let empty = Image::<u8>::from_external(&session, Shape::new(0, 4, 1), bytes);
    assert!(told(empty.check()).contains("no pixels"));
}

#[test]
fn memory_of_a_device_is_lent_and_taken() {
    let device: Arc<dyn Device> = simulated().into();
    let session = Session::sharing(Arc::clone(&device)).build().unwrap();
    let other = Session::sharing(Arc::clone(&device)).build().unwrap();
    let image = Image::from_fn(&session, 6, 5, |y, x| (10 * y + x) as f32);
    let smooth = image.gauss(1.0);
    let (want, twice) = (smooth.to_vec().unwrap(), (&smooth * 2.0).to_vec().unwrap());
    for lent in [&smooth, &smooth.abs()] {
        let lent = lent.to_device_array(Some(DeviceArray::DEFAULT_STREAM)).unwrap();
        let owner = Arc::downgrade(lent.owner());
        for copied in [true, false] {
            let there = Image::<f32>::from_device_array(&other, Shape::new(6, 5, 1), &lent, copied).unwrap();
            assert_eq!((there.to_vec().unwrap(), (&there * 2.0).to_vec().unwrap()), (want.clone(), twice.clone()));
        }
        drop(lent);
        assert!(owner.upgrade().is_none(), "nobody has it any more");
    }
    // An image on the host only is uploaded.
    assert_eq!(image.to_device_array(Some(DeviceArray::DEFAULT_STREAM)).unwrap().bytes(), 6 * 5 * 4);
    assert_eq!((session.gpu(), session.memory().devices.len()), (Some(0), 1));
    let lent = smooth.to_device_array(Some(DeviceArray::DEFAULT_STREAM)).unwrap();
    let wrong = Image::<f64>::from_device_array(&other, Shape::new(6, 5, 1), &lent, false).unwrap_err().to_string();
    assert!(wrong.contains("120 bytes for 6x5 pixels of f64"), "{wrong}");
    let host = Session::on(cpu()).build().unwrap();
    let refused = Image::<f32>::from_device_array(&host, Shape::new(6, 5, 1), &lent, false).unwrap_err().to_string();
    assert!(refused.contains("not on a GPU"), "{refused}");
    assert!(
        Image::<f32>::zeros(&host, (2, 2)).to_device_array(Some(DeviceArray::DEFAULT_STREAM)).is_err()
            && host.gpu().is_none()
    );
    ThreadComm::run(2, |comm| {
        let session = Session::on(simulated()).communicator(Arc::new(comm)).build().unwrap();
        let refused = Image::<f32>::zeros(&session, (4, 4))
            .to_device_array(Some(DeviceArray::DEFAULT_STREAM))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("2 ranks"), "{refused}");
    });
}

#[test]
fn memory_that_is_kept_is_given_back_and_plans_are_made_anew() {
    let session = Session::on(cpu()).build().unwrap();
    let image = Image::from_fn(&session, 90, 50, |y, x| (y * x) as f32);
    let result = image.gauss(2.0);
    let want = result.to_vec().unwrap();
    let used = session.memory().host;
    assert!(used.current >= 2 * 90 * 50 * 4 && used.peak >= used.current, "{used:?}");
    drop(result);
    session.trim().unwrap();
    let left = session.memory().host;
    assert!(left.kept == 0 && left.current < used.current && left.peak == used.peak, "{left:?}");
    assert_eq!(image.gauss(2.0).to_vec().unwrap(), want);
}
