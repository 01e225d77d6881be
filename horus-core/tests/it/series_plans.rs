//! A series plans once for pictures of equal kind, even on a device whose own memory is limited.

use horus_core::cpu::device::CpuDevice;
use horus_core::io::{OpenOptions, Picture, SaveOptions, Scaling};
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_testing::simulated::SimulatedDevice;

#[test]
fn pictures_of_equal_kind_share_a_plan() {
    let device = SimulatedDevice::new(CpuDevice::new(Some(2)).unwrap(), 1 << 24);
    let session = Session::on(Box::new(device)).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let picture = |i: usize| {
        let mut bytes = b"P5\n40 30\n255\n".to_vec();
        bytes.extend((0..1200).map(|k| (k * 7 + i * 31) as u8));
        Picture::read(&bytes, &OpenOptions::default())
    };
    let options = SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() };
    let name = |number: &std::path::Path| folder.path().join(number).with_extension("png");
    let series = session.series((0..12).map(picture), |p| {
        let image = p.luminance();
        let turned = image.rotate(30.0, Interpolation::Bilinear).gauss(1.5);
        turned.max(image.gauss_xy(2.0, 1.0, 0, 2)).rotate(-30.0, Interpolation::Bilinear)
    });
    let saved = series.save(name, &options).all().unwrap();
    assert_eq!(saved.len(), 12);
    let stats = session.stats();
    assert_eq!((stats.evaluations, stats.planned), (12, 1));
}
