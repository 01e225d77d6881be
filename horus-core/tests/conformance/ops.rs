//! Each operation by itself.

use horus_core::dispatch;
use horus_core::dtype::{Conversion, DType, Pixel, Scalar};
use horus_core::ir::graph::{NodeId, Op};
use horus_core::ops::components::Connectivity;
use horus_core::ops::distance::{JoinedOffsets, Metric, NearestOnLine, NearestPixel, NearestResult, Spacing};
use horus_core::ops::edge::{InsidePixels, WarpEdge};
use horus_core::ops::fourier::Across;
use horus_core::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_core::ops::neighbourhood::{
    Combine, Filter, Generalized, MedianSize, OrderFilter, Pairing, Reach, Reduce, TapLevels, Truncated,
};
use horus_core::ops::pixel::{PixelKind, PixelOp, TABLE};
use horus_core::ops::planes::PlaneMap;
use horus_core::ops::reconstruction::Reconstruction;
use horus_core::ops::reduce::RowReduce;
use horus_core::ops::resize::{Resampling, ResizedLines};
use horus_core::ops::sampling::Sampling;
use horus_core::ops::windowed::{BoxMean, Ranked, Windowed};
use horus_core::ops::{
    Components, Fourier, Histogram, ImageOperation as _, Instance, MatrixProduct, Merge, Remap, Resize, Running,
    SampleImages, Sliding, Transpose, Whole, samples,
};
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::cases::{covering, part};
use horus_testing::reference::ReferenceImage;

use crate::harness::{ConformanceProgram, RunConfiguration, conforms, image};

const SHAPES: [Shape; 6] = [
    Shape::new(1, 1, 1),
    Shape::new(1, 9, 1),
    Shape::new(9, 1, 1),
    Shape::new(7, 5, 2),
    Shape::new(23, 37, 1),
    Shape::new(40, 130, 1),
];

const FLOATS: [DType; 2] = [DType::F32, DType::F64];

fn borders() -> [Border; 5] {
    Border::all(3.25)
}

fn filters() -> Vec<Filter> {
    let taps = |n: usize| (0..n).map(|i| ((i * 37 % 19) as f64 - 8.0) / 7.0).collect::<Vec<_>>();
    let sparse = [(-2, 1), (0, 0), (0, 3), (4, -1), (1, 1)];
    vec![
        Filter::dense(3, 3, taps(9)),
        Filter::dense(5, 4, taps(20)),
        Filter::row(taps(7)),
        Filter::column(taps(9)),
        Filter::dense(11, 17, taps(187)),
        Filter::dense(5, 4, taps(20)).flipped(),
        Filter::sparse(sparse, taps(5)),
    ]
}

#[test]
fn pixel_operations() {
    for [row, dtype, shape] in covering([TABLE.len(), DType::ALL.len(), SHAPES.len()]) {
        let (row, dtype, shape) = (&TABLE[row], DType::ALL[dtype], SHAPES[shape]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 1));
        let b = p.source(image(shape, dtype, 2));
        let c = p.source(image(shape, dtype, 3));
        let out = match row.kind {
            PixelKind::Unary => p.pixel(row.op, &[a]),
            PixelKind::Binary | PixelKind::Compare => p.pixel(row.op, &[a, b]),
            PixelKind::Ternary => p.pixel(row.op, &[a, b, c]),
            PixelKind::Select => {
                let mask = p.pixel(PixelOp::Lt, &[a, b]);
                p.pixel(row.op, &[mask, b, c])
            }
        };
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("{} {dtype} {shape}", row.name));
    }
}

#[test]
fn pixel_operations_with_constants() {
    for row in TABLE {
        for dtype in DType::ALL {
            let mut p = ConformanceProgram::default();
            let a = p.source(image(Shape::new(7, 21, 1), dtype, 4));
            let out = match row.kind {
                PixelKind::Binary | PixelKind::Compare => p.pixel_const(row.op, a, &[5.0]),
                PixelKind::Ternary => p.pixel_const(row.op, a, &[3.0, 20.0]),
                _ => continue,
            };
            conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("{} {dtype} with constants", row.name));
        }
    }
}

#[test]
fn conversions() {
    for [from, to, shape] in covering([DType::ALL.len(), DType::ALL.len(), SHAPES.len()]) {
        let (from, to, shape) = (DType::ALL[from], DType::ALL[to], SHAPES[shape]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, from, 5));
        let half = p.pixel_const(PixelOp::Div, a, &[2.0]);
        let roots = [p.convert(half, to), p.convert_by(Conversion::Cast, half, to)];
        conforms(&p.wanted(&roots), &RunConfiguration::some(), &format!("{from} to {to} {shape}"));
    }
}

/// The samples of each operation: what is tested of all of them.
#[test]
fn samples_of_whole_image_operations() {
    let shapes = [Shape::volume(2, 7, 5, 2), Shape::new(1, 1, 1), Shape::new(1, 9, 1), Shape::new(23, 37, 1)];
    for [dtype, border, shape] in covering([FLOATS.len(), borders().len(), shapes.len()]) {
        let (dtype, border, shape) = (FLOATS[dtype], borders()[border], shapes[shape]);
        for Instance { operation, inputs, output, .. } in samples(SampleImages::of(shape, dtype, border)) {
            let name = format!("{} {dtype} {border} {shape}", operation.name());
            // Samples of pixels are made of planes, and kernels know the first reduction of a row only.
            if inputs.iter().any(|(shape, _)| shape.samples > 1) || matches!(operation, Whole::Fold(_)) {
                continue;
            }
            let mut p = ConformanceProgram::default();
            let seeds = (11..).zip(&inputs);
            let sources: Vec<NodeId> = seeds.map(|(seed, (shape, of))| p.source(image(*shape, *of, seed))).collect();
            let out = p.op(Op::Whole(operation), &sources, output.0, output.1);
            conforms(&p.wanted(&[out]), &RunConfiguration::some(), &name);
        }
    }
}

#[test]
fn linear_filters() {
    let filters = filters();
    for [dtype, border, shape, filter] in covering([FLOATS.len(), borders().len(), SHAPES.len(), filters.len()]) {
        let (dtype, border, shape, filter) = (FLOATS[dtype], borders()[border], SHAPES[shape], &filters[filter]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 6));
        let out = p.like(Op::Correlate(filter.clone(), border), a);
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("correlate {filter} {dtype} {border} {shape}"));
    }
}

#[test]
fn separable_filters() {
    let sizes = [(3, 3), (7, 5), (4, 6), (43, 43)];
    for [dtype, border, shape, size] in covering([FLOATS.len(), borders().len(), SHAPES.len(), sizes.len()]) {
        let (dtype, border, shape, (r, c)) = (FLOATS[dtype], borders()[border], SHAPES[shape], sizes[size]);
        let taps = |n: usize| (0..n).map(|i| ((i * 29 % 13) as f64 - 5.0) / 9.0).collect::<Vec<_>>();
        let (row, column) = (Filter::row(taps(r)), Filter::column(taps(c)));
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 7));
        let out = p.like(Op::Separable { row, column, border }, a);
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("separable {r} {c} {dtype} {border} {shape}"));
    }
}

/// Integers under whole taps, cut to integers: what a CPU computes in integers.
#[test]
fn whole_taps_of_integers() {
    const TYPES: [DType; 4] = [DType::U8, DType::I8, DType::U16, DType::I16];
    const MEANS: [usize; 3] = [2, 5, 31];
    let whole = |n: usize| (0..n).map(|i| ((i * 7 % 5) as f64) - 2.0).collect::<Vec<_>>();
    let borders: Vec<Border> = borders().into_iter().chain([Border::Constant(3.0)]).collect();
    for [dtype, border, shape, root] in covering([TYPES.len(), borders.len(), SHAPES.len(), 8 + MEANS.len()]) {
        let (dtype, border, shape) = (TYPES[dtype], borders[border], SHAPES[shape]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 8));
        let float = p.convert(a, DType::F32);
        let dense = p.like(Op::Correlate(Filter::dense(3, 5, whole(15)), border), float);
        let (row, column) = (Filter::row(vec![-1.0, 0.0, 1.0]), Filter::column(vec![1.0, 2.0, 1.0, 1.0]));
        let across = p.like(Op::Correlate(row, border), float);
        let edges = p.like(Op::Correlate(column, border), across);
        let cross = Filter::sparse([(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)], vec![1.0, 1.0, -4.0, 1.0, 1.0]);
        let laplace = p.like(Op::Correlate(cross, border), float);
        let mut roots = vec![p.convert_by(Conversion::Cast, laplace, dtype)];
        for to in [DType::U8, DType::I16, DType::I32] {
            roots.extend([dense, edges].map(|v| p.convert_by(Conversion::Cast, v, to)));
        }
        // A filter of what was taken modulo a range.
        let wrapped = p.convert(roots[1], DType::F32);
        let again = p.like(Op::Correlate(Filter::column(vec![2.0, 0.0, -1.0]), border), wrapped);
        roots.push(p.convert_by(Conversion::Cast, again, DType::I16));
        for size in MEANS {
            let ones = vec![1.0; size];
            let mean = [Filter::column(ones.clone()), Filter::row(ones)].into_iter().fold(a, |mean, taps| {
                let float = p.convert(mean, DType::F32);
                let sum = p.like(Op::Correlate(taps, border), float);
                let more = p.pixel_const(PixelOp::Add, sum, &[0.5]);
                let quotient = p.pixel_const(PixelOp::Mul, more, &[1.0 / size as f64]);
                p.convert_by(Conversion::Cast, quotient, dtype)
            });
            roots.push(mean);
        }
        conforms(
            &p.wanted(&[roots[root]]),
            &RunConfiguration::some(),
            &format!("whole taps {root} {dtype} {border} {shape}"),
        );
    }
}

#[test]
fn generalized_convolutions() {
    let window = Filter::dense(3, 4, [1.0, -2.0, 3.0, 0.5, 0.0, 1.0, 2.0, -1.0, 1.0, 4.0, 1.0, 2.0]);
    let lengths = [DType::ALL.len(), Combine::ALL.len(), Reduce::ALL.len(), borders().len()];
    for [dtype, combine, reduce, border] in covering(lengths) {
        let (dtype, border) = (DType::ALL[dtype], borders()[border]);
        let g = Generalized { window: window.clone(), combine: Combine::ALL[combine], reduce: Reduce::ALL[reduce] };
        let what = format!("generalized {:?} {:?} {dtype} {border}", g.combine, g.reduce);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(Shape::new(9, 35, 1), dtype, 8));
        let out = p.like(Op::OrderFilter(g.into(), border), a);
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &what);
    }
}

/// In both directions, through a type that cuts the sums between.
#[test]
fn truncated_filters() {
    let filter = |down: bool, pairing| {
        let place = |k: i32| if down { (k, 0) } else { (0, k) };
        let offsets: Vec<(i32, i32)> = [0, -3, 3, -2, 2, -1, 1].map(place).to_vec();
        Truncated { window: Filter::sparse(offsets, vec![0.2, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2]), pairing, levels: None }
    };
    let lengths = [DType::ALL.len(), Pairing::ALL.len(), borders().len(), SHAPES.len()];
    for [dtype, pairing, border, shape] in covering(lengths) {
        let (dtype, border, shape) = (DType::ALL[dtype], borders()[border], SHAPES[shape]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 10));
        let down = p.like(Op::OrderFilter(filter(true, Pairing::ALL[pairing]).into(), border), a);
        let both = p.like(Op::OrderFilter(filter(false, Pairing::ALL[pairing]).into(), border), down);
        conforms(
            &p.wanted(&[both]),
            &RunConfiguration::some(),
            &format!("truncated {pairing} {dtype} {border} {shape}"),
        );
    }
}

/// Across levels and channels, in one part and in slabs of levels that depend on each other.
#[test]
fn truncated_filters_across_levels() {
    let at = [(0, 0, 0), (-1, 0, 0), (1, 0, 0), (-2, 1, -3), (2, -1, 3), (0, 2, 0), (3, -2, 0)];
    let shapes = [Shape::volume(5, 17, 23, 1), Shape::volume(2, 9, 70, 3), Shape::volume(1, 12, 5, 2)];
    let lengths = [DType::ALL.len(), Pairing::ALL.len(), borders().len(), shapes.len()];
    for [dtype, pairing, border, shape] in covering(lengths) {
        let (dtype, border, shape) = (DType::ALL[dtype], borders()[border], shapes[shape]);
        let levels = TapLevels { by: at.map(|(z, _, _)| z).into(), depth: shape.depth, channels: shape.channels };
        let window = Filter::sparse(at.map(|(_, y, x)| (y, x)), vec![0.2, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2]);
        let filter = Truncated { window, pairing: Pairing::ALL[pairing], levels: Some(levels) };
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 10));
        let once = p.like(Op::OrderFilter(filter.clone().into(), border), a);
        let twice = p.like(Op::OrderFilter(filter.into(), border), once);
        conforms(
            &p.wanted(&[twice]),
            &RunConfiguration::some(),
            &format!("truncated {pairing} {dtype} {border} {shape}"),
        );
    }
}

#[test]
fn erosions_dilations_and_medians() {
    let flat = |reduce| Generalized { window: Filter::dense(5, 3, vec![1.0; 15]), combine: Combine::Pixel, reduce };
    let filters: [(&str, OrderFilter); 4] = [
        ("erosion", flat(Reduce::Min).into()),
        ("dilation", flat(Reduce::Max).into()),
        ("median 3", MedianSize::Three.into()),
        ("median 5", MedianSize::Five.into()),
    ];
    for [dtype, border, shape, filter] in covering([DType::ALL.len(), borders().len(), SHAPES.len(), filters.len()]) {
        let (dtype, border, shape, (name, filter)) =
            (DType::ALL[dtype], borders()[border], SHAPES[shape], &filters[filter]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 9));
        let out = p.like(Op::OrderFilter(filter.clone(), border), a);
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("{name} {dtype} {border} {shape}"));
    }
}

/// Windows of every kind: on one side or both, beyond the image, and so large that rows and columns
/// are added by two kernels.
fn windows() -> Vec<Windowed> {
    let mean = |up, down, left, right| Windowed::Mean(BoxMean::over(Reach { up, down, left, right }));
    let variance = |up, down, left, right| Windowed::Variance(BoxMean::over(Reach { up, down, left, right }));
    let rectangle = |h: i32, w: i32, place| {
        let all: Vec<_> = (-h..=h).flat_map(|y| (-w..=w).map(move |x| (y, x))).collect();
        Windowed::Rank(Ranked::new(&all, place))
    };
    let apart = [(-3, 1), (-1, -2), (-1, -1), (-1, 2), (0, 4), (2, 0)];
    vec![
        mean(1, 1, 1, 1),
        mean(0, 0, 6, 4),
        mean(2, 9, 0, 3),
        mean(70, 60, 1, 0),
        variance(1, 2, 4, 0),
        variance(70, 60, 1, 0),
        rectangle(1, 1, 4),
        rectangle(4, 3, 40),
        Windowed::Rank(Ranked::new(&apart, 2)),
        Windowed::Rank(Ranked::across(
            (-2..3).flat_map(|z| (-1..3).flat_map(move |y| (-1..2).map(move |x| (z, y, x)))),
            31,
        )),
        Windowed::Rank(Ranked::across([(-3, 1, 0), (0, -2, 5), (1, 0, -1), (1, 0, 0)], 1)),
    ]
}

#[test]
fn means_and_ranks() {
    const FEW: [Shape; 5] = [
        Shape::new(1, 1, 1),
        Shape::new(9, 1, 1),
        Shape::new(7, 5, 2),
        Shape::new(23, 37, 1),
        Shape::volume(4, 13, 19, 2),
    ];
    for [dtype, border, shape] in covering([DType::ALL.len(), borders().len(), FEW.len()]) {
        let (dtype, border, shape) = (DType::ALL[dtype], borders()[border], FEW[shape]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 9));
        let roots: Vec<_> = windows()
            .into_iter()
            .map(|how| {
                let out = match how {
                    Windowed::Mean(_) => dtype.linear(),
                    Windowed::Variance(_) => DType::F64,
                    Windowed::Rank(_) => dtype,
                };
                p.op(Op::from(Sliding { how, border }), &[a], shape, out)
            })
            .collect();
        conforms(&p.wanted(&roots), &RunConfiguration::some(), &format!("windows {dtype} {border} {shape}"));
    }
}

/// Tiles smaller and larger than strips and images, beside pixels that keep tiles out of transforms.
#[test]
fn filters_by_transforms() {
    let taps = |n: usize| (0..n).map(|i| (i * i % 11) as f64 - 4.5).collect::<Vec<_>>();
    let shapes = [Shape::new(1, 1, 1), Shape::new(23, 37, 2), Shape::volume(2, 45, 9, 1), Shape::volume(9, 12, 5, 2)];
    for dtype in FLOATS {
        for border in borders() {
            for shape in shapes {
                let mut p = ConformanceProgram::default();
                let a = p.source(image(shape, dtype, 9));
                // Infinities and NaN where the tiles of a third are not all.
                let far = p.pixel_const(PixelOp::Gt, a, &[0.45]);
                let far = p.convert(far, dtype);
                let holes = p.pixel(PixelOp::Div, &[a, far]);
                let some = if shape.depth > 1 { holes } else { a };
                let two = [Filter::dense(3, 5, taps(15)), Filter::dense(3, 5, vec![0.25; 15])];
                let sparse = Filter::sparse([(-4, 0), (1, 2), (1, 2)], [0.5, 1.5, -3.0]);
                let ops = [
                    Fourier::of(two.clone(), border, [16, 16]),
                    Fourier { origin: [26, 27], ..Fourier::of([sparse.clone()], border, [32, 16]) },
                    // Filters of two reaches, and a level that is not read.
                    Fourier {
                        across: Some(Across { before: usize::from(dtype == DType::F32), stored: DType::F64 }),
                        ..Fourier::of([two[0].clone(), Filter::sparse([], []), sparse.clone()], border, [16, 32])
                    },
                    Fourier { across: Some(Across { before: 1, stored: dtype }), ..Fourier::of(two, border, [16, 16]) },
                ];
                let roots: Vec<_> = ops
                    .into_iter()
                    .map(|how| {
                        let to = Shape { channels: shape.channels * how.responses(), ..shape };
                        p.op(Op::from(how), &[some], to, dtype)
                    })
                    .collect();
                conforms(
                    &p.wanted(&roots),
                    &RunConfiguration::some(),
                    &format!("by transforms {dtype} {border} {shape}"),
                );
            }
        }
    }
}

#[test]
fn affine_maps() {
    const MAPS: usize = 3;
    // Pixels beyond the image are those of a border mode, or one value.
    let lengths = [DType::ALL.len(), borders().len() + 1, SHAPES.len(), MAPS, Interpolation::ALL.len()];
    for [dtype, border, shape, map, how] in covering(lengths) {
        let (dtype, shape, how) = (DType::ALL[dtype], SHAPES[shape], Interpolation::ALL[how]);
        let larger = Shape::new(2 * shape.height + 1, shape.width, shape.channels);
        let maps: [_; MAPS] = [
            (rotation(30.0, shape), shape),
            (rotation(-90.0, shape), shape),
            ([[0.5, 0.0, -0.25], [0.0, 2.5, 0.75]], larger),
        ];
        let (matrix, out_shape) = maps[map];
        let inside = WarpEdge::Inside(InsidePixels::of(matrix, shape, 3.0));
        let edge = borders().get(border).map_or(inside, |border| (*border).into());
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 11));
        let map = Affine::new(matrix, out_shape).unwrap();
        let out = p.op(Op::Warp(map, how, edge), &[a], out_shape, dtype);
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("{how:?} {dtype} {edge:?} {shape}"));
    }
}

/// Integers converted to floats are sampled as they are stored.
#[test]
fn affine_maps_of_converted_integers() {
    let shape = SHAPES[0];
    let out_shape = Shape { height: shape.height + 3, ..shape };
    for (from, to) in [DType::U8, DType::U16, DType::I16, DType::I32]
        .into_iter()
        .flat_map(|from| [DType::F32, DType::F64].map(|to| (from, to)))
    {
        for matrix in [rotation(30.0, shape), [[0.6, 0.0, 0.25], [0.0, 0.9, -0.75]]] {
            for edge in [Border::Constant(0.3).into(), WarpEdge::Inside(InsidePixels::of(matrix, shape, 0.7))] {
                let mut p = ConformanceProgram::default();
                let a = p.source(image(shape, from, 5));
                let wide = p.convert(a, to);
                let map = Affine::new(matrix, out_shape).unwrap();
                let out = p.op(Op::Warp(map, Interpolation::Bilinear, edge), &[wide], out_shape, to);
                conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("{from} as {to} {edge:?}"));
            }
        }
    }
}

#[test]
fn connected_components() {
    let volume = Shape::volume(3, 7, 11, 1);
    for shape in SHAPES.into_iter().filter(|shape| shape.channels == 1).chain([volume]) {
        for how in [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS] {
            let mut p = ConformanceProgram::default();
            let a = p.source(image(shape, DType::F32, 14));
            let there = p.pixel_const(PixelOp::Lt, a, &[20.0]);
            let labels = p.op(Op::from(Components::labels(how)), &[there], shape, DType::I32);
            // A reader of labels has its own rows of them; every rank has the labels whole.
            let shifted = p.pixel_const(PixelOp::Add, labels, &[7.0]);
            let sizes = p.op(Op::from(Components::sizes(how)), &[there], shape, DType::I32);
            conforms(
                &p.wanted(&[labels, shifted, sizes]),
                &RunConfiguration::some(),
                &format!("components of {shape} {how:?}"),
            );
        }
    }
    for dtype in DType::ALL {
        let mut p = ConformanceProgram::default();
        let a = p.source(image(SHAPES[4], dtype, 14));
        let labels = p.op(Op::from(Components::labels(Connectivity::FACES)), &[a], SHAPES[4], DType::I32);
        conforms(&p.wanted(&[labels]), &RunConfiguration::some(), &format!("components of {dtype}"));
    }
}

#[test]
fn reconstruction() {
    let volume = Shape::volume(3, 7, 11, 1);
    for shape in SHAPES.into_iter().filter(|shape| shape.channels == 1).chain([volume]) {
        for neighbours in [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS] {
            for erosion in [false, true] {
                let how = Reconstruction { erosion, neighbours };
                let mut p = ConformanceProgram::default();
                let mask = p.source(image(shape, DType::F32, 14));
                let by = if erosion { 40.0 } else { -40.0 };
                let marker = p.pixel_const(PixelOp::Add, mask, &[by]);
                let grown = p.op(Op::from(how), &[marker, mask], shape, DType::F32);
                let rises = p.pixel(PixelOp::Sub, &[mask, grown]);
                conforms(
                    &p.wanted(&[grown, rises]),
                    &RunConfiguration::some(),
                    &format!("{} of {shape} {neighbours:?}", how.name()),
                );
            }
        }
    }
    for dtype in DType::ALL {
        let mut p = ConformanceProgram::default();
        let [marker, mask] = [15, 16].map(|seed| p.source(image(SHAPES[4], dtype, seed)));
        let how = Reconstruction { erosion: dtype.size() == 2, neighbours: Connectivity::CORNERS };
        let grown = p.op(Op::from(how), &[marker, mask], SHAPES[4], dtype);
        conforms(&p.wanted(&[grown]), &RunConfiguration::some(), &format!("{} of {dtype}", how.name()));
    }
}

/// All metrics, of images with much background, little, and none.
#[test]
fn distances() {
    let metrics = [Spacing::UNIT, Spacing::new([0.9, 0.3, 1.7])].map(Metric::Euclidean);
    let tall = [Shape::new(70, 3, 1), Shape::new(3, 90, 1), Shape::new(1, 1, 1)];
    let volumes = [Shape::volume(2, 1, 1, 1), Shape::volume(6, 11, 13, 2), Shape::volume(40, 3, 19, 1)];
    for (k, shape) in SHAPES.into_iter().chain(tall).chain(volumes).enumerate() {
        for (n, part) in [0.2, 0.97, 2.0].into_iter().enumerate() {
            let mut p = ConformanceProgram::default();
            let noise = image(shape, DType::F64, (17 + k + n) as u64);
            let far = |c, y, x| (noise.at::<f64>(c, y, x) * 7.31).rem_euclid(1.0) < part;
            let mask = p.source(ReferenceImage::from_fn::<u8>(shape, |c, y, x| u8::from(far(c, y, x))));
            let along = if shape.depth > 1 { Axis::Depth } else { Axis::Rows };
            let first = p.op(Op::from(NearestOnLine { along }), &[mask], shape, DType::I32);
            let mut roots = vec![first];
            for metric in metrics.into_iter().chain([Metric::Taxicab, Metric::Chessboard]) {
                let offsets = JoinedOffsets::of(shape).unwrap();
                let mut nearest = first;
                if shape.depth > 1 {
                    let how = NearestPixel { along: Axis::Rows, offsets, metric, found: NearestResult::Joined };
                    nearest = p.op(Op::from(how), &[first], shape, DType::I32);
                    roots.push(nearest);
                }
                for found in [NearestResult::Distance, NearestResult::Level, NearestResult::Row, NearestResult::Column]
                {
                    let how = NearestPixel { along: Axis::Columns, offsets, metric, found };
                    let types: &[DType] = if how.is_float() { &[DType::F32, DType::F64] } else { &[DType::I32] };
                    roots.extend(types.iter().map(|dtype| p.op(Op::from(how), &[nearest], shape, *dtype)));
                }
            }
            conforms(&p.wanted(&roots), &RunConfiguration::some(), &format!("distances of {shape} {part}"));
        }
    }
    for dtype in DType::ALL {
        let mut p = ConformanceProgram::default();
        let roots = [(SHAPES[4], Axis::Rows), (Shape::volume(5, 23, 37, 1), Axis::Depth)].map(|(shape, along)| {
            let a = p.source(image(shape, dtype, 18));
            p.op(Op::from(NearestOnLine { along }), &[a], shape, DType::I32)
        });
        conforms(&p.wanted(&roots), &RunConfiguration::some(), &format!("nearest rows and levels of {dtype}"));
    }
}

#[test]
fn reconstruction_along_a_winding_way() {
    let shape = Shape::new(41, 57, 1);
    let one = |y: usize, x: usize| if (y, x) == (0, 0) { 200u8 } else { 3 };
    let way = |y: usize, x: usize| {
        let gate = if y % 4 == 1 { shape.width - 1 } else { 0 };
        if y.is_multiple_of(2) || x == gate { (150 - y) as u8 } else { 7 }
    };
    for neighbours in [Connectivity::FACES, Connectivity::CORNERS] {
        let mut p = ConformanceProgram::default();
        let marker = p.source(ReferenceImage::from_fn::<u8>(shape, |_, y, x| one(y, x)));
        let mask = p.source(ReferenceImage::from_fn::<u8>(shape, |_, y, x| way(y, x)));
        let how = Reconstruction { erosion: false, neighbours };
        let grown = p.op(Op::from(how), &[marker, mask], shape, DType::U8);
        conforms(&p.wanted(&[grown]), &RunConfiguration::some(), &format!("a way by {neighbours:?}"));
    }
}

/// Positions in an image with so many pixels along an axis, up to a few beyond its edges.
fn positions(shape: Shape, dtype: DType, seed: u64, n: usize) -> ReferenceImage {
    let noise = image(shape, DType::F64, seed);
    let at = |p, y, x| noise.at::<f64>(p, y, x).rem_euclid(n as f64 + 6.0) - 3.0;
    dispatch!(dtype, T => ReferenceImage::from_fn(shape, |p, y, x| T::from_f64(at(p, y, x))))
}

#[test]
fn samples_at_positions() {
    let at = Shape::new(9, 14, 1);
    let types = [(DType::F32, DType::F32), (DType::F64, DType::F64), (DType::U8, DType::F64)];
    for [how, border, dtype] in covering([Sampling::ALL.len(), borders().len(), types.len()]) {
        let (how, border, (dtype, of)) = (Sampling::ALL[how], borders()[border], types[dtype]);
        let shape = Shape::volume(2, 7, 5, 2);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 15));
        let [y, x] = [(1, 7), (2, 5)].map(|(seed, n)| p.source(positions(at, of, seed, n)));
        let outside = (border == Border::Reflect101).then_some(Scalar::from_f64(dtype, 5.0));
        let out = p.op(
            Op::from(Remap { sampling: how, border, outside }),
            &[a, y, x],
            Shape { depth: 2, channels: 2, ..at },
            dtype,
        );
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("remap {} {border} {dtype}", how.name()));
    }
    for how in Sampling::ALL {
        let (shape, at) = (Shape::volume(4, 7, 5, 2), Shape::volume(3, 9, 6, 1));
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, DType::F32, 16));
        let of = [(3, 4), (4, 7), (5, 5)];
        let [z, y, x] = of.map(|(seed, n)| p.source(positions(at, DType::F32, seed, n)));
        // Both the sampled image and the positions are computed.
        let (a, y) = (p.pixel_const(PixelOp::Mul, a, &[0.5]), p.pixel_const(PixelOp::Add, y, &[0.25]));
        let out = p.op(
            Op::from(Remap { sampling: how, border: Border::Reflect, outside: Some(Scalar::F32(-2.5)) }),
            &[a, z, y, x],
            Shape { channels: 2, ..at },
            DType::F32,
        );
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("remap of a volume {}", how.name()));
    }
}

#[test]
fn resizing() {
    let shapes: Vec<Shape> = SHAPES.into_iter().chain([Shape::volume(2, 23, 37, 2)]).collect();
    // Each axis grows, shrinks, or stays as it is, also to a single pixel.
    let sizes = [[(5, 4), (1, 3)], [(1, 2), (7, 2)], [(1, 9), (1, 1)], [(1, 1), (2, 5)]];
    let of = |n: usize, (times, by): (usize, usize)| (n * times).div_ceil(by);
    for [dtype, how, shape, size] in covering([DType::ALL.len(), Resampling::ALL.len(), shapes.len(), sizes.len()]) {
        let (dtype, how, shape, [rows, columns]) =
            (DType::ALL[dtype], Resampling::ALL[how], shapes[shape], sizes[size]);
        let to = Shape { height: of(shape.height, rows), width: of(shape.width, columns), ..shape };
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 17));
        let lines = (ResizedLines::new(shape.height, to.height), ResizedLines::new(shape.width, to.width));
        let resized = p.op(Op::from(Resize { how, rows: lines.0, columns: lines.1 }), &[a], to, dtype);
        let out = p.pixel_const(PixelOp::Add, resized, &[1.0]);
        conforms(&p.wanted(&[out]), &RunConfiguration::some(), &format!("{} {dtype} {shape} to {to}", how.name()));
    }
    for (dtype, shape) in DType::ALL.into_iter().zip(shapes.iter().cycle()) {
        let (rows, columns) = (ResizedLines::halved(shape.height), ResizedLines::halved(shape.width));
        let to = Shape { height: rows.to, width: columns.to, ..*shape };
        let mut p = ConformanceProgram::default();
        let a = p.source(image(*shape, dtype, 18));
        let half = p.op(Op::from(Resize { how: Resampling::Area, rows, columns }), &[a], to, dtype);
        conforms(&p.wanted(&[half]), &RunConfiguration::some(), &format!("half of {dtype} {shape}"));
    }
}

#[test]
fn flips_transposes_and_channels() {
    for dtype in DType::ALL {
        for shape in SHAPES {
            let mut p = ConformanceProgram::default();
            let a = p.source(image(shape, dtype, 12));
            let turned = Shape::new(shape.width, shape.height, shape.channels);
            let mut roots = vec![p.op(Op::from(Transpose), &[a], turned, dtype)];
            for flip in [Flip::Horizontal, Flip::Vertical, Flip::Both] {
                roots.push(p.like(Op::Flip(flip), a));
            }
            let plane = Shape::new(shape.height, shape.width, 1);
            let last = p.op(Op::Planes(PlaneMap::one(shape.channels - 1)), &[a], plane, dtype);
            let first = p.op(Op::Planes(PlaneMap::one(0)), &[a], plane, dtype);
            let merged = p.op(Op::from(Merge), &[last, first, last], Shape { channels: 3, ..plane }, dtype);
            roots.extend([last, merged]);
            conforms(&p.wanted(&roots), &RunConfiguration::some(), &format!("layout {dtype} {shape}"));
        }
    }
}

#[test]
fn products_on_every_number_of_ranks() {
    let places = RunConfiguration::all();
    // Also more terms, and more columns, than are taken at once.
    let extents = [(7, 5, 9), (1, 1, 1), (13, 300, 33), (3, 4, 600)];
    for [dtype, extent, place] in covering([2, extents.len(), places.len()]) {
        let (dtype, (height, terms, width)) = ([DType::F32, DType::F64][dtype], extents[extent]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(Shape::volume(2, height, terms, 2), dtype, 17));
        let b = p.source(image(Shape::volume(2, terms, width, 2), dtype, 18));
        let product = p.op(Op::from(MatrixProduct), &[a, b], Shape::volume(2, height, width, 2), dtype);
        let root = p.pixel_const(PixelOp::Mul, product, &[0.5]);
        conforms(
            &p.wanted(&[root]),
            &places[place..=place],
            &format!("{height}x{terms} times {terms}x{width} {dtype}"),
        );
    }
}

#[test]
fn reductions_on_every_number_of_ranks() {
    let places = RunConfiguration::all();
    for [dtype, shape, place] in covering([DType::ALL.len(), SHAPES.len(), places.len()]) {
        let (dtype, shape) = (DType::ALL[dtype], SHAPES[shape]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 13));
        let mut reduce = |how: RowReduce| {
            let column = Shape::new(shape.height, how.columns(), shape.channels);
            let rows = p.op(Op::from(how), &[a], column, how.result(dtype));
            let one = Shape::new(1, how.columns(), 1);
            [rows, p.op(Op::from(how.fold()), &[rows], one, how.result(dtype))]
        };
        let alone = RowReduce::ALL.into_iter().filter(|how| !how.has_operand());
        let mut roots: Vec<_> = alone.flat_map(&mut reduce).collect();
        roots.push(p.op(Op::from(Running), &[a], shape, DType::F64));
        let mean = p.pixel_const(PixelOp::Div, roots[1], &[shape.len() as f64]);
        let largest = p.convert(roots[5], DType::F64);
        for (how, operand) in [(RowReduce::SquaredDeviation, mean), (RowReduce::First, largest)] {
            let column = Shape::new(shape.height, 1, shape.channels);
            let rows = p.op(Op::from(how), &[a, operand], column, DType::F64);
            roots.push(p.op(Op::from(how.fold()), &[rows], Shape::new(1, 1, 1), DType::F64));
        }
        let (lo, hi) = (0.0, 250.0);
        roots.push(p.op(Op::from(Histogram::new(16, lo, hi)), &[a], Shape::new(1, 16, 1), DType::F64));
        conforms(&p.wanted(&roots), &places[place..=place], &format!("reductions {dtype} {shape}"));
    }
}

#[test]
fn reductions_of_expressions_on_every_number_of_ranks() {
    let places = RunConfiguration::all();
    // Each reduction of each type over each shape, at places in turn.
    let pairs: Vec<_> = DType::ALL.into_iter().flat_map(|dtype| RowReduce::ALL.map(|how| (dtype, how))).collect();
    for (turn, [pair, shape]) in covering([pairs.len(), SHAPES.len()]).into_iter().enumerate() {
        let ((dtype, how), shape) = (pairs[pair], SHAPES[shape]);
        let places = part(places.clone(), |all| vec![all[turn % all.len()]]);
        let mut p = ConformanceProgram::default();
        let (a, b) = (p.source(image(shape, dtype, 15)), p.source(image(shape, dtype, 16)));
        let mean = p.source(image(Shape::new(1, 1, 1), DType::F64, 17));
        let product = p.pixel(PixelOp::Mul, &[a, b]);
        let scaled = p.pixel_const(PixelOp::Sub, product, &[1.5]);
        let inputs = if how.has_operand() { vec![scaled, mean] } else { vec![scaled] };
        let column = Shape::new(shape.height, how.columns(), shape.channels);
        let rows = p.op(Op::from(how), &inputs, column, how.result(dtype));
        let all = p.op(Op::from(how.fold()), &[rows], Shape::new(1, how.columns(), 1), how.result(dtype));
        conforms(&p.wanted(&[all]), &places, &format!("{} of {dtype} {shape}", how.name()));
    }
}

#[test]
fn strips_thinner_than_the_halo_and_ranks_without_rows() {
    let places = RunConfiguration::all();
    let sizes = [(2, 1), (3, 4), (5, 7), (6, 2), (11, 9)];
    for [size, border, place] in covering([sizes.len(), borders().len(), places.len()]) {
        let ((height, radius), border) = (sizes[size], borders()[border]);
        let n = 2 * radius + 1;
        let taps: Vec<f64> = (0..n * 3).map(|i| 1.0 / (1.0 + i as f64)).collect();
        let mut p = ConformanceProgram::default();
        let a = p.source(image(Shape::new(height, 13, 1), DType::F32, 14));
        let b = p.like(Op::Correlate(Filter::dense(n, 3, taps.clone()), border), a);
        let c = p.pixel_const(PixelOp::Mul, b, &[0.5]);
        let d = p.like(Op::Correlate(Filter::dense(n, 3, taps), border), c);
        let e = p.pixel(PixelOp::Max, &[d, a]);
        conforms(&p.wanted(&[e]), &places[place..=place], &format!("height {height} radius {radius} {border}"));
    }
}
