//! Predictions against measurements (`docs/performance`), and invariants of profiles.

use horus_base::dtype::{DType, Scalar};
use horus_base::shape::{Border, Shape, Window};
use horus_plan::filters;
use horus_plan::ir::kernel::{
    Family, FilterSource, ImageExtent, Instr, InstrOp, Kernel, KernelWork, Leaf, LeafOp, MapKernel, RowFilterStage, Val,
};
use horus_plan::machine::{CopyTime, HostSide, LaunchBottleneck, MachineProfile, OverBus, Rates};
use horus_plan::ops::geometric::{Affine, Interpolation, rotation};
use horus_plan::ops::neighbourhood::Filter;
use horus_plan::ops::pixel::PixelOp;
use horus_plan::ops::planes::PlaneMap;
use horus_plan::ops::reduce::{Fold, RowReduce};
use horus_plan::ops::{Histogram, Whole};

const F: DType = DType::F32;
const SIZE: Shape = Shape::new(4096, 4096, 1);

fn leaf(op: LeafOp) -> Leaf {
    Leaf { op, dtype: F }
}

fn instr(op: PixelOp, args: Vec<Val>) -> Instr {
    Instr { op: InstrOp::Pixel(op), operand: F, result: F, args }
}

fn one(op: LeafOp) -> MapKernel {
    MapKernel { inputs: 1, leaves: vec![leaf(op)], result: Some(Val::Leaf(0)), ..MapKernel::default() }
}

fn correlate(height: usize, width: usize, source: FilterSource) -> Leaf {
    leaf(LeafOp::Correlate(source, Filter::dense(height, width, vec![0.5; height * width]), Border::Reflect101))
}

fn dense(n: usize) -> MapKernel {
    one(correlate(n, n, FilterSource::Input(0)).op)
}

fn separable(n: usize) -> MapKernel {
    let row = RowFilterStage {
        source: FilterSource::Input(0),
        filter: Filter::row(vec![0.5; n]),
        border: Border::Reflect101,
    };
    MapKernel { stages: vec![row], ..one(correlate(n, 1, FilterSource::Stage(0)).op) }
}

fn product() -> MapKernel {
    let leaves = (0..2).map(|i| leaf(LeafOp::Load(i))).collect();
    let code = vec![instr(PixelOp::Mul, vec![Val::Leaf(0), Val::Leaf(1)])];
    MapKernel { inputs: 2, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() }
}

/// `filter` of a product of two images, which it evaluates itself.
fn over_product(mut filter: MapKernel) -> MapKernel {
    filter.inputs = 2;
    filter.chains = vec![product()];
    filter.stages.iter_mut().for_each(|s| s.source = FilterSource::Chain(0));
    for leaf in &mut filter.leaves {
        if let LeafOp::Correlate(source @ FilterSource::Input(_), ..) = &mut leaf.op {
            *source = FilterSource::Chain(0);
        }
    }
    filter
}

fn turned(input: usize, degrees: f64) -> Leaf {
    let map = Affine::new(rotation(degrees, SIZE), SIZE).expect("a rotation");
    leaf(LeafOp::Warp(input, map, Interpolation::Bilinear, Border::Constant(0.0).into()))
}

/// `max(acc, abs(a / b) * k)`.
fn pixel_chain() -> MapKernel {
    let leaves = (0..3).map(|i| leaf(LeafOp::Load(i))).collect();
    let code = vec![
        instr(PixelOp::Div, vec![Val::Leaf(0), Val::Leaf(1)]),
        instr(PixelOp::Abs, vec![Val::Instr(0)]),
        instr(PixelOp::Mul, vec![Val::Instr(1), Val::Const(Scalar::F32(2.5))]),
        instr(PixelOp::Max, vec![Val::Leaf(2), Val::Instr(2)]),
    ];
    MapKernel { inputs: 3, leaves, code, result: Some(Val::Instr(3)), ..MapKernel::default() }
}

/// Pairs of filters, `|a / b|` scaled, reduced by the maximum: one orientation of a detector.
fn orientation(leaves: Vec<Leaf>, stages: Vec<RowFilterStage>) -> MapKernel {
    let constant = |v| Val::Const(Scalar::F32(v));
    let (mut code, mut best): (Vec<Instr>, Val) = (Vec::new(), constant(0.0));
    for pair in 0..leaves.len() / 2 {
        code.push(instr(PixelOp::AbsDiv, vec![Val::Leaf(2 * pair), Val::Leaf(2 * pair + 1), constant(1e-3)]));
        code.push(instr(PixelOp::Mul, vec![Val::Instr(code.len() - 1), constant(1.5)]));
        code.push(instr(PixelOp::Max, vec![best, Val::Instr(code.len() - 1)]));
        best = Val::Instr(code.len() - 1);
    }
    MapKernel { inputs: 1, stages, leaves, code, result: Some(best), ..MapKernel::default() }
}

const SIGMAS: [f64; 3] = [3.0, 5.0, 7.0];

fn convrot() -> MapKernel {
    let (mut stages, mut leaves) = (Vec::new(), Vec::new());
    for (s, sigma_u) in SIGMAS.into_iter().enumerate() {
        for (sigma_v, order) in [(1.0, 2), (1.0, 0), (2.0, 2), (2.0, 0), (3.0, 2), (3.0, 0)] {
            let (row, column) = filters::gauss_xy(sigma_u, sigma_v, 0, order);
            if stages.len() == s {
                stages.push(RowFilterStage { source: FilterSource::Input(0), filter: row, border: Border::Reflect101 });
            }
            leaves.push(leaf(LeafOp::Correlate(FilterSource::Stage(s), column, Border::Reflect101)));
        }
    }
    orientation(leaves, stages)
}

fn conv2d() -> MapKernel {
    let sizes = [19, 31, 43].into_iter().flat_map(|n| [n; 6]);
    orientation(sizes.map(|n| correlate(n, n, FilterSource::Input(0))).collect(), Vec::new())
}

/// One oblique orientation of ConvUV, roughly as fused: along the line for each scale, then across
/// it for each scale and order, the second of which takes the contrast and the running maximum.
fn convuv(theta: f64) -> Vec<Kernel> {
    let correlated = |filter| LeafOp::Correlate(FilterSource::Input(0), filter, Border::Reflect101);
    let mut kernels: Vec<Kernel> = Vec::new();
    for sigma_u in SIGMAS {
        kernels.push(Kernel::Map(one(correlated(filters::gauss_uv(theta, sigma_u, 1.0, 0, 0).0))));
        for sigma_v in [1.0, 2.0, 3.0] {
            let across = |order| correlated(filters::gauss_uv(theta, sigma_u, sigma_v, 0, order).1);
            kernels.push(Kernel::Map(one(across(2))));
            let leaves = vec![leaf(across(0)), leaf(LeafOp::Load(1)), leaf(LeafOp::Load(2))];
            let code = vec![
                instr(PixelOp::AbsDiv, vec![Val::Leaf(1), Val::Leaf(0), Val::Const(Scalar::F32(1e-3))]),
                instr(PixelOp::Mul, vec![Val::Instr(0), Val::Const(Scalar::F32(1.5))]),
                instr(PixelOp::Max, vec![Val::Leaf(2), Val::Instr(1)]),
            ];
            let result = Some(Val::Instr(2));
            kernels.push(Kernel::Map(MapKernel { inputs: 3, leaves, code, result, ..MapKernel::default() }));
        }
    }
    kernels
}

/// The ten orientations of ConvUV that are not along an axis.
fn oblique() -> Vec<Kernel> {
    (0..12).map(|i| 15.0 * f64::from(i)).filter(|theta| theta % 90.0 != 0.0).flat_map(convuv).collect()
}

fn turned_back() -> MapKernel {
    let leaves = vec![leaf(LeafOp::Load(0)), turned(1, 60.0), turned(2, 75.0)];
    let code = vec![
        instr(PixelOp::Max, vec![Val::Leaf(0), Val::Leaf(1)]),
        instr(PixelOp::Max, vec![Val::Instr(0), Val::Leaf(2)]),
    ];
    MapKernel { inputs: 3, leaves, code, result: Some(Val::Instr(1)), ..MapKernel::default() }
}

/// Predicted seconds of kernels in sequence, each reading as many images as it has inputs.
fn predicted(profile: &MachineProfile, kernels: &[Kernel]) -> f64 {
    kernels.iter().map(|k| profile.launch(&work_of(k)).seconds).sum()
}

fn work_of(kernel: &Kernel) -> KernelWork {
    let column = Shape::new(SIZE.height, 1, 1);
    let (inputs, output): (Vec<ImageExtent>, ImageExtent) = match kernel {
        Kernel::Map(m) => (vec![(SIZE, F); m.inputs], (SIZE, F)),
        Kernel::Whole(Whole::RowReduce(r)) => (vec![(SIZE, F)], (column, r.result(F))),
        Kernel::Whole(Whole::Fold(_)) => (vec![(column, DType::F64)], (Shape::new(1, 1, 1), DType::F64)),
        _ => (vec![(SIZE, F)], (SIZE, F)),
    };
    kernel.work(&inputs, output, Window::whole(output.0.height))
}

/// Kernels in sequence, and their measured milliseconds on an H200 and on two cores.
type MeasuredKernels = (&'static str, Vec<Kernel>, Option<f64>, Option<f64>);

fn rows() -> Vec<MeasuredKernels> {
    let map = |m| vec![Kernel::Map(m)];
    vec![
        ("correlate 3", map(dense(3)), Some(0.0447), None),
        ("correlate 5", map(dense(5)), Some(0.0463), None),
        ("correlate 7", map(dense(7)), Some(0.0606), Some(6.59)),
        ("correlate 17", map(dense(17)), Some(0.2030), Some(27.9)),
        ("correlate 43", map(dense(43)), Some(1.2563), Some(156.0)),
        ("separable 5", map(separable(5)), Some(0.0649), None),
        ("separable 19", map(separable(19)), Some(0.0698), Some(8.51)),
        ("separable 43", map(separable(43)), Some(0.1224), Some(15.4)),
        ("rotate 30", map(MapKernel { leaves: vec![turned(0, 30.0)], ..dense(1) }), Some(0.0624), Some(19.9)),
        ("max(acc, abs(a/b)*k)", map(pixel_chain()), Some(0.0658), Some(10.1)),
        ("product", map(product()), Some(0.0498), None),
        ("sum", vec![RowReduce::Sum.into(), Fold::Sum.into()], Some(0.0257), Some(1.21)),
        ("ConvRot, one orientation", map(convrot()), Some(0.7014), None),
        ("ConvRot, two turned back", map(turned_back()), Some(0.1291), None),
        // Of 42.2 ms, two separable orientations take 1.4.
        ("ConvUV, ten orientations", oblique(), Some(40.8), None),
        ("Conv2D, one orientation", map(conv2d()), Some(13.55), None),
        ("correlate 3 of a product", map(over_product(dense(3))), Some(0.0624), None),
        ("correlate 7 of a product", map(over_product(dense(7))), Some(0.0870), None),
        ("correlate 17 of a product", map(over_product(dense(17))), Some(0.2209), None),
        ("separable 5 of a product", map(over_product(separable(5))), Some(0.0918), None),
        ("separable 19 of a product", map(over_product(separable(19))), Some(0.0996), None),
        ("separable 43 of a product", map(over_product(separable(43))), Some(0.1849), None),
    ]
}

/// Prints predicted beside measured milliseconds; fails if the errors exceed the bounds.
fn compare(name: &str, table: Vec<(&'static str, f64, f64)>, median: f64, worst: f64) {
    let mut errors = Vec::new();
    println!("{name:28} predicted  measured  error");
    for (kernel, predicted, measured) in table {
        let error = predicted / measured - 1.0;
        println!("{kernel:28} {predicted:9.4} {measured:9.4} {:5.1} %", error * 100.0);
        errors.push(error.abs());
    }
    errors.sort_by(f64::total_cmp);
    let middle = errors[errors.len() / 2];
    println!("median {:.1} %, worst {:.1} %", middle * 100.0, errors[errors.len() - 1] * 100.0);
    assert!(middle <= median, "{name}: the median error is {middle}");
    assert!(errors.iter().all(|e| *e <= worst), "{name}: errors {errors:?}");
}

#[test]
fn kernels_of_an_h200_take_what_was_measured() {
    // Events around an empty kernel are 5 to 6 us apart, of which a launch takes 2.5.
    const EVENTS: f64 = 3e-6;
    let profile = MachineProfile::shipped("NVIDIA H200 (GPU 0, sm_90)").expect("a profile");
    let table = rows().into_iter().filter_map(|(name, kernels, measured, _)| {
        Some((name, (predicted(&profile, &kernels) + EVENTS) * 1e3, measured?))
    });
    compare("H200", table.collect(), 0.05, 0.15);
}

#[test]
fn kernels_of_two_cores_take_what_was_measured() {
    let mut profile = MachineProfile::of_cores(2);
    profile.arithmetic.f32 = 193e9;
    let table = rows()
        .into_iter()
        .filter_map(|(name, kernels, _, measured)| Some((name, predicted(&profile, &kernels) * 1e3, measured?)));
    compare("2 cores", table.collect(), 0.05, 0.15);
}

#[test]
fn nothing_costs_nothing_and_more_costs_more() {
    for profile in [MachineProfile::of_default(false), MachineProfile::of_default(true), MachineProfile::of_cores(0)] {
        assert_eq!(profile.fault(), None);
        let of = |rows| Kernel::Map(separable(19)).work(&[(SIZE, F)], (SIZE, F), Window::new(0, rows));
        let seconds = |rows| profile.launch(&of(rows)).seconds;
        assert_eq!((seconds(0), profile.upload(0, HostSide::Staged), profile.host_copy(0)), (0.0, 0.0, 0.0));
        assert!((1..64).all(|i| seconds(64 * i) < seconds(64 * (i + 1))));
        assert!(profile.upload(1, HostSide::Pinned) < profile.upload(1 << 30, HostSide::Pinned));
        assert!((profile.division() - 50e-6).abs() < 1e-12);
    }
}

#[test]
fn what_goes_over_the_bus_takes_its_time_there() {
    let profile = MachineProfile::shipped("NVIDIA H200").expect("a profile");
    let work = |m: MapKernel| Kernel::Map(m.clone()).work(&vec![(SIZE, F); m.inputs], (SIZE, F), Window::whole(4096));
    let bytes = (SIZE.len() * 4) as f64;
    let over = |m: &MapKernel, read: f64, written: f64| {
        profile.launch_over(&work(m.clone()), OverBus { read, written, ..OverBus::NONE })
    };
    let (chain, large) = (pixel_chain(), dense(43));
    assert_eq!(profile.launch_over(&work(chain.clone()), OverBus::NONE), profile.launch(&work(chain.clone())));
    let (up, down) = (profile.upload.mapped.bandwidth, profile.download.mapped.bandwidth);
    let (reads, writes, both) = (over(&chain, bytes, 0.0), over(&chain, 0.0, bytes), over(&chain, bytes, bytes));
    assert_eq!([reads, writes, both].map(|c| c.bound), [LaunchBottleneck::Bus; 3]);
    assert!((reads.seconds / (bytes / up) - 1.0).abs() < 0.05 && (writes.seconds / (bytes / down) - 1.0).abs() < 0.05);
    // Both ways take as long as the slower one, and somewhat more as they interfere.
    assert!(both.seconds > 1.1 * reads.seconds && both.seconds < 1.25 * reads.seconds);
    // Rows around the tiles of a large filter cross the bus more than once.
    assert!(over(&large, bytes, 0.0).seconds > 2.0 * bytes / up);
}

#[test]
fn launches_that_leave_a_device_idle_take_as_long_as_those_that_fill_it() {
    let mut profile = MachineProfile::shipped("NVIDIA H200").expect("a profile");
    profile.arithmetic.fill = (1 << 20) as f64;
    let seconds = |n: usize, rows: usize| {
        let work = Kernel::Map(dense(n)).work(&[(SIZE, F)], (SIZE, F), Window::new(0, rows.cast_signed()));
        profile.launch(&work).seconds
    };
    let (few, many) = (seconds(43, 32), seconds(43, 256));
    assert!(few > 0.95 * many && few <= many, "{few} and {many}: a row has 4096 pixels");
    assert!(seconds(43, 512) > 1.9 * many);
}

#[test]
fn bounds_are_named() {
    let profile = MachineProfile::shipped("NVIDIA H200").expect("a profile");
    let bound = |m: MapKernel, rows| {
        let inputs = vec![(SIZE, F); m.inputs];
        profile.launch(&Kernel::Map(m).work(&inputs, (SIZE, F), Window::new(0, rows))).bound
    };
    assert_eq!(bound(pixel_chain(), 4096), LaunchBottleneck::Memory);
    assert_eq!(bound(dense(43), 4096), LaunchBottleneck::Arithmetic);
    assert_eq!(bound(dense(3), 1), LaunchBottleneck::Launch);
}

#[test]
fn work_counts_each_pixel_once() {
    let size = Shape::new(100, 50, 3);
    let of = |kernel: &Kernel, rows| kernel.work(&[(size, DType::U8)], (size, F), rows);
    let whole = of(&Kernel::Map(dense(7)), Window::whole(100));
    assert_eq!((whole.read, whole.written, whole.pixels), (15_000, 60_000, 15_000));
    assert_eq!(whole.multiply_adds, 49.0 * 15_000.0);
    assert_eq!((whole.reach, whole.staged, whole.family), (6, 0.0, Family::CorrelateSmall));
    let part = of(&Kernel::Map(dense(7)), Window::new(10, 20));
    assert_eq!((part.read, part.written), (16 * 150, 10 * 150 * 4), "3 rows above and below are read too");
    let plane = Kernel::Map(one(LeafOp::LoadPlane(0, PlaneMap::one(2))));
    assert_eq!(plane.work(&[(size, F)], (Shape::new(100, 50, 1), F), Window::whole(100)).read, 100 * 50 * 4);
    let counted = Kernel::from(Histogram::new(256, 0.0, 1.0));
    let counted = counted.work(&[(size, DType::U8)], (Shape::new(1, 256, 3), DType::F64), Window::new(0, 10));
    assert_eq!((counted.read, counted.written, counted.pixels), (1500, 256 * 3 * 8, 1500));
}

#[test]
fn a_rotated_strip_reads_about_its_own_area() {
    let kernel = Kernel::Map(MapKernel { leaves: vec![turned(0, 45.0)], ..dense(1) });
    let strip = kernel.work(&[(SIZE, F)], (SIZE, F), Window::new(1920, 2176));
    let ratio = strip.read as f64 / strip.written as f64;
    assert!((0.7..1.6).contains(&ratio), "{ratio}: its bounding rows are most of the image");
}

#[test]
fn rates_are_interpolated_by_the_logarithm_and_kept_beyond_the_ends() {
    let rates = Rates(vec![(1.0, 10.0), (16.0, 50.0)]);
    assert_eq!([0.5, 1.0, 4.0, 16.0, 99.0].map(|s| rates.at(s)), [10.0, 10.0, 30.0, 50.0, 50.0]);
}

#[test]
fn copies_in_turn_follow_the_model_of_the_thesis() {
    // Table 5.1, host to device: 16 MiB in 64 streams.
    let line = CopyTime { latency: 9.42e-6, overhead: 0.0, gap: 2.503e-6, bandwidth: 1.0 / 8.318392e-11 };
    let seconds = line.in_turn(16 << 20, 64);
    assert!((seconds - (9.42e-6 + 16_777_216.0 * 8.318392e-11 + 63.0 * 2.503e-6)).abs() < 1e-12);
    assert_eq!(line.in_turn(16 << 20, 1), line.time(16 << 20));
}

#[test]
fn profiles_that_cannot_be_are_refused() {
    let fault = |change: fn(&mut MachineProfile)| {
        let mut profile = MachineProfile::of_default(false);
        change(&mut profile);
        profile.fault()
    };
    assert_eq!(fault(|p| p.version += 1), Some("its version is another"));
    assert_eq!(fault(|p| p.upload.staged.bandwidth = 0.0), Some("a copy between host and device"));
    assert_eq!(fault(|p| p.launch.host = f64::NAN), Some("launches"));
    assert_eq!(fault(|p| p.recording = -1.0), Some("recording"));
    assert_eq!(fault(|p| p.memory.0.clear()), Some("the device's memory"));
    assert_eq!(fault(|p| p.host_copy.0.push((0.5, 1.0))), Some("copies of the host"));
    assert_eq!(fault(|p| p.links.network.latency = -1.0), Some("messages"));
    let text = serde_json::to_string(&MachineProfile::shipped("H100").expect("a profile")).expect("text");
    assert_eq!(serde_json::from_str::<MachineProfile>(&text).ok(), MachineProfile::shipped("H100"));
}

#[test]
fn a_processor_beside_a_gpu_copies_what_it_reads_and_writes() {
    let cores = MachineProfile::of_cores(16);
    let apart = cores.clone().with_host_copies();
    assert!(cores.is_unified() && !apart.is_unified());
    let seconds = apart.upload(1 << 30, HostSide::Pinned) + apart.download(1 << 30, HostSide::Staged);
    assert_eq!(seconds, (2u64 << 30) as f64 / cores.host_copy.at(1.0));
}

/// Seconds per step of an anisotropic diffusion on an H200, with `steps` steps per launch.
fn seconds_per_step(size: usize, steps: usize) -> f64 {
    let pixels = size * size;
    let work = KernelWork {
        read: 4 * pixels,
        written: 4 * pixels,
        multiply_adds: (130 * pixels * steps) as f64,
        taps: (8 * pixels * steps) as f64,
        reach: 2 * steps,
        pixels,
        iterations: steps,
        family: Family::Sparse,
        ..KernelWork::NONE
    };
    MachineProfile::shipped("NVIDIA H200").unwrap().launch(&work).seconds / steps as f64
}

#[test]
fn steps_in_tiles_that_leave_multiprocessors_idle_take_longer() {
    for steps in 2..16 {
        assert!(seconds_per_step(1024, steps) > seconds_per_step(1024, 1), "{steps} steps");
    }
    // With many tiles, only redundant computation counts: measured 1.54.
    let times = seconds_per_step(4096, 8) / seconds_per_step(4096, 1);
    assert!((1.3..1.8).contains(&times), "{times}");
}
