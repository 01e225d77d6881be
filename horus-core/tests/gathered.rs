//! Results for rank 0 only: strips meet on its device, in bands or at once, and only it copies to
//! its host.

#[path = "conformance/harness.rs"]
#[allow(dead_code, reason = "shared with the conformance tests, which use all of it")]
mod harness;

use std::num::NonZeroU8;
use std::sync::Arc;

use harness::{ConformanceProgram, RunConfiguration, connect, delivered, image};
use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::dtype::DType;
use horus_core::image::{Image as Handle, samples};
use horus_core::ir::graph::Op;
use horus_core::machine::{Machine, MachineProfile};
use horus_core::ops::geometric::Flip;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::optimize::optimize;
use horus_core::plan::partition::Partition;
use horus_core::plan::state::{ImageState, Placement, Residency};
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, Activity, Plan, PlanStep, ResultDelivery, Setting, Transfer, plan};
use horus_core::session::Session;
use horus_core::shape::{Border, Shape};
use horus_testing::faulty::FaultyDevice;
use horus_testing::reference;
use horus_testing::simulated::SimulatedDevice;

/// The device for the `with_device` of the harness.
fn with_device<R>(_: RunConfiguration, f: impl FnOnce(&dyn Device) -> R) -> R {
    f(&SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), usize::MAX / 2).requiring_preparation().with_fabric())
}

fn taps(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 29 % 13) as f64 - 5.0) / 9.0).collect()
}

/// Filters of sources, a vertical flip, and an intermediate result.
fn program(shape: Shape, dtype: DType) -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let a = p.source(image(shape, dtype, 3));
    let float = p.convert(a, DType::F32);
    let b = p.like(Op::Correlate(Filter::dense(5, 3, taps(15)), Border::Reflect101), float);
    let b = p.convert(b, dtype);
    let c = p.like(Op::Flip(Flip::Vertical), b);
    let d = p.pixel(PixelOp::Max, &[b, c]);
    let float = p.convert(d, DType::F32);
    let e = p.like(Op::Correlate(Filter::column(taps(4)), Border::Replicate), float);
    let e = p.convert(e, dtype);
    p.wanted(&[e, d])
}

/// A plan that brings all roots to rank 0, between devices with fast links, where even small images
/// meet.
fn planned(
    p: &ConformanceProgram,
    weights: &[f64],
    transfer: Transfer,
    from_root: bool,
    capacity: Option<usize>,
) -> Plan {
    let mut profile = MachineProfile::shipped("NVIDIA H200").unwrap();
    profile.links.peers.latency = 1e-6;
    let machine = Arc::new(Machine::alike(profile));
    let partition = Partition::weighted(weights).unwrap();
    let direct = weights.len() > 1;
    let setting = Setting { direct, transfer, machine, capacity, ..Setting::of(partition, false) };
    let kernels = optimize(p.graph.clone(), true, &setting.machine, &mut |_, _| ()).unwrap();
    let placement = if from_root && direct { Placement::ROOT } else { Placement::Replicated };
    let state = ImageState { residency: Residency::Host, placement };
    let wants = vec![ResultDelivery::Root; kernels.roots.len()];
    let plan = plan(kernels, &wants, &setting, |_| state, |_| true, &mut |_, _| ()).unwrap();
    verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
    plan
}

fn met(plan: &Plan) -> usize {
    plan.steps.iter().filter(|s| matches!(s.action, Action::Gather { direct: true, .. })).count()
}

fn place(ranks: usize) -> RunConfiguration {
    let mode = horus_core::plan::Mode::Fused;
    RunConfiguration { ranks, mode, separate: true, direct: ranks > 1, overlap: false, from_root: true, bands: None }
}

/// Asserts that rank 0 gets the reference's results, and the others nothing.
fn conforms(p: &ConformanceProgram, plan: &Plan, capacity: usize) {
    let ranks = plan.setting.partition.ranks();
    let want = reference::evaluate(&p.graph, &|v| p.sources[v.0 as usize].clone());
    let got = ThreadComm::run(ranks, |comm| {
        let device =
            SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), capacity).requiring_preparation().with_fabric();
        let log = device.call_counts();
        connect(place(ranks), &comm, &device);
        let images = delivered(p, plan, &comm, &device).0;
        assert_eq!(log.get().bytes, 0, "nothing stays on a device\n{plan}");
        (images, log.get().reads)
    });
    for (rank, (images, reads)) in got.into_iter().enumerate() {
        if rank == 0 {
            let images: Vec<_> = images.into_iter().map(|image| image.expect("a root on rank 0")).collect();
            assert!(images == want, "{plan}");
        } else {
            assert!(images.iter().all(Option::is_none), "rank {rank} was given what rank 0 wants\n{plan}");
            let apart = |s: &PlanStep| s.action.activity() == Activity::Communication && !s.action.is_direct();
            let by_host = |s: &PlanStep| apart(s) || matches!(s.action, Action::Download(_));
            assert!(plan.steps.iter().any(by_host) || reads == 0, "rank {rank} copies to its host\n{plan}");
        }
    }
}

#[test]
fn strips_meet_on_the_device_of_rank_0_in_any_number_of_bands() {
    let bands = |n| Transfer::Streams(NonZeroU8::new(n));
    let all = [1.0; 5];
    let (mut whole, mut cut) = (0, 0);
    for weights in [&all[..1], &all[..2], &all[..3], &all[..5], &[1.0, 0.0, 2.0], &[0.0, 1.0], &[3.0, 0.1, 0.0, 1.0]] {
        // Strips thinner than a filter, than a band, and ranks without any.
        for height in [1, 3, 5, 40, 130] {
            for (channels, dtype) in [(1, DType::F32), (3, DType::U8)] {
                let p = program(Shape::new(height, 9, channels), dtype);
                for (transfer, from_root) in [(Transfer::Explicit, true), (bands(4), false), (bands(16), true)] {
                    let plan = planned(&p, weights, transfer, from_root, None);
                    whole += usize::from(met(&plan) == 2);
                    cut += usize::from(met(&plan) > 2);
                    conforms(&p, &plan, usize::MAX / 2);
                }
            }
        }
    }
    assert!(whole > 20 && cut > 20, "{whole} whole, {cut} in bands");
}

#[test]
fn an_image_without_rows_meets_nowhere_and_is_there() {
    for ranks in [1, 2, 3] {
        let mut p = ConformanceProgram::default();
        let a = p.source(image(Shape::new(0, 7, 1), DType::F32, 3));
        let b = p.pixel_const(PixelOp::Mul, a, &[0.5]);
        let p = p.wanted(&[b]);
        conforms(&p, &planned(&p, &vec![1.0; ranks], Transfer::Auto, true, None), 1 << 20);
    }
}

#[test]
fn a_device_without_room_for_the_whole_lets_strips_meet_on_the_host() {
    let p = program(Shape::new(128, 40, 1), DType::F32);
    let bytes = 128 * 40 * 4;
    let mut seen = [0; 3];
    for sixths in 6..60 {
        let capacity = bytes * sixths / 6;
        for transfer in [Transfer::Explicit, Transfer::Streams(NonZeroU8::new(8))] {
            let plan = planned(&p, &[1.0; 3], transfer, false, Some(capacity));
            seen[met(&plan).min(2)] += 1;
            if plan.fits {
                conforms(&p, &plan, capacity);
            }
        }
    }
    assert!(seen.iter().all(|n| *n > 0), "none, the first, both: {seen:?}");
}

fn session(comm: ThreadComm, device: Box<dyn Device>) -> Session {
    Session::on(device).communicator(Arc::new(comm)).build().unwrap()
}

fn connected() -> SimulatedDevice<CpuDevice> {
    SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 30).with_fabric()
}

#[test]
fn programs_get_the_same_pixels_in_every_way_of_gathering() {
    let folder = tempfile::tempdir().unwrap();
    let result = |session: &Session| {
        let picture: Handle<f32> = samples::worms(session, 900, 700);
        let smooth = picture.gauss(2.0);
        smooth.rotate(30.0, Interpolation::Bilinear).max(&smooth)
    };
    let alone = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    let want = result(&alone).to_vec().unwrap();
    for ranks in [2, 3, 5] {
        ThreadComm::run(ranks, |comm| {
            let (rank, device) = (comm.rank(), connected());
            let log = device.call_counts();
            let session = session(comm, Box::new(device));
            let all = result(&session);
            assert_eq!(all.gather().unwrap().map(|p| p.to_vec()), (rank == 0).then(|| want.clone()));
            assert_eq!(log.get().reads, usize::from(rank == 0), "rank {rank} of {ranks}");
            let pixels = (&all * 1.0).gather().unwrap();
            assert_eq!(pixels.map(|p| p.to_vec()), (rank == 0).then(|| want.clone()));
            let mut kept = vec![0.0; if rank == 0 { want.len() } else { 0 }];
            assert_eq!((&all * 1.0).gather_into(&mut kept).unwrap(), rank == 0);
            assert!(rank > 0 || kept == want);
            let path = folder.path().join(format!("{ranks}.npy"));
            (&all * 1.0).save(&path).unwrap();
            assert_eq!(log.get().reads, if rank == 0 { 4 } else { 0 }, "rank {rank} of {ranks}");
            assert_eq!(session.stats().made.downloads, 4);
            assert!(Handle::<f32>::open(&session, &path).unwrap().to_vec().unwrap() == want);
        });
    }
}

#[test]
fn a_device_that_fails_on_the_way_ends_all_ranks() {
    for (failing, ranks) in [(0, 2), (1, 2), (2, 3)] {
        for call in 0.. {
            let ended = ThreadComm::run(ranks, |comm| {
                let (rank, (device, fault)) = (comm.rank(), FaultyDevice::new(connected()));
                let session = session(comm, Box::new(device));
                let smooth: Handle<f32> = samples::worms(&session, 100, 70).gauss(2.0);
                if rank == failing {
                    fault.fail_after(call);
                }
                let first = smooth.gather().map(drop);
                let failed = rank == failing && fault.disarm();
                assert!(!failed || first.is_err(), "a failure on rank {rank} is not told");
                // A rank that had nothing to wait for learns of the failure by the next call.
                let all = first.and_then(|()| (smooth + 1.0).gather().map(drop));
                (failed, all.is_ok())
            });
            let failed = ended.iter().any(|(failed, _)| *failed);
            assert!(ended.iter().all(|(_, all)| *all != failed), "call {call} on rank {failing} of {ranks}: {ended:?}");
            if !failed {
                assert!(call > 4, "an evaluation is {call} calls");
                break;
            }
        }
    }
}
