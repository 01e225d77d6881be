//! Selection of the operations of an evaluation, and of the values that it keeps.
//!
//! An evaluation includes everything that its targets need, and keeps every intermediate value that
//! the user holds: it would otherwise be recomputed later. The same applies to a value without a
//! handle that is read by recorded operations outside the evaluation: a running state (`state =
//! f(state, frame)`, one of its values inspected now and then) would be recomputed from the start
//! each time, as each state is read by the next. Such a value *escapes*, and one of three things
//! happens:
//!
//! - If everything that reads it ends in small values that the user holds
//!   (`counts.push(mask.sum())`), these are computed along with the targets, and the value is no
//!   longer needed. Values that are collected and inspected at the end, even in reverse order, then
//!   do not keep all images in memory at once.
//! - Otherwise it is kept, as if the user held it, as long as its readers are recorded. The latest
//!   come first, since all later values are computed from them, within the remaining bound on
//!   memory pinned by recorded operations.
//! - Beyond that bound, or if it is as quickly computed from a source as read, it is recomputed.
//!
//! All of it takes time linear in the number of operations recorded.
//!
//! Images are recorded with their channels in planes, which is how operations are defined, and stored with the channels
//! of a pixel beside each other. The graph of an extract has both: stored images are deinterleaved where they are read, and
//! results are interleaved. The optimizer removes what it can of that (`optimize/interleaved.rs`).

use std::cell::OnceCell;
use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::{ByNumber, Record, RecordId, Recording};
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use horus_base::digest::Digest;

/// A value is small relative to another that has this many times its bytes.
const SMALL: usize = 16;
/// Maximum number of operations, and of reads, inspected around an escaping value: its readers must
/// end in small values within fewer.
const AROUND: usize = 64;
/// Maximum number of pixel operations on one image that cost no more than reading their result: a
/// conversion, a scale.
const QUICK: usize = 4;

/// A part of the program, ready to be planned.
#[derive(Debug)]
pub struct Extract {
    /// The operations; its roots are the targets, then the other kept values, as they are stored.
    pub graph: Graph<Op>,
    /// The record of each node; two nodes of one are its pixels in both orders.
    pub records: Vec<RecordId>,
}

type Records = HashSet<RecordId, BuildHasherDefault<Digest>>;

/// Records of an evaluation, including all inputs.
#[derive(Default)]
struct Taken {
    records: Records,
    /// Number of their reads of each record.
    reads: ByNumber<RecordId, usize>,
    /// The readers of each record, taken or not, in the order of recording; found when first asked
    /// for.
    readers: OnceCell<ByNumber<RecordId, Vec<RecordId>>>,
}

impl Taken {
    /// The records, in the order of recording.
    fn in_order(&self) -> Vec<RecordId> {
        let mut all: Vec<RecordId> = self.records.iter().copied().collect();
        all.sort_unstable();
        all
    }
}

impl Record {
    /// Returns `true` if the record is not evaluated yet, and worth keeping.
    fn is_work(&self) -> bool {
        !matches!(self.op, Op::Source(_) | Op::Fill(_) | Op::Index(_))
    }
}

impl Recording {
    /// Every pending value with a handle, except those of steps.
    pub fn observable(&self) -> Vec<RecordId> {
        let held = self.records.iter().filter(|(_, r)| r.handles > 0 && r.is_work() && r.steps.is_empty());
        let mut held: Vec<RecordId> = held.map(|(id, _)| *id).collect();
        held.sort_unstable();
        held
    }

    /// The operations of an evaluation of `targets`. At most `room` bytes are kept of values that
    /// the user does not hold.
    pub fn extract(&self, targets: &[RecordId], mut room: usize) -> Extract {
        let mut taken = Taken::default();
        let mut open = self.take(&mut taken, targets);
        while let Some(id) = open.pop() {
            if self.escapes(&taken, id)
                && let Some(small) = self.hanging_off(&taken, id)
            {
                open.extend(self.take(&mut taken, &small));
            }
        }
        let (order, mut kept) = (taken.in_order(), Records::default());
        for &id in order.iter().rev() {
            let r = &self.records[&id];
            let held = r.handles > 0 && r.is_work();
            let escapes = self.escapes(&taken, id) && Self::bytes(r) <= room && !self.is_quick(id);
            if escapes {
                room -= Self::bytes(r);
            }
            if held || escapes {
                kept.insert(id);
            }
        }
        for target in targets {
            kept.remove(target);
        }
        self.as_graph(order, targets, &kept)
    }

    fn as_graph(&self, taken: Vec<RecordId>, targets: &[RecordId], kept: &Records) -> Extract {
        let mut graph = Graph::default();
        let mut nodes: ByNumber<RecordId, NodeId> = ByNumber::default();
        let mut sources: ByNumber<ValueId, NodeId> = ByNumber::default();
        let mut records = Vec::with_capacity(taken.len());
        for &id in &taken {
            let r = &self.records[&id];
            // Records with one value are one node.
            if let Op::Source(v) = r.op
                && let Some(&node) = sources.get(&v)
            {
                nodes.insert(id, node);
                continue;
            }
            let inputs = r.inputs.iter().map(|i| nodes[i]).collect();
            let Record { shape, dtype, site, .. } = *r;
            let node = match r.op {
                Op::Source(v) => {
                    let shape = shape.stored();
                    let stored = graph.push(Node { op: Op::Source(v), inputs, shape, dtype, site });
                    let node = graph.planar(stored);
                    sources.insert(v, node);
                    node
                }
                _ => graph.push(Node { op: r.op.clone(), inputs, shape, dtype, site }),
            };
            nodes.insert(id, node);
            records.resize(graph.nodes.len(), id);
        }
        let mut stored: ByNumber<RecordId, NodeId> = ByNumber::default();
        for id in targets.iter().chain(taken.iter().filter(|id| kept.contains(id))).copied() {
            let root = *stored.entry(id).or_insert_with(|| graph.stored(nodes[&id]));
            graph.roots.push(root);
            records.resize(graph.nodes.len(), id);
        }
        Extract { graph, records }
    }

    /// Takes `wanted` and their inputs; returns those not taken before.
    fn take(&self, taken: &mut Taken, wanted: &[RecordId]) -> Vec<RecordId> {
        let (mut open, mut new) = (wanted.to_vec(), Vec::new());
        while let Some(id) = open.pop() {
            if let Some(r) = self.records.get(&id)
                && taken.records.insert(id)
            {
                new.push(id);
                r.inputs.iter().for_each(|i| *taken.reads.entry(*i).or_default() += 1);
                open.extend(&r.inputs);
            }
        }
        new
    }

    /// Returns `true` if a taken value will be read afterwards but has no handle.
    fn escapes(&self, taken: &Taken, id: RecordId) -> bool {
        let read = taken.reads.get(&id).copied().unwrap_or(0);
        self.records.get(&id).is_some_and(|r| r.is_work() && r.handles == 0 && r.readers > read)
    }

    /// The readers of a record that are not taken, in the order of recording.
    fn others<'a>(&self, taken: &'a Taken, id: RecordId) -> impl Iterator<Item = RecordId> + 'a {
        let all = taken.readers.get_or_init(|| self.readers()).get(&id);
        all.into_iter().flatten().copied().filter(|reader| !taken.records.contains(reader))
    }

    /// The readers of each record, in the order of recording.
    fn readers(&self) -> ByNumber<RecordId, Vec<RecordId>> {
        let mut readers: ByNumber<RecordId, Vec<RecordId>> = ByNumber::default();
        for (id, r) in &self.records {
            r.inputs.iter().for_each(|i| readers.entry(*i).or_default().push(*id));
        }
        for of_one in readers.values_mut() {
            of_one.sort_unstable();
            of_one.dedup();
        }
        readers
    }

    /// The small values held by the user in which all readers of `id` that are not taken end, if
    /// that takes little else.
    fn hanging_off(&self, taken: &Taken, id: RecordId) -> Option<Vec<RecordId>> {
        let most = Self::bytes(self.records.get(&id)?) / SMALL;
        let mut looked_at = 0;
        let (mut small, mut seen) = (Vec::new(), HashSet::new());
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            for reader in self.others(taken, id) {
                looked_at += 1;
                if looked_at > AROUND {
                    return None;
                }
                if !seen.insert(reader) {
                    continue;
                }
                let r = self.records.get(&reader).filter(|r| r.steps.is_empty())?;
                match r.handles > 0 {
                    true if Self::bytes(r) <= most => small.push(reader),
                    true => return None,
                    false => open.push(reader),
                }
            }
        }
        let known = |i: &RecordId| {
            let work = self.records.get(i).is_some_and(Record::is_work);
            !work || seen.contains(i) || taken.records.contains(i) || self.is_quick(*i)
        };
        let inputs = seen.iter().filter_map(|id| self.records.get(id)).flat_map(|r| &r.inputs);
        inputs.take(2 * AROUND + 1).enumerate().all(|(i, input)| i < 2 * AROUND && known(input)).then_some(small)
    }

    /// Returns `true` if a value is as quickly computed as read: by a few pixel operations on one
    /// source that is not larger.
    fn is_quick(&self, id: RecordId) -> bool {
        let Some(mut r) = self.records.get(&id) else { return false };
        let most = Self::bytes(r);
        for _ in 0..=QUICK {
            let one = match (&r.op, r.inputs.as_slice()) {
                (Op::Source(_) | Op::Fill(_) | Op::Index(_), _) => return Self::bytes(r) <= most,
                (Op::Pixel(..) | Op::Convert(_), [one]) => one,
                _ => return false,
            };
            match self.records.get(one) {
                Some(input) => r = input,
                None => return false,
            }
        }
        false
    }

    /// The sources of an extract that are unreferenced once its roots are evaluated.
    pub fn disposable(&self, graph: &Graph<Op>, records: &[RecordId]) -> Vec<ValueId> {
        let consumers = graph.consumers();
        let mut lets_go = vec![false; graph.nodes.len()];
        graph.roots.iter().for_each(|r| lets_go[r.0] = true);
        let mut gone = vec![false; graph.nodes.len()];
        let mut out = Vec::new();
        for (id, node) in graph.iter().rev() {
            let (orders, readers): (Vec<NodeId>, Vec<NodeId>) =
                consumers[id.0].iter().partition(|c| records[c.0] == records[id.0]);
            let read_here_only =
                self.records.get(&records[id.0]).is_some_and(|r| r.handles == 0 && r.readers == readers.len());
            gone[id.0] = match (&node.op, &orders[..]) {
                (Op::Source(_), &[planes]) => gone[planes.0],
                _ => read_here_only && readers.iter().all(|c| lets_go[c.0]),
            };
            lets_go[id.0] |= gone[id.0] || orders.iter().any(|order| lets_go[order.0]);
            if let (true, Op::Source(v)) = (gone[id.0], &node.op)
                && self.values.get(v) == Some(&1)
            {
                out.push(*v);
            }
        }
        out
    }
}
