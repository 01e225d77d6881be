//! Types, scales, channels and colour spaces.

use horus::core::dispatch;
use horus::prelude::*;

use super::{Family, Operation, Record};
use crate::batch::Response;
use crate::command::chain::Fault;
use crate::command::histogram::{counts, levels, running};
use crate::command::parameter::{Kind, optional, required, types};
use crate::command::value::{Current, numbers, pixels};

/// A colour space; a picture that does not have three channels is an error of the library.
macro_rules! space {
    ($name:literal, $from:ident, $to:ident, $help:literal) => {
        Operation {
            name: $name,
            aliases: &[],
            family: Family::Types,
            parameters: &[],
            help: $help,
            example: concat!("to_unit ", $name),
            record: Record::Picture(|v, _| Ok(Current::unit(v.to_unit().convert_colour(Colour::$from, Colour::$to)))),
        }
    };
}

pub(super) const ROWS: &[Operation] = &[
    Operation {
        name: "luminance",
        aliases: &["grey", "gray"],
        family: Family::Types,
        parameters: &[],
        help: "One channel of `f32` in which white is 1, of colours 0.299 R + 0.587 G + 0.114 B, ignoring alpha",
        example: "luminance",
        record: Record::Picture(|v, _| Ok(Current::unit(v.luminance()))),
    },
    Operation {
        name: "to_unit",
        aliases: &["unit"],
        family: Family::Types,
        parameters: &[],
        help: "All channels as `f32` in which white is 1; of a mask, 0 and 1",
        example: "to_unit",
        record: Record::Picture(|v, _| Ok(Current::unit(v.to_unit()))),
    },
    Operation {
        name: "convert",
        aliases: &[],
        family: Family::Types,
        parameters: &[required("type", Kind::Choice(types), "")],
        help: "Pixels of another type, rounded and saturated but not scaled; of a mask, 0 and 1",
        example: "convert f32",
        record: Record::Picture(|v, a| dispatch!(DType::ALL[a.choice("type")], T => converted::<T>(v))),
    },
    Operation {
        name: "normalize",
        aliases: &["stretch"],
        family: Family::Types,
        parameters: &[optional("lo", Kind::Number, "0", ""), optional("hi", Kind::Number, "1", "")],
        help: "Stretches the smallest pixel to `lo` and the largest to `hi`, in `f32` in which white is 1",
        example: "normalize 0.1 0.9",
        record: Record::Picture(|v, a| {
            let image = v.to_unit();
            let (lo, hi) = (a.number("lo") as f32, a.number("hi") as f32);
            let (low, high) = (image.min_value(), image.max_value());
            // A picture of one value has no range; division by 0 is avoided.
            let range = (high - &low).to_image();
            let range = range.gt(0.0).select(&range, 1.0);
            Ok(Current::unit((image - low) / range * (hi - lo) + lo))
        }),
    },
    Operation {
        name: "equalize",
        aliases: &[],
        family: Family::Types,
        parameters: &[],
        help: "Histogram equalization by 256 levels: each pixel becomes the fraction of pixels not brighter",
        example: "luminance equalize",
        record: Record::Picture(|v, _| {
            let image = v.to_unit();
            let levels = levels(&image, &image.min_value(), &image.max_value());
            let share = running(&counts(&levels)) / image.shape().len() as f64;
            Ok(Current::unit(levels.lookup(&share.convert::<f32>())))
        }),
    },
    Operation {
        name: "channel",
        aliases: &[],
        family: Family::Types,
        parameters: &[required("n", Kind::Count, "the first is 0")],
        help: "One channel",
        example: "channel 0",
        record: Record::Picture(|v, a| pixels!(v, image => v.becomes(image.channel(a.count("n"))))),
    },
    Operation {
        name: "stack",
        aliases: &[],
        family: Family::Types,
        parameters: &[required("other", Kind::File, "of the same size")],
        help: "The channels of `a`, then those of the other picture",
        example: "channel 0 stack @in",
        record: Record::Picture(|v, a| {
            numbers!(v, image => {
                let other = a.image("other", v.white())?;
                v.becomes(Image::stack(image.session(), [image, &other], Axis::Channels))
            })
        }),
    },
    Operation {
        name: "paste",
        aliases: &[],
        family: Family::Types,
        parameters: &[
            required("other", Kind::File, ""),
            required("top", Kind::Offset, "row of its upper left pixel"),
            required("left", Kind::Offset, "column of its upper left pixel"),
        ],
        help: "Pastes the other picture over this one; parts beyond the edge are cut off",
        example: "paste @in 4 -3",
        record: Record::Picture(|v, a| {
            numbers!(v, image => {
                let other = a.image("other", v.white())?;
                v.becomes(image.paste(&other, a.offset("top"), a.offset("left")))
            })
        }),
    },
    space!("rgb_to_hsv", Rgb, Hsv, "Hue, saturation and value in 0..=1 of red, green and blue"),
    space!("hsv_to_rgb", Hsv, Rgb, "Red, green and blue of hue, saturation and value in 0..=1"),
    space!("rgb_to_lab", Rgb, Lab, "CIE L*a*b* (D65), L in 0..=100, of red, green and blue"),
    space!("lab_to_rgb", Lab, Rgb, "Red, green and blue of CIE L*a*b* (D65)"),
    space!("rgb_to_ycbcr", Rgb, YCbCr, "Luma and colour differences (JPEG's) of red, green and blue"),
    space!("ycbcr_to_rgb", YCbCr, Rgb, "Red, green and blue of luma and colour differences"),
];

fn converted<T: Pixel>(v: &Current) -> Result<Current, Fault>
where
    Image<T>: Into<Response>,
{
    pixels!(v, image => v.becomes(image.convert::<T>()))
}
