//! The smallest program that still fails: what a test of random programs prints.
//!
//! Operations and pixels are taken away as long as the failure stays. Any candidate will do, as
//! each is evaluated by the oracle again; one that the oracle cannot evaluate is no program.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use horus_core::dispatch;
use horus_core::dtype::DType;
use horus_core::ir::graph::{Graph, NodeId, Op, ValueId};
use horus_core::optimize::check::{ProgramResults, recorded};
use horus_core::shape::Shape;
use horus_testing::reference::{self, ReferenceImage};

use super::printed::{SEEDS, printed};
use super::{ConformanceProgram, difference, image};

/// Candidates after which the smallest program so far is printed: on a GPU, each is compiled.
const LIMIT: usize = 2000;

/// Compares what `run` computes for a program with `want`, bit by bit.
///
/// # Panics
/// If they differ or `run` panics: with the smallest program for which `run` fails to compute what
/// the reference does, as Rust.
pub(crate) fn compare(
    what: &str,
    program: &ConformanceProgram,
    want: &[ReferenceImage],
    run: &mut dyn FnMut(&ConformanceProgram) -> Vec<ReferenceImage>,
) {
    let Some(fault) = fault(program, want, run) else { return };
    let least = smallest(program, &mut |p| evaluated(p).is_some_and(|want| self::fault(p, &want, run).is_some()));
    panic!("{what}: {fault}\nThe smallest program that fails, for `found.rs`:\n{}", printed(&least));
}

/// The failure of `run` for a program.
fn fault(
    program: &ConformanceProgram,
    want: &[ReferenceImage],
    run: &mut dyn FnMut(&ConformanceProgram) -> Vec<ReferenceImage>,
) -> Option<String> {
    let got = match catch_unwind(AssertUnwindSafe(|| run(program))) {
        Ok(got) => got,
        Err(panic) => return Some(text(panic.as_ref())),
    };
    let differs = |(i, (g, w)): (usize, (&ReferenceImage, &ReferenceImage))| {
        (g != w).then(|| format!("root {i} differs from the reference, {}", difference(g, w)))
    };
    got.iter().zip(want).enumerate().find_map(differs)
}

fn text(panic: &(dyn Any + Send)) -> String {
    let known = panic.downcast_ref::<String>().map(String::as_str);
    known.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").into()
}

/// The roots by the reference; `None` if the candidate is no program.
fn evaluated(program: &ConformanceProgram) -> Option<Vec<ReferenceImage>> {
    let source = |v: ValueId| program.sources[v.0 as usize].clone();
    recorded(&program.graph, &ProgramResults::of(&program.graph)).ok()?;
    catch_unwind(AssertUnwindSafe(|| reference::evaluate(&program.graph, &source))).ok()
}

/// A program as small as possible for which `fails` is true, as it is for `program`.
pub(crate) fn smallest(
    program: &ConformanceProgram,
    fails: &mut dyn FnMut(&ConformanceProgram) -> bool,
) -> ConformanceProgram {
    let (mut least, mut tried) = (program.clone(), 0);
    while tried < LIMIT {
        let size = size(&least);
        let mut fails = |c: &ConformanceProgram| {
            tried += 1;
            fails(c)
        };
        let smaller = candidates(&least).find(|c| self::size(c) < size && fails(c));
        match smaller {
            Some(smaller) => least = smaller,
            None => break,
        }
    }
    least
}

/// Operations, roots, images, pixels, and images that are printed pixel by pixel.
fn size(program: &ConformanceProgram) -> [usize; 5] {
    let nodes = &program.graph.nodes;
    let operations = nodes.iter().filter(|n| !matches!(n.op, Op::Source(_))).count();
    let pixels = nodes.iter().map(|n| n.shape.len()).sum();
    let listed = program.sources.iter().filter(|s| **s != image(s.shape, s.dtype(), SEEDS.start)).count();
    [operations, program.graph.roots.len(), nodes.len(), pixels, listed]
}

/// Programs made of a part of `program`, those with the fewest operations first.
fn candidates(program: &ConformanceProgram) -> impl Iterator<Item = ConformanceProgram> {
    let nodes = || program.graph.iter();
    let rooted = |roots| ConformanceProgram { graph: Graph { roots, ..program.graph.clone() }, ..program.clone() };
    let alone = nodes().map(move |(n, _)| rooted(vec![n]));
    let values = evaluated(&rooted(nodes().map(|(n, _)| n).collect())).unwrap_or_default();
    let given_values = values.into_iter().enumerate().map(|(n, value)| given(program, NodeId(n), value));
    let alike = |n: NodeId, i: NodeId| {
        let (a, b) = (program.graph.node(n), program.graph.node(i));
        (a.shape, a.dtype) == (b.shape, b.dtype)
    };
    let reads = nodes().flat_map(|(n, node)| node.inputs.iter().map(move |i| (n, *i)));
    let without = reads.filter(move |(n, i)| alike(*n, *i)).map(|(n, i)| skipped(program, n, i));
    // Any pixels but rows of the nearest background, which lie in the image, and masks.
    let any = nodes().filter(|(_, n)| n.dtype != DType::I32 && n.dtype != DType::Bool);
    let plain = any.map(|(n, node)| given(program, n, image(node.shape, node.dtype, SEEDS.start)));
    alone.chain(given_values).chain(without).chain(cropped(program)).chain(plain).map(live)
}

/// A program with an image in the place of node `at`.
fn given(program: &ConformanceProgram, at: NodeId, value: ReferenceImage) -> ConformanceProgram {
    let mut made = program.clone();
    made.sources.push(value);
    let node = &mut made.graph.nodes[at.0];
    (node.op, node.inputs) = (Op::Source(ValueId(made.sources.len() as u64 - 1)), Vec::new());
    made
}

/// A program that reads `input` in the place of node `at`.
fn skipped(program: &ConformanceProgram, at: NodeId, input: NodeId) -> ConformanceProgram {
    let mut made = program.clone();
    let reads = made.graph.nodes.iter_mut().flat_map(|n| &mut n.inputs).chain(&mut made.graph.roots);
    reads.filter(|i| **i == at).for_each(|i| *i = input);
    made
}

/// A program without what its roots do not need.
fn live(program: ConformanceProgram) -> ConformanceProgram {
    let mut sources = Vec::new();
    let graph = program.graph.without_dead().rebuilt(|out, _, mut node| {
        if let Op::Source(v) = &mut node.op {
            sources.push(program.sources[v.0 as usize].clone());
            *v = ValueId(sources.len() as u64 - 1);
        }
        out.push(node)
    });
    ConformanceProgram { graph, sources, interleaved: false }
}

/// Programs in which all images of some height or width have less of it.
fn cropped(program: &ConformanceProgram) -> impl Iterator<Item = ConformanceProgram> {
    let sides: [fn(&mut Shape) -> &mut usize; 2] = [|s| &mut s.height, |s| &mut s.width];
    sides.into_iter().flat_map(move |side| {
        let of = move |mut shape| *side(&mut shape);
        let extents: BTreeSet<usize> = program.graph.nodes.iter().map(|n| of(n.shape)).collect();
        let less = extents.into_iter().rev().flat_map(|n| [n / 2, n - 1].map(|less| (n, less)));
        less.filter(|(_, less)| *less > 0).map(move |(n, less)| {
            let mut made = program.clone();
            let shapes = made.graph.nodes.iter_mut().map(|node| &mut node.shape);
            shapes.filter(|s| of(**s) == n).for_each(|s| *side(s) = less);
            made.sources.iter_mut().filter(|image| of(image.shape) == n).for_each(|image| {
                let mut shape = image.shape;
                *side(&mut shape) = less;
                *image =
                    dispatch!(image.dtype(), T => ReferenceImage::from_fn(shape, |p, y, x| image.at::<T>(p, y, x)));
            });
            made
        })
    })
}
