//! Device memory: eviction of images when it is full.
//!
//! The planner knows the rest of the program, so it evicts the image that is read again last or never; among
//! equals, the image used least recently. An evicted image is copied to the host if the device has the only
//! copy, and an ordinary upload brings it back when it is read again.

use super::draft::PlanDraft;
use super::state::{Halo, Placement, StateEvent};
use super::step::{Action, ComputedRows};
use crate::ir::graph::NodeId;

/// The contents of the device's memory.
pub(super) struct Ledger {
    capacity: usize,
    used: usize,
    /// Bytes and time of last use of each image.
    held: std::collections::BTreeMap<NodeId, (usize, usize)>,
    clock: usize,
    /// Bytes of the temporary copies that launches read.
    temps: Vec<(NodeId, usize)>,
    /// Set if a launch is estimated to exceed the capacity.
    pub(super) overflown: bool,
    /// The first launch that certainly exceeds the capacity, and its bytes.
    pub(super) shortfall: Option<(NodeId, usize)>,
}

impl Ledger {
    pub(super) fn new(capacity: usize) -> Ledger {
        Ledger {
            capacity,
            used: 0,
            held: std::collections::BTreeMap::new(),
            clock: 0,
            temps: Vec::new(),
            overflown: false,
            shortfall: None,
        }
    }

    /// Bytes in use.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Returns `true` if a total of `bytes` bytes fits.
    pub(super) fn holds(&self, bytes: usize) -> bool {
        bytes <= self.capacity
    }

    fn hold(&mut self, id: NodeId, bytes: usize) {
        self.clock += 1;
        let before = self.held.insert(id, (bytes, self.clock)).map_or(0, |(b, _)| b);
        self.used = self.used - before + bytes;
        self.overflown |= self.used > self.capacity;
    }

    /// Records that launch `reader` needs at least `bytes` bytes at once.
    fn needs(&mut self, reader: NodeId, bytes: usize) {
        let most = match self.shortfall {
            None => self.capacity,
            Some((first, bytes)) if first == reader => bytes,
            Some(_) => return,
        };
        if bytes > most {
            self.shortfall = Some((reader, bytes));
        }
    }

    fn drop(&mut self, id: NodeId) {
        if let Some((bytes, _)) = self.held.remove(&id) {
            self.used -= bytes;
        }
    }
}

/// The pass: begins to track the device's memory, if it is limited, with the initial images.
pub(super) fn watch(draft: &mut PlanDraft<'_>) {
    draft.memory = draft.setting.capacity.filter(|_| !draft.setting.unified).map(Ledger::new);
    let there = |id: &NodeId| draft.states[id.0].is_some_and(|s| s.residency.device());
    let residents: Vec<NodeId> = (0..draft.graph.nodes.len()).map(NodeId).filter(there).collect();
    residents.into_iter().for_each(|id| draft.resized(id));
}

impl PlanDraft<'_> {
    /// Bytes of an image on the rank that has the largest part.
    fn bytes(&self, id: NodeId, rows: Option<ComputedRows>) -> usize {
        let node = self.graph.node(id);
        let placement = rows.map_or(self.state(id).placement, ComputedRows::placement);
        let height = match placement {
            Placement::On(_) | Placement::Replicated => node.shape.height,
            Placement::Strips(halo) => {
                let Halo { up, down, .. } = halo.max(self.demand.asked[id.0]);
                let partition = &self.setting.partition;
                let strip = (0..partition.ranks()).map(|r| partition.strip(r, node.shape.height).len()).max();
                strip.unwrap_or(0) + up + down
            }
        };
        height * node.shape.line() * node.shape.planes() * node.dtype.size()
    }

    /// Evicts images until `id` fits, but not the inputs of `reader`.
    pub(super) fn evict_for_image(&mut self, id: NodeId, rows: Option<ComputedRows>, reader: NodeId) {
        if self.memory.is_none() {
            return;
        }
        let bytes = self.bytes(id, rows);
        let needed = self.make_room_for(bytes, id, reader);
        if let Some(ledger) = &mut self.memory {
            ledger.hold(id, bytes);
            for i in needed.iter().filter(|i| **i != id) {
                if let Some((b, _)) = ledger.held.get(i).copied() {
                    ledger.hold(*i, b);
                }
            }
        }
        self.check_capacity(id, rows, reader);
    }

    /// Checks whether the available inputs of `reader` and `id` exceed the capacity even on the rank with the
    /// thinnest strips, which may have the smallest device. No margins of estimates are included.
    fn check_capacity(&mut self, id: NodeId, rows: Option<ComputedRows>, reader: NodeId) {
        let Some(ledger) = self.memory.as_ref().filter(|l| l.overflown) else { return };
        let mut needed = self.graph.node(reader).inputs.clone();
        needed.push(id);
        needed.sort_unstable();
        needed.dedup();
        let there = needed.into_iter().filter(|n| ledger.held.contains_key(n));
        let bytes = there.map(|n| self.least_bytes(n, rows.filter(|_| n == id))).sum();
        if let Some(ledger) = &mut self.memory {
            ledger.needs(reader, bytes);
        }
    }

    /// Bytes of an image on the rank that has the smallest part, without rows around its strip.
    fn least_bytes(&self, id: NodeId, rows: Option<ComputedRows>) -> usize {
        let node = self.graph.node(id);
        let partition = &self.setting.partition;
        let height = match rows.map_or(self.state(id).placement, ComputedRows::placement) {
            Placement::Replicated => node.shape.height,
            Placement::On(_) if self.ranks() == 1 => node.shape.height,
            Placement::On(_) => 0, // elsewhere
            Placement::Strips(_) => {
                (0..self.ranks()).map(|r| partition.strip(r, node.shape.height).len()).min().unwrap_or(0)
            }
        };
        height * node.shape.line() * node.shape.planes() * node.dtype.size()
    }

    /// Updates the bytes of `id` for its new placement.
    pub(super) fn resized(&mut self, id: NodeId) {
        let bytes = self.bytes(id, None);
        if let Some(ledger) = &mut self.memory {
            ledger.hold(id, bytes);
        }
    }

    /// Returns `true` if `bytes` bytes and image `id` fit after all images that `reader` does not read are
    /// evicted.
    pub(super) fn fits_beside(&self, id: NodeId, bytes: usize, reader: NodeId) -> bool {
        let Some(ledger) = &self.memory else { return true };
        let others = self.graph.node(reader).inputs.iter().filter(|i| **i != id);
        let others: usize = others.filter_map(|i| ledger.held.get(i)).map(|(b, _)| *b).sum();
        self.bytes(id, None) + others + ledger.temps.iter().map(|(_, b)| b).sum::<usize>() + bytes <= ledger.capacity
    }

    /// Returns `true` if `bytes` more bytes are free.
    pub(super) fn fits_now(&self, bytes: usize) -> bool {
        self.memory.as_ref().is_none_or(|l| l.used + bytes <= l.capacity)
    }

    /// Reserves memory for a copy that launch `reader` reads. The copy stays until that launch.
    pub(super) fn hold_temp(&mut self, bytes: usize, source: NodeId, reader: NodeId) {
        self.make_room_for(bytes, source, reader);
        if let Some(ledger) = &mut self.memory {
            ledger.temps.push((reader, bytes));
            ledger.used += bytes;
            ledger.overflown |= ledger.used > ledger.capacity;
        }
    }

    /// Frees the copies that launch `reader` read.
    pub(super) fn drop_temps(&mut self, reader: NodeId) {
        if let Some(ledger) = &mut self.memory {
            let used = &mut ledger.used;
            ledger.temps.retain(|(r, bytes)| {
                *used -= if *r == reader { *bytes } else { 0 };
                *r != reader
            });
        }
    }

    /// Bytes of an image placed by `rows`, on the rank that has the largest part.
    pub(super) fn bytes_as(&self, id: NodeId, rows: ComputedRows) -> usize {
        self.bytes(id, Some(rows))
    }

    /// Evicts images until `bytes` fit, on behalf of `id`. Returns the inputs of `reader`, which are not
    /// evicted.
    pub(super) fn make_room_for(&mut self, bytes: usize, id: NodeId, reader: NodeId) -> Vec<NodeId> {
        let mut needed: Vec<NodeId> = self.graph.node(reader).inputs.clone();
        needed.push(reader);
        while let Some(victim) = self.victim(bytes, &needed) {
            let why = format!("room is needed for {}", self.label(id));
            if !self.state(victim).residency.host() {
                self.step(Action::Download(victim), why.clone());
                self.event(victim, StateEvent::Downloaded);
            }
            self.step(Action::Evict(victim), why);
            let placement = self.state(victim).placement;
            self.event(victim, StateEvent::Placed(placement));
        }
        needed
    }

    /// The image to evict if `bytes` more do not fit and an image can be evicted.
    fn victim(&self, bytes: usize, needed: &[NodeId]) -> Option<NodeId> {
        let ledger = self.memory.as_ref()?;
        if ledger.used + bytes <= ledger.capacity {
            return None;
        }
        let now = needed.last().copied()?;
        let next_read =
            |id: &NodeId| self.lifetimes.readers[id.0].iter().find(|c| **c > now).map_or(usize::MAX, |c| c.0);
        let mut candidates: Vec<_> = ledger.held.iter().filter(|(id, _)| !needed.contains(id)).collect();
        candidates.sort_by_key(|(id, (_, used))| (std::cmp::Reverse(next_read(id)), *used));
        candidates.first().map(|(id, _)| **id)
    }

    /// Removes an image that is no longer on the device.
    pub(super) fn left_device(&mut self, id: NodeId) {
        if let Some(ledger) = &mut self.memory {
            ledger.drop(id);
        }
    }
}
