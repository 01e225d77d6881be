//! Times kernels at 4096 x 4096 f32 with CUDA events, over more images than fit the L2 cache; prints medians.
//!
//! `horus-cuda-bench [FILTER] [--tunings N] [--seconds S] [--from FILE]`: FILTER selects rows by a part of their name.
//! `--tunings` also measures the N best tuning candidates of each row, for at most S seconds per row, and prints the
//! best as a row for `kernels/tuning/`. `--from` takes the candidates from a JSON file, an array.
//!
//! `horus-cuda-bench --context` makes a context and exits: the least time of any process that uses a GPU.

use std::time::Duration;

use horus_core::device::{Device, Launch, LaunchInput};
use horus_core::dtype::DType;
use horus_core::error::{DeviceError, Error};
use horus_core::ir::kernel::Kernel;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::shape::{Border, Shape, Window};
use horus_cuda::CudaDevice;
use horus_cuda::measure::{KernelBench, SHAPE, TimedKernel, context, noise, whole};
use horus_cuda::tuning::{TunedFamily, Tuning, TuningEntry};
use horus_cuda::workloads::{
    conv2d, convrot_default, correlate, over, pixel_chain, product, rotate, separable, turned_back,
};

struct CudaBenchRow {
    name: &'static str,
    work: TimedKernel,
    /// Target in milliseconds, if the row has one.
    reach: Option<f32>,
}

fn rows() -> Result<Vec<CudaBenchRow>, Error> {
    let b = Border::Reflect101;
    let f = whole(SHAPE, DType::F32);
    let zero = Border::Constant(0.0);
    let row = |name, kernel, reach| CudaBenchRow { name, work: TimedKernel { kernel, inputs: 1, output: f }, reach };
    let turn = |degrees| rotate(degrees, SHAPE, Interpolation::Bilinear, DType::F32, zero);
    let mut rows = vec![
        row("correlate 3", correlate(3, 3, DType::F32, b), Some(0.055)),
        row("correlate 5", correlate(5, 5, DType::F32, b), Some(0.062)),
        row("correlate 7", correlate(7, 7, DType::F32, b), Some(0.075)),
        row("correlate 17", correlate(17, 17, DType::F32, b), Some(0.21)),
        row("correlate 43", correlate(43, 43, DType::F32, b), Some(1.15)),
        row("separable 19", separable(19, DType::F32, b), Some(0.075)),
        row("separable 43", separable(43, DType::F32, b), Some(0.13)),
        row("rotate 15", turn(15.0), None),
        row("rotate 30", turn(30.0), Some(0.065)),
        row("rotate 45", turn(45.0), None),
        row("rotate 90", turn(90.0), None),
        row("rotate 135", turn(135.0), None),
        row("turn back 0 15", turned_back([0.0, -15.0], SHAPE), None),
        row("turn back 60 75", turned_back([-60.0, -75.0], SHAPE), None),
        row("turn back 90 105", turned_back([-90.0, -105.0], SHAPE), None),
        row("pixel chain", pixel_chain(), Some(0.075)),
        row("row sum", Kernel::from(RowReduce::Sum), None),
        row("convrot orientation", convrot_default()?, None),
        row("conv2d orientation", conv2d(9, 43), Some(13.7)),
    ];
    // Pixel operations alone, and inside the filter that reads them.
    rows.push(row("product", product(), None));
    rows.push(row("separable 5", separable(5, DType::F32, b), None));
    for (name, filter) in [
        ("correlate 3 of a product", correlate(3, 3, DType::F32, b)),
        ("correlate 7 of a product", correlate(7, 7, DType::F32, b)),
        ("correlate 17 of a product", correlate(17, 17, DType::F32, b)),
        ("separable 5 of a product", separable(5, DType::F32, b)),
        ("separable 19 of a product", separable(19, DType::F32, b)),
        ("separable 43 of a product", separable(43, DType::F32, b)),
    ] {
        rows.push(row(name, over(product(), filter), None));
    }
    for r in &mut rows {
        match r.name {
            "pixel chain" => r.work.inputs = 3,
            name if name.starts_with("turn back") => r.work.inputs = 3,
            name if name.ends_with("product") => r.work.inputs = 2,
            "row sum" => r.work.output = whole(Shape { width: 1, ..SHAPE }, DType::F64),
            _ => {}
        }
    }
    Ok(rows)
}

fn measure(
    bench: &mut KernelBench,
    row: &CudaBenchRow,
    tunings: usize,
    limit: Duration,
    from: Option<&[Tuning]>,
) -> Result<(), DeviceError> {
    let others = match from {
        Some(given) => given.to_vec(),
        None if tunings > 1 => bench.candidates(&row.work),
        None => Vec::new(),
    };
    let (present, found) = bench.search(&row.work, &others, limit, false)?;
    let reach = row.reach.map_or_else(String::new, |ms| format!("{ms:.3}"));
    println!("{:<25} {:>8.4} ms   reach {reach:>7}   ({} measured)", row.name, present.ms, found.len());
    for m in found.iter().take(tunings) {
        let t = m.tuning;
        println!(
            "    {:>8.4}  block {}x{} pixels {}x{} group {} unroll {} piece {} chunk {} span {} blocks {}  registers {} spills {} shared {}",
            m.ms,
            t.bx,
            t.by,
            t.rows,
            t.cols,
            t.group,
            t.unroll,
            t.piece,
            t.chunk,
            t.span,
            t.blocks,
            m.registers,
            m.spills,
            m.shared
        );
    }
    if let (Kernel::Map(map), true) = (&row.work.kernel, tunings > 1) {
        let entry = TuningEntry {
            arch: bench.device().arch(),
            family: TunedFamily::of(map, DType::F32),
            tuning: found[0].tuning,
        };
        println!("    {}", serde_json::to_string(&entry).unwrap_or_default());
    }
    Ok(())
}

/// Sum of an image: along rows, then over the column.
fn sum(device: &CudaDevice) -> Result<(), DeviceError> {
    let (image, column) = (whole(SHAPE, DType::F32), whole(Shape { width: 1, ..SHAPE }, DType::F64));
    let one = whole(Shape::new(1, 1, 1), DType::F64);
    let pixels = noise(image);
    let mut images = Vec::new();
    for _ in 0..4 {
        let mut memory = device.allocate(pixels.len())?;
        device.write(&pixels, &mut memory, 0)?;
        images.push(memory);
    }
    let (mut partial, mut result) = (device.allocate(column.bytes())?, device.allocate(8)?);
    let mut totals = Vec::new();
    for i in 0..41 {
        totals.push(device.timed(|| {
            let input = [LaunchInput { memory: &images[i % 4], geometry: image }];
            let rows = Window::whole(SHAPE.height);
            let kernel = &Kernel::from(RowReduce::Sum);
            device.launch(Launch {
                kernel,
                inputs: &input,
                output: &mut partial,
                additional_outputs: &mut [],
                geometry: column,
                rows,
            })?;
            let input = [LaunchInput { memory: &partial, geometry: column }];
            let (kernel, rows) = (&Kernel::from(Fold::Sum), Window::new(0, 1));
            device.launch(Launch {
                kernel,
                inputs: &input,
                output: &mut result,
                additional_outputs: &mut [],
                geometry: one,
                rows,
            })
        })?);
    }
    totals.sort_by(f32::total_cmp);
    println!("{:<25} {:>8.4} ms   reach   0.022", "sum (both steps)", totals[totals.len() / 2]);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|a| a == "--context") {
        // The process and its context, nothing else.
        return Ok(context(0)?);
    }
    let option = |name: &str, default: f64| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|i| arguments.get(i + 1)).and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let filter = arguments.first().filter(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    let (tunings, seconds) = (option("--tunings", 1.0) as usize, option("--seconds", 15.0));
    let from = arguments.iter().position(|a| a == "--from").and_then(|i| arguments.get(i + 1));
    let from: Option<Vec<Tuning>> = match from {
        Some(path) => Some(serde_json::from_str(&std::fs::read_to_string(path)?)?),
        None => None,
    };
    let mut bench = KernelBench::new(0, DType::F32)?;
    println!("{}", bench.device().names().name);
    for row in rows()?.iter().filter(|r| r.name.contains(&filter)) {
        if let Err(e) = measure(&mut bench, row, tunings, Duration::from_secs_f64(seconds), from.as_deref()) {
            println!("{:<20} {e}", row.name);
        }
    }
    if "sum".contains(&filter) {
        sum(bench.device())?;
    }
    println!("{:?}", bench.device().statistics());
    Ok(())
}
