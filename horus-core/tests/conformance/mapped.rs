//! Launches that use host memory directly: the same bits.

use horus_core::comm::SingleRankComm;
use horus_core::dtype::DType;
use horus_core::ir::graph::{Op, ValueId};
use horus_core::ops::Histogram;
use horus_core::ops::geometric::{Affine, Interpolation, rotation};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::optimize::optimize;
use horus_core::plan::partition::Partition;
use horus_core::plan::state::{ImageState, Placement, Residency};
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, Mappable, Mode, Plan, ResultDelivery, Setting, Transfer, plan};
use horus_core::shape::{Border, Shape};
use horus_testing::reference;
use proptest::prelude::*;

use crate::harness::{ConformanceProgram, RunConfiguration, execute_on_rank, image};
use crate::random::{RandomStep, program};

const PLACE: RunConfiguration = RunConfiguration {
    ranks: 1,
    mode: Mode::Fused,
    separate: true,
    direct: false,
    overlap: false,
    from_root: false,
    bands: None,
};

/// A plan in which launches use host memory wherever they can.
fn planned(program: &ConformanceProgram, transfer: Transfer, mode: Mode) -> Plan {
    let sources = (0..program.sources.len()).map(|v| ValueId(v as u64)).collect();
    let mappable = Mappable { sources, results: true, downloads_last: false };
    let setting = Setting { transfer, mappable, mode, ..Setting::of(Partition::equal(1), false) };
    let kernels = optimize(program.graph.clone(), mode == Mode::Fused, &setting.machine, &mut |_, _| ()).unwrap();
    let wants = vec![ResultDelivery::Requester; kernels.roots.len()];
    let state = ImageState { residency: Residency::Host, placement: Placement::Replicated };
    let plan = plan(kernels, &wants, &setting, |_| state, |_| true, &mut |_, _| ()).unwrap();
    verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
    plan
}

fn count(plan: &Plan, which: fn(&Action) -> bool) -> usize {
    plan.steps.iter().filter(|s| which(&s.action)).count()
}

fn maps(plan: &Plan) -> usize {
    count(plan, |a| matches!(a, Action::Map(_)))
}

/// Compares the roots with the reference in every strategy that uses host memory; returns the
/// plans.
fn conforms_mapped(program: &ConformanceProgram, what: &str) -> Vec<Plan> {
    let want = reference::evaluate(&program.graph, &|v| program.sources[v.0 as usize].clone());
    let strategies =
        ["implicit", "hybrid", "hybrid:3"].map(|text| horus_core::settings::TRANSFER.values.parse(text).unwrap());
    let mut plans = Vec::new();
    for mode in [Mode::Fused, Mode::Lazy] {
        for transfer in strategies {
            let plan = planned(program, transfer, mode);
            let (got, _) = crate::with_device(PLACE, |device| execute_on_rank(program, &plan, &SingleRankComm, device));
            for (i, (g, w)) in got.iter().zip(&want).enumerate() {
                assert!(g == w, "{what}: root {i} differs from the reference, {transfer:?}, {mode:?}\n{plan}");
            }
            plans.push(plan);
        }
    }
    plans
}

#[test]
fn what_launches_read_and_write_in_the_hosts_memory_is_the_same() {
    for shape in [Shape::new(1, 1, 1), Shape::new(37, 53, 1), Shape::new(64, 130, 3)] {
        for dtype in [DType::U8, DType::F32, DType::F64] {
            let mut p = ConformanceProgram::default();
            let (a, b) = (p.source(image(shape, dtype, 3)), p.source(image(shape, dtype, 4)));
            let sum = p.pixel(PixelOp::Add, &[a, b]);
            let sum = if dtype == DType::U8 { p.convert(sum, DType::F32) } else { sum };
            let filter = Filter::dense(5, 7, (0..35).map(|i| f64::from(i % 11) - 4.0).collect::<Vec<_>>());
            let filtered = p.like(Op::Correlate(filter, Border::Reflect101), sum);
            let map = Affine::new(rotation(30.0, shape), shape).unwrap();
            let turned = p.like(Op::Warp(map, Interpolation::Bilinear, Border::Constant(1.0).into()), filtered);
            let program = p.wanted(&[turned, filtered]);
            let plans = conforms_mapped(&program, &format!("{shape} {dtype}"));
            assert!(plans.iter().all(|plan| maps(plan) >= 2), "both results are mapped");
            let implicit = &plans[0];
            let copied = count(implicit, |a| matches!(a, Action::Upload { .. } | Action::Send { .. }));
            assert_eq!((maps(implicit), copied), (4, 0), "{implicit}");
        }
    }
}

#[test]
fn a_result_that_is_read_again_and_one_of_no_rows_of_its_own() {
    let shape = Shape::new(40, 30, 1);
    let mut p = ConformanceProgram::default();
    let a = p.source(image(shape, DType::F32, 5));
    let blurred = p.like(Op::Correlate(Filter::dense(3, 3, vec![0.125; 9]), Border::Wrap), a);
    let sharp = p.pixel(PixelOp::Sub, &[a, blurred]);
    let bins = Op::from(Histogram::new(16, 0.0, 300.0));
    let bins = p.op(bins, &[blurred], Shape::new(1, 16, 1), DType::F64);
    conforms_mapped(&p.wanted(&[sharp, blurred, bins]), "a histogram of a result");
}

fn choice() -> impl Strategy<Value = RandomStep> {
    (any::<u8>(), any::<u8>(), any::<[u8; 3]>()).prop_map(|(kind, param, reads)| RandomStep { kind, param, reads })
}

proptest! {
    #![proptest_config(crate::programs::config(crate::RANDOM_PROGRAMS / 4))]

    #[test]
    fn random_programs_in_the_hosts_memory(
        height in 1usize..24,
        width in 1usize..40,
        steps in prop::collection::vec(choice(), 1..10),
        seed in any::<u64>(),
    ) {
        let p = program(Shape::new(height, width, 1), &steps, seed);
        for plan in conforms_mapped(&p, "random program") {
            for i in 0..plan.steps.len() {
                prop_assert!(verify(&plan.without(i)).is_err(), "leaving out step {} goes unnoticed\n{}", i, plan);
            }
        }
    }
}
