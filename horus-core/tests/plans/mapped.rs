//! Launches that use the host's memory in place of copies: the text of plans, and the conditions.

use std::num::NonZeroU8;
use std::sync::Arc;

use horus_core::dtype::DType;
use horus_core::ir::graph::{Graph, Op, ValueId};
use horus_core::machine::{Machine, MachineProfile};
use horus_core::ops::pixel::PixelOp;
use horus_core::optimize::optimize;
use horus_core::plan::partition::Partition;
use horus_core::plan::predict::predict;
use horus_core::plan::state::{ImageState, Placement, Residency};
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, Mappable, Mode, Plan, ResultDelivery, Setting, Transfer, plan};

use crate::recorder::{PlanRecorder, conv_2d, conv_rot};

/// Everything is mappable.
fn everything(graph: &Graph<Op>) -> Mappable {
    let value = |op: &Op| if let Op::Source(v) = op { Some(*v) } else { None };
    let sources: Vec<ValueId> = graph.nodes.iter().filter_map(|n| value(&n.op)).collect();
    Mappable { sources, results: true, downloads_last: false }
}

fn made(graph: Graph<Op>, setting: Setting, kept: bool) -> Plan {
    let kernels = optimize(graph, true, &setting.machine, &mut |_, _| ()).unwrap();
    let mut wants = vec![ResultDelivery::Keep; kernels.roots.len()];
    wants[0] = if setting.partition.ranks() == 1 { ResultDelivery::Requester } else { ResultDelivery::Root };
    let state = ImageState { residency: Residency::Host, placement: Placement::Replicated };
    let plan = plan(kernels, &wants, &setting, |_| state, |_| !kept, &mut |_, _| ()).unwrap();
    verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}"));
    plan
}

/// A plan that hands the first result over, of images that are page-locked.
pub(crate) fn handed(graph: Graph<Op>, transfer: Transfer, profile: Option<MachineProfile>) -> Plan {
    let (mappable, of) = (everything(&graph), Setting::of(Partition::equal(1), false));
    let machine = profile.map_or(Arc::clone(&of.machine), |p| Arc::new(Machine::alike(p)));
    made(graph, Setting { transfer, mappable, machine, ..of }, false)
}

fn h200() -> Option<MachineProfile> {
    MachineProfile::shipped("NVIDIA H200")
}

/// A filter over the sum of two images.
fn filtered(size: usize) -> Graph<Op> {
    let mut p = PlanRecorder::new(size, size);
    let (a, b) = (p.source(DType::F32), p.source(DType::F32));
    let sum = p.binary(PixelOp::Add, a, b);
    let filtered = p.gauss_xy(sum, 3, 3, 0);
    p.graph.roots = vec![filtered];
    p.graph
}

/// A sum of two float images.
fn added(size: usize) -> Graph<Op> {
    let mut p = PlanRecorder::new(size, size);
    let (a, b) = (p.source(DType::F32), p.source(DType::F32));
    p.graph.roots = vec![p.binary(PixelOp::Add, a, b)];
    p.graph
}

/// Rotations of a float image, added up.
fn turned(size: usize) -> Graph<Op> {
    let mut p = PlanRecorder::new(size, size);
    let a = p.source(DType::F32);
    let turned: Vec<_> = (0..12).map(|i| p.rotate(a, 10.0 * f64::from(i))).collect();
    let filtered: Vec<_> = turned.into_iter().map(|t| p.gauss_xy(t, 3, 3, 0)).collect();
    let sum = filtered.into_iter().reduce(|x, y| p.binary(PixelOp::Add, x, y)).unwrap();
    p.graph.roots = vec![sum];
    p.graph
}

fn steps(plan: &Plan) -> Vec<String> {
    let words = |text: String| {
        text.split(" = ").next().unwrap_or_default().split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    };
    plan.steps.iter().map(|s| words(plan.describe(&s.action))).collect()
}

#[test]
fn implicit_copies_nothing() {
    let plan = handed(filtered(256), Transfer::Implicit, h200());
    let launches = plan.counts().launches;
    let root = plan.graph.roots[0];
    assert_eq!(plan.counts().copies(), 0, "{plan}");
    let text = steps(&plan);
    assert_eq!(text[..3], ["map %0".to_owned(), "map %1".into(), format!("map {root}")], "{plan}");
    assert_eq!(text[text.len() - 2..], [format!("unmap {root}"), format!("deliver {root}")], "{plan}");
    assert!(plan.steps.iter().all(|s| s.waits.is_empty()), "one queue does it all: {plan}");
    let bounds: Vec<&str> = predict(&plan).steps.iter().map(|t| t.bounded.name()).filter(|n| !n.is_empty()).collect();
    assert_eq!(bounds, vec!["bus"; launches], "{}", predict(&plan));
    let text = plan.to_string();
    assert!(plan.notation().iter().any(|(word, told)| *word == "map" && told.contains("over the bus")), "{text}");
    // Neither the images nor the result take the device's memory.
    let explicit = handed(filtered(256), Transfer::Explicit, h200()).to_string();
    let held = |text: &str| {
        let line = text.lines().find(|l| l.contains("at most at once")).unwrap().trim().to_owned();
        line.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(held(&text) < held(&explicit), "{text}{explicit}");
}

#[test]
fn hybrid_uploads_in_bands_and_copies_no_result_back() {
    let plan = handed(filtered(1024), Transfer::Hybrid(NonZeroU8::new(4)), h200());
    let uploads = plan.steps.iter().filter(|s| matches!(s.action, Action::Upload { .. })).count();
    assert_eq!((uploads, plan.counts().uploads, plan.counts().downloads), (8, 2, 0), "{plan}");
    let root = plan.graph.roots[0];
    assert!(plan.steps.iter().any(|s| s.action == Action::Map(root)), "{plan}");
}

#[test]
fn an_image_that_stays_is_on_the_host_afterwards() {
    let graph = filtered(256);
    let (mappable, of) = (everything(&graph), Setting::of(Partition::equal(1), false));
    let plan = made(graph, Setting { transfer: Transfer::Implicit, mappable, ..of }, true);
    let host = ImageState { residency: Residency::Host, placement: Placement::Replicated };
    for n in plan.graph.iter().filter(|(id, _)| plan.states[id.0].is_some()).map(|(id, _)| id) {
        assert_eq!(plan.states[n.0], Some(host), "{n}\n{plan}");
    }
}

#[test]
fn what_cannot_be_used_is_copied() {
    let graph = || filtered(256);
    let everything = everything(&graph());
    let of = |ranks| Setting::of(Partition::equal(ranks), false);
    let explicit = made(graph(), Setting { transfer: Transfer::Explicit, ..of(1) }, false);
    for (what, setting) in [
        ("pages are not locked", Setting { transfer: Transfer::Implicit, ..of(1) }),
        ("every result is copied", Setting { transfer: Transfer::Hybrid(NonZeroU8::new(1)), ..of(1) }),
    ] {
        let plan = made(graph(), setting, false);
        assert_eq!(plan.counts(), explicit.counts(), "{what}\n{plan}");
        assert!(!plan.steps.iter().any(|s| matches!(s.action, Action::Map(_))), "{what}\n{plan}");
    }
    for transfer in [Transfer::Implicit, Transfer::Hybrid(None)] {
        let mappable = everything.clone();
        for (what, setting) in [
            ("several ranks", Setting { transfer, mappable: mappable.clone(), ..of(3) }),
            (
                "nothing stays on the device",
                Setting { transfer, mappable: mappable.clone(), mode: Mode::Naive, ..of(1) },
            ),
            ("the host computes", Setting { transfer, mappable, ..Setting::of(Partition::equal(1), true) }),
        ] {
            let plan = made(graph(), setting, false);
            assert!(!plan.steps.iter().any(|s| matches!(s.action, Action::Map(_))), "{what}\n{plan}");
        }
    }
    // One of two is page-locked.
    let mappable = Mappable { sources: everything.sources[..1].to_vec(), ..Mappable::default() };
    let plan = made(graph(), Setting { transfer: Transfer::Implicit, mappable, ..of(1) }, false);
    assert_eq!((plan.counts().uploads, plan.counts().downloads), (1, 1), "{plan}");
}

#[test]
fn where_the_device_is_full_images_are_copied() {
    let graph = || conv_rot(128, 6);
    let image = 128 * 128 * 4;
    for images in [4, 5, 8] {
        let setting = Setting {
            transfer: Transfer::Implicit,
            mappable: everything(&graph()),
            capacity: Some(images * image),
            ..Setting::of(Partition::equal(1), false)
        };
        made(graph(), setting, false);
    }
}

#[test]
fn predictions_choose_among_all_strategies() {
    let seconds = |graph: Graph<Op>, transfer| predict(&handed(graph, transfer, h200())).seconds;
    let all = || {
        let numbers = [2, 4, 8, 16].map(NonZeroU8::new);
        // Not implicit: tiles are read over the bus by request only.
        let bands = numbers.into_iter().flat_map(|n| [Transfer::Streams(n), Transfer::Hybrid(n)]);
        bands.chain([Transfer::Explicit])
    };
    for (name, graph) in [
        ("filter", filtered as fn(usize) -> Graph<Op>),
        ("ConvRot", |n| conv_rot(n, 12)),
        ("Conv2D", |n| conv_2d(n, 1)),
    ] {
        for size in [256, 1024, 4096] {
            let (best, chosen) = all()
                .map(|t| (seconds(graph(size), t), t))
                .fold((f64::INFINITY, Transfer::Auto), |a, b| if b.0 < a.0 { b } else { a });
            let auto = seconds(graph(size), Transfer::Auto);
            // Launches that use the host's memory must be predicted to gain a twentieth.
            let doubt = if matches!(chosen, Transfer::Hybrid(_)) { 1.0 / 0.95 } else { 1.0 };
            // Fewer steps are kept where bands gain less than 2 %, and the choice adds up times more simply than
            // predictions do: Conv2D of 1024 is off by 3.9 %.
            assert!(auto <= 1.05 * doubt * best, "{name} {size}: {auto} s, {best} by {chosen:?}");
        }
    }
    // A sum reads its images once; tiles of a filter and rotations do so many times.
    let implicit = handed(added(1024), Transfer::Auto, h200());
    assert_eq!(implicit.counts().copies(), 0, "{implicit}");
    assert_eq!(handed(filtered(1024), Transfer::Auto, h200()).counts().uploads, 2);
    assert_eq!(handed(turned(1024), Transfer::Auto, h200()).counts().uploads, 1);
}

#[test]
fn what_is_read_more_often_comes_over_the_bus_more_often() {
    let slow = |graph: fn(usize) -> Graph<Op>| {
        let (implicit, explicit) =
            (handed(graph(1024), Transfer::Implicit, h200()), handed(graph(1024), Transfer::Explicit, h200()));
        predict(&implicit).seconds / predict(&explicit).seconds
    };
    let (once, tiles, often) = (slow(added), slow(filtered), slow(turned));
    assert!(once < 1.0 && tiles > 1.0 && often > tiles, "{once} {tiles} {often}");
}
