use std::num::NonZeroU8;
use std::sync::Arc;

use super::draft::PlanDraft;
use super::partition::Partition;
use super::passes::{PASSES, PlanPass, PlanStage, run};
use super::predict::predict;
use super::setting::{Mappable, Mode, ResultDelivery, Setting, Transfer};
use super::state::{Halo, Hosts, ImageState, Placement, Residency};
use super::step::{Action, LaunchPart};
use super::{Plan, check, demand, lifetimes, overlap};
use crate::ir::graph::{Graph, Node, NodeId, ValueId};
use crate::ir::kernel::{FilterSource, Kernel, Leaf, LeafOp, MapKernel, Val};
use crate::machine::{Link, Links, Machine, MachineProfile};
use crate::ops::geometric::Flip;
use crate::ops::neighbourhood::Filter;
use crate::ops::{Fold, RowReduce};
use horus_base::dtype::DType;
use horus_base::error::Error;
use horus_base::shape::{Border, Shape};

fn push(graph: &mut Graph<Kernel>, op: Kernel, inputs: &[NodeId]) -> NodeId {
    let site = std::panic::Location::caller().into();
    graph.push(Node { op, inputs: inputs.to_vec(), shape: Shape::new(100, 8, 1), dtype: DType::F32, site })
}

fn map(op: LeafOp) -> Kernel {
    let leaves = vec![Leaf { op, dtype: DType::F32 }];
    Kernel::Map(MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
}

fn column(taps: usize, border: Border) -> Kernel {
    map(LeafOp::Correlate(FilterSource::Input(0), Filter::column(vec![1.0; taps]), border))
}

/// `%0` is given, `%1` filters it over 3 rows, `%2` copies `%1`, `%3` filters the copy over 9 rows.
fn filters() -> Graph<Kernel> {
    let mut g = Graph::default();
    let image = push(&mut g, Kernel::Source(ValueId(0)), &[]);
    let first = push(&mut g, column(3, Border::Replicate), &[image]);
    let copy = push(&mut g, map(LeafOp::Load(0)), &[first]);
    let second = push(&mut g, column(9, Border::Wrap), &[copy]);
    g.roots.push(second);
    g
}

fn setting(ranks: usize) -> Setting {
    let partition = Partition::equal(ranks);
    Setting { direct: true, overlap: true, capacity: Some(1 << 20), ..Setting::of(partition, false) }
}

/// Applies `look` to the draft of a plan for `filters` after the passes up to the one named `last`, and after
/// `extra`.
fn after<R>(
    last: &str,
    ranks: usize,
    extra: Option<PlanPass>,
    look: impl FnOnce(&PlanDraft<'_>, Result<(), Error>) -> R,
) -> R {
    let (graph, setting) = (filters(), setting(ranks));
    let root = ImageState { residency: Residency::Host, placement: Placement::ROOT };
    let initial = graph.iter().map(|(id, _)| (id.0 == 0).then_some(root)).collect();
    let mut draft = PlanDraft::new(&graph, &[ResultDelivery::Root], &setting, initial, &|_| true);
    let count = PASSES.iter().position(|p| p.name == last).expect("a pass of the list") + 1;
    let passes: Vec<PlanPass> = PASSES[..count].iter().copied().chain(extra).collect();
    let result = run(&passes, &mut draft, &mut |_, _| ());
    look(&draft, result)
}

/// The error of a harmful pass after the one named `last`.
fn caught(last: &str, harm: fn(&mut PlanDraft<'_>)) -> String {
    let leaves = PASSES.iter().find(|p| p.name == last).expect("a pass of the list").stage_after;
    after(last, 3, Some(PlanPass { name: "harm", run: harm, stage_after: leaves }), |_, result| match result {
        Err(Error::Pass { pass: "harm", cause }) => cause,
        other => panic!("{other:?}"),
    })
}

fn remove(draft: &mut PlanDraft<'_>, which: fn(&Action) -> bool) {
    let at = draft.steps.iter().position(|s| which(&s.action)).expect("a step of that kind");
    draft.steps.remove(at);
    draft.used.remove(at);
    draft.exchanges.clear();
}

#[test]
fn each_pass_is_dumped_by_its_name() {
    let (graph, setting) = (filters(), setting(2));
    let state = ImageState { residency: Residency::Host, placement: Placement::ROOT };
    let (mut names, mut texts) = (Vec::new(), Vec::new());
    let mut dump = |name: &str, text: &dyn std::fmt::Display| {
        names.push(name.to_owned());
        texts.push(text.to_string());
    };
    super::plan(graph, &[ResultDelivery::Root], &setting, |_| state, |_| true, &mut dump).unwrap();
    assert_eq!(names, PASSES.iter().map(|p| p.name).collect::<Vec<_>>());
    assert!(texts[0].contains("read by %2") && texts[0].contains(", kept"), "{}", texts[0]);
    assert!(texts[1].contains("4 wrapped rows around strips"), "{}", texts[1]);
    assert!(texts[2].contains("0 bytes in use"), "{}", texts[2]);
    assert!(texts[3].contains("exchange") && !texts[3].contains("gather     %"), "{}", texts[3]);
    assert!(texts[4].contains("gather     %3"), "{}", texts[4]);
    assert!(texts[5].contains("interior of %3"), "{}", texts[5]);
}

#[test]
fn the_pass_that_breaks_a_plan_is_named() {
    let wrong = caught("demand for halos", |d| d.demand.asked[2] = Halo::NONE);
    assert!(wrong.contains("%2 is asked for 0 rows around strips, %3 reads 4 wrapped"), "{wrong}");
    let wrong = caught("memory in use", |d| d.step(Action::Free(NodeId(0)), ""));
    assert!(wrong.contains("steps already"), "{wrong}");
    let walk = "transfers and launches";
    let wrong = caught(walk, |d| remove(d, |a| matches!(a, Action::Launch { node: NodeId(3), .. })));
    assert!(wrong.contains("%3 is never computed"), "{wrong}");
    let wrong = caught(walk, |d| remove(d, |a| matches!(a, Action::Launch { node: NodeId(1), .. })));
    assert!(wrong.contains("%2 is computed where %1 is not there"), "{wrong}");
    let wrong = caught(walk, |d| remove(d, |a| matches!(a, Action::Exchange { .. })));
    assert!(wrong.contains("up to date"), "{wrong}");
    let wrong = caught(walk, |d| d.exchanges[0].step += 1);
    assert!(wrong.contains("told to be an exchange"), "{wrong}");
    let wrong = caught("delivery", |d| remove(d, |a| matches!(a, Action::Gather { .. })));
    assert!(wrong.contains("%3 is wanted and not delivered"), "{wrong}");
    let wrong = caught("overlap", |d| remove(d, |a| matches!(a, Action::Finish(_))));
    assert!(wrong.contains("up to date"), "{wrong}");
}

/// The demand of `filters` with this border for the last filter, on machines with this latency of messages.
fn demanded(border: Border, mode: Mode, ranks: usize, latency: f64) -> demand::HaloDemand {
    let mut graph = filters();
    graph.nodes[3].op = column(9, border);
    let link = Link { latency, bandwidth: 1e15 };
    let links = Links { peers: link, host: link, network: link };
    let machine = Arc::new(Machine::alike(MachineProfile { links, ..MachineProfile::of_default(false) }));
    let setting = Setting { mode, machine, ..setting(ranks) };
    let mut draft = PlanDraft::new(&graph, &[ResultDelivery::Root], &setting, vec![None; 4], &|_| true);
    draft.initial[0] = Some(ImageState { residency: Residency::Host, placement: Placement::ROOT });
    lifetimes::find(&mut draft);
    demand::compute_demand(&mut draft);
    draft.demand
}

#[test]
fn rows_around_strips_are_computed_where_an_exchange_takes_longer() {
    let (none, four) = (Halo::NONE, Halo::even(4));
    let slow = demanded(Border::Replicate, Mode::Fused, 2, 1e-3);
    // The first filter and the copy are computed on all rows that the second filter reads.
    assert_eq!(slow.asked, [Halo::even(5), four, four, none]);
    assert_eq!(slow.computed, [none, four, four, none]);
    let free = demanded(Border::Replicate, Mode::Fused, 2, 0.0);
    assert_eq!(free.asked, [Halo::even(1), none, four, none], "each filter exchanges what it reads");
    assert_eq!(free.computed, [none; 4]);
    let wrapped = demanded(Border::Wrap, Mode::Fused, 2, 1e-3);
    assert_eq!(wrapped.asked, [Halo::even(1), none, Halo { wrap: true, ..four }, none]);
    assert_eq!(wrapped.computed, [none; 4], "periodic copies come from other ranks");
    assert_eq!(demanded(Border::Replicate, Mode::Fused, 1, 1e-3).asked, [none; 4], "one rank has no strips");
    let naive = demanded(Border::Replicate, Mode::Naive, 2, 1e-3);
    assert_eq!(naive.asked, [none; 4], "naive mode looks at one operation at a time");
}

#[test]
fn readers_of_one_image_share_its_exchange() {
    // Two copies of one image, each filtered: neither alone is worth a deeper halo of the image.
    let mut g = Graph::default();
    let image = push(&mut g, Kernel::Source(ValueId(0)), &[]);
    let copies = [push(&mut g, map(LeafOp::Load(0)), &[image]), push(&mut g, map(LeafOp::Load(0)), &[image])];
    g.roots = copies.map(|copy| push(&mut g, column(9, Border::Replicate), &[copy])).to_vec();
    let setting = setting(2);
    let mut draft = PlanDraft::new(&g, &[ResultDelivery::Root; 2], &setting, vec![None; 5], &|_| true);
    draft.initial[0] = Some(ImageState { residency: Residency::Host, placement: Placement::ROOT });
    lifetimes::find(&mut draft);
    demand::compute_demand(&mut draft);
    let four = Halo::even(4);
    assert_eq!(draft.demand.computed, [Halo::NONE, four, four, Halo::NONE, Halo::NONE]);
    assert_eq!(draft.demand.asked[0], four, "one exchange instead of two");
}

#[test]
fn images_live_until_they_are_read_for_the_last_time() {
    let (graph, setting) = (filters(), setting(2));
    let mut draft = PlanDraft::new(&graph, &[ResultDelivery::Root], &setting, vec![None; 4], &|_| false);
    lifetimes::find(&mut draft);
    let n = NodeId;
    assert_eq!(
        draft.lifetimes.outlives_plan,
        [true, false, false, true],
        "a source that is referred to, and the result"
    );
    assert!(draft.lifetimes.needed_after(n(1), n(1)) && !draft.lifetimes.needed_after(n(1), n(2)));
    assert!(draft.lifetimes.needed_after(n(3), n(9)));
}

#[test]
fn overlap_divides_launches_and_moves_nothing_else() {
    after("delivery", 2, None, |before, result| {
        result.unwrap();
        after("overlap", 2, None, |divided, result| {
            result.unwrap();
            assert!(divided.steps.iter().any(|s| matches!(s.action, Action::Begin { .. })));
            let mut whole: Vec<Action> = Vec::new();
            for step in &divided.steps {
                match step.action {
                    Action::Begin { node, halo, direct } => whole.push(Action::Exchange { node, halo, direct }),
                    Action::Finish(_) | Action::Launch { part: LaunchPart::Edges(_), .. } => {}
                    Action::Launch { node, rows, room, .. } => {
                        whole.push(Action::Launch { node, rows, room, part: LaunchPart::Whole });
                    }
                    other => whole.push(other),
                }
            }
            assert_eq!(whole, before.steps.iter().map(|s| s.action).collect::<Vec<_>>());
        });
    });
}

#[test]
fn borders_travel_beside_a_launch_only_where_their_messages_have_room() {
    after("delivery", 2, None, |draft, _| {
        let begun = |used: usize| {
            let (graph, setting) = (filters(), setting(2));
            let mut again = PlanDraft::new(&graph, &[ResultDelivery::Root], &setting, draft.initial.clone(), &|_| true);
            run(&PASSES[..5], &mut again, &mut |_, _| ()).unwrap();
            again.used.iter_mut().for_each(|bytes| *bytes = used);
            overlap::divide(&mut again);
            check::check(&again, PlanStage::Delivered).unwrap();
            again.steps.iter().filter(|s| matches!(s.action, Action::Begin { .. })).count()
        };
        assert!(begun(0) > 0);
        assert_eq!(begun(1 << 20), 0, "all of the device is in use");
    });
}

/// The graph with images of 4096 x 4096 pixels.
fn large(mut graph: Graph<Kernel>) -> Graph<Kernel> {
    graph.nodes.iter_mut().for_each(|node| node.shape = Shape::new(4096, 4096, 1));
    graph
}

#[test]
fn a_launch_that_reads_its_strip_does_not_wait_for_what_others_read() {
    let mut g = Graph::default();
    let image = push(&mut g, Kernel::Source(ValueId(0)), &[]);
    let own = push(&mut g, map(LeafOp::Load(0)), &[image]);
    let other = push(&mut g, map(LeafOp::Flip(0, Flip::Vertical)), &[image]);
    g.roots = vec![own, other];
    let lanes = Setting { hosts: Hosts::Shared, direct: true, ..Setting::of(Partition::equal(2), false) };
    let state = ImageState { residency: Residency::Host, placement: Placement::Replicated };
    let plan =
        super::plan(large(g), &[ResultDelivery::Requester; 2], &lanes, |_| state, |_| true, &mut |_, _| ()).unwrap();
    super::verify::verify(&plan).unwrap();
    let at = |found: fn(&Action) -> bool| plan.steps.iter().position(|s| found(&s.action));
    let launched = at(|a| matches!(a, Action::Launch { node: NodeId(1), .. })).unwrap();
    let sent = at(|a| matches!(a, Action::Fetch { .. } | Action::Replicate { .. })).unwrap();
    assert!(launched < sent, "{plan}");
}

#[test]
fn results_that_somebody_waits_for_leave_when_everything_else_is_issued() {
    /// The host takes longer to issue launches than the first bands take to compute.
    const LAUNCH: f64 = 1e-4;
    let mut profile = MachineProfile::of_default(false);
    profile.launch.host = LAUNCH;
    let machine = Arc::new(Machine::alike(profile));
    let first_leaves = |later| {
        let (transfer, mappable) =
            (Transfer::Streams(NonZeroU8::new(16)), Mappable { downloads_last: later, ..Mappable::default() });
        let machine = Arc::clone(&machine);
        let alone = Setting { transfer, mappable, machine, ..Setting::of(Partition::equal(1), false) };
        let state = ImageState { residency: Residency::Host, placement: Placement::Replicated };
        let plan =
            super::plan(large(filters()), &[ResultDelivery::Requester], &alone, |_| state, |_| true, &mut |_, _| ())
                .unwrap();
        let send = plan.steps.iter().position(|s| matches!(s.action, Action::Send { .. })).unwrap();
        let launches = plan.steps.iter().filter(|s| matches!(s.action, Action::Launch { .. })).count();
        (predict(&plan).steps[send].start, LAUNCH * launches as f64)
    };
    let ((at_once, _), (later, issued)) = (first_leaves(false), first_leaves(true));
    assert!(at_once < later && later >= issued, "{at_once} {later} {issued}");
}

#[test]
fn small_results_that_nothing_else_reads_are_written_to_the_host() {
    let sum = |shape: Shape| {
        let mut g = Graph::default();
        let site = std::panic::Location::caller().into();
        let mut push = |op: Kernel, inputs: &[NodeId], shape: Shape, dtype| {
            g.push(Node { op, inputs: inputs.to_vec(), shape, dtype, site })
        };
        let image = push(Kernel::Source(ValueId(0)), &[], shape, DType::F32);
        let rows = push(RowReduce::Sum.into(), &[image], Shape::new(shape.height, 1, 1), DType::F64);
        let total = push(Fold::Sum.into(), &[rows], Shape::new(1, 1, 1), DType::F64);
        g.roots.extend([total, rows]);
        (g, rows, total)
    };
    let plan = |g: &Graph<Kernel>, wants: [ResultDelivery; 2], setting: &Setting| {
        let state = ImageState { residency: Residency::Device, placement: Placement::Replicated };
        super::plan(g.clone(), &wants, setting, |_| state, |_| true, &mut |_, _| ()).unwrap()
    };
    use ResultDelivery::{Keep, Requester};
    let alone = Setting::of(Partition::equal(1), false);
    let (g, rows, total) = sum(Shape::new(100, 8, 1));
    let written = |plan: &Plan| [rows, total, NodeId(0)].map(|n| plan.is_written_to_host(n));
    assert_eq!(written(&plan(&g, [Requester, Keep], &alone)), [false, true, false]);
    assert_eq!(written(&plan(&g, [Keep, Requester], &alone)), [false; 3], "a launch reads the rows");
    let copies = Setting { transfer: Transfer::Explicit, ..alone.clone() };
    assert_eq!(written(&plan(&g, [Requester, Keep], &copies)), [false; 3], "copies are asked for");
    let host = Setting::of(Partition::equal(1), true);
    assert_eq!(written(&plan(&g, [Requester, Keep], &host)), [false; 3], "the device is the host");
    let mut large = g.clone();
    large.nodes.pop();
    large.roots = vec![rows];
    large.nodes[rows.0].shape = Shape::new(1 << 20, 1, 1);
    let large = super::plan(
        large,
        &[Requester],
        &alone,
        |_| ImageState { residency: Residency::Device, placement: Placement::Replicated },
        |_| true,
        &mut |_, _| (),
    );
    assert!(!large.unwrap().is_written_to_host(rows), "a large result is copied faster");
}
