//! Plans whose results only rank 0 wants: strips are gathered on its device, while others are
//! computed.

use std::num::NonZeroU8;
use std::sync::Arc;

use horus_core::dtype::DType;
use horus_core::ir::graph::{Graph, Op};
use horus_core::machine::{Machine, MachineProfile};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::plan::forecast::forecast;
use horus_core::plan::partition::Partition;
use horus_core::plan::predict::predict;
use horus_core::plan::state::Placement;
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, Plan, PlanStep, Setting, Transfer};

use horus_core::shape::Border;

use crate::recorder::{PlanRecorder, conv_2d, conv_rot, make_of, steps};

fn on_h200s(graph: Graph<Op>, ranks: usize, transfer: Transfer) -> Plan {
    let machine = Arc::new(Machine::alike(MachineProfile::shipped("NVIDIA H200").unwrap()));
    let setting = Setting { direct: true, transfer, machine, ..Setting::of(Partition::equal(ranks), false) };
    make_of(graph, setting, Placement::Replicated)
}

/// A filter of 64 rows above and below, of a given image.
fn filtered(size: usize) -> Graph<Op> {
    let mut p = PlanRecorder::new(size, size);
    let a = p.source(DType::F32);
    let twice = p.constant(PixelOp::Mul, a, 2.0);
    let filtered = p.correlate(twice, Filter::column(vec![1.0; 127]), Border::Reflect101);
    p.graph.roots = vec![filtered];
    p.graph
}

#[test]
fn strips_meet_band_by_band_while_others_are_computed() {
    let plan = on_h200s(filtered(1024), 2, Transfer::Streams(NonZeroU8::new(4)));
    let line = |(step, text): (&PlanStep, String)| {
        let text = text.split(" = ").next().unwrap().replace(" 1024x1024 f32", "");
        if step.waits.is_empty() { text } else { format!("{text}, waits for {:?}", step.waits) }
    };
    let text: Vec<String> = plan.steps.iter().zip(steps(&plan)).map(line).collect();
    // The image is given, so 63 rows around each strip are uploaded with it; the last rows wait for
    // all of it.
    let want = "upload rows 0 to 1 of 4 of each strip of %0, and 63 rows around it
launch rows 0 to 1 of 4 of %1, waits for [0]
upload rows 1 to 2 of 4 of each strip of %0, and 63 rows around it
launch rows 1 to 2 of 4 of %1, waits for [2]
launch rows 0 to 5 of 16 of %2
gather rows 0 to 5 of 16 of %2, from device to device
send rows 0 to 5 of 16 of %2, waits for [5]
upload rows 2 to 3 of 4 of each strip of %0, and 63 rows around it
launch rows 2 to 3 of 4 of %1, waits for [7]
launch rows 10 to 19 of 32 of %2
gather rows 10 to 19 of 32 of %2, from device to device
send rows 10 to 19 of 32 of %2, waits for [10]
upload rows 3 to 4 of 4 of each strip of %0, and 63 rows around it
launch rows 48 to 57 of 64 of %1, waits for [12]
launch rows 19 to 24 of 32 of %2
launch rows 57 to 64 of 64 of %1
free %0
launch rows 3 to 4 of 4 of %2
free %1
gather rows 19 to 32 of 32 of %2, from device to device
send rows 19 to 32 of 32 of %2, waits for [19]";
    assert_eq!(text.join("\n"), want);
    let counts = plan.counts();
    assert_eq!((counts.downloads, counts.gathers), (1, 1), "bands of an image count once");
}

#[test]
fn what_is_gathered_through_devices_is_predicted_to_take_less() {
    for (name, graph) in [("ConvRot", conv_rot(4096, 12)), ("Conv2D", conv_2d(4096, 2)), ("filter", filtered(4096))] {
        for ranks in [2, 4] {
            let plan = on_h200s(graph.clone(), ranks, Transfer::Auto);
            let mut apart = plan.setting.clone();
            apart.direct = false;
            let by_host = make_of(graph.clone(), apart, Placement::Replicated);
            let gathers = plan.steps.iter().filter(|s| matches!(s.action, Action::Gather { direct: true, .. })).count();
            assert!(gathers > 0, "{name}\n{plan}");
            let (direct, host) = (predict(&plan).seconds, predict(&by_host).seconds);
            assert!(direct < host, "{name} on {ranks} ranks: {direct} s, by the host {host} s");
            // The messages contain the other ranks' parts of the result, whatever their number.
            let told = forecast(&plan, &plan.setting.machine, ranks, ranks);
            let met: usize =
                told.steps.iter().filter(|(s, _)| s.starts_with("gather")).map(|(_, t)| t.total.bytes).sum();
            assert_eq!(met, 4096 * 4096 * 4 / ranks * (ranks - 1), "{name}\n{told}");
        }
    }
}

#[test]
fn a_tail_of_launches_hides_the_copy_to_the_host() {
    let (cut, whole) = (Transfer::Auto, Transfer::Explicit);
    let [cut, whole] = [cut, whole].map(|transfer| on_h200s(conv_2d(4096, 2), 2, transfer));
    let (with, without) = (predict(&cut).seconds, predict(&whole).seconds);
    assert!(with < 0.95 * without, "{with} s in bands, {without} s without\n{cut}\n{}", predict(&cut));
}

#[test]
fn no_step_and_no_wait_can_be_left_out() {
    let bands = |n| Transfer::Streams(NonZeroU8::new(n));
    let two = || {
        let mut graph = filtered(256);
        graph.roots.push(graph.roots[0]);
        graph
    };
    for (graph, ranks, transfer) in [
        (filtered(1024), 3, Transfer::Explicit),
        (filtered(1024), 2, bands(4)),
        (two(), 4, bands(3)),
        (conv_rot(256, 2), 3, bands(3)),
        (conv_2d(256, 1), 2, bands(16)),
    ] {
        let whole = on_h200s(graph, ranks, transfer);
        for (i, step) in whole.steps.iter().enumerate() {
            let broken = whole.without(i);
            assert!(verify(&broken).is_err(), "leaving out step {i}, {:?}, goes unnoticed\n{whole}", step.action);
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
fn bands_out_of_turn_and_results_that_did_not_meet_are_caught() {
    let plan = on_h200s(filtered(1024), 2, Transfer::Streams(NonZeroU8::new(4)));
    let is = |gather: bool| {
        move |action: &Action| match action {
            Action::Gather { .. } => gather,
            Action::Send { .. } => !gather,
            _ => false,
        }
    };
    for gather in [true, false] {
        let places: Vec<usize> =
            plan.steps.iter().enumerate().filter(|(_, s)| is(gather)(&s.action)).map(|(i, _)| i).collect();
        let mut swapped = plan.clone();
        let (a, b) = (swapped.steps[places[1]].action, swapped.steps[places[2]].action);
        (swapped.steps[places[1]].action, swapped.steps[places[2]].action) = (b, a);
        assert!(verify(&swapped).is_err(), "{swapped}");
        let mut twice = plan.clone();
        let again = twice.steps[places[2]].clone();
        twice.steps.push(again);
        assert!(verify(&twice).is_err(), "{twice}");
    }
    let mut apart = plan.clone();
    apart.setting.direct = false;
    assert!(verify(&apart).unwrap_err().to_string().contains("not connected"));
}
