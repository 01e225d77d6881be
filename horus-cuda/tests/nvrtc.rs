//! Every generated kernel of the representative set compiles, on machines without a GPU.
//!
//! Needs the run-time compiler: `pip install nvidia-cuda-nvrtc`, and `HORUS_NVRTC` set to its `libnvrtc.so`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use horus_core::kernel::Kernel;
use horus_cuda::codegen::{Limits, Shapes, generate};
use horus_cuda::conformance::cases;
use horus_cuda::nvrtc::Nvrtc;
use horus_cuda::tuning::lookup;

#[test]
fn every_kernel_compiles_for_every_architecture() {
    let nvrtc = match Nvrtc::load() {
        Ok(n) => n,
        Err(e) => panic!("{e}"),
    };
    let newest = *nvrtc.architectures().last().unwrap();
    let mut sources: BTreeMap<(u32, String), String> = BTreeMap::new();
    for (number, case) in cases().into_iter().enumerate() {
        if matches!(case.kernel, Kernel::Merge | Kernel::Source(_)) {
            continue;
        }
        // Architectures differ in little that these sources see: one compiles all, the others a part of the sweeps.
        let sweep = !["correlate", "separable", "conv", "mixed", "row_"].iter().any(|n| case.name.contains(n));
        for arch in [80, 90, newest] {
            if sweep && arch != 90 && number % 7 != 0 {
                continue;
            }
            let dtype = case.inputs.first().map_or(case.output.dtype, |g| g.dtype);
            let tuning = lookup(&case.kernel, dtype, arch);
            let shapes = Shapes { inputs: &case.inputs, output: case.output, rows: case.rows };
            let limits = Limits { shared: if arch == 90 { 227 << 10 } else { 99 << 10 } };
            let program = generate(&case.kernel, &shapes, &tuning, limits).unwrap();
            assert!(
                program.shared as usize <= limits.shared,
                "{}: {} bytes of shared memory",
                case.name,
                program.shared
            );
            assert!(program.params.len() <= 4096, "{}: {} bytes of parameters", case.name, program.params.len());
            sources.entry((arch, program.source)).or_insert(case.name.clone());
        }
    }
    for arch in [80, 90, newest] {
        sources.insert((arch, horus_cuda::pieces::program(&[]).source), "pieces".into());
    }
    let jobs: Vec<_> = sources.into_iter().collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            s.spawn(|| {
                while let Some(((arch, source), name)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(e) = nvrtc.compile(source, *arch) {
                        failures.lock().unwrap().push(format!("{name} for sm_{arch}: {e}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} do not compile:\n{}", failures.len(), jobs.len(), failures.join("\n"));
}
