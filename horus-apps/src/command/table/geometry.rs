//! Geometry: sizes and positions, heights and rows first. Alpha moves with its pixels.

use horus::core::ops::geometric::{exact_sin_cos, rotation};
use horus::prelude::*;
use horus::types::{Axes, Resizing};

use super::{Family, Operation, Record};
use crate::command::arguments::Arguments;
use crate::command::chain::Fault;
use crate::command::parameter::{Extent, Kind, Parameter, interpolations, optional, required};
use crate::command::value::{Current, numbers, pixels};

const HEIGHT: Parameter = required("height", Kind::Count, "");
const WIDTH: Parameter = required("width", Kind::Count, "");
const NEW_HEIGHT: Parameter = required("height", Kind::Extent, "");
const NEW_WIDTH: Parameter = optional("width", Kind::Extent, "auto", "");
const TOP: Parameter = required("top", Kind::Count, "rows");
const LEFT: Parameter = required("left", Kind::Count, "columns");
const INTERPOLATION: Parameter = optional("interpolation", Kind::Choice(interpolations), "bilinear", "");
const RESIZING: Parameter = optional("how", Kind::Choice(resizings), "bilinear", "");
const OUTSIDE: Parameter = optional("border", Kind::Border, "0", "border mode");

/// A row whose function takes the picture and the arguments.
const fn row(
    name: &'static str,
    parameters: &'static [Parameter],
    help: &'static str,
    example: &'static str,
    record: fn(&Current, &Arguments<'_>) -> Result<Current, Fault>,
) -> Operation {
    let record = Record::Picture(record);
    Operation { name, aliases: &[], family: Family::Geometry, parameters, help, example, record }
}

pub(super) const ROWS: &[Operation] = &[
    row(
        "rotate",
        &[
            required("degrees", Kind::Number, "anti-clockwise"),
            INTERPOLATION,
            OUTSIDE,
            optional(
                "canvas",
                Kind::Choice(canvases),
                "auto",
                "its size; grow holds all corners, auto those of quarter turns",
            ),
        ],
        "Rotation about the centre; quarter turns move whole pixels, and turn the size with them",
        "rotate 30 grow",
        |v, a| {
            let (degrees, how, canvas) = (a.number("degrees"), interpolation(a), CANVASES[a.choice("canvas")]);
            if let Some(turns) = quarters(degrees).filter(|_| canvas != "keep") {
                return pixels!(v, image => v.becomes(match turns {
                    0 => image.clone(),
                    1 => image.transpose().flip(Axis::Rows),
                    2 => image.flip([Axis::Rows, Axis::Columns]),
                    _ => image.transpose().flip(Axis::Columns),
                }));
            }
            if canvas == "grow" && degrees.is_finite() {
                let (matrix, size) = grown(degrees, v.shape());
                return numbers!(v, image => v.becomes(image.with_border(a.border("border")).affine(matrix, size, how)));
            }
            numbers!(v, image => v.becomes(image.with_border(a.border("border")).rotate(degrees, how)))
        },
    ),
    row(
        "translate",
        &[required("dy", Kind::Number, "pixels down"), required("dx", Kind::Number, "pixels to the right")],
        "Translation, bilinear where the offsets are not whole; outside is 0",
        "translate -1.5 4",
        |v, a| numbers!(v, image => v.becomes(image.translate(a.number("dy"), a.number("dx")))),
    ),
    row(
        "affine",
        &[
            required("matrix", Kind::Numbers, "xx,xy,x0,yx,yy,y0: x and y of the output to x and y of the input"),
            INTERPOLATION,
            OUTSIDE,
        ],
        "A general affine map; the size is kept",
        "affine 1,0.2,0,0,1,0",
        |v, a| {
            let [xx, xy, x0, yx, yy, y0] = a.numbers("matrix")[..] else {
                return Err(Fault::Said("MATRIX has 6 numbers".into()));
            };
            let (matrix, size) = ([[xx, xy, x0], [yx, yy, y0]], (v.shape().height, v.shape().width));
            numbers!(v, image => v.becomes(image.with_border(a.border("border")).affine(matrix, size, interpolation(a))))
        },
    ),
    row(
        "flip",
        &[required("how", Kind::Choice(flips), "horizontal swaps left and right")],
        "Mirrored",
        "flip horizontal",
        |v, a| pixels!(v, image => v.becomes(image.flip(FLIPS[a.choice("how")].1()))),
    ),
    row(
        "transpose",
        &[],
        "Transposition: rows and columns are swapped",
        "transpose",
        |v, _| pixels!(v, image => v.becomes(image.transpose())),
    ),
    row(
        "crop",
        &[TOP, LEFT, HEIGHT, WIDTH],
        "The rectangle from row `top` and column `left` on",
        "crop 2 3 8 9",
        |v, a| {
            let (top, left, height, width) = (a.count("top"), a.count("left"), a.count("height"), a.count("width"));
            pixels!(v, image => v.becomes(image.crop(top, left, height, width)))
        },
    ),
    row(
        "step",
        &[required("rows", Kind::Count, ""), required("columns", Kind::Count, "")],
        "Every so many rows and columns, the first ones included",
        "step 2 3",
        |v, a| {
            let (rows, columns) = (a.count("rows"), a.count("columns"));
            pixels!(v, image => v.becomes(image.step((rows, columns))))
        },
    ),
    row(
        "pad",
        &[
            TOP,
            required("bottom", Kind::Count, "rows"),
            LEFT,
            required("right", Kind::Count, "columns"),
            optional("border", Kind::Border, "reflect101", "border mode"),
        ],
        "Adds rows and columns on each side",
        "pad 1 2 3 4 wrap",
        |v, a| {
            let [top, bottom, left, right] = ["top", "bottom", "left", "right"].map(|name| a.count(name));
            pixels!(v, image => v.becomes(image.with_border(a.border("border")).pad(top, bottom, left, right)))
        },
    ),
    row(
        "resize",
        &[NEW_HEIGHT, NEW_WIDTH, RESIZING],
        "Resizing: the first three sample, so that shrinking may alias; the others average all pixels",
        "resize 50% lanczos",
        |v, a| {
            let (height, width) = resized(v, a)?;
            numbers!(v, image => v.becomes(image.resize(height, width, resizing(a))))
        },
    ),
    row(
        "scale",
        &[
            required("factor", Kind::Number, "of height and width"),
            optional("how", Kind::Choice(resizings), "triangle", ""),
        ],
        "As `resize`, by a factor; sizes are rounded and at least 1",
        "scale 0.5",
        |v, a| {
            let factor = a.number("factor");
            if !(factor > 0.0 && factor.is_finite()) {
                return Err(Fault::Said(format!("the factor is {factor}; it must be positive and finite")));
            }
            let scaled = |n: usize| ((n as f64 * factor).round() as usize).max(1);
            let (height, width) = (scaled(v.shape().height), scaled(v.shape().width));
            numbers!(v, image => v.becomes(image.resize(height, width, resizing(a))))
        },
    ),
    row(
        "pyramid_down",
        &[],
        "Half the height and width, smoothed by 1 4 6 4 1; yields floats",
        "pyramid_down",
        |v, _| numbers!(v, image => v.becomes(image.pyramid_down())),
    ),
    row("pyramid_up", &[], "Twice the height and width, smoothed by 1 4 6 4 1; yields floats", "pyramid_up", |v, _| {
        let (height, width) = (v.shape().height.saturating_mul(2), v.shape().width.saturating_mul(2));
        numbers!(v, image => v.becomes(image.pyramid_up(height, width)))
    }),
];

/// The name of a mirror image and the axes that it turns round.
type Flip = (&'static str, fn() -> Axes);

const FLIPS: [Flip; 3] = [
    ("horizontal", || Axis::Columns.into()),
    ("vertical", || Axis::Rows.into()),
    ("both", || [Axis::Rows, Axis::Columns].into()),
];

fn flips() -> Vec<String> {
    FLIPS.map(|(name, _)| name.to_owned()).to_vec()
}

const CANVASES: [&str; 3] = ["auto", "keep", "grow"];

/// The number of quarter turns anti-clockwise, from 0 to 3, that an angle is.
fn quarters(degrees: f64) -> Option<u8> {
    let turns = degrees.rem_euclid(360.0) / 90.0;
    (turns.fract() == 0.0 && turns < 4.0).then_some(turns as u8)
}

fn canvases() -> Vec<String> {
    CANVASES.map(str::to_owned).to_vec()
}

/// The map, and the height and width, of a rotation that crops nothing.
fn grown(degrees: f64, shape: Shape) -> ([[f64; 3]; 2], (usize, usize)) {
    let (h, w) = (shape.height as f64, shape.width as f64);
    let (sin, cos) = exact_sin_cos(degrees);
    // Corners beyond a pixel by rounding errors only take no further pixel.
    let side = |length: f64| (length - 1e-6).ceil().max(1.0);
    let (height, width) = (side(w * sin.abs() + h * cos.abs()), side(w * cos.abs() + h * sin.abs()));
    let [[xx, xy, x0], [yx, yy, y0]] = rotation(degrees, shape);
    // Centre to centre.
    let (dx, dy) = ((w - width) / 2.0, (h - height) / 2.0);
    ([[xx, xy, x0 + xx * dx + xy * dy], [yx, yy, y0 + yx * dx + yy * dy]], (height as usize, width as usize))
}

/// The requested height and width.
fn resized(v: &Current, a: &Arguments<'_>) -> Result<(usize, usize), Fault> {
    let (height, width) = (v.shape().height, v.shape().width);
    let scaled = |n: usize, factor: f64| ((n as f64 * factor).round() as usize).max(1);
    // By the same factor as the other extent.
    let along = |other: Extent, n: usize, m: usize| match other {
        Extent::Pixels(pixels) => Ok(scaled(n, pixels as f64 / m as f64)),
        Extent::Percent(percent) => Ok(scaled(n, percent / 100.0)),
        Extent::Auto => Err(Fault::Said("HEIGHT and WIDTH are both auto; one must be given".into())),
    };
    let of = |extent: Extent, other: Extent, n: usize, m: usize| match extent {
        Extent::Pixels(pixels) => Ok(pixels),
        Extent::Percent(percent) => Ok(scaled(n, percent / 100.0)),
        Extent::Auto => along(other, n, m),
    };
    let (h, w) = (a.extent("height"), a.extent("width"));
    Ok((of(h, w, height, width)?, of(w, h, width, height)?))
}

/// The ways of resizing, in the order of their names.
fn ways() -> impl Iterator<Item = (&'static str, Resizing)> {
    let sampled = Interpolation::ALL.map(|how| (how.name(), how.into()));
    sampled.into_iter().chain(Resampling::ALL.map(|how| (how.name(), how.into())))
}

fn resizings() -> Vec<String> {
    ways().map(|(name, _)| name.to_owned()).collect()
}

fn resizing(a: &Arguments<'_>) -> Resizing {
    let at = a.choice("how");
    ways().nth(at).map_or(Resizing::Sampled(Interpolation::Bilinear), |(_, how)| how)
}

fn interpolation(a: &Arguments<'_>) -> Interpolation {
    Interpolation::ALL[a.choice("interpolation")]
}
