//! Follows a plan step by step on one rank: its part of each image, the contents of its device, and the bytes
//! that steps move.

use super::finished::Plan;
use super::movement::{BLOCK, Link, movement, with_room};
use super::state::Placement;
use super::step::{Action, Band, ComputedRows, LaunchPart};
use crate::ir::graph::NodeId;
use horus_base::shape::Window;

/// The rows of each image on one rank, and the contents of its device's memory, after the steps so far.
pub(super) struct Follower<'a> {
    plan: &'a Plan,
    rank: usize,
    rows: Vec<usize>,
    on_device: Vec<bool>,
    /// For images that only one rank has: this rank.
    owner: Vec<Option<usize>>,
    /// Images that launches use in the host's memory.
    mapped: Vec<bool>,
    /// Bytes of temporary copies that launches read, with the launch.
    copies: Vec<(NodeId, usize)>,
    /// Bytes on the device now, and their peak.
    held: usize,
    pub(super) most: usize,
    /// Set if messages between ranks are computed.
    sent: bool,
}

impl<'a> Follower<'a> {
    /// Starts at the beginning of a plan, on rank `rank`. Messages between ranks are expensive to compute and are included
    /// only if `sent`.
    pub(super) fn new(plan: &'a Plan, rank: usize, sent: bool) -> Follower<'a> {
        let mut follower = Follower {
            plan,
            rank,
            rows: vec![0; plan.graph.nodes.len()],
            on_device: vec![false; plan.graph.nodes.len()],
            owner: vec![None; plan.graph.nodes.len()],
            mapped: vec![false; plan.graph.nodes.len()],
            copies: Vec::new(),
            held: 0,
            most: 0,
            sent,
        };
        for (i, state) in plan.initial.iter().enumerate() {
            let (Some(state), height) = (state, plan.graph.nodes[i].shape.height) else { continue };
            follower.rows[i] = match state.placement {
                Placement::Strips(halo) => with_room(follower.strip(height), halo, height).len(),
                Placement::On(_) | Placement::Replicated => height,
            };
            follower.owner[i] = state.placement.owner().filter(|_| plan.setting.partition.ranks() > 1);
            follower.on_device[i] = state.residency.device();
        }
        follower.held = (0..plan.graph.nodes.len()).map(|i| follower.on_device_of(NodeId(i))).sum();
        follower.most = follower.held;
        follower
    }

    fn strip(&self, height: usize) -> Window {
        self.plan.setting.partition.strip(self.rank, height)
    }

    /// Bytes of the rank's part of an image.
    fn bytes(&self, n: NodeId) -> usize {
        let node = self.plan.graph.node(n);
        self.rows[n.0] * node.shape.line() * node.shape.planes() * node.dtype.size()
    }

    /// Bytes of a band of `rows` rows of an image.
    fn bytes_of(&self, n: NodeId, band: Band, rows: usize) -> usize {
        let node = self.plan.graph.node(n);
        let rows = band.of(Window::whole(rows)).len();
        rows * node.shape.line() * node.shape.planes() * node.dtype.size()
    }

    /// Bytes of an image on the device.
    fn on_device_of(&self, n: NodeId) -> usize {
        if self.on_device[n.0] { self.bytes(n) } else { 0 }
    }

    /// The only rank that has an image, if there is one.
    pub(super) fn owner(&self, n: NodeId) -> Option<usize> {
        self.owner[n.0]
    }

    /// Returns `true` if the image of a step is on the device.
    pub(super) fn on_device(&self, action: Action) -> bool {
        self.on_device[action.node().0]
    }

    /// Returns `true` if launches use an image in the host's memory.
    pub(super) fn is_mapped(&self, n: NodeId) -> bool {
        self.mapped[n.0]
    }

    /// Bytes that all ranks together send in a step.
    fn sent(&self, action: Action, n: NodeId) -> Option<usize> {
        if !self.sent {
            return None;
        }
        let moved = movement(&self.plan.graph, &self.plan.setting.partition, action, self.owner[n.0], BLOCK);
        moved.map(|m| m.traffic(Link::default()).total.bytes)
    }

    /// Follows a step; returns the bytes that it moves, creates or frees.
    pub(super) fn step(&mut self, action: Action) -> Option<usize> {
        let before = self.on_device_of(action.node());
        let bytes = self.apply_action(action);
        self.held = self.held - before + self.on_device_of(action.node());
        self.most = self.most.max(self.held + self.copies.iter().map(|(_, b)| b).sum::<usize>());
        if let Action::Launch { node, part, .. } = action
            && part.ends()
        {
            self.copies.retain(|(reader, _)| *reader != node);
        }
        bytes
    }

    fn apply_action(&mut self, action: Action) -> Option<usize> {
        let (graph, unified) = (&self.plan.graph, self.plan.setting.unified);
        let height = |n: NodeId| graph.node(n).shape.height;
        match action {
            Action::Upload { node, band } => {
                self.on_device[node.0] = true;
                Some(self.bytes_of(node, band, self.rows[node.0]))
            }
            Action::UploadStrip { node, halo, band } => {
                self.rows[node.0] = with_room(self.strip(height(node)), halo, height(node)).len();
                self.on_device[node.0] = true;
                Some(self.bytes_of(node, band, self.rows[node.0]))
            }
            Action::Map(n) | Action::Unmap(n) => {
                self.mapped[n.0] = matches!(action, Action::Map(_));
                self.rows[n.0] = height(n);
                Some(self.bytes(n))
            }
            Action::Download(n) | Action::Deliver(n) => Some(self.bytes(n)),
            Action::Send { node, band } => {
                let rows = match self.plan.setting.has_shared_host() {
                    true => self.plan.hands_over(node, self.rank).len(),
                    // The rows of the gathered image if there are several ranks.
                    false => height(node).max(self.rows[node.0]),
                };
                let bytes = self.bytes_of(node, band, rows);
                if band.ends() {
                    self.copies.retain(|(n, _)| *n != node);
                }
                Some(bytes)
            }
            Action::Evict(n) | Action::Free(n) => {
                (self.on_device[n.0], self.mapped[n.0]) = (false, false);
                Some(self.bytes(n))
            }
            Action::Scatter { node, room, direct, .. } => {
                let sent = self.sent(action, node);
                self.rows[node.0] = with_room(self.strip(height(node)), room, height(node)).len();
                (self.on_device[node.0], self.owner[node.0]) = (direct || unified, None);
                sent
            }
            Action::Replicate { node, direct } => {
                let sent = self.sent(action, node);
                self.rows[node.0] = height(node);
                (self.on_device[node.0], self.owner[node.0]) = (direct || unified, None);
                sent
            }
            Action::Exchange { node, halo, .. } | Action::Begin { node, halo, .. } => {
                let rows = with_room(self.strip(height(node)), halo, height(node)).len();
                self.rows[node.0] = self.rows[node.0].max(rows);
                self.sent(action, node)
            }
            Action::Finish(_) => None,
            Action::Fetch { node, temp, rows, .. } => {
                let (reader, source) = (graph.node(temp.consumer), graph.node(node));
                let computed = rows.window(&self.plan.setting.partition, self.rank, reader.shape.height);
                let read = reader.op.footprint(temp.input, computed, reader.shape, source.shape).len();
                let row = source.shape.line() * source.shape.planes() * source.dtype.size();
                self.copies.push((temp.consumer, read * row));
                self.sent(action, node)
            }
            Action::Launch { node, rows, room, part } => {
                self.rows[node.0] = match rows {
                    ComputedRows::All => height(node),
                    ComputedRows::Strip(extend) => {
                        with_room(self.strip(height(node)), room.max(extend), height(node)).len()
                    }
                    ComputedRows::On(_) => rows.window(&self.plan.setting.partition, self.rank, height(node)).len(),
                };
                self.owner[node.0] = rows.placement().owner();
                self.on_device[node.0] = !self.mapped[node.0];
                Some(if let LaunchPart::Band(band) = part {
                    self.bytes_of(node, band, self.rows[node.0])
                } else {
                    self.bytes(node)
                })
            }
            Action::Sum(n) => {
                self.on_device[n.0] = unified;
                Some(2 * (self.plan.setting.partition.ranks() - 1) * self.bytes(n))
            }
            Action::Gather { node, band, direct } => {
                if direct && band.begins() {
                    self.copies.push((node, self.bytes_of(node, Band::WHOLE, height(node))));
                }
                self.sent(action, node)
            }
            Action::Collect(n) => {
                let sent = self.sent(action, n);
                self.rows[n.0] = height(n);
                (self.on_device[n.0], self.owner[n.0]) = (unified, Some(0));
                sent
            }
        }
    }
}
