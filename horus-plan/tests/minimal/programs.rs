//! Random small programs and machines.

use std::panic::Location;
use std::sync::Arc;

use horus_base::dtype::{Conversion, DType, Scalar};
use horus_base::shape::{Border, Shape};
use horus_plan::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use horus_plan::ir::kernel::Kernel;
use horus_plan::machine::{Link, Links, Machine, MachineProfile};
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_plan::ops::neighbourhood::Filter;
use horus_plan::ops::pixel::PixelOp;
use horus_plan::optimize::optimize;

/// A sequence of numbers that follows from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct ProgramRandom(u64);

impl ProgramRandom {
    pub(crate) fn new(seed: u64) -> ProgramRandom {
        ProgramRandom(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A program of `operations` operations over one picture; geometric ones, if `turned`.
pub(crate) fn program(random: &mut ProgramRandom, operations: usize, shape: Shape, turned: bool) -> Graph<Kernel> {
    let mut graph: Graph<Op> = Graph::default();
    let mut push = |op, inputs: &[NodeId], dtype| {
        graph.push(Node { op, inputs: inputs.to_vec(), shape, dtype, site: Location::caller().into() })
    };
    let read = random.pick(&[DType::U8, DType::F32]);
    let mut images = vec![push(Op::Source(ValueId(0)), &[], read)];
    if read == DType::U8 {
        images = vec![push(Op::Convert(Conversion::Nearest), &images, DType::F32)];
    }
    let left = operations - usize::from(read == DType::U8);
    for _ in 0..left {
        // The newest image half of the time: chains are what filters over filters make.
        let newest = images[images.len() - 1];
        let a = if random.below(2) == 0 { newest } else { random.pick(&images) };
        let border = random.pick(&[Border::Reflect101, Border::Replicate, Border::Wrap, Border::Constant(0.0)]);
        let reach = random.pick(&[1, 2, 4, 10, 21]);
        let image = match random.below(if turned { 8 } else { 6 }) {
            0 => push(
                Op::Pixel(PixelOp::Mul, vec![PixelOpOperand::Input(0), PixelOpOperand::Const(Scalar::F32(0.5))]),
                &[a],
                DType::F32,
            ),
            1 | 2 => {
                let operands = vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)];
                push(Op::Pixel(PixelOp::Max, operands), &[a, random.pick(&images)], DType::F32)
            }
            3 | 4 => push(Op::Correlate(Filter::column(vec![0.1; 2 * reach + 1]), border), &[a], DType::F32),
            5 => push(Op::Correlate(Filter::dense(5, 5, vec![0.04; 25]), border), &[a], DType::F32),
            6 => {
                let map = Affine::new(rotation(random.below(360) as f64, shape), shape).expect("a rotation");
                push(Op::Warp(map, Interpolation::Bilinear, Border::Constant(0.0).into()), &[a], DType::F32)
            }
            _ => push(Op::Flip(Flip::Vertical), &[a], DType::F32),
        };
        images.push(image);
    }
    graph.roots = vec![images[images.len() - 1]];
    let live = live(&graph);
    let kernels = optimize(live, false, &Machine::of_default(false), &mut |_, _| ());
    kernels.expect("operations become kernels")
}

/// The graph without operations whose results nobody reads.
fn live(graph: &Graph<Op>) -> Graph<Op> {
    let mut needed = vec![false; graph.nodes.len()];
    graph.roots.iter().for_each(|r| needed[r.0] = true);
    for (id, node) in graph.iter().rev() {
        if needed[id.0] {
            node.inputs.iter().for_each(|i| needed[i.0] = true);
        }
    }
    let mut at = vec![NodeId(0); graph.nodes.len()];
    let mut out = Graph::default();
    for (id, node) in graph.iter().filter(|(id, _)| needed[id.0]) {
        let inputs = node.inputs.iter().map(|i| at[i.0]).collect();
        at[id.0] = out.push(Node { inputs, ..node.clone() });
    }
    out.roots = graph.roots.iter().map(|r| at[r.0]).collect();
    out
}

/// Machines of two devices, or of two processors (`unified`): fast and slow links.
pub(crate) fn machine(random: &mut ProgramRandom, unified: bool) -> Arc<Machine> {
    let network = Link { latency: random.pick(&[1e-6, 5e-6, 50e-6]), bandwidth: random.pick(&[1e9, 5e9, 20e9]) };
    // Devices exchange memory where that is faster than through their hosts.
    let peers = Link { latency: random.pick(&[5e-6, 12e-6]), bandwidth: random.pick(&[50e9, 150e9, 290e9]) };
    let profile = if unified {
        MachineProfile::of_cores(4)
    } else {
        MachineProfile::shipped("NVIDIA H200").expect("it is shipped")
    };
    Arc::new(Machine::alike(MachineProfile { links: Links { peers, host: network, network }, ..profile }))
}

/// The extents of pictures.
pub(crate) fn shape(random: &mut ProgramRandom) -> Shape {
    Shape::new(random.pick(&[64, 256, 1000, 4096]), random.pick(&[64, 512, 1024, 4096]), 1)
}
