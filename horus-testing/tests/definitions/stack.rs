//! Programs of stacked pictures against the program of each picture.

use std::collections::BTreeSet;
use std::panic::Location;

use horus_base::dtype::DType;
use horus_base::shape::{Border, Shape};
use horus_plan::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use horus_plan::ops::operation::ImageExtent;
use horus_plan::ops::{Instance, SampleImages, samples};
use horus_plan::region::stack;
use horus_testing::reference::{ReferenceImage, evaluate};

const COUNT: usize = 3;

/// Pixels of several values, some of them equal; different for each seed.
fn image((shape, dtype): ImageExtent, seed: usize) -> ReferenceImage {
    let value = |c: usize, y: usize, x: usize| (c * 5 + y * y * 3 + x * 7 + seed * 11) % 8;
    match dtype {
        DType::F64 => ReferenceImage::from_fn(shape, |c, y, x| value(c, y, x) as f64),
        DType::I32 => ReferenceImage::from_fn(shape, |c, y, x| value(c, y, x) as i32),
        DType::U8 | DType::Bool => ReferenceImage::from_fn(shape, |c, y, x| u8::from(value(c, y, x) > 3)),
        _ => ReferenceImage::from_fn(shape, |c, y, x| value(c, y, x) as f32),
    }
}

fn bytes(images: &[ReferenceImage]) -> Vec<u8> {
    images.iter().flat_map(|image| image.bytes().to_vec()).collect()
}

/// A volume whose levels are these images.
fn volume(levels: &[ReferenceImage]) -> ReferenceImage {
    let (first, bytes) = (&levels[0], bytes(levels));
    let shape = Shape { depth: levels.len(), ..first.shape };
    horus_base::dispatch!(first.dtype(), T => ReferenceImage::new(shape, bytemuck::cast_slice::<u8, T>(&bytes).to_vec()))
}

/// Checks an operation whose input `of` is a picture; returns `false` if it is not computed level by level.
fn check(Instance { operation, inputs, output, .. }: &Instance, of: usize, name: &str) -> bool {
    let mut graph = Graph::<Op>::default();
    let site = || Location::caller().into();
    let given = inputs.iter().enumerate();
    let source = |(k, &(shape, dtype)): (usize, &ImageExtent)| {
        let op = Op::Source(ValueId(k as u64));
        graph.push(Node { op, inputs: Vec::new(), shape, dtype, site: site() })
    };
    let sources: Vec<NodeId> = given.map(source).collect();
    let (op, (shape, dtype)) = (operation.clone(), *output);
    let root = graph.push(Node { op: Op::Whole(op), inputs: sources, shape, dtype, site: site() });
    graph.roots = vec![root];
    let Ok(stacked) = stack(&graph, NodeId(of), COUNT) else { return false };
    let of_picture = |ValueId(k): ValueId, picture: usize| {
        let k = k as usize;
        image(inputs[k], if k == of { 20 + picture } else { k })
    };
    let pictures: Vec<_> = (0..COUNT).map(|z| evaluate(&graph, &|v| of_picture(v, z)).remove(0)).collect();
    let all = evaluate(&stacked, &|v| match v {
        ValueId(k) if k as usize == of => volume(&(0..COUNT).map(|z| of_picture(v, z)).collect::<Vec<_>>()),
        _ => of_picture(v, 0),
    });
    assert_eq!(all[0], volume(&pictures), "{name}");
    true
}

#[test]
fn each_level_is_the_result_of_its_picture() {
    let (mut stacked, mut alone) = (BTreeSet::new(), BTreeSet::new());
    for shape in [Shape::new(1, 1, 1), Shape::new(6, 5, 1), Shape::new(5, 7, 2)] {
        for instance in samples(SampleImages::of(shape, DType::F32, Border::Reflect101)) {
            let kind = instance.operation.kind();
            for of in 0..instance.inputs.len() {
                let is_stacked = check(&instance, of, &format!("input {of} of {kind}, {shape}"));
                if of == 0 {
                    if is_stacked { &mut stacked } else { &mut alone }.insert(kind);
                }
            }
        }
    }
    // Others mix pictures, or are not known to keep levels apart.
    let others = [
        "component sizes",
        "fold_extremes",
        "fold_moments",
        "histogram",
        "label",
        "label_min",
        "label_shape",
        "label_sum",
        "nearest_level",
        "reconstruct",
        "remap",
        "running_sum",
        "running_sum of levels",
        "tile_max",
        "tile_sum",
    ];
    assert_eq!(alone.difference(&stacked).copied().collect::<Vec<_>>(), others);
}
