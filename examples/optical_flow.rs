//! Motion of each pixel (Lucas and Kanade 1981, from coarse to fine): `cargo run --release --example optical_flow`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    // The second picture is rotated, so that every pixel moves in another direction.
    let turned = image.with_border(Border::Reflect101).rotate(2.0, Interpolation::Bicubic);
    let [first, second] = [image, turned].map(|i| i.crop(120, 160, 144, 192));
    let (down, right) = flow(&first, &second, 15, 4);
    // The hue is the direction, the brightness the length.
    let hue = down.atan2(&right) / std::f32::consts::TAU;
    let hue = hue.lt(0.0).select(&hue + 1.0, &hue);
    let length = down.hypot(right);
    let value = &length / length.max_value();
    Image::stack(&session, [hue, Image::constant(&session, (144, 192), 1.0), value], Axis::Channels)
        .convert_colour(Colour::Hsv, Colour::Rgb)
        .save("optical_flow.png")?;
    Ok(())
}

/// Displacement of each pixel from `first` to `second`, down and to the right, assuming that the `size x size` pixels
/// around it move alike; computed over pyramids of so many levels.
pub(crate) fn flow(first: &Image<f32>, second: &Image<f32>, size: usize, levels: usize) -> (Image<f32>, Image<f32>) {
    let [mut down, mut right] = [(); 2].map(|()| Image::zeros(first.session(), first.shape()));
    if levels > 1 {
        let up = |coarse: Image<f32>| coarse.pyramid_up(first.height(), first.width()) * 2.0;
        let coarse = flow(&first.pyramid_down(), &second.pyramid_down(), size, levels - 1);
        (down, right) = (up(coarse.0), up(coarse.1));
    }
    let [y, x] = [Axis::Rows, Axis::Columns].map(|axis| Image::<f32>::index(first.session(), first.shape(), axis));
    let mean = |image: Image<f32>| image.box_mean(size);
    for _ in 0..3 {
        let there =
            second.with_border(Border::Replicate).remap([&(&y + &down), &(&x + &right)], Interpolation::Bilinear);
        let (gy, gx) = (there.sobel(Axis::Rows) / 8.0, there.sobel(Axis::Columns) / 8.0);
        let change = first - there + &gy * &down + &gx * &right;
        let (yy, yx, xx) = (mean(gy.square()), mean(&gy * &gx), mean(gx.square()));
        let (cy, cx) = (mean(gy * &change), mean(gx * change));
        let det = &yy * &xx - yx.square();
        (down, right) = ((xx * &cy - &yx * &cx) / &det, (yy * cx - yx * cy) / &det);
    }
    (down, right)
}
