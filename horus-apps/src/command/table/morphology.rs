//! Morphology of pictures and masks.

use horus::prelude::{Connectivity, Rank, thin};
use horus_core::ops::{components, composed, distance, neighbourhood, thin, windowed};

use super::Operation;
use crate::batch::Response;
use crate::command::chain::Fault;
use crate::command::value::pixels;

pub(super) const ROWS: &[Operation] = &[
    Operation::picture(&neighbourhood::ERODE, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).erode(&footprint)))
    }),
    Operation::picture(&neighbourhood::DILATE, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).dilate(&footprint)))
    }),
    Operation::picture(&windowed::MEDIAN_UNDER, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).median(&footprint)))
    }),
    Operation::picture(&windowed::PERCENTILE_UNDER, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image
            .with_border(a.border("border"))
            .rank(&footprint, Rank::Percent(a.number("percent")))))
    }),
    Operation::picture(&windowed::RANK_UNDER, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).rank(&footprint, Rank::Place(a.count("place")))))
    }),
    Operation::picture(&composed::OPENING, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.opening(&footprint)))
    }),
    Operation::picture(&composed::CLOSING, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.closing(&footprint)))
    }),
    Operation::picture(&composed::TOP_HAT, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.top_hat(&footprint)))
    }),
    Operation::picture(&composed::BLACK_HAT, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.black_hat(&footprint)))
    }),
    Operation::picture(&components::LABEL, |v, a| {
        let kinds = [Connectivity::FACES, Connectivity::CORNERS];
        pixels!(v, image => v.becomes(image.label(kinds[a.choice("neighbours")])))
    }),
    Operation::picture(&thin::THIN, |v, _| match &v.pixels {
        Response::Mask(mask) => Ok(v.becomes(thin(mask))),
        Response::Picture(_) => Err(Fault::of_numbers()),
    }),
    Operation::picture(&distance::DISTANCE, |v, a| {
        pixels!(v, image => match a.choice("metric") {
            1 => v.becomes(image.distances().taxicab()),
            2 => v.becomes(image.distances().chessboard()),
            _ => v.becomes(image.distances().euclidean::<f32>()),
        })
    }),
    Operation::picture(&composed::MORPHOLOGICAL_GRADIENT, |v, a| {
        let footprint = a.footprint("footprint");
        pixels!(v, image => v.becomes(image.morphological_gradient(&footprint)))
    }),
];
