//! Compiles generated kernels for a GPU of AMD, without one: `scripts/hip.sh`.
//!
//! Needs clang with AMD's target, whose name is in `HORUS_CLANG`.

#[allow(dead_code, reason = "shared with tests that run the cases")]
mod conformance;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use horus_cuda::codegen::{KernelLimits, Shapes, generate_bounded};
use horus_cuda::tuning::lookup;
use rayon::prelude::*;

use conformance::some;

const HEAD: &str = include_str!("../../kernels/hip.h");

/// The shared memory of a block of threads on any of AMD's GPUs.
const SHARED: usize = 64 << 10;

#[test]
fn kernels_compile_for_amd() {
    let clang = std::env::var("HORUS_CLANG").expect("HORUS_CLANG names a clang++ with AMD's target");
    let dir = tempfile::tempdir().unwrap();
    let mut sources = BTreeMap::new();
    for case in some([1, 8]) {
        let dtype = case.inputs.first().map_or(case.output.dtype, |g| g.dtype);
        let shapes = Shapes { inputs: &case.inputs, output: case.output, rows: case.rows };
        let tuning = lookup(&case.kernel, dtype, 80);
        let program = generate_bounded(&case.kernel, &shapes, &tuning, KernelLimits { shared: SHARED }).unwrap();
        sources.insert(program.source, case.name.clone());
    }
    let total = sources.len();
    let next = AtomicUsize::new(0);
    let failures: Vec<String> = sources
        .into_par_iter()
        .filter_map(|(source, name)| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let path = dir.path().join(format!("{number}.hip"));
            std::fs::write(&path, [HEAD, &source].concat()).unwrap();
            // Linked, so that a function that is not there is an error.
            let out = Command::new(&clang)
                .args(["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib"])
                .args(["--offload-arch=gfx1100", "-std=c++17", "-O2", "-ffp-contract=off", "-w", "-o"])
                .arg(path.with_extension("o"))
                .arg(&path)
                .output()
                .unwrap_or_else(|e| panic!("{clang}: {e}"));
            let errors = String::from_utf8_lossy(&out.stderr);
            let first: Vec<&str> = errors.lines().filter(|line| line.contains("error")).take(4).collect();
            (!out.status.success()).then(|| format!("{name}: {}", first.join("\n")))
        })
        .collect();
    println!("{total} kernels compiled");
    assert!(failures.is_empty(), "{} of {total} do not compile:\n{}", failures.len(), failures.join("\n"));
}
