//! White balance and saturation: `cargo run --release --example colour`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.to_unit().crop(60, 200, 192, 256);
    saturate(&grey_world(&image), 1.5).save("colour.png")?;
    Ok(())
}

/// Scales the channels to equal means: the grey-world assumption.
pub(crate) fn grey_world(image: &Image<f32>) -> Image<f32> {
    let balanced = image.unstack(Axis::Channels).into_iter().map(|channel| &channel * (image.mean() / channel.mean()));
    Image::stack(image.session(), balanced, Axis::Channels).clamp(0.0, 1.0)
}

/// Multiplies the saturation of colours by `factor`.
pub(crate) fn saturate(image: &Image<f32>, factor: f32) -> Image<f32> {
    (image.convert_colour(Colour::Rgb, Colour::Hsv) * [1.0, factor, 1.0])
        .min(1.0)
        .convert_colour(Colour::Hsv, Colour::Rgb)
}
