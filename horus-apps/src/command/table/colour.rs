//! Types, scales, channels and colour spaces.

use horus::prelude::*;
use horus_core::dispatch;
use horus_core::ops::describe::{Accepts, Description, OperationGroup, Pattern, description, optional};
use horus_core::ops::{composed, planes};

use super::CommandOperation;
use crate::batch::Response;
use crate::command::chain::ChainError;
use crate::command::value::{Current, numbers, pixels};

const NORMALIZE: Description = description(
    "normalize",
    OperationGroup::Types,
    Pattern::Composition,
    "Stretches the smallest pixel to `lo` and the largest to `hi`, in `f32` in which white is 1",
)
.only_command()
.also(&["stretch"])
.takes(&[optional("lo", Accepts::Number, "0", ""), optional("hi", Accepts::Number, "1", "")])
.example("normalize 0.1 0.9");
pub(super) const ROWS: &[CommandOperation] = &[
    CommandOperation::picture(&composed::LUMINANCE, |v, _| Ok(Current::unit(v.luminance()))),
    CommandOperation::picture(&composed::TO_UNIT, |v, _| Ok(Current::unit(v.to_unit()))),
    CommandOperation::picture(
        &composed::CONVERT,
        |v, a| dispatch!(DType::ALL[a.choice("type")], T => converted::<T>(v)),
    ),
    CommandOperation::picture(&NORMALIZE, |v, a| {
        let image = v.to_unit();
        let (lo, hi) = (a.number("lo") as f32, a.number("hi") as f32);
        let (low, high) = (image.min_value(), image.max_value());
        // A picture of one value has no range; this avoids a division by 0.
        let range = (high - &low).to_image();
        let range = range.gt(0.0).select(&range, 1.0);
        Ok(Current::unit((image - low) / range * (hi - lo) + lo))
    }),
    CommandOperation::picture(&composed::EQUALIZE_HIST, |v, a| {
        // Floats are enough for 32-bit integers.
        match v.dtype() {
            DType::I32 | DType::U32 => Ok(Current::unit(equalize_hist(&v.to_unit(), a.count("bins")))),
            _ => numbers!(v, image => Current::unit(equalize_hist(image, a.count("bins")))),
        }
    }),
    CommandOperation::picture(&composed::EQUALIZE_ADAPTHIST, |v, a| {
        let image = v.luminance();
        let side = |name: &str, eighth: usize| if a.count(name) == 0 { (eighth / 8).max(1) } else { a.count(name) };
        let tile = (side("height", image.height()), side("width", image.width()));
        Ok(Current::unit(equalize_adapthist(&image, Some(tile), a.number("limit"), a.count("bins"))?))
    }),
    CommandOperation::picture(&planes::CHANNEL, |v, a| pixels!(v, image => v.becomes(image.channel(a.count("n"))))),
    CommandOperation::picture(&planes::STACK, |v, a| {
        numbers!(v, image => {
            let other = a.image("other", v.white())?;
            v.becomes(Image::stack(image.session(), [image, &other], Axis::Channels))
        })
    }),
    CommandOperation::picture(&composed::PASTE, |v, a| {
        numbers!(v, image => {
            let other = a.image("other", v.white())?;
            v.becomes(image.paste(&other, a.offset("top"), a.offset("left")))
        })
    }),
    CommandOperation::picture(&composed::RGB_TO_HSV, |v, _| converted_colour(v, Colour::Rgb, Colour::Hsv)),
    CommandOperation::picture(&composed::HSV_TO_RGB, |v, _| converted_colour(v, Colour::Hsv, Colour::Rgb)),
    CommandOperation::picture(&composed::RGB_TO_LAB, |v, _| converted_colour(v, Colour::Rgb, Colour::Lab)),
    CommandOperation::picture(&composed::LAB_TO_RGB, |v, _| converted_colour(v, Colour::Lab, Colour::Rgb)),
    CommandOperation::picture(&composed::RGB_TO_YCBCR, |v, _| converted_colour(v, Colour::Rgb, Colour::YCbCr)),
    CommandOperation::picture(&composed::YCBCR_TO_RGB, |v, _| converted_colour(v, Colour::YCbCr, Colour::Rgb)),
];

/// Converts colours. A picture that does not have three channels is an error of the library.
fn converted_colour(v: &Current, from: Colour, to: Colour) -> Result<Current, ChainError> {
    Ok(Current::unit(v.to_unit().convert_colour(from, to)))
}

fn converted<T: Pixel>(v: &Current) -> Result<Current, ChainError>
where
    Image<T>: Into<Response>,
{
    pixels!(v, image => v.becomes(image.convert::<T>()))
}
