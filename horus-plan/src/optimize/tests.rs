use super::*;
use crate::ir::graph::{Node, NodeId, PixelOpOperand, ValueId};
use crate::ir::kernel::{LeafOp, Val};
use crate::ops::geometric::{Affine, Interpolation};
use crate::ops::neighbourhood::Filter;
use crate::ops::pixel::PixelOp;
use crate::ops::planes::PlaneMap;
use horus_base::dtype::{Conversion, DType, Scalar};
use horus_base::shape::{Border, Shape};

fn node(op: Op, inputs: &[NodeId]) -> Node<Op> {
    let site = std::panic::Location::caller().into();
    Node { op, inputs: inputs.to_vec(), shape: Shape::new(9, 7, 1), dtype: DType::F32, site }
}

fn push(graph: &mut Graph<Op>, op: Op, inputs: &[NodeId]) -> NodeId {
    graph.push(node(op, inputs))
}

/// `2 * filtered + image`, twice.
fn program() -> Graph<Op> {
    let mut g = Graph::default();
    let image = push(&mut g, Op::Source(ValueId(0)), &[]);
    for _ in 0..2 {
        let (row, column) = (Filter::row(vec![1.0; 3]), Filter::column(vec![1.0; 3]));
        let filtered = push(&mut g, Op::Separable { row, column, border: Border::Wrap }, &[image]);
        let two = PixelOpOperand::Const(Scalar::F32(2.0));
        let twice = push(&mut g, Op::Pixel(PixelOp::Mul, vec![PixelOpOperand::Input(0), two]), &[filtered]);
        let sum = vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)];
        let sum = push(&mut g, Op::Pixel(PixelOp::Add, sum), &[twice, image]);
        g.roots.push(sum);
    }
    g
}

/// The error of a list of passes with `broken` after the pass `after`.
fn caught(after: &str, broken: PassFunction) -> String {
    let mut passes = PASSES.to_vec();
    let at = passes.iter().position(|p| p.name == after).expect("a pass of the list") + 1;
    passes.insert(at, GraphPass { name: "broken", fusing: false, run: broken });
    match run(&passes, program(), true, &OptimizationTarget::of(&Machine::of_default(false)), &mut |_, _| ()) {
        Err(Error::Pass { pass: "broken", cause }) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_pass_is_dumped_by_its_name() {
    let names = |fuse: bool| {
        let mut names = Vec::new();
        optimize(program(), fuse, &Machine::of_default(false), &mut |name, text| {
            assert!(!text.to_string().is_empty());
            names.push(name.to_owned());
        })
        .unwrap();
        names
    };
    let all: Vec<&str> = ["recorded"].into_iter().chain(PASSES.iter().map(|p| p.name)).collect();
    assert_eq!(names(true), all);
    assert_eq!(names(false), ["recorded", "split large rectangles", "dead code", "lower"]);
}

#[test]
fn a_pass_that_breaks_recorded_operations_is_named() {
    let lost = caught(
        "dead code",
        PassFunction::Recorded(|mut g| {
            g.roots.pop();
            g
        }),
    );
    assert!(lost.contains("the results have changed"), "{lost}");
    let order = caught(
        "dead code",
        PassFunction::Recorded(|mut g| {
            g.nodes[1].inputs = vec![NodeId(2)];
            g
        }),
    );
    assert!(order.contains("%1 reads what comes after it"), "{order}");
    let shape = caught(
        "dead code",
        PassFunction::Recorded(|mut g| {
            g.nodes[0].shape = Shape::new(4, 4, 1);
            g
        }),
    );
    assert!(shape.contains("pixel by pixel"), "{shape}");
    let kind = caught(
        "dead code",
        PassFunction::Recorded(|mut g| {
            g.nodes[0].dtype = DType::F64;
            g
        }),
    );
    assert!(kind.contains("it makes f64, wanted is f32"), "{kind}");
    let operand = caught(
        "dead code",
        PassFunction::Recorded(|mut g| {
            let last = g.nodes.len() - 1;
            g.nodes[last].inputs.pop();
            g
        }),
    );
    assert!(operand.contains("an operand is no input"), "{operand}");
}

#[test]
fn a_pass_that_breaks_kernels_is_named() {
    fn last(g: &mut Graph<Kernel>) -> &mut crate::ir::kernel::MapKernel {
        match g.nodes.last_mut().map(|n| &mut n.op) {
            Some(Kernel::Map(m)) => m,
            other => panic!("{other:?}"),
        }
    }
    let input = caught(
        "prologues",
        PassFunction::Kernels(|mut g| {
            last(&mut g).leaves[0].op = LeafOp::Load(7);
            g
        }),
    );
    assert!(input.contains("Input(7) does not exist"), "{input}");
    let kind = caught(
        "prologues",
        PassFunction::Kernels(|mut g| {
            last(&mut g).leaves[0].dtype = DType::U8;
            g
        }),
    );
    assert!(kind.contains("it reads f32, wanted is u8"), "{kind}");
    let order = caught(
        "prologues",
        PassFunction::Kernels(|mut g| {
            last(&mut g).code[0].args[0] = Val::Instr(1);
            g
        }),
    );
    assert!(order.contains("instruction 0 reads the result of 1"), "{order}");
    let result = caught(
        "prologues",
        PassFunction::Kernels(|mut g| {
            last(&mut g).result = None;
            g
        }),
    );
    assert!(result.contains("it has no result"), "{result}");
    let chain = caught(
        "prologues",
        PassFunction::Kernels(|mut g| {
            last(&mut g).stages.clear();
            g
        }),
    );
    assert!(chain.contains("row pass 0 does not exist"), "{chain}");
}

#[test]
fn a_list_out_of_order_is_an_error() {
    let cause = caught("split separable filters", PassFunction::Kernels(|g| g));
    assert!(cause.contains("does not run on what"), "{cause}");
    let unfinished =
        run(&PASSES[..3], program(), true, &OptimizationTarget::of(&Machine::of_default(false)), &mut |_, _| ())
            .unwrap_err()
            .to_string();
    assert!(unfinished.contains("after the pass `lower`: it did not run"), "{unfinished}");
}

#[test]
fn linear_samples_read_narrow_integers_as_they_are_stored() {
    for (stored, how, nodes) in [
        (DType::U8, Interpolation::Bilinear, 2),
        (DType::I16, Interpolation::Bilinear, 2),
        // Floats do not hold all values, or pixels are only moved.
        (DType::I32, Interpolation::Bilinear, 3),
        (DType::U8, Interpolation::Nearest, 3),
    ] {
        let mut g = Graph::default();
        let image = push(&mut g, Op::Source(ValueId(0)), &[]);
        g.nodes[image.0].dtype = stored;
        let wide = push(&mut g, Op::Convert(Conversion::Nearest), &[image]);
        let map = Affine { xy: 1 << 30, ..Affine::IDENTITY };
        let sampled = push(&mut g, Op::Warp(map, how, Border::Reflect101.into()), &[wide]);
        g.roots.push(sampled);
        let found = cse::without_widening(lower::lower(g));
        assert_eq!(found.nodes.len(), nodes, "{stored} {how:?}");
        assert_eq!(found.node(found.roots[0]).dtype, DType::F32);
    }
}

#[test]
fn long_column_passes_read_stored_row_passes_on_a_gpu() {
    let kernels = |taps: usize, unified: bool| {
        let mut g = Graph::default();
        let image = push(&mut g, Op::Source(ValueId(0)), &[]);
        let (row, column) = (Filter::row(vec![1.0; taps]), Filter::column(vec![1.0; taps]));
        let root = push(&mut g, Op::Separable { row, column, border: Border::Wrap }, &[image]);
        g.roots.push(root);
        let kernels = optimize(g, true, &Machine::of_default(unified), &mut |_, _| ()).unwrap();
        kernels.nodes.iter().filter(|n| matches!(n.op, Kernel::Map(_))).count()
    };
    assert_eq!([47, 49].map(|taps| kernels(taps, false)), [1, 2]);
    assert_eq!([47, 49].map(|taps| kernels(taps, true)), [1, 1], "a processor computes each row once");
}

#[test]
fn planes_beyond_the_limit_of_a_kernel_take_one_more() {
    let launches = |depth: usize, unified: bool| {
        let volume = Shape { depth, ..Shape::new(9, 7, 1) };
        let mut g = Graph::default();
        let source = g.push(Node { shape: volume, ..node(Op::Source(ValueId(0)), &[]) });
        let two = vec![PixelOpOperand::Input(0), PixelOpOperand::Const(Scalar::F32(2.0))];
        let computed = g.push(Node { shape: volume, ..node(Op::Pixel(PixelOp::Mul, two), &[source]) });
        g.roots.push(computed);
        let level = |z: i32| Op::Planes(PlaneMap::levels(volume, 1, 1, z, Border::Replicate));
        let levels: Vec<NodeId> = (0..depth as i32).map(|z| push(&mut g, level(z), &[computed])).collect();
        let add = || Op::Pixel(PixelOp::Add, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]);
        let sum = levels[1..].iter().fold(levels[0], |all, level| push(&mut g, add(), &[all, *level]));
        g.roots.push(sum);
        let kernels = optimize(g, true, &Machine::of_default(unified), &mut |_, _| ()).unwrap();
        kernels.nodes.iter().filter(|n| matches!(n.op, Kernel::Map(_))).count()
    };
    assert_eq!(launches(42, false), 3, "the volume, and its sum in two");
    assert_eq!(launches(99, true), 2, "a processor reads the levels of the longest filter of splines at once");
    assert_eq!(launches(110, true), 3, "but no more");
}

#[test]
fn kernels_know_the_calls_that_they_compute() {
    let calls = |fuse: bool| {
        let mut g = program();
        for (i, node) in g.nodes.iter_mut().enumerate() {
            node.site.record = i as u64 + 1;
        }
        let kernels = optimize(g, fuse, &Machine::of_default(true), &mut |_, _| ()).unwrap();
        let numbers = |calls: &Vec<_>| calls.iter().map(|c: &horus_base::error::RecordedCall| c.record).collect();
        assert!(kernels.nodes.iter().all(|node| node.site.record > 0), "nodes have their calls again");
        kernels.calls.iter().map(numbers).collect::<Vec<Vec<u64>>>()
    };
    // The second filter, product and sum are equal to the first.
    assert_eq!(calls(true), [vec![1], vec![2, 3, 4]]);
    assert_eq!(calls(false), [[1], [2], [3], [4], [5], [6], [7]]);
}
