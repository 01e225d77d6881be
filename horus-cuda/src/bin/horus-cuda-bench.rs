//! Times kernels at 4096 x 4096 f32 with CUDA events, buffers rotated beyond the L2 cache, medians.
//!
//! `horus-cuda-bench [FILTER] [--tunings N] [--seconds S]`: only rows whose name contains FILTER; the N best of the
//! tuning candidates each, measuring for at most S seconds per row. The best is printed as a row for
//! `kernels/tuning/` too.

use std::time::{Duration, Instant};

use horus_core::device::{Device, Geometry, Input, Launch, Memory};
use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::kernel::Kernel;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::shape::{Border, Shape, Window};
use horus_cuda::CudaDevice;
use horus_cuda::codegen::Shapes;
use horus_cuda::conformance::{HostImage, conv2d, convrot, correlate, pixel_chain, rotate, separable};
use horus_cuda::tuning::{Entry, Family, Tuning, candidates};

const SHAPE: Shape = Shape::new(4096, 4096, 1);
/// Image sets in rotation: 4 x 64 MiB and more do not fit any L2.
const SETS: usize = 4;

struct Row {
    name: &'static str,
    kernel: Kernel,
    inputs: usize,
    output: Geometry,
    /// Milliseconds to reach.
    reach: f32,
}

fn image(shape: Shape, dtype: DType) -> Geometry {
    Geometry { shape, dtype, window: Window::whole(shape.height) }
}

fn rows() -> Vec<Row> {
    let b = Border::Reflect101;
    let f = image(SHAPE, DType::F32);
    let row = |name, kernel, reach| Row { name, kernel, inputs: 1, output: f, reach };
    let zero = Border::Constant(Scalar::F32(0.0));
    vec![
        row("correlate 3", correlate(3, 3, DType::F32, b), 0.055),
        row("correlate 5", correlate(5, 5, DType::F32, b), 0.062),
        row("correlate 7", correlate(7, 7, DType::F32, b), 0.075),
        row("correlate 17", correlate(17, 17, DType::F32, b), 0.21),
        row("correlate 43", correlate(43, 43, DType::F32, b), 1.15),
        row("separable 19", separable(19, DType::F32, b), 0.075),
        row("separable 43", separable(43, DType::F32, b), 0.13),
        row("rotate 30", rotate(30.0, SHAPE, Interpolation::Bilinear, DType::F32, zero), 0.065),
        Row { inputs: 3, ..row("pixel chain", pixel_chain(), 0.075) },
        Row {
            output: image(Shape { width: 1, ..SHAPE }, DType::F64),
            ..row("row sum", Kernel::RowReduce(RowReduce::Sum), 0.022)
        },
        row("convrot orientation", convrot(3, 43, false), 0.87),
        row("conv2d orientation", conv2d(9, 43), 13.7),
    ]
}

struct Bench {
    device: CudaDevice,
    sets: Vec<Vec<Memory>>,
}

impl Bench {
    fn new() -> Result<Bench, Box<dyn std::error::Error>> {
        let device = CudaDevice::open(0)?;
        let mut sets = Vec::new();
        for set in 0..SETS {
            let mut memories = Vec::new();
            for k in 0..4 {
                let mut m = device.allocate(SHAPE.len() * 4)?;
                // One upload of random data; the others are copies.
                match sets.first().map(|s: &Vec<Memory>| &s[0]) {
                    Some(first) => device.copy(first, &mut m, &[(0, 0, SHAPE.len() * 4)])?,
                    None => {
                        device.write(&HostImage::random(image(SHAPE, DType::F32), set as u64 + k).bytes, &mut m, 0)?
                    }
                }
                memories.push(m);
            }
            sets.push(memories);
        }
        Ok(Bench { device, sets })
    }

    /// Median milliseconds of `repeats` launches.
    fn time(&mut self, row: &Row, repeats: usize) -> Result<f32, DeviceError> {
        let geometry = image(SHAPE, DType::F32);
        let warm = 2.min(repeats);
        self.device.start_timing();
        for i in 0..repeats + warm {
            let set = &mut self.sets[i % SETS];
            let (inputs, output) = set.split_at_mut(3);
            let inputs: Vec<Input<'_>> =
                inputs.iter().take(row.inputs).map(|memory| Input { memory, geometry }).collect();
            let rows = Window::whole(row.output.shape.height);
            let (kernel, output) = (&row.kernel, &mut output[0]);
            self.device.launch(Launch { kernel, inputs: &inputs, output, geometry: row.output, rows })?;
        }
        let mut times = self.device.stop_timing()?.split_off(warm);
        times.sort_by(f32::total_cmp);
        Ok(times[times.len() / 2])
    }

    fn row(&mut self, row: &Row, tunings: usize, limit: Duration) -> Result<(), DeviceError> {
        let inputs = vec![image(SHAPE, DType::F32); row.inputs];
        let shapes = Shapes { inputs: &inputs, output: row.output, rows: Window::whole(row.output.shape.height) };
        let mut measured: Vec<(f32, Tuning, (i32, i32, u32))> = Vec::new();
        let start = Instant::now();
        let all = candidates(&row.kernel, DType::F32, self.device.arch());
        let count = all.len();
        // The present choice first, then the others spread over the whole space.
        let order = (0..count).map(|i| if i == 0 { 0 } else { 1 + (i * 7919) % (count - 1).max(1) });
        for i in order {
            if !measured.is_empty() && (tunings <= 1 || start.elapsed() > limit) {
                break;
            }
            self.device.set_tuning(Some(all[i]));
            // A candidate may need more registers or shared memory than there is: it is passed over.
            let Ok(resources) = self.device.resources(&row.kernel, &shapes) else { continue };
            match self.time(row, 3).and_then(|_| self.time(row, 15)) {
                Ok(ms) => measured.push((ms, all[i], resources)),
                Err(e) if i == 0 => return Err(e),
                Err(_) => {}
            }
        }
        let Some(&first) = measured.first() else { return Ok(()) };
        println!(
            "{:<20} {:>8.4} ms   reach {:>7.3}   ({} of {count} candidates)",
            row.name,
            first.0,
            row.reach,
            measured.len()
        );
        measured.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (ms, t, (registers, spills, shared)) in measured.iter().take(tunings) {
            println!(
                "    {ms:>8.4}  block {}x{} pixels {}x{} group {} unroll {} chunk {} span {} blocks {}  registers {registers} spills {spills} shared {shared}",
                t.bx, t.by, t.rows, t.cols, t.group, t.unroll, t.chunk, t.span, t.blocks
            );
        }
        if let (Kernel::Map(map), Some(&(_, tuning, _)), true) = (&row.kernel, measured.first(), tunings > 1) {
            let entry = Entry { arch: self.device.arch(), family: Family::of(map, DType::F32), tuning };
            println!("    {}", serde_json::to_string(&entry).unwrap_or_default());
        }
        Ok(())
    }

    /// Sum of an image: along rows, then over the column.
    fn sum(&mut self) -> Result<(), DeviceError> {
        let (whole, column) = (image(SHAPE, DType::F32), image(Shape { width: 1, ..SHAPE }, DType::F64));
        let one = image(Shape::new(1, 1, 1), DType::F64);
        let (mut partial, mut result) = (self.device.allocate(column.bytes())?, self.device.allocate(8)?);
        self.device.set_tuning(None);
        let mut totals = Vec::new();
        for i in 0..20 {
            self.device.start_timing();
            let input = [Input { memory: &self.sets[i % SETS][0], geometry: whole }];
            let rows = Window::whole(SHAPE.height);
            let kernel = &Kernel::RowReduce(RowReduce::Sum);
            self.device.launch(Launch { kernel, inputs: &input, output: &mut partial, geometry: column, rows })?;
            let input = [Input { memory: &partial, geometry: column }];
            let (kernel, rows) = (&Kernel::Fold(Fold::Sum), Window::new(0, 1));
            self.device.launch(Launch { kernel, inputs: &input, output: &mut result, geometry: one, rows })?;
            totals.push(self.device.stop_timing()?.iter().sum::<f32>());
        }
        totals.sort_by(f32::total_cmp);
        println!("{:<20} {:>8.4} ms   reach   0.022", "sum (both steps)", totals[totals.len() / 2]);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: f64| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|i| arguments.get(i + 1)).and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let filter = arguments.first().filter(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    let (tunings, seconds) = (option("--tunings", 1.0) as usize, option("--seconds", 15.0));
    let mut bench = Bench::new()?;
    println!("{}", bench.device.name());
    for row in rows().iter().filter(|r| r.name.contains(&filter)) {
        if let Err(e) = bench.row(row, tunings, Duration::from_secs_f64(seconds)) {
            println!("{:<20} {e}", row.name);
        }
    }
    if "sum".contains(&filter) {
        bench.sum()?;
    }
    println!("{:?}", bench.device.statistics());
    Ok(())
}
