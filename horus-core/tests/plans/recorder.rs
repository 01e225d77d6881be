//! Programs recorded by hand, and plans for them.

use horus_core::dtype::{Conversion, DType, Scalar};
use horus_core::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use horus_core::ops::geometric::{Affine, Interpolation, rotation};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::optimize::optimize;
use horus_core::plan::partition::Partition;
use horus_core::plan::state::{ImageState, Placement, Residency};
use horus_core::plan::verify::verify;
use horus_core::plan::{Mode, Plan, ResultDelivery, Setting, plan};
use horus_core::shape::{Border, Shape};
use std::panic::Location;

/// Builds recorded programs by hand.
pub(crate) struct PlanRecorder {
    pub(crate) graph: Graph<Op>,
    pub(crate) shape: Shape,
}

impl PlanRecorder {
    pub(crate) fn new(height: usize, width: usize) -> PlanRecorder {
        PlanRecorder { graph: Graph::default(), shape: Shape::new(height, width, 1) }
    }

    pub(crate) fn op(&mut self, op: Op, inputs: &[NodeId], dtype: DType) -> NodeId {
        let (inputs, shape) = (inputs.to_vec(), self.shape);
        self.graph.push(Node { op, inputs, shape, dtype, site: Location::caller().into() })
    }

    pub(crate) fn source(&mut self, dtype: DType) -> NodeId {
        let value = ValueId(self.graph.nodes.len() as u64);
        self.op(Op::Source(value), &[], dtype)
    }

    /// A `u8` file, scaled to 0..1.
    pub(crate) fn picture(&mut self) -> NodeId {
        let s = self.source(DType::U8);
        let f = self.op(Op::Convert(Conversion::Nearest), &[s], DType::F32);
        self.constant(PixelOp::Div, f, 255.0)
    }

    pub(crate) fn fill(&mut self, v: f32) -> NodeId {
        self.op(Op::Fill(Scalar::F32(v)), &[], DType::F32)
    }

    pub(crate) fn binary(&mut self, op: PixelOp, a: NodeId, b: NodeId) -> NodeId {
        self.op(Op::Pixel(op, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]), &[a, b], DType::F32)
    }

    pub(crate) fn constant(&mut self, op: PixelOp, a: NodeId, c: f32) -> NodeId {
        self.op(Op::Pixel(op, vec![PixelOpOperand::Input(0), PixelOpOperand::Const(Scalar::F32(c))]), &[a], DType::F32)
    }

    pub(crate) fn absdiv(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let operands =
            vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1), PixelOpOperand::Const(Scalar::F32(1e-3))];
        self.op(Op::Pixel(PixelOp::AbsDiv, operands), &[a, b], DType::F32)
    }

    pub(crate) fn correlate(&mut self, a: NodeId, filter: Filter, border: Border) -> NodeId {
        self.op(Op::Correlate(filter, border), &[a], DType::F32)
    }

    pub(crate) fn gauss_xy(&mut self, a: NodeId, su: usize, sv: usize, order: usize) -> NodeId {
        let r = 3 * su.max(sv);
        let row = Filter::row(vec![su as f64; 2 * r + 1]);
        let column = Filter::column(vec![(100 * sv + order) as f64; 2 * r + 1]);
        self.op(Op::Separable { row, column, border: Border::Reflect101 }, &[a], DType::F32)
    }

    pub(crate) fn gauss_2d(&mut self, a: NodeId, theta: f64, su: usize, sv: usize, order: usize) -> NodeId {
        let n = 6 * su.max(sv) + 1;
        let taps = vec![theta + (100 * sv + order) as f64; n * n];
        self.correlate(a, Filter::dense(n, n, taps), Border::Reflect101)
    }

    pub(crate) fn rotate(&mut self, a: NodeId, degrees: f64) -> NodeId {
        let map = Affine::new(rotation(degrees, self.shape), self.shape).unwrap();
        let outside = Border::Constant(0.0);
        self.op(Op::Warp(map, Interpolation::Bilinear, outside.into()), &[a], DType::F32)
    }

    pub(crate) fn detect(&mut self, acc: NodeId, f1: NodeId, f2: NodeId, scale: f32) -> NodeId {
        let d = self.absdiv(f1, f2);
        let d = self.constant(PixelOp::Mul, d, scale);
        self.binary(PixelOp::Max, acc, d)
    }
}

pub(crate) const SCALES: [(usize, usize); 9] = [(3, 1), (3, 2), (3, 3), (5, 1), (5, 2), (5, 3), (7, 1), (7, 2), (7, 3)];

pub(crate) fn conv_rot(size: usize, thetas: usize) -> Graph<Op> {
    let mut p = PlanRecorder::new(size, size);
    let image = p.picture();
    let mut result = p.fill(0.0);
    for t in 0..thetas {
        let theta = 15.0 * t as f64;
        let rotated = p.rotate(image, theta);
        let mut contrast = p.fill(0.0);
        for (su, sv) in SCALES {
            let f1 = p.gauss_xy(rotated, su, sv, 2);
            let f2 = p.gauss_xy(rotated, su, sv, 0);
            contrast = p.detect(contrast, f1, f2, (su * sv) as f32);
        }
        let back = p.rotate(contrast, -theta);
        result = p.binary(PixelOp::Max, result, back);
    }
    p.graph.roots = vec![result, image];
    p.graph
}

pub(crate) fn conv_2d(size: usize, thetas: usize) -> Graph<Op> {
    let mut p = PlanRecorder::new(size, size);
    let image = p.picture();
    let mut result = p.fill(0.0);
    for t in 0..thetas {
        for (su, sv) in SCALES {
            let f1 = p.gauss_2d(image, 15.0 * t as f64, su, sv, 2);
            let f2 = p.gauss_2d(image, 15.0 * t as f64, su, sv, 0);
            result = p.detect(result, f1, f2, (su * sv) as f32);
        }
    }
    p.graph.roots = vec![result, image];
    p.graph
}

pub(crate) fn make(graph: Graph<Op>, ranks: usize, unified: bool, mode: Mode) -> Plan {
    make_within(graph, ranks, unified, mode, None)
}

pub(crate) fn make_within(graph: Graph<Op>, ranks: usize, unified: bool, mode: Mode, capacity: Option<usize>) -> Plan {
    make_for(graph, Setting { mode, capacity, ..Setting::of(Partition::equal(ranks), unified) })
}

/// On devices that exchange memory without the host.
pub(crate) fn make_direct(graph: Graph<Op>, ranks: usize, capacity: Option<usize>) -> Plan {
    let partition = Partition::equal(ranks);
    make_for(graph, Setting { direct: true, capacity, ..Setting::of(partition, false) })
}

/// The same for images that every rank gave.
pub(crate) fn make_given(graph: Graph<Op>, ranks: usize, capacity: Option<usize>) -> Plan {
    let partition = Partition::equal(ranks);
    let setting = Setting { direct: true, capacity, ..Setting::of(partition, false) };
    make_of(graph, setting, Placement::Replicated)
}

pub(crate) fn make_for(graph: Graph<Op>, setting: Setting) -> Plan {
    let placement = if setting.partition.ranks() == 1 { Placement::Replicated } else { Placement::ROOT };
    make_of(graph, setting, placement)
}

pub(crate) fn make_of(graph: Graph<Op>, setting: Setting, placement: Placement) -> Plan {
    let (unified, mode) = (setting.unified, setting.mode);
    let residency = if unified { Residency::Both } else { Residency::Host };
    let mut wants = vec![ResultDelivery::Root];
    wants.resize(graph.roots.len(), ResultDelivery::Keep);
    let kernels = optimize(graph, mode == Mode::Fused, &setting.machine, &mut |_, _| ()).unwrap();
    let p = plan(kernels, &wants, &setting, |_| ImageState { residency, placement }, |_| true, &mut |_, _| ()).unwrap();
    verify(&p).unwrap_or_else(|e| panic!("{e}\n{p}"));
    p
}

/// The steps without node numbers and reasons.
pub(crate) fn steps(p: &Plan) -> Vec<String> {
    p.steps.iter().map(|s| p.describe(&s.action).split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}
