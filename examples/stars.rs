//! Finds, locates and measures stars: `cargo run --release --example stars`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    // Points of light, blurred by the air, and a sky that is brighter below.
    let star = |i: usize| (i * i * 711 % 1439, i * i * i * 389 % 1919, 3.0 / i as f32);
    let image = Image::from_fn(&session, 144, 192, |y, x| {
        let distance = |cy: usize, cx: usize| (y as f32 - cy as f32 / 10.0).hypot(x as f32 - cx as f32 / 10.0);
        let light = (1..60).map(star).map(|(cy, cx, peak)| peak * (distance(cy, cx).powi(2) / -4.5).exp());
        light.sum::<f32>() + (y + (y * 192 + x).wrapping_mul(0x9e37_79b9) / 4096 % 64) as f32 / 1000.0
    });

    let light = without_sky(&image, 10);
    let labels = stars(&light, 5.0);
    for [flux, y, x] in measure(&light, &labels)? {
        println!("{flux:.3} at ({y:.2}, {x:.2})");
    }
    let rings = labels.gt(0).dilate(&Footprint::disc(2)).morphological_gradient(&Footprint::cross(1));
    rings.select([1.0, 0.6, 0.0], light * 2.0).save("stars.png")?;
    Ok(())
}

/// The image less its sky: the median around each pixel, which small stars do not change.
pub(crate) fn without_sky(image: &Image<f32>, radius: usize) -> Image<f32> {
    image - image.median(&Footprint::disc(radius))
}

/// The pixels, numbered star by star, that exceed the noise by `sigmas` deviations after smoothing with the width of a
/// star.
pub(crate) fn stars(light: &Image<f32>, sigmas: f64) -> Image<i32> {
    let smooth = light.gauss(1.5);
    // The deviation of a normal distribution from the median of distances: stars hardly change it.
    let noise = (&smooth - smooth.percentile(50.0)).abs().percentile(50.0) * 1.4826;
    smooth.gt(noise * sigmas).label(Connectivity::CORNERS)
}

/// The brightness of each star, and the row and column of its centre.
pub(crate) fn measure(light: &Image<f32>, labels: &Image<i32>) -> Result<Vec<[f64; 3]>> {
    let count = labels.max_value().get()? as usize + 1;
    let [y, x] = [Axis::Rows, Axis::Columns].map(|axis| light * Image::index(light.session(), light.shape(), axis));
    let [flux, y, x] = light.session().get_all([light, &y, &x].map(|image| image.by_label(labels, count).sum()))?;
    Ok((1..count).map(|i| [flux[i], y[i] / flux[i], x[i] / flux[i]]).collect())
}
