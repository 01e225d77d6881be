//! Linear filters, erosion, dilation and medians, under every border.

use horus_core::dtype::DType;
use horus_core::ir::graph::Op;
use horus_core::ops::Sliding;
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Reach, Reduce};
use horus_core::ops::windowed::{BoxMean, Ranked, Windowed};
use horus_core::shape::Border;
use horus_testing::reference::{ReferenceImage, convert};

use crate::program::{apply, apply_to};
use crate::{CONSTANT, CONSTANT_U8, assert_close, borders, column, filter, image, load, plane, row, to_f64};

/// Rounding of successive filters in `dtype`: half a unit per tap, of partial sums that are at most
/// the sum of |tap| times the largest |pixel|; errors of either sign add up as the root of their
/// number. One more for the golden, which is stored in f32.
fn rounding(dtype: DType, filters: &[&Filter], input: &ReferenceImage) -> f64 {
    let unit = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let taps: usize = filters.iter().map(|f| f.taps().len()).sum();
    let gain: f64 = filters.iter().map(|f| f.taps().iter().map(|t| t.abs()).sum::<f64>().max(1.0)).product();
    let largest = to_f64(input).iter().fold(CONSTANT, |m, v| m.max(v.abs()));
    ((taps + 1) as f64).sqrt() * unit / 2.0 * gain * largest
}

/// Compares `op` under every border with the planes of `golden`.
#[track_caller]
fn assert_borders(op: impl Fn(Border) -> Op, input: &ReferenceImage, golden: &ReferenceImage, tolerance: f64) {
    let constant = if input.dtype() == DType::U8 { CONSTANT_U8 } else { CONSTANT };
    for (c, border) in borders(constant).into_iter().enumerate() {
        assert_close(&apply(op(border), input), &plane(golden, c), tolerance, &format!("{border}"));
    }
}

#[test]
fn correlations_agree_for_every_size() {
    let input = image::<f32>("image");
    for size in ["3x3", "1x7", "9x1", "27x21"] {
        let f = filter(&format!("taps_{size}"));
        let golden = image::<f32>(&format!("correlate_{size}"));
        let tolerance = rounding(DType::F32, &[&f], &input);
        assert_borders(|b| Op::Correlate(f.clone(), b), &input, &golden, tolerance);
    }
}

#[test]
fn correlations_of_even_size_agree_in_both_precisions() {
    let (input, f) = (image::<f32>("image"), filter("taps_5x4"));
    let golden = image::<f64>("correlate_5x4");
    for dtype in [DType::F32, DType::F64] {
        let tolerance = rounding(dtype, &[&f], &input);
        assert_borders(|b| Op::Correlate(f.clone(), b), &convert(&input, dtype), &golden, tolerance);
    }
}

#[test]
fn a_filter_much_larger_than_the_image_bounces_off_its_borders() {
    let (input, f) = (image::<f32>("tiny"), filter("taps_27x21"));
    let golden = image::<f32>("correlate_27x21_tiny");
    let tolerance = rounding(DType::F32, &[&f], &input);
    assert_borders(|b| Op::Correlate(f.clone(), b), &input, &golden, tolerance);
}

#[test]
fn a_flipped_filter_of_even_size_convolves() {
    let (input, f) = (image::<f32>("image"), filter("taps_5x4"));
    let tolerance = rounding(DType::F32, &[&f], &input);
    assert_borders(|b| Op::Correlate(f.flipped(), b), &input, &image::<f32>("convolve_5x4"), tolerance);
}

#[test]
fn separable_gaussian_derivatives_agree() {
    let (input, row) = (image::<f32>("image"), row("taps_gauss_row"));
    for order in 0..3 {
        let column = column(&format!("taps_gauss_column_{order}"));
        let golden = image::<f32>(&format!("gauss_order_{order}"));
        let tolerance = rounding(DType::F32, &[&row, &column], &input);
        let op = |border| Op::Separable { row: row.clone(), column: column.clone(), border };
        assert_borders(op, &input, &golden, tolerance);
        // In f64 only the golden's rounding to f32 remains.
        assert_borders(op, &convert(&input, DType::F64), &golden, f64::from(f32::EPSILON));
    }
}

#[test]
fn dense_oriented_gaussians_agree() {
    let (input, f) = (image::<f32>("image"), filter("taps_gauss_2d_30"));
    let tolerance = rounding(DType::F32, &[&f], &input);
    assert_borders(|b| Op::Correlate(f.clone(), b), &input, &image::<f32>("gauss_2d_30"), tolerance);
}

#[test]
fn two_passes_along_lines_agree_with_bilinear_sampling() {
    let line = |pass: &str| {
        let offsets = load::<i32>(&format!("offsets_uv_30_{pass}"));
        let offsets: Vec<(i32, i32)> = offsets.outer_iter().map(|o| (o[[0]], o[[1]])).collect();
        Filter::sparse(offsets, to_f64(&image::<f32>(&format!("taps_uv_30_{pass}"))))
    };
    let (input, u, v) = (image::<f32>("image"), line("u"), line("v"));
    let first = apply(Op::Correlate(u.clone(), Border::Reflect101), &input);
    let both = apply(Op::Correlate(v.clone(), Border::Reflect101), &first);
    // Twice: the golden weights its samples in f64, whereas the taps of the sparse filters are
    // rounded to f32.
    let tolerance = 2.0 * rounding(DType::F32, &[&u, &v], &input);
    assert_close(&both, &plane(&image::<f64>("gauss_uv_30"), 0), tolerance, "gauss_uv");
}

#[test]
fn flat_erosions_and_dilations_agree_exactly() {
    let flat = |h: usize, w: usize, reduce| Generalized {
        window: Filter::dense(h, w, vec![0.0; h * w]),
        combine: Combine::Pixel,
        reduce,
    };
    // SciPy reflects the window of a dilation, which shifts one of even size.
    let reflected = |g: Generalized| Generalized { window: g.window.flipped(), ..g };
    let (floats, bytes) = (image::<f32>("image"), image::<u8>("image_u8"));
    for (name, g) in [
        ("erosion_3x5", flat(3, 5, Reduce::Min)),
        ("erosion_4x2", flat(4, 2, Reduce::Min)),
        ("dilation_3x5", reflected(flat(3, 5, Reduce::Max))),
        ("dilation_4x2", reflected(flat(4, 2, Reduce::Max))),
    ] {
        let op = |b| Op::OrderFilter(g.clone().into(), b);
        assert_borders(op, &floats, &image::<f32>(name), 0.0);
        if name.ends_with("3x5") {
            assert_borders(op, &bytes, &image::<u8>(&format!("{name}_u8")), 0.0);
        }
    }
}

#[test]
fn weighted_erosions_and_dilations_agree() {
    let (input, weights) = (image::<f32>("image"), filter("weights_3x4"));
    let erosion = Generalized { window: weights.clone(), combine: Combine::Sub, reduce: Reduce::Min };
    let dilation = Generalized { window: weights.flipped(), combine: Combine::Add, reduce: Reduce::Max };
    // Rounding is monotone: the extreme of rounded values is the rounded extreme, whichever value
    // attains it.
    assert_borders(|b| Op::OrderFilter(erosion.clone().into(), b), &input, &image::<f32>("erosion_weighted"), 0.0);
    assert_borders(|b| Op::OrderFilter(dilation.clone().into(), b), &input, &image::<f32>("dilation_weighted"), 0.0);
}

#[test]
fn medians_agree_exactly() {
    let (floats, bytes) = (image::<f32>("image"), image::<u8>("image_u8"));
    for (name, size) in [("median_3", MedianSize::Three), ("median_5", MedianSize::Five)] {
        assert_borders(|b| Op::OrderFilter(size.into(), b), &floats, &image::<f32>(name), 0.0);
        assert_borders(|b| Op::OrderFilter(size.into(), b), &bytes, &image::<u8>(&format!("{name}_u8")), 0.0);
    }
}

#[test]
fn means_of_rectangles_agree() {
    let (floats, bytes) = (image::<f32>("image"), image::<u8>("image_u8"));
    for (height, width) in [(5, 4), (1, 9), (40, 3)] {
        let (up, left) = (height / 2, width / 2);
        let reach = Reach { up, down: height - 1 - up, left, right: width - 1 - left };
        let mean = |b| Op::from(Sliding { how: Windowed::Mean(BoxMean::over(reach)), border: b });
        let golden = |kind: &str| image::<f64>(&format!("mean_{height}x{width}{kind}"));
        // Sums of 2^k pixels are rounded k times; SciPy's running mean rounds at every pixel.
        for (input, kind, to, unit) in [
            (&floats, "", DType::F32, f32::EPSILON.into()),
            (&convert(&floats, DType::F64), "", DType::F64, 200.0 * f64::EPSILON),
            (&bytes, "_u8", DType::F32, f64::from(f32::EPSILON) / 8.0),
        ] {
            let constant = if kind.is_empty() { CONSTANT } else { CONSTANT_U8 };
            let largest = to_f64(input).iter().fold(constant, |m, v| m.max(v.abs()));
            let steps = f64::from(height.ilog2() + width.ilog2() + 4);
            for (c, border) in borders(constant).into_iter().enumerate() {
                let got = convert(&apply_to(mean(border), input, to), DType::F64);
                let what = format!("{height}x{width} {border} {}", input.dtype());
                assert_close(&got, &plane(&golden(kind), c), steps * unit * largest, &what);
            }
        }
    }
}

#[test]
fn ranks_agree_exactly() {
    let (floats, bytes) = (image::<f32>("image"), image::<u8>("image_u8"));
    let all = |holds: fn(i32, i32) -> bool| {
        let square = (-3..=3).flat_map(|y| (-3..=3).map(move |x| (y, x)));
        square.filter(|(y, x)| holds(*y, *x)).collect::<Vec<_>>()
    };
    for (name, offsets) in [("square_7", all(|_, _| true)), ("disc_3", all(|y, x| y * y + x * x <= 9))] {
        for place in [5, 20] {
            let rank = |b| Op::from(Sliding { how: Windowed::Rank(Ranked::new(&offsets, place)), border: b });
            assert_borders(rank, &floats, &image::<f32>(&format!("rank_{place}_{name}")), 0.0);
            assert_borders(rank, &bytes, &image::<u8>(&format!("rank_{place}_{name}_u8")), 0.0);
        }
    }
}
