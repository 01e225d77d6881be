//! Selects the operations of an evaluation and the values that it stores.
//!
//! An evaluation includes all records that its targets need, and stores every intermediate value with a handle, because
//! it would otherwise be recomputed. A value without a handle that outside operations still read *escapes*: it is made
//! unnecessary, stored or recomputed. All of it takes time linear in the number of recorded operations.
//!
//! Images are recorded with channels in planes and stored with channels interleaved; the graph of an extract has both.
//!
//! Design: "Extracts" in `docs/design/recording.md`.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::stored::ReorderedNode;
use super::{ByNumber, OperationRecord, RecordId, RecordSlot, RecordedProgram};
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use horus_base::digest::Digest;
use horus_base::dtype::DType;
use horus_base::error::RecordedCall;
use horus_base::shape::Shape;

/// A value is small relative to another that has this many times its bytes.
const SMALL: usize = 16;
/// Maximum number of operations, and of reads, inspected around an escaping value: its readers must end in
/// small values within fewer.
const AROUND: usize = 64;
/// Maximum number of pixel operations on one image (such as a conversion or a scale) that cost no more than
/// reading their result.
const QUICK: usize = 4;

/// A part of the program, ready for planning.
#[derive(Debug)]
pub struct Extract {
    /// The operations. The roots are the targets, then the other stored values, in stored order of pixels.
    pub graph: Graph<Op>,
    /// The record of each node. Two nodes of one record are its pixels in both orders.
    pub records: Vec<RecordId>,
}

/// Records of an evaluation, including all inputs.
struct ExtractedRecords {
    /// For each slot, one more than the number of reads of its record by records of the evaluation; 0 if the
    /// record is not part of it.
    reads: Vec<u32>,
    /// The readers of each record, inside and outside the evaluation, in the order of recording; found on
    /// first use.
    readers: OnceCell<ByNumber<RecordSlot, Vec<RecordSlot>>>,
}

impl ExtractedRecords {
    /// Returns `true` if a value of the evaluation has no handle but outside records read it.
    fn escapes(&self, slot: RecordSlot, r: &OperationRecord) -> bool {
        !r.has_handle && r.is_work() && r.readers >= self.reads[slot].max(1) as usize
    }

    fn has(&self, slot: RecordSlot) -> bool {
        self.reads[slot] > 0
    }
}

/// A record with its slot.
type SlottedRecord<'a> = (RecordSlot, &'a OperationRecord);

impl OperationRecord {
    /// Returns `true` if the record is not evaluated yet and is worth storing.
    fn is_work(&self) -> bool {
        !matches!(self.op, Op::Source(_) | Op::Fill(_) | Op::Index(_))
    }
}

/// A graph written over a former one, usually of the same program: equal nodes stay.
struct GraphWriter {
    graph: Graph<Op>,
    /// Number of nodes written so far.
    written: usize,
}

impl GraphWriter {
    /// Writes the next node.
    fn put(
        &mut self,
        op: &Op,
        inputs: impl Iterator<Item = NodeId> + Clone,
        (shape, dtype, site): (Shape, DType, RecordedCall),
    ) -> NodeId {
        let id = NodeId(self.written);
        self.written += 1;
        if let Some(former) = self.graph.nodes.get_mut(id.0) {
            if let (Op::Source(former), Op::Source(value)) = (&mut former.op, op) {
                *former = *value;
            }
            let kind = (former.shape, former.dtype) == (shape, dtype);
            if kind && former.op == *op && former.inputs.iter().copied().eq(inputs.clone()) {
                former.site = site;
                return id;
            }
            self.graph.nodes.truncate(id.0);
        }
        self.graph.push(Node { op: op.clone(), inputs: inputs.collect(), shape, dtype, site })
    }

    /// The pixels of a node in another order.
    fn ordered(&mut self, id: NodeId, to: impl FnOnce(&Graph<Op>, NodeId) -> ReorderedNode) -> NodeId {
        let Node { dtype, site, .. } = *self.graph.node(id);
        to(&self.graph, id).unwrap_or_else(|made| self.put(&made.0, [id].into_iter(), (made.1, dtype, site)))
    }
}

impl RecordedProgram {
    /// All pending values with a handle, except records of loop bodies.
    pub fn observable(&self) -> Vec<RecordId> {
        let held = self.slots.iter().flatten().filter(|r| r.has_handle && r.is_work() && r.steps.is_empty());
        let mut held: Vec<RecordId> = held.map(|r| r.id).collect();
        held.sort_unstable();
        held
    }

    /// Extracts the operations of an evaluation of `targets`. At most `room` bytes of values without handles are
    /// stored.
    pub fn extract(&self, targets: &[RecordId], room: usize) -> Extract {
        self.extract_over(Graph::default(), targets, room)
    }

    /// Same as [`RecordedProgram::extract`], but writes over a former graph, which takes less time where both
    /// are alike.
    pub fn extract_over(&self, former: Graph<Op>, targets: &[RecordId], mut room: usize) -> Extract {
        let mut taken = ExtractedRecords { reads: vec![0; self.slots.len()], readers: OnceCell::new() };
        let targets: Vec<RecordSlot> = targets.iter().filter_map(|id| self.records.get(id).copied()).collect();
        let mut open = self.take(&mut taken, &targets);
        let mut order = open.clone();
        while let Some((slot, r)) = open.pop() {
            if taken.escapes(slot, r)
                && let Some(small) = self.hanging_off(&taken, slot)
            {
                let new = self.take(&mut taken, &small);
                order.extend(&new);
                open.extend(new);
            }
        }
        order.sort_unstable_by_key(|(_, r)| r.id);
        let mut kept: Vec<RecordSlot> = Vec::new();
        for &(slot, r) in order.iter().rev() {
            let held = r.has_handle && r.is_work();
            let escapes = taken.escapes(slot, r) && Self::bytes(r) <= room && !self.is_quick(r);
            if escapes {
                room -= Self::bytes(r);
            }
            if held || escapes {
                kept.push(slot);
            }
        }
        kept.reverse();
        let targeted: HashSet<RecordSlot, BuildHasherDefault<Digest>> = targets.iter().copied().collect();
        kept.retain(|slot| !targeted.contains(slot));
        self.as_graph(former, &order, &targets, &kept)
    }

    fn as_graph(
        &self,
        former: Graph<Op>,
        order: &[SlottedRecord<'_>],
        targets: &[RecordSlot],
        kept: &[RecordSlot],
    ) -> Extract {
        let most = order.len() + targets.len() + kept.len();
        let mut over = GraphWriter { graph: Graph { nodes: former.nodes, ..Graph::default() }, written: 0 };
        over.graph.nodes.reserve(most.saturating_sub(over.graph.nodes.len()));
        // The node, in planes, of the record in each slot.
        let mut nodes = vec![NodeId(0); self.slots.len()];
        let mut sources: ByNumber<ValueId, NodeId> = ByNumber::default();
        let mut records = Vec::with_capacity(most);
        for &(slot, r) in order {
            let OperationRecord { id, shape, dtype, site, .. } = *r;
            nodes[slot] = match r.op {
                // Records with the same value are one node.
                Op::Source(v) => *sources.entry(v).or_insert_with(|| {
                    let stored = over.put(&r.op, [].into_iter(), (shape.stored(), dtype, site));
                    over.ordered(stored, Graph::as_planar)
                }),
                _ => over.put(&r.op, r.inputs.iter().map(|i| nodes[*i]), (shape, dtype, site)),
            };
            records.resize(over.written, id);
        }
        let mut stored: ByNumber<RecordSlot, NodeId> = ByNumber::default();
        let mut roots = Vec::with_capacity(targets.len() + kept.len());
        for slot in targets.iter().chain(kept) {
            let root = *stored.entry(*slot).or_insert_with(|| over.ordered(nodes[*slot], Graph::as_stored));
            roots.push(root);
            if let Some(r) = &self.slots[*slot] {
                records.resize(over.written, r.id);
            }
        }
        let GraphWriter { mut graph, written } = over;
        graph.nodes.truncate(written);
        graph.roots = roots;
        Extract { graph, records }
    }

    /// Adds `wanted` and their inputs to the evaluation; returns the records added.
    fn take(&self, taken: &mut ExtractedRecords, wanted: &[RecordSlot]) -> Vec<SlottedRecord<'_>> {
        let mut new = Vec::new();
        let mut take =
            |new: &mut Vec<_>, slot: RecordSlot, reads: u32| match (&mut taken.reads[slot], &self.slots[slot]) {
                (before @ 0, Some(r)) => {
                    *before = 1 + reads;
                    new.push((slot, r));
                }
                (before, _) => *before += reads,
            };
        wanted.iter().for_each(|slot| take(&mut new, *slot, 0));
        let mut next = 0;
        while let Some(&(_, r)) = new.get(next) {
            next += 1;
            r.inputs.iter().for_each(|i| take(&mut new, *i, 1));
        }
        new
    }

    /// The readers of a record that are outside the evaluation, in the order of recording.
    fn others<'a>(&self, taken: &'a ExtractedRecords, slot: RecordSlot) -> impl Iterator<Item = RecordSlot> + 'a {
        let all = taken.readers.get_or_init(|| self.readers()).get(&slot);
        all.into_iter().flatten().copied().filter(|reader| !taken.has(*reader))
    }

    /// The readers of each record, in the order of recording.
    fn readers(&self) -> ByNumber<RecordSlot, Vec<RecordSlot>> {
        let mut order: Vec<SlottedRecord<'_>> =
            self.slots.iter().enumerate().filter_map(|(slot, r)| Some((slot, r.as_ref()?))).collect();
        order.sort_unstable_by_key(|(_, r)| r.id);
        let mut readers: ByNumber<RecordSlot, Vec<RecordSlot>> = ByNumber::default();
        for (slot, r) in order {
            r.inputs.iter().for_each(|i| readers.entry(*i).or_default().push(slot));
        }
        readers.values_mut().for_each(Vec::dedup);
        readers
    }

    /// The small values with handles in which all outside readers of a record end, if computing them takes
    /// little else.
    fn hanging_off(&self, taken: &ExtractedRecords, slot: RecordSlot) -> Option<Vec<RecordSlot>> {
        let most = Self::bytes(self.slots[slot].as_ref()?) / SMALL;
        let mut looked_at = 0;
        let (mut small, mut seen) = (Vec::new(), HashSet::new());
        let mut open = vec![slot];
        while let Some(slot) = open.pop() {
            for reader in self.others(taken, slot) {
                looked_at += 1;
                if looked_at > AROUND {
                    return None;
                }
                if !seen.insert(reader) {
                    continue;
                }
                let r = self.slots[reader].as_ref().filter(|r| r.steps.is_empty())?;
                match r.has_handle {
                    true if Self::bytes(r) <= most => small.push(reader),
                    true => return None,
                    false => open.push(reader),
                }
            }
        }
        let known = |i: &RecordSlot| {
            let unseen = |r: &OperationRecord| r.is_work() && !seen.contains(i) && !taken.has(*i) && !self.is_quick(r);
            !self.slots[*i].as_ref().is_some_and(unseen)
        };
        let inputs = seen.iter().filter_map(|slot| self.slots[*slot].as_ref()).flat_map(|r| &r.inputs);
        inputs.take(2 * AROUND + 1).enumerate().all(|(i, input)| i < 2 * AROUND && known(input)).then_some(small)
    }

    /// Returns `true` if computing a value is as fast as reading it: it is a few pixel operations on one
    /// source that is not larger.
    fn is_quick<'a>(&'a self, mut r: &'a OperationRecord) -> bool {
        let most = Self::bytes(r);
        for _ in 0..=QUICK {
            let one = match (&r.op, r.inputs.as_slice()) {
                (Op::Source(_) | Op::Fill(_) | Op::Index(_), _) => return Self::bytes(r) <= most,
                (Op::Pixel(..) | Op::Convert(_), [one]) => one,
                _ => return false,
            };
            match &self.slots[*one] {
                Some(input) => r = input,
                None => return false,
            }
        }
        false
    }

    /// The sources of an extract that are unreferenced once its roots have been evaluated.
    pub fn disposable(&self, graph: &Graph<Op>, records: &[RecordId]) -> Vec<ValueId> {
        /// The readers of a node that have been visited so far.
        #[derive(Clone, Copy, Default)]
        struct Readers {
            /// The number of readers of other records, and `true` if one of them still needs its inputs after
            /// the evaluation.
            others: (usize, bool),
            /// The node of the same record with the other order of pixels: whether it is unreferenced, and
            /// whether it needs its inputs no more.
            order: Option<(bool, bool)>,
        }
        let mut readers = vec![Readers::default(); graph.nodes.len()];
        let mut is_root = vec![false; graph.nodes.len()];
        graph.roots.iter().for_each(|r| is_root[r.0] = true);
        let mut out = Vec::new();
        for (id, node) in graph.iter().rev() {
            let Readers { others: (count, later), order } = readers[id.0];
            let read_here_only = || self.at(records[id.0]).is_some_and(|r| !r.has_handle && r.readers == count);
            let gone = match (&node.op, order) {
                (Op::Source(_), Some((planes_gone, _))) => planes_gone,
                _ => !later && read_here_only(),
            };
            let lets_go = is_root[id.0] || gone || order.is_some_and(|(_, lets_go)| lets_go);
            for input in &node.inputs {
                let read = &mut readers[input.0];
                match records[input.0] == records[id.0] {
                    true => read.order = Some((gone, lets_go || read.order.is_some_and(|(_, others)| others))),
                    false => read.others = (read.others.0 + 1, read.others.1 || !lets_go),
                }
            }
            if let (true, Op::Source(v)) = (gone, &node.op)
                && self.values.get(v) == Some(&1)
            {
                out.push(*v);
            }
        }
        out
    }
}
