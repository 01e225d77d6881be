//! Unsharp masking: `cargo run --release --example unsharp_mask`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.to_unit().crop(60, 220, 168, 224);
    unsharp_mask(&image, 3.0, 1.5).save("unsharp_mask.png")?;
    Ok(())
}

/// Adds `amount` times the detail that a Gaussian of `sigma` removes.
pub(crate) fn unsharp_mask(image: &Image<f32>, sigma: f64, amount: f32) -> Image<f32> {
    (image + (image - image.gauss(sigma)) * amount).clamp(0.0, 1.0)
}
