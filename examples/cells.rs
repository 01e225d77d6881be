//! Counts and measures cells: `cargo run --release --example cells`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    // Bright round cells, some of which touch, on a background that is brighter at the right.
    let cell = |i: usize| (i * i * 71 % 144, (i * 37 + i * i * i) % 192, 7 + i % 4);
    let image = Image::from_fn(&session, 144, 192, |y, x| {
        let bright = |(cy, cx, radius): (usize, usize, usize)| {
            let distance = (y as f32 - cy as f32).hypot(x as f32 - cx as f32) / radius as f32;
            (1.0 - distance.powi(3)).max(0.0) * 0.7
        };
        let noise = ((y * 192 + x).wrapping_mul(0x9e37_79b9) >> 12) % 64;
        (0..32).map(|i| bright(cell(i))).fold(0.0, f32::max) + (x + noise) as f32 / 1500.0
    });

    let (mask, seeds) = (mask(&image), seeds(&image, 2.0, 0.05));
    let count = seeds.max_value().get()? as usize;
    let (area, brightness) = session.get_all((mask.count(), image.over(&mask).mean()))?;
    if session.rank() == 0 {
        println!("{count} cells of {:.1} pixels, {brightness:.3} on average", area as f64 / count as f64);
    }
    let rims = mask.morphological_gradient(&Footprint::cross(1));
    let marked = rims.select([0.0, 1.0, 0.0], image);
    seeds.gt(0).dilate(&Footprint::disc(1)).select([1.0, 0.0, 0.0], marked).save("cells.png")?;
    Ok(())
}

/// The mask of cells: Otsu's threshold after subtraction of the uneven background, without specks.
pub(crate) fn mask(image: &Image<f32>) -> Image<bool> {
    let bright = image.gauss(1.0).top_hat(&Footprint::disc(12));
    bright.gt(bright.otsu()).opening(&Footprint::disc(2))
}

/// Numbered maxima of the smoothed picture that rise by `contrast` above the saddles to higher ones: one for each cell,
/// even if cells touch.
pub(crate) fn seeds(image: &Image<f32>, sigma: f64, contrast: f32) -> Image<i32> {
    let smooth = image.gauss(sigma);
    let rise = &smooth - (&smooth - contrast).reconstruct(&smooth, Connectivity::CORNERS);
    rise.gt(contrast * 0.9).label(Connectivity::CORNERS)
}
