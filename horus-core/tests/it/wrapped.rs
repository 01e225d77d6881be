//! Maps beside filters on several ranks: rows beyond an edge are those of the image, whatever memory
//! holds there for the filter.

use std::path::Path;
use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_core::shape::Border;
use horus_testing::cases::covering;
use horus_testing::simulated::SimulatedDevice;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(1)).expect("a CPU")
}

/// Devices: one on the host's memory, one with its own, and one that also exchanges messages.
fn device(kind: usize) -> Box<dyn Device> {
    match kind {
        0 => Box::new(cpu()),
        1 => Box::new(SimulatedDevice::new(cpu(), usize::MAX / 2).requiring_preparation()),
        _ => Box::new(SimulatedDevice::new(cpu(), usize::MAX / 2).requiring_preparation().with_fabric()),
    }
}

type ImageMap = fn(&Image<f32>) -> Image<f32>;

/// Maps that read rows beyond an edge, or none but their own.
const MAPS: [(&str, ImageMap); 13] = [
    ("rotate", |x| x.rotate(33.0, Interpolation::Bilinear)),
    ("nearest", |x| x.rotate(-100.0, Interpolation::Nearest)),
    ("affine", |x| x.affine([[1.0, 0.125, -0.5], [0.5, 1.25, 0.25]], (x.height(), x.width()), Interpolation::Bicubic)),
    ("shear", |x| x.affine([[1.0, 0.25, -1.5], [0.0, 1.0, 0.0]], (x.height(), x.width()), Interpolation::Nearest)),
    ("translate", |x| x.translate(0.75, -1.25)),
    ("pad", |x| x.pad(2, 1, 1, 3)),
    ("shift", |x| x.shift(0, 1, 1)),
    ("shift up", |x| x.shift(0, -3, 0)),
    ("shift far", |x| x.shift(0, 11, 2)),
    ("column", |x| x.crop(0, x.width() / 2, x.height(), 1) + x),
    ("column below", |x| x.affine([[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]], (x.height(), x.width()), Interpolation::Nearest)),
    ("taller column", |x| x.affine([[0.0; 3], [0.0, 1.0, 0.0]], (x.height() + 5, x.width()), Interpolation::Nearest)),
    ("both", |x| x.rotate(33.0, Interpolation::Bilinear) + x.gauss(0.75)),
];

/// A map and a filter of one picture, which the map or the filter reads first.
fn program(session: &Session, path: &Path, border: Border, map: ImageMap, first: bool) -> Result<Vec<u32>> {
    let x = Image::<f32>::open(session, path)?.with_border(border);
    let (a, b) = if first {
        let a = map(&x);
        (a, x.gauss(1.0))
    } else {
        let b = x.gauss(1.0);
        (map(&x), b)
    };
    session.evaluate()?;
    let (a, b) = (a.to_vec()?, b.to_vec()?);
    Ok(a.iter().chain(&b).map(|v| v.to_bits()).collect())
}

#[test]
fn maps_beside_filters_give_the_bits_of_one_rank() {
    let dir = tempfile::tempdir().unwrap();
    let alone = Session::on(device(0)).build().unwrap();
    let sizes = [(4, 3), (1, 6), (2, 5), (3, 1), (1, 1), (23, 5)];
    let path = |size: usize| dir.path().join(format!("{size}.npy"));
    for (size, (h, w)) in sizes.into_iter().enumerate() {
        Image::from_fn(&alone, h, w, |y, x| ((y * w + x) * 37 % 23) as f32 * 0.325 + 1.0).save(path(size)).unwrap();
    }
    let borders = Border::all(2.5);
    for [size, border, map, ranks, shares, kind, first] in
        covering([sizes.len(), borders.len(), MAPS.len(), 4, 3, 3, 2])
    {
        let (name, map) = MAPS[map];
        let (border, ranks, path, first) = (borders[border], ranks + 2, path(size), first == 0);
        let want = program(&alone, &path, border, map, first).unwrap();
        let weights: Vec<f64> = (0..ranks)
            .map(|rank| match shares {
                0 => 1.0,
                1 => f64::from(u8::from(rank == 0)),
                _ => f64::from(u8::from(rank + 1 == ranks)),
            })
            .collect();
        let got = ThreadComm::run(ranks, |comm| {
            let session = Session::on(device(kind)).weights(weights.clone()).communicator(Arc::new(comm)).build();
            session.and_then(|session| program(&session, &path, border, map, first)).map_err(|e| e.to_string())
        });
        let (h, w) = sizes[size];
        for (rank, got) in got.into_iter().enumerate() {
            let got =
                got.unwrap_or_else(|e| panic!("{name} of {h}x{w}, {border}, shares {weights:?}, rank {rank}: {e}"));
            assert!(got == want, "{name} of {h}x{w}, {border}, device {kind}, shares {weights:?}, rank {rank}");
        }
    }
}
