//! Fusion of exposures of one scene (Mertens, Kautz and Van Reeth 2007):
//! `cargo run --release --example exposure_fusion`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    // A scene much brighter on one side than on the other.
    let scene = session.open("assets/vessels.png")?.to_unit().crop(60, 220, 144, 192);
    let light = (Image::<f32>::index(&session, (144, 192), Axis::Columns) / 64.0 - 2.0).exp();
    let exposures = [0.3, 1.0, 3.0].map(|time| (&scene * &light * time).min(1.0));
    let fused = fuse(&exposures, 6);
    // One exposure above, all of them below.
    fused.paste(&exposures[1].crop(0, 0, 72, 192), 0, 0).clamp(0.0, 1.0).save("exposure_fusion.png")?;
    Ok(())
}

/// Takes each pixel from its best exposures, blended over pyramids of so many levels to avoid seams.
pub(crate) fn fuse(exposures: &[Image<f32>], levels: usize) -> Image<f32> {
    let session = exposures[0].session();
    let qualities: Vec<_> = exposures.iter().map(quality).collect();
    let total = Image::of_all(session, &qualities).sum().convert::<f32>();
    let parts = exposures.iter().zip(qualities).map(|(image, quality)| weighted(image, &(quality / &total), levels));
    Image::of_all(session, parts).sum().convert()
}

/// Quality of the exposure of each pixel: its contrast, times its saturation, times the closeness of its channels to
/// mid-grey.
fn quality(image: &Image<f32>) -> Image<f32> {
    let over_channels = |image: Image<f32>| image.over(Axis::Channels).sum().convert::<f32>();
    let grey = over_channels(image / 3.0);
    let saturation = over_channels((image - grey).square()).sqrt();
    let exposed = (over_channels((image - 0.5).square()) / -0.08).exp();
    image.luminance().laplace().abs() * saturation * exposed + 1e-12
}

/// The image times the weight, blended by pyramids: each detail fades over a distance of its own size.
fn weighted(image: &Image<f32>, weight: &Image<f32>, levels: usize) -> Image<f32> {
    if levels == 0 {
        return image * weight;
    }
    let up = |small: &Image<f32>| small.pyramid_up(image.height(), image.width());
    let coarse = image.pyramid_down();
    (image - up(&coarse)) * weight + up(&weighted(&coarse, &weight.pyramid_down(), levels - 1))
}
