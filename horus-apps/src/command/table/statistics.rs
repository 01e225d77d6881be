//! Statistics over an axis, of tiles and of windows: pictures of their own.

use horus::prelude::*;
use horus::types::{Over, Tiles};

use super::{Family, Operation, Record};
use crate::batch::Response;
use crate::command::arguments::Arguments;
use crate::command::chain::Fault;
use crate::command::parameter::{Kind, Parameter, optional, required};
use crate::command::value::{Current, numbers};

const AXIS: Parameter = required("axis", Kind::Choice(axes), "");
const HEIGHT: Parameter = required("height", Kind::Count, "");
const WIDTH: Parameter = required("width", Kind::Count, "");
const HOW: Parameter = optional("how", Kind::Choice(statistics), "mean", "what is computed of each");

const AXES: [(&str, Axis); 3] = [("rows", Axis::Rows), ("columns", Axis::Columns), ("channels", Axis::Channels)];

fn axes() -> Vec<String> {
    AXES.map(|(name, _)| name.to_owned()).to_vec()
}

fn axis(a: &Arguments<'_>) -> Axis {
    AXES[a.choice("axis")].1
}

const STATISTICS: [&str; 5] = ["sum", "mean", "variance", "min", "max"];

fn statistics() -> Vec<String> {
    STATISTICS.map(str::to_owned).to_vec()
}

const REDUCTIONS: [&str; 4] = ["sum", "mean", "min", "max"];

fn reductions() -> Vec<String> {
    REDUCTIONS.map(str::to_owned).to_vec()
}

/// A row whose function takes the picture and the arguments.
const fn row(
    name: &'static str,
    parameters: &'static [Parameter],
    help: &'static str,
    example: &'static str,
    record: fn(&Current, &Arguments<'_>) -> Result<Current, Fault>,
) -> Operation {
    let record = Record::Picture(record);
    Operation { name, aliases: &[], family: Family::Statistics, parameters, help, example, record }
}

pub(super) const ROWS: &[Operation] = &[
    row(
        "over",
        &[AXIS, optional("how", Kind::Choice(reductions), "mean", "what is computed along it")],
        "The sum, mean, smallest or largest pixel over an axis, whose extent becomes 1",
        "over channels mean",
        |v, a| numbers!(v, image => over(v, a, &image.over(axis(a)))),
    ),
    row(
        "cumsum",
        &[AXIS],
        "The running sums along an axis",
        "luminance cumsum rows cumsum columns",
        |v, a| numbers!(v, image => v.becomes(image.over(axis(a)).cumsum())),
    ),
    row(
        "tiles",
        &[HEIGHT, WIDTH, HOW],
        "A pixel for each tile: its sum, mean, variance, smallest or largest pixel",
        "tiles 8 8 max",
        |v, a| numbers!(v, image => of_each(v, a, &image.tiles(a.count("height"), a.count("width")))),
    ),
    row(
        "windows",
        &[HEIGHT, WIDTH, required("down", Kind::Count, "rows"), required("across", Kind::Count, "columns"), HOW],
        "A pixel for each window inside the picture, every so many rows and columns",
        "windows 7 7 4 4 variance",
        |v, a| {
            let (size, step) = ((a.count("height"), a.count("width")), (a.count("down"), a.count("across")));
            numbers!(v, image => of_each(v, a, &image.windows(size, step)))
        },
    ),
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
