//! Passes over images that do not fit in memory.
//!
//! A reduction of the whole image must be complete before the first region of its readers can be
//! computed. It is a pass of its own: bands of rows, or parts of them, are reduced as they are
//! read, rows to their results, on which the canonical order is defined; histograms and exact sums
//! of parts add up exactly, as integers. The rest of the reduction then reads the results of the
//! pass, in memory. Results that are images are computed region by region.

use super::engine::Engine;
use super::evaluate::Unevaluated;
use super::later::{Parts, unread};
use super::regions::bytes;
use super::stream::Job;
use super::{Mutable, Session};
use crate::dtype::DType;
use crate::error::{Call, DeviceError, Error};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ops::Whole;
use crate::ops::reduce::{Divisible, RowReduce};
use crate::plan::Want;
use crate::plan::state::Placement;
use crate::region::{Cut, Rect, restrict};
use crate::shape::{Shape, Window};

impl Session {
    /// The program with reductions of images that have not been read replaced by computed values: a
    /// pass for those that do not read each other.
    pub(super) fn reduced(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        mut graph: Graph<Op>,
        own: &mut Vec<ValueId>,
    ) -> Result<Graph<Op>, Unevaluated> {
        loop {
            let group = next_pass(state, &graph);
            if group.is_empty() {
                return Ok(graph);
            }
            let results = self.pass(state, engine, &graph, &group)?;
            for (n, pixels) in group.into_iter().zip(results) {
                let value = state.names.value();
                own.push(value);
                let node = &mut graph.nodes[n.0];
                state.images.give(value, node.shape, node.dtype, Some(pixels), Placement::Replicated);
                (node.op, node.inputs) = (Op::Source(value), Vec::new());
            }
            graph = graph.without_dead();
        }
    }

    /// Reduces images of one extent, part by part; returns the results on every rank.
    fn pass(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        group: &[NodeId],
    ) -> Result<Vec<HostBuffer>, Unevaluated> {
        let banded = banded(graph, group);
        let other = |n: &NodeId| {
            let node = graph.node(*n);
            if matches!(node.op, Op::Whole(Whole::Labels(_))) { None } else { node.inputs.get(1).copied() }
        };
        let (bands, grain, divisible) = pass_of(state, graph, group);
        let division = self.divided(state, engine, &bands, grain, Some(divisible))?;
        let names: Vec<String> = group.iter().map(|n| graph.node(*n).op.name()).collect();
        self.explain_regions(&format!("a pass for {} in {division}", names.join(", ")));
        let mut results: Vec<HostBuffer> = group.iter().map(|n| HostBuffer::zeroed(bytes(graph, *n))).collect();
        let nodes: Vec<_> = group.iter().map(|n| graph.node(*n).clone()).collect();
        let mut job = |state: &Mutable, i: usize| {
            let band = division.region(i);
            let others: Vec<NodeId> = group.iter().filter_map(other).collect();
            let roots: Vec<NodeId> = banded.iter().copied().chain(others.iter().copied()).collect();
            let regions: Vec<Rect> =
                (banded.iter().map(|_| band)).chain(others.iter().map(|n| Rect::whole(graph.node(*n).shape))).collect();
            let program = Graph { roots: roots.clone(), nodes: graph.nodes.clone(), joined: Vec::new() };
            let mut parts = Parts::new(state, true);
            let mut part = restrict(&program, &regions, Cut::Always, &mut parts).graph;
            let made = std::mem::take(&mut part.roots);
            let at = |n: &NodeId| made[roots.iter().position(|r| r == n).expect("inputs are computed")];
            for node in &nodes {
                let inputs = node.inputs.iter().map(at).collect();
                let shape = rows_of(&node.op, node.shape, band).1;
                let op = match &node.op {
                    // Coordinates count from the first pixel of the image.
                    Op::Whole(Whole::Labels(how)) => {
                        Op::from(how.moved(band.rows.start.unsigned_abs(), band.columns.start.unsigned_abs()))
                    }
                    op => op.clone(),
                };
                let root = part.push(Node { op, inputs, shape, ..node.clone() });
                part.roots.push(root);
            }
            Job { graph: part, parts: parts.parts, cuts: Vec::new() }
        };
        let want = if self.ranks() == 1 { Want::Handed } else { Want::Everyone };
        let mut take = |i: usize, taken: &[&HostBuffer]| {
            let band = division.region(i);
            for ((node, result), part) in nodes.iter().zip(&mut results).zip(taken) {
                match (&node.op, rows_of(&node.op, node.shape, band)) {
                    // The preceding columns were processed before.
                    (Op::Whole(Whole::RowReduce(how)), (Some(first), shape)) if band.columns.start > 0 => {
                        join_rows(*how, (result, node.shape), (part, shape), (first, node.dtype));
                    }
                    (_, (Some(first), shape)) => {
                        let (of, rows) = ((node.shape, node.shape.pixel_bytes(node.dtype)), rows_from(first, shape));
                        self.put_levels(result.bytes_mut(), of, 0..node.shape.depth, rows, part.bytes());
                    }
                    (_, (None, _)) => add(result, part),
                }
            }
            Ok(())
        };
        done(self.run_jobs(state, engine, division.count(), want, &mut job, &mut take)?)?;
        Ok(results)
    }

    /// The program with results computed from images that have not been read replaced by values,
    /// computed by regions: those of one extent together.
    pub(super) fn assembled(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        mut graph: Graph<Op>,
        own: &mut Vec<ValueId>,
    ) -> Result<Graph<Op>, Unevaluated> {
        while let Some(roots) = by_extent(state, &graph).into_iter().next() {
            let program = Graph { roots: roots.clone(), ..graph.clone() }.without_dead();
            let kinds: Vec<(Shape, usize)> =
                roots.iter().map(|n| graph.node(*n)).map(|n| (n.shape, n.dtype.stored().size())).collect();
            let room = |(n, (shape, element)): (&NodeId, &(Shape, usize))| {
                let call = Call { op: "evaluating by regions", site: graph.node(*n).site.site };
                // Other ranks may have enough memory, and go on.
                self.0.pool.try_allocate(shape.len() * element).map_err(|e| Unevaluated::Met(self.at_host(call, e)))
            };
            let mut whole = roots.iter().zip(&kinds).map(room).collect::<Result<Vec<_>, _>>()?;
            let grain = Session::grain(state, &program);
            let division = self.divided(state, engine, &program, grain, None)?;
            let names: Vec<String> = roots.iter().map(|n| graph.node(*n).op.name()).collect();
            self.explain_regions(&format!("{} in {division}", names.join(", ")));
            let regions = |i: usize| vec![division.region(i); roots.len()];
            let mut job = |state: &Mutable, i: usize| Job::of(state, &program, &regions(i));
            let want = if self.ranks() == 1 { Want::Handed } else { Want::Everyone };
            let mut take = |i: usize, taken: &[&HostBuffer]| {
                for ((whole, part), (shape, element)) in whole.iter_mut().zip(taken).zip(&kinds) {
                    self.put_levels(
                        whole.bytes_mut(),
                        (*shape, *element),
                        0..shape.depth,
                        division.region(i),
                        part.bytes(),
                    );
                }
                Ok(())
            };
            done(self.run_jobs(state, engine, division.count(), want, &mut job, &mut take)?)?;
            for (root, whole) in roots.into_iter().zip(whole) {
                let node = &mut graph.nodes[root.0];
                let value = state.names.value();
                own.push(value);
                state.images.give(value, node.shape, node.dtype, Some(whole), Placement::Replicated);
                (node.op, node.inputs) = (Op::Source(value), Vec::new());
            }
        }
        Ok(graph.without_dead())
    }
}

/// Results copied to memory: only a panic of a thread can fail there.
fn done(taken: Result<(), String>) -> Result<(), Unevaluated> {
    let failed = |cause| {
        Unevaluated::Met(Error::Device {
            op: "bringing regions".into(),
            device: "the host".into(),
            source: DeviceError::Internal(cause),
        })
    };
    taken.map_err(failed)
}

fn same_rows(a: Shape, b: Shape) -> bool {
    (a.height, a.width) == (b.height, b.width)
}

/// The reductions of the next pass, over images of one extent; empty if none is left.
pub(super) fn next_pass(state: &Mutable, graph: &Graph<Op>) -> Vec<NodeId> {
    let mut group = first_reductions(state, graph);
    let of = |n: &NodeId| graph.node(graph.node(*n).inputs[0]).shape;
    let extent = group.first().map(of);
    group.retain(|n| extent.is_some_and(|extent| same_rows(of(n), extent)));
    group
}

/// The program of a pass; the rows and columns by which it is divided, and the places where columns
/// may be divided.
pub(super) fn pass_of(state: &Mutable, graph: &Graph<Op>, group: &[NodeId]) -> (Graph<Op>, (usize, usize), Divisible) {
    let bands = Graph { roots: banded(graph, group), nodes: graph.nodes.clone(), joined: Vec::new() };
    let (rows, columns) = Session::grain(state, &bands);
    let divisible = group.iter().map(|n| divisible(&graph.node(*n).op)).max().unwrap_or(Divisible::Nowhere);
    // Powers of two.
    let block =
        group.iter().map(|n| if let Op::Whole(Whole::Labels(how)) = graph.node(*n).op { how.block() } else { None });
    (bands, (rows.next_multiple_of(block.flatten().max().unwrap_or(1)), columns), divisible)
}

/// The roots of a program that are computed from images that have not been read, those of one extent
/// together.
pub(super) fn by_extent(state: &Mutable, graph: &Graph<Op>) -> Vec<Vec<NodeId>> {
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    for root in &graph.roots {
        let program = Graph { roots: vec![*root], ..graph.clone() }.without_dead();
        if unread(state, &program).next().is_none() || groups.iter().flatten().any(|known| known == root) {
            continue;
        }
        let shape = graph.node(*root).shape;
        match groups.iter_mut().find(|group| same_rows(graph.node(group[0]).shape, shape)) {
            Some(group) => group.push(*root),
            None => groups.push(vec![*root]),
        }
    }
    groups
}

/// The inputs of a pass that are divided in rows, including the second image of labels.
pub(super) fn banded(graph: &Graph<Op>, group: &[NodeId]) -> Vec<NodeId> {
    let mut banded: Vec<NodeId> = Vec::new();
    for n in group {
        let node = graph.node(*n);
        let both = if matches!(node.op, Op::Whole(Whole::Labels(_))) { 2 } else { 1 };
        for input in node.inputs.iter().take(both) {
            if !banded.contains(input) {
                banded.push(*input);
            }
        }
    }
    banded
}

/// Reductions of unread images that read no other such.
fn first_reductions(state: &Mutable, graph: &Graph<Op>) -> Vec<NodeId> {
    let mut reads = vec![false; graph.nodes.len()];
    let mut after = vec![false; graph.nodes.len()];
    let mut found = Vec::new();
    for (id, node) in graph.iter() {
        reads[id.0] = match node.op {
            Op::Source(v) => state.images.later.contains_key(&v),
            _ => node.inputs.iter().any(|i| reads[i.0]),
        };
        after[id.0] = node.inputs.iter().any(|i| after[i.0]);
        if reduces(&node.op) && reads[id.0] && !after[id.0] {
            found.push(id);
            after[id.0] = true;
        }
    }
    found
}

/// Returns `true` for an operation that is a pass over an image that does not fit in memory.
pub(super) fn reduces(op: &Op) -> bool {
    matches!(op, Op::Whole(Whole::RowReduce(_) | Whole::Histogram(_) | Whole::Labels(_)))
}

/// The places where columns may be divided for a reduction.
fn divisible(op: &Op) -> Divisible {
    match op {
        Op::Whole(Whole::RowReduce(how)) => how.divisible(),
        Op::Whole(Whole::Histogram(_)) => Divisible::Anywhere,
        Op::Whole(Whole::Labels(how)) if how.adds_up() => Divisible::Anywhere,
        _ => Divisible::Nowhere,
    }
}

/// Joins results of rows from `first` on with those of the following columns.
fn join_rows(
    how: RowReduce,
    (to, whole): (&mut HostBuffer, Shape),
    (from, part): (&HostBuffer, Shape),
    (first, dtype): (usize, DType),
) {
    let (plane, rows) = (whole.area(), part.area());
    crate::dispatch!(dtype.stored(), T => {
        let planes = to.as_mut_slice::<T>().chunks_mut(plane).zip(from.as_slice::<T>().chunks(rows));
        planes.for_each(|(to, from)| how.join(&mut to[first * whole.width..][..rows], from));
    });
}

/// The place of a band's result in the whole result: its first row, if it has rows of its own; and
/// its shape.
fn rows_of(op: &Op, whole: Shape, band: Rect) -> (Option<usize>, Shape) {
    let (start, n) = (band.rows.start.unsigned_abs(), band.rows.len());
    match op {
        Op::Whole(Whole::RowReduce(_)) => (Some(start), Shape { height: n, ..whole }),
        Op::Whole(Whole::Labels(how)) => match how.block() {
            Some(block) => (Some(start / block), Shape { height: n.div_ceil(block), ..whole }),
            None => (None, whole),
        },
        _ => (None, whole),
    }
}

/// Rows from `first` on, as many as `part` has.
fn rows_from(first: usize, part: Shape) -> Rect {
    let rows = Window::new(first.cast_signed(), (first + part.height).cast_signed());
    Rect { rows, ..Rect::whole(part) }
}

/// Adds integer counts, in any order.
fn add(to: &mut HostBuffer, from: &HostBuffer) {
    let from: &[f64] = from.as_slice();
    let to: &mut [f64] = bytemuck::cast_slice_mut(to.bytes_mut());
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}
