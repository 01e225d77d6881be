//! Morphology of pictures and masks.

use horus::prelude::{Connectivity, Rank};

use super::{Family, Operation, Record};
use crate::command::parameter::{Kind, Parameter, optional, required};
use crate::command::value::pixels;

const FOOTPRINT: Parameter = optional("footprint", Kind::Footprint, "3", "");
const BORDER: Parameter = optional("border", Kind::Border, "reflect101", "border mode");

fn neighbours() -> Vec<String> {
    ["4", "8"].map(str::to_owned).to_vec()
}

fn metrics() -> Vec<String> {
    ["euclidean", "taxicab", "chessboard"].map(str::to_owned).to_vec()
}

/// An operation with a footprint: a method of the library.
macro_rules! under {
    ($method:ident, $aliases:expr, $help:literal, $example:literal) => {
        Operation {
            name: stringify!($method),
            aliases: $aliases,
            family: Family::Morphology,
            parameters: &[FOOTPRINT],
            help: $help,
            example: $example,
            record: Record::Picture(|v, a| {
                let footprint = a.footprint("footprint");
                pixels!(v, image => v.becomes(image.$method(&footprint)))
            }),
        }
    };
}

/// An operation with a footprint and a border.
macro_rules! extreme {
    ($name:literal, $method:ident, $help:literal, $example:literal) => {
        Operation {
            name: $name,
            aliases: &[],
            family: Family::Morphology,
            parameters: &[FOOTPRINT, BORDER],
            help: $help,
            example: $example,
            record: Record::Picture(|v, a| {
                let footprint = a.footprint("footprint");
                pixels!(v, image => v.becomes(image.with_border(a.border("border")).$method(&footprint)))
            }),
        }
    };
}

/// A rank under a footprint, with a parameter, a footprint and a border.
macro_rules! ranked {
    ($name:literal, $parameter:expr, $help:literal, $example:literal, |$image:ident, $a:ident, $footprint:ident| $record:expr) => {
        Operation {
            name: $name,
            aliases: &[],
            family: Family::Morphology,
            parameters: &[$parameter, FOOTPRINT, BORDER],
            help: $help,
            example: $example,
            record: Record::Picture(|v, $a| {
                let $footprint = $a.footprint("footprint");
                pixels!(v, $image => v.becomes($record))
            }),
        }
    };
}

pub(super) const ROWS: &[Operation] = &[
    extreme!("erode", erode, "The smallest pixel under the footprint", "erode disc 2"),
    extreme!("dilate", dilate, "The largest pixel under the footprint", "dilate cross 1"),
    extreme!("median_under", median, "The median of the pixels under the footprint", "median_under disc 7"),
    ranked!(
        "percentile_under",
        required("percent", Kind::Number, "0 to 100"),
        "A percentile of the pixels under the footprint",
        "percentile_under 90 15",
        |image, a, footprint| image
            .with_border(a.border("border"))
            .rank(&footprint, Rank::Percent(a.number("percent")))
    ),
    ranked!(
        "rank_under",
        required("place", Kind::Count, "in the order of the pixels; the smallest is 0"),
        "The pixel in a place of the order of those under the footprint",
        "rank_under 3 cross 2",
        |image, a, footprint| image.with_border(a.border("border")).rank(&footprint, Rank::Place(a.count("place")))
    ),
    under!(opening, &["open"], "Removes bright details smaller than the footprint", "opening 3"),
    under!(closing, &["close"], "Removes dark details smaller than the footprint", "closing rectangle 3 5"),
    under!(top_hat, &["tophat"], "What an opening removes", "top_hat disc 3"),
    under!(black_hat, &["blackhat"], "What a closing adds", "black_hat disc 3"),
    Operation {
        name: "label",
        aliases: &["components"],
        family: Family::Morphology,
        parameters: &[optional("neighbours", Kind::Choice(neighbours), "4", "")],
        help: "The number of each pixel's connected component, from 1 on; 0 where the picture is 0",
        example: "luminance otsu label 8 convert u16",
        record: Record::Picture(|v, a| {
            let kinds = [Connectivity::FACES, Connectivity::CORNERS];
            pixels!(v, image => v.becomes(image.label(kinds[a.choice("neighbours")])))
        }),
    },
    Operation {
        name: "distance",
        aliases: &["distance_transform"],
        family: Family::Morphology,
        parameters: &[optional("metric", Kind::Choice(metrics), "euclidean", "")],
        help: "The distance of each pixel to the nearest one that is 0",
        example: "luminance otsu distance",
        record: Record::Picture(|v, a| {
            pixels!(v, image => match a.choice("metric") {
                1 => v.becomes(image.distances().taxicab()),
                2 => v.becomes(image.distances().chessboard()),
                _ => v.becomes(image.distances().euclidean::<f32>()),
            })
        }),
    },
    under!(morphological_gradient, &["gradient"], "Dilation minus erosion", "morphological_gradient 3"),
];
