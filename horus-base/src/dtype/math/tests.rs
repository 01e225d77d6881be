//! Special values and ends of ranges. `horus-testing` (`numbers`) measures errors in `f32` for all arguments;
//! the goldens (`tests/goldens`) bound errors in `f64`.

use crate::dtype::Arithmetic;

/// Special values of C99's Annex F. A NaN matches any NaN.
#[test]
fn special_values_are_those_of_annex_f() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let same = |got: f64, want: f64| got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
    let check = |name: &str, at: &[f64], want: f64| {
        let (double, single) = match (name, at) {
            ("exp", &[a]) => (Arithmetic::exp(a), Arithmetic::exp(a as f32)),
            ("log", &[a]) => (Arithmetic::ln(a), Arithmetic::ln(a as f32)),
            ("sin", &[a]) => (Arithmetic::sin(a), Arithmetic::sin(a as f32)),
            ("cos", &[a]) => (Arithmetic::cos(a), Arithmetic::cos(a as f32)),
            ("pow", &[a, b]) => (Arithmetic::pow(a, b), Arithmetic::pow(a as f32, b as f32)),
            ("atan2", &[a, b]) => (Arithmetic::atan2(a, b), Arithmetic::atan2(a as f32, b as f32)),
            ("hypot", &[a, b]) => (Arithmetic::hypot(a, b), Arithmetic::hypot(a as f32, b as f32)),
            _ => unreachable!("{name}"),
        };
        assert!(same(double, want), "{name} of {at:?} is {double}, should be {want}");
        assert!(
            same(f64::from(single), f64::from(want as f32)),
            "{name} of {at:?} in f32 is {single}, should be {want}"
        );
    };
    for (a, want) in [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e30, INF), (-1e30, 0.0)] {
        check("exp", &[a], want);
    }
    for (a, want) in [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)] {
        check("log", &[a], want);
    }
    for (a, sin, cos) in [(0.0, 0.0, 1.0), (-0.0, -0.0, 1.0), (INF, NAN, NAN), (-INF, NAN, NAN), (NAN, NAN, NAN)] {
        check("sin", &[a], sin);
        check("cos", &[a], cos);
    }
    let (pi, half, quarter) = (std::f64::consts::PI, std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_4);
    for sign in [1.0, -1.0] {
        for (y, x, want) in [
            (0.0, -0.0, pi),
            (0.0, 0.0, 0.0),
            (0.0, -3.0, pi),
            (0.0, 3.0, 0.0),
            (2.0, 0.0, half),
            (2.0, -0.0, half),
            (2.0, -INF, pi),
            (2.0, INF, 0.0),
            (INF, 2.0, half),
            (INF, -INF, 3.0 * quarter),
            (INF, INF, quarter),
            (1.0, 1.0, quarter),
            (1.0, -1.0, 3.0 * quarter),
        ] {
            check("atan2", &[sign * y, x], sign * want);
        }
        for (a, b, want) in [(INF, NAN, INF), (NAN, INF, INF), (NAN, 1.0, NAN), (3.0, 4.0, 5.0), (0.0, -0.0, 0.0)] {
            check("hypot", &[sign * a, b], want);
        }
    }
    check("atan2", &[NAN, 1.0], NAN);
    check("atan2", &[1.0, NAN], NAN);
    for (x, y, want) in [
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (-0.0, -2.0, INF),
        (-0.0, -2.5, INF),
        (0.0, -INF, INF),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 2.5, 0.0),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (1.0, NAN, 1.0),
        (1.0, INF, 1.0),
        (NAN, 0.0, 1.0),
        (INF, -0.0, 1.0),
        (0.0, 0.0, 1.0),
        (-2.0, 0.5, NAN),
        (-2.0, 3.0, -8.0),
        (-2.0, 2.0, 4.0),
        (0.5, -INF, INF),
        (2.0, -INF, 0.0),
        (0.5, INF, 0.0),
        (-2.0, INF, INF),
        (-INF, -3.0, -0.0),
        (-INF, -2.0, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 2.5, INF),
        (INF, -1.0, 0.0),
        (INF, 0.5, INF),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
        (2.0, 1e30, INF),
    ] {
        check("pow", &[x, y], want);
    }
}

#[test]
fn results_reach_to_the_ends_of_the_range() {
    assert_eq!(Arithmetic::exp(-745.1f64), 5e-324);
    assert_eq!(Arithmetic::exp(-746.0f64), 0.0);
    assert_eq!(Arithmetic::exp(709.79f64), f64::INFINITY);
    assert!(Arithmetic::exp(709.78f64) < f64::INFINITY);
    assert_eq!(Arithmetic::pow(2.0f64, -1074.0), 5e-324);
    assert_eq!(Arithmetic::pow(2.0f32, -149.0), f32::from_bits(1));
    assert_eq!(Arithmetic::hypot(3e300f64, 4e300), 5e300);
    assert_eq!(Arithmetic::hypot(3.0 * 5e-324f64, 4.0 * 5e-324), 5.0 * 5e-324);
    assert_eq!(Arithmetic::hypot(f32::MAX, 1.0), f32::MAX);
    assert_eq!(Arithmetic::atan2(5e-324f64, 1e300), 0.0);
    assert_eq!(Arithmetic::atan2(1e308f64, 1e308), std::f64::consts::FRAC_PI_4);
}

#[test]
fn integers_round_the_function_in_f64() {
    assert_eq!(Arithmetic::exp(5u8), 148);
    assert_eq!(Arithmetic::exp(6u8), 255);
    assert_eq!(Arithmetic::ln(0i32), i32::MIN);
    assert_eq!(Arithmetic::ln(-1i32), 0);
    assert_eq!(Arithmetic::pow(3i32, 5), 243);
    assert_eq!(Arithmetic::hypot(300u16, 400), 500);
    assert_eq!((Arithmetic::sin(11i32), Arithmetic::sin(2_000_000_000i32), Arithmetic::cos(6u8)), (-1, 1, 1));
    assert_eq!(Arithmetic::atan2(1i32, -1), 2);
    assert_eq!((Arithmetic::ceil(3u8), Arithmetic::round(2.5f32), Arithmetic::ceil(-0.5f64)), (3, 2.0, -0.0));
}
