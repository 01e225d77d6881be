//! What the detectors' kernels cost to compile: how many there are, how large their sources and their machine code. A first
//! run waits for them, so that is bounded; times are not, as they depend on the machine.

use std::collections::BTreeMap;

use horus::core::session::Session as CoreSession;
use horus::prelude::*;
use horus_apps::detectors::{Detector, Params, conv2d, convrot, convuv};
use horus_cuda::codegen::{Limits, MOST_COST, Generated};
use horus_cuda::conformance::Recorder;
use horus_cuda::nvrtc::Nvrtc;

const ARCH: u32 = 90;

/// The programs of a detector's run on a picture of this size, from file to file, each once by its source.
fn programs(detector: Detector, size: usize) -> BTreeMap<String, Generated> {
    let device = Recorder::new().unwrap();
    let launches = device.launches();
    let session = CoreSession::on(Box::new(device)).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.pgm"), folder.path().join("out.pgm"));
    let mut picture = format!("P5\n{size} {size}\n255\n").into_bytes();
    picture.resize(picture.len() + size * size, 7);
    std::fs::write(&input, picture).unwrap();
    let image = AnyImage::open(&session, &input).unwrap().luminance();
    detector(&image, &Params::default()).save(&output).unwrap();
    let made = launches.get().into_iter().filter_map(|l| l.program(ARCH, Limits { shared: 227 << 10 }).unwrap());
    made.map(|p| (p.source.clone(), p)).collect()
}

#[test]
fn few_kernels_serve_every_orientation_and_size_and_all_compile() {
    let nvrtc = match Nvrtc::load() {
        Ok(nvrtc) => nvrtc,
        Err(e) => panic!("{e}"),
    };
    let mut all = BTreeMap::new();
    for (name, detector, most) in [("convrot", convrot as Detector, 8), ("conv2d", conv2d, 15), ("convuv", convuv, 14)]
    {
        let of_size = [256, 1024, 4096].map(|size| programs(detector, size));
        let mut together = BTreeMap::new();
        of_size.iter().for_each(|programs| together.extend(programs.clone()));
        assert!(together.len() <= most, "{name}: {} kernels", together.len());
        assert!(of_size.iter().all(|p| p.len() == together.len()), "{name}: a size has kernels of its own");
        let bytes: usize = together.keys().map(String::len).sum();
        assert!(bytes <= (most * 44) << 10, "{name}: {bytes} bytes of source");
        for program in together.values() {
            // None takes longer than four fifths of what any kernel may: what a first run waits for is the slowest.
            let most = MOST_COST * 4 / 5;
            assert!(program.cost <= most, "{name}: about {} instructions\n{}", program.cost, program.source);
        }
        all.extend(together);
    }
    let mut total = 0;
    for program in all.values() {
        let cubin = nvrtc.compile(&program.source, ARCH).unwrap();
        // What the estimate leaves out is small.
        let most = 24 * program.cost + (32 << 10);
        assert!(cubin.len() <= most, "{} bytes of code for a cost of {}", cubin.len(), program.cost);
        total += cubin.len();
    }
    assert!(total <= 1080 << 10, "{total} bytes of code");
}
