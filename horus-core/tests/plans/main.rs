//! Plans of known programs, step by step, without any device.

mod bands;
mod devices;
mod gathered;
mod left_out;
mod mapped;
mod recorder;
mod text;

use horus_core::dtype::DType;
use horus_core::ir::graph::{Node, NodeId, Op};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::plan::forecast::forecast;
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, Mode, PlanCounts};
use horus_core::shape::{Border, Shape};
use std::panic::Location;

use crate::recorder::{PlanRecorder, conv_2d, conv_rot, make, make_direct, steps};

#[test]
fn conv_rot_on_one_gpu_uploads_once_and_downloads_once() {
    let c = make(conv_rot(1024, 12), 1, false, Mode::Fused).counts();
    assert_eq!((c.uploads, c.downloads), (1, 1));
    // The conversion, and per orientation a rotation, a filter bank, and the way back into the
    // maximum.
    assert!(c.launches <= 1 + 12 * 3, "{c:?}");
}

#[test]
fn conv_rot_fuses_each_orientation_into_one_filter_bank() {
    let p = make(conv_rot(64, 1), 1, false, Mode::Fused);
    let want = "launch %58 64x64 f32 = row 1x43 + row 1x31 + row 1x19 + 6x correlate 43x1 + 6x correlate 31x1 + \
                6x correlate 19x1 + 9x absdiv + 9x mul + 9x max";
    let bank = steps(&p).into_iter().find(|s| s.contains("absdiv")).unwrap();
    let parts = |s: &str| {
        let text = s.split(" = ").nth(1).unwrap().split(" (").next().unwrap().to_owned();
        let mut parts: Vec<String> = text.split(" + ").map(str::to_owned).collect();
        parts.sort();
        parts
    };
    assert_eq!(parts(&bank), parts(want));
}

#[test]
fn lazy_mode_copies_no_more_than_fused_mode() {
    for unified in [false, true] {
        for ranks in [1, 3] {
            for (name, graph) in [("ConvRot", conv_rot(256, 2)), ("Conv2D", conv_2d(256, 2))] {
                let counts = |mode| make(graph.clone(), ranks, unified, mode).counts();
                let (lazy, fused) = (counts(Mode::Lazy), counts(Mode::Fused));
                let what = format!("{name} on {ranks} ranks, unified {unified}: lazy {lazy:?}, fused {fused:?}");
                assert!(lazy.uploads <= fused.uploads && lazy.downloads <= fused.downloads, "{what}");
                // Each rank uploads its share and, where rank 0 keeps nothing, it scatters a
                // picture.
                let most = if unified { (0, 0) } else { (1, 1) };
                assert!(ranks > 1 || (lazy.uploads, lazy.downloads) == most, "{what}");
                // Fusion saves launches.
                assert!(fused.launches < lazy.launches, "{what}");
            }
        }
    }
}

#[test]
fn naive_mode_copies_every_operand_of_every_operation() {
    // Per orientation: rotate (1 up, 1 down), set (0, 1), 9 x [2 filters (1, 1), absdiv (2, 1), mul
    // (1, 1), max (2, 1)], rotate back (1, 1), max (2, 1); once: convert (1, 1), divide (1, 1), the
    // zero image (0, 1).
    let per_orientation = (1 + 9 * (2 + 2 + 1 + 2) + 1 + 2, 1 + 1 + 9 * 5 + 1 + 1);
    let c = make(conv_rot(256, 2), 1, false, Mode::Naive).counts();
    assert_eq!((c.uploads, c.downloads), (2 + 2 * per_orientation.0, 3 + 2 * per_orientation.1));
    assert_eq!(c.launches, c.downloads);
}

#[test]
fn a_device_on_host_memory_copies_nothing() {
    for mode in [Mode::Naive, Mode::Lazy, Mode::Fused] {
        assert_eq!(make(conv_rot(128, 2), 1, true, mode).counts().copies(), 0);
    }
}

#[test]
fn conv_2d_on_four_ranks_scatters_and_gathers_once() {
    for unified in [true, false] {
        let p = make(conv_2d(1024, 3), 4, unified, Mode::Fused);
        let c = p.counts();
        let between = PlanCounts { scatters: 1, gathers: 1, ..PlanCounts::default() };
        assert_eq!(PlanCounts { launches: 0, uploads: 0, downloads: 0, ..c }, between, "{p}");
        let depth = p.steps.iter().find_map(|s| match s.action {
            Action::Scatter { halo, .. } => Some((halo.up, halo.down)),
            _ => None,
        });
        assert_eq!(depth, Some((21, 21)), "the widest radius serves the whole bank, and goes with the strips");
    }
}

#[test]
fn conv_2d_banks_hold_filters_of_one_size() {
    let p = make(conv_2d(64, 2), 1, false, Mode::Fused);
    let banks: Vec<String> = steps(&p).into_iter().filter(|s| s.contains("correlate")).collect();
    assert_eq!(banks.len(), 6, "{banks:#?}");
    assert!(banks.iter().all(|b| b.contains("6x correlate")), "{banks:#?}");
}

#[test]
fn conv_rot_on_four_ranks_replicates_the_image_and_fetches_footprints() {
    let p = make(conv_rot(1024, 12), 4, false, Mode::Fused);
    let c = p.counts();
    assert_eq!((c.replications, c.gathers, c.exchanges), (1, 1, 0), "{p}");
    assert_eq!(c.footprints, 12, "one per rotation back");
}

#[test]
fn naive_mode_scatters_and_gathers_around_every_operation() {
    let c = make(conv_2d(256, 1), 4, false, Mode::Naive).counts();
    // Two pixel operations, the zero image, and 9 x [2 filters, absdiv, mul, max].
    let operands = 2 + 9 * (2 + 2 + 1 + 2);
    let results = 3 + 9 * 5;
    assert_eq!((c.scatters, c.uploads), (operands, operands));
    assert_eq!(c.downloads, results);
    assert_eq!(c.gathers, results, "every result");
}

#[test]
fn a_pixel_operation_computes_on_the_halo_instead_of_exchanging() {
    let mut p = PlanRecorder::new(100, 10);
    let a = p.source(DType::F32);
    let box3 = Filter::dense(3, 3, vec![1.0; 9]);
    let blurred = p.correlate(a, box3.clone(), Border::Reflect101);
    let squared = p.constant(PixelOp::Mul, a, 2.0);
    let again = p.correlate(squared, box3, Border::Reflect101);
    let sum = p.binary(PixelOp::Add, blurred, again);
    p.graph.roots = vec![sum];
    let plan = make(p.graph, 3, true, Mode::Lazy);
    assert_eq!((plan.counts().scatters, plan.counts().exchanges), (1, 0), "{plan}");
}

#[test]
fn rows_that_are_sent_anyway_save_an_exchange() {
    // A row pass reads no borders, the column pass after it does; a filter over the image itself
    // needs more.
    let mut p = PlanRecorder::new(100, 10);
    let a = p.source(DType::F32);
    let row = p.correlate(a, Filter::row(vec![1.0; 5]), Border::Reflect101);
    let column = p.correlate(row, Filter::column(vec![1.0; 5]), Border::Reflect101);
    let wide = p.correlate(a, Filter::dense(7, 7, vec![1.0; 49]), Border::Reflect101);
    let sum = p.binary(PixelOp::Add, column, wide);
    p.graph.roots = vec![sum];
    let plan = make(p.graph, 3, true, Mode::Lazy);
    assert_eq!((plan.counts().scatters, plan.counts().exchanges), (1, 0), "{plan}");
}

#[test]
fn footprints_or_the_whole_image_by_what_they_send() {
    // One rotation reads each pixel once: its footprints are fetched. Twelve would fetch the image
    // twelve times.
    let turns = |count: usize, ranks: usize| {
        let mut p = PlanRecorder::new(2000, 2000);
        let a = p.source(DType::F32);
        let turned: Vec<NodeId> = (0..count).map(|i| p.rotate(a, 15.0 * i as f64 + 5.0)).collect();
        p.graph.roots = turned;
        make(p.graph, ranks, true, Mode::Fused)
    };
    for ranks in [2, 4, 20] {
        let (one, twelve) = (turns(1, ranks), turns(12, ranks));
        assert_eq!((one.counts().footprints, one.counts().replications), (1, 0), "{one}");
        assert_eq!((twelve.counts().footprints, twelve.counts().replications), (0, 1), "{twelve}");
        assert!(twelve.to_string().contains("12 launches read it across strips: "), "{twelve}");
        // On many ranks, rank 0 would otherwise send the whole image to each.
        assert_eq!(twelve.counts().scatters, usize::from(ranks > 2), "{twelve}");
    }
}

#[test]
fn a_turned_strip_fetches_a_band_not_the_image() {
    let mut p = PlanRecorder::new(1600, 1600);
    let a = p.source(DType::F32);
    let doubled = p.constant(PixelOp::Mul, a, 2.0);
    let turned = p.rotate(doubled, 45.0);
    p.graph.roots = vec![turned, doubled];
    let ranks = 16;
    let plan = make(p.graph, ranks, true, Mode::Lazy);
    let fetched = forecast(&plan, &plan.setting.machine, plan.setting.partition.ranks(), 1);
    let (_, fetch) = fetched.steps.iter().find(|(text, _)| text.starts_with("fetch")).unwrap();
    let image = 1600 * 1600 * 4;
    // Every pixel of the result has one origin; strips read only their seams beyond that.
    assert!(fetch.total.bytes < image * 5 / 4, "{fetched}");
    assert!(fetch.received < image / ranks * 3 / 2, "{fetched}");
}

#[test]
fn a_wrapped_border_is_exchanged_around_the_edge() {
    let mut p = PlanRecorder::new(60, 8);
    let a = p.source(DType::F32);
    let f = p.correlate(a, Filter::column([1.0, 2.0, 3.0]), Border::Wrap);
    let again = p.correlate(f, Filter::column([1.0, 2.0, 3.0]), Border::Wrap);
    p.graph.roots = vec![again];
    let plan = make(p.graph, 4, true, Mode::Fused);
    let sent = plan.steps.iter().any(|s| matches!(s.action, Action::Scatter { halo, .. } if halo.wrap));
    let exchanged = plan
        .steps
        .iter()
        .any(|s| matches!(s.action, Action::Exchange { halo, .. } | Action::Begin { halo, .. } if halo.wrap));
    assert!(sent && exchanged, "{plan}");
}

#[test]
fn a_sum_of_an_expression_stores_no_image() {
    let mut r = PlanRecorder::new(64, 32);
    let (a, b) = (r.source(DType::F32), r.source(DType::F32));
    let product = r.binary(PixelOp::Mul, a, b);
    let scaled = r.constant(PixelOp::Sub, product, 0.5);
    let rows = Shape { width: 1, ..r.shape };
    let (site, f) = (Location::caller().into(), DType::F64);
    let op = Op::from(RowReduce::Sum);
    let column = r.graph.push(Node { op, inputs: vec![scaled], shape: rows, dtype: f, site });
    let (op, shape) = (Op::from(Fold::Sum), Shape::new(1, 1, 1));
    let total = r.graph.push(Node { op, inputs: vec![column], shape, dtype: f, site });
    r.graph.roots = vec![total];
    let fused = make(r.graph.clone(), 1, false, Mode::Fused);
    assert_eq!((fused.counts().uploads, fused.counts().launches, fused.counts().downloads), (2, 2, 1), "{fused}");
    assert!(fused.to_string().contains("mul + sub + row_sum"), "{fused}");
    // The expression has another reader: it is stored, and reduced from there.
    r.graph.roots.push(scaled);
    assert_eq!(make(r.graph, 1, false, Mode::Fused).counts().launches, 3);
}

#[test]
fn a_sum_moves_one_value_per_row() {
    let mut p = PlanRecorder::new(1000, 1000);
    let a = p.source(DType::F32);
    p.shape = Shape::new(1000, 1, 1);
    let rows = p.op(Op::from(RowReduce::Sum), &[a], DType::F64);
    p.shape = Shape::new(1, 1, 1);
    let sum = p.op(Op::from(Fold::Sum), &[rows], DType::F64);
    p.graph.roots = vec![sum];
    let plan = make(p.graph, 4, false, Mode::Fused);
    assert_eq!(
        steps(&plan),
        [
            "scatter %0 1000x1000 f32",
            "upload %0 1000x1000 f32",
            "launch %1 1000x1 f64 = row_sum (%0)",
            "free %0 1000x1000 f32",
            "fetch rows of %1 1000x1 f64 for %2",
            "launch %2 1x1 f64 = fold_sum (%1)",
            "free %1 1000x1 f64",
            "download %2 1x1 f64",
            "deliver %2 1x1 f64",
        ]
    );
}

#[test]
fn a_way_that_devices_do_not_have_is_caught() {
    let mut plan = make_direct(conv_2d(256, 1), 4, None);
    plan.setting.direct = false;
    assert!(verify(&plan).unwrap_err().to_string().contains("not connected"));
}
