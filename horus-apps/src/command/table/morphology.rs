//! Morphology of pictures and masks.

use horus::prelude::{Connectivity, Rank, local_maxima, thin};
use horus_core::ops::{components, composed, distance, neighbourhood, thin, windowed};

use super::CommandOperation;
use crate::batch::Response;
use crate::command::chain::ChainError;
use crate::command::value::{numbers, pixels};

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
    CommandOperation::picture(&components::LABEL, |v, a| {
        let kinds = [Connectivity::FACES, Connectivity::CORNERS];
        pixels!(v, image => v.becomes(image.label(kinds[a.choice("neighbours")])))
    }),
    CommandOperation::picture(&composed::LOCAL_MAXIMA, |v, a| {
        let kinds = [Connectivity::FACES, Connectivity::CORNERS];
        numbers!(v, image => v.becomes(local_maxima(image, kinds[a.choice("neighbours")])))
    }),
    CommandOperation::picture(&thin::THIN, |v, _| match &v.pixels {
        Response::Mask(mask) => Ok(v.becomes(thin(mask))),
        Response::Picture(_) => Err(ChainError::of_numbers()),
    }),
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
