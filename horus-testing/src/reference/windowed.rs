//! Means over rectangles and ranks under footprints.

use std::cmp::Ordering;

use super::{Image, Pixel};
use horus_base::dtype::{DType, Float};
use horus_plan::ops::neighbourhood::Reach;
use horus_plan::ops::windowed::{BoxMean, Ranked, Sliding, Windowed, line_sum, summed};

/// A windowed operation, as an image of type `dtype`.
pub fn windowed(image: &Image, how: &Sliding, dtype: DType) -> Image {
    horus_base::dispatch!(image.dtype(), S => horus_base::dispatch!(dtype, T => {
        Image::from_fn(image.shape, |c, y, x| {
            let read = |dy, dx| image.read::<S>(c, y.cast_signed() + dy, x.cast_signed() + dx, how.border);
            windowed_at::<S, T>(how, read)
        })
    }))
}

/// The result, of type `T`, of the window whose pixels `read` yields.
pub(super) fn windowed_at<S: Pixel, T: Pixel>(how: &Sliding, read: impl Fn(isize, isize) -> S) -> T {
    match &how.how {
        Windowed::Mean(mean) => T::from_f64(mean_at(mean, read)),
        Windowed::Rank(rank) => T::from_scalar(ranked(rank, read).scalar()),
    }
}

/// The mean of the values of `read` in the rectangle, not yet rounded to the result type.
fn mean_at<S: Pixel>(mean: &BoxMean, read: impl Fn(isize, isize) -> S) -> f64 {
    match summed(S::DTYPE) {
        DType::F32 => mean_of::<S, f32>(mean, read).into(),
        _ => mean_of::<S, f64>(mean, read),
    }
}

fn mean_of<S: Pixel, A: Float>(mean: &BoxMean, read: impl Fn(isize, isize) -> S) -> A {
    let Reach { up, left, .. } = mean.reach;
    let at = |i: usize, before: usize| i.cast_signed() - before.cast_signed();
    let row = |y: usize| line_sum(mean.width(), &|x| A::from_f64(read(at(y, up), at(x, left)).to_f64()));
    let sum = line_sum(mean.height(), &row);
    if mean.count == 0 { sum } else { sum.div(A::from_f64(mean.count as f64)) }
}

/// The pixel of the given rank among the values of `read` under the footprint.
fn ranked<S: Pixel>(rank: &Ranked, read: impl Fn(isize, isize) -> S) -> S {
    let pixels = rank.spans.iter().flat_map(|s| (s.from..s.to).map(|x| read(s.y as isize, x as isize)));
    let mut pixels: Vec<S> = pixels.collect();
    pixels.sort_by(|a, b| match (a.is_nan(), b.is_nan()) {
        (true, other) => {
            if other {
                Ordering::Equal
            } else {
                Ordering::Greater
            }
        }
        (false, true) => Ordering::Less,
        _ => a.to_f64().total_cmp(&b.to_f64()),
    });
    pixels[rank.place]
}
