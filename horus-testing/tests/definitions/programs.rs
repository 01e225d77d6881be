//! Whole programs.

use std::panic::Location;

use horus_base::dtype::{Conversion, DType, Scalar};
use horus_base::shape::Shape;
use horus_plan::ir::graph::{Graph, Node, NodeId, Op, PixelOpOperand, ValueId};
use horus_plan::ops::Transpose;
use horus_plan::ops::pixel::PixelOp;
use horus_plan::ops::planes::PlaneMap;
use horus_testing::reference::{ReferenceImage, convert, evaluate, merge, planes};

fn node(op: Op, inputs: &[usize], shape: Shape, dtype: DType) -> Node<Op> {
    let inputs = inputs.iter().map(|&i| NodeId(i)).collect();
    Node { op, inputs, shape, dtype, site: Location::caller().into() }
}

#[test]
fn a_program_is_evaluated_node_by_node_and_yields_its_roots_in_their_order() {
    let shape = Shape::new(1, 2, 1);
    let mut g = Graph::default();
    let image = g.push(node(Op::Source(ValueId(7)), &[], shape, DType::U8));
    let ten = g.push(node(Op::Fill(Scalar::U8(10)), &[], shape, DType::U8));
    let sum = Op::Pixel(PixelOp::Add, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]);
    let sum = g.push(node(sum, &[image.0, ten.0], shape, DType::U8));
    let from = Op::Pixel(PixelOp::Sub, vec![PixelOpOperand::Const(Scalar::U8(200)), PixelOpOperand::Input(0)]);
    let from = g.push(node(from, &[sum.0], shape, DType::U8));
    g.roots = vec![from, image];
    let values = evaluate(&g, &|id| {
        assert_eq!(id, ValueId(7));
        ReferenceImage::new(shape, vec![5u8, 250])
    });
    assert_eq!(values, [ReferenceImage::new(shape, vec![185u8, 0]), ReferenceImage::new(shape, vec![5u8, 250])]);
}

#[test]
#[should_panic(expected = "another shape or type")]
fn a_node_must_be_what_it_says() {
    let mut g = Graph::default();
    g.push(node(Op::Fill(Scalar::F32(0.0)), &[], Shape::new(2, 2, 1), DType::F32));
    g.push(node(Op::from(Transpose), &[0], Shape::new(2, 2, 1), DType::F64));
    evaluate(&g, &|_| unreachable!("no sources"));
}

#[test]
fn conversion_rounds_once_and_saturates() {
    let shape = Shape::new(1, 5, 1);
    let f = ReferenceImage::new(shape, vec![0.5f32, 1.5, -3.0, 300.0, f32::NAN]);
    assert_eq!(convert(&f, DType::U8), ReferenceImage::new(shape, vec![0u8, 2, 0, 255, 0]));
    let i = ReferenceImage::new(Shape::new(1, 1, 1), vec![16_777_217i32]);
    let wide = ReferenceImage::new(shape, vec![-2.9f64, 1.5, 2.9, 1000.0, f64::NAN]);
    let cut = ReferenceImage::new(shape, vec![254u8, 1, 2, 232, 0]);
    let mut g = Graph::default();
    let source = g.push(node(Op::Source(ValueId(0)), &[], shape, DType::F64));
    g.roots = vec![g.push(node(Op::Convert(Conversion::Cast), &[source.0], shape, DType::U8))];
    assert_eq!(evaluate(&g, &|_| wide.clone()), [cut]);
    assert_eq!(convert(&i, DType::F32), ReferenceImage::new(Shape::new(1, 1, 1), vec![16_777_216f32]));
}

#[test]
fn planes_part_and_meet_again() {
    let image = ReferenceImage::new(Shape::new(1, 2, 3), vec![1u16, 2, 3, 4, 5, 6]);
    let parts: Vec<ReferenceImage> = (0..3).map(|c| planes(&image, &PlaneMap::one(c), Shape::new(1, 2, 1))).collect();
    assert_eq!(parts[1], ReferenceImage::new(Shape::new(1, 2, 1), vec![3u16, 4]));
    assert_eq!(merge(&[&parts[0], &parts[1], &parts[2]], image.shape), image);
}
