//! Arithmetic, and the ranks of numbers within their types.

use super::{Arithmetic, Float, Pixel};

#[test]
fn integers_saturate_and_divide_by_zero_to_zero() {
    assert_eq!(Arithmetic::add(250u8, 10), 255);
    assert_eq!(Arithmetic::sub(3u16, 10), 0);
    assert_eq!(Arithmetic::mul(i32::MAX, -2), i32::MIN);
    assert_eq!(Arithmetic::div(i32::MIN, -1), i32::MAX);
    assert_eq!(Arithmetic::div(7i32, 0), 0);
    assert_eq!(Arithmetic::neg(9u8), 0);
    assert_eq!(Arithmetic::absdiff(i32::MIN, i32::MAX), i32::MAX);
    assert_eq!((Arithmetic::add(120i8, 10), Arithmetic::sub(-120i8, 10), Arithmetic::mul(-16i8, 8)), (127, -128, -128));
    assert_eq!(
        (Arithmetic::neg(i16::MIN), Arithmetic::abs(i8::MIN), Arithmetic::div(i16::MIN, -1)),
        (i16::MAX, 127, i16::MAX)
    );
    assert_eq!((Arithmetic::mul(u32::MAX, u32::MAX), Arithmetic::mul(65_536u32, 65_535)), (u32::MAX, 4_294_901_760));
    assert_eq!((Arithmetic::sub(3u32, 4), Arithmetic::neg(1u32), Arithmetic::sign(-5i8)), (0, 0, -1));
    assert_eq!((Arithmetic::sqrt(-4i8), Arithmetic::exp(10i8), Arithmetic::pow(2u32, 40)), (0, 127, u32::MAX));
}

#[test]
fn conversion_rounds_to_nearest_even_and_saturates() {
    assert_eq!(u8::from_f64(2.5), 2);
    assert_eq!(u8::from_f64(3.5), 4);
    assert_eq!(u8::from_f64(-1.0), 0);
    assert_eq!(u16::from_f64(1e9), 65535);
    assert_eq!(i32::from_f64(f64::NAN), 0);
    assert_eq!(
        (i8::from_f64(-128.5), i8::from_f64(-129.0), i8::from_f32(127.5), i8::from_f64(f64::NAN)),
        (-128, -128, 127, 0)
    );
    assert_eq!((i16::from_f64(-0.5), i16::from_f64(1.5), i16::from_f32(-4e9)), (0, 2, i16::MIN));
    assert_eq!(
        (u32::from_f64(4_294_967_294.5), u32::from_f64(-1.0), u32::from_f32(f32::INFINITY)),
        (4_294_967_294, 0, u32::MAX)
    );
}

#[test]
fn float_extremes_ignore_nan_and_keep_the_first_on_a_tie() {
    assert_eq!(Arithmetic::max(f32::NAN, 1.0), 1.0);
    assert_eq!(Arithmetic::max(1.0, f32::NAN), 1.0);
    assert_eq!(Arithmetic::min(0.0f32, -0.0).to_bits(), 0.0f32.to_bits());
    assert_eq!(Arithmetic::min(-0.0f32, 0.0).to_bits(), (-0.0f32).to_bits());
}

#[test]
fn fraction_weights_are_exact() {
    assert_eq!(f32::from_fraction(1 << 31), 0.5);
    assert_eq!(f64::from_fraction(1), 2f64.powi(-32));
}

/// Compares remainders and operations on bits with 64-bit integers, which hold every operand and every result
/// before truncation.
fn whole_operations_are_those_of_wide_integers<T: Pixel>(bits: i64, values: &[T]) {
    let wide = |v: T| v.to_f64() as i64;
    for (&a, &b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
        let (x, y) = (wide(a), wide(b));
        let inside = (0..bits).contains(&y);
        let cut = |v: i64| T::cast_f64(v as f64);
        assert_eq!(a.rem(b), cut(if y == 0 { 0 } else { x % y }), "{a} rem {b}");
        assert_eq!(a.bitwise_and(b), cut(x & y), "{a} & {b}");
        assert_eq!(a.bitwise_or(b), cut(x | y), "{a} | {b}");
        assert_eq!(a.bitwise_xor(b), cut(x ^ y), "{a} ^ {b}");
        let up = if inside { x << y & ((1 << bits) - 1) } else { 0 };
        assert_eq!(a.left_shift(b), cut(up), "{a} << {b}");
        let down = if inside { x >> y } else { -i64::from(x < 0) };
        assert_eq!(a.right_shift(b), cut(down), "{a} >> {b}");
    }
}

#[test]
fn integers_have_remainders_and_bits() {
    whole_operations_are_those_of_wide_integers(8, &(0..=u8::MAX).collect::<Vec<_>>());
    whole_operations_are_those_of_wide_integers(8, &(i8::MIN..=i8::MAX).collect::<Vec<_>>());
    whole_operations_are_those_of_wide_integers(16, &[0, 1, 7, 15, 16, 17, 255, 4096, 0xaaaa, u16::MAX - 1, u16::MAX]);
    whole_operations_are_those_of_wide_integers(
        16,
        &[i16::MIN, i16::MIN + 1, -256, -16, -1, 0, 1, 15, 16, 17, 0x5555, i16::MAX],
    );
    whole_operations_are_those_of_wide_integers(32, &[0, 1, 2, 31, 32, 33, 0xdead_beef, 1 << 31, u32::MAX]);
    whole_operations_are_those_of_wide_integers(
        32,
        &[i32::MIN, i32::MIN + 1, -70_001, -32, -1, 0, 1, 2, 31, 32, 33, 0x5555_5555, i32::MAX],
    );
}

#[test]
fn floats_have_exact_remainders_and_the_bits_of_their_whole_parts() {
    // C's fmod, by Python's math.fmod.
    assert_eq!(Arithmetic::rem(5.5f64, -2.0), 1.5);
    assert_eq!(Arithmetic::rem(-5.5f32, 2.0), -1.5);
    assert_eq!(Arithmetic::rem(1e300f64, 3.7), 1.765761626199355);
    assert_eq!(Arithmetic::rem(-4.0f64, 2.0).to_bits(), (-0.0f64).to_bits());
    assert_eq!(Arithmetic::rem(3.0f32, f32::INFINITY), 3.0);
    assert!(Arithmetic::rem(1.0f32, 0.0).is_nan() && Arithmetic::rem(f64::INFINITY, 2.0).is_nan());
    assert_eq!(Arithmetic::bitwise_and(6.9f32, 3.0), 2.0);
    assert_eq!(Arithmetic::bitwise_xor(-1.5f64, 1.0), -2.0);
    assert_eq!(Arithmetic::bitwise_or(f64::NAN, 5.0), 5.0);
    assert_eq!(Arithmetic::bitwise_and(f32::INFINITY, 255.0), 255.0);
    assert_eq!(Arithmetic::left_shift(3.7f64, 40.2), 3.0 * 2f64.powi(40));
    assert_eq!(Arithmetic::right_shift(-5.0f32, 1.0), -3.0);
    assert_eq!(Arithmetic::right_shift(-5.0f64, 64.0), -1.0);
    assert_eq!(Arithmetic::left_shift(5.0f64, 64.0), 0.0);
}

/// Numbers in ascending order have ascending digits; different numbers have different digits.
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
    digits_are_in_order(&[0, 1, 65_535, 65_536, 1 << 31, u32::MAX]);
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
