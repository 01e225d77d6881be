//! Construction of a schedule: a run of steps in a number of bands, and its predicted end.

use std::collections::HashMap;

use super::{BandLaunch, Board};
use crate::ir::graph::NodeId;
use crate::machine::{CopyTime, MachineProfile};
use crate::plan::predict::overlap;
use crate::plan::step::{Action, Band, LaunchPart};

/// Steps with their predicted total time.
pub(super) struct BandSchedule {
    pub(super) actions: Vec<Action>,
    pub(super) seconds: f64,
}

/// A schedule under construction: the steps so far, and their predicted end.
pub(super) struct ScheduleBuilder<'b, 'd, 'a> {
    board: &'b Board<'d, 'a>,
    count: u8,
    actions: Vec<Action>,
    /// Bands to upload, in order, with their times of arrival.
    bands: Vec<(NodeId, Band, f64)>,
    /// The number of these bands among the actions.
    uploaded: usize,
    /// The cut up to which each image is available.
    there: HashMap<NodeId, u8>,
    /// The cut up to which each result was sent.
    sent: HashMap<NodeId, u8>,
    /// The time when the host has issued all actions so far.
    host: f64,
    compute: f64,
    /// The times when bands of results can be sent, and the seconds of their copies.
    leaving: Vec<[f64; 2]>,
}

impl<'b, 'd, 'a> ScheduleBuilder<'b, 'd, 'a> {
    pub(super) fn new(board: &'b Board<'d, 'a>, count: u8) -> ScheduleBuilder<'b, 'd, 'a> {
        let mut builder = ScheduleBuilder {
            board,
            count,
            actions: Vec::new(),
            bands: Vec::new(),
            uploaded: 0,
            there: HashMap::new(),
            sent: HashMap::new(),
            host: 0.0,
            compute: 0.0,
            leaving: Vec::new(),
        };
        builder.bands = builder.upload_bands();
        // Images computed before the run are available.
        let made = |node: NodeId| {
            board.jobs.iter().any(|job| job.nodes.contains(&node))
                || board.uploads.iter().any(|(uploaded, _)| *uploaded == node)
        };
        builder.there.extend(board.sends.iter().filter(|(node, _)| !made(*node)).map(|(node, _)| (*node, Band::PARTS)));
        builder
    }

    /// The cut behind band `k`.
    fn cut(&self, k: u8) -> u8 {
        (usize::from(Band::PARTS) * usize::from(k) / usize::from(self.count)) as u8
    }

    /// Bands to upload, in order: images first read by the same launch alternate.
    fn upload_bands(&self) -> Vec<(NodeId, Band, f64)> {
        let first_reader = |n: NodeId| self.board.readers(n).next().map_or(usize::MAX, |(at, _)| at);
        let mut order: Vec<(usize, u8, usize)> = Vec::new();
        for (i, (node, _)) in self.board.uploads.iter().enumerate() {
            order.extend((0..self.count).map(|k| (first_reader(*node), k, i)));
        }
        order.sort_unstable();
        let mut over = 0.0;
        let bands = order.into_iter().map(|(_, k, i)| {
            let (node, bytes) = self.board.uploads[i];
            let copies = self.board.copies(node, self.count == 1);
            over += self.board.upload(bytes.div_ceil(usize::from(self.count)), copies);
            (node, Band { from: self.cut(k), to: self.cut(k + 1) }, over)
        });
        bands.collect()
    }

    /// Takes the first `n` bands of uploads.
    fn upload(&mut self, n: usize) {
        for &(node, band, _) in &self.bands[self.uploaded..n.max(self.uploaded)] {
            self.actions.push(self.board.uploading(node, band));
            self.there.insert(node, band.to);
            self.host += self.begun(|p| p.upload.pinned, self.board.copies(node, band.is_whole()));
        }
        self.uploaded = self.uploaded.max(n);
    }

    fn done(&self, node: NodeId) -> u8 {
        self.there.get(&node).copied().unwrap_or(0)
    }

    /// Computes a launch up to a cut, and sends the parts of results that are then available.
    fn launch(&mut self, job: &BandLaunch, to: u8) {
        let band = Band { from: self.done(job.nodes[0]), to };
        if band.from >= to {
            return;
        }
        let part = if band.is_whole() { LaunchPart::Whole } else { LaunchPart::Band(band) };
        for &node in &job.nodes {
            self.actions.push(Action::Launch { node, rows: job.rows, room: job.room, part });
            self.there.insert(node, to);
        }
        let ready = self.bands[..self.uploaded].last().map_or(0.0, |(.., over)| *over);
        let seconds = self.board.seconds(job, band);
        self.compute = self.compute.max(ready).max(self.host) + seconds;
        self.host += self.board.machine.slowest(|p| p.launch.host);
        if job.nodes.iter().any(|node| self.board.mapped.holds(*node)) {
            // Concurrent uploads slow down for stores to the host's memory.
            let start = self.compute - seconds;
            let later = self.bands[self.uploaded..].iter_mut().filter(|(.., over)| *over > start);
            later.for_each(|(.., over)| *over += seconds);
        }
        for &(node, bytes) in self.board.sends.iter().filter(|(node, _)| job.nodes.contains(node)) {
            self.send(node, bytes);
        }
    }

    /// Sends the available part of a result, unless it is too small.
    fn send(&mut self, node: NodeId, bytes: usize) {
        let band = Band {
            from: self.sent.get(&node).copied().unwrap_or(0),
            to: self.board.sendable_cut(node, self.done(node)),
        };
        let least = Band::PARTS / self.count;
        if band.from >= band.to || (band.to - band.from < least && !band.ends()) {
            return;
        }
        let share = bytes * usize::from(band.to - band.from) / usize::from(Band::PARTS);
        if self.board.gathered.contains(&node) {
            self.actions.push(Action::Gather { node, band, direct: true });
            self.compute += self.board.meeting(node, share);
        }
        self.actions.push(Action::Send { node, band });
        self.sent.insert(node, band.to);
        let copies = self.board.copies(node, band.is_whole());
        self.leaving.push([self.compute.max(self.host), self.board.download(share, copies)]);
        if !self.board.draft.setting.mappable.downloads_last {
            self.host += self.begun(|p| p.download.pinned, copies);
        }
    }

    /// Host seconds to begin consecutive copies.
    fn begun(&self, of: impl Fn(&MachineProfile) -> CopyTime, copies: usize) -> f64 {
        self.board.machine.slowest(|p| of(p).overhead + of(p).gap * (copies - 1) as f64)
    }

    /// The time when all results are on the host.
    fn left(&self) -> f64 {
        let uploads = [0.0, self.bands.last().map_or(0.0, |(.., over)| *over)];
        let slower = self.board.machine.slowest(|p| p.both_ways) - 1.0;
        let first = if self.board.draft.setting.mappable.downloads_last { self.host } else { 0.0 };
        self.leaving.iter().fold(first, |left: f64, [ready, seconds]| {
            let start = left.max(*ready);
            let end = start + seconds;
            end + slower * overlap([start, end], uploads)
        })
    }

    /// Schedules the work that is possible while bands arrive.
    fn while_uploading(&mut self, order: &[usize]) {
        let board = self.board;
        let least = Band::PARTS / self.count;
        // With one band, no launch begins before all uploads have arrived.
        while self.count > 1 && self.uploaded < self.bands.len() {
            let arrived = self.bands.iter().take_while(|(.., over)| *over <= self.compute).count();
            self.upload(arrived);
            if self.uploaded == self.bands.len() {
                return;
            }
            let chunk = order.iter().map(|j| &board.jobs[*j]).find_map(|job| {
                let done = self.done(job.nodes[0]);
                let to = board.possible(job, done, |n| self.done(n));
                (to > done && (to - done >= least || to == Band::PARTS)).then_some((job, to))
            });
            match chunk {
                Some((job, to)) => self.launch(job, to),
                // The next band, and the launches that it allows.
                None => self.compute = self.compute.max(self.bands[self.uploaded].2),
            }
        }
    }

    pub(super) fn run(mut self, tail: &[usize]) -> BandSchedule {
        let board = self.board;
        let order: Vec<usize> =
            (0..board.jobs.len()).filter(|j| !tail.contains(j)).chain(tail.iter().copied()).collect();
        let before: Vec<(NodeId, usize)> =
            board.sends.iter().copied().filter(|(node, _)| self.done(*node) == Band::PARTS).collect();
        before.into_iter().for_each(|(node, bytes)| self.send(node, bytes));
        self.while_uploading(&order);
        for j in &order[..order.len() - tail.len()] {
            // Inputs of later launches arrive while the earlier ones run.
            self.upload_for(&board.jobs[*j]);
            self.launch(&board.jobs[*j], Band::PARTS);
        }
        tail.iter().for_each(|j| self.upload_for(&board.jobs[*j]));
        for k in 1..=self.count {
            for (job, to) in self.targets(tail, self.cut(k)) {
                self.launch(job, to);
            }
        }
        self.upload(self.bands.len());
        for &(node, bytes) in &board.sends {
            self.send(node, bytes);
        }
        let uploaded = self.bands.last().map_or(0.0, |(.., over)| *over);
        let seconds = self.compute.max(self.left()).max(uploaded);
        BandSchedule { actions: with_frees(self.actions, board), seconds }
    }

    /// Uploads the inputs of a launch, and everything before them.
    fn upload_for(&mut self, job: &BandLaunch) {
        let read = |(node, ..): &(NodeId, Band, f64)| job.inputs.iter().any(|input| input.source == *node);
        if let Some(last) = self.bands.iter().rposition(read) {
            self.upload(last + 1);
        }
    }

    /// The cut that each launch of the tail must reach for the results to reach `cut`.
    fn targets(&self, tail: &[usize], cut: u8) -> Vec<(&'b BandLaunch, u8)> {
        let board = self.board;
        let mut targets: HashMap<usize, u8> = HashMap::new();
        for &j in tail.iter().rev() {
            let job = &board.jobs[j];
            let of_node = |node: NodeId| {
                let sent = board.sends.iter().any(|(sent, _)| *sent == node);
                let own = if sent || cut == Band::PARTS { board.required_cut(node, cut) } else { 0 };
                let read = board.readers(node).filter_map(|(at, reader)| {
                    let to = *targets.get(&at)?;
                    let of_it = reader.inputs.iter().filter(|input| input.source == node);
                    of_it.map(|input| board.needed(*input, to)).max()
                });
                read.fold(own, u8::max)
            };
            let most = job.nodes.iter().map(|node| of_node(*node)).max();
            targets.insert(j, most.unwrap_or(0));
        }
        tail.iter().map(|j| (&board.jobs[*j], targets[j])).collect()
    }
}

/// The steps, with each image freed after the last step that uses it.
fn with_frees(actions: Vec<Action>, board: &Board<'_, '_>) -> Vec<Action> {
    let mut last: HashMap<NodeId, usize> = HashMap::new();
    for (i, action) in actions.iter().enumerate() {
        match *action {
            Action::Launch { node, .. } => {
                // No step comes between the nodes of a launch.
                let after = board.jobs.iter().find_map(|job| job.nodes.iter().rev().position(|n| *n == node));
                let end = i + after.unwrap_or(0);
                last.insert(node, end);
                last.extend(board.draft.graph.node(node).inputs.iter().map(|source| (*source, end)));
            }
            Action::Upload { node, .. }
            | Action::UploadStrip { node, .. }
            | Action::Gather { node, .. }
            | Action::Send { node, .. } => {
                last.insert(node, i);
            }
            _ => {}
        }
    }
    let mut frees: HashMap<usize, Vec<NodeId>> = HashMap::new();
    let nowhere = actions.len().saturating_sub(1);
    for node in &board.frees {
        frees.entry(last.get(node).copied().unwrap_or(nowhere)).or_default().push(*node);
    }
    let each = actions.into_iter().enumerate();
    each.flat_map(|(i, action)| {
        let freed = frees.remove(&i).unwrap_or_default();
        std::iter::once(action).chain(freed.into_iter().map(Action::Free))
    })
    .collect()
}
