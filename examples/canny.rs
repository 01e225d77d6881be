//! The edge detector of Canny (1986): `cargo run --release --example canny`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    canny(&image, 2.0, 0.03, 0.08)?.save("canny.png")?;
    Ok(())
}

/// Pixels where the gradient of the smoothed image is a maximum along its own direction and exceeds `low`, connected to
/// such a pixel that exceeds `high`.
pub(crate) fn canny(image: &Image<f32>, sigma: f64, low: f32, high: f32) -> Result<Image<bool>> {
    let smooth = image.gauss(sigma);
    let (gx, gy) = (smooth.sobel(Axis::Columns), smooth.sobel(Axis::Rows));
    let magnitude = gx.hypot(&gy);

    // The magnitude one step along the gradient is interpolated between a straight and a diagonal neighbour.
    let (ax, ay) = (gx.abs(), gy.abs());
    let (steep, same) = (ay.gt(&ax), (gx * gy).ge(0.0));
    let weight = ax.min(&ay).absdiv(ax.max(&ay), f32::MIN_POSITIVE);
    let at = |dy: f64, dx: f64| magnitude.translate(-dy, -dx);
    let beside = |step: f64| {
        let straight = steep.select(at(step, 0.0), at(0.0, step));
        let diagonal = same.select(at(step, step), steep.select(at(step, -step), at(-step, step)));
        &weight * diagonal + (1.0 - &weight) * straight
    };
    let thin = magnitude.ge(low) & magnitude.ge(beside(1.0)) & magnitude.ge(beside(-1.0));
    // Border pixels lack neighbours.
    let thin =
        thin.crop(1, 1, image.height() - 2, image.width() - 2).with_border(Border::Constant(0.0)).pad(1, 1, 1, 1);

    // Grows until nothing changes.
    let grow = |edges: &Image<bool>| edges.dilate(&Footprint::rectangle(3, 3)) & &thin;
    let strong = &thin & magnitude.ge(high);
    Ok(image.session().iterate(strong, Until::below(1.0, usize::MAX), grow)?.state)
}
