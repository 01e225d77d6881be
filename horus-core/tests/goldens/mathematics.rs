//! The transcendental functions in f64, against more digits than f64 has.

use horus_core::dtype::Arithmetic;

use super::load;

/// The bound that the functions state, in ulp.
const BOUND: f64 = 1.0;

/// The largest error in ulp.
fn worst(name: &str, operands: usize, function: impl Fn(&[f64]) -> f64) -> f64 {
    let rows = load::<f64>(&format!("mathematics_{name}"));
    assert_eq!(rows.shape()[1], operands + 2);
    let mut worst = 0.0f64;
    for row in rows.rows() {
        let row = row.to_vec();
        let (at, near, rest) = (&row[..operands], row[operands], row[operands + 1]);
        // The distance to the next number of the same exponent, computed without a logarithm.
        let unit = f64::from_bits(near.to_bits() & 0x7ff0_0000_0000_0000) * f64::EPSILON;
        let ours = function(at);
        let error = ((ours - near) / unit - rest).abs();
        assert!(error <= BOUND, "{name} of {at:?} is {ours:e}, {error} ulp beside {near:e}");
        worst = worst.max(error);
    }
    println!("{name}: {worst:.3} ulp");
    worst
}

#[test]
fn functions_keep_their_bounds() {
    let all = [
        worst("exp", 1, |v| Arithmetic::exp(v[0])),
        worst("log", 1, |v| Arithmetic::ln(v[0])),
        worst("pow", 2, |v| Arithmetic::pow(v[0], v[1])),
        worst("sin", 1, |v| Arithmetic::sin(v[0])),
        worst("cos", 1, |v| Arithmetic::cos(v[0])),
        worst("atan2", 2, |v| Arithmetic::atan2(v[0], v[1])),
        worst("hypot", 2, |v| Arithmetic::hypot(v[0], v[1])),
    ];
    // Rounding errors must show: no result is compared with itself.
    assert!(all.iter().all(|&e| e > 0.4));
}
