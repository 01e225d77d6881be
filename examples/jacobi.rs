//! Fills holes by Jacobi's iteration for Laplace's equation: `cargo run --release --example jacobi`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.to_unit().crop(60, 200, 192, 256);
    let scratches = samples::worms(&session, 192, 256).gt(0.5).dilate(&Footprint::disc(1));
    let scratched = scratches.select(1.0, &image);
    let filled = jacobi(&scratched, &scratches, 1e-6)?;
    // Scratched on the left, filled on the right.
    filled.paste(&scratched.crop(0, 0, 192, 128), 0, 0).save("jacobi.png")?;
    Ok(())
}

/// Replaces each pixel of the holes by the mean of its four neighbours, until a step changes none by `tolerance`.
pub(crate) fn jacobi(image: &Image<f32>, holes: &Image<bool>, tolerance: f64) -> Result<Image<f32>> {
    let neighbours = Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [0.25; 4]);
    let begin = holes.select(image.over(&!holes).mean(), image);
    let step = |u: &Image<f32>| holes.select(u.correlate(&neighbours), u);
    let filled = image.session().iterate(begin, Until::below(tolerance, 100_000), step)?;
    Ok(filled.state)
}
