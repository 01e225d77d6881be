//! Plans for devices with their own memory: exchanges between them, and behaviour when memory is
//! short.

use std::sync::Arc;

use horus_core::dtype::DType;
use horus_core::ir::graph::{Graph, NodeId, Op};
use horus_core::machine::{Link, Links, Machine, MachineProfile};
use horus_core::ops::Components;
use horus_core::ops::components::Connectivity;
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::plan::forecast::forecast;
use horus_core::plan::partition::Partition;
use horus_core::plan::state::{ImageState, Placement};
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, Mode, Plan, Setting, Temp};
use horus_core::shape::Border;

use crate::recorder::{PlanRecorder, conv_2d, conv_rot, make, make_direct, make_for, make_given, make_within, steps};

/// A sequence of filters with pixel operations in between: halos are exchanged in every round.
fn filter_loop(rounds: usize) -> Graph<Op> {
    let mut p = PlanRecorder::new(200, 50);
    let mut a = p.source(DType::F32);
    for _ in 0..rounds {
        let filtered = p.correlate(a, Filter::dense(5, 5, vec![0.04; 25]), Border::Reflect101);
        a = p.constant(PixelOp::Mul, filtered, 0.5);
    }
    p.graph.roots = vec![a];
    p.graph
}

/// Plans for connected devices between which messages take no time, so that no rank computes rows
/// of another.
pub(crate) fn make_linked(graph: Graph<Op>, ranks: usize, capacity: Option<usize>) -> Plan {
    let free = Link { latency: 0.0, bandwidth: f64::INFINITY };
    let links = Links { peers: free, host: free, network: free };
    let machine = Arc::new(Machine::alike(MachineProfile { links, ..MachineProfile::of_default(false) }));
    let partition = Partition::equal(ranks);
    make_for(graph, Setting { direct: true, capacity, machine, ..Setting::of(partition, false) })
}

#[test]
fn filters_over_filters_exchange_once_where_messages_take_longer_than_the_rows() {
    let plan = make_direct(filter_loop(2), 4, None);
    assert_eq!(
        steps(&plan)[1..4],
        [
            "scatter %0 200x50 f32, and 4 rows around each strip, from device to device",
            "launch %1 200x50 f32 = correlate 5x5 + mul (%0), and 2 rows around the strip",
            "free %0 200x50 f32",
        ]
    );
    for rounds in [1, 5] {
        let c = make_direct(filter_loop(rounds), 4, None).counts();
        assert_eq!((c.uploads, c.downloads, c.exchanges), (1, 1, 0));
    }
}

#[test]
fn connected_devices_exchange_borders_without_the_host() {
    let plan = make_linked(filter_loop(2), 4, None);
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
            "gather %2 200x50 f32, from device to device",
            "send %2 200x50 f32",
        ]
    );
    for rounds in [1, 5] {
        let c = make_linked(filter_loop(rounds), 4, None).counts();
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
    // The first filter is computed on all rows that the second reads beyond the strip: no exchange
    // is needed.
    assert_eq!(steps(&plan)[0], "upload each strip of %0 200x50 f32, and 4 rows around it", "{plan}");
    let c = plan.counts();
    assert_eq!((c.uploads, c.scatters, c.exchanges), (1, 0, 0), "{plan}");
    assert_eq!(
        forecast(&plan, &plan.setting.machine, plan.setting.partition.ranks(), 1).steps.len(),
        1,
        "a gather: {plan}"
    );
    assert_eq!(make_given(filter_loop(3), 4, None).counts().exchanges, 0);
    // One rank has no strips, and with fewer rows than ranks some ranks have none.
    for ranks in [1, 201] {
        assert!(steps(&make_given(filter_loop(2), ranks, None))[0].starts_with("upload %0"), "{ranks} ranks");
    }
    let mut wrong = make_given(filter_loop(2), 4, None);
    wrong.initial[0] = wrong.initial[0].map(|s| ImageState { placement: Placement::ROOT, ..s });
    assert!(verify(&wrong).unwrap_err().to_string().contains("not whole on every host"));
}

#[test]
fn a_large_image_that_is_turned_goes_up_in_strips_and_from_device_to_device_a_small_one_whole() {
    let turned = |size: usize| {
        let mut p = PlanRecorder::new(size, size);
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
    // Without room for the whole beside the strip, the whole is uploaded instead.
    let tight = make_given(turned(2048), 4, Some(2048 * 2048 * 9 / 2));
    assert!(steps(&tight)[0].starts_with("upload %0"), "{tight}");
}

#[test]
fn devices_without_room_for_the_whole_image_are_served_by_the_host() {
    let image = 200 * 50 * 4;
    // Rank 0's device cannot hold the image beside its strip, but strips still travel between
    // devices.
    let plan = make_linked(filter_loop(3), 4, Some(image));
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
    let mut p = PlanRecorder::new(160, 100);
    let a = p.source(DType::F32);
    let b = p.constant(PixelOp::Mul, a, 2.0);
    let turned = p.rotate(a, 90.0);
    let sum = p.binary(PixelOp::Add, turned, turned);
    p.graph.roots = vec![sum, b, a];
    let (image, strip) = (160 * 100 * 4, 40 * 100 * 4);
    for direct in [true, false] {
        let setting = |capacity| Setting {
            direct,
            mode: Mode::Lazy,
            capacity: Some(capacity),
            ..Setting::of(Partition::equal(4), false)
        };
        // The copy of the image's rows, the result, and the source if its device gives the rows
        // away.
        assert!(make_for(p.graph.clone(), setting(3 * image)).fits);
        let small = make_for(p.graph.clone(), setting(2 * strip));
        assert!(!small.fits, "{small}");
    }
}

/// Ten images computed from one, then added up: more than fits at once.
fn many_images() -> Graph<Op> {
    let mut p = PlanRecorder::new(100, 100);
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
    assert!(most_held(&tight).into_iter().all(|(_, held)| held <= 5), "{tight}");
}

/// The node of each launch and upload, and the images that are on the device then.
fn most_held(plan: &Plan) -> Vec<(NodeId, usize)> {
    let mut held = std::collections::HashSet::new();
    let mut all = Vec::new();
    for s in &plan.steps {
        match s.action {
            Action::Upload { node: n, .. } | Action::Launch { node: n, .. } => {
                held.insert(n);
                all.push((n, held.len()));
            }
            Action::Evict(n) | Action::Free(n) => drop(held.remove(&n)),
            _ => {}
        }
    }
    all
}

#[test]
fn a_kernel_has_room_for_what_it_takes_beside_images() {
    let mut p = PlanRecorder::new(100, 100);
    let a = p.source(DType::F32);
    let parts: Vec<NodeId> = (0..6).map(|i| p.rotate(a, 10.0 * f64::from(i))).collect();
    let labels = p.op(Op::from(Components::labels(Connectivity::FACES)), &[parts[0]], DType::I32);
    p.graph.roots = [parts, vec![labels]].concat();
    let plan = make_within(p.graph, 1, false, Mode::Lazy, Some(6 * 100 * 100 * 4));
    // Labels take as much as two images more.
    let is_label = |n: NodeId| plan.graph.node(n).dtype == DType::I32;
    let held: Vec<usize> = most_held(&plan).into_iter().filter(|(n, _)| is_label(*n)).map(|(_, held)| held).collect();
    assert!(!held.is_empty() && held.iter().all(|held| *held <= 4), "{held:?} {plan}");
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
    // A contrast travels back while the next orientations are filtered; the last one while the
    // previous one is rotated.
    assert_eq!(meanwhile, [5, 3, 6, 3, 2, 1], "{plan}");
    assert!(plan.to_string().contains("what it reads of other ranks travelled during 4 launches"), "{plan}");
    // On a device with little memory fewer are sent ahead: waiting footprints would evict other
    // images.
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
        let mut p = PlanRecorder::new(4096, width);
        let image = p.picture();
        let once = p.correlate(image, Filter::column(vec![1.0; 43]), Border::Reflect101);
        let twice = p.correlate(once, Filter::column(vec![2.0; 43]), Border::Reflect101);
        p.graph.roots = vec![twice, image];
        let plan = make_direct(p.graph, 4, None);
        plan.steps.iter().filter(|s| matches!(s.action, Action::Begin { .. })).count()
    };
    // 42 rows of f32 to each of two neighbours at 150 GB/s: 37 microseconds and 294, and the time
    // of two messages. The second filter needs no exchange: during the first, more rows travel.
    assert_eq!((begun(4096), begun(131_072)), (0, 1));
}

#[test]
fn a_footprint_leaves_once() {
    let mut p = PlanRecorder::new(512, 512);
    let image = p.picture();
    let blurred = p.gauss_xy(image, 3, 1, 0);
    let turned = p.rotate(blurred, 30.0);
    let again = p.rotate(turned, 30.0);
    let other = p.gauss_xy(image, 5, 1, 0);
    // The rotated image is a result, so that it stays after it has been read, and a filter follows.
    p.graph.roots = vec![again, blurred, other];
    for ranks in 2..5 {
        for capacity in [None, Some(10 << 20), Some(3 << 20)] {
            let plan = make_direct(p.graph.clone(), ranks, capacity);
            let fetches = plan.steps.iter().filter(|s| matches!(s.action, Action::Fetch { .. })).count();
            assert_eq!(fetches, 2, "{ranks} ranks\n{plan}");
        }
    }
}
