//! Reductions of images that are wider or taller than a segment of the fixed order, or exactly as
//! wide.

use horus_core::dispatch;
use horus_core::dtype::{DType, Pixel};
use horus_core::ir::graph::{NodeId, Op};
use horus_core::ops::Running;
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::reduce::RowReduce;
use horus_core::plan::partition::Partition;
use horus_core::shape::Shape;
use horus_testing::cases::{covering, part};
use horus_testing::reference::{self, ReferenceImage};

use crate::harness::{ConformanceProgram, RunConfiguration, conforms, image, run_divided};

const SHAPES: [Shape; 12] = [
    Shape::new(0, 1025, 1),
    Shape::new(3, 0, 2),
    Shape::new(1, 1, 1),
    Shape::new(1, 1, 3),
    Shape::new(3, 1023, 1),
    Shape::new(2, 1024, 2),
    Shape::new(7, 1025, 1),
    Shape::new(1, 2049, 3),
    Shape::new(1023, 2, 1),
    Shape::new(1025, 1, 2),
    Shape::new(2049, 3, 1),
    Shape::new(2900, 2, 1),
];

/// The order documented for `Image::sum`, written without any code of the library: a row, or a
/// column of row results, 1024 elements at a time.
fn by_hand(values: &[f64]) -> f64 {
    let mut sum = 0.0;
    for first in (0..values.len()).step_by(1024) {
        sum += one_tree(&values[first..values.len().min(first + 1024)]);
    }
    sum
}

/// The order within a segment.
fn one_tree(values: &[f64]) -> f64 {
    let mut lanes: Vec<f64> = (0..64).map(|l| values.iter().skip(l).step_by(64).fold(0.0, |sum, v| sum + v)).collect();
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len() / 2);
        lanes.iter_mut().zip(upper).for_each(|(a, b)| *a += b);
    }
    lanes[0]
}

/// The sums of a picture's rows, plane by plane.
fn row_sums(image: &ReferenceImage, term: impl Fn(f64) -> f64, row_sum: fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
    let Shape { height, width, channels, .. } = image.shape;
    let pixel = |c, y, x| term(dispatch!(image.dtype(), T => image.at::<T>(c, y, x).to_f64()));
    let row = |c, y| row_sum(&(0..width).map(|x| pixel(c, y, x)).collect::<Vec<_>>());
    (0..channels).map(|c| (0..height).map(|y| row(c, y)).collect()).collect()
}

/// The sum of row sums: of each plane, then over planes.
fn total(rows: &[Vec<f64>]) -> f64 {
    rows.iter().fold(0.0, |sum, plane| sum + by_hand(plane))
}

/// Common integers, or floats of such different magnitudes that every order of addition gives
/// another sum.
fn picture(shape: Shape, dtype: DType, seed: u64) -> ReferenceImage {
    if !dtype.is_float() {
        return image(shape, dtype, seed);
    }
    let mut state = seed;
    dispatch!(dtype, T => ReferenceImage::from_fn::<T>(shape, |_, _, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let scale = 2.0f64.powi((state >> 58) as i32 - 32);
        T::from_f64((((state >> 30) % (1 << 21)) as f64 - 1_048_576.0) / 3.0 * scale)
    }))
}

/// The row results of `a`, and the result of the whole.
fn reduced(p: &mut ConformanceProgram, how: RowReduce, inputs: &[NodeId]) -> [NodeId; 2] {
    let (shape, dtype) = (p.graph.node(inputs[0]).shape, how.result(p.graph.node(inputs[0]).dtype));
    let rows = p.op(Op::from(how), inputs, Shape { width: how.columns(), ..shape }, dtype);
    [rows, p.op(Op::from(how.fold()), &[rows], Shape::new(1, how.columns(), 1), dtype)]
}

/// Every reduction of a picture: sums, minima and maxima of rows and of all, and the squared
/// deviation from the sum.
fn totals(shape: Shape, dtype: DType) -> (ConformanceProgram, ReferenceImage) {
    let picture = picture(shape, dtype, 41);
    let mut p = ConformanceProgram::default();
    let a = p.source(picture.clone());
    let mut roots = Vec::new();
    for how in [RowReduce::Sum, RowReduce::Min, RowReduce::Max] {
        roots.extend(reduced(&mut p, how, &[a]));
    }
    let sum = roots[1];
    roots.extend(reduced(&mut p, RowReduce::SquaredDeviation, &[a, sum]));
    for how in [RowReduce::Moments, RowReduce::Extremes] {
        roots.extend(reduced(&mut p, how, &[a]));
    }
    let largest = p.convert(roots[5], DType::F64);
    roots.extend(reduced(&mut p, RowReduce::First, &[a, largest]));
    roots.push(p.op(Op::from(Running), &[a], shape, DType::F64));
    (p.wanted(&roots), picture)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn the_reference_sums_segments_then_rows_then_planes() {
    for dtype in DType::ALL {
        // `true` for other orders that differ in some case: rows or columns as one tree, planes as
        // one column.
        let mut noticed = [false; 3];
        for shape in SHAPES {
            let what = format!("{dtype} {shape}");
            let (program, picture) = totals(shape, dtype);
            let values = reference::evaluate(&program.graph, &|_| picture.clone());
            let at = |i: usize| bits(values[i].as_slice::<f64>());
            let rows = row_sums(&picture, |v| v, by_hand);
            let sum = total(&rows);
            assert_eq!(at(0), bits(&rows.concat()), "rows of {what}");
            assert_eq!(at(1), bits(&[sum]), "{what}");
            let squares = row_sums(&picture, |v| (v - sum) * (v - sum), by_hand);
            assert_eq!(at(6), bits(&squares.concat()), "squares of rows of {what}");
            assert_eq!(at(7), bits(&[total(&squares)]), "squares of {what}");
            noticed[0] |= row_sums(&picture, |v| v, one_tree) != rows;
            noticed[1] |= rows.iter().fold(0.0, |sum, plane| sum + one_tree(plane)) != sum;
            noticed[2] |= by_hand(&rows.concat()) != sum;
        }
        assert_eq!(noticed, [dtype.is_float(); 3], "{dtype}");
    }
}

#[test]
fn the_reference_joins_the_deviations_of_segments_then_of_rows() {
    for dtype in DType::ALL {
        for shape in SHAPES.into_iter().filter(|s| !s.is_empty()) {
            let what = format!("{dtype} {shape}");
            let (program, picture) = totals(shape, dtype);
            let values = reference::evaluate(&program.graph, &|_| picture.clone());
            let count = shape.len() as f64;
            let [sum, squares, number] = [0, 1, 2].map(|x| values[9].at::<f64>(0, 0, x));
            assert_eq!(bits(&[sum, number]), bits(&[values[1].at(0, 0, 0), count]), "{what}: the sum as ever");
            // As documented: segments are joined within a row, rows by the distance of their means.
            let Shape { height, width, channels, .. } = shape;
            let row = |c: usize, y: usize| -> (f64, f64) {
                let pixel = |x| dispatch!(dtype, T => picture.at::<T>(c, y, x).to_f64());
                let line: Vec<f64> = (0..width).map(pixel).collect();
                let (mut n, mut s, mut q) = (0.0, 0.0, 0.0);
                for segment in line.chunks(1024) {
                    let (m, t) = (segment.len() as f64, one_tree(segment));
                    let mean = t / m;
                    let own = one_tree(&segment.iter().map(|v| (v - mean) * (v - mean)).collect::<Vec<_>>());
                    if n == 0.0 {
                        (n, s, q) = (m, t, own);
                    } else {
                        let apart = t / m - s / n;
                        (n, s, q) = (n + m, s + t, q + own + apart * apart * (n * m / (n + m)));
                    }
                }
                (s, q)
            };
            let term = |c, y| {
                let (s, q) = row(c, y);
                let apart = s / width as f64 - sum / count;
                q + width as f64 * (apart * apart)
            };
            let terms: Vec<Vec<f64>> = (0..channels).map(|c| (0..height).map(|y| term(c, y)).collect()).collect();
            assert_eq!(bits(&[squares]), bits(&[total(&terms)]), "{what}");
            // Errors far larger than rounding: the definition, with the mean first.
            let all: Vec<f64> = dispatch!(dtype, T => picture.as_slice::<T>().iter().map(|v| v.to_f64()).collect());
            let mean = all.iter().sum::<f64>() / count;
            let wanted: f64 = all.iter().map(|v| (v - mean) * (v - mean)).sum();
            let scale: f64 = all.iter().map(|v| v * v).sum();
            assert!((squares - wanted).abs() <= 1e-12 * scale, "{what}: {squares} instead of {wanted}");
        }
    }
}

#[test]
fn the_reference_finds_both_extremes_and_where_the_largest_is() {
    for dtype in DType::ALL {
        for shape in SHAPES.into_iter().filter(|s| !s.is_empty()) {
            let (program, picture) = totals(shape, dtype);
            let values = reference::evaluate(&program.graph, &|_| picture.clone());
            dispatch!(dtype, T => {
                let both = [0, 1].map(|x| values[11].at::<T>(0, 0, x));
                assert_eq!(both, [3, 5].map(|i| values[i].at::<T>(0, 0, 0)), "{dtype} {shape}");
                for c in 0..shape.channels {
                    for y in 0..shape.height {
                        let mut found = f64::INFINITY;
                        for x in (0..shape.width).rev() {
                            if picture.at::<T>(c, y, x) == both[1] {
                                found = x as f64;
                            }
                        }
                        assert_eq!(values[12].at::<f64>(c, y, 0), found, "{dtype} {shape} row {y}");
                    }
                }
            });
            assert!(values[13].at::<f64>(0, 0, 0).is_finite());
        }
    }
}

#[test]
fn the_reference_adds_up_chunks_then_segments() {
    for dtype in DType::ALL {
        let mut noticed = false;
        for shape in SHAPES.into_iter().filter(|s| !s.is_empty()) {
            let (program, picture) = totals(shape, dtype);
            let values = reference::evaluate(&program.graph, &|_| picture.clone());
            let Shape { height, width, channels, .. } = shape;
            for (c, y) in (0..channels).flat_map(|c| (0..height).map(move |y| (c, y))) {
                let pixel = |x| dispatch!(dtype, T => picture.at::<T>(c, y, x).to_f64());
                let line: Vec<f64> = (0..width).map(pixel).collect();
                let (mut segments, mut chunks, mut chunk, mut plain) = (0.0, 0.0, 0.0, 0.0);
                for (x, v) in line.iter().enumerate() {
                    if x % 32 == 0 {
                        chunks += chunk;
                        chunk = 0.0;
                    }
                    if x % 1024 == 0 {
                        segments += chunks;
                        chunks = 0.0;
                    }
                    chunk += v;
                    plain += v;
                    let want = segments + (chunks + chunk);
                    assert_eq!(values[14].at::<f64>(c, y, x).to_bits(), want.to_bits(), "{dtype} {shape} {y} {x}");
                    noticed |= want != plain;
                }
            }
        }
        assert_eq!(noticed, dtype.is_float(), "{dtype}: another order is told from this one");
    }
}

#[test]
fn the_reference_finds_the_extremes_of_all_segments() {
    for dtype in DType::ALL {
        for shape in SHAPES.into_iter().filter(|s| !s.is_empty()) {
            let (program, picture) = totals(shape, dtype);
            let values = reference::evaluate(&program.graph, &|_| picture.clone());
            let all: Vec<f64> = dispatch!(dtype, T => picture.as_slice::<T>().iter().map(|v| v.to_f64()).collect());
            let found = |i: usize| dispatch!(dtype, T => values[i].at::<T>(0, 0, 0).to_f64());
            let want =
                (all.iter().copied().fold(f64::INFINITY, f64::min), all.into_iter().fold(-f64::INFINITY, f64::max));
            assert_eq!((found(3), found(5)), want, "{dtype} {shape}");
        }
    }
}

#[test]
fn segments_on_every_number_of_ranks() {
    let places = RunConfiguration::all();
    for [dtype, shape, place] in covering([DType::ALL.len(), SHAPES.len(), places.len()]) {
        let (dtype, shape) = (DType::ALL[dtype], SHAPES[shape]);
        conforms(&totals(shape, dtype).0, &places[place..=place], &format!("segments {dtype} {shape}"));
    }
}

#[test]
fn segments_of_rows_and_of_columns_of_strips_of_any_height() {
    let (program, picture) = totals(Shape::new(1030, 1031, 2), DType::F32);
    let rows = row_sums(&picture, |v| v, by_hand);
    let (columns, sum) = (bits(&rows.concat()), bits(&[total(&rows)]));
    // Strips that end within a block, are one row high, or empty.
    for weights in [&[1.0][..], &[3.0, 1.0], &[1.0, 1029.0], &[1.0, 0.0, 2.0], &[1.0, 2.0, 3.0, 4.0, 5.0]] {
        let places = RunConfiguration::all().into_iter().filter(|place| place.ranks == weights.len()).collect();
        for place in part(places, |all| all.into_iter().step_by(2).collect()) {
            let values = run_divided(&program, place, &Partition::weighted(weights).expect("shares"));
            assert_eq!(bits(values[0].as_slice()), columns, "{weights:?} at {place:?}");
            assert_eq!(bits(values[1].as_slice()), sum, "{weights:?} at {place:?}");
        }
    }
}

#[test]
fn segments_of_expressions_on_every_number_of_ranks() {
    for shape in SHAPES {
        let mut p = ConformanceProgram::default();
        let (a, b) = (p.source(picture(shape, DType::F32, 42)), p.source(picture(shape, DType::F32, 43)));
        let product = p.pixel(PixelOp::Mul, &[a, b]);
        let [_, sum] = reduced(&mut p, RowReduce::Sum, &[product]);
        let [_, squares] = reduced(&mut p, RowReduce::SquaredDeviation, &[product, sum]);
        conforms(&p.wanted(&[sum, squares]), &RunConfiguration::all(), &format!("segments of a product {shape}"));
    }
}
