//! An image of any type, as Python has them.

use horus::core::session::Handle;
use horus::prelude::{AnyImage, DType, Image, Shape};
use horus::types::Element;
use pyo3::exceptions::PyTypeError;
use pyo3::{PyErr, PyResult};

/// An image whose type is known at run time.
#[derive(Clone, Debug)]
pub(crate) enum Any {
    U8(Image<u8>),
    I8(Image<i8>),
    U16(Image<u16>),
    I16(Image<i16>),
    U32(Image<u32>),
    I32(Image<i32>),
    F32(Image<f32>),
    F64(Image<f64>),
    Bool(Image<bool>),
}

/// Evaluates `$body` with `$image` bound to the image, of numbers or a mask.
macro_rules! each {
    ($any:expr, $image:ident => $body:expr) => {
        match $any {
            $crate::any::Any::U8($image) => $body,
            $crate::any::Any::I8($image) => $body,
            $crate::any::Any::U16($image) => $body,
            $crate::any::Any::I16($image) => $body,
            $crate::any::Any::U32($image) => $body,
            $crate::any::Any::I32($image) => $body,
            $crate::any::Any::F32($image) => $body,
            $crate::any::Any::F64($image) => $body,
            $crate::any::Any::Bool($image) => $body,
        }
    };
}

/// Evaluates `$body`, a `PyResult`, with `$image` bound to the image of numbers; a `TypeError` that
/// names `$op` for a mask.
macro_rules! numbers {
    ($any:expr, $op:expr, $image:ident => $body:expr) => {
        match $any {
            $crate::any::Any::U8($image) => $body,
            $crate::any::Any::I8($image) => $body,
            $crate::any::Any::U16($image) => $body,
            $crate::any::Any::I16($image) => $body,
            $crate::any::Any::U32($image) => $body,
            $crate::any::Any::I32($image) => $body,
            $crate::any::Any::F32($image) => $body,
            $crate::any::Any::F64($image) => $body,
            $crate::any::Any::Bool(_) => Err($crate::any::no_numbers($op)),
        }
    };
}

/// Runs `$body` with the type alias `$t` bound to the Rust type of that name; a `TypeError` for
/// other names.
macro_rules! typed {
    ($name:expr, $t:ident => $body:expr) => {
        match $name {
            "u8" => {
                type $t = u8;
                $body
            }
            "i8" => {
                type $t = i8;
                $body
            }
            "u16" => {
                type $t = u16;
                $body
            }
            "i16" => {
                type $t = i16;
                $body
            }
            "u32" => {
                type $t = u32;
                $body
            }
            "i32" => {
                type $t = i32;
                $body
            }
            "f32" => {
                type $t = f32;
                $body
            }
            "f64" => {
                type $t = f64;
                $body
            }
            other => Err($crate::any::unknown(other)),
        }
    };
}
pub(crate) use {each, numbers, typed};

/// The error of [`typed!`] for a type that images do not have.
pub(crate) fn unknown(name: &str) -> PyErr {
    PyTypeError::new_err(format!("images are u8, i8, u16, i16, u32, i32, f32, f64 or bool, not {name}"))
}

/// The error of [`numbers!`] for a mask.
pub(crate) fn no_numbers(op: &str) -> PyErr {
    PyTypeError::new_err(format!("{op}: the image is a mask; convert it to numbers first"))
}

/// Makes an image from a handle of its type.
pub(crate) type Behind = fn(Handle) -> Any;

impl Any {
    /// Levels, rows, columns and channels.
    pub(crate) fn shape(&self) -> Shape {
        each!(self, image => image.shape())
    }

    /// The type of a pixel.
    pub(crate) fn dtype(&self) -> DType {
        each!(self, image => image.dtype())
    }

    /// The function that makes images of this type from handles.
    pub(crate) fn behind(&self) -> Behind {
        fn of<T: Held>(_: &Image<T>) -> Behind {
            |handle| T::held(Image::from(handle))
        }
        each!(self, image => of(image))
    }

    /// An image of this type that carries an error.
    pub(crate) fn failed(&self) -> Any {
        match self {
            Any::U8(image) => Any::U8(image.crop(0, 0, 0, 0)),
            Any::I8(image) => Any::I8(image.crop(0, 0, 0, 0)),
            Any::I16(image) => Any::I16(image.crop(0, 0, 0, 0)),
            Any::U32(image) => Any::U32(image.crop(0, 0, 0, 0)),
            Any::U16(image) => Any::U16(image.crop(0, 0, 0, 0)),
            Any::I32(image) => Any::I32(image.crop(0, 0, 0, 0)),
            Any::F32(image) => Any::F32(image.crop(0, 0, 0, 0)),
            Any::F64(image) => Any::F64(image.crop(0, 0, 0, 0)),
            Any::Bool(image) => Any::Bool(image.crop(0, 0, 0, 0)),
        }
    }

    /// As a mask.
    pub(crate) fn mask(&self, op: &str) -> PyResult<&Image<bool>> {
        match self {
            Any::Bool(mask) => Ok(mask),
            other => Err(PyTypeError::new_err(format!("{op}: expected a mask, not an image of {}", other.dtype()))),
        }
    }
}

/// Element types that [`Any`] holds.
pub(crate) trait Held: Element {
    /// The image without its static type.
    fn held(image: Image<Self>) -> Any;
    /// The image, if it has this type.
    fn of(any: &Any) -> Option<&Image<Self>>;
}

macro_rules! held {
    ($($t:ty, $variant:ident;)*) => {$(
        impl Held for $t {
            fn held(image: Image<$t>) -> Any {
                Any::$variant(image)
            }
            fn of(any: &Any) -> Option<&Image<$t>> {
                match any {
                    Any::$variant(image) => Some(image),
                    _ => None,
                }
            }
        }
    )*};
}
held! {
    u8, U8;
    i8, I8;
    u16, U16;
    i16, I16;
    u32, U32;
    i32, I32;
    f32, F32;
    f64, F64;
    bool, Bool;
}

impl TryFrom<AnyImage> for Any {
    type Error = PyErr;

    fn try_from(picture: AnyImage) -> PyResult<Any> {
        match picture {
            AnyImage::U8(image) => Ok(Any::U8(image)),
            AnyImage::I8(image) => Ok(Any::I8(image)),
            AnyImage::U16(image) => Ok(Any::U16(image)),
            AnyImage::I16(image) => Ok(Any::I16(image)),
            AnyImage::U32(image) => Ok(Any::U32(image)),
            AnyImage::I32(image) => Ok(Any::I32(image)),
            AnyImage::F32(image) => Ok(Any::F32(image)),
            AnyImage::F64(image) => Ok(Any::F64(image)),
            other => Err(PyTypeError::new_err(format!("pictures of {} are not known here", other.dtype()))),
        }
    }
}
