//! Plans in bands: cuts, waits, and the necessity of each wait.

use std::num::NonZeroU8;
use std::sync::Arc;

use horus_core::dtype::DType;
use horus_core::ir::graph::Graph;
use horus_core::ir::graph::Op;
use horus_core::machine::{Machine, MachineProfile};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::optimize::optimize;
use horus_core::plan::partition::Partition;
use horus_core::plan::predict::predict;
use horus_core::plan::state::{ImageState, Placement, Residency};
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, LaunchPart, Plan, ResultDelivery, Setting, Transfer, plan};

use horus_core::shape::Border;

use crate::recorder::{PlanRecorder, conv_2d, conv_rot};

/// A plan that hands the first result over.
fn handed(graph: Graph<Op>, transfer: Transfer, profile: MachineProfile) -> Plan {
    let setting =
        Setting { transfer, machine: Arc::new(Machine::alike(profile)), ..Setting::of(Partition::equal(1), false) };
    let kernels = optimize(graph, true, &setting.machine, &mut |_, _| ()).unwrap();
    let mut wants = vec![ResultDelivery::Keep; kernels.roots.len()];
    wants[0] = ResultDelivery::Requester;
    let state = ImageState { residency: Residency::Host, placement: Placement::Replicated };
    let plan = plan(kernels, &wants, &setting, |_| state, |_| true, &mut |_, _| ()).unwrap();
    verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
    plan
}

fn in_bands(graph: Graph<Op>, count: u8) -> Plan {
    handed(graph, Transfer::Streams(NonZeroU8::new(count)), MachineProfile::of_default(false))
}

/// A filter of 64 rows above and below over the sum of two images.
fn filtered(size: usize) -> Graph<Op> {
    let mut p = PlanRecorder::new(size, size);
    let (a, b) = (p.source(DType::F32), p.source(DType::F32));
    let sum = p.binary(PixelOp::Add, a, b);
    let filtered = p.correlate(sum, Filter::column(vec![1.0; 127]), Border::Reflect101);
    p.graph.roots = vec![filtered];
    p.graph
}

#[test]
fn rows_go_up_are_computed_and_come_back_at_the_same_time() {
    let plan = in_bands(filtered(1024), 4);
    let steps: Vec<String> = plan
        .steps
        .iter()
        .map(|s| {
            let text = plan.describe(&s.action);
            let text = text.split(" = ").next().unwrap().split_whitespace().take(7).collect::<Vec<_>>().join(" ");
            if s.waits.is_empty() { text } else { format!("{text}, waits for {:?}", s.waits) }
        })
        .collect();
    // The filter reads 64 rows of 1024 below its own: 4 of 64 parts.
    let want = "upload rows 0 to 1 of 4
upload rows 0 to 1 of 4
launch rows 0 to 1 of 4, waits for [1]
upload rows 1 to 2 of 4
upload rows 1 to 2 of 4
launch rows 1 to 2 of 4, waits for [4]
launch rows 0 to 7 of 16
send rows 0 to 7 of 16, waits for [6]
upload rows 2 to 3 of 4
upload rows 2 to 3 of 4
launch rows 2 to 3 of 4, waits for [9]
launch rows 7 to 11 of 16
send rows 7 to 11 of 16, waits for [11]
upload rows 3 to 4 of 4
upload rows 3 to 4 of 4
launch rows 3 to 4 of 4, waits for [14]
free %0 1024x1024 f32
free %1 1024x1024 f32
launch rows 11 to 16 of 16
free %2 1024x1024 f32
send rows 11 to 16 of 16, waits for [18]";
    assert_eq!(steps.join("\n"), want);
}

#[test]
fn large_images_are_cut_where_that_is_predicted_to_gain() {
    let profile = || MachineProfile::shipped("NVIDIA H200").unwrap();
    for (name, graph) in [("ConvRot", conv_rot(4096, 12)), ("Conv2D", conv_2d(4096, 2)), ("filter", filtered(4096))] {
        let (cut, whole) =
            (handed(graph.clone(), Transfer::Auto, profile()), handed(graph, Transfer::Explicit, profile()));
        let (with, without) = (predict(&cut).seconds, predict(&whole).seconds);
        assert!(with < 0.98 * without, "{name}: {with} s in bands, {without} s without\n{cut}\n{}", predict(&cut));
        let bands = |p: &Plan| {
            p.steps.iter().filter(|s| matches!(s.action, Action::Launch { part: LaunchPart::Band(_), .. })).count()
        };
        assert!(bands(&cut) > 0 && bands(&whole) == 0);
        assert_eq!(cut.counts(), whole.counts(), "{name}: bands of an image count once");
    }
    let small = handed(conv_rot(64, 2), Transfer::Auto, profile());
    assert_eq!(small.steps.len(), handed(conv_rot(64, 2), Transfer::Explicit, profile()).steps.len(), "{small}");
}

#[test]
fn what_does_not_fit_beside_the_rest_is_not_kept_longer() {
    let (image, graph) = (256 * 256 * 4, conv_rot(256, 12));
    let made = |capacity, transfer| {
        let setting = Setting { transfer, capacity: Some(capacity), ..Setting::of(Partition::equal(1), false) };
        let kernels = optimize(graph.clone(), true, &setting.machine, &mut |_, _| ()).unwrap();
        let mut wants = vec![ResultDelivery::Keep; kernels.roots.len()];
        wants[0] = ResultDelivery::Requester;
        let state = ImageState { residency: Residency::Host, placement: Placement::Replicated };
        plan(kernels, &wants, &setting, |_| state, |_| true, &mut |_, _| ()).unwrap()
    };
    for capacity in [4 * image, 5 * image, 6 * image, 8 * image, 20 * image] {
        let plan = made(capacity, Transfer::Streams(NonZeroU8::new(8)));
        verify(&plan).unwrap();
        let held = |plan: &Plan| {
            let text = plan.to_string();
            let line = text.lines().find(|l| l.contains("at most at once")).unwrap().trim().to_owned();
            line.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e6
        };
        let whole = held(&made(capacity, Transfer::Explicit));
        // Printed to a tenth of a million.
        let most = whole.max(capacity as f64) + 1e5;
        assert!(
            plan.fits && held(&plan) <= most,
            "{} bytes, of {capacity}; {whole} without bands\n{plan}",
            held(&plan)
        );
    }
}

#[test]
fn a_wait_left_out_is_caught() {
    let plans = [in_bands(filtered(1024), 4), in_bands(conv_rot(256, 2), 3), in_bands(conv_2d(256, 1), 16)];
    let explicit = [Transfer::Explicit].map(|t| handed(conv_rot(256, 2), t, MachineProfile::of_default(false)));
    for whole in plans.iter().chain(&explicit) {
        let waits = whole.steps.iter().map(|s| s.waits.len()).sum::<usize>();
        assert!(waits >= 2, "{whole}");
    }
    // Random plans are tried in the conformance tests.
    for whole in plans.iter().chain(&explicit).chain(&crate::left_out::plans()) {
        for (i, step) in whole.steps.iter().enumerate() {
            for k in 0..step.waits.len() {
                let mut broken = whole.clone();
                let wait = broken.steps[i].waits.remove(k);
                let caught =
                    verify(&broken).expect_err(&format!("step {i} does not wait for {wait}\n{whole}")).to_string();
                assert!(caught.contains("does not wait for step"), "{caught}");
            }
        }
    }
}

#[test]
fn a_launch_of_several_results_waits_at_its_first_step() {
    let mut p = PlanRecorder::new(256, 256);
    let images = [p.source(DType::F32), p.source(DType::F32), p.source(DType::F32)];
    let products = images.map(|image| p.binary(PixelOp::Mul, image, images[0]));
    p.graph.roots = products.map(|product| p.gauss_xy(product, 1, 1, 0)).to_vec();
    let plan = handed(p.graph, Transfer::Explicit, MachineProfile::of_default(false));
    let launches = plan.launches();
    let later = (0..plan.steps.len()).find(|i| launches.computes_before(*i)).unwrap_or_else(|| panic!("{plan}"));
    assert!(!plan.steps[later - 1].waits.is_empty() && plan.steps[later].waits.is_empty(), "{plan}");
    let mut broken = plan.clone();
    broken.steps[later].waits = std::mem::take(&mut broken.steps[later - 1].waits);
    let caught = verify(&broken).unwrap_err().to_string();
    assert!(caught.contains("does not wait for step") || caught.contains("in the middle of a launch"), "{caught}");
    let mut broken = plan.clone();
    broken.steps[later].waits = broken.steps[later - 1].waits.clone();
    let caught = verify(&broken).unwrap_err().to_string();
    assert!(caught.contains("waits in the middle of a launch"), "{caught}");
}
