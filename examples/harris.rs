//! The corner detector of Harris and Stephens (1988): `cargo run --release --example harris`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let picture = session.open("assets/vessels.png")?;
    let found = corners(&harris(&picture.luminance(), 3.0, 0.05), 15);
    let marks = found.dilate(&Footprint::disc(3));
    marks.select([0.0, 1.0, 1.0], picture.to_unit()).crop(40, 272, 192, 240).save("harris.png")?;
    Ok(())
}

/// The determinant less `k` times the squared trace of the second-moment matrix of the gradient, under a Gaussian of
/// `sigma`.
pub(crate) fn harris(image: &Image<f32>, sigma: f64, k: f32) -> Image<f32> {
    let (gx, gy) = (image.sobel(Axis::Columns), image.sobel(Axis::Rows));
    let (xx, xy, yy) = (gx.square().gauss(sigma), (&gx * &gy).gauss(sigma), gy.square().gauss(sigma));
    &xx * &yy - xy.square() - (xx + yy).square() * k
}

/// Maxima of the response among `size x size` pixels that exceed a hundredth of the global maximum.
pub(crate) fn corners(response: &Image<f32>, size: usize) -> Image<bool> {
    response.eq(response.dilate(&Footprint::rectangle(size, size))) & response.gt(response.max_value() * 0.01)
}
