//! Histograms as images: everything derived from one is recorded, and nothing is evaluated between reading a picture
//! and saving it.

use horus::prelude::*;

/// Number of levels of a histogram.
pub(crate) const LEVELS: usize = 256;

/// The pixels in [`LEVELS`] levels between `low` and `high`; all 0 if these are equal.
pub(crate) fn levels(image: &Image<f32>, low: &Value<f32>, high: &Value<f32>) -> Image<u8> {
    let top = LEVELS as f32 - 1.0;
    ((image - low) / (high - low) * top).convert()
}

/// The number of pixels in each level, as one row.
pub(crate) fn counts(levels: &Image<u8>) -> Image<f64> {
    // Each level is the middle of a bin.
    levels.histogram(LEVELS, -0.5, LEVELS as f64 - 0.5).counts()
}

/// Running sums of a row of [`LEVELS`], inclusive.
pub(crate) fn running(row: &Image<f64>) -> Image<f64> {
    let up_to = Image::from_fn(row.session(), LEVELS, LEVELS, |y, x| if x <= y { 1.0 } else { 0.0 });
    (up_to * row).over(Axis::Columns).sum().transpose()
}

/// Otsu's threshold (1979). Of all divisions of the levels into two classes, it takes the one with the largest variance
/// between them. The threshold lies midway between the last level of the lower class and the next; pixels above it
/// belong to the upper class. Infinite for a picture of one value.
pub(crate) fn otsu(image: &Image<f32>) -> Image<f32> {
    let (low, high) = (image.min_value(), image.max_value());
    let counts = counts(&levels(image, &low, &high));
    let level = Image::from_fn(image.session(), 1, LEVELS, |_, x| x as f64);
    let (weight, moment) = (running(&counts), running(&(&counts * &level)));
    let (all, total) = (counts.sum(), (&counts * &level).sum());
    let above = -&weight + &all;
    // w0 w1 (s0 / w0 - s1 / w1)^2, which is 0 / 0 if a class is empty.
    let difference = &moment / &weight - (-&moment + &total) / &above;
    let between = weight * above * difference.square();
    let inside = &level.lt(LEVELS as f64 - 1.0) & &between.gt(0.0);
    let between = inside.select(&between, -1.0);
    let best = &between.eq(between.max_value()) & &inside;
    let last = best.select(&level, f64::INFINITY).min_value().to_image();
    let part = (last + 0.5) / (LEVELS as f64 - 1.0);
    low.to_image() + part.convert::<f32>() * (high - &low)
}
