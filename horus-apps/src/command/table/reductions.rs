//! Reductions to numbers, which are printed.

use std::f64::consts::{FRAC_PI_2, PI};

use horus::prelude::*;
use horus::types::Arithmetic;

use horus_core::ops::describe::{Description, OperationGroup, Pattern, description};
use horus_core::ops::{composed, histogram, reduce};

use super::CommandOperation;
use crate::batch::Response;
use crate::command::chain::{Answer, ChainError, answer};
use crate::command::value::{Current, numbers, smallest};

const MIN_MAX: Description = description(
    "min_max",
    OperationGroup::Numbers,
    Pattern::Composition,
    "The smallest pixel and the largest, in one pass",
)
.only_command()
.example("min_max");
const MEAN_AND_VARIANCE: Description = description(
    "mean_and_variance",
    OperationGroup::Numbers,
    Pattern::Composition,
    "The mean and the population variance, in one pass",
)
.only_command()
.example("mean_and_variance");
const STATS: Description = description(
    "stats",
    OperationGroup::Numbers,
    Pattern::Composition,
    "Of each channel: number, min, max, mean, deviation, sum; a line each",
)
.only_command()
.example("stats");

pub(super) const ROWS: &[CommandOperation] = &[
    CommandOperation::numbers(&reduce::MIN_VALUE, |v, _| numbers!(v, image => one(image.min_value()))),
    CommandOperation::numbers(&reduce::MAX_VALUE, |v, _| numbers!(v, image => one(image.max_value()))),
    CommandOperation::numbers(&reduce::SUM, |v, _| numbers!(counted(v), image => one(image.sum()))),
    CommandOperation::numbers(&reduce::MEAN, |v, _| numbers!(counted(v), image => one(image.mean()))),
    CommandOperation::numbers(&reduce::VARIANCE, |v, _| numbers!(counted(v), image => one(image.variance()))),
    CommandOperation::numbers(&MIN_MAX, |v, _| numbers!(v, image => two((image.min_value(), image.max_value())))),
    CommandOperation::numbers(
        &MEAN_AND_VARIANCE,
        |v, _| numbers!(counted(v), image => two((image.mean(), image.variance()))),
    ),
    CommandOperation::numbers(&composed::PERCENTILE, |v, a| {
        let value = numbers!(v, image => image.percentile(a.number("percent")))?;
        value.check()?;
        Ok(one(value))
    }),
    CommandOperation::numbers(&reduce::ARGMIN, |v, _| numbers!(v, image => place(image.argmin(), image.depth() > 1))),
    CommandOperation::numbers(&reduce::ARGMAX, |v, _| numbers!(v, image => place(image.argmax(), image.depth() > 1))),
    CommandOperation::numbers(&reduce::COUNT, |v, _| match &v.pixels {
        Response::Mask(mask) => Ok(one(mask.count())),
        Response::Picture(_) => Err(ChainError::of_numbers()),
    }),
    CommandOperation::numbers(&histogram::HISTOGRAM, |v, a| {
        let low = if v.dtype().is_float() { 0.0 } else { smallest(v.dtype()) };
        let (bins, lo) = (a.count("bins"), a.limit("lo").unwrap_or(low));
        let hi = a.limit("hi").unwrap_or(v.white());
        let counts = numbers!(v, image => image.histogram(bins, lo, hi))?;
        counts.check()?;
        Ok(answer(counts, |counts| vec![counts.iter().map(u64::to_string).collect::<Vec<_>>().join("\t")]))
    }),
    CommandOperation::numbers(&composed::HOUGH_LINE, |v, a| {
        let Response::Mask(mask) = &v.pixels else { return Err(ChainError::of_numbers()) };
        let counts = hough_line(mask, &normals(a.count("angles"))?);
        counts.check()?;
        Ok(answer(counts, |counts| {
            let distances = 0..counts.first().map_or(0, Vec::len);
            let tabs = |d: usize| counts.iter().map(|of| of[d].to_string()).collect::<Vec<_>>().join("\t");
            distances.map(tabs).collect()
        }))
    }),
    CommandOperation::numbers(&composed::PEAK_LOCAL_MAX, |v, a| {
        let distance = a.count("distance");
        let (threshold, border) = (a.limit("threshold").map(|t| t as f32), a.limit("border"));
        let border = match border {
            None => distance,
            Some(border) if border >= 0.0 && border.fract() == 0.0 => border as usize,
            Some(border) => {
                return Err(ChainError::Message(format!(
                    "the border is {border}; it must be a whole number from 0 on"
                )));
            }
        };
        let places = peak_local_max(&v.luminance(), distance, threshold, border);
        places.check()?;
        Ok(match v.shape().depth {
            1 => answer(places, |places| places.iter().map(|at| tabs(&at[1..])).collect()),
            _ => answer(places, |places| places.iter().map(|at| tabs(at)).collect()),
        })
    }),
    CommandOperation::numbers(&STATS, |v, _| numbers!(counted(v), image => stats(image))),
];

/// A mask as numbers, 0 and 1.
fn counted(v: &Current) -> Current {
    match &v.pixels {
        Response::Mask(mask) => v.becomes(mask.convert::<u8>()),
        Response::Picture(_) => v.clone(),
    }
}

/// Cosines and sines of angles that divide half a turn evenly.
fn normals(angles: usize) -> Result<Vec<[f64; 2]>, ChainError> {
    const MOST: usize = 1 << 16;
    if !(1..=MOST).contains(&angles) {
        return Err(ChainError::Message(format!("{angles} angles; the range is 1 to {MOST}")));
    }
    let angle = |k: usize| k as f64 * (PI / angles as f64) - FRAC_PI_2;
    // The same bits on every machine.
    Ok((0..angles).map(angle).map(|angle| [Arithmetic::cos(angle), Arithmetic::sin(angle)]).collect())
}

fn one<V: std::fmt::Display + 'static>(value: Value<V>) -> Answer {
    answer(value, |value| vec![value.to_string()])
}

fn two<V: std::fmt::Display + 'static>(values: (Value<V>, Value<V>)) -> Answer {
    answer(values, |(a, b)| vec![format!("{a}\t{b}")])
}

/// Numbers, separated by tabs.
fn tabs(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join("\t")
}

fn place(value: Value<Option<[usize; 4]>>, levels: bool) -> Answer {
    fn told(place: Option<&[usize]>) -> Vec<String> {
        vec![place.map_or_else(|| "none".into(), tabs)]
    }
    match levels {
        true => answer(value, |at| told(at.as_ref().map(|at| &at[..]))),
        false => answer(value, |at| told(at.as_ref().map(|at| &at[1..]))),
    }
}

fn stats<T: Pixel>(image: &Image<T>) -> Answer {
    let channels = image.unstack(Axis::Channels);
    let values: Vec<_> =
        channels.iter().map(|c| (c.min_value(), c.max_value(), c.mean(), c.variance(), c.sum())).collect();
    answer(values, |values| {
        let line = |(i, (min, max, mean, variance, sum)): (usize, (T, T, f64, f64, f64))| {
            format!("{i}\t{min}\t{max}\t{mean}\t{}\t{sum}", variance.sqrt())
        };
        values.into_iter().enumerate().map(line).collect()
    })
}
