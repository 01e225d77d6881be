//! The anisotropic diffusion of Perona and Malik (1990): `cargo run --release --example perona_malik`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = samples::worms(&session, 192, 256);
    let smooth = perona_malik(&image, 0.06, 0.2, 40)?;
    // Noisy on the left, smooth on the right.
    smooth.paste(&image.crop(0, 0, 192, 128), 0, 0).save("perona_malik.png")?;
    Ok(())
}

/// Diffusion hindered by differences much larger than `kappa`, stable for a `rate` of up to 0.25. Nothing flows across
/// the border.
pub(crate) fn perona_malik(image: &Image<f32>, kappa: f32, rate: f32, steps: usize) -> Result<Image<f32>> {
    let towards = |dy, dx| Filter::sparse([(dy, dx), (0, 0)], [1.0, -1.0]);
    let (north, south, west, east) = (towards(-1, 0), towards(1, 0), towards(0, -1), towards(0, 1));
    let step = |u: &Image<f32>| {
        let flow = |to: &Filter| {
            let slope = u.with_border(Border::Replicate).correlate(to);
            (-(&slope / kappa).square()).exp() * slope
        };
        u + (flow(&north) + flow(&south) + flow(&west) + flow(&east)) * rate
    };
    Ok(image.session().iterate(image.clone(), steps, step)?.state)
}
