//! The arguments of a call, converted for its operation: numbers, choices, and pictures in the operation's type.

use horus::prelude::*;

use super::chain::{ArgumentFiles, ChainCall, ChainError};
use super::parameter::{Length, OperandArgument, ParsedArgument, ResultExtent};
use super::value::Current;
use crate::batch::Response;

/// The arguments of a call, with the pictures that they refer to.
pub(crate) struct Arguments<'a> {
    call: &'a ChainCall,
    files: &'a ArgumentFiles,
    input: &'a Current,
}

impl<'a> Arguments<'a> {
    /// The arguments of `call`, in a chain on `input`; `files` has the pictures.
    pub(super) fn new(call: &'a ChainCall, files: &'a ArgumentFiles, input: &'a Current) -> Arguments<'a> {
        Arguments { call, files, input }
    }
}

/// The second operand for an image of type `T`.
pub(crate) enum ChainOperand<T: Pixel> {
    Scalar(T),
    Two([T; 2]),
    Three([T; 3]),
    Four([T; 4]),
    Image(Image<T>),
}

/// Evaluates `$body` with `$term` bound to the value in a [`ChainOperand`].
macro_rules! with_term {
    ($from:expr, $term:ident => $body:expr) => {
        match $from {
            $crate::command::arguments::ChainOperand::Scalar($term) => $body,
            $crate::command::arguments::ChainOperand::Two($term) => $body,
            $crate::command::arguments::ChainOperand::Three($term) => $body,
            $crate::command::arguments::ChainOperand::Four($term) => $body,
            $crate::command::arguments::ChainOperand::Image($term) => $body,
        }
    };
}
pub(crate) use with_term;

macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident $variant:ident $t:ty;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(&self, name: &str) -> $t {
            match self.argument(name) {
                ParsedArgument::$variant(value) => value.clone(),
                other => unreachable!("{name} is {other:?}"),
            }
        }
    )*};
}

impl Arguments<'_> {
    accessors! {
        /// A number.
        number Number f64;
        /// A length in the picture.
        length Length Length;
        /// A non-negative integer.
        count Count usize;
        /// An integer.
        offset Offset isize;
        /// The height or width of a result.
        extent Extent ResultExtent;
        /// A number, if one is given.
        limit Limit Option<f64>;
        /// Numbers.
        numbers Numbers Vec<f64>;
        /// The index of a word of a choice.
        choice Choice usize;
        /// A border mode.
        border Border Border;
        /// A footprint.
        footprint Footprint Footprint;
        /// The taps of a filter.
        taps Taps Filter;
    }

    /// The order of a derivative.
    pub(crate) fn order(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    /// The argument of a parameter. A test runs each row, so the parameters exist.
    fn argument(&self, name: &str) -> &ParsedArgument {
        let at = self.call.operation.parameters.iter().position(|p| p.name == name);
        &self.call.arguments[at.expect("a row asks for its own parameters")]
    }

    fn as_operand(&self, name: &str) -> &OperandArgument {
        match self.argument(name) {
            ParsedArgument::Operand(operand) => operand,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The picture that an argument names, if any.
    pub(crate) fn picture(&self, name: &str) -> Option<Current> {
        match self.as_operand(name) {
            OperandArgument::Input => Some(self.input.clone()),
            OperandArgument::File(path) => self.files.get(path).cloned().map(Current::read),
            OperandArgument::Number(_) | OperandArgument::Channels(_) => None,
        }
    }

    /// The mask of a picture that an argument names: `true` where it is not 0.
    pub(crate) fn mask(&self, name: &str) -> Result<Image<bool>, ChainError> {
        let picture = self.picture(name).ok_or_else(|| ChainError::Message("it takes a picture".into()))?;
        match &picture.pixels {
            Response::Mask(mask) => Ok(mask.clone()),
            Response::Picture(image) => Ok(image.convert::<f32>().ne(0.0)),
        }
    }

    /// The second operand for `image`, on the scale on which `white` is white.
    pub(crate) fn term<T: Pixel>(
        &self,
        _image: &Image<T>,
        name: &str,
        white: f64,
    ) -> Result<ChainOperand<T>, ChainError> {
        match self.as_operand(name) {
            OperandArgument::Number(value) => Ok(ChainOperand::Scalar(pixel(*value)?)),
            OperandArgument::Channels(values) => {
                let values = values.iter().map(|v| pixel(*v)).collect::<Result<Vec<T>, _>>()?;
                Ok(match values[..] {
                    [a, b] => ChainOperand::Two([a, b]),
                    [a, b, c] => ChainOperand::Three([a, b, c]),
                    [a, b, c, d] => ChainOperand::Four([a, b, c, d]),
                    _ => unreachable!("{name} has 2 to 4 numbers"),
                })
            }
            OperandArgument::File(_) | OperandArgument::Input => self.image(name, white).map(ChainOperand::Image),
        }
    }

    /// The picture that an argument names, in type `T`. If `T` is a float type, integers are converted to the scale on
    /// which `white` is white; floats stay as they are.
    pub(crate) fn image<T: Pixel>(&self, name: &str, white: f64) -> Result<Image<T>, ChainError> {
        let picture = self.picture(name).ok_or_else(|| ChainError::Message("it takes a picture".into()))?;
        let (has, wanted) = (picture.dtype(), T::DTYPE);
        let Response::Picture(image) = &picture.pixels else { return Err(ChainError::of_mask()) };
        if has == wanted {
            return Ok(image.convert());
        }
        if !wanted.is_float() {
            let message = format!(
                "pixels are {wanted} and those of its argument {has}; put `to_unit` or `convert {has}` before it"
            );
            return Err(ChainError::Message(message));
        }
        let image = image.convert::<T>();
        let factor = white / picture.white();
        Ok(if has.is_float() || factor == 1.0 { image } else { image * T::from_f64(factor) })
    }
}

/// The number as a pixel of `image`, if it is representable.
pub(crate) fn exact<T: Pixel>(_image: &Image<T>, value: f64) -> Result<T, ChainError> {
    pixel(value)
}

fn pixel<T: Pixel>(value: f64) -> Result<T, ChainError> {
    let pixel = T::from_f64(value);
    if T::DTYPE.is_float() || pixel.to_f64() == value {
        return Ok(pixel);
    }
    let name = T::DTYPE;
    Err(ChainError::Message(format!(
        "pixels are {name}, which cannot hold {value}; put `to_unit` or `convert f32` before it"
    )))
}
