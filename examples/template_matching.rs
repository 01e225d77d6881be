//! Normalised cross-correlation (Lewis 1995): `cargo run --release --example template_matching`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    let template = image.crop(120, 370, 41, 51);
    // The template is found in a brighter, blurred image with less contrast.
    let image = (image * 0.7 + 0.2).gauss(1.0);
    let score = match_template(&image, &template)?;

    // The score belongs to the template's centre; a frame of its size marks the position.
    let best = score.eq(score.max_value()).with_border(Border::Constant(0.0)).pad(20, 20, 25, 25);
    let frame = best.dilate(&Footprint::rectangle(41, 51)).morphological_gradient(&Footprint::rectangle(3, 3));
    frame.select(1.0, image).crop(60, 256, 192, 256).save("template_matching.png")?;
    Ok(())
}

/// The correlation, in -1..=1, of the template with each part of the image of its size.
pub(crate) fn match_template(image: &Image<f32>, template: &Image<f32>) -> Result<Image<f32>> {
    let (height, width) = (template.height(), template.width());
    // Sums of squares less squares of sums need the digits of f64.
    let (image, template) = (image.convert::<f64>(), template.convert::<f64>());
    let template = &template - template.mean();
    let taps = Filter::dense(height, width, template.to_vec()?);
    let (row, column) = (Filter::row(vec![1.0; width]), Filter::column(vec![1.0; height]));
    let sum = |image: &Image<f64>| image.with_border(Border::Replicate).separable(&row, &column);

    let deviation = sum(&image.square()) - sum(&image).square() / (height * width) as f64;
    let norm = (deviation.max(0.0) * template.square().sum()).sqrt();
    let score = norm.gt(1e-9).select(image.with_border(Border::Replicate).correlate(&taps) / &norm, 0.0);
    let inside = (image.height() - height + 1, image.width() - width + 1);
    Ok(score.crop(height / 2, width / 2, inside.0, inside.1).convert())
}
