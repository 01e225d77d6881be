//! Times kernels at 4096 x 4096 f32 with CUDA events, buffers rotated beyond the L2 cache, medians.
//!
//! `horus-cuda-bench [FILTER] [--tunings N] [--seconds S]`: only rows whose name contains FILTER; the N best of the
//! tuning candidates each, measuring for at most S seconds per row. The best is printed as a row for
//! `kernels/tuning/` too.

use std::time::Duration;

use horus_core::device::{Device, Input, Launch};
use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::kernel::Kernel;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::shape::{Border, Shape, Window};
use horus_cuda::CudaDevice;
use horus_cuda::conformance::{HostImage, conv2d, convrot, correlate, pixel_chain, rotate, separable};
use horus_cuda::measure::{Bench, SHAPE, Work, whole};
use horus_cuda::tuning::{Entry, Family};

struct Row {
    name: &'static str,
    work: Work,
    /// Milliseconds to reach.
    reach: f32,
}

fn rows() -> Vec<Row> {
    let b = Border::Reflect101;
    let f = whole(SHAPE, DType::F32);
    let row = |name, kernel, reach| Row { name, work: Work { kernel, inputs: 1, output: f }, reach };
    let zero = Border::Constant(Scalar::F32(0.0));
    let mut rows = vec![
        row("correlate 3", correlate(3, 3, DType::F32, b), 0.055),
        row("correlate 5", correlate(5, 5, DType::F32, b), 0.062),
        row("correlate 7", correlate(7, 7, DType::F32, b), 0.075),
        row("correlate 17", correlate(17, 17, DType::F32, b), 0.21),
        row("correlate 43", correlate(43, 43, DType::F32, b), 1.15),
        row("separable 19", separable(19, DType::F32, b), 0.075),
        row("separable 43", separable(43, DType::F32, b), 0.13),
        row("rotate 30", rotate(30.0, SHAPE, Interpolation::Bilinear, DType::F32, zero), 0.065),
        row("pixel chain", pixel_chain(), 0.075),
        row("row sum", Kernel::RowReduce(RowReduce::Sum), 0.022),
        row("convrot orientation", convrot(3, 43, false), 0.87),
        row("conv2d orientation", conv2d(9, 43), 13.7),
    ];
    for r in &mut rows {
        match r.name {
            "pixel chain" => r.work.inputs = 3,
            "row sum" => r.work.output = whole(Shape { width: 1, ..SHAPE }, DType::F64),
            _ => {}
        }
    }
    rows
}

fn measure(bench: &mut Bench, row: &Row, tunings: usize, limit: Duration) -> Result<(), DeviceError> {
    let limit = if tunings > 1 { limit } else { Duration::ZERO };
    let (present, found) = bench.search(&row.work, limit, false)?;
    println!("{:<20} {:>8.4} ms   reach {:>7.3}   ({} measured)", row.name, present.ms, row.reach, found.len());
    for m in found.iter().take(tunings) {
        let t = m.tuning;
        println!(
            "    {:>8.4}  block {}x{} pixels {}x{} group {} unroll {} chunk {} span {} blocks {}  registers {} spills {} shared {}",
            m.ms,
            t.bx,
            t.by,
            t.rows,
            t.cols,
            t.group,
            t.unroll,
            t.chunk,
            t.span,
            t.blocks,
            m.registers,
            m.spills,
            m.shared
        );
    }
    if let (Kernel::Map(map), true) = (&row.work.kernel, tunings > 1) {
        let entry = Entry { arch: bench.device().arch(), family: Family::of(map, DType::F32), tuning: found[0].tuning };
        println!("    {}", serde_json::to_string(&entry).unwrap_or_default());
    }
    Ok(())
}

/// Sum of an image: along rows, then over the column.
fn sum(device: &CudaDevice) -> Result<(), DeviceError> {
    let (image, column) = (whole(SHAPE, DType::F32), whole(Shape { width: 1, ..SHAPE }, DType::F64));
    let one = whole(Shape::new(1, 1, 1), DType::F64);
    let pixels = HostImage::random(image, 3).bytes;
    let mut images = Vec::new();
    for _ in 0..4 {
        let mut memory = device.allocate(pixels.len())?;
        device.write(&pixels, &mut memory, 0)?;
        images.push(memory);
    }
    let (mut partial, mut result) = (device.allocate(column.bytes())?, device.allocate(8)?);
    let mut totals = Vec::new();
    for i in 0..20 {
        device.start_timing();
        let input = [Input { memory: &images[i % 4], geometry: image }];
        let rows = Window::whole(SHAPE.height);
        let kernel = &Kernel::RowReduce(RowReduce::Sum);
        device.launch(Launch { kernel, inputs: &input, output: &mut partial, geometry: column, rows })?;
        let input = [Input { memory: &partial, geometry: column }];
        let (kernel, rows) = (&Kernel::Fold(Fold::Sum), Window::new(0, 1));
        device.launch(Launch { kernel, inputs: &input, output: &mut result, geometry: one, rows })?;
        totals.push(device.stop_timing()?.iter().sum::<f32>());
    }
    totals.sort_by(f32::total_cmp);
    println!("{:<20} {:>8.4} ms   reach   0.022", "sum (both steps)", totals[totals.len() / 2]);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: f64| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|i| arguments.get(i + 1)).and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let filter = arguments.first().filter(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    let (tunings, seconds) = (option("--tunings", 1.0) as usize, option("--seconds", 15.0));
    let mut bench = Bench::new(0, DType::F32)?;
    println!("{}", bench.device().name());
    for row in rows().iter().filter(|r| r.name.contains(&filter)) {
        if let Err(e) = measure(&mut bench, row, tunings, Duration::from_secs_f64(seconds)) {
            println!("{:<20} {e}", row.name);
        }
    }
    if "sum".contains(&filter) {
        sum(bench.device())?;
    }
    println!("{:?}", bench.device().statistics());
    Ok(())
}
