//! Direction and coherence of fibres: `cargo run --release --example structure_tensor`.

use std::f32::consts::{FRAC_PI_2, PI};

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = samples::worms(&session, 144, 192);
    let (angle, coherence) = orientation(&image, 2.0);
    // The hue is the direction, the saturation the coherence of gradients.
    Image::stack(&session, [angle / PI, coherence, image], Axis::Channels)
        .convert_colour(Colour::Hsv, Colour::Rgb)
        .save("structure_tensor.png")?;
    Ok(())
}

/// The direction of lines, anti-clockwise from 0 to pi, and the coherence of the gradients around each pixel, from 0 to
/// 1: from their second moments under a Gaussian of `sigma`.
pub(crate) fn orientation(image: &Image<f32>, sigma: f64) -> (Image<f32>, Image<f32>) {
    let (gy, gx) = (image.sobel(Axis::Rows), image.sobel(Axis::Columns));
    let (yy, yx, xx) = (gy.square().gauss(sigma), (&gy * &gx).gauss(sigma), gx.square().gauss(sigma));
    let (cos, sin) = (&xx - &yy, yx * 2.0);
    // Gradients are perpendicular to lines.
    let angle = FRAC_PI_2 - sin.atan2(&cos) * 0.5;
    (angle, cos.hypot(sin).absdiv(xx + yy, f32::MIN_POSITIVE))
}
