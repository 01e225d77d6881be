//! Numbers, which are printed.

use std::f64::consts::{FRAC_PI_2, PI};

use horus::prelude::*;
use horus::types::Arithmetic;

use super::{Family, Operation, Record};
use crate::batch::Response;
use crate::command::arguments::Arguments;
use crate::command::chain::{Answer, Fault, answer};
use crate::command::parameter::{Kind, Parameter, optional, required};
use crate::command::value::{Current, numbers, smallest};

const fn row(
    name: &'static str,
    parameters: &'static [Parameter],
    help: &'static str,
    example: &'static str,
    record: fn(&Current, &Arguments<'_>) -> Result<Answer, Fault>,
) -> Operation {
    let record = Record::Numbers(record);
    Operation { name, aliases: &[], family: Family::Reductions, parameters, help, example, record }
}

pub(super) const ROWS: &[Operation] = &[
    row("min", &[], "The smallest pixel", "min", |v, _| numbers!(v, image => one(image.min_value()))),
    row("max", &[], "The largest pixel", "max", |v, _| numbers!(v, image => one(image.max_value()))),
    row("sum", &[], "The sum of all pixels", "sum", |v, _| numbers!(counted(v), image => one(image.sum()))),
    row(
        "mean",
        &[],
        "The mean of all pixels; of a mask, the fraction that is true",
        "luminance mean",
        |v, _| numbers!(counted(v), image => one(image.mean())),
    ),
    row(
        "variance",
        &[],
        "The population variance: the mean of the squared deviation from the mean",
        "variance",
        |v, _| numbers!(counted(v), image => one(image.variance())),
    ),
    row(
        "min_max",
        &[],
        "The smallest pixel and the largest, in one pass",
        "min_max",
        |v, _| numbers!(v, image => two((image.min_value(), image.max_value()))),
    ),
    row(
        "mean_and_variance",
        &[],
        "The mean and the population variance, in one pass",
        "mean_and_variance",
        |v, _| numbers!(counted(v), image => two((image.mean(), image.variance()))),
    ),
    row(
        "percentile",
        &[required("percent", Kind::Number, "0 to 100")],
        "The value below which so many percent of all pixels lie, interpolated",
        "luminance percentile 50",
        |v, a| {
            let value = numbers!(v, image => image.percentile(a.number("percent")))?;
            value.check()?;
            Ok(one(value))
        },
    ),
    row(
        "argmin",
        &[],
        "Row, column and channel of the smallest pixel, the first of several; its level first in a volume",
        "argmin",
        |v, _| numbers!(v, image => place(image.argmin(), image.depth() > 1)),
    ),
    row(
        "argmax",
        &[],
        "Row, column and channel of the largest pixel, the first of several; its level first in a volume",
        "argmax",
        |v, _| numbers!(v, image => place(image.argmax(), image.depth() > 1)),
    ),
    row("count", &[], "The number of true pixels of a mask", "otsu count", |v, _| match &v.pixels {
        Response::Mask(mask) => Ok(one(mask.count())),
        Response::Picture(_) => Err(Fault::of_numbers()),
    }),
    row(
        "histogram",
        &[
            required("bins", Kind::Count, ""),
            optional("lo", Kind::Limit, "auto", "the smallest number of the type; of floats 0"),
            optional("hi", Kind::Limit, "auto", "the largest number of the type; of floats white"),
        ],
        "The number of pixels in each of equal bins over `lo..=hi`, a column each",
        "histogram 4",
        |v, a| {
            let low = if v.dtype().is_float() { 0.0 } else { smallest(v.dtype()) };
            let (bins, lo) = (a.count("bins"), a.limit("lo").unwrap_or(low));
            let hi = a.limit("hi").unwrap_or(v.white());
            let counts = numbers!(v, image => image.histogram(bins, lo, hi))?;
            counts.check()?;
            Ok(answer(counts, |counts| vec![counts.iter().map(u64::to_string).collect::<Vec<_>>().join("\t")]))
        },
    ),
    row(
        "hough_line",
        &[optional("angles", Kind::Count, "180", "of half a turn, from -90 degrees on")],
        "The number of true pixels on each straight line: a line each distance, a column each angle",
        "luminance otsu hough_line 4",
        |v, a| {
            let Response::Mask(mask) = &v.pixels else { return Err(Fault::of_numbers()) };
            let counts = hough_line(mask, &normals(a.count("angles"))?);
            counts.check()?;
            Ok(answer(counts, |counts| {
                let distances = 0..counts.first().map_or(0, Vec::len);
                let tabs = |d: usize| counts.iter().map(|of| of[d].to_string()).collect::<Vec<_>>().join("\t");
                distances.map(tabs).collect()
            }))
        },
    ),
    row(
        "stats",
        &[],
        "Of each channel: number, min, max, mean, deviation, sum; a line each",
        "stats",
        |v, _| numbers!(counted(v), image => stats(image)),
    ),
];

/// A mask as numbers, 0 and 1.
fn counted(v: &Current) -> Current {
    match &v.pixels {
        Response::Mask(mask) => v.becomes(mask.convert::<u8>()),
        Response::Picture(_) => v.clone(),
    }
}

/// Cosines and sines of angles evenly spaced over half a turn.
fn normals(angles: usize) -> Result<Vec<[f64; 2]>, Fault> {
    const MOST: usize = 1 << 16;
    if !(1..=MOST).contains(&angles) {
        return Err(Fault::Said(format!("{angles} angles; the range is 1 to {MOST}")));
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

fn place(value: Value<Option<[usize; 4]>>, levels: bool) -> Answer {
    fn told(place: Option<&[usize]>) -> Vec<String> {
        let tabs = |at: &[usize]| at.iter().map(usize::to_string).collect::<Vec<_>>().join("\t");
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
