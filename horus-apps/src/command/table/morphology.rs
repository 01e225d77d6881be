//! Morphology of pictures and masks.

use horus::prelude::{Connectivity, Image, Rank, local_maxima, thin};
use horus_core::ops::{components, composed, distance, neighbourhood, thin, windowed};

use super::CommandOperation;
use crate::batch::Response;
use crate::command::arguments::Arguments;
use crate::command::chain::ChainError;
use crate::command::value::{Current, numbers, pixels};

fn neighbours(arguments: &Arguments<'_>) -> Connectivity {
    [Connectivity::FACES, Connectivity::CORNERS][arguments.choice("neighbours")]
}

fn mask(value: &Current) -> Result<&Image<bool>, ChainError> {
    match &value.pixels {
        Response::Mask(mask) => Ok(mask),
        Response::Picture(_) => Err(ChainError::of_numbers()),
    }
}

pub(super) const ROWS: &[CommandOperation] = &[
    CommandOperation::picture(&neighbourhood::ERODE, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).erode(&footprint)))
    }),
    CommandOperation::picture(&neighbourhood::DILATE, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).dilate(&footprint)))
    }),
    CommandOperation::picture(&windowed::MEDIAN_UNDER, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).median(&footprint)))
    }),
    CommandOperation::picture(&windowed::PERCENTILE_UNDER, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image
            .with_border(a.border("border"))
            .rank(&footprint, Rank::Percent(a.number("percent")))))
    }),
    CommandOperation::picture(&windowed::RANK_UNDER, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).rank(&footprint, Rank::Place(a.count("place")))))
    }),
    CommandOperation::picture(&composed::OPENING, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.opening(&footprint)))
    }),
    CommandOperation::picture(&composed::CLOSING, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.closing(&footprint)))
    }),
    CommandOperation::picture(&composed::TOP_HAT, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.top_hat(&footprint)))
    }),
    CommandOperation::picture(&composed::BLACK_HAT, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.black_hat(&footprint)))
    }),
    CommandOperation::picture(&components::LABEL, |v, a| pixels!(v, image => v.becomes(image.label(neighbours(a))))),
    CommandOperation::picture(
        &components::COMPONENT_SIZES,
        |v, a| pixels!(v, image => v.becomes(image.component_sizes(neighbours(a)))),
    ),
    CommandOperation::picture(&composed::REMOVE_SMALL, |v, a| {
        Ok(v.becomes(mask(v)?.remove_small(a.count("pixels"), neighbours(a))))
    }),
    CommandOperation::picture(&composed::FILL_SMALL, |v, a| {
        Ok(v.becomes(mask(v)?.fill_small(a.count("pixels"), neighbours(a))))
    }),
    CommandOperation::picture(&composed::KEEP_LARGEST, |v, a| Ok(v.becomes(mask(v)?.keep_largest(neighbours(a))))),
    CommandOperation::picture(&composed::CLEAR_BORDER, |v, a| Ok(v.becomes(mask(v)?.clear_border(neighbours(a))))),
    CommandOperation::picture(
        &composed::LOCAL_MAXIMA,
        |v, a| numbers!(v, image => v.becomes(local_maxima(image, neighbours(a)))),
    ),
    CommandOperation::picture(&thin::THIN, |v, _| Ok(v.becomes(thin(mask(v)?)))),
    CommandOperation::picture(&distance::DISTANCE, |v, a| {
        pixels!(v, image => match a.choice("metric") {
            1 => v.becomes(image.distances().taxicab()),
            2 => v.becomes(image.distances().chessboard()),
            _ => v.becomes(image.distances().euclidean::<f32>()),
        })
    }),
    CommandOperation::picture(&composed::MORPHOLOGICAL_GRADIENT, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.morphological_gradient(&footprint)))
    }),
];
