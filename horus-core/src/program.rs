//! The recorded program of a session: what was recorded, what of it can still be observed, and nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::dtype::DType;
use crate::error::Site;
use crate::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::shape::Shape;

/// Identifies a recorded operation; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(u64);

#[derive(Debug)]
struct Record {
    op: Op,
    inputs: Vec<RecordId>,
    shape: Shape,
    dtype: DType,
    site: Site,
    /// Handles through which the user can observe the value.
    handles: usize,
    /// Reads by other records.
    readers: usize,
}

/// Recorded operations. What neither a handle nor a record refers to is dropped at once.
#[derive(Debug, Default)]
pub struct Program {
    records: BTreeMap<RecordId, Record>,
    next: u64,
    next_value: u64,
    /// For each value, the records that are it: several, where operations that compute the same were merged.
    values: HashMap<ValueId, usize>,
    /// Operations that are recorded and not evaluated.
    pending: usize,
    /// Sources that nobody observes any more but pending operations read.
    pinned: BTreeSet<RecordId>,
    pinned_bytes: usize,
}

/// A part of the program, ready to be planned.
#[derive(Debug)]
pub struct Extract {
    /// The operations; its roots are the targets, then the observable values they are computed from.
    pub graph: Graph<Op>,
    /// The record of each node.
    pub records: Vec<RecordId>,
}

impl Program {
    /// Appends an operation with one handle.
    pub fn record(&mut self, op: Op, inputs: Vec<RecordId>, shape: Shape, dtype: DType, site: Site) -> RecordId {
        let id = RecordId(self.next);
        self.next += 1;
        for i in &inputs {
            if let Some(r) = self.records.get_mut(i) {
                r.readers += 1;
            }
        }
        match op {
            Op::Source(v) => *self.values.entry(v).or_default() += 1,
            _ => self.pending += 1,
        }
        self.records.insert(id, Record { op, inputs, shape, dtype, site, handles: 1, readers: 0 });
        id
    }

    /// A fresh name for a value.
    pub fn new_value(&mut self) -> ValueId {
        self.next_value += 1;
        ValueId(self.next_value)
    }

    /// Number of operations recorded and not evaluated.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Bytes of images that only pending operations keep alive.
    pub fn pinned_bytes(&self) -> usize {
        self.pinned_bytes
    }

    /// The value of a record that is evaluated.
    pub fn value(&self, id: RecordId) -> Option<ValueId> {
        match self.records.get(&id)?.op {
            Op::Source(v) => Some(v),
            _ => None,
        }
    }

    /// Another handle to a record.
    pub fn retain(&mut self, id: RecordId) {
        if let Some(r) = self.records.get_mut(&id) {
            r.handles += 1;
        }
    }

    /// One handle less. Returns the values that nothing refers to any more.
    pub fn release(&mut self, id: RecordId) -> Vec<ValueId> {
        if let Some(r) = self.records.get_mut(&id) {
            r.handles -= 1;
        }
        let mut dropped = Vec::new();
        self.drop_unreferenced(vec![id], &mut dropped);
        dropped
    }

    fn bytes(r: &Record) -> usize {
        r.shape.len() * r.dtype.size()
    }

    fn drop_unreferenced(&mut self, mut check: Vec<RecordId>, dropped: &mut Vec<ValueId>) {
        while let Some(id) = check.pop() {
            let Some(r) = self.records.get(&id) else { continue };
            if r.handles > 0 {
                continue;
            }
            if r.readers > 0 {
                if matches!(r.op, Op::Source(_)) && self.pinned.insert(id) {
                    self.pinned_bytes += Self::bytes(&self.records[&id]);
                }
                continue;
            }
            if let Some(r) = self.records.remove(&id) {
                if self.pinned.remove(&id) {
                    self.pinned_bytes -= Self::bytes(&r);
                }
                match r.op {
                    Op::Source(v) => dropped.extend(self.refer_no_longer(v)),
                    _ => self.pending -= 1,
                }
                self.unread(&r.inputs, &mut check);
            }
        }
    }

    /// One record less is this value; the value, if it was the last.
    fn refer_no_longer(&mut self, value: ValueId) -> Option<ValueId> {
        let count = self.values.get_mut(&value)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        self.values.remove(&value);
        Some(value)
    }

    fn unread(&mut self, inputs: &[RecordId], check: &mut Vec<RecordId>) {
        for i in inputs {
            if let Some(p) = self.records.get_mut(i) {
                p.readers -= 1;
                check.push(*i);
            }
        }
    }

    /// Every pending value that somebody can observe.
    pub fn observable(&self) -> Vec<RecordId> {
        let worth = |r: &Record| r.handles > 0 && !matches!(r.op, Op::Source(_) | Op::Fill(_));
        self.records.iter().filter(|(_, r)| worth(r)).map(|(id, _)| *id).collect()
    }

    /// The operations that `targets` need. Roots of the graph are the targets and every observable value on the way,
    /// which would otherwise be computed again later.
    pub fn extract(&self, targets: &[RecordId]) -> Extract {
        let mut needed = BTreeSet::new();
        let mut open = targets.to_vec();
        while let Some(id) = open.pop() {
            if needed.insert(id)
                && let Some(r) = self.records.get(&id)
            {
                open.extend(&r.inputs);
            }
        }
        let mut graph = Graph::default();
        let mut nodes = HashMap::new();
        let mut sources: HashMap<ValueId, NodeId> = HashMap::new();
        let mut records = Vec::new();
        for id in needed {
            let Some(r) = self.records.get(&id) else { continue };
            // Records that are one value are one node.
            if let Op::Source(v) = r.op
                && let Some(&node) = sources.get(&v)
            {
                nodes.insert(id, node);
                continue;
            }
            let inputs = r.inputs.iter().map(|i| nodes[i]).collect();
            let node: NodeId =
                graph.push(Node { op: r.op.clone(), inputs, shape: r.shape, dtype: r.dtype, site: r.site });
            if let Op::Source(v) = r.op {
                sources.insert(v, node);
            }
            nodes.insert(id, node);
            records.push(id);
        }
        graph.roots = targets.iter().map(|t| nodes[t]).collect();
        for (i, id) in records.iter().enumerate() {
            let r = &self.records[id];
            let on_the_way = r.handles > 0 && !matches!(r.op, Op::Source(_) | Op::Fill(_)) && !targets.contains(id);
            if on_the_way {
                graph.roots.push(NodeId(i));
            }
        }
        Extract { graph, records }
    }

    /// The sources of an extract that nothing will refer to once its roots are evaluated.
    pub fn disposable(&self, graph: &Graph<Op>, records: &[RecordId]) -> Vec<ValueId> {
        let consumers = graph.consumers();
        let mut lets_go = vec![false; graph.nodes.len()];
        graph.roots.iter().for_each(|r| lets_go[r.0] = true);
        let mut out = Vec::new();
        for (id, node) in graph.iter().rev() {
            let readers = &consumers[id.0];
            let read_here_only =
                self.records.get(&records[id.0]).is_some_and(|r| r.handles == 0 && r.readers == readers.len());
            let gone = read_here_only && readers.iter().all(|c| lets_go[c.0]);
            if let (true, Op::Source(v)) = (gone, &node.op)
                && self.values.get(v) == Some(&1)
            {
                out.push(*v);
            }
            lets_go[id.0] |= gone;
        }
        out
    }

    /// Whether some record is this value.
    pub fn refers_to(&self, value: ValueId) -> bool {
        self.values.contains_key(&value)
    }

    /// Notes that a record has been evaluated as `value`; it reads nothing any more. Returns the values that nothing
    /// refers to any more.
    pub fn evaluated(&mut self, id: RecordId, value: ValueId) -> Vec<ValueId> {
        let mut check = vec![id];
        let mut dropped = Vec::new();
        if let Some(r) = self.records.get_mut(&id) {
            let before = std::mem::replace(&mut r.op, Op::Source(value));
            let inputs = std::mem::take(&mut r.inputs);
            *self.values.entry(value).or_default() += 1;
            match before {
                Op::Source(v) => dropped.extend(self.refer_no_longer(v)),
                _ => self.pending -= 1,
            }
            self.unread(&inputs, &mut check);
        }
        self.drop_unreferenced(check, &mut dropped);
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    fn record(p: &mut Program, op: Op, inputs: &[RecordId]) -> RecordId {
        p.record(op, inputs.to_vec(), Shape::new(4, 4, 1), DType::F32, Location::caller())
    }

    #[test]
    fn what_nobody_can_observe_is_dropped_at_once() {
        let mut p = Program::default();
        let v = p.new_value();
        let a = record(&mut p, Op::Source(v), &[]);
        let b = record(&mut p, Op::Transpose, &[a]);
        let c = record(&mut p, Op::Transpose, &[b]);
        assert!(p.release(b).is_empty());
        assert_eq!(p.pending(), 2);
        assert!(p.release(a).is_empty());
        assert_eq!(p.pinned_bytes(), 64);
        assert_eq!(p.release(c), [v]);
        assert_eq!((p.pending(), p.pinned_bytes(), p.records.len()), (0, 0, 0));
    }

    #[test]
    fn an_evaluated_record_lets_go_of_what_it_was_computed_from() {
        let mut p = Program::default();
        let v = p.new_value();
        let a = record(&mut p, Op::Source(v), &[]);
        let b = record(&mut p, Op::Transpose, &[a]);
        p.release(a);
        let e = p.extract(&[b]);
        assert_eq!((e.graph.nodes.len(), e.graph.roots.as_slice()), (2, [NodeId(1)].as_slice()));
        assert_eq!(p.disposable(&e.graph, &e.records), [v]);
        let w = p.new_value();
        assert_eq!(p.evaluated(b, w), [v]);
        assert_eq!(p.value(b), Some(w));
    }

    #[test]
    fn a_source_that_a_later_program_needs_is_not_disposable() {
        let mut p = Program::default();
        let v = p.new_value();
        let a = record(&mut p, Op::Source(v), &[]);
        let b = record(&mut p, Op::Transpose, &[a]);
        let c = record(&mut p, Op::Transpose, &[b]);
        let _later = record(&mut p, Op::Transpose, &[b]);
        p.release(a);
        p.release(b);
        let e = p.extract(&[c]);
        assert!(p.disposable(&e.graph, &e.records).is_empty());
    }

    #[test]
    fn an_observable_value_on_the_way_is_a_root() {
        let mut p = Program::default();
        let v = p.new_value();
        let a = record(&mut p, Op::Source(v), &[]);
        let b = record(&mut p, Op::Transpose, &[a]);
        let c = record(&mut p, Op::Transpose, &[b]);
        assert_eq!(p.extract(&[c]).graph.roots, [NodeId(2), NodeId(1)]);
        p.release(b);
        assert_eq!(p.extract(&[c]).graph.roots, [NodeId(2)]);
    }
    #[test]
    fn a_value_of_two_records_stays_while_either_does() {
        let mut p = Program::default();
        let v = p.new_value();
        let a = record(&mut p, Op::Source(v), &[]);
        let (b, c) = (record(&mut p, Op::Transpose, &[a]), record(&mut p, Op::Transpose, &[a]));
        let w = p.new_value();
        assert!(p.evaluated(b, w).is_empty() && p.evaluated(c, w).is_empty());
        let both = record(&mut p, Op::Merge, &[b, c]);
        let e = p.extract(&[both]);
        assert_eq!((e.graph.nodes.len(), &e.graph.nodes[1].inputs[..]), (2, &[NodeId(0); 2][..]), "one node for both");
        let d = record(&mut p, Op::Transpose, &[b]);
        assert!(p.release(b).is_empty(), "it is read");
        let e = p.extract(&[d]);
        assert!(p.disposable(&e.graph, &e.records).is_empty(), "the other record is the same value");
        assert!(p.release(d).is_empty() && p.refers_to(w));
        assert!(p.release(both).is_empty());
        assert_eq!(p.release(c), [w]);
    }
}
