//! Writes the sources and machine code of the benchmark's kernels for inspection without a GPU:
//! `cargo run -p horus-cuda --example dump -- DIRECTORY [ARCH]`, then `cuobjdump -res-usage` or
//! `nvdisasm` a file.

use std::path::PathBuf;

use horus_core::device::Geometry;
use horus_core::dtype::DType;
use horus_core::ops::geometric::Interpolation;
use horus_core::shape::{Border, Shape, Window};
use horus_cuda::codegen::{KernelLimits, Shapes, generate_bounded};
use horus_cuda::nvrtc::Nvrtc;
use horus_cuda::tuning::{Tuning, lookup};
use horus_cuda::workloads::{
    conv2d, convrot_default, correlate, pixel_chain, relaxation, rotate, separable, turned_back,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("a directory is needed")?);
    let arch = arguments.next().map_or(Ok(90), |a| a.parse())?;
    // A tuning as JSON replaces that of the tables.
    let tuning: Option<Tuning> = arguments.next().map(|t| serde_json::from_str(&t)).transpose()?;
    let only = arguments.next().unwrap_or_default();
    std::fs::create_dir_all(&directory)?;
    let nvrtc = Nvrtc::load()?;
    let shape = Shape::new(4096, 4096, 1);
    let image = Geometry { shape, dtype: DType::F32, window: Window::whole(shape.height) };
    let b = Border::Reflect101;
    let f = DType::F32;
    let zero = Border::Constant(0.0);
    let kernels = [
        ("correlate3", correlate(3, 3, f, b), 1),
        ("correlate7", correlate(7, 7, f, b), 1),
        ("correlate17", correlate(17, 17, f, b), 1),
        ("correlate43", correlate(43, 43, f, b), 1),
        ("separable19", separable(19, f, b), 1),
        ("separable43", separable(43, f, b), 1),
        ("rotate", rotate(30.0, shape, Interpolation::Bilinear, f, zero), 1),
        ("chain", pixel_chain(), 3),
        ("turned", turned_back([-60.0, -75.0], shape), 3),
        ("convrot", convrot_default()?, 1),
        ("conv2d", conv2d(9, 43), 1),
        ("relaxation", relaxation(f, 6), 3),
    ];
    for (name, kernel, inputs) in kernels.into_iter().filter(|k| k.0.contains(&only)) {
        let inputs = vec![image; inputs];
        let shapes = Shapes { inputs: &inputs, output: image, rows: image.window };
        let tuning = tuning.unwrap_or_else(|| lookup(&kernel, f, arch));
        let start = std::time::Instant::now();
        let program = generate_bounded(&kernel, &shapes, &tuning, KernelLimits { shared: 227 << 10 })?;
        let generated = start.elapsed();
        std::fs::write(directory.join(format!("{name}.cu")), &program.source)?;
        let start = std::time::Instant::now();
        let cubin = nvrtc.compile(&program.source, arch)?;
        println!(
            "{name}: generated in {generated:.1?}, compiled in {:.1?}, {} bytes of code, {} shared, {} parameters",
            start.elapsed(),
            cubin.len(),
            program.shared,
            program.params.len()
        );
        std::fs::write(directory.join(format!("{name}.cubin")), cubin)?;
    }
    Ok(())
}
