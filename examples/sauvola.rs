//! The local threshold of Sauvola and Pietikäinen (2000): `cargo run --release --example sauvola`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let green = session.open("assets/vessels.png")?.to_unit().channel(1);
    green.gt(sauvola(&green, 25, 0.05, 0.05)).save("sauvola.png")?;
    Ok(())
}

/// The threshold `m (1 + k (s / r - 1))` for each pixel, with the mean `m` and the standard deviation `s` of the
/// `size x size` pixels around it.
pub(crate) fn sauvola(image: &Image<f32>, size: usize, k: f64, r: f64) -> Image<f32> {
    // The mean of squares less the square of the mean needs the digits of f64.
    let image = image.convert::<f64>();
    let mean = image.box_mean(size);
    let variance = image.square().box_mean(size) - mean.square();
    let deviation = variance.max(0.0).sqrt();
    (mean * ((deviation / r - 1.0) * k + 1.0)).convert()
}
