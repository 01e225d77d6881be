//! Thresholds, masks and selections by masks.

use horus::prelude::*;
use horus_core::ops::describe::{
    Accepts, Description, OperationGroup, Parameter, Pattern, description, optional, required,
};
use horus_core::ops::{composed, pixel};

use super::CommandOperation;
use crate::batch::Response;
use crate::command::arguments::{Arguments, with_term};
use crate::command::chain::ChainError;
use crate::command::histogram::otsu;
use crate::command::value::{Current, numbers};

const THRESHOLD: Description =
    description("threshold", OperationGroup::Thresholds, Pattern::Composition, "A mask, true where `a > t`")
        .takes(&[required("t", Accepts::Operand, "")])
        .elsewhere(&["cv.threshold", "imageproc::contrast::threshold"])
        .differs("the method keeps the type: 0 and 1; `gt` yields a mask")
        .example("luminance threshold 0.5");
const SAUVOLA: Description = description(
    "sauvola",
    OperationGroup::Thresholds,
    Pattern::Composition,
    "A mask, true above `m (1 + k (s / r - 1))`, mean and deviation of the square around each pixel",
)
.only_command()
.takes(&[
    optional("size", Accepts::Count, "25", "side of the square around each pixel"),
    optional("k", Accepts::Number, "0.2", "weight of the deviation"),
    optional("r", Accepts::Number, "0.5", "range of the deviation where white is 1"),
])
.example("luminance sauvola 15");
const AND: Description = description(
    "and",
    OperationGroup::Thresholds,
    Pattern::Pixel,
    "Conjunction with the mask of the other picture (where it is not 0)",
)
.only_command()
.takes(&[OTHER])
.example("luminance otsu and @in");
const OR: Description = description(
    "or",
    OperationGroup::Thresholds,
    Pattern::Pixel,
    "Disjunction with the mask of the other picture (where it is not 0)",
)
.only_command()
.takes(&[OTHER])
.example("luminance otsu or @in");
const XOR: Description = description(
    "xor",
    OperationGroup::Thresholds,
    Pattern::Pixel,
    "Exclusive or with the mask of the other picture (where it is not 0)",
)
.only_command()
.takes(&[OTHER])
.example("luminance otsu xor @in");
const NOT: Description = description("not", OperationGroup::Thresholds, Pattern::Pixel, "The complement of the mask")
    .only_command()
    .example("otsu not");

pub(super) const ROWS: &[CommandOperation] = &[
    CommandOperation::picture(
        &THRESHOLD,
        |v, a| numbers!(v, image => with_term!(a.term(image, "t", v.white())?, t => v.becomes(image.gt(t)))),
    ),
    CommandOperation::picture(&composed::OTSU, |v, _| {
        numbers!(v, image => {
            let channels = image.convert::<f32>().unstack(Axis::Channels);
            let masks: Vec<Image<bool>> = channels.iter().map(|channel| channel.gt(otsu(channel))).collect();
            v.becomes(Image::stack(image.session(), &masks, Axis::Channels))
        })
    }),
    CommandOperation::picture(&SAUVOLA, |v, a| {
        // The mean of squares minus the square of the mean needs the digits of f64.
        let image = v.to_unit();
        let wide = image.convert::<f64>();
        let (row, column) = filters::box_filter(a.count("size"));
        let mean = wide.separable(&row, &column);
        let variance = wide.square().separable(&row, &column) - mean.square();
        let deviation = variance.max(0.0).sqrt();
        let threshold = mean * ((deviation / a.number("r") - 1.0) * a.number("k") + 1.0);
        Ok(v.becomes(image.gt(threshold.convert::<f32>())))
    }),
    CommandOperation::picture(&AND, |v, a| masks(v, a, |a, b| a & b)),
    CommandOperation::picture(&OR, |v, a| masks(v, a, |a, b| a | b)),
    CommandOperation::picture(&XOR, |v, a| masks(v, a, |a, b| a ^ b)),
    CommandOperation::picture(&NOT, |v, _| mask(v).map(|mask| v.becomes(!mask))),
    CommandOperation::picture(&pixel::SELECT, |v, a| {
        let mask = mask(v)?;
        // The result has the type of a picture, if there is one.
        let like = a.picture("b").or_else(|| a.picture("c"));
        let like = like.unwrap_or_else(|| Current::unit(mask.convert::<f32>()));
        let white = like.white();
        numbers!(like, image => with_term!(a.term(image, "b", white)?, b => {
            with_term!(a.term(image, "c", white)?, c => like.becomes(same(image, mask.select(b, c))))
        }))
    }),
];

const OTHER: Parameter = required("other", Accepts::File, "");

/// `made`, checked to have the type of `_like`.
fn same<T: Pixel>(_like: &Image<T>, made: Image<T>) -> Image<T> {
    made
}

fn mask(v: &Current) -> Result<&Image<bool>, ChainError> {
    match &v.pixels {
        Response::Mask(mask) => Ok(mask),
        Response::Picture(_) => Err(ChainError::of_numbers()),
    }
}

fn masks(
    v: &Current,
    a: &Arguments<'_>,
    combine: fn(&Image<bool>, &Image<bool>) -> Image<bool>,
) -> Result<Current, ChainError> {
    Ok(v.becomes(combine(mask(v)?, &a.mask("other")?)))
}
