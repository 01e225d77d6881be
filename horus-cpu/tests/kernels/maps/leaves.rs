//! Filters of order, mirror images and samples, each alone, against the oracle of images.

use super::{KernelImage, check, launches, run};
use horus_base::dispatch;
use horus_base::dtype::{DType, Scalar};
use horus_base::shape::{Border, Shape, Window};
use horus_cpu::device::CpuDevice;
use horus_cpu::simd::Isa;
use horus_host::buffer::HostBuffer;
use horus_plan::ir::kernel::{Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Repeat, Val};
use horus_plan::ops::edge::{InsidePixels, WarpEdge};
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_plan::ops::neighbourhood::{
    Combine, Filter, Generalized, MedianSize, OrderFilter, Pairing, Reduce, TapLevels, Truncated,
};
use horus_plan::ops::pixel::PixelOp;
use horus_testing::cases::covering;
use horus_testing::pixels::{SIZES, assert_same, borders, noise, with_nan};
use horus_testing::reference::{ReferenceImage, convert, geometric, interleaved, neighbourhood};

fn alone(op: LeafOp, dtype: DType) -> MapKernel {
    MapKernel { inputs: 1, leaves: vec![Leaf { op, dtype }], result: Some(Val::Leaf(0)), ..MapKernel::default() }
}

fn image((height, width): (usize, usize), dtype: DType, seed: u64, special: bool) -> ReferenceImage {
    dispatch!(dtype, T => ReferenceImage::new(Shape::new(height, width, 1), noise::<T>(height * width, seed, special)))
}

fn picture(image: &ReferenceImage) -> KernelImage {
    KernelImage::new(image.shape, image.dtype(), HostBuffer::from_slice(image.bytes()))
}

/// Checks that a leaf of the type of `want` is that image, for every instruction set.
fn follows(op: LeafOp, image: &KernelImage, want: &ReferenceImage, what: &str) {
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
fn filters_follow(filter: impl Into<OrderFilter>, border: Border, image: &ReferenceImage, given: &KernelImage) {
    let filter = filter.into();
    let want = neighbourhood::order(image, &filter, border);
    follows(LeafOp::OrderFilter(0, filter.clone(), border), given, &want, &format!("{filter:?} {border}"));
    if image.shape.planes() == 1 {
        let planes = colours(image);
        let want = interleaved(&neighbourhood::order(&planes, &filter, border));
        let what = format!("{filter:?} {border} of samples");
        follows(LeafOp::OrderFilter(0, filter, border), &picture(&interleaved(&planes)), &want, &what);
    }
}

/// Two to six channels of the pixels of a plane.
fn colours(image: &ReferenceImage) -> ReferenceImage {
    let Shape { height, width, .. } = image.shape;
    let channels = 2 + height * width % 5;
    let pixel = |c: usize, y: usize, x: usize| ((y + c) % height, (x + 2 * c) % width);
    dispatch!(image.dtype(), T => ReferenceImage::from_fn(Shape::new(height, width, channels), |c, y, x| {
        let (y, x) = pixel(c, y, x);
        image.at::<T>(0, y, x)
    }))
}

#[test]
fn medians_follow_the_network() {
    let (sizes, borders) = ([SIZES.as_slice(), &[(70, 530)]].concat(), borders());
    for [dtype, number, five, border] in covering([DType::ALL.len(), sizes.len(), 2, borders.len()]) {
        let image = image(sizes[number], DType::ALL[dtype], number as u64, number % 2 == 0);
        filters_follow([MedianSize::Three, MedianSize::Five][five], borders[border], &image, &picture(&image));
    }
}

/// Rows, columns and rectangles, of sums that are whole numbers but for a rounding, and of such that leave the type and 32 or 64 bits.
#[test]
fn truncated_filters_are_cut_sums_in_order() {
    let line = |n: i32, down: bool, scale: f64| {
        let place = |k: i32| if down { (k, 0) } else { (0, k) };
        let offsets: Vec<(i32, i32)> =
            std::iter::once(place(0)).chain((1..=n).rev().flat_map(|k| [place(-k), place(k)])).collect();
        let taps: Vec<f64> = (0..offsets.len()).map(|i| scale * 0.1 * (1 + i.div_ceil(2)) as f64).collect();
        Filter::sparse(offsets, taps)
    };
    let box_of = |scale: f64| {
        let offsets: Vec<(i32, i32)> = (-1..4).flat_map(|y| (-4..=2).map(move |x| (y, x))).collect();
        let taps: Vec<f64> = (0..offsets.len()).map(|i| scale * (i as f64 - 11.0) / 35.0).collect();
        Filter::sparse(offsets, taps)
    };
    let windows = [
        line(2, false, 1.0),
        line(2, true, 1.0),
        line(9, true, 0.1),
        line(40, false, 0.01),
        box_of(1.0),
        box_of(1e5),
        box_of(-1e12),
    ];
    let (sizes, borders) = ([SIZES.as_slice(), &[(70, 530)]].concat(), borders());
    let lengths = [DType::ALL.len(), sizes.len(), windows.len(), Pairing::ALL.len(), borders.len()];
    for [dtype, number, window, pairing, border] in covering(lengths) {
        let image = image(sizes[number], DType::ALL[dtype], number as u64, number % 2 == 0);
        let filter = Truncated { window: windows[window].clone(), pairing: Pairing::ALL[pairing], levels: None };
        assert!(filter.is_paired(), "{filter:?}");
        filters_follow(filter, borders[border], &image, &picture(&image));
    }
}

/// Levels beyond the first and the last are those of the border mode; taps of one level follow those of another.
#[test]
fn truncated_filters_read_levels() {
    let at = [(0, 0, 0), (2, -1, 4), (-2, 1, -4), (1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1), (-4, 0, 0), (4, 2, 0)];
    let taps: Vec<f64> = [5, 1, 1, 2, 2, 3, 3, 1, 1].map(|tap| 0.1 * f64::from(tap)).into();
    let window = Filter::sparse(at.map(|(_, y, x)| (y, x)), taps);
    let (sizes, borders) = ([SIZES.as_slice(), &[(70, 130)]].concat(), borders());
    let lengths = [DType::ALL.len(), sizes.len(), Pairing::ALL.len(), borders.len(), 2];
    for [dtype, number, pairing, border, deep] in covering(lengths) {
        let ((height, width), (depth, channels)) = (sizes[number], [(1, 2), (3, 1)][deep]);
        let (shape, n) = (Shape::volume(depth, height, width, channels), depth * height * width * channels);
        let levels = TapLevels { by: at.map(|(z, ..)| z).into(), depth, channels };
        let filter = Truncated { window: window.clone(), pairing: Pairing::ALL[pairing], levels: Some(levels) };
        let image = dispatch!(DType::ALL[dtype], T => ReferenceImage::new(shape, noise::<T>(n, number as u64, false)));
        filters_follow(filter, borders[border], &image, &picture(&image));
    }
}

#[test]
fn orders_put_nan_last_wherever_it_lies() {
    let (sizes, borders) = ([SIZES.as_slice(), &[(70, 530), (3, 259)]].concat(), borders());
    let window = || Filter::dense(5, 3, vec![0.0; 15]);
    let extreme = |reduce| OrderFilter::from(Generalized { window: window(), combine: Combine::Pixel, reduce });
    let filters = [MedianSize::Three.into(), MedianSize::Five.into(), extreme(Reduce::Min), extreme(Reduce::Max)];
    for [double, number, filter, border, every] in covering([2, sizes.len(), 4, borders.len(), 4]) {
        let (size, every) = (sizes[number], [1, 2, 5, 120][every]);
        let (shape, n) = (Shape::new(size.0, size.1, 1), size.0 * size.1);
        let image = match double {
            0 => ReferenceImage::new(shape, with_nan::<f32>(n, number as u64, every)),
            _ => ReferenceImage::new(shape, with_nan::<f64>(n, number as u64, every)),
        };
        filters_follow(filters[filter].clone(), borders[border], &image, &picture(&image));
    }
}

#[test]
fn flips_reverse_rows_and_columns() {
    for dtype in DType::ALL {
        for (n, size) in SIZES.into_iter().enumerate() {
            let image = image(size, dtype, n as u64, true);
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
    let borders = borders();
    for [g, dtype, number, border] in covering([all.len(), DType::ALL.len(), SIZES.len(), borders.len()]) {
        let image = image(SIZES[number], DType::ALL[dtype], number as u64, number % 2 == 1);
        filters_follow(all[g].clone(), borders[border], &image, &picture(&image));
    }
}

#[test]
fn extremes_of_zeros_and_nan_are_the_first_in_row_major_order() {
    let (h, w) = (40, 70);
    let values = [0.0f32, -0.0, f32::NAN, 0.0, -0.0, -0.0, f32::NAN, f32::NAN];
    let pixels = noise::<u8>(h * w, 9, false).into_iter().map(|r| values[r as usize % 8]).collect();
    let image = ReferenceImage::new(Shape::new(h, w, 1), pixels);
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
    let flat = flat();
    for [dtype, i, reduce] in covering([DType::ALL.len(), flat.len(), 2]) {
        let image = image([(23, 70), (7, 150), (40, 20)][i % 3], DType::ALL[dtype], i as u64, true);
        let window = Filter::sparse(flat[i].clone(), vec![0.0; flat[i].len()]);
        let g = Generalized { window, combine: Combine::Pixel, reduce: [Reduce::Min, Reduce::Max][reduce] };
        let border = borders()[i % borders().len()];
        // A third of them for samples, too.
        if (i + dtype) % 3 == 0 {
            filters_follow(g, border, &image, &picture(&image));
        } else {
            let want = neighbourhood::order(&image, &g.clone().into(), border);
            let what = format!("{g:?} {border}");
            follows(LeafOp::OrderFilter(0, g.into(), border), &picture(&image), &want, &what);
        }
    }
}

/// Extremes that are compared with 0, of images with few pixels that decide; and three iterations of small ones.
#[test]
fn comparisons_of_extremes_with_zero_follow_the_definition() {
    let shapes = [Shape::new(23, 70, 1), Shape::new(7, 150, 1), Shape::new(40, 128, 1), Shape::volume(3, 9, 70, 2)];
    let flat = flat();
    for [i, least, border] in covering([flat.len(), 2, borders().len()]) {
        let (offsets, border, shape) = (&flat[i], borders()[border], shapes[i % shapes.len()]);
        let decides =
            noise::<u32>(shape.len(), i as u64, false).into_iter().map(|v| v % (2 * offsets.len() as u32) == 0);
        let pixels: Vec<u8> = decides.map(|decides| if decides == (least == 0) { 0 } else { 77 }).collect();
        let image = KernelImage::new(shape, DType::U8, HostBuffer::from_slice(&pixels));
        let window = Filter::sparse(offsets.clone(), vec![0.0; offsets.len()]);
        let g = Generalized { window, combine: Combine::Pixel, reduce: [Reduce::Min, Reduce::Max][least] };
        let (reach, what) = (g.window.reach(), format!("{g:?} {border}"));
        let args = vec![Val::Leaf(0), Val::Const(Scalar::U8(0))];
        let code = vec![Instr { op: InstrOp::Pixel(PixelOp::Ne), operand: DType::U8, result: DType::U8, args }];
        let extreme = alone(LeafOp::OrderFilter(0, g.into(), border), DType::U8);
        let kernel = MapKernel { code, result: Some(Val::Instr(0)), ..extreme };
        check(&kernel, std::slice::from_ref(&image), DType::U8, &what);
        let repeat = Repeat { body: kernel.clone(), state: 0, iterations: 3 };
        if repeat.fault().is_none() && reach.up + reach.down > 0 {
            launches(&Kernel::Repeat(repeat), &kernel, &[image], (shape, DType::U8), &format!("thrice {what}"));
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

/// A map of an image by its number, and an edge.
fn map_and_edge(shape: Shape, map: usize, edge: usize, constant: f64) -> (Affine, WarpEdge) {
    let (matrix, map) = maps(shape)[map];
    let inside = WarpEdge::Inside(InsidePixels::of(matrix, shape, constant));
    (map, borders().get(edge).map_or(inside, |border| (*border).into()))
}

/// Their numbers.
fn maps_and_edges() -> (usize, usize) {
    (maps(Shape::new(1, 1, 1)).len(), borders().len() + 1)
}

#[test]
fn samples_follow_the_definition() {
    // Each type is sampled in each way by each map and at each edge.
    let ways: Vec<_> = DType::ALL.into_iter().flat_map(|dtype| Interpolation::ALL.map(|how| (dtype, how))).collect();
    let (maps, edges) = maps_and_edges();
    for [way, number, map, edge] in covering([ways.len(), SIZES.len(), maps, edges]) {
        let (dtype, how) = ways[way];
        let image = image(SIZES[number], dtype, number as u64, number % 2 == 0);
        let (map, edge) = map_and_edge(image.shape, map, edge, 5.0);
        let (want, what) = (geometric::warp(&image, image.shape, &map, how, edge), format!("{map:?} {how:?} {edge:?}"));
        follows(LeafOp::Warp(0, map, how, edge), &picture(&image), &want, &what);
        let planes = colours(&image);
        let want = interleaved(&geometric::warp(&planes, planes.shape, &map, how, edge));
        follows(LeafOp::Warp(0, map, how, edge), &picture(&interleaved(&planes)), &want, &format!("{what} of samples"));
    }
}

/// Samples of integers converted to floats are those of the converted image.
#[test]
fn integers_are_sampled_as_floats() {
    let narrow = [DType::U8, DType::U16, DType::I16];
    let types: Vec<_> = narrow.into_iter().flat_map(|n| [(n, DType::F32), (n, DType::F64)]).collect();
    let (maps, edges) = maps_and_edges();
    for [pair, number, map, edge] in covering([types.len(), SIZES.len(), maps, edges]) {
        let (narrow, wide) = types[pair];
        let image = image(SIZES[number], narrow, number as u64, false);
        let converted = convert(&image, wide);
        let (map, edge) = map_and_edge(image.shape, map, edge, 5.5);
        let want = geometric::warp(&converted, image.shape, &map, Interpolation::Bilinear, edge);
        let op = LeafOp::Warp(0, map, Interpolation::Bilinear, edge);
        follows(op.clone(), &picture(&image), &want, &format!("{map:?} {edge:?} of {narrow}"));
        let planes = colours(&image);
        let want = geometric::warp(&convert(&planes, wide), planes.shape, &map, Interpolation::Bilinear, edge);
        follows(
            op,
            &picture(&interleaved(&planes)),
            &interleaved(&want),
            &format!("{map:?} {edge:?} of {narrow} samples"),
        );
    }
}

/// Strips and chunks of columns, held as far as they are read.
#[test]
fn parts_equal_the_whole() {
    let given = |size, dtype, special| [picture(&image(size, dtype, 5, special))];
    let medians = [Border::Reflect, Border::Wrap].map(|border| LeafOp::OrderFilter(0, MedianSize::Five.into(), border));
    let window = Filter::sparse([(0, 0), (-3, 0), (3, 0), (-1, 5), (1, -5)], [0.4, 0.1, 0.1, 0.2, 0.2]);
    let cut = LeafOp::OrderFilter(0, Truncated { window, pairing: Pairing::Sum, levels: None }.into(), Border::Wrap);
    for op in medians
        .into_iter()
        .chain([cut])
        .chain([Flip::Horizontal, Flip::Vertical, Flip::Both].map(|how| LeafOp::Flip(0, how)))
    {
        check(&alone(op.clone(), DType::U16), &given((31, 600), DType::U16, false), DType::U16, &format!("{op:?}"));
    }
    for window in windows() {
        for (reduce, border) in [(Reduce::Sum, Border::Reflect101), (Reduce::Max, Border::Wrap)] {
            let g = Generalized { window: window.clone(), combine: Combine::Pixel, reduce };
            let what = format!("{g:?} {border}");
            let k = alone(LeafOp::OrderFilter(0, g.into(), border), DType::F32);
            check(&k, &given((60, 700), DType::F32, true), DType::F32, &what);
        }
    }
    let shape = Shape::new(67, 90, 1);
    for (matrix, map) in maps(shape) {
        for how in Interpolation::ALL {
            for edge in [
                Border::Constant(0.0).into(),
                Border::Wrap.into(),
                WarpEdge::Inside(InsidePixels::of(matrix, shape, 5.0)),
            ] {
                let k = alone(LeafOp::Warp(0, map, how, edge), DType::F32);
                check(&k, &given((67, 90), DType::F32, false), DType::F32, &format!("{map:?} {how:?} {edge:?}"));
            }
        }
    }
    // Rows of several tiles, whose first columns are within a pixel.
    let shape = Shape::new(5, 5000, 1);
    let (matrix, map) = maps(shape).swap_remove(6);
    assert_eq!((map.xy, map.yx), (0, 0), "a change of scale");
    for dtype in [DType::U8, DType::U16, DType::F32] {
        for how in [Interpolation::Nearest, Interpolation::Bilinear] {
            for edge in [
                Border::Constant(3.0).into(),
                Border::Wrap.into(),
                WarpEdge::Inside(InsidePixels::of(matrix, shape, 5.0)),
            ] {
                let k = alone(LeafOp::Warp(0, map, how, edge), dtype);
                check(&k, &given((5, 5000), dtype, false), dtype, &format!("wide {map:?} {how:?} {edge:?}"));
            }
        }
    }
}
