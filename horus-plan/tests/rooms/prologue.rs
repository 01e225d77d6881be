//! Chains that kernels evaluate around their pixels.

use horus_base::dtype::{Conversion, DType, Scalar};
use horus_base::settings::Stencil;
use horus_base::shape::{Border, Shape};
use horus_plan::ir::graph::{Graph, Node, NodeId, ValueId};
use horus_plan::ir::kernel::{FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use horus_plan::machine::{Machine, MachineProfile};
use horus_plan::ops::Transpose;
use horus_plan::ops::neighbourhood::{Filter, MedianSize};
use horus_plan::ops::pixel::PixelOp;
use horus_plan::optimize::OptimizationTarget;
use horus_plan::optimize::prologue::{absorb, narrow};

const F: DType = DType::F32;

fn push(g: &mut Graph<Kernel>, op: Kernel, inputs: &[NodeId]) -> NodeId {
    let site = std::panic::Location::caller().into();
    g.push(Node { op, inputs: inputs.to_vec(), shape: Shape::new(4096, 4096, 1), dtype: F, site })
}

fn load(i: usize) -> Leaf {
    Leaf { op: LeafOp::Load(i), dtype: F }
}

fn product() -> MapKernel {
    let code =
        vec![Instr { op: InstrOp::Pixel(PixelOp::Mul), operand: F, result: F, args: vec![Val::Leaf(0), Val::Leaf(1)] }];
    MapKernel { inputs: 2, leaves: vec![load(0), load(1)], code, result: Some(Val::Instr(0)), ..MapKernel::default() }
}

fn separable(taps: usize) -> MapKernel {
    let border = Border::Reflect101;
    let stages = vec![RowFilterStage { source: FilterSource::Input(0), filter: Filter::row(vec![1.0; taps]), border }];
    let op = LeafOp::Correlate(FilterSource::Stage(0), Filter::column(vec![1.0; taps]), border);
    MapKernel {
        inputs: 1,
        stages,
        leaves: vec![Leaf { op, dtype: F }],
        result: Some(Val::Leaf(0)),
        ..MapKernel::default()
    }
}

/// Two images, their product, and `reader` of it (and of the first image, if it has two inputs).
fn program(reader: MapKernel) -> (Graph<Kernel>, NodeId, NodeId) {
    let mut g = Graph::default();
    let images = [0, 1].map(|v| push(&mut g, Kernel::Source(ValueId(v)), &[]));
    let p = push(&mut g, Kernel::Map(product()), &images);
    let inputs = [p, images[0]];
    let n = reader.inputs;
    let r = push(&mut g, Kernel::Map(reader), &inputs[..n]);
    g.roots.push(r);
    (g, p, r)
}

fn chains(g: Graph<Kernel>, id: NodeId) -> usize {
    match &absorb(g, &OptimizationTarget::of(&Machine::of_default(false))).node(id).op {
        Kernel::Map(m) => m.chains.len(),
        _ => 0,
    }
}

#[test]
fn filters_evaluate_what_they_alone_read() {
    let (g, _, r) = program(separable(19));
    let g = absorb(g, &OptimizationTarget::of(&Machine::of_default(false)));
    let Kernel::Map(m) = &g.node(r).op else { panic!("a filter is a map") };
    assert_eq!(g.node(r).inputs, [NodeId(0), NodeId(1)]);
    assert_eq!((m.inputs, m.stages[0].source), (2, FilterSource::Chain(0)));
    assert_eq!(m.chains, [product()]);
    assert!((0..2).all(|i| m.access(i) == separable(19).access(0)), "both images are read as far as the product was");
    assert_eq!(g.without_dead().nodes.len(), 3, "the product is gone");
}

#[test]
fn what_others_read_is_stored() {
    let (mut g, p, r) = program(separable(19));
    push(&mut g, Kernel::from(Transpose), &[p]);
    assert_eq!(chains(g, r), 0);
    let (mut g, p, r) = program(separable(19));
    g.roots.push(p);
    assert_eq!(chains(g, r), 0);
}

#[test]
fn what_does_not_pay_is_stored() {
    let (g, _, r) = program(separable(43));
    assert_eq!(chains(g, r), 0, "long filters of two images");
    let dense = LeafOp::Correlate(FilterSource::Input(0), Filter::dense(66, 3, vec![1.0; 198]), Border::Wrap);
    let median = LeafOp::OrderFilter(0, MedianSize::Three.into(), Border::Wrap);
    for op in [dense, median] {
        let leaves = vec![Leaf { op, dtype: F }];
        let (g, _, r) = program(MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() });
        assert_eq!(chains(g, r), 0, "a tall filter, an order filter");
    }
    let mut long = program(separable(5)).0;
    let mut polynomial = product();
    for i in 0..40 {
        let args = vec![Val::Instr(i), Val::Const(Scalar::F32(i as f32))];
        polynomial.code.push(Instr { op: InstrOp::Pixel(PixelOp::Add), operand: F, result: F, args });
    }
    polynomial.result = Some(Val::Instr(40));
    long.nodes[2].op = Kernel::Map(polynomial);
    assert_eq!(chains(long, NodeId(3)), 0, "forty constants");
    let mut two = separable(5);
    two.stages.push(two.stages[0].clone());
    two.leaves.push(Leaf {
        op: LeafOp::Correlate(FilterSource::Stage(1), Filter::column(vec![1.0; 3]), Border::Wrap),
        dtype: F,
    });
    let (g, _, r) = program(two);
    assert_eq!(chains(g, r), 0, "two images for each of two row passes");
}

#[test]
fn what_is_read_pixel_by_pixel_too_is_evaluated_there() {
    // product - separable(product) * image
    let mut m = separable(5);
    m.inputs = 2;
    m.leaves.extend([load(0), load(1)]);
    let pixel = |op, args| Instr { op: InstrOp::Pixel(op), operand: F, result: F, args };
    m.code = vec![
        pixel(PixelOp::Mul, vec![Val::Leaf(0), Val::Leaf(2)]),
        pixel(PixelOp::Sub, vec![Val::Leaf(1), Val::Instr(0)]),
    ];
    m.result = Some(Val::Instr(1));
    let (g, _, r) = program(m);
    let g = absorb(g, &OptimizationTarget::of(&Machine::of_default(false)));
    let Kernel::Map(m) = &g.node(r).op else { panic!("a filter is a map") };
    let ops: Vec<&LeafOp> = m.leaves.iter().map(|l| &l.op).collect();
    // Inputs: the first image comes first, as the reader read it already.
    assert!(
        matches!(ops[..], [LeafOp::Load(0), LeafOp::Load(1), LeafOp::Correlate(FilterSource::Stage(0), ..)]),
        "{ops:?}"
    );
    assert_eq!(m.code[0], pixel(PixelOp::Mul, vec![Val::Leaf(0), Val::Leaf(1)]), "the product itself");
    assert_eq!(m.code[1].args, [Val::Leaf(2), Val::Leaf(0)]);
    assert_eq!(m.code[2].args, [Val::Instr(0), Val::Instr(1)]);
    assert_eq!(m.result, Some(Val::Instr(2)));
}

#[test]
fn constants_are_no_chains() {
    let mut g = Graph::default();
    let fill = MapKernel { result: Some(Val::Const(Scalar::F32(1.0))), ..MapKernel::default() };
    let p = push(&mut g, Kernel::Map(fill), &[]);
    let r = push(&mut g, Kernel::Map(separable(5)), &[p]);
    g.roots.push(r);
    assert_eq!(chains(g, r), 0);
}

/// Returns `true` if a filter becomes a chain of the filter that reads it.
fn filter_of_filter(taps: [usize; 2], aim: &OptimizationTarget<'_>) -> bool {
    let mut g = Graph::default();
    let image = push(&mut g, Kernel::Source(ValueId(0)), &[]);
    let [p, r] = taps.map(|n| {
        let at: Vec<(i32, i32)> = (0..n as i32).map(|i| (i / 6 - 1, i % 6 - 1)).collect();
        let op = LeafOp::Correlate(FilterSource::Input(0), Filter::sparse(at, vec![1.0; n]), Border::Replicate);
        let leaves = vec![Leaf { op, dtype: F }];
        MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() }
    });
    let p = push(&mut g, Kernel::Map(p), &[image]);
    let r = push(&mut g, Kernel::Map(r), &[p]);
    g.roots.push(r);
    match &absorb(g, aim).node(r).op {
        Kernel::Map(m) => !m.chains.is_empty(),
        _ => panic!("a filter is a map"),
    }
}

#[test]
fn filters_of_filters_are_stored_or_computed_where_they_are_read() {
    let cpu = Machine::alike(MachineProfile::of_cores(2));
    let auto = OptimizationTarget::of(&cpu);
    assert!(filter_of_filter([5, 4], &auto), "rows are kept");
    assert!(!filter_of_filter([5, 5], &auto), "two steps of one loop");
    for taps in [[36, 5], [2, 3]] {
        assert!(!filter_of_filter(taps, &OptimizationTarget { stencil: Stencil::Stored, ..auto }));
        assert!(filter_of_filter(taps, &OptimizationTarget { stencil: Stencil::Tile, ..auto }));
    }
    let gpu = Machine::alike(MachineProfile::shipped("NVIDIA H200").unwrap());
    for stencil in Stencil::ALL {
        assert!(
            !filter_of_filter([5, 4], &OptimizationTarget { stencil, ..OptimizationTarget::of(&gpu) }),
            "a GPU stores filters"
        );
    }
}

#[test]
fn what_is_stored_is_as_narrow_as_its_pixels() {
    // A sum cut to bytes, and these as floats for a filter that is too long for a chain.
    let (mut g, p, r) = program(separable(61));
    let convert = |operand, result, arg| Instr {
        op: InstrOp::Convert(Conversion::Cast),
        operand,
        result,
        args: vec![Val::Instr(arg)],
    };
    let Kernel::Map(m) = &mut g.nodes[p.0].op else { panic!("a product is a map") };
    m.code.extend([convert(F, DType::U8, 0), convert(DType::U8, F, 1)]);
    m.result = Some(Val::Instr(2));
    let g = narrow(g, &OptimizationTarget::of(&Machine::of_default(false)));
    let Kernel::Map(m) = &g.node(r).op else { panic!("a filter is a map") };
    assert_eq!((g.node(p).dtype, g.node(r).inputs.as_slice()), (DType::U8, &[p][..]));
    assert_eq!((m.stages[0].source, m.chains.len()), (FilterSource::Chain(0), 1));
    assert_eq!(m.chains[0].leaves, [Leaf { op: LeafOp::Load(0), dtype: DType::U8 }]);
}
