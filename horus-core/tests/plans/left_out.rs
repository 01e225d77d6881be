//! The check detects every step that is left out or repeated.

use horus_core::dtype::DType;
use horus_core::ir::graph::{Graph, NodeId, Op};
use horus_core::ops::Histogram;
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::optimize::optimize;
use horus_core::plan::partition::Partition;
use horus_core::plan::state::{Halo, ImageState, Placement, Residency};
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, Mode, Plan, ResultDelivery, Setting, Transfer, plan};
use horus_core::shape::{Border, Shape};

use crate::recorder::{PlanRecorder, conv_2d, conv_rot, make, make_direct, make_given, make_within};

/// A histogram, and an image that is kept.
fn counted() -> Graph<Op> {
    let mut p = PlanRecorder::new(90, 50);
    let a = p.source(DType::F32);
    let b = p.constant(PixelOp::Mul, a, 2.0);
    p.shape = Shape::new(1, 16, 1);
    let op = Op::from(Histogram::new(16, 0.0, 1.0));
    let bins = p.op(op, &[b], DType::F64);
    p.graph.roots = vec![bins, b];
    p.graph
}

/// Images computed from one, all read again at the end.
fn many_images() -> Graph<Op> {
    let mut p = PlanRecorder::new(100, 100);
    let a = p.source(DType::F32);
    let parts: Vec<NodeId> = (0..8).map(|i| p.rotate(a, 10.0 * f64::from(i))).collect();
    let sum = parts.into_iter().reduce(|x, y| p.binary(PixelOp::Add, x, y)).unwrap();
    let again = p.rotate(sum, 5.0);
    p.graph.roots = vec![again, sum];
    p.graph
}

/// A plan that delivers the first result as wanted.
fn wanted(graph: Graph<Op>, want: ResultDelivery, ranks: usize, unified: bool) -> Plan {
    let partition = Partition::equal(ranks);
    let setting = Setting::of(partition, unified);
    let kernels = optimize(graph, true, &setting.machine, &mut |_, _| ()).unwrap();
    let mut wants = vec![ResultDelivery::Keep; kernels.roots.len()];
    wants[0] = want;
    let residency = if unified { Residency::Both } else { Residency::Host };
    let placement = if ranks == 1 { Placement::Replicated } else { Placement::ROOT };
    plan(kernels, &wants, &setting, |_| ImageState { residency, placement }, |_| true, &mut |_, _| ()).unwrap()
}

pub(crate) fn plans() -> Vec<Plan> {
    let mut plans = vec![
        make(conv_2d(256, 1), 4, false, Mode::Fused),
        make_direct(conv_2d(256, 1), 4, None),
        make_direct(conv_rot(256, 2), 4, None),
        make(conv_rot(64, 1), 1, false, Mode::Fused),
        make_given(conv_2d(256, 1), 3, None),
        make_within(many_images(), 1, false, Mode::Lazy, Some(4 * 100 * 100 * 4)),
        make_within(many_images(), 2, false, Mode::Lazy, Some(4 * 100 * 100 * 4)),
        crate::devices::make_linked(conv_2d(256, 1), 3, None),
        crate::mapped::handed(conv_2d(64, 1), Transfer::Implicit, None),
        crate::mapped::handed(conv_2d(64, 1), Transfer::Hybrid(None), None),
    ];
    for unified in [false, true] {
        plans.push(wanted(conv_2d(64, 1), ResultDelivery::Requester, 1, unified));
        for want in [ResultDelivery::Root, ResultDelivery::Everyone, ResultDelivery::Keep] {
            plans.push(wanted(counted(), want, 3, unified));
            plans.push(wanted(conv_2d(64, 1), want, 3, unified));
        }
    }
    plans
}

#[test]
fn a_step_left_out_is_caught() {
    let mut kinds = std::collections::HashSet::new();
    for whole in plans() {
        verify(&whole).unwrap_or_else(|e| panic!("{e}\n{whole}"));
        for (i, step) in whole.steps.iter().enumerate() {
            kinds.insert(std::mem::discriminant(&step.action));
            let broken = whole.without(i);
            assert!(verify(&broken).is_err(), "leaving out step {i}, {:?}, goes unnoticed\n{whole}", step.action);
        }
    }
    // Begin and finish are left out in `overlap.rs`; collect is a step of naive mode, which makes
    // redundant transfers.
    let all = 19;
    assert_eq!(kinds.len(), all - 3, "some kind of step is not left out");
}

/// A filter of a single row that is all on one rank, which reads the row above and below itself.
#[test]
fn rows_beyond_the_image_that_memory_has_room_for_are_not_taken_from_inside() {
    for unified in [false, true] {
        let mut p = PlanRecorder::new(1, 6);
        let a = p.source(DType::F32);
        let filtered = p.correlate(a, Filter::dense(3, 1, vec![0.25, 0.5, 0.25]), Border::Wrap);
        p.graph.roots = vec![filtered];
        let whole = wanted(p.graph, ResultDelivery::Root, 2, unified);
        verify(&whole).unwrap_or_else(|e| panic!("{e}\n{whole}"));
        let mut stale = whole.clone();
        for step in &mut stale.steps {
            match &mut step.action {
                Action::Scatter { halo, room, .. } => (*room, *halo) = (room.max(*halo), Halo::NONE),
                Action::Exchange { halo, .. } => *halo = Halo::NONE,
                _ => {}
            }
        }
        let caught = verify(&stale).expect_err(&format!("{stale}")).to_string();
        assert!(caught.contains("reads rows -1..2 of %0, of which 0..1 are up to date"), "{caught}");
    }
}

#[test]
fn what_is_wanted_and_not_brought_is_named() {
    let plan = wanted(conv_2d(64, 1), ResultDelivery::Root, 3, false);
    let mut broken = plan.clone();
    broken.steps.retain(|s| !matches!(s.action, Action::Gather { .. }));
    let root = plan.graph.roots[0];
    let caught = verify(&broken).unwrap_err().to_string();
    assert!(caught.contains(&format!("{root} is wanted and not delivered on rank 0")), "{caught}");
    // The same steps suffice if the image only has to stay; it need not be copied to the host then.
    broken.wants[0] = ResultDelivery::Keep;
    verify(&broken).unwrap();
    // Rows of one rank do not satisfy every rank.
    let mut plan = wanted(conv_2d(64, 1), ResultDelivery::Everyone, 3, true);
    plan.steps.retain(|s| !matches!(s.action, Action::Replicate { node, .. } if node == root));
    let caught = verify(&plan).unwrap_err().to_string();
    assert!(caught.contains("are delivered, wanted are"), "{caught}");
}

#[test]
fn states_that_are_not_so_are_caught() {
    let mut plan = wanted(conv_2d(64, 1), ResultDelivery::Root, 3, false);
    let root = plan.graph.roots[0];
    plan.states[root.0] = Some(ImageState { residency: Residency::Both, placement: Placement::Replicated });
    let caught = verify(&plan).unwrap_err().to_string();
    assert!(caught.contains("told are"), "{caught}");
}
