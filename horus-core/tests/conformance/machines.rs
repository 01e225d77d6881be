//! Machines of every kind, and ranks on different ones: they change plans, but no bit of a result.

use std::collections::HashSet;
use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::comm::{Communicator, SingleRankComm};
use horus_core::dtype::DType;
use horus_core::machine::{CopyTimes, Link, Machine, MachineProfile};
use horus_core::ops::geometric::{Affine, Interpolation, rotation};
use horus_core::plan::partition::Partition;
use horus_core::plan::verify::verify;
use horus_core::plan::{Mode, Setting};
use horus_core::shape::{Border, Shape};
use horus_testing::reference::{self, ReferenceImage};
use proptest::prelude::*;

use crate::harness::{ConformanceProgram, RunConfiguration, connect, execute_on_rank, image, planned_for};
use crate::random::{RandomStep, program};

/// A profile with the numbers of a usual machine times powers of ten, drawn from `powers`.
pub(crate) fn drawn(powers: &[i8]) -> MachineProfile {
    let mut profile = MachineProfile::of_default(powers.len().is_multiple_of(2));
    let mut at = 0;
    let mut factor = || {
        at += 1;
        10f64.powi(i32::from(powers[(at - 1) % powers.len()]))
    };
    let links = &mut profile.links;
    for Link { latency, bandwidth } in [&mut links.peers, &mut links.host, &mut links.network] {
        (*latency, *bandwidth) = (*latency * factor(), *bandwidth * factor());
    }
    for CopyTimes { pinned, staged, mapped, tiled } in [&mut profile.upload, &mut profile.download] {
        for line in [pinned, staged, mapped, tiled] {
            (line.latency, line.bandwidth) = (1e-6 * factor(), line.bandwidth * factor());
        }
    }
    (profile.launch.host, profile.launch.device) = (profile.launch.host * factor(), profile.launch.device * factor());
    (profile.arithmetic.f32, profile.arithmetic.f64) = (1e12 * factor(), 1e12 * factor());
    profile.arithmetic.fill = 1e5 * factor();
    profile.tile_rows = 40.0 * factor();
    profile.memory.0.iter_mut().chain(&mut profile.host_copy.0).for_each(|(_, rate)| *rate *= factor());
    for of in profile.families.values_mut() {
        (of.memory, of.arithmetic) = (of.memory * factor(), of.arithmetic * factor());
    }
    assert_eq!(profile.fault(), None);
    profile
}

/// The program's roots at `place` on these machines, and the plan.
fn run(program: &ConformanceProgram, place: RunConfiguration, machine: &Arc<Machine>) -> (Vec<ReferenceImage>, String) {
    let direct = place.direct && place.ranks > 1;
    let of = Setting::of(Partition::equal(place.ranks), !place.separate);
    let RunConfiguration { overlap, mode, .. } = place;
    let setting = Setting { direct, overlap, mode, machine: Arc::clone(machine), ..of };
    let on_rank = |comm: &dyn Communicator| {
        crate::with_device(place, |device| {
            connect(place, comm, device);
            let plan = planned_for(program, place, &setting);
            verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
            (execute_on_rank(program, &plan, comm, device).0, plan.to_string())
        })
    };
    if place.ranks == 1 {
        return on_rank(&SingleRankComm);
    }
    let mut all = ThreadComm::run(place.ranks, |comm| on_rank(&comm));
    let first = all.remove(0);
    assert!(all.iter().all(|other| *other == first), "ranks got different results or plans at {place:?}");
    first
}

fn places() -> impl Iterator<Item = RunConfiguration> {
    let all =
        [(1, false, false), (1, true, false), (2, true, true), (4, true, true), (3, true, false), (3, false, false)];
    all.into_iter().flat_map(|(ranks, separate, direct)| {
        [true, false].map(|from_root| {
            let mode = Mode::Fused;
            RunConfiguration {
                ranks,
                mode,
                separate,
                direct,
                overlap: false,
                from_root: from_root && ranks > 1,
                bands: None,
            }
        })
    })
}

pub(crate) fn choice() -> impl Strategy<Value = RandomStep> {
    (any::<u8>(), any::<u8>(), any::<[u8; 3]>()).prop_map(|(kind, param, reads)| RandomStep { kind, param, reads })
}

proptest! {
    #![proptest_config(crate::programs::config(60))]

    #[test]
    fn random_programs_give_the_same_bits_by_any_profile(
        height in 1usize..40,
        width in 1usize..40,
        steps in prop::collection::vec(choice(), 1..14),
        seed in any::<u64>(),
        powers in prop::collection::vec(prop::collection::vec(-4i8..=4, 16..33), 1..4),
    ) {
        let program = program(Shape::new(height, width, 1), &steps, seed);
        let want = reference::evaluate(&program.graph, &|v| program.sources[v.0 as usize].clone());
        let machine = Arc::new(Machine::of_ranks(powers.iter().map(|p| drawn(p)).zip([0, 0, 1]).collect()));
        for place in places() {
            let (got, plan) = run(&program, place, &machine);
            prop_assert!(got == want, "other bits at {place:?}\n{plan}");
        }
    }
}

/// Found at random: kernels made together, of which the first reads the rows that were exchanged
/// for the second.
#[test]
fn rows_that_another_launch_reads_first_are_waited_for() {
    let choice = |kind, param, reads| RandomStep { kind, param, reads };
    let zeros = || choice(0, 0, [0; 3]);
    let steps = [
        choice(16, 0, [6, 0, 0]),
        zeros(),
        choice(237, 43, [128, 0, 0]),
        zeros(),
        zeros(),
        choice(0, 0, [0, 11, 184]),
        choice(13, 40, [90, 211, 236]),
    ];
    let powers = [4, 4, -1, 2, -2, 0, 2, -4, 4, -4, 3, -3, -3, -3, 2, 0, 4, 3, 3, -1, -3, 4, -2, 2, -2, 0, -4, 0];
    let program = program(Shape::new(15, 1, 1), &steps, 15_082_956_128_435_837_387);
    let want = reference::evaluate(&program.graph, &|v| program.sources[v.0 as usize].clone());
    let machine = Arc::new(Machine::alike(drawn(&powers)));
    for place in places() {
        let (got, plan) = run(&program, place, &machine);
        assert!(got == want, "other bits at {place:?}\n{plan}");
    }
}

#[test]
fn profiles_decide_what_plans_do() {
    let mut p = ConformanceProgram::default();
    let shape = Shape::new(64, 48, 1);
    let a = p.source(image(shape, DType::F32, 7));
    let turned: Vec<_> = [20.0, 50.0, 70.0]
        .map(|degrees| {
            let map = Affine::new(rotation(degrees, shape), shape).unwrap();
            p.like(horus_core::ir::graph::Op::Warp(map, Interpolation::Bilinear, Border::Constant(0.0).into()), a)
        })
        .into();
    let program = p.wanted(&turned);
    let place = RunConfiguration {
        ranks: 4,
        mode: Mode::Fused,
        separate: true,
        direct: true,
        overlap: false,
        from_root: false,
        bands: None,
    };
    let plan_by = |latency: f64, bandwidth: f64, bus: f64| {
        let mut profile = MachineProfile::of_default(false);
        profile.links.peers = Link { latency, bandwidth };
        profile.upload.staged.bandwidth = bus;
        let (_, plan) = run(&program, place, &Arc::new(Machine::alike(profile)));
        // Predictions are printed with the reasons.
        plan.lines().map(|line| line.split('[').next().unwrap_or_default().trim().to_owned()).collect::<Vec<_>>()
    };
    let slow_bus = plan_by(1e-9, 1e12, 1e6);
    let slow_links = plan_by(1.0, 1e3, 1e12);
    assert!(slow_bus.iter().any(|line| line.contains("each strip of")), "{slow_bus:#?}");
    assert!(!slow_links.iter().any(|line| line.contains("each strip of")), "{slow_links:#?}");
    assert_eq!(HashSet::from([slow_bus, slow_links, plan_by(1e-9, 1e12, 1e6)]).len(), 2);
}
