//! Map kernels against a naive evaluation of their definition, for every instruction set and partition.

use super::device::CpuDevice;
use super::plane::{Plane, Tile};
use super::simd::Isa;
use super::{order, warp};
use crate::device::{Device, Geometry, Input, Launch, Memory};
use crate::dtype::{Arithmetic, DType, Pixel, Scalar, convert_pixel};
use crate::host::buffer::HostBuffer;
use crate::ir::kernel::{Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Source, Stage, Val};
use crate::ops::geometric::{Affine, Flip, Interpolation, rotation};
use crate::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Reduce};
use crate::ops::pixel::{PixelKind, PixelOp, TABLE};
use crate::shape::{Border, Shape, Window};
use crate::{dispatch, dispatch_float, pixel_ops};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }
    fn unit(&mut self) -> f64 {
        (self.next() % 20_001) as f64 / 10_000.0 - 1.0
    }
}

/// A test image, whole.
struct Picture {
    memory: Memory,
    geometry: Geometry,
}

impl Picture {
    fn random(shape: Shape, dtype: DType, seed: u64) -> Picture {
        let mut r = Random(seed);
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
        Picture {
            memory: Memory::Host(memory),
            geometry: Geometry { shape, dtype, window: Window::whole(shape.height) },
        }
    }

    fn at(&self, c: usize, y: usize, x: usize) -> Scalar {
        let i = self.geometry.row(c, y.cast_signed()) + x;
        dispatch!(self.geometry.dtype, T => self.memory.host().unwrap().as_slice::<T>()[i].scalar())
    }

    /// The rows of `window` only, wrapped rows beyond the image included.
    fn part(&self, window: Window) -> Picture {
        let Geometry { shape, dtype, .. } = self.geometry;
        let memory = dispatch!(dtype, T => {
            let mut v: Vec<T> = Vec::new();
            for c in 0..shape.channels {
                for y in window.start..window.end {
                    let y = y.rem_euclid(shape.height.cast_signed()).cast_unsigned();
                    v.extend((0..shape.width).map(|x| T::from_scalar(self.at(c, y, x))));
                }
            }
            HostBuffer::from_slice(&v)
        });
        Picture { memory: Memory::Host(memory), geometry: Geometry { shape, dtype, window } }
    }
}

macro_rules! oracle {
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $uc:literal, $ud:literal;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $bc:literal, $bd:literal;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $cc:literal, $cd:literal;)* }
     ternary { $($t:ident $tn:literal |$ta:ident, $tb:ident, $tc:ident| $tx:expr, $tcu:literal, $td:literal;)* }
     select { $($s:ident $sn:literal $sc:literal, $sd:literal;)* }) => {
        fn pixel_op<T: Pixel>(op: PixelOp, v: &[Scalar]) -> Scalar {
            let t = |i: usize| T::from_scalar(v[i]);
            match op {
                $(PixelOp::$u => { let $ua = t(0); ($ub).scalar() })*
                $(PixelOp::$b => { let ($ba, $bb) = (t(0), t(1)); ($bx).scalar() })*
                $(PixelOp::$c => { let ($ca, $cb) = (t(0), t(1)); u8::from($cx).scalar() })*
                $(PixelOp::$t => { let ($ta, $tb, $tc) = (t(0), t(1), t(2)); ($tx).scalar() })*
                $(PixelOp::$s => if v[0].to_f64() != 0.0 { v[1] } else { v[2] },)*
            }
        }
    };
}
pixel_ops!(oracle);

fn correlate<T: crate::dtype::Float>(filter: &Filter, read: impl Fn(isize, isize) -> Scalar) -> Scalar {
    let taps = filter.offsets().into_iter().zip(filter.taps());
    taps.fold(T::ZERO, |acc, ((dy, dx), &w)| T::from_f64(w).fma(T::from_scalar(read(dy, dx)), acc)).scalar()
}

fn expected(k: &MapKernel, inputs: &[Picture], c: usize, y: usize, x: usize) -> Scalar {
    // Inputs that filters read have the extent of the first.
    let Shape { height, width, .. } = inputs[0].geometry.shape;
    let read = |source: Source, y: isize, x: isize, border: Border| match (border.map(y, height), border.map(x, width))
    {
        (Some(y), Some(x)) => match source {
            Source::Input(i) => inputs[i].at(c, y, x),
            Source::Chain(n) => expected(&k.chains[n], inputs, c, y, x),
            Source::Stage(_) => unreachable!("a stage reads no stage"),
        },
        _ => {
            let dtype = match source {
                Source::Input(i) => inputs[i].geometry.dtype,
                Source::Chain(n) => k.chains[n].result_type(),
                Source::Stage(_) => unreachable!("a stage reads no stage"),
            };
            Scalar::from_f64(dtype, border.constant().unwrap())
        }
    };
    let (sy, sx) = (y.cast_signed(), x.cast_signed());
    let leaf = |l: &Leaf| match &l.op {
        LeafOp::Load(i) => inputs[*i].at(c, y, x),
        LeafOp::LoadChannel(i, c) => inputs[*i].at(*c, y, x),
        LeafOp::Correlate(Source::Stage(s), f, b) => dispatch_float!(l.dtype, T => {
            let stage = &k.stages[*s];
            correlate::<T>(f, |dy, _| match b.map(sy + dy, height) {
                Some(y) => correlate::<T>(&stage.filter, |_, dx| read(stage.source, y.cast_signed(), sx + dx, stage.border)),
                None => Scalar::from_f64(l.dtype, b.constant().unwrap()),
            })
        }),
        LeafOp::Correlate(source, f, b) => dispatch_float!(l.dtype, T => {
            correlate::<T>(f, |dy, dx| read(*source, sy + dy, sx + dx, *b))
        }),
        // These have oracles of their own; here, only how they are called is tested.
        other => dispatch!(l.dtype, T => {
            let Source::Input(i) = l.source() else { unreachable!("only linear filters read what is computed") };
            let Picture { memory, geometry } = &inputs[i];
            let n = geometry.plane();
            let data = &memory.host().unwrap().as_slice::<T>()[c * n..(c + 1) * n];
            let plane = Plane::new(data, geometry.shape.height, geometry.shape.width, geometry.window);
            let mut out = [T::ZERO];
            let mut tile = Tile { out: &mut out, stride: 1, rows: Window::new(sy, sy + 1), cols: x..x + 1 };
            match other {
                LeafOp::Generalized(_, g, b) => order::generalized(&plane, g, *b, &mut tile, Isa::Portable),
                LeafOp::Median(_, size, b) => order::median(&plane, *size, *b, &mut tile, Isa::Portable),
                LeafOp::Warp(_, map, how, b) => warp::warp(&plane, map, *how, *b, &mut tile, Isa::Portable),
                LeafOp::Flip(_, flip) => order::flip(&plane, *flip, &mut tile),
                _ => unreachable!("handled above"),
            }
            out[0].scalar()
        }),
    };
    let leaves: Vec<Scalar> = k.leaves.iter().map(leaf).collect();
    let mut results: Vec<Scalar> = Vec::new();
    let value = |v: &Val, results: &[Scalar]| match *v {
        Val::Leaf(l) => leaves[l],
        Val::Instr(i) => results[i],
        Val::Const(c) => c,
    };
    for i in &k.code {
        let args: Vec<Scalar> = i.args.iter().map(|a| value(a, &results)).collect();
        results.push(match i.op {
            InstrOp::Pixel(op) => dispatch!(i.operand, T => pixel_op::<T>(op, &args)),
            InstrOp::Convert => dispatch!(i.operand, S => dispatch!(i.result, D => {
                convert_pixel::<S, D>(S::from_scalar(args[0])).scalar()
            })),
        });
    }
    value(&k.result.unwrap(), &results)
}

/// Equal bits, all NaN being alike.
fn same(a: Scalar, b: Scalar) -> bool {
    a == b || (a.dtype() == b.dtype() && a.to_f64().is_nan() && b.to_f64().is_nan())
}

fn run(d: &CpuDevice, k: &Kernel, inputs: &[Picture], shape: Shape, dtype: DType, rows: Window) -> Picture {
    let geometry = Geometry { shape, dtype, window: rows };
    let mut output = Memory::Host(HostBuffer::zeroed(geometry.bytes()));
    let inputs: Vec<Input<'_>> = inputs.iter().map(|p| Input { memory: &p.memory, geometry: p.geometry }).collect();
    d.launch(Launch { kernel: k, inputs: &inputs, output: &mut output, geometry, rows }).unwrap();
    Picture { memory: output, geometry }
}

/// Checks `k` for every instruction set, on one and three threads, over whole images and over strips.
fn check(k: &MapKernel, inputs: &[Picture], dtype: DType, what: &str) {
    let shape = inputs[0].geometry.shape;
    let whole = Window::whole(shape.height);
    let kernel = Kernel::Map(k.clone());
    let want: Vec<Scalar> = (0..shape.channels)
        .flat_map(|c| (0..shape.height).flat_map(move |y| (0..shape.width).map(move |x| (c, y, x))))
        .map(|(c, y, x)| expected(k, inputs, c, y, x))
        .collect();
    let compare = |got: &Picture, how: &str| {
        for c in 0..shape.channels {
            for y in got.geometry.window.start..got.geometry.window.end {
                let y = y.cast_unsigned();
                for x in 0..shape.width {
                    let (g, w) = (got.at(c, y, x), want[(c * shape.height + y) * shape.width + x]);
                    assert!(same(g, w), "{what}, {how}: {g:?} instead of {w:?} at {c}, {y}, {x} of {shape}");
                }
            }
        }
    };
    for isa in Isa::available() {
        for threads in [1, 3] {
            let d = CpuDevice::new(Some(threads)).unwrap().with_isa(isa);
            compare(&run(&d, &kernel, inputs, shape, dtype, whole), &format!("{isa:?}, {threads} threads"));
            if threads > 1 {
                continue;
            }
            let h = shape.height.cast_signed();
            for rows in [Window::new(0, h / 2), Window::new(h / 3, h - h / 4), Window::new(h - 1, h)] {
                let parts: Vec<Picture> = (0..inputs.len())
                    .map(|i| inputs[i].part(kernel.footprint(i, rows, shape, inputs[i].geometry.shape)))
                    .collect();
                if rows.is_empty() {
                    continue;
                }
                compare(&run(&d, &kernel, &parts, shape, dtype, rows), &format!("{isa:?}, rows {rows}"));
                let wraps = |l: &Leaf| l.reach(&k.stages).is_some_and(|(_, w)| w);
                if k.leaves.iter().all(wraps) {
                    let virtual_rows = |p: &Picture| p.part(rows.grown(100, 100));
                    let parts: Vec<Picture> = inputs.iter().map(virtual_rows).collect();
                    compare(&run(&d, &kernel, &parts, shape, dtype, rows), &format!("{isa:?}, virtual rows of {rows}"));
                }
            }
        }
    }
}

fn taps(r: &mut Random, n: usize) -> Vec<f64> {
    (0..n).map(|i| if i % 5 == 3 { 0.0 } else { r.unit() }).collect()
}

fn borders() -> [Border; 5] {
    let constant = Border::Constant(0.75);
    [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Wrap, constant]
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

const SHAPES: [(usize, usize, usize); 7] =
    [(1, 1, 1), (1, 37, 1), (29, 1, 1), (7, 5, 2), (33, 70, 1), (14, 300, 2), (45, 131, 1)];

#[test]
fn banks_of_filters_match_the_definition() {
    let mut r = Random(1);
    for dtype in [DType::F32, DType::F64] {
        for (n, (h, w)) in
            [(1, 1), (3, 3), (1, 7), (9, 1), (4, 6), (17, 5), (2, 3), (1, 90), (60, 1), (3, 75)].into_iter().enumerate()
        {
            let (sh, sw, sc) = SHAPES[(n * 3 + dtype.size()) % SHAPES.len()];
            for (b, border) in borders().into_iter().enumerate() {
                let shape = if b % 2 == 0 { Shape::new(sh, sw, sc) } else { Shape::new(9, 51, 1) };
                let input = Picture::random(shape, dtype, n as u64);
                let count = [1, 2, 3, 4, 6, 7, 5][(n + 2 * b) % 7];
                let filters = (0..count).map(|_| Filter::dense(h, w, taps(&mut r, h * w)));
                let leaves: Vec<Leaf> =
                    filters.map(|f| Leaf { op: LeafOp::Correlate(Source::Input(0), f, border), dtype }).collect();
                let k = total(MapKernel { inputs: 1, leaves, ..MapKernel::default() }, dtype);
                check(&k, &[input], dtype, &format!("{count} filters {h}x{w} {border} {dtype}"));
            }
        }
    }
}

#[test]
fn sparse_filters_and_mixed_banks_match_the_definition() {
    let mut r = Random(2);
    for dtype in [DType::F32, DType::F64] {
        for (b, border) in borders().into_iter().enumerate() {
            for (s, &(sh, sw, sc)) in SHAPES.iter().enumerate() {
                let offsets: Vec<(i32, i32)> =
                    (0..11).map(|_| ((r.next() % 9) as i32 - 3, (r.next() % 41) as i32 - 25)).collect();
                let count = 1 + (b + s) % 7;
                let small = Filter::dense(3, 3, taps(&mut r, 9));
                let mut leaves: Vec<Leaf> = (0..count)
                    .map(|_| Filter::sparse(offsets.clone(), taps(&mut r, 11)))
                    .chain([small, Filter::sparse(vec![(4, 1)], vec![0.5])])
                    .map(|f| Leaf { op: LeafOp::Correlate(Source::Input(0), f, border), dtype })
                    .collect();
                if border != Border::Wrap {
                    leaves.push(Leaf { op: LeafOp::Load(0), dtype });
                }
                let k = total(MapKernel { inputs: 1, leaves, ..MapKernel::default() }, dtype);
                let input = Picture::random(Shape::new(sh, sw, sc), dtype, 5);
                check(&k, &[input], dtype, &format!("{count} sparse filters {border} {dtype}"));
            }
        }
    }
}

#[test]
fn stages_and_columns_match_the_definition() {
    let mut r = Random(3);
    for dtype in [DType::F32, DType::F64] {
        for (b, border) in borders().into_iter().enumerate() {
            for (s, &(sh, sw, sc)) in SHAPES.iter().enumerate() {
                let lengths = [[3, 19], [8, 1], [43, 5], [90, 12]][(b + s) % 4];
                let stages: Vec<Stage> = lengths
                    .iter()
                    .map(|&n| Stage { source: Source::Input(0), filter: Filter::row(taps(&mut r, n)), border })
                    .collect();
                let mut leaves = Vec::new();
                for i in 0..8 {
                    let f = Filter::column(taps(&mut r, lengths[i % 2] + i / 4));
                    leaves.push(Leaf { op: LeafOp::Correlate(Source::Stage(i % 2), f, border), dtype });
                }
                let k = total(MapKernel { inputs: 1, stages, leaves, ..MapKernel::default() }, dtype);
                let input = Picture::random(Shape::new(sh, sw, sc), dtype, 6);
                check(&k, &[input], dtype, &format!("stages {lengths:?} {border} {dtype}"));
            }
        }
    }
}

/// `(a as dtype) * b - a` of inputs 0 and 1.
fn chain(dtype: DType) -> MapKernel {
    let leaf = |i, dtype| Leaf { op: LeafOp::Load(i), dtype };
    let pixel = |op, args| Instr { op: InstrOp::Pixel(op), operand: dtype, result: dtype, args };
    let convert = Instr { op: InstrOp::Convert, operand: DType::U8, result: dtype, args: vec![Val::Leaf(0)] };
    let product = pixel(PixelOp::Mul, vec![Val::Instr(0), Val::Leaf(1)]);
    let code = vec![convert, product, pixel(PixelOp::Sub, vec![Val::Instr(1), Val::Instr(0)])];
    let leaves = vec![leaf(0, DType::U8), leaf(1, dtype)];
    MapKernel { inputs: 2, leaves, code, result: Some(Val::Instr(2)), ..MapKernel::default() }
}

#[test]
fn filters_over_chains_match_the_definition() {
    let mut r = Random(4);
    for dtype in [DType::F32, DType::F64] {
        for border in borders() {
            for (sh, sw, sc) in SHAPES.into_iter().chain([(9, 600, 1), (1, 1, 2)]) {
                let stage = |source, n, r: &mut Random| Stage { source, filter: Filter::row(taps(r, n)), border };
                let stages = vec![
                    stage(Source::Chain(0), 19, &mut r),
                    stage(Source::Chain(1), 4, &mut r),
                    stage(Source::Input(1), 7, &mut r),
                ];
                let column =
                    |s, n, r: &mut Random| LeafOp::Correlate(Source::Stage(s), Filter::column(taps(r, n)), border);
                let ops = [
                    column(0, 9, &mut r),
                    column(1, 6, &mut r),
                    column(2, 5, &mut r),
                    LeafOp::Correlate(Source::Chain(0), Filter::dense(4, 3, taps(&mut r, 12)), border),
                    LeafOp::Correlate(
                        Source::Chain(1),
                        Filter::sparse(vec![(-9, 2), (3, -5), (0, 0)], taps(&mut r, 3)),
                        border,
                    ),
                    LeafOp::Load(1),
                ];
                let leaves = ops.into_iter().map(|op| Leaf { op, dtype }).collect();
                let small = MapKernel {
                    leaves: vec![Leaf { op: LeafOp::LoadChannel(1, 0), dtype }],
                    result: Some(Val::Leaf(0)),
                    inputs: 2,
                    ..MapKernel::default()
                };
                let chains = vec![chain(dtype), small];
                let k = total(MapKernel { inputs: 2, chains, stages, leaves, ..MapKernel::default() }, dtype);
                let shape = Shape::new(sh, sw, sc);
                let inputs = [Picture::random(shape, DType::U8, 9), Picture::random(shape, dtype, 10)];
                check(&k, &inputs, dtype, &format!("chains {border} {dtype}"));
            }
        }
    }
}

#[test]
fn filters_larger_than_the_image_match_the_definition() {
    let mut r = Random(5);
    let dtype = DType::F32;
    for border in borders() {
        for (sh, sw, n) in [(9, 11, 121), (1, 37, 150), (29, 1, 90), (30, 5, 31)] {
            let stages = vec![Stage { source: Source::Input(0), filter: Filter::row(taps(&mut r, n)), border }];
            let column = LeafOp::Correlate(Source::Stage(0), Filter::column(taps(&mut r, n)), border);
            let dense = LeafOp::Correlate(Source::Input(0), Filter::dense(n, 3, taps(&mut r, 3 * n)), border);
            let leaves = [column, dense].map(|op| Leaf { op, dtype }).to_vec();
            let k = total(MapKernel { inputs: 1, stages, leaves, ..MapKernel::default() }, dtype);
            let input = Picture::random(Shape::new(sh, sw, 1), dtype, 7);
            check(&k, &[input], dtype, &format!("{n} taps on {sh}x{sw} {border}"));
        }
    }
}

/// Its cost once grew with the square of the number of taps: to minutes.
#[test]
fn a_filter_larger_than_the_image_costs_its_taps() {
    let mut r = Random(6);
    let (dtype, border) = (DType::F32, Border::Reflect101);
    let d = CpuDevice::new(Some(1)).unwrap();
    for shape in [Shape::new(40, 50, 1), Shape::new(1, 300, 1), Shape::new(300, 1, 1)] {
        let stages = vec![Stage { source: Source::Input(0), filter: Filter::row(taps(&mut r, 80_001)), border }];
        let op = LeafOp::Correlate(Source::Stage(0), Filter::column(taps(&mut r, 80_001)), border);
        let k = total(MapKernel { inputs: 1, stages, leaves: vec![Leaf { op, dtype }], ..MapKernel::default() }, dtype);
        let start = std::time::Instant::now();
        let input = [Picture::random(shape, dtype, 8)];
        run(&d, &Kernel::Map(k), &input, shape, dtype, Window::whole(shape.height));
        assert!(start.elapsed().as_secs() < 10, "{shape}: {:?}", start.elapsed());
    }
}

#[test]
fn every_pixel_operation_matches_its_definition() {
    for dtype in DType::ALL {
        for row in TABLE {
            for (width, constant) in [(5, 9), (67, 1), (200, 2), (129, 9)] {
                let shape = Shape::new(3, width, 1);
                let mask = row.kind == PixelKind::Select;
                let inputs: Vec<Picture> = (0..row.op.arity())
                    .map(|i| Picture::random(shape, row.op.operand(i, dtype), 10 + i as u64))
                    .collect();
                let leaves =
                    (0..inputs.len()).map(|i| Leaf { op: LeafOp::Load(i), dtype: inputs[i].geometry.dtype }).collect();
                let args = (0..inputs.len())
                    .map(|i| match i == constant && !mask {
                        true => Val::Const(Scalar::from_f64(dtype, 0.5)),
                        false => Val::Leaf(i),
                    })
                    .collect();
                let result = row.op.result(dtype);
                let code = vec![Instr { op: InstrOp::Pixel(row.op), operand: dtype, result, args }];
                let k = MapKernel {
                    inputs: inputs.len(),
                    leaves,
                    code,
                    result: Some(Val::Instr(0)),
                    ..MapKernel::default()
                };
                check(&k, &inputs, result, &format!("{} {dtype}", row.name));
            }
        }
    }
}

#[test]
fn every_conversion_matches_its_definition() {
    for from in DType::ALL {
        for to in DType::ALL {
            let shape = Shape::new(5, 301, 1);
            let mut input = Picture::random(shape, from, 3);
            if from.is_float() {
                let mut r = Random(9);
                let b = input.memory.host_mut().unwrap();
                let scale = [0.5, 1.0, 3.7, 1e3, 1e5, 1e10, 1e30];
                let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 254.5, 255.5, 65534.5, 2147483647.5, -0.5];
                let mut value =
                    |i: usize| special.get(i).copied().unwrap_or_else(|| (r.unit() * 40.0).round() * scale[i % 7]);
                dispatch_float!(from, T => {
                    b.as_mut_slice::<T>().iter_mut().enumerate().for_each(|(i, v)| *v = T::from_f64(value(i)));
                });
            }
            let k = MapKernel {
                inputs: 1,
                leaves: vec![Leaf { op: LeafOp::Load(0), dtype: from }],
                code: vec![Instr { op: InstrOp::Convert, operand: from, result: to, args: vec![Val::Leaf(0)] }],
                result: Some(Val::Instr(0)),
                ..MapKernel::default()
            };
            check(&k, &[input], to, &format!("{from} to {to}"));
        }
    }
}

#[test]
fn bare_leaves_and_constants_are_results() {
    for dtype in DType::ALL {
        let inputs = || [Picture::random(Shape::new(6, 77, 3), dtype, 4)];
        let leaf = |op| MapKernel {
            inputs: 1,
            leaves: vec![Leaf { op, dtype }],
            result: Some(Val::Leaf(0)),
            ..MapKernel::default()
        };
        check(&leaf(LeafOp::Load(0)), &inputs(), dtype, "load");
        check(&leaf(LeafOp::LoadChannel(0, 2)), &inputs(), dtype, "channel");
        let fill = MapKernel { result: Some(Val::Const(Scalar::from_f64(dtype, 7.0))), ..leaf(LeafOp::Load(0)) };
        check(&fill, &inputs(), dtype, "fill");
    }
}

#[test]
fn wide_images_are_cut_into_chunks_without_a_trace() {
    let mut r = Random(7);
    let dtype = DType::F32;
    for border in borders() {
        let dense = Filter::dense(3, 3, taps(&mut r, 9));
        let sparse = Filter::sparse(vec![(1, -3), (0, 0), (-2, 5)], taps(&mut r, 3));
        for (filter, width) in [(dense, 513), (sparse, 2700), (Filter::row(taps(&mut r, 300)), 1531)] {
            let leaves = vec![Leaf { op: LeafOp::Correlate(Source::Input(0), filter, border), dtype }];
            let k = total(MapKernel { inputs: 1, leaves, ..MapKernel::default() }, dtype);
            check(
                &k,
                &[Picture::random(Shape::new(6, width, 1), dtype, 8)],
                dtype,
                &format!("{width} columns {border}"),
            );
        }
        let mut k = MapKernel { inputs: 1, ..MapKernel::default() };
        for n in [5, 90, 2, 31] {
            k.stages.push(Stage { source: Source::Input(0), filter: Filter::row(taps(&mut r, n)), border });
            let op = LeafOp::Correlate(Source::Stage(k.stages.len() - 1), Filter::column(taps(&mut r, 3)), border);
            k.leaves.push(Leaf { op, dtype });
        }
        let k = total(k, dtype);
        check(&k, &[Picture::random(Shape::new(5, 2500, 1), dtype, 9)], dtype, &format!("four stages {border}"));
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
            LeafOp::Median(0, MedianSize::Three, border),
            LeafOp::Flip(0, Flip::Both),
            LeafOp::Generalized(0, Generalized { window, combine: Combine::Pixel, reduce: Reduce::Min }, border),
            LeafOp::Warp(0, map, Interpolation::Bilinear, border),
            LeafOp::Load(0),
        ];
        if dtype.is_float() {
            ops.push(LeafOp::Correlate(Source::Input(0), Filter::dense(2, 3, vec![0.25; 6]), border));
        }
        let leaves: Vec<Leaf> = ops.into_iter().map(|op| Leaf { op, dtype }).collect();
        let input = || [Picture::random(shape, dtype, 11)];
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
    let input = Picture::random(shape, dtype, 1);
    let filter = LeafOp::Correlate(Source::Input(0), Filter::column(vec![1.0; 5]), Border::Replicate);
    let kernel = |op, dtype| {
        let leaves = vec![Leaf { op, dtype }];
        Kernel::Map(MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
    };
    let d = CpuDevice::new(Some(1)).unwrap();
    let launch = |kernel: &Kernel, input: Geometry, memory: &Memory, output: Geometry, bytes: usize, rows: Window| {
        let inputs = [Input { memory, geometry: input }];
        let mut output_memory = Memory::Host(HostBuffer::zeroed(bytes));
        let launch = Launch { kernel, inputs: &inputs, output: &mut output_memory, geometry: output, rows };
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
        ("no such plane", launch(&kernel(LeafOp::LoadChannel(0, 1), dtype), good, &input.memory, good, bytes, rows)),
        ("no such input", launch(&kernel(LeafOp::Load(1), dtype), good, &input.memory, good, bytes, rows)),
    ];
    for (what, result) in cases {
        assert!(result.is_err(), "{what}");
    }
}
