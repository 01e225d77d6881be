//! Taps of named filters.

use horus_plan::filters::{axis_aligned, box_filter, gauss, gauss_1d, gauss_2d, gauss_uv, gauss_xy};
use horus_plan::ops::neighbourhood::{Filter, FilterLayout};

/// Returns `true` if the taps equal those computed by hand, within rounding.
fn close(taps: &[f64], by_hand: &[f64]) -> bool {
    taps.len() == by_hand.len() && taps.iter().zip(by_hand).all(|(t, h)| (t - h).abs() < 1e-15)
}

/// The reason why neither filter of a pair can be applied.
fn fault((row, column): &(Filter, Filter)) -> Option<String> {
    let [row, column] = [row, column].map(|f| f.fault().map(ToString::to_string));
    assert_eq!(row, column);
    row
}

fn sum(taps: &[f64]) -> f64 {
    taps.iter().sum()
}

/// The taps of a filter of any layout, as a map over offsets.
fn map(f: &Filter) -> std::collections::BTreeMap<(isize, isize), f64> {
    f.offsets().into_iter().zip(f.taps().iter().copied()).collect()
}

#[test]
fn taps_are_those_computed_by_hand() {
    // exp(-1/2) = 0.6065306597126334: the kernel of sigma 1 and radius 1 is (e, 1, e) / (1 + 2 e).
    let e = 0.606_530_659_712_633_4f64;
    let n = 1.0 + 2.0 * e;
    assert!(close(&gauss_1d(1.0, 0, 1).unwrap(), &[e / n, 1.0 / n, e / n]));
    assert!(close(&gauss_1d(1.0, 1, 1).unwrap(), &[-e / n, 0.0, e / n]));
    assert!(close(&gauss_1d(1.0, 2, 1).unwrap(), &[0.0, -1.0 / n, 0.0]));
}

#[test]
fn smoothing_sums_to_one_and_derivatives_have_their_moments() {
    for sigma in [0.5, 1.0, 3.0, 7.0] {
        let r = (3.0 * sigma) as usize + 1;
        let [g, d, dd] = [0, 1, 2].map(|order| gauss_1d(sigma, order, r).unwrap());
        assert!((sum(&g) - 1.0).abs() < 1e-7);
        assert!(sum(&d).abs() < 1e-7, "an odd kernel has zero mean");
        assert!(d.iter().eq(d.iter().rev().map(|t| -t).collect::<Vec<_>>().iter()));
        assert!(dd.iter().eq(dd.iter().rev()));
        let slope: f64 = d.iter().enumerate().map(|(i, t)| (i as f64 - r as f64) * t).sum();
        assert!((slope - 1.0).abs() < 0.15, "sigma {sigma}: the derivative of a ramp is 1, not {slope}");
    }
}

#[test]
fn taps_have_the_precision_of_f64() {
    for taps in [gauss_xy(3.0, 1.0, 0, 0).0, gauss_2d(15.0, 3.0, 1.0, 0, 0), gauss_uv(15.0, 3.0, 1.0, 0, 0).0] {
        // The dense kernel is normalised by its axes, so that turned it sums to 1 only nearly.
        let tolerance = if taps.is_row() || taps.taps().len() < 200 { 1e-14 } else { 2e-3 };
        assert!((sum(taps.taps()) - 1.0).abs() < tolerance, "{}", sum(taps.taps()) - 1.0);
        assert!(taps.taps().iter().any(|t| f64::from(*t as f32) != *t));
    }
}

#[test]
fn both_axes_share_one_support() {
    let (row, column) = gauss_xy(2.5, 1.0, 0, 2);
    assert_eq!((row.taps().len(), column.taps().len()), (17, 17));
    assert!(row.is_row() && column.is_column());
}

#[test]
fn only_vanishing_taps_are_left_out() {
    for (sigma, order) in [(0.1, 1), (0.3, 0), (0.3, 1), (1.0, 0), (1.0, 2), (1.5, 2), (2.0, 1), (2.05, 2), (7.0, 2)] {
        let (_, near) = gauss_xy(30.0, sigma, 0, order);
        let all = gauss_1d(sigma, order, 90).unwrap();
        let side = (all.len() - near.taps().len()) / 2;
        assert_eq!(near.taps().len() + 2 * side, all.len());
        assert_eq!(near.taps(), &all[side..all.len() - side]);
        assert!(all[..side].iter().chain(&all[all.len() - side..]).all(|t| *t == 0.0), "sigma {sigma} order {order}");
        if sigma > 0.5 {
            assert!((side as f64) > 89.0 - 10.0 * sigma, "no tap at ten sigma");
        }
    }
}

#[test]
fn the_isotropic_derivative_of_a_ramp_is_positive() {
    let (row, column) = gauss(2.0, 0, 1);
    let slope: f64 = row.offsets().iter().zip(row.taps()).map(|(&(_, x), t)| x as f64 * t).sum();
    assert!((slope - 1.0).abs() < 0.1);
    assert!((sum(column.taps()) - 1.0).abs() < 1e-7);
}

#[test]
fn an_unturned_kernel_is_the_outer_product() {
    for (ou, ov) in [(0, 0), (0, 1), (2, 0), (1, 2)] {
        let (row, column) = axis_aligned(0.0, 3.0, 1.0, ou, ov).unwrap().unwrap();
        assert_eq!((row.clone(), column.clone()), gauss_xy(3.0, 1.0, ou, ov));
        let dense = gauss_2d(0.0, 3.0, 1.0, ou, ov);
        let peak = dense.taps().iter().fold(0.0f64, |m, t| m.max(t.abs()));
        let outer = column.taps().iter().flat_map(|c| row.taps().iter().map(move |r| c * r));
        assert!(dense.taps().iter().zip(outer).all(|(d, o)| (d - o).abs() <= 2e-7 * peak));
    }
}

#[test]
fn quarter_turns_agree_with_the_dense_kernel() {
    for theta in [0.0, 90.0, 180.0, 270.0, -90.0, 360.0] {
        let (row, column) = axis_aligned(theta, 2.0, 1.0, 1, 2).unwrap().unwrap();
        let dense = gauss_2d(theta, 2.0, 1.0, 1, 2);
        let outer = column.taps().iter().flat_map(|c| row.taps().iter().map(move |r| c * r));
        assert!(dense.taps().iter().zip(outer).all(|(d, o)| (d - o).abs() < 1e-7), "at {theta} degrees");
    }
    assert!(axis_aligned(45.0, 2.0, 1.0, 0, 0).unwrap().is_none());
}

#[test]
fn a_turned_kernel_responds_to_lines_along_u() {
    // At 30 degrees with y down, u points to (cos, -sin): the kernel is elongated towards the upper
    // right.
    let k = map(&gauss_2d(30.0, 5.0, 1.0, 0, 0));
    assert!(k[&(-3, 5)] > 100.0 * k[&(3, 5)]);
    // Its moments of inertia have the axis at 30 degrees.
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for ((y, x), t) in k {
        let (x, y) = (x as f64, y as f64);
        (xx, xy, yy) = (xx + x * x * t, xy + x * y * t, yy + y * y * t);
    }
    let angle = 0.5 * (-2.0 * xy).atan2(xx - yy).to_degrees();
    assert!((angle - 30.0).abs() < 0.1, "{angle}");
}

#[test]
fn the_decomposed_filters_at_zero_are_the_one_dimensional_ones() {
    assert_eq!(gauss_uv(0.0, 3.0, 1.0, 0, 2), gauss_xy(3.0, 1.0, 0, 2));
    let (u, v) = gauss_uv(90.0, 3.0, 1.0, 1, 0);
    assert!(u.is_column() && v.is_row());
    // u = -y at 90 degrees.
    assert!(u.taps()[0] > 0.0);
}

#[test]
fn decomposed_filters_sample_bilinearly() {
    // sigma_u = sigma_v = 1/3: radius 1, offsets -1, 0, 1 times (cos 30, -sin 30).
    let (u, _) = gauss_uv(30.0, 1.0 / 3.0, 1.0 / 3.0, 0, 0);
    let k = gauss_1d(1.0 / 3.0, 0, 1).unwrap();
    let c = 30f64.to_radians().cos();
    let taps = map(&u);
    let close = |y, x, want: f64| assert!((taps[&(y, x)] - want).abs() < 1e-7, "({y}, {x})");
    close(-1, 1, k[2] * 0.5 * c);
    close(1, -1, k[0] * 0.5 * c);
    close(0, 0, k[1] + (k[0] + k[2]) * 0.5 * (1.0 - c));
    close(-1, 0, k[2] * 0.5 * (1.0 - c));
    assert_eq!(taps.len(), 7);
    assert!((sum(u.taps()) - 1.0).abs() < 1e-7);
}

#[test]
fn decomposed_filters_are_sparse_ordered_and_bounded() {
    for theta in [15.0, 45.0, 60.0, 120.0, 165.0] {
        let (u, v) = gauss_uv(theta, 7.0, 1.0, 0, 2);
        for f in [u, v] {
            let FilterLayout::Sparse(offsets) = f.layout() else { panic!("a dense filter at {theta} degrees") };
            assert!(offsets.is_sorted() && offsets.len() <= 4 * 43);
            assert!(f.taps().iter().all(|t| *t != 0.0));
        }
    }
    // cos 60 is not exactly a half in floating point: without snapping, stray taps of weight 1e-17
    // would appear.
    let (u, _) = gauss_uv(60.0, 1.0, 1.0, 0, 0);
    assert!(u.taps().iter().all(|t| *t > 1e-6));
}

#[test]
fn a_kernel_narrower_than_a_pixel_keeps_one_tap() {
    let (u, _) = gauss_uv(20.0, 0.01, 0.01, 1, 0);
    assert_eq!(u.taps(), &[0.0]);
}

#[test]
fn bad_parameters_are_errors() {
    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY, 20_000.0] {
        assert!(fault(&gauss_xy(sigma, 1.0, 0, 0)).is_some(), "{sigma}");
        assert!(fault(&gauss_uv(10.0, 1.0, sigma, 0, 0)).is_some(), "{sigma}");
        assert!(fault(&gauss(sigma, 0, 0)).is_some(), "{sigma}");
    }
    assert!(gauss_1d(1e-30, 2, 1).is_err(), "1 / sigma^2 is not finite in f32");
    assert!(fault(&gauss_xy(1.0, 1.0, 3, 0)).is_some());
    assert!(gauss_2d(f64::NAN, 1.0, 1.0, 0, 0).fault().is_some());
    assert!(gauss_2d(10.0, 1000.0, 1.0, 0, 0).fault().is_some(), "6001 x 6001 taps");
    assert!(fault(&gauss_uv(10.0, 1000.0, 1.0, 0, 0)).is_none());
    assert!(fault(&box_filter(0)).is_some() && fault(&box_filter(4)).is_none());
}

#[test]
fn errors_name_the_callers_line() {
    let line = line!() + 1;
    let message = fault(&gauss_xy(0.0, 1.0, 0, 0)).unwrap();
    let here = format!("filters.rs:{line}");
    assert!(message.starts_with("gauss_xy: sigma_u is 0") && message.contains(&here), "{message}");
    // An isotropic Gaussian has one sigma.
    let message = fault(&gauss(0.0, 0, 0)).unwrap();
    assert!(message.starts_with("gauss: sigma is 0"), "{message}");
}

#[test]
fn no_tap_is_subnormal() {
    let all = [gauss_1d(1.0, 2, 43).unwrap(), gauss_2d(30.0, 7.0, 1.0, 0, 2).taps().to_vec()];
    for taps in all {
        let largest = taps.iter().fold(0.0, |m: f64, t| m.max(t.abs()));
        assert!(taps.iter().all(|t| *t == 0.0 || t.abs() > largest * 1e-20), "{taps:?}");
        assert!(taps.contains(&0.0) && taps.iter().any(|t| t.abs() < largest * 1e-15), "{taps:?}");
    }
}
