//! Iterations of a loop in blocks: each rank computes its rectangles.
//!
//! For each rectangle a rank computes the restricted program of the step, which has the same bits as the whole, in a
//! session of its own ([`Session::alone`]). An input of that program is a *frame*: the rectangle that it reads, which
//! stays on the device. After each iteration, results are copied to the frames that contain parts of them, here and, in
//! one message for each pair, on other ranks. The state comes from its placement before the loop and returns to strips.
//! The design is in `docs/design/loops.md`.

pub(crate) mod contraction;
mod exchange;
mod rectangles;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::comm::agree::{agree, claim};
use crate::device::{Device, DownloadStart, Geometry};
use crate::dtype::DType;
use crate::error::{DeviceError, Error, Result};
use crate::execute::{ExecutionOutcome, FailedExecution};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::machine::Machine;
use crate::plan::ResultDelivery;
use crate::plan::movement::Load;
use crate::plan::state::{Halo, Placement};
use crate::record::LoopBody;
use crate::region::{CropRule, Rect, RegionSupply, RestrictedGraph, required_regions, restrict};
use crate::session::blocks::{BlockMap, BlockRoutes, BufferRect, RankRect, both, moved, turns};
use crate::session::cache::{CachedPlan, PlanRequest};
use crate::session::devices::Engine;
use crate::session::engine::blocks::exchange::{DeviceRectangle, downloaded, lost};
use crate::session::engine::blocks::rectangles::RectangleWork;
use crate::session::engine::failure::EvaluationError;
use crate::session::images::image::StoredImage;
use crate::session::{Session, SessionState};
use crate::shape::{Shape, Window};

/// An image that the steps read: an image of the state, or one that does not change.
struct BlockInput {
    node: NodeId,
    /// Its index in the state.
    slot: Option<usize>,
    /// Image of the session; several inputs may have the same.
    of: ValueId,
    shape: Shape,
    dtype: DType,
}

/// Names the frames and numbers of a rectangle's program.
struct FrameNames<'a> {
    state: &'a mut SessionState,
    /// Image of the step, rectangle, and name of the frame.
    found: Vec<(ValueId, Rect, ValueId)>,
}

impl RegionSupply for FrameNames<'_> {
    fn source(&mut self, value: ValueId, region: Rect) -> Option<ValueId> {
        let name = self.state.names.value();
        self.found.push((value, region, name));
        Some(name)
    }

    fn number(&mut self, n: i32) -> Option<ValueId> {
        let name = self.state.names.value();
        let pixel = Some(HostBuffer::from_slice(&[n]));
        self.state.images.give(name, Shape::new(1, 1, 1), DType::I32, pixel, Placement::Replicated);
        Some(name)
    }
}

/// Program of one rectangle of this rank.
struct RectangleProgram {
    graph: Graph<Op>,
    /// Region of each root, in the coordinates of the program: at least the pixels that belong to the rectangle.
    roots: Vec<Rect>,
    /// Frame of each input that the program reads.
    frames: Vec<Option<(ValueId, Rect)>>,
    /// The plan, once it is made.
    ready: Cell<Option<(PlanRequest, CachedPlan)>>,
}

/// Iterations in blocks.
struct BlockSteps<'a> {
    session: &'a Session,
    device: &'a dyn Device,
    /// Session and engine that compute the rectangles of this rank, on the same device.
    alone: (&'a Session, &'a Engine),
    map: &'a BlockMap,
    graph: Graph<Op>,
    inputs: Vec<BlockInput>,
    /// Shapes and types of the state.
    kinds: &'a [(Shape, DType)],
    /// Rectangles of all ranks.
    rects: Vec<(usize, Rect)>,
    /// `true`, for rows and for columns, if the program may be shifted cyclically.
    turns: [bool; 2],
    /// Programs of this rank's rectangles.
    locals: Vec<Option<RectangleProgram>>,
}

impl Session {
    /// Computes loops over planes of a map's shape in its blocks from now on. Each rank computes its blocks, and blocks
    /// without a rank if that makes its rectangles fewer and larger. Other programs, and loops over other shapes, are
    /// computed in strips. `None` ends this. Results have the same bits, except for loops that a map
    /// [relaxes](BlockMap::relaxed). Collective.
    ///
    /// A block that is left out keeps the pixels that the state has before the loop. A step must not change them; a
    /// step that masks land does not. This is checked once for each loop. A loop whose step reduces whole planes that
    /// depend on the state is computed in strips, with a warning that names the operation. An iteration after which the
    /// change is measured ([`Until`](crate::image::Until)) is also computed in strips.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// // Heat in the west of a plate of 16 x 32 pixels.
    /// let warm = Image::<i32>::index(&session, Shape::new(16, 32, 1), Axis::Columns).lt(8);
    /// let hot = warm.select(100.0, Image::<f32>::zeros(&session, (16, 32)));
    /// let step = |u: &Image<f32>| warm.select(u.gauss(1.0), 0.0);
    /// let whole = session.iterate(hot.clone(), 10, step)?;
    ///
    /// session.place(BlockMap::new((16, 32), (8, 8), [Some(0), None, None, None].repeat(2))?)?;
    /// let blocks = session.iterate(hot, 10, step)?; // computes a quarter of the plate
    /// assert_eq!(blocks.state.to_vec()?, whole.state.to_vec()?);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] if a block is given to a rank that does not exist;
    /// [`Error::Communication`] if another rank failed, left, or has another map;
    /// [`Error::Reentry`] during an evaluation on this thread.
    pub fn place(&self, map: impl Into<Option<BlockMap>>) -> Result<()> {
        let map = map.into();
        if let Some(map) = &map
            && map.last_rank() >= self.ranks()
        {
            let (ranks, last) = (self.ranks(), map.last_rank());
            return Err(Error::Config(format!("a map of blocks names rank {last}, and the session has {ranks}")));
        }
        let mut state = self.lock("placing blocks")?;
        let text = map.as_ref().map_or("placing no blocks".into(), |map| format!("placing {map}"));
        let claim = claim(&text, &map);
        agree(&*self.0.comm, claim.digest, || vec![claim])?;
        state.blocks = map.map(|map| (map.into(), None));
        Ok(())
    }

    /// Reason why a loop cannot be computed in blocks, if there is one.
    pub(crate) fn not_in_blocks(engine: &Engine, step: &Graph<Op>, state: &[ValueId]) -> Option<String> {
        if engine.device_count() > 1 {
            return Some(format!("the session computes on {} devices of one process", engine.device_count()));
        }
        let mut depends: Vec<bool> = Vec::with_capacity(step.nodes.len());
        for node in &step.nodes {
            depends.push(match &node.op {
                Op::Source(v) => state.contains(v),
                _ => node.inputs.iter().any(|i| depends[i.0]),
            });
            let Op::Whole(operation) = &node.op else { continue };
            for (k, input) in node.inputs.iter().enumerate().filter(|(_, i)| depends[i.0]) {
                let of = step.node(*input).shape;
                let read = operation.reads(k, Rect::at(0, 0, 1, 1), of);
                if of.area() > 1 && read.border.is_none() && read.rect == Rect::whole(of) {
                    let (name, site) = (node.op.name(), node.site);
                    return Some(format!("{name} (recorded at {site}) reads a whole plane in each step"));
                }
            }
        }
        None
    }

    /// Computes the state after `steps` iterations in blocks, from the state `now`. A `check` computes exactly those
    /// blocks and is not explained. The names of the results are the same on all ranks.
    pub(crate) fn run_in_blocks(
        &self,
        state: &mut SessionState,
        alone: (&Session, &Engine),
        (body, kinds): (&LoopBody, &[(Shape, DType)]),
        (map, begin, steps): (&BlockMap, &[ValueId], usize),
        check: bool,
    ) -> Result<Vec<ValueId>, EvaluationError> {
        let mut now = begin.to_vec();
        // A relaxed loop does not recompute what other ranks compute.
        let most = if map.age().is_some() { 1 } else { map.steps().min(steps) };
        for (once, times) in [(most, steps / most), (steps % most, 1)] {
            if once > 0 {
                let all = BlockSteps::new((self, alone), state, (body, kinds), (map, &now, once), check)?;
                if !check {
                    all.explain()?;
                }
                let then = all.run(state, &now, times);
                // Only plans remain there.
                alone.0.acquire().images.in_memory.clear();
                let before = std::mem::replace(&mut now, then?);
                if before != begin {
                    state.images.forget(before);
                }
            }
        }
        Ok(now)
    }

    /// Position of the first pixel of the state, image by image, that differs between two runs in blocks, on any rank.
    pub(crate) fn first_difference(
        &self,
        state: &SessionState,
        (engine, map): (&Engine, &BlockMap),
        [before, after]: [&[ValueId]; 2],
    ) -> Result<Option<usize>, EvaluationError> {
        const NONE: u64 = u64::MAX;
        let device = &*engine.device;
        let bytes_of = |v: &ValueId| -> Result<(Geometry, HostBuffer), DeviceError> {
            let image = state.images.in_memory.get(v).ok_or_else(|| lost("an image of the state"))?;
            Ok((image.geometry, downloaded(device, &DeviceRectangle::share_or_copy(device, image)?.memory)?))
        };
        let (mut first, mut pixels) = (NONE, 0);
        for (a, b) in before.iter().zip(after) {
            let failed = |source| self.in_blocks_failed(source);
            let (Geometry { shape, dtype, window }, old) = bytes_of(a).map_err(failed)?;
            let (_, new) = bytes_of(b).map_err(failed)?;
            let differ = old.bytes().iter().zip(new.bytes()).position(|(a, b)| a != b);
            if let (Some(at), NONE, true) = (differ, first, map.divides(shape)) {
                let at = at / dtype.size();
                let (row, rows) = (at / shape.line(), window.len());
                let row = row / rows * shape.height + row % rows + window.start.unsigned_abs();
                first = (pixels + row * shape.line() + at % shape.line()) as u64;
            }
            pixels += shape.len();
        }
        let all = self
            .0
            .comm
            .gather(first)
            .map_err(|e| EvaluationError::DuringExecution(e.during(self.rank(), "a loop in blocks")))?;
        Ok(all.into_iter().min().filter(|first| *first != NONE).map(|first| first as usize))
    }
}

impl<'a> BlockSteps<'a> {
    fn new(
        (session, alone): (&'a Session, (&'a Session, &'a Engine)),
        state: &SessionState,
        (body, kinds): (&LoopBody, &'a [(Shape, DType)]),
        (map, now, once): (&'a BlockMap, &[ValueId], usize),
        check: bool,
    ) -> Result<BlockSteps<'a>, EvaluationError> {
        // Images of the state may be one image at first, and differ after a step.
        let slots: Vec<ValueId> = now.iter().map(|_| state.names.value()).collect();
        let graph = body.unrolled(&slots, once, false);
        // In a relaxed loop each block continues with the results of the others.
        let machine = session.engine().filter(|_| map.age().is_none() && !check).map(|engine| &engine.machine);
        let turns = turns(&graph, map.plane());
        let joined = |machine: &Arc<Machine>| map.over_land(&RectangleWork::new(&graph, map, turns, machine));
        let rects = machine.map_or_else(|| map.rectangles(), joined);
        let claim = {
            let nodes: Vec<_> = graph.nodes.iter().map(|n| (&n.op, &n.inputs, n.shape, n.dtype)).collect();
            claim("a loop in blocks", &(map, once, nodes, &graph.roots, &rects))
        };
        agree(&*session.0.comm, claim.digest, || vec![claim]).map_err(EvaluationError::DuringExecution)?;
        let input = |(node, n): (NodeId, &Node<Op>)| {
            let Op::Source(v) = n.op else { return None };
            let slot = slots.iter().position(|s| *s == v);
            Some(BlockInput { node, slot, of: slot.map_or(v, |i| now[i]), shape: n.shape, dtype: n.dtype })
        };
        let inputs = graph.iter().filter_map(input).collect();
        let (device, locals) = (&*alone.1.device, Vec::new());
        let mut all = BlockSteps { session, device, alone, map, graph, inputs, kinds, rects, turns, locals };
        let mut own = alone.0.acquire();
        all.locals = (0..all.rects.len()).map(|c| all.local(&mut own, c)).collect();
        let nodes = |local: &Option<RectangleProgram>| local.as_ref().map_or(0, |local| local.graph.nodes.len());
        own.plans.hold(all.locals.len(), all.locals.iter().map(nodes).sum());
        drop(own);
        Ok(all)
    }

    /// Coordinates in the program of rectangle `c` minus coordinates in images of shape `of`. With periodic axes the
    /// rectangle is in the middle, so it reads nothing beyond an edge unless it is nearly as long as the axis.
    fn turn(&self, c: usize, of: Shape) -> [isize; 2] {
        let (plane, Rect { rows, columns }) = (self.map.plane(), self.rects[c].1);
        let middle = |w: Window, n: usize| (n.cast_signed() - w.len().cast_signed()) / 2 - w.start;
        let [y, x] = [middle(rows, plane.0), middle(columns, plane.1)];
        let turned = [self.turns[0] && of.height == plane.0, self.turns[1] && of.width == plane.1];
        [if turned[0] { y } else { 0 }, if turned[1] { x } else { 0 }]
    }

    /// Regions of the state that belong to rectangle `c`, in the coordinates of its program. Images of another shape,
    /// such as numbers, are computed whole for each rectangle.
    fn roots(&self, c: usize) -> Vec<Rect> {
        let of = |shape| {
            if self.map.divides(shape) { moved(self.rects[c].1, self.turn(c, shape)) } else { Rect::whole(shape) }
        };
        self.kinds.iter().map(|(shape, _)| of(*shape)).collect()
    }

    /// Program of a rectangle, on its rank.
    fn local(&self, state: &mut SessionState, c: usize) -> Option<RectangleProgram> {
        if self.rects[c].0 != self.session.rank() {
            return None;
        }
        let mut supply = FrameNames { state, found: Vec::new() };
        let RestrictedGraph { graph, roots } = restrict(&self.graph, &self.roots(c), CropRule::Never, &mut supply);
        let found = supply.found;
        let frame = |input: &BlockInput| {
            let Op::Source(value) = self.graph.node(input.node).op else { return None };
            found.iter().find(|(v, ..)| *v == value).map(|(_, rect, name)| (*name, *rect))
        };
        let frames = self.inputs.iter().map(frame).collect();
        Some(RectangleProgram { graph, roots, frames, ready: Cell::default() })
    }

    /// Pixels that the rectangles' programs read, of inputs to which `image` gives a number. Each rectangle has a
    /// buffer for each input.
    fn needed(&self, image: impl Fn(&BlockInput) -> Option<usize>) -> Vec<RankRect> {
        let mut all = Vec::new();
        for (c, (rank, _)) in self.rects.iter().enumerate() {
            let read = required_regions(&self.graph, &self.roots(c));
            for (i, input) in self.inputs.iter().enumerate() {
                if let (Some(image), Some(rect)) = (image(input), read[input.node.0]) {
                    let buffer = c * self.inputs.len() + i;
                    let at = RankRect { rank: Some(*rank), image, rect, buffer, turn: [0; 2] };
                    all.extend(at.turned(self.turn(c, input.shape), input.shape));
                }
            }
        }
        all
    }

    /// Pixels that the ranks compute, by rectangle and image of the state.
    fn computed(&self) -> Vec<RankRect> {
        let mut all = Vec::new();
        for (c, (rank, _)) in self.rects.iter().enumerate() {
            for (image, (rect, (shape, _))) in self.roots(c).into_iter().zip(self.kinds).enumerate() {
                // Images that every rectangle computes are taken from the first one.
                if self.map.divides(*shape) || c == 0 {
                    let buffer = c * self.kinds.len() + image;
                    let at = RankRect { rank: Some(*rank), image, rect, buffer, turn: [0; 2] };
                    all.extend(at.turned(self.turn(c, *shape), *shape));
                }
            }
        }
        all
    }

    /// Computed pixels that belong to blocks; land keeps the pixels from before the loop.
    fn of_blocks(&self, computed: &[RankRect]) -> Vec<RankRect> {
        let blocks = self.map.rectangles();
        let part = |at: &RankRect| {
            let own = blocks.iter().filter(|(rank, _)| at.rank == Some(*rank)).map(|(_, rect)| both(*rect, at.rect));
            match self.map.divides(self.kinds[at.image].0) {
                true => own.filter(|rect| !rect.is_empty()).map(|rect| RankRect { rect, ..*at }).collect(),
                false => vec![*at],
            }
        };
        computed.iter().flat_map(part).collect()
    }

    /// Strips of an image.
    fn strips(&self, image: usize, shape: Shape) -> impl Iterator<Item = RankRect> {
        let partition = &self.session.0.partition;
        (0..self.session.ranks()).map(move |rank| {
            let rect = Rect { rows: partition.strip(rank, shape.height), ..Rect::whole(shape) };
            RankRect { rank: Some(rank), image, rect, buffer: 0, turn: [0; 2] }
        })
    }

    /// Strips of the state, with one buffer for each image from number `first` on.
    fn results(&self, first: usize, image: impl Fn(usize) -> usize) -> Vec<RankRect> {
        let of = |(slot, (shape, _)): (usize, &(Shape, DType))| {
            self.strips(image(slot), *shape).map(move |at| RankRect { buffer: first + slot, ..at })
        };
        self.kinds.iter().enumerate().flat_map(of).collect()
    }

    /// Runs the program of the iterations `times` times.
    fn run(&self, state: &mut SessionState, now: &[ValueId], times: usize) -> Result<Vec<ValueId>, EvaluationError> {
        let failed = |source| self.session.in_blocks_failed(source);
        let (mut strips, begun) = self.begin(state, now)?;
        let images = self.kinds.len();
        let computed = self.computed();
        let rank = self.session.rank();
        let around = BlockRoutes::of(rank, &computed, &self.needed(|input| input.slot));
        let out = BlockRoutes::of(rank, &self.of_blocks(&computed), &self.results(0, |slot| slot));
        let mut alone = self.alone.0.acquire();
        let alone = &mut *alone;
        let mut moved = begun;
        let mut count = |load: Load| {
            moved.messages += load.messages;
            moved.bytes += load.bytes;
        };
        let relaxed = self.map.age().is_some();
        // Rectangles with pixels for other ranks are computed first, and their pixels are sent while the rest is
        // computed. In relaxed loops blocks read each other's new pixels.
        let is_first = |c: &usize| relaxed || around.sent.values().flatten().any(|(h, _)| h / images == *c);
        let (first, rest): (Vec<usize>, Vec<usize>) = (0..self.locals.len()).partition(is_first);
        let bytes = |n: usize, rect: Rect| {
            let BlockInput { shape, dtype, .. } = self.inputs[n % self.inputs.len()];
            Some(rect.area() * shape.planes() * shape.pixel_bytes(dtype))
        };
        // Relaxed loops wait for messages `age` exchanges later, so the last messages are not sent.
        let (every, age) = self.map.age().map_or((1, 0), |age| (self.map.steps(), age));
        let late_by = age.saturating_mul(every);
        let mut late = VecDeque::new();
        for time in 1..=times {
            let mut results: Vec<Vec<DeviceRectangle>> = self.locals.iter().map(|_| Vec::new()).collect();
            for &c in &first {
                let Some(local) = &self.locals[c] else { continue };
                results[c] = self.compute(alone, local)?;
                if relaxed {
                    self.copy_here(alone, &around, &results, |rectangle| rectangle == c)?;
                }
            }
            if time % every == 0 && time.saturating_add(late_by) < times {
                let from = |h: usize| results[h / images].get(h % images);
                let (messages, load) = self.session.send(self.device, &around, &from, &bytes)?;
                count(load);
                late.push_back(messages);
            }
            for &c in &rest {
                let Some(local) = &self.locals[c] else { continue };
                results[c] = self.compute(alone, local)?;
            }
            let from = |h: usize| results[h / images].get(h % images);
            if time == times {
                count(self.session.redistribute(self.device, &out, &from, &mut strips)?);
                break;
            }
            if !relaxed {
                self.copy_here(alone, &around, &results, |_| true)?;
            }
            if time % every == 0 && time / every > age {
                let messages = late.pop_front().flatten();
                let there = around.received.values().flatten();
                let mut frames = self.take_frames(alone, there).map_err(failed)?;
                self.session.receive(self.device, &around, messages, &mut frames)?;
                self.give_frames(alone, frames);
            }
        }
        for (request, planned) in self.locals.iter().flatten().filter_map(|local| local.ready.take()) {
            alone.plans.put(request, planned);
        }
        state.stats.sent.messages += moved.messages;
        state.stats.sent.bytes += moved.bytes;
        state.stats.add(&std::mem::take(&mut alone.stats));
        state.trace.absorb(&mut alone.trace);
        let ranks = self.session.ranks();
        let placement = if ranks == 1 { Placement::Replicated } else { Placement::Strips(Halo::NONE) };
        let mut names = Vec::with_capacity(images);
        for (slot, (shape, dtype)) in self.kinds.iter().enumerate() {
            let name = state.names.value();
            if let Some(part) = strips[slot].take() {
                state
                    .images
                    .in_memory
                    .insert(name, StoredImage::of_ranks(part.stored(*shape, *dtype, placement), ranks));
            }
            names.push(name);
        }
        Ok(names)
    }

    /// Copies the results of some rectangles to the frames of this rank.
    fn copy_here(
        &self,
        alone: &mut SessionState,
        around: &BlockRoutes,
        results: &[Vec<DeviceRectangle>],
        is_from: impl Fn(usize) -> bool,
    ) -> Result<(), EvaluationError> {
        let images = self.kinds.len();
        let copies = || around.local.iter().filter(|((h, _), _)| is_from(h / images));
        let frames = self.take_frames(alone, copies().map(|(_, to)| to));
        let mut frames = frames.map_err(|source| self.session.in_blocks_failed(source))?;
        let from = |h: usize| results[h / images].get(h % images);
        self.session.copy_here(self.device, copies(), &from, &mut frames)?;
        self.give_frames(alone, frames);
        Ok(())
    }

    /// Fills frames, and the strips for the results, from the images of the session.
    fn begin(
        &self,
        state: &mut SessionState,
        now: &[ValueId],
    ) -> Result<(Vec<Option<DeviceRectangle>>, Load), EvaluationError> {
        let failed = |source| self.session.in_blocks_failed(source);
        let (device, rank) = (self.device, self.session.rank());
        let mut images: Vec<ValueId> = self.inputs.iter().map(|input| input.of).chain(now.iter().copied()).collect();
        images.sort_unstable();
        images.dedup();
        let index = |v: ValueId| images.binary_search(&v).unwrap_or(usize::MAX);
        let (mut held, mut parts) = (Vec::new(), Vec::new());
        for (i, v) in images.iter().enumerate() {
            if let (Some(image), Some(engine)) = (state.images.in_memory.get(v), self.session.engine())
                && image.among() != self.session.ranks()
            {
                self.session.bring_to_root(state, engine, *v)?;
            }
            let image = state.images.in_memory.get(v).ok_or_else(|| failed(lost("an image that a loop reads")))?;
            let shape = image.geometry.shape;
            let whole = |rank| RankRect { rank, image: i, rect: Rect::whole(shape), buffer: i, turn: [0; 2] };
            match image.state.placement {
                Placement::On(owner) => held.push(whole(Some(owner))),
                Placement::Replicated => held.push(whole(None)),
                Placement::Strips(_) => held.extend(self.strips(i, shape).map(|at| RankRect { buffer: i, ..at })),
            }
            let here = image.state.placement.owner().is_none_or(|owner| owner == rank);
            parts.push(here.then(|| DeviceRectangle::share_or_copy(device, image)).transpose().map_err(failed)?);
        }
        let mut needed = self.needed(|input| Some(index(input.of)));
        let frames = self.rects.len() * self.inputs.len();
        needed.extend(self.results(frames, |slot| index(now[slot])));
        let mut to = Vec::with_capacity(frames + now.len());
        for n in 0..frames {
            let (c, input) = (n / self.inputs.len(), n % self.inputs.len());
            let frame = self.locals[c].as_ref().and_then(|local| local.frames[input]);
            let kind = (self.inputs[input].shape, self.inputs[input].dtype);
            to.push(frame.map(|(_, rect)| DeviceRectangle::new(device, rect, kind)).transpose().map_err(failed)?);
        }
        for kind in self.kinds {
            let rows = self.session.0.partition.strip(rank, kind.0.height);
            let strip = DeviceRectangle::new(device, Rect { rows, ..Rect::whole(kind.0) }, *kind);
            to.push(Some(strip.map_err(failed)?));
        }
        let routes = BlockRoutes::of(rank, &held, &needed);
        let load = self.session.redistribute(self.device, &routes, &|h| parts[h].as_ref(), &mut to)?;
        let strips = to.split_off(frames);
        self.give_frames(&mut self.alone.0.acquire(), to);
        Ok((strips, load))
    }

    /// Returns frames to the session of this rank.
    fn give_frames(&self, alone: &mut SessionState, frames: Vec<Option<DeviceRectangle>>) {
        for (n, frame) in frames.into_iter().enumerate() {
            let (c, input) = (n / self.inputs.len(), n % self.inputs.len());
            let (Some(local), Some(part)) = (&self.locals[c], frame) else { continue };
            if let Some((name, rect)) = local.frames[input] {
                let BlockInput { shape, dtype, .. } = self.inputs[input];
                let window = Window::whole(rect.rows.len());
                let mut image = part.stored(rect.shape(shape), dtype, Placement::Replicated);
                image.geometry.window = window;
                alone.images.in_memory.insert(name, StoredImage::of_ranks(image, 1));
            }
        }
    }

    /// Takes the frames with these parts out of the session of this rank.
    fn take_frames<'r>(
        &self,
        alone: &mut SessionState,
        parts: impl Iterator<Item = &'r BufferRect>,
    ) -> Result<Vec<Option<DeviceRectangle>>, DeviceError> {
        let mut frames: Vec<Option<DeviceRectangle>> =
            (0..self.rects.len() * self.inputs.len()).map(|_| None).collect();
        for &(n, _) in parts {
            let (c, input) = (n / self.inputs.len(), n % self.inputs.len());
            let frame = self.locals[c].as_ref().and_then(|local| local.frames[input]);
            if let (Some((name, rect)), None) = (frame, &frames[n])
                && let Some(image) = alone.images.in_memory.remove(&name)
            {
                let mut part = DeviceRectangle::of(self.device, image.into_first())?;
                part.extent.rect = rect;
                frames[n] = Some(part);
            }
        }
        Ok(frames)
    }

    /// Computes the rectangle of a program for each image of the state.
    fn compute(
        &self,
        state: &mut SessionState,
        local: &RectangleProgram,
    ) -> Result<Vec<DeviceRectangle>, EvaluationError> {
        let failed = |source| self.session.in_blocks_failed(source);
        let ((alone, engine), device) = (self.alone, self.device);
        let (request, CachedPlan { plan, mut batches, digest, forgone }, new) = match local.ready.take() {
            Some((request, planned)) => (request, planned, false),
            None => {
                let wants = vec![ResultDelivery::Keep; local.graph.roots.len()];
                let request = alone.request(engine, state, local.graph.clone(), wants, &[]);
                // Other ranks have other programs, and may have planned theirs.
                alone
                    .find_or_make_plan(engine, state, request, true)
                    .map_err(|e| EvaluationError::DuringExecution(e.error()))?
            }
        };
        let ran = alone.run_plan(state, engine, &request, (&plan, &mut batches), (new, DownloadStart::AtOnce));
        let ExecutionOutcome { mut images, .. } =
            ran.map_err(|FailedExecution { error, .. }| EvaluationError::DuringExecution(error))?;
        let mut results: Vec<DeviceRectangle> = Vec::with_capacity(plan.graph.roots.len());
        for (i, root) in plan.graph.roots.iter().enumerate() {
            // Two images of the state may be one node, or be a frame.
            let frame = plan.graph.node(*root).op.source_value();
            let missing = || lost("a result");
            let part = if frame.is_some() || plan.graph.roots[i + 1..].contains(root) {
                let image = frame.map_or(images[root.0].as_ref(), |frame| state.images.in_memory.get(&frame));
                image.ok_or_else(missing).and_then(|image| DeviceRectangle::share_or_copy(device, image))
            } else {
                images[root.0]
                    .take()
                    .ok_or_else(missing)
                    .and_then(|image| DeviceRectangle::of(device, image.into_first()))
            };
            let mut part = part.map_err(failed)?;
            part.extent.rect = local.roots[i];
            results.push(part);
        }
        let planned = CachedPlan { plan, batches, digest, forgone };
        if engine.capacity().is_none() {
            local.ready.set(Some((request, planned)));
        } else {
            // The next plan depends on the other images on the device.
            state.plans.put(request, planned);
        }
        Ok(results)
    }

    /// Describes the blocks, if plans are explained.
    fn explain(&self) -> Result<()> {
        let Some(sink) = &self.session.0.settings.explain else { return Ok(()) };
        let (alone, engine) = self.alone;
        let setting = alone.setting(engine, alone.0.partition.clone());
        let stored = |graph: Graph<Op>| -> Result<usize> {
            let kernels = alone.kernels(graph, &setting, (true, true), &mut |_, _| ())?;
            let computed = kernels.nodes.iter().filter(|n| n.op.source_value().is_none());
            Ok(computed.map(|n| n.shape.len()).sum())
        };
        let of = |c| stored(restrict(&self.graph, &self.roots(c), CropRule::Never, &mut UnchangedNames).graph);
        let values = (0..self.rects.len()).map(of).sum::<Result<usize>>()?;
        let whole = stored(self.graph.clone())?;
        let (computed, needed) = (self.computed(), self.needed(|input| input.slot));
        let bytes = |(h, rect): (usize, Rect)| {
            let (shape, dtype) = self.kinds[h % self.kinds.len()];
            rect.area() * shape.planes() * shape.pixel_bytes(dtype)
        };
        let messages =
            (0..self.session.ranks()).flat_map(|rank| BlockRoutes::of(rank, &computed, &needed).sent.into_values());
        let sent: Vec<usize> = messages.map(|message| message.into_iter().map(bytes).sum()).collect();
        let (map, rects, count, bytes) = (self.map, self.rects.len(), sent.len(), sent.iter().sum::<usize>());
        let (height, width) = map.plane();
        let pixels: usize = self.rects.iter().map(|(_, rect)| rect.area()).sum();
        let [pixels, part] = [(pixels, height * width), (values, whole)].map(|(n, of)| 100.0 * n as f64 / of as f64);
        sink(&format!(
            "blocks:\n      {map}: {rects} rectangles, {pixels:.1} % of the pixels\n      {values} values are \
             stored, {part:.1} % of those of the whole; {count} messages of {bytes} bytes in all\n"
        ));
        Ok(())
    }
}

/// Returns sources under their own names, for counting.
struct UnchangedNames;

impl RegionSupply for UnchangedNames {
    fn source(&mut self, value: ValueId, _: Rect) -> Option<ValueId> {
        Some(value)
    }

    fn number(&mut self, _: i32) -> Option<ValueId> {
        None
    }
}
