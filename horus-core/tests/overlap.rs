//! Launches that compute their interior during halo exchanges: the same bits, the same messages,
//! and the detection of wrong plans.

#[path = "conformance/harness.rs"]
#[allow(dead_code, reason = "shared with the conformance tests, which use all of it")]
mod harness;

use std::sync::Arc;

use harness::{ConformanceProgram, RunConfiguration, connect, execute_on_rank, image, planned_for};
use horus_core::comm::threads::ThreadComm;
use horus_core::comm::{Communicator, SingleRankComm};
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::dtype::DType;
use horus_core::ir::graph::{NodeId, Op};
use horus_core::machine::{Link, Links, Machine, MachineProfile};
use horus_core::ops::geometric::Flip;
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::plan::forecast::forecast;
use horus_core::plan::movement::Load;
use horus_core::plan::partition::Partition;
use horus_core::plan::state::Halo;
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, LaunchPart, Mode, Plan, Setting};
use horus_core::shape::{Border, Shape};
use horus_testing::reference::{self, ReferenceImage};
use horus_testing::simulated::{CallCounts, SimulatedDevice};

/// Calls `f` with the device of a place, and with its log if it is a simulated one.
fn on_device<R>(place: RunConfiguration, f: impl FnOnce(&dyn Device, &dyn Fn() -> CallCounts) -> R) -> R {
    let cpu = CpuDevice::new(Some(1)).unwrap();
    if !place.separate {
        return f(&cpu, &CallCounts::default);
    }
    let simulated = SimulatedDevice::new(cpu, usize::MAX / 2).requiring_preparation();
    let simulated = if place.direct { simulated.with_fabric() } else { simulated };
    let log = simulated.call_counts();
    f(&simulated, &|| log.get())
}

fn with_device<R>(place: RunConfiguration, f: impl FnOnce(&dyn Device) -> R) -> R {
    on_device(place, |device, _| f(device))
}

/// The paths of halos: host memory, devices through the host, from device to device.
const WAYS: [(bool, bool); 3] = [(false, false), (true, false), (true, true)];

fn place(ranks: usize, (separate, direct): (bool, bool), overlap: bool) -> RunConfiguration {
    RunConfiguration {
        ranks,
        mode: Mode::Fused,
        separate,
        direct: direct && ranks > 1,
        overlap,
        from_root: true,
        bands: None,
    }
}

fn borders() -> [Border; 5] {
    Border::all(2.5)
}

fn taps(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 29 % 13) as f64 - 5.0) / 9.0).collect()
}

/// A sequence of filters that reach further up than down, and a pixel operation that is computed on
/// halos.
fn chain(shape: Shape, border: Border) -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let a = p.source(image(shape, DType::F32, 3));
    let b = p.like(Op::Correlate(Filter::dense(5, 3, taps(15)), border), a);
    let c = p.like(Op::Correlate(Filter::column(taps(4)), border), b);
    let d = p.pixel_const(PixelOp::Mul, c, &[0.5]);
    let (row, column) = (Filter::row(taps(5)), Filter::column(taps(3)));
    let e = p.like(Op::Separable { row, column, border }, d);
    // Two inputs of one launch, both with pending halos.
    let f = p.like(Op::Correlate(Filter::dense(3, 3, taps(9)), border), e);
    let g = p.like(Op::Correlate(Filter::dense(3, 3, taps(9)), border), c);
    let h = p.pixel(PixelOp::Max, &[f, g]);
    p.wanted(&[h, d])
}

/// A sequence of filters, nothing else.
fn filters(rounds: usize, height: usize, border: Border) -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let mut a = p.source(image(Shape::new(height, 20, 1), DType::F32, 5));
    for _ in 0..rounds {
        a = p.like(Op::Correlate(Filter::dense(5, 5, taps(25)), border), a);
    }
    p.wanted(&[a])
}

/// Machines between which messages take this long before their first byte, and no time for bytes.
fn machine(separate: bool, latency: f64) -> Arc<Machine> {
    let link = Link { latency, bandwidth: f64::INFINITY };
    let links = Links { peers: link, host: link, network: link };
    let mut profile = MachineProfile { links, ..MachineProfile::of_default(!separate) };
    if separate {
        // Rows that travel through hosts are copied in no time, too.
        for copies in [&mut profile.upload, &mut profile.download] {
            copies.pinned.bandwidth = 1e15;
        }
    }
    Arc::new(Machine::alike(profile))
}

/// The plan of a program for devices of so many bytes, and messages of this latency.
fn planned_by(
    p: &ConformanceProgram,
    place: RunConfiguration,
    partition: Partition,
    capacity: Option<usize>,
    latency: f64,
) -> Plan {
    let RunConfiguration { ranks, mode, separate, direct, overlap, .. } = place;
    let (direct, machine) = (direct && ranks > 1, machine(separate, latency));
    let setting = Setting { direct, overlap, mode, capacity, machine, ..Setting::of(partition, !separate) };
    planned_for(p, place, &setting)
}

/// The plan of a program where messages are free, so that all rows around strips are exchanged.
fn planned(p: &ConformanceProgram, place: RunConfiguration, partition: Partition) -> Plan {
    planned_by(p, place, partition, None, 0.0)
}

fn reference(p: &ConformanceProgram) -> Vec<ReferenceImage> {
    reference::evaluate(&p.graph, &|v| p.sources[v.0 as usize].clone())
}

/// Results, messages and the device's log of each rank for its plan.
fn run(
    p: &ConformanceProgram,
    place: RunConfiguration,
    plan: impl Fn(usize) -> Plan + Sync,
) -> Vec<(Vec<ReferenceImage>, Load, CallCounts)> {
    let on_rank = |comm: &dyn Communicator| {
        on_device(place, |device, log| {
            connect(place, comm, device);
            let (images, sent) = execute_on_rank(p, &plan(comm.rank()), comm, device);
            (images, sent, log())
        })
    };
    if place.ranks == 1 { vec![on_rank(&SingleRankComm)] } else { ThreadComm::run(place.ranks, |comm| on_rank(&comm)) }
}

fn begun(plan: &Plan) -> usize {
    plan.steps.iter().filter(|s| matches!(s.action, Action::Begin { .. })).count()
}

fn texts(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|s| plan.describe(&s.action).split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_interior_is_computed_while_borders_travel() {
    let p = filters(2, 200, Border::Reflect101);
    let plan = planned(&p, place(4, (true, true), true), Partition::equal(4));
    assert_eq!(
        texts(&plan),
        [
            "upload %0 200x20 f32",
            "scatter %0 200x20 f32, from device to device",
            "begin exchange of %0 200x20 f32 to depth 2, from device to device",
            "launch interior of %1 200x20 f32 = correlate 5x5 (%0)",
            "finish exchange of %0 200x20 f32",
            "launch edges of %1 200x20 f32 = correlate 5x5 (%0)",
            "free %0 200x20 f32",
            "begin exchange of %1 200x20 f32 to depth 2, from device to device",
            "launch interior of %2 200x20 f32 = correlate 5x5 (%1)",
            "finish exchange of %1 200x20 f32",
            "launch edges of %2 200x20 f32 = correlate 5x5 (%1)",
            "free %1 200x20 f32",
            "replicate %2 200x20 f32, from device to device",
            "download %2 200x20 f32",
            "deliver %2 200x20 f32",
        ]
    );
    assert_eq!((plan.counts().exchanges, plan.counts().launches), (2, 2), "parts are no launches of their own");
    // Through the host, a device's first exchange is one of rows that are still on the host.
    let staged = planned(&p, place(4, (true, false), true), Partition::equal(4));
    assert_eq!((staged.counts().exchanges, begun(&staged)), (2, 1), "{staged}");
}

/// The steps of a plan that are more than copies in one place, each in two words.
fn told(plan: &Plan) -> String {
    let words = |text: &String| text.replace(" exchange of", "").split(' ').take(2).collect::<Vec<_>>().join(" ");
    texts(plan).iter().map(words).filter(|text| !text.starts_with("free")).collect::<Vec<_>>().join(", ")
}

fn filter() -> Op {
    Op::Correlate(Filter::dense(5, 5, taps(25)), Border::Reflect101)
}

#[test]
fn exchanges_of_several_images_are_under_way_together() {
    let mut p = ConformanceProgram::default();
    let [a, b] = [5, 6].map(|seed| p.source(image(Shape::new(60, 20, 1), DType::F32, seed)));
    let [a, b] = [a, b].map(|n| p.like(filter(), n));
    let results = [a, b].map(|n| p.like(filter(), n));
    let p = p.wanted(&results);
    let place = place(3, (false, false), false);
    let plan = planned(&p, place, Partition::equal(3));
    let expected = "scatter %0, exchange %0, launch %2, begin %2, scatter %1, exchange %1, launch %3, begin %3, \
                    finish %2, launch %4, finish %3, launch %5, replicate %4, deliver %4, replicate %5, deliver %5";
    assert_eq!(told(&plan), expected, "{plan}");
    let want = reference(&p);
    assert!(run(&p, place, |_| plan.clone()).iter().all(|(images, ..)| *images == want));
    let separate = RunConfiguration { separate: true, ..place };
    assert_eq!(begun(&planned(&p, separate, Partition::equal(3))), 0, "a host waits for each device");
}

/// Messages between two ranks are matched by their order.
#[test]
fn ranks_of_unlike_devices_exchange_in_one_order() {
    let mut p = ConformanceProgram::default();
    let both = [5, 6].map(|seed| p.source(image(Shape::new(60, 20, 1), DType::F32, seed)));
    let once = both.map(|n| p.like(filter(), n));
    let twice = once.map(|n| p.like(filter(), n));
    let p = p.wanted(&twice);
    let link = Link { latency: 0.0, bandwidth: f64::INFINITY };
    let profile = |unified| MachineProfile {
        links: Links { peers: link, host: link, network: link },
        ..MachineProfile::of_default(unified)
    };
    let order = |unified, devices: [bool; 3]| {
        let machine = Arc::new(Machine::of_ranks(devices.map(|unified| (profile(unified), 0)).to_vec()));
        let setting = Setting { machine, ..Setting::of(Partition::equal(3), unified) };
        let plan = planned_for(&p, place(3, (!unified, false), false), &setting);
        let exchanged = plan.steps.iter().filter_map(|s| match s.action {
            Action::Exchange { node, .. } | Action::Begin { node, .. } => Some(node),
            _ => None,
        });
        exchanged.collect::<Vec<_>>()
    };
    let mixed = [true, false, true];
    assert_eq!(order(true, mixed), order(false, mixed));
    assert_ne!(order(true, mixed), order(true, [true; 3]), "another order where all compute on their hosts");
}

#[test]
fn a_launch_of_several_results_stays_one() {
    let mut p = ConformanceProgram::default();
    let a = p.source(image(Shape::new(60, 20, 1), DType::F32, 5));
    let a = p.like(filter(), a);
    let (x, y) = (p.like(filter(), a), p.pixel_const(PixelOp::Mul, a, &[0.5]));
    let results = [x, y].map(|n| p.like(filter(), n));
    let p = p.wanted(&[results[0], results[1], y]);
    let place = place(3, (false, false), false);
    let plan = planned(&p, place, Partition::equal(3));
    let expected = "scatter %0, exchange %0, launch %1, exchange %1, launch %2, launch %3, begin %3, exchange %2, launch %4, \
                    finish %3, launch %5, replicate %4, deliver %4, replicate %5, deliver %5, replicate %3, deliver %3";
    assert_eq!((told(&plan), plan.counts().launches), (expected.into(), 4), "{plan}");
    let want = reference(&p);
    assert!(run(&p, place, |_| plan.clone()).iter().all(|(images, ..)| *images == want));
}

#[test]
fn nothing_is_divided_where_nobody_gains_or_nobody_asked() {
    let p = filters(3, 40, Border::Wrap);
    let plans = |ranks, overlap, mode| {
        let place = RunConfiguration { mode, ..place(ranks, (false, false), overlap) };
        planned(&p, place, Partition::equal(ranks))
    };
    assert_eq!(begun(&plans(2, true, Mode::Fused)), 3, "20 rows are 8 times 2");
    assert_eq!(begun(&plans(3, true, Mode::Fused)), 0, "13 rows are not");
    for (ranks, overlap, mode) in [(2, false, Mode::Fused), (2, true, Mode::Naive), (1, true, Mode::Fused)] {
        assert_eq!(begun(&plans(ranks, overlap, mode)), 0);
    }
}

#[test]
fn the_bits_and_the_messages_are_those_of_whole_launches() {
    for (border, channels) in borders().into_iter().zip([1, 3, 2, 3, 1]) {
        let p = chain(Shape::new(211, 13, channels), border);
        let want = reference(&p);
        for ranks in 1..=5 {
            for way in WAYS {
                let plans = [true, false].map(|overlap| {
                    let plan = planned(&p, place(ranks, way, overlap), Partition::equal(ranks));
                    verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
                    plan
                });
                assert_eq!(begun(&plans[0]) > 1, ranks > 1, "{}", plans[0]);
                let place = place(ranks, way, true);
                let [parts, whole] = plans.each_ref().map(|plan| run(&p, place, |_| plan.clone()));
                for (rank, (parts, whole)) in parts.iter().zip(&whole).enumerate() {
                    assert!(
                        parts.0 == want,
                        "rank {rank} differs from the reference at {place:?}, {border}\n{}",
                        plans[0]
                    );
                    assert_eq!(parts.1, whole.1, "rank {rank} sends the same at {place:?}");
                    assert_eq!(parts.2.exchanges, whole.2.exchanges);
                }
                let told =
                    forecast(&plans[0], &plans[0].setting.machine, plans[0].setting.partition.ranks(), 1).total.total;
                let sent = parts.iter().fold(Load::default(), |a, (_, l, _)| Load {
                    messages: a.messages + l.messages,
                    bytes: a.bytes + l.bytes,
                });
                assert_eq!(told, sent, "the dry run tells what is sent at {place:?}");
            }
        }
    }
}

/// The depth of each exchange of a plan.
fn exchanged(plan: &Plan) -> Vec<Halo> {
    let halo = |action| match action {
        Action::Exchange { halo, .. } | Action::Begin { halo, .. } => Some(halo),
        _ => None,
    };
    plan.steps.iter().filter_map(|s| halo(s.action)).collect()
}

#[test]
fn where_messages_take_long_filters_over_filters_exchange_once() {
    let even = |depth| Halo::even(depth);
    let sent = |plan: &Plan| {
        let scattered = plan.steps.iter().find_map(|s| match s.action {
            Action::Scatter { halo, .. } => Some(halo),
            _ => None,
        });
        (scattered.unwrap(), exchanged(plan))
    };
    for (rounds, height, ranks) in [(3, 90, 3), (3, 30, 5)] {
        let plan = |border, latency| {
            let place = place(ranks, (false, false), true);
            planned_by(&filters(rounds, height, border), place, Partition::equal(ranks), None, latency)
        };
        // One exchange at the depth that all need, which goes with the strips.
        assert_eq!(sent(&plan(Border::Reflect101, 1e-3)), (even(2 * rounds), Vec::new()));
        assert_eq!(sent(&plan(Border::Reflect101, 0.0)), (Halo::NONE, vec![even(2); rounds]));
        // A wrapped halo is exchanged: no rank computes copies of rows of the other end.
        let wrapped = Halo { wrap: true, ..even(2) };
        assert_eq!(sent(&plan(Border::Wrap, 1e-3)), (wrapped, vec![wrapped; rounds - 1]));
    }
}

#[test]
fn rows_that_are_computed_instead_of_exchanged_have_the_same_bits() {
    // Strips of one row to 43, thinner than all halos and none; some ranks have no rows.
    let weighted: [&[f64]; 3] = [&[1.0, 0.0, 9.0], &[9.0, 0.0, 0.1, 5.0], &[0.05, 8.0, 0.05, 0.0, 2.0]];
    let equal = (1..=5).map(|ranks| (Partition::equal(ranks), ranks > 1));
    let weighted = weighted.map(|w| (Partition::weighted(w).unwrap(), false));
    for (partition, tall) in equal.chain(weighted) {
        for (border, channels) in borders().into_iter().zip([1, 3, 2, 3, 1]) {
            for height in [5, 43] {
                for p in [chain(Shape::new(height, 9, channels), border), filters(3, height, border)] {
                    let want = reference(&p);
                    for way in WAYS {
                        let place = place(partition.ranks(), way, true);
                        let [free, slow] = [0.0, 1e-3].map(|s| planned_by(&p, place, partition.clone(), None, s));
                        verify(&slow).unwrap_or_else(|e| panic!("{e}\n{slow}"));
                        let [most, least] = [&free, &slow].map(|plan| plan.counts().exchanges);
                        // Strips that are thinner than a halo need messages of more than two ranks.
                        let fewer = tall && height == 43;
                        assert!(least < most || (!fewer && least == most), "{least} of {most}\n{slow}");
                        for (images, _, _) in run(&p, place, |_| slow.clone()) {
                            assert!(images == want, "{partition} {border} {place:?}\n{slow}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn ranks_with_few_rows_or_none_meet_those_that_compute_in_parts() {
    for weights in [&[3.0, 1.0][..], &[1.0, 0.0, 9.0], &[9.0, 0.0, 0.1, 5.0], &[0.0, 1.0], &[0.05, 8.0, 0.05, 0.0, 2.0]]
    {
        let ranks = weights.len();
        let partition = Partition::weighted(weights).unwrap();
        for border in borders() {
            let p = chain(Shape::new(101, 9, 2), border);
            let want = reference(&p);
            for way in WAYS {
                let place = place(ranks, way, true);
                let plan = planned(&p, place, partition.clone());
                verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
                assert!(begun(&plan) > 0, "{plan}");
                for (images, _, _) in run(&p, place, |_| plan.clone()) {
                    assert!(images == want, "{weights:?} {border} {place:?}\n{plan}");
                }
            }
        }
    }
}

#[test]
fn a_rank_that_waits_at_once_meets_one_that_does_not() {
    let p = chain(Shape::new(130, 9, 2), Border::Wrap);
    let want = reference(&p);
    for way in WAYS {
        let plans = [false, true].map(|overlap| planned(&p, place(3, way, overlap), Partition::equal(3)));
        assert!(begun(&plans[1]) > begun(&plans[0]), "one of them divides its launches");
        for which in 0..8 {
            let results = run(&p, place(3, way, true), |rank| plans[which >> rank & 1].clone());
            assert!(results.iter().all(|(images, _, _)| *images == want), "{which:b} {way:?}");
        }
    }
}

/// The plan with an interior that is closer to the strip's edges.
fn with_interior(mut plan: Plan, reach: Halo) -> Plan {
    for step in &mut plan.steps {
        if let Action::Launch { part: LaunchPart::Interior(r) | LaunchPart::Edges(r), .. } = &mut step.action {
            *r = reach;
        }
    }
    plan
}

#[test]
fn an_interior_that_reads_what_is_under_way_is_caught_and_would_be_wrong() {
    let p = filters(2, 90, Border::Reflect101);
    let want = reference(&p);
    for way in WAYS {
        let place = place(3, way, true);
        let right = planned(&p, place, Partition::equal(3));
        assert!(verify(&with_interior(right.clone(), Halo::even(2))).is_ok(), "{right}");
        for (up, down) in [(1, 2), (2, 1), (0, 0)] {
            let wrong = with_interior(right.clone(), Halo { up, down, wrap: false });
            let caught = verify(&wrong).unwrap_err().to_string();
            assert!(caught.contains("launch     interior") && caught.contains("up to date"), "{caught}");
            // Host memory is poisoned only in debug builds.
            if way.0 || cfg!(debug_assertions) {
                let results = run(&p, place, |_| wrong.clone());
                let poisoned = results.iter().all(|(images, _, _)| *images != want);
                assert!(poisoned, "rows that have not arrived were read, and the result is right at {place:?}");
            }
        }
    }
}

#[test]
fn a_plan_of_parts_with_a_step_left_out_or_too_early_is_caught() {
    for way in WAYS {
        let whole = planned(&filters(3, 100, Border::Wrap), place(3, way, true), Partition::equal(3));
        verify(&whole).unwrap();
        for (i, step) in whole.steps.iter().enumerate() {
            let mut broken = whole.clone();
            broken.steps.remove(i);
            assert!(verify(&broken).is_err(), "leaving out {:?} goes unnoticed\n{whole}", step.action);
        }
        for i in (1..whole.steps.len())
            .filter(|i| matches!(whole.steps[*i].action, Action::Launch { part: LaunchPart::Edges(_), .. }))
        {
            let mut broken = whole.clone();
            broken.steps.swap(i - 1, i);
            let caught = verify(&broken).unwrap_err().to_string();
            assert!(caught.contains("launch     edges") && caught.contains("up to date"), "{caught}");
        }
        let freed = |n: NodeId| whole.steps.iter().position(|s| s.action == Action::Free(n));
        let finish =
            whole.steps.iter().position(|s| matches!(s.action, Action::Finish(n) if freed(n).is_some())).unwrap();
        let Action::Finish(n) = whole.steps[finish].action else { unreachable!() };
        let mut broken = whole.clone();
        let free = broken.steps.remove(freed(n).unwrap());
        broken.steps.insert(finish, free);
        assert!(verify(&broken).unwrap_err().to_string().contains("still under way"));
    }
}

#[test]
fn messages_under_way_take_room_on_the_device() {
    // Several planes: their halos are packed, and the packed messages stay until the exchange is
    // finished.
    let p = chain(Shape::new(120, 16, 3), Border::Reflect101);
    let (want, image) = (reference(&p), 120 * 16 * 3 * 4);
    let mut seen = [false; 3];
    for capacity in (1..=150).map(|i| image * i / 60) {
        let plan = |overlap| planned_by(&p, place(2, (true, true), overlap), Partition::equal(2), Some(capacity), 0.0);
        let (whole, parts) = (plan(false), plan(true));
        assert_eq!(whole.fits, parts.fits, "{capacity} bytes are enough or not, in parts or not\n{parts}");
        if !whole.fits {
            seen[0] = true;
            continue;
        }
        verify(&parts).unwrap();
        seen[if begun(&parts) < whole.counts().exchanges { 1 } else { 2 }] = true;
        let results = ThreadComm::run(2, |comm| {
            let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), capacity).with_fabric();
            connect(place(2, (true, true), true), &comm, &device);
            execute_on_rank(&p, &parts, &comm, &device).0
        });
        assert!(results.iter().all(|images| *images == want), "{capacity} bytes\n{parts}");
    }
    assert_eq!(seen, [true; 3], "too little, enough for some exchanges beside launches, enough for all");
}

#[test]
fn images_that_every_rank_gave_have_the_room_that_was_planned() {
    // Read beyond the strips, around the image and across it.
    let mut p = ConformanceProgram::default();
    let shape = Shape::new(3000, 16, 3);
    let (a, small) = (p.source(image(shape, DType::F32, 3)), p.source(image(shape, DType::F32, 4)));
    let filtered = p.like(Op::Correlate(Filter::dense(5, 3, taps(15)), Border::Wrap), a);
    let again = p.like(Op::Correlate(Filter::column(taps(4)), Border::Wrap), filtered);
    let turned = p.like(Op::Flip(Flip::Vertical), a);
    let sum = p.pixel(PixelOp::Add, &[again, turned]);
    let other = p.like(Op::Correlate(Filter::column(taps(7)), Border::Reflect), small);
    let p = p.wanted(&[sum, other]);
    let (want, bytes) = (reference(&p), 3000 * 16 * 3 * 4);
    let mut seen = [0; 3];
    for (weights, capacity) in
        (1..=40).flat_map(|i| [(&[1.0, 1.0][..], bytes * i / 6), (&[1.0, 0.0, 2.0], bytes * i / 6)])
    {
        let ranks = weights.len();
        let place = RunConfiguration { from_root: false, ..place(ranks, (true, true), false) };
        let plan = planned_by(&p, place, Partition::weighted(weights).unwrap(), Some(capacity), 0.0);
        verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
        let strips = plan.steps.iter().filter(|s| matches!(s.action, Action::UploadStrip { .. })).count();
        seen[strips] += 1;
        if !plan.fits {
            continue;
        }
        let results = ThreadComm::run(ranks, |comm| {
            let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), capacity).with_fabric();
            connect(place, &comm, &device);
            execute_on_rank(&p, &plan, &comm, &device).0
        });
        assert!(results.iter().all(|images| *images == want), "{capacity} bytes, {weights:?}\n{plan}");
    }
    assert!(seen[0] == 0 && seen[1..].iter().all(|n| *n > 0), "one that is read around strips, or both: {seen:?}");
}

#[test]
fn each_rank_launches_as_many_parts_as_it_has() {
    let launches = |weights: &[f64], border: Border, way: (bool, bool)| -> Vec<usize> {
        let (p, place) = (filters(1, 100, border), place(weights.len(), way, true));
        let plan = planned(&p, place, Partition::weighted(weights).unwrap());
        assert_eq!(begun(&plan), 1, "{plan}");
        run(&p, place, |_| plan.clone()).iter().map(|(_, _, log)| log.launches).collect()
    };
    let direct = (true, true);
    assert_eq!(launches(&[1.0; 4], Border::Reflect101, direct), [2, 3, 3, 2], "nothing comes from beyond the image");
    assert_eq!(launches(&[1.0; 4], Border::Wrap, direct), [3, 3, 3, 3]);
    assert_eq!(launches(&[1.0, 0.1, 0.0, 1.0], Border::Replicate, direct), [2, 1, 0, 2], "a thin strip, and none");
}
