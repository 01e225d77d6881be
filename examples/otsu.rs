//! Otsu's threshold (1979), with morphology before and after it: `cargo run --release --example otsu`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    vessels(&image)?.save("otsu.png")?;
    Ok(())
}

/// Dark and narrow parts by Otsu's threshold, without specks.
pub(crate) fn vessels(image: &Image<f32>) -> Result<Image<bool>> {
    let dark = image.black_hat(&Footprint::disc(6));
    let threshold = otsu(&dark, 256)?;
    Ok(dark.gt(threshold).opening(&Footprint::cross(1)))
}

/// The middle of the histogram bin that divides the pixels into two classes with the largest variance between them.
pub(crate) fn otsu(image: &Image<f32>, bins: usize) -> Result<f32> {
    let (low, high) = image.session().get_all((image.min_value(), image.max_value()))?;
    let counts = image.histogram(bins, low.into(), high.into()).get()?;
    let middle = |bin: usize| f64::from(low) + (bin as f64 + 0.5) * f64::from(high - low) / bins as f64;

    // Weight and sum of the bins of a class.
    let class = |range: std::ops::Range<usize>| {
        range.fold((0.0, 0.0), |(weight, sum), i| (weight + counts[i] as f64, sum + counts[i] as f64 * middle(i)))
    };
    let between = |last: &usize| {
        let ((w0, s0), (w1, s1)) = (class(0..last + 1), class(last + 1..bins));
        w0 * w1 * (s0 / w0 - s1 / w1).powi(2)
    };
    let best = (0..bins - 1).max_by(|a, b| between(a).total_cmp(&between(b)));
    Ok(middle(best.unwrap_or(0)) as f32)
}
