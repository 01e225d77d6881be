//! Operations on pixels.

use horus::prelude::{Colour, Image as Typed, Pixel};
use horus_core::image::bindings;
use horus_core::ops::pixel::{PixelInfo, PixelKind, PixelOp, TABLE};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::any::{Any, AnyElement, each, numbers, typed};
use crate::image::PyImage;

/// Name, kind, and NumPy's name of each operation of one or two operands; functions of floats are a kind of their own.
pub(crate) fn table() -> Vec<(&'static str, &'static str, &'static str)> {
    let kind = |row: &PixelInfo| match row.kind {
        PixelKind::Unary if row.transcendental => Some("function"),
        PixelKind::Unary => Some("unary"),
        PixelKind::Binary => Some("binary"),
        PixelKind::Compare => Some("compare"),
        _ => None,
    };
    let numpy =
        |row: &PixelInfo| row.described.elsewhere.iter().find_map(|name| name.strip_prefix("np.")).unwrap_or("");
    TABLE.iter().filter_map(|row| Some((row.name, kind(row)?, numpy(row)))).collect()
}

fn named(name: &str) -> PyResult<PixelOp> {
    let row = TABLE.iter().find(|row| row.name == name);
    row.map(|row| row.op).ok_or_else(|| PyValueError::new_err(format!("no operation on pixels is called {name}")))
}

/// An image, or a number for all pixels.
pub(crate) enum ImageOrNumber<'py> {
    Image(PyRef<'py, PyImage>),
    Number(f64),
}

impl<'a, 'py> FromPyObject<'a, 'py> for ImageOrNumber<'py> {
    type Error = PyErr;

    // A derived implementation writes an error for each number, which takes half as long as recording.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<ImageOrNumber<'py>> {
        match object.cast::<PyImage>() {
            Ok(image) => Ok(ImageOrNumber::Image(image.to_owned().borrow())),
            Err(_) => object.extract().map(ImageOrNumber::Number),
        }
    }
}

/// Another operand, in the type of the first.
enum TypedOperand<'a, T: Pixel> {
    Image(&'a Typed<T>),
    Number(T),
}

/// Evaluates `$body` with `$b` bound to the operand of either kind.
macro_rules! with {
    ($same:expr, $b:ident => $body:expr) => {
        match $same {
            TypedOperand::Image($b) => $body,
            TypedOperand::Number($b) => $body,
        }
    };
}

fn same<'a, T: AnyElement + Pixel>(
    op: &str,
    _beside: &Typed<T>,
    operand: &'a ImageOrNumber<'_>,
) -> PyResult<TypedOperand<'a, T>> {
    match operand {
        ImageOrNumber::Number(number) => Ok(TypedOperand::Number(T::from_f64(*number))),
        ImageOrNumber::Image(image) => T::from_any(&image.any).map(TypedOperand::Image).ok_or_else(|| {
            let (this, that) = (T::DTYPE, image.any.dtype());
            PyTypeError::new_err(format!("{op}: images of {this} and of {that}; convert one of them"))
        }),
    }
}

/// An operation on each pixel of one image.
#[pyfunction]
pub(crate) fn unary(name: &str, a: &PyImage) -> PyResult<PyImage> {
    let op = named(name)?;
    numbers!(&a.any, name, image => a.recorded(|| bindings::unary(image, op)))
}

/// An operation on each pixel of an image and of an operand, an image of the same type or a number.
#[pyfunction]
pub(crate) fn binary(name: &str, a: &PyImage, b: ImageOrNumber<'_>) -> PyResult<PyImage> {
    let op = named(name)?;
    numbers!(&a.any, name, image => with!(same(name, image, &b)?, b => a.recorded(|| bindings::binary(image, op, b))))
}

/// An operation on a number and each pixel of an image.
#[pyfunction]
pub(crate) fn binary_of_number(name: &str, a: f64, b: &PyImage) -> PyResult<PyImage> {
    let op = named(name)?;
    numbers!(&b.any, name, image => b.recorded(|| bindings::binary(&of_number(a, image), op, image)))
}

/// `a * b + c` of each pixel; floats are rounded once.
#[pyfunction]
pub(crate) fn mul_add(a: &PyImage, b: ImageOrNumber<'_>, c: ImageOrNumber<'_>) -> PyResult<PyImage> {
    fn of<T: AnyElement + Pixel>(
        of: &PyImage,
        image: &Typed<T>,
        b: &ImageOrNumber<'_>,
        c: &ImageOrNumber<'_>,
    ) -> PyResult<PyImage> {
        let (b, c) = (same("mul_add", image, b)?, same("mul_add", image, c)?);
        with!(b, b => with!(c, c => of.recorded(|| image.mul_add(b, c))))
    }
    numbers!(&a.any, "mul_add", image => of(a, image, &b, &c))
}

/// An image of one pixel, which is broadcast.
fn of_number<T: Pixel>(number: f64, beside: &Typed<T>) -> Typed<T> {
    Typed::constant(beside.session(), (1, 1), T::from_f64(number))
}

/// The mask of pixels for which a comparison is true.
#[pyfunction]
pub(crate) fn compare(name: &str, a: &PyImage, b: ImageOrNumber<'_>) -> PyResult<PyImage> {
    let op = named(name)?;
    numbers!(&a.any, name, image => with!(same(name, image, &b)?, b => a.recorded(|| bindings::compare(image, op, b))))
}

/// The pixels of `a` where the mask is true, else the pixels of `b`; at least one of `a` and `b` is an image.
#[pyfunction]
pub(crate) fn select(mask: &PyImage, a: ImageOrNumber<'_>, b: ImageOrNumber<'_>) -> PyResult<PyImage> {
    let holds = mask.any.mask("select")?;
    let typed = match (&a, &b) {
        (ImageOrNumber::Image(typed), _) | (_, ImageOrNumber::Image(typed)) => typed,
        _ => return Err(PyTypeError::new_err("select: both values are numbers; at least one must be an image")),
    };
    numbers!(&typed.any, "select", image => chosen(mask, holds, image, &a, &b))
}

fn chosen<T: AnyElement + Pixel>(
    of: &PyImage,
    mask: &Typed<bool>,
    beside: &Typed<T>,
    a: &ImageOrNumber<'_>,
    b: &ImageOrNumber<'_>,
) -> PyResult<PyImage> {
    let (a, b) = (same("select", beside, a)?, same("select", beside, b)?);
    with!(a, a => with!(b, b => of.recorded(|| mask.select::<T>(a, b))))
}

/// A conjunction, disjunction or difference of masks: `and`, `or`, `xor`.
#[pyfunction]
pub(crate) fn logic(name: &str, a: &PyImage, b: &PyImage) -> PyResult<PyImage> {
    let (left, right) = (a.any.mask(name)?, b.any.mask(name)?);
    match name {
        "and" => a.recorded(|| left & right),
        "or" => a.recorded(|| left | right),
        "xor" => a.recorded(|| left ^ right),
        other => Err(PyValueError::new_err(format!("no operation on masks is called {other}"))),
    }
}

/// The complement of a mask.
#[pyfunction]
pub(crate) fn invert(mask: &PyImage) -> PyResult<PyImage> {
    let holds = mask.any.mask("invert")?;
    mask.recorded(|| !holds)
}

/// Converts colours of three channels of `f32` from one space (`rgb`, `hsv`, `lab` or `ycbcr`) to another.
#[pyfunction]
pub(crate) fn convert_colour(a: &PyImage, source: &str, target: &str) -> PyResult<PyImage> {
    let space = |name: &str| match name {
        "rgb" => Ok(Colour::Rgb),
        "hsv" => Ok(Colour::Hsv),
        "lab" => Ok(Colour::Lab),
        "ycbcr" => Ok(Colour::YCbCr),
        _ => {
            Err(PyValueError::new_err(format!("no colour space is called {name:?}; there are rgb, hsv, lab and ycbcr")))
        }
    };
    let (from, to) = (space(source)?, space(target)?);
    match &a.any {
        Any::F32(image) => a.recorded(|| image.convert_colour(from, to)),
        other => Err(PyTypeError::new_err(format!("convert_colour: pixels must be f32, not {}", other.dtype()))),
    }
}

/// Each pixel limited to a range.
#[pyfunction]
pub(crate) fn clamp(a: &PyImage, low: f64, high: f64) -> PyResult<PyImage> {
    fn limited<T: Pixel>(image: &Typed<T>, low: f64, high: f64) -> Typed<T> {
        image.clamp(T::from_f64(low), T::from_f64(high))
    }
    numbers!(&a.any, "clamp", image => a.recorded(|| limited(image, low, high)))
}

/// Converts pixels to another type. Numbers are rounded to nearest and saturated. Masks become 0 and 1. Non-zero pixels
/// become true in a mask.
#[pyfunction]
pub(crate) fn convert(a: &PyImage, dtype: &str) -> PyResult<PyImage> {
    fn mask<T: Pixel>(image: &Typed<T>) -> Typed<bool> {
        image.ne(T::ZERO)
    }
    if dtype == "bool" {
        return match &a.any {
            Any::Bool(holds) => a.recorded(|| holds.clone()),
            numbers => numbers!(numbers, "convert", image => a.recorded(|| mask(image))),
        };
    }
    typed!(dtype, T => each!(&a.any, image => a.recorded(|| image.convert::<T>())))
}

/// Converts pixels to another type of numbers as C and NumPy cast: fractions are dropped, and numbers outside the range
/// of the type are taken modulo its range.
#[pyfunction]
pub(crate) fn cast(a: &PyImage, dtype: &str) -> PyResult<PyImage> {
    typed!(dtype, T => numbers!(&a.any, "cast", image => a.recorded(|| bindings::cast::<_, T>(image))))
}
