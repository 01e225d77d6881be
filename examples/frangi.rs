//! The vesselness of Frangi et al. (1998): `cargo run --release --example frangi`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    frangi(&image, &[1.5, 2.5, 4.0], 0.5).save("frangi.png")?;
    Ok(())
}

/// The likelihood that each pixel belongs to a dark line, at the best of the scales `sigmas`: equation 15, with `beta`
/// and, at each scale, half the largest norm of a Hessian as `c`.
pub(crate) fn frangi(image: &Image<f32>, sigmas: &[f64], beta: f32) -> Image<f32> {
    let mut lines = Image::zeros(image.session(), image.shape());
    for &sigma in sigmas {
        // The Hessian at the scale, and its eigenvalues: `large` has the larger magnitude inside dark lines.
        let second = |y, x| image.gauss_derivative(sigma, (y, x)) * (sigma * sigma) as f32;
        let (yy, xy, xx) = (second(2, 0), second(1, 1), second(0, 2));
        let mean = (&xx + &yy) * 0.5;
        let spread = ((xx - yy) * 0.5).hypot(xy);
        let (large, small) = (&mean + &spread, &mean - &spread);

        let blob = small.absdiv(&large, f32::MIN_POSITIVE) / beta;
        let norm = large.hypot(small);
        let structure = &norm / (norm.max_value() * 0.5);
        let line = gaussian(&blob) * (1.0 - gaussian(&structure));
        lines = lines.max(mean.gt(0.0).select(line, 0.0));
    }
    lines
}

fn gaussian(x: &Image<f32>) -> Image<f32> {
    (x.square() * -0.5).exp()
}
