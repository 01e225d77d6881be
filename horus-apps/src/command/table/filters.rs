//! Neighbourhood filters. Linear ones yield floats, on the scale of the picture.

use horus::prelude::*;

use super::{Family, Operation, Record};
use crate::command::arguments::Arguments;
use crate::command::chain::Fault;
use crate::command::parameter::{Kind, Length, Parameter, names, optional, required};
use crate::command::value::{Current, numbers};

const BORDER: Parameter = optional("border", Kind::Border, "reflect101", "border mode");
const THETA: Parameter = required("theta", Kind::Number, "degrees, anti-clockwise");
const SIGMA: Parameter = required("sigma", Kind::Length, "in pixels, or a length: 2.5um");
const SIGMA_U: Parameter = required("sigma_u", Kind::Number, "along the line, in pixels");
const SIGMA_V: Parameter = required("sigma_v", Kind::Number, "across the line, in pixels");
const ORDER_U: Parameter = optional("order_u", Kind::Count, "0", "of the derivative: 0, 1 or 2");
const ORDER_V: Parameter = optional("order_v", Kind::Count, "0", "of the derivative: 0, 1 or 2");

/// A row whose function takes the picture and the arguments.
const fn row(
    name: &'static str,
    aliases: &'static [&'static str],
    parameters: &'static [Parameter],
    help: &'static str,
    example: &'static str,
    record: fn(&Current, &Arguments<'_>) -> Result<Current, Fault>,
) -> Operation {
    let record = Record::Picture(record);
    Operation { name, aliases, family: Family::Filters, parameters, help, example, record }
}

pub(super) const ROWS: &[Operation] = &[
    row("gauss", &["blur"], &[SIGMA, BORDER], "Gaussian smoothing of radius `ceil(3 sigma)`", "gauss 2", |v, a| {
        separable(v, a, gauss(v, a, 0, 0)?)
    }),
    row(
        "gauss_derivative",
        &[],
        &[SIGMA, required("order_y", Kind::Count, "0, 1 or 2"), required("order_x", Kind::Count, "0, 1 or 2"), BORDER],
        "Derivative along y and x of the picture smoothed by `gauss`",
        "gauss_derivative 1 0 1",
        |v, a| separable(v, a, gauss(v, a, a.order("order_y"), a.order("order_x"))?),
    ),
    row(
        "gauss_xy",
        &[],
        &[SIGMA_U, SIGMA_V, ORDER_U, ORDER_V, BORDER],
        "Anisotropic Gaussian, u along x and v along y",
        "gauss_xy 3 1 0 2",
        |v, a| {
            let (u, v_) = (a.number("sigma_u"), a.number("sigma_v"));
            separable(v, a, filters::gauss_xy(u, v_, a.order("order_u"), a.order("order_v")))
        },
    ),
    row(
        "gauss_2d",
        &[],
        &[THETA, SIGMA_U, SIGMA_V, ORDER_U, ORDER_V],
        "Anisotropic Gaussian, rotated, as one kernel; the border mode is reflect101",
        "gauss_2d 30 3 1 0 2",
        |v, a| {
            let (t, su, sv) = (a.number("theta"), a.number("sigma_u"), a.number("sigma_v"));
            numbers!(v, image => v.becomes(image.gauss_2d(t, su, sv, a.order("order_u"), a.order("order_v"))))
        },
    ),
    row(
        "gauss_uv",
        &[],
        &[THETA, SIGMA_U, SIGMA_V, ORDER_U, ORDER_V],
        "Anisotropic Gaussian, rotated, first along u and then along v; the border mode is reflect101",
        "gauss_uv 30 3 1 0 2",
        |v, a| {
            let (t, su, sv) = (a.number("theta"), a.number("sigma_u"), a.number("sigma_v"));
            numbers!(v, image => v.becomes(image.gauss_uv(t, su, sv, a.order("order_u"), a.order("order_v"))))
        },
    ),
    row(
        "box_filter",
        &["box"],
        &[required("size", Kind::Count, "side of the square"), BORDER],
        "Mean over `size` x `size` pixels",
        "box_filter 5",
        |v, a| separable(v, a, filters::box_filter(a.count("size"))),
    ),
    row(
        "box_mean",
        &["mean_filter"],
        &[
            required("height", Kind::Count, "of the rectangle"),
            required("width", Kind::Count, "of the rectangle"),
            BORDER,
        ],
        "Mean over a rectangle of any size, which hardly costs more than a small one",
        "box_mean 101 51",
        |v, a| {
            let (height, width) = (a.count("height"), a.count("width"));
            numbers!(v, image => v.becomes(image.with_border(a.border("border")).box_mean((height, width))))
        },
    ),
    row("sobel", &[], &[BORDER], "Magnitude of the gradient by Sobel: 8 times the slope", "gauss 2 sobel", |v, a| {
        let border = a.border("border");
        let ((row_x, column_x), (row_y, column_y)) = (filters::sobel_x(), filters::sobel_y());
        numbers!(v, image => {
            let x = image.with_border(border).separable(&row_x, &column_x);
            v.becomes(x.hypot(image.with_border(border).separable(&row_y, &column_y)))
        })
    }),
    row("sobel_x", &[], &[BORDER], "8 times the slope along x by Sobel", "sobel_x", |v, a| {
        separable(v, a, filters::sobel_x())
    }),
    row("sobel_y", &[], &[BORDER], "8 times the slope along y by Sobel", "sobel_y", |v, a| {
        separable(v, a, filters::sobel_y())
    }),
    row(
        "laplace",
        &[],
        &[BORDER],
        "The four neighbours minus four times the pixel",
        "laplace",
        |v, a| numbers!(v, image => v.becomes(image.with_border(a.border("border")).correlate(&filters::laplace()))),
    ),
    row(
        "unsharp",
        &["sharpen"],
        &[
            optional("sigma", Kind::Number, "2", "of the Gaussian, in pixels"),
            optional("amount", Kind::Number, "1", "weight of the detail that is added"),
        ],
        "Unsharp masking, limited to black and white; yields `f32` in which white is 1",
        "unsharp 2 1.5",
        |v, a| {
            let image = v.to_unit();
            let sigma = a.number("sigma");
            let detail = &image - image.gauss((sigma, sigma)); // in each level of a volume
            Ok(Current::unit((image + detail * a.number("amount") as f32).clamp(0.0, 1.0)))
        },
    ),
    row(
        "median",
        &[],
        &[optional("size", Kind::Count, "3", "side of the square"), BORDER],
        "The median of a square of pixels",
        "median 5",
        |v, a| {
            let side = a.count("size");
            numbers!(v, image => v.becomes(image.with_border(a.border("border")).median((side, side))))
        },
    ),
    row(
        "correlate",
        &[],
        &[required("taps", Kind::Taps, "anchored at the centre"), BORDER],
        "Correlation with a filter",
        "correlate 1,0,-1/2,0,-2/1,0,-1",
        |v, a| numbers!(v, image => v.becomes(image.with_border(a.border("border")).correlate(&a.taps("taps")))),
    ),
    row(
        "convolve",
        &[],
        &[required("taps", Kind::Taps, "anchored at the centre"), BORDER],
        "Convolution: correlation with the filter rotated by 180 degrees",
        "convolve 1,2,3",
        |v, a| numbers!(v, image => v.becomes(image.with_border(a.border("border")).convolve(&a.taps("taps")))),
    ),
    row(
        "generalized",
        &[],
        &[
            required("weights", Kind::Taps, "anchored at the centre"),
            optional("combine", Kind::Choice(combinations), "mul", "each pixel with its weight"),
            optional("reduce", Kind::Choice(reductions), "sum", "of the combined values"),
            BORDER,
        ],
        "Generalized convolution, in the type of the picture",
        "generalized 1,0,1 add min",
        |v, a| {
            let operation = Generalized {
                window: a.taps("weights"),
                combine: Combine::ALL[a.choice("combine")],
                reduce: Reduce::ALL[a.choice("reduce")],
            };
            numbers!(v, image => v.becomes(image.with_border(a.border("border")).generalized(&operation)))
        },
    ),
];

fn combinations() -> Vec<String> {
    names(&Combine::ALL)
}

fn reductions() -> Vec<String> {
    names(&Reduce::ALL)
}

/// The taps of a Gaussian along rows and columns, of a sigma in pixels or of a length in the picture, whose pixels may differ in
/// height and width.
fn gauss(v: &Current, a: &Arguments<'_>, order_y: u32, order_x: u32) -> Result<(Filter, Filter), Fault> {
    let (y, x) = match a.length("sigma") {
        Length::Pixels(sigma) => (sigma, sigma),
        Length::Micrometres(sigma) => {
            let size = v.pixels.pixel_size()?.ok_or_else(|| {
                Fault::Said(format!("sigma is {sigma} micrometres, and the size of the picture's pixels is not known"))
            })?;
            (sigma / size.rows, sigma / size.columns)
        }
    };
    Ok((filters::gauss(x, order_y, order_x).0, filters::gauss(y, order_y, order_x).1))
}

fn separable(v: &Current, a: &Arguments<'_>, (row, column): (Filter, Filter)) -> Result<Current, Fault> {
    numbers!(v, image => v.becomes(image.with_border(a.border("border")).separable(&row, &column)))
}
