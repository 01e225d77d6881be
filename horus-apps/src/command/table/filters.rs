//! Neighbourhood filters. Linear filters yield floats, on the scale of the picture.

use horus::prelude::*;
use horus_core::ops::describe::{Accepts, Description, OperationGroup, Pattern, description, optional};
use horus_core::ops::{composed, neighbourhood, windowed};

use super::CommandOperation;
use crate::command::arguments::Arguments;
use crate::command::chain::ChainError;
use crate::command::parameter::Length;
use crate::command::value::{Current, numbers};

const UNSHARP: Description = description(
    "unsharp",
    OperationGroup::Filters,
    Pattern::Composition,
    "Unsharp masking, limited to black and white; yields `f32` in which white is 1",
)
.only_command()
.also(&["sharpen"])
.takes(&[
    optional("sigma", Accepts::Number, "2", "of the Gaussian, in pixels"),
    optional("amount", Accepts::Number, "1", "weight of the detail that is added"),
])
.example("unsharp 2 1.5");

pub(super) const ROWS: &[CommandOperation] = &[
    CommandOperation::picture(&neighbourhood::GAUSS, |v, a| separable(v, a, gauss(v, a, 0, 0)?)),
    CommandOperation::picture(&neighbourhood::GAUSS_DERIVATIVE, |v, a| {
        separable(v, a, gauss(v, a, a.order("order_y"), a.order("order_x"))?)
    }),
    CommandOperation::picture(&neighbourhood::GAUSS_XY, |v, a| {
        let (u, v_) = (a.number("sigma_u"), a.number("sigma_v"));
        separable(v, a, filters::gauss_xy(u, v_, a.order("order_u"), a.order("order_v")))
    }),
    CommandOperation::picture(&neighbourhood::GAUSS_2D, |v, a| {
        let (t, su, sv) = (a.number("theta"), a.number("sigma_u"), a.number("sigma_v"));
        numbers!(v, image => v.becomes(image.gauss_2d(t, su, sv, a.order("order_u"), a.order("order_v"))))
    }),
    CommandOperation::picture(&neighbourhood::GAUSS_UV, |v, a| {
        let (t, su, sv) = (a.number("theta"), a.number("sigma_u"), a.number("sigma_v"));
        numbers!(v, image => v.becomes(image.gauss_uv(t, su, sv, a.order("order_u"), a.order("order_v"))))
    }),
    CommandOperation::picture(&neighbourhood::BOX_FILTER, |v, a| separable(v, a, filters::box_filter(a.count("size")))),
    CommandOperation::picture(&windowed::BOX_MEAN, |v, a| {
        let (height, width) = (a.count("height"), a.count("width"));
        numbers!(v, image => v.becomes(image.with_border(a.border("border")).box_mean((height, width))))
    }),
    CommandOperation::picture(&neighbourhood::SOBEL, |v, a| {
        let border = a.border("border");
        let ((row_x, column_x), (row_y, column_y)) = (filters::sobel_x(), filters::sobel_y());
        numbers!(v, image => {
            let x = image.with_border(border).separable(&row_x, &column_x);
            v.becomes(x.hypot(image.with_border(border).separable(&row_y, &column_y)))
        })
    }),
    CommandOperation::picture(&neighbourhood::SOBEL_X, |v, a| separable(v, a, filters::sobel_x())),
    CommandOperation::picture(&neighbourhood::SOBEL_Y, |v, a| separable(v, a, filters::sobel_y())),
    CommandOperation::picture(
        &neighbourhood::LAPLACE,
        |v, a| numbers!(v, image => v.becomes(image.with_border(a.border("border")).correlate(&filters::laplace()))),
    ),
    CommandOperation::picture(&UNSHARP, |v, a| {
        let image = v.to_unit();
        let sigma = a.number("sigma");
        let detail = &image - image.gauss((sigma, sigma)); // in each level of a volume
        Ok(Current::unit((image + detail * a.number("amount") as f32).clamp(0.0, 1.0)))
    }),
    CommandOperation::picture(&composed::BILATERAL, |v, a| {
        let (colour, space) = (a.number("sigma_colour") * v.white(), a.number("sigma_space"));
        let size = match a.count("size") {
            0 => 2 * (1.5 * space).round() as usize + 1,
            size => size,
        };
        numbers!(v, image => v.becomes(bilateral(&image.with_border(a.border("border")), size, colour, space)))
    }),
    CommandOperation::picture(&neighbourhood::MEDIAN, |v, a| {
        let side = a.count("size");
        numbers!(v, image => v.becomes(image.with_border(a.border("border")).median((side, side))))
    }),
    CommandOperation::picture(
        &neighbourhood::CORRELATE,
        |v, a| numbers!(v, image => v.becomes(image.with_border(a.border("border")).correlate(&a.taps("taps")))),
    ),
    CommandOperation::picture(
        &neighbourhood::CONVOLVE,
        |v, a| numbers!(v, image => v.becomes(image.with_border(a.border("border")).convolve(&a.taps("taps")))),
    ),
    CommandOperation::picture(&neighbourhood::GENERALIZED, |v, a| {
        let operation = Generalized {
            window: a.taps("weights"),
            combine: Combine::ALL[a.choice("combine")],
            reduce: Reduce::ALL[a.choice("reduce")],
        };
        numbers!(v, image => v.becomes(image.with_border(a.border("border")).generalized(&operation)))
    }),
];

/// The taps of a Gaussian along rows and columns. Sigma is in pixels, or a length in the picture, whose pixels may
/// differ in height and width.
fn gauss(v: &Current, a: &Arguments<'_>, order_y: u32, order_x: u32) -> Result<(Filter, Filter), ChainError> {
    let (y, x) = match a.length("sigma") {
        Length::Pixels(sigma) => (sigma, sigma),
        Length::Micrometres(sigma) => {
            let size = v.pixels.pixel_size()?.ok_or_else(|| {
                ChainError::Message(format!(
                    "sigma is {sigma} micrometres, and the size of the picture's pixels is not known"
                ))
            })?;
            (sigma / size.rows, sigma / size.columns)
        }
    };
    Ok((filters::gauss(x, order_y, order_x).0, filters::gauss(y, order_y, order_x).1))
}

fn separable(v: &Current, a: &Arguments<'_>, (row, column): (Filter, Filter)) -> Result<Current, ChainError> {
    numbers!(v, image => v.becomes(image.with_border(a.border("border")).separable(&row, &column)))
}
