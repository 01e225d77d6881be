//! Compilation cost of the detectors' kernels: their number, and the size of their sources and
//! machine code. A first run waits for them, so these are bounded; times depend on the machine and
//! are not.

use std::collections::BTreeMap;

use horus_cuda::codegen::{Generated, MOST_COST};
use horus_cuda::nvrtc::Nvrtc;
use horus_cuda::shipped::limits;
use horus_testing::cases::part;
use horus_tools::kernels::{DETECTORS, FileRun, distinct};

const ARCH: u32 = 90;

/// The distinct programs of a detector's run on a picture of this size, from file to file, by
/// source.
fn programs(detector: &'static str, size: usize) -> BTreeMap<String, Generated> {
    let launches = FileRun::of(detector, (size, size)).launches().unwrap();
    let kernels = distinct(&launches, ARCH, limits(ARCH).unwrap()).unwrap();
    kernels.into_iter().map(|(source, counted)| (source, counted.program)).collect()
}

#[test]
fn few_kernels_serve_every_orientation_and_size_and_all_compile() {
    let nvrtc = match Nvrtc::load() {
        Ok(nvrtc) => nvrtc,
        Err(e) => panic!("{e}"),
    };
    let mut all = BTreeMap::new();
    for ((name, _), most) in DETECTORS.into_iter().zip([12, 19, 18]) {
        let of_size = [256, 1024, 4096].map(|size| programs(name, size));
        let mut together = BTreeMap::new();
        of_size.iter().for_each(|programs| together.extend(programs.clone()));
        assert!(together.len() <= most, "{name}: {} kernels", together.len());
        assert!(of_size.iter().all(|p| p.len() == together.len()), "{name}: a size has kernels of its own");
        let bytes: usize = together.keys().map(String::len).sum();
        assert!(bytes <= (most * 49) << 10, "{name}: {bytes} bytes of source");
        for program in together.values() {
            // None exceeds five sixths of the general limit, as a first run waits for the slowest.
            let most = MOST_COST * 5 / 6;
            assert!(program.cost <= most, "{name}: about {} instructions\n{}", program.cost, program.source);
        }
        all.extend(together);
    }
    let compiled = part(all.values().collect(), |all| all.into_iter().step_by(5).collect());
    let mut total = 0;
    for program in &compiled {
        let cubin = nvrtc.compile(&program.source, ARCH).unwrap();
        // The code not covered by the estimate is small.
        let most = 24 * program.cost + (32 << 10);
        assert!(cubin.len() <= most, "{} bytes of code for a cost of {}", cubin.len(), program.cost);
        total += cubin.len();
    }
    assert!(compiled.len() < all.len() || total <= 1125 << 10, "{total} bytes of code");
}
