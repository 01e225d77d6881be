//! The recorded program of a session: exactly the operations whose results can still be observed.
//!
//! `Image<T>` is a handle to a *record* (operation, inputs, shape, type, call site). [`RecordedProgram`] knows whether a
//! handle can observe a record, and counts the records that read it. A record without handles and readers is dropped at
//! once, so a loop that overwrites `result = result.max(&x)` keeps alive only what the last `result` needs.
//!
//! An evaluation computes its target and every *observable* value on the way. `record/extract.rs` selects these.
//!
//! Design: `docs/design/recording.md`.

mod body;
mod extract;
mod stored;

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ir::graph::{Op, ValueId};
use horus_base::digest::Digest;
use horus_base::dtype::DType;
use horus_base::error::{RecordedCall, SourceLine};
use horus_base::shape::Shape;

pub use body::LoopBody;
pub use extract::Extract;

/// Identifies a recorded operation. Later operations have greater ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(u64);

/// A hash table with numbers as keys.
type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<Digest>>;

/// The index of a record in memory.
type RecordSlot = usize;

#[derive(Debug)]
struct OperationRecord {
    id: RecordId,
    op: Op,
    inputs: Vec<RecordSlot>,
    shape: Shape,
    dtype: DType,
    site: RecordedCall,
    /// Set if handles can observe the value.
    has_handle: bool,
    /// Number of reads by other records.
    readers: usize,
    /// The loop bodies of which it is part: it is their placeholder or depends on one.
    steps: Vec<RecordId>,
}

/// Recorded operations. Records without handles and readers are dropped at once.
#[derive(Debug, Default)]
pub struct RecordedProgram {
    /// The slot of each record. Records refer to others by slot, so that programs are walked without
    /// searches.
    records: ByNumber<RecordId, RecordSlot>,
    slots: Vec<Option<OperationRecord>>,
    /// Slots without a record.
    free: Vec<RecordSlot>,
    /// Number of records with each value; several if equal operations were merged.
    values: ByNumber<ValueId, usize>,
    /// Number of recorded operations that are not evaluated, without those of loop bodies.
    pending: usize,
    /// Loop bodies with an evaluated record.
    looked_into: BTreeSet<RecordId>,
    /// Sources without handles that pending operations read.
    pinned: BTreeSet<RecordId>,
    pinned_bytes: usize,
}

/// Numbers records and values without a lock.
#[derive(Debug, Default)]
pub struct Numbering {
    records: AtomicU64,
    values: AtomicU64,
}

impl Numbering {
    /// A new number for a record.
    pub fn record(&self) -> RecordId {
        RecordId(self.records.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A new name for a value.
    pub fn value(&self) -> ValueId {
        ValueId(self.values.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl RecordedProgram {
    fn at(&self, id: RecordId) -> Option<&OperationRecord> {
        self.slots[*self.records.get(&id)?].as_ref()
    }

    fn at_mut(&mut self, id: RecordId) -> Option<&mut OperationRecord> {
        self.slots[*self.records.get(&id)?].as_mut()
    }

    /// Appends an operation, with a handle. Its number must be greater than the numbers of its inputs, which
    /// must have handles or readers.
    pub fn record(
        &mut self,
        id: RecordId,
        op: Op,
        inputs: &[RecordId],
        (shape, dtype): (Shape, DType),
        site: impl Into<RecordedCall>,
    ) {
        let (mut steps, mut read) = (Vec::new(), Vec::with_capacity(inputs.len()));
        for slot in inputs.iter().filter_map(|i| self.records.get(i)) {
            if let Some(r) = &mut self.slots[*slot] {
                r.readers += 1;
                read.push(*slot);
                for step in &r.steps {
                    if !steps.contains(step) {
                        steps.push(*step);
                    }
                }
            }
        }
        match op {
            Op::Source(v) => *self.values.entry(v).or_default() += 1,
            _ => self.pending += usize::from(steps.is_empty()),
        }
        let (inputs, call) = (read, site.into());
        let method = call.method.or(Some(op.kind()));
        let site = RecordedCall { record: id.0, method, ..call };
        let record = Some(OperationRecord { id, op, inputs, shape, dtype, site, has_handle: true, readers: 0, steps });
        let slot = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(slot) {
            Some(room) => *room = record,
            None => self.slots.push(record),
        }
        self.records.insert(id, slot);
    }

    /// Makes an operation without readers a placeholder of a loop body, which is recorded once and run
    /// repeatedly. The placeholder and all records that depend on it are evaluated only on observation: they
    /// are needed as recorded, whatever is evaluated meanwhile. The number of the loop body must be smaller
    /// than those of its records.
    pub fn begin_step(&mut self, step: RecordId, id: RecordId) {
        if let Some(r) = self.at_mut(id) {
            let pending = r.steps.is_empty() && !matches!(r.op, Op::Source(_));
            r.steps.push(step);
            self.pending -= usize::from(pending);
        }
    }

    /// Makes a placeholder that converts nothing an alias of the value that it reads.
    pub fn end_stand_in(&mut self, id: RecordId) {
        let input = self.at(id).and_then(|r| r.inputs.first()).and_then(|i| self.slots[*i].as_ref());
        let Some((Op::Source(v), site)) = input.map(|input| (input.op.clone(), input.site)) else { return };
        *self.values.entry(v).or_default() += 1;
        let Some(r) = self.at_mut(id) else { return };
        (r.op, r.site) = (Op::Source(v), site);
        let (inputs, mut check) = (std::mem::take(&mut r.inputs), Vec::new());
        self.unread(&inputs, &mut check);
        self.drop_unreferenced(check, &mut Vec::new()); // no value is dropped: this record refers to it
    }

    /// Ends a loop body: its remaining records become ordinary records.
    pub fn end_step(&mut self, step: RecordId) {
        self.looked_into.remove(&step);
        for r in self.slots.iter_mut().flatten().filter(|r| r.id >= step) {
            let Some(at) = r.steps.iter().position(|s| *s == step) else { continue };
            r.steps.remove(at);
            self.pending += usize::from(r.steps.is_empty() && !matches!(r.op, Op::Source(_)));
        }
    }

    /// Returns `true` for records of loop bodies that are not evaluated.
    pub fn in_step(&self, id: RecordId) -> bool {
        self.at(id).is_some_and(|r| !r.steps.is_empty())
    }

    /// Returns `true` if a record of the loop body was observed, so that the body is no longer as recorded.
    pub fn looked_into(&self, step: RecordId) -> bool {
        self.looked_into.contains(&step)
    }

    /// Sets the source line of a record and of all records on which it depends that have none.
    pub fn recorded_at(&mut self, id: RecordId, line: SourceLine) {
        let mut open: Vec<RecordSlot> = self.records.get(&id).copied().into_iter().collect();
        while let Some(slot) = open.pop() {
            if let Some(r) = &mut self.slots[slot]
                && r.site.line.is_none()
            {
                r.site.line = Some(line);
                open.extend(&r.inputs);
            }
        }
    }

    /// Number of recorded operations that are not evaluated, without those of loop bodies.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Bytes of images that only pending operations keep alive.
    pub fn pinned_bytes(&self) -> usize {
        self.pinned_bytes
    }

    /// The value of an evaluated record.
    pub fn value(&self, id: RecordId) -> Option<ValueId> {
        match self.at(id)?.op {
            Op::Source(v) => Some(v),
            _ => None,
        }
    }

    /// Drops the handles of a record. Returns the values that became unreferenced.
    pub fn release(&mut self, id: RecordId) -> Vec<ValueId> {
        let mut dropped = Vec::new();
        if let Some(&slot) = self.records.get(&id)
            && let Some(r) = &mut self.slots[slot]
        {
            r.has_handle = false;
            // A record that has readers but no value yet stays unchanged: this is the case for most of a
            // program.
            if r.readers == 0 || matches!(r.op, Op::Source(_)) {
                self.drop_unreferenced(vec![slot], &mut dropped);
            }
        }
        dropped
    }

    fn bytes(r: &OperationRecord) -> usize {
        r.shape.len() * r.dtype.size()
    }

    fn drop_unreferenced(&mut self, mut check: Vec<RecordSlot>, dropped: &mut Vec<ValueId>) {
        while let Some(slot) = check.pop() {
            let Some(r) = self.slots[slot].as_ref().filter(|r| !r.has_handle) else { continue };
            if r.readers > 0 {
                if matches!(r.op, Op::Source(_)) && self.pinned.insert(r.id) {
                    self.pinned_bytes += Self::bytes(r);
                }
                continue;
            }
            let Some(r) = self.slots[slot].take() else { continue };
            self.records.remove(&r.id);
            self.free.push(slot);
            match r.op {
                Op::Source(v) => {
                    if self.pinned.remove(&r.id) {
                        self.pinned_bytes -= Self::bytes(&r);
                    }
                    dropped.extend(self.refer_no_longer(v));
                }
                _ => self.pending -= usize::from(r.steps.is_empty()),
            }
            self.unread(&r.inputs, &mut check);
        }
    }

    /// Removes one reference of a record to this value; returns the value if it was the last.
    fn refer_no_longer(&mut self, value: ValueId) -> Option<ValueId> {
        let count = self.values.get_mut(&value)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        self.values.remove(&value);
        Some(value)
    }

    fn unread(&mut self, inputs: &[RecordSlot], check: &mut Vec<RecordSlot>) {
        for i in inputs {
            if let Some(p) = &mut self.slots[*i] {
                p.readers -= 1;
                if p.readers == 0 {
                    check.push(*i);
                }
            }
        }
    }

    /// Returns `true` if some record has this value.
    pub fn refers_to(&self, value: ValueId) -> bool {
        self.values.contains_key(&value)
    }

    /// Marks a record as evaluated to `value` and drops its inputs. Returns the values that became
    /// unreferenced.
    pub fn evaluated(&mut self, id: RecordId, value: ValueId) -> Vec<ValueId> {
        let mut dropped = Vec::new();
        let Some(&slot) = self.records.get(&id) else { return dropped };
        let mut check = vec![slot];
        if let Some(r) = &mut self.slots[slot] {
            let before = std::mem::replace(&mut r.op, Op::Source(value));
            let (inputs, steps) = (std::mem::take(&mut r.inputs), std::mem::take(&mut r.steps));
            *self.values.entry(value).or_default() += 1;
            match before {
                Op::Source(v) => dropped.extend(self.refer_no_longer(v)),
                _ => self.pending -= usize::from(steps.is_empty()),
            }
            self.looked_into.extend(steps);
            self.unread(&inputs, &mut check);
        }
        self.drop_unreferenced(check, &mut dropped);
        dropped
    }
}

#[cfg(test)]
mod tests;
