//! Lifetimes of records, and extracts of evaluations.

use std::panic::Location;

use super::*;
use crate::ir::graph::NodeId;
use crate::ops::{Merge, Transpose};
use horus_base::dtype::Conversion;
use horus_base::error::Site;

/// Bytes that an extract may store of values without handles.
const ROOM: usize = 1 << 20;

/// A program that numbers its records.
#[derive(Default)]
struct NumberedProgram {
    program: RecordedProgram,
    numbers: Numbering,
}

impl NumberedProgram {
    fn new_value(&self) -> ValueId {
        self.numbers.value()
    }

    fn record(&mut self, op: Op, inputs: Vec<RecordId>, shape: Shape, dtype: DType, site: Site) -> RecordId {
        let id = self.numbers.record();
        self.program.record(id, op, &inputs, (shape, dtype), site);
        id
    }
}

impl std::ops::Deref for NumberedProgram {
    type Target = RecordedProgram;
    fn deref(&self) -> &RecordedProgram {
        &self.program
    }
}

impl std::ops::DerefMut for NumberedProgram {
    fn deref_mut(&mut self) -> &mut RecordedProgram {
        &mut self.program
    }
}

fn record(p: &mut NumberedProgram, op: Op, inputs: &[RecordId]) -> RecordId {
    p.record(op, inputs.to_vec(), Shape::new(4, 4, 1), DType::F32, Location::caller())
}

#[test]
fn what_nobody_can_observe_is_dropped_at_once() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let a = record(&mut p, Op::Source(v), &[]);
    let b = record(&mut p, Op::from(Transpose), &[a]);
    let c = record(&mut p, Op::from(Transpose), &[b]);
    assert!(p.release(b).is_empty());
    assert_eq!(p.pending(), 2);
    assert!(p.release(a).is_empty());
    assert_eq!(p.pinned_bytes(), 64);
    assert_eq!(p.release(c), [v]);
    assert_eq!((p.pending(), p.pinned_bytes(), p.records.len()), (0, 0, 0));
}

#[test]
fn images_are_stored_with_their_channels_interleaved() {
    const COLOUR: Shape = Shape::new(4, 5, 3);
    let mut p = NumberedProgram::default();
    let colour = |p: &mut NumberedProgram, op, inputs: &[RecordId]| {
        p.record(op, inputs.to_vec(), COLOUR, DType::F32, Location::caller())
    };
    let v = p.new_value();
    let image = colour(&mut p, Op::Source(v), &[]);
    let held = colour(&mut p, Op::Convert(Conversion::Nearest), &[image]);
    let result = colour(&mut p, Op::Convert(Conversion::Nearest), &[held]);
    p.release(image);
    let e = p.extract(&[result], ROOM);
    let kinds: Vec<&str> = e.graph.nodes.iter().map(|n| n.op.kind()).collect();
    assert_eq!(kinds, ["image", "deinterleave", "convert", "convert", "interleave", "interleave"]);
    assert_eq!(e.records, [image, image, held, result, result, held]);
    assert_eq!(e.graph.roots, [NodeId(4), NodeId(5)]);
    assert!(e.graph.roots.iter().all(|root| e.graph.node(*root).shape == COLOUR.stored()));
    assert_eq!(p.disposable(&e.graph, &e.records), [v]);
    // Values with handles are stored. A requested image that is stored is neither deinterleaved nor
    // interleaved.
    let w = p.new_value();
    assert_eq!(p.evaluated(held, w), [v]);
    let e = p.extract(&[held], ROOM);
    assert_eq!((e.graph.node(e.graph.roots[0]).op.clone(), e.graph.roots.len()), (Op::Source(w), 1));
    assert!(p.disposable(&e.graph, &e.records).is_empty(), "it is held, and read");
    p.release(held);
    let e = p.extract(&[result], ROOM);
    assert_eq!(p.disposable(&e.graph, &e.records), [w]);
    assert_eq!(p.release(result), [w]);
    assert!(p.records.is_empty());
}

#[test]
fn an_evaluated_record_lets_go_of_what_it_was_computed_from() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let a = record(&mut p, Op::Source(v), &[]);
    let b = record(&mut p, Op::from(Transpose), &[a]);
    p.release(a);
    let e = p.extract(&[b], ROOM);
    assert_eq!((e.graph.nodes.len(), e.graph.roots.as_slice()), (2, [NodeId(1)].as_slice()));
    assert_eq!(p.disposable(&e.graph, &e.records), [v]);
    let w = p.new_value();
    assert_eq!(p.evaluated(b, w), [v]);
    assert_eq!(p.value(b), Some(w));
}

#[test]
fn a_source_that_a_later_program_needs_is_not_disposable() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let a = record(&mut p, Op::Source(v), &[]);
    let b = record(&mut p, Op::from(Transpose), &[a]);
    let c = record(&mut p, Op::from(Transpose), &[b]);
    let _later = record(&mut p, Op::from(Transpose), &[b]);
    p.release(a);
    p.release(b);
    let e = p.extract(&[c], 0);
    assert!(p.disposable(&e.graph, &e.records).is_empty());
    let e = p.extract(&[c], ROOM);
    assert_eq!(p.disposable(&e.graph, &e.records), [v], "unless what is between them is kept");
}

#[test]
fn an_observable_value_on_the_way_is_a_root() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let a = record(&mut p, Op::Source(v), &[]);
    let b = record(&mut p, Op::from(Transpose), &[a]);
    let c = record(&mut p, Op::from(Transpose), &[b]);
    assert_eq!(p.extract(&[c], ROOM).graph.roots, [NodeId(2), NodeId(1)]);
    p.release(b);
    assert_eq!(p.extract(&[c], ROOM).graph.roots, [NodeId(2)]);
}
#[test]
fn a_value_of_two_records_stays_while_either_does() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let a = record(&mut p, Op::Source(v), &[]);
    let (b, c) = (record(&mut p, Op::from(Transpose), &[a]), record(&mut p, Op::from(Transpose), &[a]));
    let w = p.new_value();
    assert!(p.evaluated(b, w).is_empty() && p.evaluated(c, w).is_empty());
    let both = record(&mut p, Op::from(Merge), &[b, c]);
    let e = p.extract(&[both], ROOM);
    assert_eq!((e.graph.nodes.len(), &e.graph.nodes[1].inputs[..]), (2, &[NodeId(0); 2][..]), "one node for both");
    let d = record(&mut p, Op::from(Transpose), &[b]);
    assert!(p.release(b).is_empty(), "it is read");
    let e = p.extract(&[d], ROOM);
    assert!(p.disposable(&e.graph, &e.records).is_empty(), "the other record is the same value");
    assert!(p.release(d).is_empty() && p.refers_to(w));
    assert!(p.release(both).is_empty());
    assert_eq!(p.release(c), [w]);
}

/// A program of 64x64 images: a running state, and a sum of each of its values.
struct Rounds {
    p: NumberedProgram,
    states: Vec<RecordId>,
    sums: Vec<RecordId>,
}

const IMAGE: usize = 64 * 64 * 4;

fn rounds(n: usize) -> Rounds {
    let mut p = NumberedProgram::default();
    let image = Shape::new(64, 64, 1);
    let v = p.new_value();
    let record = |p: &mut NumberedProgram, op: Op, inputs: &[RecordId], shape| {
        p.record(op, inputs.to_vec(), shape, DType::F32, Location::caller())
    };
    let mut states = vec![record(&mut p, Op::Source(v), &[], image)];
    let mut sums = Vec::new();
    for k in 0..n {
        let looked = record(&mut p, Op::from(Transpose), &[states[k]], image);
        sums.push(record(&mut p, Op::from(Transpose), &[looked], Shape::new(1, 1, 1)));
        states.push(record(&mut p, Op::from(Transpose), &[states[k]], image));
        p.release(looked);
        p.release(states[k]);
    }
    Rounds { p, states, sums }
}

fn kept(e: &Extract) -> Vec<RecordId> {
    e.graph.roots.iter().map(|r| e.records[r.0]).collect()
}

#[test]
fn a_state_that_the_next_one_reads_is_kept() {
    let Rounds { mut p, states, sums } = rounds(3);
    let e = p.extract(&[sums[0]], ROOM);
    assert_eq!(kept(&e), [sums[0]], "a source need not be");
    // The second state is observed, and the third reads it.
    let e = p.extract(&[sums[1]], ROOM);
    assert_eq!(kept(&e), [sums[1], states[1]]);
    assert!(p.disposable(&e.graph, &e.records).is_empty(), "the first sum is to come");
    for id in kept(&e) {
        let v = p.new_value();
        p.evaluated(id, v);
    }
    let e = p.extract(&[sums[2]], ROOM);
    assert_eq!(kept(&e), [sums[2], states[2]]);
    assert_eq!(e.graph.nodes.len(), 4, "from the state that was kept");
}

#[test]
fn what_ends_in_small_values_is_computed_at_once_and_not_kept() {
    let Rounds { p, states, sums } = rounds(3);
    let e = p.extract(&[sums[2]], ROOM);
    assert_eq!(kept(&e), [sums[2], sums[1], states[2]], "a source's readers wait");
}

#[test]
fn what_is_kept_is_bounded_and_the_last_comes_first() {
    let Rounds { mut p, states, sums } = rounds(5);
    // Images with handles read each state: no small values are left.
    let images: Vec<RecordId> = states[..5]
        .iter()
        .map(|s| p.record(Op::from(Transpose), vec![*s], Shape::new(64, 64, 1), DType::F32, Location::caller()))
        .collect();
    let e = p.extract(&[images[4]], 2 * IMAGE + IMAGE / 2);
    assert_eq!(kept(&e), [images[4], states[3], states[4]]);
    assert_eq!(kept(&p.extract(&[images[4]], 0)), [images[4]]);
    assert_eq!(kept(&p.extract(&[sums[4]], usize::MAX)), [sums[4], states[1], states[2], states[3], states[4]]);
}

#[test]
fn what_is_as_quickly_computed_as_read_is_not_kept() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let mut of = |op: Op, inputs: &[RecordId]| record(&mut p, op, inputs);
    let source = of(Op::Source(v), &[]);
    let mut chain = vec![source];
    for _ in 0..6 {
        chain.push(of(Op::Convert(Conversion::Nearest), &[chain[chain.len() - 1]]));
    }
    let others: Vec<RecordId> = chain[1..].iter().map(|c| of(Op::from(Transpose), &[*c])).collect();
    chain.iter().for_each(|c| assert!(p.release(*c).is_empty()));
    assert_eq!(
        kept(&p.extract(&[others[5]], ROOM)),
        [others[5], chain[5]],
        "the others are a few conversions of a source"
    );
}

#[test]
fn a_line_is_that_of_what_no_line_is_known_of() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let given = record(&mut p, Op::Source(v), &[]);
    let (first, second) =
        (SourceLine { file: "a.py", line: 3, call: "add" }, SourceLine { file: "a.py", line: 4, call: "add" });
    let a = record(&mut p, Op::from(Transpose), &[given]);
    p.recorded_at(a, first);
    let b = record(&mut p, Op::from(Transpose), &[a]);
    let c = record(&mut p, Op::from(Transpose), &[b]);
    p.recorded_at(c, second);
    let e = p.extract(&[c], ROOM);
    let lines: Vec<String> = e.graph.nodes.iter().map(|node| node.site.to_string()).collect();
    assert_eq!(lines, ["a.py:3", "a.py:3", "a.py:4", "a.py:4"]);
    let unknown = RecordedCall::from(Location::caller());
    assert!(unknown.to_string().contains("tests.rs:"), "{unknown}");
    assert!(unknown != RecordedCall { line: Some(first), ..unknown });
}

#[test]
fn steps_are_taken_for_those_who_look_into_them_alone() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let source = record(&mut p, Op::Source(v), &[]);
    let passing = record(&mut p, Op::from(Transpose), &[source]);
    let step = p.numbers.record();
    let stand_in = record(&mut p, Op::Convert(Conversion::Nearest), &[source]);
    p.begin_step(step, stand_in);
    // It ends in small values of the program but belongs to the loop body.
    let inputs = vec![passing, stand_in];
    let small = p.record(Op::from(Transpose), inputs, Shape::new(1, 1, 1), DType::F32, Location::caller());
    let result = record(&mut p, Op::from(Transpose), &[passing]);
    p.release(passing);
    assert_eq!((p.pending(), p.observable()), (2, vec![result]));
    let taken = p.extract(&[result], ROOM);
    assert_eq!(taken.records, [source, passing, result]);
    assert_eq!(taken.graph.roots, [NodeId(2), NodeId(1)], "what the step reads is kept");
    assert_eq!(p.extract(&[small], ROOM).records, [source, passing, stand_in, small]);
    assert!(p.in_step(small) && !p.looked_into(step));
    let looked_at = p.new_value();
    p.evaluated(small, looked_at);
    assert!(!p.in_step(small) && p.in_step(stand_in) && p.looked_into(step));
    assert_eq!(p.pending(), 2);
    for id in [small, stand_in, result, source] {
        p.release(id);
    }
    assert_eq!((p.pending(), p.records.len()), (0, 0));
}

#[test]
fn what_is_left_of_a_step_is_like_anything_else() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let source = record(&mut p, Op::Source(v), &[]);
    let [outer, inner] = [p.numbers.record(), p.numbers.record()];
    let first = record(&mut p, Op::Convert(Conversion::Nearest), &[source]);
    p.begin_step(outer, first);
    let second = record(&mut p, Op::Convert(Conversion::Nearest), &[first]);
    p.begin_step(inner, second);
    let both = record(&mut p, Op::from(Transpose), &[second]);
    let looked_at = record(&mut p, Op::from(Transpose), &[first]);
    let after = record(&mut p, Op::from(Transpose), &[looked_at]);
    let value = p.new_value();
    p.evaluated(looked_at, value);
    assert!(p.looked_into(outer) && !p.looked_into(inner));
    p.end_step(inner);
    assert!(p.in_step(both) && p.in_step(after), "the outer step goes on");
    p.end_step(outer);
    assert!(!p.looked_into(outer));
    assert_eq!((p.pending(), p.observable()), (4, vec![first, second, both, after]));
    for id in [first, second, both, looked_at, after, source] {
        p.release(id);
    }
    assert_eq!((p.pending(), p.records.len()), (0, 0));
}

#[test]
fn a_stand_in_becomes_its_image() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let source = record(&mut p, Op::Source(v), &[]);
    let step = p.numbers.record();
    let stand_in = record(&mut p, Op::Convert(Conversion::Nearest), &[source]);
    p.begin_step(step, stand_in);
    let result = record(&mut p, Op::from(Transpose), &[stand_in]);
    p.end_stand_in(stand_in);
    let Extract { graph, records } = p.extract(&[result], ROOM);
    assert_eq!((graph.nodes[0].op.clone(), records), (Op::Source(v), vec![stand_in, result]));
    assert!(p.disposable(&graph, &[stand_in, result]).is_empty(), "the image is held");
    assert!(p.release(source).is_empty() && p.release(result).is_empty());
    assert_eq!((p.pending(), p.release(stand_in)), (0, vec![v]));
    assert_eq!((p.records.len(), p.pinned_bytes()), (0, 0));
}

#[test]
fn records_in_the_place_of_others_follow_in_the_order_of_recording() {
    let mut p = NumberedProgram::default();
    let v = p.new_value();
    let source = record(&mut p, Op::Source(v), &[]);
    let [first, second, left] = [(); 3].map(|()| record(&mut p, Op::from(Transpose), &[source]));
    p.release(first);
    p.release(second);
    let b = record(&mut p, Op::from(Transpose), &[left]);
    let c = record(&mut p, Op::from(Transpose), &[b]);
    let d = record(&mut p, Op::from(Merge), &[c, left]);
    let Extract { graph, records } = p.extract(&[d], ROOM);
    assert_eq!(records, [source, left, b, c, d]);
    let inputs: Vec<&[NodeId]> = graph.nodes.iter().map(|n| &n.inputs[..]).collect();
    assert_eq!(inputs[1..], [&[NodeId(0)][..], &[NodeId(1)], &[NodeId(2)], &[NodeId(3), NodeId(1)]]);
    assert_eq!(p.observable(), [left, b, c, d]);
}

#[test]
fn a_graph_over_a_former_one_is_as_new() {
    let Rounds { mut p, states, sums } = rounds(4);
    let colour = Shape::new(64, 64, 3);
    let v = p.new_value();
    let given = p.record(Op::Source(v), vec![], colour, DType::F32, Location::caller());
    let image = p.record(Op::Convert(Conversion::Nearest), vec![given], colour, DType::F32, Location::caller());
    let all = [sums[0], sums[3], states[4], image, given];
    for (former, target) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
        let former = p.extract(&[*former], ROOM).graph;
        let (over, new) = (p.extract_over(former, &[*target], ROOM), p.extract(&[*target], ROOM));
        assert_eq!(format!("{over:?}"), format!("{new:?}"));
    }
}
