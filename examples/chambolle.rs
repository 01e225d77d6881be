//! Noise removal by minimal total variation, Chambolle (2004): `cargo run --release --example chambolle`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = samples::worms(&session, 192, 256);
    let smooth = chambolle(&image, 0.1, 100)?;
    // Noisy on the left, smooth on the right.
    smooth.paste(&image.crop(0, 0, 192, 128), 0, 0).save("chambolle.png")?;
    Ok(())
}

/// Downward and rightward gradients, times minus the weight: the dual variable, of length 1 at most.
type Dual = (Image<f32>, Image<f32>);

/// Approximates by so many steps the image u that minimises
/// `|u - image|^2 / 2 + weight * (sum of the lengths of its gradients)`.
pub(crate) fn chambolle(image: &Image<f32>, weight: f32, steps: usize) -> Result<Image<f32>> {
    let difference = |to, from| Filter::sparse([to, from], [1.0, -1.0]);
    let (south, east) = (difference((1, 0), (0, 0)), difference((0, 1), (0, 0)));
    let (north, west) = (difference((-1, 0), (0, 0)), difference((0, -1), (0, 0)));
    let primal = |(py, px): &Dual| {
        let divergence = py.with_border(Border::Constant(0.0)).correlate(&north)
            + px.with_border(Border::Constant(0.0)).correlate(&west);
        image + divergence
    };
    let rate = 0.25; // the largest stable rate
    let step = |dual: &Dual| {
        let u = primal(dual);
        let (gy, gx) =
            (u.with_border(Border::Replicate).correlate(&south), u.with_border(Border::Replicate).correlate(&east));
        let length = gy.hypot(&gx) * (rate / weight) + 1.0;
        ((&dual.0 - gy * rate) / &length, (&dual.1 - gx * rate) / length)
    };
    let begin = (Image::zeros(image.session(), image.shape()), Image::zeros(image.session(), image.shape()));
    Ok(primal(&image.session().iterate(begin, steps, step)?.state))
}
