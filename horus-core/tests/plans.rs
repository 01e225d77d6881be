//! Plans of known programs, step by step, without any device.

use std::panic::Location;

use horus_core::dtype::{DType, Scalar};
use horus_core::forecast::forecast;
use horus_core::graph::{Graph, Node, NodeId, Op, Operand, ValueId};
use horus_core::movement::Link;
use horus_core::ops::geometric::{Affine, Interpolation, rotation};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::optimize::optimize;
use horus_core::partition::Partition;
use horus_core::plan::{Action, Counts, Mode, Plan, Setting, Temp, Want, plan};
use horus_core::shape::{Border, Shape};
use horus_core::state::{Placement, Residency, State};
use horus_core::verify::verify;

/// Builds recorded programs by hand.
struct Recorder {
    graph: Graph<Op>,
    shape: Shape,
}

impl Recorder {
    fn new(height: usize, width: usize) -> Recorder {
        Recorder { graph: Graph::default(), shape: Shape::new(height, width, 1) }
    }

    fn op(&mut self, op: Op, inputs: &[NodeId], dtype: DType) -> NodeId {
        let (inputs, shape) = (inputs.to_vec(), self.shape);
        self.graph.push(Node { op, inputs, shape, dtype, site: Location::caller() })
    }

    fn source(&mut self, dtype: DType) -> NodeId {
        let value = ValueId(self.graph.nodes.len() as u64);
        self.op(Op::Source(value), &[], dtype)
    }

    /// A `u8` file, scaled to 0..1.
    fn picture(&mut self) -> NodeId {
        let s = self.source(DType::U8);
        let f = self.op(Op::Convert, &[s], DType::F32);
        self.constant(PixelOp::Div, f, 255.0)
    }

    fn fill(&mut self, v: f32) -> NodeId {
        self.op(Op::Fill(Scalar::F32(v)), &[], DType::F32)
    }

    fn binary(&mut self, op: PixelOp, a: NodeId, b: NodeId) -> NodeId {
        self.op(Op::Pixel(op, vec![Operand::Input(0), Operand::Input(1)]), &[a, b], DType::F32)
    }

    fn constant(&mut self, op: PixelOp, a: NodeId, c: f32) -> NodeId {
        self.op(Op::Pixel(op, vec![Operand::Input(0), Operand::Const(Scalar::F32(c))]), &[a], DType::F32)
    }

    fn absdiv(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let operands = vec![Operand::Input(0), Operand::Input(1), Operand::Const(Scalar::F32(1e-3))];
        self.op(Op::Pixel(PixelOp::AbsDiv, operands), &[a, b], DType::F32)
    }

    fn correlate(&mut self, a: NodeId, filter: Filter, border: Border) -> NodeId {
        self.op(Op::Correlate(filter, border), &[a], DType::F32)
    }

    fn gauss_xy(&mut self, a: NodeId, su: usize, sv: usize, order: usize) -> NodeId {
        let r = 3 * su.max(sv);
        let row = Filter::row(vec![su as f64; 2 * r + 1]);
        let column = Filter::column(vec![(100 * sv + order) as f64; 2 * r + 1]);
        self.op(Op::Separable { row, column, border: Border::Reflect101 }, &[a], DType::F32)
    }

    fn gauss_2d(&mut self, a: NodeId, theta: f64, su: usize, sv: usize, order: usize) -> NodeId {
        let n = 6 * su.max(sv) + 1;
        let taps = vec![theta + (100 * sv + order) as f64; n * n];
        self.correlate(a, Filter::dense(n, n, taps), Border::Reflect101)
    }

    fn rotate(&mut self, a: NodeId, degrees: f64) -> NodeId {
        let map = Affine::new(rotation(degrees, self.shape), self.shape).unwrap();
        let outside = Border::Constant(Scalar::F32(0.0));
        self.op(Op::Warp(map, Interpolation::Bilinear, outside), &[a], DType::F32)
    }

    fn detect(&mut self, acc: NodeId, f1: NodeId, f2: NodeId, scale: f32) -> NodeId {
        let d = self.absdiv(f1, f2);
        let d = self.constant(PixelOp::Mul, d, scale);
        self.binary(PixelOp::Max, acc, d)
    }
}

const SCALES: [(usize, usize); 9] = [(3, 1), (3, 2), (3, 3), (5, 1), (5, 2), (5, 3), (7, 1), (7, 2), (7, 3)];

fn conv_rot(size: usize, thetas: usize) -> Graph<Op> {
    let mut p = Recorder::new(size, size);
    let image = p.picture();
    let mut result = p.fill(0.0);
    for t in 0..thetas {
        let theta = 15.0 * t as f64;
        let rotated = p.rotate(image, theta);
        let mut contrast = p.fill(0.0);
        for (su, sv) in SCALES {
            let f1 = p.gauss_xy(rotated, su, sv, 2);
            let f2 = p.gauss_xy(rotated, su, sv, 0);
            contrast = p.detect(contrast, f1, f2, (su * sv) as f32);
        }
        let back = p.rotate(contrast, -theta);
        result = p.binary(PixelOp::Max, result, back);
    }
    p.graph.roots = vec![result, image];
    p.graph
}

fn conv_2d(size: usize, thetas: usize) -> Graph<Op> {
    let mut p = Recorder::new(size, size);
    let image = p.picture();
    let mut result = p.fill(0.0);
    for t in 0..thetas {
        for (su, sv) in SCALES {
            let f1 = p.gauss_2d(image, 15.0 * t as f64, su, sv, 2);
            let f2 = p.gauss_2d(image, 15.0 * t as f64, su, sv, 0);
            result = p.detect(result, f1, f2, (su * sv) as f32);
        }
    }
    p.graph.roots = vec![result, image];
    p.graph
}

fn make(graph: Graph<Op>, ranks: usize, unified: bool, mode: Mode) -> Plan {
    make_within(graph, ranks, unified, mode, None)
}

fn make_within(graph: Graph<Op>, ranks: usize, unified: bool, mode: Mode, capacity: Option<usize>) -> Plan {
    let setting =
        Setting { partition: Partition::equal(ranks), unified, direct: false, overlap: false, mode, capacity };
    make_for(graph, setting)
}

/// On devices that exchange memory without the host.
fn make_direct(graph: Graph<Op>, ranks: usize, capacity: Option<usize>) -> Plan {
    let partition = Partition::equal(ranks);
    make_for(graph, Setting { partition, unified: false, direct: true, overlap: false, mode: Mode::Fused, capacity })
}

/// The same for images that every rank gave.
fn make_given(graph: Graph<Op>, ranks: usize, capacity: Option<usize>) -> Plan {
    let partition = Partition::equal(ranks);
    let setting = Setting { partition, unified: false, direct: true, overlap: false, mode: Mode::Fused, capacity };
    make_of(graph, setting, Placement::Replicated)
}

fn make_for(graph: Graph<Op>, setting: Setting) -> Plan {
    let placement = if setting.partition.ranks() == 1 { Placement::Replicated } else { Placement::Root };
    make_of(graph, setting, placement)
}

fn make_of(graph: Graph<Op>, setting: Setting, placement: Placement) -> Plan {
    let (unified, mode) = (setting.unified, setting.mode);
    let residency = if unified { Residency::Both } else { Residency::Host };
    let mut wants = vec![Want::Root];
    wants.resize(graph.roots.len(), Want::Keep);
    let kernels = optimize(graph, mode == Mode::Fused, &mut |_, _| ());
    let p = plan(kernels, &wants, &setting, |_| State { residency, placement }, |_| true);
    verify(&p).unwrap_or_else(|e| panic!("{e}\n{p}"));
    p
}

/// The steps without node numbers and reasons.
fn steps(p: &Plan) -> Vec<String> {
    p.steps.iter().map(|s| p.describe(&s.action).split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn conv_rot_on_one_gpu_uploads_once_and_downloads_once() {
    let c = make(conv_rot(1024, 12), 1, false, Mode::Fused).counts();
    assert_eq!((c.uploads, c.downloads), (1, 1));
    // The conversion, and per orientation a rotation, a filter bank, and the way back into the maximum.
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
    let c = make(conv_rot(256, 2), 1, false, Mode::Lazy).counts();
    assert_eq!((c.uploads, c.downloads), (1, 1));
}

#[test]
fn naive_mode_copies_every_operand_of_every_operation() {
    // Per orientation: rotate (1 up, 1 down), set (0, 1), 9 x [2 filters (1, 1), absdiv (2, 1), mul (1, 1), max (2, 1)],
    // rotate back (1, 1), max (2, 1); once: convert (1, 1), divide (1, 1), the zero image (0, 1).
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
fn conv_2d_on_four_ranks_scatters_exchanges_and_gathers_once() {
    for unified in [true, false] {
        let p = make(conv_2d(1024, 3), 4, unified, Mode::Fused);
        let c = p.counts();
        let between = Counts { scatters: 1, exchanges: 1, gathers: 1, ..Counts::default() };
        assert_eq!(Counts { launches: 0, uploads: 0, downloads: 0, ..c }, between, "{p}");
        let depth = p.steps.iter().find_map(|s| match s.action {
            Action::Exchange { halo, .. } => Some((halo.up, halo.down)),
            _ => None,
        });
        assert_eq!(depth, Some((21, 21)), "the widest radius serves the whole bank");
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
    let mut p = Recorder::new(100, 10);
    let a = p.source(DType::F32);
    let box3 = Filter::dense(3, 3, vec![1.0; 9]);
    let blurred = p.correlate(a, box3.clone(), Border::Reflect101);
    let squared = p.constant(PixelOp::Mul, a, 2.0);
    let again = p.correlate(squared, box3, Border::Reflect101);
    let sum = p.binary(PixelOp::Add, blurred, again);
    p.graph.roots = vec![sum];
    let plan = make(p.graph, 3, true, Mode::Lazy);
    assert_eq!(plan.counts().exchanges, 1, "{plan}");
}

#[test]
fn an_exchange_that_is_due_anyway_comes_early_enough_to_save_another() {
    // A row pass reads no borders, the column pass after it does; a filter over the image itself will exchange more.
    let mut p = Recorder::new(100, 10);
    let a = p.source(DType::F32);
    let row = p.correlate(a, Filter::row(vec![1.0; 5]), Border::Reflect101);
    let column = p.correlate(row, Filter::column(vec![1.0; 5]), Border::Reflect101);
    let wide = p.correlate(a, Filter::dense(7, 7, vec![1.0; 49]), Border::Reflect101);
    let sum = p.binary(PixelOp::Add, column, wide);
    p.graph.roots = vec![sum];
    let plan = make(p.graph, 3, true, Mode::Lazy);
    assert_eq!(plan.counts().exchanges, 1, "{plan}");
}

#[test]
fn footprints_or_the_whole_image_by_what_they_send() {
    // One turn reads each pixel once: its footprints are fetched. Twelve turns would fetch the image twelve times.
    let turns = |count: usize, ranks: usize| {
        let mut p = Recorder::new(2000, 2000);
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
        // On many ranks, rank 0 alone would send the whole image to each.
        assert_eq!(twelve.counts().scatters, usize::from(ranks > 2), "{twelve}");
    }
}

#[test]
fn a_turned_strip_fetches_a_band_not_the_image() {
    let mut p = Recorder::new(1600, 1600);
    let a = p.source(DType::F32);
    let doubled = p.constant(PixelOp::Mul, a, 2.0);
    let turned = p.rotate(doubled, 45.0);
    p.graph.roots = vec![turned, doubled];
    let ranks = 16;
    let plan = make(p.graph, ranks, true, Mode::Lazy);
    let fetched = forecast(&plan, Link::default());
    let (_, fetch) = fetched.steps.iter().find(|(text, _)| text.starts_with("fetch")).unwrap();
    let image = 1600 * 1600 * 4;
    // Every pixel of the result comes from somewhere once; what the strips read beyond that are their seams.
    assert!(fetch.total.bytes < image * 5 / 4, "{fetched}");
    assert!(fetch.received < image / ranks * 3 / 2, "{fetched}");
}

#[test]
fn a_wrapped_border_is_exchanged_around_the_edge() {
    let mut p = Recorder::new(60, 8);
    let a = p.source(DType::F32);
    let f = p.correlate(a, Filter::column([1.0, 2.0, 3.0]), Border::Wrap);
    p.graph.roots = vec![f];
    let plan = make(p.graph, 4, true, Mode::Fused);
    let wrapped = plan.steps.iter().any(|s| matches!(s.action, Action::Exchange { halo, .. } if halo.wrap));
    assert!(wrapped, "{plan}");
}

#[test]
fn a_sum_of_an_expression_stores_no_image() {
    let mut r = Recorder::new(64, 32);
    let (a, b) = (r.source(DType::F32), r.source(DType::F32));
    let product = r.binary(PixelOp::Mul, a, b);
    let scaled = r.constant(PixelOp::Sub, product, 0.5);
    let rows = Shape { width: 1, ..r.shape };
    let (site, f) = (Location::caller(), DType::F64);
    let op = Op::RowReduce(RowReduce::Sum);
    let column = r.graph.push(Node { op, inputs: vec![scaled], shape: rows, dtype: f, site });
    let (op, shape) = (Op::Fold(Fold::Sum), Shape::new(1, 1, 1));
    let total = r.graph.push(Node { op, inputs: vec![column], shape, dtype: f, site });
    r.graph.roots = vec![total];
    let fused = make(r.graph.clone(), 1, false, Mode::Fused);
    assert_eq!((fused.counts().uploads, fused.counts().launches, fused.counts().downloads), (2, 2, 1), "{fused}");
    assert!(fused.to_string().contains("mul + sub + row_sum"), "{fused}");
    // Somebody else wants the expression: it is stored, and reduced from there.
    r.graph.roots.push(scaled);
    assert_eq!(make(r.graph, 1, false, Mode::Fused).counts().launches, 3);
}

#[test]
fn a_sum_moves_one_value_per_row() {
    let mut p = Recorder::new(1000, 1000);
    let a = p.source(DType::F32);
    p.shape = Shape::new(1000, 1, 1);
    let rows = p.op(Op::RowReduce(RowReduce::Sum), &[a], DType::F64);
    p.shape = Shape::new(1, 1, 1);
    let sum = p.op(Op::Fold(Fold::Sum), &[rows], DType::F64);
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
fn a_plan_with_a_step_left_out_is_caught() {
    let plans = [
        make(conv_2d(256, 1), 4, false, Mode::Fused),
        make_direct(conv_2d(256, 1), 4, None),
        make_direct(conv_rot(256, 2), 4, None),
    ];
    for whole in plans {
        for (i, step) in whole.steps.iter().enumerate() {
            if matches!(step.action, Action::Free(_) | Action::Deliver(_) | Action::Gather(_)) {
                continue;
            }
            let mut broken = whole.clone();
            broken.steps.remove(i);
            assert!(verify(&broken).is_err(), "leaving out {:?} goes unnoticed", step.action);
        }
    }
}

#[test]
fn a_way_that_devices_do_not_have_is_caught() {
    let mut plan = make_direct(conv_2d(256, 1), 4, None);
    plan.setting.direct = false;
    assert!(verify(&plan).unwrap_err().to_string().contains("not connected"));
}

/// Filters in turn, pixel operations between them: borders are exchanged in every round.
fn filter_loop(rounds: usize) -> Graph<Op> {
    let mut p = Recorder::new(200, 50);
    let mut a = p.source(DType::F32);
    for _ in 0..rounds {
        let filtered = p.correlate(a, Filter::dense(5, 5, vec![0.04; 25]), Border::Reflect101);
        a = p.constant(PixelOp::Mul, filtered, 0.5);
    }
    p.graph.roots = vec![a];
    p.graph
}

#[test]
fn connected_devices_exchange_borders_without_the_host() {
    let plan = make_direct(filter_loop(2), 4, None);
    assert_eq!(
        steps(&plan),
        [
            "upload %0 200x50 f32",
            "scatter %0 200x50 f32, from device to device",
            "exchange %0 200x50 f32 to depth 2, from device to device",
            "launch %1 200x50 f32 = correlate 5x5 + mul (%0)",
            "free %0 200x50 f32",
            "exchange %1 200x50 f32 to depth 2, from device to device",
            "launch %2 200x50 f32 = correlate 5x5 + mul (%1)",
            "free %1 200x50 f32",
            "download %2 200x50 f32",
            "gather %2 200x50 f32",
        ]
    );
    for rounds in [1, 5] {
        let c = make_direct(filter_loop(rounds), 4, None).counts();
        assert_eq!((c.uploads, c.downloads, c.exchanges), (1, 1, rounds));
    }
}

#[test]
fn detectors_on_connected_devices_upload_once_and_download_once() {
    for ranks in [2, 4, 7] {
        for graph in [conv_rot(512, 6), conv_2d(512, 3)] {
            let plan = make_direct(graph, ranks, None);
            let c = plan.counts();
            assert_eq!((c.uploads, c.downloads), (1, 1), "{plan}");
            let between = |a: &Action| {
                matches!(
                    a,
                    Action::Exchange { .. } | Action::Fetch { .. } | Action::Replicate { .. } | Action::Scatter { .. }
                )
            };
            let staged = plan
                .steps
                .iter()
                .filter(|s| between(&s.action) && !plan.describe(&s.action).contains("device to device"));
            assert_eq!(staged.count(), 0, "{plan}");
        }
    }
}

#[test]
fn of_an_image_that_every_rank_gave_each_device_gets_its_strip_and_nothing_is_sent() {
    let plan = make_given(filter_loop(2), 4, None);
    // The first filter is computed on what the second reads beyond the strip: nothing is exchanged.
    assert_eq!(steps(&plan)[0], "upload each strip of %0 200x50 f32, and 4 rows around it", "{plan}");
    let c = plan.counts();
    assert_eq!((c.uploads, c.scatters, c.exchanges), (1, 0, 0), "{plan}");
    assert_eq!(forecast(&plan, Link::default()).steps.len(), 1, "a gather: {plan}");
    assert_eq!(make_given(filter_loop(3), 4, None).counts().exchanges, 1);
    // One rank has no strips, and of an image of fewer rows than ranks not each has one.
    for ranks in [1, 201] {
        assert!(steps(&make_given(filter_loop(2), ranks, None))[0].starts_with("upload %0"), "{ranks} ranks");
    }
    let mut wrong = make_given(filter_loop(2), 4, None);
    wrong.initial[0] = wrong.initial[0].map(|s| State { placement: Placement::Root, ..s });
    assert!(verify(&wrong).unwrap_err().to_string().contains("not whole on every host"));
}

#[test]
fn a_large_image_that_is_turned_goes_up_in_strips_and_from_device_to_device_a_small_one_whole() {
    let turned = |size: usize| {
        let mut p = Recorder::new(size, size);
        let a = p.source(DType::F32);
        let turned: Vec<NodeId> = [30.0, 60.0, 90.0, 120.0].map(|theta| p.rotate(a, theta)).to_vec();
        p.graph.roots = turned;
        p.graph
    };
    for (size, strips) in [(2048, true), (64, false)] {
        let plan = make_given(turned(size), 4, None);
        let steps = steps(&plan);
        assert_eq!(steps[0].contains("each strip"), strips, "{plan}");
        let sent = steps.iter().any(|s| s.starts_with("replicate") && s.ends_with("from device to device"));
        assert_eq!((plan.counts().uploads, sent), (1, strips), "{plan}");
    }
    // Without room for the whole beside the strip, the whole is uploaded in its place.
    let tight = make_given(turned(2048), 4, Some(2048 * 2048 * 9 / 2));
    assert!(steps(&tight)[0].starts_with("upload %0"), "{tight}");
}

#[test]
fn devices_without_room_for_the_whole_image_are_served_by_the_host() {
    let image = 200 * 50 * 4;
    // Rank 0's device has no room for the image beside its strip, but strips travel between devices still.
    let plan = make_direct(filter_loop(3), 4, Some(image));
    let direct = |action: &Action| plan.describe(action).contains("device to device");
    let way = |want: fn(&Action) -> bool| -> Vec<bool> {
        plan.steps.iter().filter(|s| want(&s.action)).map(|s| direct(&s.action)).collect()
    };
    assert_eq!(way(|a| matches!(a, Action::Scatter { .. })), [false], "{plan}");
    assert_eq!(way(|a| matches!(a, Action::Exchange { .. })), [true; 3], "{plan}");
    assert!(plan.fits);
}

#[test]
fn copies_of_footprints_take_room_on_the_device() {
    let mut p = Recorder::new(160, 100);
    let a = p.source(DType::F32);
    let b = p.constant(PixelOp::Mul, a, 2.0);
    let turned = p.rotate(a, 90.0);
    let sum = p.binary(PixelOp::Add, turned, turned);
    p.graph.roots = vec![sum, b, a];
    let (image, strip) = (160 * 100 * 4, 40 * 100 * 4);
    for direct in [true, false] {
        let setting = |capacity| Setting {
            partition: Partition::equal(4),
            unified: false,
            direct,
            overlap: false,
            mode: Mode::Lazy,
            capacity: Some(capacity),
        };
        // The copy of the image's rows, the result, and the source if its device gives the rows away.
        assert!(make_for(p.graph.clone(), setting(3 * image)).fits);
        let small = make_for(p.graph.clone(), setting(2 * strip));
        assert!(!small.fits, "{small}");
    }
}

/// Ten images computed from one, then added up: more than fits at once.
fn many_images() -> Graph<Op> {
    let mut p = Recorder::new(100, 100);
    let a = p.source(DType::F32);
    let parts: Vec<NodeId> = (0..10).map(|i| p.rotate(a, 10.0 * f64::from(i))).collect();
    let turned: Vec<NodeId> = parts.iter().map(|&i| p.rotate(i, 5.0)).collect();
    let sum = turned.into_iter().reduce(|x, y| p.binary(PixelOp::Add, x, y)).unwrap();
    p.graph.roots = vec![sum];
    p.graph.roots.extend(parts);
    p.graph
}

#[test]
fn a_device_that_is_too_small_spills_to_the_host() {
    let image = 100 * 100 * 4;
    let roomy = make(many_images(), 1, false, Mode::Lazy);
    assert_eq!((roomy.counts().uploads, roomy.counts().downloads), (1, 1));
    let tight = make_within(many_images(), 1, false, Mode::Lazy, Some(5 * image));
    assert!(tight.counts().downloads > 1 && tight.counts().uploads > 1, "{tight}");
    let mut held = std::collections::HashSet::new();
    for s in &tight.steps {
        match s.action {
            Action::Upload(n) | Action::Launch { node: n, .. } => drop(held.insert(n)),
            Action::Evict(n) | Action::Free(n) => drop(held.remove(&n)),
            _ => {}
        }
        assert!(held.len() <= 5, "{tight}");
    }
}

#[test]
fn footprints_travel_between_devices_while_others_compute() {
    let plan = make_direct(conv_rot(512, 6), 4, None);
    // For each footprint, the launches between its departure and the one that reads it.
    let mut travelling: Vec<(Temp, usize)> = Vec::new();
    let mut meanwhile = Vec::new();
    for step in &plan.steps {
        match step.action {
            Action::Fetch { temp, .. } => travelling.push((temp, 0)),
            Action::Launch { node, .. } => {
                let (arrived, others) = travelling.into_iter().partition(|(t, _)| t.consumer == node);
                travelling = others;
                let arrived: Vec<(Temp, usize)> = arrived;
                meanwhile.extend(arrived.iter().map(|(_, n)| *n));
                travelling.iter_mut().for_each(|(_, n)| *n += 1);
            }
            _ => {}
        }
    }
    // A contrast travels back while the next orientations are filtered; the last one while the one before is turned.
    assert_eq!(meanwhile, [5, 3, 6, 3, 2, 1], "{plan}");
    assert!(plan.to_string().contains("what it reads of other ranks travelled during 4 launches"), "{plan}");
    // In a device with little memory fewer leave before they are read: those that stay would drive others out.
    let image = 512 * 512 * 4;
    let ahead = |quarters: usize| {
        let plan = make_direct(conv_rot(512, 6), 4, Some(quarters * image / 4));
        plan.fits.then(|| plan.to_string().matches("will read other rows").count())
    };
    let ahead: Vec<usize> = (8..40).filter_map(ahead).collect();
    assert!(ahead[0] < ahead[ahead.len() - 1], "{ahead:?}");
    let staged = make(conv_rot(512, 6), 4, false, Mode::Fused);
    assert!(!staged.to_string().contains("travelled"), "the host does not compute while it exchanges");
}

#[test]
fn between_devices_launches_are_divided_where_borders_travel_long() {
    let begun = |width| {
        let mut p = Recorder::new(4096, width);
        let image = p.picture();
        let once = p.correlate(image, Filter::column(vec![1.0; 43]), Border::Reflect101);
        let twice = p.correlate(once, Filter::column(vec![2.0; 43]), Border::Reflect101);
        p.graph.roots = vec![twice, image];
        let plan = make_direct(p.graph, 4, None);
        plan.steps.iter().filter(|s| matches!(s.action, Action::Begin { .. })).count()
    };
    // 21 rows of f32 to each of two neighbours at 150 GB/s: 18 microseconds and 147, and the time of two messages.
    assert_eq!((begun(16_384), begun(131_072)), (0, 2));
}

#[test]
fn a_footprint_leaves_once() {
    let mut p = Recorder::new(512, 512);
    let image = p.picture();
    let blurred = p.gauss_xy(image, 3, 1, 0);
    let turned = p.rotate(blurred, 30.0);
    let again = p.rotate(turned, 30.0);
    let other = p.gauss_xy(image, 5, 1, 0);
    // What is turned is wanted, so that it stays when it has been read, and a filter comes after.
    p.graph.roots = vec![again, blurred, other];
    for ranks in 2..5 {
        for capacity in [None, Some(10 << 20), Some(3 << 20)] {
            let plan = make_direct(p.graph.clone(), ranks, capacity);
            let fetches = plan.steps.iter().filter(|s| matches!(s.action, Action::Fetch { .. })).count();
            assert_eq!(fetches, 2, "{ranks} ranks\n{plan}");
        }
    }
}
