//! Geometry: sizes and positions, heights and rows first. Alpha moves with its pixels.

use horus::prelude::*;
use horus::types::{Axes, Resizing};
use horus_core::ops::geometric::{exact_sin_cos, rotation};
use horus_core::ops::{composed, geometric, resize, transpose};

use super::CommandOperation;
use crate::command::arguments::Arguments;
use crate::command::chain::ChainError;
use crate::command::parameter::ResultExtent;
use crate::command::value::{Current, numbers, pixels};

pub(super) const ROWS: &[CommandOperation] = &[
    CommandOperation::picture(&geometric::ROTATE, |v, a| {
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
    }),
    CommandOperation::picture(
        &geometric::TRANSLATE,
        |v, a| numbers!(v, image => v.becomes(image.translate(a.number("dy"), a.number("dx")))),
    ),
    CommandOperation::picture(&geometric::AFFINE, |v, a| {
        let [xx, xy, x0, yx, yy, y0] = a.numbers("matrix")[..] else {
            return Err(ChainError::Message("MATRIX has 6 numbers".into()));
        };
        let (matrix, size) = ([[xx, xy, x0], [yx, yy, y0]], (v.shape().height, v.shape().width));
        numbers!(v, image => v.becomes(image.with_border(a.border("border")).affine(matrix, size, interpolation(a))))
    }),
    CommandOperation::picture(
        &geometric::FLIP,
        |v, a| pixels!(v, image => v.becomes(image.flip(FLIPS[a.choice("how")].1()))),
    ),
    CommandOperation::picture(&transpose::TRANSPOSE, |v, _| pixels!(v, image => v.becomes(image.transpose()))),
    CommandOperation::picture(&geometric::CROP, |v, a| {
        let (top, left, height, width) = (a.count("top"), a.count("left"), a.count("height"), a.count("width"));
        pixels!(v, image => v.becomes(image.crop(top, left, height, width)))
    }),
    CommandOperation::picture(&geometric::STEP, |v, a| {
        let (rows, columns) = (a.count("rows"), a.count("columns"));
        pixels!(v, image => v.becomes(image.step((rows, columns))))
    }),
    CommandOperation::picture(&geometric::PAD, |v, a| {
        let [top, bottom, left, right] = ["top", "bottom", "left", "right"].map(|name| a.count(name));
        pixels!(v, image => v.becomes(image.with_border(a.border("border")).pad(top, bottom, left, right)))
    }),
    CommandOperation::picture(&resize::RESIZE, |v, a| {
        let (height, width) = resized(v, a)?;
        numbers!(v, image => v.becomes(image.resize(height, width, resizing(a))))
    }),
    CommandOperation::picture(&resize::SCALE, |v, a| {
        let factor = a.number("factor");
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(ChainError::Message(format!("the factor is {factor}; it must be positive and finite")));
        }
        let scaled = |n: usize| ((n as f64 * factor).round() as usize).max(1);
        let (height, width) = (scaled(v.shape().height), scaled(v.shape().width));
        numbers!(v, image => v.becomes(image.resize(height, width, resizing(a))))
    }),
    CommandOperation::picture(&composed::PYRAMID_DOWN, |v, _| numbers!(v, image => v.becomes(image.pyramid_down()))),
    CommandOperation::picture(&composed::PYRAMID_UP, |v, _| {
        let (height, width) = (v.shape().height.saturating_mul(2), v.shape().width.saturating_mul(2));
        numbers!(v, image => v.becomes(image.pyramid_up(height, width)))
    }),
];

/// The name of a mirror image, and the axes that it reverses.
type NamedFlip = (&'static str, fn() -> Axes);

const FLIPS: [NamedFlip; 3] = [
    ("horizontal", || Axis::Columns.into()),
    ("vertical", || Axis::Rows.into()),
    ("both", || [Axis::Rows, Axis::Columns].into()),
];

const CANVASES: [&str; 3] = ["auto", "keep", "grow"];

/// The number of anti-clockwise quarter turns, 0 to 3, that equals the angle.
fn quarters(degrees: f64) -> Option<u8> {
    let turns = degrees.rem_euclid(360.0) / 90.0;
    (turns.fract() == 0.0 && turns < 4.0).then_some(turns as u8)
}

/// The map, height and width of a rotation that crops nothing.
fn grown(degrees: f64, shape: Shape) -> ([[f64; 3]; 2], (usize, usize)) {
    let (h, w) = (shape.height as f64, shape.width as f64);
    let (sin, cos) = exact_sin_cos(degrees);
    // Corners that exceed a pixel only by rounding errors take no further pixel.
    let side = |length: f64| (length - 1e-6).ceil().max(1.0);
    let (height, width) = (side(w * sin.abs() + h * cos.abs()), side(w * cos.abs() + h * sin.abs()));
    let [[xx, xy, x0], [yx, yy, y0]] = rotation(degrees, shape);
    // Centre to centre.
    let (dx, dy) = ((w - width) / 2.0, (h - height) / 2.0);
    ([[xx, xy, x0 + xx * dx + xy * dy], [yx, yy, y0 + yx * dx + yy * dy]], (height as usize, width as usize))
}

/// The requested height and width.
fn resized(v: &Current, a: &Arguments<'_>) -> Result<(usize, usize), ChainError> {
    let (height, width) = (v.shape().height, v.shape().width);
    let scaled = |n: usize, factor: f64| ((n as f64 * factor).round() as usize).max(1);
    // Scales by the factor of the other extent.
    let along = |other: ResultExtent, n: usize, m: usize| match other {
        ResultExtent::Pixels(pixels) => Ok(scaled(n, pixels as f64 / m as f64)),
        ResultExtent::Percent(percent) => Ok(scaled(n, percent / 100.0)),
        ResultExtent::Auto => Err(ChainError::Message("HEIGHT and WIDTH are both auto; one must be given".into())),
    };
    let of = |extent: ResultExtent, other: ResultExtent, n: usize, m: usize| match extent {
        ResultExtent::Pixels(pixels) => Ok(pixels),
        ResultExtent::Percent(percent) => Ok(scaled(n, percent / 100.0)),
        ResultExtent::Auto => along(other, n, m),
    };
    let (h, w) = (a.extent("height"), a.extent("width"));
    Ok((of(h, w, height, width)?, of(w, h, width, height)?))
}

/// The ways of resizing, in the order of their names.
fn ways() -> impl Iterator<Item = (&'static str, Resizing)> {
    let sampled = Interpolation::ALL.map(|how| (how.name(), how.into()));
    sampled.into_iter().chain(Resampling::ALL.map(|how| (how.name(), how.into())))
}

fn resizing(a: &Arguments<'_>) -> Resizing {
    let at = a.choice("how");
    ways().nth(at).map_or(Resizing::Sampled(Interpolation::Bilinear), |(_, how)| how)
}

fn interpolation(a: &Arguments<'_>) -> Interpolation {
    Interpolation::ALL[a.choice("interpolation")]
}
