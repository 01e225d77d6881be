//! Two pictures blended by Laplacian pyramids (Burt and Adelson 1983): `cargo run --release --example pyramids`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let left = session.open("assets/vessels.png")?.to_unit().crop(60, 200, 160, 216);
    let right =
        Image::stack(&session, [1.0, 0.6, 0.2].map(|part| samples::worms(&session, 160, 216) * part), Axis::Channels);
    let mask = Image::<f32>::index(&session, (160, 216), Axis::Columns).lt(108.0).convert();
    blend(&left, &right, &mask, 5).save("pyramids.png")?;
    Ok(())
}

/// `a` where `mask` is 1, `b` where it is 0: each detail fades over a distance of its own size.
pub(crate) fn blend(a: &Image<f32>, b: &Image<f32>, mask: &Image<f32>, levels: usize) -> Image<f32> {
    let mix = |a: &Image<f32>, b: &Image<f32>| b + (a - b) * mask;
    if levels == 0 {
        return mix(a, b);
    }
    let up = |small: &Image<f32>| small.pyramid_up(a.height(), a.width());
    let (coarse_a, coarse_b) = (a.pyramid_down(), b.pyramid_down());
    let detail = mix(&(a - up(&coarse_a)), &(b - up(&coarse_b)));
    detail + up(&blend(&coarse_a, &coarse_b, &mask.pyramid_down(), levels - 1))
}
