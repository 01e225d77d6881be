//! Several steps of a loop in one launch: the bits of single steps, on every device and number of
//! ranks, and the launches and exchanges saved.

use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::{Device, Geometry, Launch, LaunchInput, Memory};
use horus_core::dtype::{DType, Scalar};
use horus_core::error::Result;
use horus_core::filters::Footprint;
use horus_core::host::buffer::HostBuffer;
use horus_core::image::{Image, LoopState, Until};
use horus_core::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use horus_core::ir::kernel::{FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Repeat, Val};
use horus_core::machine::{Link, Links, Machine, MachineProfile};
use horus_core::ops::geometric::{Affine, Interpolation};
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, Reduce};
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::planes::PlaneMap;
use horus_core::optimize::{OptimizationTarget, optimize_for};
use horus_core::plan::partition::Partition;
use horus_core::plan::state::{Halo, ImageState, Placement, Residency};
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, Mode, Plan, ResultDelivery, Setting, plan};
use horus_core::session::{Session, SessionBuilder};
use horus_core::settings::StepsPerLaunch;
use horus_core::shape::{Axis, Border, Shape, Window};
use horus_testing::cases::covering;
use horus_testing::reference::kernel::{HostImage, evaluate};
use horus_testing::simulated::SimulatedDevice;

const BORDERS: [Border; 5] = Border::all(0.5);

fn cpu(threads: usize) -> CpuDevice {
    CpuDevice::new(Some(threads)).expect("a CPU")
}

fn builder(separate: bool, steps: u8) -> SessionBuilder {
    let builder = match separate {
        false => Session::on(Box::new(cpu(1))),
        true => Session::on(Box::new(SimulatedDevice::new(cpu(1), 1 << 22))),
    };
    builder.steps_per_launch(StepsPerLaunch::Most(steps))
}

fn cross() -> Filter {
    Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [0.25; 4])
}

fn given(s: &Session, height: usize, width: usize) -> Image<f32> {
    Image::from_fn(s, height, width, |y, x| ((y * 31 + x * 17) % 101) as f32 * 0.125)
}

/// The bits of the results of a loop over many programs.
fn results(s: &Session, steps: usize, height: usize, width: usize) -> Result<Vec<(String, Vec<u64>)>> {
    let u = given(s, height, width);
    let doubles = u.convert::<f64>();
    let row = Image::from_fn(s, 1, width, |_, x| x as f32);
    let column = Image::from_fn(s, height, 1, |y, _| 1.0 / (1 + y) as f32);
    let stored = &u * 0.5 + 1.0;
    let planes = Image::stack(s, [u.clone(), stored.clone(), &u * 0.25], Axis::Channels);
    let seed = u.gt(11.0).convert::<u8>();
    let within = u.gt(3.0).convert::<u8>();
    s.evaluate()?;
    let mut all = Vec::new();
    let single = |v: Vec<f32>| v.into_iter().map(|v| u64::from(v.to_bits())).collect::<Vec<_>>();
    let mut check = |name: String, begin: &Image<f32>, step: &dyn Fn(&Image<f32>) -> Image<f32>| -> Result<()> {
        all.push((name, single(s.iterate(begin.clone(), steps, step)?.state.to_vec()?)));
        Ok(())
    };
    for border in BORDERS {
        check(format!("cross {border}"), &u, &|u| u.with_border(border).correlate(&cross()))?;
        let square = Filter::dense(3, 3, (1..10).map(|v| f64::from(v) / 45.0).collect::<Vec<_>>());
        check(format!("square {border}"), &u, &|u| u.with_border(border).correlate(&square))?;
        let one_sided = Filter::sparse([(0, 0), (2, 1), (1, -1)], [0.5, 0.25, 0.25]);
        check(format!("one-sided {border}"), &u, &|u| u.with_border(border).correlate(&one_sided))?;
        check(format!("factors {border}"), &u, &|u| u.with_border(border).correlate(&cross()) + &column * &row)?;
        check(format!("image {border}"), &u, &|u| u.with_border(border).correlate(&cross()) * 0.5 + &stored)?;
        check(format!("flow {border}"), &u, &|u| {
            let [north, west] = [(-1, 0), (0, -1)]
                .map(|to| u.with_border(border).correlate(&Filter::sparse([to, (0, 0)], [1.0, -1.0])));
            u + ((-north.square()).exp() * &north + (-west.square()).exp() * &west) * 0.2
        })?;
        check(format!("planes {border}"), &planes, &|u| u.with_border(border).correlate(&cross()) + &row)?;
    }
    check("places".into(), &u, &|u| {
        u.with_border(Border::Reflect).correlate(&cross()) + Image::<f32>::index(s, u.shape(), Axis::Rows) * 0.25
            - Image::<f32>::index(s, u.shape(), Axis::Columns)
    })?;
    check("pixels".into(), &u, &|u| u * u * 0.01 + &stored)?;
    check("two borders".into(), &u, &|u| {
        u.with_border(Border::Reflect).correlate(&cross()) * 0.5
            + u.with_border(Border::Replicate).correlate(&cross()) * 0.5
    })?;
    check("median".into(), &u, &|u| u.with_border(Border::Reflect).median(3) * 0.5 + u * 0.5)?;
    check("separable".into(), &u, &|u| u.gauss(1.0) * 0.5 + u)?;
    check("itself".into(), &u, &|v| v.with_border(Border::Reflect).correlate(&cross()) + &u)?;
    check("turned".into(), &u, &|v| {
        v.with_border(Border::Reflect).correlate(&cross()).max(v.rotate(5.0, Interpolation::Bilinear))
    })?;
    let step = |u: &Image<f64>| u.with_border(Border::Constant(-1.0)).correlate(&cross()) + u * 1e-3;
    let of_doubles = s.iterate(doubles, steps, step)?.state.to_vec()?;
    all.push(("f64".into(), of_doubles.into_iter().map(f64::to_bits).collect()));
    for border in BORDERS {
        let grown =
            s.iterate(seed.clone(), steps, |m| m.with_border(border).dilate(&Footprint::cross(1)).min(&within))?.state;
        all.push((format!("grown {border}"), grown.to_vec()?.into_iter().map(u64::from).collect()));
    }
    // Measured during the loop, and used outside it.
    let until = Until::below(1e-6, steps).every(5);
    let measured = s.iterate(u.clone(), until, |u| u.with_border(Border::Constant(0.0)).correlate(&cross()))?;
    all.push(("measured".into(), single(measured.state.to_vec()?)));
    all.push(("steps".into(), vec![measured.steps as u64, measured.change.unwrap_or(0.0).to_bits()]));
    let states: Vec<Image<f32>> = (0..steps.min(6))
        .scan(u.clone(), |u, _| {
            *u = u.with_border(Border::Reflect).correlate(&cross());
            Some(u.clone())
        })
        .collect();
    for (i, state) in states.iter().enumerate().filter(|(i, _)| i % 2 == 1) {
        all.push((format!("escaped {i}"), single(state.to_vec()?)));
    }
    Ok(all)
}

#[test]
fn several_steps_give_the_bits_of_one_at_a_time() {
    const SIZES: [(usize, usize); 6] = [(23, 17), (5, 40), (1, 9), (9, 1), (1, 1), (70, 3)];
    for [size, steps, separate, most] in covering([SIZES.len(), 3, 2, 5]) {
        let ((height, width), steps, most) = (SIZES[size], [2, 7, 16][steps], [1, 2, 3, 5, 16][most]);
        let one = results(&builder(false, 1).mode(Mode::Lazy).build().unwrap(), steps, height, width).unwrap();
        let many = results(&builder(separate == 1, most).build().unwrap(), steps, height, width).unwrap();
        for (one, many) in one.iter().zip(&many) {
            assert_eq!(one, many, "{height}x{width}, {steps} steps, {most} in a launch");
        }
    }
}

#[test]
fn on_any_number_of_ranks() {
    // The last are strips thinner than the halo of a launch.
    for [size, ranks, kind] in covering([3, 5, 3]) {
        let (height, width) = [(41, 12), (6, 9), (3, 4)][size];
        let (separate, most) = [(false, 4), (true, 3), (true, 16)][kind];
        let one = results(&builder(false, 1).mode(Mode::Lazy).build().unwrap(), 9, height, width).unwrap();
        ThreadComm::run(1 + ranks, |comm| {
            let s = builder(separate, most).communicator(Arc::new(comm)).build().unwrap();
            let many = results(&s, 9, height, width).unwrap();
            for (one, many) in one.iter().zip(&many) {
                assert_eq!(one, many, "{height}x{width}, {} ranks, {most} in a launch", 1 + ranks);
            }
        });
    }
}

#[test]
fn what_is_empty_stays_empty() {
    for (height, width) in [(0, 5), (5, 0)] {
        let s = builder(false, 4).build().unwrap();
        let u = Image::<f32>::zeros(&s, (height, width));
        let done = s.iterate(u, 9, |u| u.with_border(Border::Constant(1.0)).correlate(&cross()));
        if let Ok(done) = done {
            assert!(done.state.to_vec().unwrap().is_empty());
        }
    }
}

/// Jacobi's relaxation in plain loops, with multiply-adds in the order of the taps.
#[test]
fn a_relaxation_is_what_plain_loops_make_of_it() {
    let (h, w, steps) = (37, 29, 21);
    let s = Session::on(Box::new(cpu(2))).steps_per_launch(StepsPerLaunch::Most(6)).build().unwrap();
    let (u, f) = (given(&s, h, w), Image::from_fn(&s, h, w, |y, x| (y as f32 - x as f32) * 0.01));
    let mut a = u.to_vec().unwrap();
    let rhs = f.to_vec().unwrap();
    for _ in 0..steps {
        let at = |y: isize, x: isize| {
            let inside = (0..h as isize).contains(&y) && (0..w as isize).contains(&x);
            if inside { a[y as usize * w + x as usize] } else { 2.0 }
        };
        let pixel = |i: usize| {
            let (y, x) = ((i / w) as isize, (i % w) as isize);
            let sum = [at(y - 1, x), at(y, x - 1), at(y, x + 1), at(y + 1, x)]
                .iter()
                .fold(0.0f32, |s, v| 0.25f32.mul_add(*v, s));
            sum + rhs[i]
        };
        a = (0..h * w).map(pixel).collect();
    }
    let done = s.iterate(u, steps, |u| u.with_border(Border::Constant(2.0)).correlate(&cross()) + &f).unwrap();
    let got: Vec<u32> = done.state.to_vec().unwrap().iter().map(|v| v.to_bits()).collect();
    assert_eq!(got, a.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
}

/// Launches and exchanges of a loop of 16 steps, once its images are in place.
fn counted(ranks: usize, most: u8, step: impl Fn(&Image<f32>) -> Image<f32> + Sync) -> (usize, usize) {
    let counts = ThreadComm::run(ranks, |comm| {
        let s = builder(true, most).communicator(Arc::new(comm)).build().unwrap();
        let first = s.iterate(given(&s, 200, 30), 16, &step).unwrap().state;
        let before = s.stats().made;
        let state = s.iterate(first, 16, &step).unwrap().state;
        let made = s.stats().made;
        drop(state.to_vec().unwrap());
        (made.launches - before.launches, made.exchanges - before.exchanges)
    });
    assert!(counts.iter().all(|c| *c == counts[0]), "{counts:?}");
    counts[0]
}

#[test]
fn launches_and_exchanges_become_fewer() {
    let step = |u: &Image<f32>| u.with_border(Border::Reflect).correlate(&cross());
    for (most, launches) in [(1, 16), (2, 8), (4, 4), (5, 4), (8, 2), (16, 1)] {
        assert_eq!(counted(1, most, step), (launches, 0), "{most}");
        // One exchange of 16 rows serves all steps, as computing few rows is faster than messages.
        assert_eq!(counted(3, most, step), (launches, 1), "{most}");
    }
    // The image cannot be wrapped within a launch, and 16 rows is the largest halo.
    assert_eq!(
        counted(3, 4, |u| u.with_border(Border::Wrap).correlate(&Filter::sparse([(0, 1), (1, 0)], [0.5; 2]))),
        (16, 16)
    );
    assert_eq!(
        counted(1, 16, |u| u.with_border(Border::Reflect).correlate(&Filter::sparse([(0, 0), (5, 0)], [0.5; 2]))),
        (6, 0)
    );
    assert_eq!(counted(1, 16, |u| u * 0.5 + 1.0), (1, 0), "pixel operations are one kernel anyway");
}

#[test]
fn steps_of_many_kinds_are_put_together() {
    let s = builder(true, 16).build().unwrap();
    let u = given(&s, 50, 20);
    let (row, column) = (Image::from_fn(&s, 1, 20, |_, x| x as f32), Image::from_fn(&s, 50, 1, |y, _| y as f32));
    let (stored, seed) = (given(&s, 50, 20) * 0.5, u.gt(11.0).convert::<u8>());
    let planes = Image::stack(&s, [u.clone(), stored.clone()], Axis::Channels);
    s.evaluate().unwrap();
    let launches = |run: &dyn Fn() -> Result<()>| {
        let before = s.stats().made.launches;
        run().unwrap();
        s.stats().made.launches - before
    };
    type Step<'a> = &'a dyn Fn(&Image<f32>) -> Image<f32>;
    let flow = |u: &Image<f32>| {
        let [north, west] = [(-1, 0), (0, -1)]
            .map(|to| u.with_border(Border::Replicate).correlate(&Filter::sparse([to, (0, 0)], [1.0, -1.0])));
        u + ((-north.square()).exp() * &north + (-west.square()).exp() * &west) * 0.2
    };
    let factors = |u: &Image<f32>| u.with_border(Border::Constant(0.0)).correlate(&cross()) + &column * &row;
    let image = |u: &Image<f32>| u.with_border(Border::Constant(0.0)).correlate(&cross()) + &stored;
    let steps: [(&str, &Image<f32>, Step<'_>); 4] =
        [("flow", &u, &flow), ("factors", &u, &factors), ("image", &u, &image), ("planes", &planes, &flow)];
    for (name, begin, step) in steps {
        assert_eq!(launches(&|| s.iterate(begin.clone(), 16, step).map(drop)), 1, "{name}");
    }
    let within = u.gt(3.0).convert::<u8>();
    s.evaluate().unwrap();
    let grown = || s.iterate(seed.clone(), 16, |m| m.dilate(&Footprint::cross(1)).min(&within)).map(drop);
    assert_eq!(launches(&grown), 1, "masks that grow");
}

/// The given number of steps of the relaxation, recorded by hand, with a constant image.
fn recorded(steps: usize, height: usize, width: usize) -> Graph<Op> {
    let mut g = Graph::default();
    let shape = Shape::new(height, width, 1);
    let mut push = |op, inputs: Vec<NodeId>| {
        g.push(Node { op, inputs, shape, dtype: DType::F32, site: Location::caller().into() })
    };
    let (mut u, f) = (push(Op::Source(ValueId(0)), vec![]), push(Op::Source(ValueId(1)), vec![]));
    for _ in 0..steps {
        let mean = push(Op::Correlate(cross(), Border::Reflect), vec![u]);
        u = push(Op::Pixel(PixelOp::Add, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]), vec![mean, f]);
    }
    g.roots = vec![u];
    g
}

/// The plan of 12 steps for ranks whose messages take no time (`free`), or as long as by default.
fn planned(free: bool, steps: StepsPerLaunch, ranks: usize, height: usize) -> Plan {
    let mut profile = MachineProfile::of_default(true);
    if free {
        let link = Link { latency: 0.0, bandwidth: f64::INFINITY };
        profile.links = Links { peers: link, host: link, network: link };
    }
    let machine = Arc::new(Machine::alike(profile));
    let setting = Setting { machine, ..Setting::of(Partition::equal(ranks), true) };
    let aim = OptimizationTarget { ranks, steps, ..OptimizationTarget::of(&setting.machine) };
    let kernels = optimize_for(recorded(12, height, 64), true, &aim, &mut |_, _| ()).unwrap();
    let state = ImageState { residency: Residency::Both, placement: Placement::Strips(Halo::NONE) };
    plan(kernels, &[ResultDelivery::Keep], &setting, |_| state, |_| false, &mut |_, _| ()).unwrap()
}

#[test]
fn borders_are_exchanged_once_for_each_launch_and_of_what_stays_once() {
    let halos = |free| -> Vec<(usize, Halo)> {
        let plan = planned(free, StepsPerLaunch::Most(4), 3, 300);
        verify(&plan).unwrap();
        let exchanges = plan.steps.iter().filter_map(|s| match s.action {
            Action::Exchange { node, halo, .. } | Action::Begin { node, halo, .. } => Some((node.0, halo)),
            _ => None,
        });
        exchanges.collect()
    };
    assert_eq!(halos(false), [(0, Halo::even(12)), (1, Halo::even(11))], "all steps compute rows of neighbours");
    let (states, stays): (Vec<_>, Vec<_>) = halos(true).into_iter().partition(|(node, _)| *node != 1);
    assert_eq!(stays, [(1, Halo::even(3))], "all steps but the last compute rows around the strip");
    assert_eq!(states.iter().map(|(_, halo)| *halo).collect::<Vec<_>>(), [Halo::even(4); 3]);
    assert_eq!(states.iter().map(|(node, _)| *node).collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn borders_that_are_a_row_too_thin_are_found() {
    let good = planned(true, StepsPerLaunch::Most(4), 3, 300);
    let mut found = 0;
    for i in 0..good.steps.len() {
        let mut bad = good.clone();
        let (Action::Exchange { halo, .. } | Action::Begin { halo, .. }) = &mut bad.steps[i].action else { continue };
        *halo = Halo::even(halo.up - 1);
        let error = verify(&bad).unwrap_err().to_string();
        assert!(error.contains("up to date"), "{error}");
        found += 1;
    }
    assert_eq!(found, 4);
}

#[test]
fn strips_that_are_thin_are_not_computed_twice() {
    let launches = |ranks, height| planned(false, StepsPerLaunch::Auto, ranks, height).counts().launches;
    assert_eq!(launches(8, 32), 12, "4 rows each");
    assert!(launches(1, 4096) < 12 && launches(2, 4096) < 12);
    let machine = Machine::of_default(true);
    let aim = OptimizationTarget { steps: StepsPerLaunch::Most(1), ..OptimizationTarget::of(&machine) };
    let kernels = optimize_for(recorded(12, 4096, 64), true, &aim, &mut |_, _| ()).unwrap();
    assert!(!kernels.nodes.iter().any(|n| matches!(n.op, Kernel::Repeat(_))));
}

/// Number of launches predicted to be fastest for 12 steps.
fn launches_on(machine: &Machine, size: usize) -> usize {
    let aim = OptimizationTarget { steps: StepsPerLaunch::Auto, ..OptimizationTarget::of(machine) };
    let kernels = optimize_for(recorded(12, size, size), true, &aim, &mut |_, _| ()).unwrap();
    kernels.nodes.iter().filter(|n| !matches!(n.op, Kernel::Source(_))).count()
}

#[test]
fn as_many_steps_are_put_together_as_pay() {
    let gpu = Machine::alike(MachineProfile::shipped("NVIDIA H200").unwrap());
    // On a GPU, more steps leave less of a tile valid.
    let launches = launches_on(&gpu, 4096);
    assert!((2..=4).contains(&launches), "{launches}");
    assert!(launches_on(&gpu, 16384) <= 4);
    assert!(launches_on(&Machine::alike(MachineProfile::of_cores(2)), 4096) <= 2);
}

fn leaf(op: LeafOp, dtype: DType) -> Leaf {
    Leaf { op, dtype }
}

fn instr(op: PixelOp, dtype: DType, args: Vec<Val>) -> Instr {
    Instr { op: InstrOp::Pixel(op), operand: dtype, result: dtype, args }
}

/// Steps of every kind, over an image, another, a row and a column.
fn repeats(dtype: DType, border: Border, steps: usize) -> Vec<Repeat> {
    let quarter = Val::Const(Scalar::from_f64(dtype, 0.25));
    let mut all = Vec::new();
    let row = leaf(
        LeafOp::Warp(2, Affine { yy: 0, ..Affine::IDENTITY }, Interpolation::Nearest, Border::Replicate.into()),
        dtype,
    );
    let column = leaf(
        LeafOp::Warp(3, Affine { xx: 0, ..Affine::IDENTITY }, Interpolation::Nearest, Border::Replicate.into()),
        dtype,
    );
    let rest = [leaf(LeafOp::Load(0), dtype), leaf(LeafOp::LoadPlane(1, PlaneMap::one(0)), dtype), row, column];
    let code = |first: usize| {
        vec![
            instr(PixelOp::Mul, dtype, vec![Val::Leaf(first + 2), Val::Leaf(first + 3)]),
            instr(PixelOp::Max, dtype, vec![Val::Leaf(first), Val::Instr(0)]),
            instr(PixelOp::Mul, dtype, vec![Val::Leaf(first + 1), quarter]),
            instr(PixelOp::Add, dtype, vec![Val::Instr(1), Val::Instr(2)]),
            instr(PixelOp::Min, dtype, vec![Val::Instr(3), Val::Leaf(0)]),
        ]
    };
    let mut add = |reading: LeafOp| {
        let leaves = std::iter::once(leaf(reading, dtype)).chain(rest.clone()).collect();
        let body = MapKernel { inputs: 4, leaves, code: code(1), result: Some(Val::Instr(4)), ..MapKernel::default() };
        let repeat = Repeat { body, state: 0, iterations: steps };
        assert_eq!(repeat.fault(), None);
        all.push(repeat);
    };
    if dtype.is_float() {
        for filter in [cross(), Filter::sparse([(2, 0), (0, -1)], [0.5; 2]), Filter::dense(3, 5, vec![1.0 / 15.0; 15])]
        {
            add(LeafOp::Correlate(FilterSource::Input(0), filter, border));
        }
    }
    let window = Filter::sparse([(-1, 0), (0, 0), (0, 1)], [0.0; 3]);
    add(LeafOp::OrderFilter(0, Generalized { combine: Combine::Pixel, reduce: Reduce::Max, window }.into(), border));
    all
}

/// Launches on strips with minimal windows, compared with the definition.
#[test]
fn launches_compute_their_rows_from_what_they_say_they_read() {
    let devices: Vec<CpuDevice> = [1, 2].map(cpu).into();
    for dtype in [DType::F32, DType::F64, DType::U8, DType::I32] {
        for border in BORDERS.into_iter().filter(|b| *b != Border::Wrap) {
            for (height, width, channels, depth) in [(40, 37, 1, 1), (300, 5, 2, 1), (3, 70, 1, 3), (1, 1, 1, 1)] {
                for repeat in [1, 2, 5].into_iter().flat_map(|steps| repeats(dtype, border, steps)) {
                    let kernel = Kernel::Repeat(repeat);
                    let shape = Shape { depth, ..Shape::new(height, width, channels) };
                    let shapes = [shape, shape, Shape { height: 1, ..shape }, Shape { width: 1, ..shape }];
                    for rows in [Window::whole(height), Window::new(height as isize / 3, height as isize * 2 / 3 + 1)] {
                        let geometry = |(i, shape): (usize, Shape)| {
                            let window = kernel.footprint(i, rows, shapes[0], shape);
                            Geometry { shape, dtype, window }
                        };
                        let inputs: Vec<HostImage> = shapes
                            .into_iter()
                            .enumerate()
                            .map(|at| HostImage::random(geometry(at), at.0 as u64 + 1))
                            .collect();
                        let output = Geometry { shape, dtype, window: rows };
                        let mut want = HostImage::zeroed(output);
                        evaluate(&kernel, &inputs, &mut want, rows);
                        for device in &devices {
                            let memories: Vec<Memory> =
                                inputs.iter().map(|i| Memory::Host(HostBuffer::from_slice(&i.bytes))).collect();
                            let inputs = memories.iter().zip(&inputs);
                            let inputs: Vec<LaunchInput<'_>> = inputs
                                .map(|(memory, image)| LaunchInput { memory, geometry: image.geometry })
                                .collect();
                            let mut memory = Memory::Host(HostBuffer::zeroed(output.bytes()));
                            let launch = Launch {
                                kernel: &kernel,
                                inputs: &inputs,
                                output: &mut memory,
                                additional_outputs: &mut [],
                                geometry: output,
                                rows,
                            };
                            device.launch(launch).unwrap();
                            let bytes = memory.host().unwrap().bytes().to_vec();
                            let got = HostImage { geometry: output, bytes };
                            if let Some((at, a, b)) = got.difference(&want) {
                                panic!(
                                    "{} {dtype} {border} {shape} rows {rows}: element {at} is {a}, should be {b}",
                                    kernel.name()
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Loops over a state of several images, or one that is read elsewhere, are not combined, and still
/// correct.
#[test]
fn loops_of_several_images_stay_as_they_are() {
    type Two = (Image<f32>, Image<f32>);
    let step = |(a, b): &Two| (b.with_border(Border::Reflect).correlate(&cross()), a * 0.25 + b);
    let [one, many] = [1, 8].map(|most| {
        let s = builder(false, most).build().unwrap();
        let u = given(&s, 12, 10);
        let (a, b) = s.iterate((u.clone(), &u * 0.5), 11, step).unwrap().state;
        (a.to_vec().unwrap(), b.to_vec().unwrap())
    });
    assert_eq!(one, many);
    fn assert_state<S: LoopState>() {}
    assert_state::<Two>();
}
