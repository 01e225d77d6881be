//! Pixel operations, by the Rust bodies of the table.

use super::{Pixel, ReferenceImage, Scalar};
use horus_plan::ops::pixel::{PixelKind, PixelOp};

/// An operand: an image or a constant.
#[derive(Clone, Copy, Debug)]
pub enum ImageOrScalar<'a> {
    /// An image.
    Image(&'a ReferenceImage),
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
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $_ud:literal, $_ut:tt;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $_bd:literal, $_bt:tt;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $_cd:literal, $_ct:tt;)* }
     ternary { $($t:ident $tn:literal |$ta:ident, $tb:ident, $tc:ident| $tx:expr, $_td:literal, $_tt:tt;)* }
     select { $($s:ident $sn:literal $_sd:literal, $_st:tt;)* }) => {
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
pub fn apply(op: PixelOp, operands: &[ImageOrScalar<'_>]) -> ReferenceImage {
    assert_eq!(operands.len(), op.arity(), "{op} has another number of operands");
    let shape = images(operands).next().expect("an operand is an image").shape;
    assert!(images(operands).all(|i| i.shape == shape), "operands of {op} differ in size");
    // The operand type: the type of an image among the operands, or, for a `Select` between two constants, the type of
    // the constants.
    let (mask, values) = operands.split_at(usize::from(op.info().kind == PixelKind::Select));
    let dtype = images(values).next().map(ReferenceImage::dtype).unwrap_or_else(|| match values[0] {
        ImageOrScalar::Const(c) => c.dtype(),
        ImageOrScalar::Image(_) => unreachable!("there is no image among the values"),
    });
    horus_base::dispatch!(dtype, T => match op.info().kind {
        PixelKind::Unary | PixelKind::Binary | PixelKind::Ternary => ReferenceImage::from_fn(shape, |c, y, x| {
            let v: Vec<T> = values.iter().map(|o| o.at(c, y, x)).collect();
            body(op, &v)
        }),
        PixelKind::Compare => ReferenceImage::from_fn(shape, |c, y, x| {
            let v: Vec<T> = values.iter().map(|o| o.at(c, y, x)).collect();
            u8::from(holds(op, &v))
        }),
        PixelKind::Select => ReferenceImage::from_fn(shape, |c, y, x| {
            let chosen = if mask[0].at::<u8>(c, y, x) != 0 { values[0] } else { values[1] };
            chosen.at::<T>(c, y, x)
        }),
    })
}

fn images<'a>(operands: &[ImageOrScalar<'a>]) -> impl Iterator<Item = &'a ReferenceImage> {
    operands.iter().filter_map(|o| match o {
        ImageOrScalar::Image(image) => Some(*image),
        ImageOrScalar::Const(_) => None,
    })
}
