//! An image whose type is known only at run time, as in Python.

use horus::prelude::{AnyImage, DType, Image, Shape};
use horus::types::Element;
use horus_core::session::Handle;
use pyo3::exceptions::PyTypeError;
use pyo3::{PyErr, PyResult};

macro_rules! any {
    ([$($t:ident $variant:ident),*]) => {
        /// An image whose type is known at run time.
        #[derive(Clone, Debug)]
        pub(crate) enum Any {
            $($variant(Image<$t>),)*
            Bool(Image<bool>),
        }

        impl TryFrom<AnyImage> for Any {
            type Error = PyErr;

            fn try_from(picture: AnyImage) -> PyResult<Any> {
                match picture {
                    $(AnyImage::$variant(image) => Ok(Any::$variant(image)),)*
                    other => Err(PyTypeError::new_err(format!("pictures of {} are not supported", other.dtype()))),
                }
            }
        }

        held! { $($t $variant,)* bool Bool }
    };
}

macro_rules! held {
    ($($t:ident $variant:ident),*) => {$(
        impl AnyElement for $t {
            fn into_any(image: Image<$t>) -> Any {
                Any::$variant(image)
            }
            fn from_any(any: &Any) -> Option<&Image<$t>> {
                match any {
                    Any::$variant(image) => Some(image),
                    _ => None,
                }
            }
        }
    )*};
}
horus_core::numeric_types!([any]);

/// Evaluates `$body` with `$image` bound to the image, of numbers or a mask.
macro_rules! each {
    ($any:expr, $image:ident => $body:expr) => {
        horus_core::numeric_types! {
            [$crate::any::each_variant] $any, $image => $body, $crate::any::Any::Bool($image) => $body
        }
    };
}

/// Evaluates `$body`, a `PyResult`, with `$image` bound to the image of numbers; a mask is a `TypeError` that names
/// `$op`.
macro_rules! numbers {
    ($any:expr, $op:expr, $image:ident => $body:expr) => {
        horus_core::numeric_types! {
            [$crate::any::each_variant]
            $any, $image => $body, $crate::any::Any::Bool(_) => Err($crate::any::no_numbers($op))
        }
    };
}

/// Evaluates `$body` with `$image` bound to the image of numbers, or `$else` for a mask.
macro_rules! each_variant {
    ([$($t:ident $variant:ident),*] $any:expr, $image:ident => $body:expr, $mask:pat => $else:expr) => {
        match $any {
            $($crate::any::Any::$variant($image) => $body,)*
            $mask => $else,
        }
    };
}

/// Runs `$body`, a `PyResult`, with the type alias `$t` bound to the Rust type of that name; other names are a
/// `TypeError`.
macro_rules! typed {
    ($name:expr, $t:ident => $body:expr) => {
        match $crate::any::named($name) {
            Ok(dtype) => horus_core::dispatch!(dtype, $t => $body),
            Err(unknown) => Err(unknown),
        }
    };
}
pub(crate) use {each, each_variant, numbers, typed};

/// The pixel type of this name; masks have none.
pub(crate) fn named(name: &str) -> PyResult<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.name() == name).ok_or_else(|| {
        PyTypeError::new_err(format!("images are u8, i8, u16, i16, u32, i32, f32, f64 or bool, not {name}"))
    })
}

/// The error of [`numbers!`] for a mask.
pub(crate) fn no_numbers(op: &str) -> PyErr {
    PyTypeError::new_err(format!("{op}: the image is a mask; convert it to numbers first"))
}

/// Makes an image from a handle of its type.
pub(crate) type ImageFromHandle = fn(Handle) -> Any;

impl Any {
    /// The numbers of levels, rows, columns and channels.
    pub(crate) fn shape(&self) -> Shape {
        each!(self, image => image.shape())
    }

    /// The pixel type.
    pub(crate) fn dtype(&self) -> DType {
        each!(self, image => image.dtype())
    }

    /// The function that makes images of this type from handles.
    pub(crate) fn handle_converter(&self) -> ImageFromHandle {
        fn of<T: AnyElement>(_: &Image<T>) -> ImageFromHandle {
            |handle| T::into_any(Image::from(handle))
        }
        each!(self, image => of(image))
    }

    /// An image of this type that carries an error.
    pub(crate) fn failed(&self) -> Any {
        fn of<T: AnyElement>(image: &Image<T>) -> Any {
            T::into_any(image.crop(0, 0, 0, 0))
        }
        each!(self, image => of(image))
    }

    /// The image as a mask; numbers are a `TypeError` that names `op`.
    pub(crate) fn mask(&self, op: &str) -> PyResult<&Image<bool>> {
        match self {
            Any::Bool(mask) => Ok(mask),
            other => Err(PyTypeError::new_err(format!("{op}: expected a mask, not an image of {}", other.dtype()))),
        }
    }
}

/// Element types of [`Any`].
pub(crate) trait AnyElement: Element {
    /// The image without its static type.
    fn into_any(image: Image<Self>) -> Any;
    /// The image, if it has this type.
    fn from_any(any: &Any) -> Option<&Image<Self>>;
}
