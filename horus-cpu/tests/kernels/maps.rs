//! Map kernels against the oracle of kernels, for every instruction set and partition.

mod filters;
mod leaves;

use horus_base::dtype::{Arithmetic, Conversion, DType, Pixel, Scalar};
use horus_base::shape::{Axis, Border, Shape, Window};
use horus_base::{dispatch, dispatch_float};
use horus_cpu::device::CpuDevice;
use horus_cpu::simd::Isa;
use horus_host::buffer::HostBuffer;
use horus_host::device::{Device, Geometry, Launch, LaunchInput, Memory};
use horus_plan::ir::kernel::{FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Val};
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_plan::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Reduce};
use horus_plan::ops::pixel::{PixelKind, PixelOp, TABLE};
use horus_plan::ops::planes::PlaneMap;
use horus_testing::cases::covering;
use horus_testing::reference::kernel::{HostImage, evaluate};

struct KernelRandom(u64);

impl KernelRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }
    fn unit(&mut self) -> f64 {
        (self.next() % 20_001) as f64 / 10_000.0 - 1.0
    }
}

/// A test image, whole.
struct KernelImage {
    memory: Memory,
    geometry: Geometry,
}

impl KernelImage {
    fn random(shape: Shape, dtype: DType, seed: u64) -> KernelImage {
        let mut r = KernelRandom(seed);
        let memory = dispatch!(dtype, T => {
            let special = [T::ZERO, T::ONE, T::LOWEST, T::HIGHEST, T::from_f64(-0.0), T::from_f64(3.0), T::ZERO.div(T::ZERO)];
            let v: Vec<T> = (0..shape.len())
                .map(|_| match r.next() % 40 {
                    k @ 0..7 if !dtype.is_float() => special[k as usize],
                    0 => T::from_f64(-0.0),
                    _ if dtype.is_float() => T::from_f64(r.unit()),
                    _ => T::from_f64(r.unit() * 300.0),
                })
                .collect();
            HostBuffer::from_slice(&v)
        });
        KernelImage::new(shape, dtype, memory)
    }

    fn new(shape: Shape, dtype: DType, memory: HostBuffer) -> KernelImage {
        let geometry = Geometry { shape, dtype, window: Window::whole(shape.height) };
        KernelImage { memory: Memory::Host(memory), geometry }
    }

    /// The input of the oracle.
    fn to_host_image(&self) -> HostImage {
        HostImage { geometry: self.geometry, bytes: self.memory.host().unwrap().bytes().to_vec() }
    }

    /// The rows of `window` only, wrapped rows beyond the image included.
    fn part(&self, window: Window) -> KernelImage {
        let Geometry { shape, dtype, .. } = self.geometry;
        let memory = dispatch!(dtype, T => {
            let (mut v, held): (Vec<T>, _) = (Vec::new(), self.to_host_image());
            for c in 0..shape.planes() {
                for y in window.start..window.end {
                    let y = y.rem_euclid(shape.height.cast_signed());
                    v.extend((0..shape.line()).map(|x| held.get::<T>(c * shape.samples + x % shape.samples, y, x / shape.samples)));
                }
            }
            HostBuffer::from_slice(&v)
        });
        KernelImage { memory: Memory::Host(memory), geometry: Geometry { shape, dtype, window } }
    }
}

fn run(d: &CpuDevice, k: &Kernel, inputs: &[KernelImage], shape: Shape, dtype: DType, rows: Window) -> KernelImage {
    let geometry = Geometry { shape, dtype, window: rows };
    // Ones are found where nothing is written.
    let mut output = Memory::Host(HostBuffer::from_slice(&vec![1u8; geometry.bytes()]));
    let inputs: Vec<LaunchInput<'_>> =
        inputs.iter().map(|p| LaunchInput { memory: &p.memory, geometry: p.geometry }).collect();
    d.launch(Launch { kernel: k, inputs: &inputs, output: &mut output, additional_outputs: &mut [], geometry, rows })
        .unwrap();
    KernelImage { memory: output, geometry }
}

/// Checks `k` for every instruction set, on one and three threads, over whole images and over
/// strips.
fn check(k: &MapKernel, inputs: &[KernelImage], dtype: DType, what: &str) {
    checked(k, inputs, dtype, what);
    if k.knows_samples() {
        let samples = 2 + inputs[0].geometry.shape.len() % 4;
        let shape = |p: &KernelImage| Shape { channels: 1, samples, ..p.geometry.shape };
        let inputs: Vec<KernelImage> =
            inputs.iter().map(|p| KernelImage::random(shape(p), p.geometry.dtype, 3)).collect();
        checked(k, &inputs, dtype, &format!("{what}, {samples} samples"));
    }
}

fn checked(k: &MapKernel, inputs: &[KernelImage], dtype: DType, what: &str) {
    checked_as(k, inputs, (inputs[0].geometry.shape, dtype), what);
}

fn checked_as(k: &MapKernel, inputs: &[KernelImage], made: (Shape, DType), what: &str) {
    launches(&Kernel::Map(k.clone()), k, inputs, made, what);
}

/// Checks a kernel, which is `k` or iterations of it.
fn launches(kernel: &Kernel, k: &MapKernel, inputs: &[KernelImage], (shape, dtype): (Shape, DType), what: &str) {
    let whole = Window::whole(shape.height);
    let mut want = HostImage::zeroed(Geometry { shape, dtype, window: whole });
    let held: Vec<HostImage> = inputs.iter().map(KernelImage::to_host_image).collect();
    evaluate(kernel, &held, &mut want, whole);
    let want = KernelImage { memory: Memory::Host(HostBuffer::from_slice(&want.bytes)), geometry: want.geometry };
    let compare = |got: &KernelImage, how: &str| {
        let want = want.part(got.geometry.window).to_host_image();
        if let Some((at, g, w)) = got.to_host_image().difference(&want) {
            panic!("{what}, {how}: {g} instead of {w} at pixel {at} of rows {} of {shape}", got.geometry.window);
        }
    };
    for isa in Isa::available() {
        for threads in [1, 3] {
            let d = CpuDevice::new(Some(threads)).unwrap().with_isa(isa);
            compare(&run(&d, kernel, inputs, shape, dtype, whole), &format!("{isa:?}, {threads} threads"));
            if threads > 1 {
                continue;
            }
            let h = shape.height.cast_signed();
            for rows in [Window::new(0, h / 2), Window::new(h / 3, h - h / 4), Window::new(h - 1, h)] {
                let parts: Vec<KernelImage> = (0..inputs.len())
                    .map(|i| inputs[i].part(kernel.footprint(i, rows, shape, inputs[i].geometry.shape)))
                    .collect();
                if rows.is_empty() {
                    continue;
                }
                compare(&run(&d, kernel, &parts, shape, dtype, rows), &format!("{isa:?}, rows {rows}"));
                let wraps = |l: &Leaf| l.reach(&k.stages).is_some_and(|(_, w)| w);
                if k.leaves.iter().all(wraps) {
                    let virtual_rows = |p: &KernelImage| p.part(rows.grown(100, 100));
                    let parts: Vec<KernelImage> = inputs.iter().map(virtual_rows).collect();
                    compare(&run(&d, kernel, &parts, shape, dtype, rows), &format!("{isa:?}, virtual rows of {rows}"));
                }
            }
        }
    }
}

fn borders() -> [Border; 5] {
    Border::all(0.75)
}

/// The sum of all leaves.
fn total(mut k: MapKernel, dtype: DType) -> MapKernel {
    let mut sum = Val::Leaf(0);
    for l in 1..k.leaves.len() {
        let args = vec![sum, Val::Leaf(l)];
        k.code.push(Instr { op: InstrOp::Pixel(PixelOp::Add), operand: dtype, result: dtype, args });
        sum = Val::Instr(k.code.len() - 1);
    }
    k.result = Some(sum);
    k
}

#[test]
fn every_pixel_operation_matches_its_definition() {
    let sizes = [(5, 9), (67, 1), (200, 2), (129, 9)];
    for [dtype, row, size] in covering([DType::ALL.len(), TABLE.len(), sizes.len()]) {
        let (dtype, row, (width, constant)) = (DType::ALL[dtype], &TABLE[row], sizes[size]);
        let shape = Shape::new(3, width, 1);
        let mask = row.kind == PixelKind::Select;
        let inputs: Vec<KernelImage> =
            (0..row.op.arity()).map(|i| KernelImage::random(shape, row.op.operand(i, dtype), 10 + i as u64)).collect();
        let leaves = (0..inputs.len()).map(|i| Leaf { op: LeafOp::Load(i), dtype: inputs[i].geometry.dtype }).collect();
        let args = (0..inputs.len())
            .map(|i| match i == constant && !mask {
                true => Val::Const(Scalar::from_f64(dtype, 0.5)),
                false => Val::Leaf(i),
            })
            .collect();
        let result = row.op.result(dtype);
        let code = vec![Instr { op: InstrOp::Pixel(row.op), operand: dtype, result, args }];
        let k = MapKernel { inputs: inputs.len(), leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
        check(&k, &inputs, result, &format!("{} {dtype}", row.name));
    }
}

/// Random bit patterns, and moderate values.
fn wild(shape: Shape, dtype: DType, seed: u64) -> KernelImage {
    let mut state = seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let value = |r: u64, bits: u64| match (dtype, r % 3) {
        (DType::F32, 0) => f64::from(f32::from_bits(bits as u32)),
        (_, 0) => f64::from_bits(bits),
        (_, 1) => (bits >> 11) as f64 / (1u64 << 48) as f64 - 16.0,
        _ => (bits >> 11) as f64 / (1u64 << 53) as f64,
    };
    let memory = dispatch!(dtype, T => {
        HostBuffer::from_slice(&(0..shape.len()).map(|_| T::from_f64(value(next(), next()))).collect::<Vec<T>>())
    });
    KernelImage::new(shape, dtype, memory)
}

#[test]
fn transcendental_functions_have_the_same_bits_on_every_instruction_set() {
    let shape = Shape::new(2, 10_007, 1);
    for dtype in [DType::F32, DType::F64, DType::U8, DType::U32, DType::I8, DType::I32] {
        let inputs = [wild(shape, dtype, 1), wild(shape, dtype, 2)];
        for row in TABLE.iter().filter(|row| row.op.is_transcendental()) {
            for second in [Val::Leaf(1), Val::Const(Scalar::from_f64(dtype, 2.2))] {
                let args = [Val::Leaf(0), second][..row.op.arity()].to_vec();
                let k = MapKernel {
                    inputs: 2,
                    leaves: (0..2).map(|i| Leaf { op: LeafOp::Load(i), dtype }).collect(),
                    code: vec![Instr { op: InstrOp::Pixel(row.op), operand: dtype, result: dtype, args }],
                    result: Some(Val::Instr(0)),
                    ..MapKernel::default()
                };
                check(&k, &inputs, dtype, &format!("{} {dtype}", row.name));
            }
        }
    }
}

/// Some samples of interleaved pixels, single levels of them, and other images, in kernels of one result, and of as many as
/// interleaved pixels have.
#[test]
fn samples_of_pixels_are_read_and_made_one_by_one() {
    for [dtype, samples, levels] in covering([DType::ALL.len(), 5, 2]) {
        let (dtype, samples) = (DType::ALL[dtype], samples + 2);
        // More than the pixels of a tile.
        let plane = Shape::volume(1 + 2 * levels, 9, 271, 1);
        let pixels = Shape { samples, ..plane };
        let inputs = [KernelImage::random(pixels, dtype, 5), KernelImage::random(plane, dtype, 6)];
        let sample = |c: usize| LeafOp::LoadPlane(0, PlaneMap::channel(pixels.deinterleaved(), c));
        let beyond = PlaneMap::levels(pixels.deinterleaved(), 1, 1, 1, Border::Constant(3.0));
        let beyond = LeafOp::LoadPlane(0, PlaneMap { channel: Some(samples - 1), ..beyond });
        let ops = [sample(1), LeafOp::Load(1), sample(0), LeafOp::LoadPlane(0, PlaneMap::one(samples - 1)), beyond];
        let leaves = ops.map(|op| Leaf { op, dtype }).to_vec();
        let instr = |op, args| Instr { op: InstrOp::Pixel(op), operand: dtype, result: dtype, args };
        let code = vec![
            instr(PixelOp::Max, vec![Val::Leaf(0), Val::Leaf(1)]),
            instr(PixelOp::AbsDiff, vec![Val::Instr(0), Val::Leaf(2)]),
            instr(PixelOp::Min, vec![Val::Leaf(3), Val::Leaf(4)]),
        ];
        let values =
            [Val::Instr(1), Val::Leaf(0), Val::Instr(2), Val::Leaf(1), Val::Const(Scalar::from_f64(dtype, 7.0))];
        let kernel = MapKernel { inputs: 2, leaves, code, ..MapKernel::default() };
        for value in values {
            let one = MapKernel { result: Some(value), ..kernel.clone() };
            checked_as(&one, &inputs, (plane, dtype), &format!("{value:?} of {pixels} {dtype}"));
        }
        // A sum as of a filter along levels, of channels.
        if dtype.is_float() {
            let leaves: Vec<Leaf> = (0..samples).map(|c| Leaf { op: sample(c), dtype }).collect();
            let mut weighed = MapKernel { inputs: 2, leaves, ..MapKernel::default() };
            let mut sum = Val::Const(Scalar::from_f64(dtype, 0.0));
            for c in 0..samples {
                weighed
                    .code
                    .push(instr(PixelOp::MulAdd, vec![Val::Leaf(c), Val::Const(Scalar::from_f64(dtype, 2.0)), sum]));
                sum = Val::Instr(c);
            }
            weighed.result = Some(sum);
            checked_as(&weighed, &inputs, (plane, dtype), &format!("the weighed sum of {pixels} {dtype}"));
        }
        for first in 0..values.len() {
            let mut made = (0..samples).map(|c| values[(first + 2 * c) % values.len()]);
            let one =
                MapKernel { result: made.next(), additional_results: made.collect(), woven: true, ..kernel.clone() };
            checked_as(&one, &inputs, (pixels, dtype), &format!("made from {first} on, {pixels} {dtype}"));
        }
    }
}

#[test]
fn every_conversion_matches_its_definition() {
    for from in DType::ALL {
        for to in DType::ALL {
            let shape = Shape::new(5, 301, 1);
            let mut input = KernelImage::random(shape, from, 3);
            if from.is_float() {
                let mut r = KernelRandom(9);
                let b = input.memory.host_mut().unwrap();
                let scale = [0.5, 1.0, 3.7, 1e3, 1e5, 1e10, 1e30];
                let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 254.5, 255.5, 65534.5, 2147483647.5, -0.5];
                let mut value =
                    |i: usize| special.get(i).copied().unwrap_or_else(|| (r.unit() * 40.0).round() * scale[i % 7]);
                dispatch_float!(from, T => {
                    b.as_mut_slice::<T>().iter_mut().enumerate().for_each(|(i, v)| *v = T::from_f64(value(i)));
                });
            }
            for rule in [Conversion::Nearest, Conversion::Cast] {
                let op = InstrOp::Convert(rule);
                let k = MapKernel {
                    inputs: 1,
                    leaves: vec![Leaf { op: LeafOp::Load(0), dtype: from }],
                    code: vec![Instr { op, operand: from, result: to, args: vec![Val::Leaf(0)] }],
                    result: Some(Val::Instr(0)),
                    ..MapKernel::default()
                };
                check(&k, std::slice::from_ref(&input), to, &format!("{rule:?} {from} to {to}"));
            }
        }
    }
}

#[test]
fn bare_leaves_and_constants_are_results() {
    for dtype in DType::ALL {
        let inputs = || [KernelImage::random(Shape::new(6, 77, 3), dtype, 4)];
        let leaf = |op| MapKernel {
            inputs: 1,
            leaves: vec![Leaf { op, dtype }],
            result: Some(Val::Leaf(0)),
            ..MapKernel::default()
        };
        check(&leaf(LeafOp::Load(0)), &inputs(), dtype, "load");
        check(&leaf(LeafOp::LoadPlane(0, PlaneMap::one(2))), &inputs(), dtype, "channel");
        let fill = MapKernel { result: Some(Val::Const(Scalar::from_f64(dtype, 7.0))), ..leaf(LeafOp::Load(0)) };
        check(&fill, &inputs(), dtype, "fill");
        for axis in [Axis::Rows, Axis::Columns, Axis::Channels] {
            let index = Val::Index(axis, dtype);
            let alone = MapKernel { result: Some(index), ..leaf(LeafOp::Load(0)) };
            check(&alone, &inputs(), dtype, &format!("index {axis}"));
            let code = [(PixelOp::Add, vec![Val::Leaf(0), index]), (PixelOp::Sub, vec![index, Val::Instr(0)])];
            let instr = |(op, args)| Instr { op: InstrOp::Pixel(op), operand: dtype, result: dtype, args };
            let read =
                MapKernel { code: code.map(instr).to_vec(), result: Some(Val::Instr(1)), ..leaf(LeafOp::Load(0)) };
            check(&read, &inputs(), dtype, &format!("{axis} and pixels"));
        }
    }
}

#[test]
fn leaves_of_all_kinds_meet_in_one_kernel() {
    for dtype in DType::ALL {
        let shape = Shape::new(37, 600, 2);
        let border = Border::Reflect101;
        let map = Affine::new(rotation(10.0, shape), shape).unwrap();
        let window = Filter::dense(3, 5, vec![1.0; 15]);
        let mut ops = vec![
            LeafOp::OrderFilter(0, MedianSize::Three.into(), border),
            LeafOp::Flip(0, Flip::Both),
            LeafOp::OrderFilter(0, Generalized { window, combine: Combine::Pixel, reduce: Reduce::Min }.into(), border),
            LeafOp::Warp(0, map, Interpolation::Bilinear, border.into()),
            LeafOp::Load(0),
        ];
        if dtype.is_float() {
            ops.push(LeafOp::Correlate(FilterSource::Input(0), Filter::dense(2, 3, vec![0.25; 6]), border));
        }
        let leaves: Vec<Leaf> = ops.into_iter().map(|op| Leaf { op, dtype }).collect();
        let input = || [KernelImage::random(shape, dtype, 11)];
        for l in &leaves {
            let k = MapKernel { inputs: 1, leaves: vec![l.clone()], ..MapKernel::default() };
            check(&total(k, dtype), &input(), dtype, &format!("{:?}", l.op));
        }
        check(&total(MapKernel { inputs: 1, leaves, ..MapKernel::default() }, dtype), &input(), dtype, "all leaves");
    }
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let (shape, dtype) = (Shape::new(8, 9, 1), DType::F32);
    let input = KernelImage::random(shape, dtype, 1);
    let filter = LeafOp::Correlate(FilterSource::Input(0), Filter::column(vec![1.0; 5]), Border::Replicate);
    let kernel = |op, dtype| {
        let leaves = vec![Leaf { op, dtype }];
        Kernel::Map(MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
    };
    let d = CpuDevice::new(Some(1)).unwrap();
    let launch = |kernel: &Kernel, input: Geometry, memory: &Memory, output: Geometry, bytes: usize, rows: Window| {
        let inputs = [LaunchInput { memory, geometry: input }];
        let mut output_memory = Memory::Host(HostBuffer::zeroed(bytes));
        let launch = Launch {
            kernel,
            inputs: &inputs,
            output: &mut output_memory,
            additional_outputs: &mut [],
            geometry: output,
            rows,
        };
        d.launch(launch).map_err(|e| e.to_string())
    };
    let (good, rows, bytes) = (input.geometry, Window::new(2, 6), input.geometry.bytes());
    let part = |start, end| Geometry { window: Window::new(start, end), ..good };
    let of = |height, width, channels| Geometry { shape: Shape::new(height, width, channels), ..good };
    let k = kernel(filter, dtype);
    assert_eq!(launch(&k, good, &input.memory, good, bytes, rows), Ok(()));
    assert_eq!(launch(&k, part(0, 8), &input.memory, part(2, 6), bytes / 2, rows), Ok(()));
    let cases = [
        ("a small output", launch(&k, good, &input.memory, good, bytes - 1, rows)),
        ("a small input", launch(&k, of(8, 10, 1), &input.memory, good, bytes, rows)),
        ("rows beyond the output", launch(&k, good, &input.memory, part(2, 5), bytes, rows)),
        ("rows beyond the image", launch(&k, good, &input.memory, part(2, 10), bytes, Window::new(2, 10))),
        ("too few input rows", launch(&k, part(1, 8), &input.memory, good, bytes, rows)),
        ("narrow input", launch(&k, of(8, 8, 1), &input.memory, good, bytes, rows)),
        ("fewer channels", launch(&k, good, &input.memory, of(8, 9, 2), 2 * bytes, rows)),
        ("an endless window", launch(&k, part(0, isize::MAX), &input.memory, good, bytes, rows)),
        ("another type", launch(&kernel(LeafOp::Load(0), DType::F64), good, &input.memory, good, bytes, rows)),
        (
            "no such plane",
            launch(&kernel(LeafOp::LoadPlane(0, PlaneMap::one(1)), dtype), good, &input.memory, good, bytes, rows),
        ),
        ("no such input", launch(&kernel(LeafOp::Load(1), dtype), good, &input.memory, good, bytes, rows)),
    ];
    for (what, result) in cases {
        assert!(result.is_err(), "{what}");
    }
}
