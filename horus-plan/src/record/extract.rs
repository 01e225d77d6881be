//! Which operations an evaluation includes, and which of their values it keeps.
//!
//! An evaluation includes what its targets need, and keeps every value on the way that the user holds: it would
//! otherwise be computed again later. So would a value that nobody holds but that operations recorded and not taken
//! still read, and a running state (`state = f(state, frame)`, a value of it looked at now and then) would be computed
//! from its beginning each time, as each state is read by the next. Such a value *escapes*, and one of three things
//! happens:
//!
//! - Where everything that reads it ends in small values that the user holds (`counts.push(mask.sum())`), these are computed
//!   along with the targets, and the value is needed no longer. Values collected and looked at in the end, even the last one
//!   first, then need not have all images in memory at once.
//! - Else it is kept, as if the user held it, as long as its readers are recorded. Those recorded last come first, since all
//!   that follows is computed from them, and only as much as the bound on memory that recorded operations pin leaves.
//! - Beyond that, and where it is as quickly computed from a source as read, it is computed again.
//!
//! All of it takes time linear in the number of operations taken.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Record, RecordId, Recording};
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};

/// A value is small beside another that has so many times its bytes.
const SMALL: usize = 16;
/// Operations, and reads, looked at around one value that escapes: what ends in small values within fewer hangs off it.
const AROUND: usize = 64;
/// Pixel operations on one image that cost no more than reading their result: a conversion, a scale.
const QUICK: usize = 4;

/// A part of the program, ready to be planned.
#[derive(Debug)]
pub struct Extract {
    /// The operations; its roots are the targets, then what else is kept.
    pub graph: Graph<Op>,
    /// The record of each node.
    pub records: Vec<RecordId>,
}

/// Records that an evaluation takes, with all that they need.
#[derive(Default)]
struct Taken {
    records: BTreeSet<RecordId>,
    /// How often they read a record.
    reads: HashMap<RecordId, usize>,
}

impl Record {
    /// Whether it is recorded and not evaluated, and worth keeping.
    fn is_work(&self) -> bool {
        !matches!(self.op, Op::Source(_) | Op::Fill(_) | Op::Index(_))
    }
}

impl Recording {
    /// Every pending value that somebody can observe, but for those of steps.
    pub fn observable(&self) -> Vec<RecordId> {
        self.records
            .iter()
            .filter(|(_, r)| r.handles > 0 && r.is_work() && r.steps.is_empty())
            .map(|(id, _)| *id)
            .collect()
    }

    /// The operations that an evaluation of `targets` takes. At most `room` bytes are kept of values that the user does not
    /// hold.
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
        let mut kept: HashSet<RecordId> = HashSet::new();
        for &id in taken.records.iter().rev() {
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
        targets.iter().for_each(|t| {
            kept.remove(t);
        });
        self.as_graph(taken.records, targets, &kept)
    }

    fn as_graph(&self, taken: BTreeSet<RecordId>, targets: &[RecordId], kept: &HashSet<RecordId>) -> Extract {
        let mut graph = Graph::default();
        let mut nodes = HashMap::new();
        let mut sources: HashMap<ValueId, NodeId> = HashMap::new();
        let mut records = Vec::new();
        for id in taken {
            let r = &self.records[&id];
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
        graph.roots.extend((0..records.len()).filter(|i| kept.contains(&records[*i])).map(NodeId));
        Extract { graph, records }
    }

    /// Takes `wanted` and what they need; what was not taken before.
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

    /// Whether a value that is taken will be read afterwards, and nobody holds it.
    fn escapes(&self, taken: &Taken, id: RecordId) -> bool {
        let read = taken.reads.get(&id).copied().unwrap_or(0);
        self.records.get(&id).is_some_and(|r| r.is_work() && r.handles == 0 && r.readers > read)
    }

    /// The readers of a record that are not taken, in the order in which they were recorded.
    fn others(&self, taken: &Taken, id: RecordId) -> impl Iterator<Item = RecordId> {
        let all = self.reads.range((id, RecordId(0))..=(id, RecordId(u64::MAX))).map(|(_, reader)| *reader);
        all.filter(|reader| !taken.records.contains(reader))
    }

    /// The small values that the user holds, if all that reads `id` and is not taken ends in such, and takes little else.
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

    /// Whether a value is as quickly computed as read: by a few pixel operations on one source that is not larger.
    fn is_quick(&self, id: RecordId) -> bool {
        let Some(mut r) = self.records.get(&id) else { return false };
        let most = Self::bytes(r);
        for _ in 0..=QUICK {
            let one = match (&r.op, r.inputs.as_slice()) {
                (Op::Source(_) | Op::Fill(_) | Op::Index(_), _) => return Self::bytes(r) <= most,
                (Op::Pixel(..) | Op::Convert, [one]) => one,
                _ => return false,
            };
            match self.records.get(one) {
                Some(input) => r = input,
                None => return false,
            }
        }
        false
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
}
