//! Processes a picture tile by tile: `cargo run --release --example tiling`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    let lines = |part: &Image<f32>| part.gauss_derivative(3.0, (0, 2)).max(part.gauss_derivative(3.0, (2, 0))) * 300.0;
    let in_tiles = tiled(&image, 100, 9, lines);
    let difference = in_tiles.absdiff(lines(&image)).max_value().get()?;
    // All ranks compute it, one prints it.
    if session.rank() == 0 {
        println!("largest difference from the whole: {difference}");
    }
    in_tiles.save("tiling.png")?;
    Ok(())
}

/// The result of `work`, which reads at most `margin` pixels around each pixel, by tiles of `size x size` pixels.
pub(crate) fn tiled(
    image: &Image<f32>,
    size: usize,
    margin: usize,
    work: impl Fn(&Image<f32>) -> Image<f32>,
) -> Image<f32> {
    let (height, width) = (image.height(), image.width());
    let mut whole = Image::zeros(image.session(), image.shape());
    for top in (0..height).step_by(size) {
        for left in (0..width).step_by(size) {
            // The tile with the margin that its pixels depend on.
            let (bottom, right) = ((top + size).min(height), (left + size).min(width));
            let (y, x) = (top.saturating_sub(margin), left.saturating_sub(margin));
            let (below, beyond) = ((bottom + margin).min(height), (right + margin).min(width));
            let part = work(&image.crop(y, x, below - y, beyond - x));
            let tile = part.crop(top - y, left - x, bottom - top, right - left);
            whole = whole.paste(&tile, top as isize, left as isize);
        }
    }
    whole
}
