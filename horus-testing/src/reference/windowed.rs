//! Means and variances over rectangles and ranks under footprints.

use std::cmp::Ordering;

use super::Image;
use horus_base::dtype::{DType, Float, Pixel};
use horus_plan::ops::neighbourhood::Reach;
use horus_plan::ops::windowed::{BoxMean, Ranked, Sliding, WindowMoments, Windowed, joined, line_sum, summed};

/// A windowed operation, as an image of type `dtype`.
pub fn windowed(image: &Image, how: &Sliding, dtype: DType) -> Image {
    horus_base::dispatch!(dtype, T => Image::from_fn(image.shape, |c, y, x| {
        let read = |dy, dx| image.read_number(c, y.cast_signed() + dy, x.cast_signed() + dx, how.border);
        T::from_f64(windowed_at(how, image.dtype(), &read))
    }))
}

/// The result of the window whose pixels, of type `dtype`, `read` yields, not yet rounded to the result type.
pub(super) fn windowed_at(how: &Sliding, dtype: DType, read: &dyn Fn(isize, isize) -> f64) -> f64 {
    match &how.how {
        Windowed::Mean(mean) => match summed(dtype) {
            DType::F32 => mean_of::<f32>(mean, read).into(),
            _ => mean_of::<f64>(mean, read),
        },
        Windowed::Variance(mean) => variance_of(mean, read),
        Windowed::Rank(rank) => ranked(rank, read),
    }
}

fn mean_of<A: Float>(mean: &BoxMean, read: &dyn Fn(isize, isize) -> f64) -> A {
    let Reach { up, left, .. } = mean.reach;
    let at = |i: usize, before: usize| i.cast_signed() - before.cast_signed();
    let row = |y: usize| line_sum(mean.width(), &|x| A::from_f64(read(at(y, up), at(x, left))));
    let sum = line_sum(mean.height(), &row);
    if mean.count == 0 { sum } else { sum.div(A::from_f64(mean.count as f64)) }
}

fn variance_of(mean: &BoxMean, read: &dyn Fn(isize, isize) -> f64) -> f64 {
    let Reach { up, left, .. } = mean.reach;
    let at = |i: usize, before: usize| i.cast_signed() - before.cast_signed();
    let join = |pixels: usize, of: &dyn Fn(usize) -> WindowMoments| {
        joined(pixels, &of, &WindowMoments::and).expect("some pixels")
    };
    let row = |y: usize| join(mean.width(), &|x| WindowMoments::of(read(at(y, up), at(x, left))));
    let apart = join(mean.height(), &row).apart;
    if mean.count == 0 { apart } else { apart / mean.count as f64 }
}

/// The pixel of the given rank among the values of `read` under the footprint.
fn ranked(rank: &Ranked, read: &dyn Fn(isize, isize) -> f64) -> f64 {
    let pixels = rank.spans.iter().flat_map(|s| (s.from..s.to).map(|x| read(s.y as isize, x as isize)));
    let mut pixels: Vec<f64> = pixels.collect();
    pixels.sort_by(|a, b| match (a.is_nan(), b.is_nan()) {
        (true, other) => {
            if other {
                Ordering::Equal
            } else {
                Ordering::Greater
            }
        }
        (false, true) => Ordering::Less,
        _ => a.total_cmp(b),
    });
    pixels[rank.place]
}
