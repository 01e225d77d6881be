//! Times the CPU kernels: `cargo run --release --example kernels [side]`. Best of several runs, in milliseconds.

use std::time::Instant;

use horus_core::buffer::HostBuffer;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::{Device, Geometry, Input, Launch, Memory};
use horus_core::dtype::{DType, Scalar};
use horus_core::kernel::{Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Source, Stage, Val};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::shape::{Border, Shape, Window};

const BORDER: Border = Border::Reflect101;
const TYPE: DType = DType::F32;

fn taps(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919) % 101) as f64 / (101.0 * n as f64)).collect()
}

fn leaf(op: LeafOp) -> Leaf {
    Leaf { op, dtype: TYPE }
}

fn filter(source: Source, filter: Filter) -> Leaf {
    leaf(LeafOp::Correlate(source, filter, BORDER))
}

fn push(k: &mut MapKernel, op: PixelOp, args: Vec<Val>) -> Val {
    k.code.push(Instr { op: InstrOp::Pixel(op), operand: TYPE, result: TYPE, args });
    k.result = Some(Val::Instr(k.code.len() - 1));
    Val::Instr(k.code.len() - 1)
}

fn constant(v: f32) -> Val {
    Val::Const(Scalar::F32(v))
}

fn dense(h: usize, w: usize) -> MapKernel {
    let leaves = vec![filter(Source::Input(0), Filter::dense(h, w, taps(h * w)))];
    MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() }
}

fn separable(lengths: &[usize], each: usize) -> MapKernel {
    let mut k = MapKernel { inputs: 1, result: Some(Val::Leaf(0)), ..MapKernel::default() };
    for (s, &n) in lengths.iter().enumerate() {
        k.stages.push(Stage { source: Source::Input(0), filter: Filter::row(taps(n)), border: BORDER });
        for f in 0..each {
            let weights: Vec<f64> = taps(n).iter().map(|t| t * (f + 1) as f64).collect();
            k.leaves.push(filter(Source::Stage(s), Filter::column(weights)));
        }
    }
    k
}

/// Three row passes, six column filters each, and the maximum of nine quotients: one angle of ConvRot.
fn lines() -> MapKernel {
    let mut k = separable(&[19, 31, 43], 6);
    let mut best = None;
    for pair in 0..9 {
        let args = vec![Val::Leaf(2 * pair + 1), Val::Leaf(2 * pair), constant(1e-3)];
        let q = push(&mut k, PixelOp::AbsDiv, args);
        let q = push(&mut k, PixelOp::Mul, vec![q, constant(0.5 + pair as f32)]);
        best = Some(best.map_or(q, |b| push(&mut k, PixelOp::Max, vec![b, q])));
    }
    k
}

fn pixels() -> MapKernel {
    let mut k = MapKernel { inputs: 3, ..MapKernel::default() };
    k.leaves = (0..3).map(|i| leaf(LeafOp::Load(i))).collect();
    let q = push(&mut k, PixelOp::Div, vec![Val::Leaf(0), Val::Leaf(1)]);
    let q = push(&mut k, PixelOp::Abs, vec![q]);
    let q = push(&mut k, PixelOp::Mul, vec![q, constant(0.7)]);
    push(&mut k, PixelOp::Max, vec![Val::Leaf(2), q]);
    k
}

fn ratio() -> MapKernel {
    let mut k = pixels();
    k.code.clear();
    push(&mut k, PixelOp::AbsDiv, vec![Val::Leaf(0), Val::Leaf(1), constant(1e-3)]);
    k
}

fn main() {
    let side: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1024);
    let only = std::env::args().nth(2).unwrap_or_default();
    let shape = Shape::new(side, side, 1);
    let geometry = Geometry { shape, dtype: TYPE, window: Window::whole(side) };
    let pictures: Vec<Memory> = (1..4)
        .map(|s| {
            let v: Vec<f32> = (0..shape.len()).map(|i| ((i * (s + 12_345)) % 1009) as f32 / 1009.0).collect();
            Memory::Host(HostBuffer::from_slice(&v))
        })
        .collect();
    let sparse: Vec<(i32, i32)> = (0..76).map(|i| (i % 19 - 9, i / 4 - 9)).collect();
    let cases = [
        ("separable 19", separable(&[19], 1)),
        ("separable 43", separable(&[43], 1)),
        ("row 43", dense(1, 43)),
        ("column 43", dense(43, 1)),
        ("dense 3x3", dense(3, 3)),
        ("dense 7x7", dense(7, 7)),
        ("dense 17x17", dense(17, 17)),
        ("sparse 76", {
            let mut k = dense(1, 1);
            k.leaves = vec![filter(Source::Input(0), Filter::sparse(sparse, taps(76)))];
            k
        }),
        ("max(acc, abs(a/b)*k)", pixels()),
        ("absdiv(a, b, eps)", ratio()),
        ("lines, 651 taps", lines()),
    ];
    let device = CpuDevice::new(Some(2)).expect("threads");
    println!("{side} x {side} f32, milliseconds on 1 and 2 threads, {}", device.name());
    for (name, kernel) in cases.into_iter().filter(|(n, _)| n.contains(&only)) {
        let inputs: Vec<Input<'_>> =
            pictures.iter().take(kernel.inputs).map(|memory| Input { memory, geometry }).collect();
        let kernel = Kernel::Map(kernel);
        let times = [1, 2].map(|threads| {
            let device = CpuDevice::new(Some(threads)).expect("threads");
            let mut output = Memory::Host(HostBuffer::zeroed(geometry.bytes()));
            let mut best = f64::INFINITY;
            let begin = Instant::now();
            while begin.elapsed().as_secs_f64() < 0.5 {
                let start = Instant::now();
                let rows = Window::whole(side);
                let launch = Launch { kernel: &kernel, inputs: &inputs, output: &mut output, geometry, rows };
                device.launch(launch).expect("launch");
                best = best.min(start.elapsed().as_secs_f64());
            }
            best * 1e3
        });
        println!("{name:24} {:8.3} {:8.3}", times[0], times[1]);
    }
}
