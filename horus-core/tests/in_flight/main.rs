//! Overlap of transfers: pictures of a series overlap on the device, and results for files land in
//! memory allocated during the computation.

mod device;

use std::num::NonZeroU8;

use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::{Image, samples};
use horus_core::io::{AnyImage, Format, OpenOptions, Picture, SaveOptions};
use horus_core::plan::Transfer;
use horus_core::session::Session;
use horus_core::shape::Axis;

use device::{CallRecordingDevice, DeviceCall};

const PICTURES: usize = 7;

fn picture(i: usize) -> Result<Picture> {
    let mut bytes = b"P5\n60 80\n255\n".to_vec();
    bytes.extend((0..4800).map(|k| (k * 7 + i * 31) as u8));
    Picture::read(&bytes, &OpenOptions::default())
}

/// Running sums are computed picture by picture, also of small pictures that are recorded once.
fn smooth(picture: &AnyImage) -> Image<f32> {
    picture.luminance().gauss(1.5).over(Axis::Columns).cumsum().convert()
}

fn transfers() -> [Transfer; 2] {
    [Transfer::Explicit, Transfer::Streams(NonZeroU8::new(3))]
}

/// Checks that the next picture is uploaded and computed before each result arrives; a device whose
/// results arrive only then would otherwise never end.
fn overlaps(calls: &[DeviceCall]) {
    let place =
        |call: DeviceCall| calls.iter().position(|c| *c == call).unwrap_or_else(|| panic!("no {call:?}: {calls:?}"));
    let uploads: Vec<usize> = (0..calls.len()).filter(|i| calls[*i] == DeviceCall::Upload).collect();
    assert_eq!(uploads.len(), PICTURES, "{calls:?}");
    for i in 0..PICTURES - 1 {
        let (next, landed) = (uploads[i + 1], place(DeviceCall::Landed(i)));
        assert!(next < landed, "picture {} is uploaded after result {i} was waited for: {calls:?}", i + 1);
        assert!(calls[next..landed].contains(&DeviceCall::Launch), "nothing is computed beside copy {i}: {calls:?}");
        // And a result is in flight before the picture after the next arrives: no picture waits for
        // all others.
        assert!(uploads.get(i + 3).is_none_or(|later| place(DeviceCall::Order(i)) < *later), "{calls:?}");
    }
}

#[test]
fn a_picture_is_uploaded_and_computed_before_the_result_of_the_one_before_is_there() {
    let cpu = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap();
    let want: Vec<Vec<f32>> =
        cpu.series((0..PICTURES).map(picture), smooth).into_iter().map(|i| i.result.unwrap().to_vec()).collect();
    for (transfer, once) in transfers().into_iter().flat_map(|t| [(t, false), (t, true)]) {
        let (device, calls) = CallRecordingDevice::new(0, 1, PICTURES);
        let session = Session::on(Box::new(device)).transfer(transfer).build().unwrap();
        let series = session.series((0..PICTURES).map(picture), smooth);
        let series = if once { series.recorded_once() } else { series };
        let got: Vec<Vec<f32>> = series.into_iter().map(|item| item.result.unwrap().to_vec()).collect();
        assert!(got == want, "{transfer:?}, recorded once: {once}");
        overlaps(&calls.made());
    }
}

#[test]
fn files_of_a_series_overlap_as_well() {
    for once in [false, true] {
        let (device, calls) = CallRecordingDevice::new(0, 1, PICTURES);
        let session = Session::on(Box::new(device)).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let name = |number: &std::path::Path| folder.path().join(number).with_extension("npy");
        let series = session.series((0..PICTURES).map(picture), smooth);
        let series = if once { series.recorded_once() } else { series };
        assert_eq!(series.save(name, &SaveOptions::default()).all().unwrap().len(), PICTURES);
        overlaps(&calls.made());
    }
}

#[test]
fn two_pictures_are_under_way_beside_one_that_lands() {
    let (device, calls) = CallRecordingDevice::new(0, 2, PICTURES);
    let session = Session::on(Box::new(device)).build().unwrap();
    let series = session.series((0..PICTURES).map(picture), smooth);
    assert!(series.into_iter().all(|item| item.result.is_ok()), "{:?}", calls.made());
    // No more: results in flight take memory of the device.
    let (mut under_way, mut most) = (0usize, 0);
    for call in calls.made() {
        match call {
            DeviceCall::Order(_) => under_way += 1,
            DeviceCall::Landed(_) => under_way -= 1,
            _ => {}
        }
        most = most.max(under_way);
    }
    assert!((2..=3).contains(&most), "{most}");
}

#[test]
fn results_for_files_land_in_memory_that_the_device_lends_while_they_are_computed() {
    let cpu = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap();
    let colours = |session: &Session| {
        let planes: Vec<Image<f32>> = (0..3).map(|c| samples::worms(session, 40, 30) + c as f32 * 0.1).collect();
        Image::stack(session, &planes, Axis::Channels).gauss(1.0)
    };
    let options = SaveOptions::default();
    for (transfer, lends) in transfers().into_iter().flat_map(|t| [(t, 0), (t, 1 << 20)]) {
        let (device, calls) = CallRecordingDevice::new(lends, 0, 0);
        let session = Session::on(Box::new(device)).transfer(transfer).build().unwrap();
        for format in [Format::Npy, Format::Png, Format::Tiff] {
            let file = colours(&session).encode(format, &options).unwrap();
            assert!(file == colours(&cpu).encode(format, &options).unwrap(), "{format:?}, {transfer:?}, {lends}");
        }
        let made = calls.made();
        let (orders, rooms) = (
            made.iter().filter(|c| matches!(c, DeviceCall::Order(_))).count(),
            made.iter().filter(|c| **c == DeviceCall::Room).count(),
        );
        assert!(orders >= 3 && rooms == orders, "{rooms} of {orders} results have memory made for them");
        assert!(colours(&session).to_array::<ndarray::Ix3>().unwrap() == colours(&cpu).to_array().unwrap());
        assert_eq!(calls.lent(), 0, "all that was lent went back");
    }
}

#[test]
fn pictures_are_decoded_into_memory_that_the_device_lends() {
    let cpu = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap();
    let (device, calls) = CallRecordingDevice::new(1 << 20, 0, 0);
    let session = Session::on(Box::new(device)).build().unwrap();
    for channels in [1, 3] {
        let planes: Vec<Image<u8>> =
            (0..channels).map(|c| Image::from_fn(&cpu, 40, 30, |y, x| (y * 7 + x * 3 + c * 50) as u8)).collect();
        let image = Image::stack(&cpu, &planes, Axis::Channels);
        for format in [Format::Png, Format::Tiff, Format::Pnm, Format::Bmp, Format::Npy] {
            let file = image.encode(format, &SaveOptions::default()).unwrap();
            let read = AnyImage::read(&session, &file).unwrap();
            assert_eq!(calls.lent(), 1, "{format:?} of {channels} channels");
            if (format, channels) != (Format::Bmp, 1) {
                let same = read.convert::<u8>().to_vec().unwrap() == image.to_vec().unwrap();
                assert!(same, "{format:?} of {channels} channels");
            } // which is read as colours
            drop(read);
            session.evaluate().unwrap();
            assert_eq!(calls.lent(), 0);
        }
    }
}

#[test]
fn too_little_memory_for_a_result_is_an_error_that_names_the_setting() {
    let (device, _) = CallRecordingDevice::new(0, 0, 0);
    let session = Session::on(Box::new(device)).host_memory(6000).build().unwrap();
    let image = samples::worms(&session, 40, 30).gauss(1.0).convert::<f64>();
    let error = image.encode(Format::Npy, &SaveOptions::default()).unwrap_err().to_string();
    assert!(error.contains("HORUS_HOST_MEMORY") && error.contains("encode (at "), "{error}");
    assert!(image.sum().get().is_ok(), "the session goes on");
}
