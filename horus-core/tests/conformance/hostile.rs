//! Launches and copies with false descriptions: an error on every device, never an access outside a
//! buffer.
//!
//! Each case begins with a valid launch, and changes one property. In any case the surrounding
//! bytes stay unchanged, and the valid launch still works.

use horus_core::device::{Device, Geometry, Launch, LaunchInput, Memory};
use horus_core::dtype::{Conversion, DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::ir::kernel::{
    FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Repeat, RowFilterStage, Val,
};
use horus_core::ops::fourier::Across;
use horus_core::ops::geometric::{Affine, Flip, Interpolation};
use horus_core::ops::labels::LabelReduce;
use horus_core::ops::neighbourhood::{
    Combine, Filter, Generalized, MedianSize, OrderFilter, Pairing, Reach, Reduce, Truncated,
};
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::planes::PlaneMap;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::ops::tiles::TileReduce;
use horus_core::ops::windowed::{BoxMean, Ranked, Windowed};
use horus_core::ops::{Fourier, SampleImages, Sliding, Tiled, Whole, samples};
use horus_core::shape::{Border, Shape, Window};

use crate::harness::RunConfiguration;

const F32: DType = DType::F32;
const FAR: [usize; 6] = [usize::MAX, usize::MAX - 1, usize::MAX / 2, usize::MAX / 2 + 1, 1 << 62, 1 << 33];

fn geometry(shape: Shape, dtype: DType) -> Geometry {
    Geometry { shape, dtype, window: Window::whole(shape.height) }
}

fn leaf(op: LeafOp) -> Leaf {
    Leaf { op, dtype: F32 }
}

fn of(leaves: Vec<Leaf>) -> MapKernel {
    let inputs = 1;
    MapKernel { inputs, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() }
}

fn one(op: LeafOp) -> Kernel {
    Kernel::Map(of(vec![leaf(op)]))
}

/// A launch without its memory, which has `bytes` of each input and of the output.
#[derive(Clone, Debug)]
struct LaunchCase {
    kernel: Kernel,
    inputs: Vec<Geometry>,
    output: Geometry,
    rows: Window,
    bytes: Vec<usize>,
    room: usize,
}

impl LaunchCase {
    fn new(kernel: Kernel, inputs: &[(Shape, DType)], output: (Shape, DType)) -> LaunchCase {
        let inputs: Vec<Geometry> = inputs.iter().map(|(s, d)| geometry(*s, *d)).collect();
        let output = geometry(output.0, output.1);
        let rows = match (&kernel, inputs.first()) {
            (kernel, Some(input)) if kernel.goes_over_input() => input.window,
            _ => output.window,
        };
        let bytes = inputs.iter().map(Geometry::bytes).collect();
        LaunchCase { kernel, inputs, output, rows, bytes, room: output.bytes() }
    }

    fn launch(&self, device: &dyn Device) -> Result<(), DeviceError> {
        let memory: Vec<Memory> = self.bytes.iter().map(|n| device.allocate(*n)).collect::<Result<_, _>>()?;
        let mut output = device.allocate(self.room)?;
        let inputs: Vec<LaunchInput<'_>> = memory
            .iter()
            .zip(&self.inputs)
            .map(|(memory, geometry)| LaunchInput { memory, geometry: *geometry })
            .collect();
        let (kernel, geometry, rows) = (&self.kernel, self.output, self.rows);
        device.launch(Launch {
            kernel,
            inputs: &inputs,
            output: &mut output,
            additional_outputs: &mut [],
            geometry,
            rows,
        })?;
        device.synchronize()
    }

    fn with(&self, change: impl FnOnce(&mut LaunchCase)) -> LaunchCase {
        let mut case = self.clone();
        change(&mut case);
        case
    }

    fn map(&self, change: impl FnOnce(&mut MapKernel)) -> LaunchCase {
        self.with(|c| match &mut c.kernel {
            Kernel::Map(m) | Kernel::MapReduce(m, _) | Kernel::Repeat(Repeat { body: m, .. }) => change(m),
            _ => unreachable!("a map"),
        })
    }
}

/// One launch of every kernel and leaf.
fn cases() -> Vec<LaunchCase> {
    let (shape, column) = (Shape::new(8, 9, 2), Shape::new(8, 1, 2));
    let border = Border::Replicate;
    let image = (shape, F32);
    let filter = Filter::dense(3, 3, vec![0.5; 9]);
    let stage = RowFilterStage { source: FilterSource::Input(0), filter: Filter::row(vec![1.0; 3]), border };
    let staged = LeafOp::Correlate(FilterSource::Stage(0), Filter::column(vec![1.0; 3]), border);
    let chained = LeafOp::Correlate(FilterSource::Chain(0), filter.clone(), border);
    let generalized = Generalized { window: filter.clone(), combine: Combine::Pixel, reduce: Reduce::Min };
    let square = |leaves| MapKernel {
        code: vec![Instr { op: InstrOp::Pixel(PixelOp::Mul), operand: F32, result: F32, args: vec![Val::Leaf(0); 2] }],
        result: Some(Val::Instr(0)),
        ..of(leaves)
    };
    let loads = vec![leaf(LeafOp::Load(0))];
    let maps = [
        one(LeafOp::Load(0)),
        one(LeafOp::Correlate(FilterSource::Input(0), filter.clone(), border)),
        one(LeafOp::Correlate(FilterSource::Input(0), Filter::sparse([(0, 0), (5, -3)], [1.0, 2.0]), Border::Wrap)),
        Kernel::Map(MapKernel { stages: vec![stage], ..of(vec![leaf(staged)]) }),
        Kernel::Map(MapKernel { chains: vec![square(loads.clone())], ..of(vec![leaf(chained)]) }),
        one(LeafOp::Shift(FilterSource::Input(0), [1, -2], border)),
        one(LeafOp::OrderFilter(0, generalized.into(), border)),
        one(LeafOp::OrderFilter(
            0,
            Truncated { window: filter.clone(), pairing: Pairing::Difference, levels: None }.into(),
            border,
        )),
        one(LeafOp::OrderFilter(0, MedianSize::Three.into(), border)),
        one(LeafOp::Warp(0, Affine::IDENTITY, Interpolation::Bilinear, border.into())),
        one(LeafOp::Flip(0, Flip::Both)),
        Kernel::Map(square(loads.clone())),
    ];
    let mut all: Vec<LaunchCase> = maps.into_iter().map(|k| LaunchCase::new(k, &[image], image)).collect();
    let far = Filter::sparse([(0, 0), (2, -1)], [0.5; 2]);
    let body = of(vec![leaf(LeafOp::Correlate(FilterSource::Input(0), far, border))]);
    all.push(LaunchCase::new(Kernel::Repeat(Repeat { body, state: 0, iterations: 3 }), &[image], image));
    let plane = (Shape { channels: 1, ..shape }, F32);
    let woven = of(vec![leaf(LeafOp::LoadPlane(0, PlaneMap::one(1)))]);
    let woven = MapKernel { additional_results: vec![Val::Const(Scalar::F32(0.5))], woven: true, ..woven };
    let moments = (Shape { width: 3, ..column }, DType::F64);
    let interleaved = (shape.interleaved(), F32);
    all.extend([
        LaunchCase::new(one(LeafOp::LoadPlane(0, PlaneMap::one(1))), &[image], plane),
        LaunchCase::new(one(LeafOp::LoadPlane(0, PlaneMap::one(1))), &[interleaved], plane),
        LaunchCase::new(Kernel::Map(woven), &[interleaved], interleaved),
        LaunchCase::new(Kernel::from(RowReduce::Max), &[interleaved], (column, F32)),
        LaunchCase::new(Kernel::MapReduce(square(loads.clone()), RowReduce::Moments), &[image], moments),
        LaunchCase::new(Kernel::MapReduce(square(loads), RowReduce::Sum), &[image], (column, DType::F64)),
    ]);
    let samples = samples(SampleImages::of(shape, F32, border)).into_iter();
    all.extend(samples.map(|s| LaunchCase::new(Kernel::Whole(s.operation), &s.inputs, s.output)));
    all
}

fn mean(reach: Reach) -> Windowed {
    Windowed::Mean(BoxMean { reach, count: 100 })
}

fn rank(offsets: &[(i32, i32)], place: usize) -> Windowed {
    Windowed::Rank(Ranked::new(offsets, place))
}

/// Changes that make any launch invalid.
fn wrongs(good: &LaunchCase) -> Vec<(String, LaunchCase)> {
    let mut all: Vec<(String, LaunchCase)> = Vec::new();
    let mut add = |what: &str, case: LaunchCase| all.push((what.to_owned(), case));
    add("a small output", good.with(|c| c.room -= c.output.dtype.size()));
    add("an output of half a pixel more", good.with(|c| c.room += 1));
    add("no output", good.with(|c| c.room = 0));
    add(
        "no input",
        good.with(|c| {
            c.inputs.clear();
            c.bytes.clear();
        }),
    );
    add(
        "an input too many",
        good.with(|c| {
            c.inputs.push(c.inputs[0]);
            c.bytes.push(c.bytes[0]);
        }),
    );
    let type_of = |d: DType| if d == DType::F64 { DType::I32 } else { DType::F64 };
    add(
        "an output of another type",
        good.with(|c| {
            c.output.dtype = type_of(c.output.dtype);
            c.room *= 2;
        }),
    );
    let rows = good.rows;
    for (what, window) in [
        ("rows above", Window::new(-1, rows.end)),
        ("rows below", Window::new(rows.start, rows.end + 1)),
        ("all rows there are", Window::new(isize::MIN, isize::MAX)),
        ("the last rows there are", Window::new(isize::MAX - 1, isize::MAX)),
    ] {
        add(what, good.with(|c| c.rows = window));
        add(&format!("{what} in an endless output"), good.with(|c| (c.rows, c.output.window) = (window, window)));
    }
    // Windows name enough rows, but memory has only some.
    for window in [Window::new(0, isize::MAX), Window::new(isize::MIN, isize::MAX), Window::new(-1, 100)] {
        add("an output window beyond its memory", good.with(|c| c.output.window = window));
        add("an input window beyond its memory", good.with(|c| c.inputs[0].window = window));
    }
    for n in FAR {
        add("a wide output", good.with(|c| c.output.shape.width = n));
        add("a high output", good.with(|c| c.output.shape.height = n));
        add("a deep output", good.with(|c| c.output.shape.channels = n));
        add("a wide input", good.with(|c| c.inputs[0].shape.width = n));
        add("a deep input", good.with(|c| c.inputs[0].shape.channels = n));
        add(
            "everything far",
            good.with(|c| {
                let shape = Shape::new(n, n, n);
                (c.output.shape, c.output.window) = (shape, Window::whole(n));
                (c.inputs[0].shape, c.inputs[0].window) = (shape, Window::whole(n));
                c.rows = Window::whole(n);
            }),
        );
        add(
            "everything far and nothing held",
            good.with(|c| {
                let shape = Shape::new(n, n, 0);
                (c.output.shape, c.inputs[0].shape) = (shape, shape);
            }),
        );
    }
    for i in 0..good.inputs.len() {
        add("a small input", good.with(|c| c.bytes[i] -= c.inputs[i].dtype.size()));
        add("an input of nothing", good.with(|c| c.bytes[i] = 0));
        let typed = !matches!(good.kernel, Kernel::Whole(Whole::Running(_)) | Kernel::Whole(Whole::RunningDepth(_)))
            && !matches!(
                good.kernel,
                Kernel::Whole(Whole::RowReduce(
                    RowReduce::Sum | RowReduce::SquaredDeviation | RowReduce::Moments | RowReduce::First
                )) | Kernel::Whole(Whole::Tiles(Tiled { reduce: TileReduce::Sum, .. }))
                    | Kernel::Whole(Whole::Histogram(_))
                    | Kernel::Whole(Whole::Components(_) | Whole::NearestOnLine(_))
                    | Kernel::Whole(Whole::Windowed(Sliding { how: Windowed::Mean(_) | Windowed::Variance(_), .. }))
            );
        // Labels have one of several types, and labelled images any.
        if (typed || i > 0) && !matches!(good.kernel, Kernel::Whole(Whole::Labels(_))) {
            add(
                "an input of another type",
                good.with(|c| {
                    c.inputs[i].dtype = type_of(c.inputs[i].dtype);
                    c.bytes[i] *= 2;
                }),
            );
        }
        add(
            "an input without its first row",
            good.with(|c| {
                c.inputs[i].window.start += 1;
            }),
        );
        add("an input that holds no row", good.with(|c| c.inputs[i].window = Window::new(0, 0)));
        // Rows of any length are reduced, folded and counted.
        let any = matches!(
            good.kernel,
            Kernel::Whole(Whole::RowReduce(_) | Whole::Fold(Fold::Max))
                | Kernel::MapReduce(..)
                | Kernel::Whole(Whole::Histogram(_))
                | Kernel::Whole(Whole::Labels(LabelReduce::Shape { .. }))
        );
        if !any || i > 0 {
            add("a narrow input", good.with(|c| c.inputs[i].shape.width = 0));
        }
        if !matches!(good.kernel, Kernel::Whole(Whole::Histogram(_)) | Kernel::Whole(Whole::Fold(_))) {
            add("an input of fewer planes", good.with(|c| c.inputs[i].shape.channels -= 1));
        }
    }
    if let Kernel::Whole(Whole::Windowed(Sliding { how, border })) = &good.kernel {
        let far = Reach { up: usize::MAX, down: usize::MAX, left: usize::MAX, right: usize::MAX };
        let ends = [(i32::MIN, 0), (0, i32::MAX)];
        let overlapping = rank(&[(0, 0), (0, 1), (0, 0)], 0);
        let others =
            [mean(far), rank(&ends, 0), rank(&[], 0), rank(&[(0, 0)], 1), rank(&[(1, 0), (0, 0)], 0), overlapping];
        for other in others {
            add(
                "a window that cannot be",
                good.with(|c| c.kernel = Kernel::from(Sliding { how: other, border: *border })),
            );
        }
        let of = if matches!(how, Windowed::Rank(_)) { DType::F64 } else { DType::U8 };
        add("a result of another type", good.with(|c| (c.output.dtype, c.room) = (of, 2 * c.room)));
    }
    if let Kernel::Whole(Whole::Fourier(how)) = &good.kernel {
        let far = Filter::sparse([(i32::MIN, i32::MAX)], [1.0]);
        let wide = Filter::dense(3, 17, vec![1.0; 51]);
        let of = |filters: &[Filter]| Fourier { filters: filters.into(), across: None, ..how.clone() };
        for other in [
            of(&[]),
            of(&[far]),
            of(std::slice::from_ref(&wide)),
            of(&[wide, how.filters[0].clone()]),
            of(&[how.filters[0].clone(), how.filters[0].clone()]),
            Fourier { tile: [0, 16], ..how.clone() },
            Fourier { tile: [16, 17], ..how.clone() },
            Fourier { tile: [usize::MAX, 1024], ..how.clone() },
            Fourier { across: Some(Across { before: how.filters.len(), stored: DType::F64 }), ..how.clone() },
            Fourier { across: Some(Across { before: usize::MAX, stored: DType::F64 }), ..how.clone() },
            Fourier { across: Some(Across { before: 0, stored: DType::U8 }), ..how.clone() },
            Fourier { origin: [15, 0], ..how.clone() },
            Fourier { origin: [0, usize::MAX], ..how.clone() },
        ] {
            add("tiles that cannot be", good.with(|c| c.kernel = Kernel::from(other)));
        }
    }
    if let Kernel::Repeat(repeat) = &good.kernel {
        let other = |steps, state| {
            good.with(|c| c.kernel = Kernel::Repeat(Repeat { iterations: steps, state, ..repeat.clone() }))
        };
        for steps in [0, 9, usize::MAX] {
            add("a number of steps that cannot be", other(steps, 0));
        }
        add("a state that is not there", other(2, 1));
        add("no state", other(2, usize::MAX));
    }
    if let Kernel::Map(m) | Kernel::MapReduce(m, _) | Kernel::Repeat(Repeat { body: m, .. }) = &good.kernel {
        let input = |n: usize| good.map(|m| m.leaves.iter_mut().for_each(|l| l.map_input(|_| n)));
        if !matches!(m.leaves[0].source(), FilterSource::Stage(_) | FilterSource::Chain(_)) {
            add("no such input", input(1));
            add("no input of such a number", input(usize::MAX));
        }
        add("more inputs than there are", good.map(|m| m.inputs = 2));
        add("no result", good.map(|m| m.result = None));
        add("a result that is not there", good.map(|m| m.result = Some(Val::Instr(usize::MAX))));
        add("a leaf that is not there", good.map(|m| m.result = Some(Val::Leaf(5))));
        if matches!(good.kernel, Kernel::Map(_) | Kernel::Repeat(_)) {
            add("a constant of another type", good.map(|m| m.result = Some(Val::Const(Scalar::U8(1)))));
        }
        add("a leaf of another type", good.map(|m| m.leaves[0].dtype = DType::U16));
        let early =
            Instr { op: InstrOp::Convert(Conversion::Nearest), operand: F32, result: F32, args: vec![Val::Instr(0)] };
        add("an operand of its own", good.map(|m| m.code.insert(0, early)));
        let short = Instr { op: InstrOp::Pixel(PixelOp::Add), operand: F32, result: F32, args: vec![Val::Leaf(0)] };
        add("too few operands", good.map(|m| m.code.push(short)));
        add(
            "no such stage",
            good.map(|m| {
                m.leaves[0].op = LeafOp::Correlate(FilterSource::Stage(7), Filter::column([1.0]), Border::Wrap);
            }),
        );
        add(
            "no such chain",
            good.map(|m| {
                m.leaves[0].op = LeafOp::Correlate(FilterSource::Chain(7), Filter::column([1.0]), Border::Wrap);
            }),
        );
        add(
            "a stage of a stage",
            good.map(|m| {
                m.stages = vec![RowFilterStage {
                    source: FilterSource::Stage(0),
                    filter: Filter::row([1.0]),
                    border: Border::Wrap,
                }];
            }),
        );
        add(
            "no taps",
            good.map(|m| {
                m.leaves[0].op = LeafOp::Correlate(FilterSource::Input(0), Filter::row(Vec::new()), Border::Wrap);
            }),
        );
        add(
            "a filter that reaches too far",
            good.map(|m| {
                let filter = Filter::sparse([(i32::MIN, i32::MAX)], [1.0]);
                m.leaves[0].op = LeafOp::Correlate(FilterSource::Input(0), filter, Border::Reflect);
            }),
        );
        if matches!(m.leaves[0].op, LeafOp::OrderFilter(_, OrderFilter::Truncated(_), _)) {
            let lone = Truncated { window: Filter::row([0.5, 0.5]), pairing: Pairing::Sum, levels: None };
            add(
                "a pixel without its pair",
                good.map(|m| m.leaves[0].op = LeafOp::OrderFilter(0, lone.into(), Border::Wrap)),
            );
        }
        add("no such plane", good.map(|m| m.leaves[0].op = LeafOp::LoadPlane(0, PlaneMap::one(2))));
        let far = Affine { yx: i64::MAX, yy: i64::MIN, x0: i64::MAX, ..Affine::IDENTITY };
        add(
            "a map out of range",
            good.map(|m| {
                m.leaves[0].op = LeafOp::Warp(0, far, Interpolation::Bicubic, Border::Wrap.into());
            }),
        );
    }
    all
}

/// Devices of a single rank.
fn places() -> impl Iterator<Item = RunConfiguration> {
    RunConfiguration::some().into_iter().filter(|p| p.ranks == 1)
}

/// The number of a leaf among the kinds of leaves.
fn ordinal(op: &LeafOp) -> usize {
    match op {
        LeafOp::Load(_) => 0,
        LeafOp::LoadPlane(..) => 1,
        LeafOp::Correlate(..) => 2,
        LeafOp::Shift(..) => 3,
        LeafOp::OrderFilter(_, OrderFilter::Fold(_), _) => 4,
        LeafOp::OrderFilter(_, OrderFilter::Median(_), _) => 5,
        LeafOp::Warp(..) => 6,
        LeafOp::Flip(..) => 7,
        LeafOp::OrderFilter(_, OrderFilter::Truncated(_), _) => 8,
    }
}

#[test]
fn every_leaf_has_a_launch() {
    let mut found = [false; 9];
    let maps = cases().into_iter().filter_map(|c| if let Kernel::Map(m) = c.kernel { Some(m) } else { None });
    maps.flat_map(|m| m.leaves).for_each(|l| found[ordinal(&l.op)] = true);
    assert!(found.iter().all(|f| *f), "{found:?}");
}

#[test]
fn launches_that_are_wrong_are_errors() {
    for place in places() {
        crate::with_device(place, |device| {
            for good in cases() {
                let name = good.kernel.name();
                good.launch(device).unwrap_or_else(|e| panic!("{name}: {e}"));
                for (what, wrong) in wrongs(&good) {
                    let outcome = wrong.launch(device);
                    assert!(
                        matches!(outcome, Err(DeviceError::Argument(_) | DeviceError::Limit(_))),
                        "{name} with {what}: {outcome:?}"
                    );
                }
                good.launch(device).unwrap_or_else(|e| panic!("{name}, after wrong ones: {e}"));
            }
        });
    }
}

/// A small number, or an arbitrary one.
fn number(state: &mut u64, most: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let r = (*state >> 33) as usize;
    match r % 8 {
        0 => FAR[r / 8 % FAR.len()],
        _ => r / 8 % (most + 1),
    }
}

#[test]
fn launches_of_any_extents_are_done_or_refused() {
    let (mut state, mut done) = (1, 0);
    let n = horus_testing::cases::cases(600);
    for place in places() {
        crate::with_device(place, |device| {
            for good in cases() {
                for _ in 0..n / 10 {
                    // Small numbers at a few places: many of these launches are valid.
                    let mut case = good.clone();
                    for _ in 0..1 + number(&mut state, 2) % 3 {
                        let v = number(&mut state, 9);
                        let which = number(&mut state, 8) % 9;
                        let g = if which.is_multiple_of(2) { &mut case.output } else { &mut case.inputs[0] };
                        match which / 2 {
                            0 => g.window.start = v.cast_signed(),
                            1 => g.window.end = v.cast_signed(),
                            2 => g.shape.height = v,
                            3 => g.shape.width = v,
                            _ => case.rows = Window::new(case.rows.start, v.cast_signed()),
                        }
                    }
                    match case.launch(device) {
                        Ok(()) => done += 1,
                        Err(DeviceError::Argument(_) | DeviceError::Limit(_)) => {}
                        Err(e) => panic!("{case:?}: {e}"),
                    }
                }
            }
        });
    }
    assert!(done > 20, "only {done} launches were right");
}

#[test]
fn copies_beyond_their_blocks_are_errors() {
    for place in places() {
        crate::with_device(place, |device| {
            let (mut a, mut b) = (device.allocate(16).unwrap(), device.allocate(16).unwrap());
            let bytes: Vec<u8> = (0..16).collect();
            for memory in [&mut a, &mut b] {
                device.write(&bytes, memory, 0).unwrap();
            }
            for at in [1, 13, 16, 17, usize::MAX, usize::MAX - 15, usize::MAX - 3, usize::MAX / 2] {
                let mut target = [7; 16];
                assert!(device.write(&bytes, &mut a, at).is_err(), "a write at {at}");
                assert!(device.read(&a, at, &mut target).is_err(), "a read at {at}");
                assert_eq!(target, [7; 16]);
                for piece in
                    [StridedCopy::run(at, 0, 16), StridedCopy::run(0, at, 16), StridedCopy::run(0, 0, at.max(17))]
                {
                    assert!(device.copy(&a, &mut b, &[piece]).is_err(), "{piece:?}");
                }
                let strided =
                    StridedCopy { rows: 2, from_stride: at.max(15), to_stride: 4, ..StridedCopy::run(0, 0, 2) };
                assert!(device.copy(&a, &mut b, &[strided]).is_err(), "{strided:?}");
                let many = StridedCopy { rows: at.max(9), from_stride: 0, to_stride: 2, ..StridedCopy::run(0, 0, 2) };
                assert!(device.copy(&a, &mut b, &[many]).is_err(), "{many:?}");
            }
            let over = StridedCopy { rows: usize::MAX, from_stride: 0, to_stride: 0, ..StridedCopy::run(0, 0, 2) };
            assert!(device.copy(&a, &mut b, &[over]).is_err(), "one byte is written twice");
            let nothing = StridedCopy { rows: usize::MAX, ..StridedCopy::run(usize::MAX, usize::MAX, 0) };
            device.copy(&a, &mut b, &[nothing]).unwrap();
            device.write(&[], &mut a, 16).unwrap();
            for memory in [&a, &b] {
                let mut got = vec![0; 16];
                device.read(memory, 0, &mut got).unwrap();
                assert_eq!(got, bytes);
            }
            assert!(matches!(device.allocate(usize::MAX), Err(DeviceError::OutOfMemory { .. })));
            assert!(matches!(device.allocate(usize::MAX / 4), Err(DeviceError::OutOfMemory { .. })));
        });
    }
}
