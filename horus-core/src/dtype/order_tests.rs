//! The places of numbers in the order of their types.

use super::{Arithmetic, Pixel};

/// Numbers in order have digits in order, and other numbers others.
fn digits_are_in_order<T: Pixel>(sorted: &[T]) {
    let levels = (T::DTYPE.size() / 2).max(1);
    let digits = |v: &T| -> Vec<u32> {
        (0..levels).map(|level| v.order_digit(T::from_f64(level as f64)).to_f64() as u32).collect()
    };
    for pair in sorted.windows(2) {
        assert!(digits(&pair[0]) < digits(&pair[1]), "{} and {}: {:?}", pair[0], pair[1], digits(&pair[1]));
    }
    assert!(sorted.iter().all(|v| digits(v).iter().all(|d| *d < 1 << 16)));
    let beyond = T::from_f64(levels as f64);
    assert!(sorted.iter().all(|v| v.order_digit(beyond) == T::ZERO), "there is no such level");
}

#[test]
fn digits_are_in_the_order_of_the_numbers() {
    digits_are_in_order(&(0..=u8::MAX).collect::<Vec<_>>());
    digits_are_in_order(&(0..=u16::MAX).collect::<Vec<_>>());
    digits_are_in_order(&[i32::MIN, i32::MIN + 1, -70_000, -65_536, -1, 0, 1, 65_535, 65_536, i32::MAX]);
    let (tiny, most, far) = (f32::from_bits(1), f32::MAX, f32::INFINITY);
    digits_are_in_order(&[-far, -most, -2.0, -1.0, -tiny, 0.0, tiny, 0.5, 1.0, 1.0f32.next_up(), most, far]);
    let (tiny, most, far) = (f64::from_bits(1), f64::MAX, f64::INFINITY);
    digits_are_in_order(&[-far, -most, -2.0, -1.0, -tiny, -0.0, tiny, 0.5, 1.0, 1.0f64.next_up(), most, far]);
    for level in [0.0, 1.0] {
        assert_eq!((-0.0f32).order_digit(level), 0.0f32.order_digit(level), "zeros have one place");
    }
    assert!(f32::NAN.order_digit(0.0).is_nan() && f64::NAN.order_digit(3.0).is_nan());
}
