//! Thresholds, masks and selections by masks.

use horus::prelude::*;

use super::{Family, Operation, Record};
use crate::batch::Response;
use crate::command::arguments::{Arguments, with_term};
use crate::command::chain::Fault;
use crate::command::histogram::otsu;
use crate::command::parameter::{Kind, Parameter, optional, required};
use crate::command::value::{Current, numbers};

pub(super) const ROWS: &[Operation] = &[
    Operation {
        name: "threshold",
        aliases: &[],
        family: Family::Thresholds,
        parameters: &[required("t", Kind::Operand, "")],
        help: "A mask, true where `a > t`",
        example: "luminance threshold 0.5",
        record: Record::Picture(
            |v, a| numbers!(v, image => with_term!(a.term(image, "t", v.white())?, t => v.becomes(image.gt(t)))),
        ),
    },
    Operation {
        name: "otsu",
        aliases: &[],
        family: Family::Thresholds,
        parameters: &[],
        help: "A mask, true above Otsu's threshold of each channel, from a histogram of 256 levels over its range",
        example: "luminance gauss 1 otsu",
        record: Record::Picture(|v, _| {
            numbers!(v, image => {
                let channels = image.convert::<f32>().unstack(Axis::Channels);
                let masks: Vec<Image<bool>> = channels.iter().map(|channel| channel.gt(otsu(channel))).collect();
                v.becomes(Image::stack(image.session(), &masks, Axis::Channels))
            })
        }),
    },
    Operation {
        name: "sauvola",
        aliases: &[],
        family: Family::Thresholds,
        parameters: &[
            optional("size", Kind::Count, "25", "side of the square around each pixel"),
            optional("k", Kind::Number, "0.2", "weight of the deviation"),
            optional("r", Kind::Number, "0.5", "range of the deviation where white is 1"),
        ],
        help: "A mask, true above `m (1 + k (s / r - 1))`, mean and deviation of the square around each pixel",
        example: "luminance sauvola 15",
        record: Record::Picture(|v, a| {
            // The mean of squares less the square of the mean needs the digits of f64.
            let image = v.to_unit();
            let wide = image.convert::<f64>();
            let (row, column) = filters::box_filter(a.count("size"));
            let mean = wide.separable(&row, &column);
            let variance = wide.square().separable(&row, &column) - mean.square();
            let deviation = variance.max(0.0).sqrt();
            let threshold = mean * ((deviation / a.number("r") - 1.0) * a.number("k") + 1.0);
            Ok(v.becomes(image.gt(threshold.convert::<f32>())))
        }),
    },
    combined(
        "and",
        "Conjunction with the mask of the other picture (where it is not 0)",
        "luminance otsu and @in",
        |v, a| masks(v, a, |a, b| a & b),
    ),
    combined(
        "or",
        "Disjunction with the mask of the other picture (where it is not 0)",
        "luminance otsu or @in",
        |v, a| masks(v, a, |a, b| a | b),
    ),
    combined(
        "xor",
        "Exclusive or with the mask of the other picture (where it is not 0)",
        "luminance otsu xor @in",
        |v, a| masks(v, a, |a, b| a ^ b),
    ),
    Operation {
        name: "not",
        aliases: &[],
        family: Family::Thresholds,
        parameters: &[],
        help: "The complement of the mask",
        example: "otsu not",
        record: Record::Picture(|v, _| mask(v).map(|mask| v.becomes(!mask))),
    },
    Operation {
        name: "select",
        aliases: &[],
        family: Family::Thresholds,
        parameters: &[
            required("b", Kind::Operand, "where the mask is true"),
            required("c", Kind::Operand, "where it is false"),
        ],
        help: "`b` where the mask is true, else `c`; numbers alone are `f32` in which white is 1",
        example: "luminance otsu select @in 0",
        record: Record::Picture(|v, a| {
            let mask = mask(v)?;
            // The type is that of a picture, if there is one.
            let like = a.picture("b").or_else(|| a.picture("c"));
            let like = like.unwrap_or_else(|| Current::unit(mask.convert::<f32>()));
            let white = like.white();
            numbers!(like, image => with_term!(a.term(image, "b", white)?, b => {
                with_term!(a.term(image, "c", white)?, c => like.becomes(same(image, mask.select(b, c))))
            }))
        }),
    },
];

const OTHER: &[Parameter] = &[required("other", Kind::File, "")];

/// An operation of two masks.
const fn combined(
    name: &'static str,
    help: &'static str,
    example: &'static str,
    record: fn(&Current, &Arguments<'_>) -> Result<Current, Fault>,
) -> Operation {
    Operation {
        name,
        aliases: &[],
        family: Family::Thresholds,
        parameters: OTHER,
        help,
        example,
        record: Record::Picture(record),
    }
}

/// `made`, with the type of `_like`.
fn same<T: Pixel>(_like: &Image<T>, made: Image<T>) -> Image<T> {
    made
}

fn mask(v: &Current) -> Result<&Image<bool>, Fault> {
    match &v.pixels {
        Response::Mask(mask) => Ok(mask),
        Response::Picture(_) => Err(Fault::of_numbers()),
    }
}

fn masks(
    v: &Current,
    a: &Arguments<'_>,
    combine: fn(&Image<bool>, &Image<bool>) -> Image<bool>,
) -> Result<Current, Fault> {
    Ok(v.becomes(combine(mask(v)?, &a.mask("other")?)))
}
