//! Statistics over an axis, of tiles and of windows, as pictures.

use horus::prelude::*;
use horus::types::{Over, Tiles};
use horus_core::ops::{reduce, running, tiles};

use super::CommandOperation;
use crate::batch::Response;
use crate::command::arguments::Arguments;
use crate::command::value::{Current, numbers};

const AXES: [(&str, Axis); 3] = [("rows", Axis::Rows), ("columns", Axis::Columns), ("channels", Axis::Channels)];

fn axis(a: &Arguments<'_>) -> Axis {
    AXES[a.choice("axis")].1
}

const STATISTICS: [&str; 5] = ["sum", "mean", "variance", "min", "max"];

const REDUCTIONS: [&str; 4] = ["sum", "mean", "min", "max"];

pub(super) const ROWS: &[CommandOperation] = &[
    CommandOperation::picture(&reduce::OVER, |v, a| numbers!(v, image => over(v, a, &image.over(axis(a))))),
    CommandOperation::picture(&running::CUMSUM, |v, a| numbers!(v, image => v.becomes(image.over(axis(a)).cumsum()))),
    CommandOperation::picture(
        &tiles::TILES,
        |v, a| numbers!(v, image => of_each(v, a, &image.tiles(a.count("height"), a.count("width")))),
    ),
    CommandOperation::picture(&tiles::WINDOWS, |v, a| {
        let (size, step) = ((a.count("height"), a.count("width")), (a.count("down"), a.count("across")));
        numbers!(v, image => of_each(v, a, &image.windows(size, step)))
    }),
];

fn over<T: Pixel>(v: &Current, a: &Arguments<'_>, pixels: &Over<T>) -> Current
where
    Response: From<Image<T>> + From<Image<T::Linear>> + From<Image<f64>>,
{
    match REDUCTIONS[a.choice("how")] {
        "sum" => v.becomes(pixels.sum()),
        "mean" => v.becomes(pixels.mean()),
        "min" => v.becomes(pixels.min()),
        _ => v.becomes(pixels.max()),
    }
}

fn of_each<T: Pixel>(v: &Current, a: &Arguments<'_>, parts: &Tiles<T>) -> Current
where
    Response: From<Image<T>> + From<Image<f64>>,
{
    match STATISTICS[a.choice("how")] {
        "sum" => v.becomes(parts.sum()),
        "mean" => v.becomes(parts.mean()),
        "variance" => v.becomes(parts.variance()),
        "min" => v.becomes(parts.min()),
        _ => v.becomes(parts.max()),
    }
}
