//! `horus --version`: the features of this build, and the devices that it finds.

use std::ffi::OsString;

use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;

/// The answer to `--version` alone, if `words` are that.
pub(super) fn asked(words: &[OsString]) -> Option<Result<String, String>> {
    let [word] = words else { return None };
    (word == "--version" || word == "-V").then(text)
}

fn text() -> Result<String, String> {
    let features = [
        ("cuda", cfg!(feature = "cuda")),
        ("mpi", cfg!(feature = "mpi")),
        ("zarr", cfg!(feature = "zarr")),
        ("remote", cfg!(feature = "remote")),
    ];
    let features: Vec<&str> = features.into_iter().filter_map(|(name, there)| there.then_some(name)).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let cpu = CpuDevice::new(None).map_or_else(|e| format!("no CPU: {e}"), |cpu| cpu.names().name);
    Ok(format!("horus {}\nfeatures: {features}\ncpu: {cpu}\n{}", env!("CARGO_PKG_VERSION"), gpus()))
}

#[cfg(feature = "cuda")]
fn gpus() -> String {
    match horus_cuda::CudaDevice::devices() {
        Ok(gpus) => {
            let one = |gpu: &horus_cuda::Gpu| {
                format!("cuda:{}: {}, {:.1} GB\n", gpu.ordinal, gpu.name, gpu.total as f64 / 1e9)
            };
            gpus.iter().map(one).collect()
        }
        Err(e) => format!("cuda: {e}\n"),
    }
}

#[cfg(not(feature = "cuda"))]
fn gpus() -> String {
    String::new()
}
