//! Filters of order, mirror images and samples, each alone, against the oracle of images.

use super::{Picture, check, run};
use horus_base::dispatch;
use horus_base::dtype::DType;
use horus_base::shape::{Border, Shape, Window};
use horus_cpu::cpu::device::CpuDevice;
use horus_cpu::cpu::simd::Isa;
use horus_host::host::buffer::HostBuffer;
use horus_plan::ir::kernel::{Kernel, Leaf, LeafOp, MapKernel, Val};
use horus_plan::ops::edge::{Edge, Inside};
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_plan::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, OrderFilter, Reduce};
use horus_testing::pixels::{SIZES, assert_same, borders, noise};
use horus_testing::reference::{Image, convert, geometric, neighbourhood};

fn alone(op: LeafOp, dtype: DType) -> MapKernel {
    MapKernel { inputs: 1, leaves: vec![Leaf { op, dtype }], result: Some(Val::Leaf(0)), ..MapKernel::default() }
}

/// Numbered images of each size.
fn images(dtype: DType, special: impl Fn(usize) -> bool) -> impl Iterator<Item = Image> {
    SIZES.into_iter().enumerate().map(move |(n, size)| image(size, dtype, n as u64, special(n)))
}

fn image((height, width): (usize, usize), dtype: DType, seed: u64, special: bool) -> Image {
    dispatch!(dtype, T => Image::new(Shape::new(height, width, 1), noise::<T>(height * width, seed, special)))
}

fn picture(image: &Image) -> Picture {
    Picture::new(image.shape, image.dtype(), HostBuffer::from_slice(image.bytes()))
}

/// Checks that a leaf of the type of `want` is that image, for every instruction set.
fn follows(op: LeafOp, image: &Picture, want: &Image, what: &str) {
    let kernel = Kernel::Map(alone(op, want.dtype()));
    for isa in Isa::available() {
        let device = CpuDevice::new(Some(1)).unwrap().with_isa(isa);
        let (shape, dtype) = (want.shape, want.dtype());
        let got = run(&device, &kernel, std::slice::from_ref(image), shape, dtype, Window::whole(shape.height));
        let got = got.memory.host().unwrap();
        let what = format!("{what}, {dtype} {shape} {isa:?}");
        dispatch!(dtype, T => assert_same(got.as_slice::<T>(), want.as_slice::<T>(), &what));
    }
}

/// Checks filters at a border.
fn filters_follow(filter: impl Into<OrderFilter>, border: Border, image: &Image, given: &Picture) {
    let filter = filter.into();
    let want = neighbourhood::order(image, &filter, border);
    follows(LeafOp::Order(0, filter.clone(), border), given, &want, &format!("{filter:?} {border}"));
}

#[test]
fn medians_follow_the_network() {
    for dtype in DType::ALL {
        for image in images(dtype, |n| n % 2 == 0).chain([image((70, 530), dtype, 6, true)]) {
            let given = picture(&image);
            for size in [MedianSize::Three, MedianSize::Five] {
                borders().into_iter().for_each(|border| filters_follow(size, border, &image, &given));
            }
        }
    }
}

#[test]
fn flips_reverse_rows_and_columns() {
    for dtype in DType::ALL {
        for image in images(dtype, |_| true) {
            for how in [Flip::Horizontal, Flip::Vertical, Flip::Both] {
                let want = geometric::flip(&image, how);
                follows(LeafOp::Flip(0, how), &picture(&image), &want, &format!("{how:?}"));
            }
        }
    }
}

fn windows() -> Vec<Filter> {
    let weights = |n: usize| (0..n).map(|i| [0.0, 1.0, -0.0, 2.5, f64::NAN, -1.0, 0.25][i % 7]).collect::<Vec<_>>();
    vec![
        Filter::dense(3, 3, weights(9)),
        Filter::dense(2, 5, weights(10)).flipped(),
        Filter::row(weights(4)),
        Filter::column(weights(7)),
        Filter::sparse([(0, 0), (-9, 4), (2, -11), (2, -11)], weights(4)),
    ]
}

#[test]
fn every_combination_follows_the_definition() {
    let ways = Combine::ALL.into_iter().flat_map(|c| Reduce::ALL.map(|r| (c, r)));
    let small = ways
        .flat_map(|(combine, reduce)| windows().into_iter().map(move |window| Generalized { window, combine, reduce }));
    let large = [Filter::row(vec![0.0; 33]), Filter::dense(21, 6, vec![0.0; 126])].into_iter();
    let large = large.zip([Reduce::Max, Reduce::Min]);
    let large = large.map(|(window, reduce)| Generalized { window, combine: Combine::Pixel, reduce });
    let all: Vec<Generalized> = small.chain(large).collect();
    for dtype in DType::ALL {
        for image in images(dtype, |n| n % 2 == 1) {
            let given = picture(&image);
            for g in &all {
                borders().into_iter().for_each(|border| filters_follow(g.clone(), border, &image, &given));
            }
        }
    }
}

#[test]
fn extremes_of_zeros_and_nan_are_the_first_in_row_major_order() {
    let (h, w) = (40, 70);
    let values = [0.0f32, -0.0, f32::NAN, 0.0, -0.0, -0.0, f32::NAN, f32::NAN];
    let pixels = noise::<u8>(h * w, 9, false).into_iter().map(|r| values[r as usize % 8]).collect();
    let image = Image::new(Shape::new(h, w, 1), pixels);
    let given = picture(&image);
    for (kh, kw, reduce) in [(3, 3, Reduce::Min), (2, 4, Reduce::Max), (5, 3, Reduce::Max), (9, 14, Reduce::Min)] {
        let g = Generalized { window: Filter::dense(kh, kw, vec![0.0; kh * kw]), combine: Combine::Pixel, reduce };
        borders().into_iter().for_each(|border| filters_follow(g.clone(), border, &image, &given));
    }
}

/// Lengths around the boundaries of steps of four.
const LENGTHS: [usize; 14] = [1, 2, 3, 4, 5, 8, 9, 13, 16, 17, 48, 63, 65, 80];

/// Rectangles of many sizes, row by row or column by column, and other windows.
fn flat() -> Vec<Vec<(i32, i32)>> {
    let mut all: Vec<Vec<(i32, i32)>> = Vec::new();
    for (i, tall) in LENGTHS.into_iter().enumerate() {
        let wide = LENGTHS[(5 * i + 3) % LENGTHS.len()];
        let (up, left) = ((tall / 3) as i32, (wide - 1 - wide / 3) as i32);
        let (rows, columns) = (-up..tall as i32 - up, -left..wide as i32 - left);
        all.push(rows.clone().flat_map(|y| columns.clone().map(move |x| (y, x))).collect());
        all.push(columns.flat_map(|x| rows.clone().map(move |y| (y, x))).collect());
    }
    let disc =
        |r: i32| (-r..=r).flat_map(move |y| (-r..=r).map(move |x| (y, x))).filter(move |(y, x)| y * y + x * x <= r * r);
    all.extend([disc(1).collect(), disc(4).collect(), disc(11).collect(), disc(5).rev().collect()]);
    all.push(disc(3).chain(disc(2)).chain([(9, -7), (9, -6), (5, 12)]).collect());
    all.push((4..30).map(|x| (3, x)).collect());
    all.push(vec![(-4, 30)]);
    all
}

#[test]
fn extremes_of_windows_of_any_form_follow_the_definition() {
    for dtype in DType::ALL {
        for (i, offsets) in flat().into_iter().enumerate() {
            let image = image([(23, 70), (7, 150), (40, 20)][i % 3], dtype, i as u64, true);
            let given = picture(&image);
            let border = borders()[i % borders().len()];
            for reduce in [Reduce::Min, Reduce::Max] {
                let window = Filter::sparse(offsets.clone(), vec![0.0; offsets.len()]);
                filters_follow(Generalized { window, combine: Combine::Pixel, reduce }, border, &image, &given);
            }
        }
    }
}

fn maps(shape: Shape) -> Vec<([[f64; 3]; 2], Affine)> {
    let turned = [0.0, 30.0, 45.0, 90.0, 180.0, 211.7].map(|a| rotation(a, shape));
    let others = [
        [[0.31, 0.0, -2.5], [0.0, 0.17, 1.25]],
        [[-2.7, 0.4, 20.0], [1.1, 3.9, -31.0]],
        [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]],
        [[1.0, 0.0, -1000.25], [0.0, 1.0, 0.0]],
        [[0.0, 0.0, 0.25], [0.0, 0.0, 0.75]],
        [[1.7, 0.0, -3.5], [0.0, 0.6, 1.25]],
        [[-0.6, 0.0, 20.5], [0.0, -1.0, 30.0]],
    ];
    turned.into_iter().chain(others).map(|m| (m, Affine::new(m, shape).unwrap())).collect()
}

/// Calls `check` with every map of an image at every edge.
fn each_map(shape: Shape, constant: f64, check: impl Fn(Affine, Edge)) {
    for (matrix, map) in maps(shape) {
        let inside = Edge::Inside(Inside::of(matrix, shape, constant));
        borders().into_iter().map(Edge::from).chain([inside]).for_each(|edge| check(map, edge));
    }
}

#[test]
fn samples_follow_the_definition() {
    for dtype in DType::ALL {
        for image in images(dtype, |n| n % 2 == 0) {
            let given = picture(&image);
            each_map(image.shape, 5.0, |map, edge| {
                for how in Interpolation::ALL {
                    let want = geometric::warp(&image, image.shape, &map, how, edge);
                    follows(LeafOp::Warp(0, map, how, edge), &given, &want, &format!("{map:?} {how:?} {edge:?}"));
                }
            });
        }
    }
}

/// Samples of integers converted to floats are those of the converted image.
#[test]
fn integers_are_sampled_as_floats() {
    for (narrow, wide) in
        [DType::U8, DType::U16, DType::I16].into_iter().flat_map(|n| [(n, DType::F32), (n, DType::F64)])
    {
        for image in images(narrow, |_| false) {
            let (given, converted) = (picture(&image), convert(&image, wide));
            each_map(image.shape, 5.5, |map, edge| {
                let want = geometric::warp(&converted, image.shape, &map, Interpolation::Bilinear, edge);
                let op = LeafOp::Warp(0, map, Interpolation::Bilinear, edge);
                follows(op, &given, &want, &format!("{map:?} {edge:?} of {narrow}"));
            });
        }
    }
}

/// Strips and chunks of columns, held as far as they are read.
#[test]
fn parts_equal_the_whole() {
    let given = |size, dtype, special| [picture(&image(size, dtype, 5, special))];
    let medians = [Border::Reflect, Border::Wrap].map(|border| LeafOp::Order(0, MedianSize::Five.into(), border));
    for op in medians.into_iter().chain([Flip::Horizontal, Flip::Vertical, Flip::Both].map(|how| LeafOp::Flip(0, how)))
    {
        check(&alone(op.clone(), DType::U16), &given((31, 600), DType::U16, false), DType::U16, &format!("{op:?}"));
    }
    for window in windows() {
        for (reduce, border) in [(Reduce::Sum, Border::Reflect101), (Reduce::Max, Border::Wrap)] {
            let g = Generalized { window: window.clone(), combine: Combine::Pixel, reduce };
            let what = format!("{g:?} {border}");
            let k = alone(LeafOp::Order(0, g.into(), border), DType::F32);
            check(&k, &given((60, 700), DType::F32, true), DType::F32, &what);
        }
    }
    let shape = Shape::new(67, 90, 1);
    for (matrix, map) in maps(shape) {
        for how in Interpolation::ALL {
            for edge in
                [Border::Constant(0.0).into(), Border::Wrap.into(), Edge::Inside(Inside::of(matrix, shape, 5.0))]
            {
                let k = alone(LeafOp::Warp(0, map, how, edge), DType::F32);
                check(&k, &given((67, 90), DType::F32, false), DType::F32, &format!("{map:?} {how:?} {edge:?}"));
            }
        }
    }
}
