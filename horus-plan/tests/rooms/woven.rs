//! Programs of single channels of interleaved pixels: what they read and make.

use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_plan::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use horus_plan::machine::Machine;
use horus_plan::ops::geometric::Flip;
use horus_plan::ops::pixel::PixelOp;
use horus_plan::ops::planes::PlaneMap;
use horus_plan::ops::{Deinterleave, Interleave, Merge};
use horus_plan::optimize::optimize;

const PLANES: Shape = Shape::new(4, 5, 3);
const PLANE: Shape = Shape::new(4, 5, 1);

fn push(graph: &mut Graph<Op>, op: Op, inputs: &[NodeId], shape: Shape) -> NodeId {
    let site = std::panic::Location::caller().into();
    graph.push(Node { op, inputs: inputs.to_vec(), shape, dtype: DType::F32, site })
}

fn both(graph: &mut Graph<Op>, op: PixelOp, a: NodeId, b: NodeId) -> NodeId {
    push(graph, Op::Pixel(op, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]), &[a, b], PLANE)
}

/// A program of the planes of interleaved pixels, and its channels.
fn program() -> (Graph<Op>, NodeId, [NodeId; 3]) {
    let mut g = Graph::default();
    let source = push(&mut g, Op::Source(ValueId(0)), &[], PLANES.interleaved());
    let planes = push(&mut g, Op::from(Deinterleave), &[source], PLANES);
    let channels = [0, 1, 2].map(|c| push(&mut g, Op::Planes(PlaneMap::channel(PLANES, c)), &[planes], PLANE));
    (g, planes, channels)
}

/// The kernels that compute these results, without sources, each with its number of inputs.
fn kernels(mut graph: Graph<Op>, roots: &[NodeId]) -> Vec<String> {
    graph.roots = roots.to_vec();
    let made = optimize(graph, true, &Machine::of_default(true), &mut |_, _| ()).unwrap();
    made.nodes
        .iter()
        .filter(|n| !n.inputs.is_empty())
        .map(|n| format!("{} of {}", n.op.name(), n.inputs.len()))
        .collect()
}

#[test]
fn channels_are_weighed_as_they_lie() {
    let (mut g, planes, [r, green, b]) = program();
    let sum = both(&mut g, PixelOp::Add, r, green);
    let sum = both(&mut g, PixelOp::Add, sum, b);
    assert_eq!(kernels(g.clone(), &[sum]), ["plane 0 + plane 1 + plane 2 + 2x add of 1"]);
    // Planes that are needed are read.
    let turned = push(&mut g, Op::Flip(Flip::Both), &[planes], PLANES);
    assert_eq!(kernels(g, &[sum, turned])[0], "deinterleave of 1");
}

#[test]
fn colours_of_another_space_are_made_as_they_lie() {
    let (mut g, _, [r, green, b]) = program();
    let most = both(&mut g, PixelOp::Max, r, green);
    let least = both(&mut g, PixelOp::Min, r, b);
    let range = both(&mut g, PixelOp::Sub, most, least);
    let stacked = push(&mut g, Op::from(Merge), &[range, most, least], PLANES);
    let made = push(&mut g, Op::from(Interleave), &[stacked], PLANES.interleaved());
    let names = kernels(g.clone(), &[made]);
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].starts_with("interleaved: ") && names[0].ends_with("of 1"), "{names:?}");
    // What is needed by itself is computed, and read.
    let names = kernels(g, &[made, most]);
    assert!(names.last().is_some_and(|name| name.starts_with("interleaved: ")), "{names:?}");
    assert!(names.iter().all(|name| !name.contains("deinterleave")), "{names:?}");
}

#[test]
fn a_mask_of_all_channels_is_read_beside_them() {
    let (mut g, planes, _) = program();
    let mask = push(&mut g, Op::Source(ValueId(1)), &[], PLANE);
    let spread = push(&mut g, Op::Planes(PlaneMap::one(0)), &[mask], PLANES);
    let op = Op::Pixel(PixelOp::Mul, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]);
    let masked = push(&mut g, op, &[planes, spread], PLANES);
    let samples = push(&mut g, Op::from(Interleave), &[masked], PLANES.interleaved());
    assert_eq!(kernels(g, &[samples]), ["interleaved: plane 0 + plane 1 + plane 2 + 3x mul of 2"]);
}
