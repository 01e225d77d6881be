//! Compiles every generated kernel of the representative set for an architecture, without a GPU.
//!
//! Needs the run-time compiler: `pip install nvidia-cuda-nvrtc`, and `HORUS_NVRTC` set to its
//! `libnvrtc.so`.

#[allow(dead_code, reason = "shared with tests that run the cases")]
mod conformance;

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use horus_cuda::codegen::{KernelPart, Shapes, generate_bounded, generate_part};
use horus_cuda::nvrtc::Nvrtc;
use horus_cuda::shipped::limits;
use horus_cuda::tuning::all_sizes;

use conformance::some;

/// The part that a process compiles, and the number of parts.
const SHARD: &str = "HORUS_TEST_SHARD";

/// The cards in use: A100, A10 and RTX 30, L4 and RTX 40, H100 and H200, B200, RTX 50.
const ARCHITECTURES: [u32; 6] = [80, 86, 89, 90, 100, 120];

/// A failure in the compiler ends only one process, and each core gets one.
#[test]
fn every_kernel_compiles() {
    if let Ok(text) = std::env::var(SHARD) {
        let (shard, of) = text.split_once('/').unwrap();
        return compile_shard(shard.parse().unwrap(), of.parse().unwrap());
    }
    let of = std::thread::available_parallelism().map_or(1, |n| n.get());
    let start = |shard: usize| -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["every_kernel_compiles", "--exact", "--nocapture"])
            .env(SHARD, format!("{shard}/{of}"))
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..of).map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success(), "a part does not compile: see above");
    }
}

fn compile_shard(shard: usize, of: usize) {
    let nvrtc = match Nvrtc::load() {
        Ok(n) => n,
        Err(e) => panic!("{e}"),
    };
    let known: Vec<u32> = ARCHITECTURES.into_iter().filter(|arch| nvrtc.architectures().contains(arch)).collect();
    assert!(known.contains(&90), "NVRTC compiles for {known:?}");
    let mut sources: BTreeMap<(u32, String), String> = BTreeMap::new();
    // Architectures differ little for these sources, so each kernel is compiled for one of them, in turn. The host's compiler compiles
    // a fortieth of them, the GPU tests all: here a part.
    for (number, case) in some([6, 56]).into_iter().enumerate() {
        let arch = known[number % known.len()];
        let dtype = case.inputs.first().map_or(case.output.dtype, |g| g.dtype);
        let sizes = all_sizes(&case.kernel, dtype, arch);
        let tuning = sizes[number / known.len() % sizes.len()];
        let shapes = Shapes { inputs: &case.inputs, output: case.output, rows: case.rows };
        let limits = limits(arch).unwrap();
        let program = generate_bounded(&case.kernel, &shapes, &tuning, limits).unwrap();
        assert!(program.shared as usize <= limits.shared, "{}: {} bytes of shared memory", case.name, program.shared);
        assert!(program.params.len() <= 4096, "{}: {} bytes of parameters", case.name, program.params.len());
        sources.entry((arch, program.source)).or_insert(case.name.clone());
        // The host's compiler has every form of the parts; here are some in NVRTC's own terms.
        for part in [KernelPart::Math, KernelPart::Memory].into_iter().filter(|_| number.is_multiple_of(42)) {
            if let Some((_, program)) = generate_part(part, &case.kernel, &shapes, &tuning, limits).unwrap() {
                sources.insert((arch, program.source), format!("{part:?} of {}", case.name));
            }
        }
    }
    for arch in known {
        sources.insert((arch, horus_cuda::pieces::program(&[]).source), "pieces".into());
    }
    let jobs: Vec<_> = sources.into_iter().collect();
    let total = jobs.len();
    let mine = jobs.into_iter().enumerate().filter(|(i, _)| i % of == shard).map(|(_, job)| job);
    let mut took = Vec::new();
    let failures: Vec<String> = mine
        .filter_map(|((arch, source), name)| {
            let start = Instant::now();
            let failed = nvrtc.compile(&source, arch).err();
            let name = format!("{name} for sm_{arch}");
            took.push((start.elapsed(), name.clone()));
            failed.map(|e| format!("{name}: {e}"))
        })
        .collect();
    // Shows the slowest kernels.
    let all: Duration = took.iter().map(|(took, _)| *took).sum();
    took.sort();
    println!("{} of {total} compiled in {all:.0?}, the longest:", took.len());
    took.iter().rev().take(8).for_each(|(took, name)| println!("{took:.1?} {name}"));
    assert!(failures.is_empty(), "{} of {total} do not compile:\n{}", failures.len(), failures.join("\n"));
}
