//! Pixel operations: the Rust bodies of the table, pixel by pixel.

use super::{Image, Pixel, Scalar};
use horus_plan::ops::pixel::{PixelKind, PixelOp};

/// An operand: an image or a constant.
#[derive(Clone, Copy, Debug)]
pub enum ImageOrScalar<'a> {
    /// An image.
    Image(&'a Image),
    /// A constant, converted to the type of the other operands.
    Const(Scalar),
}

impl ImageOrScalar<'_> {
    fn at<T: Pixel>(self, c: usize, y: usize, x: usize) -> T {
        match self {
            ImageOrScalar::Image(image) => image.at(c, y, x),
            ImageOrScalar::Const(v) => T::from_scalar(v),
        }
    }
}

macro_rules! bodies {
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $uc:literal, $ud:literal;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $bc:literal, $bd:literal;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $cc:literal, $cd:literal;)* }
     ternary { $($t:ident $tn:literal |$ta:ident, $tb:ident, $tc:ident| $tx:expr, $tcu:literal, $td:literal;)* }
     select { $($s:ident $sn:literal $sc:literal, $sd:literal;)* }) => {
        /// The body of a unary, binary or ternary operation on its first operands `v`.
        pub(super) fn body<T: Pixel>(op: PixelOp, v: &[T]) -> T {
            match op {
                $(PixelOp::$u => { let $ua = v[0]; $ub })*
                $(PixelOp::$b => { let ($ba, $bb) = (v[0], v[1]); $bx })*
                $(PixelOp::$t => { let ($ta, $tb, $tc) = (v[0], v[1], v[2]); $tx })*
                $(PixelOp::$c)|* $(| PixelOp::$s)* => unreachable!("{op} does not yield its operands' type"),
            }
        }

        /// The body of a comparison.
        pub(super) fn holds<T: Pixel>(op: PixelOp, v: &[T]) -> bool {
            match op {
                $(PixelOp::$c => { let ($ca, $cb) = (v[0], v[1]); $cx })*
                _ => unreachable!("{op} is not a comparison"),
            }
        }
    };
}
horus_plan::pixel_ops!(bodies);

/// Applies `op` to every pixel.
///
/// # Panics
/// If the number of operands is wrong, none is an image, or images differ in size or type (the mask
/// of `Select` is of type `u8`).
pub fn apply(op: PixelOp, operands: &[ImageOrScalar<'_>]) -> Image {
    assert_eq!(operands.len(), op.arity(), "{op} has another number of operands");
    let shape = images(operands).next().expect("an operand is an image").shape;
    assert!(images(operands).all(|i| i.shape == shape), "operands of {op} differ in size");
    // The operand type: that of an image among them, or, for a `Select` between two constants, that
    // of the constants.
    let (mask, values) = operands.split_at(usize::from(op.info().kind == PixelKind::Select));
    let dtype = images(values).next().map(Image::dtype).unwrap_or_else(|| match values[0] {
        ImageOrScalar::Const(c) => c.dtype(),
        ImageOrScalar::Image(_) => unreachable!("there is no image among the values"),
    });
    horus_base::dispatch!(dtype, T => match op.info().kind {
        PixelKind::Unary | PixelKind::Binary | PixelKind::Ternary => Image::from_fn(shape, |c, y, x| {
            let v: Vec<T> = values.iter().map(|o| o.at(c, y, x)).collect();
            body(op, &v)
        }),
        PixelKind::Compare => Image::from_fn(shape, |c, y, x| {
            let v: Vec<T> = values.iter().map(|o| o.at(c, y, x)).collect();
            u8::from(holds(op, &v))
        }),
        PixelKind::Select => Image::from_fn(shape, |c, y, x| {
            let chosen = if mask[0].at::<u8>(c, y, x) != 0 { values[0] } else { values[1] };
            chosen.at::<T>(c, y, x)
        }),
    })
}

fn images<'a>(operands: &[ImageOrScalar<'a>]) -> impl Iterator<Item = &'a Image> {
    operands.iter().filter_map(|o| match o {
        ImageOrScalar::Image(image) => Some(*image),
        ImageOrScalar::Const(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_base::dtype::DType;
    use horus_base::shape::Shape;
    use horus_plan::ops::pixel::TABLE;

    fn row<T: Pixel>(v: &[T]) -> Image {
        Image::new(Shape::new(1, v.len(), 1), v.to_vec())
    }

    fn binary<T: Pixel>(op: PixelOp, a: &[T], b: &[T]) -> Image {
        apply(op, &[ImageOrScalar::Image(&row(a)), ImageOrScalar::Image(&row(b))])
    }

    #[test]
    fn every_row_of_the_table_has_a_body_for_every_type() {
        for info in TABLE {
            for dtype in DType::ALL {
                let input = super::super::fill(Shape::new(1, 2, 2), dtype, Scalar::U8(1));
                let mask = super::super::fill(Shape::new(1, 2, 2), DType::U8, Scalar::U8(1));
                let operands: Vec<ImageOrScalar<'_>> = (0..info.op.arity())
                    .map(|i| ImageOrScalar::Image(if info.op.operand(i, dtype) == dtype { &input } else { &mask }))
                    .collect();
                let out = apply(info.op, &operands);
                assert_eq!((out.shape, out.dtype()), (input.shape, info.op.result(dtype)), "{} {dtype}", info.name);
            }
        }
    }

    #[test]
    fn integers_saturate_and_divide_by_zero_to_zero() {
        assert_eq!(binary(PixelOp::Add, &[250u8, 1], &[10, 2]), row(&[255u8, 3]));
        assert_eq!(binary(PixelOp::Sub, &[3u16, 9], &[10, 2]), row(&[0u16, 7]));
        assert_eq!(binary(PixelOp::Mul, &[i32::MAX, i32::MIN], &[-2, -1]), row(&[i32::MIN, i32::MAX]));
        assert_eq!(binary(PixelOp::Div, &[7i32, -7, i32::MIN], &[0, 2, -1]), row(&[0, -3, i32::MAX]));
        assert_eq!(binary(PixelOp::AbsDiff, &[3u8, 200], &[10, 2]), row(&[7u8, 198]));
    }

    #[test]
    fn extremes_ignore_nan_and_keep_the_first_zero() {
        let nan = f32::NAN;
        assert_eq!(
            binary(PixelOp::Max, &[nan, 1.0, 0.0, -0.0], &[2.0, nan, -0.0, 0.0]),
            row(&[2.0, 1.0, 0.0, -0.0f32])
        );
        assert_eq!(
            binary(PixelOp::Min, &[nan, 1.0, 0.0, -0.0], &[2.0, nan, -0.0, 0.0]),
            row(&[2.0, 1.0, 0.0, -0.0f32])
        );
    }

    #[test]
    fn comparisons_with_nan_are_false_but_for_unequal() {
        let (a, b) = ([f64::NAN, 1.0], [1.0, 1.0]);
        assert_eq!(binary(PixelOp::Le, &a, &b), row(&[0u8, 1]));
        assert_eq!(binary(PixelOp::Eq, &a, &b), row(&[0u8, 1]));
        assert_eq!(binary(PixelOp::Ne, &a, &b), row(&[1u8, 0]));
        assert_eq!(binary(PixelOp::Threshold, &a, &b), row(&[0.0, 0.0]));
    }

    #[test]
    fn signs_roots_and_negative_zero() {
        let unary = |op, v: &[f32]| apply(op, &[ImageOrScalar::Image(&row(v))]);
        assert_eq!(unary(PixelOp::Neg, &[0.0, -2.0]), row(&[-0.0f32, 2.0]));
        assert_eq!(unary(PixelOp::Abs, &[-0.0, -2.0]), row(&[0.0f32, 2.0]));
        assert_eq!(unary(PixelOp::Sign, &[-0.0, -2.0, 0.5]), row(&[-0.0f32, -1.0, 1.0]));
        assert_eq!(unary(PixelOp::Sqrt, &[-0.0, 4.0]), row(&[-0.0f32, 2.0]));
        assert_eq!(apply(PixelOp::Sqrt, &[ImageOrScalar::Image(&row(&[-9, 7, 6]))]), row(&[0, 3, 2]));
    }

    #[test]
    fn absdiv_and_clamp_take_constants() {
        let image = row(&[6.0f32, -6.0, 1.0]);
        let by = row(&[2.0f32, -0.5, 1e-4]);
        let out = apply(
            PixelOp::AbsDiv,
            &[ImageOrScalar::Image(&image), ImageOrScalar::Image(&by), ImageOrScalar::Const(Scalar::F32(1e-3))],
        );
        assert_eq!(out, row(&[3.0f32, 12.0, 0.0]));
        let limits = [ImageOrScalar::Const(Scalar::F32(0.0)), ImageOrScalar::Const(Scalar::F32(5.0))];
        let noisy = row(&[6.0f32, -6.0, f32::NAN, 2.0]);
        assert_eq!(
            apply(PixelOp::Clamp, &[ImageOrScalar::Image(&noisy), limits[0], limits[1]]),
            row(&[5.0f32, 0.0, 0.0, 2.0])
        );
    }

    #[test]
    fn select_takes_the_first_where_the_mask_is_not_zero() {
        let mask = row(&[0u8, 1, 255]);
        let image = row(&[1i32, 2, 3]);
        let out = apply(
            PixelOp::Select,
            &[ImageOrScalar::Image(&mask), ImageOrScalar::Image(&image), ImageOrScalar::Const(Scalar::I32(-1))],
        );
        assert_eq!(out, row(&[-1, 2, 3]));
        let constants = [ImageOrScalar::Const(Scalar::F64(1.0)), ImageOrScalar::Const(Scalar::F64(0.0))];
        assert_eq!(
            apply(PixelOp::Select, &[ImageOrScalar::Image(&mask), constants[0], constants[1]]),
            row(&[0.0, 1.0, 1.0])
        );
    }
}
